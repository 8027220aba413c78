"""The channels that cores name, and the promise about delivery that each is (specs/07, section 2.1).

The shell maps a kind to sockets, the simulator to a link model; the codec of a channel turns frames into typed
messages in both. A core never learns which of the two it lives in.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from weft.cores.carrier.messages import Garbled
from weft.wire import beacon, hop


class Channel(NamedTuple):
    """`core` hears and speaks on it; `kind` is a row of the link models."""

    core: str
    kind: str
    decode: Callable[[list[bytes]], Any]
    encode: Callable[[Any], list[bytes]]
    garbled: Callable[[str, bytes, str], Any] | None = None
    """The order that tells the core of a message that could not be read: channel, peer, code (CLI-006)."""


CHANNELS: Final[dict[str, Channel]] = {
    "up": Channel("carrier", "stream", hop.decode, hop.encode, Garbled),
    "down": Channel("carrier", "stream", hop.decode, hop.encode, Garbled),
    "beacon": Channel("topology", "datagram", beacon.decode, beacon.encode),
}
