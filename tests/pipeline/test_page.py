"""docs/tables.md is made from the tables."""

from collections.abc import Callable
from pathlib import Path

import pytest

from weft.pipeline import completeness, kinds
from weft.pipeline.tables import ALL, VIEWS

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"
HEAD = """# Tables

What `weft lake run` makes of the segments, and `weft sql` asks: Delta tables that any Delta reader opens. This page is
generated from `weft.pipeline.tables`.

A job per stream ({streams}), one driver for all of them; a job begins when its stream has a first segment. Every
row of a segment stands in bronze, and then in silver, or in quarantine with the reason, or was there before.
`weft lake check` proves that, stream by stream.

Samples of an origin are numbered without holes, so what is absent is found: `gold.completeness`. Messages are numbered
by who sends them and only those arrive that are forwarded, so their numbers have holes; `weft lake check` compares what
arrived, and nobody calls the rest missing: their state is `sparse`. What a filter takes out of samples is announced, and stands in `forgotten`
and, with its reason, in `lost_ranges`; it counts as delivered. Changes of the store are numbered without holes by the
node that makes them, and `weft lake run` counts what is missing of them; of a foreign server's, which came to have
numbers before any node of ours heard it, that may be much, and is no fault. Changes of the catalog and log records of
services are numbered without holes by the node whose broker has made or heard them. Operations on documents are numbered
without holes by their source, and every node of a session tells of all of them: here each stands once, as the first of them
told it, and one that comes again, or of which one node has lost what another still brings, is neither doubled nor missing.
Writes of the configuration are numbered by the root, and go on from one root to the next: `era` is the epoch of a root, and
what lies between the last number of all epochs before and its first is missing.

A row of bronze or silver whose `batch` is null is one that no batch has taken yet: `weft sql` reads it from its segment, see
*How fresh* in [lake.md](lake.md). A file of bronze is a drained segment itself, as long as it is not compacted: nobody knew its
batch when it was written, so it has no such column, and its name begins with `b` and the number of the batch. `weft sql` and
`weft.pipeline` fill the column in; any other reader finds null there.
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
