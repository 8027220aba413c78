"""Segments: one Parquet file and one manifest each, written once, in an order that is safe at every crash (LAK-005).

```
N.parquet.tmp  sync  rename  sync directory      not yet there: a reader sees no manifest
N.json.tmp     sync  rename  sync directory      now it exists
```

A segment exists exactly when its manifest does. Leftovers of a crash (`.tmp`, a `.parquet` without manifest) are
deleted at the next start, and the records after the last manifest are drained again (LAK-007).
"""

from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from weft.base.records import Entry
from weft.lake import schemas
from weft.lake.body import Mask
from weft.lake.columns import Account, OtherColumns, SampleColumns, columns_for, take_record
from weft.lake.files import Files
from weft.lake.layout import FORMAT, STREAMS, TMP, LakeJson, Layout, is_block, segment_file
from weft.lake.manifest import NO_PRIOR, Link, Manifest, decode, digest_of, range_rows
from weft.lake.objects import files_of

if TYPE_CHECKING:
    import pyarrow as pa

ROW_GROUP_ROWS: Final = 50_000  # rows of a reader's batch; a task holds one at a time (LAK-004, PIP-007)
ZSTD_LEVEL: Final = 1  # level 3 costs twice the time for 4 % less
PARQUET_VERSION: Final = "2.6"
METADATA_KEY: Final = b"weft.manifest"
START_KEY: Final = b"weft.start"
"""The start (era) of the node that has written the file. It is not in the manifest, which earlier versions must be able to read."""
RUNNING: Final = ("sequence", "lsn", "row")
"""Columns whose numbers mostly increase from row to row: delta encoding makes them very small."""
STATISTICS: Final = ("origin", "era", "sequence", "at_ns", "received_ns", "series")


class Place(NamedTuple):
    """Where the next segment is written: stream, drain, number, and the digest of the manifest before it."""

    stream: str
    drain: str
    number: int
    prior: str = NO_PRIOR

    def behind(self, link: Link) -> "Place":
        """The place behind a segment of the same stream and drain."""
        return self._replace(number=link.manifest.number + 1, prior=link.digest)


class Tip(NamedTuple):
    """How far one stream of a drain is written. Number 0: no segment yet."""

    number: int
    lsn: int
    prior: str

    def after(self, link: Link) -> "Tip":
        return Tip(link.manifest.number, link.manifest.lsn[1], link.digest)


NO_SEGMENT: Final = Tip(0, 0, NO_PRIOR)


class Segment:
    """A segment that is being filled: `take` records in lsn order, then `publish`."""

    def __init__(self, place: Place, mask: Mask | None = None, start: int = 0) -> None:
        self.place, self.start = place, start
        self.account = Account()
        self.columns: SampleColumns | OtherColumns = columns_for(place.stream, mask)

    @property
    def rows(self) -> int:
        return self.columns.rows

    @property
    def bytes(self) -> int:
        """Its approximate uncompressed size."""
        return self.columns.bytes

    def take(self, entries: Iterable[Entry]) -> None:
        """Add records of this stream, each with its lsn, ascending. Records of other streams are skipped."""
        wanted = STREAMS.index(self.place.stream) + 1
        for lsn, record in entries:
            if getattr(record, "stream", 0) == wanted:
                take_record(self.account, self.columns, lsn, record)

    def span(self, first_lsn: int, last_lsn: int) -> None:
        """Set the lsn range that the segment covers, even where the journal has lost records within it."""
        self.account.note(first_lsn)
        self.account.note(last_lsn)

    def publish(self, lake: Layout, files: Files) -> Link:
        """Write both files durably and in order; returns the manifest and its digest. Raises OSError.

        FileExistsError: another program writes under this drain's name.
        """
        place = self.place
        data, draft = self._parquet()
        manifest = msgspec.structs.replace(draft, bytes=len(data), sha256=sha256(data).hexdigest())
        files.make_directories(lake.block(place.stream, place.drain, place.number))
        files.put(lake.parquet(place.stream, place.drain, place.number), data, is_new=True)
        line = manifest.line()
        files.put(lake.manifest(place.stream, place.drain, place.number), line, is_new=True)
        return Link(manifest, digest_of(line))

    def discard(self, lake: Layout, files: Files) -> None:
        """After a failed `publish`: delete the incomplete files. A published manifest stays."""
        place = self.place
        parquet, manifest = lake.parquet(*place[:3]), lake.manifest(*place[:3])
        leftovers = [path.with_name(path.name + TMP) for path in (parquet, manifest)]
        for path in [*leftovers, *([] if manifest.exists() else [parquet])]:
            with suppress(OSError):
                files.remove(path)

    def _parquet(self) -> "tuple[memoryview, Manifest]":
        table = self.columns.table()
        draft = self._draft(table.num_rows)
        return parquet_bytes(table, self.place, manifest_in_file(draft), self.start), draft

    def _draft(self, rows: int) -> Manifest:
        account, place = self.account, self.place
        return Manifest(
            format=FORMAT,
            stream=place.stream,
            schema=schemas.VERSION,
            drain=place.drain,
            number=place.number,
            rows=rows,
            bytes=0,
            sha256="",
            first_received=account.first_received,
            last_received=account.last_received,
            lsn=(account.lsn_first, account.lsn_last),
            ranges=range_rows((identity, list(seen)) for identity, seen in account.seen.items()),
            lost=account.lost,
            prior=place.prior,
        )


def placed(table: "pa.Table", place: Place) -> "pa.Table":
    """The rows of a segment, with three more columns: the place of each row."""
    import pyarrow as pa

    count = table.num_rows
    places = (
        pa.repeat(place.drain, count),
        pa.repeat(pa.scalar(place.number, pa.int64()), count),
        pa.array(range(count), pa.int64()),
    )
    for column, values in zip(schemas.PLACES, places, strict=True):
        table = table.append_column(column.name, values)
    return table


