"""The state table of a peer, walked: every state with every input, by what is said and by what time does (PEE-010)."""

from collections.abc import Callable
from typing import Final

import pytest

from tests.document.rig import EB, A, B, Rig, Word, gsip
from tests.tables.tables import pairs
from weft.cores.document.messages import LinkFull
from weft.cores.document.states import TABLE, On, State
from weft.wire.document.messages import Bout, Chat, Gbye, Helo

S = State
INPUTS: Final[dict[On, Callable[[Rig], list[Word]]]] = {
    On.MET: lambda rig: rig.meet(EB, "peer"),
    On.HELO: lambda rig: rig.hear(B, Helo(EB)),
    On.BOUT: lambda rig: rig.hear(B, Bout("")),
    On.OTHER_BOUT: lambda rig: rig.hear(B, Bout("other")),
    On.GOSSIP: lambda rig: rig.hear(B, gsip(A)),
    On.SAID: lambda rig: rig.hear(B, Chat("hi")),
    On.GBYE: lambda rig: rig.hear(B, Gbye("")),
    On.LOST: lambda rig: rig.order(LinkFull("", EB)),
}
"""Those that somebody else causes."""
Outcome = tuple[str, list[str], list[str]]
"""The state behind it (none: forgotten), what is said, what is told."""
ROWS: Final[dict[tuple[State, On], Outcome]] = {
    (S.UNKNOWN, On.MET): ("CALLING", ["Helo"], []),
    (S.UNKNOWN, On.HELO): ("GREETED", ["Helo", "Bout", "Gsip"], []),
    (S.CALLING, On.HELO): ("GREETED", ["Bout", "Gsip"], []),
    (S.CALLING, On.LOST): ("GONE", [], ["PeerGone"]),
    (S.GREETED, On.HELO): ("GREETED", ["Helo"], []),
    (S.GREETED, On.BOUT): ("ACTIVE", ["Beat", "Time"], ["PeerActive"]),
    (S.GREETED, On.OTHER_BOUT): ("", ["Gbye"], ["PeerMismatch"]),
    (S.GREETED, On.GOSSIP): ("GREETED", [], []),
    (S.GREETED, On.SAID): ("GREETED", [], []),
    (S.GREETED, On.GBYE): ("GONE", [], ["PeerGone"]),
    (S.GREETED, On.LOST): ("GONE", [], ["PeerGone"]),
    (S.ACTIVE, On.HELO): ("ACTIVE", ["Helo"], []),
    (S.ACTIVE, On.BOUT): ("ACTIVE", ["Bout"], []),
    (S.ACTIVE, On.OTHER_BOUT): ("", ["Gbye"], ["PeerMismatch"]),
    (S.ACTIVE, On.GOSSIP): ("ACTIVE", [], []),
    (S.ACTIVE, On.SAID): ("ACTIVE", [], ["ChatHeard"]),
    (S.ACTIVE, On.GBYE): ("GONE", [], ["PeerGone"]),
    (S.ACTIVE, On.LOST): ("GONE", [], ["PeerGone"]),
    (S.GONE, On.HELO): ("GREETED", ["Helo", "Bout", "Gsip"], []),
}
TIMED: Final[dict[tuple[State, On], tuple[float, Outcome]]] = {
    (S.CALLING, On.DUE): (1, ("CALLING", ["Helo"], [])),
    (S.GREETED, On.DUE): (1, ("GREETED", ["Bout"], [])),
    (S.GREETED, On.LOST): (30, ("GONE", ["Bout"] * 4, ["PeerGone"])),
    (S.ACTIVE, On.DUE): (5, ("ACTIVE", ["Beat"], [])),
    (S.ACTIVE, On.SILENT): (10, ("ACTIVE", ["Beat", "Beat", "Beat", "Gsip"], ["PeerEvasive"])),
    (S.ACTIVE, On.LOST): (30, ("GONE", ["Beat", "Beat", "Beat", "Gsip", *["Beat"] * 3], ["PeerEvasive", "PeerGone"])),
    (S.GONE, On.DUE): (1, ("CALLING", ["Helo"], [])),
    (S.CALLING, On.EXPIRED): (602, ("", ["Helo"] * 121, [])),
    (S.GONE, On.EXPIRED): (1, ("", [], [])),
}
"""Seconds until it happens. Who is GONE is called within a second, so that it expires only where there is no room to call it."""


def rig_in(state: State) -> Rig:
    """B has come there by what was said; a second ago, if it is there, so that it may be answered."""
    rig = Rig()
    if state is State.CALLING:
        rig.meet(EB, "peer")
    elif state is not State.UNKNOWN:
        rig.hear(B, Helo(EB))
    if state in (State.ACTIVE, State.GONE):
        rig.hear(B, Bout(""))
        rig.pass_seconds(2)  # it asks for the time, and shows whom it sees
        rig.hear(B, gsip(A))
    if state is State.GONE:
        rig.order(LinkFull("", EB))
    rig.told.clear()
    return rig


def outcome(rig: Rig, said: list[str]) -> Outcome:
    peer = rig.peers.at(EB)
    return ("" if peer is None else peer.state), said, [type(event).__name__ for event in rig.told]


@pytest.mark.parametrize(("state", "on"), [(state, on) for state, on, _ in pairs(TABLE) if on in INPUTS])
@pytest.mark.proves("PEE-010")
def test_every_state_answers_every_input_as_the_table_says(state: State, on: On) -> None:
    rig = rig_in(state)
    if state is State.GREETED and on is On.HELO:
        rig.pass_seconds(1)
    before = "" if state is State.UNKNOWN else state.name
    said = [type(word.message).__name__ for word in INPUTS[on](rig)]
    assert ROWS.get((state, on), (before, [], [])) == outcome(rig, said)


@pytest.mark.parametrize(("state", "on"), [row for row in TIMED if row != (S.CALLING, On.EXPIRED)])
@pytest.mark.proves("PEE-010")
def test_time_does_in_every_state_what_the_table_says(state: State, on: On) -> None:
    rig = rig_in(state)
    span, expected = TIMED[state, on]
    if on is On.EXPIRED:
        peer = rig.peers.at(EB)
        assert peer is not None
        peer.gone_at = rig.now.mono - 600 * 10**9
    said = [type(word.message).__name__ for word in rig.pass_seconds(span)]
    assert expected == outcome(rig, said)


@pytest.mark.proves("PEE-010")
def test_who_is_called_in_vain_for_ten_minutes_is_forgotten() -> None:
    rig = rig_in(State.GONE)
    span, expected = TIMED[S.CALLING, On.EXPIRED]
    said = [type(word.message).__name__ for word in rig.pass_seconds(span)]
    assert expected == outcome(rig, said)


def test_every_row_of_the_table_is_walked() -> None:
    assert set(TABLE) == set(ROWS) | set(TIMED)


@pytest.mark.proves("PEE-006")
def test_what_has_no_row_is_counted_once_and_does_nothing() -> None:
    for state in (State.UNKNOWN, State.CALLING, State.GONE):
        for on in (On.BOUT, On.OTHER_BOUT, On.GOSSIP, On.SAID, On.GBYE):
            rig = rig_in(state)
            INPUTS[on](rig)
            assert 1 == rig.counters["mesh.rx.before_helo"]
    greeted = rig_in(State.GREETED)
    INPUTS[On.SAID](greeted)
    assert 1 == greeted.counters["mesh.rx.not_active"]
