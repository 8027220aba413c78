"""How much is said when many edit together: 16 nodes always, 64 with `--soak` (PEE-010, PEE-032, PEE-050, GSP-024, GSP-060)."""

import tracemalloc
from typing import Final, NamedTuple

import pytest

from tests.document.net import CALM, Net, Weather
from tests.document.villain import Villain
from tests.document.witness import assert_all_is_the_same, assert_rest
from weft.base.now import MILLISECOND, SECOND
from weft.wire.document.messages import Xmsg

pytestmark = pytest.mark.prove("many nodes")

SHUFFLED: Final = Weather(0.0, 0.0, MILLISECOND, 20 * MILLISECOND, in_order=False)
LOSSY: Final = SHUFFLED._replace(loss=0.1)
PAGE: Final = 1_000
"""Of an import."""
MEMORY_MAX: Final = 64 << 20
"""Of one of 64 nodes, above the log (PEE-050)."""


class Load(NamedTuple):
    """Who enters how much, and how much may be said of it."""

    nodes: int
    each: int
    gap_ns: int
    weather: Weather
    factor: float
    """XMSGs, in those that would do if nothing got lost."""
    within_ns: int


def mesh_of(nodes: int, *, every_ns: int = 300 * MILLISECOND, weather: Weather = CALM) -> Net:
    """They join one after the other, by the first."""
    net = Net(nodes, weather=weather)
    first = net.machine()
    for _ in range(nodes - 1):
        net.pass_time(every_ns)
        net.machine(peers=[first])
    net.until(net.is_mesh, 120 * SECOND)
    return net


def enter(net: Net, load: Load) -> None:
    """All of them in turn, at a steady pace; then everybody has it in time, and it was not said too often."""
    net.weather = load.weather
    net.said.clear()
    count = load.nodes * load.each
    for number in range(count):
        jam = {"period": "1", "jam": str(1 + number % 20)}
        net.edit(net.machines[number % load.nodes], "add", jam, xml='<pass team="home" points="1"/>')
        net.pass_time(load.gap_ns)
    net.until(net.is_equal, load.within_ns)
    assert net.said["Xmsg"] <= load.factor * count * (load.nodes - 1)
    assert [count] * load.nodes == [machine.up.log.count for machine in net.machines]


FULL: Final = (
    Load(16, 60, 10 * MILLISECOND, LOSSY, 1.5, 10 * SECOND),
    Load(16, 60, 10 * MILLISECOND, SHUFFLED, 1.02, 10 * SECOND),
    Load(64, 10, 100 * MILLISECOND, LOSSY, 1.5, 15 * SECOND),
)
QUICK: Final = (FULL[0]._replace(each=10), FULL[1]._replace(each=10))


@pytest.mark.proves("GSP-060", "GSP-026", "PEE-050")
def test_what_16_enter_is_said_hardly_more_often_than_needed_and_then_nothing_is(soak: bool) -> None:
    for load in FULL if soak else QUICK:
        net = mesh_of(load.nodes)
        enter(net, load)
        net.weather = CALM
        net.judge()
        assert_rest(net)
        if load.nodes < 64:
            assert_all_is_the_same(net)


@pytest.mark.proves("PEE-010", "PEE-032")
@pytest.mark.parametrize("every_ms", [0, 30, 300, 6_000])
def test_joining_in_turn_costs_one_greeting_per_pair_and_few_introductions(every_ms: int, soak: bool) -> None:
    """Without loss each pair greets once, whenever its two came; repairs are part of the bound."""
    for nodes in (16, 64) if soak else (16,):
        net = mesh_of(nodes, every_ns=every_ms * MILLISECOND)
        net.pass_time(30 * SECOND)
        pairs = nodes * (nodes - 1)
        assert (pairs, pairs) == (net.said["Helo"], net.said["Bout"])
        assert net.said["PeerAt"] <= pairs
        net.judge()


