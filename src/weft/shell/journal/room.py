"""Free space, and the ballast that is deleted when there is none (JRN-030, JRN-031).

The ballast is a file without meaning. When the disk is full it is deleted, and its space is used for the records that
must still be written: losses, promises, the state of the cores. Its bytes are written, not left as a hole, so the space
is really reserved.
"""

import os
from pathlib import Path
from typing import Final

from weft.shell.files import Files, append_whole, remove
from weft.shell.journal.errors import is_no_room
from weft.shell.journal.limits import Limits
from weft.shell.journal.survey import TMP_SUFFIX

BALLAST: Final = "ballast"
PIECE_BYTES: Final = 64 << 10


class Room:
    """The free space of one journal's file system, and its ballast. Every call may raise OSError."""

    def __init__(self, files: Files, directory: Path, limits: Limits) -> None:
        self._files, self._directory, self._limits = files, directory, limits
        self._path = directory / BALLAST

    def is_scarce(self) -> bool:
        """Whether the free space of the file system is below the limit at which it counts as full."""
        return self._files.free_bytes(self._directory) < self._limits.free_bytes_min

    def has_ballast(self) -> bool:
        """Whether the ballast has its full size."""
        if BALLAST not in self._files.list(self._directory):
            return False
        file = self._files.open(self._path)
        try:
            return self._files.size(file) >= self._limits.ballast_bytes
        finally:
            self._files.close(file)

    def keep_ballast(self) -> bool:
        """Write the ballast unless it is there; False if there is no room for it."""
        return self.has_ballast() or self.take_ballast()

    def drop_ballast(self) -> None:
        """Delete it; its space is free once the directory is synced."""
        remove(self._files, self._path)
        self._files.sync_directory(self._directory)

    def take_ballast(self) -> bool:
        """Write the ballast if there is room for it; False if there is not."""
        if self._files.free_bytes(self._directory) < self._limits.free_bytes_min + self._limits.ballast_bytes:
            return False
        partial = self._path.with_name(BALLAST + TMP_SUFFIX)
        try:
            self._fill(partial)
        except OSError as error:
            if not is_no_room(error):
                raise
            remove(self._files, partial)
            return False
        self._files.rename(partial, self._path)
        self._files.sync_directory(self._directory)
        return True

    def _fill(self, path: Path) -> None:
        remove(self._files, path)
        piece = os.urandom(PIECE_BYTES)  # a compressing file system would need no space for zeros
        file = self._files.create(path)
        try:
            for written in range(0, self._limits.ballast_bytes, PIECE_BYTES):
                append_whole(self._files, file, piece[: self._limits.ballast_bytes - written])
            self._files.sync(file)
        finally:
            self._files.close(file)
