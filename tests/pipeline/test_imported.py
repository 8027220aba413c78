"""Imported logs in the tables: each sample once, values in the order of time, whatever file told of it when (PIP-095..099)."""

import math
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

from tests.pipeline.ground import DRAIN, NET, NOW_NS, T0_MS, A, Ground, taken
from tests.pipeline.oracle_imported import Expected, Told, expected
from weft.base.chance import Chance
from weft.cli.lake import app
from weft.cli.sql import sql
from weft.lake.importing.delimited import Reading
from weft.lake.importing.identity import drain_of, era_of, origin_of
from weft.lake.importing.running import Wish, import_files
from weft.pipeline.check import Check
from weft.pipeline.datasets import proven
from weft.pipeline.fold import Recomputed
from weft.pipeline.foreign import Foreign
from weft.pipeline.rewriting import UNCHANGED
from weft.pipeline.sql import Lake
from weft.pipeline.tables import ROLLUP_1D, ROLLUP_1H, ROLLUP_1M
from weft.pipeline.transforms import imported

pytestmark = pytest.mark.prove("whole batches in Spark")

PAGE = Path(__file__).parents[2] / "docs" / "import.md"
WISH = Wish("attic", "dcamp", Reading(UTC, NOW_NS))
HOST = "localhost:55900"
KINDS = {"proc": "percent", "net": "rate", "mem": "basic"}
NO_BASE = ("net", "mem")
MINUTES = {ROLLUP_1M: 1, ROLLUP_1H: 60, ROLLUP_1D: 1440}


class Line(NamedTuple):
    """A line of a log."""

    at: int
    value: int
    base: int | None = None
    name: str = "proc"
    source: str = HOST

    def text(self) -> str:
        base = "None" if self.base is None else f"{self.base}.00"
        return (
            f"{self.at} source={self.source} value={self.value}.00 base={base} detail=CPU config-name={self.name} "
            f"config-seqid=4 type={KINDS[self.name]}\n"
        )


FIRST, SECOND = Line(1795226590369, 95133, 217439), Line(1795226591000, 95253, 217563)
LEAF = (FIRST, SECOND, SECOND, Line(1795226592001, 95432, 217762))


def log(home: Path, name: str, lines: Sequence[Line]) -> Path:
    (home / name).write_text("".join(line.text() for line in lines), "utf-8")
    return home / name


def bring(ground: Ground, *paths: Path) -> None:
    import_files(ground.lake, paths, WISH, NOW_NS)


def told(path: str, lines: Sequence[Line]) -> list[Told]:
    """The lines of a file as the oracle is told of them."""
    era, numbers, found = era_of(path, lines[0].text().rstrip().encode()), dict[str, int](), []
    for line in lines:
        numbers[line.source] = number = numbers.get(line.source, 0) + 1
        origin = origin_of(WISH.dataset, line.source)
        found.append(Told((origin, era, number), line.name, KINDS[line.name], line.at, line.value, line.base))
    return found


def compare(ground: Ground, wanted: Expected) -> None:
    """Every table against the oracle; the gold tables must have been folded."""
    rows = ground.rows("silver.samples")
    assert wanted.silver == {ident(row): "ambiguous" in row["flags"] for row in rows}
    assert {"attic"} == {row["dataset"] for row in rows}
    twins = ground.rows("meta.twins")
    assert wanted.twins == {ident(row): (row["origin"], row["of_era"], row["of_sequence"]) for row in twins}
    values = ground.rows("silver.values")
    assert len(values) == len(wanted.values)
    assert wanted.values == {ident(row): (before(row), row["result"], row["reason"]) for row in values}
    compare_windows(ground, wanted)
    verdict = Check(ground.lake).run()
    assert ("equal", []) == (verdict.state, verdict.differences)


def compare_windows(ground: Ground, wanted: Expected) -> None:
    for table in (ROLLUP_1M, ROLLUP_1H, ROLLUP_1D):
        assert windows(wanted, MINUTES[table]) == shown(ground, ground.rows(table.full_name))
    compare_answers(ground, wanted)


def compare_answers(ground: Ground, wanted: Expected) -> None:
    """What `weft sql` says, which needs no fold."""
    with Lake(ground.lake.root) as lake:
        for table in (ROLLUP_1M, ROLLUP_1H, ROLLUP_1D):
            rows = lake.query(f"SELECT * FROM {table.full_name}").to_pylist()
            assert windows(wanted, MINUTES[table]) == shown(ground, rows)
        rows = lake.query("SELECT origin, series, result_at, result_sequence, result FROM gold.latest").to_pylist()
    values = ground.rows("silver.values", order=("at", "era", "sequence"))
    newest = {(row["origin"], row["series"]): row for row in values if row["result"] is not None}
    assert {key: (row["at"], row["sequence"], row["result"]) for key, row in newest.items()} == {
        (row["origin"], row["series"]): (row["result_at"], row["result_sequence"], row["result"])
        for row in rows
        if row["result_at"] is not None
    }


