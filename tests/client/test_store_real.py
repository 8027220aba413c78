"""The library of the store and a real node: what the fake one is told to do, it really does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.client.node import in_loop
from tests.client.storeserver import FakeStore
from tests.shell.ports import free_port
from weft import store
from weft.node.settings import settings_of
from weft.shell.blocks import free_blocks
from weft.shell.process import Process


def made(place: Path, port: int, found: str | None = "r") -> Process:
    """A node with a store, which founds it at its start with this value; None: which waits for others that have one."""
    node = {"name": "a", "level": "root", "state": str(place), "port": port}
    table = {"clock": "100ms"} | ({} if found is None else {"found": found})
    return Process(settings_of({"node": node, "fleet": {"beacon_port": free_port()}, "store": table}))


@asynccontextmanager
async def running(place: Path, port: int) -> AsyncIterator[None]:
    """A real node in this loop, until its store serves and behind that."""
    process = made(place, port)
    run = asyncio.ensure_future(process.run())
    while True:
        try:
            async with store.Client(place):
                break
        except (store.Unreachable, store.NotReady):
            await asyncio.sleep(0.01)  # tidy: the node tells nobody; bounded by in_loop
    yield
    process.stop()
    await run


async def refusal(asked: Any) -> str:
    try:
        await asked
    except store.StoreError as error:
        return f"{type(error).__name__} {error.code}"
    return "none"


async def story(client: store.Client) -> list[Any]:
    """What a program reads and writes; answers without what differs from node to node."""
    log: list[Any] = []
    first = await client.set("h.k.temp", 21.5, new=True)
    second = await client.set("h.k.temp", None, chain=first.chain)
    log += [first.is_changed, second.is_changed, second.before, await client.get("h.k.temp")]
    log += [
        await refusal(client.set("h.k.temp", 1, new=True)),
        await refusal(client.set("h.k.temp", 1, chain=first.chain)),
        await refusal(client.set("h.k.temp", 1, prev=7)),
        await refusal(client.get(("h", None))) in ("none", "BadPath bad-path"),
    ]
    log += [
        (await client.set("h.k.temp", None, idem=True)).is_changed,
        (await client.set("h.k.hum", {"a": [1, b"x"]})).before,
    ]
    path = store.PathValue(("a", 1))
    log += [(await client.set("h.k.temp", path)).before, await client.get("h.k.temp") == path]
    log += [sorted(await client.list("h")), sorted(await client.list("h.k")), await client.list("nowhere")]
    log += [
        (await client.delete("h.k.hum", prev={"a": [1, b"x"]})).is_changed,
        (await client.delete("h.k.hum")).is_changed,
    ]
    gone = await client.entry("h.k.hum")
    log += [gone.is_deleted, gone.is_there, (await client.entry("never")).is_deleted]
    log += [sorted(await client.list("h.k")), sorted(await client.list("h.k", deleted=True))]
    for deleted in (False, True):  # siblings have no order
        log.append({entry.text: entry.value async for entry in client.tree("h", deleted=deleted)})
    log += [[entry async for entry in client.tree("nowhere")], [entry async for entry in client.tree("h", max_depth=1)]]
    log += [await client.delete_tree("h"), await client.delete_tree("h"), await client.get("h.k.temp")]
    return log


async def watched(client: store.Client) -> list[Any]:
    """What a watch and a mirror are told."""
    log: list[Any] = []
    await client.set("w.a", 1)
    async with client.watch("w", fetch=True, marks=True) as changes, client.mirror("w") as mirror:
        for path, value in (("w.b", 2), ("w.a", None), ("x", 1), ("w.a", 3)):
            await client.set(path, value)
        await client.delete("w.b")
        async for told in changes:
            log.append(told.what if isinstance(told, store.Mark) else (told.text, told.value, told.is_old))
            if len(log) == 6:
                break
        await mirror.until(lambda mirror: mirror.as_text() == {"w.a": 3})
    return log


@pytest.mark.proves("CLN-030")
@in_loop
async def test_a_real_node_answers_as_the_one_of_the_tests_does(tmp_path: Path) -> None:
    async with FakeStore() as fake, store.Client(fake.address) as client:
        expected = [await story(client), await watched(client)]
    async with running(tmp_path, free_blocks(1, 15_000)[0]), store.Client(tmp_path) as client:
        actual = [await story(client), await watched(client)]
        assert "TooLarge too-large" == await refusal(client.set("big", "x" * 70_000))
    assert expected == actual


@pytest.mark.proves("CLN-030", "CLN-011")
@in_loop
async def test_client_watch_and_mirror_outlive_their_node(tmp_path: Path) -> None:
    port = free_blocks(1, 15_500)[0]
    async with running(tmp_path, port):
        client = store.Client(tmp_path)
        await client.__aenter__()
        changes, mirror = client.watch("w"), client.mirror("w")
        await changes.__aenter__()
        await mirror.__aenter__()
        await client.set("w.a", 1)
        position = (await anext(changes)).position
        await client.set("w.a", 2)
        await mirror.until(lambda mirror: mirror.get("w.a") == 2)
    async with running(tmp_path, port):
        await client.set("w.b", 3)
        assert [("w.a", 2), ("w.b", 3)] == [
            (told.text, told.value) for told in [await anext(changes), await anext(changes)]
        ]
        await mirror.until(lambda mirror: mirror.as_text() == {"w.a": 2, "w.b": 3} and mirror.is_fresh)
        async with client.watch("w", since=position) as again:
            assert [2, 3] == [(await anext(again)).value for _ in range(2)]
        await mirror.__aexit__(None, None, None)
        await client.__aexit__(None, None, None)
