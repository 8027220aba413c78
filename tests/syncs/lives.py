"""Short lives of everything that promises to keep something: each on a real folder, each promise told to the witness."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import pytest

from tests.journal.model import NODE, SMALL, WALL, turn_records
from tests.lake.test_publication import CUTS, read
from tests.pipeline.plain import lake_of
from tests.syncs.calls import Witness
from weft.base.chance import Chance
from weft.base.errors import StorageFailed
from weft.base.records import CoreRecord
from weft.cores.drain.messages import InspectLake, LakeFound, SegmentFailed, SegmentWritten, WriteSegment
from weft.lake.files import LocalFiles
from weft.lake.importing.ledger import Ledger
from weft.lake.layout import Layout
from weft.lake.manifest import NO_PRIOR
from weft.pipeline.checkpoint import Checkpoint, Record
from weft.pipeline.coverage import Coverage
from weft.pipeline.delta import Tables
from weft.pipeline.lease import Lease
from weft.pipeline.ruleset import Rules
from weft.pipeline.tables import PROGRESS, SAMPLES
from weft.pipeline.upkeep.log import Exchange, exchange, live_files
from weft.pipeline.upkeep.rewrite import rewritten
from weft.pipeline.writer import Writer
from weft.shell.files import File, Files
from weft.shell.identity import begin_start
from weft.shell.journal import Journal, StorageFull
from weft.shell.journal.backup import backup
from weft.shell.journal.damage import DamageLog
from weft.shell.journal.recovery import recover
from weft.shell.journal.repair import carry_out, next_mend
from weft.shell.masking import mask_of
from weft.shell.recorder import Recorder
from weft.testing.disk import FaultyFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAKE_NODE: Final = bytes.fromhex("6f1c2a345b6d4e7f8091a2b3c4d5e6f7")
SECOND: Final = 1_000_000_000
AT: Final = datetime(2026, 11, 21, tzinfo=UTC)


class OnceShort(Files):
    """A disk that has no room for one append when it is told so, and room for the next."""

    is_full = False

    def append(self, file: File, data: bytes | bytearray) -> int:
        if self.is_full:
            self.is_full = False
            return super().append(file, data[: len(data) // 2])
        return super().append(file, data)


def _opened(root: Path, witness: Witness, files: Files | None = None) -> Journal:
    journal, recovery = Journal.open(root / "state" / "journal", NODE, files or Files(), WALL, SMALL)
    list(recovery.entries())
    witness.answered("a start")
    return journal


def _turns(journal: Journal, witness: Witness, count: int) -> None:
    chance = Chance("turns")
    for turn in range(1, count + 1):
        journal.write(turn_records(turn, chance), WALL)
        witness.answered(f"turn {turn}")


def journal_turns(root: Path, witness: Witness) -> None:
    """Turns, snapshots, what is forgotten, a mark at rest, an orderly stop."""
    with witness.watching():
        journal = _opened(root, witness)
        for _ in range(3):
            _turns(journal, witness, 10)
            journal.snapshot([CoreRecord("model", 2, bytes(8))], WALL)
            witness.answered("a snapshot")
            journal.forget(journal.durable_lsn)
            witness.answered("what is forgotten")
        journal.rest(WALL + 6 * SECOND)
        witness.answered("a mark")
        journal.close(WALL)
        witness.answered("a stop")


def journal_without_room(root: Path, witness: Witness) -> None:
    """A write that got half of its bytes there, and the ballast that is given up for it and taken again."""
    files = OnceShort()
    with witness.watching():
        journal = _opened(root, witness, files)
        _turns(journal, witness, 2)
        files.is_full = True
        with pytest.raises(StorageFull):
            journal.write(turn_records(3, Chance(3)), WALL)
        witness.answered("a refusal")
        journal.rest(WALL + SECOND)
        witness.answered("room again")
        journal.close(WALL)


def journal_torn(root: Path, witness: Witness) -> None:
    """A process that ended between an append and its sync, and the start of the next one."""
    with witness.watching():
        files = FaultyFiles(Files(), calls=("sync",))
        journal = _opened(root, witness, files)
        _turns(journal, witness, 2)
        files.at = len(files.log)
        with pytest.raises(StorageFailed):
            journal.write(turn_records(3, Chance(3)), WALL)
        journal.close(WALL)
        _opened(root, witness).close(WALL)


def journal_swept(root: Path, witness: Witness) -> None:
    """A recovery that removes a segment without records: its caller acts on what is on disk."""
    _opened(root, witness).close(WALL)
    with witness.watching():
        recover(Files(), root / "state" / "journal", NODE)
        witness.answered("a recovery")


def journal_damaged(root: Path, witness: Witness) -> None:
    """Damage that is found, copied, noted and accepted."""
    journal = _opened(root, witness)
    _turns(journal, witness, 20)
    journal.close(WALL)
    victim = sorted((root / "state" / "journal").glob("*.seg"))[1]
    data = bytearray(victim.read_bytes())
    data[200] ^= 4
    victim.write_bytes(data)
    with witness.watching():
        _opened(root, witness).close(WALL)
        assert 1 == DamageLog(Files(), root / "state" / "journal").accept_all()
        witness.answered("a loss accepted")


def journal_repaired(root: Path, witness: Witness) -> None:
    """A journal without one of its files and with the header of another destroyed, mended step by step."""
    journal = _opened(root, witness)
    _turns(journal, witness, 20)
    journal.close(WALL)
    directory = root / "state" / "journal"
    files = sorted(directory.glob("*.seg"))
    files[1].unlink()
    files[2].write_bytes(bytes(64) + files[2].read_bytes()[64:])
    with witness.watching():
        while (mend := next_mend(Files(), directory)) is not None:
            carry_out(Files(), mend)
            witness.answered(mend.text)


def journal_copied(root: Path, witness: Witness) -> None:
    """A copy of a node's state."""
    begin_start(root / "state", "a", WALL)
    journal = _opened(root, witness)
    _turns(journal, witness, 10)
    journal.close(WALL)
    with witness.watching():
        backup(Files(), root / "state" / "journal", root / "copy")
        witness.answered("a copy")


