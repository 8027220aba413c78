"""The log alone: what is taken, what is refused, how far each source is known, and what all of it sums up to."""

from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from tests.document.logs import A1, A2, B1, SIGNED, Desk, body, run
from tests.document.rig import EPOCH, A, B, C
from weft.base.errors import PeerError
from weft.base.now import SECOND
from weft.cores.document import log as log_module
from weft.cores.document.log import Log
from weft.cores.document.messages import LogFull, TimeAhead
from weft.wire.document import operations

NOBODY = bytes.fromhex("f0000000000040008000000000000009")


def naive_check(log: Log) -> int:
    """As PEE-022 has it, from the beginning."""
    check = 0
    for source, latest in log.sources():
        chain = bytes(32)
        for number in range(1, latest + 1):
            chain = sha256(chain + sha256(log.body(source, number)).digest()).digest()
        check ^= int.from_bytes(sha256(source + latest.to_bytes(8, "big") + chain).digest()[:4], "big")
    return check


@pytest.mark.proves("PEE-022")
def test_the_check_is_that_of_the_vector() -> None:
    means = SIGNED["S06"]["means"]
    desk = Desk(NOBODY)
    assert means["check_empty"] == f"{desk.log.check:08x}"
    assert ["new", "new"] == desk.take(A, A1, A2)
    assert means["check_A_only"] == f"{desk.log.check:08x}"
    assert ["new"] == desk.take(B, B1)
    assert means["check"] == f"{desk.log.check:08x}"


@pytest.mark.proves("PEE-022")
@examples(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from((B, C)), st.integers(1, 6), st.booleans()), max_size=20))
def test_the_check_is_the_same_whenever_it_is_asked_for(steps: list[tuple[bytes, int, bool]]) -> None:
    desk = Desk()
    for source, number, is_asked in steps:
        desk.take(B, body(source, number, value="x" if is_asked else "y"))
        if is_asked:
            assert naive_check(desk.log) == desk.log.check
    assert naive_check(desk.log) == desk.log.check


@pytest.mark.proves("PEE-022")
def test_the_check_hashes_each_operation_once_however_often_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[bytes] = []

    def count(data: bytes) -> Any:
        hashed.append(data)
        return sha256(data)

    monkeypatch.setattr("weft.cores.document.sources.sha256", count)
    desk = Desk()
    for one in run(B, 1, 50):
        desk.take(B, one)
        _ = desk.log.check, desk.log.check
    assert 3 * 50 == len(hashed)


@pytest.mark.proves("GSP-010")
def test_only_what_has_no_gap_before_it_is_latest() -> None:
    desk = Desk()
    assert ["new", "held", "held", "duplicate"] == desk.take(B, *(body(B, n) for n in (1, 3, 4, 3)))
    assert (1, 4, 3) == (desk.log.latest(B), desk.log.highest(B), desk.log.lowest_held(B))
    assert [(B, 3), (B, 4)] == desk.log.held()
    assert [1] == [one.sequence for one in desk.log.fresh()]
    assert ["new"] == desk.take(C, body(B, 2))
    assert (4, 0) == (desk.log.latest(B), desk.log.lowest_held(B))
    assert [2, 3, 4] == [one.sequence for one in desk.log.fresh()]
    assert [] == desk.log.fresh()
    assert {"log.ops": 4, "log.duplicate": 1} == {
        name: n for name, n in desk.context.counters.items() if n and name != "log.inert"
    }


@pytest.mark.proves("GSP-010", "GSP-012")
@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"<set/>",
        b'<set source="b0000000-0000-4000-8000-000000000002" sequence="0"/>',
        b'<set source="b0000000-0000-4000-8000-000000000002" sequence="9007199254740992"/>',
        b'<set source="nobody" sequence="1"/>',
        b"<!DOCTYPE set>" + body(B, 1),
        b'<!DOCTYPE set [<!ENTITY e "x">]>' + body(B, 1, "&e;"),
        body(B, 1, "x" * 262_144),
        b"\xff\xfe",
    ],
)
def test_what_has_no_header_is_dropped_and_counted_once(bad: bytes) -> None:
    desk = Desk()
    assert ["no_header"] == desk.take(B, bad)
    assert (0, 1) == (desk.log.highest(B), desk.context.counters["log.no_header"])
    assert [] == desk.effects()


def keeps_its_number(bad: bytes) -> bool:
    """Whether a faulty operation leaves the way free for the next one of its source."""
    desk = Desk()
    return ["new", "new"] == desk.take(B, bad, body(B, 2)) and [
        ("malformed", b"<set"),
        ("", b"<set"),
    ] == [(one.inert, desk.log.body(B, one.sequence)[:4]) for one in desk.log.fresh()]


@pytest.mark.proves("GSP-012")
@pytest.mark.parametrize("rest", [b"x</add>", b"<a>", b"\xff</set>", b"&undefined;</set>", b"</set><set/>"])
def test_an_error_behind_the_header_makes_an_operation_inert_and_blocks_nobody(rest: bytes) -> None:
    assert keeps_its_number(body(B, 1).split(b">", 1)[0] + b">" + rest)


