"""Whole fleets: they form a tree, lose collectors and roots, are cut apart, and come together again."""

import json
from itertools import pairwise
from typing import Any

import pytest

from tests.topology import chaos
from tests.topology.net import Machine, Net
from weft.base.now import SECOND
from weft.cores.topology.messages import (
    ChildIs,
    LearnPairs,
    NodeJoined,
    NodeLeft,
    NodePromoted,
    NodesStopped,
    NoteLeaving,
    RootLeft,
    RootTaken,
    StopNodes,
    VotersRecalled,
)
from weft.cores.topology.states import Role, Standing

ROOT = "10.0.0.1:27500"
SEEDS = 220
SEEDS_SOAK = 20_000


def fleet(net: Net, *, collectors: int, sensors: int, **group: Any) -> Net:
    """A root, first-level collectors in group `site`, and sensors there."""
    names = [f"10.0.1.{i + 1}:27500" for i in range(collectors)]
    net.configure(site={"members": ["10.0.0.0/16"], "collectors": names, **group})
    everyone = [*names, *(f"10.0.2.{i + 1}:27500" for i in range(sensors))]
    net.add("root", ROOT, level="root", join=tuple(everyone))
    for i, endpoint in enumerate(everyone):
        name = f"c{i + 1}" if i < collectors else f"s{i - collectors + 1}"
        net.add(name, endpoint, join=(ROOT,))
    return net


def start_all(net: Net) -> Net:
    for machine in net.machines.values():
        machine.start()
    assert net.run_until(net.is_settled, 20) is not None, "\n".join(net.unsettled())
    net.run(3)
    return net


def settle(net: Net, seconds: float) -> float:
    """How long it takes."""
    took = net.run_until(net.is_settled, seconds)
    assert took is not None, "\n".join(net.unsettled())
    return took


def branches(net: Net) -> list[Machine]:
    return [m for m in net.machines.values() if m.up and m.place is not None and m.place.level == "collector"]


def children(net: Net, parent: Machine) -> list[Machine]:
    return [m for m in net.machines.values() if m.up and m.following == parent.endpoint]


# Forming


@pytest.mark.proves("TOP-013", "TOP-016")
@pytest.mark.proves("TOP-005", part="a mass start forms the tree")
def test_a_mass_start_forms_the_tree_with_one_write_per_node() -> None:
    net = fleet(Net("start"), collectors=3, sensors=9)
    for machine in net.machines.values():
        machine.start()
    took = settle(net, 20)
    assert took < 2 + 1  # two beats without a disk, and less than a second for all of them
    assert [] == net.wrong
    assert ["c1", "c2", "c3"] == [m.name for m in branches(net)]
    assert [3, 3, 3] == [len(children(net, collector)) for collector in branches(net)]
    assert 12 + 1 == net.writes  # one per join, and the root's own


@pytest.mark.proves("TOP-013", "CFG-030")
def test_groups_nest_by_parent_and_each_tier_stands_below_the_one_above() -> None:
    net = Net("tiers")
    groups = [f"g{i}" for i in range(1, 8)]
    net.configure(g1={"members": ["10.1.0.0/16"]})
    for above, group in pairwise(groups):
        net.configure(**{group: {"members": [f"10.{group[1:]}.0.0/16"], "parent": above}})
    everyone = [f"10.{i}.0.{k}:27500" for i in range(1, 8) for k in (1, 2)]
    net.add("root", ROOT, level="root", join=tuple(everyone))
    for endpoint in everyone:
        net.add(f"n{endpoint.split('.')[1]}{endpoint.split('.')[3][0]}", endpoint)
    net["root"].start()
    net.run(3)
    for machine in net.machines.values():
        if not machine.up:
            machine.start()
            net.run(1)
    settle(net, 30)
    assert list(range(1, 8)) == [net[f"n{i}1"].place.tier for i in range(1, 8)]  # type: ignore[union-attr]  # settled
    assert ["sensor"] * 7 == [net[f"n{i}2"].place.level for i in range(1, 8)]  # type: ignore[union-attr]  # settled
    lowest, middle = net["n71"].place, net["n61"].place
    assert lowest is not None
    assert middle is not None
    assert ("/TOPO/root", "/CONFIG/global/", "/CONFIG/g7/", "/TOPO/g7/") == lowest.topics
    assert {"/CONFIG/g6/", "/TOPO/g6/", "/CONFIG/g7/", "/TOPO/g7/"} <= {*middle.topics}
    assert ("/TOPO/root", "/CONFIG/global/", "/CONFIG/g7/") == net["n72"].place.topics  # type: ignore[union-attr]  # same


