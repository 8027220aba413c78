"""Samples of foreign nodes (MEA-020): one message each, without guarantee of arrival.

They become series of this node with the label `source`, and take the path of its own samples: chain, numbers, journal.
Their batches are separate from its own, so that neither a wrong stamp nor a flood affects what is measured here.
Everything of a source is bounded: its series, the stamps that recognise a repetition, and the rows of a flush. A source
or series that was quiet for long makes room for others; without room a sample is refused, with the limit's name.
"""

from collections.abc import Callable
from typing import Final

from weft.base.budget import Part
from weft.base.errors import PeerError
from weft.cores.measurement import limits
from weft.cores.measurement.batch import OpenBatch
from weft.cores.measurement.lines import Line
from weft.wire.data import Data, DataHugz
from weft.wire.samples import LABEL_VALUE_BYTES_MAX, LABELS_MAX, Labels, SampleBatch, Series

SOURCE: Final = "source"
"""The label with the endpoint of the measuring node."""
Key = tuple[str, str, str, Labels]
"""Key of a series: config name, detail, type, labels including the source."""


class Foreigner:
    """A foreign node: its series, and the stamps of each name, the longest quiet first; times are monotonic ns."""

    __slots__ = ("heard_at", "lines", "stamps")

    def __init__(self) -> None:
        self.heard_at = 0
        self.lines: dict[Key, tuple[Line, int]] = {}
        self.stamps: dict[str, dict[int, None]] = {}

    def has(self, message: Data) -> bool:
        """Whether this sample came before."""
        return message.time_ms in self.stamps.get(message.config_name, ())

    def note(self, message: Data) -> None:
        """Remember this sample, as long as there is room."""
        stamps = self.stamps.pop(message.config_name, None) or {}
        self.stamps[message.config_name] = stamps
        stamps[message.time_ms] = None
        if len(stamps) > limits.FOREIGN_STAMPS_MAX:
            del stamps[next(iter(stamps))]
        while len(self.stamps) > len(self.lines):
            del self.stamps[next(iter(self.stamps))]

    def take_quiet_line(self, mono: int) -> Line | None:
        """Remove a series that was quiet for long, to make room; None: there is none."""
        key = next(iter(self.lines), None)
        if key is None or mono < self.lines[key][1] + limits.FOREIGN_QUIET_NS:
            return None
        return self.lines.pop(key)[0]


class Foreign:
    """The foreign nodes heard here; `tell` is called with each complete batch."""

    def __init__(self, rows_max: int, bytes_max: int, flush_ns: int, tell: Callable[[SampleBatch], None]) -> None:
        self.sources: dict[str, Foreigner] = {}
        self.series = 0
        """Number of series of all sources."""
        self.bytes = 0
        """Bytes of memory of these series."""
        self.room = Part("foreign", lambda: self.bytes)
        """Its part of the core's budget; the whole of it here."""
        self.flush_at: int | None = None
        """Monotonic ns at which held samples leave; None: none are held."""
        self._batch = OpenBatch(rows_max, bytes_max)
        self._flush_ns, self._tell = flush_ns, tell
        self._rows = 0  # since the last flush by time

    def take(self, message: Data, mono: int) -> bool:
        """Add a sample; False: it is a repetition.

        PeerError with the limit that forbids it, and then nothing is kept.
        """
        known = self.sources.get(message.source)
        if known is not None:
            self._heard(message.source, known, mono)
            if known.has(message):
                return False
        key = key_of(message)
        if self._rows >= limits.FOREIGN_ROWS_MAX:
            raise PeerError("too-fast", f"{limits.FOREIGN_ROWS_MAX} foreign samples between two flushes are enough")
        source = known or Foreigner()
        line = self._line(source, key, mono)
        self._heard(message.source, source, mono)
        source.lines.pop(key, None)
        source.lines[key] = (line, mono)
        source.note(message)
        self._put(line, message, mono)
        return True

    def beat(self, message: DataHugz, mono: int) -> None:
        """A known source is alive; of other sources nothing is kept."""
        known = self.sources.get(message.source)
        if known is not None:
            self._heard(message.source, known, mono)

    def flush(self) -> None:
        """Emit what is held."""
        self.flush_at, self._rows = None, 0
        self._close()

    def _put(self, line: Line, message: Data, mono: int) -> None:
        if not self._batch.has_room_for(line):
            self._close()
        if self.flush_at is None:
            self.flush_at = mono + self._flush_ns
        self._batch.add(line, (message.time_ms, message.value, message.base))
        self._rows += 1

    def _close(self) -> None:
        if len(self._batch):
            self._tell(self._batch.close())

    def _heard(self, name: str, source: Foreigner, mono: int) -> None:
        source.heard_at = mono
        self.sources.pop(name, None)
        self.sources[name] = source

    def _line(self, source: Foreigner, key: Key, mono: int) -> Line:
        """The line of a series, created if needed; PeerError without room."""
        known = source.lines.get(key)
        if known is not None:
            return known[0]
        if not source.lines and len(self.sources) >= limits.FOREIGN_SOURCES_MAX and not self._forget_quiet(mono):
            raise PeerError("too-many-sources", f"{limits.FOREIGN_SOURCES_MAX} foreign nodes are enough")
        if len(source.lines) >= limits.FOREIGN_SERIES_OF_SOURCE_MAX:
            quiet = source.take_quiet_line(mono)
            if quiet is None:
                raise PeerError("too-many-series", f"{limits.FOREIGN_SERIES_OF_SOURCE_MAX} of one source are enough")
            self._forget([quiet])
        if self.series >= limits.FOREIGN_SERIES_MAX and not self._forget_quiet(mono):
            raise PeerError("too-many-series", f"{limits.FOREIGN_SERIES_MAX} of foreign nodes are enough")
        name, detail, kind, labels = key
        line = Line(Series(name, detail, kind, dict(labels)))
        if not self.room.has_room(cost_of(line)):
            self.room.refuse()
            raise PeerError("too-many-series", "no memory is left for more of foreign nodes")
        self.series += 1
        self.bytes += cost_of(line)
        return line

    def _forget_quiet(self, mono: int) -> bool:
        """Whether a source that was quiet for long made room."""
        name = next(iter(self.sources), None)
        if name is None or mono < self.sources[name].heard_at + limits.FOREIGN_QUIET_NS:
            return False
        self._forget([line for line, _ in self.sources.pop(name).lines.values()])
        return True

    def _forget(self, lines: list[Line]) -> None:
        self.series -= len(lines)
        self.bytes -= sum(map(cost_of, lines))


def cost_of(line: Line) -> int:
    """Bytes of memory of a foreign series, with the stamps that recognise repetitions."""
    return limits.FOREIGN_SERIES_COST + 3 * line.bytes


def key_of(message: Data) -> Key:
    """The key of a sample's series; PeerError for labels that no batch can carry together with `source`."""
    labels = {**message.labels, SOURCE: message.source}
    if len(labels) > LABELS_MAX:
        raise PeerError("too-large", f"{len(message.labels)} labels, {LABELS_MAX - 1} at most beside the source")
    if len(message.source) > LABEL_VALUE_BYTES_MAX:
        raise PeerError("endpoint", f"{len(message.source)} bytes are too many for a label", message.source.encode())
    return message.config_name, message.detail, message.type, tuple(sorted(labels.items()))
