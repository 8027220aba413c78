"""One session of a node: a document, the peers that edit it, and the log of all its operations (docs/doc.md).

mesh      the peers: introductions, session time
log       every operation of every source; gossip: how every node gets all of them
own       entries made here
engine    the document, folded from the log in one order for all nodes (`fold/`)
serving   programs of this machine
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from weft.base.effects import Effect, Source
from weft.base.endpoints import is_loopback
from weft.base.now import Now
from weft.base.records import CoreRecord, Entry
from weft.cores.document import messages
from weft.cores.document.adopting import Adopting
from weft.cores.document.context import CLIENTS, Context
from weft.cores.document.fold.engine import Engine
from weft.cores.document.fold.schema import Schema
from weft.cores.document.gossip import Gossip
from weft.cores.document.limits import FOLD_WAIT_NS
from weft.cores.document.log import Log
from weft.cores.document.mesh import Mesh
from weft.cores.document.messages import ConflictFound, SessionSettings
from weft.cores.document.own import Own
from weft.cores.document.peers import Peers
from weft.cores.document.serving import Serving
from weft.cores.kit.timers import Parts, earliest
from weft.wire.document import endpoints
from weft.wire.document.clients import Asked
from weft.wire.document.messages import Envelope
from weft.wire.document.operations import Operation


class Telling:
    """Tells each conflict once, when it appears, at every node that has both sides.

    So both parties learn of it (DOC-040).
    """

    def __init__(self, context: Context, engine: Engine) -> None:
        self._context, self._engine = context, engine
        self._known: set[str] | None = None
        """None: the log is still being restored."""
        self._last: tuple[int, str] = (0, "")
        """How many there were, and the last of them: examining all of them after every entry would cost too much."""

    def learn(self) -> None:
        """An earlier start has told the conflicts that exist at the start."""
        self._known = {conflict.id for conflict in self._engine.conflicts()}

    def tell(self) -> None:
        """Tell the new, open ones; one that was undone and appears again is not told twice."""
        found = self._engine.conflicts()
        last = (len(found), found[-1].id if found else "")
        if self._known is None or last == self._last:
            return
        self._last = last
        for conflict in found:
            if conflict.id not in self._known:
                self._known.add(conflict.id)
                if conflict.is_open:
                    event = ConflictFound(
                        self._context.session, conflict.id, conflict.kind, conflict.slot, conflict.attr
                    )
                    self._context.tell(event)


class Session:
    """Pure, like a core; for its channels see `context`."""

    name = "document"

    def __init__(self, settings: SessionSettings) -> None:
        self.context = context = Context(settings)
        self.schema = Schema.load(settings.schema)
        self.engine = Engine(self.schema)
        self.peers = Peers(context)
        self.log = Log(context, self._change_identity, self._note_winner)
        self.gossip = Gossip(context, self.log, self.peers)
        self.mesh = Mesh(context, self.peers, self.log, self.gossip)
        self.own = Own(context, self.log, self.engine, self.gossip, self.mesh)
        self.adopting = Adopting(context, self.log, self.engine, self.gossip, self.own, self.peers)
        self.serving = Serving(self)
        self.telling = Telling(context, self.engine)
        self._winners: dict[tuple[bytes, int], Operation] = {}
        """Winners of forks, to be passed to the document."""
        self._folded_at = 0
        self._parts = Parts(self.mesh, self.gossip, self.adopting, self.serving)

    def _note_winner(self, operation: Operation) -> None:
        """A number has another body.

        The document gets all of a turn together, since each one alone would cause a refold.
        """
        self._winners[operation.source, operation.sequence] = operation

    def _change_identity(self, peer: bytes, uuid: bytes) -> None:
        """A peer has more of our source than we do (GSP-015): continue under another identity."""
        context = self.context
        context.tell(messages.IdentityReused(context.session, peer, context.uuid, uuid))
        self.mesh.restart(uuid)
        self.gossip.restart()

    # Memory

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Restore the log; the source of the earlier start is gone now (GSP-030)."""
        self.context.begin(now)
        self.log.restore(entries)

    def condense(self) -> Iterable[CoreRecord]:
        return self.log.condense()

    # Messages and orders

    def receive(self, message: Any, source: Source, now: Now) -> None:
        """A message of a peer or a program."""
        self.context.begin(now)
        if source.channel == CLIENTS:
            assert isinstance(message, Asked)
            self.serving.hear(message, source.peer, now)
        else:
            assert isinstance(message, Envelope)
            self.mesh.hear(message.sender, message.message, source.kind, now)

    def command(self, order: Any, now: Now) -> None:
        self.context.begin(now)
        ORDERS[type(order)](self, order, now)

    def _begin(self, order: messages.Begin, now: Now) -> None:
        self.log.begin()
        self.fold()
        self.telling.learn()
        self.mesh.open(now)

    def _opened(self, order: messages.Opened, now: Now) -> None:
        context = self.context
        self.mesh.opened(order.endpoint, now)
        if not order.endpoint:
            context.tell(messages.NoPort(context.session, context.settings.listen))
            return
        if not (context.settings.is_closed or is_loopback(endpoints.split(order.endpoint)[0])):
            context.tell(messages.SessionExposed(context.session, order.endpoint))
        context.tell(messages.SessionOpened(context.session, context.uuid, order.endpoint, self.log.count))

    def _hold_back(self, order: messages.HoldBack, now: Now) -> None:
        context = self.context
        if order.is_full != context.is_full:
            context.is_full = order.is_full
            context.tell(messages.LogDegraded(context.session, order.is_full))

    def _stop(self, order: messages.Stop, now: Now) -> None:
        self.serving.stop()
        self.mesh.bye("")

    # Time, and what it makes due

    def wake(self, now: Now) -> None:
        self.context.begin(now)
        self._parts.wake(now)
        if self.engine.is_behind:
            self.engine.work()

    def deadline(self) -> int | None:
        if self.engine.is_behind:
            return self.context.now.mono
        fold_at = self._folded_at + FOLD_WAIT_NS if self.log.has_fresh or self._winners else None
        return earliest(fold_at, self._parts.deadline())

    def effects(self) -> list[Effect]:
        """All effects in order.

        Operations that arrived since the last call are in the document by now, in one batch (DOC-052).

        While many arrive, they are folded once a second, and readers see the state before (DOC-053).
        """
        if not self.gossip.is_catching_up or self.context.now.mono >= self._folded_at + FOLD_WAIT_NS:
            self.fold()
        self.telling.tell()
        self.serving.show()
        return self.context.take()

    @property
    def is_catching_up(self) -> bool:
        """Whether readers see an earlier state: some known operations are not in the document yet (DOC-053)."""
        return self.engine.is_behind or self.log.has_fresh or bool(self._winners)

    def fold(self) -> None:
        """Fold the operations that became known."""
        self._folded_at = self.context.now.mono
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
    messages.Garbled: lambda session, order, _: session.context.count(f"mesh.rx.{order.code}"),
    messages.HoldBack: Session._hold_back,
    messages.Stop: Session._stop,
}
