"""docs/tables.md is made from the tables."""

from collections.abc import Callable
from pathlib import Path

import pytest

from weft.pipeline import completeness, kinds
from weft.pipeline.tables import ALL, VIEWS

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"
HEAD = """# Tables

The tables that `weft lake run` makes from the segments, and that `weft sql` queries: Delta tables that any Delta reader opens.
This page is generated from `weft.pipeline.tables`.

There is a job per stream ({streams}) and one driver for all of them; a job begins when its stream has a first segment. Every row
of a segment is in bronze, and then in silver, or in quarantine with the reason, or it repeats a number that was there before.
`weft lake check` proves that, stream by stream.

How records are numbered, and so what `gold.completeness` can find missing, depends on the stream:

- *samples* have numbers without holes, by the node that takes them. Numbers that a filter drops are announced: they are in
  `forgotten` and, with the reason, in `lost_ranges`, and count as delivered;
- *messages* are numbered by the node that sends them, and only forwarded ones arrive. So their numbers have holes, none of them
  counts as missing, and their state is `sparse`;
- *changes of the store* have numbers without holes, by the node that makes them. A foreign server had numbers before any node heard
  of it; these count as missing, which may be many, and is not a fault;
- *changes of the catalog* and *log records* have numbers without holes, by the node whose broker made or received them;
- *operations on documents* have numbers without holes, by their source. Every node of a session reports all of them; each is here
  once, as the first node reported it. If one node has lost an operation that another one reports, it is not missing;
- *writes of the configuration* are numbered by the root, from one root to the next: `era` is the epoch of a root, and numbers between
  the last one of all earlier epochs and its first one are missing.

If `batch` of a row of bronze or silver is null, no batch has taken the row yet: `weft sql` reads it from its segment, see *How fresh*
in [lake.md](lake.md). Until it is compacted, a file of bronze is the drained segment itself. Its batch was unknown when it was written,
so the file lacks that column; its name begins with `b` and the number of the batch. `weft sql` and `weft.pipeline` fill the column in;
other readers find null there.
"""


@pytest.mark.generates
def test_the_page_says_what_the_tables_are(committed: Callable[[Path, str], None]) -> None:
    assert completeness.FILTERED == "filtered"
    parts = [HEAD.format(streams=", ".join(kinds.KINDS))]
    parts += [
        f"## {name}\n\n{table.grain}\n\n{table.schema.markdown()}\n"
        for name, table in sorted((ALL | {name: view.table for name, view in VIEWS.items()}).items())
    ]
    committed(PAGE, "\n".join(parts))
