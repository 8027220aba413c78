"""Faults of one disk that overlap."""

from pathlib import Path

import pytest

from weft.torture import world
from weft.torture.plan import Event
from weft.torture.rewinds import CLONE, IDENTITY
from weft.torture.world import World

NAME = "sensor-1"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would be mounted, and how; no node starts, and a balloon has no bytes."""
    said: list[str] = []
    monkeypatch.setattr(world, "run", lambda *words: said.append(words[2]))
    monkeypatch.setattr(world.Process, "start", lambda _: None)
    monkeypatch.setattr(world, "fill", Path.touch)
    return said


def made(place: Path) -> tuple[World, Path]:
    hurt = World(place, "1", with_pipeline=False, names=())
    state = hurt.machines[NAME].state
    state.mkdir(parents=True, exist_ok=True)
    return hurt, state / world.BALLOON


def event(kind: str) -> Event:
    return Event(at=1, kind=kind, who=(NAME,), span=1)


@pytest.mark.proves("FLD-040", part="faults of one disk may overlap")
def test_room_comes_back_when_the_disk_can_be_written_to_again(tmp_path: Path, ran: list[str]) -> None:
    hurt, balloon = made(tmp_path)
    full, read_only = event("full-disk"), event("read-only")
    hurt.play(read_only)
    balloon.touch()
    hurt.play(full)
    hurt.undo(full)
    assert balloon.exists(), "nothing can be removed from a disk that is read-only"
    hurt.undo(read_only)
    assert not balloon.exists()
    assert ["remount,ro", "remount,rw"] == ran


def test_a_disk_stays_read_only_until_the_last_fault_that_made_it_so_is_over(tmp_path: Path, ran: list[str]) -> None:
    hurt, _ = made(tmp_path)
    first, second = event("read-only"), event("read-only")
    hurt.play(first)
    hurt.play(second)
    hurt.undo(first)
    assert ["remount,ro", "remount,ro"] == ran
    hurt.undo(second)
    assert "remount,rw" == ran[-1]
    assert 3 == len(ran)


def test_a_balloon_stays_until_the_last_fault_that_wants_it_is_over(tmp_path: Path, ran: list[str]) -> None:
    hurt, balloon = made(tmp_path)
    first, second = event("full-disk"), event("full-disk")
    for each in (first, second):
        hurt.play(each)
    hurt.undo(first)
    assert balloon.exists()
    hurt.undo(second)
    assert not balloon.exists()
    assert [] == ran


@pytest.mark.usefixtures("ran")
def test_a_machine_that_has_not_written_yet_who_it_is_is_not_copied(tmp_path: Path) -> None:
    hurt, _ = made(tmp_path)
    hurt.machines[CLONE] = hurt.machines[NAME]._replace(name=CLONE, state=tmp_path / CLONE)
    hurt.play(event("clone"))
    assert CLONE not in hurt.processes
    (hurt.machines[NAME].state / IDENTITY).write_text("{}", "utf-8")
    hurt.play(event("clone"))
    assert (hurt.machines[CLONE].state / IDENTITY).exists()
    assert CLONE in hurt.processes


@pytest.mark.usefixtures("ran")
def test_a_copy_of_a_root_runs_only_while_nothing_else_happens(tmp_path: Path) -> None:
    hurt, _ = made(tmp_path)
    hurt.machines[CLONE] = hurt.machines[NAME]._replace(name=CLONE, state=tmp_path / CLONE)
    (hurt.machines[NAME].state / IDENTITY).write_text("{}", "utf-8")
    full = event("full-disk")
    for is_root in (False, True):
        hurt.rewinder.is_root = {NAME: is_root}.__getitem__
        hurt.play(full)
        hurt.play(event("clone"))
        assert (CLONE in hurt.processes) is not is_root
        hurt.undo(event("clone"))
        hurt.undo(full)
        hurt.play(event("clone"))
        assert CLONE in hurt.processes
        hurt.play(full)
        assert (CLONE in hurt.processes) is not is_root
        hurt.undo(full)
        hurt.undo(event("clone"))
        assert CLONE not in hurt.processes
