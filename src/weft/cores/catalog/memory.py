"""What the broker keeps of its instances: journal records, and back (CAT-050, CAT-051).

Every indexed change is a record of the stream `catalog`: it travels up and becomes a row, and it is what a restart is
made from. Its origin and era are the node and its start, so (broker, index) of specs/02 is its origin and sequence.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from weft.base.memories import Memories
from weft.base.records import Stream, StreamRecord

if TYPE_CHECKING:
    from weft.cores.catalog.station import Change, Station

CORE: Final = "catalog"
REMOVE: Final = "remove"


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
    net: str = ""


class StreamEnded(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The last number that a start gave in a stream."""

    stream: int
    era: int
    last: int


MemoryKind = InstanceKept | StreamEnded
MEMORIES: Final[Memories[MemoryKind]] = Memories(CORE, {1: InstanceKept, 2: StreamEnded})
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def record_of(change: "Change", station: "Station") -> StreamRecord:
    """The record of an indexed change."""
    instance, is_gone = change.instance, change.op == REMOVE
    attributes = {
        "op": change.op,
        "instance": instance.id,
        "state": instance.state.name.lower(),
        "reason": change.reason or instance.reason,
        "health": instance.health,
        "owner": instance.owner,
        "observed_ip": instance.observed_ip,
        "since": instance.since,
        "epoch": station.epoch,
        "net": instance.net,
        "fmt": "json",
    }
    payload = b"" if is_gone else _encode(instance.record)
    wall = station.now.wall
    stream, node, era = Stream.CATALOG, station.node, station.era
    return StreamRecord(stream, node, era, change.index, wall, wall, instance.name, payload, attributes)
