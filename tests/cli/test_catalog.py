"""The command line of the catalog at a real broker: typed, done, and shown."""

import asyncio
import io
import json
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.client.catalogbroker import Scripted, ports, running
from tests.client.node import in_loop
from weft import catalog
from weft.base.errors import UserError
from weft.cli import catalog as looking
from weft.cli import catalog_doctor, catalog_own, catalog_reach, catalog_serve, catalog_watch
from weft.cli.catalog_calls import BY_CODE, at_catalog, failed
from weft.cli.catalog_lines import line
from weft.client.catalog.errors import CallFailed, CatalogError, CatalogTimeout

Run = Callable[..., Any]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """A command in a thread, beside the broker: its status and its lines."""

    async def do(command: Callable[..., int], *words: str, **flags: Any) -> tuple[int, list[str]]:
        status = await asyncio.to_thread(command, *words, **flags)
        return status, capsys.readouterr().out.splitlines()

    return do


@pytest.mark.proves("CAT-073")
@in_loop
async def test_a_record_is_registered_found_changed_and_removed(tmp_path: Path, run: Run) -> None:
    async with running(tmp_path) as at:
        to: Any = {"broker": at.broker}
        place: Any = {"ip": "127.0.0.1", "port": 9100}
        assert (0, [f"printer is registered as 127.0.0.1:9100 at {at.broker}"]) == await run(
            catalog_own.register, "printer", **place, tag=("office",), meta=("room=k1",), heartbeat=60_000, **to
        )
        status, [told] = await run(looking.query, tag=("office",), meta=("room=k1",), json=True, **to)
        [row] = json.loads(told)
        assert (0, "printer", "127.0.0.1:9100", "active") == (
            status,
            row["name"],
            row["address"],
            row["record"]["_dbp"]["state"],
        )
        assert (0, ["printer  is changed".replace("  ", " ")]) == await run(
            catalog_own.update, "printer", "port=9101", 'tags=["x"]', "metadata=null", **to
        )
        assert (0, ["127.0.0.1:9101"]) == await run(looking.get, "printer", address=True, **to)
        status, lines = await run(looking.list_services, "print*", **to)
        assert (0, ["name", "instance", "address", "state", "health", "since", "tags"]) == (status, lines[0].split())
        assert ["printer", "127.0.0.1:9100", "127.0.0.1:9101", "active", "unknown"] == lines[1].split()[:5]
        assert (0, ["printer is removed"]) == await run(catalog_own.deregister, "printer", state=str(tmp_path))
        assert (1, ["no service"]) == await run(looking.list_services, every=True, **to)
        assert (1, []) == await run(looking.get, "printer", **to)
        assert (1, []) == await run(catalog_own.deregister, "printer", state=str(tmp_path))


@pytest.mark.proves("CAT-073")
@in_loop
async def test_a_port_alone_is_one_of_this_machine(tmp_path: Path, run: Run) -> None:
    async with running(tmp_path) as at:
        to: Any = {"broker": at.broker}
        said = (0, [f"a is registered as 127.0.0.1:9100 at {at.broker}"])
        assert said == await run(catalog_own.register, "a", port=9100, heartbeat=60_000, **to)
        assert (0, ["127.0.0.1:9100"]) == await run(looking.get, "a", address=True, **to)


@pytest.mark.proves("CAT-073")
@in_loop
async def test_what_one_has_registered_leaves_without_a_keeper(tmp_path: Path, run: Run) -> None:
    async with running(tmp_path) as at:
        to: Any = {"broker": at.broker}
        await run(catalog_own.register, "a", ip="127.0.0.1", port=1, heartbeat=60_000, **to)
        assert (0, ['{"name":"a","instance":"127.0.0.1:1","is":"left"}']) == await run(
            catalog_own.deregister, "a", json=True, **to
        )
        assert (1, []) == await run(catalog_own.deregister, "a", **to)
        assert (1, ["[]"]) == await run(looking.list_services, json=True, **to)
        status, [told] = await run(looking.list_services, every=True, json=True, **to)
        assert (0, "inactive") == (status, json.loads(told)[0]["record"]["_dbp"]["state"])


