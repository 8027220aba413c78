"""Boards in the browser: each is a separate process, so that a hundred viewers do not slow the node (JAM-020)."""

import asyncio
import contextlib
import sys
from typing import Final

from weft.base.errors import exit_code

PROGRAM: Final = "weft.web.board"
END_S: Final = 2.0  # seconds that a board may take to end by itself
AGAIN_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Wait before a board that died is started again; another program may hold its port for a while."""
GIVEN_UP: Final = (0, exit_code("usage"))
"""A board that ends with one of these exit codes is not started again: it was ended, or would fail in the same way."""


class Board:
    """Keeps a board running until it is closed, and restarts it when it dies.

    `settings`: sent to its standard input.
    """

    def __init__(self, settings: bytes, program: tuple[str, ...] = ("-m", PROGRAM, "-")) -> None:
        self._settings, self._program = settings, program
        self._process: asyncio.subprocess.Process | None = None
        self._task = asyncio.get_running_loop().create_task(self._keep())

    async def close(self) -> None:
        """End the board; it is killed if it does not end within `END_S`."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        if self._process is None or self._process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(END_S):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def _keep(self) -> None:
        for pause in (*AGAIN_S, *[AGAIN_S[-1]] * 10_000):
            if await self._run() in GIVEN_UP:
                return
            await asyncio.sleep(pause)

    async def _run(self) -> int:
        """Run the board once; returns its exit code."""
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, *self._program, stdin=asyncio.subprocess.PIPE
            )
        except OSError:  # no memory or no process available: try again later
            return 1
        assert self._process.stdin is not None, "started with a pipe"
        with contextlib.suppress(ConnectionError):
            # not as an argument: arguments are visible in the process list, and it contains a token
            self._process.stdin.write(self._settings)
            self._process.stdin.close()
        return await self._process.wait()
