"""Reads every byte of a journal and judges each file, without changing anything (JRN-024)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from weft.shell.files import Files, read_whole
from weft.shell.journal.damage import DamageLog, lost_text, shown
from weft.shell.journal.segment import SEGMENT_SUFFIX, SNAPSHOT_SUFFIX, Segment
from weft.shell.journal.spans import lacking
from weft.shell.journal.survey import Survey
from weft.wire.segments import Judgement, Verdict, judge

UNSEALED: Final = "unsealed"
UNFINISHED: Final = "it ends within its header, so no record was ever in it; the next start removes it"
GOOD: Final = (Verdict.CLEAN.value, Verdict.TORN.value)


class FileReport(msgspec.Struct, kw_only=True):
    """The verdict on one file."""

    file: str
    verdict: str
    bytes: int
    records: int = 0
    first_lsn: int = 0
    next_lsn: int = 0
    is_sealed: bool = False
    gaps: list[dict[str, int | str | None]] = []
    lost: list[str] = []
    """Numbers that cannot be read, if its seal lists them: stream, origin, era, first and last."""
    note: str = ""
    is_good: bool = True
    """True if it is clean, if it has a torn tail, which the next start cuts off, or if its loss was accepted."""


def verify(files: Files, directory: Path, node: bytes | None = None) -> Iterator[FileReport]:
    """Read and judge every file, in order of their names. Raises OSError."""
    survey = Survey(files, directory, node)
    unusable = list(survey.faults)
    survey.settle()
    survey.join()
    accepted = DamageLog(files, directory).accepted
    followers = {a.path.name: b.first_lsn for a, b in zip(survey.segments, survey.segments[1:], strict=False)}
    if survey.segments and survey.unfinished_lsn is not None:
        followers[survey.segments[-1].path.name] = survey.unfinished_lsn
    for segment in sorted((*survey.segments, *survey.snapshots), key=lambda file: file.path.name):
        report = _report(files, segment, followers.get(segment.path.name))
        losses = {(report.file, gap["first_lsn"], gap["end_lsn"] or gap["first_lsn"]) for gap in report.gaps}
        if losses and losses <= accepted:
            report.note, report.is_good = "this loss was accepted", True
        yield report
    for path in survey.unfinished:
        if path.suffix == SEGMENT_SUFFIX:
            yield _unreadable(files, path, Verdict.BAD_HEADER.value, UNFINISHED)
    for path in survey.ignored:
        yield _unreadable(files, path, Verdict.BAD_HEADER.value)
    for fault in unusable:
        if all(fault.name != path.name for path in survey.ignored):
            yield _unreadable(files, directory / fault.name, fault.kind)


def faults(files: Files, directory: Path, node: bytes | None = None) -> list[str]:
    """Why a start would refuse this journal; empty: it would not."""
    survey = Survey(files, directory, node)
    survey.settle()
    if survey.segments:
        survey.segments[-1].inspect(files, is_last=True)
    survey.follow(survey.snapshot())
    return [str(fault) for fault in survey.faults]


def _unreadable(files: Files, path: Path, verdict: str, note: str = "") -> FileReport:
    size = len(read_whole(files, path))
    return FileReport(file=path.name, verdict=verdict, bytes=size, note=note, is_good=bool(note))


def _report(files: Files, segment: Segment, next_lsn: int | None) -> FileReport:
    data = read_whole(files, segment.path)
    judgement = judge(data, segment.header.node, is_last=next_lsn is None)
    if judgement.header is not None:
        judgement = segment.adopt(judgement, next_lsn)
        if segment.gaps:  # also damage that only the file before shows
            judgement = judgement._replace(verdict=Verdict.DAMAGED, gaps=segment.gaps)
    is_snapshot = segment.path.suffix == SNAPSHOT_SUFFIX
    verdict = UNSEALED if is_snapshot and judgement.seal is None else judgement.verdict.value
    return FileReport(
        file=segment.path.name,
        verdict=verdict,
        bytes=len(data),
        records=sum(batch.records for batch in judgement.batches),
        first_lsn=segment.first_lsn,
        next_lsn=judgement.next_lsn,
        is_sealed=judgement.seal is not None,
        gaps=_gaps(judgement),
        lost=_lost(files, segment) if judgement.gaps and not is_snapshot else [],
        is_good=verdict in GOOD,
    )


def _gaps(judgement: Judgement) -> list[dict[str, int | str | None]]:
    return [gap._asdict() for gap in judgement.gaps]


def _lost(files: Files, segment: Segment) -> list[str]:
    return [lost_text(shown(span)) for span in lacking(files, segment)]
