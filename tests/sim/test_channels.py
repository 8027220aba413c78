"""Simulated machines speak on every channel as the shell's sockets do, whatever their cores are."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from weft.base.budget import Budget
from weft.base.effects import Connect, Disconnect, Effect, Persist, Send, SendFailed, Source
from weft.base.endpoints import SNAPSHOTS, UPDATES, shifted
from weft.base.now import SECOND, Now
from weft.base.records import CoreRecord, Entry
from weft.cores.carrier.context import Counters
from weft.node.channels import ANSWER_QUEUE, LINK_QUEUE
from weft.node.node import Node
from weft.sim import machine as machines
from weft.sim.fabric import Fabric
from weft.sim.machine import Machine
from weft.sim.plan import BASE_PORT, NodePlan, Plan
from weft.wire.discovery import Announcement, Control
from weft.wire.envelope import Answer
from weft.wire.replication import ICanHaz, KThxBai, KvPub, KvSync

UUID = b"u" * 16
POLO = Control("polo", "127.0.0.1:27500", UUID, {})
ASSIGNMENT = Control("assignment", "127.0.0.1:27500", UUID, {"level": "leaf", "parent": "127.0.0.1:27500"})
NAMES = ("carrier", "topology", "configuration")


class Listener:
    """A core that notes what it hears and says what it is told to."""

    def __init__(self, name: str) -> None:
        self.name, self.budget = name, Budget()
        self.counters = Counters()
        self.heard: list[tuple[Any, Source]] = []
        self.orders: list[Any] = []
        self.answer: Callable[[Any, Source], list[Effect]] = lambda _, __: []
        self._effects: list[Effect] = []

    def restore(self, entries: Iterable[Entry], now: Now) -> None: ...

    def condense(self) -> Iterable[CoreRecord]:
        return ()

    def receive(self, message: Any, source: Source, now: Now) -> None:
        self.heard.append((message, source))
        self._effects += self.answer(message, source)

    def command(self, order: Any, now: Now) -> None:
        self.orders.append(order)
        if isinstance(order, list):
            self._effects += order

    def wake(self, now: Now) -> None: ...

    def deadline(self) -> int | None:
        return None

    def effects(self) -> list[Effect]:
        done, self._effects = self._effects, []
        return done


class Scene:
    """Machines `p`, `c` and `d`, started, with cores that only listen."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, slow: str = "") -> None:
        def build(*_: Any, **__: Any) -> Node:
            return Node(UUID, 1, [Listener(name) for name in NAMES], {})

        monkeypatch.setattr(machines, "build_node", build)
        nodes = tuple(
            NodePlan(name=name, level="root" if name == "p" else "sensor", queue_messages=5 if name == slow else 0)
            for name in "pcd"
        )
        self.fabric = Fabric(Plan(seed="1", scenario="channels", nodes=nodes, safety_ns=0, settle_ns=0))
        for machine in self.fabric.machines.values():
            machine.start()

    def __getitem__(self, name: str) -> Machine:
        return self.fabric.machines[name]

    def endpoint(self, name: str, by: int = 0) -> str:
        return shifted(f"{self[name].address}:{BASE_PORT}", by)

    def core(self, name: str, core: str) -> Listener:
        node = self[name].node
        assert node is not None
        found = node.cores[core]
        assert isinstance(found, Listener)
        return found

    def do(self, name: str, core: str, *effects: Effect) -> "Scene":
        self[name].obey(core, list(effects))
        return self

    def wait(self, seconds: float = 1.0) -> "Scene":
        self.fabric.world.run(self.fabric.world.at + round(seconds * SECOND))
        return self

    def heard(self, name: str, core: str) -> list[Any]:
        return [message for message, _ in self.core(name, core).heard]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def update(number: int) -> KvPub:
    return KvPub("/CONFIG/web/a", number, UUID, b"1")


def test_a_snapshot_is_asked_for_and_answered_over_a_wall(scene: Scene) -> None:
    pieces = [KvSync(f"/CONFIG/web/{n}", n, b"1") for n in range(1, 30)]
    end = KThxBai("/CONFIG/web/", 30)
    scene.core("p", "configuration").answer = lambda asked, source: [
        Send("serve", source.peer, Answer(asked.envelope, pieces[0])),
        Persist((CoreRecord("configuration", 1, b"x"),)),
        *(Send("serve", source.peer, Answer(asked.envelope, piece)) for piece in (*pieces[1:], end)),
    ]
    ask = Connect("ask", scene.endpoint("p", SNAPSHOTS), b"t1"), Send("ask", b"", ICanHaz("/CONFIG/web/"))
    scene.do("c", "configuration", *ask).wait()
    assert [*pieces, end] == scene.heard("c", "configuration")
    assert {Source("ask", b"t1")} == {source for _, source in scene.core("c", "configuration").heard}
    assert {""} == {source.kind for _, source in scene.core("p", "configuration").heard}