@pytest.mark.proves("CAT-073")
@in_loop
async def test_a_service_is_pinged_called_and_looked_at(tmp_path: Path, run: Run) -> None:
    async with running(tmp_path) as at, catalog.Service("thermo", broker=at.broker) as thermo:
        to: Any = {"broker": at.broker}

        @thermo.endpoint
        async def read(*frames: bytes) -> tuple[bytes, ...]:
            return (b"a\x1b[2J", *frames)

        status, [told] = await run(catalog_reach.ping, "thermo", json=True, **to)
        assert (0, [True]) == (status, [row["rtt_s"] > 0 for row in json.loads(told)])
        assert (0, ["a\\x1b[2J k 1"]) == await run(catalog_reach.call, "thermo", "read", "k", "1", **to)
        assert (0, ['{"frames":["a\\u001b[2J"]}']) == await run(catalog_reach.call, "thermo", "read", json=True, **to)
        assert (1, []) == await run(catalog_reach.call, "thermo", "write", **to)
        assert (1, []) == await run(catalog_reach.call, "nobody", "read", **to)
        status, lines = await run(looking.liveness, **to)
        assert (0, "thermo") == (status, lines[1].split()[0])
        status, lines = await run(looking.status, json=True, **to)
        assert (0, at.broker, 1) == (status, json.loads(lines[0])["broker"], json.loads(lines[0])["names"])


@pytest.mark.proves("CAT-073")
@in_loop
async def test_last_values_topics_and_logs_are_shown(tmp_path: Path, run: Run) -> None:
    async with running(tmp_path) as at, catalog.Client(at.broker) as client:
        to: Any = {"broker": at.broker}
        assert (1, ["no topic"]) == await run(catalog_watch.topics, **to)
        assert (1, []) == await run(catalog_watch.last_values, "room/a", **to)
        async with catalog.Service("thermo", broker=at.broker, topics=None) as thermo:
            while not (await client.topics("room/") and await client.logs()):
                thermo.publish("room/a", b"21.5")
                thermo.publish("log.thermo.ERROR.pump", b"too \x1b[31mhot\n")
                await asyncio.sleep(0.02)  # tidy: until the broker has subscribed; bounded by in_loop
            status, [line] = await run(catalog_watch.last_values, "room/*", **to)
            assert (0, ["room/a", "21.5", "#", "thermo"]) == (status, line.split()[1:5])
            status, [told] = await run(catalog_watch.last_values, "room/a", json=True, **to)
            assert [["21.5"], False] == [json.loads(told)[0][key] for key in ("frames", "stale")]
            status, lines = await run(catalog_watch.topics, "room", **to)
            assert (0, ["room/a", "thermo"]) == (status, lines[1].split()[:2])
            status, lines = await run(catalog_watch.logs, "thermo", since="1h", contains="hot", **to)
            assert (0, "ERROR", "thermo pump: too \\x1b[31mhot") == (
                status,
                lines[0].split()[1],
                lines[0][-28:],
            )
            assert (0, []) == await run(catalog_watch.logs, "thermo", level="critical", **to)


@pytest.mark.proves("CAT-073")
@in_loop
async def test_a_watch_prints_a_line_of_json_for_each_change(tmp_path: Path) -> None:
    async with running(tmp_path) as at, catalog.Client(at.broker) as client:
        await client.register("a", ip="127.0.0.1", port=1, heartbeat=60_000)
        words = ("catalog", "watch", "a*", "--count", "2", "--json", "--broker", at.broker)
        watcher = await asyncio.create_subprocess_exec(sys.executable, "-m", "weft.cli.main", *words, stdout=PIPE)
        assert watcher.stdout is not None
        first = json.loads(await watcher.stdout.readline())
        await client.update("a", port=2)
        told = [first, json.loads((await watcher.communicate())[0])]
        assert [("enter", 1), ("update", 2)] == [(one["op"], one["record"]["port"]) for one in told]
        assert 0 == watcher.returncode


@pytest.mark.proves("CAT-073")
@in_loop
async def test_a_record_is_kept_alive_until_its_keeper_ends(tmp_path: Path) -> None:
    async with running(tmp_path) as at, catalog.Client(at.broker) as client:
        words = (
            "catalog",
            "register",
            "a",
            "--ip",
            "127.0.0.1",
            "--port",
            "1",
            "--heartbeat",
            "50",
            "--keep",
            "--json",
        )
        command = (sys.executable, "-m", "weft.cli.main", *words, "--broker", at.broker)
        keeper = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
        assert keeper.stdout is not None
        assert "127.0.0.1:1" == json.loads(await keeper.stdout.readline())["instance"]
        beats = 0
        while beats < 8:  # more than three intervals of 50 ms: alone it would be gone
            [row] = await client.liveness()
            beats = row["beats_received"]
            await asyncio.sleep(0.01)  # tidy: until it has beaten; bounded by in_loop
        assert "active" == (await client.get("a")).state
        keeper.send_signal(signal.SIGINT)
        assert 0 == await keeper.wait()
        with pytest.raises(catalog.NotFound) as gone:
            await client.get("a")
        assert "left" == gone.value.state


