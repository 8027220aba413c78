"""Streams and publications as libzmq really behaves, between a socket that connects and one that is bound (SIM-020).

While connected, messages arrive in order, once and whole. At a limit the sender's message is dropped (Z3, Z4): at one
instant a socket takes as many messages for one peer as its high-water mark says, since nothing drains it while its node
sends, and then refuses. A ROUTER and a DEALER report the refusal to their node, a PUB does not. During a cut TCP either
waits for the cable and delivers everything late, or gives up: then one contiguous block is lost, messages still in the
socket go to whoever listens there next (Z5, Z6), and a DEALER that reconnects with the same id before the ROUTER has
noticed is never heard again, while its sends succeed (Z7). The cure is a fresh socket (SIM-021).

A publication goes to the subscriptions that have arrived. Lost are the first messages of a connection (Z1), those
beyond the limit of a subscriber that does not read (Z2), and all of a connection that died.
"""

from collections.abc import Callable, Container
from typing import Final

from weft.base.chance import Chance
from weft.base.now import MILLISECOND, SECOND
from weft.node.channels import ADDS, BEAT, CALLS
from weft.sim.noise import Noise, NoiseSource
from weft.sim.sockets import HANDS_OVER, Connection, Dealer, Flow, Host, Limits, Path, Plug, Router, row_of
from weft.sim.world import World

RECONNECT_NS: Final = 100 * MILLISECOND  # RECONNECT_IVL of libzmq
REDIAL_NS: Final = SECOND  # after which the shell dials again where it was refused
HANDSHAKE_TRIPS: Final = 4  # TCP and ZMTP, one way each
NOTICE_NS: Final = 20 * MILLISECOND  # time after which a reset is noticed on an intact cable
RETRANSMIT_NS: Final = 60 * SECOND  # the longest pause of TCP between two attempts
SUMMED: Final = frozenset({"up", "updates", "ask", "mesh-call", "catalog-bridge-dial"})
"""Channels, by the end that connects, whose messages carry checksums: bits flip only on these (FLD-030)."""

UP, DOWN = 0, 1
"""Directions of a connection: from the socket that connects, to it."""
SUBSCRIBED: Final = b"\x01"  # first frame of a SUB's message to its PUB; only an XPUB passes it on
UNSUBSCRIBED: Final = b"\x00"


def _lost_topics(gone: Connection) -> tuple[bytes, ...]:
    """Topics to which nobody else there has subscribed."""
    others = {topic for connection in gone.router.peers.values() for topic in connection.topics or ()}
    return tuple(topic for topic in gone.topics or () if topic not in others)


