"""The part of a node that drains: a real journal, the drain core, and the recorder in its thread."""

from pathlib import Path
from queue import Queue
from typing import Any

from tests.lake.records import NODE_B
from tests.patience import PATIENCE_S
from weft.base.effects import Perform, Persist, Tell
from weft.base.now import Now
from weft.base.records import Record
from weft.base.spool import FetchRecords, Journaled, RecordsFetched
from weft.cores.drain.core import Drain
from weft.shell.files import Files
from weft.shell.journal import Journal
from weft.shell.recorder import Recorder

WALL = 1_800_000_000_000_000_000
Kinds = tuple[type[Drain], type[Recorder]]


class Root:
    """The part of a node that drains: journal, core, recorder; time stands still unless it is moved."""

    def __init__(self, home: Path, lake: Path | None = None, start: int = 0, kinds: Kinds = (Drain, Recorder)) -> None:
        drain, recorder = kinds
        self.journal, recovery = Journal.open(home / "journal", NODE_B, Files(), WALL, 64 << 20)
        self.core, self.mono = drain(start=start), 0
        self.answers: Queue[Any] = Queue()
        self.told: list[Any] = []
        self.waiting = 0
        self.late: list[Record] = []
        """Records of the core that are written with the next ones, if the node is not killed before."""
        self.recorder = recorder(lake or home / "lake", NODE_B, self.journal.read, self.answers.put)
        self.core.restore(recovery.entries(), self.now)
        self.step(0)

    @property
    def now(self) -> Now:
        return Now(self.mono, WALL + self.mono)

    def append(self, *records: Record) -> None:
        self.keep()
        self._write(records)
        self.act()

    def keep(self) -> None:
        """Write what is late."""
        records, self.late = tuple(self.late), []
        if records:
            self._write(records)

    def _write(self, records: tuple[Record, ...]) -> None:
        self.core.command(Journaled(self.journal.write(records, WALL), records), self.now)

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
            if isinstance(effect, Persist):
                self.late += effect.records
                if not effect.within_ns:
                    self.keep()
            elif isinstance(effect, Tell):
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
