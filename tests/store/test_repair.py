"""Entries about which real servers would differ are written anew, once, by one node (STO-014, STO-015; T5, T6)."""

import itertools
import random
from contextlib import nullcontext
from typing import Any

import pytest

from tests.store.foreign import GONE, Ended, Foreign
from tests.store.rig import DELETE, Node, chain, change, events_of, vectors
from weft.base.changes import Event
from weft.base.effects import Send
from weft.base.now import MILLISECOND, SECOND, Now
from weft.cores.store import limits
from weft.cores.store import repair as repairs
from weft.cores.store.bus import MQTT, Bus
from weft.cores.store.messages import EntryRepaired
from weft.cores.store.repair import Repair
from weft.wire.store.pack import unpack

GAP = 2 * SECOND


class Weft(Node):
    """A replica that repairs."""

    def __init__(self, name: str, *, foreign: str = "f", positions: tuple[str, ...] = (), **settings: Any) -> None:
        super().__init__(name, **{"dialects": ("moat",), **settings})
        self.repair = Repair(self.context, self.bus, self.replica)
        self.repair.positions = lambda: list(positions or (name,))
        self.replica.listeners.append(self.repair.note)
        if foreign:
            self.context.foreign[foreign] = None

    def until(self, mono: int) -> None:
        """It is that late."""
        self.context.now = Now(mono, mono)
        due = self.repair.deadline()
        if due is not None and due <= mono:
            self.repair.wake(self.context.now)

    def said(self) -> list[tuple[str, bytes]]:
        """What it says on the broker, since asked last."""
        return [
            (effect.peer.decode(), effect.message.payload)
            for effect in self.turn()
            if isinstance(effect, Send) and effect.channel == MQTT
        ]

    def repaired(self) -> list[Event]:
        """The changes that its repairs are."""
        return events_of(payload.hex() for topic, payload in self.said() if topic == "update")


