"""Draws nodes that edit documents together, their entries, and their faults (docs/doc.md).

All nodes of a session are equal, and stand in a small tree whose root takes every operation into its lake. Each knows a
few others, and hears of the rest from them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from weft.base.chance import Chance
from weft.base.now import MILLISECOND, SECOND
from weft.sim import drawing
from weft.sim.plan import Action, DocumentPlan, NodePlan, Plan

ROOT: Final = "root"
BEGIN_NS: Final = 10 * SECOND
PLACES: Final = 16  # places in a document where entries are made; few, so that entries collide
HOW: Final = ("set", "set", "set", "add", "add", "remove")


class Size(NamedTuple):
    """How large and how long the runs of a scenario are."""

    nodes: tuple[int, int]
    safety_ns: tuple[int, int]
    entries: tuple[int, int]
    menu: tuple[str, ...] = ()
    """Its faults; empty: they are drawn."""


DOCUMENTS: Final[dict[str, Size]] = {
    "documents": Size((2, 4), (40 * SECOND, 90 * SECOND), (20, 80)),
    "documents-large": Size((5, 7), (120 * SECOND, 300 * SECOND), (100, 600)),
    "documents-lost": Size((3, 4), (60 * SECOND, 90 * SECOND), (40, 80), ("lose",)),
    "documents-damages": Size((3, 5), (60 * SECOND, 120 * SECOND), (60, 150), ("damage", "crash", "cut", "give_up")),
}
"""Scenarios: a few nodes; many of them; one node whose disk is lost, or replaced by an old one; journals that are harmed."""


@dataclass(frozen=True, kw_only=True)
class Draw(drawing.Draw):
    """What faults are drawn from: a random generator, the machines, and the times."""

    names: tuple[str, ...]

    def span(self) -> int:
        """A span: too short to be noticed, or longer than the silence after which a peer counts as gone."""
        return self.chance.randint(SECOND // 5, SECOND << self.chance.randrange(7))

    def two(self) -> list[str]:
        return self.chance.sample(self.names, k=2)


Fault = Callable[[Draw], list[Action]]


def cut(draw: Draw) -> list[Action]:
    """The cable between two nodes is cut for a while, in both directions or one."""
    (here, there), how, at = draw.two(), draw.chance.choice(("both", "both", "one")), draw.moment()
    return draw.lasts(Action(at, "cut", here, there, how), Action(at + draw.span(), "mend", here, there, how))


def halves(draw: Draw) -> list[Action]:
    """The session falls into two parts."""
    here = [name for name in draw.names if draw.chance.random() < 0.5]
    at, span, made = draw.moment(), draw.span(), []
    for one in here:
        for other in draw.names:
            if other not in here:
                made += draw.lasts(Action(at, "cut", one, other), Action(at + span, "mend", one, other))
    return made


def give_up(draw: Draw) -> list[Action]:
    """TCP breaks a node's links to all others, which notice later: messages on the way are lost."""
    name, notice = draw.chance.choice(draw.names), draw.chance.randint(1, 5 * SECOND)
    return [Action(draw.moment(), "give-up", name, how="document", number=notice)]


