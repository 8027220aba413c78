"""Recovers a journal at a start: survey, judge, cut, sync, and only then return records (JRN-020..025).

The order matters. First everything is read and nothing is changed: a journal with a missing or foreign file is left
exactly as it is, for a person to examine. Then the torn tail is cut off, and the last batch is written again in its
place and synced. Without that, records which only stood in the page cache of a killed process, or were dropped by a
failed sync, could be acted on and be lost later (JRN-004). Each step leaves a directory that the next recovery judges
in the same way, so a crash during recovery changes nothing (JRN-025).
"""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from weft.base.errors import UserError
from weft.base.records import DamageRecord, Entry
from weft.shell.files import Files, read_whole, remove
from weft.shell.journal.damage import DamageLog, DamageNote, Identity, identity_of
from weft.shell.journal.segment import SEGMENT_SUFFIX, Segment
from weft.shell.journal.survey import Survey
from weft.shell.journal.witness import set_back
from weft.wire.segments import Judgement, Verdict


class Note(NamedTuple):
    """The verdict on one file."""

    file: str
    verdict: Verdict
    cut_at: int = 0
    cut_bytes: int = 0
    """Bytes of a torn tail that were cut off; no acknowledged turn was among them."""

    def __str__(self) -> str:
        if self.verdict is Verdict.TORN and self.cut_bytes:
            return f"{self.file} torn, cut by {self.cut_bytes} bytes to {self.cut_at}"
        return f"{self.file} {self.verdict.value}"


class Recovery:
    """The result of a recovery, from which the cores are restored."""

    def __init__(self, files: Files, survey: Survey, snapshot: Segment | None, damage: DamageLog) -> None:
        self._files = files
        self.damage = damage
        self.survey = survey
        self.snapshot = snapshot
        self.replay_from = snapshot.first_lsn if snapshot else 1
        """The first lsn that the snapshot does not cover."""
        self.next_lsn = self.replay_from
        self.notes: list[Note] = []
        self.damages: list[DamageNote] = []
        """Damage that this start has found for the first time."""

    @property
    def verdicts(self) -> str:
        """One line for a person: `clean`, or every other verdict."""
        unclean = [str(note) for note in self.notes if note.verdict is not Verdict.CLEAN]
        return "; ".join(unclean) or Verdict.CLEAN.value

    @property
    def replayed(self) -> list[Segment]:
        """The segments with records that the snapshot does not cover."""
        return [segment for segment in self.survey.segments if segment.end.lsn > self.replay_from]

    def entries(self) -> Iterator[Entry]:
        """The records of the snapshot, each with the last lsn that it covers; then all later ones up to this start.

        A `DamageRecord` stands in place of records that cannot be read, until that loss is accepted (JRN-022). The
        record that reported the same loss later in the journal is then left out.
        """
        if self.snapshot is not None:
            for _, record in self.snapshot.entries(self._files):
                yield self.replay_from - 1, record
        reported: set[Identity] = set()
        for segment in self.replayed:
            for entry in segment.entries(self._files, self.replay_from):
                if not isinstance(entry[1], DamageRecord):
                    yield entry
                elif (identity := identity_of(entry[1])) not in reported | self.damage.accepted:
                    reported.add(identity)
                    yield entry


def recover(files: Files, directory: Path, node: bytes) -> Recovery:
    """Judge, cut and sync the files of a journal; UserError `storage-failed` if a person has to decide.

    May raise OSError. New damage is found but not recorded yet: that needs a journal to write to.
    """
    survey = Survey(files, directory, node)
    survey.settle()
    snapshot = survey.snapshot()
    damage = DamageLog(files, directory)
    recovery = Recovery(files, survey, snapshot, damage)
    recovery.notes += [Note(path.name, Verdict.DAMAGED) for path in survey.ignored]
    recovery.notes += [
        Note(path.name, Verdict.TORN, 0, len(read_whole(files, path)))
        for path in survey.unfinished
        if path.suffix == SEGMENT_SUFFIX
    ]
    _judge(survey, recovery)
    survey.join()
    survey.follow(snapshot)
    if survey.faults:
        raise refusal(directory, survey)
    if survey.segments:
        _make_durable(files, survey.segments[-1])
        recovery.next_lsn = survey.segments[-1].end.lsn
    _sweep(files, survey)
    files.sync_directory(directory)
    recovery.damages = [note for segment in survey.segments for note in damage.new(segment)]
    return recovery


def refusal(directory: Path, survey: Survey) -> UserError:
    """Why a start is refused, and the commands that show and repair it (JRN-024)."""
    listed = "\n  ".join(str(fault) for fault in survey.faults)
    return UserError(
        "storage-failed",
        f"the journal in {directory} cannot be used:\n  {listed}",
        f"weft journal verify {directory}, then weft journal repair {directory} --write",
    )


def _judge(survey: Survey, recovery: Recovery) -> None:
    """Read the segments to be replayed, and the last file, completely."""
    files, segments = survey.files, survey.segments
    for segment, following in zip_longest(segments, segments[1:]):
        if following is None:
            next_lsn = survey.unfinished_lsn
            judgement = segment.inspect(files, is_last=next_lsn is None, next_lsn=next_lsn)
        elif segment.end.lsn > recovery.replay_from:
            judgement = segment.inspect(files, is_last=False, next_lsn=following.first_lsn)
        else:
            continue
        recovery.notes.append(_note(segment, judgement, is_cut=following is None))


def _note(segment: Segment, judgement: Judgement, *, is_cut: bool) -> Note:
    cut = segment.size - judgement.cut_at if is_cut and judgement.verdict is Verdict.TORN else 0
    return Note(segment.path.name, judgement.verdict, judgement.cut_at, max(0, cut))


def _make_durable(files: Files, last: Segment) -> None:
    """Cut off the tail of the last file, write its last batch again, and sync it (JRN-004)."""
    file = files.open(last.path, is_writable=True)
    try:
        if last.size > last.end.offset:
            files.truncate(file, last.end.offset)
            last.size = last.end.offset
        begins_at = last.last_batch_at
        data = files.read(file, begins_at, last.end.offset - begins_at)
        data += bytes(last.end.offset - begins_at - len(data))
        files.overwrite(file, begins_at, data)
        files.sync(file)
    finally:
        files.close(file)


def _sweep(files: Files, survey: Survey) -> None:
    """Remove files without records: unfinished ones, and a last segment that is empty (JRN-012)."""
    for path in survey.unfinished:
        remove(files, path)
    if survey.segments and survey.segments[-1].end.lsn == survey.segments[-1].first_lsn:
        empty = survey.segments.pop()
        if survey.newest is not None:
            set_back(files, survey.directory, survey.segments[-1].path if survey.segments else None)
        remove(files, empty.path)
