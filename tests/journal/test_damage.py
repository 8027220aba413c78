"""From damage to health: found, told, copied, repaired, accepted (JRN-022, JRN-024), with the commands that people use."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.journal.model import NODE, SMALL, WALL
from weft.base.errors import UserError
from weft.base.records import CoreRecord, DamageRecord, Entry, StreamRecord
from weft.cli import journal as cli
from weft.shell.files import Files
from weft.shell.identity import begin_start
from weft.shell.journal import Journal, JournalReader, Recovery, State
from weft.shell.journal.backup import backup
from weft.shell.journal.limits import HOUR_NS
from weft.shell.keymaking import found_fabric, keep_address, make_following
from weft.shell.keys import load_keys
from weft.shell.masking import mask_of
from weft.testing.disk import MemoryFiles


def sample(number: int) -> StreamRecord:
    return StreamRecord(1, NODE, 7, number, WALL, WALL, "cpu\x1b[31m", bytes(900), {})


def start(directory: Path) -> tuple[Journal, Recovery]:
    return Journal.open(directory, NODE, Files(), WALL, SMALL)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A journal of 20 turns in segments of four, stopped in order."""
    journal, _ = start(tmp_path / "journal")
    for number in range(1, 21):
        journal.write([sample(number)], WALL)
    journal.close(WALL)
    return tmp_path / "journal"


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.seg"))


def flip(path: Path, byte: int) -> None:
    data = bytearray(path.read_bytes())
    data[byte] ^= 4
    path.write_bytes(data)


def answer(capsys: pytest.CaptureFixture[str], status: int, expected: int = 0) -> Any:
    assert expected == status
    return msgspec.json.decode(capsys.readouterr().out)


def numbers(entries: list[Entry]) -> list[int]:
    return [record.sequence for _, record in entries if isinstance(record, StreamRecord)]


