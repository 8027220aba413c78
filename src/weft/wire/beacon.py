"""The beacon: one UDP datagram of text by which nodes of one network segment find each other.

    beacon  = "WEFTN1" SP fleet SP name SP uuid SP level SP port SP era [SP token]*
    fleet, name = 1*63 of letters, digits, "_", ".", "-"
    uuid    = 32 hexadecimal digits          level = "root" / "collector" / "sensor"
    port    = base port of the node, 0 when it is leaving            era = decimal u64

The token `store` says that the node holds the shared store; unknown tokens at the end are ignored, such as the number and the code
that nodes with keys add (`weft.shell.beaconseal`); whatever else is not exactly this is refused. A beacon is a hint (SEC-015): it
never registers anything, it only says where to knock.
"""

import re
from typing import Final

import msgspec

from weft.base.errors import PeerError

BEACON_BYTES_MAX: Final = 512
LEVELS: Final = ("root", "collector", "sensor")
NAME: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}"
_BEACON: Final = re.compile(
    rf"WEFTN1 ({NAME}) ({NAME}) ([0-9a-f]{{32}}) (root|collector|sensor) (\d{{1,5}}) (\d{{1,20}})((?: [\x21-\x7e]+)*)",
)


class Beacon(msgspec.Struct, frozen=True, gc=False):
    """`name` of `fleet` serves its ports from `port` on; `port` 0: it is leaving."""

    fleet: str
    name: str
    node: bytes
    level: str
    port: int
    era: int
    has_store: bool = False
    """The token `store`: it holds the shared store, whose mesh it takes part in (LNK-021)."""


def encode(beacon: Beacon) -> list[bytes]:
    """The one frame of a beacon."""
    text = f"WEFTN1 {beacon.fleet} {beacon.name} {beacon.node.hex()} {beacon.level} {beacon.port} {beacon.era}"
    if beacon.has_store:
        text += " store"
    return [text.encode()]


def decode(frames: list[bytes]) -> Beacon:
    """The beacon of a datagram; PeerError `bad-beacon` for anything else."""
    if len(frames) != 1 or len(frames[0]) > BEACON_BYTES_MAX:
        raise PeerError("bad-beacon", "not one datagram of at most 512 bytes")
    match = _BEACON.fullmatch(frames[0].decode("ascii", "replace"))
    if match is None:
        raise PeerError("bad-beacon", "not a beacon", frames[0])
    fleet, name, node, level, port, era, tokens = match.groups()
    if int(port) > 65_529 or int(era) >= 1 << 64:
        raise PeerError("bad-beacon", "port or era out of range", frames[0])
    return Beacon(fleet, name, bytes.fromhex(node), level, int(port), int(era), "store" in tokens.split())