def parquet_bytes(table: "pa.Table", place: Place, manifest: bytes, start: int = 0) -> "memoryview":
    """The bytes of a segment's file (LAK-004), in the form of bronze (LAK-040).

    `manifest` is stored in its metadata, and `start`, unless it is 0: the start of the node that writes it.

    They contain no Arrow schema, so that every reader sees text as text.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = schemas.SEGMENTS[place.stream].columns
    table = placed(table, place)
    texts = [column.name for column in columns if column.type == "string" and column.name != "body"]
    texts += ["drain", "segment"]
    texts += [f"{c.name}.key_value.{side}" for c in columns if c.type.startswith("map<") for side in ("key", "value")]
    sink = pa.BufferOutputStream()
    writer = pq.ParquetWriter(
        sink,
        table.schema,
        version=PARQUET_VERSION,
        compression="zstd",
        compression_level=ZSTD_LEVEL,
        use_dictionary=texts,
        column_encoding=dict.fromkeys(RUNNING, "DELTA_BINARY_PACKED"),
        write_statistics=[name for name in STATISTICS if name in table.schema.names],
        store_schema=False,
        write_page_checksum=True,
    )
    with writer:
        writer.add_key_value_metadata({METADATA_KEY.decode(): manifest.decode()})
        if start:
            writer.add_key_value_metadata({START_KEY.decode(): str(start)})
        writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
    return memoryview(sink.getvalue())


def manifest_in_file(draft: Manifest) -> bytes:
    """The manifest as stored inside the Parquet file: without the fields that are only known when the file is finished."""
    fields = msgspec.structs.asdict(draft)
    known = {name: fields[name] for name in fields if name not in ("bytes", "sha256", "gone", "was", "skipped")}
    return msgspec.json.encode(known, order="sorted")


def write_segment(
    lake: Layout, place: Place, entries: Iterable[Entry], files: Files | None = None, mask: Mask | None = None
) -> Link:
    """Publish a segment with those of the given records that belong to its stream.

    Returns manifest and digest; raises OSError.
    """
    segment = Segment(place, mask)
    segment.take(entries)
    return segment.publish(lake, files or files_of(lake.root))


def append_segment(lake: Layout, stream: str, drain: str, entries: Iterable[Entry]) -> Link:
    """Publish the next segment of a drain that has no other writer; for imports and tests."""
    tip = find_tip(lake, stream, drain)
    return write_segment(lake, Place(stream, drain, tip.number + 1, tip.prior), entries)


def start_of(lake: Layout, stream: str, drain: str, number: int) -> int:
    """The start of the node that has written a segment; 0 if its file does not say so, or is gone. Raises OSError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        data = lake.parquet(stream, drain, number).read_bytes()
        return int((pq.read_metadata(pa.BufferReader(data)).metadata or {}).get(START_KEY, b"0"))
    except (FileNotFoundError, pa.ArrowInvalid):
        return 0


def find_tip(lake: Layout, stream: str, drain: str) -> Tip:
    """The last segment of a drain, found by listing its newest directory. SegmentFault if its manifest is damaged."""
    for block in _blocks(lake, stream, drain):
        numbers = [number for number, suffix in _files(block) if suffix == "json"]
        if numbers:
            number = max(numbers)
            return NO_SEGMENT.after(decode(lake.manifest(stream, drain, number).read_bytes(), drain, number))
    return NO_SEGMENT


def clean(lake: Layout, stream: str, drain: str, files: Files) -> int:
    """Delete the incomplete files that a crash left (LAK-007); returns how many."""
    deleted = 0
    for block in _blocks(lake, stream, drain)[:2]:  # a crash can leave something only in the newest two
        found = _files(block)
        exist = {number for number, suffix in found if suffix == "json"}
        leftovers = [
            (number, suffix)
            for number, suffix in found
            if suffix.endswith(TMP) or (suffix == "parquet" and number not in exist)
        ]
        for number, suffix in leftovers:
            files.remove(block / f"{number:016x}.{suffix}")
        if leftovers:
            files.sync_directory(block)
        deleted += len(leftovers)
    return deleted


def open_lake(lake: Layout, lake_id: str, wall_ns: int, files: Files | None = None) -> LakeJson:
    """The content of `lake.json`; written first if the lake has none. Raises OSError.

    Of several processes that open a new lake at once, one writes it and all return the same content.
    """
    files = files or files_of(lake.root)
    if not lake.lake_json.exists():
        files.make_directories(lake.root)
        with files.alone_in(lake.root), suppress(FileExistsError):
            if not lake.lake_json.exists():
                _write_lake_json(lake, lake_id, wall_ns, files)
    return msgspec.json.decode(lake.lake_json.read_bytes(), type=LakeJson)


def _write_lake_json(lake: Layout, lake_id: str, wall_ns: int, files: Files) -> None:
    versions = dict.fromkeys(STREAMS, schemas.VERSION)
    identity = LakeJson(format=FORMAT, lake=lake_id, tables="delta", created=wall_ns, schemas=versions)
    files.put(lake.lake_json, msgspec.json.encode(identity, order="sorted") + b"\n", is_new=True)


def _blocks(lake: Layout, stream: str, drain: str) -> list[Path]:
    """The directories of a drain that hold segments, newest first."""
    home = lake.drain(stream, drain)
    if not home.is_dir():
        return []
    return sorted((path for path in home.iterdir() if is_block(path.name)), reverse=True)


def _files(block: Path) -> list[tuple[int, str]]:
    return sorted(found for path in block.iterdir() if (found := segment_file(path.name)) is not None)