def test_canary_a_malformed_operation_that_is_dropped_blocks_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    def drop(data: bytes) -> operations.Operation:
        operation = operations.parse(data)
        if operation.inert:
            raise PeerError("no-header")
        return operation

    bad = body(B, 1).replace(b"</set>", b"</add>")
    assert keeps_its_number(bad)
    monkeypatch.setattr(log_module, "parse", drop)
    assert not keeps_its_number(bad)


def test_canary_a_doctype_that_is_accepted_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    with_doctype = b"<!DOCTYPE set>" + body(B, 1)
    assert ["no_header"] == Desk().take(B, with_doctype)
    monkeypatch.setattr(log_module, "parse", lambda data: operations.parse(data.replace(b"<!DOCTYPE set>", b"")))
    assert ["new"] == Desk().take(B, with_doctype)


@pytest.mark.proves("GSP-010", "GSP-015")
def test_an_operation_of_our_own_is_dropped_and_more_than_we_said_is_somebody_else() -> None:
    desk = Desk()
    said: list[tuple[bytes, bytes]] = []
    desk.log = Log(desk.context, lambda peer, uuid: said.append((peer, uuid)))
    desk.log.append(body(A, 1), operations.parse(body(A, 1)))
    assert ["own_source"] == desk.take(B, body(A, 1))
    assert [] == said
    assert ["own_source", "own_source"] == desk.take(B, body(A, 2), body(A, 1, "other"))
    assert [B, B] == [peer for peer, _ in said]
    assert all(uuid[0] and uuid[6] >> 4 == 4 and uuid[8] >> 6 == 2 and uuid != A for _, uuid in said)
    assert 1 == desk.log.latest(A)


@pytest.mark.proves("GSP-014")
def test_beyond_so_many_sources_new_ones_are_refused_and_old_ones_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "SOURCES_MAX", 2)
    desk = Desk()
    assert ["new", "new", "full", "new", "full"] == desk.take(
        B, body(B, 1), body(C, 1), body(NOBODY, 1), body(B, 2), body(NOBODY, 1)
    )
    assert [LogFull("", "sources")] == desk.told()
    assert desk.log.refuses(NOBODY)
    assert not desk.log.refuses(C)


@pytest.mark.proves("GSP-014")
def test_beyond_so_many_operations_nothing_more_is_taken_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "OPERATIONS_MAX", 3)
    desk = Desk()
    assert ["new", "new", "held", "full", "duplicate"] == desk.take(B, *(body(B, n) for n in (1, 2, 4, 3, 1)))
    assert desk.log.is_full
    assert [LogFull("", "operations")] == desk.told()
    assert 2 == desk.log.count


def test_arrivals_are_numbered_in_the_order_in_which_they_became_known() -> None:
    desk = Desk()
    desk.take(B, body(C, 2), body(B, 1), body(C, 1))
    assert [(B, 1), (C, 1), (C, 2)] == [desk.log.arrival(position) for position in range(desk.log.count)]
    assert 2 == desk.log.position(C, 2)
    with pytest.raises(KeyError):
        desk.log.kept(C, 3)
    with pytest.raises(IndexError):
        desk.log.arrival(3)


def test_effective_times_never_go_back() -> None:
    desk = Desk()
    desk.take(B, body(B, 1, at=5.0), body(B, 2, at=3.0), body(B, 3, at="nonsense"), body(B, 4, at=7.5))
    assert [5.0, 5.0, 5.0, 7.5] == [desk.log.eff(B, n) for n in (1, 2, 3, 4)]


# Timestamps


@pytest.mark.proves("GSP-002")
def test_an_own_timestamp_stands_behind_all_that_was_seen() -> None:
    desk = Desk()
    assert float(EPOCH) == desk.log.stamps.next()
    desk.take(B, body(B, 1, at=EPOCH + 20.5), body(C, 2, at=EPOCH + 30.5))
    assert EPOCH + 30.500001 == desk.log.stamps.next()
    desk.log.stamps.used(EPOCH + 40.0)
    assert EPOCH + 40.0 == desk.log.stamps.next()
    desk.pass_ns(50 * SECOND)
    assert EPOCH + 50.0 == desk.log.stamps.next()
    assert EPOCH + 60.000001 == desk.log.stamps.next(EPOCH + 60.0)


@pytest.mark.proves("GSP-002")
def test_a_clock_that_is_far_ahead_is_told_of_once_and_not_followed() -> None:
    desk = Desk()
    desk.take(B, body(B, 1, at=EPOCH + 300.0), body(B, 2, at=EPOCH + 302.0), body(B, 3, at=EPOCH + 303.0))
    assert EPOCH + 300.000001 == desk.log.stamps.next()
    assert [(B, 2, 302 * SECOND)] == [
        (e.source, e.sequence, e.ahead_ns) for e in desk.told() if isinstance(e, TimeAhead)
    ]


@pytest.mark.proves("GSP-002")
@given(st.floats(0, 253_402_300_799.0))
def test_what_comes_after_a_timestamp_is_read_back_as_later(timestamp: float) -> None:
    desk = Desk()
    later = desk.log.stamps.next(timestamp)
    assert later > timestamp or later == 253_402_300_799.0
    assert later == operations.timestamp_of(operations.timestamp_text(later))
