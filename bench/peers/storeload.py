"""The load of a Weft store by its own client: python -m bench.peers.storeload MODE PORT COUNT OPEN. One line of JSON.

set, get: COUNT requests, OPEN at once; watch: sets one by one, each until a watch on another connection has shown it;
fill: sets of COUNT entries, for others to measure with; majority, batches: COUNT entries that a majority has durably, one by
one or a hundred to a batch, by OPEN clients, each with its own connection and one request open.
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import msgspec

import weft.store
from weft.wire.store.clients import Op, Request
from weft.wire.store.pack import pack

VALUE = "v" * 38  # 40 bytes of MessagePack
RAW = msgspec.Raw(pack(VALUE))
BY_MAJORITY = {"majority": 1, "batches": 100}
"""Entries of a request."""
One = Callable[[int], Awaitable[Any]]


def path(number: int) -> tuple[str, ...]:
    """Four elements, 38 bytes."""
    return "bench", "home", "kitchen", f"temperature{number:07d}"


async def spread(count: int, ones: list[One]) -> list[float]:
    """Do it for all numbers, each of them one at a time; the time of each number."""
    numbers, took = iter(range(count)), list[float]()

    async def work(one: One, numbers: Iterator[int]) -> None:
        for number in numbers:
            began = time.perf_counter()
            await one(number)
            took.append(time.perf_counter() - began)

    await asyncio.gather(*(work(one, numbers) for one in ones))
    return took


async def watched(client: weft.store.Client, count: int) -> list[float]:
    async with client.watch("bench") as watch:

        async def one(_: int) -> None:
            writing = asyncio.ensure_future(client.set(path(0), VALUE))
            await anext(watch)
            await writing

        return await spread(count, [one])


async def by_majority(clients: list[weft.store.Client], count: int, size: int) -> list[float]:
    """So many entries, each request with `size` of them; every client has one request open."""

    def one(client: weft.store.Client) -> One:
        async def batch(number: int) -> None:
            ops = [Op(path=path(number * size + each), value=RAW) for each in range(size)]
            await client._caller.ask(Request(action="batch", ops=ops, ack="majority", nchain=0), repeats=True)

        return batch if size > 1 else lambda number: client.set(path(number), VALUE, ack="majority")

    return await spread(count // size, [one(client) for client in clients])


async def main(mode: str, port: int, count: int, at_once: int) -> None:
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(weft.store.Client(port, timeout=120))
            for _ in range(at_once if mode in BY_MAJORITY else 1)
        ]
        client = clients[0]

        def put(number: int) -> Awaitable[Any]:
            return client.set(path(number), VALUE)

        def get(_: int) -> Awaitable[Any]:
            return client.get(path(0))

        if mode == "get":
            await put(0)
        began = time.monotonic()
        if mode == "watch":
            took = await watched(client, count)
        elif mode in BY_MAJORITY:
            took = await by_majority(clients, count, BY_MAJORITY[mode])
        else:
            took = await spread(count, [get if mode == "get" else put] * at_once)
        ended = time.monotonic()
    said = {"began": began, "ended": ended, "seconds": ended - began, "per_second": count / (ended - began)}
    print(json.dumps({**said, "p50": statistics.median(took), "p99": sorted(took)[len(took) * 99 // 100]}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
