"""The side towards the children: snapshots, bundles, tips, chains, full queues."""

from typing import Any

import pytest

from tests.configuration.rig import State, World
from weft.base.chance import Chance
from weft.base.effects import Confirm, Confirmed, Connect, Effect, Send, Source
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.cores.configuration import limits
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.messages import ConfigurationSettings, FollowParent, TakeRoot, Write, WriteKeys
from weft.wire.envelope import Answer, Asked
from weft.wire.replication import Bundle, ICanHaz, KThxBai, KvSync, Wtf

A, B, CHILD = "/CONFIG/web/a", "/CONFIG/web/b", b"child"
ENVELOPE = (b"",)


class Parent:
    """A root whose children are played by the test."""

    def __init__(self, **pairs: str) -> None:
        self.mono = SECOND
        self.unconfirmed: list[Confirm] = []
        self.core = Configuration(ConfigurationSettings(), b"p" * 16, Chance("serving"))
        self.core.command(TakeRoot(0), self.now)
        for key, value in pairs.items():
            self.write(f"/CONFIG/web/{key}", value)

    @property
    def now(self) -> Now:
        return Now(self.mono, self.mono)

    def write(self, key: str, value: str) -> None:
        self.core.command(WriteKeys(1, (Write(key, value.encode()),), ack="local"), self.now)
        self.core.effects()

    def answers(self, effects: list[Effect], peer: bytes = CHILD) -> list[Any]:
        sends = [effect for effect in effects if isinstance(effect, Send) and effect.channel == "serve"]
        return [send.message.message for send in sends if send.peer == peer]

    def ask(self, subtree: str, kind: str = "", *, is_bundle: bool = False, peer: bytes = CHILD) -> list[Any]:
        source = Source("serve", peer, None, kind)
        self.core.receive(Asked(ENVELOPE, ICanHaz(subtree, is_bundle)), source, self.now)
        return self.answers(self.effects(), peer)

    def effects(self) -> list[Effect]:
        """What is said; the shell will have to confirm it."""
        effects = self.core.effects()
        self.unconfirmed += [effect for effect in effects if isinstance(effect, Confirm)]
        return effects

    def leave(self, room: int = 1_000_000) -> None:
        """The turn is over: a child takes so many of its messages, and refuses the rest."""
        unconfirmed, self.unconfirmed = self.unconfirmed, []
        for asked in unconfirmed:
            refused = max(asked.count - room, 0)
            room -= asked.count - refused
            self.core.command(Confirmed("serve", asked.peer, asked.count, asked.token, refused), self.now)

    def turn(self, peer: bytes = CHILD) -> list[Any]:
        """The next turn, if one is due now; what was said in the last one has left."""
        self.leave()
        due = self.core.deadline()
        if due is None or due > self.mono:
            return []
        self.core.wake(self.now)
        return self.answers(self.effects(), peer)

    def rest(self) -> list[Any]:
        """All turns that are due now."""
        said: list[Any] = []
        while answers := self.turn():
            said += answers
        return said


@pytest.mark.proves("CFG-018", "CFG-043")
def test_a_snapshot_is_in_key_order_and_shows_one_number_however_long_it_streams() -> None:
    parent = Parent()
    parent.core.command(WriteKeys(1, tuple(Write(f"/x/y/{n:04}", b"1") for n in range(2_500))), parent.now)
    parent.core.effects()
    said = parent.ask("/x/")
    assert 1_000 == len(said)
    parent.write("/x/y/2000", "2")
    parent.write("/x/y/2001", "")
    parent.write("/x/y/new", "1")
    said += parent.rest()
    assert KThxBai("/x/", 2_500) == said.pop()
    assert [KvSync(f"/x/y/{n:04}", n + 1, b"1") for n in range(2_500)] == said
    assert (1, 2_500) == (parent.core.counters.served, parent.core.counters.pairs_served)


