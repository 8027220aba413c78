"""The store's link through an MQTT broker: what comes, what goes, and what happens when it is not there."""

import asyncio
import contextlib
import socket
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Self

import aiomqtt
import pytest

from tests.patience import PATIENCE_S
from tests.shell.ports import free_port
from weft.base.chance import Chance
from weft.base.effects import Source
from weft.base.errors import UserError
from weft.cores.store.messages import LinkDown, LinkUp
from weft.shell import mqtt, mqttsession
from weft.shell.broker import Broker
from weft.shell.mqtt import QUEUE, QUEUE_BYTES, TOPICS, MqttLink, Outbox, Place, wait_s

CONNACK, SUBACK = b"\x20\x02\x00\x00", b"\x90\x07\x00\x01" + bytes(5)


class Node:
    """As much of a runner as a link wants."""

    def __init__(self) -> None:
        self.inside: dict[tuple[str, bytes], Callable[[list[bytes]], None]] = {}
        self.heard: list[tuple[bytes, bytes]] = []
        self.orders: list[Any] = []
        self.faults: list[BaseException] = []
        self.stirred = asyncio.Event()

    def post(self, source: Source, frames: list[bytes]) -> None:
        assert source.channel == "store-mqtt"
        self.heard.append((source.peer, frames[0]))
        self.stirred.set()

    def order(self, core: str, order: Any) -> None:
        assert core == "store"
        self.orders.append(order)
        self.stirred.set()

    def break_off(self, failure: BaseException) -> None:
        self.faults.append(failure)

    def say(self, topic: str, payload: bytes) -> None:
        self.inside["store-mqtt", topic.encode()]([payload])

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                self.stirred.clear()
                await self.stirred.wait()

    async def until_heard(self, count: int) -> None:
        await self.until(lambda: len(self.heard) == count)

    async def until_down(self) -> None:
        await self.until(lambda: bool(self.downs))

    @property
    def is_up(self) -> bool:
        return bool(self.orders) and self.orders[-1] == LinkUp("mqtt")

    @property
    def downs(self) -> list[LinkDown]:
        return [order for order in self.orders if isinstance(order, LinkDown)]


class Linked:
    """A node and its link, from start to close."""

    def __init__(self, broker: str, root: str = "weft") -> None:
        self.node = Node()
        self.link = MqttLink(self.node, Place.of(broker, root), Chance("7"))

    async def __aenter__(self) -> Self:
        await self.link.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.link.close()

    async def up(self) -> Node:
        await self.node.until(lambda: self.node.is_up)
        return self.node


