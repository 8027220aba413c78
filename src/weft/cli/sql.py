"""`weft sql`: ask the lake, at once."""

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from weft.base.errors import UserError
from weft.cli.home import home_of
from weft.cli.kit.options import Flag
from weft.lake.arrow import without

if TYPE_CHECKING:
    import pyarrow as pa

    from weft.pipeline.bridge.bridge import Freshness
    from weft.pipeline.sql import Lake

LIMIT = 1_000


def sql(
    query: str,
    /,
    *,
    lake: Path | None = None,
    as_of: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    json: Flag = False,
    csv: Flag = False,
    parquet: Path | None = None,
    arrow: Path | None = None,
    limit: int = LIMIT,
    verify: Flag = False,
    fresh: bool = True,
) -> None:
    """Ask the tables of a lake in SQL, without Java: `weft sql "SELECT node, missing FROM completeness"`.

    Args:
        query: one SELECT over `gold.…`, `silver.…`, `bronze.…`, `meta.…`; a bare name is looked up in that order.
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        as_of: the tables as they were: at an instant (2026-01-31T12:00Z, 20:15, -5m), or at a version of those that are named.
        json: one JSON array of objects.
        csv: CSV with a header.
        parquet: write the rows to this Parquet file instead.
        arrow: write the rows to this file of Arrow's IPC format instead.
        limit: most rows that are shown; every other output has all.
        verify: read and prove every byte of the tables that are named before they are asked; status 1 if one is not as written.
        fresh: answer from drained rows, too, that no commit names yet, and say on stderr how fresh that is; never with --as-of.
    """
    if sum((json, csv, parquet is not None, arrow is not None)) > 1:
        raise UserError("usage", "more than one output", "one of --json, --csv, --parquet FILE, --arrow FILE")
    place = home_of(lake)
    with without("pandas"), without("numpy"), _opened(place, as_of, verify=verify, fresh=fresh) as asked:
        if out := parquet or arrow:
            from weft.pipeline.filing import file_rows, refuse_inside

            refuse_inside(place, out)
            rows = file_rows(asked.batches(query), parquet=parquet, arrow=arrow)
            print(f"{rows:,} rows in {out}")
        else:
            _print(asked.query(query, None if json or csv else limit), "json" if json else "csv" if csv else "")
        _tell(asked.freshness(), as_json=json)


def _opened(lake: Path, as_of: str | None, *, verify: bool, fresh: bool) -> "Lake":
    from weft.pipeline import versions
    from weft.pipeline.sql import Lake

    return Lake(lake, None if as_of is None else versions.as_of(_dated(as_of)), verify=verify, fresh=fresh)


def _dated(text: str) -> str:
    """`20:15` of today and `-5m` with their day, as everywhere else; all else as it is."""
    if not text.startswith("-") and ":" not in text[:3]:
        return text
    from weft.client.doc.replaying import instant_of

    return datetime.fromtimestamp(instant_of(text, time.time()), UTC).isoformat()


def _tell(found: "list[Freshness]", *, as_json: bool) -> None:
    """How fresh the answer is: on stderr, so that the rows stay alone; with --json as one line of JSON."""
    if as_json and found:
        import msgspec

        print(msgspec.json.encode({"freshness": [one._asdict() for one in found]}).decode(), file=sys.stderr)
        return
    for one in found:
        print(freshness_line(one), file=sys.stderr)


def freshness_line(one: "Freshness") -> str:
    """How fresh one table is, in a sentence."""
    newest = "nothing yet" if one.newest is None else f"{one.newest.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"
    if one.is_bridged:
        text = f"{one.table}: newest row of {newest}; {one.rows:,} drained rows of {one.segments:,} segments besides its last commit"
    else:
        text = f"{one.table}: as of its last commit, {newest}"
    text += f"; {one.left:,} more segments wait for weft lake run" if one.left else ""
    return text + (f" ({one.why})" if one.why else "")


def _print(rows: "pa.Table", form: str) -> None:
    from weft.cli.tables import print_csv, print_json, show

    if form:
        {"json": print_json, "csv": print_csv}[form](rows)
    else:
        from weft.cli.kit.console import console

        show(rows, console(soft_wrap=False))
