"""How far the tables have come behind the segments, as anyone can see it from outside (PIP-063)."""

from weft.lake.layout import Layout
from weft.lake.offsets import At, parse
from weft.lake.reader import Source
from weft.pipeline.sql import Lake
from weft.pipeline.tables import PROGRESS


def position(lake: Layout) -> At:
    """Up to where all tables hold what the drains wrote; empty before the first batch."""
    with Lake(lake.root) as asked:
        if PROGRESS not in asked.tables():
            return {}
        rows = asked.query('SELECT "offset" FROM meta.progress ORDER BY batch DESC LIMIT 1').to_pylist()
    return parse(rows[0]["offset"]).at if rows else {}


def waiting(lake: Layout, stream: str = "samples") -> int:
    """How many segments of a stream exist that are not in all tables yet."""
    reached = position(lake)
    return sum(end - reached.get(drain, (1, 0))[0] for drain, (end, _) in Source(lake, stream).latest().items())
