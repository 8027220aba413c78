"""Turns records into columns: a batch of samples becomes one row per sample, any other record one row (LAK-012, LAK-013).

What all rows of a record share (origin, era, stamps, attributes) is kept once per record, in `Runs`, and repeated by
Arrow at the end; only series, time, value and base are kept per row. No object is made per row, which makes 400,000
rows per second possible. A row that cannot be read becomes an error row; bad data never raises.
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
from weft.lake.schemas import LONG_MAX, LONG_MIN
from weft.lake.series import SeriesDefinition, define
from weft.wire import samples

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_MAX: Final = 250_000  # samples of one record; a higher count is bad data, not a range of numbers
BATCH: Final = b"\x94\x01"
"""How the payload of a sample batch begins: a MessagePack array of four whose first element is 1 (MEA-022)."""

Identity = tuple[str, int | None]
"""Origin, as the lake writes it, and era."""
_REASONS: Final = {"too-large": "too-long"}
"""The error of PIP-031 for a code of the decoder; for any other code it is `undecodable`."""


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
        """Note the lsn of a record of this stream."""
        self.lsn_first = min(self.lsn_first or lsn, lsn)
        self.lsn_last = max(self.lsn_last, lsn)

    def received(self, identity: Identity, record: StreamRecord) -> None:
        """Note the numbers of a record as received, also if it cannot be read: numbers in quarantine count as received."""
        seen = self.seen.get(identity)
        if seen is None:
            seen = self.seen[identity] = RangeSet()
        if record.sequence >= 1:
            seen.add(record.sequence, max(record.sequence, last_of(record)))
        at = record.received
        self.first_received = at if self.first_received is None else min(self.first_received, at)
        self.last_received = at if self.last_received is None else max(self.last_received, at)

    def announced(self, record: LostRecord | EraRecord) -> None:
        """Note a loss or the end of an era; both are listed in `lost`, in the order in which they come (LAK-011)."""
        name = manifests.name_of(record.origin)
        if isinstance(record, LostRecord):
            self.lost.append((name, record.era, record.first, record.last, record.why))
        else:
            self.lost.append((name, record.era_before, record.last_before, record.last_before, manifests.ERA_END))


def last_of(record: StreamRecord) -> int:
    """The last sequence of a record. Only a batch of samples has several, `n` of them; an invalid `n` counts as 1."""
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
        """Start the run of a record. A number that its column cannot hold becomes null, and is returned as text by name."""
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
    """The number if a column can hold it; otherwise None, and its text is added to `wide`."""
    if number is None or LONG_MIN <= number <= LONG_MAX:
        return number
    wide[name] = str(number)
    return None


USUAL_FORMATS: Final = {"messages": bodies.RAW, "documents": bodies.RAW, "configuration": bodies.LOOSE}
"""The payload format of records that do not name one; in all other streams it is MessagePack."""


class OtherColumns:
    """Rows of every stream but `samples`: one per record, with the payload as canonical JSON and as raw bytes."""

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
        raw, size = (None, {}) if is_secret else bodies.kept(record.payload)
        key, body, attributes = self._cells_of(record, is_secret=is_secret)
        self.key.append(key)
        self.body.append(body.text)
        self.raw.append(raw)
        self.error.append("out-of-range" if wide else body.error)
        self.runs.attributes.append(bodies.text_map(_named(attributes)) | size | wide)
        self.bytes += len(record.payload) + len(body.text or "") + 128

    def _cells_of(self, record: StreamRecord, *, is_secret: bool) -> tuple[str, bodies.Body, dict[str, Any]]:
        """Key, body and attributes of the row. The body of a secret is its mask."""
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
    """Attributes as the lake has them: `via` names the nodes that a message passed (CHN-036), each as 32 hex.

    They are the nodes on its way to the root if that is known (attribute `WAY`), otherwise those of attribute `via`.
    Attribute `n` is left out, because in the lake it counts rows of samples.
    """
    via = attributes.get(WAY, attributes.get("via"))
    kept = {name: value for name, value in attributes.items() if name not in ("n", WAY)}
    return kept | {"via": [manifests.name_of(node) for node in via]} if isinstance(via, list | tuple) else kept


def dictionary_of(values: list[Any]) -> "pa.Array":
    """A text column that stores each repeated value once."""
    import pyarrow as pa

    return pa.array(values, pa.string()).dictionary_encode()


def map_of(maps: list[dict[str, str]]) -> "pa.Array":
    """A map column. The entries of each map are sorted by key, so that equal maps are equal bytes."""
    import pyarrow as pa

    return pa.array([sorted(entries.items()) for entries in maps], pa.map_(pa.string(), pa.string()))


class SampleColumns:
    """Rows of `samples`: one per sample of a batch, or one for a record with a single value."""

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
        """For each error row its error of PIP-031 and its raw bytes."""
        self.refused: set[int] = set()
        """Rows whose number no column can hold; `explode` fills and empties it."""
        self._arrays: dict[bytes, tuple[samples.Series, ...]] = {}
        self._known: dict[int, list[int]] = {}

    @property
    def rows(self) -> int:
        return self.runs.total

    def add(self, lsn: int, identity: Identity, record: StreamRecord) -> None:
        """Add one record: a batch, or a single value."""
        if record.payload[:2] != BATCH:
            if last_of(record) > record.sequence:  # one value, but `n` claims several
                self._add_error(lsn, identity, record, "undecodable")
            else:
                self._add_single(lsn, identity, record)
            return
        try:
            batch = samples.decode(record.payload, self._arrays)
        except PeerError as error:
            self._add_error(lsn, identity, record, _REASONS.get(error.code, "undecodable"))
            return
        if misfit := self._misfit(identity, record, len(batch.rows)):
            self._add_error(lsn, identity, record, misfit)
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
        """The error of a batch that can be decoded and still cannot be stored; None if it can."""
        if rows != last_of(record) - record.sequence + 1:
            return "undecodable"  # its attribute `n`, from which its numbers follow, differs from its count of rows
        fits = (identity[1] or 0) <= LONG_MAX and record.sequence + rows <= LONG_MAX and record.received <= LONG_MAX
        return None if fits else "out-of-range"

    def _start(self, lsn: int, identity: Identity, record: StreamRecord, rows: int) -> dict[str, str]:
        wide = self.runs.add(lsn, identity, record, rows)
        number = record.attributes.get("cfg")
        self.config_numbers.append(number if type(number) is int and 0 <= number <= LONG_MAX else None)
        others = {key: value for key, value in record.attributes.items() if key not in _WITH_COLUMN}
        self.runs.attributes.append((bodies.text_map(others) if others else {}) | wide)
        return wide

    def _add_single(self, lsn: int, identity: Identity, record: StreamRecord) -> None:
        """Add a single value: the record's key is the name of its metric."""
        error, value = _single(record.payload)
        labels = record.attributes.get("labels", {})
        labels = labels if isinstance(labels, dict) else {}
        detail, kind, param = (str(record.attributes.get(name, usual)) for name, usual in _DEFAULTS)
        definition = define(record.key, detail, kind, param, {str(key): str(entry) for key, entry in labels.items()})
        index = -1 if definition.is_too_long() else self._index(definition)
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
        raw, size = bodies.kept(record.payload)
        self.runs.attributes[-1] |= size
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


