"""A client of the Clone pattern and a running root, on real sockets (CFG-060..063)."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clone.peers import Client, Frames, Server, number_in
from tests.clone.rig import until
from tests.patience import PATIENCE_S
from tests.shell.ports import free_port
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.memory import Applied, to_record
from weft.node.events import InputRefused
from weft.node.settings import NodeSettings, settings_of
from weft.shell.blocks import free_blocks
from weft.shell.process import Process
from weft.wire.replication import epoch_of, number_of

BEAT = [b"HUGZ", bytes(8), b"", b"", b""]


def settings(place: Path, **chp: Any) -> NodeSettings:
    port, clients = free_blocks(2, 17_000)
    return settings_of(
        {
            "node": {"name": "r", "level": "root", "state": str(place), "port": port, "beacons": False},
            "fleet": {"beacon_port": free_port(), "heartbeat": "50ms"},
            "chp": {"port": clients, **chp},
        }
    )


def advance_to_epoch(chosen: NodeSettings, epoch: int) -> None:
    """Let the journal tell of a write of that epoch: so the root's own ones are above it."""
    made = Process(chosen)
    wrote = Applied("/client/seed", number_of(epoch, 1), b"one", 0, 0)
    made.journal.write([to_record(wrote)], made.clock.now().wall)
    made.close()


def store_of(process: Process) -> dict[str, bytes]:
    core = process.node.cores["configuration"]
    assert isinstance(core, Configuration)
    return {key: pair.value for key, pair in core.store.pairs.items()}


def run(chosen: NodeSettings, play: Callable[[Process, list[Any]], Awaitable[None]], epoch: int = 0) -> None:
    """Play with one real process, from its start to its end."""

    async def main() -> None:
        if epoch:
            advance_to_epoch(chosen, epoch)
        process, told = Process(chosen), []
        listen = process.runner.on_tell

        def hear(event: Any) -> None:
            told.append(event)
            listen(event)

        process.runner.on_tell = hear
        running = asyncio.get_running_loop().create_task(process.run())
        async with asyncio.timeout(PATIENCE_S):
            await until(lambda: store_of(process).get("/TOPO/root"))
            try:
                await play(process, told)
            finally:
                process.stop()
                reason = await running
        assert reason is None

    asyncio.run(main())


def of(key: str) -> Callable[[Frames], bool]:
    return lambda frames: frames[0] == key.encode()


@pytest.mark.proves("CFG-060", "CFG-061", "CFG-062", "CFG-063")
@pytest.mark.parametrize("epoch", [0, 3])
def test_a_client_takes_the_snapshot_follows_and_writes_where_it_may(epoch: int, tmp_path: Path) -> None:
    def talk(client: Client) -> None:
        client.meet()
        client.sync()
        assert [b"KTHXBAI", struct.pack("!q", client.number), b"", b"", b""] == client.synced[-1]
        assert epoch == epoch_of(client.number)
        mark = client.set("/client/a", b"1")
        frames = client.next(of("/client/a"))
        assert [mark, b"", b"1"] == frames[2:]
        mark = client.set("/client/b", b"2", ttl=1)
        assert [mark, b"ttl=1\n", b"2"] == client.next(of("/client/b"))[2:]
        mark = client.set("7813", b"545894", ttl=30)
        assert [mark, b"ttl=30\n", b"545894"] == client.next(of("/client/7813"))[2:]
        client.set("/other/x", b"3")
        client.set("/CONFIG/global/heartbeat", b"9")
        mark = client.set("/client/a", b"")
        assert [mark, b"", b""] == client.next(of("/client/a"))[2:]
        assert b"" == client.next(of("/client/b"))[4], "its time to live has passed"
        client.next(of("HUGZ"))

    async def play(process: Process, told: list[Any]) -> None:
        with Client(process.settings.chp.port) as client:
            await asyncio.to_thread(talk, client)
            followed = {key.decode(): value for key, value in client.pairs.items()}
            assert store_of(process) == followed
            assert b"545894" == followed["/client/7813"]
            assert not {"HUGZ", "/client/a", "/client/b", "/other/x"} & set(followed)
            await asyncio.to_thread(client.sync)
            assert store_of(process) == {key.decode(): value for key, value in client.pairs.items()}
        beats = [frames for frames in client.heard if frames[0] == b"HUGZ"]
        assert [BEAT] * len(beats) == beats
        numbers = [number_in(frames[1]) for frames in client.heard if frames[0] != b"HUGZ"]
        assert sorted(set(numbers)) == numbers
        assert 2 == process.node.refused["clone-take", "not-writable"]
        refused = [event for event in told if isinstance(event, InputRefused)]
        assert [("clone-take", "not-writable", "/other/x")] == [(e.channel, e.code, e.why) for e in refused]

    run(settings(tmp_path, writable=["/client/"], loose_prefix="/client/"), play, epoch)


@pytest.mark.proves("CFG-060", "CFG-064")
@pytest.mark.parametrize("epoch", [0, 3])
def test_a_root_hands_the_pairs_of_another_server_to_its_own_clients(epoch: int, tmp_path: Path) -> None:
    (port,) = free_blocks(1, 18_000)

    def talk(client: Client, server: Server) -> None:
        server.set("/client/a", b"1")
        client.next(of("/guide/client/a"))
        client.sync()
        server.set("7813", b"x")
        client.next(of("/guide/7813"))
        server.set("/client/b", b"2", ttl=1)
        assert b"" == client.next(lambda frames: frames[0] == b"/guide/client/b" and not frames[4])[4]

    async def play(process: Process, told: list[Any]) -> None:
        with Client(process.settings.chp.port) as client:
            await asyncio.to_thread(client.meet)
            with Server(port) as server:
                await asyncio.to_thread(talk, client, server)
            assert {b"/guide/client/a": b"1", b"/guide/7813": b"x"} == {
                key: value for key, value in client.pairs.items() if key.startswith(b"/guide/")
            }
            assert store_of(process) == {key.decode(): value for key, value in client.pairs.items()}

    run(settings(tmp_path, **{"import": f"127.0.0.1:{port}", "import_prefix": "/guide/"}), play, epoch)
