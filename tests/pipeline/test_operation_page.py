"""docs/lake-operation.md: its commands exist with their options, its files can be read, its names are those of the code."""

import re
import shlex
from pathlib import Path

import pytest

from weft.cli.nouns import app
from weft.lake.layout import Layout
from weft.node.settings import read_document, settings_of
from weft.pipeline import eventlog
from weft.pipeline import settings as pipeline
from weft.pipeline.metrics import Meter
from weft.pipeline.rules import rules_of

PAGE = (Path(__file__).parents[2] / "docs" / "lake-operation.md").read_text("utf-8")
COMMANDS = re.findall(r"^\$ weft (.+)$", PAGE, re.MULTILINE)
FILES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_can_be_typed(command: str) -> None:
    _, bound, _ = app.parse_args(shlex.split(command), exit_on_error=False, print_error=False)
    assert bound is not None


def test_an_option_that_is_none_would_be_found() -> None:
    with pytest.raises(Exception, match="--nope"):
        app.parse_args(["lake", "run", "--nope"], exit_on_error=False, print_error=False)


def test_its_files_can_be_read(tmp_path: Path) -> None:
    of_lake, of_node, of_bucket = FILES
    (tmp_path / "lake.toml").write_text(of_lake, "utf-8")
    told = pipeline.settings_of(Layout(tmp_path))
    assert ["hot", "debug", "idle"] == [rule.name for rule in rules_of(told).user]
    assert 30 == told.keep.bronze
    node = settings_of(read_document(f'[node]\nname = "r"\nlevel = "root"\n{of_node}', "the page"))
    assert ("segment", ("/app/*/password", "/keys/**")) == (node.lake.safe, node.lake.secrets)
    far = settings_of(read_document(f'[node]\nname = "r"\nlevel = "root"\n{of_bucket}', "the page"))
    assert "s3://fleet/lake" == far.lake.path


def test_it_names_every_event_and_every_metric(tmp_path: Path) -> None:
    assert set() == {name for name in eventlog.NAMES if f"`{name}`" not in PAGE}
    families = {line.split()[2] for line in Meter(Layout(tmp_path)).text().splitlines() if line.startswith("# TYPE")}
    assert "weft_lake_rows" in families
    assert set() == {name for name in families if f"`{name}" not in PAGE}