@pytest.mark.proves("TOP-014")
def test_above_the_fan_out_collectors_are_added_and_children_spread_evenly_with_few_moves() -> None:
    net = Net("fanout")
    net.configure(site={"members": ["10.0.0.0/16"], "fanout": 4})
    net.add("root", ROOT, level="root")
    net["root"].start()
    net.run(3)
    for i in range(18):
        net.add(f"s{i}", f"10.0.2.{i + 1}:27500", join=(ROOT,)).start()
        before = {m.name: m.following for m in net.machines.values()}
        net.run(4)
        moved = [m.name for m in net.machines.values() if before[m.name] not in ("", m.following)]
        assert len(moved) <= 1 + 4, moved  # a new collector, and at most its own children
    assert net.is_settled()
    loads = sorted(len(children(net, collector)) for collector in branches(net))
    assert loads[-1] <= 4
    assert loads[-1] - loads[0] <= 1
    assert 18 == len(branches(net)) + sum(loads)
    assert [] == net.wrong


@pytest.mark.proves("CFG-091", part="a group gets one more collector: `topo.promoted`")
def test_each_collector_that_is_added_for_the_fan_out_is_told_by_the_root() -> None:
    net = Net("fanout")
    net.configure(site={"members": ["10.0.0.0/16"], "fanout": 2})
    net.add("root", ROOT, level="root")
    for i in range(8):
        net.add(f"s{i}", f"10.0.2.{i + 1}:27500", join=(ROOT,))
    start_all(net)
    promoted = [event for event in net["root"].events if isinstance(event, NodePromoted)]
    first = next(event for event in net["root"].events if isinstance(event, NodeJoined))
    assert "collector" == first.level
    assert {first.name, *(event.name for event in promoted)} == {collector.name for collector in branches(net)}
    assert {("site", ROOT)} == {(event.group, event.parent) for event in promoted}
    assert 3 <= len(promoted) + 1 == len(branches(net))


@pytest.mark.proves("TOP-006")
def test_a_node_that_nobody_calls_calls_in_by_way_of_one_that_is_no_root() -> None:
    net = start_all(fleet(Net("join"), collectors=1, sensors=1))
    late = net.add("late", "10.0.3.1:27500", join=("10.0.2.1:27500",))
    late.start()
    settle(net, 5)
    assert "10.0.1.1:27500" == late.following


@pytest.mark.proves("TOP-010")
def test_a_node_that_no_group_wants_is_listed_and_gets_its_place_when_the_configuration_changes() -> None:
    net = start_all(fleet(Net("unassigned"), collectors=1, sensors=1))
    late = net.add("late", "172.16.0.1:27500", join=(ROOT,))
    late.start()
    net.run(2)
    assert Standing.BASE is late.core.standing
    assert [late.node] == list(net["root"].core.registry.unassigned)
    net["root"].apply({"/CONFIG/far/members": b'["172.16.0.0/12"]'}, net["root"].number + 1)
    assert settle(net, 3) < 1.5
    assert ("far", "collector") == (late.place.group, late.place.level)  # type: ignore[union-attr]  # settled


