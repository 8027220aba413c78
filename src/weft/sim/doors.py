"""The sockets of a simulated node, opened as the shell opens them: its block of ports, catalog, documents and Clone.

As in the shell, `Source.kind` says what a port knows of the sender (kind of socket, address). Programs of the same
machine have no sockets: messages on a local channel are handed to them.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from weft.base.effects import Source
from weft.base.endpoints import host_of
from weft.cores.catalog.messages import CloseRelay, OpenRelay, Ports, RelayOpened
from weft.cores.document.messages import Begin, LinkFull, Opened, OpenSession
from weft.node.annexes import ports_of
from weft.node.channels import CATALOG, CHANNELS, CLONE, Channel
from weft.node.node import Node, Transmit
from weft.sim.plan import CATALOG_PORT, CLONE_PORT, DOCUMENT_PORT, RELAY_PORT
from weft.sim.sockets import Flow, Plug, Router

if TYPE_CHECKING:
    from weft.sim.machine import Machine

BETWEEN: Final = b"\0"
"""Separates a session from a peer on the channel `document`, and a relay from its client."""
DOCUMENT: Final = "document"
BLOCKS: Final = ("", CATALOG, CLONE)
"""Blocks of ports that are open here: the node's own, and those of brokers and of the Clone pattern. Programs of the
same machine need none, and a port that opens only by order is never opened here."""
OF_CATALOG: Final = {"catalog": 0, "catalog-events": 1, "catalog-monitor": 2, "catalog-bridge": 3}
"""The port of each channel of the catalog."""


class Doors:
    """All bound sockets of one machine's node, and the links between its document sessions and others."""

    def __init__(self, machine: "Machine") -> None:
        self.machine, self.streams = machine, machine.fabric.streams
        self.bound: dict[str, Router] = {}
        """By channel."""
        self._sessions: dict[str, tuple[Router, str]] = {}
        """By session: its ROUTER, and the address where that listens."""
        self._uuids: dict[str, bytes] = {}
        self._relays: dict[bytes, Router] = {}
        """Relays, by tag."""
        self._opened = 0

    def open(self, node: Node) -> None:
        """Bind the sockets that its cores need, and report them to the cores."""
        machine = self.machine
        ports = ports_of(node.settings)
        for channel, row in node.channels.items():
            if row.is_bound and (row.block in BLOCKS or row.block in ports):
                port = ports[row.block] + row.place if row.block in ports else self._port(channel, row)
                address = f"{machine.address}:{port}"
                self.bound[channel] = self.streams.bind(machine, address, channel)
        if "catalog" in node.cores:
            machine.later(
                0,
                partial(
                    machine.obey, "catalog", Ports(CATALOG_PORT, CATALOG_PORT + 1, CATALOG_PORT + 2, CATALOG_PORT + 3)
                ),
            )
        if "document" in node.cores:
            machine.later(0, partial(machine.obey, "document", Begin()))

    def _port(self, channel: str, row: Channel) -> int:
        if row.block == CATALOG:
            return CATALOG_PORT + OF_CATALOG[channel]
        return (CLONE_PORT if row.block == CLONE else self.machine.fabric.base_port) + row.place

    def close(self, *, is_loud: bool) -> None:
        """Close all: the process has ended."""
        sessions = [router for router, _ in self._sessions.values()]
        for router in (*self.bound.values(), *sessions, *self._relays.values()):
            self.streams.unbind(router, is_loud=is_loud)
        self.bound, self._sessions, self._uuids, self._relays = {}, {}, {}, {}

    def rebind(self) -> None:
        """Close the ports that ask for keys and bind them again; peers whose keys are known reconnect by themselves."""
        for channel in self.keyed:
            if channel in self.bound:
                self.bound[channel] = self._again(self.bound[channel])
        for session, (router, where) in self._sessions.items():
            self._sessions[session] = self._again(router), where

    def _again(self, router: Router) -> Router:
        self.streams.unbind(router, is_loud=True)
        return self.streams.bind(self.machine, router.address, router.channel, router.prefix)

    # Receiving

    @property
    def keyed(self) -> list[str]:
        """Channels whose ports require a key, if there are keys."""
        own = [channel for channel in self.bound if not CHANNELS[channel].is_plain]
        return [*own, *([DOCUMENT] if self._sessions else [])]

    def peer_of(self, channel: str, who: bytes) -> bytes:
        """The `Source.peer` of a client at that port."""
        return next(iter(self._sessions)).encode() + BETWEEN + who if channel == DOCUMENT else who

    def heard(
        self, channel: str, peer: bytes, frames: list[bytes], flow: Flow | None
    ) -> tuple[Source, list[bytes]] | None:
        """A message with everything that a socket knows of its sender, as the shell passes it on.

        None if it came under a key that is not valid any more.
        """
        machine, proved = self.machine, None
        if flow is not None and flow.proved is not None:
            proved = machine.keys.owner(flow.proved)
            if proved is None:
                return None
        if channel == DOCUMENT:
            sender = peer.partition(BETWEEN)[2]
            return Source(channel, peer, proved, self._address_of(sender)), [sender, *frames]
        if channel in OF_CATALOG:
            return Source(channel, peer, proved, f"DEALER {self._address_of(peer)}"), frames
        return Source(channel, peer, proved, machine.programs.kinds.get(peer, "")), frames

    def _address_of(self, routing_id: bytes) -> str:
        return self.machine.fabric.address_of(self.streams.owner_of(routing_id) or "")

    # Sending

    def say_local(self, effect: Transmit) -> bool:
        """Send to a local program; False: it accepts nothing."""
        return HANDS[effect.channel](self.machine, effect)

    def say_inside(self, effect: Transmit) -> bool:
        """Send through a socket that was opened by an order."""
        return self.say_document(effect) if effect.channel == DOCUMENT else self._say_relayed(effect)

    def _say_relayed(self, effect: Transmit) -> bool:
        """Answer a client of a relay; False: it is closed."""
        tag, _, peer = effect.peer.partition(BETWEEN)
        router = self._relays.get(tag)
        return router is not None and self.streams.send_down(router, peer, effect.frames)

    def say_document(self, effect: Transmit) -> bool:
        """Send to a session of another node, through a separate socket; a full queue is reported as in the shell."""
        machine = self.machine
        name, _, endpoint = effect.peer.partition(BETWEEN)
        session, where = name.decode(), endpoint.decode()
        if not self.streams.is_connected(machine.name, DOCUMENT, where):
            self.streams.connect(machine, Plug(where, self._uuids[session], DOCUMENT))
        if not self.streams.send_up(machine.name, effect.frames, DOCUMENT, where):
            machine.later(0, partial(machine.obey, "document", LinkFull(session, where)))
        return True

    def hang_up(self, peer: bytes) -> None:
        """Close the link to a session of another node; queued messages may still leave."""
        self.streams.hang_up(self.machine.name, DOCUMENT, peer.partition(BETWEEN)[2].decode())

    def say_datagram(self, effect: Transmit) -> bool:
        """A beacon of the catalog to everybody, or the answer to a beat."""
        fabric, machine = self.machine.fabric, self.machine
        source = machine.address.encode()
        if effect.channel == "catalog-beacon":
            for host in (each for each in fabric.hosts.values() if each.plan.runs == "service"):
                fabric.post(machine.name, source, host, effect.frames, "beacons")
            return True
        known = fabric.host_at(host_of(effect.peer.decode()))
        if known is not None:
            fabric.post(machine.name, source, known, effect.frames, "beats")
        return True

    # Work

    def open_relay(self, work: OpenRelay) -> None:
        """Listen for calls that go over a bridge, at a port that no relay here had before."""
        machine, port = self.machine, RELAY_PORT + self._opened
        self._opened += 1
        where, prefix = f"{machine.address}:{port}", work.tag + BETWEEN
        self._relays[work.tag] = self.streams.bind(machine, where, "catalog-relay", prefix)
        machine.later(0, partial(machine.obey, "catalog", RelayOpened(work.tag, machine.address, port)))

    def close_relay(self, work: CloseRelay) -> None:
        """Stop listening there."""
        router = self._relays.pop(work.tag, None)
        if router is not None:
            self.streams.unbind(router, is_loud=True)

    def open_session(self, work: OpenSession) -> None:
        """Listen for a session, or continue under another identity at the same address."""
        machine = self.machine
        self._uuids[work.session] = work.uuid
        if work.session in self._sessions:
            self.streams.disconnect(machine.name, DOCUMENT)
        else:
            where = f"{machine.address}:{DOCUMENT_PORT + len(self._sessions)}"
            prefix = work.session.encode() + BETWEEN
            self._sessions[work.session] = self.streams.bind(machine, where, DOCUMENT, prefix), where
        where = self._sessions[work.session][1]
        machine.later(0, partial(machine.obey, "document", Opened(work.session, where)))


HANDS: Final[dict[str, Callable[["Machine", Transmit], bool]]] = {
    "clients": lambda machine, effect: machine.programs.deliver(effect.peer, effect.frames),
    "doc-clients": lambda machine, effect: machine.editor.deliver(effect.frames),
}
"""How messages reach the peers on a channel of the local file system."""
