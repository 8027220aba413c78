"""Draws a plan from a seed: a tree, a workload, and faults of a few kinds or of all (SIM-007).

Half of the runs leave most kinds of faults off, so that one kind can show what it does alone; one in ten has them
all. Each purpose draws from a generator of its own, so that a new fault moves nothing else (SIM-005).
"""

from collections.abc import Callable, Container, Iterator
from math import isqrt
from typing import Any, Final, NamedTuple

import msgspec

from weft.base.chance import Chance
from weft.base.now import MILLISECOND, SECOND
from weft.sim.bridgeplan import BRIDGED, draw_bridges
from weft.sim.catalogplan import CATALOGS, draw_catalog
from weft.sim.documentplan import DOCUMENTS, draw_documents
from weft.sim.drawing import menu_of
from weft.sim.everything import EVERYTHING, VARIANTS, enrich, share
from weft.sim.fleetplan import FLEET_MAIL, FLEET_SCENARIOS, SMALL_FLEET, draw_fleet
from weft.sim.garbage import KINDS, channel_of
from weft.sim.intruders import INTRUDERS, with_intruders
from weft.sim.keyplan import KEY_SCENARIOS, draw_keys
from weft.sim.mischief import MISCHIEFS, SKIPS, STRANGERS, mischief_of, with_mischief
from weft.sim.noise import SHARE
from weft.sim.plan import Action, Link, Metric, NodePlan, Plan, Weather
from weft.sim.programplan import MAILS, PROGRAM_FAULTS, befall, settings_of, with_programs, with_senders
from weft.sim.rarely import draw_rare
from weft.sim.storeplan import STORE_SCENARIOS, draw_store

MINUTE: Final = 60 * SECOND
DETAILS: Final = ("CPU", "MEMORY", "LOAD", "NETWORK", "TEMP", "PROC_CPU")
YEAR_NS: Final = 365 * 24 * 3600 * SECOND
TCP_PATIENCE_NS: Final = 900 * SECOND  # a longer cut breaks every connection


