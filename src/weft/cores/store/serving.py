"""The store's clients, from the server's side: connections, requests, streams.

Each request gets one answer or a stream. Streams take turns, so one of a million entries delays no other.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from msgspec import UNSET

from weft.base.errors import PeerError
from weft.base.now import Now
from weft.base.spool import Journaled, RecordsFetched
from weft.cores.kit.refusals import Refusal
from weft.cores.store import actions, limits
from weft.cores.store.acking import Acking
from weft.cores.store.actions import Asked
from weft.cores.store.context import Context
from weft.cores.store.messages import ClientCame, ClientGone, ClientPaused, ClientResumed, Garbled, HangUp
from weft.cores.store.replica import Replica
from weft.cores.store.streams import CLIENTS, Client, Desk, LinkSearch, Stream, failure
from weft.cores.store.watching import Place, WatchStream
from weft.wire.store.clients import CAPS, QLEN, VERSION, Answer, Greeting, Request
from weft.wire.store.messages import Info

MALFORMED: Final = "malformed"


class Serving:
    """All clients of one node."""

    def __init__(self, context: Context, replica: Replica, acking: Acking) -> None:
        self._context = context
        self._desk = Desk(context, replica, acking)
        self.place = Place(self._desk)
        self._clients: dict[bytes, Client] = {}
        self._ready: OrderedDict[Stream, None] = OrderedDict()
        """Streams that can send more at once, in the order of their turns."""
        self.lacks: Callable[[], str] = lambda: ""
        """What is missing before clients are answered, for people (PNG-001); empty: they are."""
        self.say: Callable[[Info], None] = lambda _: None
        """Sends an info to all nodes."""
        self.drop: Callable[[str], object] | None = None
        """Drops a node (DEL-006)."""
        self.is_open = False
        """Whether clients of other machines are administrators, like those of this machine, as there are no users
        (ADM-003).
        """

    @property
    def clients(self) -> int:
        """Number of connected clients."""
        return len(self._clients)

    @property
    def has_words(self) -> bool:
        """Whether `flush` would send something."""
        return bool(self._desk.touched)

    @property
    def streams(self) -> int:
        """Number of requests being answered."""
        return sum(len(client.streams) for client in self._clients.values())

    def restored(self, last_lsn: int) -> None:
        """The last lsn of the journal."""
        self.place.last_lsn = max(self.place.last_lsn, last_lsn)

    def flush(self) -> None:
        """Send each client everything that this turn has for it; called at the end of each turn."""
        if self._desk.touched:
            self._desk.flush()

    # Connections

    def came(self, order: ClientCame, now: Now) -> None:
        """A client has connected: greet it (CLN-001), or say why not."""
        client = Client(self._desk, order.peer, order.address)
        why = self._refusal_of(order)
        if why is None:
            self._clients[order.peer] = client
            context = self._context
            weft = {"v": 1, "caps": list(CAPS)}
            name, tick, tock = context.name, context.tick, context.tock
            self._send(
                client, Greeting(seq=0, version=[*VERSION], node=name, tick=tick, tock=tock, qlen=QLEN, weft=weft)
            )
        else:
            self._context.count("clients_refused", why.code)
            self._send(client, failure(0, why, self._context.tock))
            self._hang_up(order.peer)

    def _refusal_of(self, order: ClientCame) -> Refusal | None:
        if not order.is_local and not self.is_open:
            return Refusal("not-authorised", "this node serves its own machine only")
        if lacks := self.lacks():
            return Refusal("not-ready", lacks)
        if len(self._clients) >= limits.CLIENTS_MAX:
            return Refusal("busy", f"{limits.CLIENTS_MAX} clients are connected")
        return None

    def gone(self, order: ClientGone, now: Now) -> None:
        """Its connection has ended."""
        client = self._clients.pop(order.peer, None)
        for stream in client.streams.values() if client else ():
            self._ready.pop(stream, None)
            stream.leave()

    def paused(self, order: ClientPaused, now: Now) -> None:
        """The client does not read: its streams wait."""
        client = self._clients.get(order.peer)
        if client is not None:
            client.is_paused = True
            for stream in client.streams.values():
                self._ready.pop(stream, None)

    def resumed(self, order: ClientResumed, now: Now) -> None:
        """The client reads again: its streams continue."""
        client = self._clients.get(order.peer)
        if client is not None:
            client.is_paused = False
            self._ready.update(dict.fromkeys(client.streams.values()))

    def garbled(self, order: Garbled, now: Now) -> None:
        """Unreadable data came: it is answered; if not even a message could be recognised, the connection ends."""
        self._context.count("malformed", order.code)
        if order.code == MALFORMED:
            self._hang_up(order.peer)

    def _hang_up(self, peer: bytes) -> None:
        self._context.perform(HangUp(peer))

    def _send(self, client: Client, message: Greeting | Answer) -> None:
        self._context.send(CLIENTS, client.peer, message)

    # Requests

    def hear(self, request: Request, peer: bytes, now: Now) -> None:
        """A request of a client; every request is answered (CLN-002)."""
        client = self._clients.get(peer)
        if client is None:
            return  # its connection is being closed
        if request.seq == 0:
            if request.qlen is not UNSET:
                client.window = max(0, min(request.qlen, QLEN))
            if request.conv is not UNSET:
                client.group = request.conv
        elif request.state == "ack":
            self._acknowledge(client, request)
        else:
            self._count(request.action)
            try:
                self._obey(client, request)
            except Refusal as error:
                client.say(failure(request.seq, error, self._context.tock))
            except PeerError as error:
                client.say(failure(request.seq, actions.refusal(error), self._context.tock))

    def _count(self, action: str) -> None:
        known = action in actions.ACTIONS or action in actions.STREAMS or action in self._own
        self._context.count("requests", action if known else "unknown")

    def _acknowledge(self, client: Client, request: Request) -> None:
        stream = client.streams.get(request.seq)
        if stream is not None and type(request.ack) is int:
            stream.acknowledge(request.ack)
            self._run(stream, limits.STREAM_STEPS)

    def _obey(self, client: Client, request: Request) -> None:
        if request.seq < 0 or request.seq in client.streams:
            raise Refusal("bad-request", "`seq` grows with each request")
        if lacks := self.lacks():
            raise Refusal("not-ready", lacks)
        action = request.action
        answer = actions.ACTIONS.get(action)
        if answer is not None:
            self._answer(client, request, answer)
        elif action in actions.STREAMS:
            self._open(client, lambda: actions.STREAMS[action](Asked(self._desk, client, request)))
        elif action in self._own:
            self._own[action](self, client, request)
        else:
            raise Refusal("bad-request", f"{action!r} is no action")

    def _answer(self, client: Client, request: Request, answer: Callable[[Asked], Answer]) -> None:
        """Answer at once, or when enough members have the write (STO-035)."""
        before = self._context.tick
        answered = answer(Asked(self._desk, client, request))
        if self._context.tick > before and self._desk.acking.needed(request.ack) > 1:
            self._desk.acking.hold(client.say, request, answered, before + 1)
        else:
            client.say(answered)

    def _open(self, client: Client, make: Callable[[], Stream]) -> None:
        if len(client.streams) >= limits.STREAMS_MAX or self.streams >= limits.STREAMS_ALL_MAX:
            raise Refusal("busy", "too many requests are open")
        stream = make()
        client.streams[stream.seq] = stream
        self._run(stream, limits.STREAM_STEPS)

    def _watch(self, client: Client, request: Request) -> None:
        top = Asked(self._desk, client, request).path
        self._open(client, lambda: WatchStream(self._desk, self.place, client, request, top))

    def _stop(self, client: Client, request: Request) -> None:
        """End one of the client's streams; its end message follows the answer."""
        stream = client.streams.pop(request.task, None) if request.task is not UNSET else None
        client.say(Answer(seq=request.seq, tock=self._context.tock, result=stream is not None))
        if stream is not None:
            self._ready.pop(stream, None)
            stream.stop()

    def _check_deleted(self, client: Client, request: Request) -> None:
        """The answer goes to all nodes, after all entries have been examined (DEL-007)."""
        wanted = actions.unheaded(Asked(self._desk, client, request))
        client.say(Answer(seq=request.seq, tock=self._context.tock))
        if wanted:
            self._open(client, lambda: LinkSearch(self._desk, client, request.seq, wanted, self._tell_deleted))

    def _tell_deleted(self, search: LinkSearch) -> None:
        deleted = {node: ticks for node, ticks in search.wanted.items() if ticks}
        if deleted:
            self.say(self._context.info(deleted=deleted))

    def _kill_node(self, client: Client, request: Request) -> None:
        if self.drop is None:
            raise Refusal("unsupported", "no node can be dropped here")
        if request.node is UNSET:
            raise Refusal("bad-request", "`node` is needed")
        self.drop(request.node)
        client.say(Answer(seq=request.seq, tock=self._context.tock))

    _own: Final = {"watch": _watch, "stop": _stop, "check_deleted": _check_deleted, "kill_node": _kill_node}

    # Streams

    def _run(self, stream: Stream, steps: int) -> int:
        """Let a stream send as much as `steps` allow, and queue its next turn."""
        used = stream.go_on(steps) if not stream.is_over else 0
        if stream.is_over:
            self._ready.pop(stream, None)
            if stream.client.streams.get(stream.seq) is stream:
                del stream.client.streams[stream.seq]
        elif stream.is_ready:
            self._ready[stream] = None
        else:
            self._ready.pop(stream, None)
        return used

    def journaled(self, order: Journaled, now: Now) -> None:
        """Changes are in the journal: send them to watchers (CLN-010)."""
        for watcher in self.place.journaled(order):
            self._run(watcher, limits.STREAM_STEPS)

    def fetched(self, order: RecordsFetched, now: Now) -> None:
        """Journal records for watchers that are behind."""
        for watcher in self.place.fetched(order):
            self._run(watcher, limits.STREAM_STEPS)

    def wake(self, now: Now) -> None:
        """Continue the streams that can send, in turn."""
        left = limits.TURN_STEPS
        while left > 0 and self._ready:
            stream, _ = self._ready.popitem(last=False)
            left -= 1 + self._run(stream, min(left, limits.STREAM_STEPS))

    def deadline(self) -> int | None:
        """At once, while a stream can continue."""
        return self._context.now.mono if self._ready else None
