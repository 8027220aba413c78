"""What is missing, by number (PIP-060..062): computed from ranges on the driver, at most once a minute.

A hole is `filling` until it is overdue, then `missing`; in an era that is closed it is missing at once, since whatever
was on the way came before the link that closed it. It returns to `complete` at any time.

What a filter has taken out is announced like a loss and is none: a dropped sample counts as delivered (MEA-011). Such
numbers are *forgotten*, and an era that lacks only them is complete.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from weft.base.identity import Origin
from weft.lake.manifest import name_of
from weft.pipeline.coverage import Coverage, Hole

FILTERED: Final = "filtered"
"""How the reason begins for which a filter has taken numbers out."""
OVERDUE_NS: Final = 15 * 60 * 1_000_000_000
SHOWN_MAX: Final = 1_000  # missing ranges per row
COLUMNS: Final = (
    "stream", "origin", "era", "state", "first_sequence", "highest_known", "known_by", "expected", "received", "lost",
    "forgotten", "missing", "missing_ranges", "lost_ranges", "more", "complete_upto", "closed", "upto",
)  # fmt: skip
"""What this module knows of a row of `gold.completeness`; the rest is counted in the tables."""


def rows_of(coverage: Coverage, stream: str, upto: int, now: int) -> Iterator[dict[str, Any]]:
    """One row per origin and era, without what only the tables can count; `now` in wall-clock nanoseconds."""
    seen = dict.fromkeys([*(origin for origin, _ in coverage.known), *coverage.ends])
    for origin in seen:
        yield _row(coverage, origin, now) | {"stream": stream, "upto": upto}


def _row(coverage: Coverage, origin: Origin, now: int) -> dict[str, Any]:
    covered, known, losses = coverage.covered[origin], coverage.known[origin], coverage.losses_of(origin)
    highest = coverage.highest_known(origin)
    holes = coverage.holes.get(origin, [])
    received, missing = covered.count, sum(hole.last - hole.first + 1 for hole in holes)
    filtered = sum(last - first + 1 for first, last, why in losses if why.startswith(FILTERED))
    gone = known.count - covered.count - filtered
    assert highest == received + gone + filtered + missing, (
        origin,
        highest,
        received,
        gone,
        filtered,
        missing,
    )  # PIP-061
    closed = origin in coverage.ends
    return {
        "origin": name_of(origin.node),
        "era": origin.era,
        "state": state_of(holes, gone, now, closed=closed),
        "first_sequence": 1,
        "highest_known": highest,
        "known_by": "received" if highest == covered.highest else "era-link" if highest > known.highest else "lost",
        "expected": highest,
        "received": received,
        "lost": gone,
        "forgotten": filtered,
        "missing": missing,
        "missing_ranges": [(hole.first, hole.last, _instant(hole.since)) for hole in holes[:SHOWN_MAX]],
        "lost_ranges": losses[:SHOWN_MAX],
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


def _instant(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(nanoseconds / 1_000_000_000, UTC)
