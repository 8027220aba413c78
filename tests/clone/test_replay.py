"""What real programs of the Clone pattern were heard to say, byte by byte, to a running root on real sockets."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import zmq

from tests.clone.peers import Client, Frames, bind
from tests.clone.rig import Place, run, until
from tests.wire.strict import frames_of, lines
from weft.cores.clone.states import State
from weft.shell.blocks import free_blocks

LINES = lines("config-chp.jsonl")
SETS = "client PUB -> server SUB (P+2)"
ASKS = "client DEALER -> server ROUTER (P), no delimiter frame"
ANSWERS = ("server ROUTER -> client DEALER (P)", "parent ROUTER -> client DEALER (P)")
UPDATES = ("server PUB -> client SUB (P+1)", "parent PUB -> client SUB (P+1)")
END = b"KTHXBAI"


def those(*directions: str) -> list[dict[str, Any]]:
    return [line for line in LINES.values() if line["direction"] in directions]


def test_every_line_goes_one_way_or_the_other() -> None:
    assert len(LINES) == len(those(SETS)) + len(those(ASKS)) + len(those(*ANSWERS)) + len(those(*UPDATES))
    assert min(map(len, (those(SETS), those(ASKS), those(*ANSWERS), those(*UPDATES)))) > 3


# To our server


def written(key: bytes, uuid: bytes) -> Callable[[Frames], bool]:
    return lambda frames: frames[0] == key and frames[2] == uuid


def play_sets(client: Client) -> None:
    client.meet()
    client.sync()
    for line in those(SETS):
        frames = frames_of(line)
        key, _, uuid, lines_of_text, value = frames
        client.writes.send_multipart(frames)
        full = key if key.startswith(b"/") else b"/loose/" + key
        if client.pairs.get(full, b"") == value and not lines_of_text:
            continue  # it would change nothing, so it is no write (CFG-022)
        heard = client.next(written(full, uuid))
        assert [lines_of_text if value else b"", value] == heard[3:]
    for line in those(ASKS):
        frames = frames_of(line)
        client.subtree = frames[1]
        client.sync()
        assert frames[1] == client.synced[-1][4]
        assert all(heard[0].startswith(frames[1]) for heard in client.synced[:-1])


@pytest.mark.proves("CFG-060", "CFG-061", "CFG-062")
def test_what_clients_say_is_written_published_and_answered() -> None:
    async def play(place: Place) -> None:
        with Client(place.clients) as client:
            await asyncio.to_thread(play_sets, client)
            client.subtree = b""
            await asyncio.to_thread(client.sync)
            held = place.pairs  # of which some end soon
            assert held == {key: client.pairs[key.encode()] for key in held}
        assert len(place.pairs) > 10
        assert {} == dict(place.node.refused)

    run(play, writable=["/client/", "/other/", "/loose/"], loose_prefix="/loose/")


@pytest.mark.proves("CFG-061")
@pytest.mark.parametrize(
    "epoch, updates, snapshot",
    [
        (0, ["chp-051", "chp-046", "chp-063"], ["chp-049"]),
        (3, ["chp-051", "chp-078", "chp-079"], ["chp-081", "chp-082"]),
    ],
)
def test_our_server_says_byte_by_byte_what_real_clients_took(
    epoch: int, updates: list[str], snapshot: list[str]
) -> None:
    async def play(place: Place) -> None:
        with Client(place.clients) as client:
            await asyncio.to_thread(client.meet)
            client.heard = client.heard[-1:]
            place.write("/client/seed", b"one")
            place.write("/other/x", b"no")
            await asyncio.to_thread(client.next, lambda frames: frames[0] == b"/other/x")
            client.subtree = b"/client/"
            await asyncio.to_thread(client.sync)
            assert [frames_of(LINES[name]) for name in updates] == client.heard
            assert [frames_of(LINES[name]) for name in snapshot] == client.synced[: len(snapshot)]
            assert 2 == len(client.synced)

    run(play, epoch=epoch)


# To our follower


class Script:
    """A server that says given frames, and nothing of its own."""

    def __init__(self, port: int) -> None:
        self.context: zmq.Context[Any] = zmq.Context()
        self.router, self.publisher = bind(self.context, zmq.ROUTER, port), bind(self.context, zmq.XPUB, port + 1)

    def __enter__(self) -> "Script":  # noqa: PYI034  # nobody derives from it
        return self

    def __exit__(self, *_: object) -> None:
        self.context.destroy(linger=0)

    async def asked(self) -> bytes:
        """Wait for a question; who asked. The subscription is there then, too."""
        await until(lambda: self.router.poll(0))
        peer, *frames = self.router.recv_multipart()
        assert [b"ICANHAZ?", b""] == frames
        return peer

    async def subscribed(self) -> None:
        """Wait for both subscriptions: to everything, and to beats."""
        for _ in range(2):
            await until(lambda: self.publisher.poll(0))
            self.publisher.recv()


def followed(play: Callable[[Place, Script], Awaitable[None]]) -> None:
    (port,) = free_blocks(1, 19_000)

    async def scene(place: Place) -> None:
        await play(place, script)

    with Script(port) as script:
        run(scene, serves=False, **{"import": f"127.0.0.1:{port}", "import_prefix": "/guide/"})


def imported(place: Place) -> dict[bytes, bytes]:
    return {b"/" + key[7:].encode(): value for key, value in place.pairs.items() if key.startswith("/guide/")}


def end_of(number: int) -> Frames:
    return [END, number.to_bytes(8), b"", b"", b""]


@pytest.mark.proves("CFG-064")
@pytest.mark.parametrize("name", [line["id"] for line in those(*ANSWERS)])
def test_every_part_of_a_servers_snapshot_is_understood(name: str) -> None:
    async def play(place: Place, script: Script) -> None:
        frames = frames_of(LINES[name])
        peer = await script.asked()
        script.router.send_multipart([peer, *frames])
        if frames[0] != END:
            script.router.send_multipart([peer, *end_of(int.from_bytes(frames[1]))])
        await until(lambda: place.clone.state is State.FOLLOWING)
        has_ended = b"ttl=" in frames[3]  # an instant, long ago
        expected = {} if frames[0] == END or has_ended else {frames[0]: frames[4]}
        assert (expected, int.from_bytes(frames[1])) == (imported(place), place.clone.follower.last)

    followed(play)


@pytest.mark.proves("CFG-064")
@pytest.mark.parametrize("name", [line["id"] for line in those(*UPDATES)])
def test_every_update_of_a_server_is_followed(name: str) -> None:
    async def play(place: Place, script: Script) -> None:
        key, number, _, _, value = frames = frames_of(LINES[name])
        before = int.from_bytes(number) - (key != b"HUGZ")
        peer = await script.asked()
        await script.subscribed()
        if not value and key != b"HUGZ":
            script.router.send_multipart([peer, key, before.to_bytes(8), b"", b"", b"old"])
        script.router.send_multipart([peer, *end_of(before)])
        await until(lambda: place.clone.state is State.FOLLOWING)
        script.publisher.send_multipart(frames)
        script.publisher.send_multipart([b"/last", (before + 1 + (key != b"HUGZ")).to_bytes(8), b"", b"", b"1"])
        await until(lambda: b"/last" in imported(place))
        full = key if key.startswith(b"/") else b"/" + key
        expected = {full: value, b"/last": b"1"} if value else {b"/last": b"1"}
        assert expected == imported(place)
        assert 0 == place.clone.counters.holes

    followed(play)
