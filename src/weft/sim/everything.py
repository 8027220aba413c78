"""Draws whole nodes: all protocols at once, on a fleet that places itself or on a tree whose programs send mail.

The fabric and its faults are those of the scenarios `small-fleet` and `mail`. Store, catalog, documents and clients of
the Clone pattern are added, each with its own workload and a few faults of its own.
"""

from typing import Final

import msgspec

from weft.base.chance import Chance
from weft.base.now import MILLISECOND, SECOND
from weft.sim import catalogplan, documentplan, storeplan
from weft.sim.plan import Action, CatalogPlan, DocumentPlan, HostPlan, NodePlan, Plan, StorePlan

EVERYTHING: Final = ("everything", "everything-fleet", "everything-tree")
"""Scenarios: either of the two that follow; on fleets; on trees."""
VARIANTS: Final = (
    *("rates in a partition", "collectors come and go", "the root comes and goes", "writes on both sides"),
    *("flapping", "a storm"),
)
"""The variants of fleets in which no node dies for good: a store would wait for changes that only the dead node has."""
BEGIN_NS: Final = 25 * SECOND  # by then all nodes of a fleet have joined
CATALOG_FAULTS: Final = ("die", "leave", "stand_still", "cut", "give_up", "forge", "meddle")
CLONE_KEYS: Final = 6
CLOCK_MS: Final = 2_000  # of the store: long enough for fleets whose silences last seconds


def enrich(plan: Plan, seed: str) -> Plan:
    """The same plan with store, catalog, documents and Clone clients on its nodes."""
    chance = Chance(f"{seed}/everything")
    names = tuple(node.name for node in plan.nodes)
    root = next(node.name for node in plan.nodes if node.level == "root")
    below = tuple(name for name in names if name != root)
    brokers = tuple(chance.sample(below, k=min(len(below), 2)))
    editing = tuple(chance.sample(below, k=min(len(below), chance.randint(2, 3))))
    begin = min(BEGIN_NS, plan.safety_ns // 2)
    hosts = catalogplan.hosts_of(Chance(f"{seed}/hosts"), brokers, chance.randint(2, 4), 1)
    hosts += tuple(HostPlan(name=f"clone{number + 1}", runs="clone", calls=(root, *below)) for number in range(2))
    actions = [*plan.actions, Action(begin // 2, "found", root)]
    actions += _of_store(seed, names, begin, plan.safety_ns)
    actions += _of_catalog(seed, brokers, hosts, begin, plan.safety_ns)
    actions += documentplan.entries(
        documentplan.Draw(chance=Chance(f"{seed}/entries"), names=editing, begin_ns=begin, end_ns=plan.safety_ns),
        chance.randint(5, 30),
    )
    actions += _of_clones(Chance(f"{seed}/clones"), begin, plan.safety_ns)
    return msgspec.structs.replace(
        plan,
        store=StorePlan(clock_ms=CLOCK_MS),
        catalog=CatalogPlan(),
        documents=DocumentPlan(is_quick=True),
        hosts=hosts,
        nodes=tuple(_node(node, names, brokers, editing) for node in plan.nodes),
        actions=tuple(sorted(actions, key=lambda action: action.at)),
        settle_ns=max(plan.settle_ns, 400 * SECOND),
    )


def share(plan: Plan, seed: str) -> Plan:
    """The same plan with a store on all of its nodes, and a document on some: what has no foreign protocol."""
    chance = Chance(f"{seed}/share")
    names = tuple(node.name for node in plan.nodes)
    root = next(node.name for node in plan.nodes if node.level == "root")
    editing = tuple(chance.sample(names, k=min(len(names), chance.randint(2, 3))))
    begin = min(BEGIN_NS, plan.safety_ns // 2)
    actions = [*plan.actions, Action(begin // 2, "found", root), *_of_store(seed, names, begin, plan.safety_ns)]
    actions += documentplan.entries(
        documentplan.Draw(chance=Chance(f"{seed}/entries"), names=editing, begin_ns=begin, end_ns=plan.safety_ns),
        chance.randint(5, 15),
    )
    nodes = (_node(node, names, (), editing) for node in plan.nodes)
    return msgspec.structs.replace(
        plan,
        store=StorePlan(clock_ms=CLOCK_MS),
        documents=DocumentPlan(is_quick=True),
        nodes=tuple(msgspec.structs.replace(node, serves_clones=False) for node in nodes),
        actions=tuple(sorted(actions, key=lambda action: action.at)),
        settle_ns=max(plan.settle_ns, 400 * SECOND),
    )


def _node(node: NodePlan, names: tuple[str, ...], brokers: tuple[str, ...], editing: tuple[str, ...]) -> NodePlan:
    others = tuple(name for name in names if name != node.name)
    return msgspec.structs.replace(
        node,
        peers=others,
        watchers=int(node.name in brokers),
        is_broker=node.name in brokers,
        sessions=("bout",) if node.name in editing else (),
        meets=tuple(name for name in editing if name != node.name) if node.name in editing else (),
        serves_clones=node.level in ("root", "auto"),
    )


def _of_store(seed: str, names: tuple[str, ...], begin: int, end: int) -> list[Action]:
    chance = Chance(f"{seed}/asks")
    draw = storeplan.Draw(chance=chance, names=names, begin_ns=begin, end_ns=end, clock_ns=CLOCK_MS * MILLISECOND)
    return storeplan.asks(draw, chance.randint(20, 80), begin)


def _of_catalog(seed: str, brokers: tuple[str, ...], hosts: tuple[HostPlan, ...], begin: int, end: int) -> list[Action]:
    chance = Chance(f"{seed}/catalog")
    menu = tuple(name for name in CATALOG_FAULTS if chance.random() < 0.4)
    services, watchers = catalogplan.split(hosts)
    draw = catalogplan.Draw(
        chance=chance, root="", brokers=brokers, services=services, watchers=watchers, begin_ns=begin, end_ns=end
    )
    return catalogplan.befall(seed, menu, draw)


def _of_clones(chance: Chance, begin: int, end: int) -> list[Action]:
    made = []
    for number in range(chance.randint(4, 20)):
        at, name = chance.randrange(begin, end), f"clone{chance.randint(1, 2)}"
        second = 0 if chance.random() < 0.2 else number + 1
        made.append(Action(at, "write-clone", name, number=chance.randrange(CLONE_KEYS), second=second))
    return made
