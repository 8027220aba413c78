"""What a node measures of itself all the time, and what it remembers for whoever looks for a fault."""

import json
from pathlib import Path

import pytest

from tests.shell.world import World
from weft.base.effects import Source, Tell
from weft.base.histograms import Histogram
from weft.cores.measurement.messages import BatchTaken
from weft.node.channels import ENROL
from weft.node.events import NodeStarted
from weft.node.node import Transmit
from weft.shell.flight import Flight
from weft.shell.metrics import exposition
from weft.shell.process import Process
from weft.shell.timing import Timings
from weft.wire.enrolment import Welcome, encode_answer
from weft.wire.samples import SampleBatch


def test_an_observation_is_counted_in_every_bucket_that_is_large_enough() -> None:
    histogram = Histogram((1, 10, 100))
    for value in (1, 2, 10, 11, 5_000):
        histogram.observe(value)
    assert histogram.facts() == {"count": 5, "sum": 5_024, "buckets": [[1, 1], [10, 3], [100, 4]]}


def test_what_is_written_is_measured_until_nobody_needs_it() -> None:
    timings = Timings()
    timings.wrote(3, next_lsn=4, mono_ns=0)
    timings.wrote(3, next_lsn=7, mono_ns=50_000_000)  # within a tenth of a second of the mark before: not watched
    timings.released(2, mono_ns=60_000_000)
    assert timings.safe_seconds.facts()["count"] == 0
    timings.released(7, mono_ns=250_000_000)
    facts = timings.safe_seconds.facts()
    assert (facts["count"], facts["sum"]) == (1, 0.25)
    assert timings.turn_records.facts()["sum"] == 6


def test_the_recorder_forgets_the_oldest_beyond_its_count_and_its_bytes() -> None:
    flight = Flight()
    for number in range(5_000):
        flight.heard(number, Source("up", b"p"), [b"x"])
    assert (len(flight.notes), flight.notes[0].mono_ns) == (4_096, 904)
    for number in range(10):
        flight.heard(10_000 + number, Source("up", b"p"), [bytes(1 << 20)])
    assert sum(len(frame) for note in flight.notes for frame in note.frames) <= 4 << 20
    for number in range(5_000):
        flight.did(20_000 + number, Transmit("up", b"p", [bytes(500), bytes(525)]))
    kept = [sum(map(len, note.frames)) for note in flight.notes]
    assert (4_096, 256, 256) == (len(kept), min(kept), max(kept))


@pytest.mark.proves("SEC-047", part="what lets a machine in stands in no dump, and on no page")
def test_a_welcome_is_noted_without_what_it_says() -> None:
    """Whoever read the page of a root in whose fabric a machine had joined could forge beacons."""
    secret = "5ec2e7" * 10 + "ab12"
    welcome = Welcome("lab", ("sensor",), "s1", ("10.0.0.1:27500",), {}, "0a" * 16, secret)
    frames = encode_answer(welcome)
    flight = Flight()
    flight.did(1, Transmit(ENROL, b"p", frames))
    flight.did(2, Transmit(ENROL, b"p", [*frames, bytes(5_000)]))
    flight.did(3, Transmit("down", b"p", [b"seen"]))
    said = "".join(flight.lines())
    assert b"seen".hex() in said
    for form in (secret, secret[:32], secret.encode().hex()[:32], bytes.fromhex(secret).hex()):
        assert form not in said


def test_a_dump_says_what_was_written() -> None:
    flight = Flight()
    flight.wrote(2_000_000_000, 3, next_lsn=7)
    assert [{"at": 2.0, "what": "wrote", "where": "journal", "said": "3 records before 7"}] == [
        json.loads(line) for line in flight.lines()
    ]


def test_what_cores_tell_one_another_is_not_kept_alive() -> None:
    """A thousand batches of a thousand rows would be memory that nobody counts; of what is logged the whole is kept."""
    flight = Flight()
    flight.did(1, Tell(BatchTaken(SampleBatch(0, (), []))))
    flight.did(2, Tell(NodeStarted("n1", "root", "1.0", "clean")))
    told = [note.detail for note in flight.notes]
    assert told == ["BatchTaken", NodeStarted("n1", "root", "1.0", "clean")]


def test_frames_are_cut_in_a_dump_and_its_file_is_private(tmp_path: Path) -> None:
    flight = Flight()
    flight.heard(1_500_000_000, Source("up", b"\x01p"), [bytes(1_000)] * 20)
    path = [flight.dump(tmp_path, "asked", number) for number in range(10)][-1]
    (line,) = map(json.loads, path.read_text("utf-8").splitlines())
    assert (line["at"], line["what"], line["where"], line["peer"]) == (1.5, "heard", "up", "0170")
    assert (line["count"], len(line["frames"]), len(line["frames"][0])) == (20, 8, 256)
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in (tmp_path / "flight").iterdir()) == [f"{n}-asked.jsonl" for n in range(2, 10)]


def test_a_node_that_works_measures_its_turns(tmp_path: Path) -> None:
    """Turns, syncs, sizes of batches, the lag of the loop, and how long until what was made is safe at the root."""
    world = World(tmp_path)
    hosts = [world.host("root", "root"), world.host("sensor", "sensor", "root")]
    shown: list[dict[str, float]] = []

    async def play() -> None:
        for host in hosts:
            host.start()
        await world.pass_time(3)
        for _ in range(5):
            hosts[1].take(20)
            await world.pass_time(1)
        telemetry = hosts[1].up.telemetry
        shown.append({name: facts["count"] for name, facts in telemetry.status()["timings"].items()})
        text = exposition(telemetry.status()).decode()
        assert 'weft_journal_sync_seconds_bucket{le="+Inf"}' in text
        assert "weft_node_open_files " in text
        assert 'weft_build_info{python="' in text

    world.run(play())
    assert [name for name, count in shown[0].items() if not count] == []


def test_a_fault_leaves_what_the_node_did_behind(tmp_path: Path) -> None:
    world = World(tmp_path)
    host = world.host("root", "root")

    async def play() -> None:
        host.start()
        await world.pass_time(2)
        process: Process = host.up
        process.state.mkdir(exist_ok=True)
        process._ended(RuntimeError("planted"))
        (path,) = (process.state / "flight").glob("*-RuntimeError.jsonl")
        notes = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        assert {"ordered", "wrote", "told"} <= {note["what"] for note in notes}

    world.run(play())
