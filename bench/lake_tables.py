"""What a commit costs in a table of 10,000 files and in a log of 10,000 commits, and what joining files costs (50 ms, 95 of 100).

    python -m bench.lake_tables [--files 10000] [--log 10000] [--commits 200]

*Ours*: a transaction of one file with its statistics, the batch and the lease, as each step of a batch makes it
(`weft.pipeline.delta`). *Peer*: `deltalake.write_deltalake` appending one row to a table of its own with as many files. All
take turns, so a busy machine is busy for all; each writes one file per commit. *Long log*: ours and, with the same lines,
deltalake's own transaction, in tables whose logs have so many commits, a checkpoint each hundred. Behind that what it costs
to join 1,000 files of 1,000 rows. CPU time is that of all threads.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction, RemoveAction

from bench.hosts import load
from weft.lake.layout import Layout
from weft.lake.segments import open_lake
from weft.pipeline.delta import DataFile, Tables
from weft.pipeline.tables import SAMPLES
from weft.pipeline.upkeep import compact
from weft.pipeline.upkeep.log import exchange, live_files, opened
from weft.pipeline.upkeep.marks import Marks
from weft.pipeline.writer import Writer

DAY = date(2026, 11, 21)
JOINED, JOINED_ROWS = 1_000, 1_000
SCHEMA = SAMPLES.schema.arrow()


def row(batch: int, number: int) -> dict[str, Any]:
    at = datetime(2026, 11, 21, tzinfo=UTC) + timedelta(milliseconds=10 * number)
    said = {"origin": f"{number % 50:032x}", "era": 1, "sequence": number, "series": number % 97, "at": at}
    return said | {"value": float(number), "node": "n", "labels": [("cpu", "0")], "batch": batch, "day": DAY}


def rows_of(batch: int, count: int) -> pa.Table:
    return pa.Table.from_pylist([row(batch, batch * count + n) for n in range(count)], SCHEMA)


class Ours:
    """A table as jobs make it; if not `is_own`, `deltalake` makes each commit."""

    def __init__(self, home: Path, *, is_own: bool = True) -> None:
        self.lake, self.is_own = Layout(home), is_own
        open_lake(self.lake, "ab" * 16, 1)
        nobody: Any = None
        self.tables = Tables(self.lake, nobody, Writer("samples", "0" * 32, 1))
        self.tables.handle(SAMPLES)

    def fill(self, files: int, commits: int) -> None:
        """So many files that are named and not there, in so many commits: a commit opens none."""
        told = json.dumps(
            {"numRecords": 1, "minValues": {"batch": 1}, "maxValues": {"batch": 1}, "nullCount": {"batch": 0}}
        )
        for first in range(0, files, files // commits):
            some = range(first, min(files, first + files // commits))
            named = [DataFile(f"day={DAY}/b{n:010d}.parquet", 9, {"day": str(DAY)}, 1, told) for n in some]
            self.tables.commit(SAMPLES, 0, named, {})

    def append(self, batch: int, rows: pa.Table) -> None:
        if not self.is_own:
            self.tables._logs[SAMPLES.full_name].is_plain = False
        self.tables.commit(SAMPLES, batch, self.tables.write_rows(SAMPLES, rows, batch), {"weft.offset": "{}" * 100})


class Peer:
    """A table as anybody makes it."""

    def __init__(self, home: Path) -> None:
        self.root = home
        self.delta = DeltaTable.create(self.root, SCHEMA, partition_by=["day"])

    def fill(self, files: int) -> None:
        told = {"numRecords": 1}
        for first in range(0, files, 1000):
            some: list[AddAction | RemoveAction] = [
                AddAction(f"day={DAY}/p{n:010d}.parquet", 9, {"day": str(DAY)}, 1, True, json.dumps(told))
                for n in range(first, min(files, first + 1000))
            ]
            self.delta.create_write_transaction(some, "append", self.delta.schema(), ["day"])
            self.delta.update_incremental()

    def append(self, _: int, rows: pa.Table) -> None:
        write_deltalake(self.delta, rows, mode="append")


def in_turn(ways: list[Callable[[int], None]], times: int) -> list[list[tuple[float, float]]]:
    """Milliseconds of each call of each way, by the clock and of CPU time, the ways taking turns."""
    spent: list[list[tuple[float, float]]] = [[] for _ in ways]
    for number in range(times):
        for index, way in enumerate(ways):
            began, cpu = time.perf_counter(), time.process_time()
            way(number)
            spent[index].append((1000 * (time.perf_counter() - began), 1000 * (time.process_time() - cpu)))
    return spent


def line(what: str, spent: list[tuple[float, float]]) -> str:
    clock, cpu = ([one[place] for one in spent] for place in (0, 1))
    return f"| {what} | {median(clock):.1f} | {quantiles(clock, n=20)[-1]:.1f} | {median(cpu):.1f} | {sum(cpu) / len(cpu):.1f} |"


def committing(home: Path, files: int, commits: int, log: int) -> None:
    peer, one = Peer(home / "peer"), rows_of(1, 1)
    peer.fill(files)
    made = {"ours, no files at first": Ours(home / "small"), f"ours, {files:,} files": Ours(home / "ours")}
    made[f"ours, {files:,} files"].fill(files, 10)
    for name, is_own in (("ours", True), ("deltalake's transaction", False)):
        long = made[f"{name}, log of {log:,} commits"] = Ours(home / f"long-{is_own}", is_own=is_own)
        long.fill(log, log)
    sides: list[Ours | Peer] = [*made.values(), peer]
    spent = in_turn([partial(side.append, rows=one) for side in sides], commits)
    print(
        f"{load()}\n\n| a commit, ms | half under | 95 of 100 under | CPU, half under | CPU, mean |\n|---|--:|--:|--:|--:|"
    )
    for name, side in zip([*made, f"write_deltalake, {files:,} files"], spent, strict=True):
        print(line(name, side))
    print()


def joining(home: Path) -> None:
    ours = Ours(home / "joined")
    for batch in range(JOINED):
        ours.append(batch, rows_of(batch, JOINED_ROWS))
    delta = opened(ours.lake, SAMPLES)
    assert delta is not None
    began, cpu = time.perf_counter(), time.process_time()
    for bundle in compact.bundles(SAMPLES, live_files(delta, SAMPLES), Marks(JOINED + 1), DAY + timedelta(days=1)):
        exchange(ours.lake, compact.joined(ours.lake, bundle), 1)
    rows, seconds = JOINED * JOINED_ROWS, time.perf_counter() - began
    print(
        f"joining {JOINED:,} files of {JOINED_ROWS:,} rows: {seconds:.1f} s, "
        f"{1e6 * (time.process_time() - cpu) / rows:.2f} s of CPU per million rows"
    )


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--files", type=int, default=10_000)
    asked.add_argument("--log", type=int, default=10_000)
    asked.add_argument("--commits", type=int, default=200)
    chosen = asked.parse_args()
    home = Path(tempfile.mkdtemp(prefix="weft-bench-"))
    try:
        committing(home, chosen.files, chosen.commits, chosen.log)
        joining(home)
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
