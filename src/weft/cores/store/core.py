"""The store: a tree of small values that every node has completely, and may write at any time (docs/store.md).

replica      entries, ticks, merging, and their records in the journal
bus, mesh    messages to other nodes; membership, pinging, actor: who is present, and whose turn it is
recovery     changes that are missing here, or at others; joining: a download from a real MoaT-KV server
repair, deletion   entries that servers with other rules would leave different, or bring back
serving      clients
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from weft.base.chance import Chance
from weft.base.effects import Effect, Source
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.base.records import CoreRecord, Entry
from weft.base.spool import Journaled, RecordsFetched
from weft.cores.kit.refusals import Refusal
from weft.cores.kit.timers import Part, Parts
from weft.cores.store import messages
from weft.cores.store.acking import Acking
from weft.cores.store.actor import Actor
from weft.cores.store.bus import MESH, MQTT, Bus
from weft.cores.store.context import Context
from weft.cores.store.copying import Copying
from weft.cores.store.deletion import Deletion
from weft.cores.store.ending import Ending
from weft.cores.store.joining import Joining
from weft.cores.store.membership import Membership
from weft.cores.store.mesh import HEARD, Mesh
from weft.cores.store.messages import StoreRefused, StoreSettings
from weft.cores.store.pinging import Pinging
from weft.cores.store.recovery import Recovery
from weft.cores.store.repair import Repair
from weft.cores.store.replica import Replica
from weft.cores.store.serving import Serving
from weft.cores.store.show import SHOWN, facts
from weft.cores.store.ticks import named_by
from weft.wire.store import actor as actors
from weft.wire.store import bus as codec
from weft.wire.store.messages import Info, Ping, Publication, Update
from weft.wire.store.path import text_of
from weft.wire.store.pieces import Pieces, is_piece

CLIENTS: Final = "store-clients"
JOIN: Final = "store-join"
ACTORS: Final = ("ping", "del")
"""Topics of the moat dialect's own coordination."""


