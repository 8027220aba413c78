"""What all client libraries stand on: one place that connects, channels that miss nothing, pauses that are spread."""

import ast
import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zmq

import weft.client
from tests.client.node import in_loop, until
from tests.weather import greet_wrongly
from weft.client.catalog import errors as catalog_errors
from weft.client.catalog.entries import Entry, Value
from weft.client.catalog.lines import Line
from weft.client.catalog.subscribing import Feed
from weft.client.doc import errors as doc_errors
from weft.client.link import errors
from weft.client.link.backoff import BackOff
from weft.client.link.channel import Channel
from weft.client.link.inbox import Inbox
from weft.client.link.opening import BadEndpoint, Target
from weft.client.link.sockets import ENDED, Bounds, Socket
from weft.client.store import errors as store_errors

BOUNDS = Bounds(frame_bytes=1 << 20, queue=1_000, linger_ms=1_000, frames=3, bytes=10)
CONNECTS = frozenset({"connect", "create_connection", "open_connection", "open_unix_connection"})
PROBES = "is_live"
"""Looks whether anybody listens, and says nothing."""


def connects_in(source: str) -> Iterator[str]:
    """The functions in which a program's text connects."""
    functions = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for function in functions:
        if any(isinstance(node, ast.Attribute) and node.attr in CONNECTS for node in ast.walk(function)):
            yield function.name


@pytest.mark.proves("HSE-003", part="one module opens connections of all clients")
def test_clients_connect_in_one_module_only() -> None:
    root = Path(next(iter(weft.client.__path__)))
    found = {
        (path.relative_to(root).as_posix(), name)
        for path in root.rglob("*.py")
        for name in connects_in(path.read_text("utf-8"))
        if name != PROBES
    }
    assert {("link/opening.py", "dial"), ("link/opening.py", "open_stream")} == found


def test_a_second_place_that_connects_would_be_seen() -> None:
    planted = "async def open(self):\n    await asyncio.open_connection(host, port)\n"
    assert ["open"] == list(connects_in(planted))


class Bare:
    """A wire without a socket."""

    def __init__(self, *heard: bytes) -> None:
        self.heard = [[frame] for frame in heard]
        self.said: list[list[bytes]] = []
        self.is_full = self.is_closed = False

    def send(self, frames: list[bytes]) -> bool:
        if not self.is_full:
            self.said.append(frames)
        return not self.is_full

    def take(self) -> list[bytes] | None:
        return self.heard.pop(0) if self.heard else None

    def is_ready(self) -> bool:
        return bool(self.heard)

    def close(self) -> None:
        self.is_closed = True


class Story:
    """What a channel did, in order."""

    def __init__(self, wire: Bare, per_turn: int = 2, busy: Callable[[], bool] | None = None) -> None:
        self.told: list[str] = []
        self.end: Callable[[], None] = lambda: None

        def opener(_: Callable[[], None], on_end: Callable[[], None]) -> Bare:
            self.end = on_end
            return wire

        self.channel = Channel(
            opener,
            lambda frames: self.told.append(frames[0].decode()),
            per_turn=per_turn,
            on_turn=lambda: self.told.append("turn"),
            is_busy=busy,
            on_end=lambda: self.told.append("end"),
        )


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@in_loop
async def test_a_turn_hears_so_many_and_the_next_one_begins_by_itself() -> None:
    story = Story(Bare(b"1", b"2", b"3"))
    await turns(3)
    assert ["1", "2", "turn", "3", "turn"] == story.told


@in_loop
async def test_a_busy_hearer_gets_one_per_turn() -> None:
    story = Story(Bare(b"1", b"2"), busy=lambda: True)
    await turns(4)
    assert ["1", "turn", "2", "turn"] == story.told


@in_loop
async def test_what_was_said_before_the_end_is_heard_before_the_end_is_told() -> None:
    story = Story(Bare(b"1", b"2", b"3"))
    story.end()
    await turns(4)
    assert ["1", "2", "3", "end"] == [told for told in story.told if told != "turn"]


