"""Coordination as real servers do it: whose turn it is, what two lists that meet mean, what they may never hear (4.2)."""

import json
from itertools import pairwise
from pathlib import Path as File
from typing import Any

import msgpack
import pytest

from tests.store.fleet import Fleet
from tests.store.foreign import GONE, Ended, Foreign, Kept, chain_of, path_of, unpacked
from tests.store.net import Net
from tests.store.rig import vectors
from weft.base.chance import Chance
from weft.base.effects import Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.cores.store import actor as actors
from weft.cores.store.actor import Actor
from weft.cores.store.bus import MQTT
from weft.cores.store.core import Store
from weft.cores.store.messages import EchoMissing, LinkDown, LinkUp, NameCollision, StoreSettings
from weft.cores.store.nodelist import NodeList, is_late, turn, turn_off_list
from weft.cores.store.states import State
from weft.wire.store.messages import Publication
from weft.wire.store.path import normal, pack_path, unpack_path

TRACES = File(__file__).parents[1] / "vectors" / "store-moat.jsonl"
CYCLE, GAP = 2 * SECOND, SECOND * 4 // 10


class Alone:
    """A whole core at a broker that nobody else is at; what it says is handed back, not echoed."""

    def __init__(self, name: str = "w", *, found: bool = False, **settings: Any) -> None:
        times = {"cycle_ns": CYCLE, "gap_ns": GAP, "del_cycle_ns": CYCLE, "del_gap_ns": GAP}
        self.core = Store(StoreSettings(name=name, dialects=("moat",), **{**times, **settings}), Chance(name))
        self.now = SECOND
        self.told: list[Any] = []
        self.said: list[tuple[str, Any]] = []
        self.core.restore([], self.at)
        self.core.command(LinkUp("mqtt"), self.at)
        self.turn()
        if found:
            self.core.membership.found(msgpack.packb("root"), self.at)
            self.turn()

    @property
    def at(self) -> Now:
        return Now(self.now, self.now)

    def turn(self) -> list[tuple[str, Any]]:
        """What it says now, by topic."""
        said = []
        for effect in self.core.effects():
            if isinstance(effect, Send) and effect.channel == MQTT:
                said.append((effect.peer.decode(), unpacked(effect.message.payload)))
            elif isinstance(effect, Tell):
                self.told.append(effect.event)
        self.said += said
        return said

    def hear(self, topic: str, said: dict[str, Any] | bytes) -> list[tuple[str, Any]]:
        payload = said if isinstance(said, bytes) else msgpack.packb(said)
        self.core.receive(Publication(topic, payload), Source(MQTT, topic.encode()), self.at)
        return self.turn()

    def ping(self, *history: str, value: list[int] | None = None, topic: str = "ping") -> list[tuple[str, Any]]:
        return self.hear(topic, {"t": "ping", "node": history[0], "value": value, "history": list(history)})

    def until(self, end: int) -> list[tuple[str, Any]]:
        """Time passes, in the steps that it asked for."""
        said = []
        while (due := self.core.deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.core.wake(self.at)
            said += self.turn()
        self.now = end
        return said

    @property
    def actor(self) -> Actor:
        return self.core.actors["ping"]

    def events(self, kind: type) -> list[Any]:
        return [event for event in self.told if isinstance(event, kind)]


def pings(said: list[tuple[str, Any]], kind: str = "ping") -> list[Any]:
    return [what for topic, what in said if topic == "ping" and what["t"] == kind]


# The list, and whose turn it is


@pytest.mark.proves("PNG-033")
@pytest.mark.parametrize("row", vectors("nodelist-"), ids=lambda row: str(row["id"]))
def test_the_list_changes_as_the_vectors_say(row: dict[str, Any]) -> None:
    nodes = NodeList(row["means"]["max"])
    nodes.names = row["means"]["before"]
    nodes.push(row["means"]["push"])
    assert row["means"]["after"] == nodes.names


@pytest.mark.proves("PNG-035")
def test_the_next_ping_is_due_as_the_vectors_say() -> None:
    (row,) = vectors("delay-actor")
    for length in (5, 3):
        assert row["means"][f"n{length}"] == [turn(place, length) for place in range(length)]


@pytest.mark.proves("PNG-035")
def test_who_is_off_the_list_pings_early_once_in_so_many_times_and_late_else() -> None:
    chance = Chance("off")
    drawn = [turn_off_list(2, 10, is_forced=False, chance=chance) for _ in range(20_000)]
    early = [gaps for gaps in drawn if gaps < 1]
    assert 800 <= len(early) <= 1_200
    assert (0, 1 / 3, 1.5, 2) <= (min(early), max(early), min(set(drawn) - set(early)), max(drawn))
    full = [turn_off_list(0, 10, is_forced=False, chance=chance) < 1 for _ in range(20_000)]
    assert 120 <= sum(full) <= 280
    assert all(turn_off_list(0, 10, is_forced=True, chance=chance) < 1 for _ in range(99))


@pytest.mark.proves("PNG-035")
def test_who_is_not_ready_leaves_it_to_the_ready_ones_in_the_rear_half() -> None:
    ready = {"r": (1, 1)}
    assert [False, False, True, False, True] == [
        is_late(names, ready) for names in (["r"], ["r", "a"], ["a", "r"], ["a", "r", "b"], ["a", "b", "r"])
    ]
    assert not is_late(["a", "b"], ready)


# Starting


@pytest.mark.proves("PNG-032", "PNG-031")
def test_a_node_starts_as_real_servers_do_and_they_survive_each_word() -> None:
    node, real = Alone(), Foreign("n1")
    vers = {"version": 0, "cycle": 2.0, "gap": 0.4, "nodes": 5, "splits": 4, "n_hosts": 10, "force_in": False}
    said = [what for topic, what in node.said if topic == "ping"]
    assert [{"t": "init", "node": "w"}, {"t": "vers", "node": "w", **vers, "weft": "1"}] == said
    answered = node.hear("ping", {"t": "init", "node": "w"})
    assert [("ping", {"t": "ping", "node": "w", "value": None, "history": ["w"]})] == answered
    for topic, what in node.said:
        real.hear(topic, msgpack.packb(what), node.at)


@pytest.mark.proves("PNG-032")
def test_a_broker_that_hands_nothing_back_is_told_of() -> None:
    node = Alone()
    node.until(SECOND + CYCLE + 2 * GAP - 1)
    assert [] == node.events(EchoMissing)
    node.until(SECOND + CYCLE + 2 * GAP)
    assert [EchoMissing("mqtt")] == node.events(EchoMissing)


@pytest.mark.proves("PNG-032")
def test_a_namesake_that_starts_or_pings_is_told_of_and_one_that_pings_bars_this_node() -> None:
    node = Alone(found=True)
    node.hear("ping", {"t": "init", "node": "w"})
    node.until(node.now + GAP)
    (own,) = pings(node.said)
    node.hear("ping", own)
    assert [] == node.events(NameCollision)
    node.hear("ping", {"t": "init", "node": "w"})
    assert State.MEMBER is node.core.membership.state
    node.ping("w", "x", value=[900, 9])
    assert 2 == len(node.events(NameCollision))
    assert State.READ_ONLY is node.core.membership.state
    assert [] == pings(node.until(node.now + 5 * CYCLE))


def test_an_own_ping_that_comes_back_under_a_name_that_is_given_up_is_nobody_elses() -> None:
    node = Alone(found=True)
    node.hear("ping", {"t": "init", "node": "w"})
    node.until(node.now + GAP)
    (own,) = pings(node.said)
    node.core.replica.rename("w~2")
    node.hear("ping", own)
    node.until(node.now + 3 * GAP)
    assert [] == list(node.core.context.foreign)


@pytest.mark.proves("PNG-032")
def test_a_ready_node_says_its_tock_and_tick() -> None:
    node = Alone(found=True)
    node.hear("ping", {"t": "init", "node": "w"})
    said = node.until(node.now + GAP)
    assert [[node.core.context.tock, 1]] == [what["value"] for what in pings(said)]


def test_nothing_is_said_while_the_broker_is_away() -> None:
    node = Alone(found=True)
    node.hear("ping", {"t": "init", "node": "w"})
    node.core.command(LinkDown("mqtt"), node.at)
    node.turn()
    assert [] == node.until(node.now + 20 * CYCLE)


# Configuration


@pytest.mark.proves("PNG-030")
def test_a_higher_version_replaces_the_own_configuration() -> None:
    node = Alone()
    vers = {"t": "vers", "node": "n1", "version": 3, "cycle": 6.0, "gap": 1.5, "nodes": 3, "splits": 2, "n_hosts": 4}
    node.actor.nodes.names = ["a", "b", "c", "d"]
    node.hear("ping", {**vers, "force_in": True})
    assert actors.Rules(3, 6 * SECOND, SECOND * 3 // 2, 3, 2, 4, is_forced=True) == node.actor.rules
    assert ["a", "b", "c"] == node.actor.nodes.names
    assert [] == pings(node.until(node.now + GAP), "vers")


@pytest.mark.proves("PNG-030")
@pytest.mark.parametrize("place", [0, 1, 2])
def test_to_a_lower_version_the_own_one_is_said_again_unless_somebody_did(place: int) -> None:
    node = Alone()
    node.until(node.now + 10 * CYCLE)
    node.actor.rules = actors.Rules(2, CYCLE, GAP)
    node.actor.nodes.names = ["a", "b", "c"]
    node.actor.nodes.names.insert(place, "w")
    low = {"t": "vers", "node": "n1", "version": 1}
    began = node.now
    node.hear("ping", low)
    delay = round(GAP * (1 - 0.5**place))
    assert [] == pings(node.until(began + delay - 1), "vers") if place else True
    assert [2] == [what["version"] for what in pings(node.until(began + delay), "vers")]
    node.hear("ping", low)
    node.hear("ping", {**low, "node": "n2", "version": 2})
    assert [] == pings(node.until(node.now + GAP), "vers")


@pytest.mark.proves("PNG-030")
def test_a_configuration_that_cannot_work_is_counted_and_not_taken() -> None:
    node = Alone()
    before = node.actor.rules
    node.hear("ping", {"t": "vers", "node": "n1", "version": 9, "cycle": 2.0, "gap": 1.0})
    assert (before, 1) == (node.actor.rules, node.core.context.counters["actor", "bad-rules"])


@pytest.mark.proves("PNG-031")
def test_a_server_is_foreign_whose_configuration_names_no_weft_or_never_came() -> None:
    node = Alone()
    foreign = node.core.context.foreign
    node.hear("ping", {"t": "vers", "node": "n1", "version": 0})
    node.hear("ping", {"t": "vers", "node": "w2", "version": 0, "weft": "1"})
    node.ping("w2")
    asked = node.ping("n3")
    assert ["vers"] == [what["t"] for _, what in asked]
    assert ["n1"] == list(foreign)
    node.until(node.now + 2 * GAP)
    assert ["n1", "n3"] == list(foreign)
    node.hear("ping", {"t": "vers", "node": "n3", "version": 0, "weft": "1"})
    assert ["n1"] == list(foreign)
    node.hear("ping", {"t": "init", "node": "w2"})
    node.ping("w2")
    node.until(node.now + 2 * GAP)
    assert ["n1", "w2"] == list(foreign)


@pytest.mark.proves("PNG-031")
def test_weft_nodes_tell_a_later_one_who_they_are() -> None:
    fleet = Fleet(["w1", "w2", "w3"], ["n1"], seed=5)
    fleet["n1"].found("root")
    for name in ("n1", "w1", "w2"):
        fleet.start(name)
    fleet.run(20)
    fleet.start("w3")
    fleet.run(20)
    assert [["n1"]] * 3 == [list(node.store.context.foreign) for node in fleet.net.up()]


@pytest.mark.proves("PNG-031")
@pytest.mark.parametrize("seed", range(5))
def test_weft_nodes_that_start_one_after_the_other_never_take_one_another_for_real_servers(seed: int) -> None:
    net = Net("abc", seed=seed, is_started=False, settings={"dialects": ("seed", "moat")})
    net.start("a")
    net.found("a")
    taken: list[list[str]] = []
    for name in "bc":
        net.run(net.now % 7 + seed)
        net.start(name).store.membership.on_join = taken.append
    for _ in range(40):
        net.run(1)
        assert [[]] * 3 == [list(node.store.context.foreign) for node in net.up()]
    net.settle()
    assert [] == taken


# Two lists


@pytest.mark.proves("PNG-034")
def test_a_ping_that_goes_on_from_the_own_list_is_pushed() -> None:
    node = Alone()
    node.ping("a", value=[5, 1])
    node.ping("b", "a", value=[6, 1])
    assert ["b", "a"] == node.actor.nodes.names


@pytest.mark.proves("PNG-034")
@pytest.mark.parametrize(
    ("value", "name", "is_taken"),
    [
        ([9, 1], "z", True),
        ([7, 2], "z", True),
        ([7, 1], "a", True),
        ([7, 1], "z", False),
        ([7, 0], "a", False),
        (None, "a", False),
    ],
)
def test_of_two_pings_at_once_the_greater_value_counts_and_of_equals_the_lower_name(
    value: list[int] | None, name: str, is_taken: bool
) -> None:
    node = Alone()
    node.ping("m", value=[3, 1])
    node.ping("h", "m", value=[7, 1])
    node.ping(name, "m", value=value)
    assert ([name, "m"] if is_taken else ["h", "m"]) == node.actor.nodes.names


def split(node: Alone, *own: str) -> None:
    """The list of that node is `own`, all ready with tock 50."""
    node.hear("ping", {"t": "init", "node": "w"})
    node.until(node.now + GAP)
    for name in own:
        node.actor.values[name] = (50, 1)
    node.actor.nodes.names = list(own)
    node.said.clear()


def test_who_is_on_the_list_pings_in_the_turn_of_its_place() -> None:
    node = Alone(found=True)
    split(node, "a", "w")
    node.ping("b", "a", "w", value=[60, 1])
    due = node.now + CYCLE + round(GAP * turn(2, 3))
    assert [] == pings(node.until(due - 1))
    assert [["w", "b", "a"]] == [what["history"] for what in pings(node.until(due))]


@pytest.mark.proves("PNG-034")
@pytest.mark.parametrize(("own", "place"), [(("w", "b"), 0), (("a", "w"), 1), (("a", "b", "w"), 2)])
def test_two_sides_that_meet_recover_and_the_own_list_is_said_again(own: tuple[str, ...], place: int) -> None:
    node = Alone(found=True)
    split(node, *own)
    began, delay = node.now, round(GAP * (1 - 0.5**place))
    first = node.ping("x", "y", value=[90, 4])
    later = node.until(began + delay)
    assert [{"t": "hist", "value": [50, 1], "history": list(own)}] == pings(first + later, "hist")
    assert (not place) == bool(pings(first, "hist"))
    assert ["x", "y"] == node.actor.nodes.names
    ticks = [
        what["ticks"] for topic, what in node.said + node.until(began + CYCLE) if topic == "info" and "ticks" in what
    ]
    assert [{"w": 1, "x": 4}] == ticks[:1]


@pytest.mark.proves("PNG-034")
def test_the_list_is_not_said_again_if_its_first_pings_before() -> None:
    node = Alone(found=True)
    split(node, "a", "w")
    node.ping("x", "y", value=[40, 4])
    node.ping("a", "b", value=[60, 1])
    assert [] == pings(node.until(node.now + GAP), "hist")


@pytest.mark.proves("PNG-034")
def test_a_hist_from_the_other_side_is_answered_and_one_of_the_own_list_is_not() -> None:
    node = Alone(found=True)
    split(node, "w", "b")
    node.hear("ping", {"t": "hist", "value": [50, 1], "history": ["w", "b"]})
    node.hear("ping", {"t": "hist", "value": [50, 1], "history": ["b", "w"]})
    assert [] == pings(node.said, "hist")
    node.hear("ping", {"t": "hist", "value": [40, 1], "history": ["x", "y"]})
    assert [["w", "b"]] == [what["history"] for what in pings(node.said, "hist")]
    assert ["w", "b"] == node.actor.nodes.names


@pytest.mark.proves("PNG-034")
def test_who_has_no_data_downloads_from_those_in_the_history_that_have() -> None:
    node = Alone()
    asked: list[list[str]] = []
    node.core.membership.on_join = asked.append
    node.ping("c", value=None)
    node.ping("b", "c", value=[4, 1])
    node.ping("a", "b", "c", value=[5, 1])
    assert [] == asked, "whether they are real servers is not known yet"
    node.until(node.now + 2 * GAP)
    assert [["b"]] == asked
    node.core.membership.download_failed(node.at)
    node.until(node.now + CYCLE)
    node.ping("b", "a", "c", value=[5, 1])
    assert ["b", "a"] == asked[-1]


@pytest.mark.proves("STO-020", "PNG-034")
def test_tock_and_tick_of_a_ping_count() -> None:
    node = Alone(found=True)
    node.ping("a", value=[700, 3])
    assert (700, 3) == (node.core.context.tock, node.core.replica.book.top("a"))
    assert [(1, 3)] == list(node.core.replica.book.missing()["a"])


@pytest.mark.proves("PNG-036")
def test_who_pinged_last_and_heard_nobody_asks_for_what_is_missing() -> None:
    node = Alone(found=True)
    node.hear("ping", {"t": "init", "node": "w"})
    node.until(node.now + GAP)
    node.ping("a", "w", value=[700, 3])
    (own,) = pings(node.until(node.now + 2 * CYCLE))[-1:]
    assert "w" == own["node"]
    assert node.actor.is_tagged_until > 0 or "tag" in node.actor._timers
    node.until(node.now + 2 * GAP)
    asked = [what["missing"] for topic, what in node.said if topic == "info" and "missing" in what]
    assert {"a": [[1, 4]]} in asked


def test_malformed_coordination_changes_nothing_and_is_counted() -> None:
    node = Alone(found=True)
    for said in ({"t": "ping", "node": "a", "value": 5, "history": ["a"]}, {"node": "a"}, {"t": "what"}, b"\xc1"):
        with pytest.raises(PeerError):
            node.hear("ping", said)
    with pytest.raises(PeerError):
        node.ping("a", value=[1 << 60, 1])
    assert ([], 5) == (node.actor.nodes.names, node.core.context.counters["malformed_by", "mqtt"])


# Real servers, as they were recorded


def trace(name: str) -> list[tuple[float, str, bytes]]:
    rows = [
        row for row in map(json.loads, TRACES.read_text("utf-8").splitlines()) if row["id"].rpartition("-")[0] == name
    ]
    return [(row["means"]["t"], row["means"]["topic"], bytes.fromhex(row["payload"])) for row in rows]


def last_writes(rows: list[tuple[float, str, bytes]]) -> dict[bytes, Any]:
    """Per path the greatest change said, by (tock, tick, lower name): computed without Weft's merging."""
    best: dict[bytes, tuple[Any, Any]] = {}
    for _, topic, payload in rows:
        if topic == "moat/kv/update":
            said = unpacked(payload)
            node, tick = chain_of(said.get("chain") or said)[0]
            rank = (said["tock"], tick, [-byte for byte in node.encode()])
            path = path_of(said["path"])
            if path not in best or rank > best[path][0]:
                best[path] = (rank, said.get("value", GONE))
    written = {path: value for path, (_, value) in best.items() if value is not GONE}
    return {pack_path(normal(unpack_path(path), "moat")): repr(value) for path, value in written.items()}


TRACED = [
    "new-basic",
    "old-basic",
    "mid-split2",
    "new-split5",
    "new-deleter",
    "mid-deleter",
    "mid-chains",
    "new-chains",
    "old-chains",
]


@pytest.mark.proves("PNG-031", "STO-020")
@pytest.mark.parametrize("name", TRACED)
def test_a_silent_core_that_hears_a_recorded_fleet_has_what_they_wrote(name: str) -> None:
    rows = trace(name)
    node = Alone("silent", keys="moat")
    node.core.membership.on_join = lambda names: None
    for at, topic, payload in rows:
        node.until(SECOND + round(at * SECOND))
        if topic.startswith("moat/kv/"):
            node.hear(topic.rpartition("/")[2], payload)
    assert [] == [key for key in node.core.context.counters if key[0] == "malformed"]
    missing = {who: list(ranges) for who, ranges in node.core.replica.book.missing().items()}
    assert missing in ({}, {"n1": [(1, 1)]})
    actual = {
        pack_path(event.path): repr(unpacked(event.value))
        for event in node.core.replica.tree.walk()
        if event.value is not None
    }
    assert last_writes(rows) == actual


# Fleets with model servers


def mixed(seed: int, weft: int = 2, real: int = 2) -> Fleet:
    """All together, founded by a real server, everybody ready."""
    fleet = Fleet([f"w{k}" for k in range(weft)], [f"n{k}" for k in range(real)], seed=seed)
    fleet["n0"].found("root")
    fleet.start_all()
    fleet.run(25)
    return fleet


@pytest.mark.proves("PNG-031", "PNG-034")
@pytest.mark.parametrize("seed", range(3))
def test_weft_nodes_join_real_servers_and_take_turns_with_them(seed: int) -> None:
    fleet = mixed(seed)
    assert [State.MEMBER] * 2 == [node.state for node in fleet.net.up()]
    fleet.run(100)
    lists = [tuple(real.turns["ping"].list) for real in fleet.real.values()]
    lists += [tuple(node.store.actors["ping"].nodes.names) for node in fleet.net.up()]
    assert 1 == len(set(lists))
    at = [at for at, _, topic, what in fleet.heard if topic == "ping" and what["t"] == "ping" and at > 26]
    assert max(later - early for early, later in pairwise(at)) < 2 + 0.4 * 2.1
    assert [] == [
        what for _, _, topic, what in fleet.heard if topic == "ping" and what["t"] == "hist" and "w" in str(what)
    ]
    for number, name in enumerate([*fleet.real, *fleet.net.nodes]):
        fleet.write(name, f"k.{number}", number)
    fleet.run(5)
    assert fleet.are_equal()
    assert 4 == sum(key.startswith(b"\xa1k") for key in fleet.contents()["n0"])


@pytest.mark.proves("PNG-034")
def test_a_real_server_joins_a_store_that_weft_founded() -> None:
    fleet = Fleet(["w0"], ["n0"], seed=1)
    fleet.start("w0")
    fleet.net.found("w0", "root")
    fleet.run(8)
    fleet.write("w0", "a", 1)
    fleet.write("w0", "b", 1)
    fleet.write("w0", "b")
    fleet.start("n0")
    fleet.run(8)
    assert fleet["n0"].is_ready
    assert ({}, True) == (fleet["n0"].missing(), fleet.are_equal())
    fleet.write("n0", "c", 3)
    fleet.run(8)
    assert fleet.are_equal()


def heal(seed: int) -> Fleet:
    """Both sides write the same keys and delete while apart; then they meet."""
    fleet = mixed(seed)
    fleet.net.cut({"n0", "w0"}, {"n1", "w1"})
    for _ in range(12):
        fleet.write(
            fleet.chance.choice(["n0", "n1", "w0", "w1"]), f"k.{fleet.chance.randrange(4)}", fleet.chance.random()
        )
        fleet.run(fleet.chance.random())
    for name in ("n0", "w1"):
        fleet.write(name, "k.1")
    fleet.run(15)
    fleet.net.heal()
    fleet.run(80)
    return fleet


@pytest.mark.proves("STO-014", "PNG-034", "PNG-036")
@pytest.mark.parametrize("seed", range(6))
def test_a_mixed_fleet_that_was_cut_ends_equal(seed: int) -> None:
    fleet = heal(seed)
    assert ({}, {}) == (fleet.net.missing(), {name: m for name, real in fleet.real.items() if (m := real.missing())})
    assert fleet.are_equal(), fleet.contents()


@pytest.mark.parametrize("key", ["t", "node", "value", "history"])
def test_the_model_ends_at_a_ping_without_one_of_its_keys(key: str) -> None:
    said = {"t": "ping", "node": "a", "value": None, "history": ["a"]}
    del said[key]
    with pytest.raises(Ended):
        Foreign("n1").hear("ping", msgpack.packb(said), Now(0, 0))


def test_the_model_ends_at_a_word_too_many_a_batch_and_a_namesake() -> None:
    real = Foreign("n1")
    init = msgpack.packb({"t": "init", "node": "n1"})
    for payload in (init + init, msgpack.packb({"t": "init", "node": "x", "weft": 1})):
        with pytest.raises(Ended):
            real.hear("ping", payload, Now(0, 0))
    real.hear("ping", init, Now(0, 0))
    with pytest.raises(Ended):
        real.hear("ping", init, Now(0, 0))


def test_the_model_keeps_what_came_later_of_equals_and_takes_any_write_over_a_deletion() -> None:
    real = Foreign("n1")
    for new, is_taken in (
        (Kept([("x", 1)], 9, "X"), True),
        (Kept([("y", 1)], 9, "Y"), True),
        (Kept([("y", 1)], 9, "again"), False),
        (Kept([("z", 1)], 8, "Z"), False),
        (Kept([("y", 2), ("x", 1)], 20, GONE), True),
        (Kept([("z", 2)], 3, "old"), True),
    ):
        real.take_change(b"p", new)
        assert is_taken == (real.entries[b"p"] is new)