class Store:
    """The store of one node."""

    name = "store"

    def __init__(self, settings: StoreSettings, chance: Chance) -> None:
        self.context = context = Context(settings, chance)
        self.budget = context.budget
        self.bus = bus = Bus(context)
        self.replica = replica = Replica(context, bus)
        self.recovery = Recovery(context, bus, replica)
        self.membership = Membership(context, bus, replica, self.recovery)
        self.pinging = Pinging(context, bus, self.membership, self.recovery)
        self.actors = self._actors()
        self.repair = Repair(context, bus, replica)
        self.deletion = Deletion(context, bus, replica)
        self.ending = Ending(context, replica)
        self.joining = Joining(context, replica)
        self.copying = Copying(context, replica)
        self.acking = Acking(context, bus, replica)
        self.serving = Serving(context, replica, self.acking)
        self.mesh = Mesh(context, bus, self._hear_publication, self._link_changed)
        parts: list[Part] = [self.membership, self.pinging, *self.actors.values(), self.recovery, self.repair]
        self._parts = Parts(*parts, self.deletion, self.ending, self.joining, self.acking, self.serving, self.mesh)
        self._pieces = Pieces()
        self._is_begun = False
        self._name_said = context.name
        self._join()

    def _actors(self) -> dict[str, Actor]:
        if "moat" not in self.context.settings.dialects:
            return {}
        parts = (self.context, self.bus, self.replica, self.membership, self.recovery)
        return {topic: Actor(*parts, topic) for topic in ACTORS}

    def _join(self) -> None:
        """Connect the parts with each other."""
        membership, joining, serving = self.membership, self.joining, self.serving
        self.replica.listeners += [self.repair.note, self.deletion.listen]
        self.deletion.positions = self.pinging.positions
        self.deletion.is_member = lambda: membership.serves
        self.ending.positions = self.pinging.positions
        self.ending.serves = lambda: membership.serves
        self.deletion.on_ask = joining.check_deleted
        self.deletion.on_rejoin = membership.rejoin
        membership.is_asking = lambda: joining.is_asking
        joining.on_answered = membership.answered
        joining.on_done = self._join_done
        self.copying.may_copy = lambda: membership.may_copy
        self.copying.on_done = membership.copied
        serving.lacks = lambda: membership.lacks
        serving.is_open = self.context.settings.is_open
        serving.say = self.bus.say
        serving.drop = self.deletion.drop_node
        if self.actors:
            pings, deletes = (self.actors[topic] for topic in ACTORS)
            membership.on_join = lambda nodes: joining.start(nodes, self.context.now)
            self.repair.positions = lambda: pings.weft_positions
            self.repair.known = lambda: pings.weft_nodes
            self.deletion.positions = self.ending.positions = lambda: pings.positions
            if "seed" not in self.context.settings.dialects:
                self.recovery.positions = lambda: pings.positions
            deletes.on_tag = self.deletion.tagged
            pings.on_away = deletes.on_away = self.deletion.away

    def _join_done(self, is_done: bool) -> None:  # noqa: FBT001 # as the download reports it
        if is_done:
            self.membership.downloaded(self.context.now)
        else:
            self.membership.download_failed(self.context.now)

    # Memory

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        self.context.now = now
        entries = list(entries)
        self.replica.restore(entries)
        self.deletion.restore(entries)
        if entries:
            self.serving.restored(entries[-1][0])

    def condense(self) -> Iterable[CoreRecord]:
        yield from self.replica.condense()
        yield from self.deletion.condense()

    # Hearing

    def receive(self, message: Any, source: Source, now: Now) -> None:
        self.context.now = now
        HEARERS[source.channel](self, message, source, now)

    def _hear_broker(self, message: Publication, source: Source, now: Now) -> None:
        topic, payload = source.peer.decode("ascii", "replace"), message.payload
        if is_piece(payload):  # older servers split payloads longer than 450 bytes (LNK-004)
            whole = self._put_together(payload, now)
            if whole is None:
                return
            payload = whole
        self._hear_publication(Publication(topic, payload), "mqtt", now)

    def _put_together(self, piece: bytes, now: Now) -> bytes | None:
        """The payload that this piece completes, if it does.

        Incomplete ones given up meanwhile are counted (COD-007).
        """
        before = self._pieces.incomplete
        try:
            return self._pieces.take(piece, now)
        except PeerError as error:
            self.context.refuse("mqtt", error.code)
            raise
        finally:
            if lost := self._pieces.incomplete - before:
                self.context.count("malformed", "incomplete", lost)

    def _hear_publication(self, publication: Publication, peer: str, now: Now) -> None:
        """Bytes of a topic: decoded completely before anything is done; PeerError if that fails (COD-007)."""
        is_mesh = peer != "mqtt"
        try:
            if publication.topic in ACTORS and not is_mesh:
                self._hear_actor(publication, now)
            else:
                for message in codec.decode(
                    "ping" if publication.topic == "wping" else publication.topic, publication.payload
                ):
                    self._hear_message(message, peer, now)
        except PeerError as error:
            self.context.refuse(peer, error.code)
            raise

    def _hear_actor(self, publication: Publication, now: Now) -> None:
        actor = self.actors.get(publication.topic)
        if actor is not None:
            message = actors.decode(publication.payload, publication.topic)
            if isinstance(message, actors.Pinged):
                self.deletion.heard(message.node, now)
            actor.hear(message, now)

    def _hear_message(self, message: Update | Info | Ping, peer: str, now: Now) -> None:
        try:
            SAID[type(message)](self, message, peer, now)
        except PeerError as error:  # one message of a batch: the others still count
            self.context.refuse(peer, error.code)

    def _hear_update(self, update: Update, peer: str, now: Now) -> None:
        if update.event.node == self.context.name:
            self.replica.unsaid.heard(update.event.tick)
            if update.sender is None and peer == "mqtt":
                return  # our own message, returned by the broker
        self.deletion.heard(update.sender[0] if update.sender else update.event.node, now)
        self.replica.receive(update.event, peer)
        self.recovery.hear_update(update, peer, now)
        self.acking.hear_update(update)

    def _hear_info(self, info: Info, peer: str, now: Now) -> None:
        if info.node == self.context.name and peer == "mqtt":
            return
        self.replica.book.check(named_by(info))
        self.deletion.heard(info.node, now)
        self.context.hear_tock(info.tock)
        self.recovery.hear_info(info, peer, now)
        self.deletion.hear_info(info, peer, now)
        self.acking.hear_info(info)

    def _hear_ping(self, ping: Ping, peer: str, now: Now) -> None:
        if ping.node == self.context.name and peer == "mqtt":
            return
        self.replica.book.check(ping.chain.links)
        self.deletion.heard(ping.node, now)
        self.context.hear_tock(ping.tock)
        self.pinging.hear(ping, peer, now)

    def _hear_client(self, message: Any, source: Source, now: Now) -> None:
        self.serving.hear(message, source.peer, now)

    def _hear_join(self, message: Any, source: Source, now: Now) -> None:
        self.joining.hear(message, source.peer, now)

    def _hear_call(self, message: Any, source: Source, now: Now) -> None:
        self.mesh.hear_call(message, source, now)

    def _hear_answer(self, message: Any, source: Source, now: Now) -> None:
        self.mesh.hear_answer(message, source, now)

    # Links

    def _link_changed(self, member: str, is_up: bool, now: Now) -> None:  # noqa: FBT001 # as the mesh reports it
        if is_up:
            self.recovery.link_up(member, now)
            self.pinging.link_up(member, now)
        self.membership.links_changed(now)

    def _broker_up(self, order: messages.LinkUp, now: Now) -> None:
        self.bus.has_broker = self.bus.knows_broker = True
        self.context.tell(messages.StoreLinkUp(order.link, ""))
        self.recovery.say_unsaid()
        for actor in self.actors.values():
            actor.link_up(now)
        self._link_changed("", True, now)

    def _broker_down(self, order: messages.LinkDown, now: Now) -> None:
        if self.bus.has_broker:
            self.bus.has_broker = False
            self.context.tell(messages.StoreLinkDown(order.link, "", order.why))
            for actor in self.actors.values():
                actor.link_down(now)
            self._link_changed("", False, now)

    def facts(self) -> dict[str, Any]:
        """Numbers for status and metrics (ADM-030), as plain data."""
        return facts(self)

    # Orders

    def command(self, order: Any, now: Now) -> None:
        self.context.now = now
        try:
            ORDERS[type(order)](self, order, now)
        except Refusal as error:  # only orders of people are refused, and these carry a ticket
            self.context.reply(order.ticket, StoreRefused(error.code, error.why))

    # Time, and what it makes due

    def wake(self, now: Now) -> None:
        self.context.now = now
        if not self._is_begun:
            self._is_begun = True
            if self.context.settings.is_open:
                self.context.tell(messages.NetworkOpen("clients, moat" if self.actors else "clients"))
            self.deletion.recall(now)
            self.ending.recall()
            self.membership.links_changed(now)
        self._parts.wake(now)

    def deadline(self) -> int | None:
        if not self._is_begun:
            return self.context.now.mono
        return self._parts.deadline()

    def effects(self) -> list[Effect]:
        if self._name_said != self.context.name:
            self._name_said = self.context.name
            self.mesh.greet_all(self.context.now)
        self.acking.flush()
        self.bus.flush()
        self.serving.flush()
        return self.context.take()

    def _note_room(self, order: messages.HoldBack, now: Now) -> None:
        self.context.is_full = order.is_full

    def _peer_heard(self, order: messages.PeerHeard, now: Now) -> None:
        self.mesh.peer_heard(order.endpoint, now)

    def _found(self, order: messages.Found, now: Now) -> None:
        event = self.membership.found(order.value, now)
        self.context.reply(order.ticket, {"node": event.node, "tick": event.tick})

    def _restore_loser(self, order: messages.RestoreLoser, now: Now) -> None:
        event = self.replica.write_again(order.number).now
        if event is None:  # the loser was a deletion, and the winner is deleted and forgotten by now
            raise Refusal("not-found", "nothing is left that it would delete")
        self.context.reply(order.ticket, {"node": event.node, "tick": event.tick, "path": text_of(event.path)})

    def _show(self, order: messages.Show, now: Now) -> None:
        shown = SHOWN.get(order.what)
        if shown is None:
            raise Refusal("bad-request", f"nothing is called {order.what!r}")
        self.context.reply(order.ticket, shown(self))

    def _copy_file(self, order: messages.CopyFile, now: Now) -> None:
        self.context.reply(order.ticket, self.copying.take(order, now))

    def _drop(self, order: messages.DropNode, now: Now) -> None:
        self.deletion.drop(order, now)

    def _set_deleters(self, order: messages.SetDeleters, now: Now) -> None:
        self.deletion.set_deleters(order, now)

    def _replay(self, order: messages.ReplayOrphans, now: Now) -> None:
        self.context.reply(order.ticket, {"written": self.deletion.replay()})

    def _accept_tick(self, order: messages.AcceptTick, now: Now) -> None:
        self.membership.accept_tick(now)
        self.context.reply(order.ticket, {"node": self.context.name, "tick": self.context.tick})

    def _journaled(self, order: Journaled, now: Now) -> None:
        self.serving.journaled(order, now)

    def _fetched(self, order: RecordsFetched, now: Now) -> None:
        self.serving.fetched(order, now)

    def _client_came(self, order: messages.ClientCame, now: Now) -> None:
        self.serving.came(order, now)

    def _client_gone(self, order: messages.ClientGone, now: Now) -> None:
        self.serving.gone(order, now)

    def _client_paused(self, order: messages.ClientPaused, now: Now) -> None:
        self.serving.paused(order, now)

    def _client_resumed(self, order: messages.ClientResumed, now: Now) -> None:
        self.serving.resumed(order, now)

    def _note_garbled(self, order: messages.Garbled, now: Now) -> None:
        if order.channel == CLIENTS:
            self.serving.garbled(order, now)
        else:
            self.joining.failed(order.peer, order.code, now)

    def _dial_failed(self, order: messages.DialFailed, now: Now) -> None:
        self.joining.failed(order.tag, order.why, now)

    def _stop(self, order: messages.Stop, now: Now) -> None:
        self.membership.stop(now)
        self.mesh.stop(now)