def identity(root: Path, witness: Witness) -> None:
    """Two starts of a node below folders that are new, and the key of its lake."""
    with witness.watching():
        for _ in range(2):
            begin_start(root / "new" / "state", "a", WALL)
            witness.answered("who the node is")
        mask_of(root / "new" / "state", ("/app/*",))
        witness.answered("the key that hides")


class _FailsOnce(LocalFiles):
    """The sync of a directory fails once, just after a manifest got its name."""

    def __init__(self) -> None:
        self._is_due, self._has_failed = False, False

    def rename(self, old: Path, new: Path) -> None:
        super().rename(old, new)
        self._is_due = new.suffix == ".json" and len(new.stem) == 16

    def sync_directory(self, path: Path) -> None:
        if self._is_due and not self._has_failed:
            self._has_failed = True
            raise OSError(5, "broken")
        super().sync_directory(path)


def lake(root: Path, witness: Witness) -> None:
    """A new lake and its segments, one of which is thought to have failed and is found."""
    with witness.watching():
        recorder = Recorder(root / "lake", LAKE_NODE, read, lambda _: None, _FailsOnce())
        tips: dict[int, tuple[int, str]] = {}
        assert isinstance(recorder.outcome(InspectLake()), LakeFound)
        witness.answered("the lake")
        for stream, first, last in CUTS:
            number, prior = tips.get(stream, (0, NO_PRIOR))
            work = WriteSegment(stream, number + 1, first, last, prior)
            done = recorder.outcome(work)
            if isinstance(done, SegmentFailed):
                done = recorder.outcome(work)
            assert isinstance(done, SegmentWritten), done
            witness.answered(f"segment {done.number}")
            tips[stream] = (done.number, done.digest)


def lake_cleaned(root: Path, witness: Witness) -> None:
    """What a crash left beside the segments of a lake goes."""
    recorder = Recorder(root / "lake", LAKE_NODE, read, lambda _: None)
    recorder.outcome(InspectLake())
    recorder.outcome(WriteSegment(1, 1, 1, 3, NO_PRIOR))
    block = next((root / "lake").glob("drain/samples/*/00000000"))
    (block / "0000000000000009.parquet").write_bytes(b"without a manifest")
    with witness.watching():
        assert isinstance(recorder.outcome(InspectLake()), LakeFound)
        witness.answered("a clean lake")


def imported(root: Path, witness: Witness) -> None:
    """The digests of a file's lines."""
    with witness.watching():
        for lines in (1, 2):
            ledger = Ledger(root / "00000001.lines")
            ledger.add([b"12345678"] * lines)
            ledger.close()
            ledger.publish(LocalFiles())
            witness.answered("an import")


def driver(root: Path, witness: Witness) -> None:
    """The lease of a job, its record, its rules, its coverage."""
    place = Layout(root / "lake")
    rules = Rules(known_nodes=("a",))
    with witness.watching():
        with Lease(place, "samples"):
            witness.answered("a lease")
            checkpoint = Checkpoint(place, "samples")
            checkpoint.begin(Record(id="a"))
            witness.answered("a checkpoint")
            checkpoint.rules(rules, is_repeated=False)
            witness.answered("the rules of a batch")
            checkpoint.save(1, Coverage())
            witness.answered("the coverage behind a batch")
        witness.answered("a lease given back")


def tables(root: Path, witness: Witness) -> None:
    """Batches whose rows the driver writes itself, in a table with partitions and in one without, and files exchanged."""
    place = lake_of(root / "lake")
    with witness.watching():
        kept = Tables(place, cast("SparkSession", None), Writer("samples", "0" * 32, 1))
        for table in (PROGRESS, SAMPLES):
            kept.handle(table)
            witness.answered(f"the table {table.full_name}")
        for batch in range(3):
            for table, row in (
                (PROGRESS, {"job": "samples", "batch": batch}),
                (SAMPLES, {"day": AT.date(), "at": AT, "batch": batch}),
            ):
                kept.append_rows(table, batch, [row], {"weft.offset": "{}"})
                witness.answered(f"batch {batch} of {table.full_name}")
        live = tuple(live_files(kept.handle(PROGRESS), PROGRESS))
        joined = rewritten(place, PROGRESS, live, "b0000000000")
        assert joined is not None
        exchange(place, Exchange(PROGRESS, live, (joined,), "compact", True), 1)
        witness.answered("files joined")


LIVES: Final[dict[str, Callable[[Path, Witness], None]]] = {
    life.__name__: life
    for life in (
        journal_turns,
        journal_without_room,
        journal_torn,
        journal_swept,
        journal_damaged,
        journal_repaired,
        journal_copied,
        identity,
        lake,
        lake_cleaned,
        imported,
        driver,
        tables,
    )
}
