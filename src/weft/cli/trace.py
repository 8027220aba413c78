"""`weft trace`: the road of one record from its origin to the lake, with node and time (OBS-007)."""

import json as to_json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import urlencode

from cyclopts import Parameter

from weft.base.endpoints import LINK, endpoint_of, host_of, is_endpoint, port_of
from weft.base.errors import UserError
from weft.base.now import SECOND
from weft.cli.asking import LOCAL, status_of, text_of
from weft.cli.kit.exits import DONE, NOT_SO, complain
from weft.cli.kit.lines import date_and_clock
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean
from weft.cli.status import own_endpoint, picture_of
from weft.cli.which import PORT, AskedPort
from weft.lake.layout import STREAMS

NODES_MAX: Final = 64  # queried for a number whose origin is not a node of the fleet
DEPTH_MAX: Final = 16
STATES: Final = ("unknown", "made", "durable", "sent", "held", "safe", "in the lake", "lost")
WORD: Final = {"waiting": "durable", "arrived": "held", "kept": "safe", "drained": "in the lake"}


class Step(NamedTuple):
    """One step of a record on its road."""

    what: str
    node: str
    at: int
    """Wall-clock ns of that node; 0: the time is unknown."""
    text: str


class Road(NamedTuple):
    """Everything known about one record."""

    stream: str
    origin: str
    era: int | None
    name: str
    """The node that made it; empty: none of the nodes queried."""
    sequence: int
    key: str
    steps: list[Step]

    @property
    def state(self) -> str:
        """How far it has got."""
        return max((step.what for step in self.steps), key=STATES.index, default="unknown")


def trace(
    what: str,
    number: int | None = None,
    /,
    *,
    stream: str | None = None,
    era: int | None = None,
    port: AskedPort = PORT,
    lake: Annotated[Path | None, Parameter(name="--lake")] = None,
    json: Flag = False,
) -> int:
    """Follow one record: made, durable, sent, held by a parent, safe, in the lake; each step with node and time.

    `weft trace s1:1234`, `weft trace s1 1234 --stream messages`, `weft trace 5f3a9c21:7` (an entry of a document)

    A record is named by its origin and number: `origin` and `sequence` in `weft journal show`, in the tables and in
    `weft lake missing`, the last part of `mid` in `weft chain watch --json`, SOURCE:NUMBER in `weft doc log`. Times are by
    each node's own clock. Exit status 0 if the record was found, 1 if not.

    Args:
        what: ORIGIN:NUMBER, or ORIGIN followed by the number; ORIGIN is a node's name, 32 hex digits, or the beginning of
            a document's source.
        number: the number of the record.
        stream: samples, messages, events, store, catalog, logs, documents or configuration; default: any.
        era: the start of the origin, as in `weft status --json`; default: the latest that is found.
        port: the node's name, its state directory, or the first of its ten ports; all nodes above the origin are asked, too.
        lake: also look into the lake in this directory; the root only knows whether it has drained the record.
        json: one object per record.
    """
    origin, sequence = _name_of(what, number)
    if stream is not None and stream not in STREAMS:
        raise UserError("no-stream", f"there is no stream {stream!r}", f"--stream with one of {' '.join(STREAMS)}")
    way, named = _way(port, origin)
    query = (
        {"origin": named, "sequence": sequence} | ({"stream": stream} if stream else {}) | ({"era": era} if era else {})
    )
    reports = {endpoint: _ask(endpoint, query) for endpoint in way}
    roads = roads_of(sequence, way, reports)
    if lake is not None:
        roads = list(_with_lake(roads, lake, named, sequence, stream, era))
    roads = [road for road in roads if era is not None or road.era == _latest(roads, road.stream)]
    for road in roads:
        print(to_json.dumps(_facts(road)) if json else "\n".join(_lines(road)))
    if roads:
        return DONE
    names = ", ".join(clean(status["name"]) for status in way.values())
    mend = "--lake DIR, since journals forget what is safe; or weft lake missing"
    return complain(f"no node has {clean(origin)}:{sequence} (asked: {names})\n  try: {mend}", NOT_SO)


def _name_of(what: str, number: int | None) -> tuple[str, int]:
    origin, _, last = what.rpartition(":") if number is None else (what, "", str(number))
    if not origin or not (last.isascii() and last.isdigit()) or int(last) < 1 or len(last) > 18:
        raise UserError("no-record", f"{what!r} names no record", "weft trace s1:1234, or weft trace s1 1234")
    return origin, int(last)


# Which nodes to query

Way = dict[str, dict[str, Any]]
"""The status of nodes by endpoint, in the order of the road."""


def _way(port: int, origin: str) -> tuple[Way, str]:
    """The status of the origin and of all nodes above it, or of all nodes if it is no node; and the origin's UUID."""
    picture = picture_of(port, status_of, time.time_ns())
    nodes = {own_endpoint(status): status for status in picture.nodes}
    made_by = [endpoint for endpoint, status in nodes.items() if origin in (status["name"], status["node"])]
    if not made_by:
        return dict(list(nodes.items())[:NODES_MAX]), origin
    way: Way = {}
    endpoint = made_by[0]
    while endpoint and endpoint not in way and len(way) < DEPTH_MAX:
        status = nodes.get(endpoint) or _status(endpoint)
        if status is None:
            break
        way[endpoint] = status
        endpoint = _parent_of(status)
    return way, str(nodes[made_by[0]]["node"])


