"""Imports foreign logs into a lake (PIP-095..098): file by file, into segments of the dataset's own drain.

```
file ▶ blocks of lines ▶ parser ▶ number per source ▶ already in the lake? ▶ columns ▶ segment
                                                        (vector, ledger)
```

When a file is imported again, a line whose number the lake has is skipped if it is unchanged. A changed line is stored
again under the same number, and silver marks it `changed`. Memory: one block, one segment, and one entry per series.
"""

from typing import Final

import msgspec

from weft.base.vectors import VersionVector
from weft.lake import manifest, segments, vectors
from weft.lake.files import LocalFiles
from weft.lake.importing import identity
from weft.lake.importing.columns import ImportedColumns, ImportedSegment, Owner
from weft.lake.importing.found import About, Found, Many, Nothing, Parser, Refused, Sample, remember
from weft.lake.importing.ledger import Ledger, digest_of
from weft.lake.importing.limits import SEGMENT_BYTES, SEGMENT_ROWS
from weft.lake.importing.lines import Block
from weft.lake.layout import Layout
from weft.lake.series import TEXT_MAX

STREAM: Final = "samples"
TORN: Final = "torn"
"""The reason for refusing a last line that has no LF and cannot be read."""


class Report(msgspec.Struct, kw_only=True):
    """The outcome for one file."""

    file: str
    format: str = ""
    lines: int = 0
    samples: int = 0
    """New rows that are good for silver."""
    held: int = 0
    """Rows that the lake already had."""
    changed: int = 0
    """Rows that the lake had, but whose lines have changed since; they go to quarantine."""
    refused: dict[str, int] = {}
    """New rows for quarantine, by reason."""
    passed: dict[str, int] = {}
    """Lines that hold no row: heartbeats, headers, comments, blank lines; also exemplars, which are parts of lines."""
    fault: str = ""
    """Why the file could not be read to its end; empty if it could."""


class Sink:
    """The drain of one dataset, and the segment that is being filled."""

    def __init__(self, lake: Layout, dataset: str, now_ns: int, files: LocalFiles | None = None) -> None:
        self.lake, self.dataset, self.now_ns = lake, dataset, now_ns
        self.files = files or LocalFiles()
        self.drain = identity.drain_of(dataset)
        segments.clean(lake, STREAM, self.drain, self.files)
        tip = segments.find_tip(lake, STREAM, self.drain)
        self.number, self.prior = tip.number, tip.prior
        self.held = vectors.vector_at(lake, STREAM, self.drain, tip.number) if tip.number else VersionVector()
        self.columns = ImportedColumns(now_ns, tip.lsn)
        self._waiting: list[Ledger] = []

    def cut_if_full(self) -> None:
        """Publish the segment if it is full."""
        if self.columns.rows >= SEGMENT_ROWS or self.columns.bytes >= SEGMENT_BYTES:
            self.cut()

    def finish(self, ledger: Ledger) -> None:
        """Close the ledger of a file whose lines are all added. `cut` publishes it after their last segment."""
        ledger.close()
        self._waiting.append(ledger)

    def cut(self) -> None:
        """Publish the segment, then the ledgers of its files. Raises OSError."""
        if self.columns.rows:
            place = segments.Place(STREAM, self.drain, self.number + 1, self.prior)
            segment = ImportedSegment(place, self.columns)
            segment.close()
            try:
                link = segment.publish(self.lake, self.files)
            except OSError:
                segment.discard(self.lake, self.files)
                raise
            vectors.publish(self.lake, place, self.files)
            self.number, self.prior = place.number, link.digest
            self.columns = ImportedColumns(self.now_ns, self.columns.last_lsn)
        for ledger in self._waiting:
            ledger.publish(self.files)
        self._waiting.clear()


class Numbered:
    """One source in one file: the number of the last row so far, and up to which number the lake has rows of it."""

    __slots__ = ("held", "number")

    def __init__(self, held: int) -> None:
        self.number, self.held = 0, held


