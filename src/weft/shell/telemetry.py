"""Shows a node to its operator: log lines, and pages of status, health and metrics over HTTP (OBS-001..005)."""

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from weft import __version__
from weft.base.endpoints import HTTP as HTTP_PORT
from weft.base.now import SECOND, Now
from weft.base.records import Record
from weft.cores.carrier.core import Carrier
from weft.cores.chains.core import Chains
from weft.cores.configuration.core import Configuration
from weft.cores.drain.messages import DrainClosed, SegmentPublished
from weft.cores.measurement.core import Measurement
from weft.cores.topology.context import topics_of
from weft.cores.topology.core import Topology
from weft.cores.topology.memory import Place
from weft.node.events import EVENTS, describe
from weft.node.guard import MemoryGuard
from weft.node.node import Node
from weft.node.settings import NodeSettings
from weft.shell import fleetmetrics
from weft.shell.alertfacts import dead_of, firing_by_node, firing_of
from weft.shell.alertfacts import page_of as alerts_page
from weft.shell.clock import Clock
from weft.shell.console.commands import Commands
from weft.shell.console.feed import Feed
from weft.shell.console.lake import Lake
from weft.shell.console.picture import Console, Facts
from weft.shell.console.roads import Roads
from weft.shell.console.routes import Sources, routes_of
from weft.shell.console.tables import tables_of
from weft.shell.door import note_down
from weft.shell.files import Files
from weft.shell.fleetmetrics import FleetValues
from weft.shell.flight import Flight
from weft.shell.health import FAILED, HEARD, Health, Machine, worst
from weft.shell.http.gate import Gate
from weft.shell.http.logins import Logins
from weft.shell.http.messages import JSON, TEXT, Request, Response, Route, Routes
from weft.shell.http.server import Server
from weft.shell.journal import Journal
from weft.shell.links import Links
from weft.shell.listening import with_loopback
from weft.shell.log import Log
from weft.shell.metrics import CONTENT_TYPE, exposition
from weft.shell.opendoors import OpenDoor
from weft.shell.timing import Timings
from weft.shell.tracing import Tracer, wanted_of
from weft.shell.zap import OUTCOMES, Gatekeeper

if TYPE_CHECKING:
    from weft.cores.document.core import Documents
    from weft.shell.console.documents import DocumentReader

JSON_LINES_TYPE: Final = "application/jsonl"
HTTP_NOTE: Final = "http.endpoint"
"""The file in the state directory with the address of the pages."""


