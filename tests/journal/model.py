"""A small node that lives from a journal: what it wrote, what it was promised, and what it must find again.

Every turn writes one `CoreRecord` with the turn's number and some `StreamRecord`s of the same turn. So a turn that came
through in part, a turn that is missing before a later one, and a promise that was not kept all show in the numbers.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from weft.base.chance import Chance
from weft.base.errors import StorageFailed
from weft.base.now import SECOND
from weft.base.records import CoreRecord, DamageRecord, Entry, Record, StreamRecord
from weft.shell.files import Files
from weft.shell.journal import Journal, Limits, Recovery, State, StorageFull
from weft.testing.disk import RecordingFiles

NODE = bytes(range(16))
STATE = Path("/state")
DIRECTORY = STATE / "journal"
WALL = 1_795_227_299_250_000_000
SMALL = Limits(
    budget_bytes=1 << 20,
    segment_bytes=4 << 10,
    ballast_bytes=4 << 10,
    free_bytes_min=0,
    snapshot_segments=2,
    released_age_ns=0,
)
TURN, CONDENSED = 1, 2


class Said(NamedTuple):
    """A promise: turn `turn` is durable, and the journal ends before `next_lsn`."""

    turn: int
    next_lsn: int


class Found(NamedTuple):
    """What a recovery gave back."""

    last_turn: int
    entries: tuple[Entry, ...]
    damages: tuple[DamageRecord, ...]


def turn_records(turn: int, chance: Chance) -> list[Record]:
    """The records of one turn: its number and how many follow, then up to five samples that carry the number."""
    followers = chance.randint(0, 5)
    records: list[Record] = [CoreRecord("model", TURN, turn.to_bytes(8, "big") + bytes([followers]))]
    for index in range(followers):
        payload = turn.to_bytes(8, "big") + bytes([index]) * chance.choice((0, 10, 100, 700))
        records.append(StreamRecord(1, NODE, 1, turn * 8 + index + 1, WALL, WALL, "cpu", payload, {}))
    return records


def check_entries(entries: Iterable[Entry]) -> Found:
    """Assert that these are whole turns, one after another, and say up to which."""
    last, followers, lsn_before = 0, 0, 0
    kept: list[Entry] = []
    damages: list[DamageRecord] = []
    for lsn, record in entries:
        assert lsn >= lsn_before, (lsn_before, lsn)
        lsn_before = lsn
        kept.append((lsn, record))
        if isinstance(record, DamageRecord):
            damages.append(record)
        elif isinstance(record, CoreRecord):
            assert followers == 0, f"turn {last} came back without its last {followers} records"
            number = int.from_bytes(record.data[:8], "big")
            is_next = number == last + 1 or (damages and number > last) or record.kind == CONDENSED
            assert is_next, f"turn {number} after turn {last}"
            last, followers = number, record.data[8] if record.kind == TURN else 0
        else:
            assert isinstance(record, StreamRecord)
            assert int.from_bytes(record.payload[:8], "big") == last, f"a record of another turn stands in turn {last}"
            followers -= 1
    assert followers == 0, f"turn {last} came back without its last {followers} records"
    return Found(last, tuple(kept), tuple(damages))


class Driver:
    """Runs the small node over a recorded disk: turns, rests, snapshots, releases, kills and restarts, by chance."""

    def __init__(self, files: RecordingFiles, seed: str) -> None:
        self.files, self.chance = files, Chance(seed)
        self.wall = WALL
        self.turn = 0
        self.failures = 0
        self.journal: Journal | None = None

    def start(self) -> Found:
        """Start, restore, and check what came back against what was promised to this process's predecessor."""
        self.journal, recovery = Journal.open(DIRECTORY, NODE, self.files, self.wall, SMALL)
        found = check_entries(recovery.entries())
        self.turn = found.last_turn
        self.files.note_sent(
            Said(self.turn, self.journal.next_lsn)
        )  # what a restored core acts on must not be lost again
        return found

    def run(self, steps: int) -> None:
        """So many things happen, nearly all of them turns; a process whose disk fails ends, and is started again."""
        for _ in range(steps):
            self.wall += self.chance.choice((SECOND // 1000, SECOND, 7 * SECOND))
            things = (self.write, self.rest, self.snapshot, self.forget, self.restart)
            thing = self.chance.choices(things, weights=(20, 3, 2, 2, 1))[0]
            try:
                thing()
            except StorageFailed:
                self.failures += 1
                self.start_again()

    def start_again(self) -> Found:
        """Start until it works: what fails once in a start is good in the next."""
        kill(self.files)
        try:
            return self.start()
        except StorageFailed:
            self.failures += 1
            return self.start_again()

    @property
    def running(self) -> Journal:
        assert self.journal is not None
        return self.journal

    def write(self) -> None:
        records = turn_records(self.turn + 1, self.chance)
        try:
            self.running.write(records, self.wall)
        except StorageFull:
            return
        self.turn += 1
        self.files.note_sent(Said(self.turn, self.running.next_lsn))

    def rest(self) -> None:
        self.running.rest(self.wall)

    def snapshot(self) -> None:
        try:
            self.running.snapshot([CoreRecord("model", CONDENSED, self.turn.to_bytes(8, "big"))], self.wall)
        except StorageFull:
            return

    def forget(self) -> None:
        self.running.forget(self.chance.randint(0, self.running.durable_lsn))

    def restart(self) -> None:
        if self.chance.random() < 0.5:
            self.running.close(self.wall)
        self.start_again()


def kill(files: Files) -> None:
    """The process is gone; what it had written lies in the page cache."""
    inner = files
    while not hasattr(inner, "kill"):
        inner = inner.inner  # type: ignore[attr-defined]  # the twins stack, the lowest is in memory
    inner.kill()


def reopen(files: Files, wall_ns: int = WALL) -> tuple[Journal, Recovery, Found]:
    """Start on a disk, and check what came back."""
    journal, recovery = Journal.open(DIRECTORY, NODE, files, wall_ns, SMALL)
    return journal, recovery, check_entries(recovery.entries())


def all_entries(journal: Journal, bytes_max: int = 1 << 10) -> Iterator[Entry]:
    """Everything that stands in a journal, window by window."""
    after = journal.shelf.first_lsn - 1
    while after < journal.durable_lsn:
        entries, upto = journal.read(after, bytes_max)
        assert after < upto, "a read makes headway"
        yield from entries
        after = upto


def stop(journal: Journal) -> None:
    """Close a journal whose disk may have failed."""
    try:
        journal.close(WALL)
    except StorageFailed:
        assert journal.state is State.CLOSED
