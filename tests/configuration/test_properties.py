"""Random dialogues of a tree: messages lost, doubled, late; nodes that die at any wall, and restore.

At every step users know what the store holds, each chain is as the root once had it, and a start from the disk would
find what is there. After twelve quiet heartbeats every replica equals the root's store within its topics.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.configuration.rig import SENSOR_TOPICS, Line, State, World
from tests.examples import examples
from weft.base.effects import Persist
from weft.base.now import SECOND
from weft.cores.configuration import limits
from weft.cores.configuration.messages import FollowParent

HEARTBEAT_S = 10
NAMES = ("root", "c", "d", "s", "t")
KEYS = ("/CONFIG/web/a", "/CONFIG/web/b", "/CONFIG/g1/a", "/CONFIG/g10/a", "/CONFIG/global/heartbeat", "/TOPO/root")
D_TOPICS = (*SENSOR_TOPICS, "/CONFIG/g1/", "/TOPO/g1/")
write = st.tuples(st.just("write"), st.sampled_from(KEYS), st.sampled_from(["", "1", "2", "3"]))
step = st.one_of(
    write,
    st.tuples(st.just("load"), st.integers(1, 4), st.integers(0, 9)),
    st.tuples(st.just("deliver"), st.integers(0, 30), st.integers(1, 20)),
    st.tuples(st.just("double"), st.integers(0, 30), st.just(0)),
    st.tuples(st.just("advance"), st.sampled_from([0.01, 0.3]), st.just(0)),
)
rough = st.one_of(
    step,
    write,
    st.tuples(st.just("lose"), st.integers(0, 30), st.integers(1, 4)),
    st.tuples(st.just("crash"), st.sampled_from(NAMES), st.sampled_from(["now", "before", "behind"])),
    st.tuples(st.just("start"), st.sampled_from(NAMES), st.just(0)),
    st.tuples(st.just("cut"), st.sampled_from(NAMES[1:]), st.just(0)),
    st.tuples(st.just("heal"), st.sampled_from(NAMES[1:]), st.just(0)),
    st.tuples(st.just("move"), st.sampled_from("st"), st.sampled_from("cd")),
    st.tuples(st.just("condense"), st.sampled_from(NAMES), st.just(0)),
    st.tuples(st.just("advance"), st.sampled_from([1.1, 3, 30, 200]), st.just(0)),
)
ROOTS = ("root", "c", "d")
politics = st.one_of(
    step,
    st.tuples(st.just("write_at"), st.sampled_from(ROOTS), st.sampled_from(KEYS)),
    st.tuples(st.just("write_at"), st.sampled_from(ROOTS), st.sampled_from(KEYS)),
    st.tuples(st.just("take"), st.sampled_from(ROOTS), st.just(0)),
    st.tuples(st.just("obey"), st.sampled_from(ROOTS), st.just(0)),
    st.tuples(st.just("crash"), st.sampled_from(ROOTS), st.sampled_from(["now", "before", "behind"])),
    st.tuples(st.just("start"), st.sampled_from(ROOTS), st.just(0)),
    st.tuples(st.just("cut"), st.sampled_from(ROOTS), st.just(0)),
    st.tuples(st.just("heal"), st.sampled_from(ROOTS), st.just(0)),
    st.tuples(st.just("advance"), st.sampled_from([1.1, 3, 30]), st.just(0)),
)
Script = list[tuple[str, Any, Any]]


class Play:
    """s under d under c under root, d with topics of its own; t under root."""

    def __init__(self) -> None:
        self.world = World(packing=("root", "d"))
        times: dict[str, Any] = {"heartbeat_ns": HEARTBEAT_S * SECOND}
        self.world.root(**times)
        self.world.collector("c", **times)
        self.world.collector("d", "c", D_TOPICS, **times)
        self.world.sensor("s", "d", **times)
        self.world.sensor("t", "root", is_kept=False, **times)

    def do(self, action: tuple[str, Any, Any]) -> None:
        getattr(self, action[0])(*action[1:])

    def write(self, key: str, value: str) -> None:
        if self.world.machines["root"].is_up:
            self.world.write((key, value))

    def load(self, count: int, first: int) -> None:
        if self.world.machines["root"].is_up:
            self.world.write(*((KEYS[(first + n) % len(KEYS)], f"{first}/{n}") for n in range(count)))

    def _line(self, index: int) -> Line | None:
        busy = self.world.busy()
        return busy[index % len(busy)] if busy else None

    def deliver(self, index: int, count: int) -> None:
        for _ in range(count):
            if (line := self._line(index)) is not None:
                self.world.deliver(line)

    def lose(self, index: int, count: int) -> None:
        for _ in range(count):
            if (line := self._line(index)) is not None:
                line.lose()

    def double(self, index: int, _: int) -> None:
        if (line := self._line(index)) is not None and line.down:
            line.down.appendleft(line.down[0])

    def crash(self, name: str, when: str) -> None:
        machine = self.world.machines[name]
        if not machine.is_up:
            return
        if when == "now":
            machine.crash()
        elif when == "before":
            machine.dies_before = lambda effect: isinstance(effect, Persist)
        else:
            walls: list[Any] = []

            def is_behind(effect: Any) -> bool:
                walls.append(isinstance(effect, Persist))
                return any(walls[:-1])

            machine.dies_before = is_behind

    def start(self, name: str, _: int) -> None:
        machine = self.world.machines[name]
        if not machine.is_up:
            machine.dies_before = lambda effect: False
            machine.start()

    def cut(self, name: str, _: int) -> None:
        self.world.cut(name)

    def heal(self, name: str, _: int) -> None:
        self.world.heal(name)

    def move(self, name: str, parent: str) -> None:
        machine = self.world.machines[name]
        machine.place = FollowParent(f"{parent}:27500", SENSOR_TOPICS, False)
        if machine.is_up:
            machine.order(machine.place)

    def condense(self, name: str, _: int) -> None:
        if self.world.machines[name].is_up:
            self.world.machines[name].condense()

    def advance(self, seconds: float, _: int) -> None:
        self.world.advance(seconds)

    def compare(self) -> None:
        """A start from any disk finds what its node has."""
        for machine in self.world.machines.values():
            if machine.is_up:
                assert list(machine.core.condense()) == self.world.restored(machine), machine.name

    def come_to_rest(self) -> None:
        """Everything is healed, everybody is up, and nothing is written for twelve heartbeats."""
        self.world.heal()
        for machine in self.world.machines.values():
            machine.dies_before = lambda effect: False
            self.start(machine.name, 0)
        self.world.advance(12 * HEARTBEAT_S)


class Politics(Play):
    """Full replicas that become the root one after the other, also before the one before has heard of it."""

    def __init__(self) -> None:
        super().__init__()
        self.epoch, self.newest, self.serial = 0, "root", 0
        self.world.machines["d"].place = FollowParent("root:27500", ("/",), True)
        self.world.machines["d"].order(self.world.machines["d"].place)

    def write_at(self, name: str, key: str) -> None:
        machine = self.world.machines[name]
        self.serial += 1
        if machine.is_up and machine.core.root.is_root:
            self.world.write((key, f"{name}/{self.serial}"), root=name)

    def write(self, key: str, value: str) -> None:
        machine = self.world.machines[self.newest]
        if machine.is_up:
            self.world.write((key, value), root=self.newest)

    def load(self, count: int, first: int) -> None:
        """Nothing is loaded."""

    def take(self, name: str, _: int) -> None:
        if self.world.machines[name].is_up and name != self.newest:
            self.epoch += 1
            self.newest = name
            self.world.take(name, self.epoch)
            self.record()

    def record(self) -> None:
        """A root writes who it is at each start, which makes its epoch known."""
        self.write("/TOPO/root", f"{self.newest}/{self.epoch}")

    def obey(self, name: str, _: int) -> None:
        """A node follows the newest root."""
        machine = self.world.machines[name]
        if name != self.newest:
            machine.place = FollowParent(f"{self.newest}:27500", ("/",), True)
            if machine.is_up:
                machine.order(machine.place)

    def come_to_rest(self) -> None:
        for name in ROOTS:
            self.world.machines[name].dies_before = lambda effect: False
        self.start(self.newest, 0)
        self.record()
        for name in ROOTS:
            self.obey(name, 0)
        machine = self.world.machines["t"]
        machine.place = FollowParent(f"{self.newest}:27500", SENSOR_TOPICS, False)
        machine.order(machine.place)
        super().come_to_rest()


def converges(script: Script, kind: type[Play] = Play) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "PART_BYTES", 60)  # so that a snapshot of a few pairs has many parts
        play = kind()
        for action in script:
            play.do(action)
            play.compare()
        play.come_to_rest()
        play.world.check()
        play.compare()


def stays_calm(script: Script) -> None:
    play = Play()
    for action in script:
        play.do(action)
    play.world.advance(12 * HEARTBEAT_S)
    play.world.check()
    for machine in play.world.machines.values():
        assert ["start"] * (machine.place is not None and machine.name != "root") == machine.resyncs, machine.name
        assert 0 == machine.core.counters.late


@pytest.mark.prove("many long lives")
@pytest.mark.proves("CFG-031", "CFG-034", "CFG-035", "CFG-040", "CFG-041", "CFG-048", "JRN-042")
@examples(250)
@given(st.lists(rough, max_size=40))
def test_after_twelve_quiet_heartbeats_every_replica_equals_the_root(script: Script) -> None:
    converges(script)


@pytest.mark.prove("many long lives")
@pytest.mark.proves("CFG-032")
@examples(150)
@given(st.lists(step, max_size=60))
def test_without_loss_nobody_asks_twice(script: Script) -> None:
    stays_calm(script)


@pytest.mark.proves("CFG-035", "CFG-041")
@examples(150)
@given(st.lists(politics, max_size=40))
def test_roots_come_and_go_and_the_newest_is_followed(script: Script) -> None:
    converges(script, Politics)


def test_everybody_runs_at_the_end() -> None:
    play = Play()
    play.come_to_rest()
    assert {State.RUN} == {play.world.machines[name].core.state for name in NAMES[1:]}
