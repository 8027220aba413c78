"""What leaves a node, in which order, and what a refused message changes: nothing."""

from collections.abc import Iterable
from typing import Any

import pytest

from weft.base.budget import Budget
from weft.base.effects import Effect, Perform, Persist, Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.base.records import CoreRecord, Entry, EraRecord, Stream, StreamRecord
from weft.base.spool import FetchRecords, Journaled, Released
from weft.cores.configuration.messages import NotePromises
from weft.cores.topology.messages import NameTaken, VotePromised
from weft.node import wiring
from weft.node.events import InputRefused
from weft.node.node import Ended, Node, Transmit, part_at_wall
from weft.node.wires import index
from weft.wire.beacon import Beacon, encode

NODE = b"n" * 16
NOW = Now(5 * SECOND, 1_795_000_000 * SECOND)
MINE = CoreRecord("carrier", 1, b"\x01")
SAMPLE = StreamRecord(Stream.SAMPLES, NODE, 7, 1, 0, 0, "weft.metric", b"body", {"n": 3})
BEACON = Beacon("lab", "b", b"b" * 16, "sensor", 27_510, 3)
HEARD = Source("beacon", b"127.0.0.1")


class Scripted:
    """A core that answers everything with the effects it was given."""

    def __init__(self, name: str, *answers: Effect) -> None:
        self.name, self.budget = name, Budget()
        self.answers = list(answers)
        self.heard: list[Any] = []
        self.refusal: PeerError | None = None
        self.due: int | None = None

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        self.heard.append(("restore", list(entries)))

    def condense(self) -> Iterable[CoreRecord]:
        return [CoreRecord(self.name, 9, b"")]

    def receive(self, message: Any, source: Source, now: Now) -> None:
        if self.refusal:
            raise self.refusal
        self.heard.append(message)

    def command(self, order: Any, now: Now) -> None:
        self.heard.append(order)

    def wake(self, now: Now) -> None:
        self.heard.append("wake")

    def deadline(self) -> int | None:
        return self.due

    def effects(self) -> list[Effect]:
        done, self.answers = self.answers, []
        return done


def assembled(*cores: Scripted) -> Node:
    node = Node(NODE, 7, cores, index(wiring.WIRES))
    node.restore((), 1, NOW)
    node.effects()
    return node


def test_nothing_behind_a_wall_is_free_and_what_stands_before_it_is() -> None:
    first, second, third = (Transmit("beacon", b"", [bytes([n])]) for n in range(3))
    turn = part_at_wall([first, Persist((MINE,)), second, Persist((MINE,), within_ns=5), third])
    assert ([first], [MINE, MINE], 0, [second, third]) == tuple(turn)


def test_a_late_persist_alone_is_no_wall() -> None:
    said = Transmit("beacon", b"", [b""])
    turn = part_at_wall([Persist((MINE,), within_ns=9), said, Persist((MINE,), within_ns=4)])
    assert ([said], [MINE, MINE], 4, []) == tuple(turn)


def test_what_is_carried_is_handed_to_carrier_and_drain_with_its_lsn_and_becomes_a_wall() -> None:
    carrier, drain = Scripted("carrier"), Scripted("drain")
    measurement = Scripted("measurement")
    node = assembled(carrier, drain, measurement)
    measurement.answers = [Persist((MINE,), within_ns=4), Persist((SAMPLE, SAMPLE), within_ns=4)]
    node.command("measurement", "measure", NOW)
    assert [Journaled(2, (SAMPLE, SAMPLE))] == carrier.heard[1:] == drain.heard[1:]
    assert [4, 0] == [effect.within_ns for effect in node.effects() if isinstance(effect, Persist)]
    assert 4 == node.next_lsn


def test_what_a_core_says_because_of_a_record_stands_behind_that_record() -> None:
    carrier = Scripted("carrier")
    measurement = Scripted("measurement")
    node = assembled(carrier, measurement)
    measurement.answers = [Persist((SAMPLE,))]
    carrier.answers = []

    def answer(order: Any, now: Now) -> None:
        carrier.answers = [Send("beacon", b"", BEACON)]

    carrier.command = answer  # type: ignore[method-assign]  # a double that speaks when it is handed a record
    node.command("measurement", "measure", NOW)
    kinds = [type(effect) for effect in node.effects()]
    assert [Persist, Transmit] == kinds


def test_the_configuration_knows_of_a_promise_before_anything_is_reported_also_after_a_restart() -> None:
    topology, configuration = Scripted("topology"), Scripted("configuration")
    topology.answers = [Tell(VotePromised(((3, b"d" * 16),)))]
    assembled(configuration, topology)
    assert [("restore", []), NotePromises(((3, b"d" * 16),))] == configuration.heard


def test_malformed_and_forbidden_input_is_counted_told_once_a_minute_and_changes_nothing() -> None:
    topology = Scripted("topology")
    node = assembled(topology)
    for _ in range(3):
        node.receive(HEARD, [b"garbage"], NOW)
    topology.refusal = PeerError("other-fleet")
    node.receive(HEARD, encode(BEACON), NOW)
    assert {("beacon", "bad-beacon"): 3, ("beacon", "other-fleet"): 1} == dict(node.refused)
    assert [] == topology.heard[1:]
    told = [effect.event.code for effect in node.effects() if isinstance(effect, Tell)]
    assert ["bad-beacon", "other-fleet"] == told
    later = Now(NOW.mono + 61 * SECOND, NOW.wall)
    node.receive(HEARD, [b"garbage"], later)
    assert 4 == next(e.event.count for e in node.effects() if isinstance(e, Tell) and isinstance(e.event, InputRefused))


