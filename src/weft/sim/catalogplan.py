"""Draws brokers, services and watchers, and their faults (docs/catalog.md).

Each broker stands alone, on a node of a small tree whose lake gets all changes. Services and watchers are on hosts of
their own; some call a broker by address, some follow its beacon. While there are faults, any datagram may be lost,
duplicated, late or damaged.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from weft.base.chance import Chance
from weft.base.now import MILLISECOND, SECOND
from weft.sim import drawing
from weft.sim.noise import SHARE
from weft.sim.plan import Action, CatalogPlan, HostPlan, NodePlan, Plan, Weather

ROOT: Final = "root"
BEGIN_NS: Final = 5 * SECOND
FORGED_SEQ: Final = 1 << 40  # above every number of a real beat


class Size(NamedTuple):
    """How large and how long the runs of a scenario are."""

    brokers: tuple[int, int]
    services: tuple[int, int]
    watchers: tuple[int, int]
    safety_ns: tuple[int, int]
    menu: tuple[str, ...] = ()
    """Its faults; empty: they are drawn."""


CATALOGS: Final[dict[str, Size]] = {
    "catalog": Size((1, 2), (2, 6), (1, 2), (60 * SECOND, 120 * SECOND)),
    "catalog-large": Size((1, 3), (12, 40), (2, 6), (120 * SECOND, 600 * SECOND)),
    "catalog-damages": Size((1, 2), (2, 6), (1, 2), (60 * SECOND, 120 * SECOND), ("damage", "deregister", "leave")),
    "catalog-removals": Size((1, 1), (2, 4), (1, 1), (40 * SECOND, 60 * SECOND), ("deregister",)),
}
"""Scenarios: everyday brokers; many services that fall silent at once; brokers whose journals are harmed; one service that
is removed before its broker restarts."""


@dataclass(frozen=True, kw_only=True)
class Draw(drawing.Draw):
    """What faults are drawn from: a random generator, the machines, and the times."""

    root: str
    brokers: tuple[str, ...]
    services: tuple[HostPlan, ...]
    watchers: tuple[HostPlan, ...]

    def span(self) -> int:
        """A span: too short to be noticed, or many intervals long; both equally likely."""
        return self.chance.randint(SECOND // 5, SECOND << self.chance.randrange(6))

    def host(self) -> HostPlan:
        """A service, or a watcher."""
        return self.chance.choice(self.services + self.watchers)

    def service(self) -> HostPlan:
        return self.chance.choice(self.services)


Fault = Callable[[Draw], list[Action]]


def broker_of(host: HostPlan) -> str:
    """The node that a host speaks with."""
    return (host.calls or (host.net,))[0]


def die(draw: Draw) -> list[Action]:
    """A program is killed for a while."""
    at, name = draw.moment(), draw.host().name
    begin = Action(at, "end-host", name, number=draw.chance.randint(0, 1))
    return draw.lasts(begin, Action(at + draw.span(), "start-host", name))


def die_for_good(draw: Draw) -> list[Action]:
    """A service is killed, and nobody starts it again."""
    return [Action(draw.moment(), "end-host", draw.service().name, number=draw.chance.randint(0, 1), second=1)]


def leave(draw: Draw) -> list[Action]:
    """A service says goodbye, and perhaps comes back."""
    at, name = draw.moment(), draw.service().name
    begin = Action(at, "end-host", name, how="goodbye", second=draw.chance.randint(0, 1))
    return draw.lasts(begin, Action(at + draw.span(), "start-host", name))


def stand_still(draw: Draw) -> list[Action]:
    """A program is paused for a while."""
    at, name = draw.moment(), draw.host().name
    return draw.lasts(Action(at, "pause-host", name), Action(at + draw.span(), "resume-host", name))


def cut(draw: Draw) -> list[Action]:
    """The cable between a program and its broker is cut for a while, in both directions or one."""
    chance, host, at = draw.chance, draw.host(), draw.moment()
    here, there = chance.choice(((host.name, broker_of(host)), (broker_of(host), host.name)))
    how = chance.choice(("both", "both", "one"))
    return draw.lasts(Action(at, "cut", here, there, how), Action(at + draw.span(), "mend", here, there, how))


def give_up(draw: Draw) -> list[Action]:
    """TCP breaks a program's connection to its broker, which notices later."""
    how = draw.chance.choice(("broker", "broker-events"))
    return [Action(draw.moment(), "give-up", draw.host().name, how=how, number=draw.chance.randint(1, 20 * SECOND))]


