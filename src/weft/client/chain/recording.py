"""Records what a client and its node send each other, as lines of a file to read and to replay (CLI-025).

    {"id":"7","direction":"node>client","at":1800000000000000000,"frames":["83a26f70…","3c7265706f72743e"]}

One JSON object per line, in the form of the protocol's test vectors: frames in hexadecimal, `at` in nanoseconds since
1970.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from weft.base.errors import UserError

SAID, HEARD = "client>node", "node>client"
LINE_BYTES_MAX: Final = 16 << 20  # two multiparts, in hexadecimal
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


class Row(NamedTuple):
    """One multipart."""

    direction: str
    parts: list[bytes]
    at: int = 0


class Line(msgspec.Struct, frozen=True, gc=False):
    """A row as it is written into the file, with frames in hexadecimal."""

    direction: str
    frames: list[str]
    at: int = 0
    id: str = ""


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(Line)


def line_of(row: Row, number: int) -> bytes:
    """A row as a line of the file."""
    frames = [bytes(frame).hex() for frame in row.parts]
    return _ENCODER.encode(Line(row.direction, frames, row.at, str(number))) + b"\n"


class Recording:
    """Writes the file. Only its owner may read it, because it contains all messages of the program."""

    def __init__(self, path: str | Path) -> None:
        try:
            self._file = os.fdopen(os.open(path, _NEW_FILE, 0o600), "wb", 1 << 16)
        except OSError as error:
            raise UserError("no-file", f"{path} cannot be written: {error.strerror}", "another record=") from None
        self._count = 0
        self.ended = ""
        """Why nothing is written any more; empty while the recording runs."""

    def write(self, direction: str, frames: list[bytes]) -> None:
        """Append one multipart; an error of the disk ends the recording, and nothing else."""
        if self.ended:
            return
        self._count += 1
        try:
            self._file.write(line_of(Row(direction, frames, time.time_ns()), self._count))
        except OSError as error:
            self.ended = error.strerror or "failed"

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        except OSError as error:
            self.ended = error.strerror or "failed"
        self.ended = self.ended or "closed"


def read_rows(path: Path) -> Iterator[Row]:
    """The multiparts of a recording, or of a file of test vectors; UserError names the first line that is neither."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise UserError("no-file", f"{path} cannot be read: {error.strerror}", "another file") from None
    with file:
        number = 0
        while line := file.readline(LINE_BYTES_MAX):
            number += 1
            try:
                decoded = _DECODER.decode(line)
                yield Row(decoded.direction, list(map(bytes.fromhex, decoded.frames)), decoded.at)
            except ValueError as error:  # the errors of msgspec are ValueErrors, too
                text = f"{path}, line {number}, is no recorded multipart: {error}"
                raise UserError("bad-file", text, "a file that record= of weft.chain_client has written") from None
