"""`weft status`: the whole fleet as its root knows it, and the state of each node that answers."""

import json as json_module
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

from weft.base.endpoints import endpoint_of, host_of, is_endpoint, port_of
from weft.base.errors import UserError
from weft.base.now import SECOND
from weft.cli.asking import LOCAL, status_of
from weft.cli.kit.exits import DONE, NOT_SO
from weft.cli.kit.options import Flag
from weft.cli.which import PORT, AskedPort
from weft.wire.discovery import LEVEL_NAMES

Ask = Callable[[int, str], dict[str, Any]]
ORDER: Final = {"root": 0, "collector": 1, "sensor": 2}
COLUMNS: Final = ("node", "level", "group", "endpoint", "runs", "said", "health")
LOADS: Final = ("node", "health", "parent link", "children", "samples", "spool", "journal", "memory", "up")
MEMORY: Final = ("node", "core", "holds", "may hold", "refused")
ASKED_AT_ONCE: Final = 64
DIGEST_SHOWN: Final = 8  # of 32 hex digits: enough to see that two digests differ
NO_ANSWER: Final = "no answer"
CLOSED: Final = "closed"
"""Health of a node of a closed fabric at another machine: it runs, and shows the rest on its own machine only."""
SHUT: Final[dict[str, Any]] = {}
"""The answer of such a node."""


class Member(NamedTuple):
    """A node of the fleet, as the root knows it."""

    depth: int
    """Steps below the root."""
    name: str
    level: str
    group: str
    parent: str
    """Its endpoint."""
    endpoint: str
    number: int | None
    """The write of the configuration that it runs, as it has reported; None: it has reported nothing yet."""
    wanted: int | None
    """The last write of the configuration that concerns it."""
    age_s: int | None
    """How long ago it reported that."""
    health: str
    """The state that the node reports, or that it does not answer."""

    @property
    def is_behind(self) -> bool:
        """Whether it does not run the last write that concerns it."""
        return self.wanted is not None and (self.number is None or self.number < self.wanted)


class Picture(NamedTuple):
    """All that is known of a fleet at one moment."""

    fleet: str
    root: str
    """Endpoint of the root; empty: the asked node knows none."""
    has_root: bool
    """Whether the tree is from the root itself."""
    number: int
    members: list[Member]
    unassigned: list[dict[str, Any]]
    nodes: list[dict[str, Any]]
    """The status of every node that answers: the asked one, the root, the others."""
    is_shut: bool = False
    """Whether the root runs, and shows the fleet on its own machine only."""


def status(*, port: AskedPort = PORT, long: Flag = False, watch: Flag = False, json: Flag = False) -> int:
    """Show the whole fleet: who is where, which configuration each node runs, and how it is.

    Any node can be asked; the list of nodes comes from the root. RUNS is the number of the last write of the configuration
    that a node has reported to run, as in `weft config history`; SAID is how long ago it reported that.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
        long: also links, samples, spool, journal and memory of every node that answers.
        watch: keep showing the fleet, as weft top does.
        json: all facts as JSON: the fleet, the nodes without a group, the status of every node that answers.
    """
    if watch:
        from weft.cli.top import top  # only --watch needs it

        return top(port=port)
    picture = picture_of(port, status_of, time.time_ns())
    if json:
        print(json_module.dumps(_facts(picture)))
    else:
        _show(picture, is_long=long)
    return NOT_SO if any(node["health"]["state"] == "failed" for node in picture.nodes[:1]) else DONE


def picture_of(port: int, ask: Ask, now_ns: int) -> Picture:
    """Ask the node at `port`, its root, and all nodes that the root names; UserError if the first does not answer."""
    asked = ask(port, LOCAL)
    root = asked["root"]["endpoint"]
    answers: dict[str, dict[str, Any] | None] = {own_endpoint(asked): asked}
    if root and root not in answers:
        answers[root] = _try(ask, root)
    source = answers.get(root) or asked
    neighbours = [
        endpoint_of(known["host"], known["port"]) for status in (source, asked) for known in status["neighbours"]
    ]
    named = [record["endpoint"] for record in _sound(source)]
    answers |= _ask_all(ask, [endpoint for endpoint in (*named, *neighbours) if endpoint not in answers])
    return Picture(
        asked["fleet"],
        root,
        source["level"] == "root",
        number_of(source) or 0,
        members_of(source, answers, now_ns),
        source["unassigned"],
        [status for status in answers.values() if status],
        answers.get(root) == SHUT,
    )


