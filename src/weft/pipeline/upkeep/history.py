"""The versions of a table, for people to read."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from weft.base.errors import UserError
from weft.lake.layout import Layout
from weft.pipeline.tables import ALL, there
from weft.pipeline.upkeep.log import APP, opened


class Version(NamedTuple):
    """One commit."""

    version: int
    at_ms: int
    """Milliseconds since 1970."""
    what: str
    """The operation, in a few words."""
    about: dict[str, Any]
    """Properties of its commit: `weft.batch`, `weft.offset` and others (LAK-035)."""


def versions(layout: Layout, name: str, limit: int) -> Iterator[Version]:
    """The newest versions of a table, at most `limit`, the newest first. UserError `no-table`."""
    delta = opened(layout, ALL[name]) if name in ALL else None
    if delta is None:
        names = ", ".join(table.full_name for table in there(layout))
        raise UserError(
            "no-table",
            f"there is no table {name!r} in this lake",
            f"one of {names}" if names else "weft lake run, which makes the tables",
        )
    for commit in delta.history(limit):
        about = {key: value for key, value in commit.items() if key.startswith("weft.")}
        yield Version(commit["version"], commit["timestamp"], _what(commit, about), about)


def _what(commit: dict[str, Any], about: dict[str, Any]) -> str:
    """The operation of a commit, in a few words."""
    if APP in about:
        return str(about[APP])
    if "weft.batch" in about:
        batch = f"batch {about['weft.batch']} of {about.get('weft.job', '?')}"
        return f"{batch}, {about['weft.rows']} rows" if "weft.rows" in about else f"fold up to {batch}"
    return str(commit.get("operation", "?")).lower()
