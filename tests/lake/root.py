"""The part of a node that drains: a real journal, the drain core, and the recorder in its thread."""

from pathlib import Path
from queue import Queue
from typing import Any

from tests.lake.records import NODE_B
from tests.patience import PATIENCE_S
from weft.base.effects import Perform, Tell
from weft.base.now import Now
from weft.base.records import Record
from weft.base.spool import FetchRecords, Journaled, RecordsFetched
from weft.cores.drain.core import Drain
from weft.shell.files import Files
from weft.shell.journal import Journal
from weft.shell.recorder import Recorder

WALL = 1_800_000_000_000_000_000


class Root:
    """The part of a node that drains: journal, core, recorder; time stands still unless it is moved."""

    def __init__(self, home: Path, lake: Path | None = None, kind: type[Recorder] = Recorder) -> None:
        self.journal, recovery = Journal.open(home / "journal", NODE_B, Files(), WALL, 64 << 20)
        self.core, self.mono = Drain(), 0
        self.answers: Queue[Any] = Queue()
        self.told: list[Any] = []
        self.waiting = 0
        self.recorder = kind(lake or home / "lake", NODE_B, self.journal.read, self.answers.put)
        self.core.restore(recovery.entries(), self.now)
        self.step(0)

    @property
    def now(self) -> Now:
        return Now(self.mono, WALL + self.mono)

    def append(self, *records: Record) -> None:
        first = self.journal.write(records, WALL)
        self.core.command(Journaled(first, records), self.now)
        self.act()

    def step(self, ns: int) -> None:
        """Time passes, and everything that was asked for comes back."""
        self.mono += ns
        while True:
            due = self.core.deadline()
            if due is not None and due <= self.mono:
                self.core.wake(self.now)
            self.act()
            if not self.waiting:
                break
            self.waiting -= 1
            self.core.command(self.answers.get(timeout=PATIENCE_S), self.now)

    def act(self) -> None:
        for effect in self.core.effects():
            if isinstance(effect, Tell):
                self.told.append(effect.event)
            elif isinstance(effect, Perform):
                self.waiting += 1
                if isinstance(effect.work, FetchRecords):
                    entries, upto = self.journal.read(effect.work.after, effect.work.bytes_max)
                    self.answers.put(RecordsFetched("drain", effect.work.after, upto, tuple(entries)))
                else:
                    self.recorder.perform(effect.work)

    def close(self) -> None:
        self.recorder.close()
        self.journal.close(WALL)