def own_endpoint(status: dict[str, Any]) -> str:
    """The endpoint of a node with this status: as the root knows it, else on this machine."""
    records = [*status["tree"], status["root"]] if status["level"] == "root" else status["tree"]
    mine = [r["endpoint"] for r in records if r.get("node", status["node"]) == status["node"] and r.get("endpoint")]
    return str(mine[0]) if mine else endpoint_of(LOCAL, status["port"])


def _sound(source: dict[str, Any]) -> list[dict[str, Any]]:
    return [record for record in source["tree"] if is_endpoint(str(record.get("endpoint")))]


def _ask_all(ask: Ask, endpoints: Iterable[str]) -> dict[str, dict[str, Any] | None]:
    wanted = list(dict.fromkeys(endpoints))
    if not wanted:
        return {}
    with ThreadPoolExecutor(min(ASKED_AT_ONCE, len(wanted))) as pool:
        return dict(zip(wanted, pool.map(lambda endpoint: _try(ask, endpoint), wanted), strict=True))


def _try(ask: Ask, endpoint: str) -> dict[str, Any] | None:
    try:
        return ask(port_of(endpoint), host_of(endpoint))
    except UserError as error:
        return SHUT if error.code == "login" else None


def members_of(source: dict[str, Any], answers: dict[str, dict[str, Any] | None], now_ns: int) -> list[Member]:
    """The fleet as a tree, each node behind its parent; nodes without a known parent come last.

    An elected root is still recorded at its former place, below a parent that may now be its child: its own answer counts.
    A node that answers at another address of its machine than that of its record is the same.
    """
    answered = {status["node"]: status for status in answers.values() if status}
    records = [r for r in _sound(source) if source["level"] != "root" or r["node"] != source["node"]]
    found = [_source_itself(source)] if all(record["node"] != source["node"] for record in records) else []
    found += [
        _recorded(record, answered.get(record["node"], answers.get(record["endpoint"])), now_ns) for record in records
    ]
    known = {member.endpoint for member in found} | {guest["endpoint"] for guest in source["unassigned"]}
    placed = {source["node"], *(record["node"] for record in records)}
    places = {member.name: member.endpoint for member in found}
    fixed = [
        status
        for endpoint, status in answers.items()
        if status and endpoint not in known and status["node"] not in placed
    ]
    places |= {status["name"]: own_endpoint(status) for status in fixed}
    found += [_fixed(status, places) for status in fixed]
    return _in_order(found)


def _source_itself(status: dict[str, Any]) -> Member:
    number, endpoint, parent = number_of(status), own_endpoint(status), ""
    health = status["health"]["state"]
    return Member(0, status["name"], status["level"], status["group"], parent, endpoint, number, None, None, health)


def _recorded(record: dict[str, Any], status: dict[str, Any] | None, now_ns: int) -> Member:
    at = record["at"]
    if status and status["node"] != record["node"]:
        status = None  # another node has this endpoint now
    number = record["number"]
    if (
        number is None and record["wanted"] is None and status
    ):  # other nodes than the root do not know what the others run
        number = number_of(status)
    return Member(
        0,
        record.get("name") or record["node"][:8],
        LEVEL_NAMES.get(str(record.get("level")), "sensor"),
        record["group"],
        record.get("parent", ""),
        record["endpoint"],
        number,
        record["wanted"],
        max(0, now_ns - at) // SECOND if at is not None else None,
        NO_ANSWER if status is None else status["health"]["state"] if status else CLOSED,
    )


def _fixed(status: dict[str, Any], places: dict[str, str]) -> Member:
    """A node that the root has not placed: its parent is fixed in its file, or unknown."""
    parent = places.get(status["parent"]["name"], "") if status["level"] != "root" else ""
    own, health = own_endpoint(status), status["health"]["state"]
    return Member(
        0, status["name"], status["level"], status["group"], parent, own, number_of(status), None, None, health
    )


def number_of(status: dict[str, Any]) -> int | None:
    """The write of the configuration that a node runs, by its status; None: it has none."""
    return status["cores"].get("configuration", {}).get("number") or None


