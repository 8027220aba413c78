"""Prepares a start: a private directory, and a lock that no other process has (JRN-007)."""

from pathlib import Path
from typing import Final

from weft.base.errors import UserError
from weft.shell.files import File, Files, read_whole

LOCK: Final = "lock"


def prepare_directory(files: Files, directory: Path) -> None:
    """Make the directory and its parents, durable and private (0700). Raises OSError."""
    try:
        files.make_directory(directory)
    except FileNotFoundError:
        prepare_directory(files, directory.parent)
        files.make_directory(directory)
    files.sync_directory(directory.parent)


def lock_directory(files: Files, directory: Path) -> File:
    """The lock of the journal, held until it is closed; UserError `lease-held` names the process that holds it."""
    try:
        return files.lock(directory / LOCK)
    except BlockingIOError as error:
        raise UserError(
            "lease-held",
            f"the journal in {directory} is in use by process {holder(files, directory)}",
            "stop that process first, or give this node another state directory",
        ) from error


def holder(files: Files, directory: Path) -> str:
    """The process named in the lock file, as text for a person."""
    return read_whole(files, directory / LOCK).decode("ascii", "replace").strip() or "unknown"
