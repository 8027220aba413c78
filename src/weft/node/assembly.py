"""Makes the cores of a node from its settings, for the shell and the simulator alike.

Large cores that most nodes do not run are imported only where they are made: so a sensor starts a tenth faster, and needs
less memory.
"""

from collections.abc import Callable
from typing import Final

from weft.base.effects import Core
from weft.base.endpoints import endpoint_of, is_address
from weft.base.now import seconds
from weft.base.settings import span_ns
from weft.cores.alerts.messages import AlertsSettings, SinkSettings
from weft.cores.carrier.core import Carrier
from weft.cores.carrier.messages import CarrierSettings
from weft.cores.catalog.messages import CatalogSettings, CheckSettings
from weft.cores.chains.core import Chains
from weft.cores.chains.messages import ChainsSettings
from weft.cores.clone.messages import CloneSettings
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.messages import ConfigurationSettings
from weft.cores.enrolment.core import Enrolment
from weft.cores.enrolment.messages import EnrolmentSettings
from weft.cores.export.messages import ExportSettings
from weft.cores.measurement.core import Measurement
from weft.cores.measurement.messages import MeasurementSettings
from weft.cores.store.messages import StoreSettings
from weft.cores.topology.core import Topology
from weft.cores.topology.messages import TopologySettings
from weft.node.annexes import admitted, cores_of
from weft.node.catalogtable import BridgeTable, CatalogTable, CheckTable
from weft.node.doctable import DocTable, fresh_uuid, settings_of_session
from weft.node.functions import functions_of
from weft.node.node import Node
from weft.node.planner import waits_for_plan
from weft.node.settings import AUTO, MIB, NodeSettings
from weft.node.start import Start
from weft.node.storetable import StoreTable
from weft.node.wires import index
from weft.node.wiring import WIRES
from weft.wire.store.pack import pack


def _place(settings: NodeSettings) -> str:
    """The node's place: root by its file or by election (whether it leads, topology's journal says), else as its file says.

    A node that an election has made root, and that is so no longer, has no place of its own: AUTO.
    """
    if "root" in (settings.level, settings.place):
        return "root"
    return AUTO if settings.role.level else settings.place


def _topology(start: Start) -> Core:
    table = start.settings.node
    place = TopologySettings(
        fleet=start.settings.fleet.name,
        name=table.name,
        level=_place(start.settings),
        parent=table.parent,
        base_port=table.port,
        host=table.host,
        beacons=table.beacons,
        join=table.join,
        labels=table.labels,
        heartbeat_ns=start.settings.heartbeat_ns,
        dead_after=start.settings.fleet.dead_after,
        quorum=start.settings.fleet.quorum,
        has_store=start.settings.store is not None and start.settings.store.mesh,
    )
    return Topology(place, start.node, start.era, start.chance("topology"))


def _configuration(start: Start) -> Core:
    settings, fleet = start.settings, start.settings.fleet
    replication = ConfigurationSettings(
        heartbeat_ns=settings.heartbeat_ns,
        dead_after=fleet.dead_after,
        write_ack=fleet.write_ack,
        keys_max=settings.configuration.keys,
        bytes_max=settings.configuration.megabytes * MIB,
    )
    core = Configuration(replication, start.node, start.chance("configuration"))
    if settings.level == "root":
        from weft.node.deadalerts import newly_dead  # no sensor loads it

        core.root.newly_dead = newly_dead
    return core


def _measurement(start: Start) -> Core:
    table = start.settings.node
    plan = MeasurementSettings(
        metrics=start.settings.metrics,
        alerts=start.settings.alerts,
        is_followed=start.settings.follows,
        node_name=table.name,
        flush_ns=seconds(table.flush_s),
    )
    return Measurement(plan, start.node, start.era)


