"""The sockets of a node's catalog: ROUTER and XPUB on ports of their own, beats and beacon by UDP (CAT-001, CAT-002).

The ROUTER is bound at its configured port, where programs look for it, or the node does not start. If another port is
taken, a spare one is used, and the beacon names it.
"""

import asyncio
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft.base.effects import Source
from weft.base.endpoints import endpoint_of, host_of, is_loopback
from weft.base.errors import UserError
from weft.base.keys import Holder, may
from weft.cores.catalog.messages import Ports
from weft.node.catalogtable import SPARE_PORTS, BridgeTable, CatalogTable
from weft.node.settings import LOOPBACK, NodeSettings
from weft.shell.blocks import free_blocks
from weft.shell.door import Door
from weft.shell.links import LOOPBACK_BROADCAST, Links
from weft.shell.opendoors import OpenDoor, reached_by
from weft.shell.runner import Runner

if TYPE_CHECKING:
    from weft.shell.catalogchecks import CheckRunner
    from weft.shell.catalogrelays import Relays
    from weft.shell.mdns import Entry

DATAGRAM_BYTES: Final = 65_535  # larger than allowed, so that an oversized datagram is counted and not truncated
BUDGET: Final = 4_096  # datagrams read per turn; the kernel drops what does not fit into its buffer meanwhile
BUFFER_BYTES: Final = 4 << 20  # bytes; the default buffer holds only 256 beats (BEA-025)
BROADCAST: Final = "255.255.255.255"
APART: Final = 100  # between the ports of two brokers on one machine: each has four, and a range of spare ones
MDNS_TYPE: Final = "_dbp._tcp.local."


