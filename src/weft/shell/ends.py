"""The ZeroMQ sockets of one channel; their keys are what `Source.peer` of their messages is (SIM-020 to SIM-022).

A channel that binds has one socket; one that dials has one until the next `Connect`; one that calls has a socket per
endpoint, which is closed after a minute without messages.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Container, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import zmq

from weft.base.effects import Connect, Source
from weft.base.endpoints import host_of, is_address, is_endpoint, is_loopback, shifted
from weft.node.channels import ADDS, BEAT, CHANNELS, KEEPS, LINK_QUEUE, Channel
from weft.node.handshake import DOMAIN, DOMAINS
from weft.shell.redialing import Redialing, leave
from weft.shell.shutdoors import Awaited
from weft.shell.sockets import Context, Credentials, NoKey, Shape, Socket, make_socket
from weft.shell.trying import Entrance

MESSAGE_BYTES_MAX: Final = 12 << 20  # a bundle has 8 MiB (CFG-013)
LEAVE_S: Final = (
    0.05  # so that messages of this turn, such as the revocation of a key, leave before their socket is closed
)
REBIND_S: Final = 0.01  # between two tries
REBIND_TRIES: Final = 500  # five seconds in all
REST_S: Final = 0.005  # how long a socket is not read after it has used up its budget (`Keeps`)
CALL_IDLE_S: Final = 60.0
CALLS_MAX: Final = 256  # as many as a mesh of the store may have (LNK-023)
NOWHERE: Final = "0.0.0.0"  # noqa: S104  # nothing is bound to it
NOW: Final = int(zmq.NOBLOCK)  # a plain number: joining two of the enumeration costs more than the call
NOW_AND_MORE: Final = int(zmq.NOBLOCK | zmq.SNDMORE)
put: Final = zmq.backend.Socket.send  # the function below `Socket.send`: half of its cost is the call of the wrapper
poll: Final = zmq.backend.zmq_poll  # costs less than EVENTS of the socket, whose name pyzmq looks up for each call
READABLE: Final = int(zmq.POLLIN)
LOOKS: Final = (
    2  # messages before which the socket is asked whether there is one: cheaper than an exception, but not for each
)
AGAIN_S: Final = 2.0  # how long a key is tried at an endpoint where another key may be the right one


class Heard(NamedTuple):
    """One received message, as the node hears it."""

    source: Source
    frames: list[bytes]


def shape_of(row: Channel) -> Shape:
    """The options for a socket of that channel."""
    heard = LINK_QUEUE if row.is_bound else row.queue  # a short queue where any peer may send
    return Shape(row.socket, row.is_bound, row.queue, heard)


def size_of(heard: Heard) -> int:
    """The bytes of a message."""
    return sum(map(len, heard.frames))


class End:
    """This node's end of one channel."""

    def __init__(  # tidy: what all ends of a node share; only `Links` hands it over
        self,
        name: str,
        context: Context,
        on_readable: Callable[[], None],
        dropped: Counter[str],
        to_read: "deque[End]",
        credentials: Credentials,
    ) -> None:
        """`to_read`: the queue of ends that may have something to read."""
        self.name, self.row = name, CHANNELS[name]
        self.sockets: dict[bytes, Socket] = {}
        self._hears, self._is_router = self.row.socket != "PUB", self.row.socket == "ROUTER"
        self._is_queued = False
        """Whether it is in `to_read`: its descriptor has signalled, or a call may have taken the signal away."""
        self._to_read, self._credentials = to_read, credentials
        self._kind = _kind_reader(self.row)
        """Reads from the first frame of a message what `Source.kind` says of its sender; None: nothing."""
        self._context, self._on_readable, self._dropped = context, on_readable, dropped
        self.awaited = Awaited(credentials.shut, does_hear=self._hears)
        """The peers that are dialled with keys, and whether each has sent something, or accepted us."""
        self._proved: dict[bytes, bytes] = {}
        """The UUID of the node whose key a connection accepts, by the key of its socket (SEC-013)."""
        self._places: list[tuple[str, int] | Path] = []
        """Where it is bound: hosts and ports, and files."""
        self._binding_again: asyncio.TimerHandle | None = None
        tell = partial(_note_link, self.awaited, credentials, self.row.place)
        self._redialing = Redialing(context, self.redial, is_of_many=self.row.how == ADDS, tell=tell)

    def bind(self, host: str, base_port: int) -> None:
        """Listen at this channel's port of the block; ZMQError if it is taken."""
        place = (host, base_port + self.row.place)
        self._bind(place)
        self._places.append(place)

    def bind_local(self, path: Path) -> None:
        """Also listen on a local socket, which only this user may open; ZMQError, OSError.

        Call it before any port is bound: after the first port with keys, a socket binds with keys only.
        """
        self._bind(path)
        self._places.append(path)

    def _bind(self, place: tuple[str, int] | Path) -> None:
        made = self.sockets.get(b"") or self._open(b"", "" if isinstance(place, Path) else place[0])
        self._queue()
        if isinstance(place, Path):
            made.bind(f"ipc://{place}")
            place.chmod(0o600)
            return
        host, port = place
        if not (self.row.is_plain and is_loopback(host)):
            self._credentials.serve(made, DOMAINS.get(self.name, DOMAIN))
            self._credentials.watch(made)
        made.bind(f"tcp://{_bracketed(host)}:{port}")

    @property
    def places(self) -> list[tuple[str, int] | Path]:
        """Where it is bound: hosts and ports, and files."""
        return list(self._places)

    def entrances(self) -> Iterator[Entrance]:
        """The ports at which only peers with known keys can connect."""
        if self.row.is_for_strangers:
            return
        for place in self._places:
            if not isinstance(place, Path) and not (self.row.is_plain and is_loopback(place[0])):
                host = {NOWHERE: "127.0.0.1", "::": "::1"}.get(place[0], place[0])
                yield Entrance(self.name, f"tcp://{_bracketed(host)}:{place[1]}", self.row.socket)

    def forget(self, gone: Container[bytes]) -> None:
        """Keys of the nodes `gone` are no longer valid: close connections to them, and soon bind again where keys are asked.

        A ROUTER cannot drop a single peer (SEC-052). The other peers reconnect by themselves, and send again what was not
        read. Local programs would not; their sockets ask for no keys, and stay open.
        """
        if any(self.entrances()) and self._binding_again is None:
            self._binding_again = asyncio.get_running_loop().call_later(LEAVE_S, self.rebind)
        for key in [key for key, uuid in self._proved.items() if uuid in gone]:
            self._close(key)

    def rebind(self) -> None:
        """Close what is bound, and bind it again with the current credentials."""
        self.disconnect()
        self._bind_again(REBIND_TRIES)

    def _bind_again(self, tries: int) -> None:
        """Bind at all places; retried, since libzmq closes a port in another thread. ZMQError after the last attempt."""
        self._binding_again = None
        try:
            for place in self._places:
                self._bind(place)
        except zmq.ZMQError:
            if not tries:
                raise
            self.disconnect()
            self._binding_again = asyncio.get_running_loop().call_later(REBIND_S, self._bind_again, tries - 1)

    def connect(self, effect: Connect) -> None:
        """Open a connection: in place of the one before, or beside others, as the channel's row says."""
        if self.row.how == KEEPS:
            self.hang_up(effect.tag)
        else:
            self.disconnect()
        made = self._open(effect.tag, host_of(effect.endpoint))
        for topic in effect.topics:
            made.setsockopt(zmq.SUBSCRIBE, topic)
        self.dial(effect.tag, made, effect.endpoint)

    def unbind(self) -> None:
        """Stop listening."""
        self._places.clear()
        self.disconnect()

    def disconnect(self) -> None:
        """Close all connections."""
        if self._binding_again is not None:
            self._binding_again.cancel()
            self._binding_again = None
        for key in list(self.sockets):
            self._close(key)

    def hang_up(self, key: bytes) -> None:
        """Close one connection, if it is there."""
        if key in self.sockets:
            self._close(key)

    def send(self, peer: bytes, frames: list[bytes]) -> bool:
        """Give a message to its socket. If that fails, it is dropped and counted: False."""
        target = self._target(peer)
        if target is None:
            self.drop("closed")
            return False
        self._queue()
        try:
            if self._is_router:
                put(target, peer, NOW_AND_MORE)
            for frame in frames[:-1]:
                put(target, frame, NOW_AND_MORE)
            put(target, frames[-1], NOW)
        except zmq.ZMQError as error:
            self.drop(error.strerror or str(error))
            return False
        return True

    def take(self, heard: list[Heard], size: int) -> int:
        """Append received messages to `heard`: at most the channel's budget, and about `size` bytes, shared by its sockets.

        Returns the number of bytes. If there may be more, the end goes to the back of the queue.
        """
        self._is_queued = False
        if not self.sockets:
            return 0
        count = max(1, self.row.budget // len(self.sockets))
        share = min(size, self.row.budget_bytes) // len(self.sockets)
        taken = 0
        for key, source in self.sockets.items():
            taken += self._take(key, source, heard, count, share)
        return taken

    def is_readable(self) -> bool:
        """Whether there may be something to read; if not, it leaves the queue."""
        for source in self.sockets.values():
            if poll([(source, READABLE)], 0):
                return True
        self._is_queued = False
        return False

    def drop(self, why: str) -> None:
        """Count a dropped message."""
        self._dropped[f"{self.name}:{why}"] += 1

    def _target(self, _: bytes) -> Socket | None:
        return next(iter(self.sockets.values()), None)

    def _open(self, key: bytes, host: str) -> Socket:
        made = self.sockets[key] = make_socket(self._context, shape_of(self.row))
        if self.row.socket == "SUB" and self.row.how != KEEPS:
            made.setsockopt(zmq.SUBSCRIBE, b"" if self.row.is_bound else BEAT)
        if ":" in host:
            made.setsockopt(zmq.IPV6, 1)
        if not self.row.is_bound:
            self._redialing.watch(key, made)
        if self.row.socket != "PUB":  # a PUB socket receives nothing
            self._listen(key, made)
        self._queue()
        return made

    def _listen(self, key: bytes, made: Socket) -> None:
        asyncio.get_running_loop().add_reader(made.FD, self._wake, key)

    def _queue(self) -> None:
        if self._hears and not self._is_queued:
            self._is_queued = True
            self._to_read.append(self)

    def _wake(self, _: bytes) -> None:
        self._queue()
        self._on_readable()

    def _go_on(self, _: bytes) -> None:
        """A socket has used up its budget, and may have more: it is read again in the next turn."""
        self._queue()

    def dial(self, key: bytes, made: Socket, endpoint: str) -> tuple[bytes, str] | None:
        """Connect a socket to an endpoint; returns UUID and key of the node that is expected there, None without keys."""
        pair = None
        self._redialing.note(key, endpoint)
        try:
            is_plain = self.row.is_plain and is_loopback(host_of(endpoint))
            pair = None if is_plain else self._credentials.pin(made, shifted(endpoint, -self.row.place))
            if pair is not None:
                self._proved[key] = pair[0]
                if self.awaited.note(key, endpoint, asyncio.get_running_loop().time(), pair[1]):
                    self.drop("shut")
                    return pair
            made.connect(f"tcp://{endpoint}")
        except NoKey:
            self.drop("no-key")
        except zmq.ZMQError as error:
            self.drop(error.strerror or str(error))
        return pair

    def redial(self, key: bytes, endpoint: str) -> None:
        """Connect again with the same socket. Its subscriptions stay; messages that wait to be sent are lost."""
        self._credentials.note_lost(shifted(endpoint, -self.row.place))
        leave(self.sockets[key], endpoint)
        self.dial(key, self.sockets[key], endpoint)
        self._wake(key)

    def _close(self, key: bytes) -> None:
        self._proved.pop(key, None)
        self.awaited.drop(key)
        made = self.sockets.pop(key)
        self._redialing.ignore(key, made)
        self._credentials.ignore(made)
        if self.row.socket != "PUB":
            asyncio.get_running_loop().remove_reader(made.FD)
        made.close()

    def _take(self, key: bytes, source: Socket, heard: list[Heard], count: int, size_max: int) -> int:
        left = size_max
        for number in range(count):
            if number < LOOKS and not poll([(source, READABLE)], 0):
                return size_max - left
            try:
                item = self._receive(source, key)
            except zmq.Again:
                return size_max - left
            if item is None:
                self.drop("frames")
                continue
            heard.append(item)
            if self.awaited.unheard:
                self.awaited.note_heard(key)
            left -= size_of(item)
            if left <= 0:
                break
        self._go_on(key)
        return size_max - left

    def _receive(self, source: Socket, key: bytes) -> Heard | None:
        """One message; None if it has too many frames or bytes, or its key is no longer valid."""
        if self._is_router:
            key = source.recv(NOW)  # libzmq hands it out in front of each message, which has one frame at least
        frame = source.recv(NOW, copy=False)
        kind = self._kind(frame) if self._kind is not None else ""
        proved, is_known = self._prove(frame, key) if self._credentials.is_closed else (None, True)
        frames, count, left = [frame.bytes], 1, MESSAGE_BYTES_MAX - len(frame)
        while frame.more:
            frame = source.recv(NOW, copy=False)
            count, left = count + 1, left - len(frame)
            if count <= self.row.frames_max and left >= 0:
                frames.append(frame.bytes)
        is_whole = is_known and count <= self.row.frames_max and left >= 0
        return Heard(Source(self.name, key, proved, kind), frames) if is_whole else None

    def _prove(self, frame: zmq.Frame, key: bytes) -> tuple[bytes | None, bool]:
        """On a closed fabric: the UUID of the sender, by the key that libzmq reports, or that the connection accepts (SEC-012).

        False: the reported key is no longer valid. If a bound socket reports no key, the message came over a local
        socket, or over the loopback port of a foreign protocol.
        """
        if not self.row.is_bound:
            return self._proved.get(key), True
        user = said_of(frame, "User-Id")
        if not user or self.row.is_for_strangers:
            return None, True
        uuid = self._credentials.owner(user)
        if uuid is None:
            self.drop("key")
        return uuid, uuid is not None


def key_and_address(frame: zmq.Frame) -> str:
    """The key that the connection has proved, a space, and its address."""
    return f"{said_of(frame, 'User-Id')} {said_of(frame, 'Peer-Address')}"


def said_of(frame: zmq.Frame, name: str) -> str:
    """A property of the connection that a message came over, by its name in libzmq; empty: there is none."""
    try:
        return str(frame.get(name))
    except zmq.ZMQError:  # an old ZMTP
        return ""


def kind_and_address(frame: zmq.Frame) -> str:
    """The type of the socket at the other end, a space, its address; no address: a local socket of this machine.

    If the peer is gone, libzmq may not know its address: then it is `NOWHERE`, so that it does not pass as local.
    """
    address = said_of(frame, "Peer-Address") or NOWHERE
    return f"{said_of(frame, 'Socket-Type')} {'' if address.startswith('localhost:') else address}"


def _kind_reader(row: Channel) -> Callable[[zmq.Frame], str] | None:
    readers = (
        (kind_and_address, row.tells_address),
        (partial(said_of, name="Socket-Type"), row.tells_kind),
        (partial(said_of, name="Peer-Address"), row.tells_process),
        (key_and_address, row.is_for_strangers),
    )
    return next((reader for reader, is_wanted in readers if is_wanted), None)


class Keeps(End):
    """A socket per tag of a `Connect`; only sockets with data are read.

    A socket that has used up its budget is not read for `REST_S`; the messages wait with their sender. A broker has more
    important work than values, and a flood of them must not take all its time (LVC-009).
    """

    def __init__(self, *words: Any) -> None:
        super().__init__(*words)
        self._with_data: dict[bytes, None] = {}
        self._resting: dict[bytes, asyncio.TimerHandle] = {}

    def take(self, heard: list[Heard], size: int) -> int:
        self._is_queued = False
        with_data, self._with_data = self._with_data, {}
        share = min(size, self.row.budget_bytes) // max(1, len(with_data))
        found = [(key, self.sockets[key]) for key in with_data if key in self.sockets]
        return sum(self._take(key, socket, heard, self.row.budget, share) for key, socket in found)

    def is_readable(self) -> bool:
        """Whether a socket has data: descriptors report that reliably, because nothing is sent on these sockets."""
        self._is_queued = bool(self._with_data)
        return self._is_queued

    def _listen(self, key: bytes, made: Socket) -> None:
        super()._listen(key, made)
        self._with_data[key] = None

    def _wake(self, key: bytes) -> None:
        if key not in self._resting:
            self._with_data[key] = None
            super()._wake(key)

    def _go_on(self, key: bytes) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self.sockets[key].FD)
        self._resting[key] = loop.call_later(REST_S, self._rested, key)

    def _rested(self, key: bytes) -> None:
        del self._resting[key]
        self._listen(key, self.sockets[key])
        self._wake(key)

    def _close(self, key: bytes) -> None:
        self._with_data.pop(key, None)
        if key in self._resting:
            self._resting.pop(key).cancel()
        super()._close(key)


