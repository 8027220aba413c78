"""Questions about the broker itself (CAT-034, CAT-035, CAT-082)."""

import json
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.catalog.entered import SOMEBODY, WALL, Entered
from weft.base.now import SECOND
from weft.cores.catalog import limits, metrics
from weft.cores.catalog.context import Asker
from weft.cores.catalog.queries import Queries
from weft.cores.catalog.refusals import Refusal
from weft.cores.catalog.states import State


def names(told: dict[str, Any]) -> list[tuple[str, str]]:
    return [(found["name"], found["instance"]) for found in told["records"]]


def arguments(**keys: Any) -> bytes:
    return json.dumps(keys).encode()


@pytest.fixture
def broker() -> Entered:
    return Entered(net="blue", port=5999)


# Refusing


@pytest.mark.proves("CAT-034", "CAT-080")
@pytest.mark.parametrize(
    "frames, code",
    [
        ([b"dbp."], "unknown-query"),
        ([b"dbp.x", b"{}"], "unknown-query"),
        ([b"dbp.\xff"], "unknown-query"),
        ([b"dbp." + b"x" * 100_000], "unknown-query"),
        ([b"dbp.query", b"["], "bad-argument"),
        ([b"dbp.query", b'{"colour":"red"}'], "bad-argument"),
        ([b"dbp.list", b'{"limit":0}'], "bad-argument"),
        ([b"dbp.list", b'{"limit":"9"}'], "bad-argument"),
        ([b"dbp.list", b'{"after":1}'], "bad-argument"),
        ([b"dbp.list", b'{"before":""}'], "bad-argument"),
        ([b"dbp.list", b"\xff"], "bad-argument"),
        ([b"dbp.list", b"[" * 100_000], "bad-argument"),
        ([b"dbp.instances"], "bad-argument"),
        ([b"dbp.instances", b"\xff"], "bad-argument"),
        ([b"dbp.liveness", b"\xff"], "bad-argument"),
        ([b"dbp.liveness", b"", b'{"limit":0}'], "bad-argument"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value)[:50],
)
def test_a_query_that_cannot_be_answered_says_why(broker: Entered, frames: list[bytes], code: str) -> None:
    told = broker.ask(*frames)
    assert ({"Error", "code"}, code) == (told.keys(), told["code"])
    assert len(told["Error"]) < 1000


def test_only_the_first_name_can_be_a_query(broker: Entered) -> None:
    assert [{"service": "a", "state": "unknown"}, {"service": "dbp.status", "state": "unknown"}] == broker.ask(
        "a", "dbp.status"
    )["_dbp"]["missing"]


def test_who_may_not_ask_is_denied_and_not_answered(broker: Entered) -> None:
    def deregister(args: tuple[bytes, ...], asker: Asker) -> tuple[bytes, ...]:
        if not asker.is_admin:
            raise Refusal("not-authorised", "only from this machine")
        return (b'{"done":%b}' % args[0],)

    broker.queries.add("dbp.deregister", deregister)
    with pytest.raises(Refusal) as caught:
        broker.ask("dbp.deregister", b"1")
    assert "not-authorised" == caught.value.code
    admin = SOMEBODY._replace(address="")
    assert (b'{"done":1}',) == broker.queries.answer((b"dbp.deregister", b"1"), admin)


# Asking


@pytest.mark.proves("CAT-034", "CAT-002")
def test_the_status_says_who_the_broker_is_and_where_its_ports_are(broker: Entered) -> None:
    context = broker.context
    context.beats_port, context.events_port, context.monitor_port = 5246, 5250, 5251
    broker.enter("a", id="1")
    broker.enter("a", id="2", state=State.SUSPECT)
    expected = {
        "dbp": 1,
        "epoch": broker.context.epoch,
        "index": 2,
        "net": "blue",
        "host": "127.0.0.1",
        "port": 5999,
        "hb": 5246,
        "pub": 5250,
        "monitor": 5251,
        "bridge": 0,
        "caps": ["f64", "lvc", "log", "tap"],
        "insecure": False,
        "full": False,
        "names": 1,
        "instances": {"active": 1, "suspect": 1, "inactive": 0},
    }
    assert expected == broker.ask("dbp.status")


@pytest.mark.proves("CAT-061")
def test_a_broker_that_is_heard_beyond_its_machine_says_that_it_is_open() -> None:
    assert [False, False, True, True] == [
        Entered(host=host).ask("dbp.status")["insecure"] for host in ("127.0.0.1", "::1", "0.0.0.0", "10.0.0.4")
    ]
    assert not Entered(host="10.0.0.4", is_closed=True).ask("dbp.status")["insecure"]


@pytest.mark.proves("CAT-034", "CAT-035")
def test_a_query_finds_every_instance_that_its_filter_means(broker: Entered) -> None:
    broker.enter("thermo", id="1", tags=["lab"])
    broker.enter("thermo", id="2", tags=["roof"], state=State.INACTIVE)
    broker.enter("door", id="1", tags=["lab"], port=9)
    asked = [
        {"tags": ["lab"]},
        {"name": "thermo"},
        {"name": "th*", "state": "inactive"},
        {},
        {"name": "thermo", "tags": ["x"]},
    ]
    every = [("thermo", "1"), ("thermo", "2"), ("door", "1")]
    expected = [[every[0], every[2]], every[:2], every[1:2], every, []]
    assert expected == [names(broker.ask("dbp.query", json.dumps(wanted))) for wanted in asked]
    told = broker.ask("dbp.query", arguments(name="door"))
    assert {"epoch": broker.context.epoch, "index": 3, "records": told["records"]} == told
    assert [{"name": "door", "instance": "1", "record": broker.ask("door")["door"]}] == told["records"]
    assert every == names(broker.ask("dbp.query"))


@pytest.mark.proves("CAT-034")
def test_a_list_is_read_page_by_page_without_gap_or_repetition(broker: Entered) -> None:
    for name in ("d", "b", "ü", "a", "c"):
        broker.enter(name, id="1")
        broker.enter(name, id="2", health="passing")
    broker.enter("gone", state=State.INACTIVE)
    pages, after = [], ""
    while after is not None:
        told = broker.ask("dbp.list", arguments(limit=2, after=after))
        pages.append([name for name, _ in names(told)])
        after = told["after"]
    assert [["a", "b"], ["c", "d"], ["ü"]] == pages
    assert [("a", "2"), ("b", "2"), ("c", "2"), ("d", "2"), ("ü", "2")] == names(broker.ask("dbp.list"))
    assert None is broker.ask("dbp.list", arguments(limit=5))["after"]
    assert [("ü", "2")] == names(broker.ask("dbp.list", arguments(after="dd")))


@pytest.mark.proves("CAT-034")
def test_a_page_never_has_more_than_a_thousand_names(broker: Entered) -> None:
    for number in range(limits.LIST_MAX + 1):
        broker.enter(f"{number:04}", id="1")
    told = [broker.ask("dbp.list", *page) for page in ([], [arguments(limit=10**9)])]
    assert [(1000, "0999")] * 2 == [(len(page["records"]), page["after"]) for page in told]


@pytest.mark.proves("CAT-034", "CAT-017")
def test_the_instances_of_a_name_are_told_in_every_state_with_how_they_are_heard(broker: Entered) -> None:
    heard = broker.enter("a", id="1", seen_at="10.0.0.4")
    heard.heard_at, heard.via = broker.context.now.mono, "udp"
    gone = broker.enter("a", id="2")
    broker.turn(gone, State.INACTIVE, "left")
    gone.via, gone.is_restored = "probe", True
    broker.expire(250)
    first, second = broker.ask("dbp.instances", "a")["records"]
    lookup = broker.ask("a")["a"]
    more = {"via": "udp", "last_beat": WALL / 1e9, "restored": False, "reason": "", "owner": "10.0.0.4"}
    assert {"name": "a", "instance": "1", "record": {**lookup, "_dbp": {**lookup["_dbp"], **more}}} == first
    about = second["record"]["_dbp"]
    expected = ("inactive", "tcp", None, True, "left")
    assert expected == (about["state"], about["via"], about["last_beat"], about["restored"], about["reason"])
    assert [] == broker.ask("dbp.instances", "zz")["records"]


@pytest.mark.proves("CAT-034")
def test_liveness_is_told_of_used_and_idle_instances_alike(broker: Entered) -> None:
    heard = broker.enter("a", id="1", heartbeat=500)
    heard.heard_at, heard.via = broker.context.now.mono, "udp"
    broker.enter("b", id="1", state=State.SUSPECT)
    broker.expire(250)
    expected = [
        {"name": "a", "instance": "1", "state": "active", "via": "udp", "age_s": 0.25, "interval_ms": 500},
        {"name": "b", "instance": "1", "state": "suspect", "via": "tcp", "age_s": None, "interval_ms": 1000},
    ]
    assert expected == broker.ask("dbp.liveness")["instances"]
    assert expected[1:] == broker.ask("dbp.liveness", "b")["instances"]
    broker.queries = Queries(broker.context, broker.book, broker.answers, lambda instance: {"jitter": instance.name})
    assert ["a", "b"] == [found["jitter"] for found in broker.ask("dbp.liveness")["instances"]]


@pytest.mark.proves("CAT-081", "MON-008")
def test_liveness_of_many_is_told_page_by_page(broker: Entered) -> None:
    for name in ("a", "b", "c", "d"):
        broker.enter(name, id="1")
    broker.enter("b", id="2")
    pages: list[list[tuple[str, str]]] = []
    after: str | None = ""
    while after is not None:
        told = broker.ask("dbp.liveness", "", json.dumps({"limit": 2, "after": after}))
        pages.append([(row["name"], row["instance"]) for row in told["instances"]])
        after = told["after"]
    assert [[("a", "1"), ("b", "1"), ("b", "2")], [("c", "1"), ("d", "1")]] == pages


# Metrics


def samples(broker: Entered) -> dict[tuple[str, ...], float]:
    told, text = broker.queries.answer((b"dbp.metrics",), SOMEBODY)
    assert broker.context.epoch == json.loads(told)["epoch"]
    families = list(text_string_to_metric_families(text.decode()))
    assert len(families) == len({family.name for family in families})
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


REQUIRED = {
    *("requests", "malformed", "udp_malformed", "dropped", "unroutable", "faults", "beats", "evictions", "pauses"),
    *("instances", "index", "held"),
}


@pytest.mark.proves("CAT-082")
def test_metrics_are_there_before_anything_has_happened(broker: Entered) -> None:
    text = broker.queries.answer((b"dbp.metrics",), SOMEBODY)[1].decode()
    found = {family.name for family in text_string_to_metric_families(text)}
    assert set() == {f"weft_catalog_{name}" for name in REQUIRED} - found
    zero = (
        "malformed_total",
        "udp_malformed_total",
        "unroutable_total",
        "faults_total",
        "pauses_total",
        "held",
        "index",
    )
    told = samples(broker)
    assert [0.0] * 7 == [told[f"weft_catalog_{name}",] for name in zero]


@pytest.mark.proves("CAT-082")
def test_metrics_say_what_was_counted_by_label(broker: Entered) -> None:
    context = broker.context
    for metric, label in [("requests", "u_U,answered"), ("requests", "</3,dropped"), ("requests", "u_U,answered")]:
        context.count(metric, label)
    context.count("requests", "ping")
    context.count("dropped", 'a "quoted"\nreason, with \\')
    context.count("beats", "udp", by=7)
    context.count("log_gaps")
    context.count("novel", "x")
    broker.queries.gauges["held"] = lambda: {"": 1.0}
    broker.queries.gauges["links"] = lambda: {"up": 2.0}
    broker.enter("a", state=State.SUSPECT)
    told = samples(broker)
    expected = {
        ("weft_catalog_requests_total", "u_U", "answered"): 2,
        ("weft_catalog_requests_total", "</3", "dropped"): 1,
        ("weft_catalog_requests_total", "ping", ""): 1,
        ("weft_catalog_dropped_total", 'a "quoted"\nreason, with \\'): 1,
        ("weft_catalog_beats_total", "udp"): 7,
        ("weft_log_gaps_total",): 1,
        ("weft_catalog_novel_total", "x"): 1,
        ("weft_catalog_links", "up"): 2,
        ("weft_catalog_held",): 1,
        ("weft_catalog_index",): 1,
        ("weft_catalog_instances", "suspect"): 1,
        ("weft_catalog_instances", "active"): 0,
        ("weft_catalog_queries_total", "dbp.metrics"): 1,
    }
    assert expected == {key: told.get(key) for key in expected}


def test_metrics_of_other_parts_have_a_beginning_of_their_own() -> None:
    expected = ["weft_catalog_beats", "weft_lvc_bytes", "weft_log_gaps", "weft_beacon_sent"]
    assert expected == [metrics.full_name(name) for name in ("beats", "lvc_bytes", "log_gaps", "beacon_sent")]


def test_stamps_are_of_the_wall_clock_and_ages_of_the_other(broker: Entered) -> None:
    instance = broker.enter("a")
    instance.heard_at = broker.context.now.mono
    broker.context.now = broker.context.now._replace(mono=broker.context.now.mono + SECOND, wall=WALL + 86_400 * SECOND)
    assert 1.0 == broker.ask("dbp.liveness")["instances"][0]["age_s"]
