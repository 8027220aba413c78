"""Situations that a simulator has to meet sometimes; without them its green runs show little (SIM-010).

Each has a name that says what happened. `Recorder` and `Run` count them as `met NAME`; a long soak in which one was not
met even once says so.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from weft.cores.carrier import messages as carrier
from weft.cores.carrier.context import Counters
from weft.cores.drain import messages as drain
from weft.cores.measurement import messages as measurement
from weft.cores.topology import messages as topology
from weft.node import events
from weft.sim.disk import HARMS
from weft.sim.fleetplan import FLEET_SCENARIOS
from weft.sim.intruders import INTRUDERS
from weft.sim.keyplan import KEY_SCENARIOS
from weft.sim.programs import ANSWERS

PREFIX: Final = "met "

EVENTS: Final[dict[type, str]] = {
    carrier.ParentJoined: "a parent joined",
    carrier.ParentLost: "a parent lost: {event.why}",
    carrier.ParentRefused: "a parent that refuses: {event.why}",
    carrier.ChildLost: "a child lost: {event.why}",
    carrier.ChildRefused: "a child refused: {event.why}",
    carrier.RolledBack: "a parent whose disk went back",
    carrier.SpoolDropped: "a spool that gives up its oldest",
    carrier.SpoolHigh: "a spool that fills up",
    carrier.LakeUnknown: "a lake that a new root could not read for long",
    drain.LakeFull: "a full lake",
    drain.LakeFailed: "a broken lake",
    drain.LakeBack: "a lake that is back",
    drain.DrainClosed: "a drain that closed in order",
    measurement.ClockStepped: "a clock that was set",
    measurement.MetricFailed: "a metric that fails",
    topology.NodeSeen: "a neighbour seen",
    topology.NodeVanished: "a neighbour vanished",
    events.InputRefused: "bytes refused on `{event.channel}`",
    events.JournalChanged: "a journal {event.state}",
}
"""The situations that events name."""

COUNTERS: Final = {
    "resent": "messages sent again",
    "fetches": "records read back from the journal to be sent",
    "repeated": "hop numbers that were here already",
    "ahead": "messages behind a gap",
    "known": "identities that the root had already",
    "held_back": "messages that came while there was no room",
}
"""The situations that the carrier's counters name."""

MODELS: Final = (
    "a batch that survived its crash unheard",
    "a crash inside a write",
    "a snapshot restored",
    "records forgotten",
    "a segment nobody was told of",
    "one block lost at a cut",
    "a deaf ROUTER",
    "messages that TCP brought late",
    "a message altered on its way",
    "a disk lost",
    "a disk from the past",
    "an announcement of loss in the lake",
    "a datagram lost",
    "a datagram doubled",
    "a datagram damaged",
    "a datagram late",
    "a root that starts again",
    "a collector that starts again",
    "a sensor that starts again",
    "a collector's disk lost",
    "a disk lost with what was not safe",
    "a start while the parent is away",
    "an end while the parent is away",
    "two cuts of one cable at once",
    "a snapshot taken",
    "a drop by a node with children",
    "a sync that ended while the process stood still",
    "an orderly stop",
    "a process that stood still longer than death",
    "a sync of seconds",
)
"""The situations that the models of the world notice."""

FIXED: Final = (
    "a parent lost: silent",
    "a parent lost: stalled",
    "a parent lost: refused: bad-hello",
    "a parent lost: bye: stopping",
    "a parent lost: stopping",
    "a parent that refuses: bad-hello",
    "a parent that refuses: busy",
    "a child lost: silent",
    "a child lost: replaced",
    "a child lost: stopping",
    "a child refused: name-taken",
    "bytes refused on `up`",
    "bytes refused on `down`",
    "bytes refused on `beacon`",
    "a journal FULL",
    "a journal OPEN",
)

SITUATIONS: Final = (
    *FIXED,
    *(name for name in EVENTS.values() if "{" not in name),
    *COUNTERS.values(),
    *MODELS,
)
"""All that a long soak has to meet."""


PROGRAMS: Final = (
    "a program that hears nothing",
    "a program that does not read",
    "a program of whose death the kernel tells",
    "sends repeated with their tags",
    *(f"an answer of habit {habit}" for habit in ANSWERS),
)
"""What a soak of a scenario with programs has to meet besides."""