def played(scene: Callable[[], Awaitable[None]]) -> None:
    """Play a scene; the loop may not find anything that nobody looked after."""
    complaints: list[dict[str, Any]] = []

    async def play() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        await scene()

    asyncio.run(play())
    assert [] == complaints


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow one another at once, and answers are waited for briefly."""
    monkeypatch.setattr(mqtt, "RETRY_S", (0.01, 0.05))
    monkeypatch.setattr(mqttsession, "PATIENCE_S", 0.2)


class Puppet:
    """A broker that does as the test says: one connection at a time, every byte kept."""

    def __init__(self, connack: bytes = CONNACK, suback: bytes = SUBACK, *, reads: bool = True) -> None:
        self.port, self.connack, self.suback, self.reads = free_port(), connack, suback, reads
        self.said: list[bytes] = []
        self.connections = 0
        self.writers: list[asyncio.StreamWriter] = []
        self.tasks: list[asyncio.Task[Any]] = []

    async def __aenter__(self) -> Self:
        self.server = await asyncio.start_server(self._meet, "127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        for _turn in range(5):
            await asyncio.sleep(0)  # who was let in by the last turn is met in the next ones
        for writer in self.writers:
            writer.transport.abort()
        await asyncio.gather(*self.tasks)
        await asyncio.sleep(0)  # a transport that is aborted says so in the next turn

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        self.tasks += filter(None, [asyncio.current_task()])
        for answer in (self.connack, self.suback):
            if await self._packet(reader) is None:
                return
            writer.write(answer)
        while self.reads and await self._packet(reader) is not None:
            pass

    async def _packet(self, reader: asyncio.StreamReader) -> bytes | None:
        try:
            head = await reader.readexactly(1)
            size = shift = 0
            while True:
                digit = (await reader.readexactly(1))[0]
                size, shift = size | (digit & 127) << shift, shift + 7
                if digit < 128:
                    break
            body = await reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        self.said.append(head + body)
        return head + body


# What comes and goes


@pytest.mark.proves("LNK-010")
def test_what_one_says_all_hear_and_so_does_it_itself() -> None:
    async def scene() -> None:
        port = free_port()
        async with Linked(f"embedded:{port}", "moat/kv") as first, Linked(f"127.0.0.1:{port}", "moat/kv") as second:
            one, two = await first.up(), await second.up()
            for topic in TOPICS:
                one.say(topic, topic.encode() * 2)
            expected = [(topic.encode(), topic.encode() * 2) for topic in TOPICS]
            for node in (one, two):
                await node.until_heard(len(TOPICS))
                assert expected == node.heard
            two.say("info", bytes(1 << 20))
            await one.until_heard(len(TOPICS) + 1)
            assert ((b"info", bytes(1 << 20)), [], []) == (one.heard[-1], one.faults, two.faults)

    played(scene)


@pytest.mark.proves("LNK-010")
def test_other_roots_hear_nothing_and_nothing_is_kept_for_who_comes_later() -> None:
    async def scene() -> None:
        port = free_port()
        async with Linked(f"embedded:{port}", "weft") as first, Linked(f"127.0.0.1:{port}", "west") as other:
            one, elsewhere = await first.up(), await other.up()
            one.say("update", b"early")
            await one.until_heard(1)
            async with Linked(f"127.0.0.1:{port}", "weft") as second:
                two = await second.up()
                one.say("update", b"late")
                await two.until_heard(1)
                assert ([(b"update", b"late")], []) == (two.heard, elsewhere.heard)

    played(scene)


@pytest.mark.proves("LNK-010")
def test_it_speaks_3_1_1_in_a_clean_session_and_says_everything_once_at_most_and_not_retained() -> None:
    async def scene() -> None:
        async with Puppet() as puppet, Linked(f"127.0.0.1:{puppet.port}", ":distkv") as linked:
            node = await linked.up()
            node.say("ping", b"here")
        connect, subscribe, *rest = puppet.said
        assert (b"\x10\x00\x04MQTT\x04", 2) == (connect[:8], connect[8]), "level 4, and the clean flag alone"
        for topic in TOPICS:
            assert f":distkv/{topic}\0".encode() in subscribe
        assert [b"\x30\x00\x0c:distkv/pinghere", b"\xe0"] == rest

    played(scene)


def message(topic: str, payload: bytes) -> Any:
    return aiomqtt.Message(topic, payload, 0, retain=False, mid=0, properties=None)


def test_messages_that_come_in_a_row_are_posted_together() -> None:
    async def scene() -> None:
        posted: list[tuple[int, bytes]] = []
        turn = 0
        inbox = mqttsession.Inbox(
            {"weft/update": Source("store-mqtt", b"update")}, lambda _, frames: posted.append((turn, frames[0]))
        )
        for number in range(3):
            inbox.hear(message("weft/update", b"%d" % number))
            inbox.hear(message("weft/elsewhere", b"nothing of ours"))
            await asyncio.sleep(0)  # tidy: one turn of the loop
        assert [] == posted, "each turn brought another one"
        for turn in (1, 2, 3):  # noqa: B007  # read by who posts
            await asyncio.sleep(0)  # tidy: one turn of the loop
        assert [(1, b"0"), (1, b"1"), (1, b"2")] == posted
        for number in range(mqttsession.BURST):
            inbox.hear(message("weft/update", b"%d" % number))
        await asyncio.sleep(0)  # tidy: one turn of the loop
        assert 3 + 256 == len(posted), "a flood is posted burst by burst"

    played(scene)


def test_who_comes_in_while_the_broker_closes_is_sent_away_too() -> None:
    async def guest(port: int, name: bytes) -> None:
        with contextlib.suppress(ConnectionResetError):  # the kernel sends away who has come and was not accepted yet
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04" + name)
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()

    async def scene() -> None:
        port = free_port()
        broker = Broker(port)
        await broker.start()
        guests = [asyncio.create_task(guest(port, b"%04d" % number)) for number in range(20)]
        closing = asyncio.create_task(broker.close())
        while not closing.done():
            guests.append(asyncio.create_task(guest(port, b"%04d" % len(guests))))
            await asyncio.sleep(0.001)  # tidy: guests come one after another until it has closed
        async with asyncio.timeout(PATIENCE_S):
            ends = await asyncio.gather(*guests, return_exceptions=True)
        assert 20 < len(ends)
        assert {type(None)} >= {type(end) for end in ends} - {ConnectionRefusedError}

    played(scene)


# When the broker is not there


@pytest.mark.proves("LNK-002")
def test_a_broker_that_goes_and_comes_is_found_again_and_what_was_said_meanwhile_is_gone() -> None:
    async def scene() -> None:
        port = free_port()
        broker = Broker(port)
        await broker.start()
        async with Linked(f"127.0.0.1:{port}") as first, Linked(f"127.0.0.1:{port}") as second:
            one, two = await first.up(), await second.up()
            await broker.close()
            for node in (one, two):
                await node.until_down()
            one.say("update", b"into the void")
            assert 1 == first.link.dropped["store-mqtt:down"]
            broker = Broker(port)
            await broker.start()
            await first.up(), await second.up()
            one.say("update", b"again")
            await two.until_heard(1)
            assert [(b"update", b"again")] == two.heard
            assert [LinkUp, LinkDown, LinkUp] == [type(order) for order in two.orders]
        await broker.close()

    played(scene)


@pytest.mark.proves("LNK-002")
def test_attempts_are_half_a_second_apart_then_twice_as_long_each_time_up_to_thirty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    for failures, expected in ((0, 0.5), (1, 0.5), (2, 1.0), (3, 2.0), (6, 16.0), (7, 30.0), (5_000, 30.0)):
        drawn = [wait_s(failures, Chance(str(seed))) for seed in range(100)]
        assert 0.8 * expected <= min(drawn) < 0.85 * expected
        assert 1.15 * expected < max(drawn) <= 1.2 * expected


def test_a_socket_that_is_closed_before_the_loop_comes_to_it_is_not_watched() -> None:
    async def scene() -> None:
        client = mqttsession.Client("127.0.0.1", free_port(), mqttsession.Inbox({}, lambda *_: None))
        closed, opened = socket.socketpair()
        for each in (closed, opened):
            client._on_socket_register_write(client._client, None, each)
        closed.close()
        await asyncio.sleep(0)
        assert asyncio.get_running_loop().remove_writer(opened.fileno())
        opened.close()

    played(scene)


def test_an_end_that_is_told_just_as_waiting_for_the_beginning_is_given_up_harms_nobody() -> None:
    async def scene() -> None:
        client = mqttsession.Client("127.0.0.1", free_port(), mqttsession.Inbox({}, lambda *_: None))
        client._connected.cancel()
        asyncio.get_running_loop().call_soon(client._on_disconnect, client._client, None, None, 7, None)
        await asyncio.sleep(0)
        assert not client._disconnected.done()
        assert client._on_disconnect == client._client.on_disconnect

    played(scene)


@pytest.mark.parametrize(
    "puppet, why",
    [
        (lambda: Puppet(connack=b"\x20\x02\x00\x05"), "refuses the connection"),
        (lambda: Puppet(connack=b""), "accepts, and says nothing"),
        (lambda: Puppet(suback=b"\x90\x07\x00\x01\x00\x80\x00\x00\x00"), "refuses a subscription"),
        (lambda: Puppet(suback=b""), "never answers the subscription"),
        (lambda: Puppet(connack=b"\xff\xff\xff\xff\xff"), "speaks something else"),
    ],
)
def test_a_broker_that_is_none_is_asked_again_and_harms_nobody(puppet: Callable[[], Puppet], why: str) -> None:
    async def scene() -> None:
        async with puppet() as broker, Linked(f"127.0.0.1:{broker.port}") as linked:
            async with asyncio.timeout(PATIENCE_S):
                while broker.connections < 3:  # noqa: ASYNC110  # what is waited for happens at the other end
                    await asyncio.sleep(0.01)  # tidy: polls what another party does, bounded
            assert ([], []) == (linked.node.orders, linked.node.faults)

    played(scene)


def test_a_broker_that_sends_half_a_message_is_left_and_asked_again() -> None:
    async def scene() -> None:
        async with Puppet(suback=SUBACK + b"\x30\x01\x00") as broker, Linked(f"127.0.0.1:{broker.port}") as linked:
            async with asyncio.timeout(PATIENCE_S):
                while broker.connections < 3:  # noqa: ASYNC110  # what is waited for happens at the other end
                    await asyncio.sleep(0.01)  # tidy: polls what another party does, bounded
            assert [] == linked.node.faults

    played(scene)


def test_closing_ends_although_the_word_to_stop_was_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf:
        """As the standard library's `wait_for` may do when an answer comes in the same moment."""

        is_up = False

        def __init__(self, *_: object) -> None:
            """Whatever it is given."""

        async def serve(self, *_: object) -> str:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            return "swallowed"

    async def scene() -> None:
        monkeypatch.setattr(mqtt, "_session_class", lambda: Deaf)
        link = MqttLink(Node(), Place.of("127.0.0.1:1", "weft"), Chance("7"))
        await link.start()
        await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE_S):
            await link.close()

    played(scene)


