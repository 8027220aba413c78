"""The paths of a lake (LAK-008, LAK-030). Every path is computed here and nowhere else.

```
<lake>/lake.json
<lake>/drain/<stream>/<drain>/<number // 4096, 8 hex>/<number, 16 hex>.parquet | .json | .wv
<lake>/tables/<layer>/<name>/
<lake>/checkpoints/<job>/
<lake>/_weft/lease | consumers | runs | imports | digests | spill | removal.json
```

Segment numbers start at 1 and have no holes, so a reader probes the next name and never lists a directory.
"""

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from weft.base.errors import UserError
from weft.base.records import Stream

FORMAT: Final = 1
SEGMENTS_PER_DIRECTORY: Final = 4096
TMP: Final = ".tmp"
STREAMS: Final[tuple[str, ...]] = tuple(stream.name.lower() for stream in Stream)
"""Names of the streams, in the order of their numbers."""

_DRAIN: Final = re.compile(r"[0-9a-f]{32}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,126}")
_BLOCK: Final = re.compile(r"[0-9a-f]{8}")
_SEGMENT: Final = re.compile(r"([0-9a-f]{16})\.(json|parquet|wv)(\.tmp)?")


def stream_name(stream: int) -> str:
    """The directory and table name of a stream number.

    >>> stream_name(1)
    'samples'
    """
    return STREAMS[stream - 1]


def local_path(lake: str | Path) -> Path:
    """The directory of a lake given as a path or as a `file:` URI (PIP-013).

    Raises UserError `lake-unreachable` for a scheme that this program cannot open.
    """
    if isinstance(lake, Path):
        return lake
    parts = urlsplit(lake)
    if parts.scheme in ("", "file"):
        return Path(unquote(parts.path) if parts.scheme else lake)
    raise UserError("lake-unreachable", f"a lake on {parts.scheme!r} cannot be opened", "a directory, or file:///path")


class LakeJson(msgspec.Struct, frozen=True, kw_only=True):
    """`lake.json`: the lake's identity and the format of its tables. Written once, by rename."""

    format: int
    lake: str
    """UUID, 32 hex."""
    tables: str
    """Format of the tables: `delta`."""
    created: int
    """Wall-clock nanoseconds."""
    schemas: dict[str, int]
    """Version of each stream's segment schema."""


class Layout:
    """All paths of one lake. Only computes; never touches the disk."""

    def __init__(self, lake: str | Path) -> None:
        self.root = local_path(lake)
        self._drained = str(self.root / "drain")
        self._path = type(self.root)

    @property
    def lake_json(self) -> Path:
        return self.root / "lake.json"

    def drains(self, stream: str) -> Path:
        """The directory that holds one directory per drain of a stream."""
        assert stream in STREAMS, stream
        return self.root / "drain" / stream

    def drain(self, stream: str, drain: str) -> Path:
        """The directory of one drain of a stream."""
        assert is_drain(drain), drain
        return self.drains(stream) / drain

    def block(self, stream: str, drain: str, number: int) -> Path:
        """The directory of a segment number, one per 4,096 numbers."""
        assert number >= 1, number
        return self.drain(stream, drain) / f"{number // SEGMENTS_PER_DIRECTORY:08x}"

    def parquet(self, stream: str, drain: str, number: int) -> Path:
        """The Parquet file with the rows of a segment."""
        return self._of_segment(stream, drain, number, "parquet")

    def manifest(self, stream: str, drain: str, number: int) -> Path:
        """The manifest of a segment. The segment exists exactly when this file does."""
        return self._of_segment(stream, drain, number, "json")

    def vector(self, stream: str, drain: str, number: int) -> Path:
        """The version vector of segments 1..number (LAK-022)."""
        return self._of_segment(stream, drain, number, "wv")

    def _of_segment(self, stream: str, drain: str, number: int, suffix: str) -> Path:
        # One f-string instead of five joins, because a reader makes such a path for each probe (PIP-005).
        assert number >= 1, number
        return self._path(
            f"{self._drained}/{stream}/{drain}/{number // SEGMENTS_PER_DIRECTORY:08x}/{number:016x}.{suffix}"
        )

    def packed(self, stream: str, drain: str, last: int) -> Path:
        """Stubs of deleted segments up to `last`, one manifest per line (LAK-017)."""
        return self.drain(stream, drain) / f"packed-{last:016x}.jsonl"

    def table(self, layer: str, name: str) -> Path:
        """A Delta table of a layer (bronze, silver, gold, meta, quarantine)."""
        assert is_name(layer), layer
        assert is_name(name), name
        return self.root / "tables" / layer / name

    def tables(self) -> Path:
        """The directory that holds one directory per layer."""
        return self.root / "tables"

    def checkpoint(self, job: str) -> Path:
        """The checkpoint of a job. `weft/` is in use; other directories here come from earlier versions."""
        assert is_name(job), job
        return self.root / "checkpoints" / job

    def coverage(self, job: str, batch: int) -> Path:
        """The vector of what silver and quarantine hold after a batch (PIP-021)."""
        return self.checkpoint(job) / "weft" / "coverage" / f"{batch}.wv"

    def checkpoint_id(self, job: str) -> Path:
        return self.checkpoint(job) / "weft" / "id"

    def lease(self, job: str) -> Path:
        """The lease of the process that runs a job (PIP-023)."""
        assert is_name(job), job
        return self.root / "_weft" / "lease" / f"{job}.json"

    def consumers(self) -> Path:
        return self.root / "_weft" / "consumers"

    def consumer(self, name: str, stream: str) -> Path:
        """The offset that a registered consumer has committed for one stream (LAK-016)."""
        assert is_name(name), name
        assert stream in STREAMS, stream
        return self.consumers() / f"{name}.{stream}.json"

    def imports(self, drain: str) -> Path:
        """The ledgers of the files imported into a dataset (PIP-097)."""
        assert is_drain(drain), drain
        return self.root / "_weft" / "imports" / drain

    def imported(self, drain: str, era: int) -> Path:
        """The ledger of one file: a digest per line."""
        return self.imports(drain) / f"{era:016x}.lines"

    def spill(self) -> Path:
        """Temporary files of sorts that do not fit into memory; the process that writes them deletes them."""
        return self.root / "_weft" / "spill"

    def adopted(self, table: str) -> Path:
        """Digests of a table's files whose names do not contain one (FLD-030)."""
        return self.root / "_weft" / "digests" / f"{table}.json"

    def log_digests(self, table: str) -> Path:
        """Digests of the log files of a table, as they were when written (FLD-030)."""
        return self.root / "_weft" / "digests" / table

    def removal(self) -> Path:
        """What is being removed from a table at the moment (LAK-037)."""
        return self.root / "_weft" / "removal.json"

    def runs(self) -> Path:
        return self.root / "_weft" / "runs"


def is_drain(text: str) -> bool:
    """Whether `text` is a drain id: 32 lowercase hex."""
    return _DRAIN.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Whether `text` may be a part of a file name: no separators, no leading dot."""
    return _NAME.fullmatch(text) is not None


def is_block(text: str) -> bool:
    return _BLOCK.fullmatch(text) is not None


def segment_file(name: str) -> tuple[int, str] | None:
    """Number and suffix of a file in a block directory; None if the name is not a segment's.

    >>> segment_file("000000000000000a.parquet.tmp")
    (10, 'parquet.tmp')
    """
    match = _SEGMENT.fullmatch(name)
    return (int(match[1], 16), match[2] + (match[3] or "")) if match else None
