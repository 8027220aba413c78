"""Draws programs for the nodes of a plan, and what befalls them: the scenarios in which messages travel.

app.plain   is only read on its way: whole and in order
app.work    is rewritten by programs that hang, die and answer wrongly; their links let pass what has no answer
app.risk    is deleted, too, and its links have every policy
news        goes downward and is kept nowhere
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from weft.base.chance import Chance
from weft.base.now import SECOND
from weft.sim.noise import SHARE
from weft.sim.plan import Action, Load, MailType, NodePlan, Plan, ProgramPlan, Stand

MAILS: Final = ("chains", "mail", "readers")
PLAIN, WORK, RISK, NEWS = "app.plain", "app.work", "app.risk", "news"
TYPES: Final = (
    MailType(name=PLAIN),
    MailType(name=WORK, is_ordered=False),
    MailType(name=RISK, is_whole=False, is_ordered=False),
)
OVER: Final = ("app.*",)
PROGRAM_FAULTS: Final = ("programs-die", "programs-hang")
MISDEEDS: Final = ("late", "never", "twice", "wrong-id", "wrong-reg", "not-mine", "die")
POLICIES: Final = ("", "open", "closed", "drop", "wait")
PLACES: Final = (-1, 0, 5, 1_000, 3_999_999_999, 4_000_000_001)


def with_programs(nodes: tuple[NodePlan, ...], seed: str, scenario: str) -> tuple[NodePlan, ...]:
    """The same nodes, with programs on them, and filters that hand messages over."""
    made = []
    for node in nodes:
        chance = Chance(f"{seed}/troupe/{scenario}/{node.name}")  # tidy: seeds draw by this word
        programs = tuple(CASTS[scenario](chance, node))
        hands_over = () if node.level == "sensor" else OVER
        made.append(msgspec.structs.replace(node, programs=programs, hands_over=hands_over))
    return tuple(made)


def with_senders(plan: Plan) -> Plan:
    """The same fleet, with a program that sends on each node but the root, and filters that hand messages over."""
    talks = ProgramPlan(name="talk", loads=(Load(type=PLAIN, kind="PARENTSOF", rate_ns=SECOND // 2, burst=2),))
    nodes = (node if node.level == "root" else msgspec.structs.replace(node, programs=(talks,)) for node in plan.nodes)
    fleets = (msgspec.structs.replace(fleet, hands_over=OVER) for fleet in plan.fleets)
    return msgspec.structs.replace(plan, nodes=tuple(nodes), fleets=tuple(fleets), mail=(MailType(name=PLAIN),))


def _small(chance: Chance, node: NodePlan) -> Iterator[ProgramPlan]:
    """One that sends on each sensor, one that reads and one that rewrites above."""
    if node.level == "sensor":
        yield ProgramPlan(name="talk", loads=tuple(_load(chance, kind) for kind in (PLAIN, WORK)))
    else:
        yield _reader(chance)
        bad = tuple((habit, SHARE // 40) for habit in MISDEEDS)
        yield msgspec.structs.replace(_editor(chance, "in"), habits=bad)


def _audience(chance: Chance, node: NodePlan) -> Iterator[ProgramPlan]:
    """One that sends on each sensor, and readers that confirm above."""
    if node.level == "sensor":
        yield ProgramPlan(name="talk", loads=tuple(_load(chance, kind) for kind in (PLAIN, WORK)))
        return
    for name in ("witness", "recorder")[: chance.randint(1, 2)]:
        stand = Stand(
            direction="in",
            type=chance.choice((PLAIN, WORK, "app.*")),
            at=chance.choice(PLACES),
            access="confirm",
            window=chance.choice((1, 8, 64)),
            away_ms=chance.choice((600_000, 600_000, 600_000, 2_000)),
        )
        yield ProgramPlan(name=name, stands=(stand,), habits=_habits(chance, ("never", "twice", "wrong-id", "die")))


def _cast(chance: Chance, node: NodePlan) -> Iterator[ProgramPlan]:
    is_sensor = node.level == "sensor"
    if is_sensor or chance.random() < 0.4:
        kinds = [kind for kind in (PLAIN, WORK, RISK) if chance.random() < 0.7] or [PLAIN]
        yield ProgramPlan(
            name="talk", loads=tuple(_load(chance, kind) for kind in kinds), queue=chance.choice((3, 50, 1_000))
        )
    directions = ("out",) if is_sensor else ("in", "in", "out")
    if chance.random() < 0.5:
        yield _reader(chance)
    if chance.random() < 0.6:
        yield _editor(chance, chance.choice(directions))
    if chance.random() < 0.5:
        yield _censor(chance, chance.choice(directions))
    if not is_sensor and chance.random() < 0.4:
        yield _witness(chance)
    if not is_sensor and chance.random() < 0.3:
        news = Load(type=NEWS, kind="CHILDRENOF", keep="memory", rate_ns=chance.randint(SECOND, 10 * SECOND))
        yield ProgramPlan(name="crier", loads=(news,))


def _load(chance: Chance, kind: str) -> Load:
    return Load(
        type=kind,
        kind=chance.choice(("PARENTSOF", "PARENTSOF", "NEARESTCOORD")),
        rate_ns=chance.randint(SECOND // 2, 6 * SECOND),
        burst=chance.choice((1, 1, 6)),
        want=chance.choice(("spool", "spool", "spool", "none")),
    )


def _reader(chance: Chance) -> ProgramPlan:
    stands = [
        Stand(direction=direction, type=chance.choice(("*", "app.*", PLAIN, NEWS)), at=chance.choice(PLACES))
        for direction in chance.sample(("in", "out"), k=chance.randint(1, 2))
    ]
    return ProgramPlan(name="see", stands=tuple(stands), queue=chance.choice((2, 20, 1_000)))


def _editor(chance: Chance, direction: str) -> ProgramPlan:
    """A program that rewrites: it hands messages back, and its link lets pass what it does not answer."""
    stands = [_stand(chance, direction, WORK, "open") for _ in range(chance.randint(1, 2))]
    habits = _habits(chance, (*MISDEEDS, "fail"))
    return ProgramPlan(name=f"edit-{direction}", stands=tuple(stands), marks=chance.random() < 0.7, habits=habits)


def _censor(chance: Chance, direction: str) -> ProgramPlan:
    stands = [_stand(chance, direction, RISK, chance.choice(POLICIES)) for _ in range(chance.randint(1, 2))]
    habits = (("drop", SHARE // chance.choice((2, 5, 20))), *_habits(chance, (*MISDEEDS, "fail")))
    return ProgramPlan(name=f"censor-{direction}", stands=tuple(stands), marks=chance.random() < 0.5, habits=habits)


def _stand(chance: Chance, direction: str, kind: str, fail: str) -> Stand:
    return Stand(
        direction=direction,
        type=kind,
        at=chance.choice(PLACES),
        access="rw",
        fail=fail,
        timeout_ms=chance.choice((200, 1_000, 5_000)),
        window=chance.choice((1, 2, 8, 64)),
        is_ordered=chance.random() < 0.3,
        is_noself=chance.random() < 0.2,
    )


def _witness(chance: Chance) -> ProgramPlan:
    """A reader that confirms what it has read."""
    stand = Stand(
        direction="in",
        type=chance.choice((WORK, RISK)),
        at=chance.choice(PLACES),
        access="confirm",
        window=chance.choice((1, 8, 64)),
    )
    return ProgramPlan(
        name="witness", stands=(stand,), habits=_habits(chance, ("never", "twice", "wrong-id", "die", "drop"))
    )


def _habits(chance: Chance, known: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """A few bad habits, each rather rare."""
    chosen = [habit for habit in known if chance.random() < 0.4]
    return tuple((habit, SHARE // chance.choice((20, 50, 200))) for habit in chosen)


CASTS: Final = {"mail": _small, "chains": _cast, "readers": _audience}


def befall(nodes: tuple[NodePlan, ...], seed: str, menu: tuple[str, ...], safety_ns: int) -> list[Action]:
    """Draw the faults of programs."""
    made: list[Action] = []
    owners = [node for node in nodes if node.programs]
    for fault, (begin, end) in {
        "programs-die": ("end-program", "run-program"),
        "programs-hang": ("hang-program", "wake-program"),
    }.items():
        chance = Chance(f"{seed}/fault/{fault}")
        for _ in range(chance.randint(2, 8) if fault in menu else 0):
            node = chance.choice(owners)
            name = chance.choice(node.programs).name
            at = chance.randrange(SECOND, safety_ns)
            until = at + chance.randint(SECOND // 10, 20 * SECOND)
            made.append(Action(at, begin, node.name, how=name))
            made += [Action(until, end, node.name, how=name)] if until < safety_ns else []
    return made


def settings_of(scenario: str) -> dict[str, Any]:
    """What else a plan of such a scenario says."""
    return {"mail": TYPES} if scenario in MAILS else {}
