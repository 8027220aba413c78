"""The load of a real MoaT-KV server by its own client, in its own environment: moatload.py MODE PORT COUNT OPEN.

Modes and what is printed are those of `storeload`, without `watch`.
"""

import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
from moat.kv.client import open_client
from moat.lib.config import CFG, CfgStore
from moat.lib.path import Path

CFG.set_real_cfg(CfgStore("moat", load_all=None))
CFG.with_("moat")
CFG.with_("moat.kv")
VALUE = "v" * 38


def path(number: int) -> Any:
    return Path("bench", "home", "kitchen", f"temperature{number:07d}")


async def main(mode: str, port: int, count: int, at_once: int) -> None:
    took = []
    async with open_client(
        conn={"host": "127.0.0.1", "port": port, "ssl": False, "init_timeout": 5, "auth": None}
    ) as client:

        async def put(number: int) -> None:
            await client.set(path(number), value=VALUE)

        async def get(_: int) -> None:
            await client.get(path(0))

        async def work(numbers: Iterator[int], one: Callable[[int], Awaitable[None]]) -> None:
            for number in numbers:
                began = time.perf_counter()
                await one(number)
                took.append(time.perf_counter() - began)

        await put(0)
        numbers = iter(range(count))
        began = time.monotonic()
        async with anyio.create_task_group() as tasks:
            for _ in range(at_once):
                tasks.start_soon(work, numbers, get if mode == "get" else put)
        ended = time.monotonic()
    took.sort()
    said = {"began": began, "ended": ended, "seconds": ended - began, "per_second": count / (ended - began)}
    print(json.dumps({**said, "p50": took[len(took) // 2]}))


anyio.run(main, sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), backend="trio")
