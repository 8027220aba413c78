"""The settings in a node's own TOML file, and the defaults of its level.

The length of the text is limited before it is parsed (SEC-044), every table is decoded to a type, and all errors are
reported together, each with its code and its place in the file (CFG-071).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from weft.base.endpoints import PORT_MAX, host_of, is_address, is_endpoint, is_loopback, port_of
from weft.base.errors import UserError
from weft.base.keys import Trust
from weft.base.now import MILLISECOND, SECOND
from weft.base.paths import is_key, is_under
from weft.base.settings import is_plain_name, nearest, parse_toml, span_ns
from weft.cores.chains.limits import RULES_MAX
from weft.cores.chains.rights import Allow
from weft.cores.chains.settings import FilterSpec, parse_filters
from weft.cores.drain.messages import DrainSettings
from weft.cores.measurement.alertsettings import AlertSpec, parse_alerts
from weft.cores.measurement.settings import MetricSpec, parse_metrics
from weft.node import installed
from weft.node.catalogtable import CatalogTable
from weft.node.catalogtable import faults_of as catalog_faults
from weft.node.doctable import DocSessionTable, DocTable
from weft.node.doctable import faults_of as doc_faults
from weft.node.exporttable import ExportTable
from weft.node.exporttable import faults_of as export_faults
from weft.node.notifytable import NotifyTable
from weft.node.notifytable import faults_of as notify_faults
from weft.node.storetable import StoreTable, faults_of
from weft.node.tables import FLEETS, has_plan, without_filters
from weft.wire.beacon import LEVELS

BASE_PORT: Final = 27_500
MIB: Final = 1 << 20
MEGABYTES_MAX: Final = 1 << 20
CONFIGURATION_KEYS_MAX: Final = 10_000_000
SPAN_S_MAX: Final = 3_600.0
AUTO: Final = "auto"
"""The level of a node whose file names neither a level nor a parent: the root finds a place for it (TOP-010)."""
MEMORY_BYTES: Final = {"sensor": 256 * MIB, "collector": 2048 * MIB, "root": 2048 * MIB, AUTO: 1024 * MIB}  # SEC-014
JOURNAL_BYTES: Final = {"sensor": 64 * MIB, "collector": 1024 * MIB, "root": 8192 * MIB, AUTO: 256 * MIB}  # JRN-031
_ALL: Final = ("configuration", "measurement", "chains", "carrier", "topology", "enrolment")
RUNS: Final = {"sensor": _ALL, "collector": _ALL, AUTO: _ALL, "root": (*_ALL, "drain", "alerts")}
PROCESS_BYTES: Final = 144 * MIB  # of a node with empty cores: Python, libraries, buffers of sockets
BUDGET_PERCENT: Final = (
    50  # of the rest, for the cores: a counted byte may need two, and sockets' queues are not counted
)
BUDGET_WEIGHTS: Final = {
    "store": 8,
    "catalog": 6,
    "document": 6,
    "chains": 6,
    "configuration": 4,
    "carrier": 4,
    "drain": 1,
    "measurement": 2,
    "clone": 2,
    "alerts": 1,
    "export": 1,
    "enrolment": 1,
    "topology": 1,
}
"""The shares of the cores in that memory; only those that a node runs count."""
HEARTBEAT_NS: Final = (50 * MILLISECOND, 3_600 * SECOND)  # CFG-074
CHP_PORTS: Final = 3
CHP_PORT_MAX: Final = 65_535 - CHP_PORTS + 1
BLOCK_PORTS: Final = 10
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")

Span = Annotated[float, Meta(gt=0, le=SPAN_S_MAX)]
Megabytes = Annotated[int, Meta(ge=1, le=MEGABYTES_MAX)]


class NodeTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[node]`: the node's identity and its place in the tree."""

    name: str
    level: str = ""
    """Empty: `sensor` if a parent is named, otherwise the root chooses."""
    parent: str = ""
    join: tuple[str, ...] = ()
    """Endpoints at which to find the fabric, where the root's beacon cannot be received (TOP-006)."""
    labels: dict[str, str] = {}
    """Labels of the machine, by which a group may select it (TOP-010)."""
    host: str = "127.0.0.1"
    port: int = BASE_PORT
    state: str = ""
    config: str = ""
    """At a root: the fleet's file, which is the first configuration of a new fleet (CFG-070)."""
    runs: tuple[str, ...] | None = None
    record: str = ""
    """A file that records everything that this node receives and does, for `weft sim replay` (OBS-006)."""
    beacons: bool = True
    flush_s: Span = 1.0


class FleetTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[fleet]`: settings that all nodes of a fabric share."""

    name: str = "weft"
    beacon_port: int = BASE_PORT
    beat_s: Span = 1.0
    dead_s: Span = 5.0
    heartbeat: float | str = 2.0
    """Time between two heartbeats of the configuration's parent: seconds, or a span with its unit (CFG-074)."""
    dead_after: Annotated[int, Meta(ge=2, le=100)] = 5
    """Missed heartbeats after which a parent counts as dead."""
    quorum: Literal["majority", "alone"] = "majority"
    """`alone`: of two voters, one may become root without the other (REC-014)."""
    write_ack: Literal["auto", "local", "quorum"] = "auto"
    """Which nodes must have a write before its order is answered (CFG-024)."""
    snapshot_timeout: float | str | None = None
    polo_timeout: float | str | None = None
    election_wait: float | str | None = None
    flush: float | str | None = None
    """These four times may be in a fleet's file; nodes take them from the configuration."""


class LakeTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[lake]`: where the drain writes, how often, and what it masks."""

    path: str = ""
    safe: Literal["journal", "segment"] = "journal"
    """Where a record must be durable before the root calls it safe, so that nodes below may forget it (LAK-006)."""
    secrets: tuple[str, ...] = ()
    """Patterns of configuration keys whose values never enter a segment (LAK-014): `/app/*/password`."""
    rows: int = 100_000
    age_s: Span = 1.0
    idle_s: Span = 0.3


class JournalTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[journal]`: how much of the disk it may use."""

    megabytes: Megabytes | None = None
    free_megabytes: Annotated[int, Meta(ge=0, le=MEGABYTES_MAX)] = 64
    """Less free space than this on its file system counts as full (JRN-031)."""


class ConfigurationTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[configuration]`: the largest configuration that this node accepts; set it alike at the root and below it."""

    keys: Annotated[int, Meta(ge=1, le=CONFIGURATION_KEYS_MAX)] = 200_000
    megabytes: Megabytes = 256
    """Bytes of keys and values; memory needs some 400 bytes more per pair."""


class LimitsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[limits]`: how much memory the process may have, and each core of it (SEC-014, FLD-032)."""

    memory_megabytes: Megabytes | None = None
    """Limit of resident memory. From 90 % on nothing new is accepted; above it the node ends if a restart frees memory."""
    cores: dict[str, Megabytes] = {}
    """Budgets of cores by name; they replace the default share."""


class SecurityTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[security]`: whether keys are needed; an open network must be requested explicitly (SEC-001)."""

    mode: Literal["", "curve", "none"] = ""
    """`curve`: no start without keys; `none`: keys are not used; empty: keys are used if there are some."""
    allow_insecure: bool = False
    """Whether a node without keys may listen on addresses that other machines can reach."""

    @property
    def is_open(self) -> bool:
        """Whether the file explicitly requests an open network."""
        return self.mode == "none" and self.allow_insecure


class ChpTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[chp]`: the configuration in the dialect of the ZeroMQ Guide's Clone pattern (CFG-060)."""

    port: Annotated[int, Meta(ge=0, le=CHP_PORT_MAX)] = 0
    """Port of the snapshots; updates are on the next port, writes of clients on the one after. 0: no clients."""
    writable: tuple[str, ...] = ()
    loose_prefix: str = ""
    source: str = msgspec.field(name="import", default="")
    """`host:port` of the snapshots of a Clone server that this root follows."""
    import_prefix: str = "/clone/"

    @property
    def is_on(self) -> bool:
        """Whether the Clone dialect is used at all."""
        return bool(self.port or self.source)


class ChainsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[chains]` without its filters: how programs on this machine attach."""

    tcp: bool = False
    """Whether clients may also use the port block, and not only the socket in the state directory (CLI-001)."""
    clients: Annotated[int, Meta(ge=1, le=10_000)] = 1_000
    credit: Annotated[int, Meta(ge=1, le=1_000_000)] = 1_024
    """How many sends of one client may be unanswered."""
    beat_s: Span = 1.0
    dead_s: Span = 5.0
    """Time of silence after which a client counts as dead."""
    reader_messages: Annotated[int, Meta(ge=1, le=100_000)] = 100_000
    """How many messages may wait for one confirming reader that is away."""
    reader_megabytes: Annotated[int, Meta(ge=1, le=64)] = 64
    """How many megabytes of their payloads."""
    allow: Annotated[tuple[Allow, ...], Meta(max_length=RULES_MAX)] = ()
    """`[[chains.allow]]`: other users who may read, rewrite and send (CHN-081)."""


class Role(NamedTuple):
    """The role of this node according to the journal; empty: the file decides."""

    level: str = ""
    epoch: int = 0
    """The epoch, if it is the root."""


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings that a node needs to start."""

    node: NodeTable
    fleet: FleetTable = FleetTable()
    lake: LakeTable = LakeTable()
    journal: JournalTable = JournalTable()
    configuration: ConfigurationTable = ConfigurationTable()
    store: StoreTable | None = None
    """None: this node does not hold the store."""
    catalog: CatalogTable | None = None
    """None: this node is no broker."""
    doc: DocTable | None = None
    """None: this node holds no documents."""
    notify: dict[str, NotifyTable] = {}
    """At a root: the sinks that are notified of alerts."""
    export: dict[str, ExportTable] = {}
    """The monitoring systems that get every measured value."""
    limits: LimitsTable = LimitsTable()
    security: SecurityTable = SecurityTable()
    chp: ChpTable = ChpTable()
    chains: ChainsTable = ChainsTable()
    annexes: dict[str, dict[str, Any]] = {}
    """The tables of annexes, as they are in the file (HSE-007)."""
    metrics: tuple[MetricSpec, ...] = ()
    alerts: tuple[AlertSpec, ...] = ()
    filters: tuple[FilterSpec, ...] = ()
    follows: bool = False
    """Whether metrics and filters come from the configuration, because the file has none."""
    pairs: tuple[tuple[str, bytes], ...] = ()
    """At a root: the first configuration of a new fleet."""
    role: Role = Role()
    trust: Trust | None = None
    """The keys of other nodes that are known at the start; None: this node has no keys, and any node may send anything."""
    uid: int | None = None
    """The user id of this process; None: the users of programs are not checked."""

    @property
    def place(self) -> str:
        """The place that the file gives this node: `root`, `collector`, `sensor`, or `auto`."""
        return self.node.level or ("sensor" if self.node.parent else AUTO)

    @property
    def level(self) -> str:
        """The level of this start: an election may have made the node the root, or no longer the root (REC-010)."""
        return self.role.level or ("sensor" if self.place == AUTO else self.place)

    @property
    def is_parent(self) -> bool:
        """Whether it may have children: any node may become a collector, unless its file makes it a sensor."""
        return self.place != "sensor"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts at which the node listens: for itself, its catalog, its documents."""
        listens = self._listens(is_keyed=True) + self._listens(is_keyed=False)
        catalog = [self.catalog.host] if self.catalog is not None and self.catalog.host else []
        return tuple(dict.fromkeys([self.node.host, *catalog, *listens]))

    @property
    def sessions(self) -> dict[str, DocSessionTable]:
        """Its sessions of documents, by name."""
        return self.doc.session if self.doc is not None else {}

    def _listens(self, *, is_keyed: bool) -> list[str]:
        """Hosts of its document sessions: those with a key of their own, or those without."""
        listens = [each.listen for each in self.sessions.values() if bool(each.key) == is_keyed]
        return [host_of(each) if is_address(each) else each for each in listens]

    @property
    def open_hosts(self) -> tuple[str, ...]:
        """Addresses at which other machines can reach a node without keys; empty: none."""
        catalog = [self.catalog.host] if self.catalog is not None and self.catalog.host else []
        asked = dict.fromkeys([self.node.host, *catalog, *self._listens(is_keyed=False)])
        return () if self.is_closed else tuple(host for host in asked if not is_loopback(host))

    @property
    def is_closed(self) -> bool:
        """Whether peers need a key that this node knows."""
        return self.trust is not None

    @property
    def heartbeat_ns(self) -> int:
        """Time between two heartbeats of the configuration's parent."""
        span = span_ns(self.fleet.heartbeat)
        assert span is not None, "checked when the file was read"
        return span

    @property
    def _size(self) -> str:
        return self.level if self.role.level == "root" else self.place

    @property
    def runs(self) -> tuple[str, ...]:
        """The cores of this node: as in its file, else those of its level."""
        runs = self.node.runs if self.node.runs is not None else RUNS[self.level]
        runs = (*runs, "clone") if self.chp.is_on and "configuration" in runs else runs
        asked = {"store": self.store, "catalog": self.catalog, "document": self.doc}
        asked_for = [name for name, table in asked.items() if table is not None and name not in runs]
        exports = ("export",) if self.exports and "export" not in runs else ()
        return (*runs, *asked_for, *exports, *self.annexes)

    @property
    def exports(self) -> dict[str, ExportTable]:
        """The receivers of this start: some get values only from a root."""
        return {name: table for name, table in self.export.items() if table.at == "here" or self.level == "root"}

    @property
    def journal_bytes(self) -> int:
        """How large the journal may become (JRN-031)."""
        megabytes = self.journal.megabytes
        return megabytes * MIB if megabytes else JOURNAL_BYTES[self._size]

    @property
    def memory_bytes(self) -> int:
        """How large the process may become (SEC-014)."""
        megabytes = self.limits.memory_megabytes
        return megabytes * MIB if megabytes else MEMORY_BYTES[self._size]

    @property
    def budgets(self) -> dict[str, int]:
        """How many bytes each core of this node may hold: from the file, else its default share (FLD-032)."""
        chosen = {name: megabytes * MIB for name, megabytes in self.limits.cores.items()}
        weights = BUDGET_WEIGHTS | dict.fromkeys(self.annexes, 1)
        sharing = {name: weight for name, weight in weights.items() if name in self.runs}
        shared = max(self.memory_bytes - PROCESS_BYTES, self.memory_bytes // 4) * BUDGET_PERCENT // 100
        usual = {name: shared * weight // sum(sharing.values()) for name, weight in sharing.items()}
        return usual | {name: size for name, size in chosen.items() if name in usual}

    @property
    def drain(self) -> DrainSettings:
        """When the drain publishes a segment."""
        return DrainSettings(rows_max=self.lake.rows, age_s=self.lake.age_s, idle_s=self.lake.idle_s)


DEFAULT_METRICS: Final[dict[str, dict[str, Any]]] = {
    "cpu": {"detail": "CPU", "rate": "1s"},
    "memory": {"detail": "MEMORY", "rate": "1s"},
    "memory_percent": {"detail": "MEMORY_PERCENT", "rate": "5s"},
    "disk": {"detail": "DISK", "rate": "2s"},
    "disk_percent": {"detail": "DISK_PERCENT", "rate": "10s"},
    "network": {"detail": "NETWORK", "rate": "2s"},
    "load": {"detail": "LOAD", "rate": "5s"},
    "process_cpu": {"detail": "PROC_CPU", "rate": "2s", "per": "name"},
    "process_memory": {"detail": "PROC_MEM", "rate": "5s", "per": "name"},
}
"""The metrics of a node whose file names none."""


def read_document(text: str, where: str) -> dict[str, Any]:
    """The tables of a TOML text; UserError `bad-settings` if it is too long or invalid (SEC-044)."""
    try:
        return parse_toml(text)
    except ValueError as error:
        raise UserError("bad-settings", f"{where} is not TOML: {error}", "weft up --example") from None


def settings_of(document: dict[str, Any], where: str = "the settings") -> NodeSettings:
    """The settings in the tables of a node's file; UserError `bad-settings` names everything that is wrong."""
    errors: list[str] = []
    is_planned = has_plan(document)
    document, tables_of_filters = without_filters(document)
    tables = {
        name: _table(document, name, kind, errors)
        for name, kind in (
            ("node", NodeTable),
            ("fleet", FleetTable),
            ("lake", LakeTable),
            ("journal", JournalTable),
            ("configuration", ConfigurationTable),
            ("limits", LimitsTable),
            ("store", StoreTable),
            ("catalog", CatalogTable),
            ("doc", DocTable),
            ("notify", dict[str, NotifyTable]),
            ("export", dict[str, ExportTable]),
            ("security", SecurityTable),
            ("chp", ChpTable),
            ("chains", ChainsTable),
        )
    }
    known = (*tables, "metric", "alert", *FLEETS)
    annexes = {name: table for name, table in document.items() if name not in known}
    errors += [fault for name in annexes for fault in _annex_faults(name, annexes[name], known)]
    metrics, wrong = parse_metrics(document.get("metric", DEFAULT_METRICS))
    filters, wrong_filters = parse_filters(tables_of_filters, is_local=True)
    alerts, wrong_alerts = _alerts(document, metrics)
    errors += [*wrong, *wrong_filters, *wrong_alerts]
    if tables["node"] is not None and tables["fleet"] is not None:
        errors += _contradictions(tables["node"], tables["fleet"], tables["security"])
    if tables["node"] is not None and tables["chp"] is not None:
        errors += _chp_faults(tables["chp"], tables["node"], tables["security"])
    if tables["store"] is not None and tables["node"] is not None:
        errors += faults_of(tables["store"], tables["node"].host)
    errors += [fault for name, faults in FAULTS.items() if tables[name] is not None for fault in faults(tables[name])]
    if errors:
        listed = "\n  ".join(errors)
        mend = "correct these and start again; nothing was changed"
        if f"E03 {NAME}: is missing" in errors:
            mend += '. A node needs a name: --name NAME, or name = "NAME" in [node] of its file, as weft up --example has it'
        raise UserError("bad-settings", f"{where} cannot be used:\n  {listed}", mend)
    tables |= {name: None for name in ("store", "catalog", "doc") if name not in document}
    follows = not is_planned or any(name in document for name in FLEETS)
    is_told = tables["node"].level != "root" or bool(tables["node"].config and "metric" not in document)
    if follows and is_told and not tables["node"].parent:
        metrics, alerts = [], []  # what to measure comes with the fleet's configuration
    here = tuple([spec for spec in filters if spec.stands_at(tables["node"].name)])
    plan: dict[str, Any] = {"metrics": tuple(metrics), "alerts": tuple(alerts), "filters": here}
    return NodeSettings(**plan, annexes=annexes, follows=follows, **tables)


def _alerts(document: dict[str, Any], metrics: list[MetricSpec]) -> tuple[list[AlertSpec], list[str]]:
    """Alerts about this node's own metrics. If the file has groups, alerts belong to those, and fleet.py reads them."""
    if any(name in document for name in FLEETS):
        return [], []
    return parse_alerts(document.get("alert", {}), {spec.name: spec.detail for spec in metrics})


NAME: Final = "node.name"


def _table(document: dict[str, Any], name: str, kind: Any, errors: list[str]) -> Any:
    try:
        return msgspec.convert(document.get(name, {}), kind)
    except msgspec.ValidationError as error:
        errors += _mistakes(name, document.get(name, {}), kind, error)
        return None


def _mistakes(name: str, table: Any, kind: Any, error: msgspec.ValidationError) -> list[str]:
    """All mistakes of a table; where only the table as a whole is wrong, what its type says of it."""
    from weft.node.mistakes import mistakes_in  # only where something is wrong

    return list(mistakes_in(name, table, kind)) or [f"E04 {name}: {error}"]


def _annex_faults(name: str, table: Any, known: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with a table that is not Weft's own: no installed annex has it, or its contents are invalid."""
    annex = installed.load(name)
    if annex is None:
        yield f"E02 {name}: [{name}] is no table{nearest(name, known)}"
        return
    try:
        msgspec.convert(table, annex.settings)
    except msgspec.ValidationError as error:
        yield from _mistakes(name, table, annex.settings, error)


def _contradictions(node: NodeTable, fleet: FleetTable, security: SecurityTable | None) -> list[str]:
    rules = (
        (is_plain_name(node.name), f"E15 node.name {node.name!r}: letters, digits, `_`, `.`, `-` only, 63 at most"),
        (is_plain_name(fleet.name), f"E15 fleet.name {fleet.name!r}: letters, digits, `_`, `.`, `-` only, 63 at most"),
        (node.level in ("", *LEVELS), f"E04 node.level {node.level!r}: one of {', '.join(LEVELS)}, or left out"),
        (1024 <= node.port <= PORT_MAX, f"E05 node.port {node.port}: from 1024 to {PORT_MAX}"),
        (all(map(is_endpoint, node.join)), f"E05 node.join {list(node.join)}: host:port of other nodes"),
        (
            HEARTBEAT_NS[0] <= (span_ns(fleet.heartbeat) or 0) <= HEARTBEAT_NS[1],
            f'E04 fleet.heartbeat {fleet.heartbeat!r}: "50ms" to "1h"',
        ),
        (
            node.level != "root" or not node.parent,
            "E03 node.parent: a root has none; without a parent the root finds a place for the node",
        ),
        (
            security is None or security.mode != "none" or security.allow_insecure or node.host in LOOPBACK,
            'E05 node.host: with [security] mode = "none" only loopback, or allow_insecure = true beside it',
        ),
    )
    return [text for holds, text in rules if not holds]


def _limits_faults(limits: LimitsTable) -> list[str]:
    errors = [f"E02 limits.cores.{name}: no such core" for name in limits.cores if name not in BUDGET_WEIGHTS]
    total, memory = sum(limits.cores.values()), limits.memory_megabytes
    if memory is not None and total > memory:
        errors.append(f"E04 limits.cores: {total} megabytes together; the process may have {memory}")
    return errors


FAULTS: Final[dict[str, Callable[[Any], Iterable[str]]]] = {
    "limits": _limits_faults,
    "catalog": catalog_faults,
    "doc": doc_faults,
    "notify": notify_faults,
    "export": export_faults,
}
"""The functions that say what is wrong with a table, of those that do not depend on other tables."""


def _chp_faults(chp: ChpTable, node: NodeTable, security: SecurityTable | None) -> list[str]:
    source = chp.source if is_endpoint(chp.source) else ""
    rules = (
        (
            chp.port == 0 or chp.port >= 1024,
            f"E04 chp.port {chp.port}: from 1024 to {CHP_PORT_MAX}; 0 or left out: none",
        ),
        (
            not -CHP_PORTS < chp.port - node.port < BLOCK_PORTS,
            f"E06 chp.port {chp.port}: its {CHP_PORTS} ports must not be among the {BLOCK_PORTS} from {node.port} on",
        ),
        (
            all(is_key(prefix.removesuffix("/")) for prefix in chp.writable),
            f'E04 chp.writable {list(chp.writable)}: keys, or prefixes like "/client/"',
        ),
        (
            not chp.loose_prefix or _is_prefix(chp.loose_prefix),
            f'E04 chp.loose_prefix {chp.loose_prefix!r}: a prefix like "/client/"',
        ),
        (
            not chp.loose_prefix or any(is_under(chp.loose_prefix, prefix) for prefix in chp.writable),
            f"E04 chp.loose_prefix {chp.loose_prefix!r}: is under none of chp.writable, so nobody could write there",
        ),
        (not chp.source or bool(source), f"E05 chp.import {chp.source!r}: host:port of a Clone server's snapshots"),
        (
            not source or _is_open_to(host_of(source), security),
            'E05 chp.import: only loopback, or [security] mode = "none" and allow_insecure = true',
        ),
        (
            not source or port_of(source) != chp.port or host_of(source) not in (node.host, *LOOPBACK),
            "E05 chp.import: this is the address of the node itself",
        ),
        (_is_prefix(chp.import_prefix), f'E04 chp.import_prefix {chp.import_prefix!r}: a prefix like "/clone/"'),
    )
    return [text for holds, text in rules if not holds]


def _is_prefix(text: str) -> bool:
    return text.endswith("/") and is_key(text[:-1])


def _is_open_to(host: str, security: SecurityTable | None) -> bool:
    return host in LOOPBACK or (security is not None and security.is_open)
