"""What an import of foreign logs costs beside readers of CSV that make a table of the same lines.

    python -m bench.lake_import

*Ours*: a dCAMP log of 200,000 lines, 40 sources of ten metrics, from the file to durable segments with their identities;
the same file again, when every line is known; the same samples as CSV. *Others*: pandas and PyArrow read those samples
as CSV and write one Parquet file with zstd; they number nothing, refuse nothing and remember nothing.
"""

import random
import tempfile
from collections.abc import Callable
from datetime import UTC
from itertools import count
from pathlib import Path

import pandas as pd
import pyarrow.csv
import pyarrow.parquet as pq

from bench.lake import cpu_of
from bench.measure import Row, show
from weft.lake.importing.delimited import Reading
from weft.lake.importing.running import Wish, import_files
from weft.lake.layout import Layout

LINES, SOURCES, METRICS = 200_000, 40, 10
T0_MS = 1_795_226_590_369
NOW_NS = (T0_MS + 10**9) * 1_000_000
NAMES = "at,source,value,base,detail,config-name,config-seqid,type"
KINDS = (("CPU", "percent"), ("MEMORY", "basic"))


def logs(home: Path) -> tuple[Path, Path]:
    """The same samples as a log of dCAMP and as CSV."""
    chance = random.Random(7)
    dcamp, table = home / "log.dcamp-data", home / "log.csv"
    with dcamp.open("w") as log, table.open("w") as csv:
        csv.write(NAMES + "\n")
        for number in range(LINES):
            metric = number // SOURCES % METRICS
            detail, kind = KINDS[metric % 2]
            value = f"{chance.random() * 100:.2f}" if metric % 2 else f"{number * 7 + chance.randrange(1000)}.00"
            base = "None" if metric % 2 else f"{number * 20}.00"
            words = [f"host{number % SOURCES}:55900", value, base, detail, f"m{metric}", "4", kind]
            names = NAMES.split(",")[1:]
            log.write(f"{T0_MS + number} " + " ".join(f"{n}={w}" for n, w in zip(names, words, strict=True)) + "\n")
            csv.write(f"{T0_MS + number}," + ",".join(words) + "\n")
    return dcamp, table


def imported(home: Path, path: Path, form: str) -> Callable[[], object]:
    """An import into a lake that knows nothing of the file."""
    numbers = count()

    def ours() -> None:
        wish = Wish(f"d{next(numbers)}", form, Reading(UTC, NOW_NS))
        (report,) = import_files(Layout(home / form), [path], wish, NOW_NS)
        assert report.samples == LINES

    return ours


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        dcamp, table = logs(home)
        known = Wish("known", "dcamp", Reading(UTC, NOW_NS))
        import_files(Layout(home / "known"), [dcamp], known, NOW_NS)
        ways: list[Callable[[], object]] = [
            imported(home, dcamp, "dcamp"),
            lambda: import_files(Layout(home / "known"), [dcamp], known, NOW_NS),
            imported(home, table, "csv"),
            lambda: pd.read_csv(table).to_parquet(home / "pandas.parquet", compression="zstd"),
            lambda: pq.write_table(pyarrow.csv.read_csv(table), home / "arrow.parquet", compression="zstd"),
        ]
        log, again, csv, pandas, arrow = cpu_of(ways, LINES)
        print(f"one core: {1e9 / log:,.0f} lines/s; known already {1e9 / again:,.0f}; as CSV {1e9 / csv:,.0f}\n")
        rows = [Row("dcamp log, a line", log, pandas), Row("again, a line", again, pandas)]
        show("Import: a log to durable segments", [*rows, Row("CSV, a line", csv, pandas)], "pandas")
        show("The same beside PyArrow", [Row("CSV, a line", csv, arrow)], "PyArrow")


if __name__ == "__main__":
    main()
