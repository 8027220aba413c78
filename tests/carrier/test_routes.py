"""Mail for one other node: which way it goes, who looks at it, and what its sender learns if there is no way."""

import pytest

from tests.carrier.rig import Machine, World
from tests.carrier.test_screen import forward, sequences
from tests.carrier.test_volatile import answers
from weft.base.mail import OUTBOX, of_record, to_record
from weft.cores.carrier import limits
from weft.cores.carrier.links import Link, Links
from weft.cores.carrier.messages import AssignParent, MailFailed, MailReached

X = b"x" * 16


def tree() -> tuple[World, dict[str, Machine]]:
    """Root r above c and d; below c are e and f, below e is g; everybody has sent one record."""
    world = World()
    machines = {"r": world.root("r")}
    for name, parent in {"c": "r", "d": "r", "e": "c", "f": "c", "g": "e"}.items():
        machines[name] = world.collector(name, parent)
    world.settle()
    for machine in machines.values():
        if machine.name != "r":
            machine.make()
    world.advance(2)
    for machine in machines.values():
        machine.screened.clear()
    return world, machines


ROWS = [
    ("g", "r", "egc"),
    ("g", "d", "gecr"),
    ("g", "f", "gec"),
    ("r", "g", "rce"),
    ("d", "g", "drce"),
    ("e", "g", "e"),
    ("f", "c", "f"),
]


@pytest.mark.proves("RTE-003", "RTE-004")
@pytest.mark.parametrize(("since", "to", "way"), ROWS, ids=lambda part: part)
def test_mail_goes_up_to_where_the_node_stands_below_and_nobody_on_the_way_looks_at_it(
    since: str, to: str, way: str
) -> None:
    world, machines = tree()
    machines[since].send(to=("DIRECT", machines[to].node))
    world.settle()
    assert {to: 1} == {name: len(machine.screened) for name, machine in machines.items() if machine.screened}
    (mail,) = map(of_record, machines[to].screened)
    assert sorted(machines[name].node for name in way) == sorted(mail.via)
    assert machines[since].node == mail.via[0]
    assert [MailReached(1, 1)] == answers(machines[since])


@pytest.mark.proves("RTE-003")
def test_a_name_finds_a_child_and_everybody_on_the_way_up() -> None:
    world, machines = tree()
    machines["g"].send(to=("DIRECT", "e"))
    machines["g"].send(to=("DIRECT", "f"))
    machines["g"].send(to=("DIRECT", "r"))
    world.settle()
    assert [1, 1, 1] == [len(machines[name].screened) for name in "efr"]


@pytest.mark.proves("RTE-003")
def test_a_root_without_a_way_says_so_and_whoever_relayed_it_counts_it() -> None:
    world, machines = tree()
    machines["r"].send(to=("DIRECT", X))
    machines["c"].send(to=("DIRECT", "nobody"))
    machines["g"].send(to=("DIRECT", X))
    world.settle()
    assert [MailFailed(1, "no-route")] == answers(machines["r"]) == answers(machines["c"])
    assert [MailReached(1, 1)] == answers(machines["g"]), "the next node has it"
    assert 1 == machines["c"].core.counters.refused["mail-no-route"]
    assert 2 == machines["r"].core.counters.refused["no-route"]
    assert not any(machine.screened for machine in machines.values())


@pytest.mark.proves("RTE-003")
def test_what_comes_from_above_for_nobody_below_does_not_go_up_again() -> None:
    world, machines = tree()
    machines["r"].core.intake.dispatch.relay(machines["d"].mail(to=("DIRECT", X)), machines["c"].node, world.now)
    machines["r"].do()
    world.settle()
    assert 1 == machines["c"].core.counters.refused["no-route"]
    assert 1 == machines["r"].core.counters.refused["mail-no-route"]


@pytest.mark.proves("RTE-003")
def test_all_other_kinds_are_for_the_node_that_receives_them() -> None:
    world, machines = tree()
    for kind in ("PARENTSOF", "NEARESTCOORD", "CHILDRENOF", "WHATEVER"):
        machines["g"].send(to=(kind, machines["d"].node))
    machines["g"].send(to=("DIRECT",))
    machines["g"].send(to=("DIRECT", "LOCAL", 3))
    world.settle()
    assert list(range(1, 7)) == sequences(machines["e"].screened)


@pytest.mark.proves("RTE-004")
def test_a_way_longer_than_its_time_to_live_ends_on_the_way() -> None:
    world, machines = tree()
    for ttl in (3, 2):
        machines["g"].send(to=("DIRECT", machines["f"].node, ttl))
    world.settle()
    assert [1] == sequences(machines["f"].screened)
    assert 1 == machines["c"].core.counters.refused["ttl"]


@pytest.mark.proves("RTE-003", "CHN-035")
def test_kept_mail_for_another_node_rides_the_journal_up_and_the_stream_without_a_promise_down() -> None:
    world, machines = tree()
    g, r = machines["g"], machines["r"]
    for name in "dX":
        node = machines[name].node if name in machines else X
        g.write(to_record(g.mail(to=("DIRECT", node)), OUTBOX, 0))
    world.advance(3)
    assert {"d": [1]} == {name: sequences(machine.screened) for name, machine in machines.items() if machine.screened}
    assert machines["d"].screened[0].attributes["mem"]
    assert 1 == r.core.counters.refused["no-route"]
    assert 1 == machines["c"].core.counters.refused["mail-no-route"]
    assert [0] * 5 == [machines[name].core.counters.spool_records for name in "cdefg"]


@pytest.mark.proves("RTE-003")
def test_ways_follow_a_node_that_moves_and_are_forgotten_with_the_child() -> None:
    world, machines = tree()
    g, r, d = machines["g"], machines["r"], machines["d"]
    assert r.core.intake.links.toward(g.node) is r.core.intake.links.of_node(machines["c"].node)
    g.order(AssignParent("d", "d"))
    g.make()
    world.advance(2)
    assert r.core.intake.links.toward(g.node) is r.core.intake.links.of_node(d.node)
    r.send(to=("DIRECT", g.node))
    world.settle()
    assert 1 == len(g.screened)
    world.cut("d")
    world.advance(7)
    assert r.core.intake.links.toward(g.node) is None
    r.send(to=("DIRECT", g.node))
    assert MailFailed(2, "no-route") == answers(r)[-1]


@pytest.mark.proves("RTE-003")
def test_only_so_many_nodes_below_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROUTES_MAX", 2)
    links, one, two = Links(), Link(b"1", b"a" * 16, "a", 7), Link(b"2", b"b" * 16, "b", 7)
    links.add(one)
    links.add(two)
    nodes = [bytes([n]) * 16 for n in range(1, 4)]
    links.learn(one, (*nodes[:2], "in text", one.node))
    links.learn(two, nodes[1:])
    assert [None, two, two] == [links.toward(node) for node in nodes]
    assert ([], nodes[1:]) == (list(one.below), list(two.below))
    links.remove(two)
    assert [None] * 3 == [links.toward(node) for node in nodes]
    assert one is links.toward("a") is links.toward(one.node)


@pytest.mark.proves("RTE-003")
def test_a_forwarded_message_teaches_the_way_back() -> None:
    world, machines = tree()
    for name in "ce":
        machines[name].judge = forward
    machines["g"].post()
    world.advance(3)
    (arrived,) = machines["r"].inbox()
    machines["r"].send(to=("DIRECT", arrived.origin))
    world.settle()
    assert 1 == len(machines["g"].screened)
