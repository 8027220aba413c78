"""`weft sql`: ask the lake, at once."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from weft.base.errors import UserError

Flag = Annotated[bool, Parameter(negative="")]
LIMIT = 1_000


def sql(query: str, /, *, lake: Path | None = None, json: Flag = False, csv: Flag = False, limit: int = LIMIT) -> None:
    """Ask the tables of a lake in SQL, without Java: `weft sql "SELECT node, missing FROM completeness"`.

    Args:
        query: one SELECT over `gold.…`, `silver.…`, `bronze.…`, `meta.…`; a bare name is looked up in that order.
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        json: one JSON array of objects.
        csv: CSV with a header.
        limit: most rows that are shown; --json and --csv give all.
    """
    with without("pandas"):
        import pyarrow.dataset  # noqa: F401  # where it looks for pandas, once
    from weft.cli.tables import print_csv, print_json, show
    from weft.pipeline.sql import Lake

    if json and csv:
        raise UserError("usage", "--json and --csv at once", "one of them")
    with Lake(lake or os.environ.get("WEFT_LAKE") or "lake") as asked:
        if json:
            print_json(asked.query(query))
        elif csv:
            print_csv(asked.query(query))
        else:
            from rich.console import Console

            show(asked.query(query, limit), Console())


class _Absent(MetaPathFinder):
    """Says that a package is not installed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == self.name:
            raise ImportError(fullname)


@contextmanager
def without(name: str) -> Iterator[None]:
    """Import something without a package that it would load if it could.

    PyArrow loads pandas, a second on a small machine, only to ask whether some value is of a type of pandas.
    """
    absent = _Absent(name)
    sys.meta_path.insert(0, absent)
    try:
        yield
    finally:
        sys.meta_path.remove(absent)
