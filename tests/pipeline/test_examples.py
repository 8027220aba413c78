"""examples/ runs as it stands there (PIP-093), and docs/lake.md is typed as it stands there."""

import ast
import json
import re
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from pyspark import pipelines

from tests.cli.test_config_show import run
from tests.pages import consoles
from tests.pipeline.conftest import Filled
from weft.pipeline import settings
from weft.pipeline.sql import Lake

pytestmark = pytest.mark.prove("notebooks from top to bottom")

HERE = Path(__file__).parents[2]
EXAMPLES = HERE / "examples"
PAGE = (HERE / "docs" / "lake.md").read_text("utf-8")
CELL = "# %%"
PROSE = "# %% [markdown]"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


# The notebook and its script.


def cells_of(script: str) -> Iterator[dict[str, Any]]:
    """The cells of a notebook, as its script has them."""
    for number, part in enumerate(re.split(rf"(?m)^(?={re.escape(CELL)})", script)[1:]):
        head, _, body = part.partition("\n")
        lines = body.strip("\n").split("\n")
        if head == PROSE:
            lines = [line.removeprefix("#").removeprefix(" ") for line in lines]
        source = [line + "\n" for line in lines[:-1]] + lines[-1:]
        kind = "markdown" if head == PROSE else "code"
        more: dict[str, Any] = {} if head == PROSE else {"execution_count": None, "outputs": []}
        yield {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": source} | more


def notebook_of(script: str) -> str:
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"cells": list(cells_of(script)), "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.generates
def test_the_notebook_has_the_cells_of_its_script(committed: Callable[[Path, str], None]) -> None:
    script = (EXAMPLES / "lake.py").read_text("utf-8")
    committed(EXAMPLES / "lake.ipynb", notebook_of(script))
    kinds = [cell["cell_type"] for cell in cells_of(script)]
    assert kinds.count("markdown") > 5
    assert kinds.count("code") > 8
    for cell in cells_of(script):
        if cell["cell_type"] == "code":
            ast.parse("".join(cell["source"]))


def test_the_script_of_the_notebook_runs_from_top_to_bottom(
    filled: Filled, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WEFT_LAKE", str(filled.ground.lake.root))
    known = runpy.run_path(str(EXAMPLES / "lake.py"))
    assert known["spark"] is filled.ground.spark
    assert 0 < known["fleet"].num_rows <= known["latest"].num_rows
    assert (known["minutes"].n > 0).all()
    assert 0 < known["before"][0]["n"] < known["after"][0]["n"]
    assert all(0 < then < now for then, now in known["rows"].values())
    assert "avg(result)" in capsys.readouterr().out


def test_the_declarative_project_names_what_is_there(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    project = EXAMPLES / "declarative"
    told = yaml.safe_load((project / "spark-pipeline.yml").read_text("utf-8"))
    (library,) = told["libraries"]
    (file,) = [path for path in project.glob(library["glob"]["include"] + "/*") if path.suffix == ".py"]
    made: dict[str, Callable[[], Any]] = {}
    monkeypatch.setattr(pipelines, "materialized_view", lambda made_by: made.setdefault(made_by.__name__, made_by))
    monkeypatch.setenv("WEFT_LAKE", str(filled.ground.lake.root))
    runpy.run_path(str(file))
    assert ["named_hours", "busiest"] == list(made)
    made["named_hours"]().createOrReplaceTempView("named_hours")
    assert made["busiest"]().count() > 0


def test_the_reader_for_sessions_with_jars_can_be_read() -> None:
    text = (EXAMPLES / "delta_spark.py").read_text("utf-8")
    assert ast.get_docstring(ast.parse(text))


# The guide.

STARTS: Final = {
    "pip install 'weft[lake]'": "interop/test_wheel_pythons.py",
    "weft up --name root --level root --lake ./lake &    # or weft demo, whose lake is in ./var/demo-…/lake": "interop/test_pages.py",
    "weft lake run --lake ./lake": "test_job_process.py",
}
"""What begins on the page, and where a test begins it."""
LINES: Final = [typed.command for console in consoles("lake.md") for typed in console if typed.command not in STARTS]
QUESTIONS: Final = [
    typed.command for console in consoles("lake-operation.md") for typed in console if "weft sql" in typed.command
]


@pytest.fixture
def folder(filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which ./lake is the filled one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").symlink_to(filled.ground.lake.root)
    return tmp_path


@pytest.mark.parametrize("question", blocks("sql"))
def test_a_question_of_the_guide_has_an_answer(filled: Filled, question: str) -> None:
    with Lake(filled.ground.lake.root) as asked:
        assert asked.query(question).num_columns


@pytest.mark.usefixtures("folder")
def test_the_code_of_the_guide_runs() -> None:
    known: dict[str, Any] = {}
    for text in blocks("python"):
        exec(text, known)  # the page's own words
    assert known["completeness"].num_rows > 0


def test_the_settings_of_the_guide_are_all_that_there_are(filled: Filled, tmp_path: Path) -> None:
    (text,) = blocks("toml")
    (tmp_path / "lake.toml").write_text(text, "utf-8")
    found = settings.settings_of(filled.ground.lake, tmp_path / "lake.toml")
    assert found.rule
    for part in (found, found.keep, found.rule[0], found.mute[0]):
        for field in part.__struct_fields__:
            assert re.search(rf"\b{field}\b", text), field


@pytest.mark.proves("WEL-002", part="the pages of the lake and of running one: what they ask is answered")
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("line", [*LINES, *QUESTIONS])
def test_what_is_typed_of_the_guide_works(line: str) -> None:
    ended = run(line.partition("  #")[0].replace("--as-of 7", "--as-of 2"))  # it has three versions
    assert (1 if line == "weft lake missing" else 0) == (ended or 0), "of that lake some numbers are missing"


@pytest.mark.parametrize("line", STARTS)
def test_what_others_type_of_the_guide_is_there(line: str) -> None:
    assert f"$ {line}\n" in PAGE


@pytest.mark.usefixtures("folder")
def test_the_views_of_the_guide_have_the_columns_that_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    (typed,) = (
        typed for console in consoles("lake.md") for typed in console if typed.shown and "recent" in typed.command
    )
    run(typed.command)
    assert typed.shown[0].split() == capsys.readouterr().out.splitlines()[0].split()
