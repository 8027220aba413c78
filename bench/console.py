"""What viewers of a console cost the node that serves it, and how soon they have a change (CON-003).

    .venv/bin/python -m bench.console [--machines 500] [--viewers 50] [--seconds 20]

Made-up machines say three metrics each second to a console in this process; viewers are plain sockets in another one, which
read everything. The processor time of the serving process is that of the console, its feeding left out.
"""

import argparse
import asyncio
import multiprocessing
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

from weft.base.now import Now
from weft.base.records import StreamRecord
from weft.shell.console.commands import Commands
from weft.shell.console.feed import Feed
from weft.shell.console.lake import Lake
from weft.shell.console.picture import Console, Facts
from weft.shell.console.routes import Sources, routes_of
from weft.shell.http.gate import Gate
from weft.shell.http.logins import Logins
from weft.shell.http.server import Server
from weft.wire.samples import Row, SampleBatch, Series, encode

SERIES: Final = tuple(Series(name, name, "basic", {}) for name in ("CPU", "MEMORY_PERCENT", "DISK_PERCENT"))
HISTORY_S: Final = 590
SETTLE_S: Final = 5.0
KEYS: Final = (b'"at":', b",")


def now() -> Now:
    return Now(time.monotonic_ns(), time.time_ns())


def facts_of(machines: list[bytes]) -> Facts:
    """A root and machines below it."""
    tree: list[dict[str, Any]] = [
        {"node": node.hex(), "name": f"m{index}", "level": "leaf", "group": "all", "number": 1, "wanted": 1, "at": 0}
        | {"endpoint": f"10.0.{index // 200}.{index % 200 + 1}:27500", "parent": "10.9.9.9:27500"}
        for index, node in enumerate(machines[1:])
    ]
    root = {"name": "root", "endpoint": "10.9.9.9:27500"}
    return Facts(machines[0], "root", "root", "bench", 27_500, "1", tree, [], root, {}, [], 1, {})


class Speakers:
    """Machines that say something each second."""

    def __init__(self, console: Console, machines: list[bytes]) -> None:
        self.console, self.machines = console, machines
        self.spent_s = 0.0
        self._next = 1

    def say(self, at: Now) -> None:
        """One batch of each."""
        began = time.process_time()
        for index, node in enumerate(self.machines):
            rows = [Row(series, 0, float((self._next * 7 + index * 13 + series) % 80)) for series in range(3)]
            body = encode(SampleBatch(at.wall // 1_000_000, SERIES, rows))
            record = StreamRecord(1, node, 1, self._next, at.wall, at.wall, "weft.metric", body, {"n": 3})
            self.console.values.note((record,), at)
        self._next += 3
        self.spent_s += time.process_time() - began


class Fleet:
    """Made-up machines with ten minutes behind them, and their console."""

    def __init__(self, count: int) -> None:
        machines = [index.to_bytes(16, "big") for index in range(1, count + 1)]
        facts, begun = facts_of(machines), now()
        console = Console(lambda: facts, begun)
        self.speakers = Speakers(console, machines)
        for back in range(HISTORY_S, 0, -5):
            self.speakers.say(Now(begun.mono - back * 10**9, begun.wall - back * 10**9))
        sources = Sources(console, Feed(console, now), Lake(None, Commands()), Logins(time.monotonic), lambda: None)
        self.server = Server(routes_of(sources), Gate(is_loopback=True))

    async def live(self, told: Callable[[int], None]) -> None:
        """Serve, tell the port, and speak each second until cancelled."""
        told(await self.server.serve("127.0.0.1", 0))
        while True:
            self.speakers.say(now())
            await asyncio.sleep(1.0)


async def _view(port: int, delays: list[float], first: list[tuple[float, int]]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    began = time.perf_counter()
    writer.write(f"GET /console/live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    is_first = True
    while line := await reader.readline():
        if b'"number":' not in line[:40]:
            continue
        made_ms = int(line.split(KEYS[0], 1)[1].split(KEYS[1], 1)[0])
        if is_first:
            first.append((time.perf_counter() - began, len(line)))
            is_first = False
        else:
            delays.append(time.time() * 1_000 - made_ms)


async def _look(port: int, viewers: int, seconds: float) -> tuple[list[float], list[tuple[float, int]]]:
    delays: list[float] = []
    first: list[tuple[float, int]] = []
    tasks = [asyncio.ensure_future(_view(port, delays, first)) for _ in range(viewers)]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return delays, first


def look(port: int, viewers: int, seconds: float, told: Any) -> None:
    """All viewers, in a process of their own."""
    told.send(asyncio.run(_look(port, viewers, seconds)))


async def measure(count: int, viewers: int, seconds: float) -> None:
    """Print what it costs."""
    fleet = Fleet(count)
    server, speakers = fleet.server, fleet.speakers
    port = await server.serve("127.0.0.1", 0)
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=look, args=(port, viewers, seconds + 3 * SETTLE_S, theirs))
    process.start()
    at, cpu, fed = 0.0, 0.0, 0.0
    while not ours.poll():
        if at and time.perf_counter() - at >= seconds:
            break
        if not at and len(server._streams) == viewers:
            await asyncio.sleep(SETTLE_S / 2)
            at, cpu, fed = time.perf_counter(), time.process_time(), speakers.spent_s
        speakers.say(now())
        await asyncio.sleep(1.0)
    wall, spent, feeding = time.perf_counter() - at, time.process_time() - cpu, speakers.spent_s - fed
    delays, first = await asyncio.to_thread(ours.recv)
    process.join()
    await server.close()
    delays.sort()
    print(f"{count} machines, {viewers} viewers, {wall:.0f} s")
    print(f"serving      {100 * (spent - feeding) / wall:5.1f} % of a core (goal 10)")
    print(f"feeding      {100 * feeding / wall:5.1f} % of a core, with the making of the records")
    span_s = seconds + 3 * SETTLE_S
    print(f"changes      {len(delays) / viewers / span_s:5.2f} a second and viewer, from the first connection on")
    print(f"change to viewer: median {statistics.median(delays):.0f} ms, p95 {delays[int(len(delays) * 0.95)]:.0f} ms")
    slowest, size = max(first)
    print(f"first picture: {size / 1e6:.2f} MB, the last of {len(first)} viewers had it after {slowest:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--machines", type=int, default=500)
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=15.0)
    said = parser.parse_args()
    asyncio.run(measure(said.machines, said.viewers, said.seconds))
