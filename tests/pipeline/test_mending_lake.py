"""`weft lake repair` and `weft lake skip` as people use them, on a lake of five streams; nothing here starts Java."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.pipeline.golden_lakes import LAKES, opened
from tests.pipeline.ground import DRAIN, NET, taken
from weft.base.errors import UserError
from weft.cli.lake import app
from weft.lake.consumers import consumers
from weft.lake.files import LocalFiles
from weft.lake.layout import Layout
from weft.lake.retention import delete
from weft.lake.segments import append_segment
from weft.lake.stubs import link_at
from weft.pipeline.check import Check
from weft.pipeline.checkpoint import Checkpoint, read_record
from weft.pipeline.coverage import Coverage
from weft.pipeline.kinds import KINDS, Kind
from weft.pipeline.lease import LeaseLost
from weft.pipeline.marks import Mark, newest_mark
from weft.pipeline.mending.repair import Repair, repair
from weft.pipeline.tables import SAMPLES
from weft.pipeline.upkeep.log import Exchange, exchange

pytestmark = pytest.mark.prove("a lake of an earlier version for each")

STREAMS = ("samples", "messages", "events", "store", "logs")


@pytest.fixture
def lake(tmp_path: Path) -> Layout:
    return opened(LAKES[0], tmp_path)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    app(list(words), exit_on_error=False, result_action="return_value")
    return capsys.readouterr().out


def known(lake: Layout, kind: Kind, number: int) -> Coverage:
    return Checkpoint(lake, kind.stream, is_dense=kind.is_dense, runs_on=kind.runs_on).coverage(number)


def last(lake: Layout, stream: str) -> int:
    return max(int(path.name) for path in (lake.checkpoint(stream) / "offsets").glob("[0-9]*"))


@pytest.mark.proves("PIP-091", part="repair")
@pytest.mark.prove("a lake of an earlier version")
@pytest.mark.proves("PIP-025")
def test_every_job_knows_again_what_it_knew(lake: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "repair", "--lake", str(lake.root)).startswith("nothing to repair")
    ends = {name: last(lake, name) for name in STREAMS}
    before = {name: known(lake, KINDS[name], ends[name]) for name in STREAMS}
    shutil.rmtree(lake.root / "checkpoints")
    for consumer in lake.consumers().iterdir():
        consumer.unlink()
    told = [json.loads(line) for line in said(capsys, "repair", "--lake", str(lake.root), "--json").splitlines()]
    assert [(name, ends[name], {}) for name in STREAMS] == [
        (each["job"], each["batch"], each["taken_back"]) for each in told
    ]
    for name in STREAMS:
        after = known(lake, KINDS[name], ends[name])
        assert before[name].covered == after.covered
        assert before[name].known == after.known
        assert before[name].offset == after.offset
        assert {why: list(numbers) for why, numbers in before[name].lost.items()} == {
            why: list(numbers) for why, numbers in after.lost.items()
        }
        record = read_record(lake.checkpoint_id(name))
        assert (ends[name] + 1, before[name].offset) == (record.base, record.start)
        silver = KINDS[name].silver
        assert Mark(record.id, ends[name]) == newest_mark(lake.table(silver.layer, silver.name), name)
    assert sorted(STREAMS) == sorted(consumer.name for consumer in consumers(lake))
    assert "equal" == Check(lake).run().state
    assert said(capsys, "repair", "--lake", str(lake.root)).startswith("nothing to repair")
    assert "it was asked for" in said(capsys, "repair", "--lake", str(lake.root), "--stream", "logs", "--force")


def test_numbers_are_taken_from_the_tables_where_manifests_say_others(
    lake: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when tables were begun behind the first segments: the name of the vector is another one."""
    kind = KINDS["samples"]
    before = known(lake, kind, 1)
    mending = Repair(lake, kind, 9, 1)
    real = mending._last_common
    monkeypatch.setattr(mending, "_last_common", lambda asked: real(asked)._replace(vec="0" * 32))
    assert 1 == mending.run("to see").batch
    after = known(lake, kind, 1)
    assert (before.covered, before.known) == (after.covered, after.known)