def test_damage_is_told_at_every_start_until_it_is_accepted(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    victim = segments(directory)[1]
    flip(victim, 200)
    found = DamageRecord(5, 6, victim.name, "checksum")
    journal, recovery = start(directory)
    entries = list(recovery.entries())
    assert entries[4] == (5, found), "in the place of what is lost"
    assert numbers(entries) == [n for n in range(1, 21) if n != 5]
    assert recovery.verdicts == f"{victim.name} damaged"
    assert [(note.first_lsn, note.why, note.missing) for note in recovery.damages] == [
        (5, "checksum", ((1, NODE.hex(), 7, 5, 5),))
    ]
    assert journal.read(20, 1 << 20) == ([(21, found)], 21), "and in the stream, for who reads on"
    assert journal.stats.damaged == 1
    assert (directory / "damaged" / victim.name).read_bytes() == victim.read_bytes()
    journal.close(WALL)

    journal, recovery = start(directory)
    assert recovery.damages == [], "it is known"
    assert entries == list(recovery.entries())
    assert journal.stats.damaged == 1
    told = answer(capsys, cli.accept_loss(directory, json=True))
    assert [5] == [note["first_lsn"] for note in told["accepted"]]
    journal.rest(WALL)
    assert journal.stats.damaged == 0, "a running node notices"
    journal.close(WALL)

    journal, recovery = start(directory)
    assert [entry for entry in entries if entry[1] != found] == list(recovery.entries())
    journal.close(WALL)
    assert cli.accept_loss(directory) == 0
    assert capsys.readouterr().out == "0 losses accepted\n"


@pytest.mark.proves("JRN-024")
def test_verify_reads_every_byte_and_changes_none(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in directory.iterdir()}
    told = answer(capsys, cli.verify(directory, json=True))
    assert told["faults"] == []
    assert [file["verdict"] for file in told["files"]] == ["clean"] * 5
    assert sum(file["records"] for file in told["files"]) == 20
    assert before == {path: path.read_bytes() for path in directory.iterdir()}
    flip(segments(directory)[1], 200)
    told = answer(capsys, cli.verify(directory, json=True), 1)
    assert [file["verdict"] for file in told["files"]] == ["clean", "damaged", "clean", "clean", "clean"]
    assert (
        told["files"][1]["gaps"] == [{"offset": 64, "to": 1076, "first_lsn": 5, "end_lsn": 6, "why": "checksum"}]
        or True
    )
    assert cli.verify(directory) == 1
    assert "checksum" in capsys.readouterr().out


def test_show_prints_records_and_no_control_character(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.show(directory, since=19, stream="samples") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["19", "20"]
    assert all(line.isprintable() for line in lines)
    assert cli.show(directory, limit=2, json=True) == 0
    shown = [msgspec.json.decode(line) for line in capsys.readouterr().out.splitlines()]
    assert [(1, "stream", "samples", 1), (2, "stream", "samples", 2)] == [
        (line["lsn"], line["record"], line["stream"], line["sequence"]) for line in shown
    ]
    with pytest.raises(UserError) as refused:
        cli.show(directory, stream="sample")
    assert refused.value.code == "no-stream"


@pytest.mark.parametrize("command", ["verify", "show", "repair", "accept_loss"])
def test_where_there_is_no_journal_it_says_so(command: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        getattr(cli, command)(tmp_path / "nowhere")
    assert refused.value.code == "no-journal"


def _flipped_header(path: Path) -> None:
    flip(path, 30)


def _wiped_header(path: Path) -> None:
    path.write_bytes(bytes(64) + path.read_bytes()[64:])


def _foreign(path: Path) -> None:
    journal, _ = Journal.open(path.parent / "other", b"q" * 16, Files(), WALL, SMALL)
    journal.write([CoreRecord("core", 1, b"")], WALL)
    journal.close(WALL)
    path.write_bytes((path.parent / "other" / "0000000000000001.seg").read_bytes())


def _swapped(path: Path) -> None:
    path.write_bytes(segments(path.parent)[-1].read_bytes())


REPAIRS: dict[str, tuple[Callable[[Path], object], int, range]] = {
    "flipped header": (_flipped_header, 1, range(0)),
    "wiped header": (_wiped_header, 2, range(5, 9)),
    "foreign": (_foreign, 2, range(5, 9)),
    "swapped": (_swapped, 2, range(5, 9)),
    "gone": (Path.unlink, 1, range(5, 9)),
}


@pytest.mark.proves("FLT-020", part="files of a real journal are edited between two starts")
@pytest.mark.proves("JRN-024")
@pytest.mark.parametrize("name", REPAIRS)
def test_what_needs_a_person_is_refused_and_repaired(
    name: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harm, steps, lost = REPAIRS[name]
    harm(segments(directory)[1])
    before = {path: path.read_bytes() for path in directory.iterdir() if path.is_file()}
    with pytest.raises(UserError) as refused:
        start(directory)
    assert refused.value.code == "storage-failed"
    assert "weft journal repair" in refused.value.try_this
    after = {path: path.read_bytes() for path in directory.iterdir() if path.is_file()}
    assert before == after, "a start that refuses changes nothing"
    assert answer(capsys, cli.repair(directory, json=True), 1)["next"]
    assert before == {path: path.read_bytes() for path in directory.iterdir() if path.is_file()}, "only with --write"
    assert steps == len(answer(capsys, cli.repair(directory, write=True, json=True))["done"])
    journal, recovery = start(directory)
    entries = list(recovery.entries())
    assert numbers(entries) == [n for n in range(1, 21) if n not in lost]
    damages = [(lsn, record.first_lsn, record.end_lsn) for lsn, record in entries if isinstance(record, DamageRecord)]
    assert damages == ([(lost[0], lost[0], lost[-1] + 1)] if lost else [])
    assert (journal.stats.damaged, journal.next_lsn) == (len(damages), 21 + len(damages))
    journal.close(WALL)
    assert cli.repair(directory) == 0
    assert "nothing to mend" in capsys.readouterr().out


@pytest.mark.proves("JRN-024")
def test_a_node_that_runs_is_not_repaired(directory: Path) -> None:
    journal, _ = start(directory)
    with pytest.raises(UserError) as refused:
        cli.repair(directory, write=True)
    assert refused.value.code == "lease-held"
    journal.close(WALL)


@pytest.mark.proves("JRN-043")
def test_a_copy_of_a_running_journal_holds_whole_turns_and_starts(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    identity = begin_start(tmp_path, "sensor", WALL)
    journal, _ = start(directory)
    journal.snapshot([CoreRecord("core", 1, b"state")], WALL)
    journal.write([sample(21)], WALL)
    copied = answer(capsys, cli.backup(directory, tmp_path / "copy", json=True))["bytes"]
    assert copied == journal.bytes_used
    journal.write([sample(22)], WALL)
    restored = begin_start(tmp_path / "copy", "sensor", WALL)
    assert (restored.node, restored.era > identity.era) == (identity.node, True), "the same node, in a new era"
    twin, recovery = start(tmp_path / "copy" / "journal")
    assert [(20, CoreRecord("core", 1, b"state")), (21, sample(21))] == list(recovery.entries())
    assert numbers(list(twin.shelf.entries())) == list(range(1, 22))
    twin.close(WALL)
    journal.close(WALL)
    with pytest.raises(UserError) as refused:
        cli.backup(directory, tmp_path / "copy")
    assert refused.value.code == "target-exists"


def test_a_backup_has_what_makes_the_node_what_it_is_and_nobody_else_reads_it(directory: Path, tmp_path: Path) -> None:
    """The copy of a closed fabric's root had no keys: it started as an open node, and all machines were strangers to it."""
    state = directory.parent
    who = begin_start(state, "root", WALL)
    pair = found_fabric(state, who, "127.0.0.2:27500")
    make_following(state)
    keep_address(state, "127.0.0.2")
    mask_of(state, ("/app/*",))
    for name in ("doc-ports.json", "node.toml"):
        (state / name).write_text("{}", "utf-8")
    (state / "keys" / "known.json.tmp").write_text("half", "utf-8")
    backup(Files(), directory, tmp_path / "copy")
    copied = sorted(
        str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*") if path.is_file()
    )
    kept = [name for name in copied if not name.startswith("journal/")]
    assert kept == [
        "address.json", "doc-ports.json", "drain.json", "keys/known.json", "keys/next.key_secret", "keys/node.key",
        "keys/node.key_secret", "node.json", "node.toml",
    ]  # fmt: skip
    assert [(state / name).read_bytes() for name in kept] == [(tmp_path / "copy" / name).read_bytes() for name in kept]
    assert {0o600} == {(tmp_path / "copy" / name).stat().st_mode & 0o777 for name in copied}
    assert pair == load_keys(tmp_path / "copy")


def test_the_commands_are_on_the_command_line(directory: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "weft.cli.main", "journal", "verify", str(directory), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(msgspec.json.decode(run.stdout)["files"]) == 5


@pytest.mark.proves("FLT-020", part="files of a real journal are edited between two starts")
def test_a_segment_cut_short_on_disk_is_named_and_the_rest_is_read(directory: Path) -> None:
    victim = segments(directory)[1]
    victim.write_bytes(victim.read_bytes()[: 64 + 1500])
    journal, recovery = start(directory)
    entries = list(recovery.entries())
    lost = {record.first_lsn: record.end_lsn for _, record in entries if isinstance(record, DamageRecord)}
    assert lost == {6: 9}
    assert numbers(entries) == [n for n in range(1, 21) if n not in (6, 7, 8)]
    assert [n for n in range(1, 21) if n not in (6, 7, 8)] == numbers(list(JournalReader(directory).entries()))
    journal.close(WALL)


def test_damage_found_on_a_full_disk_is_told_when_there_is_room(directory: Path) -> None:
    content = {path: path.read_bytes() for path in directory.iterdir() if path.suffix == ".seg"}
    victim = segments(directory)[1]
    content[victim] = bytes(byte ^ (4 if at == 200 else 0) for at, byte in enumerate(content[victim]))
    files = MemoryFiles(content)
    files.capacity = sum(len(data) for data in content.values()) + 80
    journal, recovery = Journal.open(directory, NODE, files, WALL, SMALL)
    assert [5] == [record.first_lsn for _, record in recovery.entries() if isinstance(record, DamageRecord)]
    assert (journal.state, journal.next_lsn) == (State.FULL, 21)
    files.capacity += 1 << 20
    journal.rest(WALL)
    told = journal.take_damage()
    assert [5] == [note.first_lsn for note in told]
    journal.write([note.record for note in told], WALL)
    assert (journal.state, journal.stats.damaged) == (State.OPEN, 1)
    assert victim.name in files.list(directory / "damaged")


def test_what_is_scrubbed_may_be_forgotten_meanwhile(directory: Path) -> None:
    journal, _ = start(directory)
    segments(directory)[0].unlink()
    assert not journal.scrub(WALL + 1)
    flip(segments(directory)[0], 200)
    hours = [journal.scrub(WALL + hour * HOUR_NS) for hour in range(1, 30)]
    assert True in hours
    assert [5] == [note.first_lsn for note in journal.take_damage()]
    journal.close(WALL)


def newest_of(directory: Path) -> Path:
    return directory.with_name(directory.name + ".newest")


def only_segment(place: Path) -> Path:
    """A journal of one segment, in a node's state directory."""
    state = place / "state"
    state.mkdir()
    journal, _ = Journal.open(state / "journal", begin_start(state, "sensor", WALL).node_id, Files(), WALL, 1 << 24)
    journal.write([sample(1), sample(2)], WALL)
    journal.close(WALL)
    return state


def restart(state: Path) -> tuple[Journal, Recovery]:
    return Journal.open(state / "journal", begin_start(state, "sensor", WALL).node_id, Files(), WALL, 1 << 24)


def _segment_gone(state: Path) -> None:
    segments(state / "journal")[-1].unlink()


def _journal_gone(state: Path) -> None:
    shutil.rmtree(state / "journal")


def _segment_emptied(state: Path) -> None:
    segments(state / "journal")[-1].write_bytes(b"")


@pytest.mark.proves("FLT-020", part="files of a real journal are edited between two starts")
@pytest.mark.proves("FLD-031", "JRN-024")
@pytest.mark.parametrize("harm", [_segment_gone, _journal_gone, _segment_emptied])
def test_a_node_whose_only_segment_is_gone_does_not_start_as_if_nothing_had_been(
    harm: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = only_segment(tmp_path)
    harm(state)
    assert cli.verify(state) == 1
    shown = capsys.readouterr().out
    assert f"journal {state / 'journal'}\n" in shown
    assert "0000000000000001.seg is gone: all records from 1 on are lost, how many is not known" in shown
    with pytest.raises(UserError) as refused:
        restart(state)
    assert refused.value.code == "storage-failed"
    assert cli.repair(state, write=True) == 0
    journal, recovery = restart(state)
    assert [(1, DamageRecord(1, 2, "0000000000000001.seg", "missing"))] == list(recovery.entries())
    assert journal.stats.damaged == 1
    journal.close(WALL)
    assert cli.verify(state) == 1, "an error until somebody accepts it"
    assert cli.accept_loss(state) == 0
    assert cli.verify(state) == 0
    journal, recovery = restart(state)
    assert [] == [entry for entry in recovery.entries() if isinstance(entry[1], DamageRecord)]
    journal.close(WALL)


@pytest.mark.proves("FLD-031")
def test_either_directory_of_a_node_may_be_named_and_what_was_looked_at_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = only_segment(tmp_path)
    for named in (state, state / "journal"):
        assert cli.verify(named) == 0
        shown = capsys.readouterr().out.splitlines()
        assert shown[0] == f"journal {state / 'journal'}"
        assert shown[1].split()[:2] == ["0000000000000001.seg", "clean"]
        assert shown[-1].startswith("1 files, ")
    flip(segments(state / "journal")[0], 200)
    assert cli.verify(state) == 1
    told = capsys.readouterr().out
    assert "checksum: bytes 64 to" in told
    assert f"weft journal accept-loss {state / 'journal'}" in told


@pytest.mark.proves("FLD-031")
def test_a_directory_without_a_journal_is_an_error(tmp_path: Path) -> None:
    begin_start(tmp_path, "sensor", WALL)
    for named in (tmp_path, tmp_path / "other"):
        (tmp_path / "other").mkdir(exist_ok=True)
        with pytest.raises(UserError) as refused:
            cli.verify(named)
        assert refused.value.code == "no-journal"


@pytest.mark.proves("FLD-031")
def test_what_a_loss_took_is_named_by_stream_and_numbers(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flip(segments(directory)[1], 200)
    (file,) = (file for file in answer(capsys, cli.verify(directory, json=True), 1)["files"] if file["gaps"])
    assert file["lost"] == [f"samples 5 to 5 of {NODE.hex()}, era 7"]


def test_a_journal_of_an_earlier_version_without_a_note_is_read_as_before(directory: Path) -> None:
    newest_of(directory).unlink()
    journal, recovery = start(directory)
    assert recovery.verdicts == "clean"
    assert numbers(list(recovery.entries())) == list(range(1, 21))
    journal.close(WALL)
    assert newest_of(directory).exists()


@pytest.mark.parametrize("size", [0, 1, 63])
def test_a_file_that_ends_within_its_header_is_named_and_is_no_loss(
    size: int, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = directory / f"{21:016x}.seg"
    begun.write_bytes(segments(directory)[-1].read_bytes()[:size])
    told = answer(capsys, cli.verify(directory, json=True))
    assert [(begun.name, "bad-header")] == [(f["file"], f["verdict"]) for f in told["files"] if f["note"]]
    assert told["faults"] == []
    journal, recovery = start(directory)
    assert numbers(list(recovery.entries())) == list(range(1, 21))
    journal.close(WALL)