def test_a_broker_whose_name_is_none_ends_nobody() -> None:
    async def scene() -> None:
        async with Linked("a..b:1883") as linked:
            await asyncio.sleep(0.2)  # tidy: some attempts of 0.05 s
            assert ([], []) == (linked.node.orders, linked.node.faults)

    played(scene)


@pytest.mark.proves("LNK-002")
def test_a_broker_that_reads_nothing_is_left_while_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        async with Puppet(reads=False) as puppet, Linked(f"127.0.0.1:{puppet.port}") as linked:
            node = await linked.up()
            for _ in range(40):
                node.say("update", bytes(1 << 20))
            await node.until_down()
            assert [] == node.faults

    played(scene)


# Bounds


@pytest.mark.proves("LNK-002")
def test_what_waits_for_the_broker_is_bounded_in_messages_and_bytes_and_every_loss_is_counted() -> None:
    async def scene() -> None:
        dropped: Counter[str] = Counter()
        outbox = Outbox(dropped)
        outbox.put("weft/update", b"nobody")
        assert {"store-mqtt:down": 1} == dropped
        outbox.is_open = True
        for _ in range(QUEUE + 7):
            outbox.put("weft/update", b"x")
        assert 7 == dropped["store-mqtt:queue"]
        assert 10_000 == len(outbox.take(20_000))
        for _ in range(QUEUE_BYTES >> 20):
            outbox.put("weft/update", bytes(1 << 20))
        outbox.put("weft/update", b"one too many")
        assert 8 == dropped["store-mqtt:queue"]
        outbox.clear()
        assert 1 + (64 << 20 >> 20) == dropped["store-mqtt:down"]
        assert [] == outbox.take(1)

    played(scene)


