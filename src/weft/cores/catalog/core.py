"""The broker of services: which services exist, where, and whether they live (docs/catalog.md; seed: Core Catalog Service).

registry      registered instances, by the table of instances; records: validation; memory: journal records
serving       messages on the ROUTER, by the table of connections; queries: `dbp.…`; answers: lookups
checks        whether a service works, as the broker sees it
liveness      beats, probes, silence, and holding evictions; beacons: where the broker is
publishing    every change, for watchers
sources       publishers: values keeps the last value of each topic, logs collects log records
keeping       last values that outlive a restart
taps          copies of messages of services, for clients that ask for them
bridges       other networks: their entries, calls and publications
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from weft.base.chance import Chance
from weft.base.effects import Effect, SendFailed, Source
from weft.base.now import Now
from weft.base.records import CoreRecord, Entry
from weft.cores.catalog import messages
from weft.cores.catalog.answers import Answers
from weft.cores.catalog.beacons import Beacons
from weft.cores.catalog.book import Book
from weft.cores.catalog.bridges import Bridges
from weft.cores.catalog.checks import Checks
from weft.cores.catalog.connections import Connections
from weft.cores.catalog.context import (
    BEATS,
    BRIDGE,
    CALLS,
    DIAL,
    EVENTS,
    MONITOR,
    PROBE,
    RELAY,
    ROUTER,
    VALUES,
    Context,
)
from weft.cores.catalog.keeping import Keeping
from weft.cores.catalog.liveness import Liveness
from weft.cores.catalog.logs import Logs
from weft.cores.catalog.messages import CatalogSettings
from weft.cores.catalog.publishing import Publishing
from weft.cores.catalog.queries import Queries
from weft.cores.catalog.registry import Registry
from weft.cores.catalog.serving import Serving
from weft.cores.catalog.show import facts
from weft.cores.catalog.sources import Sources
from weft.cores.catalog.taps import Taps
from weft.cores.catalog.values import Values
from weft.cores.kit.timers import Parts
from weft.wire.catalog.messages import PONG, REQUEST
from weft.wire.multipart import BAD_SUM


class Catalog:
    """The broker of one node."""

    name = "catalog"

    def __init__(self, settings: CatalogSettings, node: bytes, era: int, chance: Chance) -> None:
        self.context = context = Context(settings, node, era, chance)
        self.budget = context.budget
        self.book = book = Book(context)
        self.registry = Registry(context, book, lambda: self.liveness)
        self.connections = Connections(context)
        self.answers = Answers(context, book)
        self.queries = queries = Queries(
            context, book, self.answers, alive=lambda instance: self.liveness.shown(instance, context.now)
        )
        self.publishing = publishing = Publishing(context, book, queries)
        self.values = Values(context, book, queries, publishing)
        self.keeping = Keeping(context, self.values)
        self.logs = Logs(context, book, queries, publishing)
        self.sources = Sources(context, book, self.values, self.logs)
        self.serving = Serving(context, book, self.registry, self.connections, queries)
        self.checks = Checks(context, book, self.registry)
        self.bridges = Bridges(context, book, self.registry, self.answers, publishing, self.values, queries)
        self.serving.asking = self.bridges.asking
        self.taps = Taps(context, book, self.serving, queries)
        self.liveness = Liveness(context, book, self.registry, self.serving)
        queries.gauges["held"] = lambda: {"": float(self.liveness.is_held)}
        self.beacons = Beacons(context)
        self._due: int | None = None
        self._is_due_known = False
        self._parts = Parts(
            *(self.liveness, self.beacons, publishing, self.values, self.keeping, self.logs, self.taps),
            *(self.bridges, self.checks),
        )

    # Memory

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Restore registered instances; each gets time to send a sign of life (CAT-051)."""
        self.context.now = now
        self.registry.restore(self.keeping.noting(self.logs.noting(entries)), now)

    def condense(self) -> Iterable[CoreRecord]:
        yield from self.registry.condense()
        yield from self.keeping.condense()
        yield from self.logs.condense()

    def facts(self) -> dict[str, Any]:
        """Numbers for status and metrics, as plain data."""
        return facts(self)

    # Hearing

    def receive(self, message: Any, source: Source, now: Now) -> None:
        """Process a message of one of the channels."""
        self._begin(now)
        HEARD[source.channel](self, message, source, now)
        # A lookup can make nothing due earlier, unless it finds an instance again; the next tick then notices it.
        is_lookup = source.channel == ROUTER and message.command == REQUEST and not self.context.records
        self._is_due_known = self._is_due_known and is_lookup

    def _subscribed(self, message: Any, source: Source, now: Now) -> None:
        for part in (self.publishing, self.values, self.logs, self.bridges.crossing):
            part.subscribed(message, now)

    def _probed(self, message: Any, source: Source, now: Now) -> None:
        self.liveness.probed(message, source.peer, now)  # any answer shows that it is alive
        if message.command != PONG:
            self.logs.hear_refill(message, source.peer, now)

    def _begin(self, now: Now) -> None:
        """Every verb starts here: a turn that comes too late shows that the process stood still (BEA-022)."""
        self.liveness.note_late(now)
        self.context.now = now

    # Orders

    def command(self, order: Any, now: Now) -> None:
        self._begin(now)
        self._is_due_known = False
        ORDERS[type(order)](self, order, now)

    def _open(self, order: messages.Ports, now: Now) -> None:
        """The sockets are open: send beacons."""
        context, settings = self.context, self.context.settings
        context.beats_port, context.events_port, context.monitor_port = order.beats, order.events, order.monitor
        self.answers.all()  # after a restart, build all answers before the first lookup needs them
        context.bridge_port = order.bridge
        self.beacons.open(now)
        self.bridges.open(now)
        self.checks.open(now)
        self.keeping.open(now)
        self.sources.open(now)
        self.publishing.open(now)
        context.tell(messages.CatalogOpened(context.epoch, settings.port, len(list(self.book.all()))))
        if settings.is_exposed:
            context.tell(messages.CatalogExposed(settings.host))

    def _hold_back(self, order: messages.HoldBack, now: Now) -> None:
        self.context.is_full = order.is_full

    def _stop(self, order: messages.Stop, now: Now) -> None:
        self.beacons.stop()
        self.bridges.stop()
        self.keeping.save()

    def _garbled(self, order: messages.Garbled, now: Now) -> None:
        if order.channel not in (BRIDGE, DIAL):
            self.serving.garbled(order, now)
            return
        link = self.bridges.links.get((order.channel, order.peer))
        if link is not None and link.says_sums:  # it has never sent anything unreadable, so this was altered on the way
            self.bridges.drop(link, Source(order.channel, order.peer), BAD_SUM)

    def _unsent(self, order: SendFailed, now: Now) -> None:
        self.context.count("unroutable")
        if order.channel == ROUTER:
            self.serving.failed(order.peer)
        elif order.channel in (BRIDGE, DIAL):
            self.bridges.failed(order)

    # Time and what follows

    def wake(self, now: Now) -> None:
        self._begin(now)
        self._is_due_known = False
        self._parts.wake(now)

    def deadline(self) -> int | None:
        if not self._is_due_known:
            self._due = self._parts.deadline()
            self._is_due_known = True
        return self._due

    def effects(self) -> list[Effect]:
        return self.context.take()


