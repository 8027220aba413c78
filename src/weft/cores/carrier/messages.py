"""Orders, work and events of the carrier, and its wire messages."""

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
    "CaughtUp",
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
    "InLake",
    "Journaled",
    "LakeUnknown",
    "LakeUnread",
    "LoopFound",
    "Mail",
    "MailFailed",
    "MailReached",
    "MessageRefused",
    "ParentJoined",
    "ParentLost",
    "ParentRefused",
    "PostMail",
    "ReadVectors",
    "RecordsFetched",
    "Refuse",
    "Released",
    "RolledBack",
    "RootIs",
    "Span",
    "SpoolDropped",
    "SpoolHigh",
    "Stop",
    "TookOver",
    "Welcome",
]


class CarrierSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The role of this node and the limits of its links."""

    name: str
    level: str
    """`root`, `collector` or `sensor`."""
    addr: str = ""
    """The address that children may show for their parent."""
    epoch: int = 0
    """The epoch of an elected root; SEEN records count from there."""
    boot: int = 0
    """How many starts this node has had."""
    beat_ms: int = limits.BEAT_MS
    dead_ms: int = limits.DEAD_MS
    memory_bytes: int = limits.MEMORY_BYTES
    """Maximum bytes of recent records in memory."""
    journal_bytes: int = 0
    """How many bytes the journal may use on the disk, for `SpoolHigh`; 0: that event is never told."""
    has_lake: bool = False
    """At a root: whether it writes a lake, and may have written it when it was the root before."""
    is_drained_first: bool = False
    """At a root: a record is safe only when it is in the lake (LAK-006)."""
    trusts_parent: bool = True
    """Whether a person configured the parent's address: then its `safe` is believed while no root of record is known.
    """
    awaits_filters: bool = False
    """Whether to take nothing from other nodes before `FiltersKnown`, because nothing can be screened yet."""

    @property
    def is_safe_at_once(self) -> bool:
        """Whether a record is safe as soon as it is durable here."""
        return self.is_root and not self.is_drained_first

    @property
    def is_root(self) -> bool:
        """Whether this node is a root: it keeps no record twice and sends nothing up."""
        return self.level == "root"


# Orders


class AssignParent(msgspec.Struct, frozen=True, gc=False):
    """Order: the parent is at this endpoint (`host:port` of its node link)."""

    endpoint: str
    name: str


class AnnounceDamage(msgspec.Struct, frozen=True, gc=False):
    """Order: journal records from `first_lsn` up to but not including `end_lsn` cannot be read.

    They held these numbers (JRN-023).
    """

    first_lsn: int
    end_lsn: int
    spans: tuple[Span, ...]


class DismissParent(msgspec.Struct, frozen=True, gc=False):
    """Order: there is no parent any more; unsafe records wait for the next one."""


class RootIs(msgspec.Struct, frozen=True, gc=False):
    """Order: the root of record, according to the topology and the replicated configuration (FLD-012)."""

    node: bytes
    epoch: int


class HoldBack(msgspec.Struct, frozen=True, gc=False):
    """Order: take nothing from children while `is_full` (`hack` with `win` 0, CHN-040); afterwards go on."""

    is_full: bool


class ReadVectors(msgspec.Struct, frozen=True, gc=False):
    """Work: find what the segments of this node hold, number by number; answered by InLake or LakeUnread."""


class InLake(msgspec.Struct, frozen=True, gc=False):
    """Order: what the segments of this node hold."""

    vectors: tuple[tuple[int, bytes], ...]
    """Streams, each with a version vector in WV1."""


class LakeUnread(msgspec.Struct, frozen=True, gc=False):
    """Order: what the segments of this node hold could not be read."""

    why: str


class Drained(msgspec.Struct, frozen=True, gc=False):
    """Order, at a root: everything up to this lsn is in the lake.

    If this node stops being a root, it sends the rest up.
    """

    upto: int


class FiltersKnown(msgspec.Struct, frozen=True, gc=False):
    """Order: the filters of this node are in force; records of other nodes can be screened from now on (CHN-033)."""


class Garbled(msgspec.Struct, frozen=True, gc=False):
    """Order: a multipart of that peer could not be read; ten of them in 60 s cut it off (CLI-006)."""

    channel: str
    peer: bytes
    code: str


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Order: say goodbye on all links."""


