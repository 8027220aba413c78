"""Repairs a journal on which no node starts (JRN-024): plans one step at a time, and carries it out if told to.

Nothing is deleted: unusable files are moved to `damaged/`. Where records are missing for good, a stub takes their
place: a file whose header names the record that should come, and whose seal names the one that does come. A start
judges it like any other file, finds the gap, and reports it as damage. So a repair cannot hide a loss.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from weft.base.errors import PeerError
from weft.shell.files import Files, put_whole, read_whole
from weft.shell.journal.damage import DIRECTORY as DAMAGED
from weft.shell.journal.segment import name_of
from weft.shell.journal.survey import Fault, Survey
from weft.wire.segments import HEADER_BYTES, SEGMENT, SNAPSHOT, decode_header, encode_header, encode_seal


class Mend(NamedTuple):
    """One step of a repair."""

    text: str
    """What it does, as a sentence."""
    path: Path
    data: bytes | None
    """The new content of the file; None: the file is moved away."""


def next_mend(files: Files, directory: Path, node: bytes | None = None) -> Mend | None:
    """The first step; carry it out and ask again. None: a start would accept the journal."""
    survey = Survey(files, directory, node)
    survey.settle()
    if survey.segments:
        survey.segments[-1].inspect(files, is_last=True)
    survey.follow(survey.snapshot())
    files_first = sorted(survey.faults, key=lambda fault: fault.kind == "missing")
    return next(iter(_mends(survey, files_first)), None)


def _mends(survey: Survey, faults: list[Fault]) -> Iterator[Mend]:
    for fault in faults:
        path = survey.directory / fault.name
        if fault.kind in ("missing", "gone"):
            yield _stub(survey, fault)
        elif fault.kind == "bad-header" and (restored := _restored(survey, path)) is not None:
            yield Mend(f"restore the header of {fault.name}, of which a bit was flipped", path, restored)
        else:
            yield Mend(f"set {fault.name} aside in {DAMAGED}/ ({fault})", path, None)


def _stub(survey: Survey, fault: Fault) -> Mend:
    before = [segment for segment in survey.segments if segment.end.lsn == fault.first_lsn]
    chain = before[-1].chain if before else 0
    assert survey.node is not None, "another file shows that records are missing, and names the node"
    header = encode_header(SEGMENT, survey.node, fault.first_lsn, 0, chain or 0)
    salt = decode_header(header).salt
    seal, _ = encode_seal((), fault.end_lsn, chain or 0, salt)
    lost = f"records {fault.first_lsn} to {fault.end_lsn - 1}"
    if fault.kind == "gone":
        lost = f"records from {fault.first_lsn} on"
    text = f"put a stub in the place of the missing {lost}"
    return Mend(text, survey.directory / name_of(fault.first_lsn), header + bytes(seal))


def _restored(survey: Survey, path: Path) -> bytes | None:
    """The file with the header that its checksum proves, if a single bit is wrong."""
    data = read_whole(survey.files, path)
    head = data[:HEADER_BYTES]
    for bit in range(len(head) * 8):
        candidate = bytearray(head)
        candidate[bit // 8] ^= 1 << bit % 8
        try:
            header = decode_header(candidate, survey.node)
        except PeerError:
            continue
        if header.magic in (SEGMENT, SNAPSHOT) and path.name == name_of(header.first_lsn, path.suffix):
            return bytes(candidate) + data[HEADER_BYTES:]
    return None


def carry_out(files: Files, mend: Mend) -> None:
    """Carry out one step, durably. Raises OSError."""
    if mend.data is not None:
        put_whole(files, mend.path, mend.data)
        return
    aside = mend.path.parent / DAMAGED
    files.make_directory(aside)
    files.sync_directory(mend.path.parent)
    files.rename(mend.path, aside / mend.path.name)
    files.sync_directory(aside)
    files.sync_directory(mend.path.parent)
