"""A disk is emptied, or put back to a copy, while its node does not run; whoever has called something safe keeps it."""

import json
from pathlib import Path

import pytest

from weft.torture import world
from weft.torture.plan import Event
from weft.torture.world import World

NAME = "sensor-1"


@pytest.fixture
def hurt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A fabric without processes, of which one node has a disk."""
    monkeypatch.setattr(world.Process, "start", lambda _: None)
    made = World(tmp_path, "1", with_pipeline=False, names=())
    fill(made, "aa")
    return made


def fill(made: World, uuid: str) -> None:
    """A state directory as a node has it."""
    state = made.machines[NAME].state
    (state / "journal").mkdir(parents=True, exist_ok=True)
    (state / "journal" / "1.seg").write_text(uuid, "utf-8")
    (state / "node.json").write_text(json.dumps({"node": uuid}), "utf-8")


def there(made: World) -> list[str]:
    state = made.machines[NAME].state
    return sorted(str(path.relative_to(state)) for path in state.rglob("*") if path.is_file())


def event(kind: str) -> Event:
    return Event(at=1, kind=kind, who=(NAME,), span=1)


@pytest.mark.proves("FLT-001", part="between real processes a disk is lost, or goes back in time")
def test_a_lost_disk_is_empty_and_what_it_was_is_remembered(hurt: World) -> None:
    noted: list[tuple[str, str, float]] = []
    hurt.rewinder.note = lambda *what: noted.append(what)
    hurt.play(event("lost-disk"))
    assert [] == there(hurt)
    assert hurt.machines[NAME].state.is_dir()
    assert [] == noted
    hurt.undo(event("lost-disk"))
    assert [(NAME, "lost", 0.0)] == noted
    assert {NAME: "aa"} == hurt.rewinder.was
    assert 0 == hurt._held[NAME]


@pytest.mark.proves("FLT-001", part="between real processes a disk is lost, or goes back in time")
def test_an_old_disk_is_what_it_was_when_the_fault_began(hurt: World) -> None:
    noted: list[tuple[str, str, float]] = []
    hurt.rewinder.note = lambda *what: noted.append(what)
    hurt.play(event("old-disk"))
    state = hurt.machines[NAME].state
    (state / "journal" / "2.seg").touch()
    (state / "journal" / "1.seg").write_text("later", "utf-8")
    hurt.undo(event("old-disk"))
    assert ["journal/1.seg", "node.json"] == there(hurt)
    assert "aa" == (state / "journal" / "1.seg").read_text("utf-8")
    ((name, how, age_s),) = noted
    assert (NAME, "old", True) == (name, how, 0 < age_s < 60)


@pytest.mark.parametrize("why", ["root", "drained", "full", "copied", "empty"])
@pytest.mark.parametrize("kind", ["lost-disk", "old-disk"])
def test_a_disk_that_others_need_is_kept(hurt: World, kind: str, why: str) -> None:
    state = hurt.machines[NAME].state
    if why == "root":
        hurt.rewinder.is_root = lambda _: True
    elif why == "drained":
        (hurt.lake / "drain" / "samples" / "aa").mkdir(parents=True)
    elif why == "full":
        hurt._full[NAME] += 1
    elif why == "copied":
        clone = hurt.machines[NAME]._replace(state=hurt.place / "clone")
        hurt.machines["clone"] = clone
        clone.state.mkdir()
        (clone.state / "node.json").touch()
    else:
        (state / "node.json").unlink()
    before = there(hurt)
    hurt.play(event(kind))
    hurt.undo(event(kind))
    assert before == there(hurt)
    assert {} == hurt.rewinder.was
    assert not hurt._held.get(NAME)


def test_a_node_that_became_the_root_meanwhile_keeps_its_disk(hurt: World) -> None:
    hurt.play(event("old-disk"))
    hurt.rewinder.is_root = lambda _: True
    hurt.undo(event("old-disk"))
    assert {} == hurt.rewinder.was
