"""What the plans of several protocols draw alike: which faults can occur, when, and until when."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Self

from weft.base.chance import Chance
from weft.sim.plan import Action


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


def menu_of(chance: Chance, faults: Collection[str], few: float = 0.2) -> tuple[str, ...]:
    """Which faults can occur: one run in ten has all, half of the others few (each with that chance)."""
    kind = chance.random()
    share = 1.0 if kind < 0.1 else few if kind < 0.55 else 0.5
    return tuple(name for name in faults if chance.random() < share) or (chance.choice(tuple(faults)),)
