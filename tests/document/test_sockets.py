"""Sessions on real sockets: ports, identities, full links, restarts (PEE-001, PEE-002)."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import zmq

from tests.client.node import in_loop
from tests.document.sockets import SocketNode
from tests.weather import greet_wrongly
from weft.cores.document.messages import Begin, ChatHeard, NoPort, OpenSession, PeerActive, PeerGone, SessionSettings
from weft.shell.docdoors import PORTS, QUEUE, TRIES, SessionLinks, _noted
from weft.wire.document import frames
from weft.wire.document.messages import FRAME_BYTES_MAX, Chat

A: Final = bytes.fromhex("a0000000000040008000000000000001")
B: Final = bytes.fromhex("b0000000000040008000000000000002")
C: Final = bytes.fromhex("c0000000000040008000000000000003")


def node(uuid: bytes, *peers: str, listen: str = "127.0.0.1", advertise: str = "") -> SocketNode:
    settings = SessionSettings(name="S", uuid=uuid, peers=peers, mdns=False, listen=listen, advertise=advertise)
    return SocketNode(settings)


def active(weft: SocketNode) -> list[bytes]:
    return [event.peer for event in weft.heard_of(PeerActive)]


@contextlib.contextmanager
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        made.listen()
        yield made.getsockname()[1]


@in_loop
async def test_peer_is_called_over_a_new_link_after_an_altered_greeting() -> None:
    """libzmq gives up such a link and takes no more for it: the core is told that it is full, and asks for another one."""
    with taken() as port:
        pass
    there = f"127.0.0.1:{port}"
    async with node(A, there) as one:
        await asyncio.to_thread(greet_wrongly, "127.0.0.1", port)
        async with node(B, listen=there) as other:
            await one.until(lambda: [B] == active(one))
            await other.until(lambda: [A] == active(other))
        assert "link-full" in [gone.why for gone in one.heard_of(PeerGone)]


@pytest.mark.proves("PEE-001")
@in_loop
async def test_port_is_of_the_seeds_range_unless_one_is_asked_for() -> None:
    with taken() as port:
        pass
    async with node(A) as drawn, node(B, listen=f"127.0.0.1:{port}") as asked:
        assert PORTS[0] <= int(drawn.endpoint.rpartition(":")[2]) <= PORTS[1]
        assert f"127.0.0.1:{port}" == asked.endpoint


@pytest.mark.proves("PEE-001")
@pytest.mark.parametrize("is_asked_for", [True, False], ids=["asked for", "drawn"])
@in_loop
async def test_session_without_a_free_port_says_so_after_so_many_tries(
    monkeypatch: pytest.MonkeyPatch, *, is_asked_for: bool
) -> None:
    tried: list[int] = []
    with taken() as port:

        class Random:
            def randint(self, *_: int) -> int:
                tried.append(port)
                return port

        monkeypatch.setattr("random.SystemRandom", Random)
        weft = node(A, listen=f"127.0.0.1:{port}" if is_asked_for else "127.0.0.1")
        weft.order(Begin())
        await weft.until(lambda: bool(weft.heard_of(NoPort)))
        await weft.__aexit__()
    assert (0 if is_asked_for else TRIES) == len(tried)


@pytest.mark.proves("PEE-002", "PEE-003")
@in_loop
async def test_identity_is_there_from_the_first_word_on() -> None:
    async with node(A) as one, node(B, one.endpoint) as two:
        await two.until(lambda: active(two) == [A])
        await one.until(lambda: active(one) == [B])


@in_loop
async def test_identity_that_is_set_after_connecting_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(self: SessionLinks, endpoint: bytes) -> Any:
        made = self._context.socket(zmq.DEALER)
        made.setsockopt(zmq.LINGER, 0)
        made.connect(f"tcp://{endpoint.decode()}")
        made.setsockopt(zmq.ROUTING_ID, self.uuid)
        self._dealers[endpoint] = made
        return made

    monkeypatch.setattr(SessionLinks, "_dial", late)
    async with node(A) as one, node(B, one.endpoint):
        await one.until(lambda: one.counters["mesh.rx.bad_identity"] > 0)
        assert [] == active(one)


@pytest.mark.proves("PEE-002")
@in_loop
async def test_link_that_takes_no_more_is_told_and_its_peer_given_up() -> None:
    async with node(A) as one:
        async with node(B, one.endpoint) as two:
            await one.until(lambda: active(one) == [B])
            silent = two.endpoint
        await one.until(lambda: bool(one.heard_of(PeerGone)))
        links = one._links
        accepted = 0
        while links.send(silent.encode(), frames.encode(Chat("x"))):  # nobody listens there any more
            accepted += 1
            assert accepted <= QUEUE
        assert QUEUE == accepted
        links.hang_up(silent.encode())


@pytest.mark.proves("PEE-012", "PEE-013")
@in_loop
async def test_node_that_starts_again_at_its_port_is_somebody_else_there() -> None:
    async with node(A) as one:
        async with node(B, one.endpoint) as two:
            await one.until(lambda: active(one) == [B])
            endpoint = two.endpoint
        await one.until(lambda: bool(one.heard_of(PeerGone)))
        async with node(C, one.endpoint, listen=endpoint) as three:
            await one.until(lambda: active(one) == [B, C])
            await three.until(lambda: active(three) == [A])
        assert {"goodbye"} == {event.why for event in one.heard_of(PeerGone)}


@pytest.mark.proves("PEE-012")
@in_loop
async def test_wildcard_is_said_and_replaced_by_where_it_came_from() -> None:
    async with node(A) as one, node(B, one.endpoint, listen="0.0.0.0") as two:
        assert two.endpoint.startswith("0.0.0.0:")
        await one.until(lambda: active(one) == [B])
        assert ["127.0.0.1:" + two.endpoint.rpartition(":")[2]] == [
            event.endpoint for event in one.heard_of(PeerActive)
        ]


@pytest.mark.proves("PEE-001")
@in_loop
async def test_frame_that_is_too_large_ends_its_connection_and_nothing_else() -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    async with node(A) as one, node(B, one.endpoint) as two:
        await one.until(lambda: active(one) == [B])
        with context.socket(zmq.DEALER) as flood:
            flood.setsockopt(zmq.LINGER, 0)
            flood.setsockopt(zmq.ROUTING_ID, C)
            flood.connect(f"tcp://{one.endpoint}")
            flood.send_multipart([b"WHAT", b""])
            await one.until(lambda: one.counters["mesh.rx.unknown_type"] == 1)
            flood.send_multipart([b"CHAT", bytes(FRAME_BYTES_MAX + 1)])
            flood.send_multipart([b"CHAT", b"after it"])
            await one.until(lambda: one.counters["mesh.rx.before_helo"] == 1)
            two.ask("chat", text="still here")
            await one.until(lambda: [event.text for event in one.heard_of(ChatHeard)] == ["still here"])
        assert 0 == one.counters["mesh.rx.bad_body"]
    await asyncio.to_thread(context.term)


@pytest.mark.proves("PEE-001")
@in_loop
async def test_a_session_listens_where_it_did_last_time_unless_that_port_is_taken_or_none_of_the_range() -> None:
    def listened(last: int) -> int:
        """Where a session listens that did so at this port last; closed for good before the next one begins."""
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        links = SessionLinks(context, "S", lambda *_: None)
        links.open(OpenSession("S", A, "127.0.0.1", "", "S", mdns=False), last)
        port = links.port
        links.close()
        context.destroy(linger=0)
        return port

    drawn = listened(0)
    assert drawn == listened(drawn)
    assert PORTS[0] <= listened(1_024) <= PORTS[1]
    with socket.create_server(("127.0.0.1", drawn)):
        assert listened(drawn) not in (0, drawn)


@in_loop
async def test_a_session_that_is_closed_opens_no_socket_for_what_is_said_later() -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    links = SessionLinks(context, "S", lambda *_: None)
    links.open(OpenSession("S", A, "127.0.0.1", "", "S", mdns=False))
    links.close()
    assert not links.send(b"127.0.0.1:50000", [b"CHAT", b"late"])
    await asyncio.to_thread(context.term)


def test_a_note_of_ports_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    note = tmp_path / "ports"
    assert {} == _noted(note)
    for text in ('{"S": "x"}', "[]", "{"):
        note.write_text(text, "utf-8")
        assert {} == _noted(note)
    note.write_text('{"S": 50000}', "utf-8")
    assert {"S": 50_000} == _noted(note)


@pytest.mark.proves("PEE-002")
def test_a_socket_to_a_peer_has_the_options_of_the_protocol() -> None:
    with zmq.Context() as context:
        links = SessionLinks(context, "S", lambda *_: None)
        links.uuid = A
        made = links._dial(b"127.0.0.1:50000")
        assert made is not None
        with made:
            options = (zmq.SNDHWM, zmq.SNDTIMEO, zmq.LINGER, zmq.ROUTING_ID)
            assert [3_000, 0, 0, A] == [made.getsockopt(option) for option in options]


@pytest.mark.proves("PEE-002")
def test_a_peer_that_is_gone_is_missed_within_six_seconds_and_by_no_heartbeat_of_libzmq() -> None:
    """libzmq 4.3.5 aborts the process where its own heartbeat is due at a connection that broke with a full queue."""
    with zmq.Context() as context:
        links = SessionLinks(context, "S", lambda *_: None)
        links.uuid = A
        made = links._dial(b"127.0.0.1:50000")
        assert made is not None
        with made:
            options = (zmq.HEARTBEAT_IVL, zmq.TCP_MAXRT, zmq.TCP_KEEPALIVE)
            assert [0, 6_000, 1] == [made.getsockopt(option) for option in options]
