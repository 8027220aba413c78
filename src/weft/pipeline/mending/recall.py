"""Reconstructs a job's state after a batch from manifests and tables (PIP-025).

The received numbers follow from the manifests before the offset, which are kept for ever. The batch's row in
`meta.progress` has a digest that verifies them. If it does not match, because the tables began after the first segment,
the numbers are taken from the tables: silver, quarantine, rows that silver has under another number, rows removed on
purpose. Announced losses and ends of eras are in manifests only; samples that came after their number was announced lost
have a flag; `gold.completeness` has the age of holes.
"""

from typing import Final, NamedTuple, Protocol

from weft.base.identity import Origin
from weft.base.vectors import VersionVector
from weft.lake.layout import Layout
from weft.lake.manifest import SegmentFault, origin_of
from weft.lake.offsets import At
from weft.lake.reader import Source
from weft.pipeline import tables
from weft.pipeline.coverage import RETURNED, Coverage, Hole
from weft.pipeline.intake import Intake, Loss, ends_of, intake_between, losses_of, received_of
from weft.pipeline.kinds import SAMPLES, Kind
from weft.pipeline.sql import Lake
from weft.pipeline.tablenumbers import TWINS_OF, numbers_in, ranges_in, union
from weft.pipeline.tables import COMPLETENESS
from weft.pipeline.upkeep import forgotten

LATE: Final = """
SELECT origin, era, sequence AS first, sequence AS last FROM silver.samples WHERE list_contains(flags, 'after-lost')
"""
HOLES: Final = """
SELECT origin, era, hole.first AS first, hole.last AS last, epoch_ns(hole.since) AS since
FROM (SELECT origin, era, unnest(missing_ranges) AS hole FROM gold.completeness WHERE stream = '{stream}')
ORDER BY first
"""


class Place(Protocol):
    """A batch: its number, its position, and the digest of the coverage after it."""

    @property
    def number(self) -> int: ...

    @property
    def offset(self) -> str: ...

    @property
    def vec(self) -> str: ...

    @property
    def at(self) -> At: ...


class Summary(NamedTuple):
    """What the manifests say about everything before a position."""

    received: VersionVector
    lost: tuple[Loss, ...]
    ends: tuple[tuple[Origin, int], ...]


def recalled(asked: Lake, lake: Layout, kind: Kind, place: Place, now: int) -> Coverage:
    """The state of a job after the batch at `place`; `now` in wall-clock nanoseconds. SegmentFault for a broken chain."""
    summary = _summary(Source(lake, kind.stream), place.at)
    received = summary.received
    if received.digest() != place.vec:
        received = _numbers_in_tables(asked, kind, place.number)
    state = Coverage(is_dense=kind.is_dense, runs_on=kind.runs_on)
    late = _late(asked) if kind is SAMPLES else VersionVector()
    if late:
        state.lost[RETURNED] = late
        state.hollow.update(late)
    state.holes = _holes(asked, kind.stream)
    state.advance(Intake((), received, summary.lost, summary.ends, is_disjoint=True, newest=None), now)
    state.holes = {origin: holes for origin, holes in state.holes.items() if origin in state.known}
    state.offset = place.offset
    return state


def _summary(source: Source, at: At) -> Summary:
    received, lost, ends = VersionVector(), list[Loss](), list[tuple[Origin, int]]()
    for manifest in source.manifests({}, at):
        received.update(received_of(manifest))
        lost += losses_of(manifest)
        ends += ends_of(manifest)
    for drain, (number, row) in at.items():
        if row:
            received.update(_first_rows(source, drain, number, row))
    return Summary(received, tuple(lost), tuple(ends))


def _first_rows(source: Source, drain: str, number: int, row: int) -> VersionVector:
    """The numbers of the first `row` rows of a segment that the batch took in part; empty if the rows are gone."""
    try:
        return intake_between(source, {drain: (number, 0)}, {drain: (number, row)}).received
    except (SegmentFault, FileNotFoundError):
        return VersionVector()


def _numbers_in_tables(asked: Lake, kind: Kind, upto: int) -> VersionVector:
    """The numbers that the tables have up to a batch, or had until they were removed on purpose."""
    holding = (kind.silver, kind.quarantine, *TWINS_OF.get(kind.stream, ()))
    numbers = union(numbers_in(asked, table, upto) for table in holding)
    numbers.update(forgotten.numbers(asked.layout, kind.stream))
    return numbers


def _late(asked: Lake) -> VersionVector:
    return ranges_in(asked, LATE) if tables.SAMPLES in asked.tables() else VersionVector()


def _holes(asked: Lake, stream: str) -> dict[Origin, list[Hole]]:
    """The holes that were last recorded, so that those that still exist keep their age."""
    found: dict[Origin, list[Hole]] = {}
    if COMPLETENESS in asked.tables():
        for row in asked.query(HOLES.format(stream=stream)).to_pylist():
            hole = Hole(row["first"], row["last"], row["since"])
            found.setdefault(origin_of(row["origin"], row["era"]), []).append(hole)
    return found
