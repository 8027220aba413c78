"""Turns records into columns: sample batches are exploded, all other records keep their payload (LAK-012, LAK-013).

What all rows of a record share (origin, era, stamps, attributes) is kept once per *run* and repeated by Arrow at the
end; only series, time, value and base exist per row. No object is made per row, which makes 400,000 rows per second
possible. A row that cannot be read becomes an error row; bad data never raises.
"""

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft.base.errors import PeerError
from weft.base.mail import WAY
from weft.base.ranges import RangeSet
from weft.base.records import EraRecord, LostRecord, Record, Stream, StreamRecord
from weft.lake import body as bodies
from weft.lake import manifest as manifests
from weft.lake import schemas
from weft.lake.changes import change_of, is_of_users
from weft.lake.layout import STREAMS
from weft.lake.series import SeriesDefinition, define
from weft.wire import samples

if TYPE_CHECKING:
    import pyarrow as pa

LONG_MAX: Final = (1 << 63) - 1
LONG_MIN: Final = -(1 << 63)
ROWS_MAX: Final = 250_000  # samples of one record; a higher count is bad data, not a range of numbers
LABELS_MAX: Final = 64  # keys in labels (section 9)
LABEL_BYTES_MAX: Final = 1024
BATCH: Final = b"\x94\x01"
"""How the payload of a sample batch begins: an array of four, form 1 (MEA-022)."""

Identity = tuple[str, int | None]
_REASONS: Final = {"too-large": "too-long"}
"""A decoder's refusals as errors of PIP-031; any other refusal is `undecodable`."""


class Account:
    """What the manifest will say about a segment: ranges, losses, times, lsn."""

    def __init__(self) -> None:
        self.seen: dict[Identity, RangeSet] = {}
        self.lost: list[tuple[str, int | None, int, int, str]] = []
        self.first_received: int | None = None
        self.last_received: int | None = None
        self.lsn_first = 0
        self.lsn_last = 0

    def note(self, lsn: int) -> None:
        """Count a record of this stream, stored at `lsn`."""
        self.lsn_first = min(self.lsn_first or lsn, lsn)
        self.lsn_last = max(self.lsn_last, lsn)

    def received(self, identity: Identity, record: StreamRecord) -> None:
        """Count its numbers as received, also when they could not be read: quarantined numbers count as received."""
        seen = self.seen.get(identity)
        if seen is None:
            seen = self.seen[identity] = RangeSet()
        if record.sequence >= 1:
            seen.add(record.sequence, max(record.sequence, last_of(record)))
        at = record.received
        self.first_received = at if self.first_received is None else min(self.first_received, at)
        self.last_received = at if self.last_received is None else max(self.last_received, at)

    def announced(self, record: LostRecord | EraRecord) -> None:
        """Note a loss or the end of an era; both are listed in `lost`, in order (LAK-011)."""
        name = manifests.name_of(record.origin)
        if isinstance(record, LostRecord):
            self.lost.append((name, record.era, record.first, record.last, record.why))
        else:
            self.lost.append((name, record.era_before, record.last_before, record.last_before, manifests.ERA_END))


def last_of(record: StreamRecord) -> int:
    """The last sequence of a record, even if its attribute `n` is invalid. Only samples come in batches."""
    count = record.attributes.get("n", 1) if record.stream == Stream.SAMPLES else 1
    return record.sequence + (count if type(count) is int and 1 <= count <= ROWS_MAX else 1) - 1


