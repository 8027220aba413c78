"""A picture of the fleet as this node knows it: its machines, their troubles, and the four numbers (CON-001).

While the fleet is well, only the strips of the map change, so little is sent to viewers: a trouble has the time of its
beginning, and the page itself counts for how long it lasts.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from weft.base.endpoints import HTTP as HTTP_PORT
from weft.base.endpoints import host_of, is_endpoint, port_of
from weft.base.now import MILLISECOND, Now
from weft.shell.console import limits
from weft.shell.console.lastvalues import SHOWN, LastValues, Machine, Ring
from weft.wire.alerts import Alert

WELL, ODD, WORSE, BAD = range(4)
"""Severity: nothing, worth a look, worse than before, trouble now."""
LEVELS: Final = {"root": "root", "branch": "collector", "leaf": "sensor", "collector": "collector", "sensor": "sensor"}
CHECKS: Final = {"degraded": WORSE, "failed": BAD}
UNKNOWN, WAITS, WHOLE, NOTHING, LOST = ".", "~", "o", "-", "x"
"""Characters of a strip: before it was known, still open, records arrived, nothing arrived, records are lost."""


class Facts(NamedTuple):
    """What the console reads from a running node."""

    node: bytes
    name: str
    level: str
    fleet: str
    port: int
    version: str
    tree: list[dict[str, Any]]
    """`tree` in the status of the node."""
    unassigned: list[dict[str, str]]
    root: dict[str, str]
    children: dict[bytes, str]
    """Names of children with an open link."""
    checks: list[dict[str, Any]]
    """The health checks of this node."""
    number: int | None
    """The number of the configuration that this node runs."""
    alerts: dict[bytes, list[Alert]]
    """Firing alerts by machine; except at a root only those of this node."""
    open_hosts: tuple[str, ...] = ()
    """Addresses at which other machines reach this node although it has no keys."""


class Trouble(NamedTuple):
    """One thing that is wrong."""

    much: int
    text: str
    do: str
    since: int | None = None
    """When it began, wall-clock ms of this node; the page shows for how long."""


class Place(NamedTuple):
    """A machine and its place in the tree."""

    node: bytes
    name: str
    level: str
    group: str
    endpoint: str
    parent: str
    number: int | None
    wanted: int | None
    is_placed: bool = True


class Console:
    """Observes one node; changes only its own memory of machines that have gone."""

    def __init__(self, facts: Callable[[], Facts], begun: Now) -> None:
        """`begun`: when the node started; what it shows is counted from then."""
        self.values = LastValues()
        self.facts = facts
        self._begun = begun
        self._looked: Now | None = None
        self._places: dict[bytes, Place] = {}

    def look(self, now: Now) -> dict[str, Any]:
        """The current picture: `head`, and `nodes` by UUID in hex; with the values since the last picture."""
        self._looked = self._looked or now
        facts = self.facts()
        places = self._placed(facts, now)
        parents = _parents(places)
        silent = {place.node: trouble for place in places if (trouble := self._silence(place, facts, now))}
        nodes = {}
        for place in places:
            above = parents.get(place.node)
            found = [*_silences(place, silent, above), *self._troubles(place, facts, now)]
            row = self._row(place, above, sorted(found, key=lambda each: -each.much), now)
            fresh = {name: ring.take() for name, ring in self._rings(place.node.hex())}
            nodes[place.node.hex()] = row | {"values": {name: points for name, points in fresh.items() if points}}
        return {"head": self._head(facts), "nodes": nodes}

    def values_of(self, node: str, points: int) -> dict[str, list[int | None]]:
        """The last points of each metric of a machine, by its UUID in hex; of a metric without values there is nothing."""
        found = {name: ring.packed(ring.head - points + 1) for name, ring in self._rings(node)}
        return {name: values for name, values in found.items() if values}

    def _rings(self, node: str) -> list[tuple[str, Ring]]:
        machine = self.values.machines.get(bytes.fromhex(node))
        return [(name, machine.rings[name]) for name in SHOWN] if machine else []

    def cell(self, node: bytes, cell: int) -> dict[str, Any] | None:
        """The numbers of ten seconds of a machine: received, lost, and why; None: the machine is not known."""
        machine = self.values.machines.get(node)
        if machine is None:
            return None
        first, last, received, lost = machine.cells.of(cell)
        why = [
            {"first": each.first, "last": each.last, "why": each.why}
            for each in machine.losses
            if each.at_ms // limits.CELL_MS == cell
        ]
        at, newest = cell * limits.CELL_MS, machine.newest_ms
        return {
            "at": at,
            "first": first,
            "last": last,
            "received": received,
            "lost": lost,
            "why": why,
            "newest": newest,
        }

    def name_of(self, node: bytes) -> str:
        """The name of a machine that is shown; empty if it is not shown."""
        return self._places[node].name if node in self._places else ""

    # Which machines there are

    def _placed(self, facts: Facts, now: Now) -> list[Place]:
        """This node, the whole tree, children with a link, and machines heard recently without a place."""
        found = {place.node: place for place in _of_tree(facts)}
        own = Place(facts.node, facts.name, facts.level, "", _own_endpoint(facts), "", facts.number, None)
        found[facts.node] = (
            found[facts.node]._replace(level=facts.level, number=facts.number) if facts.node in found else own
        )
        if facts.level == "root":
            found[facts.node] = found[facts.node]._replace(parent="")
        for node, name in facts.children.items():
            found.setdefault(node, Place(node, name, "", "", "", _own_endpoint(facts), None, None))
        self._places |= found
        for node, machine in list(self.values.machines.items()):
            if node in found:
                continue
            if now.mono - machine.heard.mono > limits.FORGOTTEN_NS:
                self.values.forget(node)
                self._places.pop(node, None)
                continue
            known = self._places.get(node) or Place(node, node.hex()[:8], "", "", "", "", None, None)
            found[node] = known._replace(is_placed=False)
        self._places = {node: place for node, place in self._places.items() if node in found}
        return list(found.values())

    # Troubles

    def _troubles(self, place: Place, facts: Facts, now: Now) -> Iterator[Trouble]:
        machine = self.values.machines.get(place.node)
        if place.node == facts.node:
            for check in facts.checks:
                if check["state"] in CHECKS:
                    text = f"{check['name']}: {check['text']}"
                    yield Trouble(CHECKS[check["state"]], text, check["do"], check["since"] * 1_000)
        if place.wanted is not None and (place.number or 0) < place.wanted:
            runs = f"runs number {place.number or 'none'} of the configuration, not {place.wanted}"
            yield Trouble(ODD, runs, "wait a moment; weft status")
        if machine is not None:
            yield from _of_values(machine, now)
        for alert in facts.alerts.get(place.node, ()):
            much = BAD if alert.severity == "critical" else WORSE
            says = f"{alert.text} · " if alert.text else ""
            text = f"alert {alert.name}: {says}{alert.metric} {alert.value:.6g} {alert.unit} ({alert.when})"
            yield Trouble(much, text, "weft alerts", alert.since)

    def _silence(self, place: Place, facts: Facts, now: Now) -> Trouble | None:
        """The trouble of a machine that is silent, but should send; None: it is not."""
        machine = self.values.machines.get(place.node)
        if place.node == facts.node:
            return None
        do = f"see whether it runs; there: weft status --port {port_of(place.endpoint)}" if place.endpoint else ""
        if machine is None:
            assert self._looked is not None, "set by look"
            if now.mono - self._looked.mono < limits.START_NS:
                return None
            return Trouble(BAD, "silent: nothing has come from it", do, self._looked.wall // MILLISECOND)
        silent_ns = now.mono - machine.heard.mono
        if silent_ns <= max(limits.SILENT_NS, limits.SILENT_GAPS * machine.gap_ns):
            return None
        gone = "" if place.is_placed else ", and it has no place in the tree any more"
        return Trouble(BAD, f"silent{gone}", do, (now.wall - silent_ns) // MILLISECOND // 1_000 * 1_000)

    # What is shown of each machine

    def _row(self, place: Place, above: Place | None, found: list[Trouble], now: Now) -> dict[str, Any]:
        machine = self.values.machines.get(place.node)
        return {
            "name": place.name,
            "level": place.level,
            "group": place.group,
            "endpoint": place.endpoint,
            "parent": above.node.hex() if above else "",
            "number": place.number,
            "wanted": place.wanted,
            "much": max([trouble.much for trouble in found], default=WELL),
            "troubles": found,
            "strip": strip_of(machine, now),
            "counts": machine.counts() if machine else (0, 0, 0),
            "newest": machine.newest_ms if machine else 0,
            "busiest": machine.busiest if machine else None,
        }

    def _head(self, facts: Facts) -> dict[str, Any]:
        root = facts.root["endpoint"]
        is_elsewhere = facts.level != "root" and is_endpoint(root)
        return {
            "fleet": facts.fleet,
            "node": facts.node.hex(),
            "name": facts.name,
            "level": facts.level,
            "version": facts.version,
            "begun": self._begun.wall // MILLISECOND,
            "root": f"http://{host_of(root)}:{port_of(root) + HTTP_PORT}/console/" if is_elsewhere else "",
            "open": ", ".join(facts.open_hosts),
            "homeless": [f"{guest['name'] or '?'} at {guest['endpoint']}" for guest in facts.unassigned],
        }


def _parents(places: list[Place]) -> dict[bytes, Place]:
    """The parent of each machine, by UUID."""
    at = {place.endpoint: place for place in places if place.endpoint}
    found = {place.node: at[place.parent] for place in places if place.parent in at}
    return {node: above for node, above in found.items() if above.node != node}


def _silences(place: Place, silent: dict[bytes, Trouble], above: Place | None) -> Iterator[Trouble]:
    """The trouble of a silent machine; below another silent machine it is a consequence and comes last."""
    if place.node not in silent:
        return
    trouble = silent[place.node]
    if place.is_placed and above is not None and above.node in silent:
        trouble = trouble._replace(
            much=WORSE, text=f"silent, as is {above.name} above it", do=f"mend {above.name} first"
        )
    yield trouble


def _of_tree(facts: Facts) -> Iterator[Place]:
    for row in facts.tree:
        endpoint = str(row.get("endpoint", ""))
        yield Place(
            bytes.fromhex(row["node"]),
            str(row.get("name") or row["node"][:8]),
            LEVELS.get(str(row.get("level")), "sensor"),
            str(row["group"]),
            endpoint if is_endpoint(endpoint) else "",
            str(row.get("parent", "")),
            row["number"],
            row["wanted"],
        )


def _own_endpoint(facts: Facts) -> str:
    return facts.root["endpoint"] if facts.level == "root" and facts.root["endpoint"] else f"127.0.0.1:{facts.port}"


def _of_values(machine: Machine, now: Now) -> Iterator[Trouble]:
    """Troubles found in its values: lost numbers, old samples, a full disk."""
    expected, received, lost = machine.counts()
    if machine.losses and now.wall // MILLISECOND - machine.losses[-1].at_ms < limits.CELLS * limits.CELL_MS:
        why = machine.losses[-1].why
        yield Trouble(WORSE, f"{lost:,} samples are lost: {why}", "more [journal] megabytes there")
    if missing := expected - received - lost:
        yield Trouble(ODD, f"{missing:,} samples have not come yet", "wait until it has sent what it keeps")
    late_ms = now.wall // MILLISECOND - machine.newest_ms
    if machine.newest_ms and late_ms > limits.LATE_MS and now.mono - machine.heard.mono < limits.SILENT_NS:
        yield Trouble(ODD, "sends old samples: it catches up", "wait", machine.newest_ms // 10_000 * 10_000)
    for name, much, too_much in limits.SHARES:
        value = machine.last(name)
        if value is not None and value >= much:
            yield Trouble(BAD if value >= too_much else WORSE, f"{name} {value:.0f} % full", "make room there")


def strip_of(machine: Machine | None, now: Now) -> str:
    """Ten minutes of a machine, a character for each ten seconds; the last one is still open."""
    newest = now.wall // MILLISECOND // limits.CELL_MS
    if machine is None:
        return UNKNOWN * limits.CELLS
    at, turns, known = machine.cells.strip
    if (at, turns) != (newest, machine.cells.turns):
        cells = range(newest - limits.CELLS + 1, newest + 1)
        known = "".join(_character(machine, cell, cell == newest) for cell in cells)
        machine.cells.strip = newest, machine.cells.turns, known
    return known


def _character(machine: Machine, cell: int, is_open: bool) -> str:  # noqa: FBT001  # of one cell
    _, _, received, lost = machine.cells.of(cell)
    if lost:
        return LOST
    if received:
        return WHOLE
    if cell <= machine.since_cell:
        return UNKNOWN
    return WAITS if is_open else NOTHING
