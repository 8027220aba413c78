"""What the operator of `weft torture --closed` types: who comes in, by whom; what goes on when a command fails."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.shell.keymaking import make_keys
from weft.shell.keys import load_keys
from weft.torture.clients import Machine
from weft.torture.files import write_files
from weft.torture.keys import Operator, leaks, pair_of
from weft.torture.plan import BELOW, COLLECTORS, NODES
from weft.torture.world import World

INVITED = '{"token": "weft1.AQ"}'


def machines(place: Path, *, closed: bool) -> dict[str, Machine]:
    return {
        name: Machine(name, f"10.77.0.{number}", 27_500, f"m{number}", place / name, closed)
        for number, name in enumerate(NODES, 1)
    }


class Typist(Operator):
    """Types what would be typed on paper; `answers` has what each command says, by machine and first words, or nothing."""

    def __init__(self, place: Path, answers: dict[tuple[str, str], str]) -> None:
        self.held: list[str] = []
        super().__init__(place, machines(place, closed=True), self.held.append, self.held.remove)
        self.answers, self.said = answers, list[tuple[str, str]]()
        self.now = 0.0

    def typed(self, name: str, *words: str) -> "subprocess.Popen[str]":
        verb = " ".join(words[:2] if words[0] == "key" else words[:1])
        self.said.append((name, verb))
        answer = self.answers.get((name, verb))
        command = ["false"] if answer is None else ["echo", answer]
        ended = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        ended.wait()
        return ended

    def pass_s(self, span: int) -> None:
        for _ in range(span * 4):
            self.now += 0.25
            self.look(self.now)


@pytest.fixture
def typist(tmp_path: Path) -> Iterator[Typist]:
    made = Typist(tmp_path, {})
    yield made
    made.close()


def test_the_first_machine_comes_in_when_the_root_runs_and_then_all_others(typist: Typist) -> None:
    typist.let_in(BELOW)
    typist.pass_s(4)
    assert (list(BELOW), {("root", "invite"), ("collector-1", "invite"), ("collector-2", "invite")}) == (
        typist.held,
        set(typist.said),
    )
    typist.answers = {("root", "invite"): INVITED, **{(name, "join"): "" for name in BELOW}}
    typist.said.clear()
    typist.pass_s(8)
    assert ([], "", len(BELOW)) == (typist.held, typist.waits_for, typist.done["joined"])
    joins = [name for name, verb in typist.said if verb == "join"]
    assert BELOW[0] == joins[0]
    assert set(BELOW) == set(joins)


def test_a_revoked_machine_is_let_in_by_whoever_is_the_root_with_another_key(typist: Typist) -> None:
    first = make_keys(typist.machines["sensor-1"].state)
    typist.answers = {("collector-1", "key revoke"): "", ("collector-1", "invite"): INVITED}
    typist.revoke("sensor-1")
    typist.pass_s(5)
    assert ([], 1, "revoke sensor-1") == (typist.held, typist.done["revoked"], typist.waits_for)
    typist.restore("sensor-1")
    typist.pass_s(3)
    assert (["sensor-1"], None) == (typist.held, load_keys(typist.machines["sensor-1"].state))
    typist.answers["sensor-1", "join"] = ""
    typist.said.clear()
    typist.pass_s(3)
    assert ([], "") == (typist.held, typist.waits_for)
    assert ("collector-1", "invite") == typist.said[0]
    assert [first.public] == [pair.public for pair in typist.lost_keys()]


def test_both_collectors_that_are_shut_out_at_once_come_in_again(typist: Typist) -> None:
    for name in COLLECTORS:
        make_keys(typist.machines[name].state)
    typist.answers = {("root", "key revoke"): "", ("root", "invite"): INVITED, **{(n, "join"): "" for n in COLLECTORS}}
    for name in COLLECTORS:
        typist.revoke(name)
    typist.pass_s(3)
    assert ([], 2, 0) == (typist.held, typist.done["revoked"], typist.done["joined"])
    for name in COLLECTORS:
        typist.restore(name)
    typist.pass_s(5)
    assert ([], "", 2, 2) == (typist.held, typist.waits_for, typist.done["joined"], len(typist.lost_keys()))


def test_who_is_the_root_itself_is_never_shut_out(typist: Typist) -> None:
    typist.revoke("collector-1")
    typist.restore("collector-1")
    typist.pass_s(40)
    assert ([], "", 0, []) == (typist.held, typist.waits_for, typist.done["revoked"], typist.lost_keys())
    assert {"key revoke"} == {verb for _, verb in typist.said}


def test_a_key_that_was_renewed_is_one_of_before(typist: Typist) -> None:
    state = typist.machines["sensor-2"].state
    make_keys(state)
    before = pair_of(state)
    typist.answers = {("sensor-2", "key rotate"): ""}
    typist.rotate("sensor-2")
    (state / "keys" / "node.key_secret").unlink()
    make_keys(state)
    typist.pass_s(2)
    assert ([before], 1) == (typist.lost_keys(), typist.done["renewed"])


def test_a_key_that_was_renewed_or_is_held_and_stands_in_a_log_breaks_the_seal(typist: Typist) -> None:
    state = typist.machines["sensor-2"].state
    before = make_keys(state)
    typist.answers = {("sensor-2", "key rotate"): ""}
    typist.rotate("sensor-2")
    (state / "keys" / "node.key_secret").unlink()
    after = make_keys(state)
    assert ([], []) == (leaks(None), leaks(typist))
    for name, pair in (("a.log", before), ("b.log", after)):
        (typist.place / name).write_text(pair.secret)
    found = [f"sealed: {name} holds the key of sensor-2" for name in ("a.log", "b.log")]
    assert (found, 2) == (leaks(typist), typist.done["secrets"])


def test_invited_nodes_start_from_what_joining_wrote_and_faults_of_keys_need_keys(tmp_path: Path) -> None:
    closed = World(tmp_path, "s", with_pipeline=False, names=(), closed=True)
    assert {"rotate", "revoke"} <= set(closed.kinds())
    assert str(tmp_path / "root.toml") == closed.processes["root"].words[-1]
    assert str(closed.machines["sensor-1"].state / "node.toml") == closed.processes["sensor-1"].words[-1]
    closed.close()
    assert not {"rotate", "revoke", "stranger"} & set(World(tmp_path, "s", with_pipeline=False, names=()).kinds())


def test_only_open_nodes_say_that_they_are_open(tmp_path: Path) -> None:
    for closed in (True, False):
        write_files(tmp_path, tmp_path / "lake", machines(tmp_path, closed=closed))
        assert {not closed} == {"allow_insecure = true" in (tmp_path / f"{name}.toml").read_text() for name in NODES}


def test_programs_reach_a_node_with_keys_on_its_own_machine_only(tmp_path: Path) -> None:
    at = machines(tmp_path, closed=True)["collector-1"]
    assert ("127.0.0.1", "10.77.0.2") == (at.inside, at._replace(is_closed=False).inside)
    write_files(tmp_path, tmp_path / "lake", machines(tmp_path, closed=True))
    assert '[catalog]\nhost = "127.0.0.1"' in (tmp_path / "collector-1.toml").read_text("utf-8")