class CatalogDoors:
    """Opened when the node can handle messages; unused in a node without a catalog."""

    def __init__(self, settings: NodeSettings, runner: Runner, links: Links, state: Path) -> None:
        self._table, self._runner, self._links = settings.catalog, runner, links
        self._node_host = settings.node.host
        self._host = (self._table.host if self._table else "") or self._node_host
        self._door = Door(state, "catalog")
        self._beats: socket.socket | None = None
        self._beacons: socket.socket | None = None
        self._relays: Relays | None = None
        self._entry: Entry | None = None
        self._checks: CheckRunner | None = None
        self._is_open = settings.security.is_open
        self._destinations: tuple[str, ...] = ()

    def open(self) -> None:
        """Listen and begin to send beacons; UserError `port-in-use` if the ROUTER's port is taken (CAT-001)."""
        table = self._table
        if table is None:
            return
        from weft.shell.catalogchecks import CheckRunner  # imported only by a node with a catalog

        if not self._links.serve_at("catalog", self._host, table.port):
            raise port_in_use(self._host, table.port)
        self._door.open(self._links, ("catalog",))
        events = self._serve("catalog-events", table.port + 1)
        monitor = self._serve("catalog-monitor", table.port + 2)
        bridge = self._bridge(table.bridge, table.port + 3) if table.bridge is not None else 0
        self._checks = CheckRunner(self._runner, self._links)
        beats = self._listen(table.port)
        self._runner.doors |= {"catalog-beats": self._answer, "catalog-beacon": self._send_beacon}
        if table.beacons:
            self._beacons = _datagrams()
            self._beacons.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            self._destinations = destinations_of(table, self._host)
        self._runner.order("catalog", Ports(beats, events, monitor, bridge))

    def open_doors(self) -> Iterator[OpenDoor]:
        """The ports of beats, which are accepted without a key because they are only hints."""
        if self._beats is not None:
            host, port, *_ = self._beats.getsockname()
            yield OpenDoor("catalog-beats", endpoint_of(host, port), reached_by(host))

    async def withdraw(self) -> None:
        """Withdraw the broker's mDNS entry, so that other machines notice at once."""
        if self._entry is not None:
            await self._entry.close()

    def close(self) -> None:
        """Close everything."""
        if self._beats is not None:
            asyncio.get_running_loop().remove_reader(self._beats)
            self._beats.close()
            self._beats = None  # a page may still ask which doors are open
        if self._beacons is not None:
            self._beacons.close()
        if self._relays is not None:
            self._relays.close()
        if self._checks is not None:
            self._checks.close()
        self._door.close()

    def _serve(self, channel: str, first: int, host: str = "") -> int:
        """Bind a channel at this port, or at a spare one; returns the port, 0 if none is free (CAT-002)."""
        return next((port for port in _ports(first) if self._links.serve_at(channel, host or self._host, port)), 0)

    def _bridge(self, table: BridgeTable, first: int) -> int:
        """The port at which other brokers dial this one, 0 if there is none; UserError `insecure-bridge`, `bridge-role`.

        With keys it is bound at the node's own address, even if the catalog listens on loopback for programs without keys.
        """
        from weft.shell.catalogrelays import Relays  # imported only by a node with bridges

        credentials = self._links.credentials
        own = credentials.table.find(credentials.keys.public) if credentials.keys is not None else None
        check_bridge(table, is_safe=credentials.is_closed or self._is_open)
        check_role(table, own)
        self._relays = Relays(self._host, self._runner, self._links)
        # Keys are checked when a broker dials; the table of this start may be older than this node's own key.
        host = self._node_host if credentials.is_closed and is_loopback(self._host) else ""
        return self._serve("catalog-bridge", first, host) if table.listen else 0

    def _listen(self, first: int) -> int:
        """Receive beats at this port, or at a spare one; returns the port, 0 if none is free."""
        made = _datagrams(AF_INET6 if ":" in self._host else AF_INET)
        for option in (SO_RCVBUFFORCE, socket.SO_RCVBUF):
            try:
                made.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
                break
            except OSError:  # only root may exceed the system's limit
                continue
        for port in _ports(first):
            try:
                made.bind((self._host, port))
            except OSError:
                continue
            self._beats = made
            asyncio.get_running_loop().add_reader(made, self._hear)
            return port
        made.close()
        return 0

    def _hear(self) -> None:
        """Read everything available at once: a UDP socket has only a small buffer (BEA-025)."""
        assert self._beats is not None, "set before its reader is added"
        for _ in range(BUDGET):
            try:
                data, address = self._beats.recvfrom(DATAGRAM_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:  # an ICMP error for one of our answers
                self._links.dropped[f"catalog-beats:{error.strerror}"] += 1
                continue
            self._runner.post(Source("catalog-beats", f"{address[0]}:{address[1]}".encode()), [data])

    def _answer(self, peer: bytes, frames: list[bytes]) -> None:
        host, _, port = peer.decode().rpartition(":")
        if self._beats is not None:
            self._send(self._beats, frames[0], (host, int(port)), "catalog-beats")

    def _send_beacon(self, _: bytes, frames: list[bytes]) -> None:
        """Send a beacon to all destinations (BEA-007).

        It gets a MAC with the fabric's secret, unless the file names another key. An error at one address does not stop
        the others (BEA-002).
        """
        self._announce(frames[0])
        if self._beacons is not None and self._table is not None:
            seal = None if self._table.beacon_key else self._links.seal
            datagram = frames[0] if seal is None else seal.seal(frames[0])
            for host in self._destinations:
                self._send(self._beacons, datagram, (host, self._table.beacon_port), "catalog-beacon")

    def _announce(self, beacon: bytes) -> None:
        """Announce by mDNS what the first beacon contains (BEA-006)."""
        if self._table is None or not self._table.mdns or self._entry is not None:
            return
        from weft.shell.mdns import Entry  # imported only by a node that uses mDNS

        self._entry = Entry(MDNS_TYPE)
        tokens = (token.partition("=") for token in beacon.decode("ascii", "replace").split()[2:])
        fields = {key: value for key, _, value in tokens}
        host = f"[{self._host}]" if ":" in self._host else self._host
        self._entry.open(f"weft {self._table.net or fields.get('id', '')}", f"{host}:{self._table.port}", fields)

    def _send(self, through: socket.socket, data: bytes, address: tuple[str, int], channel: str) -> None:
        try:
            through.sendto(data, address)
        except OSError as error:
            self._links.dropped[f"{channel}:{error.strerror}"] += 1


def port_in_use(host: str, port: int) -> UserError:
    """The error for a taken port, with what to do: usually another node of this machine has a catalog already (CAT-001)."""
    free = free_blocks(1, port + APART)[0]
    mend = (
        f"no [catalog] in this node's file, as one broker serves all programs of a machine; or port = {free} in it"
        f" (weft catalog serve --port {free}), where programs find it by its beacon or with WEFT_CATALOG={host}:{free}"
    )
    return UserError("port-in-use", f"port {port} of {host} is taken: another node with [catalog] may run here", mend)


def check_bridge(table: BridgeTable, *, is_safe: bool) -> None:
    """UserError for a bridge to another machine without keys, unless the file asks for an open network (BRI-012)."""
    far = [place for place in table.to if not is_loopback(host_of(place))]
    if far and not is_safe:
        text = f"a bridge to {far[0]} needs keys: without them anybody on the way could answer for services there"
        mend = 'a closed fabric (weft invite), or [security] mode = "none" and allow_insecure = true'
        raise UserError("insecure-bridge", text, mend)


def check_role(table: BridgeTable, own: Holder | None) -> None:
    """UserError for a bridge to another machine, if this node's key is known and may not bridge (BRI-012)."""
    far = [place for place in table.to if not is_loopback(host_of(place))]
    if far and own is not None and not may(own.roles, "bridge"):
        text = f"the broker at {far[0]} would not hear this node: its key is that of a {' and '.join(role.name.lower() for role in sorted(own.roles))}"
        mend = f"at the root weft invite --role collector --names {own.name}, here weft join TOKEN --name {own.name} --state ITS_DIRECTORY"
        raise UserError("bridge-role", text, mend)


AF_INET, AF_INET6 = socket.AF_INET, socket.AF_INET6
SO_RCVBUFFORCE: Final = 33  # of Linux; Python has no name for it


def _datagrams(family: socket.AddressFamily = AF_INET) -> socket.socket:
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


def _ports(first: int) -> Iterable[int]:
    return (first, *SPARE_PORTS)


def destinations_of(table: CatalogTable, host: str) -> tuple[str, ...]:
    """Destinations of the beacon: those in the table, else every broadcast address near the host (BEA-002)."""
    if table.beacon_to:
        return table.beacon_to
    if host in LOOPBACK:
        return (LOOPBACK_BROADCAST,)
    import psutil  # imported only here, as it is a tenth of the memory of a small node

    directed = {
        address.broadcast
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family == AF_INET and address.broadcast
    }
    return (BROADCAST, LOOPBACK_BROADCAST, *sorted(directed - {BROADCAST, LOOPBACK_BROADCAST}))
