"""Whatever a Clone server does and whatever is lost: in the end both stores are equal."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clone.test_states import SETTINGS, START, UPDATES
from weft.base.effects import Send, Source, Tell
from weft.base.now import SECOND, Now
from weft.cores.clone import limits
from weft.cores.clone.context import ASK
from weft.cores.clone.core import Clone
from weft.cores.clone.messages import (
    Hugz,
    ICanHaz,
    KThxBai,
    KvPub,
    KvSync,
    LearnPairs,
    TakeRoot,
    WritesDone,
    WritesWanted,
)
from weft.cores.clone.states import State

KEYS = ("/a", "/b", "c")


class World:
    """A follower, the configuration that it writes to, and the server that it follows."""

    def __init__(self, *, beats: bool) -> None:
        self.now = START
        self.core = Clone(SETTINGS, b"n" * 16)
        self.here: dict[str, bytes] = {}
        self.writes = self.number = self.refused = 0
        self.there: dict[str, bytes] = {}
        self.questions: list[bytes] = []
        self.beats, self.loses = beats, False
        self.core.command(TakeRoot(), self.now)
        self.carry_out()

    def carry_out(self) -> None:
        while effects := self.core.effects():
            for effect in effects:
                if isinstance(effect, Send) and isinstance(effect.message, ICanHaz):
                    self.questions.append(b"%d" % self.core.counters.questions)
                elif isinstance(effect, Tell) and isinstance(effect.event, WritesWanted):
                    self.write(effect.event)

    def write(self, wanted: WritesWanted) -> None:
        """As the configuration: all or nothing, told before it is answered."""
        if self.refused:
            self.refused -= 1
            self.core.command(WritesDone(wanted.ticket, 11), self.now)
            return
        for write in wanted.writes:
            if self.here.get(write.key, b"") != write.value:
                self.writes += 1
                self.here[write.key] = write.value
                self.core.command(LearnPairs(((write.key, write.value or None),), self.writes), self.now)
        self.here = {key: value for key, value in self.here.items() if value}
        self.core.command(WritesDone(wanted.ticket), self.now)

    def hear(self, message: Any, source: Source) -> None:
        self.core.receive(message, source, self.now)
        self.carry_out()

    def set(self, key: str, value: bytes) -> None:
        """Somebody writes at the server."""
        self.number += 1
        self.there[key] = value
        self.there = {key: value for key, value in self.there.items() if value}
        lost, self.loses = self.loses, False
        if not lost:
            self.hear(KvPub(key, self.number, b"", value), UPDATES)

    def lose(self) -> None:
        self.loses = True

    def refuse(self) -> None:
        self.refused += 1

    def beat(self) -> None:
        if self.beats:
            self.hear(Hugz(self.number), UPDATES)

    def second(self) -> None:
        self.advance(SECOND)

    def long(self) -> None:
        self.advance(limits.SILENCE_NS)

    def half_answer(self) -> None:
        self.answer(is_whole=False)

    def answer(self, *, is_whole: bool = True) -> None:
        """The oldest question is answered."""
        if self.questions:
            source = Source(ASK, self.questions.pop(0))
            for key, value in self.there.items():
                self.hear(KvSync(key, self.number, b"", value), source)
            if is_whole:
                self.hear(KThxBai(None, self.number), source)

    def advance(self, span_ns: int) -> None:
        """Time passes, from deadline to deadline."""
        ends_at = self.now.mono + span_ns
        while (due := self.core.deadline()) is not None and due <= ends_at:
            self.now = Now(max(due, self.now.mono), self.now.wall)
            self.core.wake(self.now)
            self.carry_out()
        self.now = Now(ends_at, self.now.wall)

    def begin_anew(self) -> None:
        """The server is away for longer than anybody waits, and has forgotten everything."""
        self.questions.clear()
        self.advance(limits.QUIET_NS + limits.LEFTOVER_NS)
        self.number, self.there = 0, {}
        self.questions = self.questions[-1:]

    def heal(self) -> None:
        """Nothing is lost any more, and every question is answered."""
        self.loses, self.refused = False, 0
        for _ in range(100):
            self.answer()
            self.beat()
            self.advance(SECOND)


STEPS = st.one_of(
    st.tuples(st.just("set"), st.sampled_from(KEYS), st.sampled_from([b"1", b"2", b""])),
    st.tuples(st.sampled_from(["lose", "beat", "answer", "half_answer", "second", "long", "begin_anew", "refuse"])),
)


@pytest.mark.proves("CFG-064")
@given(st.booleans(), st.lists(STEPS, max_size=30))
def test_in_the_end_both_stores_are_equal(beats: bool, steps: list[tuple[Any, ...]]) -> None:
    world = World(beats=beats)
    for name, *given_with in steps:
        getattr(world, name)(*given_with)
    world.heal()
    assert State.FOLLOWING is world.core.state
    assert {"/guide/" + key.removeprefix("/"): value for key, value in world.there.items()} == world.here
    world.set("/a", b"at last")
    assert b"at last" == world.here["/guide/a"]
