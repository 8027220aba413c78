"""The table of following, walked: every state with every input."""

from typing import Any

import pytest

from tests.tables.tables import pairs
from weft.base.effects import Connect, Disconnect, Effect, Send, Source, Tell
from weft.base.now import SECOND, Now
from weft.cores.clone import limits
from weft.cores.clone.context import ASK, FOLLOW
from weft.cores.clone.core import Clone
from weft.cores.clone.messages import (
    CloneSettings,
    Hugz,
    ICanHaz,
    KThxBai,
    KvPub,
    KvSync,
    ServerFollowed,
    ServerLost,
    StepDown,
    TakeRoot,
    WritesWanted,
)
from weft.cores.clone.states import TABLE, Cell, On, State

START = Now(SECOND, 1_795_000_000 * SECOND)
SETTINGS = CloneSettings(source="127.0.0.1:5556", prefix="/guide/")
UPDATES = Source(FOLLOW, FOLLOW.encode())


def later(span_ns: int, since: Now = START) -> Now:
    return Now(since.mono + span_ns, since.wall + span_ns)


def answers(core: Clone) -> Source:
    """Where answers to the present question come from."""
    return Source(ASK, b"%d" % core.counters.questions)


def in_state(state: State) -> Clone:
    core = Clone(SETTINGS, b"n" * 16)
    if state is not State.RESTING:
        core.command(TakeRoot(), START)
    if state is State.FOLLOWING:
        core.receive(KThxBai(None, 7), answers(core), START)
        core.receive(Hugz(7), UPDATES, START)
    core.effects()
    assert state is core.state
    return core


def give(core: Clone, on: On) -> None:
    """Let one input of the table happen."""
    match on:
        case On.BEGUN:
            core.command(TakeRoot(), START)
        case On.PAIR:
            core.receive(KvSync("/a", 3, b"", b"1"), answers(core), START)
        case On.END:
            core.receive(KThxBai("", 7), answers(core), START)
        case On.UPDATE:
            core.receive(KvPub("/a", 8, b"", b"1"), UPDATES, START)
        case On.HOLE if core.state is State.ASKING:
            core.follower._turn(On.HOLE, None, START)  # by itself it needs 10,000 updates
        case On.HOLE:
            core.receive(KvPub("/a", 9, b"", b"1"), UPDATES, START)
        case On.SILENCE:
            core.wake(later(limits.SILENCE_NS))
        case On.ENDED:
            core.command(StepDown(), START)


ASKS: list[type] = [Connect, ICanHaz]
DONE: dict[tuple[State, On], list[type]] = {
    (State.RESTING, On.BEGUN): [Connect, *ASKS],
    (State.ASKING, On.PAIR): [],
    (State.ASKING, On.END): [ServerFollowed],
    (State.ASKING, On.UPDATE): [],
    (State.ASKING, On.HOLE): ASKS,
    (State.ASKING, On.SILENCE): ASKS,
    (State.ASKING, On.ENDED): [Disconnect, Disconnect],
    (State.FOLLOWING, On.UPDATE): [WritesWanted],
    (State.FOLLOWING, On.HOLE): ASKS,
    (State.FOLLOWING, On.SILENCE): [ServerLost, Connect, *ASKS],
    (State.FOLLOWING, On.ENDED): [Disconnect, Disconnect],
}
"""What each row does to the world, in order."""


def kinds(effects: list[Effect]) -> list[type]:
    inner: list[Any] = [e.message if isinstance(e, Send) else e.event if isinstance(e, Tell) else e for e in effects]
    return [type(thing) for thing in inner]


def test_every_row_is_looked_at() -> None:
    assert set(TABLE) == set(DONE)


@pytest.mark.parametrize("state, on, cell", list(pairs(TABLE)), ids=str)
def test_every_state_with_every_input(state: State, on: On, cell: Cell | None) -> None:
    core = in_state(state)
    give(core, on)
    assert (cell.then if cell else state) is core.state
    assert DONE.get((state, on), []) == kinds(core.effects())
