"""Follows the segments of a stream by probing numbers, not by listing, and verifies the chain (PIP-005, PIP-008).

A `Follower` knows one drain, a `Source` all drains of a stream. Both read manifests only. A plan consists of `Slice`s,
from which Spark, DuckDB or `pyspark_weft` read the Parquet files. Directories are listed once at the start; the
directory of the drains is listed again when its time stamp changes.
"""

import time
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from weft.base.errors import UserError
from weft.base.vectors import VersionVector
from weft.lake.layout import STREAMS, Layout, is_drain
from weft.lake.manifest import NO_PRIOR, Link, Manifest, SegmentFault, verify
from weft.lake.offsets import At, Offset, offset_of, parse
from weft.lake.segments import find_tip
from weft.lake.stubs import link_at, packed_path, read_manifest
from weft.lake.vectors import add_manifest, vector_at

ROWS_MAX: Final = 1_000_000  # rows of a batch, by default (PIP-002)
SEGMENTS_MAX: Final = 256
# a directory that changed this recently may change again without getting a new time stamp
_FRESH_NS: Final = 2_000_000_000


class Slice(NamedTuple):
    """Rows `first..last - 1` of one segment."""

    drain: str
    number: int
    path: str
    first: int
    last: int
    rows: int
    """Rows of the whole segment, according to its manifest."""
    bytes: int
    sha256: str

    @property
    def is_whole(self) -> bool:
        return (self.first, self.last) == (0, self.rows)


class Limits(NamedTuple):
    """How much one step may take. None means no limit."""

    rows: int | None = ROWS_MAX
    segments: int | None = SEGMENTS_MAX
    is_whole: bool = False
    """True: a segment is taken as a whole or not at all.

    One that exceeds the limit of rows waits for the next step. The first of a step is taken however long it is.
    """


NO_LIMITS: Final = Limits(None, None)


class Follower:
    """The manifests of one drain from a number on. Each is verified to follow the one before it."""

    def __init__(self, lake: Layout, stream: str, drain: str) -> None:
        self.lake, self.stream, self.drain = lake, stream, drain
        self.tip = find_tip(lake, stream, drain).number
        """The highest number that is known to exist."""
        self._first = 1
        self._links: list[Link] = []

    def manifest(self, number: int) -> Manifest | None:
        """The manifest of a number; None if that segment does not exist yet. Probes one name at a time."""
        if not self._first <= number <= self._first + len(self._links):
            self._begin(number)
        while number >= self._first + len(self._links):
            if not self._probe():
                return None
        return self._links[number - self._first].manifest

    def digest(self, number: int) -> str:
        """The digest of a manifest that is in memory: what the next one must have as `prior`."""
        return self._links[number - self._first].digest

    def forget(self, before: int) -> None:
        """Drop manifests below a number from memory. One stays, because it is needed to verify the next."""
        count = min(before - self._first, len(self._links) - 1)
        if count > 0:
            del self._links[:count]
            self._first += count

    def _begin(self, number: int) -> None:
        """Start again at the manifest before `number`, so that the manifest of `number` can be verified."""
        self._first, self._links = max(1, number - 1), []
        if number > 1:
            self._links.append(link_at(self.lake, self.stream, self.drain, number - 1))

    def _probe(self) -> bool:
        number = self._first + len(self._links)
        prior = self._links[-1].digest if self._links else NO_PRIOR
        try:
            data = read_manifest(self.lake, self.stream, self.drain, number)
        except SegmentFault:
            if number <= self.tip:
                raise  # it existed, or a later one does: it was removed
            return False
        self._links.append(verify(data, self.drain, number, prior))
        self.tip = max(self.tip, number)
        return True

    def newest(self) -> int:
        """The highest number that exists now. Probes one name after the other, from the highest known number."""
        place = self.lake, self.stream, self.drain
        while self.lake.manifest(*place[1:], self.tip + 1).exists() or packed_path(*place, self.tip + 1).exists():
            self.tip += 1
        return self.tip

    def first_kept(self) -> int:
        """The lowest number whose rows still exist. Stubs before it are skipped."""
        return 1 + bisect_left(range(1, self.tip + 1), 1, key=lambda number: int(not self._peek(number).gone))

    def first_received(self, since_ns: int, first: int) -> int:
        """The lowest number from `first` on that has a row received at or after `since_ns`.

        One above the last number if none has. Every manifest is examined: a node that was away for a week is drained
        late, so early time stamps can stand in late segments.
        """
        numbers = range(first, self.tip + 1)
        return next((n for n in numbers if (self._peek(n).last_received or 0) >= since_ns), self.tip + 1)

    def _peek(self, number: int) -> Manifest:
        return link_at(self.lake, self.stream, self.drain, number).manifest


