"""A session of documents with a key of its own: real nodes, on loopback, that have no fabric."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import zmq

from tests.client.node import in_loop
from tests.shell.ports import free_port
from weft.base.errors import UserError
from weft.client.doc.client import Client
from weft.node.settings import settings_of
from weft.shell.blocks import free_blocks
from weft.shell.keymaking import new_pair, write_session_key
from weft.shell.keys import Known, session_key
from weft.shell.process import Process, trusting
from weft.shell.sockets import connect_with


def made(place: Path, name: str, key: str, port: int, peer: int) -> Process:
    node = {"name": name, "level": "root", "runs": [], "beacons": False, "port": free_blocks(1, 16_000)[0]}
    session = {"schema": "plain", "listen": f"127.0.0.1:{port}", "peers": [f"127.0.0.1:{peer}"], "mdns": False}
    return Process(
        settings_of(
            {"node": {**node, "state": str(place / name)}, "doc": {"session": {"hall": {**session, "key": key}}}}
        )
    )


@asynccontextmanager
async def running(process: Process) -> AsyncIterator[Process]:
    run = asyncio.ensure_future(process.run())
    try:
        while not process.doc_doors.routers() and not run.done():  # noqa: ASYNC110  # as below
            await asyncio.sleep(0.01)  # tidy: nothing tells that a session is open; bounded by in_loop
        yield process
    finally:
        process.stop()
        await run


async def has_note(process: Process) -> bool:
    """Whether what was entered at one node is in its document."""
    async with Client(process.state, session="hall") as client:
        return "<note" in await client.show(eids=False)


async def until(holds: Callable[[Process], Awaitable[bool]], process: Process) -> None:
    while not await holds(process):  # noqa: ASYNC110  # as below
        await asyncio.sleep(0.05)  # tidy: another node tells this test nothing; bounded by in_loop


def knock(port: int, server: str) -> None:
    """As somebody who knows the public half of the session's key, and has a pair of his own."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as made:
        made.setsockopt(zmq.LINGER, 500)
        connect_with(made, new_pair(), server)
        made.connect(f"tcp://127.0.0.1:{port}")
        made.send(b"HELO")


@pytest.mark.proves("GSP-050")
@in_loop
async def test_who_has_the_key_takes_part_and_whoever_has_not_gets_no_word_in_or_out(tmp_path: Path) -> None:
    key, other = tmp_path / "hall.key", tmp_path / "other.key"
    pair = write_session_key(key)
    write_session_key(other)
    assert (0o600, pair) == (key.stat().st_mode & 0o777, session_key(key))
    a, b, c, d = (free_port() for _ in range(4))
    places = (("one", str(key), a, b), ("two", str(key), b, a), ("strange", str(other), c, a), ("plain", "", d, a))
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(running(made(tmp_path, *place))) for place in places]
        one, two, strange, plain = nodes
        for each, what in ((one, "<note/>"), (strange, "<evil/>"), (plain, "<evil/>")):
            async with Client(each.state, session="hall") as client:
                await client.add("path=/", what)
        keeper, _ = one.doc_doors._keyed["hall"]
        await asyncio.to_thread(knock, a, pair.public)
        await until(has_note, two)
        while not keeper.decided["unknown-key"] or not keeper.decided["no-handshake"]:  # noqa: ASYNC110  # as below
            await asyncio.sleep(0.05)  # tidy: strangers tell this test nothing; bounded by in_loop
        assert [True, True, False, False] == [await has_note(each) for each in nodes]
        async with Client(two.state, session="hall") as client:
            assert "evil" not in await client.show()
        assert [] == list(one.doc_doors.open_doors())
        assert ["document hall"] == [door.name for door in plain.doc_doors.open_doors()]


def test_a_node_of_a_closed_fabric_takes_no_key_of_a_session() -> None:
    session = {"schema": "plain", "key": "hall.key"}
    settings = settings_of({"node": {"name": "one", "level": "root"}, "doc": {"session": {"hall": session}}})
    with pytest.raises(UserError) as refused:
        trusting(settings, new_pair(), Known())
    assert "keys-twice" == refused.value.code


def test_a_session_with_a_key_needs_no_open_network_and_one_without_does(tmp_path: Path) -> None:
    def open_hosts(key: str) -> tuple[str, ...]:
        session = {"schema": "plain", "listen": "0.0.0.0:50001", "key": key}
        document = {"node": {"name": "one", "level": "root", "runs": []}, "doc": {"session": {"hall": session}}}
        return settings_of(document).open_hosts

    assert ((), ("0.0.0.0",)) == (open_hosts("hall.key"), open_hosts(""))


@pytest.mark.parametrize(
    ("text", "mode", "code"), [(None, 0, "no-keys"), ("", 0o600, "bad-keys"), ("curve", 0o644, "open-keys")]
)
def test_a_file_that_is_no_key_is_refused_and_one_that_is_there_is_left_alone(
    tmp_path: Path, text: str | None, mode: int, code: str
) -> None:
    path = tmp_path / "hall.key"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
        with pytest.raises(UserError) as kept:
            write_session_key(path)
        assert ("exists", text) == (kept.value.code, path.read_text())
    with pytest.raises(UserError) as refused:
        session_key(path)
    assert code == refused.value.code
