"""The synchronous form: loops over messages, in a thread that may take its time."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.client.node import FakeNode
from tests.patience import PATIENCE_S
from weft.base.errors import UserError
from weft.client.chain.sync import PendingMessage
from weft.wire import clients

Story = Callable[[FakeNode], Coroutine[Any, Any, None]]


@contextmanager
def playing(directory: Path, story: Story) -> Iterator[FakeNode]:
    """A node in a thread of its own, which plays a story to its end."""
    node, bound, faults = FakeNode(directory), threading.Event(), list[BaseException]()

    async def play() -> None:
        async with asyncio.timeout(PATIENCE_S), node:
            bound.set()
            await node.welcomes()
            await story(node)

    def run() -> None:
        try:
            asyncio.run(play())
        except BaseException as fault:  # noqa: BLE001  # told by the test
            faults.append(fault)

    thread = threading.Thread(target=run)
    thread.start()
    assert bound.wait(PATIENCE_S)
    try:
        yield node
    finally:
        thread.join(PATIENCE_S)
    assert [] == faults


@pytest.mark.proves("CLI-024")
def test_a_script_sends_and_hears_what_became_of_it(tmp_path: Path) -> None:
    async def story(node: FakeNode) -> None:
        assert [b"1"] == (await node.hears(clients.Send)).frames
        node.ends(1)
        await node.hears(clients.Send)
        node.ends(2, "deleted")
        await node.hears(clients.Bye)

    with playing(tmp_path, story) as node, weft.chain_sync("x", node.endpoint) as chain:
        assert weft.Receipt("spooled") == chain.send("demo.report", b"1")
        with pytest.raises(weft.SendFailed) as failure:
            chain.send("demo.report", b"2")
        assert "deleted" == failure.value.why


@pytest.mark.proves("CLI-024")
def test_a_script_reads_in_a_loop_and_leaves_the_chain_with_it(tmp_path: Path) -> None:
    async def story(node: FakeNode) -> None:
        assert 20 == (await node.registers()).at
        node.gives(1, *(b"%d" % number for number in range(200)))
        assert 1 == (await node.hears(clients.Unreg)).reg
        await node.hears(clients.Bye)

    seen: list[str] = []
    with playing(tmp_path, story) as node, weft.chain_sync("x", node.endpoint) as chain:
        for message in chain.reads("demo.report", place=20):
            seen.append(message.text)
            if len(seen) == 200:
                break
    assert [str(number) for number in range(200)] == seen


def change_once(message: PendingMessage) -> None:
    message.passes(payload=b"changed")
    with pytest.raises(RuntimeError):
        message.drops("twice")


ANSWERS: dict[str, Callable[[PendingMessage], None]] = {
    "change": change_once,
    "same": lambda message: message.passes(),
    "drop": lambda message: message.drops("boring"),
    "forget": lambda _: None,
}


@pytest.mark.proves("CLI-024")
def test_a_script_rewrites_and_a_body_without_an_answer_fails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[tuple[str, int, object]] = []

    async def story(node: FakeNode) -> None:
        await node.registers()
        node.gives(1, b"change", b"same", b"drop", b"forget", b"break")
        while not heard or heard[-1][1] < 5:
            node.peer, message = await node._inbox.get()
            if isinstance(message, clients.Next):
                frames = list(message.frames)
                heard.extend(("next", item.id, frames.pop(0) if item.n else None) for item in message.m)
            elif isinstance(message, clients.Drop | clients.Fail):
                heard.extend((type(message).__name__, item.id, item.why) for item in message.m)
        await node.hears(clients.Unreg)
        await node.hears(clients.Bye)

    with playing(tmp_path, story) as node, weft.chain_sync("x", node.endpoint) as chain:
        for message in chain.rewrites("demo.report", on="out"):
            if message.text == "break":
                break
            ANSWERS[message.text](message)
    failed = "Unanswered: no answer in the loop's body"
    expected = [
        ("next", 1, b"changed"),
        ("next", 2, None),
        ("Drop", 3, "boring"),
        ("Fail", 4, failed),
        ("Fail", 5, failed),
    ]
    assert expected == heard


@pytest.mark.proves("CLI-024")
def test_a_confirming_loop_confirms_when_its_body_has_ended(tmp_path: Path) -> None:
    confirmed = threading.Event()

    async def story(node: FakeNode) -> None:
        assert (await node.registers()).confirm
        node.gives(1, b"1", b"2")
        assert clients.Conf(1, [1]) == await node.hears(clients.Conf)
        confirmed.set()
        assert clients.Conf(1, [2]) == await node.hears(clients.Conf)
        await node.hears(clients.Unreg)
        await node.hears(clients.Bye)

    with playing(tmp_path, story) as node, weft.chain_sync("x", node.endpoint) as chain:
        for message in chain.reads("demo.report", confirm=True):
            if message.text == "2":
                assert confirmed.wait(PATIENCE_S)
                break


def test_a_refused_registration_is_raised_where_the_loop_begins(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(node: FakeNode) -> None:
        await node.hears(clients.Reg)
        node.says(clients.Error(about="reg", why="denied", reg=1))
        await node.hears(clients.Bye)

    with playing(tmp_path, story) as node, weft.chain_sync("x", node.endpoint) as chain:  # noqa: SIM117  # what raises stands alone
        with pytest.raises(UserError):
            chain.reads("weft.metric")


def test_no_node_is_raised_and_leaves_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.client.chain.client.HELLO_S", 0.05)
    before = threading.active_count()
    with pytest.raises(UserError), weft.chain_sync("x", f"ipc://{tmp_path / 'nobody.sock'}"):
        pass
    assert before == threading.active_count()
