"""The plan of a run: everything that is drawn, drawn before it begins, as JSON of timed actions (SIM-006).

A run is a pure function of its plan and of the code. All numbers are integers: nanoseconds, bytes, and shares in
65,536ths, so that a plan reads back as it was written on any machine.
"""

from hashlib import blake2b
from typing import Any, Final

import msgspec

from weft.base.errors import UserError
from weft.base.now import MILLISECOND, SECOND

FORMAT: Final = 1
PLAN_BYTES_MAX: Final = 1 << 20
EPOCH_NS: Final = 1_795_227_290 * SECOND  # a correct wall clock at the start of a run: late in 2026
BASE_PORT: Final = 27_500
CATALOG_PORT: Final = 5_246  # of every broker; its events are on the next one
BRIDGE_PORT: Final = CATALOG_PORT + 3
RELAY_PORT: Final = CATALOG_PORT + 4
"""Port of a broker's first relay for calls over a bridge; the others follow."""
DOCUMENT_PORT: Final = 50_000  # of a node's first session; the others follow
CLONE_PREFIX: Final = "/clone/"
"""What clients of the Clone pattern may write."""
CLONE_PORT: Final = 27_600  # of a root's snapshots in the dialect of the Clone pattern


class Metric(msgspec.Struct, frozen=True):
    """A metric of a node."""

    name: str
    detail: str
    rate_ns: int
    series: int = 1
    """How many series the meters answer with."""


class GroupPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A group of a fleet that places itself; all names are those of nodes."""

    name: str
    collectors: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    parent: str = ""
    """The group whose collectors are above its own."""
    fanout: int = 64
    metrics: tuple[Metric, ...] = ()


class FleetPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet that places itself: the contents of its first root's file."""

    name: str
    heartbeat_ms: int = 1_000
    dead_after: int = 5
    quorum: str = "majority"
    groups: tuple[GroupPlan, ...] = ()
    hands_over: tuple[str, ...] = ()
    """Types of messages that each node hands to its parent, and the root to its journal."""


class Stand(msgspec.Struct, frozen=True, kw_only=True):
    """One registration of a program; its number is its place in the program's plan."""

    direction: str
    type: str
    at: int = 0
    """Its position in the chain; 0: after all others, -1: before all."""
    access: str = "ro"
    """`ro`, `rw`, or `confirm`."""
    fail: str = ""
    timeout_ms: int = 5_000
    window: int = 64
    is_ordered: bool = False
    is_noself: bool = False
    away_ms: int = 600_000
    """How long it may stay away, if it confirms."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """The messages that a program sends."""

    type: str
    kind: str = "PARENTSOF"
    rate_ns: int = SECOND
    burst: int = 1
    """Messages in one multipart at most."""
    keep: str = "disk"
    want: str = "spool"


class ProgramPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A program on a machine, a client of its node's chains."""

    name: str
    loads: tuple[Load, ...] = ()
    stands: tuple[Stand, ...] = ()
    marks: bool = False
    """Whether it appends its name to what it hands back."""
    habits: tuple[tuple[str, int], ...] = ()
    """What else it does with a message while there are faults, and the share of messages."""
    queue: int = 1_000
    """Multiparts that may wait for it."""


class MailType(msgspec.Struct, frozen=True, kw_only=True):
    """A type of messages, and what may be expected of it in this plan."""

    name: str
    is_whole: bool = True
    """True: no program on the way deletes one or ends it, so every spooled one reaches the root."""
    is_ordered: bool = True
    """True: no program on the way hands one back after a later one."""


class StorePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A store that all nodes of the plan hold."""

    clock_ms: int = 5_000
    ping_length: int = 4
    chain_length: int = 5
    megabytes: int = 0
    """Of memory for the store of each node; 0: its usual share."""


class CatalogPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What the brokers of the plan have in common."""

    beacon_ms: int = 1_000
    reap_ms: int = 600_000
    is_bridged: bool = False
    """Whether brokers share all their services over bridges."""
    transit: bool = False
    """Whether what comes over one bridge goes on over the others."""


class DocumentPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What the document sessions of the plan have in common."""

    schema: str = "derby"
    is_quick: bool = False
    """Whether beats, and the silence after which a peer is gone, are a fifth of the usual."""


class HostPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A machine without a node, and the program on it."""

    name: str
    runs: str
    """`service`, `watcher` or `caller` of a catalog, or `clone`, a client of the Clone pattern."""
    calls: tuple[str, ...] = ()
    """Nodes that it calls, in turn; a service that names none follows the beacon of `net`."""
    net: str = ""
    """A node whose beacon it follows."""
    is_open: bool = False
    """Whether the service lets its broker check it, and copy its messages."""
    interval_ms: int = 1_000
    start_at: int = 0
    drift_ppm: int = 0


class NodePlan(msgspec.Struct, frozen=True, kw_only=True):
    """One machine and the node on it."""

    name: str
    level: str
    """As its file says it; `auto`: the root decides."""
    parent: str = ""
    fleet: str = ""
    """The name of one of the plan's fleets; empty: the files of nodes name their parents."""
    join: tuple[str, ...] = ()
    """Nodes that it calls to join its fleet."""
    runs: tuple[str, ...] | None = None
    """Its cores; None: what its level needs."""
    by_beacon: bool = False
    """Whether the parent is found by its name, not by its address."""
    twin_of: str = ""
    """A second machine whose file claims to be that node; it runs only while an action lets it."""
    start_at: int = 0
    drift_ppm: int = 0
    offset_ns: int = 0
    metrics: tuple[Metric, ...] = ()
    flush_ns: int = SECOND
    journal_bytes: int = 64 << 20
    segment_records: int = 256
    snapshot_records: int = 1_024
    sync_least_ns: int = 50_000
    sync_spread_ns: int = 2 * MILLISECOND
    late_ns: int = 5 * MILLISECOND
    """How late a wake-up comes at most, on a machine that is not suspended (SIM-003)."""
    queue_messages: int = 0
    """How many updates may wait for it at its parent; 0: as many as the sockets take."""
    hangs: int = 0
    """Share of readings that come late or fail."""
    hands_over: tuple[str, ...] = ()
    """Types of messages that it forwards to its parent, or puts into its journal if it is the root (CHN-068)."""
    programs: tuple[ProgramPlan, ...] = ()
    peers: tuple[str, ...] = ()
    """Nodes that its file names as holders of the store."""
    watchers: int = 0
    """Clients of its store that watch everything."""
    is_broker: bool = False
    """Whether it is a broker of services."""
    bridges: tuple[str, ...] = ()
    """Nodes to whose brokers its own opens bridges."""
    sessions: tuple[str, ...] = ()
    """Documents that it edits, by the names of their sessions."""
    meets: tuple[str, ...] = ()
    """Nodes that its file names as peers of every session."""
    annexes: dict[str, dict[str, Any]] = {}
    """Tables of protocols that are installed beside Weft, as its file has them (HSE-007)."""
    serves_clones: bool = False
    """Whether it answers clients of the Clone pattern, as long as it is the root."""


class Link(msgspec.Struct, frozen=True):
    """The cable between two nodes, the same in both directions."""

    here: str
    there: str
    least_ns: int
    spread_ns: int


class Weather(msgspec.Struct, frozen=True):
    """Loss, duplication, delay and damage of datagrams while there are faults; shares in 65,536ths."""

    loss: int = 0
    duplication: int = 0
    reordering: int = 0
    damage: int = 0
    late_ns: int = 0


