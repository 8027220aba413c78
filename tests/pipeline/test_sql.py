"""A lake is asked in SQL: whole answers, nothing but answers, and nothing from outside of the lake."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Filled
from weft.base.errors import UserError
from weft.cli.sql import sql
from weft.pipeline.sql import Lake, cells

VIEWS = {
    "gold.rollup_1m": "node, series, window_start, n, min, max, first, last, resets",
    "gold.rollup_1h": "node, series, window_start, n, min, max, first, last, resets",
    "gold.rollup_1d": "node, series, window_start, n, min, max, first, last, resets",
    "gold.latest": 'node, series, origin, era, sequence, "at", received, value, base, text,'
    " result, result_at, result_era, result_sequence",
}


def ask(filled: Filled, query: str, limit: int | None = None) -> list[tuple[Any, ...]]:
    with Lake(filled.ground.lake.root) as lake:
        return [tuple(row.values()) for row in lake.query(query, limit).to_pylist()]


def refusal(filled: Filled, query: str) -> UserError:
    with pytest.raises(UserError) as refused:
        ask(filled, query)
    return refused.value


@pytest.mark.proves("PIP-090")
def test_a_name_is_looked_up_in_gold_then_silver_and_may_say_its_layer(filled: Filled) -> None:
    count = len(filled.expected.silver)
    for name in ("samples", "silver.samples", "SAMPLES", '"samples"'):
        assert [(count,)] == ask(filled, f"SELECT count(*) FROM {name}")
    with_bronze = "SELECT (SELECT count(*) FROM bronze.samples) > (SELECT count(*) FROM samples)"
    assert [(True,)] == ask(filled, with_bronze)
    assert [(len(filled.expected.missing),)] == ask(filled, "SELECT count(*) FROM gold.completeness")
    assert [(len(filled.expected.missing),)] == ask(filled, "WITH c AS (FROM completeness) SELECT count(*) FROM c")


@pytest.mark.proves("PIP-045", "PIP-050", "PIP-090")
def test_an_answer_is_the_same_before_and_after_a_fold(filled: Filled) -> None:
    queries = [f"SELECT {columns} FROM {view} ORDER BY node, series, 3" for view, columns in VIEWS.items()]
    assert filled.ground.job.fold_upto < filled.ground.job.last_number
    before = [ask(filled, query) for query in queries]
    filled.ground.job.fold()
    assert before == [ask(filled, query) for query in queries]
    assert all(before)


@pytest.mark.proves("PIP-050")
def test_latest_is_the_newest_by_stamp_era_and_number(filled: Filled) -> None:
    newest: dict[tuple[str, str | None], tuple[int, int, int, float]] = {}
    results: dict[tuple[str, str | None], tuple[int, int, int, float]] = {}
    for (origin, era, number), row in filled.expected.silver.items():
        key, place = (origin, row.series), (row.at_ms, era, number)
        newest[key] = max(newest.get(key, (0, 0, 0, 0.0)), (*place, float(row.value)))
        result = filled.expected.values.get(row.id, (None, None, None))[1]
        if result is not None:
            results[key] = max(results.get(key, (0, 0, 0, 0.0)), (*place, float(result)))
    rows = ask(
        filled,
        "SELECT node, config_name, epoch_ms(latest.at), era, sequence, value,"
        " epoch_ms(result_at), result_era, result_sequence, result FROM latest JOIN silver.series USING (series)",
    )
    assert {key: (*place, *results.get(key, (None,) * 4)) for key, place in newest.items()} == {
        row[:2]: row[2:] for row in rows
    }


@pytest.mark.proves("PIP-088", "PIP-090")
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM samples, read_csv('/etc/passwd')",
        "COPY (SELECT 1) TO '/tmp/weft-test-was-here.csv'",
        "ATTACH '/tmp/weft-test-was-here.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "CREATE TABLE here (a INT)",
        "DROP VIEW silver.samples",
        "DELETE FROM silver.samples",
        "INSERT INTO silver.samples SELECT * FROM silver.samples",
        "SELECT 1; SELECT 2",
        "",
        "SELECT nothing FROM nowhere",
        "SELEC",
    ],
)
def test_all_but_one_question_about_the_lake_is_refused(filled: Filled, query: str) -> None:
    assert "bad-sql" == refusal(filled, query).code
    assert not list(Path("/tmp").glob("weft-test-was-here*"))


@pytest.mark.proves("PIP-090")
def test_a_bare_at_is_explained(filled: Filled) -> None:
    for query in ("SELECT at FROM samples", "SELECT max(at) FROM samples", "SELECT 1 FROM samples ORDER BY at"):
        assert '"at" in double quotes' in refusal(filled, query).try_this
    assert "double quotes" not in refusal(filled, 'SELEC "at" FROM samples').try_this
    assert [(True,)] == ask(filled, 'SELECT bool_and("at" = samples.at) FROM samples')


def test_who_knows_no_table_is_told_which_there_are(filled: Filled) -> None:
    refused = refusal(filled, "SELECT * FROM nowhere")
    assert all(name in refused.try_this for name in ("silver.samples", "gold.completeness", "meta.progress"))


def test_no_lake_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        sql("SELECT 1", lake=tmp_path)
    assert "no-lake" == refused.value.code


@pytest.mark.proves("PIP-090")
def test_control_characters_do_not_reach_the_terminal(filled: Filled, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "SELECT chr(27) || '[31m' AS red, chr(10) AS line, 'ä' AS plain, NULL AS nothing"
    with Lake(filled.ground.lake.root) as lake:
        assert [["\\x1b[31m", "\\n", "ä", ""]] == list(cells(lake.query(evil)))
    sql(evil, lake=filled.ground.lake.root)
    assert "\x1b[31m" not in capsys.readouterr().out


@pytest.mark.proves("PIP-090")
def test_programs_get_json_and_csv(filled: Filled, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT sequence, reason FROM quarantine.samples ORDER BY origin, era, sequence"
    expected = [{"sequence": number, "reason": "undecodable"} for _, _, number in sorted(filled.expected.refused)]
    sql(query, lake=filled.ground.lake.root, json=True)
    assert expected == json.loads(capsys.readouterr().out)
    sql(query, lake=filled.ground.lake.root, csv=True)
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [{name: str(value) for name, value in row.items()} for row in expected] == rows


def test_a_spreadsheet_runs_nothing(filled: Filled, capsys: pytest.CaptureFixture[str]) -> None:
    sql(
        "SELECT '=1+1' AS a, '+1' AS b, '-1' AS c, '@x' AS d, -1 AS e, 'a=b' AS f",
        lake=filled.ground.lake.root,
        csv=True,
    )
    assert [["a", "b", "c", "d", "e", "f"], ["'=1+1", "'+1", "'-1", "'@x", "-1", "a=b"]] == list(
        csv.reader(io.StringIO(capsys.readouterr().out))
    )


@pytest.mark.proves("SEC-045")
def test_nothing_in_an_answer_is_markup_or_control(filled: Filled, capsys: pytest.CaptureFixture[str]) -> None:
    evil = """SELECT '[/nope]' AS "[/x]", '[link=http://x]y[/link]' AS link, 1 AS "a\x1b[31m", '\t=1' AS tab"""
    sql(evil, lake=filled.ground.lake.root)
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("[/nope]", "[/x]", "[link=http://x]y[/link]", "a\\x1b[31m", "\\t=1"))
    sql(evil + """, 2 AS "=2" """, lake=filled.ground.lake.root, csv=True)
    assert [
        ["[/x]", "link", "a\\x1b[31m", "tab", "'=2"],
        ["[/nope]", "[link=http://x]y[/link]", "1", "\\t=1", "2"],
    ] == list(csv.reader(io.StringIO(capsys.readouterr().out)))


def test_json_has_no_numbers_that_json_has_not(filled: Filled, capsys: pytest.CaptureFixture[str]) -> None:
    sql("SELECT 'nan'::DOUBLE AS a, ['inf'::DOUBLE, 1.5] AS b", lake=filled.ground.lake.root, json=True)
    assert [{"a": None, "b": [None, 1.5]}] == json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def test_a_limit_cuts_what_people_are_shown(filled: Filled) -> None:
    assert 3 == len(ask(filled, "SELECT * FROM samples", 3))


def test_json_and_csv_at_once_are_refused(filled: Filled) -> None:
    with pytest.raises(UserError) as refused:
        sql("SELECT 1", lake=filled.ground.lake.root, json=True, csv=True)
    assert "usage" == refused.value.code
