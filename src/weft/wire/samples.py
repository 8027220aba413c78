"""A batch of samples that describes itself: the body of a `weft.metric` message (MEA-022).

    body   = MessagePack [1, t0_ms, series, rows]
    series = [[config-name, detail, type, labels] *]      labels = {text: text}
    row    = [index into series, ms after t0, value]  or  [index, ms, value, base]

Values are integers, exact to 64 bits, or doubles, NaN and infinities among them: they are kept, and judged where
the samples are typed (PIP-031). Row i of a record is the sample with the record's sequence + i.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from weft.base.errors import OurFault, PeerError

BODY_BYTES_MAX: Final = 256 << 10
ROWS_MAX: Final = 1_000
SERIES_MAX: Final = 20_000  # of one sensor
LABELS_MAX: Final = 16
LABEL_BYTES_MAX: Final = 64
LABEL_VALUE_BYTES_MAX: Final = 256
NAME_BYTES_MAX: Final = 255  # a name is a segment of a configuration key (CFG-004)
KIND_BYTES_MAX: Final = 64
MS_MAX: Final = ((1 << 63) - 1) // 1_000_000  # as nanoseconds an instant still fits the lake's 64 bits
HEAD_BYTES_MOST: Final = 1 + 1 + 9 + 5 + 5  # all but series and rows, in their longest forms
ROW_BYTES_MOST: Final = 1 + 3 + 9 + 9 + 9  # an array of four: index, offset, value, base
PARAM: Final = "param"
"""The label in which the parameter of a metric travels; a column of its own in the lake (LAK-019)."""

Number = int | float
Labels = tuple[tuple[str, str], ...]
Millis = Annotated[int, msgspec.Meta(ge=0, le=MS_MAX)]
Name = Annotated[str, msgspec.Meta(max_length=NAME_BYTES_MAX)]
Kind = Annotated[str, msgspec.Meta(max_length=KIND_BYTES_MAX)]
LabelMap = Annotated[
    dict[
        Annotated[str, msgspec.Meta(max_length=LABEL_BYTES_MAX)],
        Annotated[str, msgspec.Meta(max_length=LABEL_VALUE_BYTES_MAX)],
    ],
    msgspec.Meta(max_length=LABELS_MAX),
]


class Series(msgspec.Struct, array_like=True, frozen=True, gc=False, forbid_unknown_fields=True):
    """Whose samples these are."""

    config_name: Name
    detail: Kind
    type: Kind
    """`basic`, `delta`, `rate`, `average`, `percent` (MEA-001), or `once`."""
    labels: LabelMap

    @property
    def param(self) -> str:
        """The parameter of the metric, empty if it has none."""
        return self.labels.get(PARAM, "")


class Row(msgspec.Struct, array_like=True, frozen=True, gc=False, forbid_unknown_fields=True):
    """One sample."""

    series: Annotated[int, msgspec.Meta(ge=0)]
    """Index into the batch's series."""
    offset_ms: Millis
    """Milliseconds after the batch's `t0_ms`."""
    value: Number
    base: Number | None = None


class SampleBatch(msgspec.Struct, frozen=True):
    """Samples of one origin, in the order in which they are numbered."""

    t0_ms: int
    """Wall-clock milliseconds of the earliest row."""
    series: tuple[Series, ...]
    rows: list[Row]


class Exploded(NamedTuple):
    """One sample on its own, as the lake's writer takes it."""

    offset_ms: int
    series: Series
    value: Number
    base: Number | None


class _Body(msgspec.Struct, array_like=True, frozen=True, gc=False, forbid_unknown_fields=True):
    version: Literal[1]
    t0_ms: Millis
    series: msgspec.Raw
    rows: msgspec.Raw


_BODY: Final = msgspec.msgpack.Decoder(_Body)
_SERIES: Final = msgspec.msgpack.Decoder(tuple[Series, ...])
_ROWS: Final = msgspec.msgpack.Decoder(list[Row])
_ENCODER: Final = msgspec.msgpack.Encoder()


def encode(batch: SampleBatch) -> bytes:
    """The body of a batch; OurFault if it breaks a limit of bodies."""
    pieces = encode_pieces(batch)
    if len(pieces) > 1:
        raise OurFault(f"a batch of {len(batch.rows)} rows and {len(batch.series)} series is too large for one body")
    return pieces[0][1]