@dataclass
class Telemetry:
    """Reads a running node; changes nothing."""

    settings: NodeSettings
    node: Node
    journal: Journal
    links: Links
    clock: Clock
    log: Log
    machine: Machine
    timings: Timings
    flight: Flight
    guard: MemoryGuard
    files: Files
    token: str = ""
    """The token that programs of other machines need; empty: on an open fabric everybody may read."""
    state: Path = Path()
    """The node's state directory, where programs of this machine find its address."""
    is_drained: bool = False
    """Whether the drain has written everything, and has closed."""
    segments: int = 0
    """Segments that were published since the start."""
    rows: int = 0
    """Rows in these segments."""

    def __post_init__(self) -> None:
        now = self.clock.now()
        self.started_at = now.mono
        self._tracing = asyncio.Lock()
        self.gatekeepers: Callable[[], Iterable[Gatekeeper | None]] = lambda: ()
        """The gatekeepers of other ZeroMQ contexts than that of `links`."""
        self.open_doors: Callable[[], Iterable[OpenDoor]] = lambda: ()
        """Where the node listens without asking for a key."""
        self.console = Console(self.console_facts, now)
        self.fleet = FleetValues()
        self.gate = gate = Gate(self.token, is_open=not self.settings.is_closed, only_user=self.settings.is_closed)
        gate.logins = self.logins = Logins(lambda: self.clock.now().mono / SECOND)
        self.http = Server(self.pages(), gate)
        self.health = Health(self.settings, self.node, self.journal, self.machine, self.guard)
        self.health.refusals = lambda: [each["at"] for each in self.security_facts()["shut"]]

    def on_tell(self, event: Any) -> None:
        """Log an event that has a row in the table of events; all others are only for cores."""
        kind = type(event)  # fast, as a busy node has thousands of events per second (OBS-009)
        if kind in HEARD:
            self.health.hear(event, self.clock.now())
        elif kind is SegmentPublished:
            self.segments += 1
            self.rows += event.rows
        elif kind is DrainClosed:
            self.is_drained = True
        row = EVENTS.get(kind)
        if row is not None:
            self.log.write(row.level, row.name, describe(event)[2])

    def look(self) -> None:
        """Update the health checks, and log how many lines were left out; called about once a second."""
        self.health.look(self.clock.now())
        self.log.settle()

    def pages(self) -> Routes:
        """The HTTP pages of this node."""
        return {
            "/status": Route(self._status_page),
            "/healthz": Route(self._health_page),
            "/metrics": Route(self._metrics_page),
            "/metrics/fleet": Route(self._fleet_page),
            "/alerts": Route(self._alerts_page),
            "/quarantine": Route(self._quarantine_page),
            "/flight": Route(self._flight_page),
            "/trace": Route(self._trace_page),
            **_console_of(self),
            **self._catalog_pages(),
        }

    def _catalog_pages(self) -> Routes:
        """The pages of a broker of the catalog; only a node that is one imports them."""
        if "catalog" not in self.node.cores:
            return {}
        from weft.cores.catalog.core import Catalog
        from weft.shell import catalogpages

        broker = self.node.cores["catalog"]
        assert isinstance(broker, Catalog), broker
        return catalogpages.routes_of(broker)

    def note(self, records: Iterable[Record], now: Now) -> None:
        """Pass records that are durable here to the console and to `/metrics/fleet`."""
        self.console.values.note(records, now)
        self.fleet.note(records, now)

    def console_facts(self) -> Facts:
        """What the console shows of this node and its tree."""
        settings = self.settings
        core = self.node.cores.get("configuration")
        return Facts(
            node=self.node.node,
            name=settings.node.name,
            level=settings.level,
            fleet=settings.fleet.name,
            open_hosts=settings.open_hosts,
            port=settings.node.port,
            version=__version__,
            tree=self._tree(),
            unassigned=self._unassigned(),
            root=self._root(),
            children=self.node.standing.children,
            checks=self.health.look(self.clock.now()),
            number=(core.store.number or None) if isinstance(core, Configuration) else None,
            alerts=firing_by_node(self.node),
        )

    def status(self) -> dict[str, Any]:
        """The whole status, as `weft status --json` prints it. Fields are only added to it, never removed (OBS-005)."""
        table, node = self.settings.node, self.node
        return {
            "name": table.name,
            "level": self.settings.level,
            "node": node.node.hex(),
            "era": node.era,
            "fleet": self.settings.fleet.name,
            "version": __version__,
            "open": not self.settings.is_closed,
            "port": table.port,
            "uptime_s": self._uptime_s(),
            "memory_bytes": self.machine.resident_bytes(),
            "memory": self.guard.facts(),
            "open_files": self.machine.open_files(),
            "timings": self.timings.facts(),
            "queues": self._queues(),
            "health": self.health_facts(),
            "journal": self.journal_facts(),
            "unrecorded": {"samples": node.unrecorded_samples, "events": node.unrecorded_events},
            "alerts": {"firing": firing_of(node), "dead": dead_of(node)},
            "refused": {f"{channel}:{code}": count for (channel, code), count in sorted(node.refused.items())},
            "dropped": dict(self.links.dropped),
            "security": self.security_facts(),
            "http": {"refused": self.http.refused},
            "log": {"collapsed": self.log.collapsed, "unwritten": self.log.unwritten},
            "cores": {name: self._core_facts(name, core) for name, core in node.cores.items()},
            "parent": self._parent(),
            "children": self._children(),
            "foreign": self._foreign(),
            "group": node.planner.group,
            "root": self._root(),
            "tree": self._tree(),
            "unassigned": self._unassigned(),
            "neighbours": self._neighbours(),
        }

    def _uptime_s(self) -> int:
        return (self.clock.now().mono - self.started_at) // SECOND

    def _queues(self) -> dict[str, dict[str, int]]:
        """Lengths of this node's queues, and their limits (OBS-004)."""
        cores = self.node.cores
        carrier, chains, configuration = cores.get("carrier"), cores.get("chains"), cores.get("configuration")
        queues: dict[str, dict[str, int]] = {}
        if isinstance(carrier, Carrier):
            counters = carrier.counters
            limit = self.journal.limits.budget_bytes
            queues["spool"] = {"items": counters.spool_records, "bytes": counters.spool_bytes, "bytes_max": limit}
            queues["outbox"] = carrier.outbox.queue()
        if isinstance(chains, Chains):
            mail = chains.totals()
            limit = chains.context.settings.inbox_bytes
            queues["inbox"] = {"items": mail["inbox_entries"], "bytes": mail["inbox_bytes"], "bytes_max": limit}
        if isinstance(configuration, Configuration):
            queues["updates"] = configuration.replica.queue()
        return queues

    def _parent(self) -> dict[str, str]:
        carrier = self.node.cores.get("carrier")
        if self.settings.level == "root" or not isinstance(carrier, Carrier):
            return {"name": "", "endpoint": ""}
        child = carrier.child
        return {"name": child.parent_name if child.endpoint else self.settings.node.parent, "endpoint": child.endpoint}

    def _children(self) -> list[dict[str, Any]]:
        """Children with a live link, and what is stored of each (CFG-090)."""
        carrier, now = self.node.cores.get("carrier"), self.clock.now().mono
        links = carrier.parent.links if isinstance(carrier, Carrier) else ()
        return [
            {
                "name": link.name,
                "node": link.node.hex(),
                "era": link.era,
                "kept": link.upto,
                "heard_s": (now - link.heard_at) // SECOND,
            }
            for link in links
        ]

    def _foreign(self) -> list[dict[str, Any]]:
        """Foreign nodes that send DATA to this node (MEA-020)."""
        measurement, now = self.node.cores.get("measurement"), self.clock.now().mono
        sources = measurement.foreign.sources if isinstance(measurement, Measurement) else {}
        return [
            {"source": name, "series": len(known.lines), "heard_s": (now - known.heard_at) // SECOND}
            for name, known in sources.items()
        ]

    @property
    def _topology(self) -> Topology | None:
        """The core of the topology; None: the node runs without one."""
        topology = self.node.cores.get("topology")
        return topology if isinstance(topology, Topology) else None

    def _root(self) -> dict[str, str]:
        record = self._topology.context.atlas.root if self._topology else None
        return {"name": record.name, "endpoint": record.endpoint} if record else {"name": "", "endpoint": ""}

    def _tree(self) -> list[dict[str, Any]]:
        """The nodes of the fleet; at the root with the last write that concerns each: the highest of its topics (CFG-092)."""
        rows, topology = self.node.census.rows(), self._topology
        if topology is None:
            return []
        core, below = self.node.cores.get("configuration"), topology.context.atlas.below
        store = core.store if isinstance(core, Configuration) and core.root.is_root else None
        wanted: dict[Place, int] = {}
        for row in rows:
            group = row["group"]
            place = Place(level=row["level"], group=group, tier=row["tier"], below=below(group))
            if store is not None and place not in wanted:
                wanted[place] = max(store.tip(topic) for topic in topics_of(place))
            row["wanted"] = wanted.get(place)
        return rows

    def _unassigned(self) -> list[dict[str, str]]:
        guests = self._topology.registry.unassigned.values() if self._topology else ()
        return [{"name": guest.name, "endpoint": guest.endpoint} for guest in guests]

    def _neighbours(self) -> list[dict[str, Any]]:
        return [
            {"name": known.beacon.name, "level": known.beacon.level, "host": known.host, "port": known.beacon.port}
            for known in (self._topology.neighbours.values() if self._topology else ())
        ]

    def security_facts(self) -> dict[str, Any]:
        """Handshakes by outcome, the last refused peer, the number of known nodes, and ports that need no key."""
        gatekeepers = [each for each in (self.links.gatekeeper, *self.gatekeepers()) if each is not None]
        return {
            "handshakes": {why: sum(each.decided[why] for each in gatekeepers) for why in OUTCOMES},
            "refused_last": next((each.last_refused for each in gatekeepers if each.last_refused), ""),
            "known": len(self.links.credentials.table),
            "shut": self.links.credentials.shut.facts(self.clock.now().mono / SECOND),
            "doors": [each._asdict() for each in self.open_doors()],
        }

    def journal_facts(self) -> dict[str, Any]:
        """Size, limits and counters of the journal."""
        journal = self.journal
        return {
            "state": journal.state.name,
            "bytes": journal.bytes_used,
            "budget_bytes": journal.limits.budget_bytes,
            "next_lsn": journal.next_lsn,
            **msgspec.to_builtins(journal.stats),
        }

    def health_facts(self) -> dict[str, Any]:
        """`ok`, `degraded` (each check says why and what to do) or `failed`."""
        checks = self.health.look(self.clock.now())
        return {
            "state": worst(checks),
            "ready": self.health.is_ready,
            "open": not self.settings.is_closed,
            "era": self.node.era,
            "uptime_s": self._uptime_s(),
            "checks": checks,
        }

    def _status_page(self, _: Request) -> Response:
        return Response(200, JSON, json.dumps(self.status()).encode() + b"\n")

    def _health_page(self, request: Request) -> Response:
        facts = self.health_facts()
        is_well = facts["state"] != FAILED and (facts["ready"] or "ready=1" not in request.query.split("&"))
        return Response(200 if is_well else 503, JSON, json.dumps(facts).encode() + b"\n")

    def _alerts_page(self, _: Request) -> Response:
        return Response(200, JSON, json.dumps(alerts_page(self.node, self.clock.now())).encode() + b"\n")

    def _quarantine_page(self, _: Request) -> Response:
        facts = {"refused": self.node.refused.total(), "messages": self.node.quarantine.rows()}
        return Response(200, JSON, json.dumps(facts).encode() + b"\n")

    def _flight_page(self, _: Request) -> Response:
        return Response(200, JSON_LINES_TYPE, "".join(f"{line}\n" for line in self.flight.lines()).encode())

    async def _trace_page(self, request: Request) -> Response:
        """What this node knows of one record (OBS-007), which a thread reads from the disk."""
        wanted = wanted_of(request.query)
        if wanted is None:
            return Response(400, TEXT, b"/trace?origin=NODE&sequence=N, and stream=, era=\n")
        async with self._tracing:
            tracer = Tracer(self.node, self.journal, self.files)
            return Response(200, JSON, await asyncio.to_thread(tracer.body, wanted))

    def _metrics_page(self, _: Request) -> Response:
        return Response(200, CONTENT_TYPE, exposition(self.status()))

    def _fleet_page(self, _: Request) -> Response:
        now, names = self.clock.now(), {row["node"]: str(row.get("name") or "") for row in self._tree()}
        self.fleet.watch(now)
        names[self.node.node.hex()] = self.settings.node.name

        def name_of(node: bytes) -> str:
            return names.get(node.hex()) or self.node.standing.children.get(node) or node.hex()[:8]

        return Response(200, CONTENT_TYPE, fleetmetrics.exposition(self.fleet.fresh(name_of, now), self.fleet.left_out))

    def _core_facts(self, name: str, core: Any) -> dict[str, Any]:
        facts: dict[str, Any] = {"state": getattr(getattr(core, "state", None), "name", None)}
        counters = getattr(core, "counters", None)
        if counters is not None:
            facts |= msgspec.to_builtins(counters, str_keys=True)
        if isinstance(core, Configuration):
            facts["number"] = core.store.number
            facts["pairs"] = core.store.tally.count
            facts["digest"] = core.shown_digest.hex() or None
            facts["state"] = "ROOT" if core.root.is_root else facts["state"]
        if isinstance(core, Chains):
            facts["mail"] = core.totals()
        if callable(more := getattr(core, "facts", None)):
            facts |= more()
        if name == "drain":
            rows, size = core.behind
            facts |= {"behind_rows": rows, "behind_bytes": size, "segments": self.segments, "rows": self.rows}
        return facts


def _console_of(telemetry: Telemetry) -> Routes:
    """The routes of a node's console."""
    node, console, clock = telemetry.node, telemetry.console, telemetry.clock
    commands = Commands()
    lake = lake_of(telemetry.settings, telemetry.state) if "drain" in node.cores else None

    @cache
    def reader() -> "DocumentReader":
        from weft.shell.console.documents import DocumentReader  # only a node with documents imports it

        return DocumentReader(lambda: cast("Documents", node.cores["document"]), telemetry.state, commands)

    return routes_of(
        Sources(
            console,
            Feed(console, clock.now),
            Lake(lake, commands),
            telemetry.logins,
            lambda: reader() if "document" in node.cores else None,
            lambda page: tables_of(page, node, telemetry.status(), clock.now()),
            Roads(telemetry.settings.node.port, lake, commands),
        )
    )


async def serve_pages(telemetry: Telemetry) -> None:
    """Serve the pages, and write their address into the state directory, for commands that know a node by its name."""
    table = telemetry.settings.node
    await telemetry.http.serve(with_loopback(table.host), table.port + HTTP_PORT)
    note_down(telemetry.state / HTTP_NOTE, f"127.0.0.1:{table.port + HTTP_PORT}")


async def close_pages(telemetry: Telemetry) -> None:
    """Serve the pages no more."""
    (telemetry.state / HTTP_NOTE).unlink(missing_ok=True)
    await telemetry.http.close()


def lake_of(settings: NodeSettings, state: Path) -> Path:
    """The directory of the lake that a node writes while it is a root."""
    return Path(settings.lake.path or state / "lake")