def _chains(start: Start) -> Core:
    table, own = start.settings.chains, start.settings.node
    settings = ChainsSettings(
        name=own.name,
        level=start.settings.level,
        addr=own.host,
        boot=start.era,
        secret=start.secret,
        allow=table.allow,
        uid=start.settings.uid,
        is_closed=start.settings.is_closed,
        clients=table.clients,
        credit=table.credit,
        beat_ms=round(table.beat_s * 1_000),
        dead_ms=round(table.dead_s * 1_000),
        reader_messages=table.reader_messages,
        reader_bytes=table.reader_megabytes << 20,
        awaits_filters=waits_for_plan(start.settings),
        functions=functions_of(start.settings.filters),
    )
    return Chains(start.settings.filters, settings, start.node, start.era)


def _carrier(start: Start) -> Core:
    fleet, table = start.settings.fleet, start.settings.node
    settings = CarrierSettings(
        name=table.name,
        level=start.settings.level,
        epoch=start.settings.role.epoch if start.settings.level == "root" else 0,
        addr=f"{table.host}:{table.port}",
        beat_ms=round(fleet.beat_s * 1_000),
        dead_ms=round(fleet.dead_s * 1_000),
        has_lake="drain" in start.settings.runs,
        is_drained_first=start.settings.lake.safe == "segment" and "drain" in start.settings.runs,
        trusts_parent=is_address(table.parent),
        journal_bytes=start.settings.journal_bytes,
        awaits_filters=waits_for_plan(start.settings),
    )
    return Carrier(settings, start.node, start.era, start.chance("carrier"))


def _enrolment(start: Start) -> Core:
    own = start.settings.node
    settings = EnrolmentSettings(
        fabric=start.settings.fleet.name,
        name=own.name,
        endpoint=endpoint_of(own.host, own.port),
        starts_as_root=start.settings.level == "root",
    )
    return Enrolment(settings, start.node, start.secret, start.chance("enrolment"))


def _clone(start: Start) -> Core:
    from weft.cores.clone.core import Clone

    table = start.settings.chp
    settings = CloneSettings(
        serves=bool(table.port),
        writable=table.writable,
        loose_prefix=table.loose_prefix,
        source=table.source,
        prefix=table.import_prefix,
    )
    return Clone(settings, start.node)


def _store(start: Start) -> Core:
    from weft.cores.store.core import Store

    own, table = start.settings.node, start.settings.store or StoreTable()
    settings = StoreSettings(
        name=table.name or own.name,
        fabric=start.settings.fleet.name,
        boot=start.era,
        found=None if table.found is None else pack(table.found),
        endpoint=endpoint_of(own.host, own.port) if table.mesh else "",
        client_port=table.client_port(own.port),
        peers=table.peers or own.join,
        hostmap=table.hostmap,
        dialects=table.dialects,
        keys=table.keys,
        clock_ns=_span(table.clock),
        ping_length=table.ping_length,
        chain_length=table.chain_length,
        vary=table.vary,
        cycle_ns=_span(table.cycle),
        gap_ns=_span(table.gap),
        del_cycle_ns=_span(table.del_cycle),
        del_gap_ns=_span(table.del_gap),
        absent_max_ns=0 if table.absent_max == "off" else _span(table.absent_max),
        serve_stale=table.serve_stale,
        is_open=table.open,
    )
    return Store(settings, start.chance("store"))


def _catalog(start: Start) -> Core:
    from weft.cores.catalog.core import Catalog

    own, table = start.settings.node, start.settings.catalog or CatalogTable()
    bridge = table.bridge or BridgeTable()
    settings = CatalogSettings(
        fabric=start.settings.fleet.name,
        host=table.host or own.host,
        is_closed=start.settings.is_closed,
        port=table.port,
        net=table.net,
        strict=table.strict,
        unique_names=table.unique_names,
        rewrite=table.rewrite,
        liveness=table.liveness,
        beacon_ns=_span(table.beacon) if table.beacons or table.mdns else 0,
        beacon_key=table.beacon_key,
        hold=table.hold,
        hold_max_ns=_span(table.hold_max),
        reap_ns=_span(table.reap),
        pause_ns=_span(table.pause),
        probe_allow=table.probe_allow,
        lvc_keep=table.lvc_keep,
        lvc_persist=table.lvc_persist,
        checks=tuple(_check(check) for check in table.check.values()),
        lookup_scope=table.lookup_scope,
        bridge_to=bridge.to,
        exports=bridge.export,
        imports=bridge.imports,
        export_topics=bridge.export_topics,
        import_topics=bridge.import_topics,
        transit=bridge.transit,
        instances_max=table.instances,
        per_name_max=table.per_name,
        per_owner_max=table.per_owner,
        values_max=table.values,
        values_bytes_max=table.values_megabytes * MIB,
        logs_max=table.logs,
    )
    return Catalog(settings, start.node, start.era, start.chance("catalog"))


