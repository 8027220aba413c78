"""The file calls that publish a segment, one method each (LAK-005).

Tests simulate a power cut at each of them. All writes go through these seven calls; reads do not.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from weft.lake.layout import TMP

FILE_MODE: Final = 0o600  # PIP-088: nobody else may read what a lake holds
DIRECTORY_MODE: Final = 0o700


class Files(Protocol):
    """The file system calls that the recorder needs. Each may raise OSError."""

    def make_directory(self, path: Path) -> None:
        """Create one directory; its parent exists. Not durable before `sync_directory` of the parent."""

    def write(self, path: Path, data: bytes | memoryview) -> None:
        """Create or replace a file. Not durable before `sync`."""

    def sync(self, path: Path) -> None:
        """Make a file's content durable."""

    def rename(self, old: Path, new: Path) -> None:
        """Rename `old` to `new` atomically. Not durable before `sync_directory`."""

    def sync_directory(self, path: Path) -> None:
        """Make creations, renames and removals in a directory durable."""

    def remove(self, path: Path) -> None:
        """Delete a file, if it exists."""


class LocalFiles:
    """The calls on the local file system."""

    def make_directory(self, path: Path) -> None:
        path.mkdir(DIRECTORY_MODE, exist_ok=True)

    def write(self, path: Path, data: bytes | memoryview) -> None:
        with open(path, "wb", opener=_private) as file:
            file.write(data)

    def sync(self, path: Path) -> None:
        _sync(path, os.O_RDONLY)

    def rename(self, old: Path, new: Path) -> None:
        old.replace(new)

    def sync_directory(self, path: Path) -> None:
        _sync(path, os.O_RDONLY | os.O_DIRECTORY)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_directories(files: Files, path: Path) -> None:
    """Create a directory and all its parents; each is durable in its own parent before the next is made."""
    missing: list[Path] = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        files.make_directory(directory)
        files.sync_directory(directory.parent)


def put(files: Files, path: Path, data: bytes | memoryview) -> None:
    """Publish a file atomically and durably: write beside it, sync, rename, sync the directory."""
    beside = path.with_name(path.name + TMP)
    files.write(beside, data)
    files.sync(beside)
    files.rename(beside, path)
    files.sync_directory(path.parent)


def put_here(path: Path, data: bytes | memoryview) -> None:
    """`put` on the local file system. Missing directories are made, durably. Raises OSError."""
    files = LocalFiles()
    make_directories(files, path.parent)
    put(files, path, data)


@contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Hold an exclusive lock on a directory; other processes wait. The lock ends with the process. Raises OSError."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
