"""Draws rare faults, each in scenarios of its own: false hints, second machines, damaged journals, edited files.

Each of these fabrics also has the faults that its seed draws for every other one.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from weft.base.chance import Chance
from weft.base.now import SECOND
from weft.sim.disk import HARMS
from weft.sim.drawing import harmed, with_small_segments
from weft.sim.plan import Action, NodePlan

STRANGERS: Final = "strangers"
TWINS: Final = "twins"
DAMAGES: Final = "damages"
EDITS: Final = "edits"
RESTARTS: Final = "restarts"
ANYWHERE: Final = "damages-anywhere"
EVERYDAYS: Final = {STRANGERS: "lie", TWINS: "twin", DAMAGES: "harm", EDITS: "new-file", RESTARTS: "crash-again"}
"""The scenarios that everyday runs have, too, and the fault that each adds to the menu."""
MISCHIEFS: Final = {**EVERYDAYS, ANYWHERE: "harm"}
"""All scenarios of this kind."""
EVERYDAY: Final = "fabric"
EVERYDAY_SHARE: Final = 0.1  # of its runs have one of them, too
SKIPS: Final = {TWINS: ("order", "timely")}
"""Rules that are not checked. Of two machines with one identity the later start may be heard first, and each displaces
the other at the parent."""

Drawn = tuple[tuple[NodePlan, ...], list[Action]]


def mischief_of(seed: str, scenario: str) -> str:
    """The rare fault of a run, by the name of its scenario; empty: none."""
    if scenario in MISCHIEFS:
        return scenario
    chance = Chance(f"{seed}/mischief")
    return chance.choice(tuple(EVERYDAYS)) if scenario == EVERYDAY and chance.random() < EVERYDAY_SHARE else ""


def with_mischief(nodes: tuple[NodePlan, ...], seed: str, scenario: str, safety_ns: int) -> Drawn:
    """The nodes, changed as the rare fault needs them, and the actions."""
    return DRAWS[scenario](nodes, Chance(f"{seed}/mischief/{scenario}"), safety_ns)


def _strangers(nodes: tuple[NodePlan, ...], chance: Chance, safety_ns: int) -> Drawn:
    """Children that find their parent by name are told that it has moved, and that others have their name."""
    found = tuple(msgspec.structs.replace(node, by_beacon=bool(node.parent)) for node in nodes)
    kinds = ("your parent is elsewhere", "an older node has your name")
    made = [
        Action(chance.randrange(SECOND, safety_ns), "lie", node.name, how=chance.choice(kinds))
        for node in found
        for _ in range(chance.randint(4, 20))
    ]
    return found, made


def _twins(nodes: tuple[NodePlan, ...], chance: Chance, safety_ns: int) -> Drawn:
    """A second machine claims to be a sensor: with a copy of its disk, or with only its file."""
    node = chance.choice([node for node in nodes if node.level == "sensor"])
    twin = msgspec.structs.replace(node, name=f"{node.name}-twin", twin_of=node.name, start_at=0)
    at = chance.randrange(5 * SECOND, safety_ns)
    begin = Action(at, "start", twin.name)
    if chance.random() < 0.5:
        begin = Action(at, "clone", node.name, twin.name)
    ends = Action(at + chance.randint(SECOND, 60 * SECOND), "crash", twin.name, how="kept", number=1)
    return (*nodes, twin), [begin, *([ends] if ends.at < safety_ns else [])]


def _damages(nodes: tuple[NodePlan, ...], chance: Chance, safety_ns: int) -> Drawn:
    """A sensor ends, its journal is damaged, and it starts again."""
    small = with_small_segments(nodes, chance)
    sensors, made = [node.name for node in nodes if node.level == "sensor"], []
    for _ in range(chance.randint(1, 4)):
        name, at = chance.choice(sensors), chance.randrange(20 * SECOND, safety_ns)
        made += [
            Action(at, "crash", name, how="kept", number=1),
            Action(at + SECOND // 10, "harm", name, how=chance.choice(HARMS)),
            Action(at + chance.randint(SECOND, 20 * SECOND), "start", name),
        ]
    return small, made


def _damages_anywhere(nodes: tuple[NodePlan, ...], chance: Chance, safety_ns: int) -> Drawn:
    """Any node ends, its journal is harmed, and it starts again; if it is refused, a person repairs or replaces its disk.

    The root's is not replaced: it holds what the root has called safe.
    """
    small = with_small_segments(nodes, chance)
    above, made = [node for node in nodes if node.level != "sensor"], []
    for _ in range(chance.randint(2, 6)):
        node, at = chance.choice(above if chance.random() < 0.8 else nodes), chance.randrange(20 * SECOND, safety_ns)
        is_replaced = node.level != "root" and chance.random() < 0.3
        back = at + chance.randint(SECOND, 20 * SECOND)
        begin = Action(at, "crash", node.name, how=chance.choice(("kept", "torn")), number=1)
        made += harmed(begin, chance.choice(HARMS), back, is_replaced=is_replaced)
    return small, [action for action in made if action.at < safety_ns]


def _edits(nodes: tuple[NodePlan, ...], chance: Chance, safety_ns: int) -> Drawn:
    """Files are changed, several in any order, and their nodes are restarted: in order, or after a crash."""
    made = []
    for _ in range(chance.randint(2, 6)):
        name, at = chance.choice(nodes).name, chance.randrange(SECOND, safety_ns)
        end = Action(at, "stop", name) if chance.random() < 0.7 else Action(at, "crash", name, how="kept", number=1)
        rate, flush = chance.randint(1, 10) * SECOND // 2, chance.choice((SECOND // 2, SECOND, 5 * SECOND))
        changed = Action(
            at + chance.randint(0, 5 * SECOND), "new-file", name, "", chance.choice(("fewer", "")), rate, flush
        )
        made += [end, changed, Action(at + 6 * SECOND, "start", name)]
    return nodes, made


def _restarts(nodes: tuple[NodePlan, ...], chance: Chance, safety_ns: int) -> Drawn:
    """A node is killed, and then several times in the first write of its start: it dies while it recovers (JRN-025)."""
    made = []
    for _ in range(chance.randint(1, 4)):
        name, at = chance.choice(nodes).name, chance.randrange(SECOND, safety_ns)
        made.append(Action(at, "crash", name, how="torn"))
        for _ in range(chance.randint(2, 6)):
            at += chance.randint(SECOND, 3 * SECOND)
            again = Action(at + 1, "crash", name, how=chance.choice(("kept", "torn")), second=1)
            made += [Action(at, "start", name), again]
        made.append(Action(at + 5 * SECOND, "start", name))
    return nodes, [action for action in made if action.at < safety_ns]


DRAWS: Final[dict[str, Callable[[tuple[NodePlan, ...], Chance, int], Drawn]]] = {
    STRANGERS: _strangers,
    TWINS: _twins,
    DAMAGES: _damages,
    ANYWHERE: _damages_anywhere,
    EDITS: _edits,
    RESTARTS: _restarts,
}
