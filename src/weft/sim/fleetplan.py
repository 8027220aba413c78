"""Draws fleets that place themselves, and their faults.

A fleet has a root that is named by its file, collectors, and members that only know which addresses to call. Each
variant tries one kind of fault, and leaves others out. At most a quarter of the voters crash permanently; with more, no
majority could elect a root.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import msgspec

from weft.base.chance import Chance
from weft.base.now import MILLISECOND, SECOND
from weft.sim import drawing
from weft.sim.noise import SHARE
from weft.sim.plan import Action, FleetPlan, GroupPlan, Metric, NodePlan, Plan, Weather
from weft.sim.rarely import draw_rare
from weft.sim.strangers import LIES

START_NS: Final = 20 * SECOND  # by then all nodes of a small fleet have joined
BUILT_BEATS: Final = 10
RATES_MS: Final = (500, 1_000, 2_000, 5_000)


@dataclass(frozen=True, kw_only=True)
class Draw(drawing.Draw):
    """What faults of a fleet are drawn from."""

    fleet: FleetPlan
    root: str
    collectors: tuple[str, ...]
    """The nodes directly below the root, by its file."""
    members: tuple[str, ...]
    others: tuple[str, ...]
    """Nodes of other fleets."""

    @property
    def dead_ns(self) -> int:
        return self.fleet.heartbeat_ms * self.fleet.dead_after * MILLISECOND

    @property
    def names(self) -> tuple[str, ...]:
        return (self.root, *self.collectors, *self.members)

    def span(self, most_dead: int = 3) -> int:
        """A span from a fifth of the silence that means death to several times that."""
        return self.chance.randint(self.dead_ns // 5, most_dead * self.dead_ns)


Fault = Callable[[Draw], list[Action]]


def _down(draw: Draw, name: str, how: str, span: int) -> list[Action]:
    chance, at = draw.chance, draw.moment()
    begin = Action(at, "crash", name, how=how, number=chance.randint(0, 1), second=chance.randint(0, 1))
    return draw.lasts(begin, Action(at + span, "start", name))


def crash_root(draw: Draw) -> list[Action]:
    """The root by its file is killed for a while."""
    return _down(draw, draw.root, draw.chance.choice(("kept", "torn")), draw.span())


def crash_collector(draw: Draw) -> list[Action]:
    """A collector is killed for a while, under load."""
    return _down(draw, draw.chance.choice(draw.collectors), draw.chance.choice(("kept", "torn")), draw.span())


def crash_member(draw: Draw) -> list[Action]:
    """A member is killed for a while."""
    return _down(draw, draw.chance.choice(draw.members), draw.chance.choice(("kept", "torn")), draw.span())


def replace_member(draw: Draw) -> list[Action]:
    """A member's machine is replaced, with an empty disk (S9)."""
    return _down(draw, draw.chance.choice(draw.members), "lost", draw.span(1))


def replace_collector(draw: Draw) -> list[Action]:
    """A collector is cut off from the root; then its machine is replaced, with an empty disk, unless it leads."""
    at, name = draw.moment(), draw.chance.choice(draw.collectors)
    cut = draw.lasts(
        Action(at, "cut", name, draw.root, "both"), Action(at + 3 * draw.dead_ns, "mend", name, draw.root, "both")
    )
    died = at + draw.chance.randrange(draw.dead_ns)
    begin = Action(died, "crash", name, "below", "lost", draw.chance.randint(0, 1))
    return [*cut, *draw.lasts(begin, Action(died + draw.span(), "start", name))]


