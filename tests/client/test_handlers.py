"""Handlers: what they are given, what they answer, and what becomes of those that fail."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.client.node import FakeNode, attached, in_loop, until
from weft.base.errors import UserError
from weft.client.chain.message import Message
from weft.wire import clients


@pytest.mark.proves("CLI-020")
@in_loop
async def test_a_reader_is_given_copies_with_all_that_is_known_of_them(tmp_path: Path) -> None:
    seen: list[Message] = []
    async with FakeNode(tmp_path) as node, attached(node) as chain:
        chain.reads("demo.report", on="in", place=10)(seen.append)
        expected = clients.Reg(reg=1, dir="in", type="demo.report", at=10)
        assert expected == await node.registers()
        await chain.ready()
        node.gives(1, b'{"a": 1}', b"two", fmt="json", own=True, depth=2, lost=3, re=True)
        await until(lambda: len(seen) == 2)
        one = seen[0]
        assert [b'{"a": 1}', b"two"] == [message.payload for message in seen]
        assert ({"a": 1}, '{"a": 1}', (b'{"a": 1}',)) == (one.json(), one.text, one.frames)
        assert ("demo.report", "in", True, 2, 3, True) == (
            one.type,
            one.direction,
            one.own,
            one.depth,
            one.lost,
            one.re,
        )
        assert ((b"\x0a" * 16, 7, 1), (b"\x0a" * 16,), ("PARENTSOF",)) == (one.mid, one.via, one.to)
    assert [] == [message for message in node.heard if isinstance(message, clients.Next | clients.Fail | clients.Conf)]


@pytest.mark.proves("CLI-020", "CLI-021")
@in_loop
async def test_a_rewriter_changes_redirects_passes_and_drops(tmp_path: Path) -> None:
    def edit(message: Message) -> Any:
        if message.text == "boring":
            return weft.drop("boring")
        if message.text == "same":
            return message
        return message.replace(payload=message.text.upper(), to=weft.direct("C"))

    async with FakeNode(tmp_path) as node, attached(node) as chain:
        chain.rewrites("demo.report", on="out", place=weft.BEFORE_ALL, fail="closed", timeout=2.0, ordered=True)(edit)
        reg = clients.Reg(
            reg=1,
            dir="out",
            type="demo.report",
            at="before-all",
            access="rw",
            fail="closed",
            timeout=2_000,
            ordered=True,
        )
        assert reg == await node.registers()
        node.gives(1, b"boring", b"same", b"new")
        items = [clients.NextItem(id=2), clients.NextItem(id=3, to=["DIRECT", "C"], n=1)]
        expected = [clients.Drop(1, [clients.GiveUp(id=1, why="boring")]), clients.Next(1, items, [b"NEW"])]
        assert expected == [await node.hears(clients.Drop), await node.hears(clients.Next)]


@pytest.mark.proves("CLI-021")
@pytest.mark.parametrize("is_waiting", [False, True])
@in_loop
async def test_a_handler_that_raises_or_answers_nothing_fails_loudly(
    tmp_path: Path, is_waiting: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def careless(message: Message) -> Any:
        if message.text == "raise":
            raise ValueError("too hot")
        return None if message.text == "none" else message.text

    async def careless_too(message: Message) -> Any:
        return careless(message)

    async with FakeNode(tmp_path) as node, attached(node) as chain:
        chain.rewrites("demo.report")(careless_too if is_waiting else careless)
        await node.registers()
        node.gives(1, b"raise", b"none", b"text")
        fail = await node.hears(clients.Fail)
        assert (1, [1, 2, 3]) == (fail.reg, [item.id for item in fail.m])
        assert "ValueError: too hot" == fail.m[0].why
        assert fail.m[1].why.startswith("TypeError: answered NoneType: return the message")
        assert 3 == chain.counts["handlers failed"]
    assert 3 == sum("careless" in record.getMessage() for record in caplog.records)


@pytest.mark.proves("CLI-021")
@in_loop
async def test_a_reader_that_raises_is_logged_and_the_next_copy_comes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[bytes] = []

    def read(message: Message) -> None:
        seen.append(message.payload)
        if message.payload == b"1":
            raise ValueError("one")

    async with FakeNode(tmp_path) as node, attached(node) as chain:
        chain.reads("demo.report")(read)
        await node.registers()
        node.gives(1, b"1", b"2")
        await until(lambda: len(seen) == 2)
    assert ["ERROR"] == [record.levelname for record in caplog.records]
    assert not any(isinstance(message, clients.Fail) for message in node.heard)


@pytest.mark.proves("CLI-021")
@pytest.mark.parametrize(
    "parallel, expected", [(1, ["+1", "-1", "+2", "-2", "+3", "-3"]), (2, ["+1", "+2", "-2", "+3"])]
)
@in_loop
async def test_waiting_handlers_run_one_after_the_other_or_so_many_at_once(
    tmp_path: Path, parallel: int, expected: list[str]
) -> None:
    events: list[str] = []
    gate = asyncio.Event()

    async def slow(message: Message) -> Message:
        events.append(f"+{message.text}")
        if parallel > 1 and message.text == "1":
            await gate.wait()
        await asyncio.sleep(0)
        events.append(f"-{message.text}")
        return message

    async with FakeNode(tmp_path) as node, attached(node) as chain:
        chain.rewrites("demo.report", parallel=parallel)(slow)
        await node.registers()
        node.gives(1, b"1", b"2", b"3")
        await until(lambda: len(events) >= len(expected))
        assert expected == events[: len(expected)]
        gate.set()
        handed_back: list[int] = []
        while len(handed_back) < 3:
            handed_back += [item.id for item in (await node.hears(clients.Next)).m]
        assert ([1, 2, 3] if parallel == 1 else [2, 3, 1]) == handed_back


@in_loop
async def test_a_confirming_reader_confirms_what_went_well_and_fails_what_did_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def read(message: Message) -> None:
        if message.text == "bad":
            raise ValueError("bad")

    async with FakeNode(tmp_path) as node, attached(node) as chain:
        chain.reads("demo.report", confirm=True)(read)
        assert (await node.registers()).confirm
        node.gives(1, b"good", b"bad", b"good")
        assert clients.Conf(1, [1, 3]) == await node.hears(clients.Conf)
        assert [2] == [item.id for item in (await node.hears(clients.Fail)).m]


@in_loop
async def test_a_slow_reader_loses_the_oldest_copies_and_is_told_how_many(tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []
    gate = asyncio.Event()

    async def slow(message: Message) -> None:
        seen.append((message.text, message.lost))
        await gate.wait()

    async with FakeNode(tmp_path) as node, attached(node) as chain:
        chain.reads("demo.report")(slow)
        await node.registers()
        node.gives(1, b"0")
        await until(lambda: len(seen) == 1)
        for first in range(1, 1_101, 100):
            node.gives(1, *(b"%d" % number for number in range(first, first + 100)), first=first + 1)
        await until(lambda: chain.counts["copies lost"] == 100)
        gate.set()
        await until(lambda: len(seen) == 1_001)
    assert [("0", 0), ("101", 100), ("102", 0)] == seen[:3]


@pytest.mark.proves("CLI-021")
@in_loop
async def test_a_coroutine_of_a_plain_function_is_no_silent_success(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def never() -> None:
        raise AssertionError

    async with FakeNode(tmp_path) as node, attached(node) as chain:
        chain.reads("demo.report")(lambda _: never())
        await node.registers()
        node.gives(1, b"1")
        await until(lambda: chain.counts["handlers failed"] == 1)
    assert "async def" in caplog.text


@pytest.mark.proves("CLI-020", "CLI-006")
@in_loop
async def test_a_refused_registration_ends_run_with_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with FakeNode(tmp_path) as node, attached(node) as chain:
        chain.reads("Bad Type")(print)
        running = asyncio.create_task(chain.run())
        await node.hears(clients.Reg)
        node.says(clients.Error(about="reg", why="bad-type", reg=1))
        with pytest.raises(UserError) as refused:
            await running
        assert "bad-type" == refused.value.code
        with pytest.raises(UserError):
            await chain.ready()
