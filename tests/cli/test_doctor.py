"""`weft doctor --fix`, and what it asks of a fleet (OPS-006). What it finds of a node: test_trace.py; of a lake: pipeline/test_doctor.py."""

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest

from weft.cli import doctor_fix
from weft.cli.doctor import doctor
from weft.cli.doctor_fix import ALL_LOOKS, mended
from weft.cli.doctor_fleet import degraded, findings, judged
from weft.cli.doctor_node import Patient
from weft.cli.doctor_node import findings as of_node
from weft.cli.status import Member, Picture
from weft.node.settings import settings_of
from weft.pipeline.doctor import Finding
from weft.shell.blocks import free_blocks


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    """A node that is stopped, with keys; whoever made the directories let everybody in."""
    state = tmp_path / "s1"
    (state / "keys").mkdir(parents=True)
    (state / "journal").mkdir()
    for name, mode in (("node.key_secret", 0o644), ("known.json", 0o640), ("node.key", 0o644)):
        (state / "keys" / name).touch()
        (state / "keys" / name).chmod(mode)
    (state / "keys").chmod(0o755)
    state.chmod(0o750)
    return Patient(settings_of({"node": {"name": "s1", "state": str(state)}}), state, is_described=False)


def modes(patient: Patient) -> dict[str, str]:
    places = (patient.state, patient.state / "keys", *sorted((patient.state / "keys").iterdir()))
    return {path.name: f"{path.stat().st_mode & 0o777:o}" for path in places}


def found(patient: Patient, *, fixes: bool) -> dict[str, Finding]:
    told = of_node(patient, ALL_LOOKS, mended if fixes else None)
    return {one.what.removeprefix("s1: "): one for one in told if one.what.removeprefix("s1: ") in doctor_fix.FIXES}


@pytest.mark.proves("OPS-006", part="modes of the state directory and of keys are found, and mended with --fix")
def test_modes_are_mended_only_if_that_is_asked_for(patient: Patient) -> None:
    before = modes(patient)
    assert found(patient, fixes=False) == {
        "state": Finding("s1: state", "warn", f"{patient.state} can be read by others (mode 750)", "weft doctor --fix"),
        "keys": Finding(
            "s1: keys",
            "fail",
            "others may read keys (mode 755), known.json (mode 640), node.key_secret (mode 644): whoever did can pose as this node",
            "weft doctor --fix; and new keys if somebody read them: weft key revoke s1, then weft join",
        ),
    }
    assert before == modes(patient)
    assert found(patient, fixes=True) == {
        "state": Finding("s1: state", "ok", "mended: its mode was 750, and is 700"),
        "keys": Finding("s1: keys", "ok", "mended: keys has mode 700, its 2 files 600"),
    }
    assert modes(patient) == {
        "s1": "700",
        "keys": "700",
        "known.json": "600",
        "node.key": "644",
        "node.key_secret": "600",
    }


@pytest.mark.proves("OPS-006", part="what a node that died left lying is taken away; nothing of one that runs")
def test_what_a_dead_node_left_is_taken_away_and_nothing_of_one_that_runs(patient: Patient) -> None:
    left = [patient.state / name for name in ("chains.endpoint", "chains.sock", "node.json.tmp")]
    for path in left:
        path.touch()
    (patient.state / "node.toml").touch()
    lock = patient.journal / "lock"
    lock.write_text("4711\n")
    with lock.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "leftovers" not in found(patient, fixes=True)
        assert all(path.exists() for path in left)
    told = "a node that died left chains.endpoint, chains.sock, node.json.tmp: programs look for it there"
    assert Finding("s1: leftovers", "warn", told, "weft doctor --fix") == found(patient, fixes=False)["leftovers"]
    done = "mended: took away chains.endpoint, chains.sock, node.json.tmp"
    assert Finding("s1: leftovers", "ok", done) == found(patient, fixes=True)["leftovers"]
    assert "leftovers" not in found(patient, fixes=False)
    assert ["journal", "keys", "node.toml"] == sorted(path.name for path in patient.state.iterdir())


