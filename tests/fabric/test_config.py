"""`weft config` as a person types it, against a fleet of root, two collectors and two sensors that runs."""

import contextlib
import io
import itertools
import json
import signal
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.fabric.placed import PlacedFabric
from weft.base.records import Stream, StreamRecord
from weft.cli.main import main
from weft.shell.journal import JournalReader
from weft.wire import samples

NAMES: Final = ("root", "collector-1", "collector-2", "sensor-1", "sensor-2")
COLLECTORS: Final = NAMES[1:3]
SENSORS: Final = NAMES[3:]
LOAD: Final = {"detail": "LOAD", "rate": "1s"}
MARK: Final = "/CONFIG/lab/metric/mark"
FAST: Final = {"detail": "UPTIME", "rate": "100ms"}
SLOW: Final = {"detail": "UPTIME", "rate": "1h"}
CHANGES: Final = 6
COMMAND: Final = (sys.executable, "-m", "weft.cli.main", "config")


class Patient(PlacedFabric):
    """Takes nobody for dead within the five seconds that a write waits for its majority."""

    def settings(self, name: str, port: int, state: Path) -> str:
        return super().settings(name, port, state).replace("dead_s = 1.0", "dead_s = 10.0")


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlacedFabric]:
    with Patient(tmp_path_factory.mktemp("fabric"), NAMES, heartbeat="2s") as fabric:
        fabric.until(lambda: all(map(fabric.is_joined, NAMES[1:])), "everybody has a parent")
        fabric.until(lambda: all(fabric.number(name) > 0 for name in NAMES), "everybody has the configuration")
        yield fabric


class Ran(NamedTuple):
    """A command that has ended."""

    code: int
    said: str
    """On the terminal's two streams together."""


def as_process(words: list[str], place: Path) -> Ran:
    """`weft config` as a shell starts it."""
    ran = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=90, cwd=place, check=False)
    return Ran(ran.returncode, ran.stdout + ran.stderr)


def in_here(words: list[str], place: Path) -> Ran:
    """The same from its `main` on, without a Python that has to start."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(place), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(),
    ):  # fmt: skip
        patch.setattr(sys, "argv", ["weft", "config", *words])
        warnings.filterwarnings("ignore", "Cyclopts application invoked without tokens")
        with pytest.raises(SystemExit) as ended:
            main()
    assert isinstance(ended.value.code, int), ended.value.code
    return Ran(ended.value.code, out.getvalue() + err.getvalue())


class Person:
    """Types `weft config`, by default at the root."""

    def __init__(self, fabric: PlacedFabric, at: str = "root", run: Callable[[list[str], Path], Ran] = in_here) -> None:
        self.fabric, self.port, self.run = fabric, str(fabric.ports[at]), run

    def types(self, *words: object, expected: int = 0) -> str:
        """What is printed, on the terminal's two streams together."""
        return self.offline(*words, "--port", self.port, expected=expected)

    def offline(self, *words: object, expected: int = 0) -> str:
        """The same for a command that asks no node."""
        ran = self.run([str(word) for word in words], self.fabric.place)
        assert expected == ran.code, ran.said
        return ran.said

    def reads(self, *words: object) -> Any:
        return json.loads(self.types(*words, "--json"))


@pytest.mark.proves(
    "CFG-045", part="between real processes too: who writes without pause does not silence a parent's beats"
)
def test_beats_go_on_while_keys_that_no_sensor_has_are_written_without_pause(fabric: PlacedFabric) -> None:
    def beats() -> int:
        return int(fabric.status("collector-1")["cores"]["configuration"]["hugz"])

    def has_beaten(number: int) -> bool:
        fabric.ask("root", "set", key="/app/beats", value=number)
        return beats() >= before + 2

    before, numbers = beats(), itertools.count()
    fabric.until(lambda: has_beaten(next(numbers)), "two more beats")


