"""The end of a table's log, as a driver knows it, and commits behind it that list no directory (LAK-031, PIP-103).

`deltalake` lists the directory of a log twice for each commit and once to bring a handle up to date, so what a commit
costs grows with the log: a driver makes five a second. Who knows the newest version needs no list. It tries the next name
for what others have committed, and writes its own commit under that name, by a hard link, which succeeds for one writer
only. The lines are those that `deltalake` writes.

`deltalake` still makes every hundredth commit, with the log's checkpoint, and each one that meets another writer's, because
it knows which of them exclude each other. So it does if the table has a property, or a protocol, that is not ours.

While a process sleeps, other drivers may commit so often that the log drops the version that it knows. Whatever it then asks
or wants to commit is refused: LeaseLost.
"""

import json
import os
import re
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec

from weft import __version__
from weft.lake.files import LocalFiles
from weft.pipeline.lease import LeaseLost
from weft.pipeline.logdigests import commit_file, version_of
from weft.pipeline.tables import LOG
from weft.pipeline.versions import paths_of

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

CHECKPOINT_COMMITS: Final = 100  # after as many the log gets a checkpoint
WRITER_VERSION: Final = 2
"""The protocol of our tables. A later one may ask more of a commit than is written here."""
_PLAIN: Final = re.compile(r"[\w=./-]+", re.ASCII)
"""Paths that the log has as they are; others would be URL-encoded."""


class _Transaction(msgspec.Struct):
    appId: str  # noqa: N815  # these are names in the Delta log
    version: int


class _File(msgspec.Struct):
    path: str


class _Line(msgspec.Struct):
    txn: _Transaction | None = None
    add: _File | None = None
    remove: _File | None = None
    metaData: dict[str, object] | None = None  # noqa: N815  # as above
    protocol: dict[str, object] | None = None


class TableLog:
    """One table: its newest version, the files and the applications' versions since `deltalake` last read them.

    Each method raises LeaseLost if the log has dropped the version that is known.
    """

    def __init__(self, handle: "DeltaTable", root: Path, properties: Collection[str]) -> None:
        """`properties`: those that we give to a table."""
        self.root = root
        self.is_plain = (
            handle.protocol().min_writer_version <= WRITER_VERSION
            and set(handle.metadata().configuration) <= set(properties)
            and self._file(handle.version()).exists()
        )
        """Whether this process may commit without `deltalake`."""
        self.restart(handle)

    def restart(self, handle: "DeltaTable") -> None:
        """Begin at the version of a handle that is up to date."""
        self._handle, self.version = handle, handle.version()
        self._apps: dict[str, int | None] = {}
        """Their versions, as far as somebody has asked for them."""
        self._files: dict[str, bool] = {}
        """By path: True if a commit behind the handle's version has added it, False if one has removed it."""

    def look(self) -> None:
        """Read what others have committed since."""
        with self._unless_dropped():
            while (file := self._file(self.version + 1)).exists():
                self._note(file.read_bytes())
        self._refuse_dropped()

    def app_version(self, app: str) -> int | None:
        """The last version of an application that is known, None if it has none."""
        if app not in self._apps:
            with self._unless_dropped():
                self._apps[app] = self._handle.transaction_version(app)
        return self._apps[app]

    def files(self) -> list[str]:
        """Absolute paths of the files of the newest version."""
        self.look()
        root = f"{self.root}/"
        kept = [file for file in paths_of(self._handle.file_uris()) if file.removeprefix(root) not in self._files]
        return kept + [root + path for path, is_there in self._files.items() if is_there]

    def handle(self) -> "DeltaTable":
        """The table at its newest version."""
        self.look()
        while self._handle.version() < self.version:
            with self._unless_dropped():
                self._handle.update_incremental()
            self.look()
        if self._handle.version() > self.version:  # the log has no commit behind the one that was known
            self.is_plain = False
            self.restart(self._handle)
        self._files.clear()
        return self._handle

    def handle_as_known(self) -> "DeltaTable":
        """The table at the last version that was looked at: `deltalake` then judges by itself what came behind it."""
        from deltalake import DeltaTable

        with self._unless_dropped():
            if self._handle.version() < self.version:
                self._handle.update_incremental()
            known = self._handle.version() == self.version
            return self._handle if known else DeltaTable(self.root, version=self.version)

    def append(self, actions: Sequence[Any], properties: "CommitProperties", partitions: list[str]) -> bool:
        """Commit these actions as the next version; False, and nothing is done, if `deltalake` has to do it.

        What it says and the files that it names are durable before it has its name. Raises OSError.
        """
        is_checkpoint = (self.version + 2) % CHECKPOINT_COMMITS == 0
        files = [_line_of_file(action) for action in actions]
        if not self.is_plain or is_checkpoint or not all(_PLAIN.fullmatch(path) for path, _ in files):
            return False
        lines = [_info(properties, partitions), *(line for _, line in files), *_transactions(properties)]
        sync_names(self.root, actions)
        data = "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines).encode()
        if not self._put(self._file(self.version + 1), data):
            return False
        self._note(data)
        return True

    def _put(self, file: Path, data: bytes) -> bool:
        """Write the file of a commit durably; False if it exists, or if that cannot be known here."""
        beside = file.with_name(f"{file.name}#{uuid.uuid4().hex}")
        try:
            beside.write_bytes(data)
            LocalFiles().sync(beside)
            if not self._linked(beside, file):
                return False
        finally:
            beside.unlink(missing_ok=True)
        if not self._file(self.version).exists():
            file.unlink()
            raise self._dropped()
        return True

    def _linked(self, beside: Path, file: Path) -> bool:
        try:
            os.link(beside, file)
        except FileExistsError:
            return False
        except OSError:  # a file system without links
            self.is_plain = False
            return False
        return True

    def _note(self, commit: bytes) -> None:
        """Take over the contents of the next version."""
        for line in map(_decoded, commit.splitlines()):
            if line.txn is not None:
                self._apps[line.txn.appId] = line.txn.version
            for changed, is_there in ((line.add, True), (line.remove, False)):
                if changed is not None:
                    self._files[unquote(changed.path)] = is_there
            if line.metaData is not None or line.protocol is not None:
                self.is_plain = False
        self.version += 1

    @contextmanager
    def _unless_dropped(self) -> Iterator[None]:
        """Replaces an error whose cause is that the log has dropped the version that is known."""
        try:
            yield
        except Exception:
            self._refuse_dropped()
            raise

    def _refuse_dropped(self) -> None:
        if self._file(self.version).exists() or self._file(self.version + 1).exists():
            return
        if max((version_of(file.name) for file in (self.root / LOG).iterdir()), default=-1) > self.version:
            raise self._dropped()

    def _dropped(self) -> LeaseLost:
        return LeaseLost(f"other drivers have committed thousands of times to {'.'.join(self.root.parts[-2:])}")

    def _file(self, version: int) -> Path:
        return commit_file(self.root / LOG, version)


