"""The first screen of the console for a terminal: the same picture, in the same order, with the same signs (CON-006)."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from rich.console import Group
from rich.table import Table
from rich.text import Text

from weft.cli.kit.console import console, plain_table
from weft.cli.kit.text import clean

SIGNS: Final = "✔◆▲✖"
STYLES: Final = ("green", "cyan", "yellow", "bold red")
BARS: Final = "▁▂▃▄▅▆▇█"
PIECES: Final = {".": " ", "~": " ", "o": "▪", "-": "_", "x": "█"}
"""Characters of a strip: not known, still open, came, did not come, lost."""
PIECE_STYLES: Final = {"o": "green", "x": "bold red"}
METERS: Final = ("cpu", "memory", "disk")
SPARKS: Final = 12  # points of processor time: 20 seconds
POINTS: Final = 120  # as many as the console keeps
STRIP: Final = 18  # pieces of ten seconds: the last three minutes
TROUBLES_SHOWN: Final = 6
FORMS: Final = ((True, True), (True, False), (False, False))
"""Whether the table has sparklines, and a strip: the first one that the terminal has room for is shown."""
WIDEST: Final = 1_000  # columns of no terminal: a table is measured as if it had all room
DEEPEST: Final = 4
RANKS: Final = {"root": 0, "collector": 1, "sensor": 2}

Row = dict[str, Any]


class Screen:
    """What the console has sent so far: a complete picture, then changes."""

    def __init__(self) -> None:
        self.head: dict[str, Any] = {}
        self.nodes: dict[str, Row] = {}
        self.at_ms = 0
        """The time of the newest picture, by the clock of the node that made it."""

    def take(self, picture: dict[str, Any]) -> None:
        """Apply a picture, or the changes since the last one."""
        if picture.get("whole"):
            self.nodes.clear()
        self.head, self.at_ms = picture.get("head", self.head), picture["at"]
        for node, changed in picture.get("nodes", {}).items():
            row = self.nodes.setdefault(node, {"values": {}, "troubles": [], "much": 0, "parent": "", "name": node})
            values = {name: _joined(row["values"].get(name), new) for name, new in changed.get("values", {}).items()}
            row |= {**changed, "values": row["values"] | values}
            self.nodes[node] = row
        for node in picture.get("gone", ()):
            self.nodes.pop(node, None)

    def lines(self) -> "list[Line]":
        """The tree; branches with the worst trouble come first."""
        below: dict[str, list[str]] = {}
        for node, row in self.nodes.items():
            below.setdefault(row["parent"] if row["parent"] in self.nodes else "", []).append(node)
        worst: dict[str, int] = {}
        listed: list[Line] = []
        walk = [node for level in _levels(below) for node in level]
        for node in reversed(walk):
            worst[node] = max([self.nodes[node]["much"], *(worst.get(child, 0) for child in below.get(node, ()))])
        stack = [(node, 0) for node in self._ordered(below.get("", ()), worst)]
        while stack:
            node, depth = stack.pop()
            listed.append(Line(depth, self.nodes[node]))
            stack += [(child, depth + 1) for child in self._ordered(below.get(node, ()), worst)]
        return listed + [Line(0, row) for node, row in self.nodes.items() if node not in worst]

    def _ordered(self, nodes: Iterable[str], worst: dict[str, int]) -> list[str]:
        """The last one is shown first."""

        def key(node: str) -> tuple[int, int, int, str]:
            row = self.nodes[node]
            return -worst[node], -row["much"], RANKS.get(row.get("level", ""), 2), row["name"]

        return sorted(nodes, key=key, reverse=True)

    def verdict(self) -> tuple[int, str]:
        """The overall severity, with one sentence."""
        bad, odd = ([row["name"] for row in self.nodes.values() if row["much"] == much] for much in (3, 2))
        count = len(self.nodes)
        if bad:
            return 3, f"{SIGNS[3]} {len(bad)} of {count} machines in trouble: {_names(bad)}"
        if odd:
            return 2, f"{SIGNS[2]} {len(odd)} of {count} machines worse than they should be: {_names(odd)}"
        if homeless := self.head.get("homeless"):
            return 2, f"{SIGNS[2]} no group wants {', '.join(homeless)}"
        return 0, f"{SIGNS[0]} all {count} machines are well" if count > 1 else f"{SIGNS[0]} the one machine is well"


class Line(NamedTuple):
    """A machine, and its depth below the root."""

    depth: int
    row: Row


def view(screen: Screen, *, width: int, height: int | None = None) -> Group:
    """The whole screen, with as many machines as there is room for, and how many are not shown."""
    much, verdict = screen.verdict()
    troubles = sorted(
        ((trouble, row["name"]) for row in screen.nodes.values() for trouble in row["troubles"]),
        key=lambda each: (-each[0][0], not str(each[0][1]).startswith("silent")),
    )
    head = [
        Text(clean(f"{screen.head.get('fleet', '')}, as {screen.head.get('name', '')} knows it")),
        Text(clean(verdict), style=STYLES[much]),
        Text(numbers(screen)),
        *(_trouble(trouble, name, screen.at_ms) for trouble, name in troubles[:TROUBLES_SHOWN]),
    ]
    if len(troubles) > TROUBLES_SHOWN:
        head.append(Text(f"  and {len(troubles) - TROUBLES_SHOWN} more", style="dim"))
    lines = screen.lines()
    room = len(lines) if height is None else max(1, height - len(head) - 3)
    shown = lines if len(lines) <= room else lines[: room - 1]
    rest = (
        [Text(f"{len(lines) - len(shown)} more machines: weft console", style="dim")] if len(shown) < len(lines) else []
    )
    return Group(*head, Text(""), _widest(shown, screen.at_ms, width), *rest)


def numbers(screen: Screen) -> str:
    """The four numbers: expected, received, missing, oldest age."""
    rows = list(screen.nodes.values())
    expected, received, lost = (sum(row.get("counts", (0, 0, 0))[at] for row in rows) for at in range(3))
    dated = [(row["newest"], row["name"]) for row in rows if row.get("newest")]
    missing = f"missing {_missing(expected - received, lost, rows)}"
    oldest = "-"
    if dated:
        newest, name = min(dated)
        oldest = f"{span(screen.at_ms - newest)} ({clean(name)})"
    return f"expected {expected:,}  received {received:,}  {missing}  oldest age {oldest}"


def _missing(count: int, lost: int, rows: list[Row]) -> str:
    """How many samples are missing. What silent machines have measured since is unknown, so they are named."""
    silent = [row["name"] for row in rows if any(text.startswith("silent") for _, text, *_ in row["troubles"])]
    if not count and silent:
        return f"none known, silent: {clean(_names(silent))}"
    return f"{count:,}" + (f", {lost:,} of them lost" if lost else "")


def span(ms: int) -> str:
    """A span for people.

    >>> span(400), span(61_000), span(7_300_000)
    ('0 s', '1 min', '2 h')
    """
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if ms >= size:
            return f"{ms // size} {unit}"
    return f"{max(0, ms) // 1_000} s"


def spark(values: list[float | None], newest: int, count: int = SPARKS) -> str:
    """The last points, 0 to 100 %, as bars. `values`: the first slot, then a value each.

    One missing point is bridged, since a metric may be measured every second slot; more are blanks.

    >>> spark([7, 0.0, None, None, 50.0, None, 100.0], 12, 6)
    '▁▁ ▅▅█'
    """
    if not values:
        return " " * count
    points = dict(enumerate(values[1:], int(values[0] or 0)))
    return "".join(_bar(points.get(slot), points.get(slot - 1)) for slot in range(newest - count + 1, newest + 1))


def _bar(value: float | None, before: float | None) -> str:
    known = before if value is None else value
    return " " if known is None else BARS[min(len(BARS) - 1, max(0, int(known / 100 * len(BARS))))]


def _widest(lines: list[Line], at_ms: int, width: int) -> Table:
    tables = [_table(lines, at_ms, has_sparks=sparks, has_strip=strip) for sparks, strip in FORMS]
    ruler = console()
    room = ruler.options.update(width=WIDEST)
    return next((table for table in tables if ruler.measure(table, options=room).maximum <= width), tables[-1])


def _table(lines: list[Line], at_ms: int, *, has_sparks: bool, has_strip: bool) -> Table:
    table = plain_table(padding=(0, 1))
    table.add_column("machine", no_wrap=True, max_width=40 if has_sparks else 30)
    for name in METERS:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("busiest process", no_wrap=True, max_width=24 if has_sparks else 20)
    if has_strip:
        table.add_column("3 min ago    now", no_wrap=True)
    for depth, row in lines:
        style = STYLES[row["much"]]
        who = Text("  " * min(depth, DEEPEST)).append(SIGNS[row["much"]], style=style).append(" " + clean(row["name"]))
        meters = [_meter(row["values"].get(meter, []), at_ms, has_sparks=has_sparks) for meter in METERS]
        drawn = [_strip(row.get("strip", ""))] if has_strip else []
        table.add_row(who, *meters, Text(busiest(row)), *drawn)
    return table


def busiest(row: Row, name_max: int = 24) -> str:
    """The process that used most of the processors lately, and its share of all of them."""
    found = row.get("busiest")
    return f"{clean(found[0])[:name_max]} {found[1]:.0f} %" if found else "-"


def _meter(values: list[float | None], at_ms: int, *, has_sparks: bool) -> Text:
    text = percent(values)
    return Text(f"{spark(values, at_ms // 5_000)} {text}" if has_sparks else text)


def percent(values: list[float | None]) -> str:
    """The newest value of a meter.

    >>> percent([7, 1.0, 24.6, None]), percent([])
    (' 25 %', '-')
    """
    last = next((value for value in reversed(values[1:]) if value is not None), None)
    return "-" if last is None else f"{last:3.0f} %"


def _strip(strip: str) -> Text:
    made = Text()
    for piece in strip[-STRIP:]:
        made.append(PIECES.get(piece, " "), style=PIECE_STYLES.get(piece))
    return made


def _trouble(trouble: list[Any], name: str, at_ms: int) -> Text:
    much, text, todo, since = trouble
    full_text = f"{text} for {span(at_ms - since)}" if since else text
    made = Text(f"  {SIGNS[much]} {clean(name)}: {clean(full_text)}", style=STYLES[much])
    return made.append(f" → {clean(todo)}", style="dim") if todo else made


def _names(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _joined(before: list[float | None] | None, new: list[float | None]) -> list[float | None]:
    """Points of a meter with newer ones, which replace those in the same slots."""
    if not before or new[0] is None or before[0] is None:
        return new
    joined = before[: 1 + max(0, int(new[0] - before[0]))]
    joined += [None] * (1 + int(new[0] - before[0]) - len(joined))
    points = [*joined[1:], *new[1:]]
    dropped = max(0, len(points) - POINTS)
    return [before[0] + dropped, *points[dropped:]] if new[0] >= before[0] else new


def _levels(below: dict[str, list[str]]) -> Iterable[list[str]]:
    level = below.get("", [])
    while level:
        yield level
        level = [child for node in level for child in below.get(node, ())]
