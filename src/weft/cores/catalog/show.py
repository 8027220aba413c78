"""The catalog's part of its node's status, as plain data (CAT-082)."""

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from weft.cores.catalog.states import State

if TYPE_CHECKING:
    from weft.cores.catalog.core import Catalog  # tidy: it shows the whole core

COUNTED: Final = ("changes", "dropped", "denied", "beats", "evictions")
"""Metrics shown by label; of all others the sum is shown."""


def facts(catalog: "Catalog") -> dict[str, Any]:
    """The catalog's state, and what has happened since its start."""
    context, book = catalog.context, catalog.book
    by_label: dict[str, dict[str, int]] = {metric: {} for metric in COUNTED}
    sums = Counter[str]()
    for (metric, label), count in sorted(context.counters.items()):
        if metric in by_label:
            by_label[metric][label] = count
        else:
            sums[metric] += count
    instances = Counter(instance.state.name for instance in book.all())
    return {
        "state": "HELD" if catalog.liveness.is_held else "SERVING",
        "epoch": context.epoch,
        "port": context.settings.port,
        "beats_port": context.beats_port,
        "events_port": context.events_port,
        "index": context.index,
        "instances": {state.name: instances[state.name] for state in (State.ACTIVE, State.SUSPECT, State.INACTIVE)},
        **by_label,
        "counts": dict(sums),
    }
