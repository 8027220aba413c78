"""The store's part of the status, as plain data for people and metrics (ADM-020, ADM-030)."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weft.base.changes import Event
from weft.cores.store.linkstates import LinkState
from weft.wire.store.path import text_of
from weft.wire.store.ranges import ticks_to_wire

if TYPE_CHECKING:
    from weft.cores.store.core import Store  # tidy: it shows the whole core

MISSING_SHOWN: Final = 100  # ranges shown; further ones are only counted
COUNTED: Final = ("events", "malformed", "pings", "recoveries", "acks", "dropped")
"""Metrics shown by label; of all others the sum is shown."""
HIDDEN: Final = "malformed_by"
"""By sender, which can be any name, so it is not shown."""


def facts(store: "Store") -> dict[str, Any]:
    """How the store of this node stands, and what has happened since its start."""
    context, replica = store.context, store.replica
    missing = replica.book.missing()
    return {
        "state": store.membership.state.name,
        "serves": store.membership.serves,
        "node": context.name,
        "tick": context.tick,
        "tock": context.tock,
        "read_only": context.read_only,
        "entries": replica.tree.entries,
        "tombstones": replica.tree.tombstones,
        "value_bytes": replica.tree.bytes,
        "missing": {node: ticks.count for node, ticks in missing.items()},
        "members": len(store.bus.members),
        "foreign": len(context.foreign),
        "has_broker": store.bus.has_broker,
        "links": links(store),
        "watch_lag": store.serving.place.lag,
        "replicate_seconds": store.acking.took.facts(),
        "conflicts": store.replica.conflicts.last_number,
        **_counted(store),
    }


def links(store: "Store") -> dict[str, int]:
    """Links by `kind:peer`: 1, or 0 for one that is down."""
    found = {
        f"mesh:{peer.node or peer.endpoint}": int(peer.state is LinkState.UP) for peer in store.mesh.peers.values()
    }
    if store.bus.knows_broker:
        found["mqtt:broker"] = int(store.bus.has_broker)
    return found


def _counted(store: "Store") -> dict[str, Any]:
    counters = store.context.counters
    by_label: dict[str, Any] = {metric: {} for metric in COUNTED}
    for (metric, label), count in sorted(counters.items()):
        if metric in by_label:
            by_label[metric][label] = count
    sums = Counter[str]()
    for (metric, _), count in sorted(counters.items()):
        if metric not in by_label and metric != HIDDEN:
            sums[metric] += count
    return by_label | {"counts": dict(sums)}


def state(store: "Store") -> dict[str, Any]:
    """The store's state, and the changes that this node misses, as ranges."""
    shown = facts(store)
    missing = ticks_to_wire(store.replica.book.missing())
    shown["missing"] = {node: ranges[:MISSING_SHOWN] for node, ranges in missing.items()}
    del shown["counts"]
    return shown


def members(store: "Store") -> dict[str, Any]:
    """Every node ever heard of."""
    book, context, mesh = store.replica.book, store.context, store.bus.members
    names = sorted({*book.tops(), context.name, *mesh})
    rows = [
        {
            "node": name,
            "tick": book.top(name),
            "missing": book.missing_of(name).count,
            "link": "self" if name == context.name else "mesh" if name in mesh else "",
            "endpoint": mesh.get(name, ""),
            "kind": "foreign" if name in context.foreign else "weft",
        }
        for name in names
    ]
    return {"members": rows}


def conflicts(store: "Store") -> dict[str, Any]:
    """The last conflicts, newest first, with both values."""
    rows = [
        {
            "number": conflict.number,
            "path": text_of(conflict.kept.path),
            "reason": conflict.reason,
            "kept": side(conflict.kept),
            "lost": side(conflict.lost),
        }
        for conflict in store.replica.conflicts
    ]
    return {"conflicts": rows[::-1]}


def side(event: Event) -> dict[str, Any]:
    """One side of a conflict; the value is MessagePack in hex, so that it can be restored exactly."""
    value = {"deleted": True} if event.value is None else {"value": event.value.hex()}
    return {"node": event.node, "tick": event.tick, "tock": event.tock, "at": event.at, "by": event.by} | value


def orphans(store: "Store") -> dict[str, Any]:
    """Changes that no other node accepted, since this node had been dropped."""
    return {"orphans": [{"path": text_of(event.path)} | side(event) for event in store.deletion.orphans]}


SHOWN: Final[dict[str, Callable[["Store"], dict[str, Any]]]] = {
    "state": state,
    "members": members,
    "conflicts": conflicts,
    "orphans": orphans,
}
"""The values of `what` in `Show`."""