def test_a_lease_that_was_lost_is_mended(lake: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(lake.lease("samples").parent)
    assert "samples: the lease file of the job 'samples' was lost" in said(capsys, "repair", "--lake", str(lake.root))
    for table in KINDS["samples"].tables:
        handle = DeltaTable(lake.table(table.layer, table.name)) if _is_there(lake, table) else None
        assert handle is None or (handle.transaction_version("weft.lease/samples") or 0) <= 1


def test_whoever_kept_a_lake_under_a_lease_that_was_lost_does_not_shut_out_the_next(
    lake: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = Exchange(SAMPLES, (), (), "compact", is_rearranged=True)
    exchange(lake, nothing, 50)
    shutil.rmtree(lake.lease("samples").parent)
    with pytest.raises(LeaseLost):
        exchange(lake, nothing, 2)
    said(capsys, "repair", "--lake", str(lake.root))
    exchange(lake, nothing, 2)


def _is_there(lake: Layout, table: Any) -> bool:
    return DeltaTable.is_deltatable(str(lake.table(table.layer, table.name)))


def test_a_mark_is_found_where_only_a_checkpoint_of_the_log_is_left(lake: Layout) -> None:
    path = lake.table("silver", "samples")
    mark = newest_mark(path, "samples")
    DeltaTable(path).create_checkpoint()
    for commit in (path / "_delta_log").glob("0*.json"):
        commit.unlink()
    assert mark == newest_mark(path, "samples") != None  # noqa: E711  # both at once
    assert newest_mark(path, "events") is None


def test_what_meta_progress_counts_and_a_table_lacks_is_noticed(
    lake: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    values = lake.table("silver", "values")
    (values / "_delta_log" / f"{DeltaTable(values).version():020d}.json").unlink()
    assert "of the job 'samples', silver.values lack it" in said(capsys, "repair", "--lake", str(lake.root))
    assert said(capsys, "repair", "--lake", str(lake.root)).startswith("nothing to repair")


def test_everything_is_taken_again_only_if_nothing_of_it_was_deleted(lake: Layout) -> None:
    shutil.rmtree(lake.table("meta", "progress"))
    place = ("samples", DRAIN, 1)
    delete(lake, link_at(lake, *place).manifest, LocalFiles())
    with pytest.raises(UserError) as refused:
        list(repair(lake, [KINDS["samples"]], 9))
    assert "segment-gone" == refused.value.code


def test_a_repair_says_what_a_power_cut_has_left(lake: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    values = lake.table("silver", "values")
    torn = f"{DeltaTable(values).version() + 1:020d}.json"
    (values / "_delta_log" / torn).touch()
    assert f"silver.values: {torn} of its log" in said(capsys, "repair", "--lake", str(lake.root))
    assert said(capsys, "repair", "--lake", str(lake.root)).startswith("nothing to repair")


def test_a_repair_needs_what_came_after(lake: Layout) -> None:
    """Values were put back to an older copy, and the segment behind it is gone."""
    values = lake.table("silver", "values")
    (values / "_delta_log" / f"{DeltaTable(values).version():020d}.json").unlink()
    lake.parquet("samples", DRAIN, 2).unlink()
    manifest = lake.manifest("samples", DRAIN, 2)
    append_segment(lake, "samples", DRAIN, [(1, taken(20, [(NET, 1, None)]))])
    manifest.unlink()
    with pytest.raises(UserError) as refused:
        list(repair(lake, [KINDS["samples"]], 9, is_forced=True))
    assert "segment-gone" == refused.value.code


@pytest.mark.proves("PIP-091", part="skip asks first")
def test_skip_asks_first_and_names_what_it_gives_up(lake: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    append_segment(lake, "samples", DRAIN, [(1, taken(20, [(NET, 1, None)] * 3))])
    lake.parquet("samples", DRAIN, 3).unlink()
    words = ("skip", f"{DRAIN}:3", "--stream", "samples", "--reason", "disk replaced", "--lake", str(lake.root))
    with pytest.raises(UserError) as refused:
        said(capsys, *words)
    assert "not-confirmed" == refused.value.code
    assert f"samples {DRAIN}:3: 3 rows, 3 numbers: lost, 'disk replaced'\n" == said(capsys, *words, "--yes")
    for wrong in ((f"{DRAIN}:x", "samples"), (f"{DRAIN}:3", "sample")):
        with pytest.raises(UserError) as refused:
            said(capsys, "skip", wrong[0], "--stream", wrong[1], *words[4:], "--yes")
        assert refused.value.code in ("no-segment", "no-stream")


@pytest.mark.proves("LAK-036")
def test_a_lake_of_a_newer_form_is_refused(lake: Layout) -> None:
    lake.lake_json.write_bytes(lake.lake_json.read_bytes().replace(b'"format":1', b'"format":2'))
    with pytest.raises(UserError) as refused:
        Checkpoint(lake, "samples").open(has_rows=True)
    assert "newer-lake" == refused.value.code


@pytest.mark.parametrize(("table", "code"), [
    ("silver.series", "no-rebuild"),
    ("meta.edges", "no-rebuild"),
    ("gold.completeness", "no-rebuild"),
    ("silver.nothing", "no-table"),
])  # fmt: skip
def test_what_has_no_source_is_not_made_anew(lake: Layout, table: str, code: str) -> None:
    with pytest.raises(UserError) as refused:
        app(["rebuild", table, "--lake", str(lake.root)], exit_on_error=False, result_action="return_value")
    assert code == refused.value.code