def windows(wanted: Expected, minutes: int) -> dict[Any, Any]:
    """The oracle's, joined to windows of so many minutes."""
    merged: dict[Any, list[Any]] = {}
    for (origin, name, minute), results in wanted.windows.items():
        merged.setdefault((origin, name, minute // minutes * minutes), []).extend(results)
    return {key: window(results) for key, results in merged.items()}


def shown(ground: Ground, rows: list[dict[str, Any]]) -> dict[Any, Any]:
    names = {row["series"]: row["config_name"] for row in ground.rows("silver.series", order=())}
    found = {
        (origin_of(WISH.dataset, row["node"]), names[row["series"]], round(row["window_start"].timestamp()) // 60): (
            row["n"], pytest.approx(row["sum"] or 0.0, rel=1e-9), row["min"], row["max"], row["resets"],
        )
        for row in rows
    }  # fmt: skip
    assert len(found) == len(rows)
    return found


def window(results: list[tuple[float | None, str | None]]) -> tuple[Any, ...]:
    good = [result for result, _ in results if result is not None]
    resets = sum(reason in ("reset", "base-reset") for _, reason in results)
    return len(good), math.fsum(good), min(good, default=None), max(good, default=None), resets


def ident(row: dict[str, Any]) -> tuple[str, int, int]:
    return row["origin"], row["era"], row["sequence"]


def before(row: dict[str, Any]) -> tuple[str, int, int] | None:
    return None if row["from_sequence"] is None else (row["origin"], row["from_era"], row["from_sequence"])


def world(chance: Chance, files: int = 4) -> list[tuple[str, list[Line]]]:
    """Logs that tell of the same samples, each of some, some twice, in any order; a few of them disagree."""
    samples = []
    for source in (HOST, "other:1"):
        for name in KINDS:
            for step in range(10):
                at = T0_MS + step * 20_000 + chance.randrange(5_000)
                value = chance.choice((step * 100, step * 100, chance.randrange(300)))
                samples.append(Line(at, value, None if name in NO_BASE else step * 70, name, source))
    logs = []
    for number in range(files):
        some = [line for line in samples if chance.random() < 0.5]
        some += chance.sample(some, 3)
        some = [line._replace(value=line.value + 1) if chance.random() < 0.06 else line for line in some]
        chance.shuffle(some)
        logs.append((f"log{number}", some))
    return logs


def typed(ground: Ground, words: list[str]) -> None:
    """One line of the page."""
    if words[:2] == ["weft", "sql"]:
        sql(words[2], lake=ground.lake.root, csv=True)
    elif words[:3] == ["weft", "lake", "run"]:
        ground.take()
        ground.job.fold()
    elif words[0] == "cat":
        sys.stdout.write(Path(words[1]).read_text("utf-8"))
    else:
        app([*words[2:], "--lake", str(ground.lake.root)], result_action="return_value")


@pytest.mark.proves("WEL-002", part="the page of logs of other systems: what it shows is what is printed")
@pytest.mark.proves("PIP-095", "PIP-097", "PIP-099")
def test_the_page_is_true(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three samples, one of them told twice."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leaf.dcamp-data").write_text("".join(line.text() for line in LEAF), "utf-8")
    for block in PAGE.read_text("utf-8").split("```console\n$ ")[1:]:
        for step in block.partition("```")[0].split("\n$ "):
            words, _, shown = step.partition("\n")
            typed(ground, shlex.split(words))
            assert shown.strip() == capsys.readouterr().out.replace("\r", "").strip()
    tip = ground.work.source.latest()
    bring(ground, tmp_path / "leaf.dcamp-data")
    assert tip == ground.work.source.latest(), "nothing new"
    compare(ground, expected(told("leaf.dcamp-data", LEAF)))
    rows = ground.rows("silver.values", "span_ms", "result", order=("at",))
    assert [(631, 96.7741935483871), (1001, 89.9497487437186)] == [
        (span, pytest.approx(result, rel=1e-14)) for span, result in rows
    ]
    counted = ground.rows("gold.completeness", "expected", "received", "silver_rows", "duplicates", "missing", "state")
    assert [(4, 4, 3, 1, 0, "complete")] == counted
    (doubted,) = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    with Lake(ground.lake.root) as lake:
        assert [] == lake.query(doubted).to_pylist()


@pytest.mark.soak
@pytest.mark.proves("PIP-032", "PIP-072", "PIP-097", "PIP-099")
def test_logs_in_any_order_tell_one_story(ground: Ground, tmp_path: Path) -> None:
    for round_ in range(40):
        here, lines = Ground(ground.lake.root / str(round_), ground.spark), []
        for number, (name, some) in enumerate(world(Chance(f"imported {round_}"))):
            bring(here, log(tmp_path, name, some))
            lines += told(name, some)
            if number != 1:  # two files in one batch, too
                here.take()
            if number == 2:
                here.job.fold()
        compare_answers(here, expected(lines))
        here.job.fold()
        compare(here, expected(lines))


BEGUN = (Line(T0_MS, 10, name="net"), Line(T0_MS + 2_000, 30, name="net"), Line(T0_MS + 4_000, 90, name="net"))
LATER = (
    BEGUN[0],
    Line(T0_MS + 1_000, 12, name="net"),
    BEGUN[2]._replace(value=91),
    Line(T0_MS + 5_000, 95, name="net"),
)
"""Tells of one sample again, of one between two, another value of one, and of one that is new."""


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """A lake with the first log, folded."""
    home = tmp_path_factory.mktemp("imported")
    ground = Ground(home / "lake", spark)
    bring(ground, log(home, "leaf", BEGUN))
    ground.take()
    ground.job.fold()
    return ground


@pytest.fixture
def later(begun: Ground, tmp_path: Path) -> Ground:
    """The same lake with a log more in its segments, to go on with after a restart."""
    shutil.copytree(begun.lake.root, tmp_path / "lake")
    here = Ground(tmp_path / "lake", begun.spark)
    here.start, here.number, here.epoch = begun.start, begun.number, begun.epoch
    bring(here, log(tmp_path, "root", LATER))
    return here


class Pulled(Exception):
    """The plug."""


STORY = expected(told("leaf", BEGUN) + told("root", LATER))


@pytest.mark.soak
def test_killed_behind_each_step_an_import_ends_in_the_same_tables(later: Ground) -> None:
    calm = later.options
    for step in ("bronze", "twins", "silver", "values"):

        def watch(*at: str, last: str = step) -> None:
            if at == ("after", last):
                raise Pulled

        later.restart(calm._replace(watcher=watch))
        with pytest.raises(Pulled):
            later.take()
    later.restart(calm)
    assert (4, 3, 1, 0) == later.take().outcome[:4]
    later.job.fold()
    compare(later, STORY)


def natural_duplicates_kept(patch: pytest.MonkeyPatch) -> None:
    real = imported.twins
    patch.setattr(imported, "twins", lambda *of: real(*of).withColumn("twin", lit(1)))


def divided_pairs_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Foreign, "divided", lambda *_: UNCHANGED)


def contradicted_samples_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Foreign, "doubted", lambda *_: UNCHANGED)


