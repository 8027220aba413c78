"""A board that dies is started again; one that was told wrongly is not; and none outlives its node."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.client.node import in_loop
from tests.patience import PATIENCE_S
from weft.shell import boards
from weft.shell.boards import Board

WRITES = "import os,sys; open(sys.argv[1],'a').write(sys.stdin.read()+' '); {then}"


def program(place: Path, then: str) -> tuple[str, ...]:
    return ("-c", WRITES.format(then=then), str(place))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110  # another process tells nobody
            await asyncio.sleep(0.02)  # tidy: another process tells nobody; bounded above


@in_loop
async def test_a_board_that_dies_is_started_again_with_the_same_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "AGAIN_S", (0.01,))
    board = Board(b"said", program(tmp_path / "out", "os.abort()"))
    await until(lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text("utf-8").count("said") >= 2)
    await board.close()


@in_loop
async def test_a_board_that_was_told_wrongly_is_not_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "AGAIN_S", (0.01,))
    board = Board(b"said", program(tmp_path / "out", "sys.exit(2)"))
    await asyncio.wait_for(board._task, PATIENCE_S)
    assert "said " == (tmp_path / "out").read_text("utf-8")
    await board.close()


@in_loop
async def test_a_board_that_runs_ends_with_its_node_even_if_it_will_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "END_S", 0.2)
    stubborn = (
        "import signal,time; signal.signal(15, signal.SIG_IGN); open(sys.argv[1],'a').write('here'); time.sleep(60)"
    )
    board = Board(b"said", program(tmp_path / "out", stubborn))
    await until(lambda: (tmp_path / "out").exists() and "said" in (tmp_path / "out").read_text("utf-8"))
    process = board._process
    assert process is not None
    await board.close()
    assert process.returncode in {-9, -15}
