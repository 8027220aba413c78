"""Compares what bridged brokers list of each other's services and their health, and what taps report, with the truth."""

from typing import ClassVar, Final

from weft.base.now import SECOND
from weft.checks.checker import Checker
from weft.checks.history import Fact
from weft.checks.timely import shown_s

SILENT_NS: Final = 3 * SECOND  # without a beat a bridge is down (BRI-003)
SLACK_NS: Final = 18 * SECOND  # for a slow sync (10 s), a clock that runs slow, and a late message
GONE: Final = ("inactive", "remove")


class Service:
    """The true state of one service."""

    def __init__(self) -> None:
        self.name = self.broker = ""
        self.is_up = self.is_ill = False

    @property
    def health(self) -> str:
        return "critical" if self.is_ill else "passing"


class OfServices(Checker):
    """The base of several rules: keeps the true state of all services."""

    HEARS: ClassVar = {("info", "service"): "note_service", ("info", "ill"): "note_ill"}

    def __init__(self) -> None:
        self.services: dict[str, Service] = {}

    def note_service(self, fact: Fact) -> None:
        what, name, _, brokers = fact.value
        service = self.services.setdefault(fact.node, Service())
        service.name, service.broker, service.is_up = name, brokers[0], what != "ended"

    def note_ill(self, fact: Fact) -> None:
        self.services.setdefault(fact.node, Service()).is_ill = fact.value[0]


class Broker:
    """The true state of one broker's node, and what it lists of other networks."""

    def __init__(self) -> None:
        self.stands_since: int | None = None
        """Since when its process runs without a pause; None: it does not run."""
        self.imports: set[tuple[str, str]] = set()


class Crossed(OfServices):
    """One network is the authority on each service; the others import it as `name@net` (BRI-005, BRI-006, BRI-013).

    No network imports its own service, or one of a network that has no such service. A broker that is cut off from all
    others soon lists nothing of them; when all connections are back, each lists all running services and nothing else.
    """

    rule = "crossed"
    HEARS: ClassVar = {
        **OfServices.HEARS,
        ("info", "opened"): "note_opened",
        ("info", "crash"): "note_crash",
        ("info", "paused"): "note_crash",
        ("info", "resumed"): "note_resumed",
        ("info", "path"): "note_path",
        ("info", "gauge"): "note_time",
        ("info", "imported"): "note_imported",
        ("info", "imports"): "note_imports",
    }

    def __init__(self) -> None:
        super().__init__()
        self.brokers: dict[str, Broker] = {}
        self.cuts: dict[tuple[str, str], int] = {}
        """Directions in which nothing passes, and since when."""

    def note_opened(self, fact: Fact) -> None:
        broker = self.brokers.setdefault(fact.node, Broker())
        broker.stands_since, broker.imports = fact.at, set()

    def note_crash(self, fact: Fact) -> None:
        if fact.node in self.brokers:
            self.brokers[fact.node].stands_since = None

    def note_resumed(self, fact: Fact) -> None:
        if fact.node in self.brokers:
            self.brokers[fact.node].stands_since = fact.at

    def note_path(self, fact: Fact) -> None:
        here, there, state = fact.value
        if state == "cut":
            self.cuts[here, there] = fact.at
        else:
            self.cuts.pop((here, there), None)

    def note_time(self, fact: Fact) -> None:
        """Time has passed: unreachable networks may have no entry left."""
        for name, broker in self.brokers.items():
            since = self._alone_since(name, broker)
            if broker.imports and since is not None and fact.at - since > SILENT_NS + SLACK_NS:
                key = min(broker.imports)
                self.broken(f"{name} is cut off for {shown_s(fact.at - since)}, and lists {key[0]} {key[1]}", fact)

    def _alone_since(self, name: str, broker: Broker) -> int | None:
        """Since when no other broker can be reached; None: one can, or the node does not run."""
        if broker.stands_since is None:
            return None
        since = broker.stands_since
        for other in self.brokers:
            cut = [at for way in ((name, other), (other, name)) if (at := self.cuts.get(way)) is not None]
            if other != name and not cut:
                return None
            since = max(since, *cut, since)
        return since

    def note_imported(self, fact: Fact) -> None:
        _, net, name, host, state = fact.value
        service, listed = self.services.get(host), (f"{name}@{net}", host)
        if net == fact.node:
            self.broken(f"{fact.node} lists its own {name} {host} as one of another network", fact)
        if service is None or (service.name, service.broker) != (name, net):
            self.broken(f"{fact.node} lists {name}@{net} {host}, which {net} has not", fact)
        broker = self.brokers.setdefault(fact.node, Broker())
        (broker.imports.discard if state in GONE else broker.imports.add)(listed)

    def note_imports(self, fact: Fact) -> None:
        listed = {(name, host) for name, host, _ in fact.value}
        due = {
            (f"{service.name}@{service.broker}", host)
            for host, service in self.services.items()
            if service.is_up and service.broker != fact.node
        }
        for name, host in sorted(listed ^ due):
            how = "does not list" if (name, host) in due else "lists, though it does not run,"
            self.broken(f"{fact.node} {how} {name} {host} in the end", fact)


