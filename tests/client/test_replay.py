"""What a client records, and what its handlers make of it again, without a node (CLI-025)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.client.node import FakeNode, in_loop, rec, until, welcome
from weft.base.errors import UserError
from weft.cli import chain as command
from weft.client.chain.client import ChainClient
from weft.client.chain.message import Message
from weft.client.chain.recording import HEARD, SAID, Row, read_rows
from weft.client.chain.replaying import Stuck, replay
from weft.wire import clients

NS = 10**9


def upper(chain: ChainClient) -> None:
    """What the recorded program registered."""

    @chain.rewrites("demo.report", on="out")
    def edit(message: Message) -> Any:
        return weft.drop("no") if message.text == "no" else message.replace(payload=message.text.upper())


def lower(chain: ChainClient) -> None:
    """Another version of it."""

    @chain.rewrites("demo.report", on="out")
    def edit(message: Message) -> Any:
        if message.text == "bad":
            raise ValueError(message.text)
        return message.replace(payload=message.text.lower())


@pytest.fixture
def night(tmp_path: Path) -> Path:
    """A recording of three messages."""
    path = tmp_path / "night.jsonl"

    @in_loop
    async def record() -> None:
        async with FakeNode(tmp_path) as node:
            welcomed = asyncio.ensure_future(node.welcomes())
            async with weft.chain_client("tagger", node.endpoint, record=path) as chain:
                await welcomed
                upper(chain)
                await node.registers()
                await chain.ready()
                node.gives(1, b"one", b"no", b"bad")
                await until(lambda: sum(isinstance(each, clients.Next) for each in node.heard) > 0)

    record()
    return path


@pytest.mark.proves("CLI-025", part="every frame with its time, in the form of the vectors")
def test_a_recording_has_every_frame_with_its_time_in_the_form_of_the_vectors(night: Path) -> None:
    lines = [json.loads(line) for line in night.read_text("utf-8").splitlines()]
    assert [str(number) for number in range(1, len(lines) + 1)] == [line["id"] for line in lines]
    assert sorted(line["at"] for line in lines) == [line["at"] for line in lines]
    said = [clients.decode_asked(row.parts) for row in read_rows(night) if row.direction == SAID]
    heard = [clients.decode_answered(row.parts) for row in read_rows(night) if row.direction == HEARD]
    assert [clients.Hello, clients.Reg] == [type(message) for message in said][:2]
    assert [clients.Welcome, clients.Done, clients.Rec] == [type(message) for message in heard]
    assert 0o600 == night.stat().st_mode & 0o777


@pytest.mark.proves("CLI-025", part="handlers are fed from it without a node, and answers compared")
def test_the_same_handlers_give_the_same_answers_and_others_are_told_apart(night: Path) -> None:
    outcome = replay(read_rows(night), upper)
    assert (3, {"next": 2, "drop": 1}, 3, 0) == (outcome.messages, outcome.answers, outcome.same, outcome.different)
    outcome = replay(read_rows(night), lower)
    assert ({"next": 2, "fail": 1}, 0, 3) == (outcome.answers, outcome.same, outcome.different)
    assert (1, 1, "next 'ONE'", "next 'one'") == outcome.differences[0]


def rows(*payloads: bytes, every_s: int) -> list[Row]:
    """Messages as a node would give them, one each so many seconds."""
    made = [
        Row(HEARD, clients.encode(welcome()), 0),
        Row(SAID, clients.encode(clients.Reg(reg=9, dir="in", type="demo.report")), 0),
    ]
    return made + [
        Row(HEARD, clients.encode(clients.Rec(9, [rec(number)], [payload])), number * every_s * NS)
        for number, payload in enumerate(payloads)
    ]


@pytest.mark.proves("CLI-025", part="in virtual time")
def test_a_night_is_played_in_no_time_and_handlers_see_its_hours() -> None:
    seen: list[tuple[str, float]] = []

    def attach(chain: ChainClient) -> None:
        @chain.reads("demo.report")
        async def wait(message: Message) -> None:
            await asyncio.sleep(1_800)  # tidy: in virtual time, which jumps
            seen.append((message.text, asyncio.get_running_loop().time()))

    assert 3 == replay(rows(b"a", b"b", b"c", every_s=3_600), attach).messages
    assert [("a", 1_800.0), ("b", 5_400.0), ("c", 9_000.0)] == seen


def test_what_a_handler_sends_is_counted_and_its_status_may_be_recorded() -> None:
    sent: list[Any] = []

    def attach(chain: ChainClient) -> None:
        @chain.reads("demo.report")
        async def answer(message: Message) -> None:
            sent.append(await chain.send("demo.answer", message.payload))

    status = Row(HEARD, clients.encode(clients.Status([clients.StatusItem(tag=1, ok=True, why="spooled")])), 2 * NS)
    outcome = replay([*rows(b"a", every_s=1), status], attach)
    assert ({"send": 1}, ["spooled"]) == (outcome.answers, [receipt.why for receipt in sent])


def test_who_waits_for_what_no_recording_brings_is_stuck_and_not_forever() -> None:
    def attach(chain: ChainClient) -> None:
        @chain.reads("demo.report")
        async def wait(message: Message) -> None:
            await asyncio.get_running_loop().create_future()

    outcome = replay(rows(b"a", every_s=1), attach)
    assert (1, {}) == (outcome.messages, outcome.answers)

    async def never(chain: ChainClient) -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Stuck):
        replay(rows(b"a", every_s=1), never)


def test_messages_for_no_handler_and_what_cannot_be_read_are_counted() -> None:
    bad = [Row(HEARD, [b"\xc1"]), Row(SAID, [b"\x80"]), Row("elsewhere", [b"\x00"])]
    outcome = replay([*rows(b"a", b"b", every_s=0), *bad], lambda _: None)
    assert (0, 2, 2) == (outcome.messages, outcome.of_nobody, outcome.unreadable)


@pytest.mark.parametrize("line", ["{", "[]", '{"direction":"client>node","frames":["0"]}', '{"frames":[]}'])
def test_a_line_that_is_no_multipart_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(f'{{"direction":"client>node","frames":["00"]}}\n{line}\n')
    with pytest.raises(UserError) as refused:
        list(read_rows(file))
    assert ("bad-file", True) == (refused.value.code, "line 2" in str(refused.value))


@pytest.mark.proves("CLI-025")
@pytest.mark.proves("CHN-084", part="replay")
def test_the_command_ends_with_1_if_an_answer_is_another_one(night: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == command.replay(night, f"{__name__}:upper")
    assert "3 messages, 1 drop, 2 next, 3 as recorded\n" == capsys.readouterr().out
    assert 1 == command.replay(night, f"{__name__}:lower")
    assert "message 1 of registration 1: recorded next 'ONE', now next 'one'" in capsys.readouterr().out
    assert 1 == command.replay(night, f"{__name__}:lower", json=True)
    assert 3 == json.loads(capsys.readouterr().out)["different"]
    for handlers in ("nowhere:x", f"{__name__}:nothing", "x"):
        with pytest.raises(UserError):
            command.replay(night, handlers)
    with pytest.raises(UserError):
        command.replay(night.with_name("none"), f"{__name__}:upper")
