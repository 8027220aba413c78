"""Asks the lake: each question runs `weft sql`, or another command, as a process (CON-002).

So neither DuckDB nor a slow question runs inside the node. `weft sql` only reads, and only the tables of this lake.
"""

from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from weft.shell.console import limits
from weft.shell.console.commands import Commands

SMALLER: Final = "a smaller question: LIMIT, fewer columns, a shorter time"
QUESTIONS: Final[dict[str, str]] = {
    "missing": "SELECT node, stream, state, expected, received, missing, lost, missing_ranges, lost_ranges FROM completeness "
    "WHERE state <> 'complete' AND state <> 'sparse' ORDER BY missing DESC, lost DESC, node LIMIT 200",
    "recent": "SELECT * FROM recent LIMIT 500",
    "hourly": "SELECT * FROM hourly LIMIT 500",
    "alerts": "SELECT * FROM gold.alerts LIMIT 200",
    "quarantine": "SELECT count(*) AS rows, reason, origin FROM quarantine.samples GROUP BY ALL ORDER BY rows DESC LIMIT 100",
    "runs": "SELECT * FROM meta.runs LIMIT 100",
}
"""Questions by their names; they need no token."""


class Answer(NamedTuple):
    """Rows, or an error and what to do about it."""

    rows: list[dict[str, Any]]
    error: str = ""
    mend: str = ""


NO_LAKE: Final = Answer([], "this node keeps no lake", "the root does: its console is linked on the first page")


class Lake:
    """Asks the lake of this node."""

    def __init__(self, path: Path | None, commands: Commands) -> None:
        self._path, self._commands = path, commands

    async def ask(self, query: str, as_of: str = "") -> Answer:
        """The rows of an SQL query, on the tables of now, or as they were at `as_of`."""
        if self._path is None:
            return NO_LAKE
        then = ("--as-of", as_of) if as_of else ()
        output = await self._commands.ask(
            "sql", "--json", "--lake", str(self._path), *then, "--", query, smaller=SMALLER
        )
        return Answer([] if output.error else msgspec.json.decode(output.text or b"[]"), output.error, output.mend)

    async def versions(self, path: str) -> Answer:
        """The last versions of an entry of the store, newest first."""
        if self._path is None:
            return NO_LAKE
        how = ("--json", "--limit", str(limits.VERSIONS_MAX), "--lake", str(self._path))
        output = await self._commands.ask("store", "history", *how, "--", path, smaller=SMALLER)
        return Answer([msgspec.json.decode(line) for line in output.text.splitlines()], output.error, output.mend)
