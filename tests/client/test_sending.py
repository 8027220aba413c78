"""Sending: receipts, failures, credit, causes, and what leaves together."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.client.node import FakeNode, attached, in_loop, until
from weft.client.chain.message import Message
from weft.wire import clients


@pytest.mark.proves("CLI-020")
@in_loop
async def test_a_send_ends_in_a_receipt_or_says_why_it_failed(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node, attached(node) as chain:
        sent = chain.send("demo.report", b"payload", to=weft.PARENTS_OF_LOCAL)
        item = clients.SendItem(tag=1, type="demo.report", to=["PARENTSOF"])
        assert clients.Send([item], [b"payload"]) == await node.hears(clients.Send)
        node.ends(1)
        assert weft.Receipt("spooled") == await sent
        sent = chain.send("demo.report", b"", want="dest", keep="memory", to=weft.CHILDREN_OF_LOCAL, expires=5)
        item = clients.SendItem(tag=2, type="demo.report", to=["CHILDRENOF"], want="dest", keep="memory", exp=5, n=1)
        assert [item] == (await node.hears(clients.Send)).m
        node.says(clients.Status([clients.StatusItem(tag=2, ok=False, why="partial", count=2, failed=1)]))
        with pytest.raises(weft.SendFailed) as failure:
            await sent
        assert ("partial", 2, 1) == (failure.value.why, failure.value.count, failure.value.failed)


PAYLOADS: list[tuple[Any, str | None, str, list[bytes]]] = [
    (b"\x00", None, "raw", [b"\x00"]),
    (bytearray(b"a"), None, "raw", [b"a"]),
    ("<a/>", None, "text", [b"<a/>"]),
    ("<a/>", "xml", "xml", [b"<a/>"]),
    ((b"1", b"2"), None, "raw", [b"1", b"2"]),
    ({"a": [1, None]}, None, "json", [b'{"a":[1,null]}']),
    ([1], None, "json", [b"[1]"]),
    ([1], "msgpack", "msgpack", [b"\x91\x01"]),
]


@pytest.mark.proves("CLI-020")
@pytest.mark.parametrize("payload, given, fmt, frames", PAYLOADS)
@in_loop
async def test_payloads_become_frames(
    tmp_path: Path, payload: Any, given: str | None, fmt: str, frames: list[bytes]
) -> None:
    async with FakeNode(tmp_path) as node, attached(node) as chain:
        await chain.send("demo.report", payload, fmt=given, want="none")
        heard = await node.hears(clients.Send)
        assert (fmt, len(frames), frames) == (heard.m[0].fmt, heard.m[0].n, heard.frames)


REFUSED: list[tuple[Any, Any, str]] = [
    ((), weft.PARENTS_OF_LOCAL, "empty"),
    (bytes((1 << 20) + 1), weft.PARENTS_OF_LOCAL, "too-big"),
    ((b"x",) * 17, weft.PARENTS_OF_LOCAL, "too-big"),
    ((bytes(1 << 19), bytes(1 << 19), b"x"), weft.PARENTS_OF_LOCAL, "too-big"),
    (b"x", "parent", "bad-destination"),
    (b"x", ("DIRECT", "B", 256), "bad-destination"),
    (b"x", (), "bad-destination"),
    (b"x", ("DIRECT", ["B"]), "bad-destination"),
]


@pytest.mark.proves("CLI-020")
@pytest.mark.parametrize("payload, to, why", REFUSED)
@in_loop
async def test_what_no_multipart_could_say_fails_at_once(tmp_path: Path, payload: Any, to: Any, why: str) -> None:
    async with FakeNode(tmp_path) as node, attached(node) as chain:
        with pytest.raises(weft.SendFailed) as failure:
            await chain.send("demo.report", payload, to=to)
        assert why == failure.value.why
    assert [] == [message for message in node.heard if isinstance(message, clients.Send)]


@pytest.mark.proves("CLI-007")
@in_loop
async def test_a_send_waits_for_credit(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node, attached(node, credit=2) as chain:
        sends = [chain.send("demo.report", b"%d" % number) for number in range(4)]
        assert [b"0", b"1"] == (await node.hears(clients.Send)).frames
        node.ends(1)
        assert [b"2"] == (await node.hears(clients.Send)).frames
        node.says(clients.Credit(0, 0))
        node.ends(2)
        node.ends(3)
        await asyncio.gather(*sends[:3])
        assert not sends[3].done()
        node.says(clients.Credit(1, 100))
        assert [b"3"] == (await node.hears(clients.Send)).frames


@pytest.mark.proves("CLI-007")
@in_loop
async def test_credit_counts_bytes_and_a_message_beyond_all_credit_goes_alone(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node, attached(node, credit_bytes=10) as chain:
        sends = [chain.send("demo.report", bytes(size)) for size in (6, 4, 1, 11)]
        assert [6, 4] == [len(frame) for frame in (await node.hears(clients.Send)).frames]
        node.ends(2)
        assert [1] == [len(frame) for frame in (await node.hears(clients.Send)).frames]
        node.ends(1)
        node.ends(3)
        assert [11] == [len(frame) for frame in (await node.hears(clients.Send)).frames]
        assert not sends[3].done()


@in_loop
async def test_whoever_gives_up_waiting_for_credit_sends_nothing(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node, attached(node, credit=0) as chain:
        given_up, kept = chain.send("demo.report", b"1"), chain.send("demo.report", b"2")
        given_up.cancel()
        node.says(clients.Credit(10, 1_000))
        assert [b"2"] == (await node.hears(clients.Send)).frames
        assert not kept.done()


@pytest.mark.proves("CLI-008")
@in_loop
async def test_what_is_queued_leaves_together_within_the_limits_of_a_multipart(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node, attached(node) as chain:
        for number in range(100):
            chain.send("demo.report", b"%d" % number, want="none")
        heard = [await node.hears(clients.Send), await node.hears(clients.Send)]
        assert [64, 36] == [len(send.m) for send in heard]
        assert [b"%d" % number for number in range(100)] == [frame for send in heard for frame in send.frames]
        for _ in range(3):
            chain.send("demo.report", bytes(100 << 10), want="none")
        for _ in range(17):
            chain.send("demo.report", (b"",) * 16, want="none")
        assert [2, 16, 2] == [len((await node.hears(clients.Send)).m) for _ in range(3)]


@pytest.mark.proves("CLI-022")
@pytest.mark.parametrize("is_waiting", [False, True])
@in_loop
async def test_a_send_in_a_handler_names_its_cause_and_one_outside_does_not(tmp_path: Path, is_waiting: bool) -> None:
    async with FakeNode(tmp_path) as node, attached(node) as chain:

        def answer(message: Message) -> None:
            chain.send("demo.answer", message.payload, want="none")

        async def answer_too(message: Message) -> None:
            await chain.send("demo.answer", message.payload, want="none")

        chain.reads("demo.report")(answer_too if is_waiting else answer)
        await node.registers()
        node.gives(1, b"a", b"b", first=41)
        heard: list[clients.SendItem] = []
        while len(heard) < 2:
            heard += (await node.hears(clients.Send)).m
        assert [41, 42] == [item.cause for item in heard]
        chain.send("demo.answer", b"c", want="none")
        assert [None] == [item.cause for item in (await node.hears(clients.Send)).m]


@pytest.mark.proves("CLI-022")
@in_loop
async def test_a_send_leaves_before_the_answer_to_the_message_that_caused_it(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node, attached(node) as chain:

        @chain.rewrites("demo.report")
        def split(message: Message) -> Any:
            chain.send("demo.half", message.payload, want="none")
            return weft.drop("split")

        await node.registers()
        node.gives(1, b"a", b"b", b"c")
        assert [1, 2, 3] == [item.cause for item in (await node.hears(clients.Send)).m]
        assert [1, 2, 3] == [item.id for item in (await node.hears(clients.Drop)).m]


@in_loop
async def test_leaving_fails_what_is_open_and_says_goodbye_after_what_is_queued(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node:
        async with attached(node) as chain:
            sent = chain.send("demo.report", b"1")
        with pytest.raises(weft.SendFailed) as failure:
            await sent
        assert "closing" == failure.value.why
        assert [b"1"] == (await node.hears(clients.Send)).frames
        await node.hears(clients.Bye)
        with pytest.raises(weft.SendFailed):
            await chain.send("demo.report", b"2")


@in_loop
async def test_place_is_followed(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node, attached(node) as chain:
        assert ("B", "127.0.0.1", "C") == (chain.here.name, chain.here.addr, chain.here.parent)
        node.says(clients.Place("root", None, ["A", "D"]))
        await until(lambda: chain.here.level == "root")
        assert (None, ["A", "D"]) == (chain.here.parent, chain.here.children)