@in_loop
async def test_what_has_no_room_waits_in_order_and_what_is_offered_does_not_wait() -> None:
    wire = Bare()
    channel = Story(wire).channel
    wire.is_full = True
    channel.say([b"1"])
    channel.say([b"2"])
    assert (False, False) == (channel.offer([b"3"]), channel.is_clear)
    wire.is_full = False
    assert channel.offer([b"4"]) is False
    channel.work()
    assert ([[b"1"], [b"2"]], True) == (wire.said, channel.is_clear)


@in_loop
async def test_a_hearer_that_fails_is_told_of_and_what_comes_behind_is_heard() -> None:
    told: list[bytes] = []

    def hear(frames: list[bytes]) -> None:
        told.extend(frames)
        if frames == [b"1"]:
            raise ValueError("1")

    wire = Bare(b"1", b"2")
    channel = Channel(lambda *_: wire, hear, per_turn=8)
    with pytest.raises(ValueError, match="1"):
        channel.work()
    await turns(2)
    assert [b"1", b"2"] == told


@in_loop
async def test_after_its_end_a_channel_hears_and_says_nothing() -> None:
    wire = Bare(b"1")
    story = Story(wire)
    story.channel.close()
    story.end()
    await turns(2)
    assert ([], True) == (story.told, wire.is_closed)


@in_loop
async def test_an_answer_that_comes_while_something_is_said_is_heard_without_another_word() -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
    with context.socket(zmq.ROUTER) as router:
        router.setsockopt(zmq.LINGER, 0)
        port = router.bind_to_random_port("tcp://127.0.0.1")
        heard: list[list[bytes]] = []

        def opener(on_ready: Callable[[], None], _: Callable[[], None]) -> Socket:
            made = Socket(zmq.DEALER, BOUNDS, on_ready)
            made.dial(Target(f"tcp://127.0.0.1:{port}"))
            return made

        channel = Channel(opener, heard.append, per_turn=4)
        for number in range(200):
            channel.say([b"%d" % number])
            peer, asked = router.recv_multipart()  # in the same turn: the edge may come while the next is said
            router.send_multipart([peer, asked])
        await until(lambda: len(heard) == 200)
        channel.close()
    assert [[b"%d" % number] for number in range(200)] == heard


@in_loop
async def test_a_multipart_beyond_the_bounds_is_cut_and_the_next_one_is_whole() -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
    with context.socket(zmq.PUSH) as push:
        push.setsockopt(zmq.LINGER, 0)
        port = push.bind_to_random_port("tcp://127.0.0.1")
        made = Socket(zmq.PULL, BOUNDS, lambda: None)
        made.dial(Target(f"tcp://127.0.0.1:{port}"))
        push.send_multipart([b"1", b"2", b"3", b"4", b"5", b"6"])
        push.send_multipart([b"1", b"2" * 11, b"3"])
        push.send_multipart([b"whole"])
        taken: list[list[bytes]] = []

        def take() -> bool:
            if (frames := made.take()) is not None:
                taken.append(frames)
            return len(taken) == 3

        await until(take)
        made.close()
    assert [[b"1", b"2", b"3", b"4"], [b"1"], [b"whole"]] == taken


@in_loop
async def test_the_end_is_told_where_nobody_listens(tmp_path: Path) -> None:
    ends: list[int] = []
    made = Socket(zmq.DEALER, BOUNDS, lambda: None)
    made.watch({ENDED: lambda: ends.append(1)})
    made.dial(Target(f"ipc://{tmp_path / 'nobody'}"))
    await until(lambda: bool(ends))
    made.close()


