"""Orders, work and events of the chains core. Its wire messages stand in `weft.wire.clients`."""

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
    """The node as its clients see it, and `[chains]` of its file."""

    name: str = "node"
    level: str = "root"
    addr: str = ""
    boot: int = 0
    beat_ms: int = 1_000
    dead_ms: int = 5_000
    credit: int = 1_024
    """How many sends of one client may be without final status."""
    credit_bytes: int = 8 << 20
    clients: int = 1_000
    links_per_client: int = 256
    wait_ms: int = 60_000
    stop_ms: int = 2_000
    inbox_bytes: int = 256 << 20
    reader_messages: int = limits.READER_MESSAGES_MAX
    """Messages that may wait for one confirming reader that is away."""
    reader_bytes: int = limits.READER_BYTES_MAX
    """Payload bytes that may wait for it."""
    allow: tuple[Allow, ...] = ()
    """Rules: who may do what (CHN-081)."""
    uid: int | None = None
    """The user id that owns the node, as the kernel reports it; None: every user counts as owner."""
    is_closed: bool = False
    """Whether clients of other machines have to prove a key."""
    secret: bytes = b""
    """This node's secret: `edit` hashes with it (CHN-065); empty: `edit` masks instead."""
    functions: dict[str, Callable[[dict[Any, Any]], Any]] = {}
    """Of this machine, by `module:function`, for `python` filters (CHN-069)."""
    awaits_filters: bool = False
    """Whether `in` chains wait for the first `PlanFilters`."""


class PassBatch(msgspec.Struct, frozen=True):
    """Order: send a batch of samples down a chain."""

    direction: str
    """`in` or `out`."""
    type: str
    batch: SampleBatch
    origin: bytes | str = b""
    """Origin of the samples; empty: this node. Series of two origins are two series."""


class PlanFilters(msgspec.Struct, frozen=True):
    """Order: the filters from now on; a filter that keeps its kind, keys and window keeps its state (CHN-070)."""

    filters: tuple[FilterSpec, ...]


class BatchPassed(msgspec.Struct, frozen=True):
    """Event: a batch has reached the end of a chain; it is the same object if no filter dropped rows."""

    direction: str
    type: str
    batch: SampleBatch
    origin: bytes | str = b""


class RowsDropped(msgspec.Struct, frozen=True, gc=False):
    """Event: a filter dropped samples of a batch."""

    filter: str
    count: int


class BatchFailed(msgspec.Struct, frozen=True, gc=False):
    """Event: a filter with `on_error = "fail"` could not judge a batch, which ended there (`filter-failed`)."""

    filter: str
    count: int
    why: str


class FiltersRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: a set of filters was refused; the old set stays in force (`chains.config.refused`)."""

    mistakes: tuple[str, ...]
    """Each with its place in the file; only the first ones, if there are many."""
    count: int


class FiltersApplied(msgspec.Struct, frozen=True, gc=False):
    """Event: the set of filters has changed (`chains.config.applied`)."""

    count: int
    """Filters in force."""
    changed: tuple[str, ...]
    """Names of new or changed filters; only the first ones, if there are many."""
    gone: tuple[str, ...]


class FiltersPlanned(msgspec.Struct, frozen=True, gc=False):
    """Event: the filters in force are known, changed or not."""

    count: int


# Where this node stands


class Placed(msgspec.Struct, frozen=True, gc=False):
    """Order: the node's place in the tree (RTE-001)."""

    level: str
    parent: str
    """Name of the parent; empty: none is assigned."""
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
    """Order: this process of this machine has died, and all its messages have been received (CLI-005)."""

    process: int


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Order: refuse sends, wait for parked messages, apply the policies, say goodbye (CHN-043)."""


class ShowChains(msgspec.Struct, frozen=True, gc=False):
    """Order: all chains in order with their counters, as plain data; answered by a `Reply`."""

    ticket: int


class TraceChains(msgspec.Struct, frozen=True, gc=False):
    """Order: trace the next messages of a type through the links.

    Answered by a `Reply` when they have ended, or time is over.
    """

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
    """Its first payload frame."""


# Mail without a journal record: downward, and with `keep` memory


class MailPosted(msgspec.Struct, frozen=True, gc=False):
    """Event: send this mail without the outbox; the carrier answers the ticket with `PostReached` or `PostFailed`."""

    ticket: int
    mail: Mail
    nodes: tuple[bytes, ...] = ()
    """Children to send to. Empty: to the parent, or, for DIRECT mail to another node, to that node."""


class PostReached(msgspec.Struct, frozen=True, gc=False):
    """Order: `count` nodes have received it."""

    ticket: int
    count: int
    failed: int = 0


class PostFailed(msgspec.Struct, frozen=True, gc=False):
    """Order: no node has received it: `unreachable`, `no-parent`, `no-route`, `ttl`, `loop`, `expired`."""

    ticket: int
    why: str


# Events for the journal (CHN-083)


class ClientWelcomed(msgspec.Struct, frozen=True, gc=False):
    """Event: a client has attached (`chains.client-up`)."""

    name: str
    pid: int
    """Its process id, as it states it."""


class ProcessAttached(msgspec.Struct, frozen=True, gc=False):
    """Event: a client of this local process has attached, by the kernel's information.

    The shell may watch the process.
    """

    process: int


class ClientLost(msgspec.Struct, frozen=True, gc=False):
    """Event: a client is gone: `silent`, `replaced`, `garbled`, or what its `bye` said (`chains.client-down`)."""

    name: str
    why: str
    held: int
    """Messages that it held and had not returned."""


class ClientRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: a peer was refused as a client, or a client's request was refused; told once a minute."""

    name: str
    why: str
    user: str = ""
    """The user, by the kernel's information or by its key; empty: not determined."""


class LinkStood(msgspec.Struct, frozen=True, gc=False):
    """Event: a client has registered in a chain (`chains.registered`)."""

    client: str
    direction: str
    type: str
    place: str
    access: str


class LinkSickened(msgspec.Struct, frozen=True, gc=False):
    """Event: a client has missed too many deadlines in a row; its link is bypassed (`chains.sick`)."""

    client: str
    reg: int
    direction: str
    type: str


class LinkRecovered(msgspec.Struct, frozen=True, gc=False):
    """Event: a sick link has answered a trial message (`chains.recovered`)."""

    client: str
    reg: int
    direction: str
    type: str


class MessagesLost(msgspec.Struct, frozen=True, gc=False):
    """Event: messages ended at a link with the policy `closed`; told at most once a minute per link and reason."""

    client: str
    reg: int
    type: str
    why: str
    """`timeout`, `client-lost`, `unregistered`, `handler-failed`, `backlog`, `bypassed`."""
    count: int


class ReaderForgotten(msgspec.Struct, frozen=True, gc=False):
    """Event: messages are no longer kept for this reader (`chains.reader-forgotten`)."""

    reader: str
    type: str
    """The type it had registered for."""
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
    """The messages: origin, era, first and last sequence."""


class PressureChanged(msgspec.Struct, frozen=True, gc=False):
    """Event: open messages at this node exceed the limit, or no longer do (CHN-040)."""

    is_high: bool
