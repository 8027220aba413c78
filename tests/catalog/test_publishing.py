"""What the broker publishes of each change (CAT-040, CAT-042, CAT-044), and to whom a filter shows it (CAT-041)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.watchrig import Broker, Said
from weft.base.effects import Persist
from weft.base.now import SECOND
from weft.base.records import Stream, StreamRecord
from weft.cores.catalog import limits
from weft.cores.catalog.context import Context
from weft.cores.catalog.publishing import Publishing

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "vectors" / "catalog-computed.jsonl").read_text("utf-8").splitlines()
]
ALL = "watch/44136fa355b3678a"


def of(said: list[Said], prefix: str) -> list[Said]:
    """What was said on topics that begin so."""
    return [one for one in said if one.topic.startswith(prefix)]


def events(broker: Broker, prefix: str = "catalog/") -> list[str]:
    """`op name index<prev` of what was published there."""
    return [
        f"{said.meta['op']} {said.meta['name']} {said.meta['index']}<{said.meta['prev']}"
        for said in of(broker.published(), prefix)
        if said.meta["op"] != "tick"
    ]


# Events


@pytest.mark.proves("CAT-040")
def test_an_event_has_the_topic_meta_and_record_that_the_vectors_show() -> None:
    broker = Broker()
    expected = next(vector for vector in VECTORS if vector["id"] == "event-remove")
    broker.register("thermo", "t1", port=9)
    broker.remove("thermo", "t1", reason="reaped")
    frames = [bytes.fromhex(frame) for frame in expected["frames"]]
    publication = broker.publications()[-1]
    assert frames[0] == publication.topic
    assert frames[2] == publication.body[1] == b""
    assert list(json.loads(frames[1])) == list(json.loads(publication.body[0]))


@pytest.mark.proves("CAT-040")
def test_each_change_is_published_under_the_next_index_with_the_one_before_it_of_its_name() -> None:
    broker = Broker()
    broker.register("thermo", "t1")
    broker.register("hygro")
    broker.register("thermo", "t2")
    broker.state("thermo", "suspect", "t1")
    broker.health("hygro", "warning")
    broker.remove("thermo", "t1")
    assert [
        "register thermo 1<0",
        "register hygro 2<0",
        "register thermo 3<1",
        "suspect thermo 4<3",
        "health hygro 5<2",
        "remove thermo 6<4",
    ] == events(broker)


@pytest.mark.proves("CAT-040")
def test_an_event_carries_the_record_as_a_lookup_shows_it_after_the_change() -> None:
    broker = Broker()
    broker.register("thermo", port=9)
    broker.update("thermo", port=10)
    broker.state("thermo", "inactive", reason="silent")
    said = broker.published()
    assert [9, 10, 10] == [one.record["port"] for one in said if one.record]
    assert ["active", "active", "inactive"] == [one.record["_dbp"]["state"] for one in said if one.record]
    assert [1, 2, 3] == [one.record["_dbp"]["index"] for one in said if one.record]
    assert "silent" == said[-1].meta["reason"]
    assert broker.table({})["thermo", "i"] == said[-1].record


@pytest.mark.proves("CAT-040", "CAT-050")
def test_every_event_stands_below_the_record_of_its_change() -> None:
    broker = Broker()
    broker.register("thermo")
    broker.update("thermo", port=10)
    persist, *sent = broker.context.take()
    assert isinstance(persist, Persist)
    kept = [(record.stream, record.sequence) for record in persist.records if isinstance(record, StreamRecord)]
    assert [(Stream.CATALOG, 1), (Stream.CATALOG, 2)] == kept
    assert 2 == len(sent)


# Names that are gone


@pytest.mark.proves("CAT-040")
def test_a_name_that_comes_back_goes_on_from_its_last_event() -> None:
    broker = Broker()
    broker.register("thermo")
    broker.remove("thermo")
    broker.register("hygro")
    broker.register("thermo")
    assert "register thermo 4<2" == events(broker)[-1]


def test_names_that_nobody_has_are_forgotten_with_their_last_change_and_nobody_takes_them_for_new() -> None:
    broker = Broker(ring_max=3)
    broker.register("stays")
    for number in range(50):
        broker.register(f"job-{number}")
        broker.remove(f"job-{number}")
    assert {"stays", "job-48", "job-49"} == set(broker.publishing._names)
    broker.register("job-0")
    assert "register job-0 102<97" == events(broker)[-1]


# Ticks


@pytest.mark.proves("CAT-042")
def test_a_tick_each_second_tells_epoch_and_index() -> None:
    broker = Broker()
    broker.publishing.open(broker.context.now)
    broker.advance(1.5)
    broker.register("thermo")
    broker.advance(1.5)
    ticks = of(broker.published(), "tick")
    assert [(0, 1_795_227_300.0), (1, 1_795_227_301.0), (1, 1_795_227_302.0)] == [
        (said.meta["index"], said.meta["ts"]) for said in ticks
    ]
    vector = next(vector for vector in VECTORS if vector["id"] == "event-tick")
    assert list(json.loads(bytes.fromhex(vector["frames"][1]))) == list(ticks[0].meta)
    assert {broker.context.epoch} == {said.meta["epoch"] for said in ticks}


@pytest.mark.proves("CAT-042")
@pytest.mark.parametrize("topic", [b"tick", b"t", b""])
def test_who_subscribes_to_ticks_gets_one_at_once(topic: bytes) -> None:
    broker = Broker()
    broker.subscribe(topic)
    assert ["tick"] == [said.topic for said in broker.published()]


@pytest.mark.parametrize("topic", [b"ticks", b"watch/44136fa355b3678a", b"lcv/a"])
def test_other_subscriptions_get_no_tick(topic: bytes) -> None:
    broker = Broker()
    broker.subscribe(topic)
    broker.subscribe(b"tick", is_on=False)
    assert [] == broker.published()


@pytest.mark.proves("CAT-042")
def test_subscriptions_get_at_most_a_hundred_ticks_in_a_second() -> None:
    broker = Broker()
    for _ in range(130):
        broker.subscribe(b"tick")
    assert 100 == len(broker.published())
    assert 30 == broker.context.counters["dropped", "ticks"]
    broker.advance(1.5)
    broker.published()
    broker.subscribe(b"tick")
    assert 1 == len(broker.published())


@pytest.mark.proves("CAT-042")
def test_each_topic_of_a_filter_is_told_its_last_event_every_ten_seconds() -> None:
    broker = Broker()
    broker.watch({"name": "thermo"})
    broker.subscribe(b"watch/")
    broker.register("thermo")
    broker.register("hygro")
    broker.advance(20)
    ticks = [said.meta for said in of(broker.published(), "watch/") if said.meta["op"] == "tick"]
    assert [(2, 1), (2, 1)] == [(tick["index"], tick["last"]) for tick in ticks]


def test_a_broker_that_stood_still_ticks_once_and_drops_no_topic_for_that() -> None:
    broker = Broker()
    broker.watch({})
    broker.published()
    broker.at(100 * SECOND)
    broker.publishing.wake(broker.context.now)
    assert [("tick", 0), (ALL, 0)] == [(said.topic, said.meta["index"]) for said in broker.published()]
    broker.register("thermo")
    assert ["enter thermo 1<0"] == events(broker, ALL)


# Changes that were missed


@pytest.mark.proves("CAT-044")
def test_changes_behind_an_index_are_listed_with_their_records() -> None:
    broker = Broker()
    broker.register("thermo", port=9)
    broker.update("thermo", port=10)
    broker.remove("thermo")
    answer = broker.changes(1)
    assert {"epoch", "index", "changes"} == answer.keys()
    assert 3 == answer["index"]
    update, remove = answer["changes"]
    assert (2, 1, "update", "thermo", "i", 10) == (
        *(update[key] for key in ("index", "prev", "op", "name", "instance")),
        update["record"]["port"],
    )
    assert (3, 2, "remove", None, "reaped") == tuple(remove[key] for key in ("index", "prev", "op", "record", "reason"))
    assert [] == broker.changes(3)["changes"]


@pytest.mark.proves("CAT-044")
def test_changes_beyond_the_ring_of_another_epoch_or_of_the_future_are_a_resync() -> None:
    broker = Broker(ring_max=3)
    for number in range(5):
        broker.register(f"job-{number}")
    resync = {"resync": True}
    assert [3, 4, 5] == [change["index"] for change in broker.changes(2)["changes"]]
    assert resync == broker.changes(1) == broker.changes(-1) == broker.changes(6)
    assert resync == broker.changes(4, epoch="0" * 16)
    assert 3 == broker.context.counters["resyncs", "ring"]


@pytest.mark.proves("CAT-044")
def test_more_changes_than_an_answer_holds_are_asked_for_behind_its_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHANGES_LIST_MAX", 3)
    broker = Broker()
    for number in range(7):
        broker.register(f"job-{number}")
    first = broker.changes(0)
    assert (3, 4) == (first["index"], first["more"])
    second = broker.changes(first["index"])
    assert (6, 1) == (second["index"], second["more"])
    assert "more" not in broker.changes(6)


def test_changes_with_big_records_fill_an_answer_sooner_but_one_goes_in_any_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "CHANGES_BYTES_MAX", 1_000)
    broker = Broker()
    for number in range(3):
        broker.register(f"job-{number}", note="x" * 900)
    assert [1] == [change["index"] for change in broker.changes(0)["changes"]]


@pytest.mark.proves("CAT-044")
def test_the_ring_is_bounded_in_bytes_too() -> None:
    broker = Broker()
    broker.publishing._ring._bytes_max = 10_000
    for number in range(20):
        broker.register(f"job-{number}", note="x" * 900)
    assert 20 == broker.publishing._ring.last
    assert 10_000 >= broker.publishing._ring._bytes > 8_000


@pytest.mark.proves("CAT-034")
@pytest.mark.parametrize("argument", [b"", b"{}", b"[]", b"nonsense", b'{"epoch":1,"since":2}', b'{"epoch":"a"}'])
def test_changes_are_asked_with_epoch_and_index(argument: bytes) -> None:
    assert "bad-argument" == Broker().ask(b"dbp.changes", argument)["code"]


# The index


Step = tuple[str, str, str]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["register", "update", "suspect", "inactive", "active", "health", "remove", "tag"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["1", "2"]),
    ),
    max_size=30,
)


def play(broker: Broker, steps: list[Step]) -> None:
    """Do what can be done of it."""
    for number, (what, name, instance_id) in enumerate(steps):
        if what == "register":
            broker.register(name, instance_id, number=number, tags=["lab"] if number % 2 else [])
        elif broker.book.get(name, instance_id) is None:
            continue
        elif what == "update":
            broker.update(name, instance_id, number=number)
        elif what == "tag":
            broker.update(name, instance_id, tags=["lab", "x"] if number % 2 else ["x"])
        elif what == "health":
            broker.health(name, "warning" if number % 2 else "passing", instance_id)
        elif what == "remove":
            broker.remove(name, instance_id)
        else:
            broker.state(name, what, instance_id)


def check_index_and_prev(steps: list[Step]) -> None:
    """P4: the index has no hole, and `prev` is the event before of the same name, or of the same topic."""
    broker = Broker()
    filters: list[dict[str, Any]] = [{}, {"name": "a"}, {"tags": ["lab"]}, {"state": "active"}]
    for wanted in filters:
        broker.watch(wanted)
    play(broker, steps)
    lasts: dict[str, int] = {}
    indices = []
    for said in broker.published():
        of_what = said.meta["name"] if said.topic.startswith("catalog/") else said.topic
        assert lasts.get(of_what, 0) == said.meta["prev"]
        lasts[of_what] = said.meta["index"]
        indices += [said.meta["index"]] if said.topic.startswith("catalog/") else []
    assert list(range(1, broker.context.index + 1)) == indices


@pytest.mark.proves("CAT-040", "CAT-041")
@given(STEPS)
def test_the_index_has_no_hole_and_prev_is_the_event_before(steps: list[Step]) -> None:
    check_index_and_prev(steps)


def test_canary_a_prev_of_the_whole_catalog_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canary 5."""
    meta = Publishing._meta
    monkeypatch.setattr(Publishing, "_meta", lambda self, change, op, prev: meta(self, change, op, change.index - 1))
    with pytest.raises(AssertionError):
        check_index_and_prev([("register", "a", "1"), ("register", "b", "1"), ("update", "a", "1")])


def check_no_two_starts_share_an_epoch() -> None:
    """CAT-051: each run has an epoch of its own, 16 hex digits."""
    epochs = {Broker(era=era).context.epoch for era in range(1, 4)}
    assert 3 == len(epochs)
    assert {16} == {len(bytes.fromhex(epoch)) * 2 for epoch in epochs}


@pytest.mark.proves("CAT-051")
def test_no_two_starts_share_an_epoch() -> None:
    check_no_two_starts_share_an_epoch()


def test_canary_a_fixed_epoch_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canary 13."""
    begin = Context.__init__

    def fixed(self: Context, settings: Any, node: bytes, era: int, chance: Any) -> None:
        begin(self, settings, node, 1, chance)

    monkeypatch.setattr(Context, "__init__", fixed)
    with pytest.raises(AssertionError):
        check_no_two_starts_share_an_epoch()
