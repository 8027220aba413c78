"""The sockets of a node: its channels on ZeroMQ and UDP, read in batches (SIM-020 to SIM-022).

`zmq.asyncio` handles 25 to 50 thousand messages per second; reading frames with NOBLOCK until none is left handles several
hundred thousand. So the event loop only watches descriptors, and `drain` reads what is there, up to a budget. The descriptor
is edge-triggered: when the budget is used up, and after each send, a socket must be read again, or its messages wait for
the next signal.
"""

import asyncio
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import zmq

from weft.base.effects import Connect, Source
from weft.base.errors import UserError
from weft.base.keys import KeyTable
from weft.node.channels import ADDS, CALLS, CHANNELS, CLONE, KEEPS
from weft.shell.beaconseal import Seal
from weft.shell.ends import Adds, Calls, End, Heard, Keeps, size_of
from weft.shell.sockets import Context, Credentials
from weft.shell.zap import Gatekeeper

BUDGET: Final = 256  # datagrams per turn
BUDGET_BYTES: Final = 4 << 20  # read per turn: the records of a turn are written in one batch, of at most 16 MiB
SHARE_BYTES: Final = BUDGET_BYTES // 2  # of one channel; a channel that had to wait is the first in the next turn
DATAGRAM_BYTES: Final = 2_048
KINDS: Final = {ADDS: Adds, CALLS: Calls, KEEPS: Keeps}
SOCKETS_MAX: Final = (
    3 * 4_096
)  # for sources of the catalog (LVC-001), probes and the mesh; each needs two more to watch it
MENDS: Final = {"": "--port, 10 or more away", CLONE: "[chp] port"}
"""Suggested mend if a port of a block is taken; for an annex it is the port in its table."""
LOOPBACK: Final = "127.0.0.1"
LOOPBACK_BROADCAST: Final = "127.255.255.255"  # reaches every listener on this machine, even if no interface is up