def replaced_values_added(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Recomputed, "other_windows", lambda _, windows: windows)


BUGS = (natural_duplicates_kept, divided_pairs_kept, contradicted_samples_not_told, replaced_values_added)


@pytest.mark.soak
@pytest.mark.proves("PIP-072")
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(
    later: Ground, monkeypatch: pytest.MonkeyPatch, bug: Callable[[pytest.MonkeyPatch], None]
) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError):  # noqa: PT012  # wherever it shows
        later.take()
        later.job.fold()
        compare(later, STORY)


@pytest.mark.soak
def test_a_line_that_repeats_a_sample_and_has_changed_is_kept_aside(later: Ground, tmp_path: Path) -> None:
    third = [Line(T0_MS + 6_000, 99, name="net"), BEGUN[1]]
    bring(later, log(tmp_path, "third", third))
    assert (6, 4, 2, 0) == later.take().outcome[:4]
    bring(later, log(tmp_path, "third", [third[0], BEGUN[1]._replace(value=31)]))
    assert (1, 0, 0, 1) == later.take().outcome[:4]
    assert [("changed", 31)] == later.rows("quarantine.samples", "reason", "value_long")
    later.job.fold()
    compare(later, expected(told("leaf", BEGUN) + told("root", LATER) + told("third", third)))


def test_what_only_says_that_it_is_of_a_dataset_is_not(ground: Ground, tmp_path: Path) -> None:
    """A record of any node may have such an attribute; beside it a real one, in the same batch."""
    rows = [(NET, 10, None), (NET, 30, None), (NET, 50, None)]
    bring(ground, log(tmp_path, "leaf", BEGUN))
    ground.take(taken(1, rows, dataset="attic"), taken(3, rows[2:], dataset="attic"))
    assert {(A, None), (origin_of("attic", HOST), "attic")} == set(ground.rows("silver.samples", "origin", "dataset"))
    values = {(origin, before, number) for origin, before, number in ground.rows("silver.values", "origin", "from_sequence", "sequence")}  # fmt: skip
    assert {(A, 1, 2), (A, 2, 3), (origin_of("attic", HOST), 1, 2), (origin_of("attic", HOST), 2, 3)} == values
    assert [(A, 3)] == ground.rows("meta.edges", "origin", "sequence")
    assert {drain_of("attic"): "attic"} == proven(
        [(drain_of("attic"), "attic"), (DRAIN, "attic"), (drain_of("x"), None)]
    )
