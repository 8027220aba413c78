"""What is missing, by number (PIP-060..062): computed from ranges on the driver, at most once a minute.

A hole is `filling` until it is overdue, then `missing`; in an era that is closed it is missing at once, since whatever
was on the way came before the link that closed it. It returns to `complete` at any time.

What a filter has taken out is announced like a loss and is none: a dropped sample counts as delivered (MEA-011). Such
numbers are *forgotten*, and an era that lacks only them is complete; so are those whose rows were there and were removed
on purpose (LAK-037).

Numbers of a stream that is not dense have holes by nature (of messages only those arrive that are forwarded): what is
absent is not missing, and what is there is not said to be complete; its rows say `sparse`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeVar

from weft.base.identity import Origin
from weft.base.vectors import VersionVector
from weft.lake.manifest import name_of
from weft.pipeline.coverage import Coverage, Hole

FILTERED: Final = "filtered"
"""How the reason begins for which a filter has taken numbers out."""
ERASED: Final = "forgotten"
"""Why a number has no row that once had one."""
SPARSE: Final = "sparse"
"""State of what has holes by nature."""
OVERDUE_NS: Final = 15 * 60 * 1_000_000_000
SHOWN_MAX: Final = 1_000  # missing ranges per row
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
T = TypeVar("T")
MILLISECOND: Final = timedelta(milliseconds=1)


class Tally(NamedTuple):
    """What rows tell of an origin and era, of some batches or of all."""

    rows: int = 0
    """In bronze."""
    silver: int = 0
    quarantined: int = 0
    node: str | None = None
    first_at: datetime | None = None
    last_at: datetime | None = None
    last_received: datetime | None = None

    @classmethod
    def of(cls, row: dict[str, Any]) -> "Tally":
        """What a row of `gold.completeness` has counted."""
        silver, quarantined = row["silver_rows"], row["quarantined"]
        rows = silver + quarantined + row["duplicates"]
        return cls(rows, silver, quarantined, *(row[name] for name in cls._fields[3:]))

    def plus(self, other: "Tally") -> "Tally":
        """Of both together."""
        return Tally(
            rows=self.rows + other.rows,
            silver=self.silver + other.silver,
            quarantined=self.quarantined + other.quarantined,
            node=max(_there(self.node, other.node), default=None),
            first_at=min(_there(self.first_at, other.first_at), default=None),
            last_at=max(_there(self.last_at, other.last_at), default=None),
            last_received=max(_there(self.last_received, other.last_received), default=None),
        )


def _there(*values: T | None) -> list[T]:
    return [value for value in values if value is not None]


def completed(row: dict[str, Any], tally: Tally, now: int) -> dict[str, Any]:
    """A row of `rows_of` with what the tables have counted: a row of `gold.completeness`.

    An era that is not closed and has not been heard of for so long that a hole would be overdue is silent: its last
    numbers cannot be known (PIP-062).
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
    """For which state of a lake rows of completeness are wanted."""

    upto: int
    """The batch whose coverage it is."""
    now: int
    """Wall-clock nanoseconds."""
    erased: VersionVector = VersionVector()
    """Numbers whose rows were there, and were removed on purpose."""


def rows_of(coverage: Coverage, stream: str, when: Instant) -> Iterator[dict[str, Any]]:
    """One row per origin and era, without what only the tables can count."""
    seen = dict.fromkeys([*(origin for origin, _ in coverage.known), *coverage.ends])
    for origin in seen:
        yield _row(coverage, origin, when) | {"stream": stream, "upto": when.upto}


def _row(coverage: Coverage, origin: Origin, when: Instant) -> dict[str, Any]:
    covered, known, losses = coverage.covered[origin], coverage.known[origin], coverage.losses_of(origin)
    erased = [(*pair, ERASED) for pair in covered & when.erased[origin]]
    taken = sum(last - first + 1 for first, last, _ in erased)
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
        "received": received - taken,
        "lost": gone,
        "forgotten": filtered + taken,
        "missing": missing,
        "missing_ranges": [(hole.first, hole.last, instant_of(hole.since)) for hole in holes[:SHOWN_MAX]],
        "lost_ranges": sorted(losses + erased)[:SHOWN_MAX],
        "more": len(holes) > SHOWN_MAX,
        "complete_upto": known.prefix(),
        "closed": closed,
    }


def state_of(holes: list[Hole], lost: int, now: int, *, closed: bool) -> str:
    """`complete`, `filling`, `missing` or `lost`; silence is judged where the last arrival is known."""
    if holes:
        is_overdue = closed or any(now - hole.since > OVERDUE_NS for hole in holes)
        return "missing" if is_overdue else "filling"
    return "lost" if lost else "complete"


def _milliseconds(instant: datetime) -> int:
    return (instant - EPOCH) // MILLISECOND


def instant_of(nanoseconds: int) -> datetime:
    """A stamp as tables have it."""
    return EPOCH + timedelta(microseconds=nanoseconds // 1_000)
