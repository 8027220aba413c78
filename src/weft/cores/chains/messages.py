"""What the chains core hears and says: orders, events. Its wire messages stand in `weft.wire.clients`."""

from collections.abc import Callable
from typing import Any

import msgspec

from weft.base.mail import Mail
from weft.cores.chains import limits
from weft.cores.chains.rights import Allow
from weft.cores.chains.settings import FilterSpec
from weft.wire.samples import SampleBatch

__all__ = [
    "BatchFailed",
    "BatchPassed",
    "ChainsSettings",
    "ClientLost",
    "ClientRefused",
    "ClientWelcomed",
    "FiltersApplied",
    "FiltersPlanned",
    "FiltersRefused",
    "ForgetReader",
    "Garbled",
    "HoldBack",
    "LinkRecovered",
    "LinkSickened",
    "LinkStood",
    "Mail",
    "MailPosted",
    "MessagesGivenUp",
    "MessagesLost",
    "PassBatch",
    "Placed",
    "PlanFilters",
    "PostFailed",
    "PostReached",
    "PressureChanged",
    "ProcessAttached",
    "ProcessEnded",
    "ReaderForgotten",
    "RowsDropped",
    "SampleBatch",
    "ShowChains",
    "ShowLine",
    "Stop",
    "TraceChains",
]


class ChainsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Who the node is, as its clients see it, and `[chains]` of its file."""

    name: str = "node"
    level: str = "root"
    addr: str = ""
    boot: int = 0
    beat_ms: int = 1_000
    dead_ms: int = 5_000
    credit: int = 1_024
    """How many sends of one client may be without a final status."""
    credit_bytes: int = 8 << 20
    clients: int = 1_000
    links_per_client: int = 256
    wait_ms: int = 60_000
    stop_ms: int = 2_000
    inbox_bytes: int = 256 << 20
    reader_messages: int = limits.READER_MESSAGES_MAX
    """How many messages may wait for one confirming reader that is away."""
    reader_bytes: int = limits.READER_BYTES_MAX
    """How many bytes of payload."""
    allow: tuple[Allow, ...] = ()
    """Who else may what (CHN-081)."""
    uid: int | None = None
    """Whose the node is, as the kernel counts users; None: everybody is its owner."""
    is_closed: bool = False
    """Whether who comes from elsewhere has proved a key."""
    secret: bytes = b""
    """Of this node: `edit` hashes with it (CHN-065); empty: it masks."""
    functions: dict[str, Callable[[dict[Any, Any]], Any]] = {}
    """Of this machine, by `module:function`, for `python` filters (CHN-069)."""
    awaits_filters: bool = False
    """Whether nothing goes down an `in` chain before the first `PlanFilters`."""


class PassBatch(msgspec.Struct, frozen=True):
    """Order: send a batch of samples down a chain."""

    direction: str
    """`in` or `out`."""
    type: str
    batch: SampleBatch
    origin: bytes | str = b""
    """Whose samples they are; empty: this node's own. Series of two origins are two series."""


class PlanFilters(msgspec.Struct, frozen=True):
    """Order: these are the filters from now on; one that keeps its kind, keys and window keeps its state (CHN-070)."""

    filters: tuple[FilterSpec, ...]


class BatchPassed(msgspec.Struct, frozen=True):
    """Event: what reached the bottom of a chain; the very batch that came in, if no filter took anything out."""

    direction: str
    type: str
    batch: SampleBatch
    origin: bytes | str = b""


class RowsDropped(msgspec.Struct, frozen=True, gc=False):
    """Event: a filter took samples out of a batch."""

    filter: str
    count: int


class BatchFailed(msgspec.Struct, frozen=True, gc=False):
    """Event: a filter with `on_error = "fail"` could not judge a batch, which ended there (`filter-failed`)."""

    filter: str
    count: int
    why: str


class FiltersRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: a set of filters was not taken, and the set before it stands (`chains.config.refused`)."""

    mistakes: tuple[str, ...]
    """Each with the place where it was said; the first of them, if there are many."""
    count: int


class FiltersApplied(msgspec.Struct, frozen=True, gc=False):
    """Event: the filters are others than they were (`chains.config.applied`)."""

    count: int
    """Filters in force."""
    changed: tuple[str, ...]
    """Names of those that came or are different; the first of them, if there are many."""
    gone: tuple[str, ...]


class FiltersPlanned(msgspec.Struct, frozen=True, gc=False):
    """Event: it is known which filters are in force, though they may be those that were."""

    count: int


# Where this node stands


class Placed(msgspec.Struct, frozen=True, gc=False):
    """Order: this is the place of the node in the tree (RTE-001)."""

    level: str
    parent: str
    """Its name; empty: none is assigned."""
    children: tuple[tuple[bytes, str], ...] = ()
    """Live links: node id and name."""


class HoldBack(msgspec.Struct, frozen=True, gc=False):
    """Order: take nothing from clients while `is_full` (credit 0, CHN-040), then go on."""

    is_full: bool


class Garbled(msgspec.Struct, frozen=True, gc=False):
    """Order: a multipart of that peer could not be read; ten of them in 60 s cut it off (CLI-006)."""

    channel: str
    peer: bytes
    code: str


class ProcessEnded(msgspec.Struct, frozen=True, gc=False):
    """Order: that process of this machine is dead, and everything that it said has been heard (CLI-005)."""

    process: int


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Order: refuse sends, wait for what is parked, apply the policies, say goodbye (CHN-043)."""


