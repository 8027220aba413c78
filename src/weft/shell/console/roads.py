"""Shows the way of one record from its origin to the lake: runs `weft trace` as a process (CON-002)."""

from pathlib import Path
from typing import Final

import msgspec

from weft.shell.console.commands import Commands
from weft.shell.console.lake import Answer

SMALLER: Final = "weft trace ORIGIN NUMBER --stream STREAM, on the machine of the node"


class Roads:
    """Asks this node, the origin and all nodes between them, and the lake if there is one."""

    def __init__(self, port: int, lake: Path | None, commands: Commands) -> None:
        """`port`: the first of this node's ten ports."""
        self._how = ("--json", "--port", str(port), *(("--lake", str(lake)) if lake is not None else ()))
        self._commands = commands

    async def of(self, origin: str, number: int) -> Answer:
        """What is known of a record: a row for each stream that has a record with this number."""
        output = await self._commands.ask("trace", *self._how, "--", origin, str(number), smaller=SMALLER)
        return Answer([msgspec.json.decode(line) for line in output.text.splitlines()], output.error, output.mend)
