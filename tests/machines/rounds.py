"""Anything in any order, then quiet: one machine for every core that talks with others (FUZ-005).

A `Story` is three nodes or more and what is under way between them. The rules let hypothesis deliver, drop, double and mix what
is under way, let time pass, write, cut, kill and start nodes; after each step `check` must hold, at the end `rest`.
"""

from typing import Any, Protocol

import hypothesis
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

PLACES = st.integers(0, 30)
"""Which of what is under way, counted round."""
NODES = st.integers(0, 4)
"""Which node, counted round."""


class Story(Protocol):
    """What the rules do to one protocol."""

    names: tuple[str, ...]

    def deliver(self, place: int, count: int) -> None:
        """What stands at that place of the bag arrives, and so does what follows."""

    def drop(self, place: int) -> None:
        """It never arrives."""

    def double(self, place: int, to: int) -> None:
        """It arrives twice."""

    def advance(self, span_s: float) -> None:
        """Time passes."""

    def write(self, name: str, number: int) -> None:
        """A node is told something new."""

    def cut(self, name: str) -> None:
        """It hears nobody, and nobody hears it."""

    def heal(self) -> None:
        """Everybody hears everybody."""

    def crash(self, name: str, how: int) -> None:
        """It dies: now, or at its next write, before or behind the wall; what is not synced is lost."""

    def start(self, name: str) -> None:
        """It comes back with what its disk has, if it was dead."""

    def check(self) -> None:
        """What holds at any time."""

    def rest(self) -> None:
        """Everybody is back and hears everybody for long enough; what holds then."""


class Rounds(RuleBasedStateMachine):
    """The rules; a machine says which story."""

    story: type[Any]

    @initialize(seed=st.integers(0, 999))
    def begin(self, seed: int) -> None:
        self.told: Story = self.story(seed)

    def _name(self, number: int) -> str:
        return self.told.names[number % len(self.told.names)]

    @rule(place=PLACES, count=st.integers(1, 12))
    def deliver(self, place: int, count: int) -> None:
        self.told.deliver(place, count)

    @rule(place=PLACES)
    def drop(self, place: int) -> None:
        self.told.drop(place)

    @rule(place=PLACES, to=PLACES)
    def double(self, place: int, to: int) -> None:
        self.told.double(place, to)

    @rule(span_s=st.sampled_from((0.001, 0.1, 0.5, 2.0, 7.0, 40.0)))
    def advance(self, span_s: float) -> None:
        self.told.advance(span_s)

    @rule(node=NODES, number=st.integers(0, 9))
    def write(self, node: int, number: int) -> None:
        self.told.write(self._name(node), number)

    @rule(node=NODES, number=st.integers(0, 9))
    def write_more(self, node: int, number: int) -> None:
        self.told.write(self._name(node), number)

    @rule(node=NODES)
    def cut(self, node: int) -> None:
        self.told.cut(self._name(node))

    @rule()
    def heal(self) -> None:
        self.told.heal()

    @rule(node=NODES, how=st.integers(0, 2))
    def crash(self, node: int, how: int) -> None:
        self.told.crash(self._name(node), how)

    @rule(node=NODES)
    def start(self, node: int) -> None:
        self.told.start(self._name(node))

    @invariant()
    def what_always_holds(self) -> None:
        if hasattr(self, "told"):
            self.told.check()

    def teardown(self) -> None:
        if hasattr(self, "told"):
            self.told.rest()


def play(story: type[Any], examples: int, steps: int, *, is_shrunk: bool = True) -> None:
    """Let hypothesis tell so many stories of so many steps; one that fails is told as short as it can be."""
    machine = type(story.__name__, (Rounds,), {"story": story})
    phases = tuple(phase for phase in Phase if is_shrunk or phase is Phase.generate)
    how = hypothesis.settings(max_examples=examples, stateful_step_count=steps, phases=phases)
    run_state_machine_as_test(machine, settings=how)
