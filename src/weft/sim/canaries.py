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
"""Takes the original method, returns its replacement."""

SEEDS_MAX: Final = 200


class Canary(NamedTuple):
    """One planted bug."""

    name: str
    caught_by: str
    seeds: range
    """One of these must show it."""
    place: Any
    """A class, a module, or a table of methods."""
    attribute: Any
    plant: Plant
    why: str
    scenario: str = "fabric"

    @property
    def within(self) -> int:
        """Above the last of its seeds."""
        return self.seeds.stop


class Caught(NamedTuple):
    """The result for one canary."""

    canary: Canary
    seeds: int
    """How many seeds were needed; 0 if none showed it."""
    outcome: Outcome | None

    @property
    def looked_at(self) -> range:
        """The seeds that were tried."""
        return self.canary.seeds[: self.seeds or None]

    @property
    def rule(self) -> str:
        """The rule that caught it; empty: none."""
        return self.outcome.verdicts[0].rule if self.outcome is not None else ""

    @property
    def is_right(self) -> bool:
        return self.rule == self.canary.caught_by


CANARIES: Final[dict[str, Canary]] = {}
"""All planted bugs by name, in the order of the promises that they break."""


def canary(
    place: Any, attribute: Any, *, caught_by: str, within: int | range, scenario: str = "fabric"
) -> Callable[[Plant], Plant]:
    """Register a planted bug: the decorated function makes `place.attribute` wrong.

    `within`: the seeds of which one must show it, or how many, from 0 on.
    """
    seeds = range(within) if isinstance(within, int) else within

    def register(plant: Plant) -> Plant:
        name = plant.__name__
        CANARIES[name] = Canary(
            name, caught_by, seeds, place, attribute, plant, (plant.__doc__ or "").strip(), scenario
        )
        return plant

    return register


@contextmanager
def planted(bug: Canary) -> Iterator[None]:
    """The bug is planted inside this context."""
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
            delattr(bug.place, bug.attribute)  # inherited: a base class has the method, which other classes use too


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
        for seed in bug.seeds if seeds is None else seeds:
            count += 1
            if on_seed is not None:
                on_seed(seed)
            outcome = run(draw_plan(str(seed), bug.scenario))
            if outcome.verdicts:
                return Caught(bug, count, outcome)
    return Caught(bug, 0, None)


def load() -> dict[str, Canary]:
    """All canaries; the bugs themselves are written in `sim.bugs`."""
    from weft.sim import (
        bridgebugs,
        bugs,
        catalogbugs,
        classbugs,
        documentbugs,
        fleetbugs,
        keybugs,
        mailbugs,
        storebugs,
        wholebugs,
    )

    modules = (
        bugs,
        catalogbugs,
        bridgebugs,
        classbugs,
        fleetbugs,
        documentbugs,
        keybugs,
        mailbugs,
        storebugs,
        wholebugs,
    )
    assert all(module.__doc__ for module in modules), "importing them registers them"
    return CANARIES