def slow(draw: Draw) -> list[Action]:
    """A cable is slow for a while, so operations overtake one another on other ways."""
    (here, there), at = draw.two(), draw.moment()
    least = draw.chance.randint(20 * MILLISECOND, 3 * SECOND)
    begin = Action(at, "slow", here, there, "both", least, least // 2)
    return draw.lasts(begin, Action(at + draw.span(), "slow", here, there, "both"))


def pause(draw: Draw) -> list[Action]:
    """A process is paused for a while."""
    name, at = draw.chance.choice(draw.names), draw.moment()
    return draw.lasts(Action(at, "pause", name), Action(at + draw.span(), "resume", name))


def crash(draw: Draw) -> list[Action]:
    """A process is killed, or the power fails inside a write."""
    chance, name, at = draw.chance, draw.chance.choice(draw.names), draw.moment()
    how = chance.choice(("kept", "torn"))
    begin = Action(at, "crash", name, how=how, number=chance.randint(0, 1), second=chance.randint(0, 1))
    return draw.lasts(begin, Action(at + draw.span(), "start", name))


def lose(draw: Draw) -> list[Action]:
    """A machine returns with an empty or an old disk: others have more of its operations than it has itself."""
    name, at = draw.names[-1], draw.moment()
    how = draw.chance.choice(("lost", "old"))
    begin = Action(at, "crash", name, how=how, number=draw.chance.randint(0, 1))
    image = Action(max(1, at - draw.span()), "image", name)
    return [image, *draw.lasts(begin, Action(at + draw.span(), "start", name))]


def fill(draw: Draw) -> list[Action]:
    """A journal has no room for a while."""
    name, at = draw.chance.choice(draw.names[1:] or draw.names), draw.moment()
    return draw.lasts(Action(at, "fill", name, number=1_000), Action(at + draw.span(), "fill", name))


def step(draw: Draw) -> list[Action]:
    """A wall clock is set forward."""
    by = draw.chance.choice((SECOND, 60 * SECOND))
    return [Action(draw.moment(), "step", draw.chance.choice(draw.names), number=by)]


def damage(draw: Draw) -> list[Action]:
    """A machine ends, its journal is harmed, and it starts again."""
    name = draw.chance.choice(draw.names)
    return draw.damage(name, is_replaceable=name != ROOT)


FAULTS: Final[dict[str, Fault]] = {
    fault.__name__: fault for fault in (cut, halves, give_up, slow, pause, crash, lose, fill, step)
}
PLACED: Final[dict[str, Fault]] = {damage.__name__: damage}
"""Faults of scenarios that name them: a seed of the others draws what it drew before."""
RARE: Final = frozenset({"lose", "fill", "halves"})


def befall(seed: str, menu: tuple[str, ...], draw: Draw) -> list[Action]:
    """Draw the faults of a run."""
    made: list[Action] = []
    for name in menu:
        mine = draw.by(f"{seed}/document/{name}")
        times = 1 if name in RARE else mine.chance.randint(1, 5)
        made += [action for _ in range(times) for action in (FAULTS | PLACED)[name](mine)]
    return made


def entries(draw: Draw, count: int) -> list[Action]:
    """Draw the entries of people, each at their node, sometimes several at once."""
    chance, made = draw.chance, []
    for number in range(count):
        at, places = chance.randrange(draw.begin_ns, draw.end_ns + 5 * SECOND), chance.randrange(PLACES)
        names = draw.names if chance.random() < 0.1 else (chance.choice(draw.names),)
        how = chance.choice(HOW)
        made += [
            Action(at, "edit", name, how=how, number=places, second=number * 10 + index)
            for index, name in enumerate(names)
        ]
    return made


def draw_documents(seed: str, scenario: str = "documents") -> Plan:
    """The plan of a seed."""
    size, chance = DOCUMENTS[scenario], Chance(f"{seed}/documents/{scenario}")
    names = (ROOT, *"abcdefg"[: chance.randint(*size.nodes)])
    editing = names if chance.random() < 0.5 else names[1:]
    safety_ns = BEGIN_NS + chance.randint(*size.safety_ns)
    draw = Draw(chance=chance, names=editing, begin_ns=BEGIN_NS, end_ns=safety_ns)
    menu = size.menu or drawing.menu_of(Chance(f"{seed}/menu"), FAULTS)
    actions = befall(seed, menu, draw)
    actions += entries(draw.by(f"{seed}/entries"), chance.randint(*size.entries))
    delay = chance.choice((1, 5, 20, 200)) * MILLISECOND
    sessions = ("bout", "notes")[: chance.choice((1, 1, 2))]
    nodes = tuple(_node(Chance(f"{seed}/nodes/{name}"), name, editing, sessions) for name in names)
    return Plan(
        seed=seed,
        scenario=scenario,
        menu=menu,
        documents=DocumentPlan(is_quick=chance.random() < 0.5),
        nodes=drawing.with_small_segments(nodes, Chance(f"{seed}/segments")) if "damage" in menu else nodes,
        least_ns=delay // 2,
        spread_ns=delay,
        actions=tuple(sorted(actions, key=lambda action: action.at)),
        safety_ns=safety_ns,
        settle_ns=300 * SECOND,
    )


def _node(chance: Chance, name: str, editing: tuple[str, ...], sessions: tuple[str, ...]) -> NodePlan:
    more: dict[str, Any] = {}
    if chance.random() < 0.4:
        more = {"segment_records": chance.choice((4, 64)), "snapshot_records": chance.choice((8, 64, 256))}
    others = [other for other in editing if other != name]
    return NodePlan(
        name=name,
        level="root" if name == ROOT else "sensor",
        parent="" if name == ROOT else ROOT,
        sessions=sessions if name in editing else (),
        meets=tuple(others if chance.random() < 0.5 else others[:1]),
        start_at=chance.randint(0, 5 * SECOND),
        drift_ppm=chance.randint(-200, 200),
        offset_ns=chance.randint(-3_600, 3_600) * SECOND // chance.choice((1, 100, 10_000)),
        **more,
    )