@pytest.mark.proves("TOP-007")
def test_a_restarted_node_knows_its_place_at_once_and_the_root_its_incarnation() -> None:
    net = start_all(fleet(Net("restart"), collectors=1, sensors=2))
    sensor = net["s1"]
    sensor.crash()
    net.run(1)
    net["root"].crash()  # nobody can tell it
    sensor.start()
    net.run(0.01)
    assert "10.0.1.1:27500" == sensor.following
    net["root"].start()
    net.run(12)
    assert 2 == net["root"].tree["s1"]["incarnation"]


@pytest.mark.proves("TOP-017")
def test_stop_names_the_missing_and_the_stopped_wait_for_a_root_that_starts() -> None:
    net = start_all(fleet(Net("stop"), collectors=2, sensors=3))
    net["s3"].crash()
    net["root"].order(StopNodes(7))
    net.run(11)
    (answer,) = net["root"].replies
    assert NodesStopped(("c1", "c2", "s1", "s2"), ("s3",)) == NodesStopped(
        tuple(sorted(answer.stopped)), answer.missing
    )
    assert {Standing.BASE} == {m.core.standing for m in net.machines.values() if m.up}
    net.run(20)
    assert {Standing.BASE} == {m.core.standing for m in net.machines.values() if m.up}
    assert ["s3"] == list(net["root"].tree)
    net["s1"].crash()
    net["s1"].start()
    net.run(3)
    assert Standing.JOINED is net["s1"].core.standing


def test_stop_of_a_group_leaves_the_others_alone() -> None:
    net = fleet(Net("stop-group"), collectors=1, sensors=2)
    net.configure(web={"members": ["10.1.*"], "parent": "site"})
    for i in (1, 2):
        net.add(f"w{i}", f"10.1.0.{i}:27500", join=(ROOT,))
    start_all(net)
    net["root"].order(StopNodes(1, "web"))
    net.run(2)
    assert [NodesStopped(("w1", "w2"), ())] == net["root"].replies
    assert Standing.BASE is net["w1"].core.standing
    assert Standing.JOINED is net["s1"].core.standing


# Collectors


@pytest.mark.proves("REC-003", "REC-004")
@pytest.mark.parametrize("seed", ["a", "b", "c", "d"])
@pytest.mark.parametrize("collectors", [1, 3])
def test_the_children_of_a_killed_collector_have_another_within_d_and_a_second_and_a_half(
    seed: str, collectors: int
) -> None:
    net = start_all(fleet(Net(seed), collectors=collectors, sensors=26))
    orphans = children(net, net["c1"])
    net["c1"].crash()
    took = net.run_until(
        lambda: all(m.following not in ("", net["c1"].endpoint) and m.parent_is == "heard" for m in orphans), 20
    )
    assert took is not None
    assert took <= net.dead_ns / SECOND + 1.5
    net.run(2)
    assert net.is_settled(), "\n".join(net.unsettled())
    assert [] == net.wrong
    assert NodeLeft("c1", net["c1"].endpoint, "dead") in net["root"].events


@pytest.mark.proves("TOP-013")
def test_the_member_that_is_up_longest_takes_the_place_of_a_dead_collector_then_the_uuid_decides() -> None:
    net = Net("uptime")
    net.configure(site={"members": ["10.0.0.0/16"]})
    net.add("root", ROOT, level="root").start()
    net.run(3)
    for i, name in enumerate(("first", "zeta", "beta", "alpha")):
        net.add(name, f"10.0.2.{i + 1}:27500", join=(ROOT,)).start()
        net.run(5 if i < 2 else 0)
    net.run(3)
    assert ["first"] == [m.name for m in branches(net)]
    for expected in ("zeta", "alpha"):
        branches(net)[0].crash()
        settle(net, 10)
        assert [expected] == [m.name for m in branches(net)]


@pytest.mark.proves("REC-006")
@pytest.mark.parametrize("prefer", [False, True])
def test_a_named_collector_that_returns_is_one_again_and_has_its_children_back_if_its_group_prefers_it(
    prefer: bool,
) -> None:
    net = start_all(fleet(Net("back"), collectors=2, sensors=6, prefer=prefer))
    net["c1"].crash()
    settle(net, 10)
    net["c1"].start()
    net.run(5)
    assert net.is_settled()
    assert "collector" == net["c1"].place.level  # type: ignore[union-attr]  # settled
    assert (3 if prefer else 0) == len(list(children(net, net["c1"])))
    assert [] == net.wrong


