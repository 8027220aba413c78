"""Records for tests, and what the lake should make of them."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from weft.base.records import EraRecord, LostRecord, Record, Stream, StreamRecord
from weft.lake.layout import Layout
from weft.lake.manifest import NO_PRIOR, Manifest, verify
from weft.wire import samples

DRAIN = "6f1c2a345b6d4e7f8091a2b3c4d5e6f7"
NODE_A = bytes.fromhex("0b9e4c1d7a224f539c105d6e7f8091a2")
NODE_B = bytes.fromhex("6f1c2a345b6d4e7f8091a2b3c4d5e6f7")
ERA = 1795227290000000
RECEIVED = 1_800_000_000_000_000_000
T0_MS = 1_767_225_600_000
CPU = samples.Series("cpu", "CPU", "percent", {"cpu": "total"})
MEM = samples.Series("mem", "MEMORY", "basic", {})


def batch(node: bytes, first: int, rows: int, era: int = ERA, **attributes: Any) -> StreamRecord:
    """A batch of samples `first..first + rows - 1`; the value of each is its number."""
    entries = [samples.Row(i % 2, i, first + i, 7 * (first + i) if i % 2 == 0 else None) for i in range(rows)]
    body = samples.encode(samples.SampleBatch(T0_MS + first, (CPU, MEM), entries))
    received = RECEIVED + first
    return StreamRecord(1, node, era, first, received - 5, received, "weft.metric", body, {"n": rows, **attributes})


def single(node: bytes, number: int, payload: bytes, **attributes: Any) -> StreamRecord:
    """One sample as a record of its own."""
    return StreamRecord(1, node, ERA, number, RECEIVED - 5, RECEIVED, "temperature", payload, attributes)


def other(stream: Stream, number: int, payload: bytes = b"\x01", **attributes: Any) -> StreamRecord:
    """A record of a stream without columns of its own."""
    return StreamRecord(stream, NODE_A, ERA, number, RECEIVED - 5, RECEIVED, "some/key", payload, attributes)


def lost(first: int, last: int, why: str = "spool-full") -> LostRecord:
    return LostRecord(1, NODE_A, ERA, first, last, why)


def era_link(era: int, before: int, last: int) -> EraRecord:
    return EraRecord(1, NODE_A, era, before, last)


def rows_of(lake: Layout, stream: str, drain: str = DRAIN) -> list[dict[str, Any]]:
    """All rows of a drain, segment by segment, behind a proof of the chain."""
    return [row for manifest in chain_of(lake, stream, drain) for row in rows_in(lake, manifest)]


def rows_in(lake: Layout, manifest: Manifest) -> list[dict[str, Any]]:
    path = lake.parquet(manifest.stream, manifest.drain, manifest.number)
    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    assert manifest.rows == len(found)
    assert manifest.bytes == path.stat().st_size
    return found


def chain_of(lake: Layout, stream: str, drain: str = DRAIN) -> list[Manifest]:
    """The manifests of a drain from number 1 on, each proved to follow the one before it."""
    found: list[Manifest] = []
    prior = NO_PRIOR
    while (path := lake.manifest(stream, drain, len(found) + 1)).exists():
        manifest, prior = verify(path.read_bytes(), drain, len(found) + 1, prior)
        found.append(manifest)
    return found


def files_in(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def mixed() -> list[Record]:
    """A bit of everything that the stream of samples may hold."""
    return [
        era_link(ERA, ERA - 9, 50),
        batch(NODE_A, 1, 4),
        batch(NODE_B, 1, 300),
        lost(5, 6),
        batch(NODE_A, 7, 3, step=-40),
        single(NODE_A, 10, b"\xcb\x40\x29\x00\x00\x00\x00\x00\x00"),
        single(NODE_A, 11, b"\xcf" + b"\xff" * 8),
        StreamRecord(1, NODE_A, ERA, 12, 1, 2, "weft.metric", b"\x94\x01nonsense", {"n": 30}),
    ]
