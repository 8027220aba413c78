"""How the messages of a simulated machine get into its links: one way for each kind of channel, as in the shell."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from weft.base.effects import Connect, Disconnect
from weft.base.endpoints import shifted
from weft.base.now import SECOND
from weft.node.channels import ADDS, BINDS, CALLS, CHANNELS, DIALS, DOCUMENT, INSIDE, LOCAL, SHOUTS, Channel
from weft.node.node import Transmit
from weft.sim.links import routing_id
from weft.sim.sockets import Plug

if TYPE_CHECKING:
    from weft.sim.machine import Machine

CALL_IDLE_NS: Final = 60 * SECOND  # as the shell closes them


class Sender:
    """The sending side of one machine's sockets."""

    def __init__(self, machine: "Machine") -> None:
        self.machine = machine
        self.called_at: dict[bytes, int] = {}
        """Endpoints that this process calls, and when it last sent there or heard from there."""

    def say(self, row: Channel, effect: Transmit) -> bool:
        """Hand a message to its link; returns whether the link took it."""
        return _SAY[row.how, row.kind](self, effect)

    def note_answer(self, peer: bytes) -> None:
        """An answer has come: the connection is not idle."""
        if peer in self.called_at:
            self.called_at[peer] = self.machine.world.at

    def connect(self, effect: Connect) -> None:
        """Open a connection through a fresh socket."""
        machine = self.machine
        plug = Plug(effect.endpoint, routing_id(machine.chance), effect.channel, effect.tag, effect.topics)
        machine.fabric.streams.connect(machine, plug)

    def disconnect(self, effect: Disconnect) -> None:
        """Close what was opened on a channel, or its one socket to an endpoint."""
        if effect.channel == DOCUMENT:
            self.machine.doors.hang_up(effect.peer)
            return
        if effect.peer:
            self.called_at.pop(effect.peer, None)
            self._close(effect.channel, effect.peer)
            return
        self.machine.fabric.streams.disconnect(self.machine.name, effect.channel)

    def _shout(self, effect: Transmit) -> bool:
        self.machine.fabric.broadcast(self.machine, effect.frames)
        return True

    def _send_up(self, effect: Transmit) -> bool:
        return self.machine.fabric.streams.send_up(self.machine.name, effect.frames, effect.channel)

    def _send_down(self, effect: Transmit) -> bool:
        machine = self.machine
        if CHANNELS[effect.channel].block in (LOCAL, DOCUMENT):
            return machine.doors.say_local(effect)
        return machine.fabric.streams.send_down(machine.doors.bound[effect.channel], effect.peer, effect.frames)

    def _publish(self, effect: Transmit) -> bool:
        self.machine.fabric.streams.publish(self.machine.doors.bound[effect.channel], effect.frames)
        return True

    def _announce(self, effect: Transmit) -> bool:
        self.machine.fabric.streams.announce(self.machine.name, effect.channel, effect.frames)
        return True

    def _serve(self, effect: Transmit) -> bool:
        return self.machine.store_clients.deliver(effect.peer, effect.frames[0])

    def _call(self, effect: Transmit) -> bool:
        """Send to a socket of its own per endpoint, which is opened when needed and closed when idle."""
        machine, peer = self.machine, effect.peer
        streams = machine.fabric.streams
        endpoint = shifted(peer.decode(), CHANNELS[effect.channel].place)
        if not streams.is_connected(machine.name, effect.channel, endpoint):
            streams.connect(machine, Plug(endpoint, routing_id(machine.chance), effect.channel, peer))
            machine.later(CALL_IDLE_NS, partial(self._hang_up, effect.channel, peer))
        self.called_at[peer] = machine.world.at
        return streams.send_up(machine.name, effect.frames, effect.channel, endpoint)

    def _hang_up(self, channel: str, peer: bytes) -> None:
        machine = self.machine
        if peer not in self.called_at:
            return
        idle_at = self.called_at[peer] + CALL_IDLE_NS
        if machine.world.at < idle_at:
            machine.later(idle_at - machine.world.at, partial(self._hang_up, channel, peer))
            return
        del self.called_at[peer]
        self._close(channel, peer)

    def _close(self, channel: str, peer: bytes) -> None:
        endpoint = shifted(peer.decode(), CHANNELS[channel].place)
        self.machine.fabric.streams.hang_up(self.machine.name, channel, endpoint)


_SAY: Final[dict[tuple[str, str], Callable[[Sender, Transmit], bool]]] = {
    (SHOUTS, "datagram"): Sender._shout,
    (DIALS, "stream"): Sender._send_up,
    (BINDS, "stream"): Sender._send_down,
    (BINDS, "publish"): Sender._publish,
    (ADDS, "publish"): Sender._announce,
    (CALLS, "stream"): Sender._call,
    (INSIDE, "tcp"): Sender._serve,
    (INSIDE, "stream"): lambda sender, effect: sender.machine.doors.say_inside(effect),
    (INSIDE, "datagram"): lambda sender, effect: sender.machine.doors.say_datagram(effect),
}
