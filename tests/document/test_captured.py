"""The captured bytes of another stack, sent by a plain TCP socket."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

import pytest

from tests.client.node import in_loop
from tests.document.sockets import SocketNode
from tests.document.wire.vectors import CAPTURED
from weft.cores.document.messages import ChatHeard, PeerActive, PeerGone, SessionSettings
from weft.wire.document.messages import Bout, Gsip, Helo, Progress

US: Final = bytes.fromhex("f0000000000040008000000000000009")
A: Final = bytes.fromhex("a0000000000040008000000000000001")
THEIRS: Final = "192.168.1.20:50001"
"""Where the captured HELO says that its sender listens: nothing is sent there, what would be is noted."""


def captured(name: str) -> bytes:
    return bytes.fromhex(CAPTURED[name]["payload"])


def with_identity(identity: bytes) -> bytes:
    """Z01 with another one."""
    return (
        captured("Z01")
        .replace(b"\x10" + A, bytes([len(identity)]) + identity)
        .replace(b"\x04\x39\x05READY", bytes([4, 0x39 - 16 + len(identity)]) + b"\x05READY")
    )


@contextlib.asynccontextmanager
async def raw(weft: SocketNode, begin: bytes) -> AsyncIterator[asyncio.StreamWriter]:
    """A connection that says all of its greeting at once."""
    host, port = weft.endpoint.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(begin)
    greeting = await reader.readexactly(64)
    assert b"\xff" + bytes(7) + b"\x01\x7f\x03" == greeting[:11], greeting
    try:
        yield writer
    finally:
        writer.close()
        await writer.wait_closed()


def mute() -> SocketNode:
    return SocketNode(SessionSettings(name="", uuid=US, mdns=False), is_mute=True)


@pytest.mark.proves("PEE-004")
@in_loop
async def test_captured_bytes_of_libzmq_are_a_whole_conversation() -> None:
    async with mute() as weft:
        async with raw(weft, captured("Z01")) as peer:
            peer.write(captured("Z02"))
            await weft.until(lambda: len(weft.said) == 3)
            assert [(THEIRS, Helo(weft.endpoint)), (THEIRS, Bout("")), (THEIRS, Gsip((Progress(A, 0),)))] == weft.said
            peer.write(captured("Z03"))
            await weft.until(lambda: bool(weft.heard_of(PeerActive)))
            peer.write(captured("Z05"))
            await weft.until(lambda: weft.said[-1] == (THEIRS, Gsip((Progress(A, 0),))) and len(weft.said) > 3)
            peer.write(captured("Z04") + captured("Z07") + captured("Z10") + captured("Z08") + captured("Z06"))
            await weft.until(lambda: bool(weft.heard_of(PeerGone)))
        heard = {"HELO": 1, "BOUT": 1, "GSIP": 1, "PEER": 1, "TIME": 2, "CHAT": 1, "GBYE": 1}
        assert heard == {word: weft.counters[f"mesh.rx.{word}"] for word in heard}
        assert ["x" * 300] == [event.text for event in weft.heard_of(ChatHeard)]
        assert [(A, "goodbye")] == [(event.peer, event.why) for event in weft.heard_of(PeerGone)]
        assert Helo(weft.endpoint) in [message for endpoint, message in weft.said if endpoint == "192.168.1.21:50002"]
        assert {} == {
            name: count for name, count in weft.counters.items() if name.startswith("mesh.rx.") and name[8:].islower()
        }


@pytest.mark.proves("PEE-006")
@in_loop
async def test_first_words_of_a_zre_peer_are_counted_and_nothing_else_happens() -> None:
    identity, body = [bytes.fromhex(frame) for frame in CAPTURED["Z20"]["frames"]]
    async with mute() as weft:
        async with raw(weft, with_identity(identity)) as peer:
            peer.write(bytes([0, len(body)]) + body)
            await weft.until(lambda: weft.counters["mesh.rx.bad_identity"] == 1)
        assert ([], []) == (weft.said, weft.heard_of(PeerActive))


@pytest.mark.proves("PEE-006")
@in_loop
async def test_link_survives_what_is_no_message() -> None:
    async with mute() as weft:
        async with raw(weft, captured("Z01")) as peer:
            peer.write(b"\x01\x04WHAT\x00\x01x\x00\x03one\x01\x04HELO\x00\x04nope\x01\x01a\x01\x01b\x01\x01c\x00\x01d")
            peer.write(captured("Z03"))
            peer.write(captured("Z02"))
            await weft.until(lambda: len(weft.said) == 3)
        counted = {
            name: count for name, count in weft.counters.items() if name.startswith("mesh.rx.") and name[8:].islower()
        }
        expected = {"mesh.rx.unknown_type": 2, "mesh.rx.bad_body": 1, "mesh.rx.bad_frames": 1, "mesh.rx.before_helo": 1}
        assert expected == counted
