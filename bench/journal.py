"""What durability costs: synced batches of the journal beside the disk itself, SQLite and LMDB; verifying; starting.

    python -m bench.journal [--rounds 60] [--directory DIR] [--spool-mib 64] [--beside OTHER...] [--turns 1]

Each round writes one batch with every contender in turn, so all see the same disk; the figures are medians. `raw` is
one `write` and one `fdatasync` of the very bytes that the journal wrote. A ratio of 0.8 says: the journal, with
encoding, checksums, footers and everything, writes 0.8 times as many batches as the disk can take.

`--beside OTHER` is a directory with other sources of Weft (`git archive COMMIT | tar -x -C OTHER`): only the journal and raw
are measured then, of these sources and of the others in turns, each in a process of its own; with what the processor spends
on a turn beyond what raw takes. `--turns N`: of N turns in a row, so with warm caches.
"""

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median

import lmdb

from bench.peers.rounds import load
from weft.base.records import CoreRecord, Record, StreamRecord
from weft.shell.files import Files
from weft.shell.journal import Journal, JournalReader
from weft.shell.journal.verify import verify
from weft.wire.journal import encode_body, encode_record

ROOT = Path(__file__).parents[1]
NODE = bytes(range(16))
WALL = 1_795_227_299_250_000_000
SIZES = (1, 16, 64, 1_000)
BUDGET = 8 << 30
MIB = 1 << 20


def records(count: int, first: int = 1) -> list[Record]:
    """Samples whose records are 190 bytes each."""
    payload = bytes(range(132))
    made: list[Record] = [
        StreamRecord(1, NODE, 1795227290000000, first + n, WALL + n, WALL + n, "cpu", payload, {}) for n in range(count)
    ]
    return made


