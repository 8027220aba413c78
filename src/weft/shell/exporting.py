"""Sends every value of the fleet to monitoring systems outside: Prometheus remote-write and OTLP over HTTP (MET-006).

The core names a range of the journal. A thread for each receiver reads it a megabyte at a time, calculates the values, and
posts them in the order of time. Points that were not accepted are kept for the next try. If a receiver finally refuses a
request, its points are sent again in halves, and those in halves again: so a few samples that it cannot take (too old for
it, or there already) do not cost the others.
"""

import http.client
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, Final, NamedTuple

from weft.base.calculated import Point as Sampled
from weft.base.calculated import calculate
from weft.base.errors import PeerError, StorageFailed
from weft.base.records import Entry, StreamRecord
from weft.cores.export.core import has_samples
from weft.cores.export.messages import NAME, RangeFailed, RangeSent, SendRange
from weft.node.exporttable import ExportTable
from weft.shell.apart import Apart, Denied, post
from weft.shell.fleetmetrics import BODIES_KNOWN_MAX, SERIES_MAX, SERIES_OF_ONE_MAX, names_of
from weft.wire import samples
from weft.wire.exported import ExportedSeries, Point, otlp_refused, otlp_request, write_request

READ_BYTES: Final = 1 << 20  # of journal at a time: some 50,000 values, 10 MB
POINTS_MAX: Final = 5_000  # of a request: half a megabyte
HALVINGS: Final = 6  # of a refused request: one bad point costs at most 80 others
ATTEMPT_S: Final = 10.0  # then what was sent is reported; the core asks for the rest
PATIENCE_S: Final = 10.0  # without a byte from the receiver
REFUSED_FOR_GOOD: Final = frozenset({400, 413, 422})
"""Status codes by which a receiver refuses these samples; after all others they are sent again."""
FAULTS: Final = (OSError, http.client.HTTPException, StorageFailed, ValueError)

Read = Callable[[int, int], tuple[list[Entry], int]]
"""Journal.read: entries behind an lsn, about so many bytes, and the lsn up to which they reach."""


class Format(NamedTuple):
    """In what the two protocols differ."""

    body: Callable[[Iterable[Point]], bytes]
    headers: Mapping[str, str]
    refused: Callable[[bytes], tuple[int, str]]
    """Reads from a successful answer how many points are refused nevertheless, and why."""


PROMETHEUS: Final = Format(
    write_request,
    {
        "content-type": "application/x-protobuf",
        "content-encoding": "snappy",
        "x-prometheus-remote-write-version": "0.1.0",
    },
    lambda _: (0, ""),
)
OTLP: Final = Format(otlp_request, {"content-type": "application/x-protobuf"}, otlp_refused)


class Track:
    """One series on its way out: its names, the sample before, and the newest instant that was offered."""

    __slots__ = ("factor", "last_ms", "point", "series")

    def __init__(self, series: ExportedSeries, factor: float) -> None:
        self.series, self.factor = series, factor
        self.point: Sampled | None = None
        self.last_ms = -1


class Values:
    """Calculates the values of records, which are given in the order of the journal; pure."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.skipped = 0
        """Samples that gave no value to send, since it was set to 0."""
        self._labels = tuple(labels.items())
        self._known: dict[bytes, tuple[samples.Series, ...]] = {}
        self._tracks: dict[Any, dict[Any, Track]] = {}
        self._count = 0

    def points(self, record: StreamRecord) -> Iterator[Point]:
        """The values of a record. The first sample of a counter gives none, nor does a sample not newer than the last."""
        if len(self._known) > BODIES_KNOWN_MAX:
            self._known.clear()
        try:
            batch = samples.decode(record.payload, self._known)
        except PeerError:
            return  # unreadable here; the lake quarantines it
        tracks: dict[int, Track | None] = {}
        for row in batch.rows:
            if row.series not in tracks:
                tracks[row.series] = self._track(record, batch.series[row.series])
            track, kind = tracks[row.series], batch.series[row.series].type
            point = self._point(track, kind, (batch.t0_ms + row.offset_ms, row.value, row.base)) if track else None
            if point is None:
                self.skipped += 1
            else:
                yield point

    def _point(self, track: Track, kind: str, now: Sampled) -> Point | None:
        result = calculate(kind, track.point, now).result
        track.point = now
        if result is None or not isfinite(result) or now[0] <= track.last_ms:
            return None
        track.last_ms = now[0]
        return Point(track.series, now[0], float(result) * track.factor)

    def _track(self, record: StreamRecord, series: samples.Series) -> Track | None:
        key = series.config_name, series.detail, tuple(sorted(series.labels.items()))
        own = self._tracks.setdefault(record.origin, {})
        track = own.get(key)
        if track is None and len(own) < SERIES_OF_ONE_MAX:
            if self._count >= SERIES_MAX:  # most of them are of nodes that are gone
                self._tracks, self._count = {record.origin: (own := {})}, 0
            names, factor = names_of(_name_of(record), key)
            names = names._replace(labels=(*names.labels, *self._labels))
            track = own[key] = Track(ExportedSeries(names), factor)
            self._count += 1
        return track


def _name_of(record: StreamRecord) -> str:
    """The node's name, as its record says; else the beginning of its UUID."""
    name, origin = record.attributes.get("node"), record.origin
    if isinstance(name, str) and name:
        return name
    return origin.hex()[:8] if isinstance(origin, bytes) else str(origin)


