"""The journal records of a session, and back (GSP-030, GSP-034).

An operation of a gapless prefix is a record of the stream `documents`, which goes up and becomes a row of the lake. Its
origin is the session and the operation's source, its sequence is the operation's. All nodes of a session send it; the
root keeps it once.

    SessionKept  a session is one of this node's own, and its schema
    PieceKept    operations of prefixes in the order in which they became known here, in a snapshot
    HeldKept     an operation beyond a gap
    LoserKept    the loser of a fork; or its winner, beyond a gap
"""

from typing import Final

import msgspec

from weft.base.errors import UNREADABLE, OurFault
from weft.base.memories import Memories
from weft.base.records import CoreRecord, Record, Stream, StreamRecord
from weft.cores.document.context import nanoseconds_of
from weft.cores.document.holding import Kept
from weft.cores.document.limits import WORDS_MAX
from weft.cores.document.messages import SessionSettings
from weft.wire.document.operations import Operation

CORE: Final = "document"
AT_MAX: Final = (1 << 63) - 1
"""A timestamp of the year 9999 exceeds a column of 64-bit nanoseconds; `eff` has the exact value."""


class SessionKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    session: str
    schema: str


class PieceKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    session: str
    uuids: list[bytes]
    """Sources and senders; the operations refer to them by index."""
    operations: list[tuple[int, int, int, int, bytes]]
    """Source, sequence, received (wall), from, body."""


class HeldKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    session: str
    source: bytes
    sequence: int
    received_ns: int
    received_from: bytes
    body: bytes


class LoserKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    session: str
    source: bytes
    sequence: int
    received_ns: int
    received_from: bytes
    body: bytes


class _Named(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The fields that all of them begin with."""

    session: str


MemoryKind = SessionKept | PieceKept | HeldKept | LoserKept
KINDS: Final[dict[int, type[MemoryKind]]] = {1: SessionKept, 2: PieceKept, 3: HeldKept, 4: LoserKept}
MEMORIES: Final[Memories[MemoryKind]] = Memories(CORE, KINDS)
_name_of: Final = msgspec.msgpack.Decoder(_Named).decode


def session_of(record: Record) -> str | None:
    """The session that a record belongs to; None: it is not of a document. Cheap for every record."""
    if isinstance(record, StreamRecord):
        origin = record.origin
        is_ours = record.stream == Stream.DOCUMENTS and isinstance(origin, str)
        return origin.rpartition("/")[0] if is_ours else None
    if not isinstance(record, CoreRecord) or record.core != CORE:
        return None
    try:
        return _name_of(record.data).session
    except UNREADABLE as error:
        raise OurFault(f"newer-data: a record of kind {record.kind} of {CORE} cannot be read: {error}") from None


def record_of(memory: MemoryKind) -> CoreRecord:
    """The record of a memory that is only for this core."""
    return MEMORIES.to_record(memory)


def memory_of(record: CoreRecord) -> MemoryKind:
    """The converse."""
    return MEMORIES.from_record(record)


def stream_record(settings: SessionSettings, operation: Operation, kept: Kept, eff: float) -> StreamRecord:
    """The record of a prefix operation (GSP-034); `eff` is its effective time in seconds."""
    attributes = {
        "session": settings.name,
        "schema": cut(settings.schema_name or settings.schema),
        "source": operation.source.hex(),
        "eff": eff,
        "ts": cut(operation.raw_timestamp),
        "ref": cut(" ".join(f"{name}={value}" for name, value in operation.reference.items())),
        "by": cut(operation.by),
        "from": kept.received_from.hex(),
        "inert": operation.inert,
    }
    if operation.origin is not None:
        attributes["osource"], attributes["oseq"] = operation.origin[0].hex(), operation.origin[1]
    origin = f"{settings.name}/{operation.source.hex()}"
    at = min(nanoseconds_of(operation.timestamp), AT_MAX)
    numbered = (Stream.DOCUMENTS, origin, None, operation.sequence)
    return StreamRecord(*numbered, at, kept.received_ns, cut(operation.verb), kept.body, attributes)


def cut(text: str) -> str:
    """The part of a text that travels with a record; the body has all of it. A lone surrogate could not be encoded."""
    return text[:WORDS_MAX]


def kept_of_stream(record: StreamRecord) -> tuple[bytes, int, Kept]:
    """Source, sequence and bytes of a prefix operation; OurFault for what no version wrote."""
    fields = record.attributes
    try:
        source, sender = bytes.fromhex(record.origin.rpartition("/")[2]), bytes.fromhex(fields["from"])
    except (KeyError, ValueError, TypeError) as error:
        raise OurFault(
            f"newer-data: the operation {record.sequence} of {record.origin} cannot be read: {error!r}"
        ) from None
    return source, record.sequence, Kept(record.payload, record.received, sender)
