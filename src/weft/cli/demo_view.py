"""What the demonstration shows while it runs: the tree, its rates, its spools, and the lake filling."""

import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from weft.cli.fleet import Member
from weft.cli.status import in_tree_order

NEWS_LINES: Final = 5
COLUMNS: Final = ("node", "link up", "samples", "per s", "held", "spool", "journal", "memory", "deaths")


class View:
    """Remembers the last numbers, so that it can show rates."""

    def __init__(self, ends_at: float) -> None:
        self.ends_at = ends_at
        self.news: deque[str] = deque(maxlen=NEWS_LINES)
        self._before: dict[str, tuple[float, int]] = {}
        self._rates: dict[str, float] = {}

    def render(self, statuses: Sequence[dict[str, Any]], members: Sequence[Member], lake: dict[str, Any]) -> Group:
        """The whole picture for this instant."""
        left = max(0, round(self.ends_at - time.monotonic()))
        return Group(
            Text(
                f"a fabric of {len(statuses)} nodes measures this machine; {left} s left; Ctrl-C ends it early",
                style="bold",
            ),
            self._tree(statuses, {member.name: member for member in members}),
            Panel(self._lake(lake), title="lake", title_align="left"),
            Text("\n".join(self.news), style="yellow"),
        )

    def line(self, statuses: Sequence[dict[str, Any]], lake: dict[str, Any]) -> str:
        """The same in one line, where there is no terminal."""
        taken = sum(_samples(status) for status in statuses)
        spooled = sum(status["cores"].get("carrier", {}).get("spool_records", 0) for status in statuses)
        left = max(0, round(self.ends_at - time.monotonic()))
        return (
            f"{left:4d} s left  nodes {len(statuses)}  samples {taken:,}  spool {spooled:,}  " + self._lake(lake).plain
        )

    def _tree(self, statuses: Sequence[dict[str, Any]], members: dict[str, Member]) -> Table:
        table = Table(*COLUMNS, box=None, pad_edge=False)
        for depth, status in in_tree_order(list(statuses)):
            carrier = status["cores"].get("carrier", {})
            member = members.get(status["name"])
            table.add_row(
                "  " * depth + status["name"],
                str(carrier.get("state", "")).lower() if status["parent"]["name"] else "root",
                f"{_samples(status):,}",
                f"{self._rate(status):.1f}",
                f"{carrier.get('held', 0):,}",
                f"{carrier.get('spool_records', 0):,}",
                f"{status['journal']['bytes'] / 1e6:.1f} MB",
                f"{status['memory_bytes'] / 1e6:.0f} MB",
                str(len(member.deaths)) if member and member.deaths else "",
            )
        return table

    def _rate(self, status: dict[str, Any]) -> float:
        name, taken, now = status["name"], _samples(status), time.monotonic()
        since, before = self._before.get(name, (now, taken))
        if now - since >= 2.0 or name not in self._before:
            self._rates[name] = max(0.0, (taken - before) / (now - since)) if now > since else 0.0
            self._before[name] = (now, taken)
        return self._rates[name]

    def _lake(self, lake: dict[str, Any]) -> Text:
        if not lake:
            return Text("Spark is starting; the first rows come in a few seconds", style="dim")
        return Text(
            "  ".join(
                f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}" for name, value in lake.items()
            )
        )


def _samples(status: dict[str, Any]) -> int:
    return int(status["cores"].get("measurement", {}).get("numbered", 0))
