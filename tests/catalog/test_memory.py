"""What a restart gives back (CAT-050, CAT-051): P5 and P6, snapshots, links between starts; canary 2."""

from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.rig import NODE, START, Broker, kept
from tests.catalog.test_model import STEPS, Real, Step
from weft.base.effects import Persist
from weft.base.errors import OurFault
from weft.base.now import SECOND
from weft.base.records import CoreRecord, EraRecord, Record, Stream, StreamRecord
from weft.cores.catalog.context import Context
from weft.cores.catalog.instances import Change, Instance
from weft.cores.catalog.memory import InstanceKept, StreamEnded, instance_of, memory_of
from weft.cores.catalog.states import State

A: Final = {"name": "A", "ip": "1.2.3.4", "port": 9, "tags": ["x"], "heartbeat": 2000, "ü": [1.5, None, {"k": -1}]}


class Played(Real):
    """The steps of the model, and what the broker was after each record that it kept."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[list[tuple[Any, ...]]] = [[]]
        self.broker.core.context.listeners.append(self._look)

    def _look(self, change: Change) -> None:
        self.states.append(self.broker.state())


def played(steps: list[Step]) -> Played:
    real = Played()
    for step in steps:
        real.step(*step)
        real.broker.pass_time(0.01)
    return real


@settings(max_examples=40)
@given(STEPS, st.data())
@pytest.mark.proves("CAT-050", "CAT-051")
def test_any_prefix_of_what_is_kept_restores_to_a_state_that_was(steps: list[Step], data: st.DataObject) -> None:
    real = played(steps)
    count = len(real.broker.journal)
    assert len(real.states) == count + 1
    for upto in {count, data.draw(st.integers(0, count))}:
        assert real.states[upto] == real.broker.restart(upto).state()


@settings(max_examples=40)
@given(STEPS, STEPS)
@pytest.mark.proves("CAT-051")
def test_a_snapshot_and_what_followed_restore_the_same(before: list[Step], after: list[Step]) -> None:
    real = played(before)
    snapshot: list[Record] = list(real.broker.core.condense())
    split = len(real.broker.journal)
    for step in after:
        real.step(*step)
    broker = real.broker
    for journal in (
        [*snapshot, *broker.journal[split:]],
        [*snapshot, *broker.journal[split // 2 :]],  # some of which the snapshot has already
    ):
        again = Broker(journal=journal, era=2)
        assert broker.state() == again.state()
        assert (
            broker.core.context.lasts.get(Stream.CATALOG, 0)
            == again.core.context.befores.get(Stream.CATALOG, (0, 0))[1]
        )
        assert list(broker.core.condense())[:-1] == list(again.core.condense())[:-1]


@given(STEPS)
@settings(max_examples=20)
@pytest.mark.proves("CAT-051")
def test_it_may_be_restored_in_pieces(steps: list[Step]) -> None:
    broker = played(steps).broker
    again = Broker(era=2)
    entries = list(enumerate(broker.journal, 1))
    for start in range(0, len(entries), 3):
        again.core.restore(entries[start : start + 3], START)
    assert broker.state() == again.state()
    assert [kept(one) for one in broker.core.book.of_name("A")] == [kept(one) for one in again.core.book.of_name("A")]


def restored(record: dict[str, Any] | None = None, **settings_: Any) -> Broker:
    broker = Broker(**settings_)
    broker.dealer().say(b"UwU", record or A)
    return broker.restart()


@pytest.mark.proves("CAT-051", "CAT-013")
def test_what_is_restored_is_found_as_it_was_under_another_epoch() -> None:
    before = Broker(net="blue")
    before.dealer().say(b"UwU", A)
    after = before.restart()
    (was,), (found,) = before.req().ask(b"A").values(), after.req().ask(b"A").values()
    assert {**was, "_dbp": {**was["_dbp"], "index": 0}} == found
    assert "blue" == found["_dbp"]["net"]
    assert before.core.context.epoch != after.core.context.epoch
    assert (True, 2 * SECOND, b"") == (after.one("A").is_restored, after.one("A").interval_ns, after.one("A").bound)


@pytest.mark.proves("CAT-051")
def test_what_is_restored_has_five_seconds_to_speak() -> None:
    broker = restored({"name": "A", "ip": "1.2.3.4", "port": 9})
    broker.pass_time(4.9)
    assert State.INACTIVE is not broker.one("A").state
    broker.pass_time(0.2)
    assert State.INACTIVE is broker.one("A").state


@pytest.mark.proves("CAT-016", "CAT-051")
def test_the_first_interface_is_the_first_one_after_a_restart() -> None:
    interfaces = {"z": {"ip": "10.0.0.9", "port": 8}, "a": {"ip": "10.0.0.9", "port": 7}}
    broker = restored({"name": "A", "interfaces": interfaces, "heartbeat": 1000})
    assert ["interfaces", "heartbeat"] == list(broker.one("A").record)
    assert ["z", "a"] == list(broker.one("A").record["interfaces"])
    condensed = Broker(journal=list(broker.core.condense()), era=3)
    assert ["z", "a"] == list(condensed.one("A").record["interfaces"])


def test_what_was_away_is_away_after_a_restart_and_is_forgotten_one_day() -> None:
    broker = Broker()
    broker.req().say(b"UwU", A)
    broker.req().say(b"</3", b"A")
    after = broker.restart()
    assert (State.INACTIVE, "left") == (after.one("A").state, after.one("A").reason)
    assert [b"</3"] == after.dealer().commands(b"<3", b"A")
    after.pass_time(601)
    assert [("remove", "A")] == after.changes[-1:]
    assert [] == after.restart().state()


@pytest.mark.proves("CAT-040")
def test_numbers_begin_at_one_behind_a_link_to_the_start_before() -> None:
    first = Broker()
    assert [StreamRecord] == [type(record) for record in registered(first, "A")]
    second = first.restart()
    link, row = registered(second, "B")
    assert EraRecord(Stream.CATALOG, NODE, 2, 1, 1) == link
    assert isinstance(row, StreamRecord)
    assert (2, 1, second.core.context.epoch) == (row.era, row.sequence, row.attributes["epoch"])
    assert [StreamRecord] == [type(record) for record in registered(second, "C")]


def registered(broker: Broker, name: str) -> list[Record]:
    before = len(broker.journal)
    broker.req().say(b"UwU", {"name": name})
    return broker.journal[before:]


def test_the_order_of_last_changes_survives() -> None:
    broker = Broker()
    for number in ("t1", "t2", "t3"):
        broker.req().say(b"UwU", {"name": "A", "id": number})
    broker.req().say(b"UoU", {"name": "A", "id": "t1", "port": 5})
    assert ["t2", "t3", "t1"] == [one.id for one in broker.core.book.of_name("A")]
    again = broker.restart()
    assert ["t2", "t3", "t1"] == [one.id for one in again.core.book.of_name("A")]
    condensed = Broker(journal=list(again.core.condense()), era=3)
    assert ["t2", "t3", "t1"] == [one.id for one in condensed.core.book.of_name("A")]


def test_a_row_says_all_of_an_instance_and_a_removal_only_whose_it_was() -> None:
    broker = Broker(net="blue")
    broker.req("10.0.0.1").say(b"UwU", {"name": "A", "health": "warning", "ip": "10.0.0.1", "port": 9})
    broker.admin().say(b"u_U", b"dbp.deregister", b"A")
    row, gone = broker.rows
    said: dict[str, Any] = {
        "op": "register",
        "instance": "10.0.0.1:9",
        "state": "active",
        "reason": "",
        "health": "warning",
    }
    said |= {"owner": "10.0.0.1", "observed_ip": "10.0.0.1", "net": "blue", "fmt": "json"}
    said |= {"since": 1795227299.0, "epoch": broker.core.context.epoch}
    assert (said, "A", NODE) == (row.attributes, row.key, row.origin)
    assert b'{"health":"warning","ip":"10.0.0.1","port":9}' == row.payload
    assert ("remove", "deregistered", b"") == (gone.attributes["op"], gone.attributes["reason"], gone.payload)


def test_the_rows_of_other_brokers_are_no_memory_of_this_one() -> None:
    broker = Broker()
    broker.req().say(b"UwU", A)
    (row,) = broker.rows
    foreign = msgspec.structs.replace(row, origin=b"x" * 16)
    assert None is memory_of(foreign, NODE)
    assert [] == Broker(journal=[foreign], era=2).state()


def test_memory_of_a_later_version_is_refused() -> None:
    with pytest.raises(OurFault, match="newer-data"):
        memory_of(CoreRecord("catalog", 31, b""), NODE)
    with pytest.raises(OurFault, match="newer-data"):
        memory_of(StreamRecord(Stream.CATALOG, NODE, 1, 1, 0, 0, "A", b"", {"op": "fly"}), NODE)
    with pytest.raises(OurFault, match="newer-data"):
        instance_of(InstanceKept("A", "t1", b"{}", "flying", "", "", "", 0.0))
    assert None is memory_of(CoreRecord("store", 31, b""), NODE)


@pytest.mark.parametrize(
    "said",
    [
        InstanceKept("A", "1", b'{"heartbeat":"x"}', "active", "", "h", "h", 0.0),
        InstanceKept("A", "1", b'{"a":"\xff"}', "active", "", "h", "h", 0.0),
        InstanceKept("A", "1", b"{}", "asleep", "", "h", "h", 0.0),
    ],
)
def test_an_instance_that_cannot_be_read_is_a_fault_with_its_name(said: InstanceKept) -> None:
    with pytest.raises(OurFault, match="newer-data: the instance 1 of A"):
        instance_of(said)


@pytest.mark.parametrize("payload", [b'{"message":"\xff"}', b"{}", b"", b"[" * 9_999])
def test_a_log_record_that_cannot_be_read_is_no_memory(payload: bytes) -> None:
    record = StreamRecord(Stream.LOGS, NODE, 1, 1, 0, 0, "A", payload, {})
    assert [] == Broker(journal=[record], era=2).req().ask(b"dbp.logs")["logs"]


def test_a_log_record_of_a_level_that_nobody_knows_is_no_memory() -> None:
    keys = {"ts": None, "received": 1.0, "net": "", "service": "A", "instance": "1", "logger": "", "message": "m"}
    payload = msgspec.json.encode({**keys, "level": "TRACE", "seq": 1, "fields": {}})
    record = StreamRecord(Stream.LOGS, NODE, 1, 1, 0, 0, "A", payload, {})
    assert [] == Broker(journal=[record], era=2).req().ask(b"dbp.logs")["logs"]


def test_a_snapshot_of_nothing_is_nothing() -> None:
    assert [] == list(Broker().core.condense())
    broker = Broker()
    broker.req().say(b"UwU", A)
    broker.admin().say(b"u_U", b"dbp.deregister", b"A")
    (record,) = broker.core.condense()
    assert StreamEnded(Stream.CATALOG, 1, 2) == memory_of(record, NODE)


# P6


@settings(max_examples=30)
@given(STEPS)
@pytest.mark.proves("CAT-050")
def test_nothing_is_said_before_it_is_kept(steps: list[Step]) -> None:
    played(steps)  # each turn of the rig looks


def test_canary_2_an_answer_before_its_persist_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Context.take

    def say_first(context: Context) -> list[Any]:
        return sorted(take(context), key=lambda effect: isinstance(effect, Persist))

    monkeypatch.setattr(Context, "take", say_first)
    broker = Broker()
    with pytest.raises(AssertionError, match="Persist"):
        broker.req().say(b"UwU", A)


def test_every_indexed_change_is_in_the_turn_that_tells_of_it() -> None:
    broker = Broker()
    broker.req().say(b"UwU", A)
    instance: Instance = broker.one("A")
    broker.core.registry.leave(instance)
    persist, *others = broker.turn()
    assert isinstance(persist, Persist)
    assert ["inactive"] == [row.attributes["op"] for row in persist.records if isinstance(row, StreamRecord)]
    assert others
