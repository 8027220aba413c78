"""The settings of a node, from its plan."""

from collections.abc import Callable
from typing import Any, Final

from weft.base.keys import Trust
from weft.base.now import SECOND
from weft.cores.chains.settings import FilterSpec, parse_filters
from weft.cores.measurement.settings import MetricSpec
from weft.node.catalogtable import BridgeTable, CatalogTable
from weft.node.doctable import DocSessionTable, DocTable, DocTimingTable
from weft.node.fleetkeys import canonical
from weft.node.settings import ChpTable, FleetTable, JournalTable, LakeTable, LimitsTable, NodeSettings, NodeTable, Role
from weft.node.storetable import StoreTable
from weft.sim.plan import (
    BASE_PORT,
    BRIDGE_PORT,
    CATALOG_PORT,
    CLONE_PORT,
    CLONE_PREFIX,
    DOCUMENT_PORT,
    CatalogPlan,
    FleetPlan,
    GroupPlan,
    Metric,
    NodePlan,
    Plan,
    StorePlan,
)

FLEET: Final = "simulated"
TIMEOUT_NS: Final = SECOND  # of a metric without a rate
AUTO: Final = "auto"
HANDING: Final = ("forward", "journal")
"""Filters of a node that is not the root, and of one that is; each does nothing where it does not belong."""
QUICK: Final = DocTimingTable(beat=1.0, beat_most=3.0, evasive=2.0, gone=6.0)


def settings_for(  # tidy: each comes from elsewhere
    plan: Plan, node: NodePlan, address_of: Callable[[str], str], role: Role, trust: Trust | None = None
) -> NodeSettings:
    """What the file of this node would say, and what its journal says that it has become."""

    def endpoint(name: str) -> str:
        return f"{address_of(name)}:{BASE_PORT}" if name else ""

    fleet = next((fleet for fleet in plan.fleets if fleet.name == node.fleet), None)
    is_fleet = fleet is not None
    return NodeSettings(
        node=NodeTable(
            name=node.twin_of or node.name,
            level="" if node.level == AUTO else node.level,
            parent=node.parent if node.by_beacon else endpoint(node.parent),
            join=tuple(map(endpoint, node.join)),
            host=address_of(node.name),
            port=BASE_PORT,
            beacons=plan.beacons,
            flush_s=node.flush_ns / 1e9,
            runs=node.runs,
        ),
        fleet=_fleet_table(plan, fleet),
        lake=LakeTable(rows=plan.lake_rows, age_s=plan.lake_age_ms / 1e3, idle_s=plan.lake_idle_ms / 1e3),
        journal=JournalTable(),
        metrics=() if is_fleet else tuple(map(_spec, node.metrics)),
        filters=filters_of(node),
        follows=is_fleet,
        pairs=pairs_of(fleet, endpoint) if fleet is not None and node.level == "root" else (),
        role=role,
        trust=trust,
        limits=LimitsTable(cores={"store": plan.store.megabytes} if plan.store and plan.store.megabytes else {}),
        store=None if plan.store is None else _store_table(plan.store, tuple(map(endpoint, node.peers))),
        catalog=_catalog_table(plan.catalog, node, address_of) if plan.catalog is not None and node.is_broker else None,
        doc=_doc_table(plan, node, address_of) if plan.documents is not None and node.sessions else None,
        annexes=node.annexes,
        chp=ChpTable(port=CLONE_PORT, writable=(CLONE_PREFIX,)) if node.serves_clones else ChpTable(),
    )


def _catalog_table(catalog: CatalogPlan, node: NodePlan, address_of: Callable[[str], str]) -> CatalogTable:
    return CatalogTable(
        port=CATALOG_PORT,
        net=node.name,
        beacon=catalog.beacon_ms / 1e3,
        reap=catalog.reap_ms / 1e3,
        bridge=_bridge_table(catalog, node, address_of) if catalog.is_bridged else None,
    )


