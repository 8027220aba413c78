"""Imports files one after the other: chooses the format of each, and allows one import of a dataset at a time."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Final, NamedTuple

from weft.base.errors import UserError
from weft.lake.files import LocalFiles
from weft.lake.importing.dcamp import DcampParser
from weft.lake.importing.delimited import CsvParser, Reading
from weft.lake.importing.found import Parser
from weft.lake.importing.identity import drain_of
from weft.lake.importing.importer import FileImport, Report, Sink
from weft.lake.importing.lines import Block, base_name, blocks, opened
from weft.lake.importing.openmetrics import OpenMetricsParser
from weft.lake.layout import Layout

FORMATS: Final[dict[str, Callable[[Reading], Parser]]] = {
    "dcamp": lambda reading: DcampParser(reading.latest_ns),
    "csv": CsvParser,
    "openmetrics": OpenMetricsParser,
}
_SNIFFED: Final = (
    ("dcamp", re.compile(rb"\s*[0-9]+ +[^ =,]+=|type=HUGZ")),
    ("openmetrics", re.compile(rb"# (TYPE|HELP|UNIT|EOF)\b|[a-zA-Z_:][\w:]*(\{[^,]*=\".*\})?[ \t]+[-+.0-9]")),
)


class Wish(NamedTuple):
    """What to import, and how to parse it."""

    dataset: str
    format: str
    reading: Reading


def import_files(
    lake: Layout,
    paths: Sequence[Path],
    wish: Wish,
    now_ns: int,
    on_report: Callable[[Report], None] = lambda _: None,
    files: LocalFiles | None = None,
) -> list[Report]:  # tidy: what, how, when, and a callback for progress, which is also the seam for tests
    """Import files; returns the outcome for each, in order. `on_report` is called with it after every block.

    Raises OSError and UserError, of which `lease-held` means that another process imports the same dataset now: a drain
    may have one writer only.
    """
    with alone(lake, drain_of(wish.dataset)):
        sink = Sink(lake, wish.dataset, now_ns, files)
        try:
            reports = [_import_file(sink, path, wish, on_report) for path in paths]
        except UserError:
            sink.cut()  # rows that were read so far stay
            raise
        sink.cut()
        return reports


def _import_file(sink: Sink, path: Path, wish: Wish, on_report: Callable[[Report], None]) -> Report:
    report = Report(file=str(path))
    work = FileImport(sink, base_name(path), report)
    try:
        for block in _blocks_of(path):
            report.fault = block.fault
            if block.lines:
                work.parser = work.parser or _parser(block, wish, report)
                work.take(block)
                on_report(report)
    except BaseException:
        work.discard()
        raise
    work.finish()
    if isinstance(work.parser, OpenMetricsParser) and work.parser.exemplars:
        report.passed["exemplars"] = work.parser.exemplars
    return report


def _blocks_of(path: Path) -> Iterator[Block]:
    with opened(path) as read:
        yield from blocks(read)


def _parser(block: Block, wish: Wish, report: Report) -> Parser:
    report.format = wish.format if wish.format in FORMATS else sniffed(block)
    return FORMATS[report.format](wish.reading)


def sniffed(block: Block) -> str:
    """The format of a file, judged by its first non-blank line: dCAMP, OpenMetrics, otherwise a table."""
    line = next((line for line in block.lines if line.strip()), b"")[:4096]
    return next((name for name, pattern in _SNIFFED if pattern.match(line)), "csv")


@contextmanager
def alone(lake: Layout, drain: str) -> Iterator[None]:
    """Hold the lock of a dataset: one import at a time. UserError `lease-held`."""
    home = lake.imports(drain)
    LocalFiles().make_directories(home)
    with (home / "lock").open("wb") as file:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise UserError(
                "lease-held", "another import of this dataset is running", "wait until it has ended"
            ) from None
        yield
