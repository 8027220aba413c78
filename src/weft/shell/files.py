"""The file calls of the shell, all of them (FLT-030).

Durability depends on which calls are made in which order, so they are few and in one place. A call promises what Linux
promises, and no more. An append may be short. No data is durable before `sync`, and no name, whether created, renamed
or removed, before `sync_directory`.

`weft.testing.disk` has the same calls on a disk in memory, which records every call and fails on demand. Every call may
raise OSError.
"""

import errno
import fcntl
import os
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600  # JRN-007: no other user may read what a node keeps
DIRECTORY_MODE: Final = 0o700
PIECE_BYTES: Final = 1 << 20  # per read and copy


class File:
    """An open file: its path, and its descriptor."""

    __slots__ = ("number", "path")

    def __init__(self, path: Path, number: int) -> None:
        self.path, self.number = path, number


class Files:
    """The file calls of this machine."""

    def make_directory(self, path: Path) -> None:
        """Create a directory, or make an existing one private; its parent exists."""
        try:
            os.mkdir(path, DIRECTORY_MODE)
        except FileExistsError:
            if os.stat(path).st_mode & 0o777 != DIRECTORY_MODE:
                os.chmod(path, DIRECTORY_MODE)

    def list(self, path: Path) -> list[str]:
        """The names in a directory, sorted."""
        return sorted(os.listdir(path))

    def create(self, path: Path) -> File:
        """A new file to append to; FileExistsError if the name is taken."""
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        return File(path, os.open(path, flags, FILE_MODE))

    def open(self, path: Path, *, is_writable: bool = False) -> File:
        """Open an existing file, to read it, or also to overwrite, truncate and sync it."""
        return File(path, os.open(path, (os.O_RDWR if is_writable else os.O_RDONLY) | os.O_CLOEXEC))

    def append(self, file: File, data: bytes | bytearray) -> int:
        """Append to the end of a created file; returns how many bytes were written, which may be fewer."""
        return os.write(file.number, data)

    def overwrite(self, file: File, offset: int, data: bytes) -> int:
        """Overwrite a part of a file opened as writable; returns how many bytes were written."""
        return os.pwrite(file.number, data, offset)

    def sync(self, file: File) -> None:
        """Make content and length durable. Never called again after it failed (JRN-005)."""
        os.fdatasync(file.number)

    def truncate(self, file: File, size: int) -> None:
        """Truncate a file to `size` bytes."""
        os.ftruncate(file.number, size)

    def size(self, file: File) -> int:
        """The length of a file in bytes."""
        return os.fstat(file.number).st_size

    def read(self, file: File, offset: int, count: int) -> bytes:
        """`count` bytes from `offset`; fewer only at the end of the file."""
        data = os.pread(file.number, count, offset)
        if len(data) in (0, count):
            return data
        pieces = [data]
        while data and (count := count - len(data)):
            offset += len(data)
            data = os.pread(file.number, count, offset)
            pieces.append(data)
        return b"".join(pieces)

    def close(self, file: File) -> None:
        """Close an open file; a lock on it ends."""
        os.close(file.number)

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file; a file that had the new name is gone."""
        os.rename(source, target)

    def unlink(self, path: Path) -> None:
        """Remove a name; a process that has the file open can still read it."""
        os.unlink(path)

    def sync_directory(self, path: Path) -> None:
        """Make names that were created, renamed or removed in a directory durable."""
        number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(number)
        finally:
            os.close(number)

    def lock(self, path: Path) -> File:
        """An exclusive lock that ends with the process; the file names its holder.

        BlockingIOError if another process has it.
        """
        file = File(path, os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, FILE_MODE))
        try:
            fcntl.flock(file.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(file.number, 0)
            os.pwrite(file.number, b"%d\n" % os.getpid(), 0)
        except OSError:
            os.close(file.number)
            raise
        return file

    def free_bytes(self, path: Path) -> int:
        """Bytes that an unprivileged user may still write to the file system of `path`."""
        facts = os.statvfs(path)
        return facts.f_bavail * facts.f_frsize

    def mount_point(self, path: Path) -> Path:
        """The mount point of `path`, for messages to people."""
        path = Path(os.path.realpath(path))
        while not os.path.ismount(path):
            path = path.parent
        return path


def read_whole(files: Files, path: Path) -> bytes:
    """All bytes of a file."""
    file = files.open(path)
    try:
        return files.read(file, 0, files.size(file))
    finally:
        files.close(file)


def append_whole(files: Files, file: File, data: bytes | bytearray) -> None:
    """Append all of `data`; OSError if not all of it was written."""
    if files.append(file, data) != len(data):
        raise OSError(errno.ENOSPC, "no room for the whole write", str(file.path))


def put_whole(files: Files, path: Path, data: bytes) -> None:
    """Write a file completely or not at all, durably, in place of an earlier one of that name."""
    partial = path.with_name(path.name + ".tmp")
    remove(files, partial)
    file = files.create(partial)
    try:
        append_whole(files, file, data)
        files.sync(file)
    finally:
        files.close(file)
    files.rename(partial, path)
    files.sync_directory(path.parent)


def remove(files: Files, path: Path) -> None:
    """Remove a file that may not exist."""
    try:
        files.unlink(path)
    except FileNotFoundError:
        return
