"""Messages between peers of a session (PEE-004): ten types, each a frame with its name and a frame of text."""

from typing import Final, NamedTuple

import msgspec

UUID_BYTES: Final = 16
OPERATION_BYTES_MAX: Final = 262_144  # GSP-012
FRAME_BYTES_MAX: Final = 4 << 20  # PEE-001
SESSION_BYTES_MAX: Final = 256  # PEE-011
READS_SUMS: Final = "c1"
"""Capability in a BEAT: a third frame behind type and body is read as their checksum."""
READS_PACKS: Final = "z1"
"""Capability in a BEAT: several operations may come in one message (GSP-027)."""
PACK_BYTES_MAX: Final = 1 << 20  # inflated, lengths included (GSP-027)
PACK_MAX: Final = 500  # operations in a pack: as many as in one answer (GSP-024)
PACK_LENGTH_BYTES: Final = 4


class Spoken(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What all messages have in common."""

    has_sum: bool = False
    """Whether it has a checksum: only for peers whose BEAT says that they read it (FLD-030)."""


class Helo(Spoken, frozen=True, gc=False):
    """The endpoint of my ROUTER."""

    endpoint: str
    """`a.b.c.d:port` or `[ipv6]:port`, numeric."""


class PeerAt(Spoken, frozen=True, gc=False):
    """Another peer that you may connect to (`PEER`)."""

    endpoint: str


class Bout(Spoken, frozen=True, gc=False):
    """My session, as in PEE-011; may be empty."""

    session: str


class Gbye(Spoken, frozen=True, gc=False):
    """I leave."""

    text: str = ""


class Chat(Spoken, frozen=True, gc=False):
    """A chat message to people."""

    text: str


class Beat(Spoken, frozen=True, gc=False):
    """Alive (PEE-022). Any body is a heartbeat: what cannot be read of it is None."""

    sequence: int | None = None
    """Of the sender's last operation."""
    view: int | None = None
    """Exclusive or of the first 4 UUID bytes of the sender and all its ACTIVE peers."""
    check: int | None = None
    """Of its log."""
    caps: tuple[str, ...] = ()


class Time(Spoken, frozen=True, gc=False):
    """Session time in seconds; None: a request for it."""

    seconds: float | None = None


class Progress(NamedTuple):
    """The sender has operations 1..n of a source, without a gap."""

    source: bytes
    upto: int


class Gsip(Spoken, frozen=True, gc=False):
    """Gossip: what the sender has; it is sent with one entry, and read with several (PEE-005)."""

    entries: tuple[Progress, ...]


class Xmsg(Spoken, frozen=True, gc=False):
    """One operation, the bytes as its source made them."""

    body: bytes


class Xpak(Spoken, frozen=True, gc=False):
    """Several operations, in order, compressed together: only to peers whose BEAT says that they read it."""

    bodies: tuple[bytes, ...]


Message = Helo | PeerAt | Bout | Gbye | Chat | Beat | Time | Gsip | Xmsg | Xpak


def operations_of(message: Message) -> tuple[bytes, ...]:
    """The operations in a message, one or several; of any other message, none."""
    if isinstance(message, Xpak):
        return message.bodies
    return (message.body,) if isinstance(message, Xmsg) else ()


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """What a ROUTER delivers: the sender, by the identity of its DEALER, and the message."""

    sender: bytes
    """16 UUID bytes."""
    message: Message