class Healthy(OfServices):
    """At rest every broker lists the true health of every service (BEA-024)."""

    rule = "healthy"
    HEARS: ClassVar = {**OfServices.HEARS, ("info", "health"): "note_listed", ("info", "imports"): "note_listed"}

    def note_listed(self, fact: Fact) -> None:
        for name, host, health in fact.value:
            service = self.services.get(host)
            if service is not None and health != service.health:
                self.broken(f"{fact.node} calls {name} {host} {health}, which is {service.health}", fact)


class CalledOnce(OfServices):
    """A call over bridges is served at most once, and answered by an instance of the called service (BRI-011)."""

    rule = "called_once"
    HEARS: ClassVar = {**OfServices.HEARS, ("info", "served"): "note_served", ("ok", "called"): "note_called"}

    def __init__(self) -> None:
        super().__init__()
        self.served: dict[str, Fact] = {}

    def note_served(self, fact: Fact) -> None:
        before = self.served.setdefault(fact.value[0], fact)
        if before is not fact:
            self.broken(f"{fact.node} serves call {fact.value[0]}, which {before.node} has served", before, fact)

    def note_called(self, fact: Fact) -> None:
        call, name, answered, host = fact.value
        service, served = self.services.get(host), self.served.get(call)
        if answered != call or served is None or served.node != host:
            self.broken(f"call {call} of {fact.node} has an answer of {host} to {answered}", fact)
        if service is None or f"{service.name}@{service.broker}" != name:
            self.broken(f"{fact.node} called {name}, and {host} answered", fact)


class Tapped(Checker):
    """Taps copy messages in order, and count those that they leave out (MON-003, MON-004).

    The messages that a service has seen are those copied, dropped and left out; no copy comes twice, or before its message.
    """

    rule = "tapped"
    HEARS: ClassVar = {
        ("info", "served"): "note_served",
        ("info", "copied"): "note_copied",
        ("info", "tapped"): "note_tapped",
        ("info", "untapped"): "note_untapped",
    }

    def __init__(self) -> None:
        self.served: set[str] = set()
        self.last: dict[tuple[str, str], int] = {}
        """By tap and instance: the number of the last copy."""

    def note_served(self, fact: Fact) -> None:
        self.served.add(fact.value[0])

    def note_copied(self, fact: Fact) -> None:
        tap, instance, number, call = fact.value
        if number <= self.last.get((tap, instance), 0):
            self.broken(f"copy {number} of {instance} comes again, or late", fact)
        if call and call not in self.served:
            self.broken(f"copy {number} of {instance} is of call {call}, which nobody has served yet", fact)
        self.last[tap, instance] = number

    def note_tapped(self, fact: Fact) -> None:
        tap, instance, *counts = fact.value
        self._judge(counts, fact)
        if counts[1] < self.last.get((tap, instance), 0):
            self.broken(f"{instance} counts {counts[1]} copies, {self.last[tap, instance]} were published", fact)

    def note_untapped(self, fact: Fact) -> None:
        self._judge(fact.value[1:], fact)

    def _judge(self, counts: list[int], fact: Fact) -> None:
        seen, *others = counts
        if seen != sum(others):
            self.broken(f"of {seen} messages {sum(others)} were copied, dropped or left out", fact)


BRIDGE_RULES: tuple[type[Checker], ...] = (Crossed, Healthy, CalledOnce, Tapped)
"""The checkers for brokers that are bridged, besides those for all brokers."""
