"""A lake in an object store: its paths are keys, and each writing call is a request (LAK-009, PIP-105).

```
PUT …/N.parquet   if none match
PUT …/N.json      if none match      now the segment exists
```

There are no directories, no rename and no sync: a put is atomic, and durable when it is answered. Apart from that the
lake is as in a directory, so code that reads a lake through paths reads both.
"""

import errno
import io
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PosixPath
from typing import IO, Any, Final

from weft.base.errors import UserError
from weft.lake.bucket import Access, Bucket, Listed, access_of
from weft.lake.files import Files, LocalFiles
from weft.lake.layout import TMP, local_path

_PLACE: Final = re.compile(r"s3:/{1,2}[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._=-]+)*/?")


def lake_path(lake: str | Path) -> Path:
    """Where a lake is: a directory, `file:///…`, or `s3://bucket/prefix`. UserError `lake-unreachable`, `bad-place`."""
    text = str(lake)
    if isinstance(lake, ObjectPath) or not text.startswith("s3:/"):
        return local_path(lake)
    if not _PLACE.fullmatch(text):
        raise UserError(
            "bad-place",
            f"{text!r} cannot be the place of a lake",
            "s3://bucket/prefix, with letters, digits and ._=- only",
        )
    return ObjectPath(text)


def refuse_unreachable(lake: str) -> None:
    """Raise UserError if a lake cannot be opened: `bad-place`, `no-keys`, `bad-endpoint`. Sends no request."""
    if isinstance(lake_path(lake), ObjectPath):
        access_of(os.environ)


def files_of(root: Path) -> Files:
    """The calls that write a lake at `root`."""
    return ObjectFiles() if isinstance(root, ObjectPath) else LocalFiles()


class ObjectPath(PosixPath):
    """A key of an object store, with the methods of a path that readers of a lake use. Other methods raise OSError."""

    _listed: Listed | None = None
    """The entry of the list that this path came from, if it came from one."""

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)

    @property
    def bucket(self) -> Bucket:
        """Its bucket. UserError `no-keys` if the environment has none."""
        return _bucket(self.parts[1], access_of(os.environ))

    @property
    def key(self) -> str:
        return "/".join(self.parts[2:])

    def read_bytes(self) -> bytes:
        return self.bucket.get(self.key)

    def open(self, mode: str = "r", *_: Any, **__: Any) -> IO[Any]:  # type: ignore[override]  # only reads bytes
        if mode != "rb":
            raise self._refused(f"open {mode}")
        return io.BytesIO(self.read_bytes())

    def exists(self, **_: Any) -> bool:
        return self.bucket.head(self.key) is not None

    def is_dir(self, **_: Any) -> bool:
        return next(self.bucket.below(f"{self.key}/", 1), None) is not None

    def iterdir(self) -> "Iterator[ObjectPath]":  # type: ignore[override]  # its own kind
        for listed in self.bucket.below(f"{self.key}/" if self.key else ""):
            path = self / listed.name
            path._listed = None if listed.is_prefix else listed
            yield path

    def glob(self, pattern: str, **_: Any) -> "Iterator[ObjectPath]":  # type: ignore[override]  # its own kind
        """What lies directly below and has a name that fits."""
        return (path for path in self.iterdir() if fnmatchcase(path.name, pattern))

    def stat(self, **_: Any) -> os.stat_result:
        """Size and time of an object. A prefix counts as a directory that changed just now, because no time is known."""
        listed = self._listed or self.bucket.head(self.key)
        if listed is None and not self.is_dir():
            raise FileNotFoundError(errno.ENOENT, "no such object", str(self))
        kind, size, at_ns = (stat.S_IFDIR, 0, time.time_ns()) if listed is None else (stat.S_IFREG, *listed[2:])
        return os.stat_result((kind, 0, 0, 1, 0, 0, size, *[at_ns // 1_000_000_000] * 3), {"st_mtime_ns": at_ns})

    def unlink(self, missing_ok: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002  # as of any path
        self.bucket.delete(self.key)

    def absolute(self) -> "ObjectPath":
        return self

    def mkdir(self, *_: Any, **__: Any) -> None:
        raise self._refused("mkdir")

    def rename(self, *_: Any, **__: Any) -> "ObjectPath":
        raise self._refused("rename")

    def replace(self, *_: Any, **__: Any) -> "ObjectPath":
        raise self._refused("replace")

    def __fspath__(self) -> str:
        raise self._refused("open as a file")

    def _refused(self, call: str) -> OSError:
        return OSError(errno.EOPNOTSUPP, f"an object store cannot {call}", str(self))


class ObjectFiles:
    """The writing calls on an object store."""

    def __init__(self) -> None:
        self._keeps_condition = False

    def make_directories(self, path: Path) -> None:
        """Does nothing: an object store has no directories."""

    def put(self, path: Path, data: bytes | memoryview, *, is_new: bool = False) -> None:
        """Write an object with one request.

        The first object with `is_new` is put twice, as a test. A store that accepts the second put ignores the condition,
        and two writers could overwrite each other there: OSError `EOPNOTSUPP`.
        """
        assert isinstance(path, ObjectPath), path
        bucket, key, body = path.bucket, path.key, bytes(data)
        if not is_new:
            bucket.put(key, body)
            return
        bucket.put_new(key, body)
        if not self._keeps_condition and bucket.put_once(key, body).status == 200:
            why = f"{bucket.access.endpoint} ignores `If-None-Match: *`, so two writers could overwrite each other's segments"
            raise OSError(errno.EOPNOTSUPP, why)
        self._keeps_condition = True

    def sync_directory(self, path: Path) -> None:
        """Does nothing: an object is durable once its put is answered."""

    def remove(self, path: Path) -> None:
        if not path.name.endswith(TMP):  # an object store has no temporary files
            path.unlink(missing_ok=True)

    def alone_in(self, directory: Path, patience_s: float | None = None) -> AbstractContextManager[None]:  # noqa: ARG002  # there are no locks
        return nullcontext()


@lru_cache(maxsize=8)
def _bucket(name: str, access: Access) -> Bucket:
    """One connection for all paths of a bucket."""
    return Bucket(name, access)
