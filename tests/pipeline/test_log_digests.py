"""A byte that changes in a table's log is found: each file of it has a digest elsewhere (FLD-030)."""

import errno
import io
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable

from weft.base.chance import Chance
from weft.base.errors import UserError
from weft.lake.files import LocalFiles
from weft.lake.layout import Layout
from weft.pipeline import delta, logdigests
from weft.pipeline.check import Check
from weft.pipeline.delta import Tables
from weft.pipeline.logdigests import adopt_log, log_proofs
from weft.pipeline.tables import SAMPLES
from weft.pipeline.upkeep.keeper import may_pass
from weft.pipeline.upkeep.log import Exchange, exchange
from weft.pipeline.writer import Writer

COMMITS = 105
"""A checkpoint at version 99, and commits behind it."""


def tables_of(lake: Layout) -> Tables:
    nobody: Any = None
    return Tables(lake, nobody, Writer("samples", "0" * 32, 1))


def filled(lake: Layout, commits: int = COMMITS) -> Tables:
    """A table of so many commits that carry no file."""
    tables = tables_of(lake)
    for batch in range(commits):
        tables.mark(SAMPLES, batch, {})
    return tables


def log_of(lake: Layout) -> Path:
    return lake.table(SAMPLES.layer, SAMPLES.name) / "_delta_log"


def faults(lake: Layout) -> dict[str, str]:
    return {proof.path: proof.fault for proof in log_proofs(lake, SAMPLES) if proof.fault}


@pytest.fixture
def lake(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "lake")
    layout.root.mkdir()
    layout.lake_json.write_text("{}", "utf-8")
    return layout


def flipped(file: Path, at: int, bit: int = 0) -> bytes:
    """Change one bit; returns what the file held."""
    whole = file.read_bytes()
    altered = bytearray(whole)
    altered[at] ^= 1 << bit
    file.write_bytes(altered)
    return whole


@pytest.mark.prove("every byte of a log")
@pytest.mark.proves("FLD-030", part="logs of tables")
def test_a_byte_that_changed_anywhere_in_the_log_of_a_table_is_named(lake: Layout, *, soak: bool) -> None:
    filled(lake)
    assert {} == faults(lake)
    chance, tried = Chance("log"), Counter[str]()
    kinds = [sorted(log_of(lake).glob(pattern)) for pattern in ("*.json", "*.checkpoint.parquet", "_last_checkpoint")]
    assert [106, 1, 1] == [len(files) for files in kinds]
    for number in range(4_000 if soak else 40):
        file = chance.choice(kinds[number % 3])
        whole = flipped(file, chance.randint(0, file.stat().st_size - 1), chance.randint(0, 7))
        (fault,) = faults(lake).items()
        assert f"_delta_log/{file.name}" == fault[0]
        assert fault[1] in ({"changed", "unproved"} if file.name == "_last_checkpoint" else {"changed"})
        file.write_bytes(whole)
        tried[file.name] += 1
    assert len(tried) > 12
    assert {} == faults(lake)


def test_the_check_names_a_commit_that_still_reads_well(lake: Layout) -> None:
    filled(lake, 3)
    commit = log_of(lake) / f"{2:020d}.json"
    text = commit.read_bytes()
    commit.write_bytes(text.replace(b'"weft.batch":"1"', b'"weft.batch":"3"'))
    assert text != commit.read_bytes()
    verdict = Check(lake, deep=True).run()
    assert "broken" == verdict.state
    assert [f"silver.samples: _delta_log/{2:020d}.json is changed"] == [found.what for found in verdict.differences]


@pytest.mark.prove("hundreds of commits")
def test_a_driver_does_not_go_on_from_a_log_that_changed(lake: Layout) -> None:
    filled(lake)
    flipped(log_of(lake) / f"{50:020d}.json", 40)  # before the newest checkpoint: nothing rests on it
    tables_of(lake).mark(SAMPLES, COMMITS, {})
    for name in (f"{99:020d}.checkpoint.parquet", f"{103:020d}.json"):
        whole = flipped(log_of(lake) / name, 40)
        with pytest.raises(UserError) as refused:
            tables_of(lake).mark(SAMPLES, COMMITS + 1, {})
        assert "damaged" == refused.value.code
        assert name in refused.value.text
        (log_of(lake) / name).write_bytes(whole)
    tables_of(lake).mark(SAMPLES, COMMITS + 1, {})


