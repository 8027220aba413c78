"""Draws bridged brokers: their services are checked, tapped, and called from other networks (docs/catalog.md).

Fabric and faults are those of `catalogplan`. Added are bridges (a pair, a chain, a ring), callers, and more faults: a
cable between two brokers is cut or slow, a broker is cut off from all others, a service fails its checks, or is tapped.
"""

from itertools import pairwise
from typing import Final

import msgspec

from weft.base.chance import Chance
from weft.base.now import MILLISECOND, SECOND
from weft.sim import catalogplan
from weft.sim.catalogplan import BEGIN_NS, Draw, Fault, Size, befall, broker_of, draw_catalog
from weft.sim.drawing import menu_of
from weft.sim.plan import Action, HostPlan, NodePlan, Plan

BRIDGED: Final[dict[str, Size]] = {"bridges": Size((2, 3), (3, 8), (1, 1), (60 * SECOND, 120 * SECOND))}
"""Scenarios: two to four brokers that share all they have."""
TAP_S: Final = (2, 20)
TAPS_NS: Final = 25 * SECOND  # from the start of one tap to the start of the next; the first has ended by then


def cut_bridge(draw: Draw) -> list[Action]:
    """The cable between two brokers is cut for a while, in both directions or one."""
    here, there = draw.chance.sample(draw.brokers, k=2)
    at, how = draw.moment(), draw.chance.choice(("both", "both", "one"))
    return draw.lasts(Action(at, "cut", here, there, how), Action(at + draw.span(), "mend", here, there, how))


def slow_bridge(draw: Draw) -> list[Action]:
    """The cable between two brokers is slow for a while."""
    here, there = draw.chance.sample(draw.brokers, k=2)
    at, least = draw.moment(), draw.chance.randint(20 * MILLISECOND, SECOND)
    begin = Action(at, "slow", here, there, "both", least, least // 2)
    return draw.lasts(begin, Action(at + draw.span(), "slow", here, there, "both"))


def flip_bridge(draw: Draw) -> list[Action]:
    """The cable between two brokers alters one message in some, for a while."""
    here, there = draw.chance.sample(draw.brokers, k=2)
    at, one_in = draw.moment(), draw.chance.randint(2, 20)
    begin = Action(at, "flip", here, there, "both", one_in)
    return draw.lasts(begin, Action(at + draw.span(), "flip", here, there, "both"))


def isolate(draw: Draw) -> list[Action]:
    """A broker is cut off from all others for so long that they have to drop all names of its network."""
    alone, at = draw.chance.choice(draw.brokers), draw.moment()
    span = draw.chance.randint(25 * SECOND, 50 * SECOND)
    made = []
    for other in draw.brokers:
        if other != alone:
            made += draw.lasts(Action(at, "cut", alone, other, "both"), Action(at + span, "mend", alone, other, "both"))
    return made


def ail(draw: Draw) -> list[Action]:
    """The port of a service refuses checks, for a while or to the end; the service itself keeps working."""
    at, name = draw.moment(), draw.service().name
    begin = Action(at, "ail-host", name, number=1)
    return [begin] if draw.chance.random() < 0.4 else [begin, Action(at + draw.span(), "ail-host", name)]


def tap(draw: Draw) -> list[Action]:
    """Somebody taps services one after another, and ends some taps early."""
    made = []
    at = draw.begin_ns + draw.chance.randint(0, TAPS_NS)
    while at < draw.end_ns:
        host, span_s = draw.service(), draw.chance.randint(*TAP_S)
        name = f"{draw.chance.getrandbits(64):016x}"
        made.append(Action(at, "tap", broker_of(host), host.name, name, span_s))
        if draw.chance.random() < 0.5:
            end = at + draw.chance.randint(SECOND, span_s * SECOND)
            made.append(Action(end, "tap", broker_of(host), host.name, name, span_s, 1))
        at += TAPS_NS
    return made


FAULTS: Final[dict[str, Fault]] = {
    fault.__name__: fault for fault in (cut_bridge, slow_bridge, flip_bridge, isolate, ail, tap)
}


def draw_bridges(seed: str, scenario: str = "bridges") -> Plan:
    """The plan of a seed."""
    plan = draw_catalog(seed, scenario, BRIDGED[scenario])
    chance = Chance(f"{seed}/bridges")
    brokers = tuple(node.name for node in plan.nodes if node.is_broker)
    bridges, transit = _bridges(chance, brokers)
    hosts = tuple(msgspec.structs.replace(host, is_open=host.runs == "service") for host in plan.hosts)
    callers = tuple(
        HostPlan(name=f"caller{number + 1}", runs="caller", calls=(chance.choice(brokers),))
        for number in range(chance.randint(1, 3))
    )
    services, watchers = catalogplan.split(hosts)
    draw = Draw(
        chance=chance,
        root=catalogplan.ROOT,
        brokers=brokers,
        services=services,
        watchers=watchers + callers,
        begin_ns=BEGIN_NS,
        end_ns=plan.safety_ns,
    )
    menu = menu_of(chance, FAULTS)
    actions = [*plan.actions, *befall(f"{seed}/bridges", menu, draw, FAULTS)]
    assert plan.catalog is not None, "drawn with brokers"
    return msgspec.structs.replace(
        plan,
        menu=(*plan.menu, *menu),
        catalog=msgspec.structs.replace(plan.catalog, is_bridged=True, transit=transit),
        hosts=(*hosts, *callers),
        nodes=tuple(_bridged(node, bridges) for node in plan.nodes),
        actions=tuple(sorted(actions, key=lambda action: action.at)),
    )


def _bridges(chance: Chance, brokers: tuple[str, ...]) -> tuple[dict[str, tuple[str, ...]], bool]:
    """Who opens bridges to whom, and whether entries of one bridge go on over others, as a chain needs."""
    ordered = chance.sample(brokers, k=len(brokers))
    if chance.random() < 0.3:
        return {name: tuple(ordered[:number]) for number, name in enumerate(ordered)}, chance.random() < 0.5
    made: dict[str, tuple[str, ...]] = {name: (before,) for before, name in pairwise(ordered)}
    if chance.random() < 0.5:
        made[ordered[0]] = (ordered[-1],)  # a ring; of two, both dial
    return made, True


def _bridged(node: NodePlan, bridges: dict[str, tuple[str, ...]]) -> NodePlan:
    return msgspec.structs.replace(node, bridges=bridges.get(node.name, ()))
