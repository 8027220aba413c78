"""Asking: names, views that hide folding, refusals that say what to type (PIP-090); what is missing (PIP-063)."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import feather
from pyspark.sql import SparkSession

from tests.pipeline.ground import MEM, NET, A, B, Ground, lost, single, taken
from weft.base.errors import UserError
from weft.cli import lake_run
from weft.cli.sql import sql
from weft.pipeline import sql as sqls
from weft.pipeline import versions
from weft.pipeline.check import Check
from weft.pipeline.sql import Lake
from weft.pipeline.versions import AsOf

pytestmark = pytest.mark.prove("whole batches in Spark")

FIRST = [(NET, 10, None), (MEM, 5, None), (NET, 30, None)]
SECOND = [(NET, 60, None), (MEM, 7, None), (NET, 30, None)]


@pytest.fixture(scope="module")
def asked(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """A lake of three batches, of which two are folded."""
    ground = Ground(tmp_path_factory.mktemp("asked") / "lake", spark)
    ground.take(taken(1, FIRST, node="alpha"), single(9, b"\xa3\x1b[m", B))
    ground.take(taken(1, FIRST, B))
    ground.job.fold()
    ground.take(taken(4, SECOND, node="alpha"))
    return ground


def ask(ground: Ground, text: str) -> list[dict[str, Any]]:
    with Lake(ground.lake.root) as lake:
        rows: list[dict[str, Any]] = lake.query(text).to_pylist()
    return rows


@pytest.mark.proves("PIP-090", "PIP-045")
def test_roll_ups_are_current_to_the_last_batch_before_and_after_a_fold(asked: Ground) -> None:
    text = (
        "SELECT node, config_name, sum(n)::INT AS n, sum(sum) AS total, sum(resets)::INT AS resets FROM rollup_1m "
        "JOIN series USING (series) GROUP BY ALL ORDER BY ALL"
    )
    wanted = [(B, "mem", 1, 5.0, 0), (B, "net", 1, 10.0, 0), ("alpha", "mem", 2, 12.0, 0), ("alpha", "net", 2, 40.0, 1)]
    assert [row for row in wanted if row[0] == "alpha"] != [
        tuple(row) for row in asked.rows("gold.rollup_1d", "node", "n", "sum", order=())
    ]
    before = [tuple(row.values()) for row in ask(asked, text)]
    hours = [tuple(row.values()) for row in ask(asked, text.replace("1m", "1h"))]
    assert (wanted, wanted) == (sorted(before), sorted(hours))
    asked.job.fold()
    assert before == [tuple(row.values()) for row in ask(asked, text)]


@pytest.mark.proves("PIP-050", "PIP-090")
def test_the_newest_of_each_series_before_and_after_a_fold(asked: Ground) -> None:
    text = "SELECT node, config_name, sequence, value, result FROM latest JOIN series USING (series) ORDER BY ALL"
    rows = [tuple(row.values()) for row in ask(asked, text)]
    assert ("alpha", "net", 6, 30.0, 30.0) in rows
    assert ("alpha", "mem", 5, 7.0, 7.0) in rows
    asked.job.fold()
    assert rows == [tuple(row.values()) for row in ask(asked, text)]


@pytest.mark.proves("PIP-090")
def test_names_are_looked_up_in_gold_then_silver_and_bad_ones_are_told_what_there_is(asked: Ground) -> None:
    assert [{"n": 10}] == ask(asked, "SELECT count(*) AS n FROM samples")
    assert [{"n": 10}] == ask(asked, "SELECT count(*) AS n FROM bronze.samples")
    for text in ("SELECT * FROM nothing", "SELEKT 1", "SELECT nope FROM samples", "SELECT 1; SELECT 2"):
        with pytest.raises(UserError) as refused:
            ask(asked, text)
        assert "bad-sql" == refused.value.code
    with pytest.raises(UserError) as refused:
        ask(asked, "SELECT * FROM sampels")
    assert "silver.samples" in refused.value.try_this
    for text, help_ in {
        "SELECT missed FROM completeness": "missing",
        "SELECT * FROM availability": "it makes silver.catalog, from which gold.availability is computed",
        "show columns from samples": "SHOW TABLES",
    }.items():
        with pytest.raises(UserError, match=help_):
            ask(asked, text)
    with pytest.raises(UserError) as refused:
        Lake(asked.lake.root / "nowhere")
    assert "no-lake" == refused.value.code


def said_at(ground: Ground, table: str, batch: int) -> datetime:
    """When a batch came to stand in a table."""
    commits = DeltaTable(ground.lake.table(*table.split("."))).history()
    (ms,) = [commit["timestamp"] for commit in commits if commit.get("weft.batch") == str(batch)]
    return datetime.fromtimestamp(ms / 1000, UTC)


def counts(ground: Ground, as_of: AsOf | None, where: str = "true") -> tuple[int, ...]:
    """Rows of three tables, and what the minutes hold, in one question."""
    text = (
        f"SELECT (SELECT count(*) FROM bronze.samples WHERE {where}) AS bronze, "
        f"(SELECT count(*) FROM silver.samples WHERE {where}) AS silver, "
        f"(SELECT count(*) FROM silver.values WHERE {where} AND result IS NOT NULL) AS calculated"
    )
    minutes = ", (SELECT coalesce(sum(n), 0)::BIGINT FROM rollup_1m) AS minutes" if where == "true" else ""
    with Lake(ground.lake.root, as_of) as lake:
        (row,) = lake.query(text + minutes).to_pylist()
    return tuple(row.values())


@pytest.mark.proves("PIP-090")
def test_as_of_an_instant_all_tables_of_a_question_hold_the_same_batches(asked: Ground) -> None:
    for batch in range(3):
        then = counts(asked, said_at(asked, "meta.progress", batch))
        wanted = counts(asked, None, f"batch <= {batch}")
        assert (*wanted, wanted[-1]) == then, "the minutes are completed from the silver of then"
    first = said_at(asked, "bronze.samples", 0)
    assert (0, 0, 0, 0) == counts(asked, first - timedelta(seconds=1))
    assert (4, 0, 0, 0) == counts(asked, first), "silver came later"


@pytest.mark.proves("PIP-090")
def test_as_of_a_version_is_that_version_and_none_is_made_up(asked: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    path = asked.lake.table("silver", "samples")
    for version in range(DeltaTable(path).version() + 1):
        sql("SELECT count(*)::INT AS n FROM samples", lake=asked.lake.root, as_of=str(version), json=True)
        rows = DeltaTable(path, version=version).to_pyarrow_table().num_rows
        assert [{"n": rows}] == json.loads(capsys.readouterr().out)
    for wish, code in (("999", "no-version"), ("last week", "bad-time")):
        with pytest.raises(UserError) as refused:
            sql("SELECT 1 FROM samples", lake=asked.lake.root, as_of=wish)
        assert code == refused.value.code


@pytest.mark.proves("PIP-090")
def test_a_version_of_a_folded_table_is_completed_by_the_silver_of_its_instant(asked: Ground) -> None:
    path, text = asked.lake.table("gold", "rollup_1m"), "SELECT coalesce(sum(n), 0)::BIGINT AS n FROM rollup_1m"
    (folded, *_) = [commit for commit in DeltaTable(path).history() if commit.get("weft.batch") == "1"]
    with Lake(asked.lake.root, folded["version"]) as lake:
        (row,) = lake.query(text).to_pylist()
    (wanted,) = ask(asked, "SELECT count(*) AS n FROM silver.values WHERE batch <= 1 AND result IS NOT NULL")
    assert wanted == row


def plain_lake(root: Path, table: str, rows: pa.Table) -> Path:
    """A lake of one table, which nobody has made but this test."""
    (root / "lake.json").touch()
    write_deltalake(root / "tables" / table.replace(".", "/"), rows, mode="overwrite")
    return root


@pytest.mark.proves("PIP-090")
def test_to_ask_loads_neither_spark_nor_what_arrow_would_like_to_have(tmp_path: Path) -> None:
    lake = plain_lake(
        tmp_path, "silver.samples", pa.table({"sequence": [1, 2], "at": [datetime(2026, 1, 1, tzinfo=UTC)] * 2})
    )
    program = (
        "import sys; from weft.cli.sql import sql; from pathlib import Path; "
        "sql('SELECT * FROM samples', lake=Path(sys.argv[1]), csv=True); "
        "print(sorted({'numpy', 'pandas', 'pyspark', 'py4j'} & sys.modules.keys()))"
    )
    words = [sys.executable, "-c", program, str(lake)]
    told = subprocess.run(words, capture_output=True, check=True, text=True).stdout.splitlines()
    assert ["sequence,at", "1,2026-01-01 00:00:00+00:00", "2,2026-01-01 00:00:00+00:00", "[]"] == told


@pytest.mark.proves("PIP-090")
def test_filters_and_columns_reach_the_files(tmp_path: Path) -> None:
    rows = pa.table({"sequence": list(range(10)), "node": ["a"] * 10, "text": ["x"] * 10})
    with Lake(plain_lake(tmp_path, "silver.samples", rows)) as lake:
        plan = str(lake.query("EXPLAIN SELECT node FROM samples WHERE sequence > 7").to_pylist())
    assert "READ_PARQUET" in plan
    assert re.search(r"Filters: \W*sequence\W* > 7", plan)
    assert re.search(r"Projections: node\s", plan)


def test_a_view_has_no_version_of_its_own(tmp_path: Path) -> None:
    with (
        Lake(plain_lake(tmp_path, "silver.store", pa.table({"sequence": [1]})), 0) as lake,
        pytest.raises(UserError) as refused,
    ):
        lake.query("FROM store_current")
    assert "no-version" == refused.value.code


def test_files_that_are_deleted_are_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "tables" / "silver" / "samples"
    for count in (1, 2):
        plain_lake(tmp_path, "silver.samples", pa.table({"sequence": list(range(count))}))
    with Lake(tmp_path, 0) as lake:
        assert [{"sequence": 0}] == lake.query("FROM samples").to_pylist()
    for file in DeltaTable(path, version=0).file_uris():
        Path(file).unlink()
    with Lake(tmp_path) as lake:
        assert 2 == lake.query("FROM samples").num_rows
    with Lake(tmp_path, 0) as lake, pytest.raises(UserError) as refused:
        lake.query("FROM samples")
    assert "no-files" == refused.value.code
    DeltaTable(path).create_checkpoint()
    (path / "_delta_log" / f"{0:020}.json").unlink()
    for wish in (0, datetime(2020, 1, 1, tzinfo=UTC)):
        with Lake(tmp_path, wish) as lake, pytest.raises(UserError) as refused:
            lake.query("FROM samples")
        assert "no-version" == refused.value.code, "its log is gone: nobody may say that it was empty"


@pytest.mark.soak
@pytest.mark.proves("PIP-045")
def test_a_fold_in_the_middle_of_a_question_changes_no_answer(asked: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    asked.take(taken(7, FIRST, node="alpha"))
    wanted = counts(asked, None)
    plain = versions.opened

    def opened_late(path: Path, name: str, wish: AsOf | None) -> DeltaTable | None:
        handle = plain(path, name, wish)
        if name == "gold.rollup_1m":
            asked.job.fold()
        return handle

    monkeypatch.setattr(sqls, "opened", opened_late)
    with Lake(asked.lake.root) as lake:
        (row,) = lake.query("SELECT sum(n)::BIGINT AS n FROM rollup_1m").to_pylist()
    assert wanted[-1] == row["n"]


@pytest.mark.proves("PIP-090")
def test_rows_go_to_a_file_that_is_there_when_it_is_whole(
    asked: Ground, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "SELECT * FROM samples ORDER BY origin, sequence"
    for read, name in ((pq.read_table, "parquet"), (feather.read_table, "arrow")):
        target = tmp_path / f"rows.{name}"
        target.write_text("what stood there", "utf-8")

        def put(question: str, target: Path = target, *, is_parquet: bool = name == "parquet") -> None:
            parquet, arrow = (target, None) if is_parquet else (None, target)
            sql(question, lake=asked.lake.root, parquet=parquet, arrow=arrow)

        put(text)
        assert ask(asked, text) == read(target).to_pylist()
        with pytest.raises(UserError):
            put("SELECT nope FROM samples")
        assert ask(asked, text) == read(target).to_pylist()
    assert f"rows in {tmp_path}/rows.arrow" in capsys.readouterr().out
    assert ["rows.arrow", "rows.parquet"] == sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.proves("PIP-090")
@pytest.mark.proves("PIP-088", part="`weft sql` is read-only and reads no file")
def test_nothing_is_written_and_no_file_beside_the_lake_is_read(asked: Ground, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n", "utf-8")
    for text in (
        f"SELECT * FROM '{secret}'",
        f"SELECT * FROM read_csv('{secret}')",
        f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
        "CREATE TABLE t AS SELECT 1",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "ATTACH 'x.db'",
    ):
        with pytest.raises(UserError):
            ask(asked, text)
    assert [secret] == list(tmp_path.iterdir())


@pytest.mark.proves("PIP-088", part="`weft sql` writes nothing into the lake either")
def test_nothing_is_written_into_the_lake_by_what_looks_like_a_question(asked: Ground) -> None:
    """DuckDB may write where it may read, and a question could replace the files of a table."""
    tables = asked.lake.tables()
    target = f"'{tables}/new.csv'"
    before = {path: path.stat().st_mtime_ns for path in tables.rglob("*")}
    for text in (
        f"EXPLAIN ANALYZE COPY (SELECT 1) TO {target}",
        f"explain (analyze, format json) COPY (SELECT 1) TO {target}",
        f"EXPLAIN ANALYZE /*/* */ SELECT 1 --*/ COPY (SELECT 1) TO {target}",
        f"EXPLAIN (ANALYZE /* ) SELECT 1 -- */ ) COPY (SELECT 1) TO {target}",
        f"/* EXPLAIN */ WITH a AS (COPY (SELECT 1) TO {target}) SELECT 1",
        f"WITH a AS MATERIALIZED (/**/copy samples TO {target}) FROM a",
        f"EXPLAIN ANALYZE WITH a AS (COPY (SELECT 1) TO {target}) SELECT 1",
        "EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1",
        "EXPLAIN ANALYZE CREATE OR REPLACE VIEW silver.samples AS SELECT 1",
        "EXPLAIN ANALYZE SET threads = 1",
    ):
        with pytest.raises(UserError) as refused:
            ask(asked, text)
        assert "bad-sql" == refused.value.code, text
    with Lake(asked.lake.root) as lake:
        for function in (
            f"enable_logging(storage = 'file', storage_config = {{'path': '{tables}/log'}})",
            f"enable_profiling(save_location = '{tables}/profile.json', format = 'json')",
        ):
            with pytest.raises(UserError):
                lake.query(f"FROM {function}")
        lake.query("SELECT count(*) FROM samples")
    assert before == {path: path.stat().st_mtime_ns for path in tables.rglob("*")}


@pytest.mark.proves("PIP-090")
@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN ANALYZE SELECT count(*) FROM samples",
        "explain (format json) SELECT 'copy'",
        "EXPLAIN (SELECT 1)",
        "SELECT 'copy' AS \"update\", 'insert or delete' AS text",
        "DESCRIBE SELECT 'copy'",
        "SUMMARIZE SELECT 'copy' AS a",
        "WITH a AS (SELECT 'delete' AS b) FROM a;",
    ],
)
def test_questions_with_words_of_writing_are_answered(asked: Ground, text: str) -> None:
    assert ask(asked, text)


@pytest.mark.proves("PIP-090")
def test_the_command_prints_tables_json_and_csv_without_control_characters(
    asked: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "SELECT origin, text, value FROM samples WHERE text IS NOT NULL OR sequence = 2 ORDER BY ALL LIMIT 1"
    text = text.replace("LIMIT 1", "")
    sql(text, lake=asked.lake.root)
    shown = capsys.readouterr().out
    assert "\\x1b[m" in shown
    assert "\x1b" not in shown
    sql(text, lake=asked.lake.root, json=True)
    rows = json.loads(capsys.readouterr().out)
    assert ["\x1b[m"] == [row["text"] for row in rows if row["text"]]
    sql(text, lake=asked.lake.root, csv=True)
    assert "origin,text,value" == capsys.readouterr().out.splitlines()[0]
    with pytest.raises(UserError):
        sql(text, lake=asked.lake.root, csv=True, json=True)


@pytest.mark.proves("PIP-063")
def test_tables_that_hold_everything_are_equal_and_what_is_not_taken_yet_is_behind(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    ground.write(taken(1, FIRST), single(4, b"\xc1"), lost(5, 5))
    assert ("behind", 1) == (*Check(ground.lake).run()[::2][:1], Check(ground.lake).run().waiting)
    ground.take()
    ground.take(taken(2, FIRST[1:2]), taken(7, SECOND))
    verdict = Check(ground.lake).run()
    assert ("equal", 2, 0, []) == (verdict.state, verdict.segments, verdict.waiting, verdict.differences)
    assert {"manifests": 8, "bronze.samples": 8, "silver.samples": 6, "quarantine.samples": 1} == verdict.rows
    assert 0 == lake_run.check(lake=ground.lake.root)
    assert "equal: 2 segments" in capsys.readouterr().out


@pytest.mark.proves("PIP-063")
def test_what_is_gone_or_twice_is_named_by_number(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    ground.take(taken(1, FIRST))
    ground.take(taken(4, SECOND))
    tables = ground.job.tables
    from weft.pipeline.tables import SAMPLES

    (first, _) = sorted(tables.files(SAMPLES), key=lambda file: Path(file).name)
    again = tables.write(SAMPLES, tables.read(SAMPLES, [first]), 1)
    tables.commit(SAMPLES, 1, again, {})
    assert any("repeat a number" in difference.what for difference in Check(ground.lake).run().differences)
    tables.commit(
        SAMPLES, 1, [], {}, remove=tables.relative(SAMPLES, [first, str(tables.path(SAMPLES) / again[0].path)])
    )
    verdict = Check(ground.lake).run()
    assert ("broken", 2) == (verdict.state, verdict.exit_code)
    ranges = {difference.what: list(difference.ranges.values()) for difference in verdict.differences}
    assert ["1-3"] == ranges["samples: 3 numbers are in bronze, and neither in silver nor in quarantine"]
    assert 2 == lake_run.check(lake=ground.lake.root)
    assert "1-3" in capsys.readouterr().out
    assert 2 == lake_run.check(lake=ground.lake.root, json=True)
    assert "broken" == json.loads(capsys.readouterr().out)["state"]
    for file in ground.lake.drain("samples", "d1" * 16).rglob("*1.json"):
        file.unlink()
    assert "segment-gone" in Check(ground.lake).run().differences[0].what
    assert A in str(verdict.differences)


@pytest.mark.proves("PIP-090")
@pytest.mark.proves(
    "OPS-005", part="SHOW TABLES; a misspelt table gets the nearest three, a misspelt column those of its table"
)
def test_a_mistake_is_told_what_there_is(tmp_path: Path) -> None:
    root = plain_lake(tmp_path, "silver.samples", pa.table({"sequence": [1]}))
    for table in ("silver.series", "silver.store", "meta.progress"):
        plain_lake(tmp_path, table, pa.table({"sequence": [1]}))
    with Lake(root) as lake:
        listed = lake.query("show tables;").column("table").to_pylist()
        assert ["gold.store_current", "gold.store_history", "meta.progress", "meta.runs"] == listed[:4]
        assert ["silver.samples", "silver.series", "silver.store"] == listed[4:]
        with pytest.raises(UserError) as refused:
            lake.query("SELECT 1 FROM sample")
        assert "silver.samples, silver.store, silver.series; SHOW TABLES lists all" == refused.value.try_this
        with pytest.raises(UserError) as refused:
            lake.query("SELECT 1 FROM completeness")
        assert f"weft lake run --lake {root} makes gold.completeness, which is not there yet" == refused.value.try_this
        with pytest.raises(UserError) as refused:
            lake.query("SELECT nod FROM progress")
        assert refused.value.try_this.startswith("meta.progress has job, batch, at, rows_in, ")
