"""What a session keeps, and that it is enough: whatever order, snapshot or crash, the same log comes back."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from tests.document.logs import Desk, body, entries, run, same
from tests.document.rig import EPOCH, A, B, C
from weft.base.effects import Persist
from weft.base.errors import OurFault
from weft.base.now import SECOND, Now
from weft.base.records import CoreRecord, Record, Stream, StreamRecord
from weft.cores.document import log as log_module
from weft.cores.document.context import Context
from weft.cores.document.log import Log
from weft.cores.document.memory import HeldKept, PieceKept, SessionKept, memory_of, record_of, session_of
from weft.cores.document.messages import SessionSettings
from weft.wire import journal
from weft.wire.document.operations import Stamp, emit, parse, uuid_text

STEPS = st.lists(st.tuples(st.sampled_from((B, C)), st.integers(1, 7), st.sampled_from("xy")), max_size=25)


@pytest.mark.proves("GSP-030", "GSP-034")
def test_an_operation_of_a_prefix_is_one_record_of_the_stream() -> None:
    desk = Desk(name="Bout 7", schema="plain")
    said = emit("set", {"path": "venue"}, Stamp(B, EPOCH + 0.25, 1, by="Ann", origin=(C, 9)))
    desk.take(C, said)
    (row,) = desk.rows()
    expected: dict[str, Any] = {
        "session": "Bout 7",
        "schema": "plain",
        "source": B.hex(),
        "eff": EPOCH + 0.25,
        "ts": f"{EPOCH}.25",
        "ref": "path=venue",
        "by": "Ann",
        "from": C.hex(),
        "inert": "",
        "osource": C.hex(),
        "oseq": 9,
    }
    assert expected == row.attributes
    assert (Stream.DOCUMENTS, f"Bout 7/{B.hex()}", None, 1) == (row.stream, row.origin, row.era, row.sequence)
    assert ("set", said, EPOCH * SECOND + SECOND // 4, EPOCH * SECOND) == (row.key, row.payload, row.at, row.received)
    assert "Bout 7" == session_of(row)


@pytest.mark.proves("GSP-030")
@pytest.mark.parametrize(
    ("at", "expected"), [("nonsense", 0), (253_402_300_799.0, (1 << 63) - 1), (1e308, (1 << 63) - 1), (-5, 0)]
)
def test_any_operation_has_a_record_that_the_journal_takes(at: Any, expected: int) -> None:
    desk = Desk()
    huge = (
        body(B, 1, "x", at=at)
        .replace(b"<set", b"<" + b"v" * 5_000, 1)
        .replace(b"path", b'by="' + b"o" * 9_000 + b'" path')
    )
    desk.take(B, huge)
    (row,) = desk.rows()
    assert (expected, 1_024, 1_024) == (row.at, len(row.key), len(row.attributes["by"]))
    assert journal.is_sound(row)
    assert journal.encode_body([row])


@pytest.mark.proves("GSP-030")
def test_foreign_operations_are_kept_in_time_and_own_ones_before_anything_is_said() -> None:
    desk = Desk()
    desk.take(B, body(B, 1))
    assert [100_000_000] == [effect.within_ns for effect in desk.effects() if isinstance(effect, Persist)]
    desk.log.append(body(A, 1), parse(body(A, 1)))
    assert [0] == [effect.within_ns for effect in desk.effects() if isinstance(effect, Persist)]


def test_what_is_held_is_kept_and_becomes_a_row_when_the_gap_closes() -> None:
    desk = Desk()
    desk.take(C, body(B, 2))
    (held,) = desk.records()
    assert isinstance(held, CoreRecord)
    assert HeldKept("", B, 2, EPOCH * SECOND, C, body(B, 2)) == memory_of(held)
    assert "" == session_of(held)
    desk.take(B, body(B, 1))
    assert [1, 2] == [row.sequence for row in desk.rows()]


@pytest.mark.proves("GSP-030")
@examples(max_examples=40, deadline=None)
@given(STEPS, st.randoms(use_true_random=False), st.integers(0, 3))
def test_records_in_any_order_doubled_and_beside_a_snapshot_give_the_log_back(
    steps: list[tuple[bytes, int, str]], chance: Any, doubled: int
) -> None:
    desk = Desk()
    records: list[Record] = []
    for at, (source, number, value) in enumerate(steps):
        desk.take(C, body(source, number, value))
        records += desk.records()
        if at == len(steps) // 2:
            records += desk.log.condense()
    again = desk.again(records)
    assert same(desk.log, again.log)
    assert again.rows() == []
    for _ in range(doubled):
        records += records[:5]
    chance.shuffle(records)
    shuffled = desk.again(records)
    assert (desk.log.check, desk.log.sources(), desk.log.held()) == (
        shuffled.log.check,
        shuffled.log.sources(),
        shuffled.log.held(),
    )


@pytest.mark.proves("GSP-030")
@examples(max_examples=30, deadline=None)
@given(STEPS)
def test_a_snapshot_alone_gives_the_log_back(steps: list[tuple[bytes, int, str]]) -> None:
    desk = Desk()
    desk.take(C, *(body(*step) for step in steps))
    again = desk.again(list(desk.log.condense()))
    assert same(desk.log, again.log)
    assert [one.sequence for one in desk.log.fresh()] == [one.sequence for one in again.log.fresh()]


def test_a_snapshot_is_made_of_pieces_of_a_mebibyte() -> None:
    desk = Desk()
    desk.take(B, *run(B, 1, 20, value="x" * 200_000))
    pieces = [record for record in desk.log.condense() if isinstance(memory_of(record), PieceKept)]
    assert 4 == len(pieces)
    assert all(len(piece.data) <= 1 << 20 for piece in pieces)
    assert same(desk.log, desk.again(list(desk.log.condense())).log)


def test_what_a_crash_cut_off_between_two_records_gets_its_row_at_the_next_start() -> None:
    desk = Desk()
    desk.take(B, body(B, 2))
    held = desk.records()
    desk.take(B, body(B, 1))
    first = desk.records()[:1]
    again = desk.again([*held, *first])
    assert 2 == again.log.latest(B)
    assert again.context.now.mono == again.log.deadline()
    again.log.wake(again.context.now)
    assert [2] == [row.sequence for row in again.rows()]
    assert again.log.deadline() is None


# Without room


@pytest.mark.proves("GSP-031")
def test_without_room_the_log_goes_on_in_memory_and_is_kept_when_there_is_room_again() -> None:
    desk = Desk()
    desk.take(B, body(B, 1))
    desk.effects()
    desk.context.is_full = True
    assert ["new", "held", "new"] == desk.take(B, body(B, 2), body(C, 2), body(B, 3))
    assert ([], 3, None) == (desk.records(), desk.log.latest(B), desk.log.deadline())
    snapshot = list(desk.log.condense())
    desk.context.is_full = False
    assert desk.context.now.mono == desk.log.deadline()
    desk.log.wake(desk.context.now)
    records = desk.records()
    assert [(B.hex(), 2), (B.hex(), 3)] == [
        (one.attributes["source"], one.sequence) for one in records if isinstance(one, StreamRecord)
    ]
    assert [C] == [one.source for record in records if isinstance(one := memory_of_core(record), HeldKept)]
    again = desk.again(snapshot)
    again.log.wake(again.context.now)
    assert [2, 3] == [row.sequence for row in again.rows()], "a snapshot of that time knows what has no row yet"


def memory_of_core(record: Record) -> Any:
    return memory_of(record) if isinstance(record, CoreRecord) else None


def test_a_gap_that_closes_over_much_is_kept_over_several_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "KEPT_BYTES_MAX", 5_000)
    desk = Desk()
    for number in range(30, 1, -1):
        desk.take(B, body(B, number))
        desk.effects()
    desk.take(B, body(B, 1))
    turns = [[row.sequence for row in desk.rows()]]
    while desk.log.deadline() is not None:
        desk.log.wake(desk.context.now)
        turns.append([row.sequence for row in desk.rows()])
    assert list(range(1, 31)) == [number for turn in turns for number in turn]
    assert 4 == len(turns)


# Whose it is


def test_a_session_is_known_as_ours_from_its_first_start_on() -> None:
    desk = Desk(name="Bout 7", schema="plain")
    desk.log.begin()
    (record,) = desk.records()
    assert SessionKept("Bout 7", "plain") == memory_of_core(record)
    assert "Bout 7" == session_of(record)
    again = desk.again([record], name="Bout 7", schema="plain")
    assert [] == again.records()
    assert [record] == list(again.log.condense())


@pytest.mark.proves("GSP-030", "GSP-034")
def test_what_was_carried_for_others_is_a_session_s_own_from_its_first_start_on() -> None:
    child = Desk(B, name="friday")
    child.take(C, *run(C, 1, 3), body(C, 5))
    carried: list[Record] = list(child.rows())
    record = carried[-1]
    assert isinstance(record, StreamRecord)
    carried.append(msgspec.structs.replace(record, sequence=5, payload=body(C, 5)))
    desk = Desk(name="friday")
    desk.log.restore(entries(carried))
    desk.log.begin()
    own = desk.records()
    desk.log.wake(desk.context.now)
    own += desk.records()
    assert "SessionKept" == type(memory_of_core(own[0])).__name__
    assert same(desk.log, Desk(name="friday").again(own, name="friday").log), "without what stood before its name"


def test_what_is_of_no_document_has_no_session() -> None:
    row = StreamRecord(Stream.STORE, f"friday/{B.hex()}", None, 1, 0, 0, "", b"", {})
    assert [None, None] == [session_of(one) for one in (row, CoreRecord("store", 1, b""))]
    with pytest.raises(OurFault):
        session_of(CoreRecord("document", 1, b"\xc1"))


@pytest.mark.parametrize(
    "broken", [{"origin": "friday/xyz"}, {"attributes": {}}, {"attributes": {"from": "g"}}, {"payload": b"<"}]
)
def test_a_row_that_no_version_wrote_is_our_fault(broken: dict[str, Any]) -> None:
    said = {"origin": f"friday/{B.hex()}", "attributes": {"from": B.hex()}, "payload": body(B, 1)} | broken
    row = StreamRecord(Stream.DOCUMENTS, said["origin"], None, 1, 0, 0, "set", said["payload"], said["attributes"])
    with pytest.raises(OurFault):
        Desk().log.restore(entries([row]))


def test_a_dormant_log_holds_bytes_and_nothing_to_be_folded() -> None:
    desk = Desk(name="old")
    desk.take(B, *run(B, 1, 9))
    records = [record_of(SessionKept("old", "derby")), *desk.records()]
    dormant = Log(Context(SessionSettings(name="old", uuid=bytes(16))))
    dormant.restore(entries(records))
    assert ([], 9, desk.log.check) == (dormant.fresh(), dormant.count, dormant.check)
    assert same(desk.log, desk.again(list(dormant.condense()), name="old").log)


def test_who_spoke_here_before_is_a_source_like_any_other() -> None:
    desk = Desk()
    desk.log.append(body(A, 1), parse(body(A, 1)))
    again = desk.again(desk.records(), uuid=C)
    assert ["duplicate", "new"] == again.take(B, body(A, 1), body(A, 2))
    assert uuid_text(A).replace("-", "") == again.rows()[0].attributes["source"]
    assert Now(SECOND, EPOCH * SECOND) == again.context.now