def forget_root(draw: Draw) -> list[Action]:
    """The root's disk is lost; it returns before its silence is noticed, or later (S8)."""
    return _down(draw, draw.root, "lost", draw.chance.randint(SECOND // 5, 2 * draw.dead_ns))


def age_root(draw: Draw) -> list[Action]:
    """The root returns with an old disk before its silence is noticed: its numbers are lower (CFG-034)."""
    at = draw.moment()
    return [
        Action(max(1, at - draw.span(4)), "image", draw.root),
        Action(at, "crash", draw.root, how="old", number=1),
        Action(at + draw.dead_ns // 4, "start", draw.root),
    ]


def bury_root(draw: Draw) -> list[Action]:
    """The root dies for good."""
    return [Action(draw.moment(), "bury", draw.root, number=draw.chance.randint(0, 1))]


def bury_collector(draw: Draw) -> list[Action]:
    """A collector dies for good."""
    return [Action(draw.moment(), "bury", draw.chance.choice(draw.collectors), number=draw.chance.randint(0, 1))]


def return_root(draw: Draw) -> list[Action]:
    """The old root returns after ten times the silence that means death (S7)."""
    at = draw.begin_ns + draw.chance.randrange(draw.dead_ns)
    return [Action(at, "crash", draw.root, how="kept"), Action(at + 10 * draw.dead_ns, "start", draw.root)]


def heirs_die(draw: Draw) -> list[Action]:
    """The root is killed for good, and soon a collector for a while, which may be the best candidate (S5)."""
    at, name = draw.moment(), draw.chance.choice(draw.collectors)
    died = at + draw.chance.randrange(2 * draw.dead_ns)
    begin = Action(died, "crash", name, how=draw.chance.choice(("kept", "torn")), number=draw.chance.randint(0, 1))
    return [Action(at, "bury", draw.root, number=1), begin, Action(died + draw.span(), "start", name)]


def _part(draw: Draw, here: list[str], most_dead: int) -> list[Action]:
    at, span, made = draw.moment(), draw.span(most_dead), []
    for one in here:
        for other in draw.names:
            if other not in here:
                made += draw.lasts(Action(at, "cut", one, other), Action(at + span, "mend", one, other))
    return made


def partition(draw: Draw) -> list[Action]:
    """The fleet falls into two parts, drawn at random."""
    here = [name for name in draw.names if draw.chance.random() < 0.5]
    return _part(draw, here, 4)


def part_root(draw: Draw) -> list[Action]:
    """The root and a few others are cut off from the rest (S2, S6)."""
    here = [draw.root, *(name for name in draw.names[1:] if draw.chance.random() < 0.2)]
    return _part(draw, here, 4)


def cut_off(draw: Draw) -> list[Action]:
    """One node is cut off from all others for a while."""
    return _part(draw, [draw.chance.choice(draw.names)], 2)


def flap(draw: Draw) -> list[Action]:
    """A cable is cut and restored again and again, about every D (S12)."""
    one, other = draw.chance.sample(draw.names, k=2)
    at, made = draw.moment(), []
    for _ in range(draw.chance.randint(2, 6)):
        down = draw.chance.randint(draw.dead_ns // 3, 3 * draw.dead_ns // 2)
        made += draw.lasts(Action(at, "cut", one, other), Action(at + down, "mend", one, other))
        at += down + draw.chance.randint(draw.dead_ns // 3, 2 * draw.dead_ns)
        if at >= draw.end_ns:
            break
    return made


def slow(draw: Draw) -> list[Action]:
    """All cables of a node are slow: messages take up to three times the silence that means death."""
    name, at, made = draw.chance.choice(draw.names), draw.moment(), []
    least, span = draw.chance.randint(20 * MILLISECOND, 3 * draw.dead_ns), draw.span()
    for other in draw.names:
        if other != name:
            begin = Action(at, "slow", name, other, "both", least, least // 2)
            made += draw.lasts(begin, Action(at + span, "slow", name, other, "both"))
    return made


def pause(draw: Draw) -> list[Action]:
    """A process is paused for a while."""
    name, at = draw.chance.choice(draw.names), draw.moment()
    return draw.lasts(Action(at, "pause", name), Action(at + draw.span(), "resume", name))


def step(draw: Draw) -> list[Action]:
    """A wall clock is set by an hour; back only where no disk forgets its eras."""
    by = 3_600 * SECOND * draw.chance.choice((-1, 1))
    return [Action(draw.moment(), "step", draw.chance.choice(draw.names), number=by)]


def write(draw: Draw) -> list[Action]:
    """Somebody changes rates, at whoever is the root."""
    made, chance = [], draw.chance
    for _ in range(chance.randint(3, 12)):
        group = chance.choice(draw.fleet.groups).name
        key = f"{group}/metric/w{chance.randint(1, 3)}"
        ack = chance.choice((0, 1, 1, 2))
        made.append(Action(draw.moment(), "write", draw.root, how=key, number=chance.randint(1_000, 9_999), second=ack))
    return made


def write_for_nobody(draw: Draw) -> list[Action]:
    """Somebody writes more often than nodes beat, where no sensor replicates it; nothing else happens (CFG-045)."""
    step_ns = draw.dead_ns // 12
    return [
        Action(draw.begin_ns + index * step_ns, "write", draw.root, how=f"nobody/w{index % 4}", number=1_000 + index)
        for index in range(12 * 8)
    ]


def crowd(draw: Draw) -> list[Action]:
    """A member is paused again and again, so that its queue of updates fills while many rates change (S10)."""
    name, made = draw.chance.choice(draw.members), []
    for _ in range(3):
        at = draw.moment()
        made += draw.lasts(Action(at, "pause", name), Action(at + draw.dead_ns // 2, "resume", name))
        made += [
            Action(
                at + index * SECOND // 50, "write", draw.root, how=f"{draw.fleet.groups[0].name}/metric/w1", number=ms
            )
            for index, ms in enumerate(range(1_000, 1_012))
        ]
    return made


def lagging_heir(draw: Draw) -> list[Action]:
    """A collector misses what a majority has confirmed; then the root dies for good, before the collector is missed."""
    at, name, made = draw.moment(), draw.chance.choice(draw.collectors), []
    key = f"{draw.fleet.groups[0].name}/metric/w1"
    for index in range(3):
        when = at + (index + 1) * draw.dead_ns // 8
        made.append(Action(when, "write", draw.root, how=key, number=draw.chance.randint(1_000, 9_999), second=1))
    died = at + draw.dead_ns * 3 // 4
    return [
        Action(at, "cut", name, draw.root),
        *made,
        Action(died, "bury", draw.root, number=1),
        Action(died, "mend", name, draw.root),
    ]


def restart_after_giving_up(draw: Draw) -> list[Action]:
    """A root gives up as many voters as it may, restarts, and loses one more: together these could elect a root.

    They lose contact at nearly the same time, so that none of them knows that others were given up. Writes go to this
    root.
    """
    beat, at = draw.fleet.heartbeat_ms * MILLISECOND, draw.begin_ns + draw.chance.randrange(draw.dead_ns)
    enough = (len(draw.collectors) + 1) // 2 + 1
    away = draw.chance.sample(draw.collectors, k=enough)
    down, made = at + draw.dead_ns + beat * draw.chance.randint(4, 12) // 2, []
    for one in away:
        lost = at + 2 * beat if one is away[-1] else at + draw.chance.randrange(beat // 4)
        made += [Action(lost, "cut", one, other) for other in draw.names if other not in away]
    made += [Action(down, "crash", draw.root, how="kept", number=draw.chance.randint(0, 1))]
    made += [Action(down + draw.chance.randint(beat // 4, 2 * beat), "start", draw.root)]
    key = f"{draw.fleet.groups[0].name}/metric/w1"
    for number in range(8):
        when = down + (4 + number) * draw.dead_ns // 2
        rate = draw.chance.randint(1_000, 9_999)
        made.append(Action(when, "write", draw.root, draw.root, how=key, number=rate, second=1))
    return [action for action in made if action.at < draw.end_ns]


def ring(draw: Draw) -> list[Action]:
    """Voters stand in a ring and reach only their nearest: each sees a majority, and no two the same one."""
    voters = [draw.root, *draw.collectors]
    draw.chance.shuffle(voters)
    count = len(voters)
    reach = -(-(count // 2) // 2)  # the fewest neighbours on each side that make a majority with oneself
    pairs = [
        (voters[here], voters[there])
        for here in range(count)
        for there in range(here)
        if min(here - there, count - here + there) > reach
    ]
    return _apart(draw, pairs, 4)


def bridge(draw: Draw) -> list[Action]:
    """The fleet falls into two halves, and one collector is in reach of both."""
    keystone = draw.chance.choice(draw.collectors)
    here = [name for name in draw.names if name != keystone and draw.chance.random() < 0.5]
    there = [name for name in draw.names if name != keystone and name not in here]
    return _apart(draw, [(one, other) for one in here for other in there], 4)


def _apart(draw: Draw, pairs: list[tuple[str, str]], most_dead: int) -> list[Action]:
    """Cut these cables at once, and restore them one by one."""
    at, span, made = draw.moment(), draw.span(most_dead), []
    for one, other in pairs:
        mended = at + span + draw.chance.randint(0, draw.dead_ns)
        made += draw.lasts(Action(at, "cut", one, other), Action(mended, "mend", one, other))
    return made


def break_snapshots(draw: Draw) -> list[Action]:
    """Nodes restart, and while they ask for a snapshot TCP breaks the connection, which comes back by itself."""
    made, group = [], draw.fleet.groups[0].name
    for number in range(40):  # enough pairs for several portions
        at = draw.begin_ns + number * MILLISECOND
        made.append(Action(at, "write", draw.root, how=f"{group}/metric/p{number}", number=5_000 + number, second=2))
    for _ in range(4):
        name, at = draw.chance.choice(draw.collectors), draw.moment()
        lag = draw.chance.randint(20, 200) * MILLISECOND
        made += [Action(at, "crash", name, how="kept", number=1), Action(at + SECOND, "start", name)]
        made += [Action(at, "slow", name, draw.root, "both", lag, lag // 10)]
        made += draw.lasts(made[-1], Action(at + draw.dead_ns + 10 * SECOND, "slow", name, draw.root, "both"))[1:]
        for _ in range(8):
            broken = at + SECOND + draw.chance.randint(0, 20 * lag)
            made.append(Action(broken, "give-up", name, how="ask", number=draw.chance.randint(1, 50) * MILLISECOND))
    return made


def lie(draw: Draw) -> list[Action]:
    """Somebody sends false messages again and again, without a proof; sometimes while the root is silent."""
    at, made, how = draw.moment(), [], draw.chance.choice(FLEET_LIES)
    if how.startswith("vote") or draw.chance.random() < 0.3:
        for name in draw.names[1:]:
            made += draw.lasts(
                Action(at, "cut", draw.root, name), Action(at + 2 * draw.dead_ns, "mend", draw.root, name)
            )
    for _ in range(4):
        at += draw.chance.randint(draw.dead_ns // 5, draw.dead_ns // 2)
        made += [Action(at, "lie", name, how=how) for name in draw.names if at < draw.end_ns]
    return made


def impostor(draw: Draw) -> list[Action]:
    """A collector is killed, and a stranger listens at its address until it is back."""
    name, at = draw.chance.choice(draw.collectors), draw.moment()
    back = Action(at + draw.chance.randint(draw.dead_ns // 2, 4 * draw.dead_ns), "start", name)
    begin = Action(at, "crash", name, how="kept", number=1)
    return [*draw.lasts(begin, back), Action(at + MILLISECOND, "impostor", name)]


HARD_LIES: Final = ("vote for me in a far epoch", "your place is below me")
FLEET_LIES: Final = (*(name for name in LIES if name != "your parent is elsewhere"), *HARD_LIES, *HARD_LIES)
"""False messages sent to a fleet; the worst are the most frequent."""


def timed_root(draw: Draw) -> list[Action]:
    """The root dies for good, and nothing else is wrong (REC-013)."""
    return [Action(draw.end_ns - 3 * draw.dead_ns - 10 * SECOND, "bury", draw.root, number=1, second=1)]


def timed_collector(draw: Draw) -> list[Action]:
    """A collector dies for good, and nothing else is wrong (REC-005)."""
    at = draw.end_ns - 3 * draw.dead_ns - 10 * SECOND
    return [Action(at, "bury", draw.chance.choice(draw.collectors), number=1, second=1)]


def damage(draw: Draw) -> list[Action]:
    """The journal of the root, of a collector or of a member is harmed while it is away."""
    name = draw.chance.choice((draw.root, *draw.collectors, *draw.collectors, draw.chance.choice(draw.members)))
    return draw.damage(name, is_replaceable=name != draw.root)


CALM: Final[tuple[Fault, ...]] = (crash_member, step, write)
STORM: Final[tuple[Fault, ...]] = (
    crash_root,
    crash_collector,
    crash_member,
    partition,
    part_root,
    cut_off,
    flap,
    slow,
    pause,
    step,
    write,
)
SMALL: Final = (2, 8)


FORGOTTEN: Final = ("complete", "durable", "wall", "kept", "exactly_once", "linearizable")
"""What a root's lost disk takes with it."""


class Variant(NamedTuple):
    """One of the scenarios: what may happen, how often, in fleets of how many members."""

    faults: tuple[Fault, ...]
    times: int = 2
    members: tuple[int, int] = SMALL
    fleets: int = 1
    skips: tuple[str, ...] = ()
    is_massed: bool = False
    """All start within a second."""
    queue: int = 0
    is_quick: bool = False
    fanouts: tuple[int, ...] = ()
    """Small fan-outs: collectors are added when others die."""


VARIANTS: Final[dict[str, Variant]] = {
    "mass start": Variant((write,), 1, (12, 36), is_massed=True),
    "rates in a partition": Variant((partition, part_root, write)),
    "collectors die": Variant((bury_collector, *CALM), 1),
    "collectors come and go": Variant((crash_collector, *CALM), 3),
    "the root dies": Variant((bury_root, *CALM), 1),
    "the root dies, then its heir": Variant((heirs_die, write), 1),
    "a lagging heir": Variant((lagging_heir, crash_member), 1),
    "the root comes and goes": Variant((crash_root, crash_root, *CALM)),
    "writes on both sides": Variant((part_root, write, write), 1),
    "an old root returns": Variant((return_root, write), 1),
    "the root forgets": Variant((forget_root, write), 1, skips=FORGOTTEN),
    "the root's disk is an old one": Variant((age_root, write, write), 1, skips=FORGOTTEN),
    "a member forgets": Variant((replace_member, write)),
    "a full queue": Variant((crowd, write), 1, queue=4),
    "flapping": Variant((flap, flap, write)),
    "a storm": Variant(STORM),
    "two fleets": Variant((crash_root, crash_collector, cut_off, write), 1, (1, 4), fleets=2),
    "a ring of majorities": Variant((ring, write)),
    "a bridge": Variant((bridge, write)),
    "broken snapshots": Variant((break_snapshots, write, write)),
    "a root that gave up voters": Variant((restart_after_giving_up,), 1, fanouts=(2, 64)),
    "lies": Variant((lie, write)),
    "an impostor": Variant((impostor, write)),
    "machines are replaced while programs send": Variant(
        (replace_collector, crash_root, flap, write), skips=("mail_order",)
    ),
    "damaged journals": Variant((damage, crash_collector, write, write), 3),
    "keys of nobody": Variant((write_for_nobody,), 1),
    "a quick election": Variant((timed_root,), 1, is_quick=True),
    "a quick substitute": Variant((timed_collector,), 1, is_quick=True),
}
"""S1 with S13, S2, S3, S4, S5, S6, S7, S8, S9, S10, S12, everything temporary at once, S14, and the two bounds."""

SMALL_FLEET: Final = "small-fleet"  # at most a dozen nodes, for every day
SHAPES: Final = ("a ring of majorities", "a bridge")
STRANGERS: Final = ("lies", "an impostor")
DAMAGED: Final = "damaged journals"
UNDISTURBED: Final = "keys of nobody"
REPLACED: Final = "machines are replaced while programs send"
OTHERS: Final = (*SHAPES, *STRANGERS, "broken snapshots", "a root that gave up voters", DAMAGED, REPLACED, UNDISTURBED)
"""Those with scenarios of their own."""
FLEET_MAIL: Final = "fleet-mail"  # `programplan` adds the programs
NARROW: Final = "narrow"  # sockets take few messages at once, so every snapshot is refused halfway
TIGHT: Final = (NARROW, "snapshots")
QUEUES: Final = (8, 9, 12)  # no lower: the eight questions of one child are sent at once, and fit any real socket
FLEET_SCENARIOS: Final[dict[str, tuple[str, ...]]] = {
    "fleet": tuple(name for name in VARIANTS if name not in OTHERS),
    "deaths": ("collectors die", "the root dies", "the root dies, then its heir", "a storm", "writes on both sides"),
    SMALL_FLEET: tuple(name for name in VARIANTS if name not in ("mass start", *OTHERS)),
    "quick": ("a quick election", "a quick substitute"),
    "heirs": ("a lagging heir",),
    "neighbours": ("two fleets",),
    "splits": ("writes on both sides", "rates in a partition"),
    NARROW: ("collectors come and go", "the root comes and goes"),
    "shapes": SHAPES,
    "liars": STRANGERS,
    "snapshots": ("broken snapshots",),
    "memories": ("the root forgets", "the root's disk is an old one"),
    "given-up": ("a root that gave up voters",),
    "fleet-damages": (DAMAGED,),
    "undisturbed": (UNDISTURBED,),
    FLEET_MAIL: (REPLACED,),
}
"""Scenarios of fleets that place themselves, and the variants that they draw from."""
FLEET_NAME: Final = "grove"  # tidy: nodes draw their delays by it, so every known seed holds it
DRAWN_AS: Final = {"fleet": "grove", SMALL_FLEET: "copse"}  # tidy: seeds draw by these words
"""What these scenarios were called once: with other words, every known seed would draw another plan."""


def draw_fleet(seed: str, scenario: str, among: tuple[str, ...] = ()) -> Plan:
    """The plan of a seed; `among`: the variants to draw from, if not those of the scenario."""
    chance = Chance(f"{seed}/grove/{DRAWN_AS.get(scenario, scenario)}")  # tidy: see DRAWN_AS
    name = chance.choice(among or FLEET_SCENARIOS[scenario])
    variant = VARIANTS[name]
    heartbeat_ms, dead_after = chance.choice((500, 1_000, 2_000)), chance.choice((3, 4, 5))
    if scenario == SMALL_FLEET:
        heartbeat_ms, variant = 500, variant._replace(members=(1, 4))
    dead_ns = heartbeat_ms * dead_after * MILLISECOND
    begin_ns = START_NS + BUILT_BEATS * heartbeat_ms * MILLISECOND
    safety_ns = begin_ns + 12 * dead_ns + 20 * SECOND
    fleets, nodes, actions = [], [], []
    for number in range(variant.fleets):
        drawn = _fleet(Chance(f"{seed}/fleet/{number}"), number, variant, (heartbeat_ms, dead_after))
        fleets.append(drawn.fleet)
        nodes += _nodes(Chance(f"{seed}/nodes/{number}"), drawn, variant)
        actions += _faults(seed, replace(drawn, begin_ns=begin_ns, end_ns=safety_ns), variant)
    delay = MILLISECOND if variant.is_quick else chance.choice((1, 5, 20)) * MILLISECOND
    weather = Weather(loss=0 if variant.is_quick else chance.randint(0, SHARE * 3 // 10), late_ns=SECOND)
    return Plan(
        seed=seed,
        scenario=scenario,
        rare=draw_rare(seed),
        menu=(name, *dict.fromkeys(fault.__name__ for fault in variant.faults)),
        beacons=chance.random() < 0.5,
        lake_rows=chance.choice((50, 100_000)),
        weather=weather,
        fleets=tuple(fleets),
        queue=chance.choice(QUEUES) if scenario in TIGHT else 0,
        skips=variant.skips,
        nodes=drawing.with_small_segments(nodes, Chance(f"{seed}/segments"))
        if damage in variant.faults
        else tuple(nodes),
        least_ns=delay // 2,
        spread_ns=delay,
        actions=tuple(sorted(actions, key=lambda action: action.at)),
        safety_ns=safety_ns,
        settle_ns=300 * SECOND,
    )


def _fleet(chance: Chance, number: int, variant: Variant, times: tuple[int, int]) -> Draw:
    """A root, three to five collectors below it, and members in one to three groups, of which one may lie lower."""
    mark = "xyz"[number - 1] if number else ""
    collectors = tuple(f"{mark}c{index}" for index in range(1, chance.randint(3, 5) + 1))
    members = tuple(f"{mark}m{index}" for index in range(1, chance.randint(*variant.members) + 1))
    metric = Metric("load", "CPU", chance.choice(RATES_MS) * MILLISECOND)
    fanout = chance.choice(variant.fanouts) if variant.fanouts else GroupPlan(name="").fanout
    groups = [GroupPlan(name=f"{mark}g1", collectors=collectors, members=members, metrics=(metric,), fanout=fanout)]
    root = f"{mark}root"
    if len(members) >= 4 and chance.random() < 0.6:
        cut = chance.randint(1, len(members) - 2)
        lower, rest = members[:cut], members[cut:]
        parent = groups[0].name if chance.random() < 0.7 else ""
        groups[0] = msgspec.structs.replace(groups[0], members=(root, *rest))
        named = lower[:1] if chance.random() < 0.5 else ()
        groups.append(GroupPlan(name=f"{mark}g2", members=lower, collectors=named, parent=parent, metrics=(metric,)))
    fleet = FleetPlan(name=mark + FLEET_NAME, heartbeat_ms=times[0], dead_after=times[1], groups=tuple(groups))
    return Draw(
        chance=chance, fleet=fleet, root=root, collectors=collectors, members=members, others=(), begin_ns=0, end_ns=0
    )


def _nodes(chance: Chance, drawn: Draw, variant: Variant) -> list[NodePlan]:
    calls = (drawn.root, *drawn.collectors[:2])
    made = []
    for name in drawn.names:
        more: dict[str, Any] = {}
        if chance.random() < 0.3:
            more = {"segment_records": chance.choice((16, 64)), "snapshot_records": chance.choice((32, 128))}
        made.append(
            NodePlan(
                name=name,
                level="root" if name == drawn.root else "auto",
                fleet=drawn.fleet.name,
                join=tuple(other for other in calls if other != name),
                start_at=chance.randint(0, SECOND if variant.is_massed else 5 * SECOND),
                drift_ppm=chance.randint(-200, 200),
                offset_ns=0 if variant.is_quick else chance.randint(-60, 60) * SECOND,
                queue_messages=variant.queue if name in drawn.members else 0,
                **more,
            )
        )
    return made


def _faults(seed: str, drawn: Draw, variant: Variant) -> list[Action]:
    made: list[Action] = []
    for index, fault in enumerate(variant.faults):
        draw = drawn.by(f"{seed}/{drawn.fleet.name}/{fault.__name__}/{index}")
        for _ in range(draw.chance.randint(1, variant.times)):
            made += fault(draw)
    return made
