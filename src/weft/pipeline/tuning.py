"""`weft lake tune`: the classes that a driver's start loads, kept in one file (PIP-104).

A driver makes the tables of a few samples once, Java notes which classes it loads meanwhile, and keeps the first of them. The
order is that of loading, so what a start needs first is kept, and what comes later is left out where the file would be
larger than `BYTES_MAX`.
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

BYTES_MAX: Final = 100_000_000
CLASSES_MAX: Final = 7_400
"""Of Java 17 these are 95 MB. Where they are more, a second attempt takes as many fewer."""
SPARE: Final = 0.95
PATIENCE_S: Final = 1800.0  # half a minute on a quiet machine
ROWS: Final = 1_000
SERIES: Final = (
    samples.Series("cpu", "CPU", "percent", {"cpu": "total"}),
    samples.Series("mem", "MEMORY", "basic", {}),
)
ORIGIN: Final = bytes(16)
ERA: Final = 1_795_000_000_000_000
AT_MS: Final = ERA // 1_000
WARM: Final = "import sys, pathlib; from weft.pipeline.tuning import warm; warm(pathlib.Path(sys.argv[1]))"
REINSTALL: Final = "weft doctor"


class Kept(NamedTuple):
    """An archive that was made."""

    path: Path
    size: int
    classes: int
    """How many were kept, of `loaded`."""
    loaded: int
    seconds: float


def keep(state: Path) -> Kept:
    """Make the archive, in the place of any earlier one.

    UserError `no-java` (exit 78), `no-archive` if this Java makes none of these classes, or a larger one than `BYTES_MAX`.
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
            raise UserError("no-archive", f"Java {java.version} has made an archive of {size:,} bytes", REINSTALL)
        drop(state)
        kept = archive(state, java)
        fresh.chmod(0o600)
        fresh.rename(kept)
    return Kept(kept, size, len(chosen), len(listed), time.monotonic() - began)


def _loaded(place: Path) -> tuple[list[str], str]:
    """What a start loads, first to last, and the path of classes on which it found them."""
    # in a process of its own: the JVM of this one, if there is any, has long loaded what it needs
    _run([sys.executable, "-c", WARM, str(place)])
    return (place / "listed").read_text("utf-8").splitlines(keepends=True), (place / "path").read_text("utf-8")


def _dump(java: Java, chosen: Sequence[str], path: str, fresh: Path) -> int:
    """Let Java keep these classes of this path; the bytes that they take, 0 if it has made no file."""
    listed = fresh.with_name("chosen")
    listed.write_text("".join(chosen), "utf-8")
    fresh.unlink(missing_ok=True)
    words = [f"-XX:SharedClassListFile={listed}", f"-XX:SharedArchiveFile={fresh}", "-cp", path]
    _run([str(java.home / "bin" / "java"), "-Xshare:dump", *QUIET, *words])
    return fresh.stat().st_size if fresh.is_file() else 0


def warm(place: Path) -> None:
    """A driver's first rows; `listed` and `path` below `place` then say what Java has loaded, and from where."""
    from pyspark import SparkContext

    _fill(lake := Layout(place / "lake"))
    runner = Runner(lake, lambda _: None, JobOptions(gold_every_s=float("inf")))
    watched = (f"-XX:DumpLoadedClassList={place / 'listed'}",)
    runner.run(Options(master="local[1]", state=place / "state", log=place / "java.log", jvm=watched), once=True)
    gateway: Any = SparkContext._gateway  # PySpark tells nobody else
    (place / "path").write_text(gateway.jvm.java.lang.System.getProperty("java.class.path"), "utf-8")
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(PATIENCE_S)


def _fill(lake: Layout) -> None:
    """A lake with one segment of samples."""
    open_lake(lake, "00" * 16, time.time_ns())
    rows = [samples.Row(n % len(SERIES), n, float(n), n if n % len(SERIES) == 0 else None) for n in range(ROWS)]
    body = samples.encode(samples.SampleBatch(AT_MS, SERIES, rows))
    at = AT_MS * 1_000_000
    record = StreamRecord(1, ORIGIN, ERA, 1, at, at + ROWS * 1_000_000, "weft.metric", body, {"n": ROWS})
    write_segment(lake, Place("samples", ORIGIN.hex(), 1, NO_PRIOR), iter([(1, record)]), LocalFiles())


def _run(words: Sequence[str]) -> None:
    """UserError `no-archive` with the last that a program said, if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().rpartition("\n")[2][:400]
        raise UserError("no-archive", f"what a start loads could not be noted or kept: {said}", REINSTALL)
