"""Subtracts removed rows from the counts in `gold.completeness`, exactly once (LAK-037, PIP-061).

The commit that subtracts a removal also has the number of that removal. The counts of rows in silver and quarantine
decrease; the numbers count as forgotten instead of received. A fold that counts everything anew has the same result. Rows
may be removed only after they were counted; retention and `weft lake forget` check that.
"""

from collections import Counter
from typing import Any, Final

from weft.lake.layout import Layout
from weft.lake.manifest import name_of, vector_of
from weft.pipeline.delta import DataFile
from weft.pipeline.rewriting import written
from weft.pipeline.tables import COMPLETENESS, STAGES
from weft.pipeline.upkeep.forgotten import COUNTED, accounts
from weft.pipeline.upkeep.log import Exchange, LiveFile, exchange, live_files, opened

Key = tuple[str, str, int | None]
"""Stream, origin and era."""
COLUMNS: Final = {stages.silver.full_name: "silver_rows" for stages in STAGES.values()} | {
    stages.quarantine.full_name: "quarantined" for stages in STAGES.values()
}
"""The column that counts the rows of each table."""
Changes = dict[str, Counter[Key]]
"""How much to subtract from each column, by key."""


def subtract_removals(layout: Layout, epoch: int) -> None:
    """Subtract the removals that were not subtracted yet. The caller holds the lease."""
    delta = opened(layout, COMPLETENESS)
    if delta is None:
        return
    known = delta.transaction_version(COUNTED) or 0
    removals = [row for row in accounts(layout).to_pylist() if row["table"] in COLUMNS]
    if not any(row["number"] > known for row in removals):
        return
    changes = _changes(removals, known)
    pairs = [(file, _lowered(layout, file, changes)) for file in live_files(delta, COMPLETENESS)]
    change = Exchange(
        COMPLETENESS,
        tuple(file for file, made in pairs if made is not None),
        tuple(made for _, made in pairs if made is not None),
        "forget",
        is_rearranged=False,
        apps={COUNTED: max(row["number"] for row in removals)},
    )
    exchange(layout, change, epoch)


def _changes(removals: list[dict[str, Any]], known: int) -> Changes:
    """What the removals after number `known` change."""
    changes: Changes = {"silver_rows": Counter(), "quarantined": Counter(), "received": Counter()}
    for row in removals:
        if row["number"] > known:
            changes[COLUMNS[row["table"]]][row["stream"], row["origin"], row["era"]] += row["rows"]
    for stream in {row["stream"] for row in removals}:
        now = vector_of(row for row in removals if row["stream"] == stream)
        before = vector_of(row for row in removals if row["stream"] == stream and row["number"] <= known)
        for origin, ranges in now - before:
            changes["received"][stream, name_of(origin.node), origin.era] += ranges.count
    return changes | {"forgotten": Counter({key: -count for key, count in changes["received"].items()})}


def _lowered(layout: Layout, file: LiveFile, changes: Changes) -> DataFile | None:
    """The file rewritten with lower counts; None if none of its rows changes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    root = layout.table(COMPLETENESS.layer, COMPLETENESS.name)
    rows = pq.read_table(root / file.path, partitioning=None)
    keys = list(zip(*(rows.column(name).to_pylist() for name in ("stream", "origin", "era")), strict=True))
    if not any(counts.keys() & set(keys) for counts in changes.values()):
        return None
    for column, counts in changes.items():
        lowered = [count - counts[key] for count, key in zip(rows.column(column).to_pylist(), keys, strict=True)]
        rows = rows.set_column(rows.column_names.index(column), column, pa.array(lowered, pa.int64()))
    return written(root, COMPLETENESS, rows, root / file.path)