class ShowChains(msgspec.Struct, frozen=True, gc=False):
    """Order: all chains in order with their counters, as plain data; answered by a `Reply`."""

    ticket: int


class TraceChains(msgspec.Struct, frozen=True, gc=False):
    """Order: what the links do to the next messages of a type; answered by a `Reply` when these have ended, or time is over."""

    ticket: int
    type: str
    direction: str = ""
    """`in`, `out`; empty: both."""
    count: int = 1
    span_ms: int = 5_000


class ForgetReader(msgspec.Struct, frozen=True, gc=False):
    """Order: this reader will not come back: give up what waits for it. Answered with plain data."""

    ticket: int
    name: str


class ShowLine(msgspec.Struct, frozen=True, gc=False):
    """Work: a `stdout` filter shows a message."""

    filter: str
    direction: str
    type: str
    origin: bytes
    payload: bytes
    """Its first frame."""


# Mail that no journal keeps: downward, and with `keep` memory


class MailPosted(msgspec.Struct, frozen=True, gc=False):
    """Event: this is to go, not by the outbox: the carrier answers `PostReached` or `PostFailed` to the ticket."""

    ticket: int
    mail: Mail
    nodes: tuple[bytes, ...] = ()
    """Children to go to. None: to the parent; or, if the mail is DIRECT to another node, wherever that one is."""


class PostReached(msgspec.Struct, frozen=True, gc=False):
    """Order: so many nodes have it."""

    ticket: int
    count: int
    failed: int = 0


class PostFailed(msgspec.Struct, frozen=True, gc=False):
    """Order: nobody has it: `unreachable`, `no-parent`, `no-route`, `ttl`, `loop`, `expired`."""

    ticket: int
    why: str


# Events for the journal (CHN-083)


class ClientWelcomed(msgspec.Struct, frozen=True, gc=False):
    """Event: a client has attached (`chains.client-up`)."""

    name: str
    pid: int
    """As it says itself."""


class ProcessAttached(msgspec.Struct, frozen=True, gc=False):
    """Event: a client of this process of this machine has attached, as the kernel says: somebody may watch it."""

    process: int


class ClientLost(msgspec.Struct, frozen=True, gc=False):
    """Event: a client is gone: `silent`, `replaced`, `garbled`, or what its `bye` said (`chains.client-down`)."""

    name: str
    why: str
    held: int
    """Messages that it had not handed back."""


class ClientRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: somebody was not taken as a client, or may not do what it asked for; told once a minute."""

    name: str
    why: str
    user: str = ""
    """Who it is, by the kernel's word or by its key; empty: it was not asked."""


class LinkStood(msgspec.Struct, frozen=True, gc=False):
    """Event: a client stands in a chain (`chains.registered`)."""

    client: str
    direction: str
    type: str
    place: str
    access: str


class LinkSickened(msgspec.Struct, frozen=True, gc=False):
    """Event: a client has missed its time too often in a row; its link is bypassed (`chains.sick`)."""

    client: str
    reg: int
    direction: str
    type: str


class LinkRecovered(msgspec.Struct, frozen=True, gc=False):
    """Event: it has answered the probe (`chains.recovered`)."""

    client: str
    reg: int
    direction: str
    type: str


class MessagesLost(msgspec.Struct, frozen=True, gc=False):
    """Event: messages ended at a link whose policy is `closed`; told at most once a minute for each link and reason."""

    client: str
    reg: int
    type: str
    why: str
    """`timeout`, `client-lost`, `unregistered`, `handler-failed`, `backlog`, `bypassed`."""
    count: int


class ReaderForgotten(msgspec.Struct, frozen=True, gc=False):
    """Event: what arrives is not kept for this reader any more (`chains.reader-forgotten`)."""

    reader: str
    type: str
    """What it had registered for."""
    why: str
    """`time-over`, `forgotten`."""
    count: int
    """Messages that waited for it."""


class MessagesGivenUp(msgspec.Struct, frozen=True, gc=False):
    """Event: a confirming reader will never get these messages (`chains.given-up`)."""

    reader: str
    why: str
    """`time-over`, `forgotten`, `no-room`, or what `MessagesLost` says."""
    count: int
    spans: tuple[tuple[bytes, int, int, int], ...]
    """Which: origin, era, first and last sequence."""


class PressureChanged(msgspec.Struct, frozen=True, gc=False):
    """Event: programs hold more of what has arrived than there is room for, or no longer (CHN-040)."""

    is_high: bool
