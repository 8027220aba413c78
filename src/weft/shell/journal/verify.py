"""Reading every byte of a journal and saying what it is, without changing one (JRN-024)."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from weft.shell.files import Files, read_whole
from weft.shell.journal.segment import SNAPSHOT_SUFFIX, Segment
from weft.shell.journal.survey import Survey
from weft.wire.segments import Judgement, Verdict, judge


class FileReport(msgspec.Struct, kw_only=True):
    """What one file was found to be."""

    file: str
    verdict: str
    bytes: int
    records: int = 0
    first_lsn: int = 0
    next_lsn: int = 0
    is_sealed: bool = False
    gaps: list[dict[str, int | str | None]] = []

    @property
    def is_good(self) -> bool:
        """Clean, or with a torn tail, which the next start cuts."""
        return self.verdict in (Verdict.CLEAN.value, Verdict.TORN.value)


def verify(files: Files, directory: Path) -> Iterator[FileReport]:
    """Read and judge every file, in order of their names. OSError as the disk says."""
    survey = Survey(files, directory, None)
    followers = {a.path.name: b.first_lsn for a, b in zip(survey.segments, survey.segments[1:], strict=False)}
    for segment in sorted((*survey.segments, *survey.snapshots), key=lambda file: file.path.name):
        yield _report(files, segment, followers.get(segment.path.name))
    for path in survey.ignored:
        yield FileReport(file=path.name, verdict=Verdict.BAD_HEADER.value, bytes=len(read_whole(files, path)))


def faults(files: Files, directory: Path) -> list[str]:
    """Why a start would refuse this journal; empty: it would not."""
    survey = Survey(files, directory, None)
    survey.settle()
    if survey.segments:
        survey.segments[-1].inspect(files, is_last=True)
    survey.follow(survey.snapshot())
    return [str(fault) for fault in survey.faults]


def _report(files: Files, segment: Segment, next_lsn: int | None) -> FileReport:
    data = read_whole(files, segment.path)
    judgement = judge(data, segment.header.node, is_last=next_lsn is None)
    if judgement.header is not None:
        judgement = segment.adopt(judgement, next_lsn)
    is_snapshot = segment.path.suffix == SNAPSHOT_SUFFIX
    return FileReport(
        file=segment.path.name,
        verdict="unsealed" if is_snapshot and judgement.seal is None else judgement.verdict.value,
        bytes=len(data),
        records=sum(batch.records for batch in judgement.batches),
        first_lsn=segment.first_lsn,
        next_lsn=judgement.next_lsn,
        is_sealed=judgement.seal is not None,
        gaps=_gaps(judgement),
    )


def _gaps(judgement: Judgement) -> list[dict[str, int | str | None]]:
    return [gap._asdict() for gap in judgement.gaps]
