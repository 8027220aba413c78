"""Builds the sample rows of a segment as Arrow columns. Numbers that no column can hold become error rows.

Text that is equal for all rows of a series or of a record becomes a dictionary: Parquet stores it so anyway, and no
text is hashed once per row. Readers see plain strings, since the file carries no Arrow schema (LAK-020).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft.lake import schemas
from weft.lake.schemas import LONG_MAX, LONG_MIN
from weft.wire import samples

if TYPE_CHECKING:
    import pyarrow as pa

    from weft.lake.columns import SampleColumns  # tidy: imported late, because it needs PyArrow

NS_PER_MS: Final = 1_000_000
SERIES_TEXTS: Final = ("config_name", "detail", "type", "param")


def sample_table(columns: "SampleColumns") -> "pa.Table":
    """All rows, in the order of the schema. Changes `columns`: unreadable numbers become error rows."""
    import pyarrow as pa

    run_of_row = _run_of_row(columns)
    at_ns = _times(columns, run_of_row)
    arrays = _values(columns)
    arrays |= _shared(columns, run_of_row)
    arrays |= _series(columns)
    arrays |= error_columns(columns.errors, columns.rows)
    arrays["at_ns"] = at_ns
    names = schemas.SAMPLES.names
    return pa.table([arrays[name] for name in names], names=list(names))


def _run_of_row(columns: "SampleColumns") -> "pa.Array":
    """Which record each row came from: its index among the records."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ends, total = [], 0
    for rows in columns.runs.rows:
        total += rows
        ends.append(total)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), pa.array(range(len(ends)), pa.int32()))
    return pc.run_end_decode(runs)


def _shared(columns: "SampleColumns", run_of_row: "pa.Array") -> "dict[str, pa.Array]":
    """Columns whose value is the same for all rows of a record."""
    import pyarrow as pa
    import pyarrow.compute as pc

    runs = columns.runs
    start, total = [], 0
    for rows, sequence in zip(runs.rows, runs.sequence, strict=True):
        start.append(None if sequence is None else sequence - total)
        total += rows
    spread = {
        "era": pa.array(runs.era, pa.int64()),
        "received_ns": pa.array(runs.received, pa.int64()),
        "lsn": pa.array(runs.lsn, pa.int64()),
        "config_number": pa.array(columns.config_numbers, pa.int64()),
    }
    arrays = {name: values.take(run_of_row) for name, values in spread.items()}
    arrays["sequence"] = pc.add(pa.array(start, pa.int64()).take(run_of_row), _counting(total))
    arrays["origin"] = repeated_text(runs.origin, run_of_row)
    arrays["attributes"] = _maps([sorted(entries.items()) for entries in runs.attributes], run_of_row)
    return arrays


def _counting(total: int) -> "pa.Array":
    """0, 1, 2 … as a column, without a Python number for each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), total)), 1)


def _series(columns: "SampleColumns") -> "dict[str, pa.Array]":
    """Columns of the series' definition; null in rows that have no series, because the record could not be read."""
    import pyarrow as pa

    definitions = columns.definitions
    index = pa.array(columns.series, pa.int32())
    if columns.errors:
        import pyarrow.compute as pc

        index = pc.if_else(pc.less(index, 0), pa.scalar(None, pa.int32()), index)
    arrays: dict[str, pa.Array] = {"series": pa.array([d.key() for d in definitions], pa.int64()).take(index)}
    for place, name in enumerate(SERIES_TEXTS):
        arrays[name] = repeated_text([str(d[place]) for d in definitions], index)
    arrays["labels"] = _maps([list(d.labels) for d in definitions], index)
    return arrays


def error_columns(errors: Mapping[int, tuple[str, bytes]], rows: int) -> "dict[str, pa.Array]":
    """Columns `error` and `raw` of `rows` rows. `errors`: for each error row its error and its raw bytes."""
    import pyarrow as pa

    if not errors:
        return {"error": pa.nulls(rows, pa.string()), "raw": pa.nulls(rows, pa.binary())}
    error: list[str | None] = [None] * rows
    raw: list[bytes | None] = [None] * rows
    for row, (code, shown) in errors.items():
        error[row], raw[row] = code, shown
    return {"error": pa.array(error, pa.string()), "raw": pa.array(raw, pa.binary())}


