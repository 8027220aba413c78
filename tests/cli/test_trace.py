"""One record on its road through real processes: a sample, a message, an entry of a document; and the doctor beside them."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.patience import until
from tests.shell.ports import free_port
from tests.shell.world import World
from weft.base.errors import UserError
from weft.cli import doctor_node
from weft.cli.asking import try_status
from weft.cli.chain_calls import send_once
from weft.cli.doctor import doctor
from weft.cli.nouns import app
from weft.cli.trace import roads_of, trace
from weft.shell.blocks import free_blocks
from weft.shell.tracing import Tracer, Wanted, wanted_of


class Pair(NamedTuple):
    """A root with a lake, and a sensor below it."""

    place: Path
    root_port: int
    port: int


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    place = tmp_path_factory.mktemp("pair")
    root_port, port = free_blocks(2, 14_000)
    fleet = {"beacon_port": free_port()}
    plan = place / "fleet.toml"
    plan.write_text('[[chains.filter]]\nname = "keep"\nkind = "journal"\ntypes = ["demo.*"]\ndir = "in"\n', "utf-8")
    own = {"name": "root", "level": "root", "port": root_port, "state": str(place / "root"), "config": str(plan)}
    root = {
        "node": own,
        "chains": {"filter": [{"name": "keep", "kind": "journal", "types": ["demo.*"], "dir": "in"}]},
        "fleet": fleet,
        "lake": {"path": str(place / "lake")},
        "doc": {"session": {"minutes": {"schema": "plain"}}},
    }
    sensor = {
        "node": {"name": "s1", "parent": f"127.0.0.1:{root_port}", "port": port, "state": str(place / "s1")},
        "fleet": fleet,
        "metric": {"cpu": {"detail": "CPU", "rate": "0.1s"}},
    }
    words = [sys.executable, "-m", "weft.shell.serve"]
    running = [
        subprocess.Popen([*words, json.dumps(each)], stderr=subprocess.DEVNULL, cwd=Path(__file__).parents[2])
        for each in (root, sensor)
    ]
    try:
        until(lambda: any(each.poll() is not None for each in running) or _is_drained(root_port), "rows are drained")
        assert [each.poll() for each in running] == [None, None]
        yield Pair(place, root_port, port)
    finally:
        for each in running:
            each.send_signal(signal.SIGKILL)
            each.wait()


def _is_drained(port: int) -> bool:
    status = try_status(port)
    return status is not None and bool(status["children"]) and status["cores"]["drain"]["rows"] > 5


def traced(capsys: pytest.CaptureFixture[str], *words: Any, **options: Any) -> list[dict[str, Any]]:
    """What the command says of a record, asked until it is in the lake."""
    found: list[dict[str, Any]] = []

    def is_in_the_lake() -> bool:
        capsys.readouterr()
        trace(*words, json=True, **options)
        found[:] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return any(road["state"] == "in the lake" for road in found)

    until(is_in_the_lake, "it is in the lake")
    return found


def steps_of(road: dict[str, Any]) -> list[tuple[str, str]]:
    return [(step["what"], step["node"]) for step in road["steps"]]


WHOLE_ROAD = [
    ("made", "s1"),
    ("durable", "s1"),
    ("sent", "s1"),
    ("held", "root"),
    ("safe", "s1"),
    ("held", "root"),
    ("safe", "root"),
    ("in the lake", "root"),
]


@pytest.mark.proves("OBS-007")
def test_a_sample_is_followed_from_the_sensor_to_the_lake(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    (road,) = traced(capsys, "s1:3", stream="samples", port=pair.port)
    assert (road["stream"], road["name"], road["sequence"], road["key"]) == ("samples", "s1", 3, "weft.metric")
    assert steps_of(road) == WHOLE_ROAD
    at = [step["at"] for step in road["steps"] if step["at"]]
    assert len(at) == 4
    assert at == sorted(at)
    (again,) = traced(capsys, "s1", 3, stream="samples", port=pair.port, lake=pair.place / "lake")
    assert ("in the lake", "lake") == steps_of(again)[-1]
    assert trace("s1:3", stream="samples", port=pair.port) == 0
    told = capsys.readouterr().out
    assert told.startswith("samples 3 of s1, era ")
    assert "record" in told


@pytest.mark.proves("OBS-007")
def test_a_message_and_an_entry_of_a_document_are_followed(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    assert send_once(
        str(pair.place / "s1"), "demo.report", b"hello", to="parentsof", fmt="text", want="dest", keep="disk"
    )
    (road,) = traced(capsys, "s1:1", stream="messages", port=pair.port)
    assert road["key"] == "demo.report"
    assert steps_of(road) == WHOLE_ROAD
    node = str(pair.place / "root")
    assert (
        app(["doc", "set", "path=/", "venue=hall", "--node", node], exit_on_error=False, result_action="return_value")
        == 0
    )
    capsys.readouterr()
    app(["doc", "log", "--json", "--node", node], exit_on_error=False, result_action="return_value")
    entry = json.loads(capsys.readouterr().out.splitlines()[0])
    (road,) = traced(capsys, f"{entry['source'][:8]}:1", port=pair.port, stream="documents")
    assert road["origin"] == f"minutes/{entry['source'].replace('-', '')}"
    assert [what for what, _ in steps_of(road)] == ["made", "durable", "safe", "in the lake"]


def test_who_is_unknown_is_said_to_be_and_what_is_no_record_is_refused(
    pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trace("nobody:7", port=pair.port) == 1
    assert "no node has nobody:7 (asked: s1, root)" in capsys.readouterr().err
    for wrong in ("s1", "s1:", "s1:x", "s1:0", ":4"):
        with pytest.raises(UserError):
            trace(wrong, port=pair.port)
    with pytest.raises(UserError):
        trace("s1:1", stream="letters", port=pair.port)


@pytest.mark.parametrize(
    "query", ["", "origin=a", "sequence=1", "origin=a&sequence=-1", "origin=a&sequence=1&stream=x"]
)
def test_a_query_that_names_no_record_is_refused(query: str) -> None:
    assert wanted_of(query) is None


def test_each_stage_is_told_as_the_carrier_knows_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    root, sensor = world.host("root", "root"), world.host("sensor", "sensor", "root")

    def stages(number: int = 15) -> list[str]:
        process = sensor.up
        wanted = Wanted(process.identity.node, number, (1,))
        return [line["stage"] for line in json.loads(Tracer(process.node, process.journal, sensor.files).body(wanted))]

    async def play() -> None:
        for host in (root, sensor):
            host.start()
        await world.pass_time(3)
        sensor.take(10)
        await world.pass_time(3)
        world.cut.add("sensor")
        sensor.take(10)
        assert stages() == ["sent"]
        await world.pass_time(20)
        sensor.take(10)
        assert stages(25) == ["waiting"]
        world.cut.clear()
        await world.until(lambda: stages(25) == ["safe"])

    world.run(play())


def test_a_loss_is_a_step_and_the_end_of_the_road() -> None:
    way = {"10.0.0.1:1": {"name": "root", "node": "ab", "level": "root", "parent": {"name": "", "endpoint": ""}}}
    said = {
        "stream": "samples",
        "origin": "cd",
        "era": 1,
        "lsn": 9,
        "first": 1,
        "last": 5,
        "lost": "damage",
        "stage": "kept",
    }
    (road,) = roads_of(3, way, {"10.0.0.1:1": [said]})
    assert (road.state, road.steps[0].text) == ("lost", "announced as lost, damage: record 9 of its journal")


# The doctor


def file_of(place: Path, port: int, more: str = "") -> Path:
    path = place / "node.toml"
    path.write_text(f'[node]\nname = "s1"\nport = {port}\nstate = "{place / "s1"}"\n{more}', "utf-8")
    return path


def found_by(capsys: pytest.CaptureFixture[str], status: int, *words: Any, **options: Any) -> dict[str, dict[str, str]]:
    assert doctor(*words, json=True, no_spark=True, **options) == status
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(one["mend"] for one in found if one["state"] != "ok")
    return {one["what"].removeprefix("s1: "): one for one in found}


@pytest.mark.proves("OBS-008")
def test_a_node_that_runs_is_well(pair: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "node.toml"
    lines = ["[node]", 'name = "s1"', f"port = {pair.port}", f'state = "{pair.place / "s1"}"']
    path.write_text("\n".join([*lines, f'parent = "127.0.0.1:{pair.root_port}"']), "utf-8")
    found = found_by(capsys, 0, path)
    names = ["address", "state", "identity", "lock", "journal", "room", "clock", "ports", "parent", "health"]
    assert dict.fromkeys(names, "ok") == {name: found[name]["state"] for name in names}
    assert "runs this node" in found["lock"]["text"]
    assert "are its own" in found["ports"]["text"]
    assert doctor(path, no_spark=True) == 0
    assert capsys.readouterr().out.rstrip().endswith("nothing fails here")


@pytest.mark.proves("OBS-008")
def test_what_keeps_a_node_from_starting_is_named_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        more = (
            'host = "192.0.2.7"\njoin = ["nowhere.invalid:27500"]\n[security]\nmode = "none"\nallow_insecure = true\n'
        )
        path = file_of(tmp_path, port, more)
        monkeypatch.setattr(socket, "getaddrinfo", _unknown_name)
        (tmp_path / "s1" / "journal").mkdir(parents=True, mode=0o755)
        (tmp_path / "s1" / "node.json").write_text('{"node":"' + "ab" * 16 + '","name":"s2","era":1}', "utf-8")
        (tmp_path / "s1" / "journal" / f"{1:016x}.seg").write_bytes(b"no segment at all" * 20)
        os.utime(tmp_path / "s1" / "journal" / f"{1:016x}.seg", (4_000_000_000, 4_000_000_000))
        found = found_by(capsys, 1, path)
    states = {
        name: found[name]["state"] for name in ("address", "state", "identity", "journal", "clock", "ports", "parent")
    }
    assert states == {
        "address": "warn",
        "state": "warn",
        "identity": "fail",
        "journal": "fail",
        "clock": "warn",
        "ports": "fail",
        "parent": "fail",
    }
    assert f"{port} by process {os.getpid()}" in found["ports"]["text"]
    assert "weft journal repair" in found["journal"]["mend"]


def _unknown_name(*_: object, **__: object) -> None:
    raise socket.gaierror(-2, "Name or service not known")


@pytest.mark.proves("JRN-033")
def test_a_read_only_state_directory_is_named_by_its_mount(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s1").mkdir(mode=0o700)
    path = file_of(tmp_path, free_blocks(1, 15_000)[0])
    assert found_by(capsys, 0, path)["state"]["state"] == "ok"
    for call, code in (("open", 30), ("fsync", 5), ("write", 28)):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, _refusing(getattr(os, call), code))
            found = found_by(capsys, 1, path)["state"]
        assert found["state"] == "fail"
        assert str(doctor_node._mount_of(tmp_path)) in found["text"]
        assert os.strerror(code) in found["text"]
        assert list((tmp_path / "s1").iterdir()) == []


def _refusing(real: Any, code: int) -> Any:
    def refuse(first: Any, *rest: Any, **named: Any) -> Any:
        if isinstance(first, int) or ".doctor-" in str(first):
            raise OSError(code, os.strerror(code))
        return real(first, *rest, **named)

    return refuse


@pytest.mark.proves("OBS-008")
def test_a_file_with_an_unknown_key_and_a_wrong_clock_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = found_by(capsys, 1, file_of(tmp_path, 15_000, "speed = 3\n"))
    assert "speed" in found["file"]["text"]
    assert doctor_node.time_of_day(lambda: 0.0).state == "fail"


@pytest.mark.prove("real nodes")
def test_without_a_name_every_state_of_this_user_is_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    place = tmp_path / "weft" / "lab" / "s1"
    place.mkdir(parents=True, mode=0o700)
    (place / "node.json").write_text('{"node":"' + "ab" * 16 + '","name":"s1","era":1}', "utf-8")
    found = found_by(capsys, 0)
    assert (found["state"]["state"], found["identity"]["text"]) == ("ok", f"node {'ab' * 16}")
    assert "ports" not in found
