"""Eight bytes per line of an imported file, so that a changed line is noticed at the next import (PIP-097).

The manifests say which numbers the lake has; the ledger says whether a line is still the same. It is written beside the
old ledger and renamed once all rows of the file are published. If a crash prevents that, no row is stored twice: lines
whose numbers the lake has are then assumed to be unchanged.
"""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import IO, Final

from weft.lake.files import LocalFiles
from weft.lake.layout import TMP

DIGEST_BYTES: Final = 8
READ_BYTES: Final = 1 << 16


class Ledger:
    """The digests of one file's lines: reads those of the previous import and writes those of this one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._old: IO[bytes] | None = path.open("rb") if path.exists() else None
        self._new = path.with_name(path.name + TMP).open("wb")
        self.before = self._before()
        """Yields the digests of the lines at the previous import; ends where the file ended then."""

    def _before(self) -> Iterator[bytes]:
        while self._old is not None and (data := self._old.read(READ_BYTES)):
            for at in range(0, len(data), DIGEST_BYTES):
                yield data[at : at + DIGEST_BYTES]

    def add(self, digests: list[bytes]) -> None:
        """Add the digests of these lines."""
        self._new.write(b"".join(digests))

    def close(self) -> None:
        """Stop reading and writing. The new ledger does not count before `publish`."""
        if self._old is not None:
            self._old.close()
        self._new.close()

    def discard(self) -> None:
        """The import of this file has failed: the previous ledger stays in force."""
        self.close()
        Path(self._new.name).unlink(missing_ok=True)

    def publish(self, files: LocalFiles) -> None:
        """Make the new ledger the current one.

        Call it after the rows of all its lines are in segments. Raises OSError.
        """
        beside = Path(self._new.name)
        files.sync(beside)
        files.rename(beside, self.path)
        files.sync_directory(self.path.parent)


def digest_of(line: bytes, sequence: int) -> bytes:
    """Digest of a line and the number of its (first) row.

    A line that moved to another number counts as another line.
    """
    return blake2b(b"%d %s" % (sequence, line), digest_size=DIGEST_BYTES).digest()