@pytest.mark.prove("a second story of the configuration")
@pytest.mark.proves("CFG-022", "CFG-025", "CFG-072")
def test_a_person_reads_and_writes_the_running_fleet(fabric: PlacedFabric) -> None:
    person = Person(fabric)
    assert "/CONFIG/lab/metric/load: 1 write" in person.types("set", "lab/metric/load", json.dumps(LOAD))
    told = person.reads("get", "lab/metric/load")
    assert ("/CONFIG/lab/metric/load", LOAD) == (told["key"], told["value"])
    again = person.types("set", "lab/metric/load", json.dumps(LOAD))
    assert "nothing had to change" in again
    refused = person.types("set", "lab/metric/load", json.dumps(FAST), "--if-number", told["number"] + 1, expected=4)
    assert f"/CONFIG/lab/metric/load is at number {told['number']}" in refused
    assert ["cpu", "load", "memory"] == [row["key"].rpartition("/")[2] for row in person.reads("list", "lab/metric")]
    person.types("set", "lab/metric/fleeting", json.dumps(LOAD), "--ttl", "1s")
    assert "1 write" in person.types("delete", "lab/metric/load")
    assert "there is no /CONFIG/lab/metric/load" in person.types("get", "lab/metric/load", expected=2)
    fabric.until(lambda: "/CONFIG/lab/metric/fleeting" not in fabric.values("root", "/CONFIG/lab/"), "its time is over")


@pytest.mark.prove("a second story of the configuration")
@pytest.mark.proves("CFG-022", "CFG-027", "CFG-072")
def test_a_file_is_checked_compared_loaded_exported_and_taken_back(fabric: PlacedFabric) -> None:
    person = Person(fabric)
    person.types("load", fabric.file)
    before = fabric.values("root", "/CONFIG/")
    text = fabric.file.read_text("utf-8")
    changed = fabric.place / "changed.toml"
    changed.write_text(text.replace('detail = "MEMORY"\nrate = "0.2s"', 'detail = "MEMORY"\nrate = "soon"'), "utf-8")
    assert "E04 metric.memory.rate" in person.offline("check", changed, expected=1)
    assert "metric.memory.rate" in person.types("load", changed, expected=2)
    changed.write_text(text.replace('rate = "0.2s"', 'rate = "0.3s"'), "utf-8")
    assert "can be used" in person.offline("check", changed)
    assert '/CONFIG/lab/metric/memory {"detail":"MEMORY","rate":"0.3s"}' in person.offline("print", changed)
    assert "+ /CONFIG/lab/metric/memory" in person.types("diff", changed, expected=1)
    number = person.reads("history", "--limit", 1)[0]["number"]
    assert "1 write" in person.types("load", changed)
    assert "" == person.types("diff", changed)
    newest = person.reads("history", "lab")[0]
    assert ("/CONFIG/lab/metric/memory", "0.2s", "0.3s") == (
        newest["key"],
        *(json.loads(newest[side])["rate"] for side in ("old", "new")),
    )
    person.types("export", "-o", fabric.place / "exported.toml")
    assert "" == person.types("diff", fabric.place / "exported.toml")
    assert "1 write" in person.types("rollback", number, "lab")
    assert before == fabric.values("root", "/CONFIG/")


@pytest.mark.prove("a second story of the configuration")
@pytest.mark.proves("CFG-021")
def test_a_sensor_refuses_writes_and_names_the_root(fabric: PlacedFabric) -> None:
    person = Person(fabric, "sensor-1", as_process)
    for words in (("set", "lab/fanout", 9), ("load", fabric.file)):
        assert f"the root: {fabric.endpoint('root')}" in person.types(*words, expected=4), words
    assert "/CONFIG/lab/metric/cpu" in person.types("list", "lab")


@pytest.mark.prove("a second story of the configuration")
@pytest.mark.proves("CFG-022", "CFG-047", "CFG-092")
def test_changes_are_watched_and_reach_everybody(fabric: PlacedFabric) -> None:
    seen = fabric.place / "watched"
    command = [*COMMAND, "watch", "lab/metric", "--every", "50ms", "--json", "--port", str(fabric.ports["sensor-2"])]
    with seen.open("wb") as output, subprocess.Popen(command, stdout=output) as watching:
        try:
            fabric.until(lambda: has_shown(fabric, seen), "the change is shown")
            watching.send_signal(signal.SIGINT)
            assert 0 == watching.wait(30)
        finally:
            watching.kill()
    shown = [json.loads(line) for line in seen.read_text("utf-8").splitlines()]
    assert {"/CONFIG/lab/metric/seen"} == {change["key"] for change in shown}
    at = fabric.number("root")
    fabric.until(lambda: all(row["number"] >= row["wanted"] for row in tree(fabric)), f"everybody has told of {at}")
    asked = [*COMMAND[:-1], "status", "--json", "--port", str(fabric.ports["sensor-1"])]
    told = json.loads(subprocess.run(asked, capture_output=True, timeout=90, check=True).stdout)
    assert [(name, False, "lab") for name in NAMES] == sorted(
        ((member["name"], member["is_behind"], member["group"]) for member in told["members"]),
        key=lambda m: NAMES.index(m[0]),
    )


