"""`weft lake run`: make tables of what the drains write, as it comes."""

import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from cyclopts import Parameter

from weft.lake.layout import Layout
from weft.pipeline.job import Done, JobOptions
from weft.pipeline.runner import Runner
from weft.pipeline.session import HEAP_MB, Options

Flag = Annotated[bool, Parameter(negative="")]
SHOWN: Final = ("batch", "rows", "silver", "values", "duplicates", "quarantined", "missing", "seconds")


def run(
    *,
    lake: Path | None = None,
    once: Flag = False,
    json: Flag = False,
    master: str = "local[*]",
    gold_every: float = 10.0,
    heap_mb: int = HEAP_MB,
) -> None:
    """Make tables of the segments of a lake, continuously: bronze, silver, calculated values, gold, completeness.

    Killed at any instant and started again, it loses and doubles nothing. Ctrl-C finishes the batch.

    Args:
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        once: take what is there, and end.
        json: one JSON line per batch instead of a display.
        master: Spark's master, local[*] or spark://HOST:PORT.
        gold_every: seconds between folds of the gold tables; `weft sql` shows what is newer all the same.
        heap_mb: heap of the driver's JVM in MiB.
    """
    show = _print_json if json else _print_line
    runner = Runner(Layout(lake or os.environ.get("WEFT_LAKE") or "lake"), show, JobOptions(gold_every_s=gold_every))

    def stop(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second one ends at once, which is safe too
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        runner.stop()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    runner.run(Options(master=master, heap_mb=heap_mb), once=once)


def facts(done: Done) -> dict[str, Any]:
    """What is said of a batch."""
    outcome = done.outcome
    return {
        "batch": done.number,
        "rows": outcome.rows,
        "silver": outcome.silver,
        "values": outcome.values,
        "duplicates": outcome.duplicates,
        "quarantined": outcome.quarantined,
        "missing": done.missing,
        "segments": done.segments,
        "freshness_ms": done.freshness_ms,
        "seconds": done.seconds,
        "steps": done.steps,
    }


def _print_json(done: Done) -> None:
    sys.stdout.write(msgspec.json.encode(facts(done)).decode() + "\n")
    sys.stdout.flush()


def _print_line(done: Done) -> None:
    told = facts(done)
    sys.stdout.write("  ".join(f"{name} {told[name]:,}" for name in SHOWN) + "\n")
    sys.stdout.flush()
