"""Chooses one of several instances of a service (CAT-072)."""

import random
from collections.abc import Sequence
from typing import Literal

from weft.client.catalog.entries import Entry

Policy = Literal["first", "random", "round_robin", "weighted"]


class Picker:
    """Picks one of the usable instances. For `round_robin` it remembers the last one of each service."""

    def __init__(self, chance: random.Random | None = None) -> None:
        self._chance = chance or random.Random()  # noqa: S311  # it spreads load
        self._lasts: dict[str, str] = {}

    def pick(self, entries: Sequence[Entry], policy: Policy) -> Entry | None:
        """One of them; None if none can be used. A suspect one is picked only if there is no active one.

        first: the best one, in the broker's order. random: all equally often. round_robin: one after the other, by id.
        weighted: in proportion to `weight`; one of weight 0 only if all have weight 0.
        """
        usable = [entry for entry in entries if entry.is_usable]
        usable = [entry for entry in usable if entry.state == "active"] or usable
        return _POLICIES[policy](self, usable) if usable else None

    def _first(self, usable: list[Entry]) -> Entry:
        return usable[0]

    def _random(self, usable: list[Entry]) -> Entry:
        return self._chance.choice(usable)

    def _round_robin(self, usable: list[Entry]) -> Entry:
        usable = sorted(usable, key=lambda entry: entry.instance)
        last = self._lasts.get(usable[0].name, "")
        picked = next((entry for entry in usable if entry.instance > last), usable[0])
        self._lasts[picked.name] = picked.instance
        return picked

    def _weighted(self, usable: list[Entry]) -> Entry:
        weights = [entry.weight for entry in usable]
        return self._chance.choices(usable, weights if any(weights) else None)[0]


_POLICIES = {
    "first": Picker._first,
    "random": Picker._random,
    "round_robin": Picker._round_robin,
    "weighted": Picker._weighted,
}
