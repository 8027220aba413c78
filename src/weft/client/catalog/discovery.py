"""Finds the broker: tries the given addresses in turn, otherwise listens for a beacon (BEA-003, BEA-004).

A given address, a seed, needs no broadcast: it is asked for its status, and whatever answers is a broker. One that does not
answer as Weft's broker does is a legacy broker, which has no status, no queries, no events and no datagrams.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
import zmq

from weft.base.endpoints import endpoint_of
from weft.base.errors import PeerError
from weft.client.catalog import limits
from weft.client.catalog.errors import Unreachable
from weft.client.catalog.lines import Line
from weft.client.catalog.servicelimits import BEACON_PORT, DISCOVERY_S
from weft.client.link.backoff import BackOff
from weft.client.link.keyring import PLAIN, Keyring
from weft.client.link.opening import BadEndpoint, Target
from weft.wire.catalog import beacon as beacons
from weft.wire.catalog import commands, times
from weft.wire.catalog.messages import REPLY, REQUEST, Beacon, Message

STATUS = b"dbp.status"


class Found(NamedTuple):
    """A broker, and what its beacon or status says."""

    host: str
    port: int
    """Address of its ROUTER."""
    hb: int = 0
    """UDP port of beats; 0: none."""
    pub: int = 0
    """XPUB port of events; 0: none."""
    epoch: str = ""
    net: str = ""
    caps: tuple[str, ...] = ()
    is_legacy: bool = False
    """True: a legacy broker, without queries, events and datagrams."""
    server: str = ""
    """Its public key, if it was contacted with keys."""


async def find_broker(  # tidy: each restricts the search
    seeds: Sequence[str] = (),
    *,
    net: str = "",
    wait_s: float = DISCOVERY_S,
    beacon_port: int = BEACON_PORT,
    beacon_key: str = "",
    keyring: Keyring | None = None,
) -> Found:
    """The broker: the first seed (`host:port`) that answers, or without seeds the first whose beacon is heard.

    net: only a broker of this network. beacon_key: only a beacon that is signed with it. keyring: the keys to expect; on
    other machines only a broker with one of them. Unreachable after `wait_s` seconds.
    """
    try:
        async with asyncio.timeout(wait_s):
            if seeds:
                return await _ask_around(seeds, net, keyring)
            heard = await _listen(Choice(net, beacon_key), beacon_port)
            return heard if keyring is None else await _ask_around((seed_of(heard),), net, keyring)
    except TimeoutError:
        where = f"no broker answers at {', '.join(seeds)}" if seeds else f"no beacon was heard at port {beacon_port}"
        raise Unreachable(f"{where} within {wait_s:g} s") from None


class Choice(NamedTuple):
    """Which beacons are accepted: empty means any (BEA-005, BEA-007)."""

    net: str = ""
    key: str = ""

    def counts(self, beacon: Beacon) -> bool:
        """Whether this beacon is accepted."""
        if self.net and beacon.net != self.net:
            return False
        return not self.key or beacons.is_signed(beacon, beacons.secret_of(self.key))


def of_beacon(beacon: Beacon, ip: str) -> Found:
    """The broker that has sent a beacon, at the address from which the beacon came.

    >>> of_beacon(Beacon(5246), "0.0.0.0")
    Found(host='127.0.0.1', port=5246, hb=0, pub=0, epoch='', net='', caps=(), is_legacy=True, server='')
    """
    host = "127.0.0.1" if ip == "0.0.0.0" else ip  # noqa: S104  # BEA-003: it means this machine
    return Found(
        host, beacon.port, beacon.hb, beacon.pub, beacon.id, beacon.net, beacon.caps, is_legacy=beacon.dbp == 0
    )


def of_status(seed: str, body: Sequence[bytes]) -> Found:
    """The broker at a seed, from its answer to the request for its status.

    >>> of_status("a:5246", [b'{"dbp":1,"hb":5246,"pub":5247,"epoch":"0f","net":"","caps":["f64"]}']).hb
    5246
    >>> of_status("a:5246", [b'{"Error":"no such service"}']).is_legacy
    True
    """
    host, _, port = seed.rpartition(":")
    try:
        status = msgspec.json.decode(body[0] if body else b"", type=_Status)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        status = _Status()
    if status.dbp != 1:
        return Found(host.strip("[]"), int(port), is_legacy=True)
    return Found(host.strip("[]"), int(port), status.hb, status.pub, status.epoch, status.net, status.caps)


class _Status(msgspec.Struct):
    """The fields of `dbp.status` that a client needs."""

    dbp: int = 0
    hb: int = 0
    pub: int = 0
    epoch: str = ""
    net: str = ""
    caps: tuple[str, ...] = ()


def seed_of(found: Found) -> str:
    """A broker's address as a seed, `host:port`."""
    return endpoint_of(found.host, found.port)


