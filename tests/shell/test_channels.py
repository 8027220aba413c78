"""The channels of configuration and topology on real sockets, to a node whose cores only listen."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import zmq

from tests.patience import PATIENCE_S
from weft.base.budget import Budget
from weft.base.effects import Confirm, Confirmed, Connect, Disconnect, Effect, Reply, Send, SendFailed, Source
from weft.base.endpoints import CONTROL, DATA, SNAPSHOTS, UPDATES, shifted
from weft.base.now import SECOND, Now
from weft.base.records import CoreRecord, Entry
from weft.cores.configuration.messages import KeysListed, ListKeys
from weft.node.assembly import build_node
from weft.node.channels import ANSWER_QUEUE, CHANNELS, channels_of
from weft.node.node import Node
from weft.node.settings import settings_of
from weft.shell import ends
from weft.shell.blocks import free_blocks
from weft.shell.clock import Clock
from weft.shell.journal import State
from weft.shell.links import Links
from weft.shell.orders import Desk
from weft.shell.runner import Runner
from weft.shell.sockets import Shape, make_socket
from weft.wire.data import Data
from weft.wire.data import encode as encode_data
from weft.wire.discovery import Announcement, Control, encode_call
from weft.wire.envelope import Answer, Asked
from weft.wire.replication import (
    MALFORMED,
    NOT_ROOT,
    UNKNOWN_COMMAND,
    Hugz,
    ICanHaz,
    KThxBai,
    KvPub,
    KvSync,
    Wtf,
    encode_ask,
)

UUID = b"u" * 16
POLO = Control("polo", "127.0.0.1:27500", UUID, {})
ASSIGNMENT = Control("assignment", "127.0.0.1:27500", UUID, {"level": "leaf", "parent": "127.0.0.1:27500"})
END = KThxBai("/CONFIG/web/", 7)


class Listener:
    """A core that notes what it hears and says what it is told to."""

    def __init__(self, name: str) -> None:
        self.name, self.budget = name, Budget()
        self.heard: list[tuple[Any, Source]] = []
        self.orders: list[Any] = []
        self.answer: Callable[[Any, Source], list[Effect]] = lambda _, __: []
        self.obey: Callable[[Any], list[Effect]] = lambda _: []
        self._effects: list[Effect] = []

    def restore(self, entries: Iterable[Entry], now: Now) -> None: ...

    def condense(self) -> Iterable[CoreRecord]:
        return ()

    def receive(self, message: Any, source: Source, now: Now) -> None:
        self.heard.append((message, source))
        self._effects += self.answer(message, source)

    def command(self, order: Any, now: Now) -> None:
        self.orders.append(order)
        self._effects += self.obey(order)
        if isinstance(order, list):
            self._effects += order

    def wake(self, now: Now) -> None: ...

    def deadline(self) -> int | None:
        return None

    def effects(self) -> list[Effect]:
        done, self._effects = self._effects, []
        return done


JOURNAL: Any = SimpleNamespace(state=State.OPEN, forget=lambda _: None)


class Place:
    """A node with a port block of its own."""

    def __init__(self, port: int, *cores: str) -> None:
        self.port, self.endpoint = port, f"127.0.0.1:{port}"
        self.cores = {name: Listener(name) for name in cores}
        self.links = Links(self._on_readable)
        node = Node(UUID, 1, list(self.cores.values()), {})
        self.runner = Runner(node, Clock(), JOURNAL, self.links)
        self.links.serve("127.0.0.1", port, node.channels)

    def _on_readable(self) -> None:
        self.runner.work()

    def do(self, *effects: Effect) -> None:
        """Let a core want this."""
        channel = effects[0].channel  # type: ignore[union-attr]  # those that are given have one
        self.runner.order(CHANNELS[channel].core, list(effects))

    @property
    def topology(self) -> Listener:
        return self.cores["topology"]

    @property
    def configuration(self) -> Listener:
        return self.cores["configuration"]


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110  # sockets tell no event
            await asyncio.sleep(0.001)  # tidy: as above; bounded


def run(play: Callable[..., Awaitable[None]], *cores: tuple[str, ...]) -> None:
    """Play with one node per given set of cores."""

    async def main() -> None:
        places = [Place(port, *names) for port, names in zip(free_blocks(len(cores), 14_000), cores, strict=True)]
        try:
            await play(*places)
        finally:
            for place in places:
                place.links.close()

    asyncio.run(main())


def stranger(kind: int, port: int) -> Any:
    made: Any = zmq.Context.instance().socket(kind)
    made.setsockopt(zmq.LINGER, 0)
    made.connect(f"tcp://127.0.0.1:{port}")
    return made


async def answer_of(peer: Any) -> list[bytes]:
    await until(lambda: peer.poll(0))
    frames: list[bytes] = peer.recv_multipart()
    return frames


def _has_more(heard: list[Any], before: int) -> bool:
    return len(heard) > before


BOTH = ("topology", "configuration")


@pytest.mark.proves("CFG-010", "CFG-011", "CFG-012")
@pytest.mark.parametrize(
    "kind, correlates, said, heard_as, envelope",
    [
        (zmq.REQ, False, encode_ask(ICanHaz(""))[1:], "REQ", 1),
        (zmq.REQ, True, encode_ask(ICanHaz(""))[1:], "REQ", 2),
        (zmq.DEALER, False, encode_ask(ICanHaz(""))[1:], "DEALER", 0),
        (zmq.DEALER, False, encode_ask(ICanHaz("")), "DEALER", 1),
    ],
    ids=["REQ", "REQ that correlates", "bare DEALER", "DEALER of Weft"],
)
def test_any_client_of_zeromq_is_served_in_its_own_envelope(
    kind: int, correlates: bool, said: list[bytes], heard_as: str, envelope: int
) -> None:
    async def play(parent: Place) -> None:
        parent.configuration.answer = lambda asked, source: [Send("serve", source.peer, Answer(asked.envelope, END))]
        peer = stranger(kind, parent.port + SNAPSHOTS)
        try:
            if correlates:
                peer.setsockopt(zmq.REQ_CORRELATE, 1)
            peer.send_multipart(said)
            answer = await answer_of(peer)
        finally:
            peer.close()
        ((asked, source),) = parent.configuration.heard
        assert isinstance(asked, Asked)
        assert ("serve", None, heard_as) == (source.channel, source.proved, source.kind)
        assert (envelope, ICanHaz("")) == (len(asked.envelope), asked.message)
        assert b"KTHXBAI" == answer[1 if kind == zmq.DEALER and envelope else 0]

    run(play, BOTH)


@pytest.mark.proves("CFG-012", "TOP-002")
@pytest.mark.parametrize("kind", [zmq.REQ, zmq.DEALER])
def test_any_client_of_zeromq_may_call(kind: int) -> None:
    async def play(root: Place) -> None:
        refusal = Wtf(NOT_ROOT, "10.0.0.1:27500")
        root.topology.answer = lambda asked, source: [Send("control", source.peer, Answer(asked.envelope, refusal))]
        peer = stranger(kind, root.port + CONTROL)
        try:
            peer.send_multipart(encode_call(POLO)[1:])
            assert b"WTF" == (await answer_of(peer))[0]
        finally:
            peer.close()
        ((asked, source),) = root.topology.heard
        assert (POLO, "") == (asked.message, source.kind)

    run(play, BOTH)


def test_a_snapshot_is_asked_for_and_every_piece_carries_the_tag_of_its_connection() -> None:
    async def play(parent: Place, child: Place) -> None:
        pieces = [KvSync(f"/CONFIG/web/k{n}", n, b"1") for n in range(1, 40)]
        parent.configuration.answer = lambda asked, source: [
            Send("serve", source.peer, Answer(asked.envelope, piece)) for piece in (*pieces, END)
        ]
        child.do(Connect("ask", shifted(parent.endpoint, SNAPSHOTS), b"t1"), Send("ask", b"", ICanHaz("/CONFIG/web/")))
        await until(lambda: len(child.configuration.heard) == 40)
        assert [*pieces, END] == [message for message, _ in child.configuration.heard]
        assert {(b"t1", "ask")} == {(source.peer, source.channel) for _, source in child.configuration.heard}

    run(play, BOTH, BOTH)


def test_updates_come_by_topic_and_beats_always_until_another_connection_replaces_theirs() -> None:
    async def play(parent: Place, child: Place) -> None:
        async def hear(tag: bytes, key: str) -> list[Any]:
            """Publish until a subscription has arrived, as a heartbeat does; then what came after that."""
            heard = child.configuration.heard
            async with asyncio.timeout(PATIENCE_S):
                while not any(source.peer == tag for _, source in heard):
                    parent.do(Send("publish", b"", Hugz()))
                    await asyncio.sleep(0)
            heard.clear()
            for name in ("/CONFIG/db/x", key, "/TOPO/root"):
                parent.do(Send("publish", b"", KvPub(name, 1, UUID, b"1")))
            parent.do(Send("publish", b"", KvPub("/CONFIG/web/last", 2, UUID, b"1")))
            await until(lambda: any(getattr(message, "number", 0) == 2 for message, _ in heard))
            assert {tag} == {source.peer for _, source in heard}
            return [message.key for message, _ in heard if isinstance(message, KvPub)]

        endpoint = shifted(parent.endpoint, UPDATES)
        child.do(Connect("updates", endpoint, b"t1", (b"/CONFIG/web/",)))
        assert ["/CONFIG/web/a", "/CONFIG/web/last"] == await hear(b"t1", "/CONFIG/web/a")
        child.do(Connect("updates", endpoint, b"t2", (b"/",)))
        assert ["/CONFIG/db/x", "/CONFIG/web/b", "/TOPO/root", "/CONFIG/web/last"] == await hear(b"t2", "/CONFIG/web/b")
        child.do(Disconnect("updates"))
        assert {} == child.links._ends["updates"].sockets

    run(play, BOTH, BOTH)


@pytest.mark.proves("TOP-001")
def test_one_announcement_reaches_everyone_who_is_connected_to() -> None:
    async def play(root: Place, a: Place, b: Place) -> None:
        marco = Announcement("/MARCO", root.endpoint, UUID, {"fleet": "lab"})
        root.do(Connect("announce", a.endpoint), Connect("announce", b.endpoint))
        async with asyncio.timeout(PATIENCE_S):
            while not (a.topology.heard and b.topology.heard):
                root.do(Send("announce", b"", marco))
                await asyncio.sleep(0)
        assert (marco, Source("announced", b"")) == a.topology.heard[0] == b.topology.heard[0]
        root.do(Disconnect("announce"))
        root.do(Send("announce", b"", marco))
        assert 1 == root.links.dropped["announce:closed"]

    run(play, ("topology",), ("topology",), ("topology",))


def test_a_call_has_a_socket_per_endpoint_and_its_answer_names_the_endpoint() -> None:
    async def play(root: Place, a: Place, b: Place) -> None:
        def assigned(asked: Any, source: Source) -> list[Effect]:
            return [Send("control", source.peer, Answer(asked.envelope, ASSIGNMENT))]

        for other in (a, b):
            other.topology.answer = assigned
            root.do(Send("call", other.endpoint.encode(), POLO))
        await until(lambda: len(root.topology.heard) == 2)
        assert [ASSIGNMENT, ASSIGNMENT] == [message for message, _ in root.topology.heard]
        assert {a.endpoint.encode(), b.endpoint.encode()} == {source.peer for _, source in root.topology.heard}

    run(play, ("topology",), ("topology",), ("topology",))


def test_a_call_that_is_idle_is_closed_and_opened_again_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "CALL_IDLE_S", 0.02)

    async def play(root: Place, a: Place) -> None:
        call, heard, peers = Send("call", a.endpoint.encode(), POLO), a.topology.heard, []

        def is_idle() -> bool:
            return not root.links._ends["call"].sockets

        for _ in range(2):
            before = len(heard)
            async with asyncio.timeout(PATIENCE_S):
                while len(heard) == before:  # on a busy machine a call is idle before it has connected
                    root.do(call)
                    await until(is_idle)
            peers.append(heard[-1][1].peer)
        assert peers[0] != peers[1]

    run(play, ("topology",), ("topology",))


def test_a_call_can_be_hung_up_on_and_the_next_word_goes_through_a_new_socket() -> None:
    async def play(root: Place, a: Place) -> None:
        peer = a.endpoint.encode()
        for number in range(2):
            root.do(Send("call", peer, POLO))
            await until(partial(_has_more, a.topology.heard, number))
            root.do(Disconnect("call", peer))
            assert not root.links._ends["call"].sockets
            root.do(Disconnect("call", b"127.0.0.1:9"))
        assert a.topology.heard[0][1].peer != a.topology.heard[1][1].peer

    run(play, ("topology",), ("topology",))


def test_calls_are_bounded_and_nonsense_is_called_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "CALLS_MAX", 2)

    async def play(root: Place) -> None:
        for n in range(4):
            root.do(Send("call", f"127.0.0.1:{20_000 + n}".encode(), POLO))
        assert [b"127.0.0.1:20002", b"127.0.0.1:20003"] == list(root.links._ends["call"].sockets)
        root.do(Send("call", b"no endpoint", POLO))
        root.do(Send("call", b"\xff:1", POLO))
        root.do(Connect("updates", "127.0.0.1:99999", b""))
        assert {"call:too many calls": 2, "call:closed": 2} == {
            why: count for why, count in root.links.dropped.items() if why.startswith("call:")
        }

    run(play, BOTH)


@pytest.mark.proves("FLD-001")
def test_who_asks_hears_how_many_of_its_messages_were_refused_when_their_turn_has_left() -> None:
    """Of the last `count` messages the last ones are refused: what another said before and behind them does not count."""

    async def play(parent: Place) -> None:
        core = parent.configuration
        peer = stranger(zmq.DEALER, parent.port + SNAPSHOTS)
        peer.send_multipart(encode_ask(ICanHaz("/")))
        await until(lambda: core.heard)
        ((asked, source),) = core.heard
        core.orders.clear()
        here, nobody = source.peer, b"\x01nobody"
        end = Answer(asked.envelope, END)
        parent.do(
            *(Send("serve", here, end), Confirm("serve", here, 1, 1)),
            *(Send("serve", nobody, end), Send("serve", nobody, end), Confirm("serve", nobody, 2, 2)),
            *(Send("serve", nobody, end), Confirm("serve", nobody, 1, 3)),
        )
        confirmed = [order for order in core.orders if isinstance(order, Confirmed)]
        assert [(1, 1, 0), (2, 2, 2), (3, 1, 1)] == [(each.token, each.count, each.refused) for each in confirmed]
        assert 3 == sum(isinstance(order, SendFailed) for order in core.orders)
        peer.close()

    run(play, ("configuration",))


def test_who_is_gone_or_reads_nothing_is_told_of_once_per_message_and_leaves_no_hole() -> None:
    async def play(parent: Place) -> None:
        core = parent.configuration
        parent.do(Send("serve", b"\x01nobody", Answer((b"",), END)))
        assert SendFailed("serve", b"\x01nobody") == core.orders[-1]
        peer = stranger(zmq.DEALER, parent.port + SNAPSHOTS)
        peer.send_multipart(encode_ask(ICanHaz("/")))
        await until(lambda: core.heard)
        ((asked, source),) = core.heard
        said = [
            Send("serve", source.peer, Answer(asked.envelope, KvSync(f"/k/{n}", n + 1, b"x" * 2_000)))
            for n in range(8 * ANSWER_QUEUE)
        ]
        core.orders.clear()
        parent.do(*said)
        failed = [order for order in core.orders if isinstance(order, SendFailed)]
        assert all(SendFailed("serve", source.peer) == order for order in failed)
        assert 0 < len(failed) < len(said)
        arrived: list[bytes] = []
        while len(arrived) < len(said) - len(failed):
            arrived.append((await answer_of(peer))[1])
        peer.close()
        assert [f"/k/{n}".encode() for n in range(len(arrived))] == arrived

    run(play, BOTH)


def test_a_node_binds_what_its_cores_own_and_nothing_else() -> None:
    def is_open(port: int) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    async def play(place: Place) -> None:
        offsets = [offset for offset in range(10) if is_open(place.port + offset)]
        assert [0, 1] == offsets
        assert {"beacon", "announce", "announced", "call", "control"} == set(place.runner.node.channels)

    run(play, ("topology",))
    parents = ("topology", "configuration", "carrier", "clone", "measurement", "chains", "store", "catalog", "document")
    assert set(CHANNELS) == set(channels_of((*parents, "enrolment")))


def test_garbage_on_every_bound_channel_is_refused_and_counted() -> None:
    async def play(place: Place) -> None:
        node = place.runner.node
        peers = [stranger(zmq.DEALER, place.port + offset) for offset in (CONTROL, SNAPSHOTS)]
        pub = stranger(zmq.PUB, place.port)
        try:
            for peer in peers:
                peer.send_multipart([b"", b"noise", b"\xff"])
                peer.send(b"")
            async with asyncio.timeout(PATIENCE_S):
                while {channel for channel, _ in node.refused} != {"control", "serve", "announced"}:
                    pub.send_multipart([b"/MARCO", b"\xff"])
                    await asyncio.sleep(0)
        finally:
            for peer in (*peers, pub):
                peer.close()
        assert ([], []) == (place.topology.heard, place.configuration.heard)

    run(play, BOTH)


def test_the_reply_of_a_core_reaches_the_person_who_asked() -> None:
    async def play(root: Place) -> None:
        listed = KeysListed((("/CONFIG/a", 3, b"1"),), 3, is_current=True)
        root.configuration.obey = lambda order: [Reply(order.ticket, listed)]
        desk = Desk(root.runner.order, root.cores)
        root.runner.on_reply = desk.reply
        page = await desk.take(b'{"order":"get","key":"/CONFIG/a"}')
        assert (200, [["/CONFIG/a", 3, "1"]]) == (page.status, json.loads(page.body)["pairs"])
        assert [ListKeys(1, "/CONFIG/a", 1)] == root.configuration.orders

    run(play, BOTH)


@pytest.mark.proves("CFG-008")
@pytest.mark.parametrize("correlates", [False, True])
@pytest.mark.parametrize(
    "offset, word, code",
    [(CONTROL, b"polo", MALFORMED), (SNAPSHOTS, b"ICANHAZ", MALFORMED), (SNAPSHOTS, b"noise", UNKNOWN_COMMAND)],
)
def test_a_malformed_message_is_answered_with_wtf_in_its_envelope(
    offset: int, word: bytes, code: int, *, correlates: bool
) -> None:
    async def play(place: Place) -> None:
        peer = stranger(zmq.REQ, place.port + offset)
        try:
            peer.setsockopt(zmq.REQ_CORRELATE, int(correlates))
            peer.send_multipart([word, b"\xff"])
            assert [b"WTF", code.to_bytes(4)] == (await answer_of(peer))[:2]
        finally:
            peer.close()
        assert ([], []) == (place.topology.heard, place.configuration.heard)

    run(play, BOTH)


@pytest.mark.proves("CFG-008", "CFG-011")
@pytest.mark.parametrize(
    "offset, said, envelope",
    [
        (CONTROL, [b"polo", b"", UUID, b"{}"], []),  # a word of four bytes before an empty frame is no envelope
        (CONTROL, [b"stop"], []),
        (CONTROL, [b"", b"polo", b"", UUID, b"{}"], [b""]),
        (CONTROL, [b"\x00\x01\x02\x03", b"", b"polo", b"", UUID, b"{}"], [b"\x00\x01\x02\x03", b""]),
        (SNAPSHOTS, [b"ICANHAZ", b""], []),
        (SNAPSHOTS, [b"", b"ICANHAZ", b"seven..", b"", b"", b"/"], [b""]),
        (SNAPSHOTS, [b"\xff\xfe\xfd\xfc", b"", b"ICANHAZ"], [b"\xff\xfe\xfd\xfc", b""]),
    ],
)
def test_the_envelope_is_found_however_malformed_the_message_behind_it_is(
    offset: int, said: list[bytes], envelope: list[bytes]
) -> None:
    async def play(place: Place) -> None:
        peer = stranger(zmq.DEALER, place.port + offset)
        try:
            peer.send_multipart(said)
            answer = await answer_of(peer)
        finally:
            peer.close()
        assert [*envelope, b"WTF", MALFORMED.to_bytes(4)] == answer[:-1]

    run(play, BOTH)


@pytest.mark.proves("CFG-093")
def test_what_a_peer_said_is_set_aside_for_people_to_look_at() -> None:
    async def play(place: Place) -> None:
        peer = stranger(zmq.DEALER, place.port + SNAPSHOTS)
        try:
            peer.send_multipart([b"", b"ICANHAZ", b"seven..", *[b"\x1b" * 300] * 9])
            await answer_of(peer)
        finally:
            peer.close()
        (row,) = place.runner.node.quarantine.rows()
        assert ("serve", "frame-count", 12) == (row["channel"], row["code"], row["count"])
        assert abs(place.runner.clock.now().wall - row["at"]) < 60 * SECOND
        assert 10 == len(row["peer"]), "what a ROUTER calls it, hex"
        assert ["", b"ICANHAZ".hex(), b"seven..".hex(), *["1b" * 256] * 5] == [frame["hex"] for frame in row["frames"]]
        assert [0, 7, 7, *[300] * 5] == [frame["bytes"] for frame in row["frames"]]

    run(play, BOTH)


@pytest.mark.proves("MEA-020")
def test_a_plain_publisher_reaches_the_measurement_core() -> None:
    sample = Data(source="h:1", type="basic", detail="LOAD", config_name="load", time_ms=5, value=0.5)

    async def play(place: Place) -> None:
        pub = stranger(zmq.PUB, place.port + DATA)
        heard = place.cores["measurement"].heard
        try:
            async with asyncio.timeout(PATIENCE_S):
                while ("data", "frame-count") not in place.runner.node.refused or not heard:
                    pub.send_multipart([b"h:1", b'{"type":"HUGZ"}'])
                    pub.send_multipart(encode_data(sample))
                    await asyncio.sleep(0)
        finally:
            pub.close()
        assert (sample, Source("data", b"")) == heard[0]

    run(play, ("topology", "measurement"))


def test_an_update_is_what_a_plain_subscriber_reads() -> None:
    async def play(parent: Place) -> None:
        update = KvPub("/CONFIG/web/a", 5, UUID, b"1")
        peer = stranger(zmq.SUB, parent.port + UPDATES)
        peer.setsockopt(zmq.SUBSCRIBE, b"/CONFIG/")
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not peer.poll(0):
                    parent.do(Send("publish", b"", update))
                    await asyncio.sleep(0)
            key, number, root, properties, value = peer.recv_multipart()
            assert [b"/CONFIG/web/a", bytes(7) + b"\5", UUID, b"1"] == [key, number, root, value]
            assert b'{"sum":"77615d42"}' == properties  # a plain subscriber passes over what it does not know
        finally:
            peer.close()

    run(play, BOTH)


@pytest.mark.proves("MEA-020")
def test_only_a_node_that_may_have_others_below_it_hears_foreign_samples() -> None:
    tables: tuple[dict[str, Any], ...] = (
        {"level": "root"},
        {"level": "collector", "parent": "h:27500"},
        {},
        {"parent": "h:27500"},
        {"level": "sensor", "parent": "h:27500"},
    )
    hearing = [
        "data" in build_node(settings_of({"node": {"name": "n", **table}}), UUID, 1, "seed").channels
        for table in tables
    ]
    assert [True, True, True, False, False] == hearing


@pytest.mark.parametrize("kind", ["ROUTER", "DEALER", "XPUB", "SUB"])
def test_no_socket_asks_by_heartbeats_of_zeromq_and_the_kernel_asks_instead(kind: str) -> None:
    with zmq.Context() as context, make_socket(context, Shape(kind, is_bound=True, sends=10, hears=10)) as made:
        assert (0, 1, 10) == tuple(
            made.getsockopt(each) for each in (zmq.HEARTBEAT_IVL, zmq.TCP_KEEPALIVE, zmq.TCP_KEEPALIVE_IDLE)
        )
