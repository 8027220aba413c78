"""Checks for the catalog whether services work: by TCP, HTTP, ZeroMQ, or a command from the broker's file (BEA-024).

Each check ends within its time limit, whatever the service does, and reports one outcome.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import urlsplit

import zmq

from weft.base.endpoints import host_of
from weft.base.now import SECOND
from weft.cores.catalog.messages import CheckDone, RunCheck
from weft.shell.links import Links
from weft.shell.runner import Runner
from weft.wire.catalog import times

PASSING, WARNING, CRITICAL = "passing", "warning", "critical"
LINE_BYTES: Final = 1_024  # of the first line of an answer
FAILURES: Final = (
    TimeoutError,
    OSError,
    EOFError,  # the service closes before a line has ended
    ValueError,
    OverflowError,  # a port number that is too large
    zmq.ZMQError,
    asyncio.LimitOverrunError,
)
EXITS: Final = {0: PASSING, 1: WARNING}
"""What the exit code of a command means; every other one is critical."""


class CheckRunner:
    """All running checks."""

    def __init__(self, runner: Runner, links: Links) -> None:
        self._runner, self._links = runner, links
        self._tasks: set[asyncio.Task[None]] = set()
        runner.performers |= {RunCheck: self.begin}

    def begin(self, work: RunCheck) -> None:
        """Start a check, and report its outcome."""
        task = asyncio.get_running_loop().create_task(self._run(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Cancel all checks."""
        for task in self._tasks:
            task.cancel()

    async def _run(self, work: RunCheck) -> None:
        outcome = CRITICAL
        with contextlib.suppress(*FAILURES):
            async with asyncio.timeout(work.timeout_ns / SECOND):
                outcome = await KINDS[work.kind](work, self._links)
        self._runner.order("catalog", CheckDone(work.id, outcome))


async def by_tcp(work: RunCheck, links: Links) -> str:  # noqa: ARG001  # all kinds have these parameters
    """Passing if the service accepts a connection."""
    host, _, port = work.target.rpartition(":")
    writer = (await asyncio.open_connection(host.strip("[]"), int(port)))[1]
    writer.close()
    return PASSING


async def by_http(work: RunCheck, links: Links) -> str:  # noqa: ARG001  # all kinds have these parameters
    """Passing if the service answers a GET with one of the expected statuses."""
    parts = urlsplit(work.target)
    host = parts.hostname or ""
    reader, writer = await asyncio.open_connection(host, parts.port or 80, limit=LINE_BYTES)
    try:
        path = parts.path or "/"
        target = f"{path}?{parts.query}" if parts.query else path
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        words = (await reader.readuntil(b"\n")).split()
    finally:
        writer.close()
    is_answer = len(words) > 1 and words[0].startswith(b"HTTP/") and words[1].isdigit()
    return PASSING if is_answer and int(words[1]) in work.status else CRITICAL


async def by_zmq(work: RunCheck, links: Links) -> str:
    """Passing if the service answers a ping, whatever it answers."""
    dealer = links.context.socket(zmq.DEALER)
    loop = asyncio.get_running_loop()
    try:
        dealer.setsockopt(zmq.LINGER, 0)
        if ":" in host_of(work.target):
            dealer.setsockopt(zmq.IPV6, 1)
        dealer.connect(f"tcp://{work.target}")
        dealer.send_multipart([b"", b"ping", times.write("f32le", time.time()), b""], zmq.NOBLOCK)
        readable, descriptor = asyncio.Event(), dealer.FD
        loop.add_reader(descriptor, readable.set)
        try:
            while not int(dealer.get(zmq.EVENTS)) & int(zmq.POLLIN):
                await readable.wait()
                readable.clear()
        finally:
            loop.remove_reader(descriptor)  # the node may have closed the socket
        return PASSING
    finally:
        dealer.close()


async def by_command(work: RunCheck, links: Links) -> str:  # noqa: ARG001  # all kinds have these parameters
    """Passing if the command exits with 0, warning with 1, else critical; it is killed at the time limit."""
    devnull = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*work.command, stdin=devnull, stdout=devnull, stderr=devnull)
    try:
        return EXITS.get(await process.wait(), CRITICAL)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


KINDS: Final[dict[str, Callable[[RunCheck, Links], Awaitable[Any]]]] = {
    "tcp": by_tcp,
    "http": by_http,
    "zmq": by_zmq,
    "command": by_command,
}