@pytest.mark.proves("REC-006", "REC-010")
def test_deaths_one_after_the_other_leave_as_many_voters_as_before() -> None:
    net = start_all(fleet(Net("voters"), collectors=3, sensors=3))
    for name in ("c1", "c2", "c3"):
        net[name].crash()
        net.run(15)
        net[name].start()
        net.run(15)
    assert 3 == len(net["root"].core.context.atlas.voters())


@pytest.mark.proves("REC-002")
def test_sos_goes_to_the_root_then_to_the_alternates_after_longer_and_longer_pauses() -> None:
    net = start_all(fleet(Net("sos"), collectors=2, sensors=8))
    lonely = next(m for m in children(net, net["c1"]))
    net.cut([lonely.name], ["c1", "root"])  # one of four children: the root would tell it to keep calm
    asked: list[tuple[int, str]] = []
    inner = net.call

    def call(sender: Machine, endpoint: str, message: Any) -> None:
        if sender is lonely and getattr(message, "command", "") == "sos":
            asked.append((net.mono, endpoint))
        inner(sender, endpoint, message)

    net.call = call  # type: ignore[method-assign]  # listens in
    net.run(40)
    firsts = [at for at, endpoint in asked if endpoint == ROOT]
    assert (ROOT, "10.0.1.2:27500") == (asked[0][1], asked[1][1])
    gaps = [(b - a) / SECOND for (a, _), (b, _) in pairwise(asked) if b - a > SECOND // 2]
    assert [1, 2, 4, 8] == [round(gap) for gap in gaps[:4]]
    assert len(firsts) >= 2
    net.heal()
    settle(net, 10)


def test_a_collector_without_children_is_missed_by_the_root_and_asked_before_it_counts_as_dead() -> None:
    net = start_all(fleet(Net("nobody"), collectors=2, sensors=0))
    net["root"].order(ChildIs(net["c1"].node, "lost"))  # its link broke, but it lives
    net.run(3)
    assert "branch" == net["root"].tree["c1"]["level"]
    net["c1"].crash()
    net["root"].order(ChildIs(net["c1"].node, "lost"))
    net.run(2)
    assert "leaf" == net["root"].tree["c1"]["level"]


@pytest.mark.proves("REC-001")
def test_a_root_that_slept_asks_again_before_it_believes_that_a_collector_is_dead() -> None:
    net = start_all(fleet(Net("sleep"), collectors=2, sensors=0))
    core = net["root"].core
    net["root"].order(ChildIs(net["c1"].node, "lost"))
    late = net.now._replace(mono=net.mono + 10 * net.dead_ns)
    core.rescue.wake(late)
    assert core.rescue.deadline() == late.mono + net.beat_ns


# Roots


def election_bound(net: Net) -> float:
    """D + 4W + 1.5 s (REC-013)."""
    return (net.dead_ns + 4 * max(3 * SECOND // 10, net.beat_ns // 2)) / SECOND + 1.5


@pytest.mark.proves("REC-010", "REC-012", "REC-013")
@pytest.mark.parametrize("seed", range(12))
def test_the_root_is_killed_and_a_collector_takes_its_place_in_time(seed: int) -> None:
    net = start_all(fleet(Net(f"kill{seed}"), collectors=2 + seed % 4, sensors=6))
    kept = {m.name: [c.name for c in children(net, m)] for m in branches(net)}
    before = net["root"].number
    net["root"].crash()
    took = settle(net, 60)
    assert took <= election_bound(net)
    winner = net.root
    assert winner is not None
    assert Role.ROOT is winner.core.role
    assert winner.epoch >= 1
    assert {*kept[winner.name]} <= {m.name for m in children(net, winner)}  # it keeps its children
    assert winner.number > before
    assert winner.node.hex() == json.loads(winner.pairs["/TOPO/root"])["uuid"]
    net["root"].start()
    net.run(3)
    assert net.is_settled(), "\n".join(net.unsettled())
    assert ("collector", 1, winner.epoch) == (
        net["root"].place.level,  # type: ignore[union-attr]  # settled
        net["root"].place.tier,  # type: ignore[union-attr]  # settled
        net["root"].place.epoch,  # type: ignore[union-attr]  # settled
    )
    assert [] == net.wrong


@pytest.mark.parametrize("seed", range(4))
def test_a_winner_that_starts_again_in_its_new_role_still_leads_soon(seed: int) -> None:
    net = start_all(fleet(Net(f"again{seed}"), collectors=3, sensors=4))
    net.restart_ns = 400_000_000
    net["root"].crash()
    assert settle(net, 60) <= election_bound(net) + 1
    assert [] == net.wrong


@pytest.mark.proves("REC-013")
@pytest.mark.parametrize("seed", range(6))
def test_thirty_nodes_in_three_tiers_lose_their_root_and_a_collector_at_once(seed: int) -> None:
    net = Net(f"thirty{seed}", loss=0.02, delay_ns=20_000_000)
    names = [f"10.0.1.{i + 1}:27500" for i in range(4)]
    net.configure(
        site={"members": ["10.0.0.0/16"], "collectors": names, "fanout": 4},
        web={"members": ["10.1.*"], "parent": "site", "fanout": 4},
    )
    everyone = [*names, *(f"10.0.2.{i + 1}:27500" for i in range(13)), *(f"10.1.0.{i + 1}:27500" for i in range(12))]
    net.add("root", ROOT, level="root", join=tuple(everyone))
    for i, endpoint in enumerate(everyone):
        net.add(f"n{i + 1}", endpoint, join=(ROOT, names[0]))
    start_all(net)
    assert max(len(children(net, collector)) for collector in branches(net)) <= 4
    net["root"].crash()
    net["n1"].crash()
    assert settle(net, 60) <= election_bound(net)
    assert [] == net.wrong


def test_an_old_root_that_was_only_cut_off_steps_down_when_it_meets_the_new_one() -> None:
    net = start_all(fleet(Net("old"), collectors=3, sensors=3))
    others = [m.name for m in net.machines.values() if m.name != "root"]
    net.cut(["root"], others)
    net.run(election_bound(net))
    assert [True, True] == sorted([m.is_root for m in net.machines.values()])[-2:]
    net.heal()
    took = settle(net, 10)
    assert took <= 2 * net.beat_ns / SECOND
    assert any(isinstance(event, RootLeft) and event.epoch >= 1 for event in net["root"].events)
    assert [] == net.wrong


@pytest.mark.proves("REC-014")
def test_both_sides_of_a_partition_go_on_and_one_root_remains() -> None:
    net = start_all(fleet(Net("split"), collectors=4, sensors=4))
    minority, majority = ["root", "c1", "s1"], ["c2", "c3", "c4", "s2", "s3", "s4"]
    net.cut(minority, majority)
    net.run(40)
    leaders = {m.name: m.epoch for m in net.machines.values() if m.is_root}
    assert 2 == len(leaders)
    assert 0 == leaders["root"]
    net.heal()
    assert settle(net, 20) <= (net.dead_ns + 2 * net.beat_ns) / SECOND
    net.run(5)
    replicas = {json.dumps({k: v.decode() for k, v in m.pairs.items()}, sort_keys=True) for m in branches(net)}
    assert 1 == len(replicas)
    assert [] == net.wrong


@pytest.mark.proves("REC-014")
def test_without_a_majority_a_collector_acts_writes_nothing_and_gives_way_to_the_root() -> None:
    net = start_all(fleet(Net("act"), collectors=1, sensors=3))
    net["root"].crash()
    net.run(12)
    acting = net["c1"]
    assert (Role.ACTING, True) == (acting.core.role, acting.is_acting)
    assert any(isinstance(event, RootTaken) and event.is_acting for event in acting.events)
    stranger = net.add("new", "10.0.9.9:27500", join=("10.0.1.1:27500",))
    stranger.start()
    net.run(3)
    assert Standing.BASE is stranger.core.standing  # nobody new without a majority
    net["s1"].crash()
    net["s1"].start()
    net.run(2)
    assert "10.0.1.1:27500" == net["s1"].following  # who is recorded is served
    net["root"].start()
    net.run(12)
    assert (net["root"], False) == (net.root, acting.is_acting)
    assert "10.0.0.1:27500" == acting.following
    assert [] == net.wrong


@pytest.mark.proves("REC-014")
def test_a_fleet_of_two_voters_may_be_told_to_go_on_alone() -> None:
    net = fleet(Net("alone"), collectors=1, sensors=2)
    net["c1"].settings["quorum"] = "alone"
    start_all(net)
    net["root"].crash()
    net.run(12)
    assert (Role.ROOT, 1) == (net["c1"].core.role, net["c1"].epoch)


@pytest.mark.proves("REC-016")
def test_a_root_that_lost_its_disk_takes_the_store_from_who_holds_most_and_goes_on_above_it() -> None:
    net = start_all(fleet(Net("disk"), collectors=2, sensors=3))
    held = net["c1"].pairs
    net["root"].crash(disk_lost=True)
    configured, net.configuration = net.configuration, {}
    net["root"].start()
    net.run(6)
    root = net["root"]
    assert (Role.ROOT, 1) == (root.core.role, root.epoch)
    assert {**held, "/TOPO/root": b""} == {**root.pairs, "/TOPO/root": b""}
    assert configured.items() <= root.pairs.items()
    settle(net, 5)
    assert [] == net.wrong


@pytest.mark.proves("REC-011")
def test_a_voter_killed_behind_its_promise_still_keeps_it() -> None:
    """Each step of an election is cut short by a crash of the voter: no epoch ever has two roots."""
    for step in range(40):
        net = start_all(fleet(Net(f"promise{step}"), collectors=3, sensors=0))
        net["root"].crash()
        net.run(4.6 + step * 0.03)
        voter = net[f"c{1 + step % 3}"]
        voter.crash()
        net.run(0.2)
        voter.start()
        net.run(25)
        assert [] == net.wrong
        assert net.root is not None


# All of it at once


@pytest.mark.prove("many long lives")
@pytest.mark.proves("REC-011")
def test_random_histories_end_in_one_tree_and_never_have_two_roots_of_an_epoch(soak: bool) -> None:
    wrong = {seed: net.wrong for seed in range(SEEDS_SOAK if soak else SEEDS) if (net := chaos.play(str(seed))).wrong}
    assert {} == wrong


@pytest.mark.proves("REC-011")
@pytest.mark.parametrize("seed", ["1049"])
def test_histories_that_once_had_two_roots(seed: str) -> None:
    """Voters were lost and buried one by one, until who was left was a majority of its own."""
    assert [] == chaos.play(seed).wrong


def test_the_same_seed_is_the_same_history() -> None:
    one, other = chaos.play("7"), chaos.play("7")
    assert one.said == other.said


@pytest.mark.proves("CFG-020")
def test_calling_g1_moves_nobody_of_g10() -> None:
    net = Net("g1")
    net.configure(g1={"members": ["10.1.0.0/16"]}, g10={"members": ["10.10.0.0/16"]})
    net.add("root", ROOT, level="root")
    for name, endpoint in (("a", "10.1.0.1:27500"), ("b", "10.10.0.1:27500")):
        net.add(name, endpoint, join=(ROOT,))
    start_all(net)
    net.said.clear()
    net["root"].order(StopNodes(1, "g1"))
    net.run(3)
    assert ["a"] == sorted({name for _, name, command, _ in net.said if command == "polo"})
    assert (Standing.BASE, Standing.JOINED) == (net["a"].core.standing, net["b"].core.standing)


def test_a_changed_group_moves_its_nodes() -> None:
    net = start_all(fleet(Net("move"), collectors=1, sensors=2))
    root = net["root"]
    changes = {"/CONFIG/web/members": b'["10.0.2.1:27500"]', "/CONFIG/web/parent": b'"site"'}
    root.apply(changes, root.number + 2)
    net.run(3)
    assert ("web", "collector") == (net["s1"].place.group, net["s1"].place.level)  # type: ignore[union-attr]  # joined
    assert ("site", "sensor") == (net["s2"].place.group, net["s2"].place.level)  # type: ignore[union-attr]  # joined
    assert ["s1"] == [
        name for name, record in root.tree.items() if record["parent"] == net["c1"].endpoint and name != "s2"
    ]
    assert LearnPairs is not None
    assert net.is_settled()


@pytest.mark.proves("REC-011")
def test_a_root_that_most_voters_cannot_reach_makes_no_new_ones_of_who_is_left() -> None:
    net = start_all(fleet(Net("electorate"), collectors=2, sensors=2))
    for name in ("c1", "c2"):
        net[name].crash()
        net["root"].order(ChildIs(net[name].node, "lost"))
    net.run(60)
    levels = {name: net["root"].tree[name]["level"] for name in ("c1", "c2", "s1", "s2")}
    assert {"c1": "branch", "c2": "branch", "s1": "leaf", "s2": "leaf"} == levels
    net["c1"].start()
    net.run(10)
    assert ("branch", "leaf") == (net["root"].tree["c1"]["level"], net["root"].tree["c2"]["level"])


@pytest.mark.proves("REC-011", "REC-015")
def test_a_root_that_starts_again_still_knows_which_voters_it_has_given_up() -> None:
    """Else it would give up the rest of them, confirm alone, and lose what it confirmed to those that come back."""
    net = start_all(fleet(Net("given-up"), collectors=2, sensors=2))
    net["c2"].crash()
    net["root"].order(ChildIs(net["c2"].node, "lost"))
    net.run(10)
    net["c1"].crash()
    net["root"].order(ChildIs(net["c1"].node, "lost"))
    net.run(10)
    levels = ("branch", "leaf")
    assert levels == (net["root"].tree["c1"]["level"], net["root"].tree["c2"]["level"])
    net["root"].crash()
    net["root"].start()
    net.run(2)
    net["root"].order(ChildIs(net["c1"].node, "lost"))
    net.run(60)
    assert levels == (net["root"].tree["c1"]["level"], net["root"].tree["c2"]["level"])
    net["c2"].start()
    net.run(10)
    net["root"].order(ChildIs(net["c1"].node, "lost"))
    net.run(20)
    assert ("leaf", "branch") == (net["root"].tree["c1"]["level"], net["root"].tree["c2"]["level"])


@pytest.mark.proves("REC-015")
def test_which_removed_voters_still_count_outlives_a_restart_of_the_root_and_not_of_others() -> None:
    net = start_all(fleet(Net("leaving"), collectors=2, sensors=1))
    earlier = ((net["c1"].node, "10.0.0.2:1"), (net["c2"].node, "10.0.0.3:1"))
    leaving = ((net["c2"].node, 7),), ((7, earlier),)
    recalled: dict[str, list[Any]] = {"root": [VotersRecalled(*leaving)], "c1": []}
    for name, expected in recalled.items():
        net[name].order(NoteLeaving(*leaving))
        net.run(0.1)
        net[name].crash()
        net[name].start()
        net.run(2)
        assert expected == [event for event in net[name].events if isinstance(event, VotersRecalled)]
    net["root"].order(NoteLeaving(()))
    net.run(0.1)
    net["root"].crash()
    net["root"].start()
    net.run(2)
    assert recalled["root"] == [event for event in net["root"].events if isinstance(event, VotersRecalled)]