def _times(columns: "SampleColumns", run_of_row: "pa.Array") -> "pa.Array":
    """Column `at_ns`: t0 + ms for a row of a batch, the record's own stamp for any other row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    runs = columns.runs
    t0 = pa.array(runs.at_ms, pa.int64()).take(run_of_row)
    # cannot overflow, because the decoder limits both
    at = pc.multiply(pc.add(t0, pa.array(columns.ms, pa.int64())), NS_PER_MS)
    if t0.null_count:
        at = pc.coalesce(at, pa.array(runs.at_ns, pa.int64()).take(run_of_row))
    return at


def _values(columns: "SampleColumns") -> "dict[str, pa.Array]":
    """Columns of value and base. Each number is in the column of its type; the other columns of its row are null."""
    made = partial(_checked, columns)
    arrays, base = typed("value", columns.value, made), typed("base", columns.base, made)
    if columns.refused:
        for row in columns.refused:
            columns.value[row] = columns.base[row] = None
        columns.refused.clear()
        arrays, base = typed("value", columns.value, made), typed("base", columns.base, made)
    arrays["text"] = arrays.pop("value_text")
    base.pop("base_text")
    return arrays | base


def typed(name: str, values: list[Any], made: "Callable[[list[Any], pa.DataType], pa.Array]") -> "dict[str, pa.Array]":
    """One column per type: integers, doubles, text; `made` makes the array of one of them."""
    import pyarrow as pa

    kinds = frozenset(map(type, values)) - {type(None)}
    types = {"long": (int, pa.int64()), "double": (float, pa.float64()), "text": (str, pa.string())}
    arrays = {}
    for column, (kind, arrow) in types.items():
        if kind not in kinds:
            arrays[f"{name}_{column}"] = pa.nulls(len(values), arrow)
            continue
        chosen = values if len(kinds) == 1 else [value if type(value) is kind else None for value in values]
        arrays[f"{name}_{column}"] = made(chosen, arrow)
    return arrays


def _checked(columns: "SampleColumns", values: list[Any], arrow: "pa.DataType") -> "pa.Array":
    """The values as one Arrow array. Rows whose value the column cannot hold are put into `columns.refused`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        array = pa.array(values, arrow)
    except OverflowError:
        wide = [row for row, value in enumerate(values) if value is not None and not LONG_MIN <= value <= LONG_MAX]
        for row in wide:
            _refuse(columns, row, "out-of-range")
        return pa.array([None if row in columns.refused else value for row, value in enumerate(values)], arrow)
    finite = pc.is_finite(array) if pa.types.is_floating(arrow) else None
    if finite is not None and not pc.all(finite, min_count=0).as_py():
        for row in (row for row, good in enumerate(finite.to_pylist()) if good is False):
            _refuse(columns, row, "bad-number")
    return array


def _refuse(columns: "SampleColumns", row: int, code: str) -> None:
    """Make a row an error row. Its raw bytes are a batch with this one sample, so that it can be decoded again."""
    columns.refused.add(row)
    if row in columns.errors:
        return
    index = columns.series[row]
    definition = columns.definitions[index]
    labels = dict(definition.labels) | ({samples.PARAM: definition.param} if definition.param else {})
    series = [definition.config_name, definition.detail, definition.type, labels]
    values = [0, columns.ms[row], columns.value[row]]
    if columns.base[row] is not None:
        values.append(columns.base[row])
    t0 = columns.t0_of(row)
    columns.errors[row] = (code, msgspec.msgpack.encode([1, t0, [series], [values]]))


def repeated_text(values: Sequence[str | None], index: "pa.Array") -> "pa.Array":
    """A text column with repeats: each text is stored once and referred to by index."""
    import pyarrow as pa

    words = pa.array(values, pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(words.indices.take(index), words.dictionary)


def _maps(entries: list[list[tuple[str, str]]], index: "pa.Array") -> "pa.Array":
    """A map column with repeats: each map is referred to by index."""
    import pyarrow as pa

    return pa.array(entries, pa.map_(pa.string(), pa.string())).take(index)
