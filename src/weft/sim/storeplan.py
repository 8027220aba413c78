"""Draws fabrics that hold a store, the requests of clients, and the faults.

All nodes are equal except the founder, which begins. A fault may concern any two of them, since all speak with all. In
half of the runs the times of the store are short, so that deletions are forgotten within the run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from weft.base.chance import Chance
from weft.base.now import MILLISECOND, SECOND
from weft.sim import drawing
from weft.sim.plan import Action, Link, NodePlan, Plan, StorePlan
from weft.sim.rarely import draw_rare

FOUNDER: Final = "a"
NAMES: Final = "abcdefghi"
MENDED_NS: Final = 2 * SECOND  # within which the cables of a cut are restored, one by one
YEAR_NS: Final = 365 * 24 * 3_600 * SECOND


class Size(NamedTuple):
    """How large and how long the runs of a scenario are."""

    nodes: tuple[int, int]
    safety_ns: tuple[int, int]
    asks: tuple[int, int]
    """How many requests of clients."""
    menu: tuple[str, ...] = ()
    """Its faults; empty: they are drawn."""
    clocks_ms: tuple[int, ...] = (500, 500, 1_000, 5_000)
    megabytes: int = 0
    """Of memory for each store; 0: its usual share. Else all requests are of one client, which floods its node."""


STORE_SCENARIOS: Final[dict[str, Size]] = {
    "store": Size((2, 6), (40 * SECOND, 150 * SECOND), (60, 400)),
    "store-small": Size((2, 3), (30 * SECOND, 60 * SECOND), (40, 150)),
    "store-large": Size((7, 9), (60 * SECOND, 180 * SECOND), (200, 900)),
    "store-deletes": Size((3, 4), (40 * SECOND, 60 * SECOND), (5, 20), ("deleter_away",), (500,)),
    "store-damages": Size((3, 5), (40 * SECOND, 120 * SECOND), (60, 200), ("damage", "crash", "halves", "flap")),
    "store-moves": Size((2, 4), (40 * SECOND, 60 * SECOND), (20, 80), ("move", "crash", "slow"), (500, 1_000)),
    "store-flood": Size(
        (2, 3), (30 * SECOND, 40 * SECOND), (100, 200), ("crash", "slow", "hang_up", "stall"), (500,), megabytes=1
    ),
    "store-long": Size((3, 5), (1_200 * SECOND, 3_600 * SECOND), (400, 1_500)),
}
"""Scenarios: everyday stores; two or three nodes; nine of them; one that is away while others delete; machines that get
other addresses; one that is flooded with several times what its memory holds; an hour."""


@dataclass(frozen=True, kw_only=True)
class Draw(drawing.Draw):
    """What faults are drawn from: a random generator, the machines, and the times."""

    names: tuple[str, ...]
    clock_ns: int

    def one(self) -> str:
        return self.chance.choice(self.names)

    def span(self) -> int:
        """A span: too short to be noticed, or many clocks long; both equally likely."""
        return self.chance.randint(SECOND // 10, SECOND << self.chance.randrange(7))


Fault = Callable[[Draw], list[Action]]


def _apart(draw: Draw, sides: list[list[str]]) -> list[Action]:
    at, span, made = draw.moment(), draw.span(), []
    pairs = [
        (here, there) for side in sides for here in side for other in sides if other is not side for there in other
    ]
    for here, there in pairs:
        if here < there:
            mended = at + span + draw.chance.randint(0, MENDED_NS)
            made += draw.lasts(Action(at, "cut", here, there), Action(mended, "mend", here, there))
    return made


def _sides(draw: Draw, count: int) -> list[list[str]]:
    sides: list[list[str]] = [[] for _ in range(count)]
    for name in draw.names:
        draw.chance.choice(sides).append(name)
    return sides


def halves(draw: Draw) -> list[Action]:
    """Two parts."""
    return _apart(draw, _sides(draw, 2))


def thirds(draw: Draw) -> list[Action]:
    """Three parts, healed in turn."""
    return _apart(draw, _sides(draw, 3))


def one_way(draw: Draw) -> list[Action]:
    """Nothing passes from one node to another; the other direction works."""
    here, there = draw.chance.sample(draw.names, k=2)
    at = draw.moment()
    return draw.lasts(Action(at, "cut", here, there, "one"), Action(at + draw.span(), "mend", here, there, "one"))


def flap(draw: Draw) -> list[Action]:
    """A cable is cut and restored about every clock (S3)."""
    one, other = draw.chance.sample(draw.names, k=2)
    at, made = draw.moment(), []
    for _ in range(draw.chance.randint(3, 8)):
        down = draw.chance.randint(draw.clock_ns // 4, 2 * draw.clock_ns)
        made += draw.lasts(Action(at, "cut", one, other), Action(at + down, "mend", one, other))
        at += down + draw.chance.randint(draw.clock_ns // 4, 2 * draw.clock_ns)
        if at >= draw.end_ns:
            break
    return made


def give_up(draw: Draw) -> list[Action]:
    """TCP breaks the connections of a node to all others, which notice later."""
    return [Action(draw.moment(), "give-up", draw.one(), how="mesh-call", number=draw.chance.randint(1, 5 * SECOND))]


def slow(draw: Draw) -> list[Action]:
    """The cables of a node are slow, up to a clock (S1)."""
    name, at, made = draw.one(), draw.moment(), []
    least, span = draw.chance.randint(20 * MILLISECOND, draw.clock_ns), draw.span()
    for other in draw.names:
        if other != name:
            begin = Action(at, "slow", name, other, "both", least, least // 2)
            made += draw.lasts(begin, Action(at + span, "slow", name, other, "both"))
    return made


def pause(draw: Draw) -> list[Action]:
    """A process is paused for a while."""
    name, at = draw.one(), draw.moment()
    return draw.lasts(Action(at, "pause", name), Action(at + draw.span(), "resume", name))


def step(draw: Draw) -> list[Action]:
    """A wall clock is set (S6)."""
    by = draw.chance.choice((SECOND, 3_600 * SECOND, YEAR_NS))
    return [Action(draw.moment(), "step", draw.one(), number=by * draw.chance.choice((-1, 1)))]


def drift(draw: Draw) -> list[Action]:
    """A quartz runs up to 5 % fast or slow."""
    return [Action(draw.moment(), "drift", draw.one(), number=draw.chance.randint(-50_000, 50_000))]


def _down(draw: Draw, name: str, how: str, at: int) -> list[Action]:
    chance = draw.chance
    begin = Action(at, "crash", name, how=how, number=chance.randint(0, 1), second=chance.randint(0, 1))
    return draw.lasts(begin, Action(at + draw.span(), "start", name))


def crash(draw: Draw) -> list[Action]:
    """A process is killed, or the power fails inside a write (S5)."""
    return _down(draw, draw.one(), draw.chance.choice(("kept", "torn")), draw.moment())


def crash_all(draw: Draw) -> list[Action]:
    """The power of all machines fails at once."""
    at = draw.moment()
    return [action for name in draw.names for action in _down(draw, name, "torn", at)]


def lose(draw: Draw) -> list[Action]:
    """A machine is replaced, with an empty disk; never the founder, which may be all that there is."""
    return _down(draw, draw.names[-1], "lost", draw.moment())


def go_back(draw: Draw) -> list[Action]:
    """A machine comes back with a disk from the past."""
    name, at = draw.names[-1], draw.moment()
    return [Action(max(1, at - draw.span()), "image", name), *_down(draw, name, "old", at)]


def fill(draw: Draw) -> list[Action]:
    """A journal has no room for a while (S11)."""
    name, at = draw.one(), draw.moment()
    return draw.lasts(Action(at, "fill", name, number=1_000), Action(at + draw.span(), "fill", name))


def stall(draw: Draw) -> list[Action]:
    """Watchers do not read for a while."""
    return [Action(draw.moment(), "stall", draw.one(), number=draw.span()) for _ in range(3)]


def hang_up(draw: Draw) -> list[Action]:
    """Clients reconnect."""
    return [Action(draw.moment(), "hang-up", draw.one()) for _ in range(4)]


def deleter_away(draw: Draw) -> list[Action]:
    """A node makes changes that nobody hears, and is away while others delete them and forget that (S10)."""
    name, at, clock_ns = draw.names[-1], draw.begin_ns, draw.clock_ns
    back = at + 60 * clock_ns
    made = draw.lasts(Action(at + 3 * SECOND, "crash", name, how="kept"), Action(back, "start", name))
    for other in draw.names[:-1]:
        made += draw.lasts(Action(at, "cut", name, other), Action(back, "mend", name, other))
    for key in range(8):
        made.append(
            Action(at + draw.chance.randint(1, SECOND), "ask", name, how="put", number=key, second=key * 10 + 3)
        )
        made.append(
            Action(at + draw.chance.randint(1, 3 * SECOND), "ask", FOUNDER, how="put", number=key, second=key * 10 + 2)
        )
        made.append(
            Action(at + 4 * SECOND + draw.chance.randint(0, 5 * clock_ns), "ask", FOUNDER, how="delete", number=key)
        )
    return made


def drop(draw: Draw) -> list[Action]:
    """A node is away, is dropped by order, and returns all the same (DEL-006)."""
    name, at = draw.names[-1], draw.moment()
    return [
        Action(at, "crash", name, how="kept"),
        Action(at + draw.chance.randint(SECOND, 10 * SECOND), "drop-node", FOUNDER, name),
        *draw.lasts(Action(at, "stall", name), Action(at + 20 * SECOND + draw.span(), "start", name)),
    ]


def move(draw: Draw) -> list[Action]:
    """A machine gets another address, and is back before the others call it silent, or later."""
    name, at, made = draw.one(), draw.moment(), []
    for _ in range(draw.chance.randint(1, 3)):
        back = at + draw.chance.randint(SECOND // 10, 4 * SECOND)
        made += draw.lasts(Action(at, "move", name, number=draw.chance.randint(0, 1)), Action(back, "start", name))
        at = back + draw.chance.randint(SECOND, 10 * SECOND)
        if at >= draw.end_ns:
            break
    return made


def damage(draw: Draw) -> list[Action]:
    """A machine ends, its journal is harmed, and it starts again."""
    name = draw.one()
    return draw.damage(name, is_replaceable=name != FOUNDER)


FAULTS: Final[dict[str, Fault]] = {
    fault.__name__: fault
    for fault in (
        *(halves, thirds, one_way, flap, give_up, slow, pause, step, drift, crash, crash_all, lose, go_back, fill),
        *(stall, hang_up, deleter_away, drop),
    )
}
PLACED: Final[dict[str, Fault]] = {fault.__name__: fault for fault in (move, damage)}
"""Faults of scenarios that name them: a seed of the others draws what it drew before."""
RARE: Final = frozenset({"lose", "go_back", "crash_all", "deleter_away", "drop"})
ONE_OF: Final = ("lose", "go_back", "drop", "deleter_away")
"""Faults of the last node; one of these in a run."""
ALONE: Final = frozenset({"halves", "thirds", "one_way", "flap", "give_up", "slow", "pause", "crash", "crash_all"})
"""Not together with an old disk: a node that is alone with an old copy cannot know that, and takes ticks again."""


def draw_store(seed: str, scenario: str = "store") -> Plan:
    """The plan of a seed."""
    size, chance = STORE_SCENARIOS[scenario], Chance(f"{seed}/depot/{scenario}")  # tidy: seeds draw by this word
    names = tuple(NAMES[: chance.randint(*size.nodes)])
    clock_ns = chance.choice(size.clocks_ms) * MILLISECOND
    begin_ns = 2 * SECOND + chance.choice((0, 4, 8)) * clock_ns
    safety_ns = begin_ns + chance.randint(*size.safety_ns)
    draw = Draw(chance=chance, names=names, begin_ns=begin_ns, end_ns=safety_ns, clock_ns=clock_ns)
    menu = size.menu or menu_of(Chance(f"{seed}/menu"))
    actions = [Action(SECOND, "found", FOUNDER)]
    for name in menu:
        mine = draw.by(f"{seed}/fault/{name}")
        times = 1 if name in RARE else mine.chance.randint(1, 4)
        actions += [action for _ in range(times) for action in (FAULTS | PLACED)[name](mine)]
    ask = _flood if size.megabytes else asks
    actions += ask(draw.by(f"{seed}/asks"), chance.randint(*size.asks), begin_ns)
    delay = chance.choice((1, 5, 20)) * MILLISECOND
    nodes = tuple(_node(Chance(f"{seed}/nodes/{name}"), name, names) for name in names)
    return Plan(
        seed=seed,
        scenario=scenario,
        rare=draw_rare(seed),
        menu=menu,
        store=StorePlan(
            clock_ms=clock_ns // MILLISECOND,
            ping_length=chance.choice((2, 4)),
            chain_length=chance.choice((2, 5)),
            megabytes=size.megabytes,
        ),
        nodes=drawing.with_small_segments(nodes, Chance(f"{seed}/segments")) if "damage" in menu else nodes,
        links=tuple(_links(Chance(f"{seed}/links"), names)),
        least_ns=delay // 2,
        spread_ns=delay,
        actions=tuple(sorted(actions, key=lambda action: action.at)),
        safety_ns=safety_ns,
        settle_ns=max(300 * SECOND, 150 * clock_ns),
    )


def menu_of(chance: Chance) -> tuple[str, ...]:
    """Which faults can occur; of some only one in a run, and only with some others."""
    chosen = drawing.menu_of(chance, FAULTS, few=0.15)
    lasts = [name for name in chosen if name in ONE_OF]
    if len(lasts) > 1:
        kept = chance.choice(lasts)
        chosen = tuple(name for name in chosen if name not in ONE_OF or name == kept)
    return tuple(name for name in chosen if name not in ALONE) if "go_back" in chosen else chosen


def asks(draw: Draw, count: int, begin_ns: int) -> list[Action]:
    """Draw the requests of clients, each at its node; sometimes several at once about one entry."""
    chance, made = draw.chance, []
    keys = chance.choice((2, 6, 30))
    deletes = chance.choice((0.05, 0.3))
    for number in range(count):
        at, key = chance.randrange(begin_ns // 2, draw.end_ns + 5 * SECOND), chance.randrange(keys)
        if chance.random() < 0.05:
            made += [
                Action(at, "ask", name, how="put", number=key, second=number * 10 + 1 + index)
                for index, name in enumerate(draw.names)
            ]
            continue
        kind = chance.random()
        how = "delete" if kind < deletes else "compare" if kind < deletes + 0.1 else "read" if kind > 0.95 else "put"
        made.append(Action(at, "ask", draw.one(), how=how, number=key, second=number * 10))
    return made


def _flood(draw: Draw, count: int, begin_ns: int) -> list[Action]:
    """A client of the founder writes new entries, each of them large, and now and then deletes one."""
    chance, made = draw.chance, []
    for number in range(count):
        at = chance.randrange(begin_ns // 2, draw.end_ns)
        how = "delete" if chance.random() < 0.1 else "flood"
        key = chance.randrange(number + 1) if how == "delete" else number
        made.append(Action(at, "ask", FOUNDER, how=how, number=key, second=number * 10))
    return made


def _node(chance: Chance, name: str, names: tuple[str, ...]) -> NodePlan:
    others = tuple(other for other in names if other != name)
    more: dict[str, Any] = {}
    if chance.random() < 0.4:
        more = {"segment_records": chance.choice((4, 64)), "snapshot_records": chance.choice((8, 64, 256))}
    return NodePlan(
        name=name,
        level="root" if name == FOUNDER else "sensor",
        runs=("store",),
        peers=others if chance.random() < 0.7 else (others if name == FOUNDER else (FOUNDER,)),
        watchers=chance.choice((0, 0, 1, 2)),
        start_at=chance.randint(0, SECOND // 2) if name == FOUNDER else chance.randint(0, 5 * SECOND),
        drift_ppm=chance.randint(-200, 200),
        offset_ns=chance.randint(-3_600, 3_600) * SECOND // chance.choice((1, 100, 10_000)),
        **more,
    )


def _links(chance: Chance, names: tuple[str, ...]) -> list[Link]:
    pairs = [(here, there) for here in names for there in names if here < there]
    spans = [(pair, chance.randint(MILLISECOND // 10, 60 * MILLISECOND)) for pair in pairs if chance.random() < 0.3]
    return [Link(here, there, span, span // 2) for (here, there), span in spans]
