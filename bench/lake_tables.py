"""What a commit costs in a table of 10,000 files, and what joining files costs (section 11: 50 ms, 95 of 100).

    python -m bench.lake_tables [--files 10000] [--commits 200]

*Ours*: a transaction of one file with its statistics, the batch and the lease, as each step of a batch makes it
(`weft.pipeline.delta`), in a table made by us. *Peer*: `deltalake.write_deltalake` appending one row to a table with as
many files, made by it. Both take turns, so a busy machine is busy for both; each writes one file per commit. Behind that: the
same in a table whose files were joined, and what it costs to join 1,000 files of 1,000 rows.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.transaction import AddAction, RemoveAction

from weft.lake.layout import Layout
from weft.lake.segments import open_lake
from weft.pipeline.delta import configuration_of, data_file
from weft.pipeline.tables import SAMPLES
from weft.pipeline.upkeep import compact
from weft.pipeline.upkeep.log import exchange, live_files, opened
from weft.pipeline.upkeep.marks import Marks

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
    """A table as jobs make it."""

    def __init__(self, home: Path) -> None:
        self.lake = Layout(home)
        open_lake(self.lake, "ab" * 16, 1)
        self.root = self.lake.table("silver", "samples")
        self.delta = DeltaTable.create(self.root, SCHEMA, partition_by=["day"], configuration=configuration_of(SAMPLES))
        (self.root / f"day={DAY}").mkdir()

    def fill(self, files: int) -> None:
        """So many files that are named and not there: a commit opens none."""
        told = {"numRecords": 1, "minValues": {"batch": 1}, "maxValues": {"batch": 1}, "nullCount": {"batch": 0}}
        for first in range(0, files, 1000):
            some: list[AddAction | RemoveAction] = [
                AddAction(f"day={DAY}/b{n:010d}.parquet", 9, {"day": str(DAY)}, 1, True, json.dumps(told))
                for n in range(first, min(files, first + 1000))
            ]
            self._transact(some, -1)

    def append(self, batch: int, rows: pa.Table) -> None:
        path = self.root / f"day={DAY}" / f"b{batch:010d}-x-0000.parquet"
        pq.write_table(rows.drop_columns("day"), path, compression="zstd", compression_level=1, store_schema=False)
        file = data_file(self.root, SAMPLES, path)
        add = AddAction(file.path, file.size, file.partition, 1, True, stats=file.statistics)
        self._transact([add], batch)

    def _transact(self, actions: list[AddAction | RemoveAction], batch: int) -> None:
        self.delta.update_incremental()
        self.delta.transaction_version("weft.lease/samples")
        apps = [Transaction("weft/samples/x/silver.samples", max(0, batch), 1), Transaction("weft.lease/samples", 1, 1)]
        about = {"weft.batch": str(batch), "weft.offset": "{}" * 100}
        properties = CommitProperties(custom_metadata=about, app_transactions=apps, max_commit_retries=10)
        self.delta.create_write_transaction(
            actions, "append", self.delta.schema(), ["day"], commit_properties=properties
        )


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


def in_turn(ways: list[Callable[[int], None]], times: int) -> list[list[float]]:
    """Milliseconds of each call of each way, the ways taking turns."""
    spent: list[list[float]] = [[] for _ in ways]
    for number in range(times):
        for index, way in enumerate(ways):
            began = time.perf_counter()
            way(number)
            spent[index].append(1000 * (time.perf_counter() - began))
    return spent


def line(what: str, spent: list[float], peer: list[float] | None = None) -> str:
    p95 = quantiles(spent, n=20)[-1]
    theirs = "" if peer is None else f"{median(peer):.1f} / {quantiles(peer, n=20)[-1]:.1f}"
    return f"| {what} | {median(spent):.1f} / {p95:.1f} | {theirs} |"


def committing(home: Path, files: int, commits: int) -> None:
    ours, peer = Ours(home / "ours"), Peer(home / "peer")
    small = Ours(home / "small")
    ours.fill(files)
    peer.fill(files)
    one = rows_of(1, 1)
    ways: list[Callable[[int], None]] = [
        lambda n: ours.append(n, one), lambda n: peer.append(n, one), lambda n: small.append(n, one),
    ]  # fmt: skip
    mine, theirs, few = in_turn(ways, commits)
    print("| per commit, ms: half / 95 of 100 under | ours | deltalake |\n|---|--:|--:|")
    print(line(f"table of {files:,} files", mine, theirs))
    print(line("table of no files at first", few))
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
    asked.add_argument("--commits", type=int, default=200)
    chosen = asked.parse_args()
    home = Path(tempfile.mkdtemp(prefix="weft-bench-"))
    try:
        committing(home, chosen.files, chosen.commits)
        joining(home)
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
