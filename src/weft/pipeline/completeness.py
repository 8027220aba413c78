"""Computes which numbers are missing (PIP-060..062), from ranges on the driver, at most once a minute.

A hole is `filling` until it is overdue, then `missing`; in a closed era it is missing at once, because all records of an
era arrive before the record that closes it. When the numbers arrive after all, the state is `complete` again.

Samples dropped by a filter are announced like losses, but count as delivered (MEA-011). Such numbers are *forgotten*,
and an era that lacks only them is complete; so are numbers whose rows were removed on purpose (LAK-037). A stream that
is not dense has holes by nature (only forwarded messages arrive): absent numbers are not missing, and present ones are
not called complete; its rows say `sparse`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeVar

from weft.base.identity import Origin
from weft.base.vectors import VersionVector
from weft.lake.manifest import name_of
from weft.pipeline.coverage import Coverage, Hole

FILTERED: Final = "filtered"
"""Prefix of the reason when a filter has dropped numbers."""
ERASED: Final = "forgotten"
"""Reason for a number whose row was removed on purpose."""
SPARSE: Final = "sparse"
"""State of streams that have holes by nature."""
OVERDUE_NS: Final = 15 * 60 * 1_000_000_000  # from then on a hole is missing, and an open era silent
SHOWN_MAX: Final = 1_000  # missing ranges per row
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
T = TypeVar("T")
MILLISECOND: Final = timedelta(milliseconds=1)


class Tally(NamedTuple):
    """Row counts of an origin and era, of some batches or of all."""

    rows: int = 0
    """Rows in bronze."""
    silver: int = 0
    quarantined: int = 0
    node: str | None = None
    first_at: datetime | None = None
    last_at: datetime | None = None
    last_received: datetime | None = None

    @classmethod
    def of(cls, row: dict[str, Any]) -> "Tally":
        """The counts in a row of `gold.completeness`."""
        silver, quarantined = row["silver_rows"], row["quarantined"]
        rows = silver + quarantined + row["duplicates"]
        return cls(rows, silver, quarantined, *(row[name] for name in cls._fields[3:]))

    def plus(self, other: "Tally") -> "Tally":
        """The sum of both."""
        return Tally(
            rows=self.rows + other.rows,
            silver=self.silver + other.silver,
            quarantined=self.quarantined + other.quarantined,
            node=max(_known(self.node, other.node), default=None),
            first_at=min(_known(self.first_at, other.first_at), default=None),
            last_at=max(_known(self.last_at, other.last_at), default=None),
            last_received=max(_known(self.last_received, other.last_received), default=None),
        )


def _known(*values: T | None) -> list[T]:
    return [value for value in values if value is not None]


def completed(row: dict[str, Any], tally: Tally, now: int) -> dict[str, Any]:
    """A row of `gold.completeness`: a row of `rows_of` plus the counts from the tables.

    An open era from which nothing has arrived for as long as makes a hole overdue is `silent`: its last numbers are
    unknown (PIP-062).
    """
    arrived, at = tally.last_received, tally.last_at
    is_late = arrived is not None and arrived < instant_of(now - OVERDUE_NS)
    is_silent = row["state"] == "complete" and not row["closed"] and is_late
    return row | {
        "state": "silent" if is_silent else row["state"],
        "node": tally.node or row["origin"],
        "silver_rows": tally.silver,
        "quarantined": tally.quarantined,
        "duplicates": max(0, tally.rows - tally.silver - tally.quarantined),
        "first_at": tally.first_at,
        "last_at": at,
        "last_received": arrived,
        "lag_ms": None if arrived is None or at is None else _milliseconds(arrived) - _milliseconds(at),
    }


class Instant(NamedTuple):
    """The state of a lake for which rows of completeness are computed."""

    upto: int
    """The batch with this coverage."""
    now: int
    """Wall-clock nanoseconds of this state."""
    erased: VersionVector = VersionVector()
    """Numbers whose rows were removed on purpose."""


def rows_of(coverage: Coverage, stream: str, when: Instant) -> Iterator[dict[str, Any]]:
    """One row per origin and era, without the counts that only the tables have."""
    seen = dict.fromkeys([*(origin for origin, _ in coverage.known), *coverage.ends])
    for origin in seen:
        yield _row(coverage, origin, when) | {"stream": stream, "upto": when.upto}


def _row(coverage: Coverage, origin: Origin, when: Instant) -> dict[str, Any]:
    covered, known, losses = coverage.covered[origin], coverage.known[origin], coverage.losses_of(origin)
    erased = [(*pair, ERASED) for pair in covered & when.erased[origin]]
    erased_count = sum(last - first + 1 for first, last, _ in erased)
    highest, first = coverage.highest_known(origin), coverage.first_of(origin)
    holes = coverage.holes.get(origin, [])
    received, missing = covered.count, sum(hole.last - hole.first + 1 for hole in holes)
    filtered = sum(last - first + 1 for first, last, why in losses if why.startswith(FILTERED))
    gone = known.count - covered.count - filtered
    expected = received + gone + filtered + missing
    if coverage.is_dense:
        span = max(0, highest - first + 1)
        assert expected == span, (origin, span, received, gone, filtered, missing)  # PIP-061
    closed = origin in coverage.ends
    return {
        "origin": name_of(origin.node),
        "era": origin.era,
        "state": state_of(holes, gone, when.now, closed=closed) if coverage.is_dense else SPARSE,
        "first_sequence": first,
        "highest_known": highest,
        "known_by": "received" if highest == covered.highest else "era-link" if highest > known.highest else "lost",
        "expected": expected,
        "received": received - erased_count,
        "lost": gone,
        "forgotten": filtered + erased_count,
        "missing": missing,
        "missing_ranges": [(hole.first, hole.last, instant_of(hole.since)) for hole in holes[:SHOWN_MAX]],
        "lost_ranges": sorted(losses + erased)[:SHOWN_MAX],
        "more": len(holes) > SHOWN_MAX,
        "complete_upto": known.prefix(),
        "closed": closed,
    }


def state_of(holes: list[Hole], lost: int, now: int, *, closed: bool) -> str:
    """`complete`, `filling`, `missing` or `lost`; `silent` is decided where the last arrival is known."""
    if holes:
        is_overdue = closed or any(now - hole.since > OVERDUE_NS for hole in holes)
        return "missing" if is_overdue else "filling"
    return "lost" if lost else "complete"


def _milliseconds(instant: datetime) -> int:
    return (instant - EPOCH) // MILLISECOND


def instant_of(nanoseconds: int) -> datetime:
    """A time stamp as the tables have it."""
    return EPOCH + timedelta(microseconds=nanoseconds // 1_000)
