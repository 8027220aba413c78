"""How far the tables are behind the segments (PIP-063). Reads only, so any process may ask."""

from typing import Final

from weft.lake.layout import Layout
from weft.lake.offsets import At, parse
from weft.lake.reader import Source
from weft.pipeline.sql import Lake
from weft.pipeline.tables import PROGRESS, STAGES

LAST: Final = "SELECT \"offset\", batch FROM meta.progress WHERE job = '{job}' ORDER BY batch DESC LIMIT 1"


def reached(asked: Lake, stream: str) -> tuple[At, int]:
    """The offset up to which all tables of a stream are complete, and its batch; -1 before the first."""
    if PROGRESS not in asked.tables():
        return {}, -1
    rows = asked.query(LAST.format(job=stream)).to_pylist()
    return (parse(rows[0]["offset"]).at, int(rows[0]["batch"])) if rows else ({}, -1)


def waiting(lake: Layout, *streams: str) -> int:
    """How many segments are not in all tables yet: of these streams, or of all streams that have a job."""
    count = 0
    with Lake(lake.root) as asked:
        for stream in streams or STAGES:
            at, _ = reached(asked, stream)
            count += sum(end - at.get(drain, (1, 0))[0] for drain, (end, _) in Source(lake, stream).latest().items())
    return count