HEARD: Final[dict[str, Callable[[Catalog, Any, Source, Now], None]]] = {
    ROUTER: lambda catalog, message, source, now: catalog.serving.hear(message, source, now),
    EVENTS: Catalog._subscribed,
    BEATS: lambda catalog, message, source, now: catalog.liveness.beats(message, source.peer, now),
    PROBE: Catalog._probed,  # the table stands below the class
    MONITOR: lambda catalog, message, source, now: catalog.taps.hear(message, source, now),
    BRIDGE: lambda catalog, message, source, now: catalog.bridges.hear(message, source, now),
    DIAL: lambda catalog, message, source, now: catalog.bridges.hear(message, source, now),
    RELAY: lambda catalog, message, source, now: catalog.bridges.relays.hear(message, source, now),
    CALLS: lambda catalog, message, source, now: catalog.bridges.relays.answered(message, source, now),
    VALUES: lambda catalog, message, source, now: catalog.sources.hear(message, source.peer, now),
}
"""Which method processes a message, by channel."""

ORDERS: Final[dict[type, Callable[[Catalog, Any, Now], None]]] = {
    messages.Ports: Catalog._open,
    messages.Garbled: Catalog._garbled,
    messages.RelayOpened: lambda catalog, order, now: catalog.bridges.relays.opened(order, now),
    messages.CheckDone: lambda catalog, order, now: catalog.checks.done(order, now),
    messages.HoldBack: Catalog._hold_back,
    messages.Stop: Catalog._stop,
    SendFailed: Catalog._unsent,
}
