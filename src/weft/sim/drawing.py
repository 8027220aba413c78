"""What the plans of several protocols draw alike: which faults can occur, when, and until when."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final, Self

import msgspec

from weft.base.chance import Chance
from weft.base.now import SECOND
from weft.sim.disk import HARMS
from weft.sim.plan import Action, NodePlan

SMALL_SEGMENTS: Final = (4, 16)


@dataclass(frozen=True, kw_only=True)
class Draw:
    """What faults are drawn from: a random generator, and the phase in which there are faults."""

    chance: Chance
    begin_ns: int
    end_ns: int

    def by(self, seed: str) -> Self:
        """The same with a generator of its own, so that another fault moves none of its draws (SIM-005)."""
        return replace(self, chance=Chance(seed))

    def moment(self) -> int:
        """A random instant while there are faults."""
        return self.chance.randrange(self.begin_ns, self.end_ns)

    def lasts(self, begin: Action, end: Action) -> list[Action]:
        """Begin and end of a fault; if it outlasts the phase of faults, the heal ends it."""
        return [begin, end] if end.at < self.end_ns else [begin]

    def damage(self, name: str, *, is_replaceable: bool) -> list[Action]:
        """A node ends, its journal is harmed, and it starts again.

        If it is refused, a person repairs its disk, or replaces it where that may be.
        """
        chance, at = self.chance, self.moment()
        back = at + chance.randint(SECOND, 20 * SECOND)
        begin = Action(at, "crash", name, how=chance.choice(("kept", "torn")), number=chance.randint(0, 1))
        made = harmed(begin, chance.choice(HARMS), back, is_replaced=is_replaceable and chance.random() < 0.3)
        return [action for action in made if action.at < self.end_ns]


def harmed(begin: Action, how: str, back: int, *, is_replaced: bool) -> list[Action]:
    """While the node that `begin` ends is away, its journal is harmed; a start that is refused is made again once a person came."""
    name = begin.node
    return [
        begin,
        Action(begin.at + SECOND // 10, "harm", name, how=how, number=1),
        Action(back, "start", name),
        Action(back + SECOND, "repair", name, how="replaced" if is_replaced else ""),
        Action(back + 2 * SECOND, "start", name),
    ]


def with_small_segments(nodes: Iterable[NodePlan], chance: Chance) -> tuple[NodePlan, ...]:
    """The nodes with journals of many segments: only closed ones can be harmed."""
    return tuple(msgspec.structs.replace(node, segment_records=chance.choice(SMALL_SEGMENTS)) for node in nodes)


def menu_of(chance: Chance, faults: Collection[str], few: float = 0.2) -> tuple[str, ...]:
    """Which faults can occur: one run in ten has all, half of the others few (each with that chance)."""
    kind = chance.random()
    share = 1.0 if kind < 0.1 else few if kind < 0.55 else 0.5
    return tuple(name for name in faults if chance.random() < share) or (chance.choice(tuple(faults)),)
