"""`weft lake import`: reads sample logs of other systems into the lake."""

import sys
import time
from collections.abc import Callable
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Annotated, Final, Literal
from uuid import uuid4

import msgspec
from cyclopts import Parameter

from weft.base.errors import UserError
from weft.cli.home import home_of
from weft.cli.kit.exits import DONE, NOT_SO
from weft.cli.kit.options import Flag
from weft.cli.kit.text import bare, clean
from weft.lake.importing.delimited import ROLES, Reading
from weft.lake.importing.importer import Report
from weft.lake.importing.limits import FUTURE_NS
from weft.lake.importing.numbers import instant_ns
from weft.lake.layout import Layout, is_name

Format = Literal["auto", "dcamp", "csv", "openmetrics"]
EVERY_S: Final = 0.2


def import_logs(
    *files: Path,
    dataset: str,
    lake: Annotated[Path | None, Parameter(name="--lake")] = None,
    format: Format = "auto",  # noqa: A002  # the name of the option
    tz: str = "UTC",
    map: str = "",  # noqa: A002  # same
    wide: str = "",
    at: str = "",
    json: Flag = False,
) -> int:
    """Read sample logs of other systems into the lake: `weft lake import old/*.dcamp-data --dataset attic`.

    Files may be compressed (gzip, zstd). Lines that were imported before are skipped, so a file that has grown can be
    imported again. Unreadable lines go into quarantine, with the reason. Exit status 1 if a compressed file is damaged.

    Args:
        files: one or more logs; their order decides which of two equal samples counts.
        dataset: the name of the dataset; the same for all files about the same sources.
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake. A new one is made.
        format: dcamp (`.dcamp-data`), csv, openmetrics (also Prometheus' text), or auto, by the first line.
        tz: for CSV: the time zone of times without one.
        map: for CSV: the meaning of columns: `at=time,value=temp,source=host`; also base, config-name, detail, type, param.
        wide: for CSV with one column per series: the name of the column with the time.
        at: for OpenMetrics: the time of lines without one.
        json: one line of JSON instead of a table.
    """
    from weft.lake.importing.running import Wish, import_files
    from weft.lake.segments import open_lake

    if not is_name(dataset):
        raise UserError("bad-name", f"{dataset!r} is no name of a dataset", "letters, digits, '.', '_' and '-'")
    if (missing := next((path for path in files if not path.is_file()), None)) or not files:
        what = f"there is no file {missing}" if missing else "no file was named"
        raise UserError("no-file", what, "weft lake import FILES… --dataset NAME")
    now_ns = time.time_ns()
    layout = Layout(home_of(lake))
    wish = Wish(dataset, format, reading(now_ns, tz, map, wide, at))
    open_lake(layout, uuid4().hex, now_ns)
    reports = import_files(layout, files, wish, now_ns, _progress(quiet=json))
    if json:
        sys.stdout.write(msgspec.json.encode(reports).decode() + "\n")
    else:
        show(reports)
    return NOT_SO if any(report.fault for report in reports) else DONE


def reading(now_ns: int, tz: str, named: str, wide: str, at: str) -> Reading:
    """The options in the form that the parsers need. UserError for one that has no meaning."""
    zone = _zone(tz)
    roles = dict(_pair(text) for text in named.split(",") if text)
    if unknown := next((role for role in roles if role not in ROLES), None):
        raise UserError("bad-map", f"a column cannot be {unknown!r}", ", ".join(ROLES))
    at_ns = instant_ns(at, zone) if at else None
    if at and at_ns is None:
        raise UserError("bad-time", f"{at!r} is no time", "2026-11-21T01:43:10Z, or seconds since 1970")
    return Reading(zone, now_ns + FUTURE_NS, roles, wide, at_ns)


def show(reports: list[Report]) -> None:
    """Print one line for each file, then what could not be read in it."""
    for report in reports:
        print(
            f"{clean(report.file)}: {report.format or 'empty'}, {report.lines:,} lines, {report.samples:,} samples new, "
            f"{report.held:,} held already, {report.changed:,} changed"
        )
        for what, counts in (("to quarantine", report.refused), ("no samples", report.passed)):
            if counts:
                print(f"  {what}: " + ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items())))
        if report.fault:
            print(f"  cannot be read to its end: {clean(report.fault)}")


def _pair(text: str) -> tuple[str, str]:
    role, equals, name = text.partition("=")
    if not equals or not name:
        raise UserError("bad-map", f"{text!r} maps nothing", "--map at=time,value=temp")
    return role.strip(), name.strip()


def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        raise UserError("no-zone", f"there is no time zone {name!r}", "--tz Europe/Berlin") from None


class _Progress:
    """Shows the progress of a long import on one line of a terminal."""

    def __init__(self) -> None:
        self.shown_at = 0.0

    def __call__(self, report: Report) -> None:
        now = time.monotonic()
        if now - self.shown_at >= EVERY_S:
            self.shown_at = now
            bare(sys.stderr).write(f"\r\x1b[K{clean(Path(report.file).name)}: {report.lines:,} lines\r")
            sys.stderr.flush()


def _progress(*, quiet: bool) -> Callable[[Report], None]:
    return (lambda _: None) if quiet or not sys.stderr.isatty() else _Progress()
