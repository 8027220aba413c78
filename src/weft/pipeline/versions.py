"""Finds a version of a table: the newest, one by its number, or the one at an instant (PIP-090).

The log has a file for each commit, with its time, and commits are in order; so the last one up to an instant is found by
binary search. Version numbers count the commits of one table, but an instant means the same for all tables. So a query
over several tables should use an instant.

For those who only read, a process keeps the newest version of each table open (`newest`).
"""

from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from weft.base.errors import UserError
from weft.pipeline.tables import LOG

if TYPE_CHECKING:
    from deltalake import DeltaTable

AsOf = int | datetime
"""A version number, or an instant."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
ENDING: Final = ".json"
NEAR: Final = 8  # commits in which the version of an application is looked for, before the whole log is read
HELD_MAX: Final = 256  # tables
_DIGITS: Final = 20  # digits of a version in the name of its commit
_HINT: Final = "_last_checkpoint"
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
"""The tables that `newest` has opened last."""


class _CommitInfo(msgspec.Struct):
    timestamp: int
    """Milliseconds since 1970."""


class _Transaction(msgspec.Struct):
    appId: str  # noqa: N815  # these are names in the Delta log
    version: int


class _Line(msgspec.Struct):
    commitInfo: _CommitInfo | None = None  # noqa: N815  # as above
    txn: _Transaction | None = None


class _Checkpoint(msgspec.Struct):
    version: int


_TRANSACTION: Final = b'"txn"'
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
    """The table at a version; None if the table did not exist then.

    UserError `no-version` for a number that was not reached yet, or a version that the log does not have any more.
    """
    from deltalake import DeltaTable

    if not DeltaTable.is_deltatable(str(path)):
        return None
    if wish is None:
        return DeltaTable(path)
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


def newest(path: Path, name: str) -> "DeltaTable | None":
    """The table at its newest version, as `opened`: the same object as long as there is no newer one, so only to be read."""
    stamp, handle = _held.pop(path, (None, None))
    if stamp is not None and stamp == _stamp(path, stamp.version) and not _commit(path, stamp.version + 1).exists():
        assert handle is not None, "held with its stamp"
        _held[path] = stamp, handle
        return handle
    hint = _file(path / LOG / _HINT)
    handle = opened(path, name, None)
    stamp = None if handle is None else _stamp(path, handle.version())
    if handle is not None and stamp is not None and stamp.hint == hint:
        if len(_held) >= HELD_MAX:
            _held.clear()
        _held[path] = stamp, handle
    return handle


def stamp_of(handle: "DeltaTable") -> Stamp | None:
    """The stamp of a table that `newest` has opened; None if it holds another version by now."""
    return next((stamp for stamp, known in list(_held.values()) if known is handle), None)


def app_version(path: Path, handle: "DeltaTable", app: str) -> int | None:
    """The version of an application as of a version of a table, None if it has none: mostly one of the newest commits says it."""
    end = max(
        handle.version() - NEAR, _checkpoint(path)
    )  # nobody needs a commit up to the checkpoint: it may be damaged
    for version in range(handle.version(), end, -1):
        try:
            lines = _commit(path, version).read_bytes().splitlines()
            read = [_decoded(line) for line in lines if _TRANSACTION in line]
        except (OSError, msgspec.MsgspecError):
            break
        found = next((line.txn.version for line in read if line.txn is not None and line.txn.appId == app), None)
        if found is not None:
            return found
    return handle.transaction_version(app)


def _checkpoint(path: Path) -> int:
    """The version up to which the log's newest checkpoint repeats what commits say; -1 if there is none that can be read."""
    try:
        return msgspec.json.decode((path / LOG / _HINT).read_bytes(), type=_Checkpoint).version
    except (OSError, msgspec.MsgspecError):
        return -1


def _stamp(path: Path, version: int) -> Stamp | None:
    """The stamp of a version of the table that is at a path now; None if the log does not have its commit."""
    commit = _file(_commit(path, version))
    return None if commit is None else Stamp(str(path), version, commit, _file(path / LOG / _HINT))


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
    return EPOCH + timedelta(milliseconds=_made_at(_commit(path, version)))


def _version_at(path: Path, name: str, wish: datetime) -> int:
    """The last version up to an instant; -1 if the table was made later. UserError `no-version`."""
    commits = sorted(file for file in (path / LOG).glob("*" + ENDING) if _is_commit(file.name))
    place = bisect_right(commits, (wish - EPOCH) // timedelta(milliseconds=1), key=_made_at)
    if place == 0 and _number(commits[0]) > 0:
        raise _gone(name, wish.isoformat(), "its log is kept for 7 days, and for 10,000 commits at most")
    return _number(commits[place - 1]) if place else -1


def _commit(path: Path, version: int) -> Path:
    return path / LOG / f"{version:0{_DIGITS}}{ENDING}"


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
