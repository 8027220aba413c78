"""Tables as files for other programs; and samples as OpenMetrics, of which an import makes equal ones (PIP-098)."""

import csv
import json
from collections.abc import Iterable
from datetime import UTC
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pipeline.conftest import Filled
from tests.pipeline.ground import Ground
from tests.pipeline.plain import lake_of
from weft.base.errors import UserError
from weft.cli.lake import app
from weft.lake.importing.delimited import Reading
from weft.lake.importing.found import Nothing, Sample
from weft.lake.importing.openmetrics import OpenMetricsParser
from weft.lake.series import define
from weft.pipeline.exposition import Exposition, number, stamp

Equal = tuple[Any, ...]


def equal(row: dict[str, Any]) -> Equal:
    """What of a sample an import must give back."""
    labels = tuple(sorted(dict(row["labels"]).items()))
    numbers = [(row[f"{name}_long"], row[name]) for name in ("value", "base")]
    return row["node"], row["config_name"], row["detail"], row["type"], row["param"], labels, row["at_ns"], *numbers


def imported(text: str) -> list[Equal]:
    """What an import makes of a text."""
    parser, found = OpenMetricsParser(Reading(UTC, 1 << 62)), []
    for line in text.encode().split(b"\n"):
        one = parser.read(line)
        if isinstance(one, Sample):
            about = one.about
            assert about.definition is not None
            numbers = [(n if isinstance(n, int) else None, None if n is None else float(n)) for n in one[2:4]]
            found.append((about.source, *about.definition[:4], about.definition[4], one.at_ns, *numbers))
        else:
            assert isinstance(one, Nothing), (line, one)
    return found


texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12)
labels = st.dictionaries(st.one_of(texts, st.sampled_from(("instance", "weft_type", "le", "a"))), st.one_of(texts, st.just("a\rb\nc")))  # fmt: skip
integers = st.integers(-(1 << 63) + 1, (1 << 63) - 1)
doubles = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def samples(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(("basic", "rate", "delta", "average", "percent", "aggregate-max")))
    row: dict[str, Any] = {"node": draw(texts), "config_name": draw(texts), "detail": draw(texts), "type": kind}
    row |= {"param": draw(texts), "labels": list(draw(labels).items()), "at_ns": draw(st.integers(10**18, 2 * 10**18))}
    for name in ("value", "base"):
        value = draw(st.one_of(integers, doubles))
        row[f"{name}_long"] = value if isinstance(value, int) else None
        row[name] = float(value)
    if kind in ("basic", "rate"):
        row |= {"base": None, "base_long": None}
    definition = define(row["config_name"], row["detail"], kind, row["param"], dict(row["labels"]))
    return row | {"series": definition.key(), "era": 1, "sequence": 1}


@given(st.lists(samples(), max_size=8))
def test_whatever_is_exposed_is_imported_as_it_was(rows: list[dict[str, Any]]) -> None:
    rows.sort(key=lambda row: (row["config_name"], row["type"], row["node"], row["series"], row["at_ns"]))
    text = Exposition()
    told = imported("".join(text.lines(rows)))
    assert len(told) == text.written == len(rows) - sum(text.left_out.values())
    assert set(told) <= {equal(row) for row in rows}
    once = {(row["node"], row["series"], row["at_ns"]) for row in rows}
    assert {"a second one at its instant": len(rows) - len(once)} == {"a second one at its instant": 0} | text.left_out


@given(integers, doubles, st.integers(0, (1 << 63) - 1))
def test_numbers_and_stamps_lose_nothing(whole: int, real: float, at_ns: int) -> None:
    assert (whole, real) == (int(number(whole, 0.0)), float(number(None, real)))
    assert Fraction(stamp(at_ns)) * 10**9 == at_ns


def test_what_the_text_says() -> None:
    row: dict[str, Any] = {
        "node": 'n"1', "config_name": "cpu", "detail": "CPU", "type": "percent", "param": "", "labels": [("cpu", "0")], "series": 1,
        "at_ns": 1_795_227_300_005_000_000, "value": 48730.0, "value_long": 48730, "base": 150519.0, "base_long": 150519,
    }  # fmt: skip
    plain: dict[str, Any] = {
        "config_name": "mem",
        "detail": "",
        "type": "basic",
        "base": None,
        "base_long": None,
        "labels": [],
    }
    text = Exposition()
    said = 'instance="n\\"1",cpu="0",weft_name="cpu",weft_detail="CPU",weft_type="percent"'
    rows = [
        row,
        row | {"at_ns": row["at_ns"] + 1, "value": None, "value_long": None},
        row | plain | {"value_long": None},
    ]
    assert [
        "# TYPE cpu counter",
        f'cpu_total{{{said},weft_part="base"}} 150519 1795227300.005',
        f"cpu_total{{{said}}} 48730 1795227300.005",
        "# TYPE mem gauge",
        'mem{instance="n\\"1"} 48730e0 1795227300.005',
        "# EOF",
    ] == "".join(text.lines(rows)).splitlines()
    assert {"text": 1} == text.left_out


