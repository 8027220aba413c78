"""Planted bugs: each must be caught by the very check that guards against it, and by nothing but luck otherwise.

The checks are those of `test_crash`, `test_faults` and `test_rot`; here one line of the journal is replaced, and they
have to turn red.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.journal.test_crash import check_image, images
from tests.journal.test_faults import CALLS, check_life, life
from tests.journal.test_rot import CLEAN, SEGMENTS, check_flip
from weft.base.errors import WeftError
from weft.shell.files import File, Files
from weft.shell.journal import Journal, StorageFull, recovery, snapshots, writer
from weft.shell.journal.segment import Segment
from weft.testing.disk import Fault, RecordingFiles
from weft.wire import segments
from weft.wire.segments import encode_seal

CAUGHT = (AssertionError, WeftError)


def _power_cuts(lives: int = 12, per_life: int = 60) -> None:
    for number in range(lives):
        for image in images(f"planted-{number}", 120, per_life):
            check_image(image)


def _faults(fault: Fault) -> Callable[[], None]:
    def sweep() -> None:
        for at in range(CALLS):
            driver = life("faults", at, fault)[0]
            check_life(driver, f"{fault.name}-{at}", 4)

    return sweep


def _flips() -> None:
    path = SEGMENTS[0]
    for byte in range(64, len(CLEAN[path]), 97):
        check_flip(path, byte, 3)


def _nothing(*_: Any) -> None:
    """Does not do what it is called for."""


def _repeat_sync(self: writer.Writer, file: File) -> None:
    try:
        self._files.sync(file)
    except OSError:
        self._files.sync(file)


def _answer_ok(self: Journal, records: Any, wall_ns: int) -> int:
    try:
        return WRITE(self, records, wall_ns)
    except StorageFull:
        return self.next_lsn


def _trust_page_cache(files: Files, last: Segment) -> None:
    file = files.open(last.path, is_writable=True)
    if last.size > last.end.offset:
        files.truncate(file, last.end.offset)
        last.size = last.end.offset
    files.sync(file)
    files.close(file)


def _rename_before_sync(self: snapshots.SnapshotWriter) -> Segment | None:
    self._write()
    seal, _ = encode_seal(self._contents, self._lsn, self._chain, self._header.salt)
    self._append(seal)
    assert self._file is not None
    self._files.rename(self._partial, self._path)
    self._files.sync_directory(self._path.parent)
    self._files.sync(self._file)
    self._close()
    snapshot = Segment.load(self._files, self._path, self._header.node)
    return snapshot if snapshot.is_complete(self._files) else None


def _unsynced_second_half(self: Journal, records: Any, wall_ns: int) -> int:
    if len(records) < 2:
        return WRITE(self, records, wall_ns)
    first = WRITE(self, records[:1], wall_ns)
    sync = writer.Writer._sync
    writer.Writer._sync = _nothing  # type: ignore[assignment, method-assign]  # the bug is planted here
    try:
        WRITE(self, records[1:], wall_ns)
    finally:
        writer.Writer._sync = sync  # type: ignore[method-assign]  # and taken out again
    return first


def _stop_at_damage(self: Any) -> bool:
    self.is_torn = self.is_last
    self.gaps.append(segments.Gap(self.at, len(self.data), self.lsn, None, "checksum"))
    return False


def _forget_released(self: Journal, segment: Segment, following: Segment) -> bool:
    return segment.last_lsn <= self.released < following.first_lsn + self.durable_lsn


WRITE = Journal.write

BUGS = {
    "the directory is not synced": (RecordingFiles, "sync_directory", _nothing, _power_cuts),
    "nothing is synced": (RecordingFiles, "sync", _nothing, _power_cuts),
    "the second batch of a turn is not synced": (Journal, "write", _unsynced_second_half, _power_cuts),
    "renamed before it is synced": (snapshots.SnapshotWriter, "finish", _rename_before_sync, _power_cuts),
    "the tail is not cut and synced at a start": (recovery, "_make_durable", _nothing, _power_cuts),
    "the page cache is trusted at a start": (recovery, "_make_durable", _trust_page_cache, _faults(Fault.BROKEN)),
    "a failed sync is repeated": (writer.Writer, "_sync", _repeat_sync, _faults(Fault.BROKEN)),
    "a short write is left": (writer.Writer, "_cut_back", _nothing, _faults(Fault.SHORT)),
    "a full disk is answered with ok": (Journal, "write", _answer_ok, _faults(Fault.NO_ROOM)),
    "a segment goes before a snapshot covers it": (Journal, "_may_forget", _forget_released, _power_cuts),
    "reading stops at damage": (segments._Judge, "_leap", _stop_at_damage, _flips),
}


@pytest.mark.prove("the same lives as with each bug")
def test_without_a_bug_the_same_checks_find_nothing() -> None:
    _power_cuts(lives=4)
    _flips()


@pytest.mark.prove("a life for each bug")
@pytest.mark.proves("JRN-003", "JRN-005", "JRN-012", "JRN-041")
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, bug, check = BUGS[name]
    monkeypatch.setattr(owner, attribute, bug)
    with pytest.raises(CAUGHT):
        check()
