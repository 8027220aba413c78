"""One process from its start to its end: what it says, and with which exit code."""

import asyncio
import errno
import json
import os
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.shell.ports import free_port
from tests.shell.world import World, samples_in
from weft.base.endpoints import HTTP as HTTP_PORT
from weft.base.errors import OurFault, StorageFailed, UserError
from weft.base.now import SECOND
from weft.base.records import DamageRecord, Stream, StreamRecord
from weft.cli.asking import try_status
from weft.cli.journal import accept_loss
from weft.node.guard import MemoryExceeded
from weft.node.roles import role_record
from weft.node.securityevents import AddressChanged
from weft.node.settings import NodeSettings, Role, settings_of
from weft.shell import process, serve
from weft.shell.blocks import free_blocks
from weft.shell.files import File, Files
from weft.shell.http.messages import Route
from weft.shell.identity import begin_start
from weft.shell.metrics import exposition
from weft.shell.process import Doors, Process, limits_of

DAY = 86_400 * SECOND


def settings(place: Path, **tables: dict[str, Any]) -> NodeSettings:
    node = {"name": "n1", "level": "root", "state": str(place), "port": free_blocks(1, 13_000)[0]}
    fleet = {"beacon_port": free_port()}
    metric = {"cpu": {"detail": "CPU", "rate": "0.1s"}}
    return settings_of({"node": node | tables.pop("node", {}), "fleet": fleet, "metric": metric, **tables})


def test_a_node_that_is_told_to_stop_ends_with_0(tmp_path: Path) -> None:
    async def main() -> Any:
        made = Process(settings(tmp_path))
        asyncio.get_running_loop().call_later(0.3, made.stop)
        async with asyncio.timeout(PATIENCE_S):
            reason = await made.run()
        assert made.telemetry.is_drained
        return reason

    assert 0 == serve.outcome(asyncio.run(main()))


@pytest.mark.proves("OPS-007", part="nobody is answered by a start that may still fail")
def test_nobody_is_answered_before_the_last_door_is_open(tmp_path: Path) -> None:
    said: list[Any] = []

    async def main() -> None:
        made = Process(settings(tmp_path, catalog={"port": free_port(), "beacons": False}))
        opens = made.doc_doors.open

        async def slowly() -> None:
            said.append(await asyncio.to_thread(try_status, made.settings.node.port))
            await opens()

        made.doc_doors.open = slowly  # type: ignore[method-assign]  # what takes long on a busy machine
        async with asyncio.timeout(PATIENCE_S):
            await made.begin()
            said.append(await asyncio.to_thread(try_status, made.settings.node.port))
            made.stop()
            await made.run()

    asyncio.run(main())
    assert [True, False] == [told is None for told in said]


def test_what_writes_the_lake_ends_with_its_start(tmp_path: Path) -> None:
    async def main() -> Any:
        made = Process(settings(tmp_path))
        asyncio.get_running_loop().call_later(0.5, made.runner.tell, AddressChanged("127.0.0.1"))
        async with asyncio.timeout(PATIENCE_S):
            return await made.run()

    assert AddressChanged("127.0.0.1") == asyncio.run(main())
    assert "weft-recorder" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize("role", [Role(), Role("root", 3)])
