"""docs/metrics.md is made from the catalogue of details (MET-001)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from weft.cores.measurement.catalogue import catalogue
from weft.cores.measurement.details import DETAILS

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
HEAD = """# What can be measured

Each name goes behind `detail =` of a `[metric.NAME]` in the fleet's file ([configuration](configuration.md)); `weft metrics` shows
the same. Units are those of UCUM: `By` bytes, `Cel` degrees Celsius, `{thread}` counts threads. A *counter* is stored as it is
counted, and becomes a value per second, a share or a difference when it is asked for; a *gauge* is a value as it is stored.
Limits (`threshold`) are plain numbers in this unit, or have one of the units of the last column. Written by `make docs`.

| detail | what | unit | kind | labels | param | per | from | OpenTelemetry | limits in |
|---|---|---|---|---|---|---|---|---|---|
"""


@pytest.mark.generates
@pytest.mark.proves("MET-001", part="a page lists every detail with unit, kind, labels and source")
def test_the_page_lists_every_detail(committed: Callable[[Path, str], None]) -> None:
    rows = [
        f"| `{row.name}` | {row.says} | {row.unit} | {row.kind} | {row.labels} | {row.param} | {row.per} | `{row.source}` | {row.otel} | {row.limit} |"
        for row in catalogue()
    ]
    committed(PAGE, HEAD + "\n".join(rows) + "\n")


def test_every_detail_has_a_unit_for_each_of_its_series() -> None:
    assert [] == [name for name, row in DETAILS.items() if bool(row.unit) == bool(row.units)]
    assert ("By", "{inode}") == tuple(DETAILS["DISK_USE"].unit_of({"unit": unit}) for unit in ("free", "inodes"))
    assert "%" == DETAILS["CPU"].unit_of({"cpu": "total"})