class Runs:
    """Columns that all rows of a record share, one entry per record."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.origin: list[str] = []
        self.era: list[int | None] = []
        self.sequence: list[int | None] = []
        self.at_ms: list[int | None] = []
        self.at_ns: list[int | None] = []
        self.received: list[int | None] = []
        self.lsn: list[int] = []
        self.attributes: list[dict[str, str]] = []
        self.total = 0

    def add(self, lsn: int, identity: Identity, record: StreamRecord, rows: int) -> dict[str, str]:
        """Start a run. A number that no column can hold becomes null here, and text in the returned attributes."""
        self.rows.append(rows)
        self.total += rows
        self.lsn.append(lsn)
        self.origin.append(identity[0])
        wide: dict[str, str] = {}
        self.era.append(_fit("era", identity[1], wide))
        self.sequence.append(_fit("sequence", record.sequence, wide))
        self.at_ns.append(_fit("at", record.at, wide))
        self.received.append(_fit("received", record.received, wide))
        return wide


def _fit(name: str, number: int | None, wide: dict[str, str]) -> int | None:
    if number is None or LONG_MIN <= number <= LONG_MAX:
        return number
    wide[name] = str(number)
    return None


USUAL_FORMATS: Final = {"messages": bodies.RAW, "documents": bodies.RAW, "configuration": bodies.LOOSE}
"""The payload format of records that do not name one; in all other streams it is MessagePack."""


class OtherColumns:
    """Rows of every stream but `samples`: one per record, payload as canonical JSON and raw."""

    def __init__(self, stream: str, mask: bodies.Mask | None = None) -> None:
        self.stream, self.mask = stream, mask
        self.usual = USUAL_FORMATS.get(stream, "msgpack")
        self.runs = Runs()
        self.key: list[str] = []
        self.body: list[str | None] = []
        self.raw: list[bytes | None] = []
        self.error: list[str | None] = []
        self.bytes = 0

    @property
    def rows(self) -> int:
        return self.runs.total

    def add(self, lsn: int, identity: Identity, record: StreamRecord) -> None:
        """Add one record."""
        wide = self.runs.add(lsn, identity, record, 1)
        is_secret = self._is_secret(record)
        raw, more = (None, {}) if is_secret else bodies.kept(record.payload)
        key, body, attributes = self._said(record, is_secret=is_secret)
        self.key.append(key)
        self.body.append(body.text)
        self.raw.append(raw)
        self.error.append("out-of-range" if wide else body.error)
        self.runs.attributes.append(bodies.text_map(_named(attributes)) | more | wide)
        self.bytes += len(record.payload) + len(body.text or "") + 128

    def _said(self, record: StreamRecord, *, is_secret: bool) -> tuple[str, bodies.Body, dict[str, Any]]:
        """Key, body and attributes for the row."""
        hidden = bodies.Body(self.mask.body(record.payload), None) if self.mask is not None and is_secret else None
        if self.stream == "store":
            change = change_of(record)
            return change if hidden is None else change._replace(body=hidden._replace(error=change.body.error))
        if hidden is not None:
            return record.key, hidden, record.attributes
        return record.key, bodies.body_of(record.payload, record.attributes, self.usual), record.attributes

    def _is_secret(self, record: StreamRecord) -> bool:
        if self.mask is None or not record.payload:
            return False
        if self.stream == "store":
            return is_of_users(record)
        return self.stream == "configuration" and self.mask.is_secret(record.key)

    def table(self) -> "pa.Table":
        """The columns in the order of the schema."""
        import pyarrow as pa

        runs, schema = self.runs, schemas.SEGMENTS[self.stream].arrow()
        text = dictionary_of
        arrays = {
            "origin": text(runs.origin),
            "era": pa.array(runs.era, pa.int64()),
            "sequence": pa.array(runs.sequence, pa.int64()),
            "at_ns": pa.array(runs.at_ns, pa.int64()),
            "received_ns": pa.array(runs.received, pa.int64()),
            "lsn": pa.array(runs.lsn, pa.int64()),
            "error": text(self.error),
            "raw": pa.array(self.raw, pa.binary()),
            "key": text(self.key),
            "body": pa.array(self.body, pa.string()),
            "attributes": map_of(runs.attributes),
        }
        return pa.table([arrays[name] for name in schema.names], names=schema.names)


def _named(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes in which the nodes on a message's way (CHN-036) are written as the lake writes origins: 32 hex each.

    Attribute `n` is left out, because in the lake it counts rows of samples. The way is that of the message to the
    root, not that of its record.
    """
    via = attributes.get(WAY, attributes.get("via"))
    kept = {name: value for name, value in attributes.items() if name not in ("n", WAY)}
    return kept | {"via": [manifests.name_of(node) for node in via]} if isinstance(via, list | tuple) else kept


