"""Checks one by one what the jobs of a lake need (PIP-084).

Each finding says what was found and, if something is wrong, the command that mends it. Checks that need no Java come
first; Spark is only tried if all of them have passed.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.base.errors import UserError
from weft.lake.layout import Layout
from weft.pipeline.java import Version, parse_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FINE, WARNING, BROKEN = "ok", "warn", "fail"
PACKAGES: Final[dict[str, tuple[Version, Version | None]]] = {
    "pyspark": ((4, 2), (4, 4)),
    "pyarrow": ((18,), None),
    "pandas": ((2, 2), (3,)),
    "deltalake": ((1, 6), (2,)),
    "duckdb": ((1, 4), (3,)),
}
"""The packages of the extra `lake`: the lowest version that works, and the first one that is too new."""
INSTALL: Final = "pip install 'weft[lake]'"
ROWS: Final = 1000  # of the table that is written as a test
FREE_WARN: Final = 2 << 30  # bytes
FREE_MIN: Final = 256 << 20  # bytes
AHEAD_S: Final = 5.0  # tolerance: a file's date may come from the clock of another machine
OLDEST_S: Final = 1_750_000_000  # mid 2025: a clock before the program was written is wrong


class Finding(NamedTuple):
    """The result of one check."""

    what: str
    state: str
    """`ok`, `warn` or `fail`."""
    text: str
    mend: str = ""
    """The command that mends it; empty if none is needed."""


class Doctor:
    """Checks this machine, and a lake if one is named."""

    def __init__(self, state: Path, lake: Layout | None = None) -> None:
        self.state, self.lake = state, lake

    def findings(self, *, with_spark: bool) -> Iterator[Finding]:
        """All findings, one by one. Writes only below the state directory, and deletes that again."""
        place = self.lake or Layout(self.state)
        checks: list[Callable[[], Finding]] = [partial(package, name) for name in PACKAGES]
        checks += [partial(java, self.state), partial(space, place), partial(clock, place)]
        if self.lake is not None:
            checks += [partial(there, place), partial(lease, place), partial(settings, place)]
        is_sound = True
        for check in checks:
            found = check()
            is_sound &= found.state != BROKEN
            yield found
        if with_spark and is_sound:
            yield from spark(self.state)


def package(name: str) -> Finding:
    """Whether a package of the extra `lake` is installed in a version that Weft can use."""
    try:
        found = version(name)
    except PackageNotFoundError:
        return Finding(name, BROKEN, "is not installed", INSTALL)
    least, below = PACKAGES[name]
    if parse_version(found) >= least and (below is None or parse_version(found) < below):
        return Finding(name, FINE, found)
    wanted = f"from {_dotted(least)}" + (f", below {_dotted(below)}" if below else "")
    return Finding(name, BROKEN, f"{found} is installed; wanted: {wanted}", INSTALL)


def java(state: Path) -> Finding:
    """Which Java runs Spark, by which rule it was chosen, and which ones were rejected."""
    from weft.pipeline.java import choose

    try:
        found = choose(state)
    except UserError as error:
        return Finding("java", BROKEN, error.text, error.try_this)
    passed = f"; {'; '.join(found.passed_over)}" if found.passed_over else ""
    return Finding("java", FINE, f"{found.version} at {found.home}, by {found.rule}{passed}")


def space(place: Layout) -> Finding:
    """Whether there is enough free space where the tables grow."""
    there = _existing(place.root)
    free = shutil.disk_usage(there).free
    text = f"{free / (1 << 30):.1f} GiB free at {there}"
    mend = "weft lake vacuum; or a lake on a larger disk"
    if not os.access(there, os.W_OK):
        return Finding("space", BROKEN, f"{there} cannot be written", f"chmod u+rwx {there}")
    state = FINE if free >= FREE_WARN else WARNING if free >= FREE_MIN else BROKEN
    return Finding("space", state, text, "" if state == FINE else mend)


def clock(place: Layout, now: Callable[[], float] = time.time) -> Finding:
    """Whether this machine's clock is plausible: not years off, and not behind what the lake already contains."""
    mend = "timedatectl set-ntp true"
    wall = now()
    if wall < OLDEST_S:
        return Finding("clock", BROKEN, f"it says {time.strftime('%Y-%m-%d %H:%M', time.gmtime(wall))} UTC", mend)
    latest = max((file.stat().st_mtime for file in place.consumers().glob("*.json")), default=0.0)
    if latest > wall + AHEAD_S:
        return Finding(
            "clock", WARNING, f"it is {latest - wall:.0f} s behind the newest file of the lake's consumers", mend
        )
    return Finding("clock", FINE, time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(wall)))