def encode_pieces(batch: SampleBatch) -> list[tuple[SampleBatch, bytes]]:
    """The same rows, in order, halved until the pieces are within the limits of a body: usually one, with its body."""
    if len(batch.rows) <= ROWS_MAX:
        body = _ENCODER.encode((1, batch.t0_ms, batch.series, _bare(batch.rows)))
        if len(body) <= BODY_BYTES_MAX:
            return [(batch, body)]
    assert len(batch.rows) > 1, "one row with its series always fits a body"
    half = len(batch.rows) // 2
    return [piece for rows in (batch.rows[:half], batch.rows[half:]) for piece in encode_pieces(select(batch, rows))]


def _bare(rows: list[Row]) -> Sequence[Row | tuple[Number, ...]]:
    """Rows in the form of the wire: one without base is an array of three; if all have one, they are in it already."""
    if not [None for row in rows if row.base is None]:
        return rows
    return [
        (row.series, row.offset_ms, row.value) if row.base is None else (row.series, row.offset_ms, row.value, row.base)
        for row in rows
    ]


def decode(body: bytes, known: dict[bytes, tuple[Series, ...]] | None = None) -> SampleBatch:
    """The batch in a body. PeerError `too-large` beyond a limit, `malformed` for anything else that is no batch (FUZ-001).

    `known` keeps arrays of series by their bytes: a sensor sends the same ones with each batch, so a reader of many
    batches decodes them once.
    """
    if len(body) > BODY_BYTES_MAX:
        raise PeerError("too-large", f"{len(body)} bytes, {BODY_BYTES_MAX} at most", body)
    try:
        head = _BODY.decode(body)
        _bound(head.series, SERIES_MAX, "series", body)
        _bound(head.rows, ROWS_MAX, "rows", body)
        series, rows = _series(bytes(head.series), known), _ROWS.decode(head.rows)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError("malformed", str(error)[:200], body) from None
    _check(head.t0_ms, series, rows, body)
    return SampleBatch(head.t0_ms, series, rows)


def _series(array: bytes, known: dict[bytes, tuple[Series, ...]] | None) -> tuple[Series, ...]:
    if known is None:
        return _SERIES.decode(array)
    series = known.get(array)
    if series is None:
        series = known[array] = _SERIES.decode(array)
    return series


def _bound(array: msgspec.Raw, most: int, what: str, body: bytes) -> None:
    """Refuse a long array by the count it claims, before anything is made of it."""
    data = bytes(memoryview(array)[:5])
    count = 0
    if data[:1] == b"\xdc":
        count = int.from_bytes(data[1:3], "big")
    elif data[:1] == b"\xdd":
        count = int.from_bytes(data[1:5], "big")
    if count > most:
        raise PeerError("too-large", f"{count} {what}, {most} at most", body)


def _check(t0_ms: int, series: tuple[Series, ...], rows: list[Row], body: bytes) -> None:
    if not rows:
        return
    if max([row.series for row in rows]) >= len(series):
        raise PeerError("malformed", "a row of a series that is not in the batch", body)
    if t0_ms + max([row.offset_ms for row in rows]) > MS_MAX:
        raise PeerError("malformed", "a row beyond the end of time", body)


def explode(batch: SampleBatch) -> Iterator[Exploded]:
    """Each row on its own, in order: row i is the sample with the record's sequence + i (LAK-012)."""
    series = batch.series
    return (Exploded(row.offset_ms, series[row.series], row.value, row.base) for row in batch.rows)


def select(batch: SampleBatch, rows: list[Row]) -> SampleBatch:
    """A batch of only these rows of `batch`, and only the series that they need."""
    places: dict[int, int] = {}
    for row in rows:
        places.setdefault(row.series, len(places))
    remaining = [Row(places[row.series], row.offset_ms, row.value, row.base) for row in rows]
    return SampleBatch(batch.t0_ms, tuple(batch.series[index] for index in places), remaining)


def series_bytes(series: Series) -> int:
    """How many bytes the definition of a series takes in every batch that has a row of it."""
    return len(_ENCODER.encode(series))
