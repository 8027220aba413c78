"""What the template core hears and says."""

import msgspec

from weft.wire.template import Message, Ping, Pong

__all__ = ["Message", "PeerArrived", "PeerVanished", "Ping", "Pong", "Rest", "Watch"]


class Watch(msgspec.Struct, frozen=True, gc=False):
    """Order: call the other end, and tell when it comes and goes."""


class Rest(msgspec.Struct, frozen=True, gc=False):
    """Order: call no more. Whoever calls is still answered."""


class PeerArrived(msgspec.Struct, frozen=True, gc=False):
    """Event: the other end is there. Told once per meeting, in number order, also across restarts."""

    meetings: int
    """How often they have met, this meeting included; durable before it is told."""


class PeerVanished(msgspec.Struct, frozen=True, gc=False):
    """Event: the other end has not been heard for the silence limit."""

    silent_ns: int
