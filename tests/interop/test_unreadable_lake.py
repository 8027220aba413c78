"""Commands that meet a file of a lake that its disk cannot read any more say so, and which (FLT-019).

The kernel answers each read of that file with EIO, as of a bad disk, for all threads of the command.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.interop.programs import needed
from tests.patience import PATIENCE_S
from tests.pipeline.golden_lakes import LAKES, opened
from tests.pipeline.ground import DRAIN, MEM, taken
from tests.pipeline.plain import lake_of
from weft.lake.audit import audit
from weft.lake.layout import Layout
from weft.lake.segments import append_segment
from weft.pipeline.sql import Lake

pytestmark = pytest.mark.proves("FLT-019", part="commands name a file of a lake that cannot be read")
FAILS: Final = ("-e", "trace=read,pread64,readv,preadv", "-e", "inject=read,pread64,readv,preadv:error=EIO")
DRIVER_S: Final = 3 * PATIENCE_S  # three drivers on a busy machine, one of them traced
SUM: Final = "SELECT sum(value) FROM silver.samples"


@pytest.fixture
def lake(tmp_path: Path) -> Layout:
    return opened(next(path for path in LAKES if path.name.startswith("streamed")), tmp_path)


def said(lake: Layout, file: Path, *words: str) -> tuple[int, str]:
    """What a command says of a lake one of whose files cannot be read, and its exit status."""
    tracer = (needed("strace"), "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-P", str(file.resolve()), *FAILS)
    done = subprocess.run(
        [*tracer, sys.executable, "-m", "weft.cli.main", *words, "--lake", str(lake.root)],
        capture_output=True, text=True, timeout=DRIVER_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "status", "shown"),
    [
        (("lake", "check"), 2, "is not what its log says"),
        (("lake", "check", "--deep"), 2, "is unreadable: Input/output error"),
        (("sql", SUM), 74, "Input/output error"),
        (("sql", SUM, "--verify"), 1, "is unreadable: Input/output error"),
    ],
)
def test_a_file_of_a_table(lake: Layout, words: tuple[str, ...], status: int, shown: str) -> None:
    file = min((lake.root / "tables" / "silver" / "samples").rglob("*.parquet"))
    code, text = said(lake, file, *words)
    assert (status, True, True) == (code, file.name in text, shown in text), text


@pytest.mark.parametrize(("words", "status"), [(("lake", "check", "--deep"), 2), (("lake", "verify", "--deep"), 1)])
def test_a_segment(lake: Layout, words: tuple[str, ...], status: int) -> None:
    found = next(audit(lake, "samples"))
    code, text = said(lake, lake.parquet(found.stream, found.drain, found.number), *words)
    assert (status, True, True) == (code, "segment-unreadable" in text, "Input/output error" in text), text


@pytest.mark.proves("FLT-019", part="a driver names the table and the file that it cannot read")
@pytest.mark.parametrize("table", ["silver/series", "gold/completeness"])
def test_a_driver_names_the_table_and_its_file(tmp_path: Path, table: str) -> None:
    lake = lake_of(tmp_path / "lake")
    run = [sys.executable, "-m", "weft.cli.main", "lake", "run", "--once", "--lake", str(lake.root)]
    append_segment(lake, "samples", DRAIN, [(1, taken(10, [(MEM, 7, None)] * 3))])
    subprocess.run(run, check=True, capture_output=True, timeout=DRIVER_S)
    append_segment(lake, "samples", DRAIN, [(2, taken(20, [(MEM, 7, None)] * 3))])
    file = min((lake.root / "tables" / table).rglob("*.parquet"))
    code, text = said(lake, file, "lake", "run", "--once")
    sentence = f"{table.replace('/', '.')}: {file.relative_to(lake.root / 'tables' / table)} cannot be read: Input/output error"
    assert (1, True, True) == (code, sentence in text, "weft lake check --deep" in text), text


@pytest.mark.proves("FLT-019", part="a driver names a segment that it cannot read, and goes on when it can")
def test_a_driver_names_the_segment_takes_nothing_of_it_and_goes_on_when_the_disk_is_back(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake")
    for number in (1, 2):
        append_segment(lake, "samples", DRAIN, [(number, taken(10 * number, [(MEM, 7, None)] * 3))])
    file = lake.parquet("samples", DRAIN, 2)
    code, text = said(lake, file, "lake", "run", "--once")
    assert (2, True, True) == (code, file.name in text, "Input/output error" in text), (code, text)
    again = [sys.executable, "-m", "weft.cli.main", "lake", "run", "--once", "--lake", str(lake.root)]
    subprocess.run(again, check=True, capture_output=True, timeout=DRIVER_S)
    with Lake(lake.root) as asked:
        assert [{"n": 6, "total": 42.0}] == asked.query(
            "SELECT count(*) AS n, sum(value) AS total FROM silver.samples"
        ).to_pylist()
