"""Finds a version of a table: the newest, one by its number, or the one at an instant (PIP-090).

The log has a file for each commit, with its time, and commits are in order; so the last one up to an instant is found by
binary search. Version numbers count the commits of one table, but an instant means the same for all tables. So a query
over several tables should use an instant.

For those who only read, a process keeps the newest version of each table open.
"""

from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from weft.base.errors import UserError
from weft.pipeline.logdigests import HINT, commit_file
from weft.pipeline.tables import LOG

if TYPE_CHECKING:
    from deltalake import DeltaTable

AsOf = int | datetime
"""A version number, or an instant."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
ENDING: Final = ".json"
HELD_MAX: Final = 256  # tables
_DIGITS: Final = 20  # digits of a version in the name of its commit
_File = tuple[int, int, int, int]
"""What tells a file from one that had its name before or has it later: its inode, two times, its size."""


class Stamp(NamedTuple):
    """Tells a version of a table from others, also of a table that was deleted and made anew."""

    path: str
    version: int
    commit: _File
    hint: _File | None
    """Of the log's newest checkpoint. Behind it the log may drop what a table that was opened before it still needs."""


_held: Final[dict[Path, "tuple[Stamp, DeltaTable]"]] = {}
"""The newest versions of tables that were opened last."""


class _CommitInfo(msgspec.Struct):
    timestamp: int
    """Milliseconds since 1970."""


class _Line(msgspec.Struct):
    commitInfo: _CommitInfo | None = None  # noqa: N815  # the name in the Delta log


_decoded: Final = msgspec.json.Decoder(_Line).decode


def as_of(text: str) -> AsOf:
    """A version from user input: digits are a version number, anything else an ISO 8601 time, UTC if it has no zone.

    UserError `bad-time`.

    >>> as_of("12"), as_of("2026-11-21T12:00Z").isoformat()
    (12, '2026-11-21T12:00:00+00:00')
    """
    return int(text) if text.isascii() and text.isdigit() else instant(text)


def instant(given: str | date | datetime) -> datetime:
    """A time from ISO 8601, UTC if it has no zone; a date is its midnight. UserError `bad-time`."""
    if isinstance(given, str):
        try:
            given = datetime.fromisoformat(given)
        except ValueError:
            raise UserError("bad-time", f"{given!r} is neither a version nor a time", "2026-01-31T12:00:00Z") from None
    if not isinstance(given, datetime):
        given = datetime(given.year, given.month, given.day, tzinfo=UTC)
    return given if given.tzinfo else given.replace(tzinfo=UTC)


def opened(path: Path, name: str, wish: AsOf | None) -> "DeltaTable | None":
    """The table at a version, only to be read, because others may get the same object; None if the table did not exist then.

    UserError `no-version` for a number that was not reached yet, or a version that the log does not have any more.
    """
    from deltalake import DeltaTable

    if wish is None:
        return _newest(path)
    if not DeltaTable.is_deltatable(str(path)):
        return None
    version = _version_at(path, name, wish) if isinstance(wish, datetime) else wish
    if version < 0:
        return None
    last = DeltaTable(path)
    if version > last.version():
        raise _gone(name, f"version {version}", f"0 to {last.version()}")
    try:
        return DeltaTable(path, version=version)
    except Exception as error:  # deltalake has no exception type for a log whose beginning is deleted
        raise _gone(name, f"version {version}", f"the newest is {last.version()}") from error


def _newest(path: Path) -> "DeltaTable | None":
    """The table at its newest version; the same object again as long as there is no newer one."""
    from deltalake import DeltaTable

    held = _held.pop(path, None)
    if held is None or not _is_newest(path, held[0]):
        hint = _file(path / LOG / HINT)
        if not DeltaTable.is_deltatable(str(path)):
            return None
        handle = DeltaTable(path)
        stamp = _stamp(path, handle.version())
        if stamp is None or stamp.hint != hint:
            return handle
        held = stamp, handle
    if len(_held) >= HELD_MAX:
        _held.clear()
    _held[path] = held
    return held[1]


def _is_newest(path: Path, stamp: Stamp) -> bool:
    return stamp == _stamp(path, stamp.version) and not commit_file(path / LOG, stamp.version + 1).exists()


def stamp_of(handle: "DeltaTable") -> Stamp | None:
    """The stamp of a newest version from `opened`; None if it holds another version by now."""
    return next((stamp for stamp, known in list(_held.values()) if known is handle), None)


def _stamp(path: Path, version: int) -> Stamp | None:
    """The stamp of a version of the table that is at a path now; None if the log does not have its commit."""
    commit = _file(commit_file(path / LOG, version))
    return None if commit is None else Stamp(str(path), version, commit, _file(path / LOG / HINT))


def _file(path: Path) -> _File | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


def paths_of(uris: Iterable[str]) -> list[str]:
    """Paths from URIs of deltalake, which URL-encodes characters like a space or an umlaut.

    >>> paths_of(["/my%20lake/silver/samples/b0000000007-0a-0000.parquet"])
    ['/my lake/silver/samples/b0000000007-0a-0000.parquet']
    """
    return [unquote(uri) for uri in uris]


def made_at(path: Path, version: int) -> datetime:
    """When a version was committed. OSError if its commit is not in the log any more."""
    return EPOCH + timedelta(milliseconds=_made_at(commit_file(path / LOG, version)))


def _version_at(path: Path, name: str, wish: datetime) -> int:
    """The last version up to an instant; -1 if the table was made later. UserError `no-version`."""
    commits = sorted(file for file in (path / LOG).glob("*" + ENDING) if _is_commit(file.name))
    place = bisect_right(commits, (wish - EPOCH) // timedelta(milliseconds=1), key=_made_at)
    if place == 0 and _number(commits[0]) > 0:
        raise _gone(name, wish.isoformat(), "its log is kept for 7 days, and for 10,000 commits at most")
    return _number(commits[place - 1]) if place else -1


def _is_commit(name: str) -> bool:
    return len(name) == _DIGITS + len(ENDING) and name[:_DIGITS].isdigit()


def _number(commit: Path) -> int:
    return int(commit.name[:_DIGITS])


def _made_at(commit: Path) -> int:
    """When a commit was made, milliseconds since 1970: as it says, else the date of its file."""
    for line in commit.read_bytes().splitlines():
        info = _decoded(line).commitInfo
        if info is not None:
            return info.timestamp
    return round(commit.stat().st_mtime * 1000)


def _gone(name: str, what: str, available: str) -> UserError:
    return UserError("no-version", f"{name} has no version as of {what}: {available}", f"weft lake history {name}")
