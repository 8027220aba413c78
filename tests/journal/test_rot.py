"""Bits that turn on a resting disk: never silent, and nothing behind them is lost (JRN-022)."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.journal.model import (
    DIRECTORY,
    STATE,
    WALL,
    all_entries,
    reopen,
    stop,
    turn_records,
)
from weft.base.chance import Chance
from weft.base.errors import UserError
from weft.base.records import CoreRecord, DamageRecord, Entry
from weft.shell.journal.segment import Segment
from weft.testing.disk import MemoryFiles
from weft.wire.journal import HEAD_BYTES
from weft.wire.segments import HEADER_BYTES, Header, Place, close_batch, decode_header, padded, read_head

TURNS = 60


def _written(turns: int = TURNS) -> dict[Path, bytes]:
    """What a node that was stopped in order leaves."""
    files = MemoryFiles()
    files.directories.add(STATE)
    journal, _, _ = reopen(files)
    chance = Chance("rot")
    for turn in range(1, turns + 1):
        journal.write(turn_records(turn, chance), WALL)
    journal.close(WALL)
    return files.content()


CLEAN = _written()
SEGMENTS = sorted(path for path in CLEAN if path.suffix == ".seg")
PLACES = [(path, byte) for path in SEGMENTS for byte in range(len(CLEAN[path]))]


def _turns(entries: list[Entry]) -> list[int]:
    return [int.from_bytes(record.data[:8], "big") for _, record in entries if isinstance(record, CoreRecord)]


def _recovered(content: dict[Path, bytes]) -> tuple[MemoryFiles, list[Entry], list[DamageRecord]]:
    files = MemoryFiles(content)
    journal, _, found = reopen(files)
    read = list(all_entries(journal))
    assert _readable(list(found.entries)) == _readable(read)
    stop(journal)
    return files, list(found.entries), list(found.damages)


@pytest.mark.proves("JRN-013", "JRN-020", "JRN-024")
@given(st.sampled_from(PLACES), st.integers(0, 7))
def test_one_flipped_bit_is_found_and_nothing_behind_it_is_lost(place: tuple[Path, int], bit: int) -> None:
    check_flip(*place, bit)


def check_flip(path: Path, byte: int, bit: int) -> None:
    """What one bit may cost: a start that refuses, or one turn that is named."""
    flipped = bytearray(CLEAN[path])
    flipped[byte] ^= 1 << bit
    content = {**CLEAN, path: bytes(flipped)}
    if byte < HEADER_BYTES:
        with pytest.raises(UserError) as refused:
            _recovered(content)
        assert refused.value.code == "storage-failed"
        assert path.name in refused.value.text
        return
    files, entries, damages = _recovered(content)
    missing = set(range(1, TURNS + 1)) - set(_turns(entries))
    if path == SEGMENTS[-1] and byte >= len(flipped) - HEAD_BYTES:
        assert (damages, missing) == ([], set()), "the mark at the very end holds nothing, and may pass for a torn tail"
        return
    assert len(missing) <= 1, "one bit costs one turn"
    assert len(damages) == 1 or (damages == [] and missing == set())
    assert len(files.list(DIRECTORY / "damaged")) == 2, "a copy of the file, and a note"
    _, again, _ = _recovered(files.content())
    assert _readable(entries) == _readable(again), "recovered twice is recovered once"


def _readable(entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if not isinstance(entry[1], DamageRecord)]


def _replaced(data: bytes, header: Header) -> bytes:
    """The second batch as another one of the same size and numbers, sound in itself."""
    found = bytearray(data)
    first = read_head(data, HEADER_BYTES, header.salt)
    assert first is not None
    second = read_head(data, padded(first.end), header.salt)
    assert second is not None
    batch = bytearray(data[second.offset : second.end].replace(bytes(7) + b"\x02", bytes(7) + b"\x63"))
    close_batch(batch, Place(second.lsn, second.records, second.prev), header.salt)
    found[second.offset : second.offset + len(batch)] = batch
    return bytes(found)


@pytest.mark.proves("JRN-022")
def test_a_sound_batch_in_the_place_of_another_is_found() -> None:
    """Its own checksum is right; the head behind it names another one."""
    path = SEGMENTS[0]
    header = decode_header(CLEAN[path][:HEADER_BYTES])
    good, bad = MemoryFiles(CLEAN), MemoryFiles({**CLEAN, path: _replaced(CLEAN[path], header)})
    assert [True, False] == [Segment.load(files, path, header.node).is_complete(files) for files in (good, bad)]
    judged = Segment.load(bad, path, header.node).inspect(bad, is_last=False)
    assert [("chain", 13, 13)] == [(gap.why, gap.first_lsn, gap.end_lsn) for gap in judged.gaps]
