"""A node that dies, forgets or falls silent: the client comes back as the same, and says again what is open."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import weft
from tests.client.node import FakeNode, attached, in_loop, rec, until, welcome
from weft.base.errors import UserError
from weft.client.chain.message import Message
from weft.client.link.sockets import Opener
from weft.wire import clients


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of a few milliseconds."""
    monkeypatch.setattr("weft.client.chain.connection.BACK_OFF_MIN_S", 0.001)
    monkeypatch.setattr("weft.client.chain.connection.BACK_OFF_MAX_S", 0.01)


@pytest.mark.proves("CLI-022")
@pytest.mark.proves("CLI-002", part="ids of 16 bytes, new for every socket")
@in_loop
async def test_after_a_death_registrations_and_open_sends_are_said_again_with_the_same_tags(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node, attached(node, credit=3) as chain:
        chain.reads("demo.report")(lambda _: None)
        await node.registers()
        sends = [chain.send("demo.report", b"%d" % number) for number in range(1, 6)]
        assert [1, 2, 3] == [item.tag for item in (await node.hears(clients.Send)).m]
        node.ends(2)
        assert [4] == [item.tag for item in (await node.hears(clients.Send)).m]
        node.die()
        async with FakeNode(tmp_path) as again:
            hello = await again.welcomes(credit=4, credit_bytes=4)
            assert next(message for message in node.heard if isinstance(message, clients.Hello)) == hello
            assert 1 == (await again.registers()).reg
            heard = await again.hears(clients.Send)
            assert [(1, b"1"), (3, b"3"), (4, b"4"), (5, b"5")] == [
                (item.tag, frame) for item, frame in zip(heard.m, heard.frames, strict=True)
            ]
            for item in heard.m:
                again.ends(item.tag)
            await asyncio.gather(*sends)
            assert node.peers != again.peers
            assert [(16, True)] * 2 == [(len(peer), peer[0] != 0) for peer in node.peers + again.peers]
            assert 1 == chain.counts["connections lost"]


@pytest.mark.proves("CLI-022")
@in_loop
async def test_what_a_handler_held_is_abandoned_and_its_late_answer_is_not_said(tmp_path: Path) -> None:
    gate, answered = asyncio.Event(), asyncio.Event()
    seen: list[bytes] = []

    async def slow(message: Message) -> Message:
        seen.append(message.payload)
        if message.payload == b"held":
            await gate.wait()
            answered.set()
        return message

    async with FakeNode(tmp_path) as node, attached(node) as chain:
        chain.rewrites("demo.report")(slow)
        await node.registers()
        node.gives(1, b"held", b"queued")
        await until(lambda: seen == [b"held"])
        node.die()
        async with FakeNode(tmp_path) as again:
            await again.welcomes()
            await again.registers()
            gate.set()
            await answered.wait()
            again.gives(1, b"new", first=1)
            assert clients.Next(1, [clients.NextItem(id=1)], []) == await again.hears(clients.Next)
            assert 1 == chain.counts["late answers"]
    assert [b"held", b"new"] == seen


@pytest.mark.proves("CLI-022")
@in_loop
async def test_a_late_answer_that_the_node_complains_of_is_swallowed_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with FakeNode(tmp_path) as node, attached(node) as chain:
        chain.rewrites("demo.report")(lambda message: message)
        await node.registers()
        node.gives(1, b"1")
        await node.hears(clients.Next)
        node.says(clients.Error(about="next", why="expired", reg=1, id=1))
        node.says(clients.Error(about="drop", why="not-holding", reg=1, id=1))
        await until(lambda: chain.counts["late answers"] == 2)
        node.gives(1, b"2", first=2)
        await node.hears(clients.Next)
    assert [] == caplog.records


@pytest.mark.proves("CLI-022")
@pytest.mark.parametrize("boot, cause", [(7, 41), (8, None)])
@in_loop
async def test_a_cause_is_named_again_only_to_the_run_of_the_node_that_knows_it(
    tmp_path: Path, boot: int, cause: int | None
) -> None:
    async with FakeNode(tmp_path) as node, attached(node) as chain:

        def answer(message: Message) -> None:
            chain.send("demo.answer", message.payload)

        chain.reads("demo.report")(answer)
        await node.registers()
        node.gives(1, b"a", first=41)
        assert [41] == [item.cause for item in (await node.hears(clients.Send)).m]
        node.die()
        async with FakeNode(tmp_path) as again:
            await again.welcomes(boot=boot)
            await again.registers()
            assert [cause] == [item.cause for item in (await again.hears(clients.Send)).m]


@pytest.mark.proves("CLI-022")
@in_loop
async def test_a_message_of_the_connection_before_is_no_cause_any_more(tmp_path: Path) -> None:
    gate, begun = asyncio.Event(), asyncio.Event()
    async with FakeNode(tmp_path) as node, attached(node) as chain:

        @chain.reads("demo.report")
        async def slow(message: Message) -> None:
            begun.set()
            await gate.wait()
            await chain.send("demo.answer", message.payload, want="none")

        await node.registers()
        node.gives(1, b"a", first=41)
        await begun.wait()
        node.die()
        async with FakeNode(tmp_path) as again:
            await again.welcomes()
            await again.registers()
            gate.set()
            assert [None] == [item.cause for item in (await again.hears(clients.Send)).m]


@pytest.mark.proves("CLI-005")
@in_loop
async def test_beats_go_out_in_silence_and_a_silent_node_is_given_up(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node, attached(node, beat=10, dead=100) as chain:
        await node.hears(clients.Beat)
        await node.welcomes()
        assert 2 == len(set(node.peers))
        assert 1 == chain.counts["connections lost"]


@pytest.mark.proves("CLI-022")
@pytest.mark.parametrize("word", [clients.Bye("closing"), clients.Refuse("bad-hello")])
@in_loop
async def test_a_node_that_stops_or_forgot_the_client_is_greeted_anew(tmp_path: Path, word: clients.Answered) -> None:
    async with FakeNode(tmp_path) as node, attached(node) as chain:
        node.says(word)
        await node.welcomes()
        chain.send("demo.report", b"1", want="none")
        await node.hears(clients.Send)


@in_loop
async def test_a_busy_node_is_asked_again_and_one_that_refuses_is_not(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node:

        async def refuse(*whys: str) -> None:
            for why in whys:
                await node.hears(clients.Hello)
                node.says(clients.Refuse(why, "so it is"))

        refusing = asyncio.ensure_future(refuse("busy", "denied"))
        with pytest.raises(UserError) as refused:
            async with weft.chain_client("tagger", node.endpoint):
                pass
        await refusing
        assert "denied" == refused.value.code


@in_loop
async def test_a_node_that_does_not_answer_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.client.chain.client.HELLO_S", 0.05)
    with pytest.raises(UserError) as missing:
        async with weft.chain_client("tagger", f"ipc://{tmp_path / 'nobody.sock'}"):
            pass
    assert "unavailable" == missing.value.code


@in_loop
async def test_a_refusal_after_a_return_ends_run_and_fails_what_is_open(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node, attached(node) as chain:
        running = asyncio.ensure_future(chain.run())
        sent = chain.send("demo.report", b"1")
        await node.hears(clients.Send)
        node.says(clients.Bye())
        await node.hears(clients.Hello)
        node.says(clients.Refuse("denied"))
        with pytest.raises(UserError):
            await running
        with pytest.raises(weft.SendFailed) as failure:
            await sent
        assert "denied" == failure.value.why


@pytest.mark.proves("CLI-003", "CLI-004")
@in_loop
async def test_what_cannot_be_read_is_counted_and_hurts_nothing(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node, attached(node) as chain:
        for frames in ([os.urandom(8)], [b"\x81\xa2op\xa4what"], [*clients.encode(clients.Rec(1, [rec(1)], []))]):
            node.says_frames(frames)
        node.gives(9, b"of nobody")
        node.ends(77)
        await until(lambda: chain.counts["statuses of nothing"] == 1)
        expected = {"bad-header": 1, "unknown-op": 1, "bad-frames": 1, "of nobody": 1, "statuses of nothing": 1}
        assert expected == dict(chain.counts)


@in_loop
async def test_everything_that_came_before_the_end_is_heard(tmp_path: Path) -> None:
    seen: list[int] = []
    async with FakeNode(tmp_path) as node, attached(node) as chain:

        @chain.reads("demo.report")
        async def read(message: Message) -> None:
            seen.append(message.id)

        await node.registers()
        for first in range(0, 6_400, 64):
            node.gives(1, *[b"x"] * 64, first=first)
        node.die(linger_ms=60_000)
        await until(lambda: chain.counts["connections lost"] == 1)
        await until(lambda: len(seen) >= 6_400)
    assert list(range(6_400)) == seen
    assert 0 == chain.counts["copies lost"]


class Bare:
    """A connection without a socket."""

    def __init__(self) -> None:
        self.said: list[list[bytes]] = []
        self.heard: list[list[bytes]] = [clients.encode(welcome())]
        self.is_full = False

    def send(self, frames: list[bytes]) -> bool:
        if not self.is_full:
            self.said.append(frames)
        return not self.is_full

    def take(self) -> list[bytes] | None:
        return self.heard.pop(0) if self.heard else None

    def is_ready(self) -> bool:
        return bool(self.heard)

    def close(self) -> None:
        """Nothing is open."""


def through(wire: Bare) -> Opener:
    """A way that is this one."""

    def opener(on_ready: Callable[[], None], on_end: Callable[[], None]) -> Bare:
        asyncio.get_running_loop().call_soon(on_ready)
        return wire

    return opener


@in_loop
async def test_a_client_may_be_attached_without_a_socket_and_waits_while_its_way_is_full() -> None:
    wire = Bare()
    async with weft.chain_client("inside", through(wire)) as chain:
        wire.is_full = True
        sends = [chain.send("demo.report", b"%d" % number) for number in range(3)]
        await asyncio.sleep(0)
        assert 1 == len(wire.said)
        wire.is_full = False
        chain._connection.work()
        heard = clients.decode_asked(wire.said[1])
        assert isinstance(heard, clients.Send)
        assert [b"0", b"1", b"2"] == heard.frames
        wire.heard.append(clients.encode(clients.Status([clients.StatusItem(tag=1, ok=True, why="local")])))
        chain._connection.work()
        assert weft.Receipt("local") == await sends[0]


@pytest.mark.proves("CLI-022")
@in_loop
async def test_an_answer_that_had_not_left_when_the_connection_ended_never_leaves() -> None:
    wire = Bare()
    async with weft.chain_client("inside", through(wire)) as chain:
        chain.rewrites("demo.report")(lambda message: message)
        wire.heard += [clients.encode(clients.Rec(1, [rec(1)], [b"x"])), clients.encode(clients.Bye())]
        wire.heard.append(clients.encode(welcome()))
        chain._connection.work()
        assert chain.session is None
        await until(lambda: chain.session is not None)
        chain._connection.work()
        expected = [clients.Hello, clients.Reg, clients.Hello, clients.Reg]
        assert expected == [type(clients.decode_asked(frames)) for frames in wire.said]


@pytest.mark.proves("CLI-022")
@in_loop
async def test_what_waited_for_room_when_the_connection_ended_is_said_once_and_after_hello() -> None:
    wire = Bare()
    async with weft.chain_client("inside", through(wire)) as chain:
        wire.is_full = True
        sent = chain.send("demo.report", b"1")
        await asyncio.sleep(0)
        wire.heard += [clients.encode(clients.Bye()), clients.encode(welcome())]
        chain._connection.work()
        assert chain.session is None
        wire.is_full = False
        await until(lambda: chain.session is not None)
        chain._connection.work()
        expected = [clients.Hello, clients.Hello, clients.Send]
        assert expected == [type(clients.decode_asked(frames)) for frames in wire.said]
        assert not sent.done()


class Clock:
    """A loop whose time is told, and which calls nobody."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.now, self.call_soon, self._loop = 100.0, loop.call_soon, loop

    def time(self) -> float:
        return self.now

    def call_later(self, _: float, do: Callable[[], None]) -> asyncio.TimerHandle:
        handle = self._loop.call_later(3_600, do)
        handle.cancel()
        return handle


@pytest.mark.proves("CLI-005")
@in_loop
async def test_a_beat_is_said_after_one_second_of_silence_and_the_node_given_up_after_five() -> None:
    wire = Bare()
    async with weft.chain_client("inside", through(wire)) as chain:
        connection, clock = chain._connection, Clock(asyncio.get_running_loop())
        connection._loop = clock  # type: ignore[assignment]  # as much of a loop as it takes
        connection._heard_at = connection._said_at = clock.now
        story: list[tuple[float, int, bool]] = []
        for at, hears in (
            (0.9, False),
            (1.0, False),
            (1.5, False),
            (2.0, False),
            (4.9, True),
            (9.8, False),
            (9.9, False),
        ):
            clock.now = 100.0 + at
            if hears:
                wire.heard.append(clients.encode(clients.Beat()))
            connection._tick()
            beats = sum(isinstance(clients.decode_asked(frames), clients.Beat) for frames in wire.said)
            story.append((at, beats, connection.welcome is not None))
    expected = [
        (0.9, 0, True),
        (1.0, 1, True),
        (1.5, 1, True),
        (2.0, 2, True),
        (4.9, 3, True),
        (9.8, 4, True),
        (9.9, 4, False),
    ]
    assert expected == story
