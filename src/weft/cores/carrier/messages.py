"""What the carrier hears and says: wire messages, orders, works, events."""

from typing import Final

import msgspec

from weft.base.mail import Mail
from weft.base.spool import DropOldest, FetchRecords, Journaled, RecordsFetched, Released, Span
from weft.cores.carrier import limits
from weft.wire.hop import Beat, Bye, Hack, Hello, Hop, HopItem, Refuse, Welcome

__all__ = [
    "AnnounceDamage",
    "AssignParent",
    "Beat",
    "Bye",
    "CarrierSettings",
    "ChildJoined",
    "ChildLost",
    "ChildRefused",
    "DismissParent",
    "Drained",
    "DropOldest",
    "FetchRecords",
    "FiltersKnown",
    "Garbled",
    "Hack",
    "Hello",
    "HoldBack",
    "Hop",
    "HopItem",
    "Journaled",
    "LoopFound",
    "Mail",
    "MailFailed",
    "MailReached",
    "MessageRefused",
    "ParentJoined",
    "ParentLost",
    "ParentRefused",
    "PostMail",
    "RecordsFetched",
    "Refuse",
    "Released",
    "RolledBack",
    "RootIs",
    "Span",
    "SpoolDropped",
    "Stop",
    "TookOver",
    "Welcome",
]


class CarrierSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How this node stands on its links."""

    name: str
    level: str
    """`root`, `collector` or `sensor`."""
    addr: str = ""
    """What a child may show as the address of its parent."""
    epoch: int = 0
    """At a root that was elected: its epoch; what it has seen is counted from there."""
    boot: int = 0
    """How many starts this node has had."""
    beat_ms: int = limits.BEAT_MS
    dead_ms: int = limits.DEAD_MS
    memory_bytes: int = limits.MEMORY_BYTES
    """Most bytes of recent records kept in memory."""
    is_drained_first: bool = False
    """At a root: only what is in the lake is safe (LAK-006)."""
    trusts_parent: bool = True
    """Whether a person has named the parent by its address: then it is believed as long as no root of record is known."""
    awaits_filters: bool = False
    """Whether nothing is taken from other nodes before `FiltersKnown`: what to keep of it cannot be judged yet."""

    @property
    def is_safe_at_once(self) -> bool:
        """Whether what is durable here is safe."""
        return self.is_root and not self.is_drained_first

    @property
    def is_root(self) -> bool:
        """At the root nothing is kept twice, and nothing goes further up."""
        return self.level == "root"


# Orders


class AssignParent(msgspec.Struct, frozen=True, gc=False):
    """Order: the parent is at this endpoint (`host:port` of its node link)."""

    endpoint: str
    name: str


class AnnounceDamage(msgspec.Struct, frozen=True, gc=False):
    """Order: records `first_lsn` to before `end_lsn` of the journal cannot be read, and these numbers stood there (JRN-023)."""

    first_lsn: int
    end_lsn: int
    spans: tuple[Span, ...]


class DismissParent(msgspec.Struct, frozen=True, gc=False):
    """Order: there is no parent any more; what is unsafe waits for the next."""


class RootIs(msgspec.Struct, frozen=True, gc=False):
    """Order: this is the root of record, as the topology and the replicated configuration have it (FLD-012)."""

    node: bytes
    epoch: int


class HoldBack(msgspec.Struct, frozen=True, gc=False):
    """Order: take nothing from children while `is_full` (`hack` with `win` 0, CHN-040), then go on."""

    is_full: bool


class Drained(msgspec.Struct, frozen=True, gc=False):
    """Order, at a root: everything up to this lsn is in the lake; what is not goes up if this node is no root any more."""

    upto: int


class FiltersKnown(msgspec.Struct, frozen=True, gc=False):
    """Order: the filters of this node are in force: what other nodes send can be screened from now on (CHN-033)."""


class Garbled(msgspec.Struct, frozen=True, gc=False):
    """Order: a multipart of that peer could not be read; ten of them in 60 s cut it off (CLI-006)."""

    channel: str
    peer: bytes
    code: str


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Order: say goodbye on all links."""


class PostMail(msgspec.Struct, frozen=True, gc=False):
    """Order: send this without the outbox, on the streams that have no promise; answered by one of two events."""

    ticket: int
    mail: Mail
    nodes: tuple[bytes, ...] = ()
    """Children to go to. None: to the parent; or, if the mail is DIRECT to another node, wherever that one is."""


# Events


class MailReached(msgspec.Struct, frozen=True, gc=False):
    """Event: so many of the nodes that a post went to have acknowledged it; `failed` have not in time."""

    ticket: int
    count: int
    failed: int = 0


class MailFailed(msgspec.Struct, frozen=True, gc=False):
    """Event: a post reached nobody: `unreachable`, `no-parent`, `no-route`, `ttl`, `loop`, `expired`, `too-big`.

    Also `overload` if too much waits already; and what the next node says of mail that is none: `bad-type`,
    `bad-record`, `unimplemented`, or `refused` for a reason that nobody knows.
    """

    ticket: int
    why: str


class TookOver(msgspec.Struct, frozen=True, gc=False):
    """Event: this node begins to be the root; what stands in its journal behind `after` was not safe before."""

    after: int


class ParentJoined(msgspec.Struct, frozen=True, gc=False):
    """Event: the parent has taken us."""

    name: str
    node: bytes


DAMAGED: Final = "damaged"
"""Why a link ends on which a message was altered: both ends begin anew behind what was kept (FLD-030)."""


class ParentLost(msgspec.Struct, frozen=True, gc=False):
    """Event: the link to the parent is broken; the carrier knocks again by itself."""

    why: str


class ParentRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: the parent does not take us; told once until it does, or says something else."""

    why: str
    text: str


class LoopFound(msgspec.Struct, frozen=True, gc=False):
    """Event: the parent sends back what it has had already: it stands below us (RTE-004, RTE-008)."""

    name: str


class ChildJoined(msgspec.Struct, frozen=True, gc=False):
    """Event: a child has been welcomed."""

    node: bytes
    name: str


class ChildLost(msgspec.Struct, frozen=True, gc=False):
    """Event: a child's link has ended: `silent`, `replaced`, `garbled`, `damaged` or what its `bye` said."""

    node: bytes
    name: str
    why: str


class ChildRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: a node was not taken as a child; told once a minute.

    `version`, `bad-hello`, `not-yours`, `myself`, `two-nodes-one-id`, `era-jump`, `name-taken`, `full`, `garbled`, `loop`.
    """

    name: str
    why: str


class RolledBack(msgspec.Struct, frozen=True, gc=False):
    """Event: a child was told more than we know: our own disk went back (CHN-038)."""

    node: bytes
    name: str
    era: int
    behind: int
    """Hop messages that we had acknowledged and do not have."""
    lost: int
    """Those of them that the child has let go, because they were safe at the root; not lost if we are not the root."""


class MessageRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: a message was refused for good; told once a minute for each child and reason."""

    name: str
    number: int
    why: str


class SpoolDropped(msgspec.Struct, frozen=True, gc=False):
    """Event: the spool was full, its oldest records are given up and announced as lost."""

    records: int
    spans: tuple[Span, ...]
