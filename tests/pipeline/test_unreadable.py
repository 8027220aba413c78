"""A file of a lake that cannot be read, or is gone, is named by the check (FLT-019, FLD-030)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pipeline.golden_lakes import LAKES, opened
from tests.pipeline.ground import DRAIN, MEM, taken
from tests.pipeline.plain import lake_of
from weft.base.errors import UserError
from weft.lake.layout import Layout
from weft.lake.segments import append_segment
from weft.pipeline.check import Check
from weft.pipeline.digests import refuse_damaged
from weft.pipeline.mending.skip import Place, Skipped, skip
from weft.pipeline.tables import SAMPLES

pytestmark = pytest.mark.proves("FLT-019", part="the check names files of tables that cannot be read")


@pytest.fixture
def lake(tmp_path: Path) -> Layout:
    """A lake of two batches whose files are whole."""
    return opened(next(path for path in LAKES if path.name.startswith("streamed")), tmp_path)


def unreadable(file: Path) -> Path:
    """Each read of its bytes fails from now on, as that of a bad disk: so does a process that reads its own page 0."""
    file.unlink()
    file.symlink_to("/proc/self/mem")
    return file


def a_file_of(lake: Layout, table: str) -> Path:
    return min((lake.root / "tables" / table).rglob("*.parquet"))


@pytest.mark.parametrize("deep", [False, True])
def test_a_check_names_the_file_of_a_table_and_is_broken(lake: Layout, *, deep: bool) -> None:
    file = unreadable(a_file_of(lake, "silver/samples"))
    verdict = Check(lake, deep=deep).run()
    assert ("broken", 2) == (verdict.state, verdict.exit_code)
    assert [True] == [file.name in difference.what for difference in verdict.differences]


@pytest.mark.parametrize("deep", [False, True])
def test_a_check_names_a_file_that_is_gone_and_is_broken(lake: Layout, *, deep: bool) -> None:
    file = a_file_of(lake, "silver/samples")
    file.unlink()
    verdict = Check(lake, deep=deep).run()
    assert "broken" == verdict.state
    assert [True] == [file.name in difference.what for difference in verdict.differences]


def test_a_deep_check_reads_on_behind_it_and_counts_what_is_whole(lake: Layout) -> None:
    whole = Check(lake, deep=True).run().proved
    file = a_file_of(lake, "silver/samples")
    size = file.stat().st_size
    unreadable(file)
    assert whole - size == Check(lake, deep=True).run().proved


def test_a_deep_check_names_a_file_of_a_log(lake: Layout) -> None:
    unreadable(lake.root / "tables" / "gold" / "latest" / "_delta_log" / "00000000000000000001.json")
    verdict = Check(lake, deep=True).run()
    assert "broken" == verdict.state
    assert "00000000000000000001.json" in " ".join(difference.what for difference in verdict.differences)


@pytest.mark.proves("FLT-019", part="a driver names the table and the file that it cannot read")
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (unreadable, "cannot be read: Input/output error"),
        (Path.unlink, "cannot be read: No such file or directory"),
        (Path.touch, ""),
    ],
)
@pytest.mark.parametrize("has_digest", [True, False])
def test_before_a_driver_reads_a_file_of_a_table_it_says_which_cannot_be_read(
    lake: Layout, spoil: Callable[[Path], object], why: str, *, has_digest: bool
) -> None:
    file = a_file_of(lake, "silver/samples")
    file = file if has_digest else file.rename(file.with_name("plain.parquet"))
    root = lake.root / "tables" / "silver" / "samples"
    path = str(file.relative_to(root))
    spoil(file)
    if not why:
        refuse_damaged(root, SAMPLES, [path])
        return
    with pytest.raises(UserError) as refused:
        refuse_damaged(root, SAMPLES, [path])
    assert "damaged" == refused.value.code
    assert f"silver.samples: {path} {why}\n  try: weft lake check --deep, which names all such files; " in str(
        refused.value
    )


@pytest.mark.proves("FLT-019", part="a segment that cannot be read may be given up")
def test_a_segment_that_its_disk_cannot_read_is_given_up_like_one_that_is_gone(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake")
    append_segment(lake, "samples", DRAIN, [(1, taken(1, [(MEM, 7, None)] * 3))])
    place = Place("samples", DRAIN, 1)
    with pytest.raises(UserError, match="is intact"):
        skip(lake, place, "a bad disk")
    unreadable(lake.parquet(*place))
    assert Skipped(*place, 3, 3, "a bad disk") == skip(lake, place, "a bad disk")