def _parent_of(status: dict[str, Any]) -> str:
    link = str(status["parent"]["endpoint"])
    return endpoint_of(host_of(link), port_of(link) - LINK) if is_endpoint(link) else ""


def _status(endpoint: str) -> dict[str, Any] | None:
    try:
        return status_of(port_of(endpoint), host_of(endpoint))
    except UserError:
        return None


def _ask(endpoint: str, query: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        reports = to_json.loads(text_of(port_of(endpoint), f"trace?{urlencode(query)}", host_of(endpoint) or LOCAL))
    except (UserError, ValueError):
        return []
    return reports if isinstance(reports, list) else []


# The answers


def roads_of(sequence: int, way: Way, reports: dict[str, list[dict[str, Any]]]) -> list[Road]:
    """One road per record that was found, with the reports of each node, in the order of the road."""
    roads: dict[tuple[str, str, int | None], Road] = {}
    names = {status["node"]: status["name"] for status in way.values()}
    for endpoint, status in way.items():
        parent = way.get(_parent_of(status), {}).get("name") or status["parent"]["name"] or "a parent"
        for found in reports[endpoint]:
            key = (found["stream"], found["origin"], found["era"])
            name = names.get(found["origin"], "")
            road = roads.setdefault(key, Road(*key, name, sequence, found.get("key", ""), []))
            road.steps.extend(_steps(found, status, parent, is_first=not road.steps))
    return list(roads.values())


def _steps(found: dict[str, Any], status: dict[str, Any], parent: str, *, is_first: bool) -> Iterator[Step]:
    name, stage = status["name"], found["stage"]
    place = f"record {found['lsn']:,} of its journal"
    if "lost" in found:
        yield Step("lost", name, 0, f"announced as lost, {found['lost']}: {place}")
        return
    if is_first:
        yield Step("made", name if status["node"] == found["origin"] else found["origin"], found["at"], found["key"])
    is_own = status["node"] == found["origin"]
    yield Step("durable" if is_own or is_first else "held", name, found["received"], place)
    if status["level"] == "root":
        yield Step("safe", name, found["received"], "durable at the root")
        if stage == "drained":
            yield Step("in the lake", name, 0, "the root has drained it")
    elif stage == "waiting":
        yield Step("durable", name, 0, f"waits for {parent}")
    elif stage in ("sent", "held", "safe"):
        yield Step("sent", name, 0, f"to {parent}")
        if stage != "sent":
            yield Step("held", parent, 0, f"{parent} has acknowledged it")
        if stage == "safe":
            yield Step("safe", name, 0, f"{name} knows it, and may forget the record")


def _with_lake(
    roads: list[Road], lake: Path, origin: str, sequence: int, stream: str | None, era: int | None
) -> Iterator[Road]:  # tidy: the parts of a query
    from weft.lake.layout import Layout

    found = {
        (name, *key): steps
        for name in ([stream] if stream else STREAMS)
        for key, steps in _in_lake(Layout(lake), name, origin, sequence, era).items()
    }
    for road in roads:
        yield road._replace(steps=[*road.steps, *found.pop((road.stream, road.origin, road.era), [])])
    for (name, by, start), steps in found.items():
        yield Road(name, by, start, "", sequence, "", steps)


def _in_lake(
    layout: Any, stream: str, origin: str, sequence: int, era: int | None
) -> dict[tuple[str, int | None], list[Step]]:
    """The segments that hold it, or say that it is lost; by origin and era."""
    from weft.lake.summary import manifests_of
    from weft.shell.tracing import is_by

    found: dict[tuple[str, int | None], list[Step]] = {}
    for manifest in manifests_of(layout, stream):
        place = f"segment {manifest.number:,} of {stream}, drained by {manifest.drain[:8]}"
        for by, start, ranges in manifest.ranges:
            if is_by(by, origin) and era in (None, start) and any(a <= sequence <= b for a, b in ranges):
                steps = found.setdefault((by, start), [])
                steps.append(Step("in the lake", "lake", manifest.last_received or 0, f"{place}, received before"))
        for by, start, first, last, why in manifest.lost:
            if is_by(by, origin) and era in (None, start) and first <= sequence <= last and why != "era-end":
                found.setdefault((by, start), []).append(Step("lost", "lake", 0, f"{place}: {why}"))
    return found


def _latest(roads: Iterable[Road], stream: str) -> int | None:
    eras = [road.era for road in roads if road.stream == stream]
    return None if None in eras else max(era for era in eras if era is not None)


# Output


def _facts(road: Road) -> dict[str, Any]:
    steps = [step._asdict() for step in road.steps]
    return {**road._asdict(), "state": road.state, "steps": steps}


def _lines(road: Road) -> Iterator[str]:
    era = f", era {road.era}" if road.era is not None else ""
    yield clean(f"{road.stream} {road.sequence:,} of {road.name or road.origin}{era}: {road.state}")
    for step in road.steps:
        yield clean(f"  {step.what:11} {_when(step.at):23} {step.node:12} {step.text}").rstrip()


def _when(at: int) -> str:
    if not at:
        return ""
    return f"{date_and_clock(at // SECOND)}.{at // 1_000_000 % 1_000:03}"