_decoded: Final = msgspec.json.Decoder(_Line).decode


def unfinished(root: Path) -> Iterable[Path]:
    """What a process that was killed within a commit of its own has left in the log of a table."""
    return (root / LOG).glob(f"*.json#{'?' * 32}")


def sync_names(root: Path, actions: Iterable[Any]) -> None:
    """Make the names of a table's new files durable, before a commit has them. Raises OSError, also if one of them is gone.

    Vacuum goes by the dates of files. If the clock was set forward by years just now, it has deleted even new ones.
    """
    files = [root / unquote(action.path) for action in actions if not hasattr(action, "deletion_timestamp")]
    for file in files:
        file.stat()
    for place in {file.parent for file in files}:
        LocalFiles().sync_directory(place)


def _line_of_file(action: Any) -> tuple[str, dict[str, Any]]:
    """The path of an AddAction or a RemoveAction, and its line."""
    fields = {
        "path": action.path,
        "partitionValues": dict(action.partition_values or {}),
        "size": action.size,
        "dataChange": action.data_change,
    }
    if hasattr(action, "deletion_timestamp"):
        size = {} if action.size is None else {"size": action.size}
        when = {"deletionTimestamp": action.deletion_timestamp, "extendedFileMetadata": False}
        return action.path, {"remove": {name: fields[name] for name in fields if name != "size"} | size | when}
    return action.path, {"add": fields | {"modificationTime": action.modification_time, "stats": action.stats}}


def _info(properties: "CommitProperties", partitions: list[str]) -> dict[str, Any]:
    """The line that says who committed, when and what, as `deltalake` writes it."""
    fields = {
        "timestamp": time.time_ns() // 1_000_000,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": json.dumps(partitions)},
        "engineInfo": f"weft:{__version__}",
    }
    return {"commitInfo": fields | (properties.custom_metadata or {})}


def _transactions(properties: "CommitProperties") -> list[dict[str, Any]]:
    return [
        {"txn": {"appId": one.app_id, "version": one.version, "lastUpdated": one.last_updated}}
        for one in properties.app_transactions or ()
    ]