def _in_order(members: Sequence[Member]) -> list[Member]:
    below: dict[str, list[Member]] = {}
    places = {member.endpoint for member in members}
    for member in sorted(members, key=lambda m: (ORDER.get(m.level, 2), m.name)):
        below.setdefault(member.parent if member.parent in places else "", []).append(member)
    listed: list[Member] = []

    def descend(endpoint: str, depth: int) -> None:
        for member in below.pop(endpoint, ()):
            listed.append(member._replace(depth=depth))
            descend(member.endpoint, depth + 1)

    descend("", 0)
    for ring in list(below):
        descend(ring, 1)
    return listed


# Output


def _facts(picture: Picture) -> dict[str, Any]:
    members = [{**member._asdict(), "is_behind": member.is_behind} for member in picture.members]
    return {**picture._asdict(), "members": members}


def _show(picture: Picture, *, is_long: bool) -> None:
    from rich.text import Text  # only people need it

    from weft.cli.kit.console import console, plain_table  # loads rich

    out = console()
    if any(node["open"] for node in picture.nodes):
        out.print("[yellow]open fabric: no keys; whoever reaches a port can pose as any node[/yellow]")
    out.print(Text(heading(picture)))
    table = plain_table(*COLUMNS)
    for member in picture.members:
        table.add_row(*map(Text, cells(member)))
    out.print(table)
    if is_long:
        loads = plain_table(*LOADS)
        for depth, node in in_tree_order(picture.nodes):
            loads.add_row(*map(Text, row_of(node, depth)))
        out.print(loads)
        memory = plain_table(*MEMORY)
        for _, node in in_tree_order(picture.nodes):
            for row in memory_of(node):
                memory.add_row(*map(Text, row))
        out.print(memory)
    for line in [*explained(picture.members), *open_doors(picture.nodes)]:
        out.print(Text(line, style="dim"))
    for line in firing(picture.nodes):
        out.print(Text(line, style="yellow"))
    for what, mend in troubles(picture):
        out.print(Text(what, style="yellow"))
        out.print(Text(f"  try: {mend}", style="dim"))


def explained(members: Iterable[Member]) -> list[str]:
    """A line for a word in the column of health that is no state of a node."""
    if all(member.health != CLOSED for member in members):
        return []
    return [f"{CLOSED}: it runs, and tells how it is on its own machine only; weft top shows what is heard from it"]


def open_doors(nodes: Iterable[dict[str, Any]]) -> list[str]:
    """A line for each node with keys that also listens without asking for one: where, and who can enter (SEC-055)."""
    found = [(node["name"], node.get("security", {}).get("doors", ())) for node in nodes if not node["open"]]
    return [
        f"{name} asks for no key at " + "; ".join("{name} {at} ({lets_in})".format(**door) for door in doors)
        for name, doors in found
        if doors
    ]


def firing(nodes: Iterable[dict[str, Any]]) -> list[str]:
    """A line for each answering node with firing alerts."""
    counts = [(node["name"], node.get("alerts", {}).get("firing", 0)) for node in nodes]
    return [
        f"{name}: {count} alert{'s' * (count > 1)} fire{'s' * (count < 2)}: weft alerts"
        for name, count in counts
        if count
    ]


def heading(picture: Picture) -> str:
    """One line about the whole fleet."""
    if picture.has_root and not picture.root:
        return f"fleet {picture.fleet}, its root has just started: it leads after two heartbeats"
    if picture.has_root:
        holding_text = next((holding(node) for node in picture.nodes if own_endpoint(node) == picture.root), "")
        return f"fleet {picture.fleet}, root {picture.root}, configuration number {picture.number}{holding_text}"
    silence = "shows all of it on its own machine only" if picture.is_shut else "does not answer"
    where = f"its root {picture.root} {silence}" if picture.root else "no root is known here"
    return f"fleet {picture.fleet}, {where}; this is what {picture.nodes[0]['name']} knows"


def holding(status: dict[str, Any]) -> str:
    """How many pairs of the configuration a node has, and the beginning of their digest; empty: it has only a part."""
    facts = status["cores"].get("configuration", {})
    digest = facts.get("digest")
    return f", {facts['pairs']} pairs, digest {digest[:DIGEST_SHOWN]}" if digest else ""


