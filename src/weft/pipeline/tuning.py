"""`weft lake tune`: makes the archive of classes with which a driver starts faster (PIP-104; `classes`).

A driver makes the tables of a few samples, and Java lists the classes that it loads meanwhile, in order. Then Java writes
the first of them into the archive: those that a start needs first. Classes at the end of the list are left out if the
file would be larger than `BYTES_MAX`.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.base.errors import UserError
from weft.base.records import StreamRecord
from weft.lake.files import LocalFiles
from weft.lake.layout import Layout
from weft.lake.manifest import NO_PRIOR
from weft.lake.segments import Place, open_lake, write_segment
from weft.pipeline.classes import QUIET, archive, drop
from weft.pipeline.java import Java, choose
from weft.pipeline.job import JobOptions
from weft.pipeline.runner import Runner
from weft.pipeline.session import Options
from weft.wire import samples

BYTES_MAX: Final = 100_000_000  # of the archive
CLASSES_MAX: Final = 7_400
"""In a first attempt: 95 MB with Java 17. If the archive is too large, a second attempt takes fewer classes."""
SPARE: Final = 0.95  # the second attempt aims at this share of `BYTES_MAX`
PATIENCE_S: Final = 1800.0  # for one program; it takes half a minute on a quiet machine
ROWS: Final = 1_000  # samples that the driver takes
SERIES: Final = (
    samples.Series("cpu", "CPU", "percent", {"cpu": "total"}),
    samples.Series("mem", "MEMORY", "basic", {}),
)
ORIGIN: Final = bytes(16)
ERA: Final = 1_795_000_000_000_000
AT_MS: Final = ERA // 1_000
WARM: Final = "import sys, pathlib; from weft.pipeline.tuning import warm; warm(pathlib.Path(sys.argv[1]))"
DIAGNOSE: Final = "weft doctor"


class Kept(NamedTuple):
    """The archive that was made."""

    path: Path
    size: int
    classes: int
    """How many classes are in it."""
    loaded: int
    """How many classes the start had loaded."""
    seconds: float


def keep(state: Path) -> Kept:
    """Make the archive; it replaces any earlier one.

    UserError `no-java` (exit 78); `no-archive` if a program fails, or if the archive is empty or too large.
    """
    began = time.monotonic()
    java = choose(state)
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=state, prefix="classes-") as made:
        place = Path(made)
        listed, path = _loaded(place)
        chosen = listed[:CLASSES_MAX]
        size = _dump(java, chosen, path, fresh := place / "fresh.jsa")
        if size > BYTES_MAX:
            chosen = chosen[: int(len(chosen) * SPARE * BYTES_MAX / size)]
            size = _dump(java, chosen, path, fresh)
        if not 0 < size <= BYTES_MAX:
            what = f"Java {java.version} has made an archive of {size:,} bytes, where 1 to {BYTES_MAX:,} are expected"
            raise UserError("no-archive", what, DIAGNOSE)
        drop(state)
        kept = archive(state, java)
        fresh.chmod(0o600)
        fresh.rename(kept)
    return Kept(kept, size, len(chosen), len(listed), time.monotonic() - began)


def _loaded(place: Path) -> tuple[list[str], str]:
    """The classes that a start loads, in order, and the class path on which it found them."""
    # in another process, because the JVM of this one, if there is one, has loaded its classes already
    _run([sys.executable, "-c", WARM, str(place)])
    return (place / "listed").read_text("utf-8").splitlines(keepends=True), (place / "path").read_text("utf-8")


def _dump(java: Java, chosen: Sequence[str], path: str, fresh: Path) -> int:
    """Let Java write an archive of these classes; returns its size in bytes, 0 if Java has written none."""
    listed = fresh.with_name("chosen")
    listed.write_text("".join(chosen), "utf-8")
    fresh.unlink(missing_ok=True)
    words = [f"-XX:SharedClassListFile={listed}", f"-XX:SharedArchiveFile={fresh}", "-cp", path]
    _run([str(java.home / "bin" / "java"), "-Xshare:dump", *QUIET, *words])
    return fresh.stat().st_size if fresh.is_file() else 0


def warm(place: Path) -> None:
    """Run a driver for a few rows; leaves the list of loaded classes in `place/listed` and the class path in `place/path`."""
    from pyspark import SparkContext

    _fill(lake := Layout(place / "lake"))
    runner = Runner(lake, lambda _: None, JobOptions(gold_every_s=float("inf")))
    watched = (f"-XX:DumpLoadedClassList={place / 'listed'}",)
    runner.run(Options(master="local[1]", state=place / "state", log=place / "java.log", jvm=watched), once=True)
    gateway: Any = SparkContext._gateway  # PySpark has no public name for it
    (place / "path").write_text(gateway.jvm.java.lang.System.getProperty("java.class.path"), "utf-8")
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(PATIENCE_S)


def _fill(lake: Layout) -> None:
    """Make a lake with one segment of samples."""
    open_lake(lake, "00" * 16, time.time_ns())
    rows = [samples.Row(n % len(SERIES), n, float(n), n if n % len(SERIES) == 0 else None) for n in range(ROWS)]
    body = samples.encode(samples.SampleBatch(AT_MS, SERIES, rows))
    at = AT_MS * 1_000_000
    record = StreamRecord(1, ORIGIN, ERA, 1, at, at + ROWS * 1_000_000, "weft.metric", body, {"n": ROWS})
    write_segment(lake, Place("samples", ORIGIN.hex(), 1, NO_PRIOR), iter([(1, record)]), LocalFiles())


def _run(words: Sequence[str]) -> None:
    """Run a program. UserError `no-archive` with its last line if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().rpartition("\n")[2][:400]
        raise UserError("no-archive", f"no archive of classes could be made: {last}", DIAGNOSE)
