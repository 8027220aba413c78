"""The other pages of the console: tables of this node, made on request (CON-002).

A page is a list of tables, all shown by the same code. They contain what this node knows; the number and size of rows
are bounded, and the number of rows not shown is stated.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec

from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.cores.chains.core import Chains
from weft.cores.chains.show import show
from weft.cores.configuration.core import Configuration
from weft.node.node import Node
from weft.shell.alertfacts import page_of
from weft.wire.store.path import text_of

if TYPE_CHECKING:
    from weft.base.changes import Event
    from weft.cores.catalog.core import Catalog
    from weft.cores.store.core import Store

ROWS_MAX: Final = 500  # of one table
TEXT_MAX: Final = 300  # characters of one value
ALERT: Final = ("severity", "machine", "alert", "value", "condition", "series", "says", "since (UTC)")
YEAR_9999: Final = 253_370_764_800  # seconds; no instant later than that has a name
TYPES: Final = "Chains"
"""The title of the table from which the page makes the choice of a type to trace."""
WRITES: Final = "Writes"
"""The title of the table from which the page shows differences to an earlier state."""
Row = tuple[Any, ...]


class Table(NamedTuple):
    """One table of a page."""

    title: str
    columns: tuple[str, ...]
    rows: list[Row]
    more: int = 0
    """Rows that are not shown."""
    ask: str = ""
    """A command that shows more, or changes what is shown."""


def table(title: str, columns: tuple[str, ...], rows: Iterable[Row], ask: str = "") -> Table:
    """At most ROWS_MAX of the rows, each value as short text or a number."""
    found = list(rows)
    shown = [tuple(_short(value) for value in row) for row in found[:ROWS_MAX]]
    return Table(title, columns, shown, len(found) - len(shown), ask)


def _short(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}…"


def _facts(title: str, facts: dict[str, Any], ask: str = "") -> Table:
    """A map as a table; nested maps become dotted keys."""
    rows = []
    for name, value in facts.items():
        if isinstance(value, dict):
            rows += [(f"{name} {key}", each) for key, each in value.items()]
        elif value is not None:
            rows.append((name, str(value) if name.endswith("port") else value))
    return table(title, ("what", "is"), rows, ask)


def configuration(node: Node, status: dict[str, Any], _: Now) -> list[Table]:
    """Which node runs which write, and all pairs."""
    runs = [
        (row.get("name") or row["node"][:8], row["group"], row["number"], row["wanted"], _judged(row))
        for row in status["tree"]
    ]
    core, pairs, writes = node.cores.get("configuration"), [], []
    if isinstance(core, Configuration):
        shown = islice(core.store.keys_under("/"), ROWS_MAX + 1)
        pairs = [(key, _text(core.store.value(key))) for key in shown]
        if core.root.is_root:
            writes = [
                (number, _instant(at_ns / SECOND), who, key, _text(old), _text(new))
                for number, who, at_ns, key, old, new in core.root.history.newest("", ROWS_MAX)
            ]
    return [
        table("Who runs what", ("machine", "group", "runs", "wanted", ""), runs, "weft config history"),
        table(
            WRITES,
            ("number", "at (UTC)", "who", "key", "was", "is"),
            writes,
            "weft config history; weft config rollback N",
        ),
        table("Pairs", ("key", "value"), pairs, "weft config list /; weft config set KEY VALUE"),
    ]


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _judged(row: dict[str, Any]) -> str:
    if row["wanted"] is None:
        return ""
    return "✔ as wanted" if (row["number"] or 0) >= row["wanted"] else "◆ behind"


def catalog(node: Node, status: dict[str, Any], _: Now) -> list[Table]:
    """Services registered here, and the state of the broker."""
    core = cast("Catalog | None", node.cores.get("catalog"))
    if core is None:
        return []
    signs = {"ACTIVE": "✔ active", "SUSPECT": "▲ suspect", "INACTIVE": "✖ inactive"}
    found = sorted(core.book.all(), key=lambda one: one.key)
    rows = [(one.name, one.id, signs.get(one.state.name, one.state.name), one.observed_ip, one.record) for one in found]
    columns = ("service", "instance", "state", "seen at", "record")
    return [table("Services", columns, rows, "weft catalog ls"), _facts("Broker", status["cores"]["catalog"])]


def store(node: Node, status: dict[str, Any], _: Now) -> list[Table]:
    """Entries of the shared store, and its state."""
    core = cast("Store | None", node.cores.get("store"))
    if core is None:
        return []
    events = islice((event for event in core.replica.tree.walk() if event.value is not None), ROWS_MAX + 1)
    rows = [(text_of(event.path), *_change(event), _before(event)) for event in events]
    conflicts = [
        (one.number, text_of(one.kept.path), one.reason, *_change(one.kept), *_change(one.lost))
        for one in reversed(list(core.replica.conflicts))
    ]
    columns = ("number", "path", "reason", "kept", "of", "at (UTC)", "lost", "of", "at (UTC)")
    return [
        table(
            "Entries", ("path", "value", "written by", "at (UTC)", "before it"), rows, "weft ls; weft set PATH VALUE"
        ),
        table("Conflicts", columns, conflicts, "weft store conflicts; weft store conflicts --restore NUMBER"),
        _facts("How it stands", status["cores"]["store"], "weft store state; weft store conflicts"),
    ]


def _change(event: "Event") -> tuple[Any, str, str]:
    """A change: its value, its author, and when it was made, by the author's clock."""
    who = f"{event.node}:{event.tick}" + (f" by {event.by}" if event.by else "")
    return "(deleted)" if event.value is None else _value(event.value), who, _instant(event.at)


