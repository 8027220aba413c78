"""Runs commands of the command line as processes, for what the console shows but the node itself should not compute.

So nothing slow runs inside the node, and it loads no library for a single question. One command runs at a time, for all
pages together; a few more may wait. Time and bytes of an answer are limited. The same command gets the same answer again for
a few seconds.
"""

import asyncio
import contextlib
import sys
import time
from collections import OrderedDict
from typing import Final, NamedTuple

from weft.shell.console import limits

WEFT: Final = (sys.executable, "-m", "weft.cli.main")


class Output(NamedTuple):
    """What a command printed, or an error and what to do about it."""

    text: bytes = b""
    error: str = ""
    mend: str = ""


BUSY: Final = Output(error="other questions are being answered", mend="again in a moment")
NEVER: Final = 0.0
NOTHING: Final = 1
"""The exit status of a command that found nothing; without an error text it is no error."""


class Commands:
    """Runs commands that only read, one at a time."""

    def __init__(self, command: tuple[str, ...] = WEFT) -> None:
        self._command = command
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._kept: OrderedDict[tuple[str, ...], tuple[float, Output]] = OrderedDict()

    async def ask(self, *words: str, smaller: str, fresh: str = "") -> Output:
        """What a command prints. An answer is used again for `ANSWER_KEPT_S`, as long as `fresh` is the same.

        `smaller`: what to do if an answer takes too long or is too large.
        """
        if self._waiting >= limits.QUESTIONS_MAX:
            return BUSY
        self._waiting += 1
        try:
            async with self._turn:
                return await self._answer(words, smaller, fresh)
        finally:
            self._waiting -= 1

    async def _answer(self, words: tuple[str, ...], smaller: str, fresh: str) -> Output:
        kept_at, output = self._kept.get((fresh, *words), (NEVER, BUSY))
        if kept_at and time.monotonic() - kept_at < limits.ANSWER_KEPT_S:
            return output
        output = await _run((*self._command, *words), smaller)
        self._kept[fresh, *words] = time.monotonic(), output
        while len(self._kept) > limits.ANSWERS_KEPT:
            self._kept.popitem(last=False)
        return output


async def _run(words: tuple[str, ...], smaller: str) -> Output:
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )
    except OSError as error:
        return Output(error=f"no process to ask with: {error.strerror}", mend="again later")
    except ValueError:  # the kernel ends each word of a command at a zero byte
        return Output(error="a question has no zero byte", mend="the same without it")
    assert process.stdout is not None, "started with a pipe"
    assert process.stderr is not None, "started with a pipe"
    try:
        async with asyncio.timeout(limits.ANSWER_S):
            output, why = await asyncio.gather(_bounded(process, process.stdout), _bounded(process, process.stderr))
            status = await process.wait()
    except TimeoutError:
        return Output(error=f"no answer within {limits.ANSWER_S:g} s", mend=smaller)
    finally:
        _kill(process)
        await process.communicate()  # read the rest of its pipes, or asyncio never notices that it has ended
    if output is None:
        return Output(error=f"more than {limits.ANSWER_BYTES_MAX:,} bytes", mend=smaller)
    is_nothing = status == NOTHING and not why
    return _refused(why or b"") if status and not is_nothing else Output(output)


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()


async def _bounded(process: asyncio.subprocess.Process, stream: asyncio.StreamReader) -> bytes | None:
    """The whole output of a process; None: it was too long, and the process was killed."""
    found = bytearray()
    while piece := await stream.read(1 << 16):
        if len(found) <= limits.ANSWER_BYTES_MAX:
            found += piece
        else:
            _kill(process)
    return bytes(found) if len(found) <= limits.ANSWER_BYTES_MAX else None


def _refused(output: bytes) -> Output:
    r"""The error that a command has printed, as an answer.

    >>> _refused(b"weft: there is no lake in x\n  try: --lake DIR\n")
    Output(text=b'', error='there is no lake in x', mend='--lake DIR')
    """
    text, _, mend = output.decode("utf-8", "replace").strip()[: limits.WHY_MAX].partition("\n  try: ")
    return Output(error=text.removeprefix("weft: ") or "the question could not be asked", mend=mend)
