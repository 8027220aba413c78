"""The smallest whole core, tested the way every core is: codec, table walk, dialogue, crash at every effect, restore."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables.tables import pairs
from weft.base.chance import Chance
from weft.base.effects import Effect, Persist, Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.cores.template import limits
from weft.cores.template.core import Template
from weft.cores.template.messages import PeerArrived, PeerVanished, Ping, Pong, Rest, Watch
from weft.cores.template.states import TABLE, Cell, On, State
from weft.testing.dialogue import Dialogue, End
from weft.wire import template as codec

STREAM = Source("template", b"")
START = Now(SECOND, SECOND)
LATER = Now(SECOND + limits.SILENCE_NS, SECOND + limits.SILENCE_NS)
COUNTERS = st.integers(0, (1 << 63) - 1)
MESSAGES = st.builds(Ping, COUNTERS) | st.builds(Pong, COUNTERS, COUNTERS)


def made() -> Template:
    return Template(Chance("tests/template"))


def watching() -> Template:
    """A core that has called once."""
    core = made()
    core.command(Watch(), START)
    core.wake(START)
    core.effects()
    return core


def in_state(state: State) -> Template:
    core = watching()
    if state is State.PRESENT:
        core.receive(Ping(1), STREAM, START)
        core.effects()
    assert state is core.state
    return core


def give(core: Template, on: On) -> None:
    """Let one input of the table happen."""
    match on:
        case On.PING:
            core.receive(Ping(9), STREAM, START)
        case On.PONG:
            core.receive(Pong(1, 1), STREAM, START)
        case On.RESTED:
            core.command(Rest(), START)
        case On.SILENCE:
            core.wake(LATER)


# what each cell does to the world, in order; `wake` also pings, which is not the table's business
DONE: dict[tuple[State, On], list[type]] = {
    (State.ABSENT, On.PING): [Persist, PeerArrived, Pong],
    (State.ABSENT, On.PONG): [Persist, PeerArrived],
    (State.PRESENT, On.PING): [Pong],
    (State.PRESENT, On.SILENCE): [PeerVanished],
}


def kinds(effects: list[Effect]) -> list[type]:
    inner = [e.message if isinstance(e, Send) else e.event if isinstance(e, Tell) else e for e in effects]
    return [type(thing) for thing in inner if not isinstance(thing, Ping)]


@pytest.mark.parametrize("state, on, cell", list(pairs(TABLE)), ids=str)
def test_every_state_with_every_input(state: State, on: On, cell: Cell | None) -> None:
    core = in_state(state)
    give(core, on)
    assert (cell.then if cell else state) is core.state
    assert DONE.get((state, on), []) == kinds(core.effects())


@given(MESSAGES)
def test_decode_of_encode_is_identity(message: codec.Message) -> None:
    assert message == codec.decode(codec.encode(message))


@given(st.lists(st.binary(max_size=40), max_size=3))
def test_any_frames_are_a_message_or_refused(frames: list[bytes]) -> None:
    try:
        message = codec.decode(frames)
    except PeerError as error:
        assert error.code in ("bad-message", "too-big")
    else:
        assert isinstance(message, Ping | Pong)


@pytest.mark.parametrize(
    "hexed, code",
    [
        ("920107", None),
        ("93020701", None),
        ("9201", "bad-message"),
        ("9201ff", "bad-message"),
        ("92010700", "bad-message"),
        ("9301 0700", "bad-message"),
        ("9203 07", "bad-message"),
        ("9201 a137", "bad-message"),
        ("9201 cfffffffffffffffff", "bad-message"),
        ("91" * 31, "bad-message"),
        ("91" * 33, "too-big"),
        ("", "bad-message"),
    ],
)
def test_frames_by_hand(hexed: str, code: str | None) -> None:
    try:
        codec.decode([bytes.fromhex(hexed)])
    except PeerError as error:
        assert code == error.code
    else:
        assert code is None


def test_an_answer_that_nobody_asked_for_is_refused_without_effect() -> None:
    core = made()
    with pytest.raises(PeerError) as caught:
        core.receive(Pong(1, 1), STREAM, START)
    assert caught.value.code == "unknown-serial"
    assert (State.ABSENT, 0, [], None) == (core.state, core.meetings, core.effects(), core.deadline())


def dialogue() -> Dialogue:
    return Dialogue(End("a", made), End("b", made), codec.encode, codec.decode)


def test_two_ends_meet_part_and_meet_again() -> None:
    talk = dialogue()
    talk.a.order(Watch())
    talk.advance(3 * SECOND)
    assert [PeerArrived(1)] == talk.a.events == talk.b.events
    talk.cut()
    talk.advance(10 * SECOND)
    assert [State.ABSENT] * 2 == [end.core.state for end in (talk.a, talk.b)]  # type: ignore[attr-defined]  # of Template
    talk.heal()
    talk.advance(3 * SECOND)
    assert [PeerArrived(1), PeerVanished(5_000_000_000), PeerArrived(2)] == talk.b.events
    assert PeerArrived(2) == talk.a.events[-1]


def test_who_rests_is_quiet_and_still_answers() -> None:
    talk = dialogue()
    talk.a.order(Watch())
    talk.a.order(Rest())
    talk.advance(60 * SECOND)
    assert [] == talk.a.sent + talk.b.sent
    talk.b.order(Watch())
    talk.advance(SECOND)
    assert {Pong} == {type(message) for message in talk.a.sent}


def test_pings_are_neither_in_step_nor_far_apart() -> None:
    talk = dialogue()
    talk.a.order(Watch())
    talk.advance(100 * SECOND)
    assert 90 <= sum(isinstance(message, Ping) for message in talk.a.sent) <= 111


@given(st.lists(st.sampled_from(["advance", "cut", "heal", "crash a", "crash b"]), max_size=12), st.integers(0, 6))
def test_meetings_are_never_told_twice_wherever_an_end_dies(script: list[str], dies_after: int) -> None:
    talk = dialogue()
    talk.b.dies_after = dies_after
    for step in ["advance", *script, "heal", "advance"]:
        for end in (talk.a, talk.b):
            end.order(Watch())
        match step:
            case "advance":
                talk.advance(7 * SECOND)
            case "cut":
                talk.cut()
            case "heal":
                talk.heal()
            case _:
                talk.crash(talk.a if step.endswith("a") else talk.b)
    for end in (talk.a, talk.b):
        assert [] == end.refused or end.crashes, "only a restart makes an answer strange"
        numbers = [event.meetings for event in end.events if isinstance(event, PeerArrived)]
        assert numbers == sorted(set(numbers)), "never twice, never back"
        assert max([0, *numbers]) <= len(end.entries), "durable before it is told"


@given(st.lists(st.sampled_from(list(On)), max_size=20))
def test_restored_from_its_records_a_core_remembers_what_the_living_one_does(inputs: list[On]) -> None:
    live, end = watching(), End("restored", made)
    for on in inputs:
        if (live.state, on) in TABLE:
            give(live, on)
        for effect in live.effects():
            if isinstance(effect, Persist):
                end.keep(effect)
        restored: Any = made()
        restored.restore(end.entries, START)
        assert list(live.condense()) == list(restored.condense())
        condensed = made()
        condensed.restore([(1, record) for record in live.condense()], START)
        assert live.meetings == condensed.meetings
