"""Registered consumers: which reader still needs which segments (LAK-016).

Each consumer has one file per stream, which is replaced atomically.
"""

from pathlib import Path

import msgspec

from weft.lake.layout import FORMAT, Layout
from weft.lake.objects import files_of
from weft.lake.offsets import Offset


class Consumer(msgspec.Struct, frozen=True, kw_only=True):
    """A reader that retention waits for."""

    format: int
    name: str
    stream: str
    offset: Offset
    """This consumer no longer needs anything before this offset."""
    committed: int
    """When the file was written, wall-clock nanoseconds."""


def commit(lake: Layout, name: str, stream: str, offset: Offset, wall_ns: int) -> None:
    """Record durably that everything before `offset` is processed (PIP-009). Raises OSError."""
    entry = Consumer(format=FORMAT, name=name, stream=stream, offset=offset, committed=wall_ns)
    files = files_of(lake.root)
    files.make_directories(lake.consumers())
    files.put(lake.consumer(name, stream), msgspec.json.encode(entry, order="sorted") + b"\n")


def register(lake: Layout, name: str, stream: str, offset: Offset, wall_ns: int) -> None:
    """Make retention keep everything from `offset` on, unless this consumer has already committed an offset."""
    if not lake.consumer(name, stream).exists():
        commit(lake, name, stream, offset, wall_ns)


def consumers(lake: Layout, stream: str | None = None) -> list[Consumer]:
    """All registered consumers, of one stream if one is named. Raises ValueError for an unreadable file."""
    if not lake.consumers().is_dir():
        return []
    found = [_read(path) for path in sorted(lake.consumers().glob("*.json"))]
    return [consumer for consumer in found if stream in (None, consumer.stream)]


def remove(lake: Layout, name: str) -> int:
    """Forget a consumer, so that retention no longer waits for it; returns how many of its streams were registered."""
    mine = [consumer for consumer in consumers(lake) if consumer.name == name]
    for consumer in mine:
        lake.consumer(name, consumer.stream).unlink(missing_ok=True)
    return len(mine)


def _read(path: Path) -> Consumer:
    return msgspec.json.decode(path.read_bytes(), type=Consumer)