def test_a_start_that_reads_its_journal_in_pieces_is_the_same_start(
    role: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = settings(tmp_path)

    async def main() -> None:
        before = Process(chosen)
        asyncio.get_running_loop().call_later(0.5, before.stop)
        async with asyncio.timeout(PATIENCE_S):
            await before.run()
        between = Process(chosen)
        if role != Role():
            between.journal.write([role_record(role)], between.clock.now().wall, promised=True)
        between.close()
        made = Process(chosen)
        whole = list(made.node.condense())
        assert len(list(made.recovery.entries())) > 3
        for size in (1, 3):
            monkeypatch.setattr(process, "PIECE", size)
            again = made._restored(chosen, made.clock.now())
            assert (role, made.node.next_lsn) == (again.settings.role, again.next_lsn)
            assert whole == list(again.condense())
        made.close()

    asyncio.run(main())


ORDER = b"POST /order HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize("place", ["wake", "tidy", "order", "order by a page"])
def test_a_fault_of_its_own_anywhere_ends_a_node_with_70_and_the_next_start_restores_it(
    place: str, tmp_path: Path
) -> None:
    chosen = settings(tmp_path)

    def fault(*_: object) -> None:
        raise AssertionError("a promise is broken")

    async def main() -> Any:
        made = Process(chosen)
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        if place == "wake":
            made.node.cores["topology"].wake = fault  # type: ignore[method-assign,assignment]  # the fault is planted here
        elif place == "tidy":
            made.telemetry.look = fault  # type: ignore[method-assign]  # and here
        elif place == "order":
            loop.call_later(0.2, made.runner.order, "measurement", "nonsense")
        else:
            made.telemetry.http.routes["/order"] = Route(fault, "POST", 9)  # type: ignore[arg-type]  # and here
            loop.call_soon(ask, loop, chosen.node.port + HTTP_PORT)
        async with asyncio.timeout(PATIENCE_S):
            return await made.run()

    def ask(loop: asyncio.AbstractEventLoop, port: int) -> None:
        asked.append(loop.create_task(get(port)))

    async def get(port: int) -> None:
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                with closing(writer):
                    writer.write(ORDER)
                    await reader.read()
            await asyncio.sleep(0.05)  # tidy: on a busy machine the node does not listen yet; ends with the node

    asked: list[Any] = []
    assert 70 == serve.outcome(asyncio.run(main()))

    async def again() -> Any:
        made = Process(chosen)
        asyncio.get_running_loop().call_later(0.3, made.stop)
        async with asyncio.timeout(PATIENCE_S):
            return await made.run()

    assert 0 == serve.outcome(asyncio.run(again()))


class BrokenFiles(Files):
    """A real disk whose syncs begin to fail."""

    def __init__(self) -> None:
        self.fails = False

    def sync(self, file: File) -> None:
        if self.fails:
            raise OSError(errno.EIO, "input/output error")
        super().sync(file)


@pytest.mark.proves("JRN-032")
def test_a_disk_that_fails_ends_a_real_node_with_74_and_no_answer(tmp_path: Path) -> None:
    files = BrokenFiles()

    async def main() -> Any:
        made = Process(settings(tmp_path), Doors(files=files))
        asyncio.get_running_loop().call_later(0.3, setattr, files, "fails", True)
        async with asyncio.timeout(PATIENCE_S):
            return await made.run()

    reason = asyncio.run(main())
    assert isinstance(reason, StorageFailed)
    assert 74 == serve.outcome(reason)


@pytest.mark.proves("SEC-014")
def test_a_process_that_grows_over_its_limit_says_so_writes_it_down_and_ends_with_75(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    root = world.host("root", "root")

    async def play() -> None:
        root.start()
        monkeypatch.setattr(process, "resident_bytes", lambda: 1 << 60)
        reason = await root.end()
        assert isinstance(reason, MemoryExceeded)
        assert 75 == serve.outcome(reason)
        monkeypatch.undo()
        root.start()
        await world.pass_time(3)
        events = [
            record.key
            for _, record in root.records()
            if isinstance(record, StreamRecord) and record.stream == Stream.EVENTS
        ]
        assert ["node.started", "node.memory-tight", "node.memory-exceeded", "node.started"] == events
        assert {} == dict(world.made() - samples_in(root.lake))

    world.run(play())


@pytest.mark.proves("JRN-031")
@pytest.mark.parametrize("level, megabytes", [("sensor", 64), ("collector", 1024), ("root", 8192)])
def test_budgets_by_level(level: str, megabytes: int) -> None:
    parent = {} if level == "root" else {"parent": "root"}
    chosen = settings_of({"node": {"name": "a", "level": level, **parent}})
    limits = limits_of(chosen)
    assert (megabytes << 20, 64 << 20) == (limits.budget_bytes, limits.free_bytes_min)
    assert (256 if level == "sensor" else 2048) << 20 == chosen.memory_bytes
    own = settings_of({"node": {"name": "a", "level": "root"}, "journal": {"megabytes": 2, "free_megabytes": 0}})
    assert (2 << 20, 0) == (limits_of(own).budget_bytes, limits_of(own).free_bytes_min)


@pytest.mark.parametrize(
    "reason, code",
    [
        (None, 0),
        (OurFault("x"), 70),
        (AssertionError("x"), 70),
        (StorageFailed("x"), 74),
        (UserError("lease-held", "x", "y"), 75),
        (UserError("port-taken", "x", "y"), 2),
    ],
)
def test_every_end_has_its_exit_code(reason: Any, code: int) -> None:
    assert code == serve.outcome(reason)


def test_a_fault_at_the_start_is_shown_whole_and_ends_with_70(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fault(*_: object) -> None:
        raise AssertionError("a promise is broken at the start")

    monkeypatch.setattr(process, "build_node", fault)
    document = json.dumps({"node": {"name": "n1", "level": "root", "state": str(tmp_path)}})
    monkeypatch.setattr("sys.argv", ["serve", document])
    assert 70 == serve.main()
    said = capfd.readouterr().err
    assert "Traceback" in said
    assert "a promise is broken at the start" in said
    assert "it restores itself" in said


def events_in(made: Process, name: str) -> list[dict[str, Any]]:
    """What the node has said of one kind, in its journal."""
    records = (record for _, record in made.journal.shelf.entries())
    return [json.loads(r.payload) for r in records if isinstance(r, StreamRecord) and r.key == name]


def journal_check(made: Process) -> dict[str, Any]:
    return next(check for check in made.telemetry.health.look(made.clock.now()) if check["name"] == "journal")


def flip_a_sample(journal: Path) -> Path:
    """Turn one bit in the middle of the first segment."""
    victim = min(journal.glob("*.seg"))
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 4
    victim.write_bytes(data)
    return victim


@pytest.mark.proves("FLD-031", "JRN-022")
def test_damage_is_an_error_at_every_start_and_in_the_status_until_it_is_accepted(tmp_path: Path) -> None:
    chosen = settings(tmp_path)

    async def life() -> tuple[list[dict[str, Any]], dict[str, Any]]:
        made = Process(chosen)
        seen: list[tuple[list[dict[str, Any]], dict[str, Any]]] = []

        def look() -> None:
            seen.append((events_in(made, "journal.damaged"), journal_check(made)))
            made.stop()

        asyncio.get_running_loop().call_later(0.5, look)
        async with asyncio.timeout(PATIENCE_S):
            await made.run()
        return seen[0]

    events, check = asyncio.run(life())
    assert ([], "ok") == (events, check["state"])
    victim = flip_a_sample(tmp_path / "journal")
    for start in (1, 2):
        events, check = asyncio.run(life())
        assert [(victim.name, True)] * start == [(told["file"], told["is_recorded"]) for told in events]
        assert check["state"] == "degraded"
        assert victim.name in check["text"]
        assert "weft journal accept-loss" in check["do"]
    accept_loss(tmp_path)
    events, check = asyncio.run(life())
    assert (2, "ok") == (len(events), check["state"])


@pytest.mark.proves("FLD-031", "JRN-022")
def test_damage_that_is_found_while_a_node_runs_is_recorded_and_told(tmp_path: Path) -> None:
    async def main() -> None:
        before = Process(settings(tmp_path))
        asyncio.get_running_loop().call_later(0.5, before.stop)
        async with asyncio.timeout(PATIENCE_S):
            await before.run()
        made = Process(settings(tmp_path))
        victim = flip_a_sample(tmp_path / "journal")
        made.employ()
        made.open()
        now = made.clock.now()
        made.tidy(now._replace(wall=now.wall + 10 * DAY))
        (told,) = events_in(made, "journal.damaged")
        assert (victim.name, "checksum", False) == (told["file"], told["why"], told["is_recorded"])
        kept = [r for _, r in made.journal.shelf.entries() if isinstance(r, DamageRecord) and r.file == victim.name]
        assert len(kept) == 2, "in the place of what is lost, and where it was found"
        assert journal_check(made)["state"] == "degraded"
        made.close()

    asyncio.run(main())


@pytest.mark.proves("SEC-003", part="the event at each start and every 24 hours, health, gauge")
@pytest.mark.parametrize("host, said", [("192.0.2.1", [1, 1, 2]), ("127.0.0.1", [0, 0, 0])])
def test_an_open_node_that_others_reach_warns_at_each_start_and_once_a_day(
    host: str, said: list[int], tmp_path: Path
) -> None:
    async def main() -> None:
        security = {"mode": "none", "allow_insecure": True}
        made = Process(settings(tmp_path, node={"host": host}, security=security))
        made.employ()
        made.open()
        warned = [len(events_in(made, "security.open"))]
        now = made.clock.now()
        for hours in (23, 25):
            made.tidy(now._replace(mono=now.mono + hours * 3_600 * SECOND))
            warned.append(len(events_in(made, "security.open")))
        assert said == warned
        assert all([host] == told["hosts"] for told in events_in(made, "security.open"))
        assert made.telemetry.health_facts()["open"]
        assert "weft_security_open 1.0" in exposition(made.telemetry.status()).decode().splitlines()
        made.close()

    asyncio.run(main())


@pytest.mark.proves("JRN-033", part="no start, exit status 74, and the mount is named")
def test_a_state_directory_that_cannot_be_written_is_refused_by_its_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StorageFailed) as failed:
        begin_start(tmp_path / "n1", "n1", 1)
    monkeypatch.undo()
    assert 74 == serve.outcome(failed.value)
    assert str(Files().mount_point(tmp_path)) in str(failed.value)
    assert "Read-only file system" in str(failed.value)
