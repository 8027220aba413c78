"""Imported logs in the tables: each sample once, values in the order of time, whatever file told of it when (PIP-095..099)."""

import math
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.pipeline.ground import NOW_NS, T0_MS, Ground
from tests.pipeline.oracle_imported import Expected, Told, expected
from weft.base.chance import Chance
from weft.lake.importing.delimited import Reading
from weft.lake.importing.identity import era_of, origin_of
from weft.lake.importing.running import Wish, import_files
from weft.pipeline.check import Check
from weft.pipeline.sql import Lake
from weft.pipeline.tables import ROLLUP_1D, ROLLUP_1H, ROLLUP_1M

WISH = Wish("attic", "dcamp", Reading(UTC, NOW_NS))
HOST = "localhost:55900"
KINDS = {"proc": "percent", "net": "rate", "mem": "basic"}
NO_BASE = ("net", "mem")


class Line(NamedTuple):
    """A line of a log."""

    at: int
    value: int
    base: int | None = None
    name: str = "proc"
    source: str = HOST

    def text(self) -> str:
        return (
            f"{self.at} source={self.source} value={self.value}.00 base={self.base} detail=X config-name={self.name} "
            f"config-seqid=4 type={KINDS[self.name]}\n"
        )


EXAMPLE = (Line(1795226590369, 95133, 217439), Line(1795226591000, 95253, 217563), Line(1795226592001, 95432, 217762))
FIRST, SECOND, THIRD = EXAMPLE


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
    names = {row["series"]: row["config_name"] for row in ground.rows("silver.series", order=())}
    origins = {row["node"]: row["origin"] for row in ground.rows("silver.samples")}
    with Lake(ground.lake.root) as lake:
        asked = {width: lake.query(f"SELECT * FROM gold.rollup_{width}").to_pylist() for width in ("1m", "1h", "1d")}
    for table, minutes in ((ROLLUP_1M, 1), (ROLLUP_1H, 60), (ROLLUP_1D, 1440)):
        merged: dict[Any, list[Any]] = {}
        for (origin, name, minute), results in wanted.windows.items():
            merged.setdefault((origin, name, minute // minutes * minutes), []).extend(results)
        for rows in (ground.rows(table.full_name), asked[table.name.removeprefix("rollup_")]):
            found = {
                (origins[row["node"]], names[row["series"]], round(row["window_start"].timestamp()) // 60): (
                    row["n"], pytest.approx(row["sum"] or 0.0, rel=1e-9), row["min"], row["max"], row["resets"],
                )
                for row in rows
            }  # fmt: skip
            assert len(found) == len(rows)
            assert {key: window(results) for key, results in merged.items()} == found


def window(results: list[tuple[float | None, str | None]]) -> tuple[Any, ...]:
    good = [result for result, _ in results if result is not None]
    resets = sum(reason in ("reset", "base-reset") for _, reason in results)
    return len(good), math.fsum(good), min(good, default=None), max(good, default=None), resets


def ident(row: dict[str, Any]) -> tuple[str, int, int]:
    return row["origin"], row["era"], row["sequence"]


def before(row: dict[str, Any]) -> tuple[str, int, int] | None:
    return None if row["from_sequence"] is None else (row["origin"], row["from_era"], row["from_sequence"])


def world(chance: Chance, files: int = 5) -> list[tuple[str, list[Line]]]:
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


@pytest.mark.proves("PIP-095", "PIP-097", "PIP-099")
def test_three_samples_one_of_them_told_twice(ground: Ground, tmp_path: Path) -> None:
    path = log(tmp_path, "leaf", [FIRST, SECOND, SECOND, THIRD])
    bring(ground, path)
    assert (4, 3, 1, 0, 2) == ground.take().outcome
    rows = ground.rows("silver.values", "span_ms", "result", order=("at",))
    assert [(631, 96.7741935483871), (1001, 89.9497487437186)] == [
        (span, pytest.approx(result, rel=1e-14)) for span, result in rows
    ]
    tip = ground.work.source.latest()
    bring(ground, path)
    assert tip == ground.work.source.latest(), "nothing new"
    ground.job.fold()
    compare(ground, expected(told("leaf", [FIRST, SECOND, SECOND, THIRD])))
    counted = ground.rows("gold.completeness", "expected", "received", "silver_rows", "duplicates", "missing", "state")
    assert [(4, 4, 3, 1, 0, "complete")] == counted


@pytest.mark.proves("PIP-032", "PIP-097", "PIP-099", "PIP-072")
@pytest.mark.parametrize("seed", [0])
def test_logs_in_any_order_tell_one_story(ground: Ground, tmp_path: Path, seed: int, soak: bool) -> None:
    for round_ in range(30 if soak else 1):
        here, lines = Ground(ground.lake.root / str(round_), ground.spark), []
        for number, (name, some) in enumerate(world(Chance(f"imported {seed}/{round_}"))):
            bring(here, log(tmp_path, name, some))
            lines += told(name, some)
            if number != 1:  # two files in one batch, too
                here.take()
            if number == 2:
                here.job.fold()
        here.job.fold()
        compare(here, expected(lines))