def diverged(nodes: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """Nodes whose configuration differs from the root's at the same number, each with what to do."""
    found: dict[int, dict[str, str]] = {}
    for node in nodes:
        if (number := number_of(node)) is not None and (text := holding(node)):
            found.setdefault(number, {}).setdefault(text, node["name"])
    return [
        (
            f"at number {number} of the configuration "
            + "; ".join(f"{name} has{text[1:]}" for text, name in by.items()),
            "wait a minute: the lower node asks for everything again; if they still differ, keep both states and ask for help",
        )
        for number, by in found.items()
        if len(by) > 1
    ]


def cells(member: Member) -> tuple[str, ...]:
    """The cells of a node in the table."""
    number = "nothing yet" if member.number is None else str(member.number)
    return (
        "  " * member.depth + member.name,
        member.level,
        member.group or "-",
        member.endpoint,
        f"{number}, behind {member.wanted}" if member.is_behind else number,
        "-" if member.age_s is None else age(member.age_s),
        member.health,
    )


def age(seconds: int) -> str:
    """A span for people.

    >>> age(7), age(119), age(7_200), age(200_000)
    ('7 s', '1 min', '2 h', '2 d')
    """
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def troubles(picture: Picture) -> list[tuple[str, str]]:
    """What is wrong in the fleet, each with what to do."""
    found = []
    for guest in picture.unassigned:
        endpoint = guest["endpoint"]
        mend = f"""weft config set GROUP/members '[..., "{endpoint}"]', with the members that weft config list shows"""
        found.append((f"{guest['name'] or endpoint} at {endpoint}: no group wants it, so it has no place", mend))
    for member in picture.members:
        if member.health == NO_ANSWER:
            mend = f"see whether it runs; there: weft status --port {port_of(member.endpoint)}"
            found.append((f"{member.name} at {member.endpoint} does not answer", mend))
    if picture.root and not picture.has_root and not picture.is_shut:
        found.append((f"the root at {picture.root} does not answer", "start it, or wait for another one to be elected"))
    found += diverged(picture.nodes)
    placeless = {guest["endpoint"] for guest in picture.unassigned}
    for node in picture.nodes:
        is_listed = own_endpoint(node) in placeless
        for name, check, text, mend in troubles_of(node):
            if check != "parent" or not is_listed:
                found.append((f"{name}: {check}: {text}", mend))
    return found


def in_tree_order(nodes: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """Nodes with their depth, each behind its parent; nodes whose parent is not known come last."""
    by_parent: dict[str, list[dict[str, Any]]] = {}
    for node in sorted(nodes, key=lambda n: (ORDER[n["level"]], n["name"])):
        by_parent.setdefault(node["parent"]["name"], []).append(node)
    listed: list[tuple[int, dict[str, Any]]] = []

    def descend(name: str, depth: int) -> None:
        for node in by_parent.pop(name, ()):
            listed.append((depth, node))
            descend(node["name"], depth + 1)

    descend("", 0)
    for orphans in list(by_parent):
        descend(orphans, 1)
    return listed


def row_of(node: dict[str, Any], depth: int) -> tuple[str, ...]:
    """The cells of a node with --long: its links, samples, spool, journal and memory."""
    carrier = node["cores"].get("carrier", {})
    measurement = node["cores"].get("measurement", {})
    return (
        "  " * depth + node["name"],
        str(node["health"]["state"]),
        "root" if node["level"] == "root" else str(carrier.get("state") or "-"),
        str(carrier.get("children", "-")),
        f"{measurement.get('numbered', 0):,}",
        f"{carrier.get('spool_records', 0):,}",
        f"{node['journal']['bytes'] / 1e6:.1f} MB {node['journal']['state'].lower()}",
        f"{node['memory_bytes'] / 1e6:.0f} MB",
        f"{node['uptime_s']} s",
    )


def memory_of(node: dict[str, Any]) -> list[tuple[str, ...]]:
    """The memory of each core of a node as cells: used, allowed, and what was refused for lack of it."""
    return [
        (
            node["name"],
            core,
            f"{memory['bytes'] / 1e6:.1f} MB",
            f"{memory['budget_bytes'] / 1e6:.0f} MB",
            str(sum(part["refused"] for part in memory["parts"].values())),
        )
        for core, memory in node.get("memory", {"cores": {}})["cores"].items()
        if memory["parts"]
    ]


def troubles_of(node: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """What is wrong with a node: its name, the check, what was found, and what to do."""
    checks = [check for check in node["health"]["checks"] if check["state"] != "ok"]
    return [(node["name"], check["name"], check["text"], check["do"]) for check in checks]