def between(chance: Chance, least: int, most: int) -> int:
    """A number from `least` to `most`, each octave equally likely; whole numbers only, the same on every machine."""
    octave = chance.randrange(max(1, (most // least).bit_length()))
    return min(most, chance.randint(least << octave, least << octave + 1))


class Draw(NamedTuple):
    """What faults are drawn from: a random generator, the machines, and the times."""

    chance: Chance
    nodes: tuple[NodePlan, ...]
    safety_ns: int
    dead_ns: int

    def moment(self) -> int:
        """A random instant while there are faults, with time left after it."""
        return self.chance.randrange(SECOND, self.safety_ns)

    def one(self) -> NodePlan:
        return self.chance.choice(self.nodes)

    def child(self) -> NodePlan:
        return self.chance.choice([node for node in self.nodes if node.parent])

    def span(self, least_ns: int, most_ns: int) -> int:
        """A span between the two, short ones as likely as long ones."""
        return between(self.chance, least_ns, most_ns)

    def while_(self, begin: Action, end: Action) -> list[Action]:
        """Begin and end of a fault; if it outlasts the phase of faults, the heal ends it."""
        return [begin, end] if end.at < self.safety_ns else [begin]


def _cut(draw: Draw, here: str, there: str, how: str = "both") -> list[Action]:
    """One cable is cut for a while; TCP may wait for it, or give up in between or at the end."""
    chance, at, span = draw.chance, draw.moment(), draw.span(SECOND // 5, 4 * draw.dead_ns)
    made = draw.while_(Action(at, "cut", here, there, how), Action(at + span, "mend", here, there, how))
    if chance.random() < 0.5 or span > TCP_PATIENCE_NS:
        notice = draw.span(MILLISECOND, 60 * SECOND)
        child = next((node.name for node in draw.nodes if {node.name, node.parent} == {here, there}), "")
        made += [Action(at + chance.randint(0, span), "give-up", child, number=notice)] if child else []
    return made


def cut_one(draw: Draw) -> list[Action]:
    """The cable between a node and its parent is cut in both directions."""
    child = draw.child()
    return _cut(draw, child.name, child.parent)


def cut_one_way(draw: Draw) -> list[Action]:
    """A cable carries nothing in one direction."""
    child = draw.child()
    here, there = (child.name, child.parent) if draw.chance.random() < 0.5 else (child.parent, child.name)
    return _cut(draw, here, there, "one")


def cut_halves(draw: Draw) -> list[Action]:
    """The fabric falls into two parts, drawn at random; the cables between them are restored one by one."""
    first, second = draw.chance.sample([node.name for node in draw.nodes], k=2)
    here = [
        node.name for node in draw.nodes if node.name != second and (node.name == first or draw.chance.random() < 0.5)
    ]
    there = [node.name for node in draw.nodes if node.name not in here]
    at, span = draw.moment(), draw.span(SECOND, 4 * draw.dead_ns)
    made: list[Action] = []
    for one in here:
        for other in there:
            mended = at + span + draw.chance.randint(0, 2 * SECOND)
            made += draw.while_(Action(at, "cut", one, other), Action(mended, "mend", one, other))
    return made


def flap(draw: Draw) -> list[Action]:
    """A cable is loose: cut and restored several times."""
    child, made = draw.child(), []
    at = draw.moment()
    for _ in range(draw.chance.randint(3, 12)):
        span = draw.span(20 * MILLISECOND, 2 * SECOND)
        made += draw.while_(
            Action(at, "cut", child.name, child.parent), Action(at + span, "mend", child.name, child.parent)
        )
        at += span + draw.span(20 * MILLISECOND, 5 * SECOND)
        if at >= draw.safety_ns:
            break
    return made


def slow(draw: Draw) -> list[Action]:
    """A cable is slow for a while: a bad radio, a satellite."""
    child = draw.child()
    at, span = draw.moment(), draw.span(SECOND, MINUTE)
    least, spread = draw.span(20 * MILLISECOND, 3 * SECOND), draw.span(MILLISECOND, 2 * SECOND)
    begin = Action(at, "slow", child.name, child.parent, "both", least, spread)
    return draw.while_(begin, Action(at + span, "slow", child.name, child.parent, "both"))


def flip(draw: Draw) -> list[Action]:
    """A cable flips bits for a while: a bad network card, a switch whose memory is broken."""
    child = draw.child()
    at, span = draw.moment(), draw.span(SECOND, 2 * MINUTE)
    begin = Action(at, "flip", child.name, child.parent, "both", draw.chance.randint(2, 40))
    return draw.while_(begin, Action(at + span, "flip", child.name, child.parent, "both"))


def pause(draw: Draw) -> list[Action]:
    """Processes are paused and resumed later: SIGSTOP, a suspended machine, a host that swaps."""
    made: list[Action] = []
    longest = 10 * MINUTE if draw.safety_ns >= 60 * MINUTE else MINUTE
    for _ in range(draw.chance.randint(1, 4)):
        name, at = draw.one().name, draw.moment()
        made += draw.while_(Action(at, "pause", name), Action(at + draw.span(SECOND // 2, longest), "resume", name))
    return made


def step(draw: Draw) -> list[Action]:
    """A wall clock is set: by seconds, an hour, a year, forward or back."""
    by = draw.chance.choice((SECOND, 3600 * SECOND, YEAR_NS)) * draw.chance.choice((-1, 1))
    return [Action(draw.moment(), "step", draw.one().name, number=by)]


def drift(draw: Draw) -> list[Action]:
    """A quartz runs up to 5 % fast or slow."""
    return [Action(draw.moment(), "drift", draw.one().name, number=draw.chance.randint(-50_000, 50_000))]


def _crash(draw: Draw, name: str, how: str, at: int) -> list[Action]:
    down = draw.span(SECOND // 2, MINUTE)
    is_loud, in_a_write = draw.chance.randint(0, 1), draw.chance.randint(0, 1)
    begin = Action(at, "crash", name, how=how, number=is_loud, second=in_a_write)
    return draw.while_(begin, Action(at + down, "start", name))


def crash_kept(draw: Draw) -> list[Action]:
    """A process is killed; its disk keeps everything, perhaps even the last batch."""
    return _crash(draw, draw.one().name, "kept", draw.moment())


def crash_torn(draw: Draw) -> list[Action]:
    """The power fails inside a write."""
    return _crash(draw, draw.one().name, "torn", draw.moment())


def crash_lost(draw: Draw) -> list[Action]:
    """A machine is replaced, with an empty disk; not the root's, whose disk holds what it called safe."""
    name = draw.child().name
    return _crash(draw, name, "lost", draw.moment())


def crash_old(draw: Draw) -> list[Action]:
    """A machine comes back with a disk from the past."""
    name, at = draw.child().name, draw.moment()
    return [Action(max(1, at - draw.span(SECOND, MINUTE)), "image", name), *_crash(draw, name, "old", at)]


def kill_root(draw: Draw) -> list[Action]:
    """The root is killed."""
    root = next(node.name for node in draw.nodes if node.level == "root")
    return _crash(draw, root, draw.chance.choice(("kept", "torn")), draw.moment())


def kill_collector(draw: Draw) -> list[Action]:
    """A collector is killed, or replaced."""
    collectors = [node.name for node in draw.nodes if node.level == "collector"]
    return _crash(draw, draw.chance.choice(collectors), draw.chance.choice(("kept", "torn", "lost")), draw.moment())


def kill_all(draw: Draw) -> list[Action]:
    """The power of all machines fails at once."""
    at, made = draw.moment(), []
    for node in draw.nodes:
        made += _crash(draw, node.name, "torn", at)
    return made


def stop(draw: Draw) -> list[Action]:
    """A node is stopped in order, and started again."""
    name, at = draw.one().name, draw.moment()
    return draw.while_(Action(at, "stop", name), Action(at + draw.span(2 * SECOND, MINUTE), "start", name))


def fill(draw: Draw) -> list[Action]:
    """A journal has little room just while its node is cut off: it drops its oldest, and announces that."""
    child, at = draw.child(), draw.moment()
    span = draw.span(10 * SECOND, 2 * MINUTE)
    begin = Action(at, "fill", child.name, number=draw.chance.randint(1_500, 12_000))
    made = draw.while_(begin, Action(at + span + draw.span(SECOND, MINUTE), "fill", child.name))
    return [
        *made,
        *draw.while_(Action(at, "cut", child.name, child.parent), Action(at + span, "mend", child.name, child.parent)),
    ]


def garbage(draw: Draw) -> list[Action]:
    """Somebody sends bytes that no node may accept."""
    name = draw.one().name
    made = []
    for _ in range(draw.chance.randint(1, 5)):
        kind = draw.chance.choice(KINDS)
        made.append(Action(draw.moment(), "garbage", name, how=kind, number=channel_of(kind, draw.chance)))
    return made


FAULTS: Final[dict[str, Callable[[Draw], list[Action]]]] = {
    "cut-one": cut_one,
    "cut-one-way": cut_one_way,
    "cut-halves": cut_halves,
    "flap": flap,
    "slow": slow,
    "pause": pause,
    "step": step,
    "drift": drift,
    "crash-kept": crash_kept,
    "crash-torn": crash_torn,
    "crash-lost": crash_lost,
    "crash-old": crash_old,
    "kill-root": kill_root,
    "kill-collector": kill_collector,
    "kill-all": kill_all,
    "stop": stop,
    "fill": fill,
    "garbage": garbage,
    "flip": flip,
}
"""The menu, by name."""

FORGETFUL: Final = ("lost", "old", "replaced")
RARE: Final = frozenset({"kill-all", "crash-lost", "crash-old", "cut-halves"})


def draw_actions(seed: str, menu: tuple[str, ...], nodes: tuple[NodePlan, ...], spans: tuple[int, int]) -> list[Action]:
    """The faults of a run, in order of time; `spans`: how long there are faults, and the silence that means death."""
    made: list[Action] = []
    for name in menu:
        chance = Chance(f"{seed}/fault/{name}")
        draw = Draw(chance, nodes, *spans)
        times = 1 if name in RARE else 1 + chance.randrange(max(1, 2 * spans[0] // MINUTE // isqrt(len(menu))))
        for _ in range(times):
            made += FAULTS[name](draw)
    return sorted(_possible(made), key=lambda action: action.at)


def _possible(actions: list[Action]) -> Iterator[Action]:
    """Leave out actions so that no machine has both a clock that goes back and a disk that forgets its eras."""
    forgetful = {action.node for action in actions if action.how in FORGETFUL}
    for action in actions:
        if not (action.do == "step" and action.number < 0 and action.node in forgetful):
            yield action


class Size(NamedTuple):
    """How large and how long runs of a scenario are."""

    nodes: tuple[int, int]
    tiers: tuple[int, int]
    safety_ns: tuple[int, int]
    rate_ns: tuple[int, int]


SIZES: Final[dict[str, Size]] = {
    "fabric": Size((2, 9), (1, 3), (MINUTE, 5 * MINUTE), (2 * SECOND, 30 * SECOND)),
    "link": Size((1, 1), (1, 1), (MINUTE, 3 * MINUTE), (SECOND // 2, 5 * SECOND)),
    "house": Size((20, 40), (2, 3), (2 * MINUTE, 4 * MINUTE), (5 * SECOND, 30 * SECOND)),
    "night": Size((2, 6), (1, 3), (60 * MINUTE, 240 * MINUTE), (20 * SECOND, 120 * SECOND)),
    "chains": Size((1, 7), (2, 3), (MINUTE // 2, 3 * MINUTE), (10 * SECOND, 60 * SECOND)),
    "mail": Size((1, 2), (2, 2), (MINUTE // 2, MINUTE), (10 * SECOND, 60 * SECOND)),
    "readers": Size((1, 3), (2, 3), (MINUTE // 2, MINUTE), (10 * SECOND, 60 * SECOND)),
    **dict.fromkeys(MISCHIEFS, Size((2, 4), (1, 3), (MINUTE, 3 * MINUTE), (SECOND, 5 * SECOND))),
}
"""Scenarios: everyday fabrics; one link; forty nodes; hours of it; programs that send, read and rewrite; a few of them;
readers that confirm; and fabrics with rare faults: see `sim.mischief`."""


def draw_plan(seed: str, scenario: str = "fabric") -> Plan:
    """The plan of a seed; the same for ever, for one version of this module."""
    for names, draw in OTHERS:
        if scenario in names:
            return draw(seed, scenario)
    size, chance = SIZES[scenario], Chance(f"{seed}/plan/{scenario}")
    beat_ms = chance.choice((1_000, 2_000, 5_000))
    dead_ms = beat_ms * chance.choice((3, 5))
    safety_ns = chance.randint(*size.safety_ns)
    mischief = mischief_of(seed, scenario)
    has_beacons = chance.random() < 0.25 or mischief == STRANGERS
    nodes = _tree(Chance(f"{seed}/tree"), size, by_beacon=has_beacons)
    has_collectors = any(node.level == "collector" for node in nodes)
    possible = [name for name in FAULTS if has_collectors or name != "kill-collector"]
    menu = menu_of(Chance(f"{seed}/menu"), possible, few=0.15)
    actions = draw_actions(seed, menu, nodes, (safety_ns, dead_ms * MILLISECOND))
    if mischief:
        nodes, more = with_mischief(nodes, seed, mischief, safety_ns)
        menu += (MISCHIEFS[mischief],)
        actions = sorted(_possible([*actions, *more]), key=lambda action: action.at)
    if scenario in MAILS:
        chosen = Chance(f"{seed}/menu/programs")
        menu += tuple(fault for fault in PROGRAM_FAULTS if chosen.random() < 0.6)
        nodes = with_programs(nodes, seed, scenario)
        actions = sorted([*actions, *befall(nodes, seed, menu, safety_ns)], key=lambda action: action.at)
    return Plan(
        seed=seed,
        scenario=scenario,
        rare=draw_rare(seed),
        menu=menu,
        beat_ms=beat_ms,
        dead_ms=dead_ms,
        beacons=has_beacons,
        lake_rows=chance.choice((50, 500, 100_000)),
        lake_age_ms=chance.choice((500, 1_000, 5_000)),
        lake_idle_ms=chance.choice((300, 1_000)),
        lake_failures=chance.choice((0, 0, SHARE // 10, SHARE // 2)),
        weather=_weather(Chance(f"{seed}/weather")),
        nodes=nodes,
        links=tuple(_links(Chance(f"{seed}/links"), nodes)),
        actions=tuple(actions),
        safety_ns=safety_ns,
        settle_ns=5 * MINUTE,
        skips=SKIPS.get(mischief, ()),
        **settings_of(scenario),
    )


def _draw_fleet_mail(seed: str, scenario: str) -> Plan:
    """A fleet whose programs send messages, while its machines are replaced."""
    under = draw_fleet(seed, SMALL_FLEET, FLEET_SCENARIOS[scenario])
    return msgspec.structs.replace(with_senders(under), scenario=scenario)


def _draw_intruders(seed: str, _: str) -> Plan:
    """A fleet with keys, a store and a document, and intruders at its doors."""
    return with_intruders(share(draw_fleet(seed, SMALL_FLEET, VARIANTS), seed), seed)


def _draw_everything(seed: str, scenario: str) -> Plan:
    """A fleet, or a tree with mail, and all else on top of that."""
    kind = scenario.partition("-")[2] or Chance(f"{seed}/kind").choice(("fleet", "tree"))
    under = draw_fleet(seed, SMALL_FLEET, VARIANTS) if kind == "fleet" else draw_plan(seed, "mail")
    return msgspec.structs.replace(enrich(under, seed), scenario=scenario)


OTHERS: Final[tuple[tuple[Container[str], Callable[[str, str], Plan]], ...]] = (
    ((FLEET_MAIL,), _draw_fleet_mail),
    (FLEET_SCENARIOS, draw_fleet),
    (STORE_SCENARIOS, draw_store),
    (CATALOGS, draw_catalog),
    (BRIDGED, draw_bridges),
    (DOCUMENTS, draw_documents),
    ((INTRUDERS,), _draw_intruders),
    (KEY_SCENARIOS, draw_keys),
    (EVERYTHING, _draw_everything),
)
"""Scenarios that other modules draw, and their functions; the first that names a scenario draws it."""


def _weather(chance: Chance) -> Weather:
    return Weather(
        loss=chance.randint(0, SHARE * 3 // 10),
        duplication=chance.randint(0, SHARE // 10),
        reordering=chance.randint(0, SHARE // 5),
        damage=chance.choice((0, SHARE // 100)),
        late_ns=chance.randint(MILLISECOND, 5 * SECOND),
    )


def _links(chance: Chance, nodes: tuple[NodePlan, ...]) -> Iterator[Link]:
    for node in nodes:
        if node.parent and chance.random() < 0.5:
            least = between(chance, MILLISECOND // 10, 50 * MILLISECOND)
            yield Link(node.name, node.parent, least, least // 2)


def _tree(chance: Chance, size: Size, *, by_beacon: bool) -> tuple[NodePlan, ...]:
    """A root, and below it collectors and sensors, at most so many tiers deep."""
    count, tiers = chance.randint(*size.nodes), chance.randint(*size.tiers)
    made: list[tuple[str, str, str]] = [("root", "root", "")]
    above = ["root"]
    for tier in range(1, tiers):
        here = [f"c{tier}{index}" for index in range(1, 1 + chance.randint(1, max(1, count // 4)))]
        made += [(name, "collector", chance.choice(above)) for name in here]
        above = here + (["root"] if chance.random() < 0.3 else [])
    made += [(f"s{index}", "sensor", chance.choice(above)) for index in range(1, count + 1)]
    rates = (size.rate_ns[0], chance.randint(*size.rate_ns))
    return tuple(_node(Chance(f"{chance.random()}/{place[0]}"), place, rates, by_beacon=by_beacon) for place in made)


def _node(chance: Chance, place: tuple[str, str, str], rates: tuple[int, int], *, by_beacon: bool) -> NodePlan:
    name, level, parent = place
    is_measuring = level == "sensor" or chance.random() < 0.2
    small = chance.random() < 0.5
    settings: dict[str, Any] = {}
    if small:
        settings = {"segment_records": chance.choice((4, 16, 64)), "snapshot_records": chance.choice((8, 32, 128))}
    return NodePlan(
        name=name,
        level=level,
        parent=parent,
        by_beacon=by_beacon and chance.random() < 0.5,
        start_at=chance.randint(0, 5 * SECOND),
        drift_ppm=chance.randint(-200, 200),
        offset_ns=chance.randint(-3600, 3600) * SECOND // chance.choice((1, 100, 10_000)),
        metrics=tuple(_metrics(chance, rates)) if is_measuring else (),
        flush_ns=chance.choice((SECOND // 2, SECOND, 5 * SECOND)),
        sync_least_ns=50_000,
        sync_spread_ns=chance.choice((MILLISECOND, 5 * MILLISECOND)),
        hangs=chance.choice((0, 0, SHARE // 20)),
        **settings,
    )


def _metrics(chance: Chance, rates: tuple[int, int]) -> Iterator[Metric]:
    for detail in chance.sample(DETAILS, k=chance.randint(1, 2)):
        rate = between(chance, *rates)
        yield Metric(detail.lower(), detail, rate // MILLISECOND * MILLISECOND, chance.choice((1, 1, 3)))