def _check(table: CheckTable) -> CheckSettings:
    (kind,) = table.kinds
    return CheckSettings(
        service=table.service,
        kind=kind,
        target="" if kind == "command" else getattr(table, kind),
        command=table.command,
        status=table.status,
        interval_ns=_span(table.interval),
        timeout_ns=_span(table.timeout),
        fall=table.fall,
        rise=table.rise,
    )


def _document(start: Start) -> Core:
    from weft.cores.document.core import Documents

    table = start.settings.doc or DocTable()
    return Documents(
        settings_of_session(
            name,
            session,
            table.timing,
            fresh_uuid(start.chance(f"document/{name}")),
            is_closed=start.settings.is_closed,
        )
        for name, session in table.session.items()
    )


def _span(value: float | str) -> int:
    span = span_ns(value)
    assert span is not None, "checked when the file was read"
    return span


def _drain(start: Start) -> Core:
    from weft.cores.drain.core import Drain

    return Drain(start.settings.drain, start.era)


def _alerts(start: Start) -> Core:
    from weft.cores.alerts.core import Alerts

    sinks = tuple(SinkSettings(name, table.severity) for name, table in sorted(start.settings.notify.items()))
    return Alerts(AlertsSettings(fleet=start.settings.fleet.name, sinks=sinks))


def _export(start: Start) -> Core:
    from weft.cores.export.core import Export

    return Export(ExportSettings(tuple(sorted(start.settings.exports))), start.chance("export"))


MAKERS: Final[dict[str, Callable[[Start], Core]]] = {
    "topology": _topology,
    "configuration": _configuration,
    "measurement": _measurement,
    "chains": _chains,
    "carrier": _carrier,
    "drain": _drain,
    "alerts": _alerts,
    "export": _export,
    "enrolment": _enrolment,
    "clone": _clone,
    "store": _store,
    "catalog": _catalog,
    "document": _document,
}


def build_node(  # tidy: a node needs all of these; most callers name four
    settings: NodeSettings,
    node: bytes,
    era: int,
    seed: str,
    secret: bytes = b"",
    *,
    rare: frozenset[str] = frozenset(),
) -> Node:
    """The node that these settings describe.

    `node`: its UUID. `era`: the number of this start. `seed`: its random numbers are made from this, a separate series for
    each purpose (SIM-005). `secret`: a key of the machine, kept between starts; values hashed with it can be compared but
    not guessed. `rare`: rare branches that the cores take in the simulator (SIM-009).
    """
    start = Start(settings, node, era, seed, secret)
    start.rare = rare
    annexes = admitted(settings).values()
    cores = {name: MAKERS[name](start) for name in MAKERS if name in settings.runs} | cores_of(annexes, start)
    _join(cores)
    for name, size in settings.budgets.items():
        cores[name].budget.give(size)
    made = Node(
        node, era, list(cores.values()), index([*WIRES, *(wire for annex in annexes for wire in annex.wires)]), settings
    )
    topology = cores.get("topology")
    if made.authority is not None and isinstance(topology, Topology):
        topology.may = made.authority.may
        topology.context.keys_of = made.authority.told_of
    chains = cores.get("chains")
    if isinstance(chains, Chains):
        chains.sessions.rights.holder_of = made.holder_of
    return made


def _join(cores: dict[str, Core]) -> None:
    """Let the carrier pass a child's records through the `in` chain before it keeps them, in one write (CHN-033)."""
    carrier, chains = cores.get("carrier"), cores.get("chains")
    if isinstance(carrier, Carrier) and isinstance(chains, Chains):
        carrier.screen = chains.screen
