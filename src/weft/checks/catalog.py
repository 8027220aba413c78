"""What a broker says of services, against what is true of them (docs/catalog.md).

The history lines are these. `service`: what becomes of a service's process, and which brokers it may register at. `path`,
`start`, `crash`, `paused`, `resumed`: cables, and the brokers' nodes. `listed`: a change of one instance is durable at a
broker. `catalog` (sent): an approval or an event leaves that names a change. `catalog` (info): who is listed after quiet.
"""

from typing import ClassVar, Final

from weft.base.now import SECOND
from weft.checks.checker import Checker
from weft.checks.history import Fact
from weft.checks.timely import shown_s

LIVENESS: Final = 3  # intervals of silence after which an instance is gone
CLOCK_SHARE: Final = 20  # a clock may run 5 % fast or slow (FLT-016)
TCP_NS: Final = 62 * SECOND  # time until TCP works again after a cut, or both ends have noticed a broken connection
# seconds for a slow sync (10), a restored instance's first sign of life (5), and a late datagram
SLACK_NS: Final = 18 * SECOND
NEVER: Final = 1 << 62
LISTED: Final = frozenset({"register", "update", "suspect", "active", "health"})


class Truth:
    """The true state of a service, whatever brokers believe."""

    def __init__(self) -> None:
        self.is_up = self.is_paused = False
        self.gave_up_at = -TCP_NS
        """When TCP last broke its connections."""
        self.since = NEVER
        """When its process was last started, paused, resumed or ended."""
        self.name = ""
        self.interval_ns = 0
        self.brokers: list[str] = []

    @property
    def stands(self) -> bool:
        return self.is_up and not self.is_paused


class Node:
    """The true state of a broker's process."""

    def __init__(self) -> None:
        self.is_up = self.is_paused = False
        self.since = 0
        self.listed: dict[str, str] = {}
        """Hosts that it lists as live, and the last operation on each."""


