"""What an operator sees of a node: log lines, the status, health and metrics of its http pages (OBS-001..005)."""

import json
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from weft import __version__
from weft.base.now import SECOND
from weft.cores.drain.messages import DrainClosed
from weft.cores.topology import Topology
from weft.node.events import EVENTS, describe
from weft.node.node import Node
from weft.node.settings import NodeSettings
from weft.shell.clock import Clock
from weft.shell.http import Page, Pages
from weft.shell.journal import Journal
from weft.shell.links import Links
from weft.shell.log import Log

JSON_TYPE: Final = "application/json"
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass
class Telemetry:
    """Reads a running node; changes nothing."""

    settings: NodeSettings
    node: Node
    journal: Journal
    links: Links
    clock: Clock
    log: Log
    started_at: int
    is_drained: bool = False
    """The drain has written everything and closed."""

    def on_tell(self, event: Any) -> None:
        """Log an event that has a row in the table of events; others are told between cores only."""
        self.is_drained = self.is_drained or isinstance(event, DrainClosed)
        row = EVENTS.get(type(event))
        if row is not None:
            self.log.write(row.level, row.name, describe(event)[2])

    def pages(self) -> Pages:
        """The http pages of this node."""
        return {"/status": self._status_page, "/healthz": self._health_page, "/metrics": self._metrics_page}

    def status(self) -> dict[str, Any]:
        """Everything at a glance, as `weft status --json` prints it; the schema is only added to (OBS-005)."""
        table = self.settings.node
        return {
            "name": table.name,
            "level": table.level,
            "node": self.node.node.hex(),
            "era": self.node.era,
            "fleet": self.settings.fleet.name,
            "version": __version__,
            "open": True,
            "port": table.port,
            "uptime_s": (self.clock.now().mono - self.started_at) // SECOND,
            "memory_bytes": _resident_bytes(),
            "health": self.health(),
            "journal": self.journal_facts(),
            "refused": {f"{channel}:{code}": count for (channel, code), count in sorted(self.node.refused.items())},
            "dropped": dict(self.links.dropped),
            "cores": {name: _facts(core) for name, core in self.node.cores.items()},
            "parent": self._parent(),
            "neighbours": self._neighbours(),
        }

    def _parent(self) -> dict[str, str]:
        topology = self.node.cores["topology"]
        assert isinstance(topology, Topology)
        return {"name": self.settings.node.parent, "endpoint": topology.parent_endpoint}

    def _neighbours(self) -> list[dict[str, Any]]:
        topology = self.node.cores["topology"]
        assert isinstance(topology, Topology)
        return [
            {"name": known.beacon.name, "level": known.beacon.level, "host": known.host, "port": known.beacon.port}
            for known in topology.neighbours.values()
        ]

    def journal_facts(self) -> dict[str, Any]:
        """What the journal holds and may hold."""
        stats = msgspec.to_builtins(self.journal.stats)
        return {
            "state": self.journal.state.name,
            "bytes": self.journal.bytes_used,
            "next_lsn": self.journal.next_lsn,
            **stats,
        }

    def health(self) -> dict[str, Any]:
        """`ok`, `degraded` (says why and what to do) or `failed`."""
        state = self.journal.state.name
        checks = [
            {"name": "journal", "state": "ok" if state == "OPEN" else "degraded", "text": state.lower()},
        ]
        worst = "failed" if state == "FAILED" else next((c["state"] for c in checks if c["state"] != "ok"), "ok")
        return {"state": worst, "checks": checks}

    def _status_page(self) -> Page:
        return Page(200, JSON_TYPE, json.dumps(self.status()).encode() + b"\n")

    def _health_page(self) -> Page:
        health = self.health()
        return Page(503 if health["state"] == "failed" else 200, JSON_TYPE, json.dumps(health).encode() + b"\n")

    def _metrics_page(self) -> Page:
        return Page(200, METRICS_TYPE, _exposition(self.status()))


def _facts(core: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {"state": getattr(getattr(core, "state", None), "name", None)}
    counters = getattr(core, "counters", None)
    if counters is not None:
        facts |= msgspec.to_builtins(counters, str_keys=True)
    return facts


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _exposition(status: dict[str, Any]) -> bytes:
    """The whole numbers of a status as Prometheus text: `weft_<subsystem>_<what>` (OBS-003)."""
    from prometheus_client import CollectorRegistry, Gauge, generate_latest  # 4 MB nobody else needs

    registry = CollectorRegistry()
    Gauge("weft_security_open", "1: no keys, whoever reaches a port can pose as any node", registry=registry).set(1)
    for path, value in _numbers("weft", status):
        Gauge(path, "see docs/status.md", registry=registry).set(value)
    return generate_latest(registry)


def _numbers(path: str, value: Any) -> Iterator[tuple[str, int]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            clean = "".join(c if c.isalnum() else "_" for c in str(key)).strip("_")
            yield from _numbers(path if key == "cores" else f"{path}_{clean}", inner)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield path, value