def there(place: Layout) -> Finding:
    """Whether anything has been drained into the lake yet."""
    if place.lake_json.exists() or (place.root / "drain").is_dir():
        return Finding("lake", FINE, str(place.root))
    mend = "weft up with a root that drains into it; or --lake DIR, another one"
    return Finding("lake", WARNING, f"{place.root} is not a lake yet", mend)


def lease(place: Layout) -> Finding:
    """Who holds the lease of the lake, if anybody."""
    from weft.pipeline.lease import held

    held_by = held(place, "samples")
    if held_by is None:
        return Finding("lease", FINE, "free: nobody drives this lake")
    return Finding("lease", FINE, held_by)


def settings(place: Layout) -> Finding:
    """Whether `lake.toml` can be read and its values are allowed."""
    from weft.pipeline.session import Options, settings_of
    from weft.pipeline.settings import settings_of as lake_settings

    try:
        settings_of(Options(settings=lake_settings(place).spark_texts))
    except UserError as error:
        return Finding("settings", BROKEN, error.text, error.try_this)
    return Finding("settings", FINE, "as usual" if not (place.root / "lake.toml").exists() else "lake.toml is in order")


def spark(state: Path) -> Iterator[Finding]:
    """Start Spark, let it find the source `weft`, write rows and commit them."""
    from weft.pipeline.session import Options, session

    began = time.monotonic()
    place = state / "doctor"
    shutil.rmtree(place, ignore_errors=True)
    try:
        running = session(Options(master="local[1]", state=state, log=state / "doctor.log"))
        yield Finding("spark", FINE, f"{running.version} started in {time.monotonic() - began:.1f} s")
        yield _guarded("source", partial(source, running, place))
        yield _guarded("commit", partial(commit, running, place))
        running.stop()
    except UserError as error:
        yield Finding("spark", BROKEN, error.text, "weft doctor --no-spark, and mend what that finds")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def source(running: "SparkSession", place: Path) -> Finding:
    """Whether Spark finds the source `weft`, and reads an empty lake with it."""
    from weft.lake.segments import open_lake

    open_lake(Layout(place), "00" * 16, time.time_ns())
    rows = running.read.format("weft").option("lake", str(place)).option("stream", "samples").load().count()
    assert rows == 0
    return Finding("source", FINE, "Spark finds `weft` by itself")


def commit(running: "SparkSession", place: Path) -> Finding:
    """Write a table of 1,000 rows with Spark, commit it, and read it back without Spark."""
    from deltalake import DeltaTable

    from weft.pipeline.delta import Tables
    from weft.pipeline.tables import PROGRESS
    from weft.pipeline.writer import Writer

    began = time.monotonic()
    lake = Layout(place)
    tables = Tables(lake, running, Writer("doctor", "00" * 16, 1))
    empty = {column.name: f"cast(null as {column.type}) as {column.name}" for column in PROGRESS.schema.columns}
    numbered = empty | {"job": "'doctor' as job", "batch": "id as batch"}
    files = tables.write(PROGRESS, running.range(ROWS).selectExpr(*numbered.values()), 0)
    tables.commit(PROGRESS, 0, files, {})
    held = DeltaTable(lake.table(PROGRESS.layer, PROGRESS.name)).to_pyarrow_table().num_rows
    if held != ROWS:
        return Finding("commit", BROKEN, f"{ROWS:,} rows were written and {held:,} read back", INSTALL)
    return Finding(
        "commit", FINE, f"{ROWS:,} rows written, committed and read back in {time.monotonic() - began:.1f} s"
    )


def _guarded(what: str, check: Callable[[], Finding]) -> Finding:
    """The finding of a check; an exception of Spark or the disk becomes a finding too."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001  # the check exists to find such errors
        why = str(error).partition("\n")[0][:400]
        return Finding(what, BROKEN, f"{type(error).__name__}: {why}", f"{INSTALL} --force-reinstall")


def _existing(path: Path) -> Path:
    """The path, or its nearest existing parent directory."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path


def _dotted(numbers: Version) -> str:
    return ".".join(map(str, numbers))
