"""Prints rows: as a table for people, as JSON or CSV for programs."""

import csv
import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from weft.cli.kit.text import clean
from weft.cli.octets import payload_json

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

FORMULA: Final = ("=", "+", "-", "@")  # characters that make a spreadsheet run the text (SEC-045)


def show(table: "pa.Table", console: "Console") -> None:
    """Print a table for people; numbers are right-aligned.

    Nothing in a cell or a name is interpreted as markup (SEC-045).
    """
    from rich.text import Text

    from weft.cli.kit.console import plain_table

    shown = plain_table()
    for field in table.schema:
        is_number = str(field.type).startswith(("int", "double", "float", "decimal"))
        shown.add_column(Text(clean(field.name)), justify="right" if is_number else "left")
    for row in cells(table):
        shown.add_row(*map(Text, row))
    console.print(shown)


def print_json(table: "pa.Table") -> None:
    """Print one JSON array of objects; NaN and infinities become null."""
    sys.stdout.write(_as_json(table.to_pylist()) + "\n")


def print_csv(table: "pa.Table") -> None:
    """CSV with a header; text that a spreadsheet would run gets an apostrophe, control characters are escaped.

    A list or a map is JSON in its cell, and so are bytes that are no text.
    """
    _write_csv(iter([table.schema, *table.to_batches()]), sys.stdout)


def file_csv(batches: "Iterator[pa.RecordBatch | pa.Schema]", path: Path) -> int:
    """Write a schema and the rows that follow it as CSV into a file, replacing it; returns how many rows. OSError."""
    fresh = path.with_name(path.name + ".tmp")
    try:
        with fresh.open("w", encoding="utf-8", newline="") as file:
            rows = _write_csv(batches, file)
        os.replace(fresh, path)  # noqa: PTH105  # says that it replaces
    finally:
        fresh.unlink(missing_ok=True)
    return rows


def _write_csv(batches: "Iterator[pa.RecordBatch | pa.Schema]", file: TextIO) -> int:
    import pyarrow as pa

    writer, rows = csv.writer(file), 0
    for part in batches:
        if isinstance(part, pa.RecordBatch):
            rows += part.num_rows
            writer.writerows([_harmless(value) for value in row.values()] for row in part.to_pylist())
        else:
            writer.writerow([_harmless(name) for name in part.names])
    return rows


def _as_json(value: Any) -> str:
    return json.dumps(_finite(value), default=_word)


def _word(value: Any) -> Any:
    """A value of a type that JSON does not have: bytes as `weft chain watch` prints them, anything else as text."""
    return payload_json(value) if isinstance(value, bytes) else str(value)


def _harmless(value: Any) -> Any:
    if isinstance(value, bytes):
        value = payload_json(value)
    if isinstance(value, list | dict):
        return _as_json(value)
    if not isinstance(value, str):
        return value
    text = clean(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def _finite(value: Any) -> Any:
    """A value with null for every double that JSON cannot express."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


def cells(table: "pa.Table") -> Iterator[list[str]]:
    """Rows as text for a terminal: control characters escaped (SEC-045), null as an empty cell."""
    for row in table.to_pylist():
        yield [_cell(value) for value in row.values()]


def _cell(value: Any) -> str:
    return "" if value is None else clean(_text_of(value))


def _text_of(value: Any) -> str:
    """A value as text, also nested ones, without Python's notation."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_text_of(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_text_of, value)) + "]"
    if isinstance(value, tuple):  # an entry of a map
        return ": ".join(map(_text_of, value))
    return f"{value:%Y-%m-%d %H:%M:%S}" if hasattr(value, "hour") else str(value)
