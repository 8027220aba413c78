"""Every table of a lake, opened by readers that know nothing of Weft, in an environment of their own (12.6)."""

import json
import shutil
import signal
import subprocess
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tests.interop.programs import needed
from tests.pipeline.conftest import Filled, filled, spark
from weft.lake.layout import Layout
from weft.pipeline import arrow
from weft.pipeline.tables import ALL, LATEST, Table, there
from weft.pipeline.upkeep import compact
from weft.pipeline.upkeep.log import exchange, live_files, opened
from weft.pipeline.views.folded import WIDTHS

__all__ = ["filled", "spark"]  # fixtures of tests/pipeline, made here once more

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / "var" / "peers" / "readers" / "bin" / "python"
EPOCH = 9
"""Of a lease after those that wrote the lake."""
FOLDED = {LATEST.full_name, *(table.full_name for table in WIDTHS)}
"""Of these the files hold what was folded last; what Weft says goes on to the last batch."""
ADOPTED = "bronze."
"""Where files may be segments as a drain wrote them; their batch stands in their names, and readers of others find null."""


def read(words: list[str], tries: int = 3) -> "subprocess.CompletedProcess[str]":
    """What a reader says; deltalake aborts now and then, and says nothing: whoever reads tries again."""
    done = subprocess.run(words, capture_output=True, check=False, text=True)
    if done.returncode == -signal.SIGABRT and tries > 1:
        return read(words, tries - 1)
    assert 0 == done.returncode, done.stderr
    return done


@pytest.fixture(scope="module", params=["as batches wrote it", "joined"])
def lake(request: pytest.FixtureRequest, filled: Filled, tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """A lake with rows in all its tables; and a copy of it whose files were joined."""
    if request.param != "joined":
        return filled.ground.lake
    copy = Layout(shutil.copytree(filled.ground.lake.root, tmp_path_factory.mktemp("joined") / "lake"))
    for table in filter(compact.is_joined, there(copy)):
        join(copy, table)
    return copy


def join(lake: Layout, table: Table) -> None:
    """Each day of a table as one file, also those that a driver would leave alone."""
    delta = opened(lake, table)
    assert delta is not None
    files = sorted(live_files(delta, table), key=lambda file: file.partition or "")
    for _, together in groupby(files, lambda file: file.partition):
        exchange(lake, compact.joined(lake, compact.Bundle(table, tuple(together))), EPOCH)


@pytest.mark.proves("LAK-032")
@pytest.mark.parametrize("reader", ["deltalake", "pandas", "polars"])
def test_a_reader_sees_the_columns_the_rows_and_the_sums_that_we_see(lake: Layout, reader: str) -> None:
    words = [needed(str(PYTHON)), str(HERE / "lake" / "read.py"), reader, str(lake.root)]
    told = read(words).stdout.splitlines()
    seen: dict[str, Any] = {entry["table"]: entry for entry in map(json.loads, told)}
    assert len(seen) > 30
    for name, entry in seen.items():
        if name in FOLDED:
            continue
        ours = arrow(lake.root, name)
        assert sorted(ours.column_names) == entry["columns"], name
        assert ours.num_rows == entry["rows"], name
        whole = [field.name for field in ours.schema if str(field.type) == "int64"]
        sums = {
            column: sum(value for value in ours.column(column).to_pylist() if value is not None) for column in whole
        }
        if name.startswith(ADOPTED):
            assert sums.pop("batch") >= entry["sums"].pop("batch"), name
        assert sums == entry["sums"], name
    assert ALL.keys() >= seen.keys()
