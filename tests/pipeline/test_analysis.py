"""docs/analysis.md is typed as it stands there: every question is asked of a lake, and its settings are read."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Filled
from weft.pipeline import settings
from weft.pipeline.sql import Lake
from weft.pipeline.tables import ROLLUP_1H

pytestmark = pytest.mark.prove("a filled lake, asked in every way")

PAGE = Path(__file__).parents[2] / "docs" / "analysis.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("question", blocks("sql"))
def test_a_question_of_the_page_has_an_answer(filled: Filled, question: str) -> None:
    with Lake(filled.ground.lake.root) as lake:
        answer = lake.query(question)
    if "rollup" in question:
        assert answer.num_rows
        assert any(row["p99"] is not None for row in answer.to_pylist())
    assert answer.num_columns


def test_the_settings_of_the_page_are_read(filled: Filled, tmp_path: Path) -> None:
    (text,) = blocks("toml")
    (tmp_path / "lake.toml").write_text(text, "utf-8")
    mutes = settings.settings_of(filled.ground.lake, tmp_path / "lake.toml").mute
    assert [("net", {"device": "lo"}, "", ""), ("", {}, "flat", "bench-3")] == [
        (mute.config_name, mute.labels, mute.kind, mute.node) for mute in mutes
    ]


def test_the_code_of_the_page_runs(filled: Filled) -> None:
    (text,) = blocks("python")
    *before, last = text.strip().splitlines()
    known: dict[str, Any] = {"rollups": filled.ground.job.tables.read(ROLLUP_1H)}
    exec("\n".join([*before, f"found = {last}"]), known)  # the page's own words
    assert any(row["p99"] is not None for row in known["found"].collect())
