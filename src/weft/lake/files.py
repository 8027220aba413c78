"""The calls that write a lake (LAK-005, LAK-009).

All writes go through `Files`; reads go through paths. `LocalFiles` makes them from seven calls of a file system, and
tests simulate a power cut at each of these. `objects.py` has the same calls for an object store.
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

from weft.lake.layout import TMP

FILE_MODE: Final = 0o600  # PIP-088: nobody else may read what a lake holds
DIRECTORY_MODE: Final = 0o700


class Files(Protocol):
    """The writing calls of a lake. Each may raise OSError."""

    def make_directories(self, path: Path) -> None:
        """Create a directory and all its parents, durably."""

    def put(self, path: Path, data: bytes | memoryview, *, is_new: bool = False) -> None:
        """Write a file atomically and durably; replaces one that exists.

        `is_new`: the caller expects that the file does not exist. An object store, to which others may write, then
        raises FileExistsError if it does (LAK-009). In a directory, whoever puts holds its lock, so nothing is checked there.
        """

    def sync_directory(self, path: Path) -> None:
        """Make creations, renames and removals in a directory durable."""

    def remove(self, path: Path) -> None:
        """Delete a file, if it exists."""

    def alone_in(self, directory: Path, patience_s: float | None = None) -> AbstractContextManager[None]:
        """Hold the lock of a directory; other processes that ask for it wait. Does nothing if there are no locks.

        TimeoutError if another one holds it for longer than `patience_s`; None: wait for as long as it takes.
        """


LOCK_LOOK_S: Final = 0.01  # between two attempts to get a lock
NO_LOCKS: Final = frozenset({errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP})
"""Errors of `flock` on a file system that has no such locks."""


class LocalFiles:
    """The calls on the local file system."""

    def make_directories(self, path: Path) -> None:
        """Create a directory and its missing parents, from the top; each is durable in its parent before the next is made."""
        missing: list[Path] = []
        while not path.is_dir():
            missing.append(path)
            path = path.parent
        for directory in reversed(missing):
            self.make_directory(directory)
            self.sync_directory(directory.parent)

    def put(self, path: Path, data: bytes | memoryview, *, is_new: bool = False) -> None:  # noqa: ARG002  # the lock is held
        """Write a temporary file beside it, sync it, rename it, sync the directory."""
        beside = path.with_name(path.name + TMP)
        self.write(beside, data)
        self.sync(beside)
        self.rename(beside, path)
        self.sync_directory(path.parent)

    def make_directory(self, path: Path) -> None:
        """Create one directory; its parent exists. Not durable before `sync_directory` of the parent."""
        path.mkdir(DIRECTORY_MODE, exist_ok=True)

    def write(self, path: Path, data: bytes | memoryview) -> None:
        """Create or replace a file. Not durable before `sync`."""
        with open(path, "wb", opener=_private) as file:
            file.write(data)

    def sync(self, path: Path) -> None:
        """Make a file's content durable."""
        _sync(path, os.O_RDONLY)

    def rename(self, old: Path, new: Path) -> None:
        """Rename `old` to `new` atomically. Not durable before `sync_directory`."""
        old.replace(new)

    def sync_directory(self, path: Path) -> None:
        _sync(path, os.O_RDONLY | os.O_DIRECTORY)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    @contextmanager
    def alone_in(self, directory: Path, patience_s: float | None = None) -> Iterator[None]:
        """Hold an exclusive lock on the directory. The system releases it if the process dies.

        NFS, for one, has no locks for directories: nothing is held there.
        """
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                _lock(handle, patience_s)
            except BlockingIOError:
                raise TimeoutError(errno.ETIMEDOUT, "another program holds its lock", str(directory)) from None
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    raise
            yield
        finally:
            os.close(handle)


def _lock(handle: int, patience_s: float | None) -> None:
    if patience_s is None:
        fcntl.flock(handle, fcntl.LOCK_EX)
        return
    ends_at = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > ends_at:
                raise
            time.sleep(LOCK_LOOK_S)
        else:
            return


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def put_here(path: Path, data: bytes | memoryview) -> None:
    """Write a local file atomically and durably. Missing directories are made, durably too. Raises OSError."""
    files = LocalFiles()
    files.make_directories(path.parent)
    files.put(path, data)
