"""Watches and mirrors: every change, in order, once, whatever becomes of the connection."""

import asyncio
from typing import Any

import pytest

from tests.client.node import in_loop
from tests.client.storeserver import FakeStore
from weft import store
from weft.client.store import calling, mirror


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comes back at once."""
    monkeypatch.setattr(calling, "BACK_OFF_MIN_S", 0.001)
    monkeypatch.setattr(calling, "BACK_OFF_MAX_S", 0.01)


async def told(watch: Any, count: int) -> list[Any]:
    """The next so many, short: mark, or path and value, with `old` for what was there before."""
    found: list[Any] = []
    while len(found) < count:
        one = await anext(watch)
        if isinstance(one, store.Mark):
            found.append(one.what)
        else:
            found.append((one.text, one.value, *(["old"] if one.is_old else [])))
    return found


@pytest.mark.proves("CLN-030")
@in_loop
async def test_a_watch_tells_what_is_written_from_its_beginning_on() -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        server.put(("h", "old"), 0)
        async with client.watch("h") as changes:
            await client.set("h.a.b", None)
            await client.set("elsewhere", 1)
            await client.set("h.a.c", 2)
            await client.delete("h.a.b")
            await client.set("h", 3)
            expected = [("h.a.b", None), ("h.a.c", 2), ("h.a.b", store.MISSING), ("h", 3)]
            assert expected == await told(changes, 4)
        with pytest.raises(StopAsyncIteration):
            await anext(changes)


@in_loop
async def test_a_watch_that_fetches_tells_first_what_is_there() -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        for path in ("a", "b", "c"):
            server.put(("h", path), path)
        async with client.watch("h", fetch=True, marks=True, min_depth=1) as changes:
            server.put(("h", "d"), 1)
            expected = [("h.a", "a", "old"), ("h.b", "b", "old"), ("h.c", "c", "old"), "uptodate", ("h.d", 1)]
            assert expected == await told(changes, 5)


@pytest.mark.proves("CLN-011", "CLN-030")
@in_loop
async def test_a_watch_goes_on_behind_its_last_change_when_the_node_comes_back() -> None:
    async with FakeStore() as server, store.Client(server.address) as client, client.watch("h", marks=True) as changes:
        server.put(("h", "a"), 1)
        assert [("h.a", 1)] == await told(changes, 1)
        server.kill()
        server.put(("h", "a"), 2)
        server.put(("h", "a"), 3)
        server.drop(("h", "a"))
        assert ["lost"] == await told(changes, 1)
        await server.start()
        assert ["back", ("h.a", 2), ("h.a", 3), ("h.a", store.MISSING)] == await told(changes, 4)
        assert [None, 1] == [request.since for request in server.heard]


@pytest.mark.proves("CLN-011")
@in_loop
async def test_a_watch_that_has_seen_nothing_yet_misses_nothing_either() -> None:
    async with FakeStore() as server, store.Client(server.address) as client, client.watch("h") as changes:
        server.kill()
        server.put(("h", "a"), 1)
        await server.start()
        server.put(("h", "a"), 2)
        assert [("h.a", 1), ("h.a", 2)] == await told(changes, 2)


@in_loop
async def test_a_position_is_good_for_another_watch() -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        async with client.watch("h") as changes:
            for number in range(4):
                server.put(("h", "n"), number)
            seen = [await anext(changes) for _ in range(2)]
        async with client.watch("h", since=seen[-1].position) as changes:
            assert [("h.n", 2), ("h.n", 3)] == await told(changes, 2)
            assert 4 == changes.position


@pytest.mark.proves("CLN-010")
@in_loop
async def test_a_watch_whose_past_is_forgotten_is_told_so_and_all_that_is_there() -> None:
    async with FakeStore() as server, store.Client(server.address) as client, client.watch("h", marks=True) as changes:
        server.put(("h", "a"), 1)
        await told(changes, 1)
        server.kill()
        server.put(("h", "b"), 2)
        server.forgotten = 2
        assert ["lost"] == await told(changes, 1)
        await server.start()
        assert ["back", "gap", ("h.a", 1, "old"), ("h.b", 2, "old"), "uptodate"] == await told(changes, 5)


@pytest.mark.parametrize("fetch", [False, True])
def test_at_a_server_without_positions_everything_is_told_anew(fetch: bool) -> None:  # a parameter of the test
    asyncio.run(_without_positions(fetch=fetch))


async def _without_positions(*, fetch: bool) -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        server.greeting = store_of_others()
        async with client.watch("h", fetch=fetch, marks=True) as changes:
            server.put(("h", "a"), 1)
            assert (["uptodate"] if fetch else []) + [("h.a", 1)] == await told(changes, 1 + fetch)
            server.cut()
            assert ["lost", "back", "gap", ("h.a", 1, "old"), "uptodate"] == await told(changes, 5)
        with pytest.raises(store.Unsupported):
            await client.watch("h", since=3).__aenter__()


def store_of_others() -> Any:
    from weft.wire.store.clients import Greeting

    return Greeting(seq=0, version=[0, 71, 40], node="n1", tick=1, tock=1, qlen=10)


@in_loop
async def test_a_snapshot_that_broke_off_is_told_from_its_beginning() -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        server.put(("h", "a"), 1)
        server.put(("h", "b"), 2)
        changes = client.watch("h", fetch=True, marks=True)
        async with changes:
            assert [("h.a", 1, "old")] == await told(changes, 1)
            stream = changes._stream
            assert stream is not None
            stream._inbox._waiting.clear()
            server.cut()
            expected = ["lost", "back", "gap", ("h.a", 1, "old"), ("h.b", 2, "old"), "uptodate"]
            assert expected == await told(changes, 6)


@pytest.mark.proves("CLN-010")
@in_loop
async def test_who_reads_slowly_holds_the_server_back_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.client.store.streams.ITEMS_AHEAD_MAX", 10)
    monkeypatch.setattr("weft.client.store.streams.ITEMS_AHEAD_MIN", 5)
    async with FakeStore() as server, store.Client(server.address) as client, client.watch("h") as changes:
        for number in range(30):
            server.put(("h", "n"), number)
            await client.get("h.n")
        stream = changes._stream
        assert stream is not None
        assert 10 == len(stream._inbox)
        assert [("h.n", number) for number in range(30)] == await told(changes, 30)


@in_loop
async def test_a_watch_ends_when_it_is_closed() -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        changes = client.watch("h")
        waits = asyncio.ensure_future(anext(changes, "no more"))
        while not server.heard:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0)
        changes.close()
        assert "no more" == await waits
        with pytest.raises(store.Closed):
            await changes.__aenter__()


@in_loop
async def test_a_loop_that_is_left_leaves_no_connection_behind() -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        server.put(("h",), 1)
        async for change in client.watch("h", fetch=True):
            assert 1 == change.value
            break
        async for entry in client.tree():
            assert ("h",) == entry.path
            break
        while len(server.connections) > 1:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0)


# Mirrors


@pytest.mark.proves("CLN-030")
@in_loop
async def test_a_mirror_holds_what_the_node_holds() -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        server.put(("h", "a"), 1)
        server.put(("h", True), "yes")
        server.put(("h", 1), "one")
        server.put(("x",), 0)
        async with client.mirror("h") as home:
            assert {"h.a": 1, "h:t": "yes", "h:1": "one"} == home.as_text()
            assert [1, "yes", "one", None, 3] == [
                home["h.a"],
                home["h", True],
                home[["h", 1]],
                home.get("h.b"),
                len(home),
            ]
            assert [True, False, False] == ["h.a" in home, "x" in home, 7 in home]
            await client.set("h.b", None)
            await client.delete("h.a")
            await home.until(lambda home: "h.a" not in home)
            assert {"h.b": None, "h:t": "yes", "h:1": "one"} == home.as_text()
            entry = home.entry("h.b")
            assert entry is not None
            assert (await client.set("h.b", 2, chain=entry.chain)).is_changed
            assert sorted(map(repr, home)) == sorted(map(repr, [("h", "b"), ("h", True), ("h", 1)]))
        assert not home.is_fresh
        assert home["h", 1] == "one"


@pytest.mark.proves("CLN-030")
@in_loop
async def test_a_mirror_calls_and_iterates_with_every_change() -> None:
    async with FakeStore() as server, store.Client(server.address) as client, client.mirror("h") as home:
        called: list[Any] = []
        home.on_change(lambda change: called.append((change.text, change.value, home.get(change.path))))
        changes = home.changes()
        first = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
        for number in range(3):
            server.put(("h", "n"), number)
        assert [("h.n", 0), ("h.n", 1)] == [(one.text, one.value) for one in (await first, await anext(changes))]
        await home.until(lambda home: len(called) == 3)
        assert [("h.n", number, number) for number in range(3)] == called
        await changes.aclose()  # type: ignore[attr-defined]  # a generator


@in_loop
async def test_a_mirror_mends_itself_after_a_gap() -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        for path in ("a", "b", "c"):
            server.put(("h", path), 1)
        async with client.mirror("h") as home:
            called: list[Any] = []
            home.on_change(lambda change: called.append((change.text, change.value)))
            server.kill()
            await home.until(lambda home: not home.is_fresh)
            assert 3 == len(home)
            server.put(("h", "b"), 2)
            server.drop(("h", "c"))
            server.put(("h", "d"), 1)
            server.forgotten = len(server.journal)
            await server.start()
            await home.until(lambda home: home.is_fresh)
            assert {"h.a": 1, "h.b": 2, "h.d": 1} == home.as_text()
            assert [("h.b", 2), ("h.d", 1), ("h.c", store.MISSING)] == called


@in_loop
async def test_who_reads_a_mirrors_changes_too_slowly_is_given_the_newest_of_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mirror, "CHANGES_AHEAD_MAX", 4)
    async with FakeStore() as server, store.Client(server.address) as client, client.mirror("h") as home:
        changes = home.changes()
        first = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
        for number in range(9):
            server.put(("h", number % 2), number)
        await home.until(lambda home: home.get(("h", 0)) == 8)
        read = [(await first).value]
        while read[-1] != 8:
            read.append((await anext(changes)).value)
        assert [6, 7, 8] == read


@in_loop
async def test_a_mirror_of_a_node_that_is_not_there_says_so() -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        server.kill()
        with pytest.raises(store.Unreachable):
            await client.mirror("h").__aenter__()
