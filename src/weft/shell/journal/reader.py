"""Reads the journal of a node from outside, whether it runs or not; takes no lock and writes nothing.

The last turn that such a reader sees may not be durable yet. Everything before it is what a restart would find.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

from weft.base.errors import UserError
from weft.base.records import Entry
from weft.shell.files import Files
from weft.shell.journal.recovery import refusal
from weft.shell.journal.segment import Segment
from weft.shell.journal.shelf import Shelf
from weft.shell.journal.survey import Survey

LOOKS_MAX: Final = 3  # attempts: a running node may delete a segment while its directory is read


class JournalReader:
    """The journal in a directory; `refresh` looks for records written since.

    UserError `no-journal` if there is none, `storage-failed` if files are missing, foreign or have a damaged header.
    """

    def __init__(self, directory: Path, files: Files | None = None) -> None:
        self.directory = directory
        self._files = files or Files()
        self._shelf = Shelf(self._files)
        self.snapshot: Segment | None = None
        """The newest good snapshot; its records are `snapshot.entries(files)`."""
        self.refresh()

    @property
    def first_lsn(self) -> int:
        """The lowest lsn that still exists."""
        return self._shelf.first_lsn

    @property
    def next_lsn(self) -> int:
        """The lsn after the last record."""
        return self._shelf.end_lsn

    def refresh(self) -> Self:
        """Read the directory again: a running node writes, seals and deletes."""
        survey = survey_of(self._files, self.directory)
        if survey.faults:
            raise refusal(self.directory, survey)
        self.snapshot = survey.snapshot()
        self._shelf.segments = tuple(survey.segments)
        return self

    def read(self, after: int, bytes_max: int) -> tuple[list[Entry], int]:
        """The records after lsn `after`, about `bytes_max` bytes, and the lsn up to which nothing is left out."""
        return self._shelf.read(after, bytes_max)

    def entries(self, since: int = 1) -> Iterator[Entry]:
        """All records from `since` on, with a `DamageRecord` in place of those that cannot be read."""
        return self._shelf.entries(since)

    def snapshot_entries(self) -> Iterator[Entry]:
        """The cores' records of the newest snapshot, each with the last lsn that the snapshot covers."""
        if self.snapshot is not None:
            for _, record in self.snapshot.entries(self._files):
                yield self.snapshot.first_lsn - 1, record


def survey_of(files: Files, directory: Path) -> Survey:
    """The files of a directory, up to the last complete turn; UserError `no-journal` if there are none."""
    try:
        files.list(directory)
    except (NotADirectoryError, FileNotFoundError) as error:
        raise _absent(directory) from error
    survey = _look(files, directory)
    if not survey.segments and not survey.snapshots and not survey.faults:
        raise _absent(directory)
    return survey


def _look(files: Files, directory: Path, looks_left: int = LOOKS_MAX) -> Survey:
    try:
        survey = Survey(files, directory, None)
        survey.settle()
        survey.join()
        if survey.segments:
            survey.segments[-1].extend(files)
    except FileNotFoundError:
        if looks_left <= 1:
            raise
        return _look(files, directory, looks_left - 1)
    return survey if not survey.faults or looks_left <= 1 else _look(files, directory, looks_left - 1)


def _absent(directory: Path) -> UserError:
    return UserError(
        "no-journal", f"there is no journal in {directory}", "the `journal` directory in a node's state directory"
    )