def test_updates_are_heard_behind_their_connect_and_again_after_the_parent_started_again(scene: Scene) -> None:
    scene.do("c", "configuration", Connect("updates", scene.endpoint("p", UPDATES), b"t1", (b"/CONFIG/",)))
    scene.do("p", "configuration", Send("publish", b"", update(1))).wait()
    scene.do("p", "configuration", Send("publish", b"", update(2))).wait()
    assert [2] == [message.number for message in scene.heard("c", "configuration")]
    scene["p"].crash("kept", is_loud=True)
    scene.wait()
    scene["p"].start()
    scene.wait().do("p", "configuration", Send("publish", b"", update(3))).wait()
    assert [2, 3] == [message.number for message in scene.heard("c", "configuration")]
    scene.do("c", "configuration", Disconnect("updates")).wait()
    scene.do("p", "configuration", Send("publish", b"", update(4))).wait()
    assert 2 == len(scene.heard("c", "configuration"))


def test_a_child_that_stands_still_gets_holes_where_its_queue_was_full(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, slow="c")
    for name in "cd":
        scene.do(name, "configuration", Connect("updates", scene.endpoint("p", UPDATES), b"t", (b"/",)))
    scene.wait()
    scene["c"].pause()
    for number in range(1, 11):
        scene.do("p", "configuration", Send("publish", b"", update(number)))
    scene.wait()
    scene["c"].resume()
    scene.wait().do("p", "configuration", Send("publish", b"", update(11))).wait()
    assert [*range(1, 6), 11] == [message.number for message in scene.heard("c", "configuration")]
    assert [*range(1, 12)] == [message.number for message in scene.heard("d", "configuration")]


def test_announcements_go_to_many_and_to_oneself(scene: Scene) -> None:
    marco = Announcement("/MARCO", scene.endpoint("p"), UUID, {"fleet": "lab"})
    scene.do("p", "topology", *(Connect("announce", scene.endpoint(name)) for name in "pcd")).wait()
    scene.do("p", "topology", Send("announce", b"", marco)).wait()
    assert [[marco]] * 3 == [scene.heard(name, "topology") for name in "pcd"]


def test_a_call_is_answered_from_its_endpoint_and_closed_when_it_is_idle(scene: Scene) -> None:
    for name in "cd":
        scene.core(name, "topology").answer = lambda asked, source: [
            Send("control", source.peer, Answer(asked.envelope, ASSIGNMENT))
        ]
        scene.do("p", "topology", Send("call", scene.endpoint(name).encode(), POLO))
    scene.wait()
    answers = scene.core("p", "topology").heard
    assert [ASSIGNMENT] * 2 == [message for message, _ in answers]
    assert {scene.endpoint(name).encode() for name in "cd"} == {source.peer for _, source in answers}
    scene.wait(50).do("p", "topology", Send("call", scene.endpoint("d").encode(), POLO)).wait(12)
    is_open = [scene.fabric.streams.is_connected("p", "call", scene.endpoint(name, 1)) for name in "cd"]
    assert [False, True] == is_open
    scene.do("p", "topology", Send("call", scene.endpoint("c").encode(), POLO)).wait()
    first, again = (source.peer for _, source in scene.core("c", "topology").heard)
    assert first != again


def test_who_is_gone_or_reads_nothing_is_told_of_once_per_message(scene: Scene) -> None:
    core = scene.core("p", "configuration")
    scene.do("p", "configuration", Send("serve", b"nobody", Answer((b"",), KThxBai("", 1)))).wait()
    assert SendFailed("serve", b"nobody") == core.orders[-1]
    ask = Connect("ask", scene.endpoint("p", SNAPSHOTS), b"t1"), Send("ask", b"", ICanHaz("/"))
    scene.do("c", "configuration", *ask).wait()
    ((asked, source),) = core.heard
    scene["c"].pause()
    core.orders.clear()
    count = 10 * ANSWER_QUEUE
    pieces = (KvSync("/a", number, b"x" * 1_000) for number in range(1, count + 1))
    scene.do("p", "configuration", *(Send("serve", source.peer, Answer(asked.envelope, piece)) for piece in pieces))
    scene.wait()
    failed = core.orders[1:]
    assert {SendFailed} == {type(order) for order in failed}
    scene["c"].resume()
    scene.wait()
    heard = [message.number for message in scene.heard("c", "configuration")]
    assert (count - len(failed), list(range(1, len(heard) + 1))) == (len(heard), heard)
    assert LINK_QUEUE < len(heard) < count


def test_the_same_seed_gives_the_same_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def trace() -> str:
        scene = Scene(monkeypatch)
        test_announcements_go_to_many_and_to_oneself(scene)
        test_a_snapshot_is_asked_for_and_answered_over_a_wall(scene)
        return scene.fabric.world.trace_hash()

    assert trace() == trace()
