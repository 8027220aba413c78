"""Reconstructs a job's state after a batch from manifests and tables (PIP-025).

The received numbers follow from the manifests below the offset, which are kept for ever; the digest of the vector in
the batch's record verifies them. If it does not match (tables that began after the first segment), the tables are used:
silver, quarantine, samples under another number, rows removed on purpose. Announced losses and ends of eras are in
manifests only; a flag marks samples that came after their number was announced lost; `gold.completeness` has the age of
holes.
"""

from typing import Final, NamedTuple, Protocol

from weft.base.identity import Origin
from weft.base.vectors import VersionVector
from weft.lake.layout import Layout
from weft.lake.manifest import SegmentFault, origin_of
from weft.lake.offsets import At
from weft.lake.reader import Source
from weft.pipeline import tables
from weft.pipeline.coverage import Coverage, Hole
from weft.pipeline.intake import Intake, Loss, ends_of, intake_between, losses_of, received_of
from weft.pipeline.kinds import SAMPLES, Kind
from weft.pipeline.sql import Lake
from weft.pipeline.tablenumbers import TWINS_OF, numbers_in, ranges_in, union
from weft.pipeline.tables import COMPLETENESS
from weft.pipeline.upkeep import forgotten

RETURNED: Final = "returned"
"""Reason for a lost number whose sample is in silver: it came after it was given up, and has no pair."""
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


class Told(NamedTuple):
    """What the manifests say about everything below a position."""

    received: VersionVector
    lost: tuple[Loss, ...]
    ends: tuple[tuple[Origin, int], ...]


def recalled(asked: Lake, lake: Layout, kind: Kind, place: Place, now: int) -> Coverage:
    """The state after the batch; `now` in wall-clock nanoseconds. SegmentFault for a broken chain."""
    told = _told(Source(lake, kind.stream), place.at)
    received = told.received
    if received.digest() != place.vec:
        received = _held(asked, kind, place.number)
    state = Coverage(is_dense=kind.is_dense, runs_on=kind.runs_on)
    late = _late(asked) if kind is SAMPLES else VersionVector()
    if late:
        state.lost[RETURNED] = late
        state.hollow.update(late)
    state.holes = _holes(asked, kind.stream)
    state.advance(Intake((), received, told.lost, told.ends, is_disjoint=True, newest=None), now)
    state.holes = {origin: holes for origin, holes in state.holes.items() if origin in state.known}
    state.offset = place.offset
    return state


def _told(source: Source, at: At) -> Told:
    received, lost, ends = VersionVector(), list[Loss](), list[tuple[Origin, int]]()
    for manifest in source.manifests({}, at):
        received.update(received_of(manifest))
        lost += losses_of(manifest)
        ends += ends_of(manifest)
    for drain, (number, row) in at.items():
        if row:
            received.update(_begun(source, drain, number, row))
    return Told(received, tuple(lost), tuple(ends))


def _begun(source: Source, drain: str, number: int, row: int) -> VersionVector:
    """The first rows of a segment that the batch took in part; empty if they are gone."""
    try:
        return intake_between(source, {drain: (number, 0)}, {drain: (number, row)}).received
    except (SegmentFault, FileNotFoundError):
        return VersionVector()


def _held(asked: Lake, kind: Kind, upto: int) -> VersionVector:
    """What the tables hold."""
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