class PostMail(msgspec.Struct, frozen=True, gc=False):
    """Order: send this as volatile mail, without the outbox; answered by MailReached or MailFailed."""

    ticket: int
    mail: Mail
    nodes: tuple[bytes, ...] = ()
    """Children to send to. Empty: to the parent, or, for DIRECT mail to another node, to that node."""


# Events


class MailReached(msgspec.Struct, frozen=True, gc=False):
    """Event: `reached` nodes of a post have acknowledged it; `failed` nodes have not in time."""

    ticket: int
    count: int
    failed: int = 0


class MailFailed(msgspec.Struct, frozen=True, gc=False):
    """Event: a post reached no node: `unreachable`, `no-parent`, `no-route`, `ttl`, `loop`, `expired`, `too-big`.

    `overload` if too much mail waits already. If the next node refuses it as invalid: `bad-type`, `bad-record`,
    `unimplemented`, or `refused` for any other reason.
    """

    ticket: int
    why: str


class TookOver(msgspec.Struct, frozen=True, gc=False):
    """Event: this node has become the root; the journal records behind lsn `after` were not safe before."""

    after: int


class LakeUnknown(msgspec.Struct, frozen=True, gc=False):
    """Event: this new root goes on without knowing what its lake holds; or, with `is_unknown` false, knows it now."""

    is_unknown: bool
    detail: str


class ParentJoined(msgspec.Struct, frozen=True, gc=False):
    """Event: the parent has welcomed us."""

    name: str
    node: bytes


DAMAGED: Final = "damaged"
"""Why a link ends when a message was altered: both sides start again after the last record that was kept (FLD-030)."""


class ParentLost(msgspec.Struct, frozen=True, gc=False):
    """Event: the link to the parent is broken; the carrier reconnects by itself."""

    why: str


class ParentRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: the parent refuses us; told once, until it accepts us or refuses for another reason."""

    why: str
    text: str


class LoopFound(msgspec.Struct, frozen=True, gc=False):
    """Event: the parent sends back what it received from us: it is below us in the tree (RTE-004, RTE-008)."""

    name: str


class ChildJoined(msgspec.Struct, frozen=True, gc=False):
    """Event: a child was welcomed."""

    node: bytes
    name: str


class ChildLost(msgspec.Struct, frozen=True, gc=False):
    """Event: a child's link has ended: `silent`, `replaced`, `garbled`, `damaged`, or the reason in its `bye`."""

    node: bytes
    name: str
    why: str


class ChildRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: a node was refused as a child; told once a minute.

    `version`, `bad-hello`, `not-yours`, `myself`, `two-nodes-one-id`, `era-jump`, `first-jump`, `name-taken`, `full`,
    `garbled`, `loop`.
    """

    name: str
    why: str


class RolledBack(msgspec.Struct, frozen=True, gc=False):
    """Event: a child has had acknowledgements beyond what this node has: our own disk lost records (CHN-038)."""

    node: bytes
    name: str
    era: int
    behind: int
    """Hop messages that we had acknowledged and no longer have."""
    lost: int
    """Those that the child has already forgotten, because they were safe at the root; if we are not the root, they are
    there.
    """


class MessageRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: a message was refused for good; told once a minute for each child and reason."""

    name: str
    number: int
    why: str


class SpoolDropped(msgspec.Struct, frozen=True, gc=False):
    """Event: the spool was full; its oldest records were given up and announced as lost."""

    records: int
    spans: tuple[Span, ...]


class CaughtUp(msgspec.Struct, frozen=True, gc=False):
    """Event: the parent has all records that waited when it welcomed this node; told only if many did."""

    records: int


class SpoolHigh(msgspec.Struct, frozen=True, gc=False):
    """Event: what waits for the parent takes half of the journal's room; or, with `is_high` false, less than a quarter (CHN-083)."""

    is_high: bool
    records: int
    bytes: int
    bytes_max: int
    """What the journal may use."""