@pytest.mark.proves("CFG-012", "CFG-013")
def test_a_req_gets_one_answer() -> None:
    parent = Parent(a="1", b="2")
    pairs = (KvSync(A, 1, b"1"), KvSync(B, 2, b"2"))
    bundle = Bundle(pairs, KThxBai("/CONFIG/web/", 2))
    assert [bundle] == parent.ask("/CONFIG/web/", "REQ")
    assert [bundle] == parent.ask("/CONFIG/web/", is_bundle=True)
    assert [KThxBai("/none/", 0)] == parent.ask("/none/", "REQ")
    assert [KThxBai("/.tip/CONFIG/web/", 2)] == parent.ask("/.tip/CONFIG/web/", "REQ")
    assert [*pairs, KThxBai("/CONFIG/web/", 2)] == parent.ask("/CONFIG/web/") + parent.rest()


@pytest.mark.proves("CFG-013")
def test_a_bundle_that_is_too_large_is_refused() -> None:
    parent = Parent()
    for n in range(9):
        parent.write(f"/x/y/{n}", "x" * limits.VALUE_BYTES_MAX)
    assert [Wtf(6)] == parent.ask("/", "REQ")


@pytest.mark.proves("CFG-018", "CFG-019", "CFG-040")
def test_tips_and_chains_count_deletions() -> None:
    parent = Parent(a="1", b="2")
    parent.write(B, "")
    parent.write("/TOPO/root", "x")
    tips = {
        "/": 4,
        "/CONFIG/web/": 3,
        "/CONFIG/": 3,
        "/CONFIG/web/a": 3,
        "/TOPO/root": 4,
        "/TOPO/": 4,
        "/CONFIG/we/": 0,
    }
    for path, number in tips.items():
        assert [KThxBai(f"/.tip{path}", number)] == parent.ask(f"/.tip{path}"), path
    chain = KvSync(f"/.chains{B}", 3, b'{"deleted":true,"prev":2}')
    root = KvSync("/.chains/TOPO/root", 4, b'{"deleted":false,"prev":0}')
    assert [chain, KThxBai("/.chains/CONFIG/web/", 3)] == parent.ask("/.chains/CONFIG/web/") + parent.rest()
    assert [chain, root, KThxBai("/.chains/", 4)] == parent.ask("/.chains/") + parent.rest()


@pytest.mark.proves("CFG-043")
def test_what_a_full_queue_refuses_is_said_again_and_the_end_comes_last() -> None:
    parent = Parent()
    for n in range(10):
        parent.write(f"/x/y/{n}", str(n))
    taken: dict[str, bytes] = {}
    said = parent.ask("/x/")
    room, ended, twice = 3, False, 0
    for _ in range(60):
        for message in said[:room]:
            if isinstance(message, KThxBai):
                ended = True
                assert 10 == len(taken)
            else:
                twice += message.key in taken
                taken[message.key] = message.value
        parent.leave(room)
        parent.mono += limits.PORTION_NS
        said = parent.turn()
    assert ended
    assert 1 == parent.core.counters.served
    assert parent.core.counters.choked > 0
    assert 0 == twice


def test_a_portion_counts_only_when_its_turn_has_left_however_often_the_core_is_woken_before() -> None:
    """A turn joins what is heard and what is due: the first portion, and the end, used to leave in one."""
    parent = Parent()
    for n in range(10):
        parent.write(f"/x/y/{n}", str(n))
    said = parent.ask("/x/")
    parent.core.wake(parent.now)
    said += parent.answers(parent.effects())
    assert [f"/x/y/{n}" for n in range(10)] == [pair.key for pair in said]
    parent.leave(3)
    parent.mono += limits.PORTION_NS
    said = parent.turn() + parent.rest()
    assert [*(f"/x/y/{n}" for n in range(3, 10)), "end"] == [getattr(each, "key", "end") for each in said]


@pytest.mark.proves("CFG-043")
def test_a_child_that_takes_nothing_for_ten_seconds_is_dropped() -> None:
    parent = Parent(a="1")
    parent.ask("/")
    for _ in range(1_200):
        parent.leave(0)
        parent.mono += limits.PORTION_NS
        parent.turn()
    assert (1, 0) == (parent.core.counters.stuck, len(parent.core.serving.streams))


def test_too_many_requests_are_refused() -> None:
    parent = Parent()
    for n in range(10):
        parent.write(f"/x/y/{n}", str(n))
    answers = [parent.ask("/x/")[0] for _ in range(10)]
    assert [Wtf(5)] * 2 == answers[8:]
    assert isinstance(parent.ask("/x/", peer=b"other")[0], KvSync)
    assert {"5": 2} == parent.core.counters.wtf_said


