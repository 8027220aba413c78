"""The table of the child's link, walked: every state with every input."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.carrier.rig import World
from tests.tables.tables import pairs
from weft.base.effects import Source
from weft.base.errors import PeerError
from weft.base.now import SECOND
from weft.cores.carrier.core import Carrier
from weft.cores.carrier.messages import AssignParent, Beat, Bye, DismissParent, Garbled, Hack, Hop, Refuse, Welcome
from weft.cores.carrier.states import TABLE, Cell, On, State
from weft.wire.hop import HopItem

PARENT = b"p" * 16


def welcome(upto: int = 0, win: int = 1_000) -> Welcome:
    return Welcome(
        v=1,
        node=PARENT,
        name="p",
        addr="",
        boot=1,
        level="root",
        parent=None,
        children=[],
        credit=0,
        credit_bytes=0,
        beat=1_000,
        dead=5_000,
        era=1,
        first=1,
        next=1,
        upto=upto,
        win=win,
        winb=8 << 20,
        safe=upto,
    )


class Link:
    """A child whose parent is played by the test."""

    def __init__(self) -> None:
        self.world = World()
        self.machine = self.world.sensor("a", "")
        self.core: Carrier = self.machine.core

    def hack(self, **fields: int) -> Hack:
        standard: dict[str, Any] = {"era": self.machine.era, "upto": 0, "win": 1_000, "winb": 8 << 20, "safe": 0}
        return Hack(**standard | fields)

    def hear(self, message: object) -> None:
        self.core.receive(message, Source("up", b""), self.world.now)
        self.machine.do()

    def bring_to(self, state: State) -> None:
        if state is State.NONE:
            return
        self.machine.order(AssignParent("p:1", "p"))
        if state is not State.GREETING:
            self.hear(welcome())
        if state is State.STOPPED:
            self.hear(self.hack(win=0))
        assert state is self.core.state

    def put(self, on: On) -> None:
        match on:
            case On.ASSIGNED:
                self.machine.order(AssignParent("q:1", "q"))
            case On.DISMISSED:
                self.machine.order(DismissParent())
            case On.WELCOMED:
                self.hear(welcome())
            case On.REFUSED:
                self.hear(Refuse("busy"))
            case On.ROOM:
                self.hear(self.hack())
            case On.NO_ROOM:
                self.hear(self.hack(win=0))
            case On.BROKEN:
                self.hear(Bye("gone"))
            case On.DUE:
                self.core.child._turn(On.DUE, None, self.world.now)


@pytest.mark.parametrize(("state", "on", "cell"), list(pairs(TABLE)), ids=lambda part: getattr(part, "name", ""))
def test_every_state_with_every_input(state: State, on: On, cell: Cell | None) -> None:
    link = Link()
    link.bring_to(state)
    if cell is not None:
        link.put(on)
        assert cell.then is link.core.state
        return
    before = list(link.machine.said)
    with pytest.raises(PeerError) as caught:
        link.put(on)
    assert "not-now" == caught.value.code
    assert (state, before) == (link.core.state, link.machine.said)


def test_what_a_parent_may_not_say_is_refused_and_counted() -> None:
    link = Link()
    link.bring_to(State.OPEN)
    link.machine.make()
    item = HopItem(mid=(PARENT, 1, 1), type="x", via=(PARENT,), depth=0, ts=0)
    cases: dict[str, list[Any]] = {
        "bad-upto": [link.hack(upto=99), welcome(upto=99)],
        "bad-safe": [link.hack(upto=1, safe=2), replace(welcome(), safe=1)],
        "loop": [replace(welcome(), node=link.machine.node)],
        "bad-era": [link.hack(era=1)],
        "unimplemented": [Hop(1, 1, [item], [b""])],
    }
    for code, messages in cases.items():
        for message in messages:
            with pytest.raises(PeerError) as caught:
                link.hear(message)
            assert code == caught.value.code
    assert {code: len(messages) for code, messages in cases.items()} == link.core.counters.refused
    assert (State.OPEN, 0, 0) == (link.core.state, link.core.counters.held, link.core.counters.safe)


def test_what_is_said_with_the_key_of_another_than_the_parent_is_refused() -> None:
    link = Link()
    link.bring_to(State.OPEN)
    with pytest.raises(PeerError) as caught:
        link.core.receive(Beat(), Source("up", b"", b"q" * 16), link.world.now)
    assert "not-yours" == caught.value.code
    link.core.receive(Beat(), Source("up", b"", PARENT), link.world.now)
    assert State.OPEN is link.core.state


@pytest.mark.proves("CLI-006")
@pytest.mark.parametrize(("code", "times"), [("bad-header", 10), ("bad-sum", 1)])
def test_a_parent_that_cannot_be_read_is_left(code: str, times: int) -> None:
    link = Link()
    link.bring_to(State.OPEN)
    states = []
    for _ in range(times):
        states.append(link.core.state)
        link.machine.order(Garbled("up", b"", code))
    assert [State.OPEN] * times == states
    assert State.OPEN is not link.core.state


def test_a_refusing_parent_is_told_of_once_and_asked_again_ever_more_slowly() -> None:
    link = Link()
    link.bring_to(State.GREETING)
    pauses = []
    for _ in range(9):
        link.hear(Refuse("busy", "twin"))
        due = link.core.child.deadline()
        assert due is not None
        pauses.append((due - link.world.now.mono) / SECOND)
        link.world.sleep(pauses[-1])
        link.core.wake(link.world.now)
        link.machine.do()
    planned = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5]
    assert all(0.8 * plan <= pause <= 1.2 * plan for plan, pause in zip(planned, pauses, strict=True)), pauses
    assert len(set(pauses)) == len(pauses)
    assert ["ParentRefused"] == [type(event).__name__ for event in link.machine.told]


@pytest.mark.proves("CLI-005", "SIM-021")
def test_silence_ends_in_a_fresh_socket() -> None:
    link = Link()
    link.bring_to(State.OPEN)
    before = link.machine.peer
    for _ in range(3):
        link.world.advance(3)
        link.hear(Beat())
    assert (State.OPEN, before) == (link.core.state, link.machine.peer)
    link.world.advance(4.9)
    assert State.OPEN is link.core.state
    link.world.advance(0.3)
    assert State.GREETING is link.core.state
    assert before != link.machine.peer


@pytest.mark.proves("CLI-005")
def test_beats_fill_silence_and_nothing_else() -> None:
    link = Link()
    link.bring_to(State.OPEN)
    for _ in range(20):
        link.machine.make()
        link.world.advance(0.4)
        link.hear(link.hack(upto=link.core.outbox.sent))
    assert [] == link.machine.heard_to_say(Beat)
    for _ in range(4):
        link.world.advance(1)
        link.hear(Beat())
    assert 4 == len(link.machine.heard_to_say(Beat))


@pytest.mark.proves("REC-001")
def test_a_suspended_machine_does_not_take_its_parent_for_dead() -> None:
    link = Link()
    link.bring_to(State.OPEN)
    link.world.advance(1)
    link.world.sleep(3_600)
    link.core.wake(link.world.now)
    link.machine.do()
    assert State.OPEN is link.core.state
    link.world.advance(5.5)
    assert State.GREETING is link.core.state


@pytest.mark.proves("CHN-032")
def test_a_window_that_does_not_move_is_broken_although_the_parent_beats() -> None:
    link = Link()
    link.bring_to(State.OPEN)
    link.machine.make()
    for _ in range(4):
        link.world.advance(1)
        link.hear(Beat())
        assert State.OPEN is link.core.state
    link.world.advance(1.2)
    assert State.GREETING is link.core.state


def test_a_window_that_was_empty_begins_to_wait_when_something_is_sent() -> None:
    link = Link()
    link.bring_to(State.OPEN)
    for _ in range(20):
        link.world.advance(1)
        link.hear(Beat())
    link.machine.make()
    link.world.advance(2)
    assert State.OPEN is link.core.state


def test_a_message_larger_than_the_window_goes_alone() -> None:
    link = Link()
    link.bring_to(State.OPEN)
    link.hear(link.hack(winb=10))
    link.machine.names_era = False
    for _ in range(5):
        link.machine.make()
    for upto in range(1, 6):
        assert 1 == link.core.outbox.in_flight()
        link.hear(link.hack(upto=upto, winb=10))
    assert 5 == link.core.counters.held
