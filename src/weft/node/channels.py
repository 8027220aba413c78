"""The channels that cores name, and the promise about delivery that each is (specs/07, section 2.1).

The shell maps a kind to sockets, the simulator to a link model; the codec of a channel turns frames into typed
messages in both. A core never learns which of the two it lives in.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from weft.wire import beacon, hop


class Channel(NamedTuple):
    """`core` hears and speaks on it; `kind` is a row of the link models."""

    core: str
    kind: str
    decode: Callable[[list[bytes]], Any]
    encode: Callable[[Any], list[bytes]]


CHANNELS: Final[dict[str, Channel]] = {
    "up": Channel("carrier", "stream", hop.decode, hop.encode),
    "down": Channel("carrier", "stream", hop.decode, hop.encode),
    "beacon": Channel("topology", "datagram", beacon.decode, beacon.encode),
}
