"""The store's client port: bytes are cut into messages, whatever comes, and nobody who does not read is spoken to (CLN-002)."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fabric.fabric import Fabric
from tests.patience import PATIENCE_S
from tests.shell.ports import free_port
from weft.base.effects import Source
from weft.base.errors import UserError
from weft.cores.store.messages import (
    ClientCame,
    ClientGone,
    ClientPaused,
    ClientResumed,
    Dial,
    DialFailed,
    HangUp,
)
from weft.shell.storeport import GARBAGE, MESSAGE_BYTES_MAX, TURN_BYTES_ALL, Splitter, StorePort

PEER = Path(__file__).parents[1] / "peers" / "store_client.py"


class Node:
    """As much of a runner as this door wants."""

    def __init__(self) -> None:
        self.inside: dict[tuple[str, bytes], Callable[[list[bytes]], None]] = {}
        self.heard: list[tuple[str, bytes, bytes]] = []
        self.orders: list[Any] = []
        self.stirred = asyncio.Event()

    def post(self, source: Source, frames: list[bytes]) -> None:
        self.heard.append((source.channel, source.peer, frames[0]))
        self.stirred.set()

    def order(self, core: str, order: Any) -> None:
        assert core == "store"
        self.orders.append(order)
        self.stirred.set()

    def break_off(self, failure: BaseException) -> None:
        raise failure

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                self.stirred.clear()
                await self.stirred.wait()

    def had(self, kind: type) -> bool:
        return any(isinstance(order, kind) for order in self.orders)


Test = Callable[[Node, StorePort], Awaitable[None]]


def at_a_port(test: Test) -> Callable[[], None]:
    """Run it with a port that listens."""

    def run() -> None:
        async def main() -> None:
            node = Node()
            port = StorePort(node)
            await port.listen("127.0.0.1", free_port())
            try:
                await test(node, port)
            finally:
                await port.close()

        asyncio.run(main())

    run.__doc__ = test.__doc__
    return run


def message(number: int, size: int = 0) -> bytes:
    return bytes(msgpack.packb({"seq": number, "value": b"x" * size}))


@given(st.lists(st.integers(0, 300), max_size=8), st.integers(1, 40))
def test_messages_are_cut_wherever_the_stream_is(sizes: list[int], step: int) -> None:
    messages = [message(number, size) for number, size in enumerate(sizes)]
    stream, splitter = b"".join(messages), Splitter()
    found = [part for at in range(0, len(stream), step) for part in splitter.feed(stream[at : at + step])]
    assert messages == found


@given(st.binary(min_size=1, max_size=200))
def test_any_bytes_are_messages_or_garbage_once(data: bytes) -> None:
    splitter = Splitter()
    found = splitter.feed(data) + splitter.feed(data)
    assert found.count(GARBAGE) <= 1
    assert (GARBAGE in found) == splitter.is_broken
    assert GARBAGE not in found[:-1]


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.0\r\n\r\n", b"\xc1", b"\x93\x01\x02\x03", b"\x81\xa1a" + b"\x91" * 5_000, b"\x81\xc1\x01"],
    ids=["http", "never", "array", "deep", "bad key"],
)
def test_what_is_no_map_ends_the_stream(data: bytes) -> None:
    splitter = Splitter()
    assert [message(1), GARBAGE] == splitter.feed(message(1) + data)
    assert [] == splitter.feed(message(2))


def test_a_message_may_have_four_megabytes_and_no_more() -> None:
    for size, ends in ((MESSAGE_BYTES_MAX - 100, False), (MESSAGE_BYTES_MAX + 1, True)):
        splitter, found, raw = Splitter(), list[bytes](), message(1, size)
        for at in range(0, len(raw), 1 << 18):
            found += splitter.feed(raw[at : at + (1 << 18)])
        assert (ends, 1) == (found == [GARBAGE], len(found))


@at_a_port
async def test_a_client_comes_asks_is_answered_and_goes(node: Node, port: StorePort) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
    await node.until(lambda: node.had(ClientCame))
    [came] = node.orders
    assert (True, "127.0.0.1") == (came.is_local, came.address.partition(":")[0])
    writer.write(message(1) + message(2)[:3])
    await node.until(lambda: len(node.heard) == 1)
    writer.write(message(2)[3:])
    await node.until(lambda: len(node.heard) == 2)
    assert [("store-clients", came.peer, message(number)) for number in (1, 2)] == node.heard
    node.inside["store-clients", came.peer]([b"one", b"two"])
    assert b"onetwo" == await reader.readexactly(6)
    writer.close()
    await node.until(lambda: node.had(ClientGone))
    assert {} == node.inside


@at_a_port
async def test_a_flood_is_heard_in_turns(node: Node, port: StorePort) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port.port)
    most = 0
    before = 0

    def count() -> None:
        nonlocal most, before
        most, before = max(most, len(node.heard) - before), len(node.heard)
        asyncio.get_running_loop().call_soon(count)

    count()
    writer.write(b"".join(message(number) for number in range(5_000)))
    await node.until(lambda: len(node.heard) == 5_000)
    assert [message(number) for number in range(5_000)] == [raw for _, _, raw in node.heard]
    assert most <= 500
    writer.close()


@at_a_port
async def test_clients_that_flood_at_once_share_a_turn(node: Node, port: StorePort) -> None:
    """Each had a share of its own, so a hundred of them made turns that lasted for seconds."""
    loop, turns, post = asyncio.get_running_loop(), [0], node.post

    def note(source: Source, frames: list[bytes]) -> None:
        if not turns[-1]:
            loop.call_soon(turns.append, 0)  # as a runner begins its turn
        turns[-1] += len(frames[0])
        post(source, frames)

    node.post = note  # type: ignore[method-assign]  # only counts
    writers = [(await asyncio.open_connection("127.0.0.1", port.port))[1] for _ in range(40)]
    words = [message(number, 50_000) for number in range(20)]
    for writer in writers:
        writer.write(b"".join(words))
    await node.until(lambda: len(node.heard) == len(writers) * len(words))
    assert max(turns) <= TURN_BYTES_ALL + len(words[0])
    assert len(turns) > 8
    for peer in {peer for _, peer, _ in node.heard}:
        assert words == [raw for _, each, raw in node.heard if each == peer]
    for writer in writers:
        writer.close()


@at_a_port
async def test_garbage_is_heard_once_and_the_connection_ends_after_its_answer(node: Node, port: StorePort) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    await node.until(lambda: bool(node.heard))
    [(_, peer, raw)] = node.heard
    assert GARBAGE == raw
    node.inside["store-clients", peer]([b"what?"])
    port.hang_up(HangUp(peer))
    assert b"what?" == await reader.read()
    await node.until(lambda: node.had(ClientGone))
    writer.close()


@at_a_port
async def test_who_does_not_read_is_told_nothing_and_heard_no_more(node: Node, port: StorePort) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
    await node.until(lambda: node.had(ClientCame))
    peer = node.orders[0].peer
    told = 0
    while not node.had(ClientPaused):
        node.inside["store-clients", peer]([b"x" * 65_536])
        told += 65_536
        await asyncio.sleep(0)  # tidy: the loop's turn
    writer.write(message(1))
    await writer.drain()
    heard = list(node.heard)
    assert len(await reader.readexactly(told)) == told
    await node.until(lambda: node.had(ClientResumed))
    await node.until(lambda: len(node.heard) == 1)
    assert [] == heard
    writer.close()


@at_a_port
async def test_last_words_that_nobody_reads_do_not_hold_a_connection(node: Node, port: StorePort) -> None:
    port.linger_s = 0.05
    _, writer = await asyncio.open_connection("127.0.0.1", port.port)
    await node.until(lambda: node.had(ClientCame))
    peer = node.orders[0].peer
    node.inside["store-clients", peer]([b"x" * (16 << 20)])
    port.hang_up(HangUp(peer))
    await node.until(lambda: node.had(ClientGone))
    writer.close()


@at_a_port
async def test_a_server_is_dialled_heard_and_hung_up_on(node: Node, port: StorePort) -> None:
    port.dial(Dial(f"127.0.0.1:{port.port}", b"t1"))
    await node.until(lambda: ("store-join", b"t1") in node.inside)
    await node.until(lambda: node.had(ClientCame))
    peer = node.orders[0].peer
    node.inside["store-clients", peer]([message(0)])
    await node.until(lambda: bool(node.heard))
    node.inside["store-join", b"t1"]([message(1)])
    await node.until(lambda: len(node.heard) == 2)
    assert [("store-join", b"t1", message(0)), ("store-clients", peer, message(1))] == node.heard
    port.hang_up(HangUp(peer))
    await node.until(lambda: node.had(DialFailed))
    assert [b"t1"] == [order.tag for order in node.orders if isinstance(order, DialFailed)]
    assert {} == node.inside


@at_a_port
async def test_a_server_that_is_not_there_is_told_as_such(node: Node, port: StorePort) -> None:
    port.dial(Dial(f"127.0.0.1:{free_port()}", b"t2"))
    port.dial(Dial("no.such.host.invalid:1", b"t3"))
    nonsense = {b"t4": "a..b:1", b"t5": f"{'n' * 64}.x:27586", b"t6": "127.0.0.1:99999", b"t7": "127.0.0.1:x"}
    for tag, endpoint in nonsense.items():  # as others say it in a host map, or are called
        port.dial(Dial(endpoint, tag))
    await node.until(lambda: len(node.orders) == 6)
    assert {b"t2", b"t3", *nonsense} == {order.tag for order in node.orders if isinstance(order, DialFailed)}


@at_a_port
async def test_a_port_that_is_taken_is_said(node: Node, port: StorePort) -> None:
    with pytest.raises(UserError) as refused:
        await StorePort(node).listen("127.0.0.1", port.port)
    assert "port-taken" == refused.value.code


@pytest.mark.proves("CLN-001", "CLN-002", "CLN-003", "CLN-005")
def test_a_plain_client_of_forty_lines_talks_to_a_real_node(tmp_path: Path) -> None:
    """Nothing but a socket and MessagePack, against a process of `weft up`."""
    assert len(PEER.read_text("utf-8").splitlines()) <= 40
    with Fabric(tmp_path, {"root": ""}, '[store]\nfound = "here"\nclock = "100ms"\n') as fabric:
        fabric.until(lambda: bool(fabric.status("root").get("cores", {}).get("store", {}).get("serves")), "it serves")
        port = fabric.ports["root"] + 5
        done = subprocess.run([sys.executable, str(PEER), str(port)], capture_output=True, timeout=60, check=False)
        assert (0, b"") == (done.returncode, done.stderr)
    said = json.loads(done.stdout)
    assert ["root", "here", True, 5, "exists", "bad-request", "malformed", "start"] == said["talk"]
    assert [["", 5], ["x", 1], ["x.y", None], ["x.y", 2]] == said["seen"]
