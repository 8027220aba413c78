"""Turns slices of segments into record batches; this runs in the tasks (PIP-003, PIP-007, PIP-008)."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from pyspark_weft.pushdown import Predicate, may_match
from weft.lake.manifest import SegmentFault
from weft.lake.objects import ObjectPath, lake_path
from weft.lake.reader import Slice
from weft.lake.schemas import PLACES, Schema

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS: Final = 50_000
BATCH_BYTES: Final = 32 << 20
"""This many bytes are collected, joined and copied once.

Together with one row group it is all that a task holds (PIP-007).
"""


class Reading:
    """How to read the rows of a slice; the same for every task of a query."""

    def __init__(self, schema: Schema, *, include_errors: bool, verify: bool, places: bool = False) -> None:
        self.include_errors, self.verify, self.places = include_errors, verify, places
        self.names = schema.names
        self.schema = schema.plus(schema.name, *PLACES) if places else schema
        self.predicates: tuple[Predicate, ...] = ()
        # Repeated text is decoded once per row group and spread by index, which halves the cost.
        self._repeated = [c.name for c in schema.columns if c.type == "string" and c.name not in ("body", "error")]

    def batches(self, slices: Sequence[Slice]) -> "Iterator[pa.RecordBatch]":
        """The rows of the slices, in order, in batches of exactly the declared schema.

        SegmentFault `segment-gone` or `segment-changed` if a file does not match its manifest; a reader never skips a
        file.
        """
        return joined(part for piece in slices for part in self._of(piece))

    def _of(self, piece: Slice) -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self._opened(piece), read_dictionary=self._repeated) as file:
                if file.metadata.num_rows != piece.rows:
                    raise _changed(piece, f"{file.metadata.num_rows} rows, {piece.rows} by its manifest")
                yield from self._rows(file, piece)
        except FileNotFoundError:
            raise SegmentFault("segment-gone", piece.drain, piece.number, "its file is missing") from None
        except pa.ArrowException as error:
            raise _changed(piece, str(error)) from None

    def _opened(self, piece: Slice) -> "str | BytesIO":
        """The file of a slice, or of an object the bytes, if it is as long as its manifest says."""
        path = lake_path(piece.path)
        is_object = isinstance(path, ObjectPath)
        data = path.read_bytes() if is_object or self.verify else None
        size = path.stat().st_size if data is None else len(data)
        if size != piece.bytes:
            raise _changed(piece, f"{size} bytes, {piece.bytes} by its manifest")
        if self.verify and data is not None and sha256(data).hexdigest() != piece.sha256:
            raise _changed(piece, "its bytes are not those of its manifest")
        return BytesIO(data) if is_object and data is not None else piece.path

    def _rows(self, file: Any, piece: Slice) -> "Iterator[pa.RecordBatch]":
        target = self.schema.arrow()
        present = [name for name in self.names if name in file.schema_arrow.names]
        wanted = present if self.include_errors or "error" in present else [*present, "error"]
        for group, first, last, before in self._groups(file.metadata, piece):
            start = 0
            for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=wanted):
                part = _between(batch, first - start, last - start)
                if self.places:
                    part = _placed(part, piece, before + max(first, start))
                start += batch.num_rows
                if not self.include_errors:
                    part = part.filter(part.column("error").is_null())
                if part.num_rows:
                    yield shaped(part, target)

    def _groups(self, metadata: Any, piece: Slice) -> Iterator[tuple[int, int, int, int]]:
        """The row groups that hold rows of the slice: index, first and last wanted row within it, rows before it."""
        start = 0
        for index in range(metadata.num_row_groups):
            group = metadata.row_group(index)
            first, last = piece.first - start, min(piece.last - start, group.num_rows)
            if first < group.num_rows and last > 0 and self._may_hold(group):
                yield index, first, last, start
            start += group.num_rows

    def _may_hold(self, group: Any) -> bool:
        if not self.predicates:
            return True
        columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
        return all(may_match(predicate, columns.get(predicate.column)) for predicate in self.predicates)


def joined(parts: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """The same rows in as few batches as possible: each batch costs Spark about a millisecond, however small it is."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for part in parts:
        if held and (rows + part.num_rows > BATCH_ROWS or size + part.nbytes > BATCH_BYTES):
            yield _one(held)
            held, rows, size = [], 0, 0
        held.append(part)
        rows, size = rows + part.num_rows, size + part.nbytes
    if held:
        yield _one(held)


def _one(parts: "list[pa.RecordBatch]") -> "pa.RecordBatch":
    import pyarrow as pa

    return parts[0] if len(parts) == 1 else pa.Table.from_batches(parts).combine_chunks().to_batches()[0]


def _between(batch: "pa.RecordBatch", first: int, last: int) -> "pa.RecordBatch":
    """Rows `first..last - 1` of a batch, as far as the batch has them."""
    first, last = max(0, first), min(last, batch.num_rows)
    return batch.slice(first, last - first) if first < last else batch.slice(0, 0)


def _placed(batch: "pa.RecordBatch", piece: Slice, first: int) -> "pa.RecordBatch":
    """The batch with the place of each row; its first row is row `first` of the segment."""
    import pyarrow as pa

    count = batch.num_rows
    places = [pa.repeat(piece.drain, count), pa.repeat(pa.scalar(piece.number, pa.int64()), count)]
    places.append(pa.array(range(first, first + count), pa.int64()))
    names = [*batch.schema.names, *(column.name for column in PLACES)]
    return pa.RecordBatch.from_arrays([*batch.columns, *places], names=names)


def shaped(batch: "pa.RecordBatch", target: "pa.Schema") -> "pa.RecordBatch":
    """The batch in exactly these columns and types; columns that the file does not have are null (LAK-021)."""
    import pyarrow as pa

    arrays = []
    for field in target:
        if field.name not in batch.schema.names:
            arrays.append(pa.nulls(batch.num_rows, field.type))
            continue
        column = batch.column(field.name)
        arrays.append(column if column.type.equals(field.type) else column.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def pack(slices: Sequence[Slice], tasks: int) -> list[tuple[Slice, ...]]:
    """At most `tasks` bins with about equally many rows each; a bin is a run of consecutive slices (PIP-007)."""
    total = sum(piece.last - piece.first for piece in slices)
    bins: list[list[Slice]] = []
    done = 0
    for piece in slices:
        place = min(tasks - 1, done * tasks // total)
        if not bins or place > len(bins) - 1:
            bins.append([])
        bins[-1].append(piece)
        done += piece.last - piece.first
    return [tuple(entries) for entries in bins]


def _changed(piece: Slice, why: str) -> SegmentFault:
    return SegmentFault("segment-changed", piece.drain, piece.number, why)
