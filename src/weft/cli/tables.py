"""How rows are shown: as a table for people, as JSON or CSV for programs."""

import csv
import json
import sys
from typing import TYPE_CHECKING, Any, Final

from weft.pipeline.sql import cells

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

FORMULA: Final = ("=", "+", "-", "@")  # what a spreadsheet would run (SEC-045)


def show(table: "pa.Table", console: "Console") -> None:
    """A table for people; numbers to the right."""
    from rich.table import Table

    shown = Table(box=None, pad_edge=False)
    for field in table.schema:
        is_number = str(field.type).startswith(("int", "double", "float", "decimal"))
        shown.add_column(field.name, justify="right" if is_number else "left")
    for row in cells(table):
        shown.add_row(*row)
    console.print(shown)


def print_json(table: "pa.Table") -> None:
    """One JSON array of objects."""
    sys.stdout.write(json.dumps(table.to_pylist(), default=str) + "\n")


def print_csv(table: "pa.Table") -> None:
    """CSV with a header; text that a spreadsheet would run gets an apostrophe."""
    writer = csv.writer(sys.stdout)
    writer.writerow(table.column_names)
    for row in table.to_pylist():
        writer.writerow([_harmless(value) for value in row.values()])


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
