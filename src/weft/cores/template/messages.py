"""Orders and events of the template core."""

import msgspec

from weft.wire.template import Message, Ping, Pong

__all__ = ["Message", "PeerArrived", "PeerVanished", "Ping", "Pong", "Rest", "Watch"]


class Watch(msgspec.Struct, frozen=True, gc=False):
    """Order: ping the other end, and tell when it comes and goes."""


class Rest(msgspec.Struct, frozen=True, gc=False):
    """Order: stop pinging. Pings of the other end are still answered."""


class PeerArrived(msgspec.Struct, frozen=True, gc=False):
    """Event: the other end is there. Told once per meeting, in the order of the numbers, also across restarts."""

    meetings: int
    """How often they have met, this meeting included; durable before it is told."""


class PeerVanished(msgspec.Struct, frozen=True, gc=False):
    """Event: nothing was heard of the other end for the silence limit."""

    silent_ns: int