@pytest.mark.proves("STO-014")
@pytest.mark.parametrize("row", vectors("rep-"), ids=lambda row: str(row["id"]))
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_entry_is_repaired_as_the_vectors_say(row: dict[str, Any], order: tuple[int, int]) -> None:
    node = Weft("w1")
    node.context.tick = 7
    events = events_of(row["frames"])
    node.hear(*(events[index] for index in order))
    node.turn()
    node.until(GAP // 4)
    expected = row["means"]["repair"]
    actual = node.repaired()
    if expected is None:
        assert [] == actual
        return
    (event,) = actual
    assert [tuple(link) for link in expected["links"]] == list(event.chain.links)
    assert expected["deleted"] == event.is_deletion
    assert expected["value"] == (None if event.value is None else unpack(event.value))
    assert max(each.tock for each in events) < event.tock


@pytest.mark.proves("STO-014")
def test_nothing_is_repaired_among_weft_nodes() -> None:
    node = Weft("w", foreign="")
    node.hear(change("x:1", 9, "p", "X"), change("y:1", 9, "p", "Y"))
    assert None is node.repair.deadline()


@pytest.mark.proves("STO-014")
@pytest.mark.parametrize(("place", "quarters"), [(0, 1), (1, 3), (2, 4)])
def test_who_is_first_of_the_weft_nodes_repairs_and_the_others_see_that_nothing_is_left(
    place: int, quarters: int
) -> None:
    names = tuple(f"w{index}" for index in range(3))
    node = Weft(names[place], positions=names)
    node.hear(change("x:1", 9, "p", "X"), change("y:1", 9, "p", "Y"))
    assert quarters * GAP // 4 == node.repair.deadline()
    node.hear(change("w9:1", 20, "p", "X", "x:1 y:1"))
    node.until(10 * GAP)
    assert ([], None) == (node.repaired(), node.repair.deadline())


def test_a_node_that_is_not_in_the_list_repairs_last() -> None:
    node = Weft("w", positions=("w0", "w1", "w2", "w3"))
    node.hear(change("x:1", 9, "p", "X"), change("y:1", 9, "p", "Y"))
    due = node.repair.deadline()
    assert due is not None
    assert GAP // 4 + GAP <= due < 2 * GAP


@pytest.mark.proves("STO-014")
def test_a_loser_is_forgotten_after_ten_minutes() -> None:
    node = Weft("w")
    node.hear(change("y:1", 11, "p"), change("x:1", 9, "q", "X"))
    node.until(1)
    node.hear(change("x:2", 9, "p", "X"))
    due = node.repair.deadline()
    assert GAP // 4 + 1 == due
    node.until(limits.LOSERS_NS + 2)
    assert [] == node.repaired()


@pytest.mark.proves("STO-014")
def test_of_one_entry_no_more_than_64_losers_are_remembered() -> None:
    node = Weft("w")
    node.hear(change("y:1", 1_000, "p"))
    node.hear(*(change(f"x{index}:1", 9, "p", index) for index in range(100)))
    node.until(GAP)
    (event,) = node.repaired()
    assert 64 == len(event.chain.links)
    assert (("x99", 1), ("x38", 1)) == (event.chain.links[2], event.chain.links[-1])
    assert None is node.repair.deadline(), "what has no room would be repaired for ever"


@pytest.mark.parametrize(("losers", "is_cut"), [(62, False), (63, True)])
def test_a_repair_says_that_its_chain_is_cut_if_a_single_link_had_no_room(losers: int, is_cut: bool) -> None:
    node = Weft("w")
    node.hear(change("y:1", 1_000, "p"))
    node.hear(*(change(f"x{index}:1", 9, "p", index) for index in range(losers)))
    node.until(GAP)
    (event,) = node.repaired()
    assert (64, is_cut) == (len(event.chain.links), event.chain.is_cut)


@pytest.mark.proves("STO-014")
def test_no_more_than_a_hundred_repairs_are_made_in_a_second() -> None:
    node = Weft("w")
    for index in range(250):
        node.hear(change(f"x:{index + 1}", 9, f"p{index}", "X"), change(f"y:{index + 1}", 9, f"p{index}", "Y"))
    counts = []
    for late in range(3):
        node.until(GAP // 4 + late * SECOND)
        counts.append(len(node.repaired()))
    assert [100, 100, 50] == counts


@pytest.mark.proves("STO-014")
def test_a_repair_is_told_with_its_reason() -> None:
    node = Weft("w")
    node.hear(change("x:1", 9, "p", "X"), change("y:1", 9, "p", "Y"))
    node.hear(change("x:2", 9, "q", "X"), change("y:2", 11, "q"))
    node.until(GAP)
    node.turn()
    assert [EntryRepaired("p", 1, "equal-tock"), EntryRepaired("q", 2, "deletion")] == [
        event for event in node.told if isinstance(event, EntryRepaired)
    ]


@pytest.mark.proves("STO-015")
def test_a_resend_that_the_deletion_does_not_cover_makes_a_repair() -> None:
    node = Weft("w")
    node.hear(change("y:1", 11, "p", DELETE, "x:1"))
    assert ["stale"] == node.hear(change("x:1", 9, "p", "X", "z:4"))
    node.until(GAP)
    (event,) = node.repaired()
    assert chain("w:1 y:1 x:1 z:4").links == event.chain.links
    assert event.is_deletion


@pytest.mark.proves("STO-015")
def test_a_resend_of_a_live_entry_makes_none() -> None:
    node = Weft("w")
    node.hear(change("y:1", 11, "p", "Y", "x:1"), change("x:1", 9, "p", "X", "z:4"))
    assert None is node.repair.deadline()


@pytest.mark.proves("STO-014")
@pytest.mark.parametrize("is_known", [True, False])
def test_after_two_repairs_at_once_one_of_the_two_is_sooner(is_known: bool) -> None:
    nodes = one, two = Weft("w1"), Weft("w2")
    clash = [change("x:1", 9, "p", "X"), change("y:1", 11, "p")]
    for node in nodes:
        node.repair.known = lambda: ["w1", "w2"] if is_known else []
        node.hear(*clash)
        node.until(GAP // 2)
    (first,), (second,) = one.repaired(), two.repaired()
    one.hear(second)
    two.hear(first)
    dues = [node.repair.deadline() or 0 for node in nodes]
    assert dues[0] != dues[1]
    if is_known:
        assert (GAP // 2 + GAP // 4, True) == (dues[0], dues[1] >= GAP // 2 + 2 * GAP)
    sooner, later = nodes if dues[0] < dues[1] else (two, one)
    sooner.until(min(dues))
    later.hear(*sooner.repaired())
    later.until(max(dues))
    assert ([], None, None) == (later.repaired(), later.repair.deadline(), sooner.repair.deadline())
    assert one.entries() == two.entries()


def test_weft_nodes_that_are_the_first_of_different_lists_do_not_repair_at_once() -> None:
    dues = []
    for name in ("w1", "w2"):
        node = Weft(name)
        node.repair.known = lambda: ["w1", "w2"]
        node.hear(change("x:1", 9, "p", "X"), change("y:1", 11, "p"))
        dues.append(node.repair.deadline())
    assert [GAP // 4, GAP // 2] == dues


# Real servers beside us


class Mixed:
    """Weft nodes and real servers on a bus that delivers everything once, in any order; then resends, in any order."""

    def __init__(self, seed: int, weft: int = 2, foreign: int = 2) -> None:
        self.chance = random.Random(seed)
        self.seed, self.now = seed, 0
        names = tuple(f"w{index}" for index in range(weft))
        self.weft = [Weft(name, positions=names, gap_ns=GAP) for name in names]
        self.foreign = [Foreign(f"f{index}") for index in range(foreign)]
        for node in self.foreign:
            node.is_ready = True
        self.waiting: list[tuple[int, Any, str, bytes]] = []
        self.repaired = 0

    @property
    def all(self) -> list[Any]:
        return [*self.weft, *self.foreign]

    def act(self, node: Any, path: str, value: Any = GONE) -> None:
        node.write(path, DELETE if value is GONE and isinstance(node, Weft) else value)
        self.collect(node)

    def collect(self, node: Any) -> None:
        said = node.said() if isinstance(node, Weft) else node.take()
        for topic, payload in said:
            for other in self.all:
                if other is not node:
                    late = self.now + self.chance.randrange(1, 200) * MILLISECOND
                    self.waiting.append((late, other, topic, payload))

    def run(self, span: int) -> None:
        """Messages and repairs as they come; a repair is one change of the bus."""
        end = self.now + span
        while True:
            dues = [at for node in self.weft if (at := node.repair.deadline()) is not None]
            self.now = min([end, *(late for late, *_ in self.waiting), *dues])
            if self.now >= end:
                return
            ready = [item for item in self.waiting if item[0] <= self.now]
            self.waiting = [item for item in self.waiting if item[0] > self.now]
            for _, node, topic, payload in ready:
                if isinstance(node, Weft):
                    node.context.now = Now(self.now, self.now)
                    node.hear(*events_of([payload.hex()]))
                else:
                    node.hear(topic, payload, Now(self.now, self.now))
            for node in self.weft:
                before = node.context.tick
                node.until(self.now)
                self.repaired += node.context.tick - before
                self.collect(node)

    def resend(self) -> None:
        """Some real server says again what it holds, with two links, as it does when somebody asks."""
        node = self.chance.choice(self.foreign)
        for key, kept in list(node.entries.items()):
            node.say_update(key, kept, resend=True)
        self.collect(node)

    def values(self, path: str) -> list[Any]:
        """As each has it."""
        return [self.value(node, path) for node in self.all]

    def value(self, node: Any, path: str) -> Any:
        try:
            found = node.value(path)
        except KeyError:
            return GONE
        return GONE if found is DELETE else found


def test_equal_tocks_at_two_real_servers_end_equal_by_one_repair() -> None:
    """T5: each real server keeps what came later, so the two hold each other's value; one of ours mends both."""
    world = Mixed(1, weft=2, foreign=2)
    one, two = world.foreign
    world.act(one, "p", "X")
    world.act(two, "p", "Y")
    world.run(GAP // 8)
    assert ["Y", "X"] == world.values("p")[2:], "they would have agreed without us: nothing is shown"
    world.run(10 * GAP)
    assert 1 == len(set(world.values("p")))
    assert 1 == world.repaired


@pytest.mark.parametrize("order", list(itertools.permutations(range(2))))
def test_a_deletion_stands_against_a_concurrent_write_in_every_order(order: tuple[int, ...]) -> None:
    """T6: x writes at tock 1001, y deletes at 1003."""
    events = [change("x:1", 1001, "p", "t"), change("y:1", 1003, "p")]
    node = Weft("w1")
    node.hear(*(events[index] for index in order))
    assert DELETE is node.value("p")
    node.until(GAP // 4)
    (event,) = node.repaired()
    assert chain("w1:1 y:1 x:1").links == event.chain.links
    assert event.is_deletion


def mixed_run(seed: int) -> Mixed:
    """S8, small: concurrent writes and deletions of two keys everywhere, resends, until nothing happens any more."""
    world = Mixed(seed, weft=1 + seed % 2, foreign=2 + seed % 2)
    for _ in range(world.chance.randrange(2, 12)):
        node = world.chance.choice(world.all)
        path = world.chance.choice("pq")
        can_delete = world.value(node, path) is not GONE
        world.act(node, path, GONE if can_delete and world.chance.random() < 0.5 else world.chance.randrange(9))
        if world.chance.random() < 0.5:
            world.run(world.chance.randrange(300) * MILLISECOND)
    for _ in range(3):
        world.run(20 * GAP)
        world.resend()
    world.run(40 * GAP)
    return world


def differing(seeds: range) -> list[int]:
    """Seeds after which somebody holds another value than the others, or repairs go on for ever."""
    found = []
    for seed in seeds:
        world = mixed_run(seed)
        if world.waiting or any(len({str(v) for v in world.values(path)}) > 1 for path in "pq"):
            found.append(seed)
    return found


SEEDS = range(300)


@pytest.mark.prove("many fleets")
@pytest.mark.proves("STO-014", "STO-015")
def test_mixed_fleets_with_deletions_end_equal() -> None:
    assert [] == differing(SEEDS)


@pytest.mark.proves("PNG-031")
@pytest.mark.parametrize("is_joined", [False, True])
def test_repairs_of_one_turn_in_one_payload_would_end_a_real_server(
    is_joined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_joined:
        monkeypatch.setattr(Bus, "_has_strangers", False)
    node, real = Weft("w"), Foreign("f")
    for path in "pq":
        node.hear(change(f"x:{ord(path)}", 9, path, "X"), change(f"y:{ord(path)}", 9, path, "Y"))
    node.until(GAP)
    said = node.said()
    assert (1 if is_joined else 2) == len(said)
    with pytest.raises(Ended) if is_joined else nullcontext():
        for topic, payload in said:
            real.hear(topic, payload, Now(GAP, GAP))


@pytest.mark.prove("many fleets")
@pytest.mark.parametrize("reason", ["deletion", "equal-tock"])
def test_without_either_clause_some_fleets_would_differ_for_ever(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Repair._why

    def wrong(self: Repair, contested: repairs.Contested) -> str:
        why = right(self, contested)
        return "" if why == reason else why

    monkeypatch.setattr(Repair, "_why", wrong)
    assert [] != differing(SEEDS)


def test_equal_values_repaired_would_go_on_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repairs, "same_value", lambda a, b: False)
    one, two = Weft("w1"), Weft("w2")
    events = [change("x:1", 9, "p", "X"), change("y:1", 9, "p", "Y")]
    for node in (one, two):
        node.hear(*events)
    counts = []
    for turn in range(1, 6):
        said = []
        for node in (one, two):
            node.until(turn * 6 * GAP)
            said.append(node.repaired())
        one.hear(*said[1])
        two.hear(*said[0])
        counts.append(sum(map(len, said)))
    assert [2, 2, 2, 2, 2] == counts