@pytest.mark.proves("PEE-032")
@pytest.mark.parametrize(("loss", "within_s"), [(0.0, 15), (0.1, 120)])
def test_any_connected_pattern_of_contacts_becomes_a_full_mesh(loss: float, within_s: int, soak: bool) -> None:
    for seed in range(300 if soak else 6):
        net = Net(f"{seed}/pattern", weather=SHUFFLED._replace(loss=loss))
        count = net.chance.randint(2, 16)
        for _ in range(count):
            known = net.machines
            net.machine(peers=net.chance.sample(known, min(len(known), net.chance.randint(1, 2))))
            net.pass_time(net.chance.choice((0, 0, 10, 500)) * MILLISECOND)
        net.until(net.is_mesh, within_s * SECOND)
        net.judge()


@pytest.mark.proves("GSP-024")
def test_whoever_comes_late_gets_everything_and_no_link_overflows(soak: bool) -> None:
    """One link takes 3,000 messages, and its way is long: an answer without a pace would fill it."""
    net, count = late_for(20_000, most_ns=50 * MILLISECOND) if soak else late_for(4_000)
    late = net.machines[-1]
    began = net.now_ns
    net.until(lambda: count == late.up.log.count, 60 * SECOND)
    assert net.now_ns - began <= 60 * SECOND
    net.until(lambda: net.is_mesh() and net.is_equal(), 20 * SECOND)
    net.judge()


@pytest.mark.proves("GSP-024", "PEE-002")
def test_a_link_that_is_full_while_somebody_catches_up_is_opened_anew() -> None:
    net, count = late_for(1_500)
    first, late = net.machines[0], net.machines[-1]
    net.until(lambda: late.up.log.count > 0, 20 * SECOND, 10 * MILLISECOND)
    assert late.up.log.count < count
    net.full.add((first.endpoint, late.endpoint))
    net.pass_time(3 * SECOND)
    net.full.clear()
    net.until(lambda: net.is_mesh() and net.is_equal(), 60 * SECOND)
    assert count == late.up.log.count
    net.judge()


def late_for(count: int, most_ns: int = 400 * MILLISECOND) -> tuple[Net, int]:
    """Two have a log of four sources, a third one comes over a slow way."""
    net = mesh_of(2)
    bodies = [body_of(chr(ord("a") + number % 4), 1 + number // 4) for number in range(count)]
    for begin in range(0, count, PAGE):
        assert "" == net.ask(net.machines[0], "import", operations=bodies[begin : begin + PAGE]).code
    net.until(net.is_equal, 20 * SECOND)
    net.weather = Weather(0.0, 0.0, most_ns // 2, most_ns)
    net.machine(peers=[net.machines[0]])
    return net, count


def body_of(letter: str, sequence: int) -> bytes:
    """An operation of a source that is not there."""
    source = f"{letter * 8}-0000-4000-8000-000000000000"
    place = f'path="note" source="{source}" timestamp="{1_763_700_000 + sequence}.5" sequence="{sequence}"'
    return f"<set {place}><attribute>value</attribute>{letter}{sequence}</set>".encode()


@pytest.mark.proves("PEE-050")
def test_a_node_among_64_needs_little_beside_its_log(soak: bool) -> None:
    """All the others only speak; so it is one node's memory that is measured."""
    net, each = Net("memory"), 300 if soak else 30
    node = net.machine()
    villains = [Villain(net, number) for number in range(63)]
    for villain in villains:
        villain.join(node)
    bodies = [body_of("f", 1 + number) for number in range(63 * each)]
    tracemalloc.start()
    for number, body in enumerate(bodies):
        net.say(villains[number % 63].uuid, villains[number % 63].endpoint, node.endpoint, Xmsg(bytes(bytearray(body))))
        if number % 100 == 0:
            net.pass_time(10 * MILLISECOND)
    net.until(lambda: 63 * each == node.up.log.count, 5 * SECOND)
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert 63 == len(node.up.peers.active())
    assert used <= MEMORY_MAX + sum(map(len, bodies))
