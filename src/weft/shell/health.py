"""The health of a node: one check for each thing that can be wrong, with a sentence and a remedy (OBS-005).

A check looks only at what is visible outside the cores. The node's state is that of its worst check. `since` is when a check
entered its present state; so the checks run every few seconds even if nobody asks.
"""

import os
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from weft.base.now import SECOND, Now
from weft.base.settings import MINUTE
from weft.cores.carrier.child import Child
from weft.cores.carrier.core import Carrier
from weft.cores.carrier.states import State as Link
from weft.cores.drain.messages import LakeBack, LakeFailed, LakeFull
from weft.cores.measurement.messages import ClockStepped
from weft.node.guard import TIGHT_PERCENT, MemoryGuard
from weft.node.node import Node
from weft.node.settings import MIB, NodeSettings
from weft.shell.journal import Journal, State

OK: Final = "ok"
DEGRADED: Final = "degraded"
FAILED: Final = "failed"
HEARD: Final = frozenset({LakeFull, LakeFailed, LakeBack, ClockStepped})
"""Events about the lake and the clock that the checks need."""
STEP_SHOWN_NS: Final = 10 * MINUTE  # how long a step of the clock is reported
REFUSED_LOOK: Final = "see `why` of carrier.parent-refused in its log"
REFUSED_DO: Final = {
    "busy": "stop the other node of this name; if it runs on a copy of this state directory, and the fabric is closed, weft key rotate NAME at the root shuts out the one that has no place",
    "version": "weft upgrade, so that both speak the same version",
}
"""What to do when the parent refused the hello, by the code of its answer."""
STATM_BYTES_MAX: Final = 256  # seven numbers
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
LOOK: Final = "look at who sends to its ports (weft status: which core holds what); or "


class Check(NamedTuple):
    """What one check found; `do` is empty if there is nothing to do."""

    state: str
    text: str
    do: str = ""


class Machine(NamedTuple):
    """What the checks need to know about the machine."""

    resident_bytes: Callable[[], int]
    """Memory of this process."""
    free_bytes: Callable[[], int]
    """Free bytes on the file system of the journal."""
    open_files: Callable[[], int]
    """Descriptors that this process has open."""


def resident_bytes() -> int:
    """Resident memory of this process, as the kernel counts it."""
    descriptor = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return int(os.read(descriptor, STATM_BYTES_MAX).split()[1]) * PAGE_BYTES
    finally:
        os.close(descriptor)


def open_files() -> int:
    """How many descriptors this process has open."""
    return len(os.listdir("/proc/self/fd"))


