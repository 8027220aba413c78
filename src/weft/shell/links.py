"""The sockets of a node: its channels on ZeroMQ and UDP, drained in batches (SIM-020 to SIM-022).

`zmq.asyncio` reaches 25 to 50 thousand messages a second and core; draining a socket's descriptor with NOBLOCK
`recv` per frame several hundred thousand. So the event loop only watches descriptors, and `drain` takes what is
there, up to a budget. The descriptor is edge-triggered: after a budget that ran out, and after any send, a socket
must be looked at again, or its messages wait for the next edge.
"""

import asyncio
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import zmq

from weft.base.effects import Connect
from weft.base.errors import UserError
from weft.base.keys import KeyTable
from weft.node.channels import ADDS, CALLS, CHANNELS, CLONE, KEEPS
from weft.shell.beaconseal import Seal
from weft.shell.ends import Adds, Calls, End, Heard, Keeps, size_of
from weft.shell.sockets import Context, Credentials
from weft.shell.zap import Gatekeeper

BUDGET: Final = 256  # datagrams per turn
BUDGET_BYTES: Final = 4 << 20  # per turn: what is heard in one turn is written in one batch, of at most 16 MiB
SHARE_BYTES: Final = BUDGET_BYTES // 2  # of one channel; who had to wait is the first in the next turn
DATAGRAM_BYTES: Final = 2_048
KINDS: Final = {ADDS: Adds, CALLS: Calls, KEEPS: Keeps}
SOCKETS_MAX: Final = 3 * 4_096  # a source of the catalog (LVC-001), a probe, a member of the mesh; two more watch each
MENDS: Final = {"": "--port, 10 or more away", CLONE: "[chp] port"}
"""Suggested mend if a port of a block is taken; for an annex it is the port in its table."""
LOOPBACK: Final = "127.0.0.1"
LOOPBACK_BROADCAST: Final = "127.255.255.255"  # reaches every listener on this machine, even if no interface is up