def make_beacon_socket(port: int, *, is_local: bool) -> socket.socket:
    """A UDP socket that receives the beacons of this machine, however many nodes listen (BEA-003).

    `is_local`: it receives nothing from other machines. It is bound to the broadcast address of the loopback interface, to
    which the system delivers nothing from a network (FLD-010). If the system cannot bind to that address, the socket
    receives everything, and the core drops what other machines send.
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
    """Adds MACs to datagrams and checks them, if the fabric has a secret for that."""

    def __init__(self, on_readable: Callable[[], None]) -> None:
        self._on_readable = on_readable
        self._context: Context = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, SOCKETS_MAX)
        self._ends: dict[str, End] = {}
        self._to_read: deque[End] = deque()
        """The channels that may have something to read; the first has waited longest."""
        self._beacon: socket.socket | None = None
        self._beacon_port = 0
        self._is_local = False
        """Whether the system delivers only beacons of this machine."""
        self._has_beacons = False
        """Whether beacons may wait. Without it each turn would cost a system call."""
        self.dropped: Counter[str] = Counter()
        """Dropped messages, by `channel:why`."""

    def serve(
        self, host: str, base_port: int, channels: Iterable[str], others: Mapping[str, int] | None = None
    ) -> None:
        """Bind those of the channels that are bound, on the node's block of ports; UserError `port-taken`.

        `others`: the first ports of other blocks, by name. Channels of a block that is not named there are not bound.
        """
        blocks = {"": base_port, **(others or {})}
        for name in channels:
            row = CHANNELS[name]
            if not row.is_bound or row.block not in blocks:
                continue
            first = blocks[row.block]
            is_only_local = row.block == CLONE and self.credentials.is_closed  # that protocol has no keys
            where = LOOPBACK if is_only_local else host
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
        """Bind a channel at a port outside the node's block; returns whether it was free."""
        try:
            self._end(name).bind(host, port - CHANNELS[name].place)
        except zmq.ZMQError:
            return False
        return True

    def serve_locally(self, path: Path, channels: Iterable[str]) -> None:
        """Bind channels on a local socket, at a path; UserError `socket-refused`."""
        for name in channels:
            try:
                self._end(name).bind_local(path)
            except (zmq.ZMQError, OSError) as error:
                self.close()
                raise UserError(
                    "socket-refused", f"{path} cannot be bound: {error.strerror}", "another [node] state"
                ) from error

    def listen(self, port: int, *, is_local: bool) -> None:
        """Receive and send beacons on a UDP port; `is_local`: receive none of other machines."""
        self._beacon, self._beacon_port = make_beacon_socket(port, is_local=is_local), port
        self._is_local = self._beacon.getsockname()[0] == LOOPBACK_BROADCAST
        asyncio.get_running_loop().add_reader(self._beacon, self._note_beacons)

    def connect(self, effect: Connect) -> None:
        """Open a connection of a channel: in place of the one before, or beside it if the channel has many."""
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
        """Received messages: at most each channel's `budget`, and about `BUDGET_BYTES`; True if there may be more."""
        heard: list[Heard] = []
        left = BUDGET_BYTES
        for _ in range(len(self._to_read)):
            if left <= 0:
                break
            left -= self._to_read.popleft().take(heard, min(SHARE_BYTES, left))
        if self._has_beacons and self._beacon is not None:
            heard.extend(self._drain_beacons(self._beacon))
        return heard, bool(self._to_read)

    def has_more(self) -> bool:
        """Whether there is something to read. For a message that came during a send the descriptor may not signal."""
        while self._to_read and not self._to_read[0].is_readable():
            self._to_read.popleft()
        return bool(self._to_read)

    def send(self, channel: str, peer: bytes, frames: list[bytes]) -> bool:
        """Give a message to its socket. If the peer is gone or accepts nothing, it is dropped and counted: False."""
        if channel != "beacon":
            return self._end(channel).send(peer, frames)
        self._send_beacon(frames[0])
        return True

    def secure(self, credentials: Credentials) -> None:
        """Accept only peers whose keys are known, on all sockets; called before there is one."""
        assert not self._ends, "a socket that was made without keys never asks for them"
        self.credentials = credentials
        self.gatekeeper = Gatekeeper(self._context, credentials.table)
        self.gatekeeper.open()
        credentials.gatekeeper = self.gatekeeper

    def admit(self, table: KeyTable, gone: frozenset[bytes]) -> None:
        """Accept the keys of `table` from now on. A key of the nodes `gone` is no longer valid: connections to them end (SEC-052)."""
        self.credentials.table = table
        self.credentials.shut.forget()
        if self.gatekeeper is not None:
            self.gatekeeper.table = table
        if gone:
            for end in self._ends.values():
                end.forget(gone)

    def close(self) -> None:
        """Close all sockets; messages that libzmq has not sent yet are lost, as in a crash."""
        for end in self._ends.values():
            end.disconnect()
        if self.gatekeeper is not None:
            self.gatekeeper.close()
        if self._beacon is not None:
            asyncio.get_running_loop().remove_reader(self._beacon)
            self._beacon.close()
            self._beacon = None
        self._context.destroy(0)  # also sockets of checks and probes that are cancelled, but have not ended yet

    @property
    def context(self) -> Context:
        """The ZeroMQ context of all sockets of the node."""
        return self._context

    @property
    def ends(self) -> dict[str, End]:
        """The sockets that are open, by channel."""
        return self._ends

    def _end(self, name: str) -> End:
        found = self._ends.get(name)
        if found is None:
            make = KINDS.get(CHANNELS[name].how, End)
            found = self._ends[name] = make(
                name, self._context, self._on_readable, self.dropped, self._to_read, self.credentials
            )
        return found

    def _note_beacons(self) -> None:
        self._has_beacons = True
        self._on_readable()

    def _drain_beacons(self, source: socket.socket) -> Iterator[Heard]:
        for _ in range(BUDGET):
            try:
                data, address = source.recvfrom(DATAGRAM_BYTES)
            except (BlockingIOError, InterruptedError):
                self._has_beacons = False
                return
            if self.seal is not None and (why := self.seal.fault(data)):
                self.dropped[f"beacon:{why}"] += 1
                continue
            yield Heard(Source("beacon", self._sender_of(address[0])), [data])

    def _sender_of(self, host: str) -> bytes:
        """The sender of a beacon. A machine without addresses sends as 0.0.0.0 to itself (BEA-003); others may forge that."""
        if self._is_local and host == "0.0.0.0":  # noqa: S104  # nothing is bound
            return b"127.0.0.1"
        return host.encode()

    def _send_beacon(self, data: bytes) -> None:
        if self._beacon is None:
            return
        try:
            data = data if self.seal is None else self.seal.seal(data)
            self._beacon.sendto(data, (LOOPBACK_BROADCAST, self._beacon_port))
        except OSError as error:
            self.dropped[f"beacon:{error.strerror}"] += 1
