"""Remembers which segment is the newest, apart from the segments.

If a file in the middle is missing, the headers and seals of its neighbours show it. Nothing follows the newest segment,
so its loss leaves no trace in the others. This note is a copy of its header: a survey that does not find that segment
knows that it is gone, which node it belonged to, and with which record it began. The note stands beside the journal's
directory, so it survives the loss of the directory, too.

It is written when a segment has begun, before its first batch, and set back before an empty segment is removed. So the
segment that it names always exists. A journal of an earlier version has no note, and is read as before.
"""

from pathlib import Path
from typing import Final

from weft.base.errors import PeerError
from weft.shell.files import Files, append_whole, read_whole, remove
from weft.wire.segments import HEADER_BYTES, Header, decode_header

SUFFIX: Final = ".newest"


def note_of(directory: Path) -> Path:
    """The path of a journal's note: `journal.newest` beside `journal`."""
    return directory.with_name(directory.name + SUFFIX)


def _partial(directory: Path) -> Path:
    return directory.with_name(directory.name + SUFFIX + ".tmp")


def read_newest(files: Files, directory: Path, node: bytes | None) -> Header | None:
    """The header of the newest segment as it was begun; None if there is no note, or it cannot be read."""
    try:
        return decode_header(read_whole(files, note_of(directory)), node)
    except (FileNotFoundError, PeerError):
        return None


def prepare_newest(files: Files, directory: Path, header: bytes) -> None:
    """Write the new note under a temporary name, durably. It does not count before `swap_newest`."""
    partial = _partial(directory)
    remove(files, partial)
    file = files.create(partial)
    try:
        append_whole(files, file, header)
        files.sync(file)
    finally:
        files.close(file)


def swap_newest(files: Files, directory: Path) -> None:
    """Replace the note by the prepared one, durably."""
    files.rename(_partial(directory), note_of(directory))
    files.sync_directory(directory.parent)


def set_back(files: Files, directory: Path, before: Path | None) -> None:
    """Let the note name the segment `before`, durably; None: no segment is left."""
    if before is None:
        remove(files, note_of(directory))
        files.sync_directory(directory.parent)
        return
    prepare_newest(files, directory, read_whole(files, before)[:HEADER_BYTES])
    swap_newest(files, directory)
