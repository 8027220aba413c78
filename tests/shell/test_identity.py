"""A node keeps its UUID, and never uses an era twice."""

from pathlib import Path

import pytest

from weft.base.errors import UserError
from weft.shell.identity import begin_start

WALL = 1_795_000_000_000_000_000


def test_the_uuid_stays_and_the_era_grows_even_when_the_clock_steps_back(tmp_path: Path) -> None:
    first = begin_start(tmp_path / "s", "a", WALL)
    second = begin_start(tmp_path / "s", "a", WALL - 3_600 * 10**9)
    assert first.node == second.node
    assert (WALL // 1_000, WALL // 1_000 + 1) == (first.era, second.era)


def test_a_state_directory_belongs_to_one_name(tmp_path: Path) -> None:
    begin_start(tmp_path / "s", "a", WALL)
    with pytest.raises(UserError) as refused:
        begin_start(tmp_path / "s", "b", WALL)
    assert "name-changed" == refused.value.code


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff", b'{"node": 3}'])
def test_a_damaged_identity_is_said_and_not_replaced(tmp_path: Path, damage: bytes) -> None:
    begin_start(tmp_path, "a", WALL)
    (tmp_path / "node.json").write_bytes(damage)
    with pytest.raises(UserError) as refused:
        begin_start(tmp_path, "a", WALL)
    assert "bad-identity" == refused.value.code
    assert damage == (tmp_path / "node.json").read_bytes()


def test_a_place_where_no_directory_can_be_is_a_mistake_and_no_failed_disk(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError) as refused:
        begin_start(tmp_path / "file" / "s", "a", WALL)
    assert ("no-state", True) == (refused.value.code, "--state DIR" in refused.value.try_this)
