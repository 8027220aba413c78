"""How fast `weft lake check --deep` proves bytes (FLD-030: 200 MB/s).

    python -m bench.lake_deep

A lake of segments and of one table's files, all of random bytes, in the page cache. *Peer*: SHA-256 of the same files by
`hashlib.file_digest`, one after the other.
"""

import os
import tempfile
import time
from hashlib import file_digest
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from weft.base.records import Stream, StreamRecord
from weft.lake.layout import Layout
from weft.lake.segments import append_segment, open_lake
from weft.pipeline.check import Check
from weft.pipeline.delta import PARQUET, data_file, made_by_us
from weft.pipeline.logdigests import note_commits
from weft.pipeline.tables import STAGES

DRAIN: Final = "6f1c2a345b6d4e7f8091a2b3c4d5e6f7"
SEGMENTS, FILES, RECORDS, PAYLOAD = 8, 8, 2_000, 16 << 10
ROUNDS: Final = 5
GOAL: Final = 200


def filled(root: Path) -> Layout:
    """Half segments, half files of a table; 32 MB each."""
    lake = Layout(root)
    open_lake(lake, "ab" * 16, 1)
    for segment in range(SEGMENTS):
        first = 1 + segment * RECORDS
        records = [
            StreamRecord(Stream.MESSAGES, b"\x0a" * 16, 1, number, 1, 1, "shop.order", os.urandom(PAYLOAD), {})
            for number in range(first, first + RECORDS)
        ]
        append_segment(lake, "messages", DRAIN, list(enumerate(records, 1)))
    table = lake.table(STAGES["messages"].bronze.layer, STAGES["messages"].bronze.name)
    rows = [pa.table({"x": [os.urandom(PAYLOAD) for _ in range(RECORDS)]}) for _ in range(FILES)]
    table.mkdir(parents=True)
    delta = DeltaTable.create(table, rows[0].schema, commit_properties=made_by_us())
    actions: list[AddAction | RemoveAction] = []
    for number, part in enumerate(rows):
        pq.write_table(part, table / f"{number}.parquet", **PARQUET)
        told = data_file(table, STAGES["messages"].bronze, table / f"{number}.parquet")
        actions.append(AddAction(told.path, told.size, {}, 1, True, told.statistics))
    delta.create_write_transaction(actions, "append", delta.schema(), [], commit_properties=made_by_us())
    note_commits(lake, STAGES["messages"].bronze, -1)
    return lake


def plain(lake: Layout) -> float:
    """Seconds for all data files, by the standard library."""
    began = time.perf_counter()
    for path in sorted(lake.root.rglob("*.parquet")):
        with path.open("rb") as file:
            file_digest(file, "sha256")
    return time.perf_counter() - began


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as directory:
        lake = filled(Path(directory) / "lake")
        size = sum(path.stat().st_size for path in lake.root.rglob("*.parquet")) / 1e6
        for _ in range(ROUNDS):
            verdict = Check(lake, deep=True).run()
            rate, peer = verdict.proved / 1e6 / verdict.proved_s, size / plain(lake)
            met = "met" if rate >= GOAL else "MISSED"
            print(f"{size:.0f} MB: proved at {rate:.0f} MB/s, plain {peer:.0f} MB/s, ratio {rate / peer:.2f}: {met}")


if __name__ == "__main__":
    main()
