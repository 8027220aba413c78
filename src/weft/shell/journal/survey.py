"""The files in a journal's directory, read before anything is changed there.

Each file begins with the record that follows the last one of the file before, and names the checksum of that file's
last body. So the headers and last bytes of files show whether one is missing, foreign or misplaced; what is between need
not be read (JRN-011, JRN-024). A reader of a running node, `weft journal verify` and a start all begin with this survey;
only a start goes on to change files.
"""

import re
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from weft.base.errors import PeerError
from weft.shell.files import Files
from weft.shell.journal.segment import SEGMENT_SUFFIX, SNAPSHOT_SUFFIX, Segment, name_of
from weft.shell.journal.witness import read_newest
from weft.wire.segments import HEADER_BYTES, SEGMENT, SNAPSHOT

TMP_SUFFIX: Final = ".tmp"
_SEGMENT_NAME: Final = re.compile(rf"[0-9a-f]{{16}}\{SEGMENT_SUFFIX}")
_SNAPSHOT_NAME: Final = re.compile(rf"[0-9a-f]{{16}}\{SNAPSHOT_SUFFIX}")


class Fault(NamedTuple):
    """Why a node must not start on a journal (JRN-024)."""

    kind: str
    """`bad-header`, `foreign`, `misplaced`, `missing` or `gone`."""
    name: str
    """The file; if files are missing, the one after them, if there is one."""
    first_lsn: int = 0
    end_lsn: int = 0
    """Missing are the records from `first_lsn` up to, and without, this lsn."""

    def __str__(self) -> str:
        return _FAULTS[self.kind].format(fault=self)


_FAULTS: Final = {
    "bad-header": "{fault.name}: its header is damaged",
    "foreign": "{fault.name}: belongs to another node",
    "misplaced": "{fault.name}: its header does not fit its name or its place",
    "missing": "records {fault.first_lsn} to {fault.end_lsn} (exclusive) are missing before {fault.name}",
    "gone": "{fault.name} is gone: all records from {fault.first_lsn} on are lost, how many is not known",
}


class Survey:
    """The files of one journal, in order. `settle` checks that each continues the one before."""

    def __init__(self, files: Files, directory: Path, node: bytes | None) -> None:
        self.files, self.directory, self.node = files, directory, node
        self.segments: list[Segment] = []
        self.snapshots: list[Segment] = []
        """Those whose header is valid; `snapshot` finds the newest that is valid throughout."""
        self.unfinished: list[Path] = []
        """Files that a crash has interrupted before any record was in them."""
        self.unfinished_lsn: int | None = None
        """The first lsn of the interrupted segment: the segment before it was complete by then."""
        self.ignored: list[Path] = []
        """Snapshots that are incomplete or damaged."""
        self.faults: list[Fault] = []
        self.newest = read_newest(files, directory, node)
        """Header of the newest segment, by the note that is kept beside the segments (see `witness`)."""
        if self.newest is not None and node is None:
            self.node = self.newest.node
        names = _names(files, directory, is_noted=self.newest is not None)
        self.unfinished += [directory / name for name in names if name.endswith(TMP_SUFFIX)]
        segment_names = [name for name in names if _SEGMENT_NAME.fullmatch(name)]
        for name in segment_names:
            self._load_segment(directory / name, is_last=name == segment_names[-1])
        for name in names:
            if _SNAPSHOT_NAME.fullmatch(name):
                self._load_snapshot(directory / name)

    def _load_segment(self, path: Path, *, is_last: bool) -> None:
        try:
            segment = Segment.load(self.files, path, self.node)
        except PeerError as error:
            if is_last and error.code == "bad-header" and self._size(path) <= HEADER_BYTES:
                self.unfinished.append(path)  # its header was not synced, so it has no batch (JRN-012)
                self.unfinished_lsn = int(path.stem, 16)
            else:
                self.faults.append(Fault(error.code, path.name))
            return
        self.node = self.node or segment.header.node
        if self._is_in_place(segment, SEGMENT, SEGMENT_SUFFIX):
            self.segments.append(segment)

    def _load_snapshot(self, path: Path) -> None:
        try:
            snapshot = Segment.load(self.files, path, self.node)
        except PeerError as error:
            if error.code == "foreign":
                self.faults.append(Fault("foreign", path.name))
            self.ignored.append(path)
            return
        if self._is_in_place(snapshot, SNAPSHOT, SNAPSHOT_SUFFIX):
            self.snapshots.append(snapshot)

    def _is_in_place(self, segment: Segment, magic: bytes, suffix: str) -> bool:
        is_good = segment.header.magic == magic and segment.path.name == name_of(segment.first_lsn, suffix)
        if not is_good:
            self.faults.append(Fault("misplaced", segment.path.name))
        return is_good

    def _size(self, path: Path) -> int:
        file = self.files.open(path)
        try:
            return self.files.size(file)
        finally:
            self.files.close(file)

    def settle(self) -> None:
        """Find the end of each segment but the last, and check that the next one begins there."""
        for segment, following in pairwise(self.segments):
            segment.settle(self.files, following.first_lsn)
            if segment.end.lsn < following.first_lsn:
                self.faults.append(Fault("missing", following.path.name, segment.end.lsn, following.first_lsn))
            elif segment.end.lsn > following.first_lsn:
                self.faults.append(Fault("misplaced", following.path.name))

    def join(self) -> None:
        """Add a gap where a segment does not name the checksum of the last body in the segment before."""
        for segment, following in pairwise(self.segments):
            is_broken_off = segment.gaps and segment.gaps[-1].end_lsn == segment.end.lsn
            if not is_broken_off and segment.chain not in (None, following.header.prev):
                following.torn_off()

    def snapshot(self) -> Segment | None:
        """The newest complete and verified snapshot (JRN-040); newer ones are ignored from now on."""
        while self.snapshots:
            newest = self.snapshots[-1]
            if newest.is_complete(self.files):
                return newest
            self.ignored.append(self.snapshots.pop().path)
        return None

    def follow(self, snapshot: Segment | None) -> None:
        """Check that the segments hold all records since the snapshot, once the end of the last one is known."""
        since = snapshot.first_lsn if snapshot else 1
        self._seek_newest(since)
        if not self.segments:
            return
        first, end = self.segments[0].first_lsn, self.segments[-1].end.lsn
        if first > since:
            self.faults.append(Fault("missing", self.segments[0].path.name, since, first))
        if end < since and all(fault.kind != "gone" for fault in self.faults):
            self.faults.append(Fault("missing", "the end", end, since))

    def _seek_newest(self, since: int) -> None:
        """Check that the newest segment is there; no later file would show that it is missing."""
        newest = self.newest
        if newest is None or any(segment.first_lsn >= newest.first_lsn for segment in self.segments):
            return
        name = name_of(newest.first_lsn)
        if all(fault.name != name for fault in self.faults):
            self.faults.append(Fault("gone", name, newest.first_lsn, max(newest.first_lsn + 1, since)))
        end = self.segments[-1].end.lsn if self.segments else since
        if end < newest.first_lsn:
            self.faults.append(Fault("missing", name, end, newest.first_lsn))


def _names(files: Files, directory: Path, *, is_noted: bool) -> list[str]:
    """The names in the directory. If it is gone: none, if a note shows that it was there; else FileNotFoundError."""
    try:
        return files.list(directory)
    except FileNotFoundError:
        if not is_noted:
            raise
        return []