def dictionary_of(values: list[Any]) -> "pa.Array":
    """A text column that stores each repeated value once."""
    import pyarrow as pa

    return pa.array(values, pa.string()).dictionary_encode()


def map_of(maps: list[dict[str, str]]) -> "pa.Array":
    """A map column. Entries are in the order of their keys, so that equal maps are equal bytes."""
    import pyarrow as pa

    return pa.array([sorted(entries.items()) for entries in maps], pa.map_(pa.string(), pa.string()))


class SampleColumns:
    """Rows of `samples`: batches exploded, single values unchanged."""

    def __init__(self) -> None:
        self.runs = Runs()
        self.bytes = 0
        self.definitions: list[SeriesDefinition] = []
        self._indices: dict[SeriesDefinition, int] = {}
        self.config_numbers: list[int | None] = []
        self.series: list[int] = []
        self.ms: list[int] = []
        self.value: list[Any] = []
        self.base: list[Any] = []
        self.errors: dict[int, tuple[str, bytes]] = {}
        self.refused: set[int] = set()
        self._arrays: dict[bytes, tuple[samples.Series, ...]] = {}
        self._known: dict[int, list[int]] = {}

    @property
    def rows(self) -> int:
        return self.runs.total

    def add(self, lsn: int, identity: Identity, record: StreamRecord) -> None:
        """Add one record: a batch, or a single value."""
        if record.payload[:2] != BATCH:
            if last_of(record) > record.sequence:  # a single value whose record claims several
                self._add_error(lsn, identity, record, "undecodable")
            else:
                self._add_single(lsn, identity, record)
            return
        try:
            batch = samples.decode(record.payload, self._arrays)
        except PeerError as error:
            self._add_error(lsn, identity, record, _REASONS.get(error.code, "undecodable"))
            return
        if error_found := self._misfit(identity, record, len(batch.rows)):
            self._add_error(lsn, identity, record, error_found)
            return
        rows, series = batch.rows, self._indices_of(batch.series)
        self._start(lsn, identity, record, len(rows))
        self.runs.at_ms.append(batch.t0_ms)
        self.series += [series[row.series] for row in rows]
        self.ms += [row.offset_ms for row in rows]
        self.value += [row.value for row in rows]
        self.base += [row.base for row in rows]
        self.bytes += 64 * len(rows)

    def _misfit(self, identity: Identity, record: StreamRecord, rows: int) -> str | None:
        """The reason why a batch that decodes still cannot be stored; empty if it can."""
        if rows != last_of(record) - record.sequence + 1:
            return "undecodable"  # its attribute `n`, by which numbers are counted, does not match these rows
        fits = (identity[1] or 0) <= LONG_MAX and record.sequence + rows <= LONG_MAX and record.received <= LONG_MAX
        return None if fits else "out-of-range"

    def _start(self, lsn: int, identity: Identity, record: StreamRecord, rows: int) -> dict[str, str]:
        wide = self.runs.add(lsn, identity, record, rows)
        number = record.attributes.get("cfg")
        self.config_numbers.append(number if type(number) is int and 0 <= number <= LONG_MAX else None)
        spoken = {key: value for key, value in record.attributes.items() if key not in _SILENT}
        self.runs.attributes.append((bodies.text_map(spoken) if spoken else {}) | wide)
        return wide

    def _add_single(self, lsn: int, identity: Identity, record: StreamRecord) -> None:
        """Add a single value: the record's key is the name of its series (section 1.1)."""
        error, value = _single(record.payload)
        labels = record.attributes.get("labels", {})
        labels = labels if isinstance(labels, dict) else {}
        detail, kind, param = (str(record.attributes.get(name, usual)) for name, usual in _ABOUT)
        definition = define(record.key, detail, kind, param, {str(key): str(entry) for key, entry in labels.items()})
        index = -1 if _too_long(definition) else self._index(definition)
        if index < 0:
            error = "too-long"
        row = self.runs.total
        if self._start(lsn, identity, record, 1):
            error = "out-of-range"
        self.runs.at_ms.append(None)
        self.series.append(index)
        self.ms.append(0)
        self.value.append(None if error else value)
        self.base.append(None)
        self.bytes += 64
        if error:
            self._fail(row, error, record.payload)

    def _add_error(self, lsn: int, identity: Identity, record: StreamRecord, error: str) -> None:
        """Add one row for a whole record that cannot be read; attribute `n` says how many samples the record held."""
        row = self.runs.total
        self._start(lsn, identity, record, 1)
        raw, more = bodies.kept(record.payload)
        self.runs.attributes[-1] |= more
        if last_of(record) > record.sequence:
            self.runs.attributes[-1]["n"] = str(last_of(record) - record.sequence + 1)
        self.runs.at_ms.append(None)
        self.series.append(-1)
        self.ms.append(0)
        self.value.append(None)
        self.base.append(None)
        self._fail(row, error, raw)

    def _fail(self, row: int, error: str, raw: bytes) -> None:
        self.errors[row] = (error, raw)
        self.bytes += len(raw)

    def _indices_of(self, array: tuple[samples.Series, ...]) -> list[int]:
        """The index of each definition of a batch.

        Arrays seen before are recognized by identity; `_arrays` keeps them alive.
        """
        found = self._known.get(id(array))
        if found is None:
            found = self._known[id(array)] = [self._index(_definition(series)) for series in array]
        return found

    def _index(self, definition: SeriesDefinition) -> int:
        index = self._indices.get(definition)
        if index is None:
            index = self._indices[definition] = len(self.definitions)
            self.definitions.append(definition)
        return index

    def t0_of(self, row: int) -> int:
        """The start of the batch, from which the times of its rows are counted, in milliseconds."""
        t0 = self.runs.at_ms[bisect_right(list(accumulate(self.runs.rows)), row)]
        return 0 if t0 is None else t0

    def table(self) -> "pa.Table":
        """The columns in the order of the schema."""
        from weft.lake.explode import sample_table

        return sample_table(self)


