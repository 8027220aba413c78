"""The client of the store: what it reads and writes, what it refuses, and what becomes of requests when the node goes away."""

import asyncio
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from tests.client.node import in_loop
from tests.client.storeserver import FakeStore
from tests.patience import TRY_S
from weft import store
from weft.base.changes import Chain
from weft.client.link.backoff import BackOff
from weft.client.store import calling, limits, link
from weft.wire.store.clients import Greeting


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comes back at once, and notices early."""
    monkeypatch.setattr(calling, "BACK_OFF_MIN_S", 0.001)
    monkeypatch.setattr(calling, "BACK_OFF_MAX_S", 0.01)
    monkeypatch.setattr(calling, "SWEEP_S", 0.01)


@pytest.mark.proves("CLN-030")
@in_loop
async def test_a_value_is_written_read_and_deleted() -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        assert "a" == client.name
        written = await client.set("home.kitchen", {"temp": 21.5, "on": [True, None]})
        assert store.Written(True, Chain((("a", 1),)), 1) == written
        assert {"temp": 21.5, "on": [True, None]} == await client.get(("home", "kitchen"))
        gone = await client.delete("home.kitchen")
        assert (True, {"temp": 21.5, "on": [True, None]}) == (gone.is_changed, gone.before)
        assert not (await client.delete("home.kitchen")).is_changed


@pytest.mark.proves("CLN-030", "COD-005")
@in_loop
async def test_null_a_deletion_and_nothing_are_three_things() -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        await client.set("null", None)
        await client.set("gone", 1)
        await client.delete("gone")
        assert [None, store.MISSING, store.MISSING, 7] == [
            await client.get("null"),
            await client.get("gone"),
            await client.get("never"),
            await client.get("never", 7),
        ]
        entries = [await client.entry(path) for path in ("null", "gone", "never")]
        assert [(True, False), (False, True), (False, False)] == [(one.is_there, one.is_deleted) for one in entries]
        assert [("null",), Chain((("a", 3),)), None] == [entries[0].path, entries[1].chain, entries[2].chain]
        assert ["null", False] == [entries[0].text, bool(store.MISSING)]


@pytest.mark.proves("COD-005")
@in_loop
async def test_paths_are_text_or_elements_and_anything_else_is_refused() -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        await client.set("a:12.b:_c", 1)
        assert [("a", 12, "b c")] == [held.path for held in server.entries.values()]
        assert 1 == await client.get(["a", 12, "b c"])
        for bad in ("", "a:zz", (object(),), 7):
            with pytest.raises(store.BadPath):
                await client.get(bad)  # type: ignore[arg-type]  # being wrong is the test
        with pytest.raises(store.Unencodable):
            await client.set("a", object())
        assert ["set_value", "get_value"] == [request.action for request in server.heard]


@pytest.mark.proves("CLN-030", "STO-036")
@in_loop
async def test_a_condition_that_does_not_hold_is_an_error_of_its_own_type() -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        first = await client.set("p", 1, new=True)
        with pytest.raises(store.Exists):
            await client.set("p", 2, new=True)
        second = await client.set("p", 2, chain=first.chain)
        for old in (first.chain, ("z", 9)):
            with pytest.raises(store.ChainMismatch):
                await client.set("p", 3, chain=old)
        with pytest.raises(store.ValueMismatch) as refused:
            await client.delete("p", prev=1)
        assert ("value-mismatch", False) == (refused.value.code, refused.value.may_be_own)
        assert not (await client.set("p", 2, idem=True)).is_changed
        assert (await client.delete("p", prev=2, chain=second.chain)).is_changed
        assert (await client.set("p", 4, chain=None)).is_changed
        with pytest.raises(store.BadRequest):
            await client.set("p", 4, new=True, chain=first.chain)


@in_loop
async def test_what_stands_below_a_path_is_listed_and_read_as_a_tree() -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        for number, path in enumerate(["a", "a.b", "a.b.c", "a.b.d", "a.x.y"]):
            await client.set(path, number)
        await client.delete("a.b.c")
        assert [["a"], ["b", "x"], ["d"], ["c", "d"], []] == [
            await client.list(),
            await client.list("a"),
            await client.list("a.b"),
            await client.list("a.b", deleted=True),
            await client.list("nowhere"),
        ]
        tree = [(entry.text, entry.value) async for entry in client.tree("a")]
        assert [("a", 0), ("a.b", 1), ("a.b.d", 3), ("a.x.y", 4)] == tree
        assert server.greeting is not None
        server.greeting = replace(server.greeting, weft=UNSET)
        async with store.Client(server.address) as stranger:  # real servers hide what has no value itself
            assert ["c", "d"] == await stranger.list("a.b")
        inner = [entry.text async for entry in client.tree("a", min_depth=1, max_depth=2, deleted=True)]
        assert ["a.b", "a.b.c", "a.b.d", "a.x.y"] == inner
        assert [] == [entry async for entry in client.tree("nowhere")]
        assert 3 == await client.delete_tree("a.b") + await client.delete_tree("a.x")
        assert {"nodes": {"a": 9}, "missing": {}} == await client.state("nodes", "missing")
        with pytest.raises(store.BadRequest):
            await client.state("weather")


@in_loop
async def test_a_reader_of_a_tree_may_ask_for_other_things_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.client.store.streams.ITEMS_AHEAD_MAX", 4)
    monkeypatch.setattr("weft.client.store.streams.ITEMS_AHEAD_MIN", 2)
    async with FakeStore() as server, store.Client(server.address) as client:
        for number in range(50):
            server.put(("t", number), number)
        read = [(entry.value, await client.get(entry.path)) async for entry in client.tree("t")]
        assert [(number, number) for number in range(50)] == read


@pytest.mark.proves("CLN-030")
@in_loop
async def test_a_request_is_said_again_only_if_saying_it_twice_is_saying_it_once() -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        server.dies_at = "get_value"
        assert store.MISSING == await client.get("p")
        server.dies_at = "set_value"
        with pytest.raises(store.Unanswered):
            await client.set("p", 1)
        server.dies_at = "set_value"
        assert not (await client.set("p", 2, idem=True)).is_changed  # the first time it was
        server.dies_at = "set_value"
        with pytest.raises(store.ChainMismatch) as refused:
            await client.set("p", 3, chain=("a", 2))
        assert refused.value.may_be_own
        assert 3 == await client.get("p")
        asked = ["get_value", "set_value", "delete_tree"]
        assert [3, 5, 0] == [server.asked(action) for action in asked]
        server.dies_at = "delete_tree"
        with pytest.raises(store.Unanswered):
            await client.delete_tree("p")


@in_loop
async def test_what_is_asked_while_the_node_is_away_waits_for_it() -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        server.put(("p",), 1)
        server.kill()
        await _until(lambda: not client.is_up)
        asked = [asyncio.ensure_future(client.get("p")), asyncio.ensure_future(client.set("q", 2))]
        await asyncio.sleep(0)
        await server.start()
        assert 1 == await asked[0]
        assert (await asked[1]).is_changed


@in_loop
async def test_nobody_waits_for_ever() -> None:
    async with FakeStore() as server, store.Client(server.address, timeout=TRY_S) as client:
        server.is_mute = True
        with pytest.raises(store.Unanswered):
            await client.get("p")
        server.kill()
        await _until(lambda: not client.is_up)
        with pytest.raises(store.Unreachable):
            await client.set("p", 1)


@in_loop
async def test_a_connection_that_says_nothing_is_made_anew() -> None:
    async with FakeStore() as server, store.Client(server.address, timeout=TRY_S) as client:
        server.is_mute = True
        first = server.connections[0]
        with pytest.raises(store.Unanswered):
            await client.get("p")
        server.is_mute = False
        assert store.MISSING == await client.get("p")
        assert first not in server.connections


@in_loop
async def test_a_client_asks_only_so_much_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "REQUESTS_OPEN_MAX", 3)
    async with FakeStore() as server, store.Client(server.address) as client:
        server.is_mute = True
        asked = [asyncio.ensure_future(client.set(("p", number), number)) for number in range(8)]
        await _until(lambda: len(server.heard) >= 3)
        assert 3 == len(server.heard)
        server.is_mute = False
        server.cut()
        with pytest.raises(store.Unanswered):
            await asked[0]
        assert 5 == sum(one.is_changed for one in await asyncio.gather(*asked[3:]))
        await asyncio.gather(*asked, return_exceptions=True)


@in_loop
async def test_what_is_asked_in_one_turn_leaves_in_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    flush = link.Link._flush

    def note(self: link.Link) -> None:
        flushed.append(len(self._unsaid))
        flush(self)

    monkeypatch.setattr(link.Link, "_flush", note)
    async with FakeStore() as server, store.Client(server.address) as client:
        await asyncio.gather(*(client.set(("p", number), number) for number in range(100)))
        assert [100] == flushed


@in_loop
async def test_a_closed_client_says_so() -> None:
    async with FakeStore() as server:
        async with store.Client(server.address) as client:
            server.is_mute = True
            waits = asyncio.ensure_future(client.get("p"))
            await asyncio.sleep(0)
        with pytest.raises(store.Closed):
            await waits
        with pytest.raises(store.Closed):
            await client.get("p")


@in_loop
async def test_where_no_store_is_the_error_says_what_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "GREETING_S", 0.05)
    async with FakeStore() as server:
        address = server.address
        server.greeting = None
        assert "sends no greeting" in str(await _refusal(address))
        server.greeting = Greeting(seq=0, version=[0, 71, 40], node="n1", auth=["password"])
        assert "auth-failed" == (await _refusal(address)).code
    assert f"no store answers at {address}" in str(await _refusal(address))


async def _refusal(address: str) -> store.StoreError:
    with pytest.raises(store.StoreError) as refused:
        await store.Client(address).__aenter__()
    return refused.value


@in_loop
async def test_a_server_that_hangs_up_before_a_word_leaves_nobody_trying() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    listening = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with listening:
        address = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        assert "ended the connection" in str(await _refusal(address))
    names = [task.get_coro().__qualname__ for task in asyncio.all_tasks()]  # type: ignore[union-attr]  # coroutines all
    assert [] == [name for name in names if "Caller" in name]


@in_loop
async def test_who_is_not_served_hears_why() -> None:
    from weft.wire.store.clients import Answer, encode

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(encode(Answer(seq=0, tock=7, error="wait", etype="not-ready")))
        writer.close()

    listening = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with listening:
        refused = await _refusal(f"127.0.0.1:{listening.sockets[0].getsockname()[1]}")
    assert (store.NotReady, "not-ready") == (type(refused), refused.code)


@in_loop
async def test_a_server_that_talks_nonsense_is_left() -> None:
    async with FakeStore() as server, store.Client(server.address) as client:
        server.connections[0].transport.write(b"\xc1")
        await _until(lambda: not server.connections)
        assert store.MISSING == await client.get("p")


@pytest.mark.parametrize(
    "etype, text, expected",
    [
        ("busy", "later", store.Busy),
        ("storage-full", "", store.StorageFull),
        ("something-new", "x", store.StoreError),
        ("", "ClientChainError('Entry already exists at a.b')", store.Exists),
        ("", "ClientChainError('Entry is new at new')", store.ChainMismatch),
        ("", "ClientError('Data is 1 not 7 at a')", store.ValueMismatch),
        ("", "KeyError(P('nope'))", store.NotFound),
        ("", "Exceptions from Trio nursery (1 sub-exception)", store.BadRequest),
    ],
)
def test_every_error_of_a_server_has_its_type(etype: str, text: str, expected: Any) -> None:
    from weft.client.store.errors import error_of

    assert expected is type(error_of(etype, text))


@in_loop
async def test_attempts_come_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def note(span_s: float) -> None:
        slept.append(span_s)

    monkeypatch.setattr(asyncio, "sleep", note)
    back_off = BackOff(limits.BACK_OFF_MIN_S, limits.BACK_OFF_MAX_S)
    for _ in range(6):
        await back_off.wait()
    for expected, actual in zip([0.1, 0.2, 0.4, 0.8, 1.6, 2.0], slept, strict=True):
        assert expected * 0.8 <= actual <= expected * 1.2


def test_objects_are_cut_out_of_a_stream_wherever_it_is_torn() -> None:
    import msgpack

    packed = [msgpack.packb(value) for value in (1, {"a": b"x" * 300}, [1, [2]], "text", {})]
    whole = b"".join(packed)
    for size in (1, 2, 3, 7, 100, len(whole)):
        frames = link.Frames()
        found = [frame for at in range(0, len(whole), size) for frame in frames.feed(whole[at : at + size])]
        assert packed == found


async def _until(holds: Any) -> None:
    while not holds():  # noqa: ASYNC110  # nobody tells
        await asyncio.sleep(0.001)  # tidy: as above; bounded by in_loop
