"""The words of the Distributive Broker Protocol, typed.

Frame 0: empty; before it, up to eight frames of an envelope that the answer repeats
Frame 1: the command
Frame 2: the time
Frame 3+: what the command is about
"""

from typing import Final

import msgspec

REQUEST: Final = b"u_U"
REPLY: Final = b"o_O"
REGISTRATION: Final = b"UwU"
UPDATE: Final = b"UoU"
APPROVED: Final = b"OwO"
DENIED: Final = b"(O_O)"
DENIED_TOO: Final = b"OmO"
"""What existing nodes send for it (R3)."""
HEARTBEAT: Final = b"<3"
DISCONNECT: Final = b"</3"
AWK: Final = b"u.u"
PING: Final = b"ping"
PONG: Final = b"pong"
BRIDGE: Final = b"o=o"
TAP: Final = b"O_o"
EXIT: Final = b"<\\3"
HANDLER: Final = b"^o^"
COMMANDS: Final = frozenset(
    {
        *(REQUEST, REPLY, REGISTRATION, UPDATE, APPROVED, DENIED, DENIED_TOO, HEARTBEAT, DISCONNECT, AWK),
        *(PING, PONG, BRIDGE, TAP, EXIT, HANDLER),
    }
)
"""All commands that a broker knows; any other is no message of this protocol (R20)."""

Envelope = tuple[bytes, ...]
"""The frames before the delimiter; they go back before the answer (CAT-005)."""


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message on a ROUTER or DEALER, either way."""

    command: bytes
    time: bytes = b""
    """As it is on the wire: `wire.catalog.times` reads and writes it."""
    body: tuple[bytes, ...] = ()
    envelope: Envelope = ()


class Beat(msgspec.Struct, frozen=True, gc=False):
    """One line of a datagram between a service and the broker's `hb` port (BEA-010, BEA-020)."""

    word: bytes
    """`<3`, `</3`, or the broker's `u.u`."""
    name: str
    at: float | None = None
    """Unix seconds of the sender's clock; None: the form without a time (`NAME <3`)."""
    id: str | None = None
    seq: int | None = None
    mac: str = ""
    """32 hex digits, or empty."""
    signed: bytes = b""
    """Of a line that was read: its bytes up to the tab before `mac=`, which the mac covers (BEA-011)."""


class Beats(msgspec.Struct, frozen=True, gc=False):
    """One datagram: the lines that could be read, and how many could not."""

    lines: tuple[Beat, ...]
    malformed: int = 0


class Beacon(msgspec.Struct, frozen=True, gc=False):
    """`SHALOM PORT` and its tokens (BEA-001, BEA-007)."""

    port: int
    """Of the ROUTER: always the second token."""
    dbp: int = 0
    """1: a Weft broker; 0: an existing one, which names only its port."""
    id: str = ""
    """The broker's epoch."""
    hb: int = 0
    """UDP port of beats; 0: none."""
    pub: int = 0
    """XPUB port of events; 0: none."""
    caps: tuple[str, ...] = ()
    net: str = ""
    mac: str = ""
    signed: bytes = b""
    """Of one that was read: everything before ` mac=`."""


class Publication(msgspec.Struct, frozen=True, gc=False):
    """Frames on the XPUB of events: a topic and what is behind it (CAT-040)."""

    topic: bytes
    body: tuple[bytes, ...] = ()


class Subscription(msgspec.Struct, frozen=True, gc=False):
    """What an XPUB receives from its subscribers."""

    is_on: bool
    topic: bytes


class Taken(msgspec.Struct, frozen=True, gc=False):
    """What a publisher sent on its own PUB: topic and body, unchanged (LVC-002)."""

    frames: tuple[bytes, ...]