class Health:
    """Checks one node; changes nothing."""

    def __init__(
        self, settings: NodeSettings, node: Node, journal: Journal, machine: Machine, guard: MemoryGuard
    ) -> None:
        self.settings, self.node, self.journal, self.machine = settings, node, journal, machine
        self.guard = guard
        self.lake_trouble = ""
        """Why the lake cannot be written; empty: it can."""
        self.steps: tuple[int, int] | None = None
        """When the wall clock jumped last (monotonic ns), and by how many ns."""
        self.refusals: Callable[[], list[str]] = list
        """Doors that refuse this node's key (SEC-052)."""
        self.now = Now(0, 0)
        self._since: dict[str, tuple[str, int]] = {}

    def hear(self, event: Any, now: Now) -> None:
        """Note one of `HEARD`."""
        if isinstance(event, LakeFull | LakeFailed):
            full = "its device is full" if isinstance(event, LakeFull) else "it cannot be written"
            self.lake_trouble = f"{full}: {event.detail}"
        elif isinstance(event, LakeBack):
            self.lake_trouble = ""
        elif isinstance(event, ClockStepped):
            self.steps = (now.mono, event.by_ns)

    def look(self, now: Now) -> list[dict[str, Any]]:
        """All checks, as `/healthz` shows them; `since` in seconds since 1970 by this node's own clock."""
        self.now = now
        shown = []
        for name, examine in CHECKS.items():
            check = examine(self)
            if check is None:
                continue
            if self._since.get(name, ("", 0))[0] != check.state:
                self._since[name] = (check.state, now.wall // SECOND)
            since = self._since[name][1]
            shown.append({"name": name, "state": check.state, "since": since, "text": check.text, "do": check.do})
        return shown

    @property
    def is_ready(self) -> bool:
        """Whether the node is in its place: joined, or at the root with its lake available."""
        carrier = self.node.cores.get("carrier")
        if "drain" in self.node.cores:
            return not self.lake_trouble
        return not isinstance(carrier, Carrier) or carrier.state in (Link.OPEN, Link.STOPPED)

    def journal_check(self) -> Check:
        """Whether the journal accepts new records, and whether damage waits for acceptance."""
        journal = self.journal
        if journal.state is State.FAILED:
            return Check(FAILED, "the disk failed: nothing is written any more", "weft journal verify; see the disk")
        if journal.state is State.FULL:
            lost = f"{self.node.unrecorded_samples} samples were not kept"
            return Check(
                DEGRADED, f"no room: nothing new is numbered; {lost}", "make room, or more [journal] megabytes"
            )
        if damaged := journal.stats.damaged:
            first = ", ".join(f"{file} from record {lsn} on" for file, lsn, _ in sorted(journal.damage.open)[:1])
            text = f"{damaged} places of the journal are damaged ({first}); what stands behind them is used"
            where = journal.directory
            return Check(DEGRADED, text, f"weft journal verify {where}, then weft journal accept-loss {where}")
        return Check(OK, "open")

    def space_check(self) -> Check:
        """Whether the budget or the device will be used up soon (JRN-031)."""
        journal, free = self.journal, self.machine.free_bytes()
        limits = journal.limits
        text = f"{journal.bytes_used // MIB} of {limits.budget_bytes // MIB} MiB are used, {free // MIB} MiB are free"
        if free < limits.free_bytes_min + limits.ballast_bytes:
            return Check(DEGRADED, text, "make room on the device of the state directory")
        if journal.is_tight:
            return Check(DEGRADED, text, "mend the way to the parent or the lake, or more [journal] megabytes")
        return Check(OK, text)

    def lake_check(self) -> Check | None:
        """Whether segments can be written, if this node writes any."""
        if "drain" not in self.node.cores:
            return None
        if self.lake_trouble:
            return Check(DEGRADED, f"{self.lake_trouble}; the journal keeps what comes", "mend [lake] path; it goes on")
        carrier = self.node.cores.get("carrier")
        if isinstance(carrier, Carrier) and (why := carrier.take_over.trouble):
            text = f"what it holds could not be read: {why}; what comes home to this new root may be kept twice"
            return Check(DEGRADED, text, "mend [lake] path; it is read again by itself")
        return Check(OK, "written")

    def parent_check(self) -> Check | None:
        """Whether the records kept here go up; a root has no parent, but may be the root of nobody."""
        carrier = self.node.cores.get("carrier")
        if not isinstance(carrier, Carrier):
            return None
        if self.settings.level == "root":
            return None if len(carrier.parent.links) else self._shut_out_check()
        child = carrier.child
        parent = (child.endpoint and child.parent_name) or child.endpoint or self.settings.node.parent
        if carrier.state is Link.OPEN:
            return Check(OK, f"joined {parent}")
        if self.refusals():
            text = f"{', '.join(self.refusals())} refuses this node's key"
            return Check(DEGRADED, text, "weft key ls at the root; weft join with another token, as this node")
        waiting = f"{carrier.counters.spool_records} records wait on disk"
        if not parent:
            do = "start the root, or name a node that runs in [node] join; weft status at the root lists who has no place"
            return Check(DEGRADED, f"the root has given it no place, or has stopped it; {waiting}", do)
        text, do = _why_apart(child, parent)
        return Check(DEGRADED, f"{text}; {waiting}", do)

    def _shut_out_check(self) -> Check | None:
        """Whether others refuse the key of a root that has no children: there is another root, which has revoked it."""
        if not self.refusals():
            return None
        text = f"{', '.join(self.refusals())} refuses the key of this root, and no node is below it"
        do = "weft status of such a node names its root; weft join with a token of that one, as this node"
        return Check(DEGRADED, text, do)

    def clock_check(self) -> Check:
        """Whether the wall clock has jumped lately."""
        if self.steps is None or self.now.mono - self.steps[0] > STEP_SHOWN_NS:
            return Check(OK, "steady")
        at, by_ns = self.steps
        text = f"jumped by {by_ns / SECOND:+.3f} s, {(self.now.mono - at) // SECOND} s ago; that batch is marked"
        return Check(DEGRADED, text, "look at the time service")

    def memory_check(self) -> Check:
        """How close the process is to its memory limit, and each core to its budget (SEC-014, FLD-032)."""
        resident, limit = self.machine.resident_bytes(), self.settings.memory_bytes
        text = f"{resident // MIB} of {limit // MIB} MiB"
        if self.guard.is_tight or resident * 100 >= limit * TIGHT_PERCENT:
            return Check(DEGRADED, f"{text}: nothing more is taken", f"{LOOK}raise [limits] memory_megabytes")
        if short := self.guard.short(self.now):
            what = f"{text}, but no memory is left for more in {', '.join(short)}"
            return Check(DEGRADED, what, f"{LOOK}[limits.cores] gives that core more")
        return Check(OK, text)

    def alerts_check(self) -> Check | None:
        """At a root: whether all alerts of the fleet's configuration can fire (MET-003)."""
        ledger = self.node.planner.dead_alerts
        if ledger is None or "alerts" not in self.node.cores:
            return None
        dead = ledger.found()
        if not dead:
            return Check(OK, "all can fire")
        key, why = next(iter(dead.items()))
        count = "1 alert" if len(dead) == 1 else f"{len(dead)} alerts"
        return Check(
            DEGRADED, f"{count} can never fire: {key}: {why}", "weft alerts names all; weft config set or delete"
        )


CHECKS: Final[dict[str, Callable[[Health], Check | None]]] = {
    "journal": Health.journal_check,
    "space": Health.space_check,
    "lake": Health.lake_check,
    "parent": Health.parent_check,
    "clock": Health.clock_check,
    "memory": Health.memory_check,
    "alerts": Health.alerts_check,
}


def worst(checks: list[dict[str, Any]]) -> str:
    """The state of the node: that of its worst check."""
    states = {check["state"] for check in checks}
    return next((state for state in (FAILED, DEGRADED) if state in states), OK)


def _why_apart(child: Child, parent: str) -> tuple[str, str]:
    """What keeps a node from its parent, as far as it knows, and what to do."""
    if child.refused_with is not None:
        why, text = child.refused_with
        return f"{parent} refused this node: {text}", REFUSED_DO.get(why, REFUSED_LOOK)
    if child.state is Link.STOPPED:
        return f"{parent} has no room", f"look at the journal of {parent}"
    return f"{parent} does not answer", f"see whether {parent} runs and can be reached"
