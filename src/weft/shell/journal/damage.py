"""Damage that was found and that no person has accepted yet (JRN-022).

The directory `damaged/` holds a copy of each damaged file as it was found, and one note per gap, named by the missing
records. While a note ends in `.open` the node is degraded. When a person accepts the loss, the note is renamed to
`.accepted`: that needs no running node, and survives every restart. A note is written only after the journal holds a
durable record of the damage, so an open note is never the only trace of it.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from weft.base.records import DamageRecord, Stream
from weft.base.spool import Span
from weft.shell.files import Files, put_whole, read_whole
from weft.shell.journal.errors import is_no_room
from weft.shell.journal.limits import DAMAGED_BYTES_MAX
from weft.shell.journal.segment import Segment
from weft.shell.journal.spans import lacking

DIRECTORY: Final = "damaged"
OPEN: Final = ".open"
ACCEPTED: Final = ".accepted"
_NODE: Final = re.compile("[0-9a-f]{32}")
"""The UUID of a node, as a note shows it."""
_STREAMS: Final = {int(stream): stream.name.lower() for stream in Stream}

Identity = tuple[str, int, int]
"""File, first lsn, end lsn (exclusive). Damage with equal values is the same damage."""


class DamageNote(msgspec.Struct, frozen=True, kw_only=True):
    """One gap in one file, as `weft journal show` prints it."""

    file: str
    first_lsn: int
    end_lsn: int
    offset: int
    to: int
    why: str
    missing: tuple[tuple[int, str, int | None, int, int], ...] = ()
    """Stream, origin, era, first and last number that its footer lists and that cannot be read, if it has a footer."""

    @property
    def record(self) -> DamageRecord:
        return DamageRecord(self.first_lsn, self.end_lsn, self.file, self.why)

    @property
    def identity(self) -> Identity:
        return self.file, self.first_lsn, self.end_lsn


def identity_of(record: DamageRecord) -> Identity:
    """The key by which two records of the same damage are recognised."""
    return record.file, record.first_lsn, record.end_lsn


class DamageLog:
    """The notes and copies below one journal."""

    def __init__(self, files: Files, journal: Path) -> None:
        self._files = files
        self.directory = journal / DIRECTORY
        self.open: set[Identity] = set()
        self.accepted: set[Identity] = set()
        self.copies_missing = 0
        self.reload()

    def reload(self) -> None:
        """Read the file names again: a person may have accepted a loss."""
        try:
            names = self._files.list(self.directory)
        except FileNotFoundError:
            names = []
        self.open = {_identity(name) for name in names if name.endswith(OPEN)}
        self.accepted = {_identity(name) for name in names if name.endswith(ACCEPTED)}

    def is_known(self, identity: Identity) -> bool:
        return identity in self.open or identity in self.accepted

    def new(self, segment: Segment) -> list[DamageNote]:
        """A note for each gap of a segment that has none yet, with the missing numbers if the footer lists them."""
        name = segment.path.name
        gaps = [gap for gap in segment.gaps if not self.is_known((name, gap.first_lsn, gap.end_lsn or gap.first_lsn))]
        missing = tuple(shown(span) for span in lacking(self._files, segment)) if gaps else ()
        return [
            DamageNote(
                file=name,
                first_lsn=gap.first_lsn,
                end_lsn=gap.end_lsn or gap.first_lsn,
                offset=gap.offset,
                to=gap.to,
                why=gap.why,
                missing=missing,
            )
            for gap in gaps
        ]

    def keep_copy(self, segment: Segment) -> None:
        """Copy a damaged file as it is now, once; no copy is made without space, or over the limit."""
        self._files.make_directory(self.directory)
        self._files.sync_directory(self.directory.parent)
        names = self._files.list(self.directory)
        used = sum(self._size(name) for name in names)
        if segment.path.name in names:
            return
        if used + segment.size > DAMAGED_BYTES_MAX:
            self.copies_missing += 1
            return
        try:
            put_whole(self._files, self.directory / segment.path.name, read_whole(self._files, segment.path))
        except OSError as error:
            if not is_no_room(error):
                raise
            self.copies_missing += 1

    def add(self, notes: Iterable[DamageNote]) -> None:
        """Write the notes of damage that the journal has recorded."""
        for note in notes:
            put_whole(self._files, self.directory / _name(note.identity, OPEN), msgspec.json.encode(note) + b"\n")
            self.open.add(note.identity)

    def notes(self) -> list[DamageNote]:
        """All notes that are open."""
        return [
            msgspec.json.decode(read_whole(self._files, self.directory / _name(identity, OPEN)), type=DamageNote)
            for identity in sorted(self.open)
        ]

    def accept_all(self) -> int:
        """Accept every loss that is open; returns how many."""
        losses = sorted(self.open)
        for identity in losses:
            self._files.rename(self.directory / _name(identity, OPEN), self.directory / _name(identity, ACCEPTED))
        if losses:
            self._files.sync_directory(self.directory)
        self.reload()
        return len(losses)

    def _size(self, name: str) -> int:
        file = self._files.open(self.directory / name)
        try:
            return self._files.size(file)
        finally:
            self._files.close(file)


def spans_of(note: DamageNote) -> tuple[Span, ...]:
    """The missing numbers of a note, in the form that cores use."""
    return tuple(
        Span(stream, bytes.fromhex(origin) if _NODE.fullmatch(origin) else origin, era, first, last)
        for stream, origin, era, first, last in note.missing
    )


def shown(span: Span) -> tuple[int, str, int | None, int, int]:
    """Missing numbers in the form of a note: stream, origin as text, era, first and last."""
    origin = span.origin.hex() if isinstance(span.origin, bytes) else span.origin
    return span.stream, origin, span.era, span.first, span.last


def _name(identity: Identity, suffix: str) -> str:
    file, first_lsn, end_lsn = identity
    return f"{file}.{first_lsn:x}-{end_lsn:x}{suffix}"


def _identity(name: str) -> Identity:
    file, _, span = name.rpartition(".")[0].rpartition(".")
    first, _, end = span.partition("-")
    return file, int(first, 16), int(end, 16)


def lost_text(missing: tuple[int, str, int | None, int, int]) -> str:
    """A sentence about lost numbers of one stream and origin."""
    stream, origin, era, first, last = missing
    name = _STREAMS.get(stream, f"stream {stream}")
    return f"{name} {first} to {last} of {origin}" + (f", era {era}" if era is not None else "")
