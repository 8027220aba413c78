"""The events of a pipeline, one JSON line each, in `_weft/runs/events.jsonl` of its lake (PIP-089).

The driver and commands of upkeep append lines. Each line is one write to a file opened for appending, so lines of two
processes do not mix. When the file is large it is renamed to `events.1.jsonl`, which replaces the older one. A driver's
`Lookout` gets each batch and reports only changes: rows begin to be refused, numbers are missing or have arrived, tables
are far behind or have caught up.
"""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from weft import __version__
from weft.base.errors import NO_ROOM
from weft.lake.layout import Layout

FILE: Final = "events.jsonl"
OLDER: Final = "events.1.jsonl"
BYTES_MAX: Final = 8 << 20  # a larger file is renamed
BEHIND_MS: Final = 5 * 60_000  # tables that lack older arrivals are reported as behind (PIP-089)
QUIET_CODES: Final = frozenset({"lease-held", "bad-rule", "bad-settings", "no-java", "port-taken"})
"""Errors of a driver that never held the lease: they say nothing about the lake, and are not events."""
FULL: Final = "No space left on device"
"""Part of the errors of Spark and deltalake if a disk is full."""
QUIET_S: Final = 15 * 60.0  # seconds without a refused row, after which the next one is reported again
NAMES: Final = {
    "run-began": "info",
    "run-ended": "info",
    "batch-failed": "error",
    "full": "error",
    "lease-lost": "error",
    "quarantine-started": "warning",
    "hole-found": "warning",
    "hole-filled": "info",
    "behind": "warning",
    "caught-up": "info",
    "returned": "info",
    "compacted": "info",
    "forgotten": "info",
    "upkeep-failed": "warning",
    "log-mended": "warning",
}
"""Every event, with its level."""


def note(lake: Layout, name: str, /, **fields: Any) -> dict[str, Any]:
    """Append an event, `name` one of `NAMES`; returns what was written.

    If the log cannot be written, nothing is raised.
    """
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
    event = {"at": stamp, "level": NAMES[name], "event": name} | fields
    path = lake.runs() / FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > BYTES_MAX:
            path.rename(path.with_name(OLDER))
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(log, msgspec.json.encode(event, enc_hook=str) + b"\n")
        finally:
            os.close(log)
    except OSError:
        pass  # the disk is full, for example: the driver must still report that in other ways
    return event


class Lookout:
    """Reports changes from batch to batch of a driver; `on_event` is called with each event."""

    def __init__(self, lake: Layout, on_event: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
        self.lake, self.on_event = lake, on_event
        self._refused_at: dict[str, float] = {}
        self._missing: dict[str, int] = {}
        self._behind: set[str] = set()
        self._batches = self._rows = 0

    def say(self, name: str, /, **fields: Any) -> None:
        """Append an event, and pass it to `on_event`."""
        self.on_event(note(self.lake, name, **fields))

    def hear(self, done: Any) -> None:
        """Take note of a batch (`weft.pipeline.job.Done`) that is now in the tables."""
        if not self._batches:
            self.say("run-began", run=done.run, version=__version__, pid=os.getpid())
        self._batches, self._rows = self._batches + 1, self._rows + done.outcome.rows
        self._look_at_refused(done)
        before, now = self._missing.get(done.job, 0), done.missing
        self._missing[done.job] = now
        if now and not before:
            self.say("hole-found", stream=done.job, batch=done.number, missing=now)
        elif before and not now:
            self.say("hole-filled", stream=done.job, batch=done.number)
        self._look_at_age(done)

    def failed(self, error: BaseException) -> None:
        """Report the error that ended the driver, unless it is one of `QUIET_CODES`."""
        code = getattr(error, "code", type(error).__name__)
        if code in QUIET_CODES:
            return
        cause = error.__cause__ or error
        is_full = FULL in str(cause) or (isinstance(cause, OSError) and cause.errno in NO_ROOM)
        name = "full" if is_full else "lease-lost" if code == "lost-lease" else "batch-failed"
        self.say(name, code=code, why=str(error)[:1_000])

    def ended(self) -> None:
        """The driver has ended on request, or has finished."""
        if self._batches:
            self.say("run-ended", batches=self._batches, rows=self._rows)

    def _look_at_refused(self, done: Any) -> None:
        if done.outcome.quarantined > 0:
            last, now = self._refused_at.get(done.job), time.monotonic()
            self._refused_at[done.job] = now
            if last is None or now - last > QUIET_S:
                self.say("quarantine-started", stream=done.job, batch=done.number, rows=done.outcome.quarantined)

    def _look_at_age(self, done: Any) -> None:
        is_behind = (done.freshness_ms or 0) > BEHIND_MS
        if is_behind and done.job not in self._behind:
            self._behind.add(done.job)
            self.say("behind", stream=done.job, batch=done.number, freshness_ms=done.freshness_ms, segments=done.behind)
        elif not is_behind and done.job in self._behind:
            self._behind.remove(done.job)
            self.say("caught-up", stream=done.job, batch=done.number)