class Contenders:
    """One of each in a directory; a batch is handed over as records, as bytes, or as rows."""

    def __init__(self, directory: Path) -> None:
        self.journal, _ = Journal.open(directory / "journal", NODE, Files(), WALL, BUDGET)
        self.raw = os.open(directory / "raw", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self.sqlite = sqlite3.connect(directory / "sqlite.db", isolation_level=None)
        self.sqlite.execute("PRAGMA journal_mode=WAL")
        self.sqlite.execute("PRAGMA synchronous=FULL")
        self.sqlite.execute("CREATE TABLE journal (lsn INTEGER PRIMARY KEY, record BLOB)")
        self.lmdb = lmdb.open(str(directory / "lmdb"), map_size=1 << 30)
        self.lsn = 0

    def write_journal(self, batch: Sequence[Record]) -> None:
        self.journal.write(batch, WALL)

    def write_raw(self, data: bytes) -> None:
        os.write(self.raw, data)
        os.fdatasync(self.raw)

    def write_sqlite(self, batch: Sequence[Record]) -> None:
        self.sqlite.execute("BEGIN")
        self.sqlite.executemany("INSERT INTO journal (record) VALUES (?)", ((encode_record(r),) for r in batch))
        self.sqlite.execute("COMMIT")

    def write_lmdb(self, batch: Sequence[Record]) -> None:
        with self.lmdb.begin(write=True) as transaction:
            for record in batch:
                self.lsn += 1
                transaction.put(self.lsn.to_bytes(8, "big"), encode_record(record), append=True)

    def close(self) -> None:
        self.journal.close(WALL)
        os.close(self.raw)
        self.sqlite.close()
        self.lmdb.close()


def seconds(action: Callable[[], None]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def in_turns(actions: Sequence[Callable[[], None]], rounds: int) -> list[list[float]]:
    """The seconds of each action, `rounds` times; each round begins with another one, since who comes after whom counts."""
    took: list[list[float]] = [[] for _ in actions]
    for start in range(rounds):
        for index in range(start, start + len(actions)):
            took[index % len(actions)].append(seconds(actions[index % len(actions)]))
    return took


def appends(directory: Path, rounds: int) -> None:
    print(
        f"{'records':>7} {'bytes':>8} {'journal us':>10} {'records/s':>10} {'of raw':>7} {'x sqlite':>8} {'x lmdb':>7}"
    )
    contenders = Contenders(directory)
    for size in SIZES:
        batch = records(size)
        body, _ = encode_body(batch)
        data = bytes(body)
        writes = (contenders.write_journal, contenders.write_sqlite, contenders.write_lmdb)
        actions = [partial(contenders.write_raw, data), *(partial(write, batch) for write in writes)]
        raw, journal, sqlite, lightning = (median(times) for times in in_turns(actions, rounds))
        print(
            f"{size:7} {len(data):8} {journal * 1e6:10.0f} {size / journal:10,.0f} {raw / journal:7.2f} "
            f"{sqlite / journal:8.2f} {lightning / journal:7.2f}"
        )
    contenders.close()


def reading(directory: Path, spool_mib: int) -> None:
    """Fill a spool with batches of 64, then verify it, read it in windows, and start on it."""
    journal, _ = Journal.open(directory / "spool", NODE, Files(), WALL, BUDGET)
    batch = records(64)
    while journal.bytes_used < spool_mib * MIB:
        journal.write(batch, WALL)
    journal.snapshot([CoreRecord("bench", 1, b"")], WALL)
    journal.write(batch, WALL)
    count = journal.durable_lsn
    journal.close(WALL)

    began = time.perf_counter()
    reports = list(verify(Files(), directory / "spool"))
    took = time.perf_counter() - began
    megabytes = sum(report.bytes for report in reports) / 1e6
    print(f"\nverify and split: {megabytes / took:.0f} MB/s, {count / took / 1e6:.2f} M records/s")

    began = time.perf_counter()
    journal, recovery = Journal.open(directory / "spool", NODE, Files(), WALL, BUDGET)
    replayed = sum(1 for _ in recovery.entries())
    print(
        f"start on {megabytes:.0f} MB with a snapshot: {time.perf_counter() - began:.3f} s, {replayed} records replayed"
    )

    began = time.perf_counter()
    after = 0
    while after < count:
        _, after = journal.read(after, MIB)
    took = time.perf_counter() - began
    print(f"read back, decoded, in windows of 1 MiB: {count / took / 1e6:.2f} M records/s")
    middle = median(seconds(lambda: _read(journal, count * 2 // 3)) for _ in range(50))
    print(f"one window of 4 KiB from the middle: {middle * 1e6:.0f} us")
    journal.close(WALL)
    began = time.perf_counter()
    reader = JournalReader(directory / "spool")
    print(
        f"opened by a reader from outside: {(time.perf_counter() - began) * 1e3:.1f} ms, up to lsn {reader.next_lsn - 1}"
    )


def serve(directory: Path) -> None:
    """For each size and number of turns: nanoseconds of the clock and of the processor, of a turn and of the same bytes raw."""
    contenders = Contenders(directory)
    batches = {size: records(size) for size in SIZES}
    bodies = {size: bytes(encode_body(batch)[0]) for size, batch in batches.items()}
    for line in sys.stdin:
        size, turns = map(int, line.split())
        spent: list[int] = []
        for action in (partial(contenders.write_journal, batches[size]), partial(contenders.write_raw, bodies[size])):
            began, ran = time.perf_counter_ns(), time.process_time_ns()
            for _ in range(turns):
                action()
            spent += [(time.perf_counter_ns() - began) // turns, (time.process_time_ns() - ran) // turns]
        print(*spent, flush=True)
    contenders.close()


def beside(directory: Path, others: Sequence[Path], rounds: int, turns: int) -> None:
    """The journals of these sources and of others, in turns."""
    trees = {"here": ROOT} | {other.name: other.resolve() for other in others}
    with ExitStack() as stack:
        asked = {name: stack.enter_context(_served(sources, directory / name)) for name, sources in trees.items()}
        for size in SIZES:
            seen: dict[str, list[list[int]]] = {name: [] for name in trees}
            for name, ask in [*asked.items()] * rounds:
                seen[name].append(ask(size, turns))
            line = f"{size:7}"
            for name, figures in seen.items():
                journal, cpu, raw, raw_cpu = (median(column) / 1e3 for column in zip(*figures, strict=True))
                line += f" | {name}: {journal:.0f} us, {raw / journal:.2f} of raw; CPU {cpu:.0f} us, {cpu - raw_cpu:.0f} over raw"
            print(line, flush=True)
    print(load())


@contextmanager
def _served(sources: Path, place: Path) -> Iterator[Callable[[int, int], list[int]]]:
    place.mkdir()
    command = [sys.executable, str(Path(__file__)), "--serve", str(place)]
    environment = {**os.environ, "PYTHONPATH": f"{sources / 'src'}:{ROOT}"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as child:
        ask, answer = child.stdin, child.stdout
        assert ask is not None
        assert answer is not None

        def turn(size: int, turns: int) -> list[int]:
            ask.write(f"{size} {turns}\n")
            ask.flush()
            return [int(word) for word in answer.readline().split()]

        yield turn
        ask.close()


def _read(journal: Journal, after: int) -> None:
    journal.read(after, 4_096)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--spool-mib", type=int, default=64)
    parser.add_argument("--beside", type=Path, nargs="*", default=[])
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        serve(arguments.serve)
        return
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        if arguments.beside:
            beside(Path(directory), arguments.beside, arguments.rounds, arguments.turns)
            return
        appends(Path(directory), arguments.rounds)
        reading(Path(directory), arguments.spool_mib)


if __name__ == "__main__":
    main()
