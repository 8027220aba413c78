"""A real node is recorded, and repeated at a desk: the same calls, the same effects to the byte, the same fault."""

import io
import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S, until
from tests.shell.ports import free_port
from weft.base.effects import Tell
from weft.base.errors import UserError
from weft.base.records import Stream
from weft.cli.asking import try_status
from weft.cli.sim import replay
from weft.cores.measurement.core import Measurement
from weft.node.recording import MAGIC, Replay, framed, rows
from weft.shell import tape
from weft.shell.blocks import free_blocks
from weft.shell.tape import Tape

HOME = Path(__file__).parents[2]
SERVE = "import sys; from weft.shell import serve; sys.exit(serve.main())"
PLANTED = f"from tests.shell import test_recording as t; t.plant(); {SERVE}"


def plant() -> None:
    """A bug that shows itself only after a while, when the third batch is taken."""
    right = Measurement.wake

    def wrong(self: Measurement, now: Any) -> None:
        if self.counters.batches >= 2:
            raise KeyError("planted")
        right(self, now)

    Measurement.wake = wrong  # type: ignore[method-assign]  # it is the bug


class Recorded:
    """A node in a process of its own, that writes a recording."""

    def __init__(self, place: Path) -> None:
        self.file = place / "node.rec"
        self.port = free_blocks(1, 13_000)[0]
        node = {"name": "n1", "level": "root", "state": str(place / "n1"), "port": self.port, "flush_s": 0.1}
        tables = {
            "node": {**node, "record": str(self.file)},
            "fleet": {"beacon_port": free_port()},
            "metric": {"cpu": {"detail": "CPU", "rate": "0.1s"}},
            "store": {"found": "x"},
        }
        self._words = json.dumps(tables)

    def start(self, code: str = SERVE) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", code, self._words], cwd=HOME, stderr=subprocess.DEVNULL)

    def until(self, process: subprocess.Popen[bytes], name: str, least: int) -> None:
        """Let it run until it has measured that much."""

        def has_measured() -> bool:
            assert process.poll() is None
            status = try_status(self.port)
            return status is not None and status["cores"]["measurement"][name] >= least

        until(has_measured, f"{name} of {least}")


def played(data: bytes) -> Replay:
    made = Replay()
    made.play(rows(io.BytesIO(data)))
    return made


@pytest.fixture(scope="module")
def killed_once(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A node that was killed, started again, and stopped; both times it was asked for what it did lately."""
    node = Recorded(tmp_path_factory.mktemp("recorded"))
    for number in (signal.SIGKILL, signal.SIGTERM):
        process = node.start()
        node.until(process, "batches", 3)
        process.send_signal(signal.SIGUSR2)
        node.until(process, "batches", 5)
        process.send_signal(number)
        process.wait(PATIENCE_S)
    return node


@pytest.mark.proves("OBS-006")
def test_a_real_node_that_is_killed_and_started_again_is_replayed_to_the_byte(
    killed_once: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    node = killed_once
    assert len(list((node.file.parent / "n1" / "flight").glob("*-asked.jsonl"))) == 2
    assert node.file.stat().st_mode & 0o777 == 0o600
    assert replay(node.file, json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["node"], told["starts"], told["is_same"], told["failed"]) == ("n1", 2, True, "")
    assert told["effects"] > 50


@pytest.mark.proves("OBS-006")
def test_a_bug_of_a_real_process_repeats_at_the_desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Recorded(tmp_path)
    assert node.start(PLANTED).wait(PATIENCE_S) == 70
    healed = played(node.file.read_bytes())
    assert healed.difference is not None  # without the bug it goes on where the recording failed
    assert (healed.difference.recorded, healed.difference.replayed) == ("failed: KeyError: 'planted'", "goes on")
    monkeypatch.setattr(Measurement, "wake", Measurement.wake)  # so that it is put back
    plant()
    assert replay(node.file) == 1
    told = capsys.readouterr().out
    assert "it fails as it did" in told
    assert 'raise KeyError("planted")' in told


def test_another_effect_is_found_and_a_cut_recording_is_replayed_as_far_as_it_goes(killed_once: Recorded) -> None:
    data = killed_once.file.read_bytes()
    assert played(data).difference is None
    assert played(data[:-3]).difference is None
    forged, place = [], 0
    for row in rows(io.BytesIO(data)):
        changed = row
        if row[0] == "effects":
            place += 1
            if place == 3:
                changed = ("effects", [*row[1], Tell("forged")])
        forged.append(framed(changed))
    difference = played(MAGIC + b"".join(forged)).difference
    assert difference is not None
    assert (difference.turn, difference.replayed) == (3, "nothing")


class Acting:
    """A pickle that acts when it is read."""

    def __init__(self, call: Any, *args: Any) -> None:
        self.call, self.args = call, args

    def __reduce__(self) -> Any:
        return self.call, self.args


NOT_OURS = {
    "a command": pickle.dumps(Acting(os.system, "true")),
    "a function of Weft": pickle.dumps(Acting(free_blocks, 1, 1)),
    "a function of something of Weft": pickle.dumps(Acting(getattr, Tell, "__init__")),
    "no member of an Enum": pickle.dumps(("tell", Acting(getattr, Stream, "mro"))),
    "through a module of Weft": b"cweft.shell.process\nos.system\n(S'true'\ntR.",
    "no row": pickle.dumps([1]),
    "a call of another name": pickle.dumps(("end", "now")),
    "no pickle": b"\xff\xff",
}


@pytest.mark.parametrize("what", NOT_OURS)
def test_a_recording_runs_no_code(what: str) -> None:
    body = NOT_OURS[what]
    with pytest.raises(UserError) as refused:
        played(MAGIC + len(body).to_bytes(4, "big") + body)
    assert refused.value.code == "no-recording"


def test_members_of_enums_are_read_as_python_before_3_11_4_writes_them() -> None:
    row = pickle.dumps(("tell", Acting(getattr, Stream, "SAMPLES")))
    assert [("tell", Stream.SAMPLES)] == list(rows(io.BytesIO(MAGIC + len(row).to_bytes(4, "big") + row)))


def test_a_recording_that_finds_no_more_room_ends_and_the_node_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tape, "TAPE_BYTES_MAX", 20)
    kept = Tape(tmp_path / "x.rec")
    kept.write(bytes(10))
    assert kept.ended == ""
    kept.write(bytes(10))
    assert (tmp_path / "x.rec").stat().st_size == 18
    assert kept.ended == "it has 0 GiB"
    with pytest.raises(UserError):
        Tape(tmp_path)
