"""Errors by blame: ours, a peer's, the user's. Nothing else leaves a core on purpose."""

import errno
from typing import Final

import msgspec

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors of a disk without room."""
FULL: Final = NO_ROOM | {errno.EFBIG}
"""Errors of a file or a disk without room."""
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Everything that msgspec raises for bytes that are not of the requested form (SEC-042)."""


class WeftError(Exception):
    """Raised on purpose, by blame: ours, a peer's, the user's. Nothing else leaves a core."""


class OurFault(WeftError):
    """A broken promise inside Weft. Never caught: the node stops and restores."""


class PeerError(WeftError):
    """A peer sent something that is not allowed now. It is refused and counted; nothing has changed (FUZ-001).

    `code` is one of the closed list that the protocol names (`bad-header`, `bad-frames` …); `shown` keeps at most 256
    bytes of the message.
    """

    def __init__(self, code: str, why: str = "", shown: bytes = b"") -> None:
        super().__init__(f"{code}: {why}" if why else code)
        self.code, self.why, self.shown = code, why, shown[:256]


class UserError(WeftError):
    """A person asked for something impossible, and is told what to type instead; `code` picks the exit code."""

    def __init__(self, code: str, text: str, try_this: str) -> None:
        super().__init__(f"{text}\n  try: {try_this}")
        self.code, self.text, self.try_this = code, text, try_this

    @property
    def mend(self) -> str:
        """What to type instead, by the name that it has in the errors of the client libraries (OPS-005)."""
        return self.try_this


class StorageFailed(WeftError):
    """The disk refused a write or a sync: nothing behind a wall leaves any more, and the process exits 74 (JRN-032)."""


def mend_of(error: StorageFailed) -> str:
    """What to do about a disk that refused a write."""
    full = isinstance(error.__cause__, OSError) and error.__cause__.errno in FULL
    return (
        "make room on that disk: df -h shows how much there is" if full else "weft journal verify, and look at the disk"
    )


def why_unread(error: OSError | UnicodeDecodeError) -> str:
    """Why a file of text could not be read, behind its name.

    >>> why_unread(FileNotFoundError(2, "No such file or directory", "a.toml"))
    'No such file or directory'
    >>> why_unread(UnicodeDecodeError("utf-8", b"x", 0, 1, "invalid start byte"))
    'it is no text in UTF-8'
    """
    return "it is no text in UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror or str(error)


EXIT_CODES: Final[dict[str, int]] = {
    "ok": 0,
    "violated": 1,
    "damaged": 1,
    "unproved": 1,
    "usage": 2,
    "unavailable": 3,
    "refused": 4,
    "unconfirmed": 5,
    "void": 5,
    "our-fault": 70,
    "storage-failed": 74,
    "lease-held": 75,
    "memory-exceeded": 75,
    "lost-lease": 76,
    "name-taken": 77,
    "no-java": 78,
}
"""The exit status of a process, by code; every code that is not listed here is a usage error (2)."""


def exit_code(code: str) -> int:
    """The exit status for the code of a UserError."""
    return EXIT_CODES.get(code, EXIT_CODES["usage"])
