"""Planted bugs: each replaces one method, and the checker that is named has to catch it.

A check that never turns red proves nothing. So every promise has at least one bug that breaks it, written as someone
might really write it; without it the same seeds are green.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import getattr_static
from typing import Any, Final, NamedTuple

from weft.sim.run import Outcome, run
from weft.sim.swarm import draw_plan

Plant = Callable[[Any], Any]
"""Takes the method as it is, returns what to put in its place."""

SEEDS_MAX: Final = 200


class Canary(NamedTuple):
    """One planted bug."""

    name: str
    caught_by: str
    within: int
    """Seeds 0 to `within` - 1 must contain one that shows it."""
    place: Any
    """A class, a module, or a table of methods."""
    attribute: Any
    plant: Plant
    why: str
    scenario: str = "fabric"


class Caught(NamedTuple):
    """What became of a canary."""

    canary: Canary
    seeds: int
    """How many seeds it took, 0 if none of them showed it."""
    outcome: Outcome | None

    @property
    def rule(self) -> str:
        """Who caught it; empty: nobody."""
        return self.outcome.verdicts[0].rule if self.outcome is not None else ""

    @property
    def is_right(self) -> bool:
        return self.rule == self.canary.caught_by


CANARIES: Final[dict[str, Canary]] = {}
"""All planted bugs by name, in the order of the promises that they break."""


def canary(
    place: Any, attribute: Any, *, caught_by: str, within: int, scenario: str = "fabric"
) -> Callable[[Plant], Plant]:
    """Register a planted bug: the decorated function makes `place.attribute` wrong."""

    def register(plant: Plant) -> Plant:
        name = plant.__name__
        CANARIES[name] = Canary(
            name, caught_by, within, place, attribute, plant, (plant.__doc__ or "").strip(), scenario
        )
        return plant

    return register


@contextmanager
def planted(bug: Canary) -> Iterator[None]:
    """The bug is there for as long as this lasts."""
    is_table = isinstance(bug.place, dict)
    original = bug.place[bug.attribute] if is_table else getattr_static(bug.place, bug.attribute)
    is_own = is_table or bug.attribute in vars(bug.place)
    _put(bug, bug.plant(original))
    try:
        yield
    finally:
        if is_own:
            _put(bug, original)
        else:
            delattr(bug.place, bug.attribute)  # inherited: the class above has it, and other classes, too


def _put(bug: Canary, method: Any) -> None:
    if isinstance(bug.place, dict):
        bug.place[bug.attribute] = method
    else:
        setattr(bug.place, bug.attribute, method)


def catch(
    bug: Canary, seeds: Iterator[int] | range | None = None, on_seed: Callable[[int], None] | None = None
) -> Caught:
    """Run seeds until one shows the bug."""
    count = 0
    with planted(bug):
        for seed in range(bug.within) if seeds is None else seeds:
            count += 1
            if on_seed is not None:
                on_seed(seed)
            outcome = run(draw_plan(str(seed), bug.scenario))
            if outcome.verdicts:
                return Caught(bug, count, outcome)
    return Caught(bug, 0, None)


def load() -> dict[str, Canary]:
    """All canaries; the bugs themselves are written in `sim.bugs`."""
    from weft.sim import bugs, catalogbugs, classbugs, documentbugs, fleetbugs, keybugs, mailbugs, storebugs, wholebugs

    modules = (bugs, catalogbugs, classbugs, fleetbugs, documentbugs, keybugs, mailbugs, storebugs, wholebugs)
    assert all(module.__doc__ for module in modules), "importing them registers them"
    return CANARIES
