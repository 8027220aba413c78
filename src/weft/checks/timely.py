"""Dead nodes are detected in time, and live ones are never called dead (CHK-018, CFG-046, REC-001).

Three rules, by the true state of cables, transports and processes: a child may not call its parent dead, nor the parent the
child, if they could reach each other all the time; a child whose parent is out of reach reports it within its limit of
silence; and when both run and the cable is whole, they are joined within `HEAL_NS`.
"""

from typing import ClassVar, Final

from weft.base.now import MILLISECOND, SECOND
from weft.checks.checker import Checker
from weft.checks.history import Fact

SLACK_NS: Final = 3 * SECOND  # one beat, the latest allowed wake-up, a turn's sync, and the transmission
CLOCK_SHARE: Final = 20  # a node's clock may run 5 % fast or slow (FLT-016)
HEAL_NS: Final = 30 * SECOND  # two back-offs of 5 s, hello, a beacon period of 5 s of which three may be lost
SILENCE: Final = "silent"
NEVER: Final = 1 << 62


def shown_s(span_ns: int) -> str:
    """Nanoseconds as text for people."""
    return f"{span_ns // SECOND}.{span_ns % SECOND // MILLISECOND:03} s"


class Process:
    """The true state of a node's process."""

    def __init__(self) -> None:
        self.is_up = False
        self.is_paused = False
        self.started_at = 0
        self.since = 0
        """When it was last started, paused or resumed."""
        self.dead_ns = 0
        self.parent = ""

    @property
    def stands(self) -> bool:
        return self.is_up and not self.is_paused


class Timely(Checker):
    """Dead nodes are reported in time, and live nodes never."""

    rule = "timely"
    HEARS: ClassVar = {
        ("info", "start"): "note_start",
        ("info", "crash"): "note_crash",
        ("info", "paused"): "note_paused",
        ("info", "resumed"): "note_resumed",
        ("info", "path"): "note_path",
        ("info", "link"): "note_link",
        ("info", "gauge"): "note_time",
        ("info", "quiet"): "note_time",
        ("event", "parent-joined"): "note_parent_joined",
        ("event", "parent-lost"): "note_parent_lost",
        ("event", "child-joined"): "note_child_joined",
        ("event", "child-lost"): "note_child_lost",
    }

    def __init__(self, heal_ns: int = HEAL_NS) -> None:
        self.heal_ns = heal_ns
        self.processes: dict[str, Process] = {}
        self.cut: dict[tuple[str, str], str] = {}
        """Cables that are not open, by direction."""
        self.links: dict[tuple[str, str], int] = {}
        """Transports that work, and since when."""
        self.joined: dict[str, int] = {}
        """Children that have reported that they are joined, and since when."""
        self.answered: dict[tuple[str, str], int] = {}
        """(parent, child), and since when: the parent's process that now runs knows the child."""
        self.mourn_by: dict[str, int] = {}
        self.join_by: dict[str, int] = {}

    def note_start(self, fact: Fact) -> None:
        process = self.processes[fact.node] = Process()
        _, process.parent, process.dead_ns = fact.value
        process.is_up, process.since, process.started_at = True, fact.at, fact.at
        self._changed(fact)

    def note_crash(self, fact: Fact) -> None:
        process = self.processes[fact.node]
        process.is_up = process.is_paused = False
        process.since = fact.at
        self.joined.pop(fact.node, None)
        self.answered = {pair: at for pair, at in self.answered.items() if pair[0] != fact.node}
        self._changed(fact)

    def note_paused(self, fact: Fact) -> None:
        self.processes[fact.node].is_paused = True
        self._moved(fact)

    def note_resumed(self, fact: Fact) -> None:
        self.processes[fact.node].is_paused = False
        self._moved(fact)

    def _moved(self, fact: Fact) -> None:
        self.processes[fact.node].since = fact.at
        self._changed(fact)

    def note_path(self, fact: Fact) -> None:
        here, there, state = fact.value
        if state == "open":
            self.cut.pop((here, there), None)
        else:
            self.cut[here, there] = state
        self._changed(fact)

    def note_link(self, fact: Fact) -> None:
        child, parent, is_up = fact.value
        if is_up:
            self.links.setdefault((child, parent), fact.at)
        else:
            self.links.pop((child, parent), None)
        self.note_time(fact)

    def note_parent_joined(self, fact: Fact) -> None:
        self.joined[fact.node] = fact.at
        self._changed(fact)

    def note_parent_lost(self, fact: Fact) -> None:
        self.joined.pop(fact.node, None)
        if fact.value[0] == SILENCE:
            self._judge(fact.node, self.processes[fact.node].parent, fact)
        self._changed(fact)

    def note_child_joined(self, fact: Fact) -> None:
        self.answered[fact.node, fact.value[0]] = fact.at
        self._changed(fact)

    def note_child_lost(self, fact: Fact) -> None:
        child, why = fact.value
        answered_at = self.answered.pop((fact.node, child), 0)
        process = self.processes.get(child)
        # A link that is older than the child's process belonged to the process before, which is dead.
        if why == SILENCE and process is not None and answered_at >= process.started_at:
            self._judge(child, fact.node, fact)
        self._changed(fact)

    def _judge(self, child: str, parent: str, fact: Fact) -> None:
        """Someone was called dead; that is wrong if it was within reach for as long as the silence had to last.

        A pause of the caller is no excuse: a node that wakes up late must first give its peers time to be heard (REC-001).
        """
        caller = fact.node
        called = parent if caller == child else child
        process = self.processes.get(called)
        if process is None or not process.stands or self._is_cut(child, parent):
            return
        silence = self.processes[caller].dead_ns
        within_reach = fact.at - max(self.links.get((child, parent), NEVER), process.since)
        if within_reach > silence - silence // CLOCK_SHARE:
            self.broken(f"{caller} calls {called} dead, which was within reach for {shown_s(within_reach)}", fact)

    def _is_cut(self, child: str, parent: str) -> bool:
        return (child, parent) in self.cut or (parent, child) in self.cut

    def _changed(self, fact: Fact) -> None:
        """The truth has changed: start or end the measured spans."""
        self.note_time(fact)
        for child, process in self.processes.items():
            if process.parent:
                self._span(child, process, fact.at)

    def _span(self, child: str, process: Process, at: int) -> None:
        parent = self.processes.get(process.parent)
        is_gone = parent is None or not parent.stands or self.cut.get((process.parent, child)) == "cut"
        if process.stands and is_gone and child in self.joined:
            bound = process.dead_ns + process.dead_ns // CLOCK_SHARE + SLACK_NS
            self.mourn_by.setdefault(child, at + bound)
        else:
            self.mourn_by.pop(child, None)
        is_whole = process.stands and parent is not None and parent.stands and not self._is_cut(child, process.parent)
        is_joined = child in self.joined and (process.parent, child) in self.answered
        if is_whole and not is_joined:
            self.join_by.setdefault(child, at + process.dead_ns + self.heal_ns)
        else:
            self.join_by.pop(child, None)

    def note_time(self, fact: Fact) -> None:
        """Time has passed: a span may have exceeded its limit."""
        for child, due in self.mourn_by.items():
            if due < fact.at:
                parent = self.processes[child].parent
                self.broken(f"{child} has not said by {shown_s(due)} that {parent} is out of reach", fact)
        for child, due in self.join_by.items():
            if due < fact.at:
                parent = self.processes[child].parent
                self.broken(f"{child} and {parent} are within reach and not joined by {shown_s(due)}", fact)