def _bridge_table(catalog: CatalogPlan, node: NodePlan, address_of: Callable[[str], str]) -> BridgeTable:
    to = tuple(f"{address_of(name)}:{BRIDGE_PORT}" for name in node.bridges)
    return BridgeTable(to=to, export=("*",), imports=("*",), transit=catalog.transit)


def _doc_table(plan: Plan, node: NodePlan, address_of: Callable[[str], str]) -> DocTable:
    """Each session of a node listens at a port of its own, in the order in which the node names them."""
    assert plan.documents is not None, "asked for by whoever has some"
    others = {other.name: other.sessions for other in plan.nodes}

    def peers(session: str) -> tuple[str, ...]:
        met = [name for name in node.meets if session in others[name]]
        return tuple(f"{address_of(name)}:{DOCUMENT_PORT + others[name].index(session)}" for name in met)

    listen, schema = address_of(node.name), plan.documents.schema
    tables = {
        name: DocSessionTable(schema=schema, listen=listen, peers=peers(name), mdns=False) for name in node.sessions
    }
    return DocTable(session=tables, timing=QUICK if plan.documents.is_quick else DocTimingTable())


def _store_table(store: StorePlan, peers: tuple[str, ...]) -> StoreTable:
    return StoreTable(
        peers=peers, clock=store.clock_ms / 1e3, ping_length=store.ping_length, chain_length=store.chain_length
    )


def filters_of(node: NodePlan) -> tuple[FilterSpec, ...]:
    """The filters of a node's file."""
    if not node.hands_over:
        return ()
    kind = "journal" if node.level == "root" else "forward"
    specs, mistakes = parse_filters([{"name": kind} | _filter(kind, node.hands_over)])
    assert not mistakes, mistakes
    return tuple(specs)


def _fleet_table(plan: Plan, fleet: FleetPlan | None) -> FleetTable:
    more: dict[str, Any] = {}
    if fleet is not None:
        more = {"heartbeat": fleet.heartbeat_ms / 1e3, "dead_after": fleet.dead_after, "quorum": fleet.quorum}
    name = fleet.name if fleet is not None else FLEET
    return FleetTable(name=name, beat_s=plan.beat_ms / 1e3, dead_s=plan.dead_ms / 1e3, **more)


def pairs_of(fleet: FleetPlan, endpoint: Callable[[str], str]) -> tuple[tuple[str, bytes], ...]:
    """The configuration with which the fleet begins."""
    pairs: dict[str, Any] = {
        "/CONFIG/global/heartbeat": fleet.heartbeat_ms / 1e3,
        "/CONFIG/global/dead_after": fleet.dead_after,
    }
    pairs |= {f"/CONFIG/global/filter/{kind}": _filter(kind, fleet.hands_over) for kind in HANDING if fleet.hands_over}
    for group in fleet.groups:
        pairs |= {f"/CONFIG/{group.name}/{key}": value for key, value in _group(group, endpoint).items()}
    return tuple(sorted((key, canonical(value)) for key, value in pairs.items()))


def _group(group: GroupPlan, endpoint: Callable[[str], str]) -> dict[str, Any]:
    table: dict[str, Any] = {
        "members": [endpoint(name) for name in group.members],
        "collectors": [endpoint(name) for name in group.collectors],
        "parent": group.parent,
        "fanout": group.fanout,
    }
    values = {key: value for key, value in table.items() if value}
    return values | {f"metric/{metric.name}": table_of(metric) for metric in group.metrics}


def _filter(kind: str, types: tuple[str, ...]) -> dict[str, Any]:
    return {"kind": kind, "dir": "in", "types": list(types)}


def table_of(metric: Metric) -> dict[str, Any]:
    """A metric as the configuration says it."""
    return {"detail": metric.detail, "rate": metric.rate_ns / 1e9}


def _spec(metric: Metric) -> MetricSpec:
    timeout = metric.rate_ns // 2 if metric.rate_ns > 0 else TIMEOUT_NS
    return MetricSpec(name=metric.name, detail=metric.detail, rate_ns=metric.rate_ns, timeout_ns=timeout)