@pytest.mark.proves("OPS-006", part="what the machine refuses to mend stays a finding, and says so")
def test_what_cannot_be_mended_stays_wrong(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refuse)
    told = found(patient, fixes=True)["state"]
    assert "warn" == told.state
    assert told.text.endswith("can be read by others (mode 750); not mended: Operation not permitted")


def test_the_command_mends_and_ends_well(patient: Patient, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_blocks(1, 15_000)[0]
    words: dict[str, Any] = {"name": "s1", "state": str(patient.state), "port": port, "no_spark": True, "json": True}
    assert 1 == doctor(**words)
    capsys.readouterr()
    assert 0 == doctor(**words, fix=True)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [["s1: keys", "ok"], ["s1: state", "ok"]] == sorted(
        [one["what"], one["state"]] for one in told if one["text"].startswith("mended: ")
    )


MEMBER = Member(1, "s1", "sensor", "all", "", "10.0.0.2:27500", 7, 7, 1, "ok")


def picture(**how: Any) -> Picture:
    nodes = [{"name": "root", "version": "0.1.0"}]
    base = Picture("lab", "10.0.0.1:27500", True, 7, [MEMBER], [], nodes)
    return base._replace(**how)


CASES: dict[str, tuple[Picture, Finding]] = {
    "well": (picture(), Finding("fleet: root", "ok", "10.0.0.1:27500, with 1 nodes and write 7")),
    "no root": (
        picture(root=""),
        Finding(
            "fleet: root",
            "fail",
            "no root is known here",
            'weft up with a root, or [node] join = ["HOST:PORT"] where no beacon reaches',
        ),
    ),
    "a silent root": (
        picture(has_root=False),
        Finding("fleet: root", "fail", "the root at 10.0.0.1:27500 does not answer", "weft doctor on its machine"),
    ),
    "silent": (
        picture(members=[MEMBER._replace(name=f"s{number}", health="no answer") for number in range(7)]),
        Finding(
            "fleet: silent",
            "fail",
            "s0, s1, s2, s3, s4 and 2 more do not answer",
            "weft doctor on that machine; its measurements wait on its disk",
        ),
    ),
    "failed": (
        picture(members=[MEMBER._replace(health="failed")]),
        Finding("fleet: failed", "fail", "s1 say that they have failed", "weft status shows why, and what to do"),
    ),
    "behind": (
        picture(members=[MEMBER._replace(number=6)]),
        Finding(
            "fleet: behind",
            "warn",
            "s1 do not run the last write that concerns them",
            "weft config history; weft status",
        ),
    ),
    "without a place": (
        picture(unassigned=[{"endpoint": "10.0.0.9:27500"}]),
        Finding(
            "fleet: groups",
            "warn",
            "10.0.0.9:27500 have no place",
            "a group whose members match them, with room: weft config list",
        ),
    ),
    "another version": (
        picture(nodes=[{"name": "root", "version": "0.1.0"}, {"name": "s1", "version": "0.0.9"}]),
        Finding("fleet: version", "warn", "s1 0.0.9 run another Weft than this, 0.1.0", "weft upgrade check"),
    ),
}


@pytest.mark.proves(
    "OPS-006", part="of a fleet: its root, who is silent, failed, behind, without a place, of another version"
)
@pytest.mark.parametrize("name", CASES)
def test_a_fleet_is_judged(name: str) -> None:
    seen, expected = CASES[name]
    told = [one for one in judged(seen) if one.what == expected.what]
    assert [expected] == told
    others = [one.state for one in judged(seen) if one.what != expected.what]
    assert {"ok"} == set(others)


def test_a_node_that_has_no_room_on_its_disk_is_not_passed_over() -> None:
    """A root kept no sample, since its disk was full, and the doctor ended with: nothing fails here."""
    told = degraded(picture(members=[MEMBER._replace(health="degraded")]))
    mend = "weft status shows why, and what to do"
    assert Finding("fleet: degraded", "warn", "s1 work less well than they should", mend) == told


@pytest.mark.proves("OPS-006", part="without a node that runs, all else is looked at")
def test_where_no_node_answers_no_fleet_is_asked() -> None:
    assert [Finding("fleet", "ok", "no node answers at port 1, so no fleet was asked")] == list(findings(1))