async def _ask_around(seeds: Sequence[str], net: str, keyring: Keyring | None) -> Found:
    back_off = BackOff(limits.BACK_OFF_MIN_S, limits.BACK_OFF_MAX_S)
    while True:
        for seed, server in ((each, key) for each in seeds for key in servers_of(keyring, each)):
            found = await _ask(seed, keyring, server)
            if found is not None and net in ("", found.net):
                return found._replace(server=server)
        await back_off.wait()


def servers_of(keyring: Keyring | None, seed: str) -> tuple[str, ...]:
    """The keys to try with a seed, in order; an empty one means without keys."""
    return (PLAIN,) if keyring is None else keyring.servers(seed)


def reached(endpoint: str, keyring: Keyring | None, server: str) -> Target:
    """Where to connect, expecting that key if there is one."""
    return Target(endpoint) if keyring is None else keyring.target(endpoint, server)


async def _ask(seed: str, keyring: Keyring | None, server: str) -> Found | None:
    """The broker at a seed; None if none with that key answers within a second."""
    heard: asyncio.Future[Sequence[bytes]] = asyncio.get_running_loop().create_future()

    def hear(frames: list[bytes]) -> None:
        with suppress(PeerError):
            message = commands.decode(frames)
            if message.command == REPLY and not heard.done():
                heard.set_result(message.body)

    try:
        line = Line(zmq.DEALER, reached(f"tcp://{seed}", keyring, server), hear)
    except BadEndpoint as error:
        raise Unreachable(f"{seed!r} is not a valid host:port: {error.reason}") from None
    try:
        line.say(commands.encode(Message(REQUEST, times.write("f32le", time.time()), (STATUS,))))
        async with asyncio.timeout(limits.ANSWER_S):
            return of_status(seed, await heard)
    except TimeoutError:
        return None
    finally:
        line.close()


async def _listen(choice: Choice, port: int) -> Found:
    heard: asyncio.Future[Found] = asyncio.get_running_loop().create_future()

    def hear(beacon: Beacon, ip: str) -> None:
        if choice.counts(beacon) and not heard.done():
            heard.set_result(of_beacon(beacon, ip))

    listener = await BeaconListener.open(port, hear)
    try:
        return await heard
    finally:
        listener.close()


class BeaconListener(asyncio.DatagramProtocol):
    """Receives every beacon of this machine's networks; other programs here receive them, too (BEA-003)."""

    def __init__(self, hear: Callable[[Beacon, str], None]) -> None:
        self.ignored = 0
        """Datagrams that were no beacons."""
        self._hear = hear
        self._transport: asyncio.BaseTransport | None = None

    @classmethod
    async def open(cls, port: int, hear: Callable[[Beacon, str], None]) -> "BeaconListener":
        """Start listening; Unreachable if another program has the port exclusively."""
        loop = asyncio.get_running_loop()
        try:
            _, listener = await loop.create_datagram_endpoint(lambda: cls(hear), sock=shared_socket(port))
        except OSError as error:
            raise Unreachable(f"beacons cannot be received: UDP port {port}: {error.strerror}") from None
        return listener

    def connection_made(self, transport: asyncio.BaseTransport) -> None:  # tidy: asyncio calls it
        self._transport = transport

    def datagram_received(self, data: bytes, address: tuple[Any, ...]) -> None:  # tidy: asyncio calls it
        try:
            beacon = beacons.decode([data])
        except PeerError:
            self.ignored += 1
            return
        self._hear(beacon, str(address[0]))

    def close(self) -> None:
        """Stop listening."""
        if self._transport is not None:
            self._transport.close()


def shared_socket(port: int) -> socket.socket:
    """A UDP socket that receives broadcasts to a port which other programs may have opened, too; OSError."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "SO_REUSEPORT"):
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.setblocking(False)
        made.bind(("", port))
    except OSError:
        made.close()
        raise
    return made
