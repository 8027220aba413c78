"""What the lines of an imported file said: eight bytes a line, so that a changed line is seen (PIP-097).

The lake's numbers tell which rows it has; this tells whether a line is still the one that it was. Written beside and
renamed when the rows of the whole file are published. Without it, after a crash, nothing is doubled: lines whose number
the lake has are taken to be what they were.
"""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import IO, Final

from weft.lake.files import Files
from weft.lake.layout import TMP

DIGEST_BYTES: Final = 8
READ_BYTES: Final = 1 << 16


class Ledger:
    """The digests of one file's lines: those of the import before are read, those of this one are written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._old: IO[bytes] | None = path.open("rb") if path.exists() else None
        self._new = path.with_name(path.name + TMP).open("wb")
        self.before = self._before()
        """The digests of the lines as they were, one after the other; it ends where the file ended then."""

    def _before(self) -> Iterator[bytes]:
        while self._old is not None and (data := self._old.read(READ_BYTES)):
            for at in range(0, len(data), DIGEST_BYTES):
                yield data[at : at + DIGEST_BYTES]

    def add(self, digests: list[bytes]) -> None:
        """The digests of these lines as they are."""
        self._new.write(b"".join(digests))

    def close(self) -> None:
        """Nothing more will be read or written; it does not count before `publish`."""
        if self._old is not None:
            self._old.close()
        self._new.close()

    def discard(self) -> None:
        """The import of this file has failed: what was said before still counts."""
        self.close()
        Path(self._new.name).unlink(missing_ok=True)

    def publish(self, files: Files) -> None:
        """After the rows of all its lines are in segments. Raises OSError."""
        beside = Path(self._new.name)
        files.sync(beside)
        files.rename(beside, self.path)
        files.sync_directory(self.path.parent)


def digest_of(line: bytes, sequence: int) -> bytes:
    """One line and the number that its (first) row has: moved to another number, it is another line."""
    return blake2b(b"%d %s" % (sequence, line), digest_size=DIGEST_BYTES).digest()