def _instant(at: float | None) -> str:
    """An instant as another node says it, in UTC.

    >>> _instant(1_795_000_000.5), _instant(None), _instant(float("nan")), _instant(1e300)
    ('2026-11-18 11:06:40', '', '', '')
    """
    if at is None or not 0 <= at < YEAR_9999:
        return ""
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat(" ", "seconds")


def _before(event: "Event") -> str:
    """The changes that the author of this one had seen, newest first."""
    return " ← ".join(f"{node}:{tick}" for node, tick in event.chain.links[1:])


def _value(packed: bytes | None) -> Any:
    """A value as the page shows it: as text if JSON has no word for it, as for a map with a key that is null."""
    from weft.wire.store.pack import unpack  # only a node with a store loads it

    try:
        value = unpack(packed or b"")
    except PeerError:
        return "(bytes of others)"
    try:
        msgspec.json.encode(value)
    except TypeError:
        return str(value)
    return value


def _of_core(name: str, title: str, ask: str) -> "Maker":
    def made(_: Node, status: dict[str, Any], __: Now) -> list[Table]:
        facts = status["cores"].get(name)
        return [_facts(title, facts, ask)] if facts else []

    return made


def chains(node: Node, status: dict[str, Any], _: Now) -> list[Table]:
    """The links of the chains, from top to bottom, and how many messages passed each."""
    core = node.cores.get("chains")
    if not isinstance(core, Chains):
        return []
    shown = show(core.context, core.roster, core.inbox, core.engine)["chains"]
    links = [(f"{chain['direction']} {chain['type']}", link) for chain in shown for link in chain["links"]]
    counted = ("offered", "passed", "changed", "dropped", "failed")
    rows = [
        (name, link["place"], link["name"], link["kind"], *(link["counters"].get(each, 0) for each in counted))
        for name, link in links
    ]
    flows = [
        (chain["direction"], chain["type"], chain["accepted"], chain["delivered"], _ended(chain)) for chain in shown
    ]
    return [
        table(TYPES, ("way", "type", "accepted", "delivered", "ended"), flows, "weft chain ls"),
        table("Who stands where", ("chain", "place", "who", "kind", *counted), rows, "weft chain watch TYPE"),
        _facts("Messages that passed", status["cores"]["chains"]),
    ]


def _ended(chain: dict[str, Any]) -> str:
    return ", ".join(f"{count:,} {why}" for why, count in chain["ended"].items())


def lake(_: Node, status: dict[str, Any], __: Now) -> list[Table]:
    """What this node has drained, and what is waiting."""
    found = (
        [_facts("Drained by this node", drain, "weft lake missing; weft sql")]
        if (drain := status["cores"].get("drain"))
        else []
    )
    return [*found, _facts("Journal", status["journal"], "weft journal verify")]


def alerts(node: Node, _: dict[str, Any], now: Now) -> list[Table]:
    """Firing and ended alerts."""
    page = page_of(node, now)
    firing = page["fleet"] if page["fleet"] is not None else page["own"]
    ended = [(*_alert(one), _instant(one["at"] / 1_000), one["why"]) for one in page["ended"] or []]
    return [
        table("Fires", (*ALERT, "id"), ((*_alert(one), one["id"]) for one in firing), "weft alerts"),
        table("Over", (*ALERT, "until (UTC)", "why"), ended),
        *_silent(page),
    ]


def _silent(page: dict[str, Any]) -> list[Table]:
    """Alerts of the configuration from which nothing can be heard."""
    from weft.node.deadalerts import NO_MACHINE  # no sensor loads it

    dead = [(one["key"], one["why"]) for one in page["dead"] or []]
    vain = [(key, NO_MACHINE) for key in page["in_vain"] or []]
    return [table("Never fires", ("alert", "why"), [*dead, *vain], "weft config list")] if dead or vain else []


def _alert(one: dict[str, Any]) -> tuple[str, ...]:
    """The cells of one alert, in the order of `ALERT`."""
    sign = "✖" if one["severity"] == "critical" else "▲"
    series = ", ".join(f"{name}={value}" for name, value in sorted(one["labels"].items()))
    value = f"{one['value']:.6g} {one['unit']}".rstrip()
    since = _instant(one["since"] / 1_000)
    return f"{sign} {one['severity']}", one["node"], one["name"], value, one["when"], series, one["text"], since


def health(_: Node, status: dict[str, Any], __: Now) -> list[Table]:
    """The health of this node."""
    checks = [(check["state"], check["name"], check["text"], check["do"]) for check in status["health"]["checks"]]
    memory = [(core, sizes["bytes"], sizes["budget_bytes"]) for core, sizes in status["memory"]["cores"].items()]
    own = {name: value for name, value in status.items() if isinstance(value, str | int | bool)}
    return [
        table("Checks", ("state", "check", "says", "do"), checks, "weft doctor"),
        table("Memory of its cores", ("core", "bytes", "may be"), memory),
        _facts("This node", own, "weft status --long"),
    ]


Maker = Callable[[Node, dict[str, Any], Now], list[Table]]
PAGES: Final[dict[str, Maker]] = {
    "configuration": configuration,
    "alerts": alerts,
    "catalog": catalog,
    "store": store,
    "documents": _of_core("document", "Documents", "weft doc ls; weft doc show"),
    "chains": chains,
    "lake": lake,
    "node": health,
}
"""Pages by the text after `#` in the address."""


def tables_of(page: str, node: Node, status: dict[str, Any], now: Now) -> dict[str, Any]:
    """A page; KeyError if there is no such page."""
    return {"page": page, "name": status["name"], "level": status["level"], "tables": PAGES[page](node, status, now)}