@contextmanager
def publisher(port: int | None = None) -> Iterator[tuple["zmq.Socket[bytes]", int]]:
    """And its port."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    made = context.socket(zmq.PUB)
    try:
        if port is None:
            port = made.bind_to_random_port("tcp://127.0.0.1")
        else:
            made.bind(f"tcp://127.0.0.1:{port}")
        yield made, port
    finally:
        context.destroy(0)


@in_loop
async def test_a_subscriber_hears_its_publisher_again_after_an_altered_greeting() -> None:
    heard: list[list[bytes]] = []
    greeted: list[int] = []

    def hears(made: "zmq.Socket[bytes]", said: bytes) -> bool:
        made.send(said)
        return bool(heard)

    with publisher() as (made, port):
        line = Line(zmq.SUB, f"tcp://127.0.0.1:{port}", heard.append, lambda: greeted.append(1))
        line.subscribe(b"")
        await until(lambda: hears(made, b"first"))
    await asyncio.to_thread(greet_wrongly, "127.0.0.1", port)
    heard.clear()
    with publisher(port) as (made, _):
        await until(lambda: hears(made, b"again"))
    line.close()
    assert ([b"again"], [1, 1]) == (heard[0], greeted)


@in_loop
async def test_what_is_no_endpoint_is_an_error_with_a_mend_and_leaves_no_socket() -> None:
    made = Socket(zmq.DEALER, BOUNDS, lambda: None)
    with pytest.raises(BadEndpoint, match="tcp://host:port") as error:
        made.dial(Target("nonsense"))
    assert ("bad-endpoint", True) == (error.value.code, made.is_closed)


def test_pauses_double_are_spread_and_begin_anew_when_somebody_was_reached() -> None:
    back_off = BackOff(0.1, 0.5)
    for expected in (0.1, 0.2, 0.4, 0.5, 0.5):
        assert expected * 0.8 <= back_off.next_s() <= expected * 1.2
    back_off.reset()
    assert 0.08 <= back_off.next_s() <= 0.12
    assert 1 < len({BackOff(0.1, 0.5).next_s() for _ in range(8)})


@pytest.mark.parametrize("client", [store_errors, catalog_errors, doc_errors])
def test_whoever_knows_the_errors_of_one_client_knows_those_of_all(client: Any) -> None:
    own = (client.Unreachable("nobody", mend="weft up"), client.Closed())
    assert [("unreachable", "nobody", "weft up"), ("closed", "closed", "")] == [
        (error.code, error.text, error.mend) for error in own
    ]
    assert [True, False] == [isinstance(error, errors.Unreachable) for error in own]
    assert [False, True] == [isinstance(error, errors.Closed) for error in own]
    assert [False, False] == [isinstance(error, errors.Unanswered) for error in own]


@pytest.mark.parametrize("client", [store_errors, doc_errors])
def test_what_may_have_happened_is_another_error_than_what_did_not(client: Any) -> None:
    error = client.Unanswered()
    assert ("unanswered", True, False) == (
        error.code,
        isinstance(error, errors.Unanswered),
        isinstance(error, errors.Unreachable),
    )


@in_loop
async def test_what_came_is_read_in_order_before_the_end_is_and_an_error_stands_behind_it() -> None:
    inbox: Inbox[int] = Inbox(most=2)
    for number in (1, 2, 3):
        inbox.put(number)
    inbox.end(ValueError("broken"))
    inbox.end()
    inbox.put_back(await inbox.take())
    assert [2, 3] == [await inbox.take(), await inbox.take()]
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            await inbox.take()
    assert 1 == inbox.dropped


@in_loop
async def test_whoever_waits_is_woken_by_what_comes_and_by_the_end() -> None:
    inbox: Inbox[int] = Inbox()
    waiting = asyncio.ensure_future(inbox.take())
    await turns(1)
    inbox.put(1)
    assert 1 == await waiting
    last = asyncio.ensure_future(_all(inbox))
    await turns(1)
    inbox.put(2)
    inbox.end()
    assert [2] == await last


async def _all(inbox: Inbox[int]) -> list[int]:
    told = []
    while True:
        try:
            told.append(await inbox.take())
        except StopAsyncIteration:
            return told


@in_loop
async def test_a_service_that_says_no_address_is_told_by_its_last_values_only() -> None:
    told: list[Value] = []
    last = Value("room/1", (b"21.5",), "thermo", "i")

    async def cached(_: str) -> list[Value]:
        return [last]

    entry = Entry(name="thermo", instance="i", record={"interfaces": {"pub": {"ip": "no address", "port": 5}}})
    feed = Feed(entry, "", told.append, cached)
    await feed.ready()
    feed.close()
    assert [last] == told