def has_shown(fabric: PlacedFabric, seen: Path) -> bool:
    """Change something again, until whoever watches has begun to."""
    count = fabric.number("root")
    fabric.ask("root", "set", key="/CONFIG/lab/metric/seen", value={"detail": "LOAD", "rate": f"{count}s"})
    return seen.stat().st_size > 0


def tree(fabric: PlacedFabric) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = fabric.status("root")["tree"]
    return [{**row, "number": row["number"] or 0} for row in found]


@pytest.mark.prove("a second story of the configuration")
@pytest.mark.proves("CFG-024")
def test_without_a_majority_a_write_is_unconfirmed_and_stays(fabric: PlacedFabric) -> None:
    person = Person(fabric)
    processes = [process for name in COLLECTORS if (process := fabric.member(name).process) is not None]
    try:
        for process in processes:
            process.send_signal(signal.SIGSTOP)
        told = person.types("set", "lab/metric/lonely", json.dumps(LOAD))
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)
    assert "no majority of the collectors has confirmed the write yet; it stays" in told
    assert LOAD == person.reads("get", "lab/metric/lonely")["value"]
    key = "/CONFIG/lab/metric/lonely"
    fabric.until(lambda: all(key in fabric.values(name, "/CONFIG/lab/") for name in NAMES), "it reaches everybody")
    assert "no majority" not in person.types("delete", "lab/metric/lonely")


@pytest.mark.proves("CFG-051")
@pytest.mark.proves("CFG-050", part="every sensor has each change, over three tiers")
def test_a_changed_rate_is_in_force_everywhere_and_no_sample_is_lost_or_doubled(
    fabric: PlacedFabric, record_property: Callable[[str, object], None]
) -> None:
    fabric.until(lambda: all(map(fabric.is_joined, NAMES[1:])), "everybody has a parent")
    changes = []
    for _ in range(CHANGES):
        write(fabric, SLOW)
        quiet_since = time.time_ns() // 1_000_000
        changes.append((quiet_since, write(fabric, FAST)))
        measure_on(fabric)
    write(fabric, SLOW)
    for stage in (SENSORS, COLLECTORS, NAMES[:1]):
        fabric.fleet.stop(stage, 30)
    waits = sorted(wait for name in SENSORS for wait in waits_of(fabric, name, changes))
    assert CHANGES * len(SENSORS) == len(waits)
    record_property("milliseconds from Reply to the first sample: median", statistics.median(waits))
    record_property("milliseconds from Reply to the first sample: longest", waits[-1])
    made, (drained, doubled) = fabric.made(), fabric.drained()
    assert ({}, 0) == ({str(origin): list(missing) for origin, missing in made - drained}, doubled)


def measure_on(fabric: PlacedFabric) -> None:
    before = {name: fabric.taken(name) for name in SENSORS}
    fabric.until(lambda: all(fabric.taken(name) > before[name] + 20 for name in SENSORS), "samples under the change")


def write(fabric: PlacedFabric, value: dict[str, str]) -> int:
    """Let the mark be measured so everywhere; when the root replied, ms."""
    number = fabric.ask("root", "set", key=MARK, value=value)["number"]
    replied = time.time_ns() // 1_000_000
    fabric.until(lambda: all(fabric.number(name) >= number for name in NAMES), "everybody runs it")
    return replied


def waits_of(fabric: PlacedFabric, name: str, changes: list[tuple[int, int]]) -> Iterator[int]:
    """How long after each Reply the first sample of the mark was taken, which rests before; ms."""
    node = bytes.fromhex(json.loads((fabric.place / name / "node.json").read_text("utf-8"))["node"])
    taken = []
    for _, record in JournalReader(fabric.place / name / "journal").entries():
        if isinstance(record, StreamRecord) and record.stream == Stream.SAMPLES and record.origin == node:
            batch = samples.decode(record.payload)
            taken += [
                batch.t0_ms + row.offset_ms for row in batch.rows if batch.series[row.series].config_name == "mark"
            ]
    for quiet_since, replied in changes:
        yield min(at for at in taken if at > quiet_since) - replied
