"""Draws fleets with keys that change: rotated and revoked while there are faults (FLT-023).

Scenario `keys`: keys of any nodes are rotated, a machine is stolen and its key revoked, another gets an empty disk and
joins again. Scenario `keys-away`: all collectors get other keys, or are revoked and replaced, while a member is cut
off; when it is back it knows the key of no possible parent, and has to find its way back by itself.
"""

from typing import Final

import msgspec

from weft.base.chance import Chance
from weft.base.now import SECOND
from weft.sim.everything import BEGIN_NS, VARIANTS, share
from weft.sim.fleetplan import SMALL_FLEET, draw_fleet
from weft.sim.plan import Action, Plan

CHANGES: Final = "keys"
AWAY: Final = "keys-away"
KEY_SCENARIOS: Final = {
    CHANGES: "fleets whose keys are rotated and revoked",
    AWAY: "fleets whose collectors all get other keys while a member is away",
}
ROTATIONS: Final = (1, 5)
APART_NS: Final = 12 * SECOND  # between two rotations: the first has ended by then
STEAL, REPLACE = "steal", "replace"


def draw_keys(seed: str, scenario: str) -> Plan:
    """The plan of a seed."""
    plan = _away(seed) if scenario == AWAY else _changes(seed)
    actions = tuple(sorted(plan.actions, key=lambda action: action.at))
    return msgspec.structs.replace(plan, scenario=scenario, closed=True, keys_change=True, actions=actions)


def _changes(seed: str) -> Plan:
    chance, plan = Chance(f"{seed}/{CHANGES}"), draw_fleet(seed, SMALL_FLEET, VARIANTS)
    names = [node.name for node in plan.nodes]
    below = names[1:]
    begin, end = min(BEGIN_NS, plan.safety_ns // 2), plan.safety_ns
    made = [
        Action(chance.randrange(begin, end), "rotate-key", chance.choice(names))
        for _ in range(chance.randint(*ROTATIONS))
    ]
    lost = chance.choice((STEAL, REPLACE, ""))
    if lost:
        made.append(Action(chance.randrange(begin, end), f"{lost}-machine", chance.choice(below)))
    if lost != STEAL:  # a store waits for what only the stolen machine knows
        plan = share(plan, seed)
    menu = (*plan.menu, "rotate", *([lost] if lost else []))
    return msgspec.structs.replace(plan, menu=menu, actions=(*plan.actions, *made))


def _away(seed: str) -> Plan:
    chance, plan = Chance(f"{seed}/{AWAY}"), draw_fleet(seed, SMALL_FLEET, ("collectors come and go",))
    names = [node.name for node in plan.nodes]
    collectors = [name for name in names if name in plan.fleets[0].groups[0].collectors]
    members = [name for name in names[1:] if name not in collectors]
    away, at = chance.choice(members), BEGIN_NS + 5 * SECOND
    replaced = chance.choice(collectors) if chance.random() < 0.5 else ""
    made = [Action(at, "cut", away, other) for other in names if other != away]
    for number, name in enumerate(collectors):
        when = at + (number + 1) * APART_NS - chance.randrange(5 * SECOND)
        made.append(Action(when, "replace-machine" if name == replaced else "rotate-key", name))
    back = at + (len(collectors) + 2) * APART_NS
    made += [Action(back, "mend", away, other) for other in names if other != away]
    if chance.random() < 0.5:  # so that another process runs when the cables are restored
        made += [Action(back - 5 * SECOND, "crash", away, how="kept"), Action(back + SECOND, "start", away)]
    writes = [action for action in plan.actions if action.do == "write"]
    return msgspec.structs.replace(
        plan, menu=("away", "rotate-key"), actions=(*writes, *made), safety_ns=back + 30 * SECOND, weather=plan.weather
    )