_WITH_COLUMN: Final = frozenset({"n", "labels", "detail", "type", "param", "cfg"})
"""Attributes that are not repeated in column `attributes`, because other columns hold what they say."""
_DEFAULTS: Final = (("detail", ""), ("type", "basic"), ("param", ""))
"""Attributes that define the series of a single value, and what they are if absent."""


def _definition(series: samples.Series) -> SeriesDefinition:
    """The definition of a series in the lake. The parameter has a column of its own and is not repeated as a label."""
    labels = {name: text for name, text in series.labels.items() if name != samples.PARAM}
    return define(series.config_name, series.detail, series.type, series.param, labels)


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
    """Add one record of the segment's stream: its rows to `columns`, its numbers or losses to `account`."""
    account.note(lsn)
    if isinstance(record, StreamRecord):
        identity = (manifests.record_name(record), record.era)
        account.received(identity, record)
        columns.add(lsn, identity, record)
    elif isinstance(record, LostRecord | EraRecord):
        account.announced(record)


def columns_for(stream: str, mask: bodies.Mask | None = None) -> SampleColumns | OtherColumns:
    """Empty columns for a stream; `mask` only matters to `configuration` and `store`."""
    assert stream in STREAMS, stream
    return SampleColumns() if stream == "samples" else OtherColumns(stream, mask)