def make_beacon_socket(port: int, *, is_local: bool) -> socket.socket:
    """A UDP socket that hears every beacon of this machine, however many nodes listen (BEA-003).

    `is_local`: it hears no other machine. It is bound to the broadcast address of the loopback interface, to which
    the system delivers nothing that comes from a network (FLD-010). Where the system cannot bind to that address,
    the socket hears everything, and the core drops what another machine sends.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT, socket.SO_BROADCAST):
        made.setsockopt(socket.SOL_SOCKET, option, 1)
    made.settimeout(0)
    try:
        made.bind((LOOPBACK_BROADCAST if is_local else "", port))
    except OSError:
        if not is_local:
            raise
        made.bind(("", port))
    return made


def within(budget_bytes: int, source: Iterator[Heard]) -> Iterator[Heard]:
    """Yield messages until a total of that many bytes."""
    for heard in source:
        yield heard
        budget_bytes -= size_of(heard)
        if budget_bytes <= 0:
            return


class Links:
    """All channels of one node. `on_readable` is called when there is something to drain."""

    credentials = Credentials()
    """Keys of this node and of others; none, until `secure` is called."""
    gatekeeper: Gatekeeper | None = None
    """Decides which peers may connect, if there are keys."""

    seal: Seal | None = None
    """What datagrams are sealed with, where the fabric has a secret for them."""

    def __init__(self, on_readable: Callable[[], None]) -> None:
        self._on_readable = on_readable
        self._context: Context = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, SOCKETS_MAX)
        self._ends: dict[str, End] = {}
        self._stirred: deque[End] = deque()
        """Those that may have something to hear, the first for the longest time."""
        self._beacon: socket.socket | None = None
        self._beacon_port = 0
        self._is_local = False
        """Whether the system hands over only beacons of this machine."""
        self._is_called = False
        """Whether beacons may wait: looking costs a call of the system, each turn."""
        self.dropped: Counter[str] = Counter()
        """Messages that reached nobody, by `channel:why`."""

    def serve(
        self, host: str, base_port: int, channels: Iterable[str], others: Mapping[str, int] | None = None
    ) -> None:
        """Bind those of the channels that wait for others, on the node's block of ports; UserError `port-taken`.

        `others`: where other blocks begin, by name; channels of a block that is not there are not bound.
        """
        blocks = {"": base_port, **(others or {})}
        for name in channels:
            row = CHANNELS[name]
            if not row.is_bound or row.block not in blocks:
                continue
            first = blocks[row.block]
            where = (
                LOOPBACK if row.block == CLONE and self.credentials.is_closed else host
            )  # its protocol knows no keys
            try:
                self._end(name).bind(where, first)
            except zmq.ZMQError as error:
                self.close()
                raise UserError(
                    "port-taken",
                    f"port {first + row.place} of {where} cannot be bound: {error.strerror}",
                    f"another {MENDS.get(row.block, f'[{row.block}] port')}",
                ) from error

    def serve_at(self, name: str, host: str, port: int) -> bool:
        """Bind a channel at a port that is none of the node's block; whether it was free."""
        try:
            self._end(name).bind(host, port - CHANNELS[name].place)
        except zmq.ZMQError:
            return False
        return True

    def serve_locally(self, path: Path, channels: Iterable[str]) -> None:
        """Bind channels on a socket of this machine's file system; UserError `socket-refused`."""
        for name in channels:
            try:
                self._end(name).bind_local(path)
            except (zmq.ZMQError, OSError) as error:
                self.close()
                raise UserError(
                    "socket-refused", f"{path} cannot be bound: {error.strerror}", "another [node] state"
                ) from error

    def listen(self, port: int, *, is_local: bool) -> None:
        """Hear and send beacons on a UDP port of this machine; `is_local`: hear no other machine."""
        self._beacon, self._beacon_port = make_beacon_socket(port, is_local=is_local), port
        self._is_local = self._beacon.getsockname()[0] == LOOPBACK_BROADCAST
        asyncio.get_running_loop().add_reader(self._beacon, self._hear_call)

    def connect(self, effect: Connect) -> None:
        """Open a connection of a channel: in place of the one before, or where the channel adds them, beside it."""
        self._end(effect.channel).connect(effect)

    def disconnect(self, channel: str, peer: bytes = b"") -> None:
        """Close the connections of a channel, or the one to an endpoint."""
        end = self._end(channel)
        if peer:
            end.hang_up(peer)
        else:
            end.disconnect()

    def unbind(self, channel: str) -> None:
        """Close the port of a channel."""
        self._end(channel).unbind()

    def drain(self) -> tuple[list[Heard], bool]:
        """What has come in, at most each channel's `budget` of messages and about `BUDGET_BYTES`; True if there may be more."""
        heard: list[Heard] = []
        left = BUDGET_BYTES
        for _ in range(len(self._stirred)):
            if left <= 0:
                break
            left -= self._stirred.popleft().take(heard, min(SHARE_BYTES, left))
        if self._is_called and self._beacon is not None:
            heard.extend(self._drain_beacons(self._beacon))
        return heard, bool(self._stirred)

    def has_more(self) -> bool:
        """Whether something has come in since: a descriptor may say nothing of what came while something was sent."""
        while self._stirred and not self._stirred[0].is_readable():
            self._stirred.popleft()
        return bool(self._stirred)

    def send(self, channel: str, peer: bytes, frames: list[bytes]) -> bool:
        """Hand a message to its socket. A peer that is gone or takes nothing loses it: False, and it is counted."""
        if channel != "beacon":
            return self._end(channel).send(peer, frames)
        self._shout(frames[0])
        return True

    def secure(self, credentials: Credentials) -> None:
        """From the first socket on, let those in only whose key is known; called before there is one."""
        assert not self._ends, "a socket without keys is open for good"
        self.credentials = credentials
        self.gatekeeper = Gatekeeper(self._context, credentials.table)
        self.gatekeeper.open()
        credentials.gatekeeper = self.gatekeeper

    def admit(self, table: KeyTable, gone: frozenset[bytes]) -> None:
        """Whom to let in from now on; to the nodes in `gone`, a key of which is nobody's any more, all is closed (SEC-052)."""
        self.credentials.table = table
        self.credentials.shut.forget()
        if self.gatekeeper is not None:
            self.gatekeeper.table = table
        if gone:
            for end in self._ends.values():
                end.forget(gone)

    def close(self) -> None:
        """Close all; messages that libzmq still holds are lost, as in a crash."""
        for end in self._ends.values():
            end.disconnect()
        if self.gatekeeper is not None:
            self.gatekeeper.close()
        if self._beacon is not None:
            asyncio.get_running_loop().remove_reader(self._beacon)
            self._beacon.close()
            self._beacon = None
        self._context.destroy(0)  # a check or a probe whose cancellation is still to come holds a socket

    @property
    def context(self) -> Context:
        """In which all sockets of the node are made."""
        return self._context

    @property
    def ends(self) -> dict[str, End]:
        """What is open, by channel."""
        return self._ends

    def _end(self, name: str) -> End:
        found = self._ends.get(name)
        if found is None:
            make = KINDS.get(CHANNELS[name].how, End)
            found = self._ends[name] = make(
                name, self._context, self._on_readable, self.dropped, self._stirred, self.credentials
            )
        return found

    def _hear_call(self) -> None:
        self._is_called = True
        self._on_readable()

    def _drain_beacons(self, source: socket.socket) -> Iterator[Heard]:
        for _ in range(BUDGET):
            try:
                data, address = source.recvfrom(DATAGRAM_BYTES)
            except (BlockingIOError, InterruptedError):
                self._is_called = False
                return
            if self.seal is not None and (why := self.seal.fault(data)):
                self.dropped[f"beacon:{why}"] += 1
                continue
            yield Heard("beacon", self._sender_of(address[0]), None, [data])

    def _sender_of(self, host: str) -> bytes:
        """Who sent a beacon. A machine without addresses sends as 0.0.0.0 to itself (BEA-003); others may forge that."""
        if self._is_local and host == "0.0.0.0":  # noqa: S104  # nothing is bound
            return b"127.0.0.1"
        return host.encode()

    def _shout(self, data: bytes) -> None:
        if self._beacon is None:
            return
        try:
            data = data if self.seal is None else self.seal.seal(data)
            self._beacon.sendto(data, (LOOPBACK_BROADCAST, self._beacon_port))
        except OSError as error:
            self.dropped[f"beacon:{error.strerror}"] += 1
