"""The file of `weft up --record`. An error of the disk ends the recording, not the node."""

import os
from pathlib import Path
from typing import Final

from weft.base.errors import UserError
from weft.node.recording import MAGIC

TAPE_BYTES_MAX: Final = 4 << 30  # a sensor fills that in weeks, a busy root in an hour


class Tape:
    """Appends rows to a file that only its owner may read: it has all that the node receives, and the node's secret."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise UserError("no-file", f"{path} cannot be written: {error.strerror}", "another --record") from None
        self._bytes = os.fstat(self._file).st_size
        self.ended = ""
        """Why the recording has ended; empty: it goes on."""
        if not self._bytes:
            self.write(MAGIC)

    def write(self, row: bytes) -> None:
        """Append one row. It is called before the node acts on the row, so the file has it even if the node is killed."""
        if self.ended:
            return
        if self._bytes + len(row) > TAPE_BYTES_MAX:
            self.ended = f"it has {TAPE_BYTES_MAX >> 30} GiB"
            return
        try:
            while row:
                done = os.write(self._file, row)
                self._bytes += done
                row = row[done:]
        except OSError as error:
            self.ended = str(error.strerror)

    def close(self) -> None:
        """Close the file."""
        self.ended = self.ended or "closed"
        os.close(self._file)