class Source:
    """All drains of one stream: how far there is data, and the rows between two positions."""

    def __init__(self, lake: Layout, stream: str) -> None:
        assert stream in STREAMS, stream
        self.lake, self.stream = lake, stream
        self.followers: dict[str, Follower] = {}
        self._listed_at = -1
        self._at: At = {}
        self._vector = VersionVector()

    def drains(self) -> dict[str, Follower]:
        """The drains of this stream. A new one is noticed by the time stamp of their directory."""
        home = self.lake.drains(self.stream)
        try:
            changed_at = home.stat().st_mtime_ns
        except FileNotFoundError:
            return self.followers
        if changed_at != self._listed_at:
            self._listed_at = changed_at if time.time_ns() - changed_at > _FRESH_NS else -1
            for name in sorted(path.name for path in home.iterdir()):
                if is_drain(name) and name not in self.followers:
                    self.followers[name] = Follower(self.lake, self.stream, name)
        return self.followers

    # Positions.

    def earliest(self) -> At:
        """The position before the first row that still exists."""
        return {drain: (follower.first_kept(), 0) for drain, follower in self.drains().items()}

    def latest(self) -> At:
        """The position behind the last segment that exists now."""
        return {drain: (follower.newest() + 1, 0) for drain, follower in self.drains().items()}

    def since(self, received_ns: int) -> At:
        """The position before the first segment with a row received at or after an instant."""
        kept = self.earliest()
        return {drain: (self.followers[drain].first_received(received_ns, kept[drain][0]), 0) for drain in kept}

    def advance(self, at: At, limits: Limits = NO_LIMITS, until: At | None = None) -> At:
        """The next position: as far as data and limits allow. Drains take turns, segment by segment.

        If `until` is given, it is the end of the drains it names, and other drains are not read. A new drain begins at
        its first segment. SegmentFault if a manifest is missing or does not follow its predecessor.
        """
        reached = {
            drain: at.get(drain) or (self.followers[drain].first_kept(), 0) for drain in self._drains_between(at, until)
        }
        budget = _Budget(limits)
        waiting = sorted(reached)
        while waiting and not budget.is_spent:
            waiting = [drain for drain in waiting if self._step(drain, reached, until, budget)]
        return {drain: place for drain, place in reached.items() if drain in at or place != (1, 0)}

    def _drains_between(self, at: At, until: At | None) -> list[str]:
        """The drains of a step from `at`, sorted. SegmentFault if the lake has lost one of them."""
        known = self.drains()
        for drain in at:
            if drain not in known:
                raise SegmentFault("segment-gone", drain, at[drain][0], f"the lake has no such drain of {self.stream}")
        return sorted({*at, *(known if until is None else until)})

    def _step(self, drain: str, reached: At, until: At | None, budget: "_Budget") -> bool:
        """Take one segment of a drain, or as much of it as the limits allow; False if the drain has to stop here."""
        number, row = reached[drain]
        stop = (until or {}).get(drain)
        if (until is not None and (stop is None or (number, row) >= stop)) or budget.is_spent:
            return False
        manifest = self.followers[drain].manifest(number)
        if manifest is None:
            return False
        end = manifest.rows if stop is None or number < stop[0] else stop[1]
        taken = budget.take(end - row)
        whole = row + taken == manifest.rows
        reached[drain] = (number + 1, 0) if whole else (number, row + taken)
        return whole

    # Proofs of offsets.

    def offset(self, at: At) -> Offset:
        """The offset of a position. Costs O(new ranges) while positions only advance, plus the size of the vector."""
        return offset_of(at, self.vector(at))

    def vector(self, at: At) -> VersionVector:
        """The version vector of the complete segments below a position.

        The caller must not modify it: it is cached, and the next call continues from it.
        """
        if any(at.get(drain, (1, 0))[0] < number for drain, (number, _) in self._at.items()):
            self._at, self._vector = {}, VersionVector()
        for drain, (number, row) in at.items():
            done = self._at.get(drain, (1, 0))[0]
            if done == 1 and number > 1:
                self._vector.update(vector_at(self.lake, self.stream, drain, number - 1))
            else:
                self._add(drain, done, number)
            self._at[drain] = (number, row)
        return self._vector

    def _add(self, drain: str, done: int, number: int) -> None:
        follower = self.drains().get(drain)
        for step in range(done, number):
            manifest = follower.manifest(step) if follower else None
            if manifest is None:
                add_manifest(self._vector, self.lake, self.stream, drain, step)
            else:
                self._vector.update(manifest.vector())

    def prove(self, offset: Offset) -> None:
        """SegmentFault `offset-mismatch` unless this lake holds the vector of the offset (PIP-004)."""
        self._drains_between(offset.at, None)
        if offset.vec != self.vector(offset.at).digest():
            drain, (number, _) = next(iter(offset.at.items()), ("", (0, 0)))
            raise SegmentFault("offset-mismatch", drain, number, "the lake holds other segments than were read")

    # Plans.

    def slices(self, start: At, end: At) -> list[Slice]:
        """The rows between two positions, per drain in number order.

        SegmentFault `segment-gone` if some were deleted.
        """
        self.drains()
        return [piece for drain in sorted(end) for piece in self._slices(drain, start.get(drain), end[drain])]

    def _slices(self, drain: str, start: tuple[int, int] | None, end: tuple[int, int]) -> Iterator[Slice]:
        follower = self.followers.get(drain)
        if follower is None:
            raise SegmentFault("segment-gone", drain, end[0], f"the lake has no such drain of {self.stream}")
        number, row = start or (follower.first_kept(), 0)
        while (number, row) < end:
            manifest = follower.manifest(number)
            if manifest is not None and manifest.skipped:
                number, row = number + 1, 0
                continue
            if manifest is None or manifest.gone:
                raise _gone(drain, number, manifest)
            last = manifest.rows if number < end[0] else end[1]
            if last > row:
                path = str(self.lake.parquet(self.stream, drain, number))
                yield Slice(drain, number, path, row, last, manifest.rows, manifest.bytes, manifest.sha256)
            number, row = number + 1, 0

    def manifests(self, start: At, end: At) -> Iterator[Manifest]:
        """The manifests of all segments that end between two positions, for their ranges and losses."""
        for drain in sorted(end):
            follower = self.drains()[drain]
            for number in range(start.get(drain, (1, 0))[0], end[drain][0]):
                manifest = follower.manifest(number)
                if manifest is None:
                    raise _gone(drain, number, None)
                yield manifest

    def forget(self, at: At) -> None:
        """Drop manifests before a position from memory. If one is asked for again, it is read again."""
        for drain, (number, _) in at.items():
            if drain in self.followers:
                self.followers[drain].forget(number)