_SILENT: Final = frozenset({"n", "labels", "detail", "type", "param", "cfg"})
_ABOUT: Final = (("detail", ""), ("type", "basic"), ("param", ""))


def _definition(series: samples.Series) -> SeriesDefinition:
    """The series as the lake names it: its parameter has a column of its own and is not repeated as a label."""
    labels = {name: text for name, text in series.labels.items() if name != samples.PARAM}
    return define(series.config_name, series.detail, series.type, series.param, labels)


def _too_long(definition: SeriesDefinition) -> bool:
    """Whether a definition exceeds the limits of section 9."""
    if len(definition.labels) > LABELS_MAX:
        return True
    texts = [*definition[:4], *(text for label in definition.labels for text in label)]
    return any(len(text) > LABEL_BYTES_MAX for text in texts)


def _single(payload: bytes) -> tuple[str | None, Any]:
    """Error and value of a payload that holds a single value."""
    try:
        value = msgspec.msgpack.decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return "undecodable", None
    if value is None:
        return "missing-field", None
    if type(value) not in (int, float, str):
        return "bad-type", None
    return None, value


def take_record(account: Account, columns: SampleColumns | OtherColumns, lsn: int, record: Record) -> None:
    """Add one record of the segment's stream to the columns and the manifest."""
    account.note(lsn)
    if isinstance(record, StreamRecord):
        identity = (manifests.record_name(record), record.era)
        account.received(identity, record)
        columns.add(lsn, identity, record)
    elif isinstance(record, LostRecord | EraRecord):
        account.announced(record)


def columns_for(stream: str, mask: bodies.Mask | None = None) -> SampleColumns | OtherColumns:
    """Empty columns for a stream; `mask` only matters to `configuration`."""
    assert stream in STREAMS, stream
    return SampleColumns() if stream == "samples" else OtherColumns(stream, mask)