HEARERS: Final[dict[str, Callable[[Store, Any, Source, Now], None]]] = {
    HEARD: Store._hear_call,
    MESH: Store._hear_answer,
    MQTT: Store._hear_broker,
    CLIENTS: Store._hear_client,
    JOIN: Store._hear_join,
}
SAID: Final[dict[type, Callable[[Store, Any, str, Now], None]]] = {
    Update: Store._hear_update,
    Info: Store._hear_info,
    Ping: Store._hear_ping,
}
ORDERS: Final[dict[type, Callable[[Store, Any, Now], None]]] = {
    messages.HoldBack: Store._note_room,
    messages.PeerHeard: Store._peer_heard,
    messages.LinkUp: Store._broker_up,
    messages.LinkDown: Store._broker_down,
    messages.Found: Store._found,
    messages.Show: Store._show,
    messages.RestoreLoser: Store._restore_loser,
    messages.CopyFile: Store._copy_file,
    messages.DropNode: Store._drop,
    messages.SetDeleters: Store._set_deleters,
    messages.ReplayOrphans: Store._replay,
    messages.AcceptTick: Store._accept_tick,
    messages.ClientCame: Store._client_came,
    messages.ClientGone: Store._client_gone,
    messages.ClientPaused: Store._client_paused,
    messages.ClientResumed: Store._client_resumed,
    messages.Garbled: Store._note_garbled,
    messages.DialFailed: Store._dial_failed,
    messages.Stop: Store._stop,
    Journaled: Store._journaled,
    RecordsFetched: Store._fetched,
}