class _Budget:
    """How many rows and segments one step may still take."""

    def __init__(self, limits: Limits) -> None:
        self.rows, self.segments, self.is_whole = limits
        self._has_taken = False

    @property
    def is_spent(self) -> bool:
        return self.rows == 0 or self.segments == 0

    def take(self, rows: int) -> int:
        """Take as many rows of one segment as the limits allow; returns how many."""
        allowed = rows if self.rows is None else min(rows, self.rows)
        if self.is_whole and allowed < rows:
            self.rows, allowed = (0, 0) if self._has_taken else (rows, rows)
        self._has_taken = True
        self.rows = None if self.rows is None else self.rows - allowed
        self.segments = None if self.segments is None else self.segments - 1
        return allowed


def _gone(drain: str, number: int, manifest: Manifest | None) -> SegmentFault:
    held = f"; it held {manifest.held()}" if manifest else ""
    return SegmentFault("segment-gone", drain, number, f"its rows are deleted{held}")


def position(source: Source, start: str) -> At:
    """The position where a reader begins, from `earliest`, `latest`, seconds since 1970, an ISO time, or an offset.

    UserError `bad-offset` for anything else; SegmentFault `offset-mismatch` for an offset of another lake.
    """
    if start in ("", "earliest"):
        return source.earliest()
    if start == "latest":
        return source.latest()
    if start.lstrip().startswith("{"):
        offset = parse(start)
        source.prove(offset)
        return offset.at
    return source.since(_instant(start))


def _instant(text: str) -> int:
    """An ISO time in nanoseconds since 1970; without a zone it is UTC."""
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UserError("bad-offset", f"{text!r} is neither a time nor an offset", "2026-01-31T12:00:00Z") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000_000) * 1_000


def files_between(lake: str | Layout, stream: str, since_ns: int = 0, until_ns: int | None = None) -> list[Slice]:
    """The complete Parquet files of all drains with rows received in `since_ns <= received < until_ns`."""
    source = Source(lake if isinstance(lake, Layout) else Layout(lake), stream)
    start, end = source.since(since_ns), source.latest()
    kept = []
    for piece in source.slices(start, end):
        manifest = source.followers[piece.drain].manifest(piece.number)
        assert manifest is not None
        first, last = manifest.first_received or 0, manifest.last_received or 0
        if since_ns <= last and (until_ns is None or first < until_ns):
            kept.append(piece)
    return kept