class Streams:
    """All ZeroMQ links of a run. `on_change(child, parent)` is called when a hop link begins or ceases to work."""

    def __init__(self, world: World, seed: str, on_change: Callable[[str, str], None]) -> None:
        self.world, self.seed = world, seed
        self._on_change = on_change
        self._paths: dict[tuple[str, str], Path] = {}
        self._routers: dict[str, Router] = {}
        self._dealers: dict[tuple[str, str, str], Dealer] = {}
        """By host and channel; where a host may have several sockets of a channel, also by endpoint."""
        self.admits: Callable[[Host, Router], bool] = lambda *_: True
        """Whether a bound socket accepts a host."""
        self._serial = 0
        self._stalled: list[Connection] = []
        self._noise: dict[str, NoiseSource] = {}
        self._flips: dict[tuple[str, str], NoiseSource] = {}
        """Of the cables that alter messages, by direction."""
        self._owners: dict[bytes, str] = {}
        self.queue_max = 0
        """High-water mark of all sockets, where it is lower than that of their channel; 0: it is not."""
        self.dropped = 0
        self.flipped = 0
        """Messages that were altered on the way."""
        self.lost = 0
        self.unheard = 0
        """Publications to which nobody there had subscribed yet."""
        self.deaf = 0
        self.late = 0
        """Messages that waited for a cable, and arrived."""

    # Cables.

    def path(self, here: str, there: str) -> Path:
        return self._paths[here, there]

    def set_path(self, here: str, there: str, path: Path) -> None:
        """Lay or change the cable in one direction; connections over it stall, and go on when it is back."""
        self._paths[here, there] = path
        for connection in self._between(here, there):
            if not self._is_whole(connection) and not connection.is_stalled:
                self._stall(connection)
        if path.is_open:
            self._thaw(here, there)
            for dealer in self._dealers.values():
                if dealer.connection is None and self._reaches(dealer) in {here, there}:
                    self._try_later(dealer)

    def _reaches(self, dealer: Dealer) -> str:
        """The socket that listens at the endpoint, if it can be reached."""
        router = self._routers.get(dealer.endpoint)
        return router.host.name if router else ""

    def _between(self, here: str, there: str) -> list[Connection]:
        pair = {here, there}
        return [
            dealer.connection
            for dealer in self._dealers.values()
            if dealer.connection and {dealer.host.name, dealer.connection.router.host.name} == pair
        ]

    def _is_whole(self, connection: Connection) -> bool:
        child, parent = connection.dealer.host.name, connection.router.host.name
        return self._paths[child, parent].is_open and self._paths[parent, child].is_open

    def _stall(self, connection: Connection) -> None:
        """TCP waits for its acknowledgements: nothing more arrives until the cable is whole in both directions."""
        connection.is_stalled, connection.stalled_at = True, self.world.at
        for flow in connection.flows:
            flow.epoch += 1
        self._stalled.append(connection)
        self._changed(connection)

    def _thaw(self, here: str, there: str) -> None:
        """The cable is back: TCP's next attempt succeeds; the longer the cut was, the later that attempt comes."""
        pair = {here, there}
        for connection in self._stalled:
            if {connection.dealer.host.name, connection.router.host.name} == pair and self._is_whole(connection):
                patience = min(RETRANSMIT_NS, self.world.at - connection.stalled_at)
                late = connection.flows[UP].noise.delay(NOTICE_NS, patience)
                self.world.call_at(self.world.at + late, self._resume, connection)

    def _resume(self, connection: Connection) -> None:
        """Everything that waited arrives together."""
        if connection not in self._stalled or not self._is_whole(connection):
            return
        self._stalled.remove(connection)
        connection.is_stalled = False
        self._changed(connection)
        for direction, flow in enumerate(connection.flows):
            flow.last_at = max(flow.last_at, self.world.at + self._delay(connection, direction))
            self.late += len(flow.flight)
            for _ in flow.flight:
                self.world.call_at(flow.last_at, self._arrive, (connection, direction, flow.epoch))

    # Sockets.

    def bind(self, host: Host, address: str, channel: str = "down", prefix: bytes = b"") -> Router:
        """A process listens at `address`, `host:port`; `prefix` precedes the id of each peer."""
        router = self._routers[address] = Router(host, channel, prefix, address)
        for dealer in self._dealers.values():
            if dealer.endpoint == address:
                self._meet_anew(dealer)
        return router

    def _meet_anew(self, dealer: Dealer) -> None:
        """A new process listens there: its kernel resets connections to the process before."""
        connection = dealer.connection
        if connection is None:
            self._try_later(dealer)
        elif connection.router.is_closed:
            self.world.call_at(self.world.at + NOTICE_NS, self._dealer_forgets, connection)

    def unbind(self, router: Router, *, is_loud: bool) -> None:
        """The process has ended. Its children notice soon if it is loud (the kernel says so), else when they send."""
        router.is_closed = True
        for address in [address for address, bound in self._routers.items() if bound is router]:
            del self._routers[address]
        for connection in list(router.peers.values()):
            self._break(connection, UP if is_loud else None)
            connection.is_known_to_router = False
            self._changed(connection)

    def forget(self, name: str, keys: Container[str]) -> None:
        """Close what a host has dialled to the owners of these keys; a publisher keeps its socket, and tries again."""
        for key, dealer in [(key, dealer) for key, dealer in self._dealers.items() if key[0] == name]:
            connection = dealer.connection
            if connection is not None and connection.flows[DOWN].proved in keys:
                if dealer.row.how == ADDS:
                    self._break(connection, None)
                    self._router_forgets(connection)
                    self._dealer_forgets(connection)
                else:
                    self._close(key)

    def connect(self, host: Host, plug: Plug) -> None:
        """A fresh socket with a new id; what the one before it still held is dropped (LINGER 0).

        Where a channel has several sockets, those to other endpoints stay, and one that exists is not made again.
        """
        key = self._key(host.name, plug)
        if key[2] and key in self._dealers:
            return
        self._close(key)
        dealer = self._dealers[key] = Dealer(host, plug)
        self._owners[plug.routing_id] = host.name
        self._attempt(dealer)

    def _key(self, name: str, plug: Plug) -> tuple[str, str, str]:
        return name, plug.channel, plug.endpoint if row_of(plug.channel).how in (ADDS, CALLS) else ""

    def is_connected(self, name: str, channel: str, endpoint: str) -> bool:
        """Whether there is a socket to that endpoint, connected or not."""
        return (name, channel, endpoint) in self._dealers

    def disconnect(self, name: str, channel: str = "up") -> None:
        """Close the sockets of a channel. What the kernel already has still arrives, and then the close."""
        for key in [key for key in self._dealers if key[:2] == (name, channel)]:
            self._close(key)

    def hang_up(self, name: str, channel: str, endpoint: str) -> None:
        """Close one socket of a channel that has several."""
        self._close((name, channel, endpoint))

    def leave(self, name: str, *, is_loud: bool) -> None:
        """A process has ended: close everything that it had connected."""
        for key in [key for key in self._dealers if key[0] == name]:
            self._close(key, is_loud=is_loud)

    def _close(self, key: tuple[str, str, str], *, is_loud: bool = True) -> None:
        dealer = self._dealers.pop(key, None)
        if dealer is None:
            return
        dealer.is_closed = True
        dealer.waiting.clear()
        connection = dealer.connection
        if connection is None:
            return
        connection.is_known_to_dealer = False
        connection.flows[DOWN].lose()
        self._changed(connection)
        if is_loud and self._is_whole(connection):
            behind = max(connection.flows[UP].last_at, self.world.at) + NOTICE_NS
            self.world.call_at(behind, self._router_forgets, connection)

    def give_up(self, child: str, notice_ns: int, channel: str = "up") -> None:
        """TCP breaks the child's connections; the other ends notice `notice_ns` later (Z7 lies in between)."""
        for dealer in [dealer for key, dealer in self._dealers.items() if key[:2] == (child, channel)]:
            connection = dealer.connection
            if connection is not None:
                self._break(connection, None)
                self.world.call_at(self.world.at + notice_ns, self._router_forgets, connection)
                self._dealer_forgets(connection)

    def _break(self, connection: Connection, notices: int | None) -> None:
        """The connection carries nothing any more: one block of each direction is lost."""
        self.lost += sum(flow.lose() for flow in connection.flows)
        if notices == UP:
            self.world.call_at(self.world.at + NOTICE_NS, self._dealer_forgets, connection)

    def _router_forgets(self, connection: Connection) -> None:
        connection.is_known_to_router = False
        peers = connection.router.peers
        if peers.get(connection.key) is connection:
            del peers[connection.key]
            self._tell_xpub(connection.router, UNSUBSCRIBED, _lost_topics(connection))
        self._changed(connection)

    def _tell_xpub(self, router: Router, what: bytes, topics: tuple[bytes, ...]) -> None:
        """An XPUB hears of every subscription, and of the last one that ends (XPUB_VERBOSE)."""
        if router.is_xpub and not router.is_closed and router.host.is_listening:
            for topic in topics:
                if topic != BEAT:
                    router.host.hear(router.channel, b"", [what + topic], None)

    def _dealer_forgets(self, connection: Connection) -> None:
        connection.is_known_to_dealer = False
        dealer = connection.dealer
        if connection in self._stalled:
            self._stalled.remove(connection)
        if dealer.connection is connection:
            dealer.connection = None
            self._changed(connection)
            self._try_later(dealer)

    def _try_later(self, dealer: Dealer) -> None:
        self.world.call_at(self.world.at + RECONNECT_NS, self._attempt, dealer)

    def _attempt(self, dealer: Dealer) -> None:
        """Try to connect; if nobody can be reached, a change of the cable or a `bind` starts the next attempt."""
        router = self._routers.get(dealer.endpoint)
        if dealer.is_closed or dealer.connection or router is None:
            return
        here, there = dealer.host.name, router.host.name
        trip = self._paths[here, there]
        if not (trip.is_open and self._paths[there, here].is_open):
            return  # `set_path` tries again
        shaken_at = self.world.at + HANDSHAKE_TRIPS * (trip.least_ns + trip.spread_ns // 2)
        self.world.call_at(shaken_at, self._join, (dealer, router))

    def _join(self, pair: tuple[Dealer, Router]) -> None:
        dealer, router = pair
        if dealer.is_closed or dealer.connection:
            return
        here, there = dealer.host.name, router.host.name
        if router.is_closed or not (self._paths[here, there].is_open and self._paths[there, here].is_open):
            return  # `bind` or `set_path` tries again
        if not self.admits(dealer.host, router):
            self.world.call_at(self.world.at + REDIAL_NS, self._attempt, dealer)
            return
        flows = self._flow(dealer, dealer.host, router.host), self._flow(dealer, router.host, dealer.host)
        connection = dealer.connection = Connection(dealer, router, flows, self._peer_key(dealer))
        before = router.peers.get(connection.key)
        if before is not None and router.channel not in HANDS_OVER:
            connection.is_deaf = True  # Z7: the id is taken, HANDOVER is off
            self.deaf += 1
        else:
            if before is not None:
                before.is_deaf = True  # nobody reads what it still delivers (Z8)
            router.peers[connection.key] = connection
        self._changed(connection)
        if dealer.row.is_published:
            self._subscribe(connection)
        while dealer.waiting:
            self._put(connection, UP, dealer.waiting.popleft())

    def _peer_key(self, dealer: Dealer) -> bytes:
        """A ROUTER knows its peers by their ids; a PUB and a SUB know connections only."""
        self._serial += 1
        return b"%d" % self._serial if dealer.row.is_published else dealer.routing_id

    def _subscribe(self, connection: Connection) -> None:
        """Send the SUB's subscriptions, whichever end it is; its PUB knows them when they arrive."""
        is_dialled = connection.dealer.row.socket == "SUB"
        topics = (*connection.dealer.plug.topics, BEAT) if is_dialled else (b"",)
        self._put(connection, UP if is_dialled else DOWN, [SUBSCRIBED, *topics])

    def _flow(self, dealer: Dealer, here: Host, there: Host) -> Flow:
        noise = self._noise_of(here.name, there.name, dealer)
        at_once = min(dealer.row.queue, self.queue_max or dealer.row.queue)
        limit = there.queue_messages if dealer.row.is_published else 0
        limits = Limits(at_once, limit, 0) if limit else Limits(at_once, 2 * dealer.row.queue)
        return Flow(noise, limits, here.key)

    def _noise_of(self, here: str, there: str, dealer: Dealer) -> NoiseSource:
        link = f"{here}>{there}/{'stream' if dealer.channel == 'up' else dealer.channel}"
        found = self._noise.get(link)
        if found is None:
            found = self._noise[link] = NoiseSource(self.seed, link)
        return found

    # Messages.

    def send_up(self, name: str, frames: list[bytes], channel: str = "up", endpoint: str = "") -> bool:
        """Hand a message to a DEALER; False: refused at the limit, or there is no socket."""
        dealer = self._dealers.get((name, channel, endpoint))
        if dealer is None:
            return False
        if dealer.connection is not None:
            return self._put(dealer.connection, UP, frames)
        if len(dealer.waiting) >= min(dealer.row.queue, self.queue_max or dealer.row.queue):
            self.dropped += 1
            return False
        dealer.waiting.append(frames)
        return True

    def send_down(self, router: Router, peer: bytes, frames: list[bytes]) -> bool:
        """Hand a message to the ROUTER; False: no such peer, or its queue is full (MANDATORY)."""
        connection = router.peers.get(peer)
        return connection is not None and self._put(connection, DOWN, frames)

    def publish(self, router: Router, frames: list[bytes]) -> None:
        """Hand a message to a bound PUB: it goes to every subscription that has arrived and wants it."""
        for connection in router.peers.values():
            self._publish(connection, DOWN, frames)

    def announce(self, name: str, channel: str, frames: list[bytes]) -> None:
        """Hand a message to a PUB that connects: it goes to everyone who has been reached."""
        for dealer in [dealer for key, dealer in self._dealers.items() if key[:2] == (name, channel)]:
            if dealer.connection is None:
                self.unheard += 1
            else:
                self._publish(dealer.connection, UP, frames)

    def _publish(self, connection: Connection, direction: int, frames: list[bytes]) -> None:
        if connection.topics is None:
            self.unheard += 1
        elif frames[0].startswith(connection.topics):
            self._put(connection, direction, frames)

    def _put(self, connection: Connection, direction: int, frames: list[bytes]) -> bool:
        flow = connection.flows[direction]
        if not flow.has_room(self.world.at):
            self.dropped += 1
            return False
        flow.take(frames, self.world.at)
        if not connection.is_stalled:
            due = max(flow.last_at, self.world.at + self._delay(connection, direction))
            flow.last_at = due
            self.world.call_at(due, self._arrive, (connection, direction, flow.epoch))
        return True

    def _delay(self, connection: Connection, direction: int) -> int:
        child, parent = connection.dealer.host.name, connection.router.host.name
        path = self._paths[(child, parent) if direction == UP else (parent, child)]
        return connection.flows[direction].noise.delay(path.least_ns, path.spread_ns)

    def _arrive(self, what: tuple[Connection, int, int]) -> None:
        connection, direction, epoch = what
        flow = connection.flows[direction]
        if flow.epoch != epoch:
            return
        frames, size = flow.flight.popleft()
        dealer, router = connection.dealer, connection.router
        is_published = dealer.row.is_published
        if is_published and frames[0] == SUBSCRIBED:
            flow.read(size)
            connection.topics = tuple(frames[1:])
            self._tell_xpub(router, SUBSCRIBED, connection.topics)
        elif direction == UP:
            if router.is_closed or connection.is_deaf or not router.host.is_listening:
                flow.read(size)
                return
            peer = b"" if is_published else router.prefix + dealer.routing_id
            frames = self._as_it_comes(dealer.channel, dealer.host.name, router.host.name, frames)
            router.host.hear(router.channel, peer, frames, flow)
        elif dealer.is_closed or connection.is_deaf or (is_published and dealer.connection is not connection):
            flow.read(size)
            if is_published:
                self._router_forgets(connection)  # the kernel there rejects it
        else:
            frames = self._as_it_comes(dealer.channel, router.host.name, dealer.host.name, frames)
            dealer.host.hear(dealer.channel, dealer.plug.tag, frames, flow)

    def _as_it_comes(self, channel: str, here: str, there: str, frames: list[bytes]) -> list[bytes]:
        """The message as it arrives: a cable that flips bits may have altered it."""
        one_in = self._paths[here, there].flips
        if not one_in or channel not in SUMMED:
            return frames
        noise = self._flips.setdefault((here, there), NoiseSource(self.seed, f"{here}>{there}/flips")).draw()
        if noise.loss % one_in or not any(frames):
            return frames
        self.flipped += 1
        return altered(frames, noise)

    # The true state, for the checkers.

    def owner_of(self, routing_id: bytes) -> str | None:
        """Whose socket has, or had, that id."""
        return self._owners.get(routing_id)

    def works(self, child: str, parent: str) -> bool:
        """Whether the child's present socket carries messages both ways to the parent's present process."""
        dealer = self._dealers.get((child, "up", ""))
        connection = dealer.connection if dealer else None
        return connection is not None and connection.works and connection.router.host.name == parent

    def _changed(self, connection: Connection) -> None:
        if connection.dealer.channel == "up":
            self._on_change(connection.dealer.host.name, connection.router.host.name)


def size_of(frames: list[bytes]) -> int:
    """The bytes of a message, as its flow counts them."""
    return sum(map(len, frames))


def altered(frames: list[bytes], noise: Noise) -> list[bytes]:
    """Flip a bit of one frame; or, in one message of eight, append the last frame to the one before it."""
    if len(frames) > 1 and noise.damage % 8 == 0:
        return [*frames[:-2], frames[-2] + frames[-1]]
    places = [number for number, frame in enumerate(frames) if frame]
    at = places[noise.damage % len(places)]
    frame = bytearray(frames[at])
    frame[noise.second % len(frame)] ^= 1 << noise.duplication % 8
    return [*frames[:at], bytes(frame), *frames[at + 1 :]]


def routing_id(chance: Chance) -> bytes:
    """A new id for a DEALER: 16 bytes, the first not zero (CLI-002)."""
    return b"\x01" + chance.randbytes(15)
