"""The errors of a journal that cannot write, and how errors of the disk are classified."""

from pathlib import Path

from weft.base.errors import NO_ROOM, StorageFailed
from weft.shell.files import Files


class StorageFull(StorageFailed):
    """No space for these records. None of them was written, and earlier ones are safe (JRN-030).

    Callers that do not handle it treat it as a failed disk, which is safe.
    """


def is_no_room(error: OSError) -> bool:
    """Whether the error only means that the disk is full."""
    return error.errno in NO_ROOM


def failure(error: OSError, files: Files, path: Path, work: str = "written") -> StorageFailed:
    """The typed error for an error of the operating system at `path`: what cannot be done, and on which mount (JRN-033)."""
    try:
        mount: Path | str = files.mount_point(path)
    except OSError:
        mount = "its file system"
    kind = StorageFull if is_no_room(error) else StorageFailed
    return kind(f"{path} cannot be {work}: {error.strerror or error} ({mount})")