# What is not there


@pytest.mark.parametrize("package, broker", [("aiomqtt", "127.0.0.1:1883"), ("amqtt.broker", "embedded:1")])
def test_a_missing_extra_is_told_with_the_command_that_brings_it(
    monkeypatch: pytest.MonkeyPatch, package: str, broker: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError) as refused:
        asyncio.run(MqttLink(Node(), Place.of(broker, "weft"), Chance("7")).start())
    assert ("not-installed", "pip install weft[mqtt]") == (refused.value.code, refused.value.try_this)


def test_an_embedded_broker_whose_port_is_taken_says_which() -> None:
    async def scene() -> None:
        async with Puppet() as puppet:
            with pytest.raises(UserError, match=f"127.0.0.1:{puppet.port}") as refused:
                await MqttLink(Node(), Place.of(f"embedded:{puppet.port}", "weft"), Chance("7")).start()
            assert "port-taken" == refused.value.code

    played(scene)


@pytest.mark.parametrize(
    "broker, expected",
    [
        ("10.0.0.1:1884", Place("10.0.0.1", 1884, "weft")),
        ("[::1]:1883", Place("::1", 1883, "weft")),
        ("embedded", Place("127.0.0.1", 1883, "weft", is_embedded=True)),
        ("embedded:18830", Place("127.0.0.1", 18830, "weft", is_embedded=True)),
    ],
)
def test_the_place_of_the_broker_stands_in_the_nodes_file(broker: str, expected: Place) -> None:
    assert expected == Place.of(broker, "weft")
