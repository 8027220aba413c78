"""`weft store save`, `load`, `dump` at real nodes: what is typed, what is in the files, and what other nodes make of them."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgpack
import pytest

from tests.cli.test_store_real import weft
from tests.client.node import in_loop
from tests.shell.ports import free_port
from weft import store
from weft.cli.asking import try_status
from weft.client.store import files
from weft.node.settings import settings_of
from weft.shell.blocks import free_blocks
from weft.shell.process import Process
from weft.wire.store.path import parse, text_of

pytestmark = pytest.mark.prove("real nodes")


@asynccontextmanager
async def living(place: Path, port: int, name: str, until: str, **table: Any) -> AsyncIterator[None]:
    """A node, until its store stands so and behind that; deletions are remembered for 40 s."""
    node = {"name": name, "level": "root", "state": str(place), "port": port}
    settings = {"node": node, "fleet": {"beacon_port": free_port()}, "store": {"clock": "1s", **table}}
    process = Process(settings_of(settings))
    run = asyncio.ensure_future(process.run())
    await reached(port, until)
    yield
    process.stop()
    await run


async def reached(port: int, wanted: str) -> None:
    while await asyncio.to_thread(standing, port) != wanted:  # noqa: ASYNC110  # another thread asks another port
        await asyncio.sleep(0.02)  # tidy: the node tells nobody; bounded by in_loop


def standing(port: int) -> str:
    status = try_status(port) or {}
    return str(status.get("cores", {}).get("store", {}).get("state"))


async def fill(place: Path, pairs: dict[str, object]) -> None:
    async with store.Client(place) as client:
        for path, value in pairs.items():
            await client.set(path, value)


def records_of(file: str) -> list[dict[str, Any]]:
    with Path(file).open("rb") as source:
        return list(msgpack.Unpacker(source))


HELD = {"home.hall": 1, "home.kitchen.temp": 21.5, "home.kitchen.note": "none", "home:12": b"\x00", "other": None}


@pytest.mark.proves("ADM-012", "ADM-013")
@in_loop
async def test_a_store_is_saved_and_copied_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path
    first, second = free_blocks(2, 16_000)
    one, two, file = tmp_path / "one", tmp_path / "two", str(tmp_path / "file")
    async with living(one, first, "a", "MEMBER", found="r"):
        await fill(one, HELD)
        assert (0, []) == await weft("del", "home.hall", "--port", str(first))
        status, said = await weft("store", "save", file, "--json", "--port", str(first))
        assert (0, 5, 1) == (status, json.loads(said[0])["entries"], json.loads(said[0])["deleted"])
        assert {"file", "one"} == {path.name for path in folder.iterdir()}
    state, *entries, again = records_of(file)
    assert ({"a": 7}, {"a": 7}, {"a": [7]}) == (state["nodes"], again["nodes"], again["deleted"])
    assert ["value" in entry for entry in entries] == [True] * 5 + [False], "deletions come last"
    async with living(two, second, "b", "LISTEN"):
        at = ("--port", str(second))
        assert (2, []) == await weft("store", "load", file, "--as", "copy", "--diff", *at)
        status, said = await weft("store", "load", file, "--as", "copy", "--json", *at)
        assert (0, {"merged": 6, "refused": 0}) == (status, json.loads(said[0]))
        await reached(second, "MEMBER")
        async with store.Client(two) as client:
            kept = await client.entry("home.kitchen.temp")
            assert (21.5, ("a", 3)) == (kept.value, kept.chain and kept.chain.head)
            assert (entry := await client.entry("home.hall")).is_deleted
            assert entry.chain is not None
            assert ("a", 7) == entry.chain.head
        assert (4, []) == await weft("store", "load", file, "--as", "copy", *at)


@pytest.mark.proves("ADM-013")
@in_loop
async def test_a_file_is_compared_with_a_store_and_loaded_as_new_changes(tmp_path: Path) -> None:
    [second] = free_blocks(1, 16_000)
    two, at, file = tmp_path / "two", ("--port", str(second)), str(tmp_path / "file")
    async with living(two, second, "b", "MEMBER", found="r"):
        await fill(two, HELD)
        async with store.Client(two) as client:
            await client.delete("home.hall")
            await files.save(client, Path(file))
            await client.set("home.kitchen.temp", 5)
            await client.set("home.hall", "back")
            await client.delete("other")
            await client.set("mine", True)
        status, shown = await weft("store", "load", file, "--diff", *at)
        assert 1 == status
        assert [
            "- home.hall back",
            "~ home.kitchen.temp 21.5  # was 5",
            "  mine true  # not in the file",
            "+ other null",
        ] == shown
        assert (0, ["would be new: 1, changed: 1, deleted: 1, left: 1"]) == await weft(
            "store", "load", file, "--dry-run", *at
        )
        assert (0, ["3 entries changed, 3 were the same already"]) == await weft("store", "load", file, *at)
        assert (0, ["0 entries changed, 6 were the same already"]) == await weft("store", "load", file, *at)
        async with store.Client(two) as client:
            kept = await client.entry("home.kitchen.temp")
            assert (21.5, ("b", 12)) == (kept.value, kept.chain and kept.chain.head), "as a change of its own"


@pytest.mark.proves("ADM-012")
@in_loop
async def test_yaml_of_a_tree_is_printed_and_loaded_and_bad_files_change_nothing(tmp_path: Path) -> None:
    [port] = free_blocks(1, 16_000)
    at, place = ("--port", str(port)), tmp_path / "one"
    async with living(place, port, "a", "MEMBER", found="r"):
        await fill(place, HELD)
        status, lines = await weft("store", "dump", "home", *at)
        assert (0, ["home.hall: 1", "home.kitchen.note: none", "home.kitchen.temp: 21.5", 'home:12: !bin "\\0"']) == (
            status,
            sorted(lines),
        )
        status, lines = await weft("store", "dump", "home.hall", "--chain", *at)
        assert ["home.hall:", "  value: 1", "  chain:"] == lines[:3]
        yaml = tmp_path / "in.yaml"
        yaml.write_text("home.hall: 2\nhome.kitchen.note: none\nnew.one: [1, null]\n")
        assert (0, ["2 entries changed, 1 were the same already"]) == await weft("store", "load", str(yaml), *at)
        async with store.Client(place) as client:
            assert [2, [1, None]] == [await client.get("home.hall"), await client.get("new.one")]
            before = [entry async for entry in client.tree()]
            nonsense, cut, odd = tmp_path / "nonsense", tmp_path / "cut", tmp_path / "odd.yaml"
            nonsense.write_bytes(b"no file of a store")
            whole = msgpack.packb({"path": ["a"], "value": 1, "tock": 1, "node": "n", "tick": 1})
            cut.write_bytes(bytes(whole)[:-1])
            odd.write_text("- a\n- b\n")
            for file in (nonsense, cut, odd, tmp_path / "absent"):
                assert (2, []) == await weft("store", "load", str(file), *at)
            assert before == [entry async for entry in client.tree()]
            refused = tmp_path / "refused"
            paths = [["fine", 1], ["fine", 2.5], ["fine", 3]]
            records = [{"path": path, "value": 1, "tock": 1, "node": "n", "tick": 1} for path in paths]
            refused.write_bytes(b"".join(map(bytes, map(msgpack.packb, records))))
            status, said = await weft("store", "load", str(refused), "--json", *at)
            assert (1, 2, ["fine:2"]) == (
                status,
                (told := json.loads(said[0]))["changed"],
                [told["why"][0]["path"][:6]],
            )
            assert [1, 1] == [await client.get(parse("fine:1")), await client.get(parse("fine:3"))]


@pytest.mark.proves("ADM-014")
@in_loop
async def test_an_entry_with_a_time_to_live_is_shown_with_its_end_and_ends(tmp_path: Path) -> None:
    [port] = free_blocks(1, 16_000)
    at = ("--port", str(port))
    async with living(tmp_path, port, "a", "MEMBER", found="r"):
        assert (2, []) == await weft("set", "lent", "1", "--ttl", "soon", *at)
        assert (0, []) == await weft("set", "lent", "1", "--ttl", "8s", *at)
        status, lines = await weft("get", "lent", "--chain", *at)
        assert (0, ["1", "# a:2", "# until "]) == (status, [line[: 8 if " u" in line else None] for line in lines])
        async with store.Client(tmp_path) as client, client.watch("lent") as changes:
            entry = await client.entry("lent")
            assert entry.until is not None
            ended = await anext(changes)
            assert (False, True) == (ended.is_there, time.time() >= entry.until - 0.01)


@pytest.mark.proves("STO-035")
@in_loop
async def test_a_write_waits_for_the_disk_of_another_node_and_says_if_it_is_away(tmp_path: Path) -> None:
    first, second = free_blocks(2, 16_000)
    at, there = ("--port", str(first)), ("--port", str(second))
    async with living(tmp_path / "one", first, "a", "MEMBER", found="r"):
        assert (2, []) == await weft("set", "x", "1", "--ack", "most", *at)
        async with living(tmp_path / "two", second, "b", "MEMBER", peers=[f"127.0.0.1:{first}"]):
            async with store.Client(tmp_path / "one") as client, client.mirror((None, "node")) as nodes:
                await nodes.until(lambda nodes: len(nodes) > 0)
            assert (0, []) == await weft("set", "x", "1", "--ack", "majority", *at)
            assert (0, ["1"]) == await weft("get", "x", *there)
            assert (0, []) == await weft("del", "x", "--ack", "one", *at)
        assert (5, []) == await weft("set", "x", "2", "--ack", "2", *at)
        assert (0, ["2"]) == await weft("get", "x", *at)


@pytest.mark.proves("ADM-014", part="through a file")
@in_loop
async def test_what_ends_by_itself_ends_in_the_store_that_its_file_was_loaded_into_too(tmp_path: Path) -> None:
    first, second = free_blocks(2, 16_000)
    one, two, file = tmp_path / "one", tmp_path / "two", tmp_path / "file"
    async with living(one, first, "a", "MEMBER", found="r"), store.Client(one) as client:
        await client.set("lent", 1, ttl=600.0)
        until = (await client.entry("lent")).until
        await files.save(client, file)
    gone = {"path": ["gone"], "value": 1, "chain": {"node": "n", "tick": 1}, "tock": 1, "until": 5.0}
    file.write_bytes(file.read_bytes() + bytes(msgpack.packb(gone)))
    async with living(two, second, "b", "MEMBER", found="r"), store.Client(two) as client:
        at = ("--port", str(second))
        assert (0, ["1 entries changed, 1 were the same already"]) == await weft("store", "load", str(file), *at)
        assert (until, None) == ((await client.entry("lent")).until, (await client.entry("gone")).chain)
        assert (0, ["0 entries changed, 2 were the same already"]) == await weft("store", "load", str(file), *at)


@pytest.mark.proves("STO-017")
@in_loop
async def test_two_stores_are_compared_and_what_differs_is_written_anew(tmp_path: Path) -> None:
    first, second = free_blocks(2, 16_000)
    one, two, at, there = tmp_path / "one", tmp_path / "two", ("--port", str(first)), f"127.0.0.1:{second + 5}"
    async with living(one, first, "a", "MEMBER", found="r"):
        assert (2, []) == await weft("store", "audit", *at)
        assert 3 == (await weft("store", "audit", "127.0.0.1:9", *at))[0]
        async with living(two, second, "b", "MEMBER", peers=[f"127.0.0.1:{first}"]):
            await fill(one, {"home.hall": 1, "home.lent": 2})
            async with store.Client(two) as client, client.mirror("home") as home:
                await home.until(lambda home: len(home) == 2)
            status, lines = await weft("store", "audit", there, *at)
            assert (0, [f"{there}: the same, "]) == (status, [line[: len(there) + 12] for line in lines])
            assert (status, lines) == await weft("store", "audit", *at)  # that one is all members
    async with living(two, second, "b", "MEMBER", found="r"), store.Client(two) as client:
        await client.set("home.hall", 5)
        async with living(one, first, "a", "MEMBER", found="r"):
            status, lines = await weft("store", "audit", there, "--json", *at)
            said = json.loads(lines[0])
            assert (1, 1, 0) == (status, said["differ"], said["repaired"])
            assert ["home.hall", 1, 5] == [
                (row := said["entries_that_differ"][0])["path"],
                row["here"]["value"],
                row["there"]["value"],
            ]
            assert 1 == (await weft("store", "audit", there, "--repair", *at))[0]
            async with store.Client(one) as own:
                kept = await own.entry("home.hall")
                assert (1, "a") == (kept.value, kept.chain and kept.chain.head[0])


@pytest.mark.proves("STO-017")
@in_loop
async def test_of_a_subtree_what_was_deleted_here_is_deleted_there_and_what_was_never_here_is_left(
    tmp_path: Path,
) -> None:
    first, second = free_blocks(2, 16_000)
    one, two, at, there = tmp_path / "one", tmp_path / "two", ("--port", str(first)), f"127.0.0.1:{second + 5}"
    async with (
        living(one, first, "a", "MEMBER", found="r"),
        living(two, second, "b", "MEMBER", found="r"),
        store.Client(one) as own,
        store.Client(two) as other,
    ):
        await fill(two, {"home.hall": 1, "home.porch": 2, "shed.door": 3})
        await own.set("home.hall", 1)
        await own.delete("home.hall")
        assert (1, 2) == await differing(there, "--under", "home", *at)
        assert (1, 2) == await differing(there, "--under", "home", "--repair", *at)
        assert [("home.porch", 2), ("shed.door", 3)] == [
            (text_of(entry.path), entry.value)
            async for entry in other.tree()
            if entry.path and entry.value in (1, 2, 3)
        ]


async def differing(*said: str) -> tuple[int | None, int]:
    """The exit status of an audit, and in how many entries it found a difference."""
    status, lines = await weft("store", "audit", "--json", *said)
    return status, json.loads(lines[0])["differ"]
