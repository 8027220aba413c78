"""Nothing is answered before it is synced, and a sync that is left out is seen, wherever it is left out (FLD-042)."""

from pathlib import Path

import pytest

from tests.syncs.calls import Site, Witness, sites_in
from tests.syncs.lives import LIVES
from weft.lake import files as lake_files
from weft.shell.files import Files


def lived(name: str, root: Path, dropped: Site | None = None) -> Witness:
    """One life below a new folder, without the sync of one place if that is told."""
    root.mkdir()
    witness = Witness(root, dropped)
    LIVES[name](root, witness)
    return witness


@pytest.mark.proves("FLD-042")
def test_every_sync_of_the_program_is_met_by_a_life_and_missed_when_it_is_left_out(tmp_path: Path) -> None:
    unseen = sites_in("shell", "lake", "pipeline")
    missed: set[Site] = set()
    for name in LIVES:
        whole = lived(name, tmp_path / name)
        assert (name, []) == (name, whole.broken)
        for number, site in enumerate(sorted(whole.sites)):
            assert site in sites_in(site[0]), f"{site} is no place of the program"
            if lived(name, tmp_path / f"{name}-{number}", site).broken:
                missed.add(site)
        unseen -= whole.sites
    assert (set(), set()) == (unseen, sites_in("shell", "lake", "pipeline") - missed)


DOORS = {
    "the file of a journal": (Files, "sync", ("journal_turns", "identity")),
    "the directory of a journal": (Files, "sync_directory", ("journal_turns", "identity")),
    "all of a lake": (lake_files, "_sync", ("lake", "driver", "imported")),
}


@pytest.mark.proves("FLD-042")
@pytest.mark.parametrize("name", DOORS)
def test_a_door_that_syncs_nothing_is_seen(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, door, lives = DOORS[name]
    monkeypatch.setattr(owner, door, lambda *_: None)
    for life in lives:
        assert lived(life, tmp_path / life).broken, life
