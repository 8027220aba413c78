"""The journal records of the broker's instances, and back (CAT-050, CAT-051).

Every indexed change is a record of the stream `catalog`: it goes up to the lake as a row, and a restart restores from
it. Its origin and era are the node and its start, so the protocol's (broker, index) is its origin and sequence. Each
record holds the whole new state of the instance, so applying one twice changes nothing.

    InstanceKept  an instance, in a snapshot
    StreamEnded   the last number that was given in a stream, in a snapshot
    ValueKept     the last value of a topic, now and then (LVC-008)
    LogsHeard     the last number of an instance's log records that are journaled, in a snapshot
"""

from typing import Any, Final

import msgspec

from weft.base.errors import OurFault
from weft.base.memories import Memories
from weft.base.records import CoreRecord, Record, Stream, StreamRecord
from weft.cores.catalog.instances import Change, Instance
from weft.cores.catalog.records import Registration
from weft.cores.catalog.states import State
from weft.cores.catalog.topics import Value

CORE: Final = "catalog"
REMOVE: Final = "remove"
STREAMS: Final = (Stream.CATALOG, Stream.LOGS)
"""Streams of this core; the first record of a start in each links to the preceding start."""


class InstanceKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An instance as it is."""

    name: str
    id: str
    record: bytes
    """The sender's keys without `name`, as JSON."""
    state: str
    reason: str
    owner: str
    observed_ip: str
    since: float


class StreamEnded(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The last number that a start gave in a stream."""

    stream: int
    era: int
    last: int


class LogsHeard(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Log records of an instance are in the journal up to this number of its run (LOG-006)."""

    name: str
    id: str
    top: int


class ValueKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The last value of a topic (LVC-008)."""

    name: str
    id: str
    received: float
    count: int
    frames: tuple[bytes, ...]
    """The whole message, topic first."""


MemoryKind = InstanceKept | StreamEnded | LogsHeard | ValueKept
MEMORIES: Final[Memories[MemoryKind]] = Memories(CORE, {1: InstanceKept, 2: StreamEnded, 3: LogsHeard, 4: ValueKept})
_encode_record: Final = msgspec.json.Encoder().encode
"""In the sender's order, since the first interface has a meaning (CAT-016)."""
_decode_record: Final = msgspec.json.Decoder(dict[str, Any]).decode


def record_of(change: Change, node: bytes, era: int, epoch: str, wall: int) -> StreamRecord:
    """The record of an indexed change: the instance as it is now, without its keys if it was removed; `wall`: now."""
    instance = change.instance
    attributes = {
        "op": change.op,
        "instance": instance.id,
        "state": instance.state.name.lower(),
        "reason": change.reason or instance.reason,
        "health": instance.health,
        "owner": instance.owner,
        "observed_ip": instance.observed_ip,
        "since": instance.since,
        "epoch": epoch,
        "net": instance.net,
        "fmt": "json",
    }
    payload = b"" if change.op == REMOVE else _encode_record(instance.record)
    numbered = (Stream.CATALOG, node, era, change.index)
    return StreamRecord(*numbered, wall, wall, instance.name, payload, attributes)


def kept_of(instance: Instance) -> CoreRecord:
    """The record of an instance in a snapshot."""
    kept = InstanceKept(
        name=instance.name,
        id=instance.id,
        record=_encode_record(instance.record),
        state=instance.state.name.lower(),
        reason=instance.reason,
        owner=instance.owner,
        observed_ip=instance.observed_ip,
        since=instance.since,
    )
    return MEMORIES.to_record(kept)


def ended_of(stream: int, era: int, last: int) -> CoreRecord:
    """The record of a stream's last number."""
    return MEMORIES.to_record(StreamEnded(stream, era, last))


def heard_of(name: str, instance_id: str, top: int) -> CoreRecord:
    """The record of the last number received of an instance's log records."""
    return MEMORIES.to_record(LogsHeard(name, instance_id, top))


def value_of(value: Value) -> CoreRecord:
    """The record of a topic's last value."""
    return MEMORIES.to_record(ValueKept(*value.publisher.key, value.received, value.count, value.frames))


def memory_of(record: Record, node: bytes) -> MemoryKind | tuple[str, str] | None:
    """Decode a record: an instance, the end of a stream, or the (name, id) of a removed instance.

    None: it is not of this core, or of another broker. OurFault for one of a later version.
    """
    if isinstance(record, CoreRecord):
        return MEMORIES.from_record(record) if record.core == CORE else None
    if not isinstance(record, StreamRecord) or record.stream != Stream.CATALOG or record.origin != node:
        return None
    fields = record.attributes
    if "@" in record.key:  # of another network: never restored (BRI-005)
        return None
    try:
        if fields["op"] == REMOVE:
            return record.key, fields["instance"]
        keys = ("state", "reason", "owner", "observed_ip", "since")
        return InstanceKept(record.key, fields["instance"], record.payload, *(fields[key] for key in keys))
    except KeyError as error:
        raise OurFault(f"newer-data: the change {record.sequence} of the catalog says no {error}") from None


def instance_of(kept: InstanceKept) -> Instance:
    """The instance of a record; it is assumed to be alive, not known to be (CAT-051)."""
    instance = Instance(kept.name, kept.id, kept.owner, kept.observed_ip)
    try:
        instance.record = _decode_record(kept.record)
        instance.state = State[kept.state.upper()]
        registration = Registration(kept.name, kept.id, instance.record)
        instance.interval_ns, instance.health = registration.interval_ns, registration.health
    except (msgspec.DecodeError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise OurFault(f"newer-data: the instance {kept.id} of {kept.name} cannot be read: {error}") from None
    instance.reason, instance.since = kept.reason, kept.since
    instance.is_restored = True
    return instance
