"""`weft sim`: what it prints, and the exit status that says how it went (SIM-014)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from weft.base.errors import UserError
from weft.checks import CHECKERS, SIMULATED, judge_all, read_lines
from weft.cli import sim
from weft.sim import plan as plan_module
from weft.sim.canaries import load, planted
from weft.sim.swarm import draw_plan


@pytest.mark.prove("a night of the simulator")
@pytest.mark.proves("SIM-014")
def test_the_command_runs_a_seed_and_ends_with_0() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "weft.cli.main", "sim", "--seed", "7"], capture_output=True, text=True, check=False
    )
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("seed 7, fabric: 1 root")
    assert "verdict     green" in told.stdout


@pytest.mark.prove("processes, one for each")
@pytest.mark.proves("SIM-014")
@pytest.mark.parametrize("words", [["--seed", "x"], ["--scenario", "moon"], ["--node", "nobody"], ["fly"]])
def test_wrong_usage_ends_with_2_and_says_what_to_type(words: list[str]) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "weft.cli.main", "sim", *words], capture_output=True, text=True, check=False
    )
    assert told.returncode == 2
    assert "try:" in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.prove("nights of the simulator")
def test_the_story_of_one_node_between_two_instants(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim.run_one(seed=12, explain=True, node="s1", since=5, until=60) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("   ")]
    assert lines
    assert all(5 <= float(line.split()[0]) <= 60 for line in lines)
    assert all(line[11:13] in ("s1", "  ") for line in lines)


@pytest.mark.prove("nights of the simulator")
def test_json_says_the_same_to_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim.run_one(seed=1, json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["seed"], told["scenario"], told["verdict"]) == ("1", "fabric", "green")
    assert told["counts"]["taken"] > 0


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("SIM-006", "SIM-014")
def test_a_printed_plan_runs_as_the_seed_does(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert sim.run_one(seed=8, print_plan=True) == 0
    path = tmp_path / "plan.json"
    path.write_bytes(capsysbinary.readouterr().out)
    assert sim.run_one(plan=path, json=True) == sim.run_one(seed=8, json=True) == 0
    first, second = capsysbinary.readouterr().out.splitlines()
    assert first == second


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("SIM-014")
def test_a_kept_plan_is_replayed_with_its_story(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(plan_module.write(draw_plan("8")))
    assert sim.replay(path, node="root") == 0
    said = capsys.readouterr().out
    assert "root     starts" in said
    assert "seed 8, fabric" in said


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("CHK-001")
def test_a_kept_history_can_be_judged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history.jsonl"
    assert sim.run_one(seed=2, history=path) == 0
    facts = list(read_lines(path.read_bytes()))
    assert len(facts) > 100
    assert judge_all([kind() for kind in CHECKERS], facts) == []
    assert "green" in capsys.readouterr().out


@pytest.mark.proves("SIM-013", "SIM-014")
def test_a_broken_promise_ends_with_1_and_everything_that_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    with planted(load()["newest_first"]):
        assert sim.run_one(seed=0) == 1
    said = capsys.readouterr().out
    assert "order: root got number" in said
    assert "again: weft sim --seed 0 --explain" in said


@pytest.mark.prove("nights of the simulator")
@pytest.mark.proves("SIM-011", "SIM-014")
def test_a_void_run_ends_with_5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = draw_plan("4")
    path = tmp_path / "void.json"
    path.write_bytes(plan_module.write(plan).replace(b'"menu": []', b'"menu": ["cut-one"]'))
    text = path.read_text()
    begin, end = text.index(' "actions": [') + len(' "actions": ['), text.rindex("]")
    path.write_text(text[:begin] + text[end:])
    assert sim.run_one(plan=path) == 5
    assert "void" in capsys.readouterr().out


@pytest.mark.prove("nights of the simulator")
def test_a_soak_sums_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim.soak(node_minutes=20, json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["node_minutes"] >= 20
    assert told["drained"] > 0


def test_a_soak_stops_at_the_first_broken_promise(capsys: pytest.CaptureFixture[str]) -> None:
    with planted(load()["newest_first"]):
        assert sim.soak(node_minutes=10_000) == 1
    assert "order: " in capsys.readouterr().out


@pytest.mark.prove("nights of the simulator")
def test_canaries_are_caught_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim.canaries("hack_before_persist", "newest_first") == 0
    said = capsys.readouterr().out
    assert "2 of 2 caught, median 1" in said
    assert "seeds 0 to 0: all green" in said
    with pytest.raises(UserError) as caught:
        sim.canaries("nightingale")
    assert caught.value.code == "no-canary"


def test_list_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim.list_all(json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert {kind.rule for kind in SIMULATED} == set(told["checkers"])
    assert {"wall", "one_root", "prefix_fold", "sealed"} <= set(told["checkers"])
    assert set(told["canaries"]) == set(load())
    assert sim.list_all() == 0
    assert "garbage" in capsys.readouterr().out


def test_a_transcript_can_be_played(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[1] / "transcripts" / "carrier" / "cut_and_heal.txt"
    assert sim.play(path) == 0
    assert capsys.readouterr().out == path.read_text().partition("----\n")[2]


def test_a_script_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        sim.play(tmp_path / "none")
    assert caught.value.code == "no-file"


def test_a_plan_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        sim.run_one(plan=tmp_path / "none")
    assert caught.value.code == "no-file"
