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
from weft.lake.audit import audit
from weft.lake.layout import Layout

pytestmark = pytest.mark.proves("FLT-019", part="commands name a file of a lake that cannot be read")
FAILS: Final = ("-e", "trace=read,pread64,readv,preadv", "-e", "inject=read,pread64,readv,preadv:error=EIO")
SUM: Final = "SELECT sum(value) FROM silver.samples"


@pytest.fixture
def lake(tmp_path: Path) -> Layout:
    return opened(next(path for path in LAKES if path.name.startswith("streamed")), tmp_path)


def said(lake: Layout, file: Path, *words: str) -> tuple[int, str]:
    """What a command says of a lake one of whose files cannot be read, and its exit status."""
    tracer = (needed("strace"), "-f", "-qq", "-o", "/dev/null", "-P", str(file.resolve()), *FAILS)
    done = subprocess.run(
        [*tracer, sys.executable, "-m", "weft.cli.main", *words, "--lake", str(lake.root)],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
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