class Action(msgspec.Struct, frozen=True, omit_defaults=True):
    """What happens at `at`; the meaning of the fields stands with each action in `sim.faults`."""

    at: int
    do: str
    node: str = ""
    other: str = ""
    how: str = ""
    number: int = 0
    second: int = 0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run."""

    format: int = FORMAT
    seed: str
    scenario: str
    menu: tuple[str, ...] = ()
    """Which faults can occur in this run."""
    beat_ms: int = 1_000
    dead_ms: int = 5_000
    beacons: bool = False
    closed: bool = False
    """Whether its nodes have keys, and accept only each other."""
    keys_change: bool = False
    """Whether keys stand in the configuration and may change; else all nodes know all keys from the beginning."""
    lake_rows: int = 100_000
    lake_age_ms: int = 1_000
    lake_idle_ms: int = 300
    lake_failures: int = 0
    """Share of segments that the lake refuses while there are faults."""
    weather: Weather = Weather()
    fleets: tuple[FleetPlan, ...] = ()
    store: StorePlan | None = None
    catalog: CatalogPlan | None = None
    documents: DocumentPlan | None = None
    mail: tuple[MailType, ...] = ()
    """Types of messages that programs send; none: no programs."""
    queue: int = 0
    """How many messages a socket takes for one peer at one instant; 0: as many as its channel says."""
    rare: tuple[str, ...] = ()
    """Rare branches that the cores take in this run: see `sim.rarely`."""
    skips: tuple[str, ...] = ()
    """Rules that the faults of this plan excuse: a root's lost disk takes what it had called safe."""
    nodes: tuple[NodePlan, ...]
    hosts: tuple[HostPlan, ...] = ()
    links: tuple[Link, ...] = ()
    """Cables that differ from `least_ns` and `spread_ns`."""
    least_ns: int = MILLISECOND
    spread_ns: int = MILLISECOND
    actions: tuple[Action, ...] = ()
    safety_ns: int
    """How long there are faults."""
    settle_ns: int
    """How long the fabric may take, after all faults, to deliver everything and come to rest."""


def names_of(plan: Plan) -> list[str]:
    """All machines of a plan, those with a node first."""
    return [node.name for node in plan.nodes] + [host.name for host in plan.hosts]


def write(plan: Plan) -> bytes:
    """The plan as JSON, one line per action, so that it can be read and edited."""
    data = msgspec.to_builtins(plan)
    actions = data.pop("actions")
    head = msgspec.json.format(msgspec.json.encode(data), indent=1).rstrip(b"\n}")
    lines = b",\n".join(b"  " + msgspec.json.encode(action) for action in actions)
    return head + b',\n "actions": [\n' + lines + b"\n ]\n}\n"


def read(data: bytes) -> Plan:
    """The plan of these bytes; UserError `bad-plan`."""
    if len(data) > PLAN_BYTES_MAX:
        raise _refusal(f"longer than {PLAN_BYTES_MAX} bytes")
    try:
        plan = msgspec.json.decode(data, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _refusal(str(error)) from None
    wrong = _mistakes(plan)
    if wrong:
        raise _refusal(wrong)
    return plan


def _mistakes(plan: Plan) -> str:
    listed = names_of(plan)
    names = set(listed)
    if plan.format != FORMAT:
        return f"format {plan.format}, this program reads {FORMAT}"
    if len(names) != len(listed) or not any(node.level == "root" for node in plan.nodes):
        return "every node needs a name of its own, and one has to be the root"
    known = {*names, ""}
    strangers: list[str] = [node.parent for node in plan.nodes if node.parent not in known]
    strangers += [name for node in plan.nodes for name in _named(node) if name not in known]
    strangers += [name for host in plan.hosts for name in (*host.calls, host.net) if name not in known]
    strangers += [name for action in plan.actions for name in (action.node, action.other) if name not in known]
    return f"no node is called {strangers[0]!r}" if strangers else ""


def _named(node: NodePlan) -> tuple[str, ...]:
    """The nodes that its file names, besides its parent."""
    return (*node.join, *node.peers, *node.meets, *node.bridges)


def _refusal(why: str) -> UserError:
    return UserError(
        "bad-plan", f"this is not a plan: {why}", "weft sim --seed 1 --print-plan > plan.json, and edit that"
    )


def plan_hash(plan: Plan) -> str:
    """BLAKE2b-128 of the plan, hex: the name of a run."""
    return blake2b(msgspec.json.encode(plan), digest_size=16).hexdigest()


def pairs(plan: Plan) -> dict[tuple[str, str], tuple[int, int]]:
    """Least delay and spread of each direction between any two nodes."""
    names = names_of(plan)
    table: dict[tuple[str, str], tuple[int, int]] = {
        (here, there): (plan.least_ns, plan.spread_ns) for here in names for there in names if here != there
    }
    for link in plan.links:
        table[link.here, link.there] = table[link.there, link.here] = (link.least_ns, link.spread_ns)
    return table
