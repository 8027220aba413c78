"""Upkeep of a lake that jobs have filled, and that they go on with (LAK-037, LAK-038)."""

import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.cli.test_config_show import run
from tests.pages import consoles, plain
from tests.pipeline import oracle
from tests.pipeline.conftest import Filled
from tests.pipeline.ground import ERA, NET, A, B, Ground, at_ms, taken
from tests.pipeline.worlds import compare, world
from weft.base.chance import Chance
from weft.base.errors import UserError
from weft.base.records import Record
from weft.cli.lake import app
from weft.lake.layout import Layout
from weft.pipeline import arrow, fold
from weft.pipeline.check import Check
from weft.pipeline.delta import Tables
from weft.pipeline.fold import fresh_of
from weft.pipeline.lease import Lease
from weft.pipeline.settings import KeepTable, settings_of
from weft.pipeline.sql import Lake
from weft.pipeline.tables import SAMPLES, STAGES, VALUES, there
from weft.pipeline.upkeep import compact, forget, forgotten, keeper, remove, retain
from weft.pipeline.upkeep.forget import Choice
from weft.pipeline.upkeep.log import Exchange, exchange, live_files, opened
from weft.pipeline.upkeep.marks import marks_of, unfinished

pytestmark = pytest.mark.prove("whole batches in Spark")

Patch = pytest.MonkeyPatch
LATER = date(2026, 12, 24)
FIRST = date(2026, 11, 21)
NOBODY = forgotten.Reason("--origin x", "a test", "nobody")


OF_THE_PAGE = "0b9e4c1d7a224f539c105d6e7f8091a2"
"""Who is forgotten there."""
TOO_FEW = {
    "silver.samples: 0 files, 0 rows",
    "silver.samples: 0 files to one, 0 rows, 0 to 0 bytes",
    " 0 0 0 compact",
}
"""What the page shows of joined files, of which the lake here has too few."""


class Pulled(Exception):
    """The plug."""


