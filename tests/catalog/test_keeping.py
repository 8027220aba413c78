"""Last values that outlive a restart of the broker (LVC-008: `lvc_persist`)."""

from typing import Any

import pytest

from tests.catalog.listening import WALL_S, Broker
from weft.base.records import CoreRecord
from weft.cores.catalog import limits
from weft.cores.catalog.memory import ValueKept, memory_of
from weft.cores.catalog.messages import HoldBack, Stop
from weft.wire.catalog.messages import DISCONNECT


def kept(broker: Broker) -> list[ValueKept]:
    found = (memory_of(record, b"") for record in broker.records if isinstance(record, CoreRecord))
    return [memory for memory in found if isinstance(memory, ValueKept)]


def again(broker: Broker, *, is_condensed: bool = False, **settings: Any) -> Broker:
    """The next start, with what the journal has."""
    records = [*broker.core.condense()] if is_condensed else broker.records
    return Broker(before=records, era=2, **{"lvc_persist": True, **settings})


def shown(broker: Broker) -> list[tuple[Any, ...]]:
    return [(row["topic"], row["received"], row["stale"]) for row in broker.ask(b"dbp.lcv", b"*")["values"]]


def saved(**settings: Any) -> tuple[Broker, bytes]:
    """A broker that has journaled two values of one publisher."""
    broker = Broker(lvc_persist=True, **settings)
    tag = broker.register("thermo")
    broker.hear(tag, b"t/1", b"old")
    broker.hear(tag, b"t/2", b"other")
    broker.advance(1)
    broker.hear(tag, b"t/1", b"new", b"3")
    broker.advance(10)
    return broker, tag


@pytest.mark.proves("LVC-008")
@pytest.mark.parametrize("is_condensed", [False, True])
def test_values_are_there_after_a_restart_and_stale_until_they_are_heard_again(is_condensed: bool) -> None:
    broker, tag = saved()
    after = again(broker, is_condensed=is_condensed)
    assert [("t/1", WALL_S + 1.0, True), ("t/2", WALL_S, True)] == shown(after)
    assert (b"t/1", b"new", b"3") == after.query(b"dbp.lcv", b"t/1").body[1:]
    after.subscribe(b"lcv/t/1")
    assert [(b"new", b"3")] == [one.body for one in after.topics(b"lcv/t/1")]
    after.hear(tag, b"t/1", b"newer")
    assert [("t/1", False), ("t/2", True)] == [(topic, stale) for topic, _, stale in shown(after)]


@pytest.mark.proves("LVC-008")
def test_each_topic_is_journaled_once_in_ten_seconds_and_at_the_end_and_not_without_the_setting() -> None:
    broker = Broker(lvc_persist=True)
    tag = broker.register("thermo")
    for number in range(95):
        broker.hear(tag, b"t", b"%d" % number)
        broker.advance(0.1)
    assert [] == kept(broker)
    broker.advance(1)
    assert [(b"t", b"94")] == [value.frames for value in kept(broker)]
    broker.advance(60)
    assert 1 == len(kept(broker)), "nothing was heard since"
    broker.hear(tag, b"t", b"last")
    broker.core.command(Stop(), broker.now)
    broker.pump()
    assert (b"t", b"last") == kept(broker)[-1].frames
    off = Broker()
    off.hear(off.register("thermo"), b"t", b"1")
    off.advance(20)
    assert [] == kept(off)
    assert [] == shown(again(broker, lvc_persist=False))


@pytest.mark.proves("LVC-007")
def test_values_of_who_was_removed_or_let_go_do_not_come_back() -> None:
    broker, _ = saved(reap_ns=600 * 10**9)
    broker.route(DISCONNECT, b"thermo", b"a")
    assert [("t/1", True), ("t/2", True)] == [(topic, stale) for topic, _, stale in shown(again(broker))]
    assert [] == shown(again(broker, lvc_keep=False))
    broker.advance(601)
    broker.register("thermo")
    assert [] == shown(again(broker))


@pytest.mark.proves("LVC-008")
def test_what_does_not_fit_is_left_out_and_counted_and_the_newest_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SAVED_TURN_BYTES", 2 * (limits.SAVED_COST + 10))
    broker = Broker(lvc_persist=True)
    tag = broker.register("thermo")
    for topic in (b"a", b"b", b"c"):
        broker.hear(tag, topic, bytes(9))
    broker.hear(tag, b"d", bytes(limits.SAVED_VALUE_MAX))
    broker.advance(11)
    assert [b"b", b"c"] == [value.frames[0] for value in kept(broker)]
    assert 2 == broker.core.context.counters["lvc_dropped", "unsaved"]


def test_while_the_journal_is_full_no_value_is_written() -> None:
    broker = Broker(lvc_persist=True)
    tag = broker.register("thermo")
    broker.core.command(HoldBack(is_full=True), broker.now)
    broker.hear(tag, b"t", b"1")
    broker.advance(11)
    assert [] == kept(broker)
    broker.core.command(HoldBack(is_full=False), broker.now)
    broker.advance(11)
    assert 1 == len(kept(broker))


def test_restored_values_have_the_bounds_of_all() -> None:
    broker, _ = saved()
    assert [("t/1", True)] == [(topic, stale) for topic, _, stale in shown(again(broker, values_max=1))]