class Part(NamedTuple):
    """Points for one request, and how often it may still be halved."""

    points: list[Point]
    halvings: int


class Receiver:
    """The connection to one receiver, and the points that it has not accepted yet. One thread at a time uses it."""

    def __init__(self, table: ExportTable, read: Read) -> None:
        self.counts: Counter[str] = Counter()
        """Samples accepted and refused since the last outcome."""
        self._url, self._format = (table.prometheus, PROMETHEUS) if table.prometheus else (table.otlp, OTLP)
        self._headers = {**table.headers, **self._format.headers}
        self._read, self._values = read, Values(table.labels)
        self._seen = 0
        """The values of all records up to this lsn were calculated."""
        self._parts: deque[Part] = deque()
        """Points of those records that the receiver has not accepted yet."""
        self._halvings = HALVINGS
        self._why = ""

    def outcome(self, work: SendRange) -> RangeSent | RangeFailed:
        """Send now; returns the outcome, as an order for the core."""
        try:
            upto = self._send(work)
        except FAULTS as fault:
            return RangeFailed(work.sink, work.attempt, f"{type(fault).__name__}: {fault}")
        skipped, self._values.skipped = self._values.skipped, 0
        counts, self.counts = self.counts, Counter()
        return RangeSent(work.sink, work.attempt, upto, counts["samples"], counts["refused"], skipped, self._why)

    def _send(self, work: SendRange) -> int:
        """Send the points that are left over, then read on; returns the lsn up to which all is sent."""
        ends_at = time.monotonic() + ATTEMPT_S
        if self._seen < work.after:
            self._warm_up(work.warm, work.after)
        self._post_parts()
        while self._seen < work.upto and time.monotonic() < ends_at:
            points = [point for record in self._records(work.upto) for point in self._values.points(record)]
            points.sort(key=_instant)
            self._parts.extend(
                Part(points[at : at + POINTS_MAX], self._halvings) for at in range(0, len(points), POINTS_MAX)
            )
            self._post_parts()
        return min(self._seen, work.upto)

    def _warm_up(self, warm: int, after: int) -> None:
        """Read records up to `after` without sending: the receiver has their values, or they are given up.

        Later values of counters are calculated from these.
        """
        self._parts.clear()
        self._seen = max(self._seen, min(warm, after))
        while self._seen < after:
            for record in self._records(after):
                deque(self._values.points(record), maxlen=0)
        self._values.skipped = 0

    def _records(self, upto: int) -> list[StreamRecord]:
        """The next records with samples, about a megabyte of journal. OSError if it ends before `upto`."""
        entries, reached = self._read(self._seen, READ_BYTES)
        if reached <= self._seen:
            raise OSError(f"the journal ends at {self._seen}, before {upto}")
        self._seen = min(reached, upto)
        return [each for lsn, each in entries if lsn <= upto and isinstance(each, StreamRecord) and has_samples(each)]

    def _post_parts(self) -> None:
        while self._parts:
            part = self._parts[0]
            try:
                answer = post(self._url, self._format.body(part.points), self._headers, PATIENCE_S)
            except Denied as denied:
                if denied.code not in REFUSED_FOR_GOOD:
                    raise
                self._refused(self._parts.popleft(), str(denied))
                continue
            self._taken(self._parts.popleft(), answer)

    def _taken(self, part: Part, answer: bytes) -> None:
        count, why = self._format.refused(answer)
        refused = max(0, min(count, len(part.points)))
        self.counts.update(samples=len(part.points) - refused, refused=refused)
        self._halvings = HALVINGS
        if refused:
            self._why = why

    def _refused(self, part: Part, why: str) -> None:
        """Halve a refused part, or count it as refused. The more parts are refused, the less often later ones are halved."""
        if part.halvings and len(part.points) > 1:
            half = len(part.points) // 2
            self._parts.extendleft(
                Part(points, part.halvings - 1) for points in (part.points[half:], part.points[:half])
            )
            return
        self.counts["refused"] += len(part.points)
        self._halvings = max(0, self._halvings - 1)
        self._why = why


def _instant(point: Point) -> int:
    return point.at_ms


class Exporting:
    """Performs `SendRange` and hands the outcome back through `order(core, order)`, on the loop."""

    def __init__(self, order: Callable[[str, Any], None], tables: Mapping[str, ExportTable], read: Read) -> None:
        self._receivers = {name: Receiver(table, read) for name, table in tables.items()}
        self._apart = Apart(NAME, order)

    def send(self, work: SendRange) -> None:
        """Send in a thread."""
        receiver = self._receivers[work.sink]
        self._apart.begin(
            work.sink, lambda: receiver.outcome(work), lambda why: RangeFailed(work.sink, work.attempt, why)
        )