def slow(draw: Draw) -> list[Action]:
    """A cable is slow for a while."""
    host, at = draw.host(), draw.moment()
    least = draw.chance.randint(20 * MILLISECOND, 2 * SECOND)
    begin = Action(at, "slow", host.name, broker_of(host), "both", least, least // 2)
    return draw.lasts(begin, Action(at + draw.span(), "slow", host.name, broker_of(host), "both"))


def pause_broker(draw: Draw) -> list[Action]:
    """A broker is paused for longer than most silences."""
    at, name = draw.moment(), draw.chance.choice(draw.brokers)
    return draw.lasts(Action(at, "pause", name), Action(at + draw.chance.randint(SECOND, 30 * SECOND), "resume", name))


def crash_broker(draw: Draw) -> list[Action]:
    """A broker is killed for a while; its disk is kept, torn, or lost."""
    chance, at, name = draw.chance, draw.moment(), draw.chance.choice(draw.brokers)
    how = chance.choice(("kept", "kept", "torn", "kept" if name == draw.root else "lost"))
    begin = Action(at, "crash", name, how=how, number=chance.randint(0, 1), second=chance.randint(0, 1))
    return draw.lasts(begin, Action(at + draw.span(), "start", name))


def cut_off(draw: Draw) -> list[Action]:
    """A broker loses its parent for a while: its changes wait in its journal."""
    below = [name for name in draw.brokers if name != draw.root]
    if not below:
        return []
    at, name = draw.moment(), draw.chance.choice(below)
    return draw.lasts(Action(at, "cut", name, draw.root), Action(at + draw.span(), "mend", name, draw.root))


def fill(draw: Draw) -> list[Action]:
    """A broker's journal has no room for a while."""
    at, name = draw.moment(), draw.chance.choice(draw.brokers)
    return draw.lasts(Action(at, "fill", name, number=1_000), Action(at + draw.span(), "fill", name))


def step(draw: Draw) -> list[Action]:
    """The wall clock of a broker is set; forward only, since its disk may be lost."""
    return [Action(draw.moment(), "step", draw.chance.choice(draw.brokers), number=3_600 * SECOND)]


def drift(draw: Draw) -> list[Action]:
    """The quartz of a broker runs up to 2 % fast or slow."""
    by = draw.chance.randint(-20_000, 20_000)
    return [Action(draw.moment(), "drift", draw.chance.choice(draw.brokers), number=by)]


def forge(draw: Draw) -> list[Action]:
    """Forged datagrams say goodbye for others, or beat for a service that never registered."""
    made = []
    for number in range(draw.chance.randint(1, 4)):
        host, how = draw.service(), draw.chance.choice(("goodbye", "ghost"))
        made.append(Action(draw.moment(), "forge", broker_of(host), host.name, how, FORGED_SEQ + number))
    return made


def meddle(draw: Draw) -> list[Action]:
    """A service tries to change another one's record: it is denied."""
    made = []
    for _ in range(draw.chance.randint(1, 4)):
        one, other = draw.service(), draw.service()
        if one is not other and broker_of(one) == broker_of(other):
            made.append(Action(draw.moment(), "meddle", one.name, other.name))
    return made


def deregister(draw: Draw) -> list[Action]:
    """An administrator removes a service that was killed; soon its broker starts again."""
    host, at = draw.service(), draw.chance.randrange(draw.begin_ns, max(draw.begin_ns + 1, draw.end_ns - 15 * SECOND))
    removed = at + draw.chance.randint(SECOND // 10, 5 * SECOND)
    crashed = removed + draw.chance.randint(SECOND, 10 * SECOND)
    return [
        Action(at, "end-host", host.name, number=1, second=1),
        Action(removed, "deregister", broker_of(host), host.name),
        *draw.lasts(
            Action(crashed, "crash", broker_of(host), how="kept"),
            Action(crashed + draw.span(), "start", broker_of(host)),
        ),
    ]


FAULTS: Final[dict[str, Fault]] = {
    fault.__name__: fault
    for fault in (
        *(die, die_for_good, leave, stand_still, cut, give_up, slow, pause_broker, crash_broker, cut_off, fill, step),
        *(drift, forge, meddle, deregister),
    )
}


def damage(draw: Draw) -> list[Action]:
    """A broker ends, its journal is harmed, and it starts again."""
    name = draw.chance.choice(draw.brokers)
    return draw.damage(name, is_replaceable=name != draw.root)


PLACED: Final[dict[str, Fault]] = {damage.__name__: damage}
"""Faults of scenarios that name them: a seed of the others draws what it drew before."""
RARE: Final = frozenset({"die_for_good", "step", "drift", "forge", "fill", "deregister"})


def hosts_of(chance: Chance, brokers: tuple[str, ...], services: int, watchers: int) -> tuple[HostPlan, ...]:
    """Services and watchers, each at one of the brokers."""
    made = []
    for number in range(services):
        broker, follows = chance.choice(brokers), chance.random() < 0.4
        where: dict[str, Any] = {"net": broker} if follows else {"calls": (broker,)}
        interval_ms = chance.choice((500, 1_000, 1_000, 2_000, 5_000))
        made.append(_host(chance, f"svc{number + 1}", "service", interval_ms=interval_ms, **where))
    made += [
        _host(chance, f"watch{number + 1}", "watcher", calls=(chance.choice(brokers),)) for number in range(watchers)
    ]
    return tuple(made)


def _host(chance: Chance, name: str, runs: str, **more: Any) -> HostPlan:
    start_at = chance.randint(0, 2 * BEGIN_NS)
    return HostPlan(name=name, runs=runs, start_at=start_at, drift_ppm=chance.randint(-200, 200), **more)


def befall(seed: str, menu: tuple[str, ...], draw: Draw, faults: Mapping[str, Fault] = FAULTS | PLACED) -> list[Action]:
    """Draw the faults of a run, and changes of services' own records."""
    made: list[Action] = []
    for name in menu:
        mine = draw.by(f"{seed}/catalog/{name}")
        times = 1 if name in RARE else mine.chance.randint(1, 5)
        made += [action for _ in range(times) for action in faults[name](mine)]
    chance = Chance(f"{seed}/catalog/changes")
    span = draw.end_ns - draw.begin_ns
    for number in range(chance.randint(5, 40)):
        at = draw.begin_ns + chance.randrange(span + 10 * SECOND)
        made.append(Action(at, "change-service", chance.choice(draw.services).name, number=number))
    return made


def split(hosts: tuple[HostPlan, ...]) -> tuple[tuple[HostPlan, ...], tuple[HostPlan, ...]]:
    """Services, and watchers."""
    return tuple(host for host in hosts if host.runs == "service"), tuple(
        host for host in hosts if host.runs == "watcher"
    )


def draw_catalog(seed: str, scenario: str = "catalog", of: Size | None = None) -> Plan:
    """The plan of a seed; `of` is its size, if it is not the one in `CATALOGS`."""
    size, chance = of or CATALOGS[scenario], Chance(f"{seed}/catalogs/{scenario}")
    below = tuple("abc"[: chance.randint(*size.brokers)])
    brokers = (ROOT, *below) if chance.random() < 0.3 else below
    hosts = hosts_of(Chance(f"{seed}/hosts"), brokers, chance.randint(*size.services), chance.randint(*size.watchers))
    safety_ns = BEGIN_NS + chance.randint(*size.safety_ns)
    menu = size.menu or drawing.menu_of(Chance(f"{seed}/menu"), FAULTS)
    services, watchers = split(hosts)
    draw = Draw(
        chance=chance,
        root=ROOT,
        brokers=brokers,
        services=services,
        watchers=watchers,
        begin_ns=BEGIN_NS,
        end_ns=safety_ns,
    )
    actions = befall(seed, menu, draw)
    nodes = tuple(_node(Chance(f"{seed}/nodes/{name}"), name, brokers) for name in (ROOT, *below))
    delay = chance.choice((1, 5, 20)) * MILLISECOND
    return Plan(
        seed=seed,
        scenario=scenario,
        menu=menu,
        catalog=CatalogPlan(reap_ms=chance.choice((60_000, 600_000))),
        weather=_weather(Chance(f"{seed}/weather")),
        nodes=drawing.with_small_segments(nodes, Chance(f"{seed}/segments")) if "damage" in menu else nodes,
        hosts=hosts,
        least_ns=delay // 2,
        spread_ns=delay,
        actions=tuple(sorted(actions, key=lambda action: action.at)),
        safety_ns=safety_ns,
        settle_ns=300 * SECOND,
    )


def _weather(chance: Chance) -> Weather:
    return Weather(
        loss=chance.choice((0, SHARE // 20, SHARE * 3 // 10)),
        duplication=chance.randint(0, SHARE // 10),
        reordering=chance.randint(0, SHARE // 5),
        damage=chance.choice((0, SHARE // 100)),
        late_ns=chance.randint(MILLISECOND, 5 * SECOND),
    )


def _node(chance: Chance, name: str, brokers: tuple[str, ...]) -> NodePlan:
    more: dict[str, Any] = {}
    if chance.random() < 0.4:
        more = {"segment_records": chance.choice((4, 64)), "snapshot_records": chance.choice((8, 64, 256))}
    return NodePlan(
        name=name,
        level="root" if name == ROOT else "sensor",
        parent="" if name == ROOT else ROOT,
        is_broker=name in brokers,
        drift_ppm=chance.randint(-200, 200),
        offset_ns=chance.randint(-3_600, 3_600) * SECOND,
        **more,
    )