@pytest.mark.proves("CAT-073")
@in_loop
async def test_the_doctor_finds_nothing_at_a_sound_broker(tmp_path: Path, run: Run) -> None:
    async with running(tmp_path) as at:
        status, [told] = await run(catalog_doctor.doctor, broker=at.broker, beacon_port=at.beacon, json=True)
        findings = {finding["what"]: finding["state"] for finding in json.loads(told)}
        expected = dict.fromkeys(("beacon", "broker", "changes", "addresses", "udp", "tcp"), "fine")
        assert (0, expected) == (status, findings)


@pytest.mark.proves("CAT-073")
@pytest.mark.parametrize(
    "code, status",
    [
        ("inactive", 1),
        ("not-registered", 1),
        ("bad-argument", 2),
        ("bad-broker", 2),
        ("bad-field", 2),
        ("unreachable", 3),
        ("timeout", 3),
        ("not-authorised", 4),
        ("name-taken", 4),
        ("limit", 4),
    ],
)
def test_a_status_says_what_became_of_it(code: str, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert status == failed(CatalogError("a\x1b[2J", code))
    told = capsys.readouterr().err.splitlines()
    assert ("weft: a\\x1b[2J", True) == (told[0], told[1].startswith("  try: "))
    assert code == "bad-field" or code in BY_CODE


@pytest.mark.proves("CAT-073")
@in_loop
async def test_a_broker_that_says_nothing_is_status_3(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr("weft.client.catalog.finding.ANSWER_S", 0.02)
    async with Scripted() as broker:
        assert (3, []) == await run(looking.status, broker=broker.broker)
    assert (3, []) == await run(looking.get, "a", broker="no such place")


@pytest.mark.proves("CAT-073")
@in_loop
async def test_what_is_no_address_of_a_broker_is_wrong_usage(run: Run) -> None:
    assert (2, []) == await run(looking.status, broker="127.0.0.1:99999")


def test_what_may_be_tried_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    failed(CallFailed("no", "no-tea"))
    assert "  try: the log of the service: weft catalog logs NAME" == capsys.readouterr().err.splitlines()[1]
    with pytest.raises(UserError) as wrong:
        catalog_own.update("a", "port")
    assert ["'port' is no KEY=VALUE", "  try: room=k1"] == str(wrong.value).splitlines()


def test_a_reader_that_has_seen_enough_ends_a_command_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Closed())
    with pytest.raises(BrokenPipeError):  # and no SystemExit, which a task would show with its trace
        line(("a", ""))


def test_an_interrupted_command_ends_quietly() -> None:
    def interrupt(_: Any) -> Any:
        raise KeyboardInterrupt

    assert issubclass(CatalogTimeout, CatalogError)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weft.cli.catalog_calls.asyncio.run", lambda work: (work.close(), interrupt(work)))
        assert 0 == at_catalog(None, interrupt)


@pytest.mark.parametrize(
    "typed",
    [
        looking.get,
        lambda: looking.query("no json"),
        lambda: looking.query(meta=("x",)),
        lambda: catalog_own.update("a"),
        lambda: catalog_own.register("a", record="[]"),
        lambda: catalog_own.register("a", interface=("pub=7",)),
        lambda: catalog_own.deregister("a", state="s", broker="b"),
        lambda: catalog_watch.logs(since="yesterday"),
        lambda: catalog_doctor.doctor(beacon_port=0),
        lambda: catalog_serve.serve(host="0.0.0.0"),
        lambda: catalog_serve.serve(more=("liveness",), check=True),
        lambda: catalog_serve.serve(more=("liveness=99",), check=True),
    ],
)
def test_what_cannot_be_meant_is_told(typed: Callable[[], int]) -> None:
    with pytest.raises(UserError):
        typed()


@pytest.mark.proves("CAT-073")
def test_a_broker_needs_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    became: list[dict[str, Any]] = []
    monkeypatch.setattr("weft.cli.up.become", became.append)
    at = ports()
    catalog_serve.serve(port=at.router, state=tmp_path, node_port=at.node, more=("liveness=5", 'reap="1h"'))
    catalog_serve.serve(host="0.0.0.0", is_open=True)
    assert {"port": at.router, "liveness": 5, "reap": "1h"}.items() <= became[0]["catalog"].items()
    assert (str(tmp_path), [], at.node) == tuple(became[0]["node"][key] for key in ("state", "runs", "port"))
    assert ("0.0.0.0", True) == (became[1]["node"]["host"], became[1]["security"]["allow_insecure"])
    assert 0 == catalog_serve.serve(check=True)
    assert "catalog: a catalog at 127.0.0.1:5246, usable\n" == capsys.readouterr().out