class Adds(End):
    """One socket connected to many places.

    A peer that was unknown when it was dialled, or has another key now, is dialled again (SEC-013): libzmq goes on with
    the key that it was given, and does not report that it is wrong.
    """

    def __init__(self, *words: Any) -> None:
        super().__init__(*words)
        self._reached: dict[str, tuple[tuple[bytes, str] | None, float]] = {}
        """By endpoint: UUID and key of the node that is expected there, and since when."""

    def connect(self, effect: Connect) -> None:
        """Connect to one more place."""
        if b"" not in self.sockets:
            self._open(b"", host_of(effect.endpoint))
        self._queue()
        self._reach(effect.endpoint)

    def _reach(self, endpoint: str) -> None:
        self._reached[endpoint] = (self.dial(b"", self.sockets[b""], endpoint), time.monotonic())

    def send(self, peer: bytes, frames: list[bytes]) -> bool:
        """Like `End.send`, to all connected peers."""
        if self._credentials.is_closed and b"" in self.sockets:
            self._look_again()
        return super().send(peer, frames)

    def _look_again(self) -> None:
        now = time.monotonic()
        for endpoint, (pair, at) in list(self._reached.items()):
            pairs = self._credentials.pairs(shifted(endpoint, -self.row.place))
            is_right = pairs == [pair] or (pair in pairs and endpoint not in self.awaited.unheard)
            if pairs and not is_right and now >= at + AGAIN_S:
                self.redial(b"", endpoint)

    def redial(self, key: bytes, endpoint: str) -> None:
        """Connect again. If a host name was dialled, libzmq reports its address: then all at that port are dialled again."""
        port = endpoint.rpartition(":")[2]
        for each in [endpoint] if endpoint in self._reached else list(self._reached):
            if each.rpartition(":")[2] == port:
                self._credentials.note_lost(shifted(each, -self.row.place))
                leave(self.sockets[key], each)
                self._reach(each)

    def forget(self, gone: Container[bytes]) -> None:
        """Keys of the nodes `gone` are no longer valid: close connections to them, and keep the others."""
        for endpoint, (pair, _) in list(self._reached.items()):
            if pair is not None and pair[0] in gone:
                leave(self.sockets[b""], endpoint)
                self._reached[endpoint] = (None, time.monotonic())

    def _close(self, key: bytes) -> None:
        self._reached.clear()
        super()._close(key)


