"""Settings, orders and events of documents (docs/doc.md)."""

from typing import Final

import msgspec

from weft.base.now import MILLISECOND, SECOND


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """`[doc.timing]` in nanoseconds: the times of PEE-010 to PEE-043 and GSP-020 to GSP-040, named as in the file."""

    beat_ns: int = 5 * SECOND
    beat_soon_ns: int = 500 * MILLISECOND
    """After the last own operation."""
    beat_most_ns: int = 15 * SECOND
    evasive_ns: int = 10 * SECOND
    gone_ns: int = 30 * SECOND
    hint_gone_ns: int = 5 * SECOND
    """Silence that confirms a `removed` of mDNS (PEE-021)."""
    gossip_ns: int = 2 * SECOND
    ask_hold_ns: int = 150 * MILLISECOND
    ask_most_ns: int = 2 * SECOND
    resend_hold_ns: int = 2 * SECOND
    resend_first_ns: int = 50 * MILLISECOND
    fresh_ns: int = 150 * MILLISECOND
    """How long operations that another source has just sent are left to that source (GSP-022 c)."""
    adopt_after_ns: int = 60 * SECOND
    """Absence of a source until its operations beyond a gap are adopted (GSP-040)."""


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One session of this node: `[doc.session.NAME]`."""

    name: str
    schema: str = "derby"
    """`derby`, `plain`, or the text of a schema in TOML (DOC-003)."""
    schema_name: str = ""
    """The schema's name in the session string; empty: `schema`."""
    uuid: bytes
    """UUID of this start: version 4, its first byte not 0 (PEE-003)."""
    listen: str = "127.0.0.1"
    """Host, or `host:port`, of the ROUTER; without a port, a free one of 49152..65535."""
    is_closed: bool = False
    """Whether participants need a key: of the fabric, or of the session."""
    advertise: str = ""
    """Host, or `host:port`, stated in HELO; empty: where it listens."""
    peers: tuple[str, ...] = ()
    """Endpoints to call."""
    mdns: bool = True
    operator: str = ""
    """The person who enters here: `by` of own operations (GSP-006)."""
    timing: Timing = Timing()

    @property
    def text(self) -> str:
        """The session string (PEE-011)."""
        schema = self.schema_name or self.schema
        return self.name if schema == "derby" else f"{self.name};schema={schema}"


# Orders


class Begin(msgspec.Struct, frozen=True, gc=False):
    """Order: open the sessions' sockets."""


class Opened(msgspec.Struct, frozen=True, gc=False):
    """Order: the ROUTER of a session listens; `endpoint` goes into HELO. Empty: no port was free (`no-port`)."""

    session: str
    endpoint: str


class Found(msgspec.Struct, frozen=True, gc=False):
    """Order: mDNS or the catalog has found a peer of this session."""

    session: str
    endpoint: str
    uuid: bytes | None = None
    text: str = ""
    """Its session string."""


class Vanished(msgspec.Struct, frozen=True, gc=False):
    """Order: mDNS reports that a peer is gone: a hint."""

    session: str
    endpoint: str


class LinkFull(msgspec.Struct, frozen=True, gc=False):
    """Order: the socket refused a message to this endpoint (PEE-002)."""

    session: str
    endpoint: str


class Garbled(msgspec.Struct, frozen=True, gc=False):
    """Order: an unreadable message came: `code` is the last part of the counter's name (PEE-006)."""

    channel: str
    peer: bytes
    code: str


class HoldBack(msgspec.Struct, frozen=True, gc=False):
    """Order: the journal has no room, or has room again (GSP-031)."""

    is_full: bool


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Order: the node stops: say goodbye."""


# Work


class OpenSession(msgspec.Struct, frozen=True, gc=False):
    """Work: bind the ROUTER of a session (again, if it has one) and use this identity from now on.

    Answered by `Opened`.
    """

    session: str
    uuid: bytes
    listen: str
    advertise: str
    text: str
    mdns: bool


# Events: all of them go to the node's journal


class PeerActive(msgspec.Struct, frozen=True, gc=False):
    session: str
    peer: bytes
    endpoint: str


class PeerEvasive(msgspec.Struct, frozen=True, gc=False):
    session: str
    peer: bytes
    endpoint: str


class PeerGone(msgspec.Struct, frozen=True, gc=False):
    session: str
    peer: bytes
    endpoint: str
    why: str
    """`silent`, `link-full`, `goodbye`, `restarted`."""


class PeerMismatch(msgspec.Struct, frozen=True, gc=False):
    """A peer of another session called, or was called."""

    session: str
    endpoint: str
    theirs: str


class TimeSkew(msgspec.Struct, frozen=True, gc=False):
    session: str
    peer: bytes
    skew_ns: int


class TimeAhead(msgspec.Struct, frozen=True, gc=False):
    """An operation's timestamp is too far ahead for own timestamps to follow it (GSP-002)."""

    session: str
    source: bytes
    sequence: int
    ahead_ns: int


class ChatHeard(msgspec.Struct, frozen=True, gc=False):
    session: str
    peer: bytes
    text: str


class LogFork(msgspec.Struct, frozen=True, gc=False):
    """Two bodies have one number (GSP-011); `kept` is the SHA-256 of the one that counts."""

    session: str
    source: bytes
    sequence: int
    peer: bytes
    kept: bytes
    other: bytes


class LogDiverged(msgspec.Struct, frozen=True, gc=False):
    session: str
    peer: bytes


class LogFull(msgspec.Struct, frozen=True, gc=False):
    """No more sources or operations are accepted (GSP-014)."""

    session: str
    what: str


class LogStranded(msgspec.Struct, frozen=True, gc=False):
    """An operation beyond a gap, whose source is gone, cannot be adopted (GSP-040)."""

    session: str
    source: bytes
    sequence: int
    why: str


class LogDegraded(msgspec.Struct, frozen=True, gc=False):
    """The journal has no room: peers are served from memory (GSP-031)."""

    session: str
    is_degraded: bool


class IdentityReused(msgspec.Struct, frozen=True, gc=False):
    """A peer has more of our source than we do: this start continues under another identity (GSP-015)."""

    session: str
    peer: bytes
    old: bytes
    new: bytes


class ConflictFound(msgspec.Struct, frozen=True, gc=False):
    """`doc.conflict`: told at both parties (DOC-040)."""

    session: str
    id: str
    kind: str
    slot: str
    attribute: str


class SessionOpened(msgspec.Struct, frozen=True, gc=False):
    session: str
    uuid: bytes
    endpoint: str
    operations: int


class SessionExposed(msgspec.Struct, frozen=True, gc=False):
    """A session listens beyond this machine without a key (GSP-050)."""

    session: str
    endpoint: str


class NoPort(msgspec.Struct, frozen=True, gc=False):
    """No port was free for a session (PEE-001)."""

    session: str
    listen: str


JOURNALED: Final = (
    SessionOpened,
    SessionExposed,
    NoPort,
    PeerActive,
    PeerEvasive,
    PeerGone,
    PeerMismatch,
    TimeSkew,
    TimeAhead,
    LogFork,
    LogDiverged,
    LogFull,
    LogStranded,
    LogDegraded,
    IdentityReused,
    ConflictFound,
)
"""Events that are journaled."""
