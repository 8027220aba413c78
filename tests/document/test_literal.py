"""Weft beside a node that was written from the seed alone, on real sockets."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
import zmq
from msgspec.structs import replace

from tests.client.node import in_loop
from tests.document.literal import Literal
from tests.document.sockets import SocketNode
from tests.patience import PATIENCE_S
from weft.base.now import SECOND
from weft.cores.document import limits
from weft.cores.document.messages import ChatHeard, PeerActive, PeerGone, PeerMismatch, SessionSettings, Timing
from weft.wire.document.frames import uuid_text
from weft.wire.document.operations import parse

A: Final = bytes.fromhex("a0000000000040008000000000000001")
B: Final = bytes.fromhex("b0000000000040008000000000000002")
C: Final = bytes.fromhex("c0000000000040008000000000000003")
PERIOD_S: Final = 0.25
PENALTY: Final = '<penalty team="home" person="123" code="B" />'


def node(uuid: bytes, *peers: str, name: str = "Final") -> SocketNode:
    return SocketNode(SessionSettings(name=name, uuid=uuid, peers=peers, mdns=False))


class Beside:
    """A literal node in the loop of the test."""

    def __init__(self, session: str) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.node = Literal(self._context, session)
        self.stirred = asyncio.Event()

    def _turn(self) -> None:
        self.node.turn()
        self.stirred.set()

    def open(self) -> None:
        asyncio.get_running_loop().add_reader(self.node.router.FD, self._turn)
        self._beat()

    def _beat(self) -> None:
        self.node.periodically()
        self._turn()
        self._timer = asyncio.get_running_loop().call_later(PERIOD_S, self._beat)

    def close(self) -> None:
        self._timer.cancel()
        asyncio.get_running_loop().remove_reader(self.node.router.FD)
        self.node.close()
        self._context.term()

    async def until(self, is_so: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not is_so():
                    self.stirred.clear()
                    await self.stirred.wait()
                    self.node.turn()  # its descriptor tells of edges
        except TimeoutError:
            raise AssertionError(f"it did not come; heard {self.node.heard}, said {self.node.said}") from None


@contextlib.contextmanager
def literal(session: str = "Final") -> Iterator[Beside]:
    made = Beside(session)
    made.open()
    try:
        yield made
    finally:
        made.close()


def edit(weft: SocketNode, points: int) -> Any:
    """One entry of a program."""
    return weft.ask(
        "edit", verb="add", reference={"period": "1", "jam": "1"}, xml=f'<pass team="home" points="{points}"/>'
    )


@pytest.mark.proves("PEE-010", "GSP-010", "GSP-020")
@in_loop
async def test_seed_literal_node_joins_edits_and_ends_with_the_same_set_of_bodies() -> None:
    async with node(A) as weft:
        with literal() as other:
            before = other.node.edit("add", {"period": "1", "jam": "1"}, PENALTY)
            edit(weft, 4)
            other.node.discover(weft.endpoint)
            await other.until(lambda: weft.bodies == other.node.bodies() and len(weft.bodies) == 2)
            assert before in weft.bodies
            for points in range(5):
                edit(weft, points)
                other.node.edit("add", {"period": "1", "jam": "2"}, PENALTY)
            await other.until(lambda: weft.bodies == other.node.bodies() and len(weft.bodies) == 12)
            assert weft.ask("digest")["operations"] == 12


@in_loop
async def test_weft_calls_a_seed_literal_node_and_is_never_answered_in_a_loop() -> None:
    with literal() as other:
        async with node(A, other.node.endpoint) as weft:
            await weft.until(lambda: bool(weft.heard_of(PeerActive)))
            edit(weft, 4)
            await other.until(lambda: other.node.heard["XMSG"] == 1)
            for _ in range(3):
                other.node.periodically()
                other.node.edit("add", {"period": "2", "jam": "1"}, PENALTY)
            await weft.until(lambda: len(weft.bodies) == 4)
            asked = {word: other.node.heard[word] for word in ("HELO", "BOUT")}
            assert asked["HELO"] <= 2, asked
            assert asked["BOUT"] <= 2, asked


@in_loop
async def test_two_that_always_answer_are_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ANSWER_NS", 0)
    monkeypatch.setattr(limits, "ANSWER_MOST_NS", 0)
    with literal() as other:
        async with node(A, other.node.endpoint):
            await other.until(lambda: other.node.heard["BOUT"] > 50)


@pytest.mark.proves("PEE-030")
@in_loop
async def test_literal_node_is_introduced_to_everybody_and_all_end_alike() -> None:
    async with node(A) as one, node(B, one.endpoint) as two:
        await two.until(lambda: bool(two.heard_of(PeerActive)))
        edit(one, 1)
        edit(two, 2)
        with literal() as other:
            other.node.edit("set", {"path": "venue"}, "Köln")
            other.node.discover(one.endpoint)
            await other.until(lambda: len(other.node.bodies()) == 3)
            await other.until(lambda: one.bodies == two.bodies == other.node.bodies())
            assert {one.endpoint, two.endpoint} == set(other.node.others)
        await one.until(lambda: bool(one.heard_of(PeerGone)))
        await two.until(lambda: bool(two.heard_of(PeerGone)))
        assert one.ask("digest") == two.ask("digest")


@pytest.mark.proves("GSP-040", part="on real sockets, of a node that says nothing any more")
@in_loop
async def test_what_a_node_that_is_gone_left_behind_a_gap_is_adopted() -> None:
    timing = Timing(adopt_after_ns=SECOND, beat_ns=SECOND // 4, gone_ns=3 * SECOND)
    settings = SessionSettings(name="Final", uuid=A, mdns=False, timing=timing)
    async with SocketNode(settings) as one, SocketNode(replace(settings, uuid=B, peers=(one.endpoint,))) as two:
        await two.until(lambda: bool(two.heard_of(PeerActive)))
        with literal() as other:
            dead = bytes.fromhex(other.node.source.replace("-", ""))
            other.node.discover(one.endpoint)
            await other.until(lambda: bool(other.node.others) and all(o.is_matched for o in other.node.others.values()))
            other.node.others, matched = {}, other.node.others
            lost, last = (other.node.edit("add", {"period": "1", "jam": "1"}, PENALTY) for _ in range(2))
            other.node.others = matched
            del other.node.log[other.node.source][1]  # it could be asked for it
            for peer in matched.values():
                other.node.say(peer, "XMSG", last)
            await one.until(lambda: one.session.log.has_held)
        await one.until(lambda: one.counters["log.adopted"] + two.counters["log.adopted"] > 0)
        await two.until(lambda: bool(two.bodies) and one.bodies == two.bodies)
        # a machine that stands still for three seconds parts the two, and then each of them may adopt
        assert {(dead, 2)} == {parse(body).origin for body in two.bodies}
        assert lost not in one.bodies
        assert one.ask("digest") == two.ask("digest")


def ten_of_each(weft: SocketNode, other: Beside) -> None:
    """Entries of two nodes, while they become known to everybody."""
    other.node.answers_always = False  # two of its kind would never end
    for points in range(10):
        edit(weft, points)
        other.node.edit("add", {"period": "1", "jam": str(1 + points)}, PENALTY)


@in_loop
async def test_three_of_each_kind_that_come_one_after_the_other_are_one_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        limits, "NEWCOMER_NS", 0
    )  # else a second is left to others to introduce them, and a repair waits
    async with node(A) as one, node(B, one.endpoint) as two, node(C, two.endpoint) as three:
        with literal() as first, literal() as second, literal() as third:
            ours, theirs = (one, two, three), (first, second, third)
            for weft in ours:
                await weft.until(lambda: all(len(weft.session.peers.active()) == 2 for weft in ours))
            for place, (weft, other) in enumerate(zip(ours, theirs, strict=True), 1):
                other.node.discover((three, first.node, two)[place - 1].endpoint)
                ten_of_each(weft, other)
                await other.until(lambda: len(other.node.bodies()) == 20 * place)  # noqa: B023  # awaited here
            for other in theirs:
                await other.until(lambda: all(len(one.node.bodies()) == 60 for one in theirs))
            for weft in ours:
                await weft.until(lambda: all(len(weft.bodies) == 60 for weft in ours))
            assert 1 == len(
                {*(frozenset(weft.bodies) for weft in ours), *(frozenset(one.node.bodies()) for one in theirs)}
            )
            assert 1 == len({weft.ask("digest")["digest"] for weft in ours})
            for other in theirs:
                assert other.node.heard["HELO"] <= 10, other.node.heard
                assert other.node.heard["BOUT"] <= 10, other.node.heard


@in_loop
async def test_literal_node_of_another_bout_is_sent_away_by_both() -> None:
    async with node(A) as weft:
        with literal("another") as other:
            other.node.edit("add", {"period": "1", "jam": "1"}, PENALTY)
            other.node.discover(weft.endpoint)
            await weft.until(lambda: bool(weft.heard_of(PeerMismatch)))
            await other.until(lambda: not other.node.others)
        assert ["another"] == [event.theirs for event in weft.heard_of(PeerMismatch)]
        assert set() == weft.bodies


@in_loop
async def test_literal_node_chats_and_says_goodbye() -> None:
    async with node(A) as weft:
        with literal() as other:
            other.node.discover(weft.endpoint)
            await other.until(lambda: any(one.is_matched for one in other.node.others.values()))
            for one in other.node.others.values():
                other.node.say(one, "CHAT", "2 minutes")
            await weft.until(lambda: bool(weft.heard_of(ChatHeard)))
            weft.ask("chat", text="thanks")
            await other.until(lambda: other.node.chats == ["thanks"])
        await weft.until(lambda: bool(weft.heard_of(PeerGone)))
        assert [("2 minutes", other.node.uuid.bytes)] == [(said.text, said.peer) for said in weft.heard_of(ChatHeard)]
        assert ["goodbye"] == [event.why for event in weft.heard_of(PeerGone)]


@pytest.mark.proves("GSP-005")
@in_loop
async def test_bodies_of_others_are_passed_on_byte_for_byte() -> None:
    async with node(A) as weft:
        with literal() as first, literal() as second:
            first.node.discover(weft.endpoint)
            await first.until(lambda: any(one.is_matched for one in first.node.others.values()))
            body = first.node.edit("add", {"period": "1", "jam": "1"}, PENALTY)
            await weft.until(lambda: weft.bodies == {body})
            first.node.close = first.node.die  # type: ignore[method-assign]  # its work is done
            second.node.discover(weft.endpoint)
            await second.until(lambda: second.node.bodies() == {body})
            assert b" />" in body
            assert uuid_text(A) not in second.node.log