def test_a_commit_whose_process_ended_before_its_digest_gets_it_at_the_next_start(
    lake: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = filled(lake, 3)
    monkeypatch.setattr(delta, "note_commits", lambda *_: None)
    tables.mark(SAMPLES, 3, {})
    assert {f"_delta_log/{4:020d}.json": "unproved"} == faults(lake)
    monkeypatch.undo()
    tables_of(lake).handle(SAMPLES)
    assert {} == faults(lake)


def _of_a_batch(_: Layout, tables: Tables) -> None:
    tables.mark(SAMPLES, 3, {})


def _of_upkeep(lake: Layout, _: Tables) -> None:
    exchange(lake, Exchange(SAMPLES, (), (), "compact", is_rearranged=True), 1)


@pytest.mark.proves("FLD-030", part="a commit without a digest is never hidden by a later one that has it")
@pytest.mark.parametrize(("commit", "batch"), [(_of_a_batch, 3), (_of_upkeep, 2)])
@pytest.mark.parametrize("call", ["sync_directory", "make_directories"])
def test_a_driver_ends_where_a_commit_is_made_and_its_disk_refuses_to_keep_it(
    lake: Layout,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    commit: Callable[[Layout, Tables], object],
    batch: int,
) -> None:
    tables = filled(lake, 3)

    def refuse(_: LocalFiles, path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, call, refuse)
        with pytest.raises(UserError, match="No space left") as refused:
            commit(lake, tables)
    assert "storage-failed" == refused.value.code
    assert not may_pass(refused.value), "the driver would go on behind it"
    again = tables_of(lake)
    assert batch == again.committed(SAMPLES)
    again.mark(SAMPLES, 4, {})
    assert {} == faults(lake)


def test_a_line_that_a_full_disk_cuts_off_is_added_by_the_next_start(
    lake: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = filled(lake, 3)
    real = Path.open

    class Short(io.FileIO):
        def write(self, data: Any) -> int:
            return super().write(data[:40])

    def opened(file: Path, mode: str = "r", **how: Any) -> Any:
        return (
            Short(file, mode.replace("b", "")) if file.suffix == ".sha256" and "a" in mode else real(file, mode, **how)
        )

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", opened)
        with pytest.raises(UserError, match="No space left"):
            tables.mark(SAMPLES, 3, {})
    tables_of(lake).mark(SAMPLES, 4, {})
    assert {} == faults(lake)


def _by_another_program(lake: Layout) -> None:
    said = CommitProperties(custom_metadata={"by": "somebody"})
    table = DeltaTable(lake.table(SAMPLES.layer, SAMPLES.name))
    table.create_write_transaction([], "append", table.schema(), ["day"], commit_properties=said)


def _by_an_earlier_version(lake: Layout) -> None:
    for file in lake.log_digests("silver.samples").iterdir():
        file.unlink()


@pytest.mark.parametrize(("committed", "without"), [(_by_another_program, [4]), (_by_an_earlier_version, [0, 1, 2, 3])])
def test_what_has_no_digest_is_told_until_it_is_adopted(
    committed: Callable[[Layout], None], without: list[int], lake: Layout
) -> None:
    filled(lake, 3)
    committed(lake)
    tables_of(lake).mark(SAMPLES, 4, {})
    names = [f"_delta_log/{version:020d}.json" for version in without]
    assert dict.fromkeys(names, "unproved") == faults(lake)
    verdict = Check(lake, deep=True).run()
    assert ({"silver.samples": len(without)}, "unproved") == (verdict.unproved, verdict.state)
    adopt_log(lake, SAMPLES, names)
    assert {} == faults(lake)
    flipped(log_of(lake) / names[0].removeprefix("_delta_log/"), 7)
    assert {names[0]: "changed"} == faults(lake)


def test_a_commit_that_is_lost_and_made_anew_has_the_digest_of_the_new_one(lake: Layout) -> None:
    filled(lake, 3)
    (log_of(lake) / f"{3:020d}.json").unlink()
    tables_of(lake).mark(SAMPLES, 9, {})
    assert {} == faults(lake)


def test_a_list_with_a_torn_or_altered_line_proves_nothing_of_that_file_and_all_of_the_others(lake: Layout) -> None:
    tables = filled(lake, 3)
    (digests,) = lake.log_digests("silver.samples").iterdir()
    with digests.open("ab") as opened:
        opened.write(b"00" * 20)
    tables.mark(SAMPLES, 3, {})
    assert {} == faults(lake)
    flipped(digests, 70)  # in a name
    assert 1 == len(faults(lake))


@pytest.mark.prove("hundreds of commits")
def test_lists_of_versions_that_the_log_has_forgotten_are_deleted(
    lake: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logdigests, "VERSIONS_PER_LIST", 30)
    tables = filled(lake, 198)
    for version in range(100):
        (log_of(lake) / f"{version:020d}.json").unlink()
    tables.mark(SAMPLES, 198, {})  # makes the checkpoint
    names = sorted(file.name for file in lake.log_digests("silver.samples").iterdir())
    assert [f"{number:08d}.sha256" for number in (3, 4, 5, 6)] == names
    assert {} == faults(lake)
    (log_of(lake) / "_last_checkpoint").write_text("{}")
    adopt_log(lake, SAMPLES, ["_delta_log/_last_checkpoint"])
    assert {} == faults(lake)
