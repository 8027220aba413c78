"""The journal records of a replica, and back (STO-030 to STO-033).

Own changes, and those of foreign servers, are records of the stream `store`: they go up and become rows of the lake.
Changes of other Weft nodes go up from those nodes, so here they are only core records. A record states the new state:
replaying one that was applied already has no effect, since receiving is a join (STO-012).

    EventKept    a change of another node, as it is merged
    Settled      ticks that are no longer needed, or were purged
    TockLimit    no tock above it was sent
    Named        the node's name from here on, and its tick then
    Claimed      other nodes know changes up to this tick under this node's name
    StaleKept    what was removed as a copy of something purged; only shown
    ConflictKept a conflict, for the journal's snapshots
    LosersKept   changes whose loss was told; same
    Counted      the end of what `condense` yields
    Forgotten    a conflict that was dealt with
    Mended       what the journal had lost is back
    Emptied      everything except the conflicts was forgotten
    Heard        own changes up to this tick were received by another node

Kinds of the other parts of this core begin at 32.
"""

from collections.abc import Container
from typing import Any, Final

import msgspec

from weft.base.changes import Chain, Event, Link, Path
from weft.base.errors import OurFault
from weft.base.memories import Memories
from weft.base.ranges import RangeSet
from weft.base.records import CoreRecord, Record, Stream, StreamRecord
from weft.wire.store.messages import Ticks
from weft.wire.store.path import pack_path, text_of, unpack_path

CORE: Final = "store"
KEY_BYTES_MAX: Final = 4 << 10  # limit of the journal for a key; the path itself stands in the attributes


class EventKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An event of another node."""

    links: tuple[Link, ...]
    tock: int
    path: tuple[Any, ...] | bytes
    """Its elements; packed, if one is an integer beyond those of MessagePack."""
    value: bytes | None
    at: float | None = None
    by: str = ""
    is_cut: bool = False
    is_shown: bool = True
    """Whether readers see it from then on: it did not lose, and was not known before."""
    until: float | None = None


class Settled(msgspec.Struct, array_like=True, frozen=True):
    """Inclusive ranges, by node."""

    known: dict[str, list[tuple[int, int]]] = {}
    deleted: dict[str, list[tuple[int, int]]] = {}


class TockLimit(msgspec.Struct, array_like=True, frozen=True, gc=False):
    limit: int


class Named(msgspec.Struct, array_like=True, frozen=True, gc=False):
    name: str
    tick: int


class Claimed(msgspec.Struct, array_like=True, frozen=True, gc=False):
    name: str
    tick: int


class StaleKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    event: EventKept


class ConflictKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    number: int
    reason: str
    kept: EventKept
    lost: EventKept


class LosersKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    links: list[Link]


class Counted(msgspec.Struct, array_like=True, frozen=True, gc=False):
    conflicts: int
    """Number of the last conflict."""
    is_damaged: bool
    purge_horizon: int


class Forgotten(msgspec.Struct, array_like=True, frozen=True, gc=False):
    number: int


class Mended(msgspec.Struct, array_like=True, frozen=True, gc=False):
    pass


class Emptied(msgspec.Struct, array_like=True, frozen=True, gc=False):
    pass


class Heard(msgspec.Struct, array_like=True, frozen=True, gc=False):
    name: str
    tick: int


MemoryKind = (
    EventKept
    | Settled
    | TockLimit
    | Named
    | Claimed
    | StaleKept
    | ConflictKept
    | LosersKept
    | Counted
    | Forgotten
    | Mended
    | Emptied
    | Heard
)
KINDS: Final[dict[int, type[MemoryKind]]] = {
    1: EventKept,
    2: Settled,
    3: TockLimit,
    4: Named,
    5: Claimed,
    6: StaleKept,
    7: ConflictKept,
    8: LosersKept,
    9: Counted,
    10: Forgotten,
    11: Mended,
    12: Emptied,
    13: Heard,
}
KIND_MAX: Final = 31
MEMORIES: Final[Memories[MemoryKind]] = Memories(CORE, KINDS)


def kept_of(event: Event, *, is_shown: bool = True) -> EventKept:
    """The memory of an event."""
    chain = event.chain
    path = event.path if _is_plain(event.path) else pack_path(event.path)
    at, by, until = event.at, event.by, event.until
    return EventKept(chain.links, event.tock, path, event.value, at, by, chain.is_cut, is_shown, until)


def event_of_kept(kept: EventKept) -> Event:
    """The event of a memory."""
    path = unpack_path(kept.path) if isinstance(kept.path, bytes) else kept.path
    return Event(Chain(kept.links, kept.is_cut), kept.tock, path, kept.value, kept.at, kept.by, kept.until)


def own_record_of(event: Event, via: str, before: Link | None, wall: int) -> StreamRecord:
    """The record of a change that this node made (STO-030)."""
    attributes = _attributes_of(event)
    attributes["through"], attributes["before"] = via, list(before) if before else None
    return _stream_record(event, attributes, wall)


def foreign_record_of(event: Event, keeper: str, wall: int, *, is_shown: bool) -> StreamRecord:
    """The record of a change that a foreign server made; `keeper` is the node that noted it, since several may."""
    attributes: dict[str, Any] = {**_attributes_of(event), "through": "", "before": None, "keeper": keeper}
    if not is_shown:
        attributes["lost"] = True
    return _stream_record(event, attributes, wall)


def record_of(memory: MemoryKind) -> CoreRecord:
    """The record of any other memory."""
    return MEMORIES.to_record(memory)


def memory_of(record: Record) -> MemoryKind | None:
    """Decode a record of this part; None: it belongs to another part. OurFault for one of a later version."""
    if not isinstance(record, CoreRecord) or record.core != CORE or record.kind > KIND_MAX:
        return None
    return MEMORIES.from_record(record)


def event_of(record: Record, names: Container[str]) -> Event | None:
    """The change in a journal record of a node with these names.

    None: the record has none, or was only forwarded for others.
    """
    if isinstance(record, StreamRecord):
        is_ours = record.stream == Stream.STORE and keeper_of(record) in names
        return event_of_stream(record) if is_ours else None
    memory = memory_of(record)
    return event_of_kept(memory) if isinstance(memory, EventKept) else None


def shown(record: Record, names: Container[str]) -> Event | None:
    """The same, if the change became the value at its path; None for losers and for known changes."""
    if isinstance(record, StreamRecord):
        return event_of_stream(record) if _is_shown(record, names) else None
    memory = memory_of(record)
    return event_of_kept(memory) if isinstance(memory, EventKept) and memory.is_shown else None


def tock_shown(record: Record, names: Container[str]) -> int | None:
    """The tock of what `shown` returns; a record of a stream is not decoded for it."""
    if isinstance(record, StreamRecord):
        return int(record.attributes["tock"]) if _is_shown(record, names) else None
    event = shown(record, names)
    return None if event is None else event.tock


def _is_shown(record: StreamRecord, names: Container[str]) -> bool:
    """Whether it is a change that this node kept for itself, and that became the value at its path.

    A change that comes back up the tree to its author is known: it was received after it was made.
    """
    is_new = record.received == record.at and "lost" not in record.attributes
    return is_new and record.stream == Stream.STORE and keeper_of(record) in names


def stale_of(record: Record) -> Event | None:
    """The entry that a record reports as removed, because it was a copy of something purged."""
    memory = memory_of(record)
    return event_of_kept(memory.event) if isinstance(memory, StaleKept) else None


def keeper_of(record: StreamRecord) -> str:
    """The node whose journal a stream record was made for."""
    return str(record.attributes.get("keeper", record.origin))


def event_of_stream(record: StreamRecord) -> Event:
    """The change in a stream record; OurFault for one that no version wrote."""
    fields = record.attributes
    try:
        chain = Chain(tuple((str(node), int(tick)) for node, tick in fields["chain"]), bool(fields["cut"]))
        value = None if fields["deleted"] else record.payload
        return Event(
            chain,
            int(fields["tock"]),
            unpack_path(fields["path"]),
            value,
            fields["at"],
            fields["by"],
            fields.get("until"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise OurFault(f"newer-data: a change {record.origin}:{record.sequence} cannot be read: {error}") from None


def ranges_of(ticks: Ticks) -> dict[str, list[tuple[int, int]]]:
    """Sets of ticks in the form of a memory."""
    return {node: list(ranges) for node, ranges in ticks.items() if ranges}


def ticks_of(ranges: dict[str, list[tuple[int, int]]]) -> Ticks:
    """The inverse of `ranges_of`."""
    return {node: RangeSet(those) for node, those in ranges.items()}


def _attributes_of(event: Event) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "tock": event.tock,
        "path": pack_path(event.path),
        "chain": [list(link) for link in event.chain.links],
        "cut": event.chain.is_cut,
        "deleted": event.value is None,
        "by": event.by,
        "at": event.at,
    }
    if event.until is not None:
        attributes["until"] = event.until
    return attributes


def _stream_record(event: Event, attributes: dict[str, Any], wall: int) -> StreamRecord:
    node, tick = event.chain.links[0]
    key = text_of(event.path)
    if len(key) > KEY_BYTES_MAX // 4:
        key = key.encode()[:KEY_BYTES_MAX].decode(errors="ignore")
    return StreamRecord(Stream.STORE, node, None, tick, wall, wall, key, event.value or b"", attributes)


def _is_plain(path: Path) -> bool:
    """Whether a path may stand in a memory as it is: no integer exceeds those of MessagePack."""
    return all(type(element) is not int or -(1 << 63) <= element < 1 << 64 for element in path)
