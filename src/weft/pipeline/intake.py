"""The input of a micro-batch, as far as it is known before a row is read: slices of segments and their manifests (PIP-021).

Segments and manifests never change, so the intake between two offsets is always the same.
"""

from collections.abc import Iterator
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.base.identity import Origin
from weft.base.ranges import Range
from weft.base.vectors import VersionVector
from weft.lake.manifest import ERA_END, Manifest, SegmentFault, origin_of
from weft.lake.offsets import At
from weft.lake.reader import Slice, Source
from weft.lake.schemas import LONG_MAX

if TYPE_CHECKING:
    import pyarrow as pa

SPREAD: Final = "n"
"""Attribute of an error row: how many numbers it stands for."""


class Loss(NamedTuple):
    """Numbers announced lost."""

    origin: Origin
    first: int
    last: int
    why: str


class Intake(NamedTuple):
    """The input of one micro-batch."""

    slices: tuple[Slice, ...]
    received: VersionVector
    """Numbers of its rows; numbers above 63 bits are left out, because no column holds them."""
    lost: tuple[Loss, ...]
    """Announced losses, in order."""
    ends: tuple[tuple[Origin, int], ...]
    """Closed eras, with their last number."""
    is_disjoint: bool
    """True: there are as many numbers as rows. So no row repeats a number, unless a row stands for several."""
    newest: int | None
    """When the latest of its rows was received, wall-clock nanoseconds."""

    @property
    def rows(self) -> int:
        return sum(piece.last - piece.first for piece in self.slices)


def intake_between(source: Source, start: At, end: At) -> Intake:
    """The input between the offsets `start` and `end`. SegmentFault if a segment is gone or altered."""
    slices = tuple(source.slices(start, end))
    complete = {(manifest.drain, manifest.number): manifest for manifest in source.manifests(start, end)}
    received = VersionVector()
    fresh = 0
    for piece in slices:
        _verify(source, piece)
        manifest = complete.get((piece.drain, piece.number))
        for origin, first, last in _ranges_of(piece, manifest):
            fresh += received.add(origin, first, last)
    return Intake(
        slices=slices,
        received=received,
        lost=tuple(loss for manifest in complete.values() for loss in losses_of(manifest)),
        ends=tuple(end for manifest in complete.values() for end in ends_of(manifest)),
        is_disjoint=fresh == sum(piece.last - piece.first for piece in slices),
        newest=max(
            (at for manifest in complete.values() if 0 < (at := manifest.last_received or 0) < LONG_MAX), default=None
        ),
    )


def losses_of(manifest: Manifest) -> Iterator[Loss]:
    """Losses that a segment announces, in order; then its own numbers, if an operator gave up its rows (PIP-008)."""
    for name, era, first, last, why in manifest.lost:
        if why != ERA_END and 1 <= first <= LONG_MAX:
            yield Loss(origin_of(name, era), first, min(last, LONG_MAX), why)
    if manifest.skipped:
        for origin, first, last in _ranges_in(manifest):
            yield Loss(origin, first, last, f"skipped: {manifest.skipped}")


def received_of(manifest: Manifest) -> VersionVector:
    """The numbers of a segment's rows, as far as a column can hold them; empty if its rows were given up."""
    received = VersionVector()
    for origin, first, last in () if manifest.skipped else _ranges_in(manifest):
        received.add(origin, first, last)
    return received


def ends_of(manifest: Manifest) -> list[tuple[Origin, int]]:
    """Eras that a segment declares closed, with their last number."""
    return [end for end in manifest.era_ends() if end[1] <= LONG_MAX]


def _verify(source: Source, piece: Slice) -> None:
    """Check that a segment's file exists and is as it was drained, before a batch is planned with it (PIP-008)."""
    path = Path(piece.path)
    size = path.stat().st_size if path.exists() else -1
    unreadable = ""
    try:
        if size == piece.bytes and _is_as_drained(path, piece.sha256):
            return
    except OSError as error:
        unreadable = f"{path.name}: {error.strerror}"
    manifest = source.drains()[piece.drain].manifest(piece.number)
    held = f"; it held {manifest.held() if manifest else 'unknown numbers'}"
    if size < 0:
        raise SegmentFault("segment-gone", piece.drain, piece.number, f"its file is missing{held}")
    if unreadable:
        raise SegmentFault("segment-unreadable", piece.drain, piece.number, f"{unreadable}{held}")
    why = f"{size} bytes, {piece.bytes} by its manifest{held}"
    if size == piece.bytes:
        why = f"its bytes are not those of its manifest{held}"
    raise SegmentFault("segment-changed", piece.drain, piece.number, why)


def _is_as_drained(path: Path, digest: str) -> bool:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest() == digest


def _ranges_in(manifest: Manifest) -> Iterator[tuple[Origin, int, int]]:
    for name, era, pairs in manifest.ranges:
        for first, last in pairs:
            if first <= LONG_MAX:
                yield origin_of(name, era), first, min(last, LONG_MAX)


def _ranges_of(piece: Slice, manifest: Manifest | None) -> Iterator[tuple[Origin, int, int]]:
    """The numbers of a slice: from the manifest if it is a whole segment, else from its columns."""
    if piece.is_whole and manifest is not None:
        yield from _ranges_in(manifest)
        return
    for origin, (first, last) in _read_ranges(piece):
        if first <= LONG_MAX:
            yield origin, first, min(last, LONG_MAX)


def _read_ranges(piece: Slice) -> Iterator[tuple[Origin, Range]]:
    """Runs of consecutive numbers in a slice that is only a part of a segment."""
    import pyarrow.parquet as pq

    columns = ["origin", "era", "sequence", "attributes"]
    table = pq.read_table(piece.path, columns=columns, partitioning=None).slice(piece.first, piece.last - piece.first)
    names, eras, numbers = (table.column(name).to_pylist() for name in columns[:3])
    run: tuple[str, int | None] | None = None
    first = last = 0
    for name, era, number, width in zip(names, eras, numbers, _widths(table), strict=True):
        if name is None or number is None or number < 1:
            continue
        if run == (name, era) and number == last + 1:
            last += width
            continue
        if run is not None:
            yield origin_of(*run), (first, last)
        run, first, last = (name, era), number, number + width - 1
    if run is not None:
        yield origin_of(*run), (first, last)


def _widths(table: "pa.Table") -> list[int]:
    """How many numbers each row stands for."""
    return [
        int(dict(pairs).get(SPREAD) or 1) if pairs else 1  # valid text: only the segment writer writes this attribute
        for pairs in table.column("attributes").to_pylist()
    ]
