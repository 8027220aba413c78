"""Finds which numbers went to quarantine. Coverage needs them: pairs of samples span them (PIP-043)."""

from collections.abc import Iterable
from typing import NamedTuple

from weft.base.vectors import VersionVector
from weft.lake.layout import Layout
from weft.lake.manifest import origin_of
from weft.lake.schemas import LONG_MAX
from weft.pipeline.delta import Tables
from weft.pipeline.intake import SPREAD
from weft.pipeline.tables import Table
from weft.pipeline.versions import paths_of

COLUMNS = ["origin", "era", "sequence", "attributes", "reason"]
CHANGED = "changed"


class Refused(NamedTuple):
    """What some rows of quarantine stand for."""

    numbers: VersionVector
    """Numbers without a sample in silver."""
    changed: int
    """Rows that repeat a number of silver with other content; the number itself has a sample in silver."""


def refused_in(files: Iterable[str], first: int = 0, last: int = LONG_MAX) -> Refused:
    """The numbers and the count of `changed` rows of batches `first` to `last` in these files of quarantine."""
    import pyarrow.parquet as pq

    numbers, changed = VersionVector(), 0
    for file in files:
        table = pq.read_table(file, columns=[*COLUMNS, "batch"], partitioning=None)
        columns = [table.column(name).to_pylist() for name in (*COLUMNS, "batch")]
        for origin, era, sequence, attributes, reason, batch in zip(*columns, strict=True):
            if not first <= batch <= last:
                continue
            if reason == CHANGED:
                changed += 1
            elif origin is not None and sequence is not None and sequence >= 1:
                width = int(dict(attributes or ()).get(SPREAD) or 1)
                numbers.add(origin_of(origin, era), sequence, sequence + width - 1)
    return Refused(numbers, changed)


def refused_before(tables: Tables, quarantine: Table, number: int) -> VersionVector:
    """All numbers that batches before `number` refused."""
    return refused_in(tables.files(quarantine), last=number - 1).numbers


def refused_by(tables: Tables, quarantine: Table, number: int) -> Refused:
    """What one batch refused."""
    return refused_in(tables.files(quarantine, f"batch = {number}"), number, number)


def reasons_of(lake: Layout, quarantine: Table, batch: int) -> dict[str, int]:
    """How many rows one batch refused, by reason; read from the table without Spark."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from deltalake import DeltaTable

    path = str(lake.table(quarantine.layer, quarantine.name))
    if not DeltaTable.is_deltatable(path):
        return {}
    found: dict[str, int] = {}
    for file in paths_of(DeltaTable(path).file_uris(file_pruning_predicate=f"batch = {batch}")):
        rows = pq.read_table(file, columns=["reason", "batch"], partitioning=None)
        for entry in pc.value_counts(rows.filter(pc.equal(rows["batch"], batch))["reason"]).to_pylist():
            found[entry["values"]] = found.get(entry["values"], 0) + entry["counts"]
    return found
