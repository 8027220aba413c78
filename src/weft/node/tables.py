"""What can be seen of a file before its tables are read: whether it describes a fleet, and a plan for its own node.

This is apart from `settings.py`, which knows the contents of all tables and is slow to import.
"""

from typing import Any, Final

FLEETS: Final = ("group", "global")
"""Tables of a fleet's file; a root's own file may contain them too."""


def has_plan(document: dict[str, Any]) -> bool:
    """Whether a file says what its node measures or filters; if not, the node follows the configuration."""
    filters = without_filters(document)[1]
    is_pinned = isinstance(filters, list) and all(isinstance(each, dict) and each.get("pinned") for each in filters)
    return "metric" in document or not is_pinned


def describes_fleet(document: dict[str, Any]) -> bool:
    """Whether the file is a root's and describes its fleet."""
    node = document.get("node")
    is_root = isinstance(node, dict) and node.get("level") == "root"
    return is_root and (has_plan(document) or any(name in document for name in FLEETS))


def without_filters(document: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The document without the list `[[chains.filter]]`, and that list."""
    chains = document.get("chains")
    if not isinstance(chains, dict):
        return document, []
    rest = {key: value for key, value in chains.items() if key != "filter"}
    return {**document, "chains": rest}, chains.get("filter", [])
