"""`weft status`: the tree as one node of it sees it."""

import json as json_module
from typing import Any, Final

from weft.cli.asking import status_of, try_status

ORDER: Final = {"root": 0, "collector": 1, "sensor": 2}
COLUMNS: Final = ("node", "health", "parent link", "children", "samples", "spool", "journal", "memory", "up")


def status(*, port: int = 27_500, json: bool = False) -> int:
    """Show the node at PORT and every node of this machine that it hears: tree, links, spool, health.

    Args:
        port: first of the node's ten ports.
        json: all facts, as one JSON array, the asked node first.
    """
    asked = status_of(port)
    others = [told for known in asked["neighbours"] if (told := try_status(known["port"]))]
    if json:
        print(json_module.dumps([asked, *others]))
    else:
        _show([asked, *others])
    return 0 if asked["health"]["state"] != "failed" else 1


def _show(nodes: list[dict[str, Any]]) -> None:
    from rich.console import Console  # only people need it
    from rich.table import Table  # only people need it
    from rich.text import Text  # only people need it

    console = Console()
    if any(node["open"] for node in nodes):
        console.print("[yellow]open fabric: no keys; loopback only[/yellow]")
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for depth, node in in_tree_order(nodes):
        table.add_row(*row_of(node, depth))
    console.print(table)
    for node in nodes:
        for name, check, text, mend in troubles_of(node):
            console.print(Text(f"{name}: {check}: {text}", style="yellow"))
            console.print(Text(f"  try: {mend}", style="dim"))


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
    """One line of the table."""
    carrier = node["cores"].get("carrier", {})
    measurement = node["cores"].get("measurement", {})
    return (
        "  " * depth + node["name"],
        str(node["health"]["state"]),
        str(carrier.get("state") or "-") if node["parent"]["name"] else "root",
        str(carrier.get("children", "-")),
        f"{measurement.get('numbered', 0):,}",
        f"{carrier.get('spool_records', 0):,}",
        f"{node['journal']['bytes'] / 1e6:.1f} MB {node['journal']['state'].lower()}",
        f"{node['memory_bytes'] / 1e6:.0f} MB",
        f"{node['uptime_s']} s",
    )


def troubles_of(node: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """What is wrong with a node: its name, the check, what was found, and what to do."""
    checks = [check for check in node["health"]["checks"] if check["state"] != "ok"]
    return [(node["name"], check["name"], check["text"], check["do"]) for check in checks]
