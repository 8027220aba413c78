"""Verifies the bytes of a table's files (FLD-030) with a digest that is part of their names.

The files of the log are verified with lists of digests (`logdigests.py`).

A file is written, read back, and renamed so that its name has the first half of its SHA-256; then a transaction names
it. So the log itself says what a file must contain, also after a copy, compaction or rebuild. Files committed by another program or an earlier version have no digest until somebody adopts them as they are;
then their digests are in a list in the lake. Files without a digest are reported and never count as verified.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from weft.base.errors import UserError
from weft.lake.files import LocalFiles
from weft.lake.layout import Layout
from weft.pipeline.tables import Table

if TYPE_CHECKING:
    from deltalake import DeltaTable

DIGITS: Final = 32
"""Length of a digest in a name, hex: 128 bits."""
PIECE_BYTES: Final = 1 << 20
"""Bytes read at once: more is not faster, and each thread holds one such block."""
THREADS_MAX: Final = 4
PROVED_FEW: Final = 1_000
"""So many files may be remembered in vain; to list those in use takes milliseconds."""
WITHOUT_A_COPY: Final = "put it back from a copy; docs/lake-mending.md says which tables can be made anew without one"
_DIGEST: Final = re.compile(rf"\.([0-9a-f]{{{DIGITS}}})\.parquet$")


class Proof(NamedTuple):
    """The result for one file."""

    path: str
    """Its path as in the log."""
    bytes: int
    fault: str = ""
    """`gone`, `changed`, `unproved` or `unreadable: …`; empty if its bytes match its digest."""


def unreadable(path: str, error: OSError) -> Proof:
    """The result for a file that the disk cannot read."""
    return Proof(path, 0, f"unreadable: {error.strerror}")


def digest_of(file: Path) -> str:
    """The digest of a file's bytes. Raises OSError."""
    return sha256_of(file)[:DIGITS]


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file's bytes, 64 hex. Raises OSError."""
    found, piece = sha256(), bytearray(PIECE_BYTES)
    view = memoryview(piece)
    with file.open("rb", buffering=0) as opened:
        while count := opened.readinto(piece):
            found.update(view[:count])
    return found.hexdigest()


def with_digest(file: Path) -> Path:
    """Make a finished file durable and rename it so that its name contains its digest; returns the new path.

    The name is not durable before its directory is synced.
    """
    LocalFiles().sync(file)
    target = file.with_name(f"{file.stem}.{digest_of(file)}.parquet")
    file.rename(target)
    return target


def digest_in(path: str) -> str | None:
    """The digest in a name; None if it has none.

    >>> digest_in("day=2026-11-21/b0000000007-0a-0000.00112233445566778899aabbccddeeff.parquet")
    '00112233445566778899aabbccddeeff'
    >>> digest_in("day=2026-11-21/b0000000007-0a-0000.parquet")
    """
    found = _DIGEST.search(path)
    return found[1] if found else None


def adopted(layout: Layout, table: Table) -> dict[str, str]:
    """The digests of files that somebody has adopted (see above), by their path in the log."""
    try:
        return msgspec.json.decode(layout.adopted(table.full_name).read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}


def adopt(layout: Layout, table: Table, paths: Iterable[str]) -> int:
    """Adopt files as they are now; returns how many. Digests of files that left the table are dropped."""
    root = layout.table(table.layer, table.name)
    fresh = {path: digest_of(root / path) for path in paths}
    known = {path: digest for path, digest in adopted(layout, table).items() if (root / path).exists()}
    target = layout.adopted(table.full_name)
    LocalFiles().make_directories(target.parent)
    LocalFiles().put(target, msgspec.json.encode(known | fresh, order="sorted") + b"\n")
    return len(fresh)


def refuse_damaged(root: Path, table: Table, paths: Iterable[str], known: Mapping[str, str] | None = None) -> None:
    """Raise UserError `damaged` if one of these files (paths as in the log) cannot be read, or does not match its digest.

    `known`: digests of files whose names have none. Of files without a digest only the first byte is read. Call this before
    new files are made from old ones, otherwise a flipped bit would get a valid digest.
    """
    for path in paths:
        if fault := _fault_of(root / path, digest_in(path) or (known or {}).get(path)):
            mend = f"weft lake check --deep, which names all such files; {WITHOUT_A_COPY}"
            raise UserError("damaged", f"{table.full_name}: {path} {fault}", mend)


class Proved:
    """The files of a table that this process has written, or has read and found to match their digests.

    A driver writes files each second, and most are joined or replaced minutes later. So those that the table has no more are
    forgotten, as often as the others have doubled.
    """

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._most = PROVED_FEW

    def add(self, files: Collection[str], live: Callable[[], Iterable[str]]) -> None:
        """Add files; `live` lists those of the table, without these or with them."""
        self.files.update(files)
        if len(self.files) > self._most:
            self.files = self.files.intersection((*live(), *files))
            self._most = 2 * len(self.files) + PROVED_FEW


def _fault_of(file: Path, wanted: str | None) -> str:
    """What is wrong with a file; empty: nothing."""
    try:
        if wanted is not None:
            return "" if digest_of(file) == wanted else "does not match its digest"
        with file.open("rb", buffering=0) as opened:
            opened.read(1)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return ""


def proofs(layout: Layout, table: Table, handle: "DeltaTable") -> Iterator[Proof]:
    """Every file of a version, read completely and compared with its digest."""
    import pyarrow as pa

    known = adopted(layout, table)
    root = layout.table(table.layer, table.name)
    paths = pa.table(handle.get_add_actions(flatten=True)).column("path").to_pylist()

    def prove(path: str) -> Proof:
        wanted = digest_in(path) or known.get(path)
        try:
            size = (root / path).stat().st_size
            if wanted is None:
                return Proof(path, size, "unproved")
            return Proof(path, size, "" if digest_of(root / path) == wanted else "changed")
        except FileNotFoundError:
            return Proof(path, 0, "gone")
        except OSError as error:
            return unreadable(path, error)

    with ThreadPoolExecutor(min(THREADS_MAX, os.cpu_count() or 1)) as pool:
        yield from pool.map(prove, paths)
