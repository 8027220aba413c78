"""One session of a node: a document, everybody who edits it, and the log of all that was ever done to it (specs/04).

mesh      who is there: peers, introductions, session time
log       every operation of every source; gossip: how nobody misses one
own       what is entered here
engine    the document, folded from the log in one order for all (`fold/`)
serving   programs of this machine
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from weft.base.effects import Effect, Source
from weft.base.now import Now
from weft.base.records import CoreRecord, Entry
from weft.cores.document import messages
from weft.cores.document.fold.engine import Engine
from weft.cores.document.fold.schema import Schema
from weft.cores.document.gossip import Gossip
from weft.cores.document.limits import FOLD_WAIT_NS
from weft.cores.document.log import Log
from weft.cores.document.mesh import Mesh
from weft.cores.document.messages import SessionSettings
from weft.cores.document.own import Own
from weft.cores.document.peers import Peers
from weft.cores.document.serving import Serving
from weft.cores.document.station import CLIENTS, Station
from weft.cores.document.telling import Telling
from weft.wire.document import endpoints
from weft.wire.document.clients import Asked
from weft.wire.document.messages import Said
from weft.wire.document.operations import Operation


class Part(Protocol):
    """What each part can do about time, as a core can."""

    def wake(self, now: Now) -> None:
        """Time has passed."""

    def deadline(self) -> int | None:
        """When to be woken."""


class Session:
    """Pure, as a core is; channels are those of `station`."""

    name = "document"

    def __init__(self, settings: SessionSettings) -> None:
        self.station = station = Station(settings)
        self.schema = Schema.load(settings.schema)
        self.engine = Engine(self.schema)
        self.peers = Peers(station)
        self.mesh = Mesh(station, self.peers)
        self.log = Log(station)
        self.gossip = Gossip(station, self.log, self.peers)
        self.own = Own(station, self.log, self.engine, self.gossip, self.mesh)
        self.serving = Serving(self)
        self.telling = Telling(station, self.engine)
        self._winners: dict[tuple[bytes, int], Operation] = {}
        """Of forks: what the document is to be told of."""
        self._folded_at = 0
        self._parts: list[Part] = [self.mesh, self.gossip, self.serving]
        self._join()

    def _join(self) -> None:
        """Who hears of whom, and who may ask whom."""
        mesh, log, gossip = self.mesh, self.log, self.gossip
        mesh.log_beat = lambda: (log.latest(self.station.uuid), log.check)
        mesh.latest = log.latest
        mesh.greet = gossip.greet
        mesh.on_gone = gossip.gone
        mesh.on_message = gossip.hear
        log.on_reused = self._change_identity
        log.on_fork = self._note_winner

    def _note_winner(self, operation: Operation) -> None:
        """A number has another body: the document hears of all of a turn together, since each would fold it anew."""
        self._winners[operation.source, operation.sequence] = operation

    def _change_identity(self, peer: bytes, uuid: bytes) -> None:
        """Somebody holds more of our source than we do (GSP-015): go on as somebody else."""
        station = self.station
        station.tell(messages.IdentityReused(station.session, peer, station.uuid, uuid))
        self.mesh.restart(uuid)
        self.gossip.restart()

    # Memory

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Take back the log; who spoke here before is a dead source by now (GSP-030)."""
        self.station.begin(now)
        self.log.restore(entries)

    def condense(self) -> Iterable[CoreRecord]:
        return self.log.condense()

    # Hearing and obeying

    def receive(self, message: Any, source: Source, now: Now) -> None:
        """Hear a peer, or a program."""
        self.station.begin(now)
        if source.channel == CLIENTS:
            assert isinstance(message, Asked)
            self.serving.hear(message, source.peer, now)
        else:
            assert isinstance(message, Said)
            self.mesh.hear(message.sender, message.message, source.kind, now)

    def command(self, order: Any, now: Now) -> None:
        self.station.begin(now)
        ORDERS[type(order)](self, order, now)

    def _begin(self, order: messages.Begin, now: Now) -> None:
        self.log.begin()
        self.fold()
        self.telling.learn()
        self.mesh.open(now)

    def _opened(self, order: messages.Opened, now: Now) -> None:
        station = self.station
        self.mesh.opened(order.endpoint, now)
        if not order.endpoint:
            station.tell(messages.NoPort(station.session, station.settings.listen))
            return
        if not endpoints.is_loopback(endpoints.split(order.endpoint)[0]):
            station.tell(messages.SessionExposed(station.session, order.endpoint))
        station.tell(messages.SessionOpened(station.session, station.uuid, order.endpoint, self.log.count))

    def _hold_back(self, order: messages.HoldBack, now: Now) -> None:
        station = self.station
        if order.is_full != station.is_full:
            station.is_full = order.is_full
            station.tell(messages.LogDegraded(station.session, order.is_full))

    def _stop(self, order: messages.Stop, now: Now) -> None:
        self.serving.stop()
        self.mesh.bye("")

    # Time and what follows

    def wake(self, now: Now) -> None:
        self.station.begin(now)
        for part in self._parts:
            due = part.deadline()
            if due is not None and due <= now.mono:
                part.wake(now)
        if self.engine.is_behind:
            self.engine.work()

    def deadline(self) -> int | None:
        if self.engine.is_behind:
            return self.station.now.mono
        dues = [due for part in self._parts if (due := part.deadline()) is not None]
        if self.log.has_fresh or self._winners:
            dues.append(self._folded_at + FOLD_WAIT_NS)
        return min(dues, default=None)

    def effects(self) -> list[Effect]:
        """What to do, in order; what arrived since the last time is in the document by now, in one batch (DOC-052).

        While much streams in it is folded once a second, and readers have the state before (DOC-053).
        """
        if not self.gossip.is_catching_up or self.station.now.mono >= self._folded_at + FOLD_WAIT_NS:
            self.fold()
        self.telling.tell()
        self.serving.show()
        return self.station.take()

    @property
    def is_catching_up(self) -> bool:
        """Whether readers have a state of before: something is known that is not in the document yet (DOC-053)."""
        return self.engine.is_behind or self.log.has_fresh or bool(self._winners)

    def fold(self) -> None:
        """Take what has become known into the document."""
        self._folded_at = self.station.now.mono
        winners, self._winners = self._winners, {}
        if winners:
            self.engine.replace(*winners.values())
        fresh = self.log.fresh()
        if fresh:
            self.engine.insert(fresh)


ORDERS: Final[dict[type, Callable[[Session, Any, Now], None]]] = {
    messages.Begin: Session._begin,
    messages.Opened: Session._opened,
    messages.Found: lambda session, order, now: session.mesh.found(order, now),
    messages.Vanished: lambda session, order, _: session.mesh.vanish(order.endpoint),
    messages.LinkFull: lambda session, order, _: session.mesh.link_full(order.endpoint),
    messages.Garbled: lambda session, order, _: session.station.count(f"mesh.rx.{order.code}"),
    messages.HoldBack: Session._hold_back,
    messages.Stop: Session._stop,
}