def test_an_event_is_a_numbered_record_and_the_first_names_the_era_before() -> None:
    before = StreamRecord(Stream.EVENTS, NODE, 5, 12, 0, 0, "x", b"{}", {})
    node = Node(NODE, 7, [Scripted("topology")], index(wiring.WIRES))
    node.restore([(4, before)], 9, NOW)
    for _ in range(2):
        node.tell(InputRefused("up", "bad-header", "", "", 1), NOW)
    records = [record for effect in node.effects() if isinstance(effect, Persist) for record in effect.records]
    assert EraRecord(Stream.EVENTS, NODE, 7, 5, 12) == records[0]
    assert [1, 2] == [record.sequence for record in records if isinstance(record, StreamRecord)]
    assert 12 == node.next_lsn


def test_an_event_bears_the_name_of_its_node_as_samples_do() -> None:
    node = assembled(Scripted("topology"))
    node.tell(InputRefused("up", "bad-header", "", "", 1), NOW)
    records = [record for effect in node.effects() if isinstance(effect, Persist) for record in effect.records]
    assert [node.settings.node.name] == [one.attributes.get("node") for one in records if isinstance(one, StreamRecord)]


@pytest.mark.proves("JRN-040")
def test_the_number_of_the_last_event_survives_condensing() -> None:
    node = Node(NODE, 7, [Scripted("topology")], index(wiring.WIRES))
    node.tell(InputRefused("up", "bad-header", "", "", 1), NOW)
    node.effects()
    heir = Node(NODE, 8, [Scripted("topology")], index(wiring.WIRES))
    heir.restore([(1, record) for record in node.condense()], 2, NOW)
    heir.tell(InputRefused("up", "bad-header", "", "", 1), NOW)
    records = [record for effect in heir.effects() if isinstance(effect, Persist) for record in effect.records]
    assert EraRecord(Stream.EVENTS, NODE, 8, 7, 1) == records[0]


def test_the_journal_may_forget_only_what_every_reader_has_released() -> None:
    carrier, drain = Scripted("carrier"), Scripted("drain")
    node = assembled(carrier, drain)
    carrier.answers = [Tell(Released("carrier", 40))]
    node.command("carrier", "x", NOW)
    assert 0 == node.releasable
    drain.answers = [Tell(Released("drain", 25)), Tell(Released("drain", 20))]
    node.command("drain", "x", NOW)
    assert 25 == node.releasable


@pytest.mark.proves("LAK-006", part="a drain counts records as the journal does")
def test_what_a_core_keeps_while_the_journal_is_restored_in_parts_has_a_number_of_its_own() -> None:
    store, carrier = Scripted("store", Persist((CoreRecord("store", 5, b""),))), Scripted("carrier")
    node = Node(NODE, 7, [store, carrier], index(wiring.WIRES))
    for part in range(2):
        node.restore([(part + 1, CoreRecord("store", 1, b""))], 3, NOW)
    sample = StreamRecord(Stream.SAMPLES, NODE, 7, 1, 0, 0, "", b"", {})
    carrier.answers = [Persist((sample,))]
    node.command("carrier", "x", NOW)
    assert Journaled(4, (sample,)) == carrier.heard[-1]


def test_a_node_that_neither_sends_up_nor_drains_may_forget_everything() -> None:
    node = assembled(Scripted("catalog"))
    node.restore([], 8, NOW)
    assert 7 == node.releasable


def test_a_taken_name_ends_the_node_after_it_was_written_down() -> None:
    topology = Scripted("topology")
    node = assembled(topology)
    topology.answers = [Tell(NameTaken("twin", b"o" * 16))]
    node.command("topology", "x", NOW)
    kinds = [type(effect) for effect in node.effects()]
    assert {Tell, Persist, Ended} == set(kinds)


def test_the_first_of_all_deadlines_counts_and_only_who_was_spoken_to_is_asked_anew() -> None:
    first, second = Scripted("topology"), Scripted("measurement")
    node = assembled(first, second)
    assert None is node.deadline()
    first.due, second.due = 7 * SECOND, 6 * SECOND
    node.receive(HEARD, encode(BEACON), NOW)
    assert 7 * SECOND == node.deadline()
    node.command("measurement", object(), NOW)
    assert 6 * SECOND == node.deadline()
    first.due, second.due = 3 * SECOND, 9 * SECOND
    node.wake(Now(6 * SECOND, 0))
    assert 7 * SECOND == node.deadline()
    node.wake(Now(8 * SECOND, 0))
    assert 3 * SECOND == node.deadline()


def test_work_goes_out_and_its_outcome_comes_back_to_who_asked() -> None:
    carrier = Scripted("carrier")
    node = assembled(carrier)
    carrier.answers = [Perform(FetchRecords("carrier", 3, 100))]
    node.command("carrier", "x", NOW)
    assert [Perform(FetchRecords("carrier", 3, 100))] == node.effects()