@pytest.fixture(scope="module")
def folded(filled: Filled, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """A copy of the filled lake that is folded to its last batch."""
    root = tmp_path_factory.mktemp("folded") / "lake"
    shutil.copytree(filled.ground.lake.root, root)
    return _on(Layout(root), filled, 8)


def _on(lake: Layout, filled: Filled, epoch: int) -> Ground:
    """The job of its samples, as it goes on with a copy."""
    ground = Ground(lake.root, filled.ground.spark)
    ground.number, ground.start, ground.epoch = filled.ground.number, filled.ground.start, epoch
    ground.job.fold()
    return ground


@pytest.fixture
def lake(folded: Ground, tmp_path: Path) -> Layout:
    """A copy of that, with nobody at work."""
    shutil.copytree(folded.lake.root, tmp_path / "lake")
    return Layout(tmp_path / "lake")


def tables_of(lake: Layout) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables."""
    found = {}
    for table in there(lake):
        if table.layer == "bronze":  # where a file may be a segment, whose batch stands in its name
            rows = arrow(lake.root, table.full_name).to_pylist()
        else:
            rows = DeltaTable(lake.table(table.layer, table.name)).to_pyarrow_table().to_pylist()
        found[table.full_name] = sorted(rows, key=repr)
    return found


def completeness(lake: Layout, origin: str) -> dict[int, dict[str, Any]]:
    with Lake(lake.root) as asked:
        rows = asked.query("SELECT * FROM gold.completeness WHERE stream = 'samples'").to_pylist()
    return {row["era"]: row for row in rows if row["origin"] == origin}


def verdict(lake: Layout) -> tuple[str, list[str]]:
    found = Check(lake, deep=True).run()  # every byte: also that each file has a digest, whoever wrote it
    return found.state, [difference.what for difference in found.differences]


EQUAL: tuple[str, list[str]] = ("equal", [])


# Compaction.


def compacted(lake: Layout, epoch: int = 9) -> int:
    """Join what is due; returns how many files are left over."""
    bundles = list(compact.due(lake, LATER))
    for bundle in bundles:
        exchange(lake, compact.joined(lake, bundle), epoch)
    return sum(len(bundle.files) - 1 for bundle in bundles)


def more(first: int, last: int) -> tuple[Record, list[oracle.Row]]:
    """Samples of a node, and what the oracle is told of them."""
    numbers = range(first, last + 1)
    told = [oracle.Row((B, ERA, n), "net", "rate", at_ms(n), 10 * n) for n in numbers]
    return taken(first, [(NET, 10 * n, None) for n in numbers], origin=B), told


@pytest.mark.soak
@pytest.mark.proves("LAK-038", "PIP-045")
def test_of_files_that_hold_older_batches_too_a_fold_takes_what_is_fresh(
    lake: Layout, filled: Filled, monkeypatch: Patch
) -> None:
    """Joining keeps them apart, so that a fold reads no other rows; where it did not, none would count twice."""
    ground = _on(lake, filled, 20)
    ground.take(more(40, 42)[0])
    tables = ground.job.tables
    assert 3 == fresh_of(tables, SAMPLES, 1, 2).rows.count()
    monkeypatch.setattr(compact, "_side", lambda *_: 0)
    monkeypatch.setattr(compact, "_is_done", lambda *_: True)
    assert compacted(lake) >= 3
    assert 3 == fresh_of(tables, SAMPLES, 1, 2).rows.count()
    monkeypatch.setattr(fold, "_hold_only", lambda *_: True)
    assert 3 < fresh_of(tables, SAMPLES, 1, 2).rows.count()


@pytest.mark.proves("LAK-038")
def test_compaction_between_batches_changes_no_answer(lake: Layout, filled: Filled) -> None:
    """Two batches, a fold, one more, compaction, one that is killed and repeated, compaction, a fold: as without."""
    ground = _on(lake, filled, 20)
    third, fourth = more(40, 42), more(43, 44)
    ground.take(third[0])
    before, tables = tables_of(lake), ground.job.tables
    last = tables.rows_of_batch(SAMPLES, 2)
    assert compacted(lake) >= 3
    assert before == tables_of(lake)
    assert last == tables.rows_of_batch(SAMPLES, 2) == 3
    for table in (STAGES["samples"].bronze, SAMPLES):
        assert before[table.full_name] == sorted(tables.read(table).toArrow().to_pylist(), key=repr), (
            "as Spark reads it"
        )
    assert (2, {1}) == (marks_of(lake, "samples").done, set(marks_of(lake, "samples").folded))
    for table in (STAGES["samples"].bronze, SAMPLES, VALUES):
        assert all("/b0000000002-" in file for file in tables.files(table, "batch > 1")), (
            "what is to be folded lies alone"
        )

    def pull(when: str, step: str) -> None:
        if (when, step) == ("after", "silver"):
            raise Pulled

    calm = ground.options
    ground.restart(calm._replace(watcher=pull))
    with pytest.raises(Pulled):
        ground.take(fourth[0])
    assert {STAGES["samples"].bronze, SAMPLES} <= set(unfinished(lake))
    compacted(lake)
    ground.restart(calm)
    ground.take()
    compacted(lake)
    ground.job.fold()
    history = world(Chance("filled"), batches=2)
    told = [(arrival.rows, arrival.losses) for arrival in history.arrivals]
    compare(ground, oracle.tables_of([*told, (third[1], []), (fourth[1], [])], history.ends))
    assert EQUAL == verdict(lake)


def test_joining_the_last_batch_would_be_noticed(lake: Layout, folded: Ground, monkeypatch: Patch) -> None:
    """The planted bug: a batch that is repeated counts its own rows by the names of its files."""
    tables = Tables(lake, folded.spark, folded.job.tables.writer)
    rows = tables.rows_of_batch(SAMPLES, 1)
    compacted(lake)
    assert rows == tables.rows_of_batch(SAMPLES, 1) > 0
    monkeypatch.setattr(compact, "_is_done", lambda *_: True)
    monkeypatch.setattr(compact, "_side", lambda *_: 0)
    assert compacted(lake)
    assert rows != tables.rows_of_batch(SAMPLES, 1)


# Accounts.


def whole_table(lake: Layout) -> Exchange:
    delta = opened(lake, SAMPLES)
    assert delta is not None
    return Exchange(SAMPLES, tuple(live_files(delta, SAMPLES)[:1]), (), "forget", is_rearranged=False)


def no_accounts(patch: Patch) -> None:
    def lose(layout: Layout, wanted: Exchange, *_: Any) -> int:
        exchange(layout, wanted, 9)
        return 0

    patch.setattr(forgotten, "remove", lose)


def pulled_before(name: str) -> Callable[[Patch], None]:
    def plant(patch: Patch) -> None:
        def pull(*_: Any) -> None:
            raise Pulled

        patch.setattr(forgotten, name, pull)

    return plant


def pulled_behind_the_accounts(patch: Patch) -> None:
    real = forgotten._append

    def append(*what: Any) -> None:
        real(*what)
        raise Pulled

    patch.setattr(forgotten, "_append", append)


CRASHES = {
    "before the note": (pulled_before("LocalFiles"), 0),
    "before the removal": (pulled_before("exchange"), 0),
    "before the accounts": (pulled_before("_append"), 1),
    "behind the accounts": (pulled_behind_the_accounts, 1),
}


@pytest.mark.proves("LAK-037")
@pytest.mark.parametrize("instant", CRASHES)
def test_the_accounts_are_right_at_every_instant(lake: Layout, monkeypatch: Patch, instant: str) -> None:
    plant, removals = CRASHES[instant]
    wanted = whole_table(lake)
    found = forgotten.facts(lake, SAMPLES, wanted.remove)
    with monkeypatch.context() as patch:
        plant(patch)
        with pytest.raises(Pulled):
            forgotten.remove(lake, wanted, found, NOBODY, 9)
    assert EQUAL == verdict(lake)
    assert removals == len(set(forgotten.accounts(lake)["number"].to_pylist()))
    forgotten.settle(lake, 9)
    assert not lake.removal().exists()
    told = forgotten.accounts(lake)
    assert removals == len(set(told["number"].to_pylist()))
    if not removals:
        forgotten.remove(lake, wanted, found, NOBODY, 9)
    assert wanted.remove[0].rows == sum(forgotten.accounts(lake)["rows"].to_pylist())
    assert EQUAL == verdict(lake)


def test_a_removal_without_accounts_is_a_hole(lake: Layout, monkeypatch: Patch) -> None:
    no_accounts(monkeypatch)
    forgotten.remove(lake, whole_table(lake), [], NOBODY, 9)
    state, differences = verdict(lake)
    assert "broken" == state
    assert any("in bronze, and neither in silver nor in quarantine" in difference for difference in differences)


# Forgetting.


def forgot(lake: Layout, choice: Choice) -> dict[str, int]:
    return {removed.table: removed.rows for removed in forget.forget(lake, choice, "asked for it", 9)}


@pytest.mark.proves("LAK-037")
def test_an_origin_is_forgotten_and_nothing_else(lake: Layout, filled: Filled) -> None:
    before = tables_of(lake)
    was = completeness(lake, A)
    found = {removed.table: removed.rows for removed in forget.found(lake, Choice(origin=A))}
    assert found == forgot(lake, Choice(origin=A))
    after = tables_of(lake)
    kept = ("gold.completeness", "meta.progress", "meta.forgotten", "meta.twins")
    for name in set(before) - set(kept):
        assert [row for row in before[name] if A not in (row.get("origin"), row.get("node"))] == after[name], name
        assert found.get(name, 0) == len(before[name]) - len(after[name])
    assert {
        "bronze.samples",
        "silver.samples",
        "silver.values",
        "gold.rollup_1m",
        "gold.latest",
        "silver.events",
    } <= set(found)
    assert EQUAL == verdict(lake)
    for era, row in completeness(lake, A).items():
        old = was[era]
        assert (0, 0, 0) == (row["received"], row["silver_rows"], row["quarantined"])
        assert (old["missing"], old["expected"], old["duplicates"]) == (
            row["missing"],
            row["expected"],
            row["duplicates"],
        )
        assert old["received"] + old["forgotten"] == row["forgotten"]
    (told, *_) = after["meta.forgotten"]
    assert (f"--origin {A}", "asked for it", forgotten.whoever()) == (told["what"], told["why"], told["by"])
    assert {} == forgot(lake, Choice(origin=A))
    assert EQUAL == verdict(lake)


def test_what_was_forgotten_does_not_come_back(lake: Layout, filled: Filled) -> None:
    """A number drained once more by another: a duplicate of what is not there. What is new is taken as ever."""
    forgot(lake, Choice(origin=B))
    numbers = {str(origin): ranges for origin, ranges in forgotten.numbers(lake, "samples")}
    ((origin, ranges),) = numbers.items()
    (first, _), *_ = ranges
    assert origin.startswith(B)
    ground = _on(lake, filled, 20)
    done = ground.take(*[taken(n, [(NET, 10, None)], origin=B) for n in (first, 900)], drain="d7" * 16)
    assert (1, 1) == (done.outcome.duplicates, done.outcome.silver)
    ground.job.fold()
    assert [900] == [row["sequence"] for row in tables_of(lake)["silver.samples"] if row["origin"] == B]
    assert EQUAL == verdict(lake)
    row = completeness(lake, B)[ERA]
    assert (1, 1, ranges.count) == (row["received"], row["silver_rows"], row["forgotten"])
    assert row["expected"] == row["received"] + row["lost"] + row["forgotten"] + row["missing"]


@pytest.mark.soak
def test_a_series_is_forgotten(lake: Layout) -> None:
    (series, *_) = {row["series"] for row in tables_of(lake)["silver.samples"]}
    forgot(lake, Choice(series=series))
    for name, rows in tables_of(lake).items():
        assert series not in {row.get("series") for row in rows}, name
    assert EQUAL == verdict(lake)


@pytest.mark.soak
def test_what_was_before_a_day_is_forgotten_of_one_stream(lake: Layout) -> None:
    before = tables_of(lake)
    gone = forgot(lake, Choice(before=FIRST + timedelta(days=1), stream="events"))
    assert {"bronze.events", "silver.events"} <= set(gone) <= {"bronze.events", "silver.events", "quarantine.events"}
    assert before["silver.samples"] == tables_of(lake)["silver.samples"]
    assert {} == forgot(lake, Choice(before=FIRST))
    assert EQUAL == verdict(lake)


def test_it_wants_to_be_told_what_and_refuses_a_lake_in_the_middle_of_a_batch(
    lake: Layout, filled: Filled, monkeypatch: Patch
) -> None:
    with pytest.raises(UserError) as refused:
        forgot(lake, Choice(stream="samples"))
    assert "nothing-chosen" == refused.value.code
    with pytest.raises(UserError, match="completeness does not include all batches yet: samples") as refused:
        forgot(filled.ground.lake, Choice(origin=A))
    assert "unfinished-batch" == refused.value.code
    monkeypatch.setattr(forget, "unfinished", lambda _: [SAMPLES])
    with pytest.raises(UserError, match=r"silver\.samples have rows of it") as refused:
        forgot(lake, Choice(origin=A))
    assert "unfinished-batch" == refused.value.code


# Retention.


@pytest.mark.proves("LAK-037")
def test_old_days_go_by_layer(lake: Layout) -> None:
    keep = KeepTable(bronze=30, silver=400, gold=0, quarantine=30)
    assert [] == list(retain.due(lake, keep, FIRST + timedelta(days=30)))
    due = list(retain.due(lake, keep, FIRST + timedelta(days=31)))
    assert {"bronze", "quarantine"} == {old.table.layer for old in due}
    (samples,) = (old for old in due if old.table is STAGES["samples"].bronze)
    assert ({0}, 2) == ({file.last_batch for file in samples.files}, samples.waiting), "the last batch may be repeated"
    before = tables_of(lake)
    removed = remove.whole(lake, STAGES["samples"].bronze, samples.files, samples.reason, 9)
    after = tables_of(lake)
    assert (len(before["bronze.samples"]) - len(after["bronze.samples"])) == removed.rows > 0
    assert {1} == {row["batch"] for row in after["bronze.samples"]}
    assert before["silver.samples"] == after["silver.samples"]
    assert EQUAL == verdict(lake)
    assert {"[lake.keep] bronze = 30"} == {row["what"] for row in after["meta.forgotten"]}


def test_what_is_not_folded_yet_stays_however_old(filled: Filled) -> None:
    due = list(retain.due(filled.ground.lake, KeepTable(), FIRST + timedelta(days=4000)))
    old = {one.table: ([file.last_batch for file in one.files], one.waiting) for one in due}
    assert ([0], 1) == old[SAMPLES] == old[VALUES]
    assert ([0, 0], 2) == old[STAGES["samples"].bronze], "a file a segment"


# The driver's own.


class Clock:
    """A monotonic clock that is told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def round_of(upkeep: keeper.Upkeep, turns: int = 60) -> None:
    """Turns until nothing more is done."""
    for _ in range(turns):
        upkeep.turn()
        if upkeep._thread is not None:
            upkeep._thread.join()


@pytest.mark.proves("LAK-037", "LAK-038")
def test_a_driver_does_it_between_batches(lake: Layout) -> None:
    clock = Clock()
    wall_ns = round((datetime(2027, 1, 15, tzinfo=UTC)).timestamp()) * 1_000_000_000
    keep = KeepTable(silver=0)
    upkeep = keeper.Upkeep(lake, 9, keep, keeper.Timing(clock=clock, wall_ns=lambda: wall_ns))
    orphan = lake.table("silver", "samples") / "day=2026-11-21" / "b0000000001-lost.parquet"
    orphan.write_bytes(b"x")
    os.utime(orphan, (0, 0))
    before = tables_of(lake)
    round_of(upkeep)
    assert before == tables_of(lake), "it is not time yet"
    clock.now = keeper.FIRST_S
    round_of(upkeep)
    after = tables_of(lake)
    assert {0, 1} == {row["batch"] for row in before["bronze.samples"]}
    assert {1} == {row["batch"] for row in after["bronze.samples"]}
    assert before["silver.samples"] == after["silver.samples"]
    assert not orphan.exists()
    assert EQUAL == verdict(lake)
    events = [json.loads(line) for line in (lake.runs() / "events.jsonl").read_text("utf-8").splitlines()]
    assert {"forgotten", "compacted"} <= {event["event"] for event in events}
    assert [] == list(compact.due(lake, date(2027, 1, 15)))
    version = DeltaTable(lake.table("silver", "values")).version()
    round_of(upkeep)
    assert version == DeltaTable(lake.table("silver", "values")).version()
    upkeep.close()


@pytest.mark.parametrize(
    "wrong",
    [
        OSError(28, "No space left on device"),
        pytest.param(duckdb.OutOfMemoryException("no memory"), marks=pytest.mark.soak),
        pytest.param(pa.ArrowInvalid("cut"), marks=pytest.mark.soak),
    ],
)
def test_what_goes_wrong_costs_a_round_and_not_the_driver(lake: Layout, monkeypatch: Patch, wrong: Exception) -> None:
    clock = Clock()
    upkeep = keeper.Upkeep(lake, 9, KeepTable(bronze=0, quarantine=0, silver=0), keeper.Timing(clock=clock))

    def full(*_: Any) -> None:
        raise wrong

    monkeypatch.setattr(compact, "joined", full)
    clock.now = keeper.FIRST_S
    round_of(upkeep)
    monkeypatch.undo()
    assert str(wrong) in (lake.root / "_weft" / "runs" / "events.jsonl").read_text("utf-8")
    before = len(live_files(_there(lake), SAMPLES))
    clock.now += keeper.EVERY_S
    round_of(upkeep)
    assert len(live_files(_there(lake), SAMPLES)) <= before
    monkeypatch.setattr(compact, "due", lambda *_: 1 / 0)
    clock.now += keeper.EVERY_S
    with pytest.raises(ZeroDivisionError):
        round_of(upkeep)


def _there(lake: Layout) -> DeltaTable:
    delta = opened(lake, SAMPLES)
    assert delta is not None
    return delta


# The commands.


def said(capsys: pytest.CaptureFixture[str], lake: Layout, *words: str) -> list[str]:
    capsys.readouterr()
    app([*words, "--lake", str(lake.root)], exit_on_error=False, result_action="return_value")
    return capsys.readouterr().out.splitlines()


def told(capsys: pytest.CaptureFixture[str], lake: Layout, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said(capsys, lake, *words, "--json")]


@pytest.mark.proves("PIP-091", part="forget, history, vacuum; what destroys needs --yes")
def test_the_commands_do_what_they_said_they_would(lake: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    before = tables_of(lake)
    would = told(capsys, lake, "forget", "--origin", A, "--dry-run")
    assert before == tables_of(lake)
    with pytest.raises(UserError) as refused:
        said(capsys, lake, "forget", "--origin", A)
    assert "not-confirmed" == refused.value.code
    did = told(capsys, lake, "forget", "--origin", A, "--why", "moved away", "--yes")
    assert {one["table"]: one["rows"] for one in would} == {one["table"]: one["rows"] for one in did}
    assert {"moved away"} == {row["why"] for row in tables_of(lake)["meta.forgotten"]}
    assert sum(one["rows"] for one in did) == sum(row["rows"] for row in tables_of(lake)["meta.forgotten"])
    (newest, *_) = said(capsys, lake, "history", "silver.samples")
    assert newest.endswith("  forget")
    assert any("batch 1 of samples" in line for line in said(capsys, lake, "history", "silver.samples"))
    (files,) = said(capsys, lake, "vacuum", "--dry-run")
    assert "0 files, 0.0 MiB would be deleted" == files
    for path in lake.tables().rglob("*.parquet"):
        os.utime(path, (0, 0))
    assert "0 files, 0.0 MiB would be deleted" == said(capsys, lake, "vacuum", "--dry-run", "--hours", "1")[-1]
    with pytest.raises(UserError) as refused:
        said(capsys, lake, "vacuum", "--hours", "0")
    assert "too-young" == refused.value.code
    assert EQUAL == verdict(lake)


def test_days_that_are_kept_stand_in_the_settings(lake: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    (lake.root / "lake.toml").write_text("[lake.keep]\nbronze = 0\nsilver = 0\ngold = 0\nquarantine = 0\n", "utf-8")
    assert ["nothing to do: no day is older than lake.toml allows"] == said(capsys, lake, "retain")
    (lake.root / "lake.toml").write_text("[lake.keep]\nbronze = 1\nsilver = 0\nquarantine = 0\n", "utf-8")
    wall = datetime.now(UTC).date()
    is_old = wall > FIRST + timedelta(days=1)
    dry = told(capsys, lake, "retain", "--dry-run")
    assert is_old == bool(dry)
    assert dry == told(capsys, lake, "retain")
    assert EQUAL == verdict(lake)


@pytest.mark.parametrize("days", ["-1", "1000000", "1.5", "9223372036854775808"])
def test_days_before_which_there_is_no_day_are_refused(lake: Layout, days: str) -> None:
    (lake.root / "lake.toml").write_text(f"[lake.keep]\nsilver = {days}\n", "utf-8")
    with pytest.raises(UserError, match="silver"):
        settings_of(lake)
    assert [] == list(retain.due(lake, KeepTable(silver=100_000), FIRST))


@pytest.mark.proves("PIP-091", part="compact and retain, refused beside a driver")
def test_nothing_is_changed_beside_a_driver(lake: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    with Lease(lake, "samples"):
        for words in (["compact"], ["retain"], ["vacuum"], ["forget", "--origin", A, "--yes"]):
            with pytest.raises(UserError) as refused:
                said(capsys, lake, *words)
            assert "lease-held" == refused.value.code, words


def test_what_the_page_says_of_days_is_so() -> None:
    page = (Path(__file__).parents[2] / "docs" / "lake-upkeep.md").read_text("utf-8")
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert tomllib.loads(text)["lake"]["keep"] == msgspec.to_builtins(KeepTable())
    for name in re.findall(r"^\| `weft lake (\w+)", page, re.MULTILINE):
        assert app[name] is not None


@pytest.mark.proves(
    "WEL-002", part="the page of upkeep: what is typed works; an origin is forgotten, a table has its history"
)
def test_what_is_typed_of_the_page_works(lake: Layout, monkeypatch: Patch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(lake.root.parent)
    said: list[str] = []
    shown: list[str] = []
    for typed in (typed for console in consoles("lake-upkeep.md") for typed in console):
        assert not run(typed.command.replace(OF_THE_PAGE, A)), typed.command
        said += plain(capsys.readouterr().out).splitlines()
        shown += [plain(line) for line in typed.shown if line != "…"]
    assert 7 == len(shown)
    assert TOO_FEW == {line for line in shown if line not in said}
    assert {"left the company"} == {row["why"] for row in tables_of(lake)["meta.forgotten"]}