class Calls(End):
    """A socket per endpoint, closed when idle."""

    def __init__(self, *words: Any) -> None:
        super().__init__(*words)
        self._used_at: dict[bytes, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def disconnect(self) -> None:
        super().disconnect()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _target(self, peer: bytes) -> Socket | None:
        made = self.sockets.get(peer) or self._call(peer.decode("ascii", "replace"))
        if made is not None:
            self._use(peer)
        return made

    def _call(self, endpoint: str) -> Socket | None:
        if not (is_endpoint if self.row.place else is_address)(endpoint):
            return None
        if len(self.sockets) >= CALLS_MAX:
            self._close(min(self._used_at, key=lambda key: self._used_at[key]))
            self.drop("too many calls")
        key = endpoint.encode()
        made = self._open(key, host_of(endpoint))
        self.dial(key, made, shifted(endpoint, self.row.place))
        return made

    def _use(self, key: bytes) -> None:
        loop = asyncio.get_running_loop()
        self._used_at[key] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(CALL_IDLE_S, self._hang_up)

    def _hang_up(self) -> None:
        """Close sockets that were idle long enough, and schedule the next check."""
        loop = asyncio.get_running_loop()
        for key in [key for key, at in self._used_at.items() if loop.time() - at >= CALL_IDLE_S]:
            self._close(key)
        self._timer = None
        if self._used_at:
            self._timer = loop.call_at(min(self._used_at.values()) + CALL_IDLE_S, self._hang_up)

    def _close(self, key: bytes) -> None:
        super()._close(key)
        self._used_at.pop(key, None)

    def _take(self, key: bytes, source: Socket, heard: list[Heard], count: int, size_max: int) -> int:
        before = len(heard)
        size = super()._take(key, source, heard, count, size_max)
        if len(heard) > before:
            self._use(key)
        return size


def _note_link(
    awaited: Awaited, credentials: Credentials, place: int, key: bytes, endpoint: str, *, is_up: bool
) -> None:  # tidy: the first three are bound once, for all connections of a channel
    """Note that a peer has accepted a connection, or that it is lost; `place`: the channel's port in a node's block."""
    curve = awaited.note_link(key, endpoint, asyncio.get_running_loop().time(), is_up=is_up)
    if is_up and curve:
        credentials.note_accepted(shifted(endpoint, -place), curve)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
