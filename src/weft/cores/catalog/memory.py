"""What the broker keeps of its instances: journal records, and back (CAT-050, CAT-051).

Every indexed change is a record of the stream `catalog`: it travels up and becomes a row, and it is what a restart is
made from. Its origin and era are the node and its start, so (broker, index) of the protocol is its origin and sequence. Each
says how the instance is from then on, so hearing one again that is in force already changes nothing.

    InstanceKept  an instance, in a snapshot
    StreamEnded   the last number that was given in a stream, in a snapshot
    LogsHeard     up to which of its numbers the log records of an instance are kept, in a snapshot
"""

from typing import Any, Final

import msgspec

from weft.base.errors import OurFault
from weft.base.memories import Memories
from weft.base.records import CoreRecord, Record, Stream, StreamRecord
from weft.cores.catalog.instances import Change, Instance
from weft.cores.catalog.records import Registration
from weft.cores.catalog.states import State

CORE: Final = "catalog"
REMOVE: Final = "remove"
STREAMS: Final = (Stream.CATALOG, Stream.LOGS)
"""Streams of this core: each links its first record of a start to the start before."""


class InstanceKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An instance as it is."""

    name: str
    id: str
    record: bytes
    """The sender's keys less `name`, as JSON."""
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


MemoryKind = InstanceKept | StreamEnded | LogsHeard
MEMORIES: Final[Memories[MemoryKind]] = Memories(CORE, {1: InstanceKept, 2: StreamEnded, 3: LogsHeard})
_encode_record: Final = msgspec.json.Encoder().encode
"""In the sender's order: which interface is the first one matters (CAT-016)."""
_decode_record: Final = msgspec.json.Decoder(dict[str, Any]).decode


def record_of(change: Change, node: bytes, era: int, epoch: str, wall: int) -> StreamRecord:
    """The record of an indexed change: with the instance as it is, without its keys if it is removed; `wall`: now."""
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
    """The record of where a stream stands."""
    return MEMORIES.to_record(StreamEnded(stream, era, last))


def heard_of(name: str, instance_id: str, top: int) -> CoreRecord:
    """The record of how far the log records of an instance were heard."""
    return MEMORIES.to_record(LogsHeard(name, instance_id, top))


def memory_of(record: Record, node: bytes) -> MemoryKind | tuple[str, str] | None:
    """What a record keeps: an instance, where a stream ended, or the (name, id) of what was removed.

    None: it is not of this core, or of another broker. OurFault for one of a later version.
    """
    if isinstance(record, CoreRecord):
        return MEMORIES.from_record(record) if record.core == CORE else None
    if not isinstance(record, StreamRecord) or record.stream != Stream.CATALOG or record.origin != node:
        return None
    said = record.attributes
    if "@" in record.key:  # of another network: never restored (BRI-005)
        return None
    try:
        if said["op"] == REMOVE:
            return record.key, said["instance"]
        keys = ("state", "reason", "owner", "observed_ip", "since")
        return InstanceKept(record.key, said["instance"], record.payload, *(said[key] for key in keys))
    except KeyError as error:
        raise OurFault(f"newer-data: the change {record.sequence} of the catalog says no {error}") from None


def instance_of(kept: InstanceKept) -> Instance:
    """The instance that was kept; its life is believed, and not known (CAT-051)."""
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
