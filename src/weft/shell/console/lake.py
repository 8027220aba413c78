"""Questions to the lake: each is a `weft sql` in a process of its own (CON-002).

So neither DuckDB nor a slow question ever runs inside the node. `weft sql` reads the tables of this lake and nothing
else, and changes nothing. One question runs at a time, and a few may wait; time and bytes of an answer are bounded. The
same question soon afterwards gets the same answer.
"""

import asyncio
import contextlib
import sys
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from weft.shell.console import limits

COMMAND: Final = (sys.executable, "-m", "weft.cli.main", "sql", "--json")
QUESTIONS: Final[dict[str, str]] = {
    "missing": "SELECT node, stream, state, expected, received, missing, lost, missing_ranges, lost_ranges FROM completeness "
    "WHERE state <> 'complete' AND state <> 'sparse' ORDER BY missing DESC, lost DESC, node LIMIT 200",
    "recent": "SELECT * FROM recent LIMIT 500",
    "hourly": "SELECT * FROM hourly LIMIT 500",
    "alerts": "SELECT * FROM gold.alerts LIMIT 200",
    "quarantine": "SELECT count(*) AS rows, reason, origin FROM quarantine.samples GROUP BY ALL ORDER BY rows DESC LIMIT 100",
    "runs": "SELECT * FROM meta.runs LIMIT 100",
}
"""Questions that have a name and need no key."""


class Answer(NamedTuple):
    """Rows, or an error and what helps against it."""

    rows: list[dict[str, Any]]
    error: str = ""
    mend: str = ""


NO_LAKE: Final = Answer([], "this node keeps no lake", "the root does: its console is linked on the first page")
BUSY: Final = Answer([], "other questions are being answered", "again in a moment")
SLOW: Final = Answer([], f"no answer within {limits.ANSWER_S:.0f} s", "a smaller question: fewer rows, a shorter time")
LARGE: Final = Answer([], f"more than {limits.ANSWER_BYTES_MAX:,} bytes", "LIMIT, or fewer columns")


class Lake:
    """Asks the lake of this node."""

    def __init__(self, path: Path | None, command: tuple[str, ...] = COMMAND) -> None:
        self._path, self._command = path, command
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._kept: OrderedDict[tuple[str, str], tuple[float, Answer]] = OrderedDict()

    async def ask(self, query: str, as_of: str = "") -> Answer:
        """The rows that a question in SQL returns, now or as the tables were at `as_of`."""
        if self._path is None:
            return NO_LAKE
        if self._waiting >= limits.QUESTIONS_MAX:
            return BUSY
        self._waiting += 1
        try:
            async with self._turn:
                return await self._answer(self._path, query, as_of)
        finally:
            self._waiting -= 1

    async def _answer(self, path: Path, query: str, as_of: str) -> Answer:
        kept_at, answer = self._kept.get((query, as_of), (0.0, NO_LAKE))
        if kept_at and time.monotonic() - kept_at < limits.ANSWER_KEPT_S:
            return answer
        words = [*self._command, "--lake", str(path), *(["--as-of", as_of] if as_of else []), "--", query]
        answer = await _run(words)
        self._kept[query, as_of] = time.monotonic(), answer
        while len(self._kept) > limits.ANSWERS_KEPT:
            self._kept.popitem(last=False)
        return answer


async def _run(words: list[str]) -> Answer:
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )
    except OSError as error:
        return Answer([], f"no process to ask with: {error.strerror}", "again later")
    assert process.stdout is not None, "asked for"
    assert process.stderr is not None, "asked for"
    try:
        async with asyncio.timeout(limits.ANSWER_S):
            said, why = await asyncio.gather(_bounded(process, process.stdout), _bounded(process, process.stderr))
            status = await process.wait()
    except TimeoutError:
        return SLOW
    finally:
        _kill(process)
        await process.communicate()  # read the rest of its pipes, or asyncio never notices that it has ended
    if said is None:
        return LARGE
    return _refused(why or b"") if status else Answer(msgspec.json.decode(said or b"[]"))


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()


async def _bounded(process: asyncio.subprocess.Process, stream: asyncio.StreamReader) -> bytes | None:
    """All of its output; if that is too much the process is ended, and this is None."""
    found = bytearray()
    while piece := await stream.read(1 << 16):
        if len(found) <= limits.ANSWER_BYTES_MAX:
            found += piece
        else:
            _kill(process)
    return bytes(found) if len(found) <= limits.ANSWER_BYTES_MAX else None


def _refused(said: bytes) -> Answer:
    r"""What a command says of a mistake, as an answer.

    >>> _refused(b"weft: there is no lake in x\n  try: --lake DIR\n")
    Answer(rows=[], error='there is no lake in x', mend='--lake DIR')
    """
    text, _, mend = said.decode("utf-8", "replace").strip()[: limits.WHY_MAX].partition("\n  try: ")
    return Answer([], text.removeprefix("weft: ") or "the question could not be asked", mend)
