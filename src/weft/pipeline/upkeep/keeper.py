"""Maintains the tables while the driver runs: compaction, retention, vacuum (LAK-037, LAK-038).

Everything slow (reading, sorting, listing) runs in a separate thread with the lowest priority and on at most one core;
that thread changes no table. The driver's own thread commits the results between two batches, in some tens of
milliseconds. So upkeep waits for batches, and batches hardly wait for upkeep. A turn without work only reads a clock. An
error (disk full, a file that another step has replaced) ends the round, not the driver; the next round starts again.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from typing import Any, Final, NamedTuple

from weft.lake.layout import Layout
from weft.pipeline.eventlog import note
from weft.pipeline.settings import KeepTable
from weft.pipeline.tables import there
from weft.pipeline.upkeep import compact, retain, vacuum
from weft.pipeline.upkeep.forgotten import facts, remove, settle
from weft.pipeline.upkeep.log import Exchange, Overtaken, exchange
from weft.pipeline.upkeep.marks import is_uneven
from weft.pipeline.upkeep.rewrite import Stopped
from weft.pipeline.upkeep.tally import subtract_removals

FIRST_S: Final = 120.0  # after the start of a driver, which has more urgent work first
EVERY_S: Final = 900.0  # between two rounds; a table gets some 900 files meanwhile, which does not slow its commits yet
NICE: Final = 19  # the lowest priority
HOURS_PER_DAY: Final = 24

WHY_MAX: Final = 500  # characters of an error in an event

Step = Callable[[], dict[str, Any] | None]
"""A step that is ready to be committed; returns its report."""


class Timing(NamedTuple):
    """When upkeep is due: times of a monotonic clock in seconds, and the current day."""

    first_s: float = FIRST_S
    every_s: float = EVERY_S
    clock: Callable[[], float] = time.monotonic
    wall_ns: Callable[[], int] = time.time_ns


USUAL: Final = Timing()


class Upkeep:
    """The upkeep of one lake. The driver holds the lease of `epoch`; one of its threads calls `turn` and `close`."""

    def __init__(self, layout: Layout, epoch: int, keep: KeepTable, timing: Timing = USUAL) -> None:
        self.layout, self.epoch, self.keep, self.timing = layout, epoch, keep, timing
        self._due = timing.clock() + timing.first_s
        self._ending = threading.Event()
        self._round: Iterator[Step] | None = None
        self._thread: threading.Thread | None = None
        self._ready: Step | None = None
        self._trouble: BaseException | None = None
        self._vacuumed: date | None = None

    def turn(self) -> None:
        """Commit a step that is ready, or begin to prepare the next one; the driver calls this between two batches.

        Raises LeaseLost if another driver has taken over, and OurFault.
        """
        if self._thread is not None:
            if self._thread.is_alive():
                return
            self._thread = None
        if self._trouble is not None:
            self._give_up()
        elif self._ready is not None:
            self._commit()
        elif self._round is not None or self.timing.clock() >= self._due:
            self._prepare()

    def close(self) -> None:
        """Stop the work in progress. Files not committed yet belong to no version."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(1.0)

    def _prepare(self) -> None:
        """Let the thread prepare the next step."""
        if self._round is None:
            self._round = self._steps()
        steps = self._round

        def prepare() -> None:
            with contextlib.suppress(OSError):  # without a lower priority it works, too
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
            try:
                self._ready = next(steps, None)
                if self._ready is None:
                    self._finish()
            except BaseException as error:  # noqa: BLE001  # passed to the driver's thread, which judges it
                self._trouble = error

        self._thread = threading.Thread(target=prepare, name="upkeep", daemon=True)
        self._thread.start()

    def _finish(self) -> None:
        self._round, self._due = None, self.timing.clock() + self.timing.every_s

    def _commit(self) -> None:
        step, self._ready = self._ready, None
        assert step is not None
        try:
            event = step()
            if event is not None:
                note(self.layout, event.pop("event"), **event)
        except Exception as error:
            if not may_pass(error):
                raise
            self._trouble = error

    def _give_up(self) -> None:
        """End the round. Raises the error that ended it, unless it may be gone in the next round (`may_pass`)."""
        trouble, self._trouble = self._trouble, None
        self._finish()
        assert trouble is not None
        if not may_pass(trouble):
            raise trouble
        if not isinstance(trouble, Stopped | Overtaken):
            note(self.layout, "upkeep-failed", why=str(trouble)[:WHY_MAX])

    # The steps of a round. The generator runs in the thread; each step that it yields is called by the driver's thread.

    def _steps(self) -> Iterator[Step]:
        today = datetime.fromtimestamp(self.timing.wall_ns() / 1e9, UTC).date()
        yield self._settle
        for old in list(retain.due(self.layout, self.keep, today)):
            if old.files:
                yield self._retention(old)
        for bundle in list(compact.due(self.layout, today)):
            yield self._compaction(compact.joined(self.layout, bundle, lambda: not self._ending.is_set()))
        if self._vacuumed != today:
            files = vacuum.stale(self.layout, self.keep.unreferenced * HOURS_PER_DAY)
            for _ in vacuum.delete(self.layout, files):
                if self._ending.is_set():
                    raise Stopped
            self._vacuumed = today
        for table in there(self.layout):
            vacuum.shorten(self.layout, table, self.timing.wall_ns())

    def _settle(self) -> None:
        settle(self.layout, self.epoch)
        subtract_removals(self.layout, self.epoch)

    def _retention(self, old: retain.Old) -> Step:
        found = facts(self.layout, old.table, old.files)
        wanted = Exchange(old.table, old.files, (), "retain", is_rearranged=False)

        def step() -> dict[str, Any] | None:
            if is_uneven(self.layout, old.table):
                return None
            rows = remove(self.layout, wanted, found, old.reason, self.epoch)
            subtract_removals(self.layout, self.epoch)
            return {"event": "forgotten", "table": old.table.full_name, "rows": rows, "why": old.reason.why}

        return step

    def _compaction(self, wanted: Exchange) -> Step:
        def step() -> dict[str, Any]:
            exchange(self.layout, wanted, self.epoch)
            return {"event": "compacted"} | compact.result_of(wanted)._asdict()

        return step


def may_pass(trouble: BaseException) -> bool:
    """Whether an error may be gone in the next round: no disk space, no memory, a file that is gone or unreadable."""
    import duckdb
    import pyarrow as pa
    from deltalake.exceptions import DeltaError

    return isinstance(
        trouble, OSError | MemoryError | Overtaken | Stopped | duckdb.Error | pa.ArrowException | DeltaError
    )
