"""The load of a Weft store by its own client: python -m bench.peers.storeload MODE PORT COUNT OPEN. One line of JSON.

set, get: COUNT requests, OPEN at once; watch: sets one by one, each until a watch on another connection has shown it;
fill: sets of COUNT entries, for others to measure with.
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import weft.store

VALUE = "v" * 38  # 40 bytes of MessagePack
One = Callable[[int], Awaitable[Any]]


def path(number: int) -> tuple[str, ...]:
    """Four elements, 38 bytes."""
    return "bench", "home", "kitchen", f"temperature{number:07d}"


async def spread(count: int, at_once: int, one: One) -> list[float]:
    """Do it for all numbers, so many at once; the time of each."""
    numbers, took = iter(range(count)), list[float]()

    async def work(numbers: Iterator[int]) -> None:
        for number in numbers:
            began = time.perf_counter()
            await one(number)
            took.append(time.perf_counter() - began)

    await asyncio.gather(*(work(numbers) for _ in range(at_once)))
    return took


async def watched(client: weft.store.Client, count: int, at_once: int) -> list[float]:
    async with client.watch("bench") as watch:

        async def one(_: int) -> None:
            writing = asyncio.ensure_future(client.set(path(0), VALUE))
            await anext(watch)
            await writing

        return await spread(count, at_once, one)


async def main(mode: str, port: int, count: int, at_once: int) -> None:
    async with weft.store.Client(port, timeout=120) as client:

        def put(number: int) -> Awaitable[Any]:
            return client.set(path(number), VALUE)

        def get(_: int) -> Awaitable[Any]:
            return client.get(path(0))

        if mode == "get":
            await put(0)
        began = time.monotonic()
        if mode == "watch":
            took = await watched(client, count, 1)
        else:
            took = await spread(count, at_once, get if mode == "get" else put)
        ended = time.monotonic()
    said = {"began": began, "ended": ended, "seconds": ended - began, "per_second": count / (ended - began)}
    print(json.dumps({**said, "p50": statistics.median(took)}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