def exported(ground: Ground, out: Path, table: str, *more: str) -> None:
    app(["export", table, str(out), "--lake", str(ground.lake.root), *more], result_action="return_value")


@pytest.mark.prove("whole batches in Spark")
@pytest.mark.proves("PIP-098", part="what is exported in OpenMetrics and imported is equal")
def test_a_lake_exported_and_imported_into_another_has_equal_samples(filled: Filled, tmp_path: Path) -> None:
    path = tmp_path / "all.om"
    exported(filled.ground, path, "samples")
    assert sorted(map(equal, once(filled.ground.rows("silver.samples"))), key=str) == sorted(read(path), key=str)
    exported(filled.ground, path, "silver.values")
    results = once(row for row in filled.ground.rows("silver.values") if row["result"] is not None)
    assert sorted((row["node"], row["result"]) for row in results) == sorted((one[0], one[-2][1]) for one in read(path))


def once(rows: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """One row of a series and instant: a node that was restarted says the same of two eras, which the text cannot."""
    found: dict[Any, dict[str, Any]] = {}
    for row in rows:
        found.setdefault((row["node"], row["series"], row["at"]), row)
    return found.values()


def read(path: Path) -> list[Equal]:
    return imported(path.read_text("utf-8"))


@pytest.mark.proves("PIP-091", part="export")
def test_parts_of_tables_in_every_format(filled: Filled, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ground = filled.ground
    rows = ground.rows("silver.samples")
    ats = sorted(row["at"] for row in rows)
    since, until = ats[len(ats) // 3], ats[2 * len(ats) // 3]
    wanted = sorted((row["origin"], row["era"], row["sequence"]) for row in rows if since <= row["at"] < until)
    assert 0 < len(wanted) < len(rows)
    part = ("--since", since.isoformat(), "--until", until.isoformat())
    for name in ("part.parquet", "part.arrow", "part.csv"):
        exported(ground, tmp_path / name, "silver.samples", *part)
    tables = [pq.read_table(tmp_path / "part.parquet"), pa.ipc.open_file(tmp_path / "part.arrow").read_all()]
    for table in tables:
        assert wanted == sorted(
            zip(*(table.column(name).to_pylist() for name in ("origin", "era", "sequence")), strict=True)
        )
    with (tmp_path / "part.csv").open(encoding="utf-8", newline="") as file:
        told = list(csv.DictReader(file))
    assert wanted == sorted((row["origin"], int(row["era"]), int(row["sequence"])) for row in told)
    capsys.readouterr()
    exported(ground, tmp_path / "bronze.parquet", "bronze.samples", *part, "--json")
    assert {"rows": pq.read_metadata(tmp_path / "bronze.parquet").num_rows, "left_out": {}, "file": str(tmp_path / "bronze.parquet")} == json.loads(capsys.readouterr().out)  # fmt: skip
    exported(ground, tmp_path / "view.csv", "gold.store_current")
    assert {"part.parquet", "part.arrow", "part.csv", "bronze.parquet", "view.csv"} == {file.name for file in tmp_path.iterdir()}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("nothing", "out.csv"), "no-table"),
        (("silver.series", "out.csv", "--since", "2026-01-01"), "no-time"),
        (("silver.samples", "out.xls"), "bad-format"),
        (("silver.series", "out.om"), "bad-format"),
        (("silver.samples", "no/out.csv"), "no-directory"),
        (("silver.samples", "out.csv", "--since", "soon"), "bad-time"),
    ],
)
def test_what_cannot_be_exported_says_so(tmp_path: Path, words: tuple[str, ...], code: str) -> None:
    lake_of(tmp_path / "lake")
    table, out, *more = words
    with pytest.raises(UserError) as refused:
        app(
            ["export", table, str(tmp_path / out), "--lake", str(tmp_path / "lake"), *more],
            result_action="return_value",
        )
    assert code == refused.value.code
    assert not (tmp_path / out).exists()


@pytest.mark.parametrize("place", ["lake.json", "drain/../lake.json", "tables/x.csv"])
def test_a_file_in_the_lake_is_nobodys_to_replace(tmp_path: Path, place: str) -> None:
    home = tmp_path / "lake"
    (home / "tables").mkdir(parents=True)
    (home / "drain").mkdir()
    (home / "lake.json").write_text("{}", "utf-8")
    with pytest.raises(UserError) as refused:
        app(
            ["export", "samples", str(home / place), "--format", "csv", "--lake", str(home)],
            result_action="return_value",
        )
    assert ("bad-place", "{}") == (refused.value.code, (home / "lake.json").read_text("utf-8"))