class FileImport:
    """Imports the lines of one file, one after the other."""

    def __init__(self, sink: Sink, name: str, report: Report) -> None:
        self.sink, self.name, self.report = sink, name, report
        self.parser: Parser | None = None
        """Set before `take` is called; the first block decides which parser it is."""
        self.ledger: Ledger | None = None
        self.era = 0
        self._sources: dict[str, Numbered] = {}
        self._owners: dict[About, tuple[Owner, Numbered]] = {}
        self._refused: dict[str, About] = {}
        self._digests: list[bytes] = []

    def take(self, block: Block) -> None:
        """Import all lines of a block."""
        assert self.parser is not None, self.name
        read = self.parser.read
        whole = block.lines[:-1] if block.is_torn else block.lines
        for line in whole:
            self._take_line(line, read(line))
        if block.is_torn:
            line = block.lines[-1]
            found = read(line)
            self._take_line(line, Refused(TORN) if isinstance(found, Refused) else found)
        self.report.lines += len(block.lines)
        if self.ledger is not None:
            self.ledger.add(self._digests)
            self._digests.clear()
        self.sink.cut_if_full()

    def _take_line(self, line: bytes, found: Found) -> None:
        if self.ledger is None and not _is_header(found):
            self.era = identity.era_of(self.name, line)
            self.ledger = Ledger(self.sink.lake.imported(self.sink.drain, self.era))
        if isinstance(found, Nothing):
            self.report.passed[found.what] = self.report.passed.get(found.what, 0) + 1
            return
        assert self.ledger is not None, self.name
        old_digest = next(self.ledger.before, b"")
        if isinstance(found, Many):
            self._take_many(line, found, old_digest)
        else:
            self._digests.append(self._take_row(line, found, old_digest))

    def finish(self) -> None:
        """The file is imported to its end."""
        if self.ledger is not None:
            self.sink.finish(self.ledger)

    def discard(self) -> None:
        """The import of the file has failed: its old ledger stays in force. Rows that were read so far stay."""
        if self.ledger is not None:
            self.ledger.discard()

    def _take_many(self, line: bytes, found: Many, old_digest: bytes) -> None:
        digest = b""
        for one in found.rows:
            digest = self._take_row(line, one, old_digest, digest)
        self._digests.append(digest)

    def _take_row(self, line: bytes, found: Sample | Refused, old_digest: bytes, digest: bytes = b"") -> bytes:
        """Number a row and add it, unless the lake has it unchanged. Returns the line's digest."""
        about = found.about if isinstance(found, Sample) else self._about_refused(found)
        owner, numbered = self._owners.get(about) or self._owner_of(about)
        numbered.number = number = numbered.number + 1
        digest = digest or digest_of(line, number)  # that of a line with several rows comes from its first
        is_held = number <= numbered.held
        if is_held and (not old_digest or old_digest == digest):
            self.report.held += 1
        else:
            self.report.changed += is_held
            self._gather(owner, number, found, line, is_new=not is_held)
        return digest

    def _gather(self, owner: Owner, number: int, found: Sample | Refused, line: bytes, *, is_new: bool) -> None:
        sink, report = self.sink, self.report
        if isinstance(found, Sample):
            reason = found.doubt
            sink.columns.add(owner, number, *found[1:4])
        else:
            reason = found.reason
            sink.columns.refuse(owner, number, (reason, line))
        if not is_new:
            return
        if reason:
            report.refused[reason] = report.refused.get(reason, 0) + 1
        else:
            report.samples += 1

    def _owner_of(self, about: About) -> tuple[Owner, Numbered]:
        """What the rows of a series share, and the numbers of its source. Made at the first row of each."""
        source = about.source
        origin = identity.origin_of(self.sink.dataset, source)
        numbered = self._sources.get(source)
        if numbered is None:
            held = self.sink.held.prefix(manifest.origin_of(origin, self.era))
            numbered = self._sources[source] = Numbered(held)
        shared = {"dataset": self.sink.dataset, "file": self.name, "node": source or self.sink.dataset}
        owner = Owner(about, origin, self.era, list(shared.items()))
        return remember(self._owners, about, (owner, numbered))

    def _about_refused(self, refused: Refused) -> About:
        """What an unreadable line is counted for: its source if that could be read, else the unnamed source."""
        source = refused.source if len(refused.source) <= TEXT_MAX else ""
        about = self._refused.get(source)
        if about is None:
            about = self._refused[source] = About(source, None)
        return about


def _is_header(found: Found) -> bool:
    return type(found) is Nothing and found.what != "heartbeats"