STORES: Final = (
    *("a conflict", "a conflict with a deletion", "two changes of one tock", "a stale copy that was removed"),
    *("a split of the store", "a split of the store that is healed", "a link of the store that is down"),
    *("a node that joined the store", "a node that goes on under another name", "a store that lacks what nobody has"),
    *("deletions that are forgotten", "a node that is dropped", "a dropped node that begins anew"),
    *("changes that nobody took", "a store that is read only", "a watcher that was told of a gap"),
    *("a client told storage-full", "a client told chain-mismatch", "a client told exists", "a client told not-ready"),
    *("a client that nobody serves", "a disk lost", "a disk from the past", "a crash inside a write"),
    *("a batch that survived its crash unheard", "a snapshot taken", "a snapshot restored", "a sync of seconds"),
    *("a deaf ROUTER", "one block lost at a cut", "messages that TCP brought late", "a journal FULL", "a journal OPEN"),
    "a process that stood still longer than death",
)
"""What a soak of a store has to meet."""


CATALOG: Final = (
    *(f"an instance: {op}" for op in ("register", "update", "suspect", "active", "inactive", "remove")),
    *("a service dropped: silent", "a service dropped: restarted", "a service dropped: told"),
    *("a watcher that takes everything anew", "a watcher that hears nothing", "beats that go another way"),
    *("a broker that stood still", "a request that a broker denies", "a disk lost", "a crash inside a write"),
    *("a batch that survived its crash unheard", "a snapshot restored", "a journal FULL", "a deaf ROUTER"),
    *("a datagram lost", "a datagram doubled", "a datagram damaged", "a datagram late"),
)
"""What a soak of a catalog has to meet."""


BRIDGED: Final = (
    *("a bridge that is up", "a bridge that is down", "a name of another network that cannot be called"),
    *("a call without an answer", "a call that no bridge carries", "a broker that stood still", "a disk lost"),
    *(f"a tap that ended: {why}" for why in ("time", "stopped", "monitor silent", "silent")),
)
"""What a soak of brokers that are bridged has to meet."""


DOCUMENTED: Final = (
    *("a peer that is gone: silent", "a peer that is gone: restarted", "a peer that is silent"),
    *("an operation beyond a gap", "a conflict in a document", "a log without room on its disk"),
    *("a disk lost", "a disk from the past", "a crash inside a write", "a batch that survived its crash unheard"),
    *("a snapshot restored", "one block lost at a cut", "identities that the root had already"),
)
"""What a soak of documents has to meet."""


WHOLE: Final = (
    *("an instance: inactive", "a service dropped: restarted", "a watcher that takes everything anew"),
    *("a conflict", "a node that joined the store", "a conflict in a document", "a clone that has everything"),
    *("a root that starts again", "a node that becomes root", "messages sent again", "a snapshot restored"),
)
"""What a soak of everything has to meet."""


KEYS: Final = ("a key rotated", "a key switched", "a key revoked", "a machine let in again")
"""What a soak of keys that change has to meet."""


def situations_of(scenario: str) -> tuple[str, ...]:
    """What a soak of that scenario has to meet: each its own."""
    tables = {"store": STORES, "catalog": CATALOG, "bridges": BRIDGED, "documents": DOCUMENTED, "everything": WHOLE}
    for kind, names in tables.items():
        if scenario.startswith(kind):
            return names
    if scenario in MISCHIEF:
        return MISCHIEF[scenario]
    if scenario in KEY_SCENARIOS:
        return KEYS
    return () if scenario in (*FLEET_SCENARIOS, INTRUDERS) else SITUATIONS


MISCHIEF: Final[dict[str, tuple[str, ...]]] = {
    "strangers": ("told that your parent is elsewhere", "told that an older node has your name"),
    "twins": ("a copied disk", "a child refused: name-taken", "a child refused: two-nodes-one-id"),
    "damages": tuple(f"a journal {how}" for how in HARMS),
    "edits": ("a file that was edited",),
    "restarts": ("a crash inside a write",),
}
"""What a soak of a scenario with rare faults has to meet, and nothing else."""


def of_event(event: Any) -> str:
    """The situation that an event names; empty if none."""
    return EVENTS.get(type(event), "").format(event=event)


def of_counters(counters: Counters) -> Iterator[str]:
    """The situations that a carrier has met, by its counters."""
    return (name for field, name in COUNTERS.items() if getattr(counters, field))


def unmet(counts: Counter[str], names: tuple[str, ...] = SITUATIONS) -> list[str]:
    """The situations that were not met even once."""
    return [name for name in names if not counts[PREFIX + name]]