class Living(Checker):
    """Dead services are reported in time, only dead ones are, and in the end all live ones are listed (CHK-018)."""

    rule = "timely"
    HEARS: ClassVar = {
        ("info", "service"): "note_service",
        ("info", "start"): "note_start",
        ("info", "crash"): "note_crash",
        ("info", "disk"): "note_disk",
        ("info", "paused"): "note_paused",
        ("info", "resumed"): "note_resumed",
        ("info", "path"): "note_path",
        ("info", "gave-up"): "note_gave_up",
        ("info", "gauge"): "note_time",
        ("info", "catalog"): "note_catalog",
        ("info", "quiet"): "note_quiet",
        ("durable", "listed"): "note_listed",
    }

    def __init__(self) -> None:
        self.services: dict[str, Truth] = {}
        self.nodes: dict[str, Node] = {}
        self.paths: dict[tuple[str, str], tuple[str, int]] = {}
        """Cables that have had a fault: their state, and since when."""
        self.due: dict[tuple[str, str], int] = {}
        """(broker, host): by when it has to be called gone."""
        self.shown: dict[str, set[str]] = {}
        """After quiet: hosts that each broker lists as live."""

    # The true state

    def note_service(self, fact: Fact) -> None:
        what, name, interval_ns, brokers = fact.value
        truth = self.services.setdefault(fact.node, Truth())
        truth.name, truth.interval_ns, truth.brokers = name, interval_ns, brokers
        truth.is_up = what != "ended"
        truth.is_paused = what == "paused"
        truth.since = fact.at
        self._changed(fact)

    def note_start(self, fact: Fact) -> None:
        node = self.nodes.setdefault(fact.node, Node())
        node.is_up, node.is_paused, node.since = True, False, fact.at
        self._changed(fact)

    def note_crash(self, fact: Fact) -> None:
        node = self.nodes[fact.node]
        node.is_up, node.since = False, fact.at
        self._changed(fact)

    def note_disk(self, fact: Fact) -> None:
        self.nodes[fact.node].listed.clear()

    def note_paused(self, fact: Fact) -> None:
        self._move(fact, is_paused=True)

    def note_resumed(self, fact: Fact) -> None:
        self._move(fact, is_paused=False)

    def _move(self, fact: Fact, *, is_paused: bool) -> None:
        node = self.nodes.setdefault(fact.node, Node())
        node.is_paused, node.since = is_paused, fact.at
        self._changed(fact)

    def note_path(self, fact: Fact) -> None:
        here, there, state = fact.value
        self.paths[here, there] = state, fact.at
        self._changed(fact)

    def note_gave_up(self, fact: Fact) -> None:
        if fact.node in self.services:
            self.services[fact.node].gave_up_at = fact.at

    def _reach(self, host: str, broker: str) -> tuple[bool, bool, int]:
        """Whether the path works in both directions, whether nothing arrives, and since when both sides know."""
        to, at = self.paths.get((host, broker), ("open", -TCP_NS))
        back, since = self.paths.get((broker, host), ("open", -TCP_NS))
        return to == back == "open", to == "cut", max(at, since, self.services[host].gave_up_at) + TCP_NS

    # What the broker reports

    def note_listed(self, fact: Fact) -> None:
        _, _, host, op, reason = fact.value
        node, truth = self.nodes[fact.node], self.services.get(host)
        if op in LISTED:
            node.listed[host] = op
        else:
            node.listed.pop(host, None)
        if op == "inactive" and reason == "silent" and truth is not None:
            self._judge(host, truth, fact)
        self._changed(fact)

    def _judge(self, host: str, truth: Truth, fact: Fact) -> None:
        """A service is called dead: that is wrong if it was reachable during the whole time of silence.

        A pause of the broker itself is no excuse (BEA-022).
        """
        is_whole, _, since = self._reach(host, fact.node)
        within_reach = fact.at - max(since, truth.since)
        silence = LIVENESS * truth.interval_ns
        if is_whole and truth.stands and within_reach > silence + SLACK_NS:
            self.broken(f"{fact.node} calls {host} dead, which was within reach for {shown_s(within_reach)}", fact)

    def _changed(self, fact: Fact) -> None:
        """The truth or the list has changed: start or end the measured spans."""
        self.note_time(fact)
        for broker, node in self.nodes.items():
            for host, truth in self.services.items():
                self._span(broker, node, host, truth)

    def _span(self, broker: str, node: Node, host: str, truth: Truth) -> None:
        _, is_cut, since = self._reach(host, broker)
        is_gone = not truth.stands or is_cut
        if host in node.listed and is_gone and node.is_up and not node.is_paused:
            silence = LIVENESS * truth.interval_ns
            began = max(0 if truth.stands else truth.since, since, node.since)
            self.due.setdefault((broker, host), began + silence + silence // CLOCK_SHARE + SLACK_NS)
        else:
            self.due.pop((broker, host), None)

    def note_time(self, fact: Fact) -> None:
        """Time has passed: a span may have exceeded its limit."""
        for (broker, host), due in self.due.items():
            if due < fact.at:
                self.broken(f"{broker} still lists {host} at {shown_s(fact.at)}, which is gone", fact)

    # In the end

    def note_catalog(self, fact: Fact) -> None:
        self.shown[fact.node] = {host for _, host in fact.value[2]}

    def note_quiet(self, fact: Fact) -> None:
        for host, truth in self.services.items():
            at = [broker for broker in truth.brokers if host in self.shown.get(broker, ())]
            if truth.stands and not at:
                self.broken(f"{host} runs, and no broker lists it in the end", fact)
            if not truth.is_up and at:
                self.broken(f"{host} does not run, and {at[0]} lists it in the end", fact)


class SaidLater(Checker):
    """No approval and no event leaves a broker before the change in it is durable (CHK-005)."""

    rule = "wall"
    HEARS: ClassVar = {("durable", "announced"): "note_announced", ("sent", "catalog"): "note_sent"}

    def __init__(self) -> None:
        self.last: dict[str, int] = {}

    def note_announced(self, fact: Fact) -> None:
        self.last[fact.value[0]] = fact.value[1]

    def note_sent(self, fact: Fact) -> None:
        epoch, index = fact.value
        if index > self.last.get(epoch, 0):
            self.broken(f"{fact.node} speaks of change {index} of {epoch}, which is not durable", fact)


class Unforged(Checker):
    """Messages that anybody could have sent register no service and end no registration (CHK-021, BEA-011, BEA-013)."""

    rule = "sealed"
    HEARS: ClassVar = {("info", "service"): "note_service", ("durable", "listed"): "note_listed"}

    def __init__(self) -> None:
        self.left: dict[str, bool] = {}
        """Services that have ever run, and whether they have said goodbye since their last start."""

    def note_service(self, fact: Fact) -> None:
        what = fact.value[0]
        if what in ("started", "stopped"):
            self.left[fact.node] = what == "stopped" or self.left.get(fact.node, False)

    def note_listed(self, fact: Fact) -> None:
        _, name, host, op, reason = fact.value
        if host not in self.left:
            self.broken(f"{fact.node} lists {name}/{host}, which nobody has registered", fact)
        if op == "inactive" and reason == "left" and not self.left[host]:
            self.broken(f"{fact.node} believes that {name}/{host} has left, which never said so", fact)


class Departed(Checker):
    """A service that said goodbye is not listed before it is restarted, whatever comes late (CHK-011, BEA-013)."""

    rule = "no_resurrection"
    HEARS: ClassVar = {("info", "service"): "note_service", ("durable", "listed"): "note_listed"}

    def __init__(self) -> None:
        self.starts: dict[str, int] = {}
        self.stopped: dict[str, int] = {}
        """Which start of a service has said goodbye last."""
        self.left: dict[tuple[str, str], Fact] = {}
        """(broker, service): the fact with which it left."""

    def note_service(self, fact: Fact) -> None:
        if fact.value[0] == "started":
            self.starts[fact.node] = self.starts.get(fact.node, 0) + 1
        elif fact.value[0] == "stopped":
            self.stopped[fact.node] = self.starts[fact.node]

    def note_listed(self, fact: Fact) -> None:
        _, name, host, op, reason = fact.value
        if op == "inactive" and reason == "left":
            self.left[fact.node, host] = fact
        elif op in LISTED:
            goodbye = self.left.pop((fact.node, host), None)
            if goodbye is not None and self.starts.get(host) == self.stopped.get(host):
                self.broken(
                    f"{fact.node} lists {name}/{host} again, which left and was not started anew", goodbye, fact
                )


CATALOG_RULES: tuple[type[Checker], ...] = (SaidLater, Unforged, Departed, Living)
"""The checkers that judge brokers by the true state of services."""