@pytest.mark.proves("CFG-042")
def test_requests_wait_until_there_is_something_to_serve_but_not_for_ever() -> None:
    parent = Parent()
    core = parent.core = Configuration(ConfigurationSettings(), b"c" * 16, Chance("collector"))
    core.command(FollowParent("p:27500", ("/",), True), parent.now)
    tag = next(e.tag for e in core.effects() if isinstance(e, Connect) and e.channel == "ask")
    assert [] == parent.ask("/", peer=b"early")
    parent.mono += 5 * SECOND
    assert [] == parent.ask("/", peer=b"later")
    parent.mono += 5 * SECOND
    core.wake(parent.now)
    effects = core.effects()
    assert ([Wtf(7)], []) == (parent.answers(effects, b"early"), parent.answers(effects, b"later"))
    while State.RUN is not core.state:
        tag = next((e.tag for e in effects if isinstance(e, Connect) and e.channel == "ask"), tag)
        for subtree in ("/.chains/", "/"):
            try:
                core.receive(KThxBai(subtree, 0), Source("ask", tag), parent.now)
            except PeerError:
                break
        effects = core.effects()
        parent.mono += SECOND
        core.wake(parent.now)
        effects += core.effects()
    assert KThxBai("/", 0) in parent.answers(effects, b"later")


@pytest.mark.proves("CFG-042", "FLD-002")
def test_a_node_that_holds_a_part_serves_no_more_than_that_part_whatever_it_becomes() -> None:
    world = World()
    world.root()
    world.write((A, "1"), ("/CONFIG/db/c", "1"))
    sensor = world.sensor("s", topics=("/TOPO/root", "/CONFIG/web/"))
    world.settle()
    parent = Parent()
    parent.core = sensor.core
    assert [KvSync(A, 1, b"1")] == parent.ask("/CONFIG/web/")
    assert [KThxBai("/CONFIG/web/", 1)] == parent.rest()
    partial = ("", "/", "/CONFIG/", "/CONFIG/db/", "/.tip/", "/.tip/CONFIG/db/", "/.chains/")
    assert [[Wtf(7)]] * 7 == [parent.ask(subtree) for subtree in partial]
    sensor.order(TakeRoot(0, is_acting=True))
    assert [[Wtf(7)]] * 7 == [parent.ask(subtree) for subtree in partial]
    sensor.order(FollowParent("root:27500", ("/",), True))
    world.settle()
    assert [KThxBai("/.tip/", 2)] == parent.ask("/.tip/")


def test_a_node_shows_a_digest_once_it_holds_everything() -> None:
    world = World()
    root = world.root()
    world.write((A, "1"), ("/CONFIG/db/c", "1"))
    sensor = world.sensor("s", topics=("/TOPO/root", "/CONFIG/web/"))
    world.settle()
    sensor.order(FollowParent("root:27500", ("/",), True))
    assert b"" == sensor.core.shown_digest
    world.settle()
    assert root.core.shown_digest == sensor.core.shown_digest != b""
    assert sensor.core.shown_digest == world.restarted(sensor).shown_digest


def test_only_requests_are_answered() -> None:
    parent = Parent()
    for message in (Asked(ENVELOPE, KThxBai("/", 1)), Answer(ENVELOPE, ICanHaz("/"))):
        with pytest.raises(PeerError):
            parent.core.receive(message, Source("serve", CHILD), parent.now)
    assert {"command": 2} == parent.core.counters.refused


@pytest.mark.proves("CFG-043")
@pytest.mark.parametrize("packed", [1, 8])
def test_a_slow_child_gets_everything_through_a_small_queue(packed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PACK_PAIRS", packed)
    world = World()
    root = world.root()
    world.write(*((f"/CONFIG/web/{n:03}", "1") for n in range(300)))
    root.queue_max = 7
    sensor = world.sensor("s")
    for _ in range(3_000):
        world.mono += limits.PORTION_NS
        for machine in (root, sensor):
            due = machine.core.deadline()
            if due is not None and due <= world.mono:
                machine.core.wake(world.now)
                machine.do()
        for line in world.busy():
            world.deliver(line)
            world.deliver(line)
    world.check()
    assert (300, ["start"]) == (len(sensor.known), sensor.resyncs)
    assert root.core.counters.choked > 0
