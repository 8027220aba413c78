"""The table of a replica, walked: every state with every input."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.tables.tables import pairs
from weft.base.chance import Chance
from weft.base.effects import Connect, Disconnect, Effect, Persist, Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.messages import ConfigurationSettings, FollowParent, LeaveParent
from weft.cores.configuration.states import TABLE, Cell, On, State
from weft.wire.replication import ICanHaz, KThxBai, KvPub, KvSync, Wtf

TOPICS = ("/CONFIG/web/",)
CPU = "/CONFIG/web/metric/cpu"
UPDATES = {
    On.UPDATED: KvPub(CPU, 8, b"", b"1", 7),
    On.NEXT: KvPub(CPU, 8, b"", b"1", 7),
    On.DUPLICATE: KvPub(CPU, 7, b"", b"60", 5),
    On.LEFTOVER: KvPub(CPU, 6, b"", b"9", 5),
    On.LOWER: KvPub(CPU, 6, b"", b"9", 5),
    On.HOLE: KvPub(CPU, 9, b"", b"1", 8),
    On.EPOCH: KvPub(CPU, (1 << 40) + 8, b"", b"1", 7),
}


class Child:
    """A replica whose parent is played by the test."""

    def __init__(self, **settings: Any) -> None:
        self.mono = SECOND
        self.core = Configuration(ConfigurationSettings(**settings), b"s" * 16, Chance("states"))
        self.tags: dict[str, bytes] = {}
        self.done: list[Effect] = []

    @property
    def now(self) -> Now:
        return Now(self.mono, self.mono)

    def do(self) -> list[Effect]:
        self.done = self.core.effects()
        self.tags |= {effect.channel: effect.tag for effect in self.done if isinstance(effect, Connect)}
        return self.done

    def order(self, order: Any) -> list[Effect]:
        self.core.command(order, self.now)
        return self.do()

    def hear(self, message: Any, channel: str = "ask") -> list[Effect]:
        self.core.receive(message, Source(channel, self.tags.get(channel, b"?")), self.now)
        return self.do()

    def update(self, message: Any) -> list[Effect]:
        return self.hear(message, "updates")

    def wake(self, after_s: float = 0) -> list[Effect]:
        self.mono += round(after_s * SECOND)
        self.core.wake(self.now)
        return self.do()

    def bring_to(self, state: State) -> "Child":
        if state is not State.IDLE:
            self.order(FollowParent("p:27500", TOPICS, True))
        if state is State.RUN:
            self.hear(KvSync(CPU, 5, b"60"))
            self.hear(KThxBai("/.chains/CONFIG/web/", 7))
            self.hear(KThxBai("/CONFIG/web/", 7))
        assert state is self.core.state
        return self

    def put(self, on: On) -> None:
        match on:
            case On.ASSIGNED:
                self.order(FollowParent("q:27500", TOPICS, True))
            case On.LEFT:
                self.order(LeaveParent())
            case On.ANSWERED:
                self.hear(KvSync(CPU, 5, b"60"))
            case On.COMPLETED:
                self.hear(KThxBai("/.chains/CONFIG/web/", 7))
                self.hear(KThxBai("/CONFIG/web/", 7))
            case On.FAILED:
                self.hear(Wtf(5))
            case On.DUE | On.TIP:
                self.core.replica._turn(on, None, self.now)
                self.do()
            case _:
                if (on is On.UPDATED) is (self.core.state is State.RUN):  # an update that is judged never stays one
                    self.core.replica._turn(on, UPDATES[on], self.now)
                if on is On.LOWER and self.core.state is State.RUN:
                    self.update(UPDATES[On.NEXT])
                self.update(UPDATES[on])


def said(effects: Sequence[Effect]) -> list[str]:
    """What was done, in short."""
    inner = [e.message if isinstance(e, Send) else e.event if isinstance(e, Tell) else e for e in effects]
    return [type(thing).__name__ for thing in inner]


# By hand, from the table of the text: what the world sees of each cell, but for beats, events and reports.
DONE: dict[tuple[State, On], list[str]] = {
    (State.IDLE, On.ASSIGNED): ["Connect", "Connect", "ICanHaz", "ICanHaz"],
    (State.SYNC, On.ASSIGNED): ["Connect", "Connect", "ICanHaz", "ICanHaz"],
    (State.SYNC, On.LEFT): ["Disconnect", "Disconnect"],
    (State.SYNC, On.DUE): ["Connect", "ICanHaz", "ICanHaz"],
    (State.SYNC, On.COMPLETED): ["Persist"],
    (State.RUN, On.ASSIGNED): ["Connect", "Connect", "ICanHaz", "ICanHaz"],
    (State.RUN, On.LEFT): ["Disconnect", "Disconnect"],
    (State.RUN, On.NEXT): ["Persist", "KvPub"],
    (State.RUN, On.DUPLICATE): ["Persist"],  # it names the last key of its chain
    (State.RUN, On.LOWER): ["Persist", "Connect", "ICanHaz", "ICanHaz"],
    (State.RUN, On.HOLE): ["Connect", "ICanHaz", "ICanHaz"],
    (State.RUN, On.EPOCH): ["Connect", "ICanHaz", "ICanHaz"],
    (State.RUN, On.TIP): ["Connect", "ICanHaz", "ICanHaz"],
}
SHOWN = (Persist, Connect, Disconnect)


def shown(effects: Sequence[Effect]) -> list[str]:
    kept = [e for e in effects if isinstance(e, SHOWN) or (isinstance(e, Send) and type(e.message) in (ICanHaz, KvPub))]
    return said(kept)


@pytest.mark.parametrize(("state", "on", "cell"), list(pairs(TABLE)), ids=lambda part: getattr(part, "name", ""))
def test_every_state_with_every_input(state: State, on: On, cell: Cell | None) -> None:
    child = Child().bring_to(state)
    if cell is not None:
        child.put(on)
        assert cell.then is child.core.state
        assert DONE.get((state, on), []) == shown(child.done)
        return
    before = list(child.core.condense())
    try:
        child.put(on)
    except PeerError as error:
        assert error.code in ("not-now", "not-asked")
    assert (state, before) == (child.core.state, list(child.core.condense()))


@pytest.mark.proves("CFG-031")
def test_a_replica_subscribes_before_it_asks_for_all_topics_at_once_and_tells_nothing_before_all_are_in() -> None:
    child = Child()
    topics = ("/TOPO/root", "/CONFIG/web/")
    effects = child.order(FollowParent("p:27500", topics, False))
    assert [
        Connect("updates", "p:27502", child.tags["updates"], (b"HUGZ", b"/TOPO/root", b"/CONFIG/web/")),
        Connect("ask", "p:27503", child.tags["ask"]),
        Send("ask", b"", ICanHaz("/TOPO/root", wants_digest=True, takes_packs=True)),
        Send("ask", b"", ICanHaz("/CONFIG/web/", wants_digest=True, takes_packs=True)),
    ] == effects
    told = child.hear(KvSync(CPU, 5, b"60")) + child.hear(KThxBai("/CONFIG/web/", 7))
    assert ["ParentHeard"] == said(told)
    told = child.hear(KThxBai("/TOPO/root", 0))
    assert ["Persist", "ReplicaResynced", "PairsChanged", "ConfigurationApplied"] == said(told)


@pytest.mark.proves("CFG-038")
def test_a_late_reply_is_not_staged() -> None:
    late_reply_stays_out()


def late_reply_stays_out() -> None:
    child = Child().bring_to(State.SYNC)
    old = child.tags["ask"]
    child.wake(2.1)
    child.wake(1)
    assert old != child.tags["ask"]
    child.core.receive(KvSync(CPU, 4, b"old"), Source("ask", old), child.now)
    child.core.receive(KThxBai("/CONFIG/web/", 4), Source("ask", old), child.now)
    child.hear(KThxBai("/.chains/CONFIG/web/", 0))
    assert State.SYNC is child.core.state
    child.hear(KThxBai("/CONFIG/web/", 7))
    assert ({}, 2) == (child.core.store.pairs, child.core.counters.late)


@pytest.mark.proves("CFG-037")
def test_resyncs_are_rare_but_a_wipe_never_waits() -> None:
    child = Child().bring_to(State.RUN)
    pauses: list[float] = []
    for _ in range(7):
        child.update(KvPub(CPU, child.core.store.number + 1, b"", b"%d" % len(pauses), child.core.store.number))
        asked_at = child.core.counters.attempts
        begin = child.mono
        child.update(KvPub(CPU, child.core.store.number, b"", b"other", 1))
        assert (State.SYNC, {}) == (child.core.state, child.core.store.pairs)
        while child.core.counters.attempts == asked_at:
            due = child.core.deadline()
            assert due is not None
            child.wake(max(due - child.mono, 0) / SECOND)
        pauses.append((child.mono - begin) / SECOND)
        number = child.core.store.seen
        child.hear(KvSync(CPU, number, b"60"))
        child.hear(KThxBai("/.chains/CONFIG/web/", number))
        child.hear(KThxBai("/CONFIG/web/", number))
        assert State.RUN is child.core.state
    assert [0, 1, 2, 4, 8, 16, 30] == pauses


def test_an_attempt_that_fails_is_followed_by_others_ever_more_slowly_and_told_from_the_third_on() -> None:
    child = Child().bring_to(State.SYNC)
    pauses, told = [], []
    for _ in range(9):
        begin = child.mono
        effects = child.hear(Wtf(7))
        told.append(
            [effect.event.attempts for effect in effects if isinstance(effect, Tell) and "Sync" in repr(effect)]
        )
        attempts = child.core.counters.attempts
        while child.core.counters.attempts == attempts:
            due = child.core.deadline()
            assert due is not None
            child.wake((due - child.mono) / SECOND)
        pauses.append((child.mono - begin) / SECOND)
    planned = [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert all(0.89 * plan <= pause <= 1.11 * plan for plan, pause in zip(planned, pauses, strict=True)), pauses
    assert [[], [], [3], [4], [5], [6], [7], [8], [9]] == told


def test_the_timer_of_a_snapshot_begins_anew_with_each_answer() -> None:
    child = Child().bring_to(State.SYNC)
    for _ in range(5):
        child.wake(1.5)
        child.hear(KvSync(CPU, 5, b"60"))
        assert 1 == child.core.counters.attempts
    child.wake(2.1)
    child.wake(0.6)
    assert 2 == child.core.counters.attempts


@pytest.mark.proves("CFG-039")
def test_numbers_of_pairs_order_nothing() -> None:
    child = Child().bring_to(State.SYNC)
    for number, key in ((9, "b"), (3, "a"), (9, "c")):
        child.hear(KvSync(f"/CONFIG/web/{key}", number, b"1"))
    child.hear(KThxBai("/.chains/CONFIG/web/", 9))
    child.hear(KThxBai("/CONFIG/web/", 9))
    assert {"/CONFIG/web/b": 9, "/CONFIG/web/a": 3, "/CONFIG/web/c": 9} == {
        pair.key: pair.number for pair in child.core.store.pairs.values()
    }


@pytest.mark.proves("CFG-044")
def test_a_snapshot_of_a_lower_epoch_is_refused() -> None:
    child = Child().bring_to(State.RUN)
    child.update(UPDATES[On.EPOCH])
    for subtree in ("/.chains/CONFIG/web/", "/CONFIG/web/"):
        child.hear(KThxBai(subtree, (1 << 40) + 8))
    assert (State.RUN, 1) == (child.core.state, child.core.store.number >> 40)
    child.order(FollowParent("q:27500", TOPICS, True))
    child.hear(KThxBai("/.chains/CONFIG/web/", 7))
    effects = child.hear(KThxBai("/CONFIG/web/", 7))
    assert (State.SYNC, ["SyncFailing"]) == (child.core.state, said(effects))


@pytest.mark.proves("CFG-044")
def test_a_snapshot_from_before_is_asked_for_again_and_then_taken_loudly() -> None:
    child = Child().bring_to(State.RUN)
    child.order(FollowParent("q:27500", TOPICS, True))
    for _ in range(3):
        child.hear(KThxBai("/.chains/CONFIG/web/", 4))
        child.hear(KThxBai("/CONFIG/web/", 4))
        assert (State.SYNC, b"60") == (child.core.state, child.core.store.value(CPU))
        assert child.mono + 2 * SECOND == child.core.deadline()
        child.wake(2)
    child.hear(KThxBai("/.chains/CONFIG/web/", 4))
    effects = child.hear(KThxBai("/CONFIG/web/", 4))
    assert (State.RUN, b"") == (child.core.state, child.core.store.value(CPU))
    assert "ConfigurationRewound" in said(effects)


def test_what_nobody_asked_for_is_refused_and_changes_nothing() -> None:
    child = Child().bring_to(State.SYNC)
    for message in (
        KvSync("/CONFIG/db/x", 1, b"1"),
        KThxBai("/CONFIG/db/", 1),
        KvSync("/.chains/CONFIG/web/x", 1, b"{"),
    ):
        with pytest.raises(PeerError):
            child.hear(message)
    assert {"not-asked": 2, "value": 1} == child.core.counters.refused
