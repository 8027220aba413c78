"""`weft lake missing`: which records of which machine are not in the lake, since when and why (PIP-060..062)."""

import json as to_json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from weft.cli.home import home_of
from weft.cli.kit.exits import DONE, NOT_SO, notice
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean

if TYPE_CHECKING:
    from weft.pipeline.absent import Account, Accounts

LINES: Final = 200


def missing(
    *,
    lake: Annotated[Path | None, Parameter(name="--lake")] = None,
    node: str | None = None,
    stream: str | None = None,
    json: Flag = False,
) -> int:
    """List which records of which machine are not in the lake, since when and why: `weft lake missing --node web-1`.

    Exit status 0 if all records that are known to exist are here or reported as lost; 1 if some are on their way, or
    missing.

    Args:
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        node: only of this machine: its name, or its 32 hex digits.
        stream: only of this stream: samples, messages, events, store, catalog, logs, documents or configuration.
        json: one object: `whole`, `waiting`, and `rows` with all numbers, times as ISO 8601.
    """
    from weft.lake.arrow import without

    with without("pandas"):
        import pyarrow.dataset  # noqa: F401  # imported early, because its import looks for pandas
    from weft.pipeline.absent import accounts

    found = accounts(home_of(lake), node=node, stream=stream)
    if json:
        rows = [row._asdict() for row in found.rows]
        facts = {"whole": found.is_whole, "waiting": found.waiting, "rows": rows}
        print(to_json.dumps(facts, default=_text, ensure_ascii=False))
    else:
        _tell(found)
    return DONE if found.is_whole else NOT_SO


def _tell(found: "Accounts") -> None:
    lines = [sentence for row in found.rows for sentence in row.sentences()]
    for line in lines[:LINES]:
        print(clean(line))
    if lines[LINES:]:
        print(f"and {len(lines) - LINES:,} more: --node, --stream, or --json")
    for stream in sorted({row.stream for row in found.rows if row.state == "sparse"}):
        print(
            f"{stream}: {_count(found.rows, stream):,} have come; their numbers may have holes, so none counts as missing"
        )
    if found.is_whole:
        print(f"nothing is missing of what {'the tables have counted' if found.waiting else 'is known to exist'}")
    if found.waiting:
        notice(f"{found.waiting:,} segments are drained and not in the tables yet: weft lake run")


def _count(rows: "list[Account]", stream: str) -> int:
    return sum(row.expected for row in rows if row.stream == stream)


def _text(value: Any) -> str:
    assert isinstance(value, datetime), value
    return value.isoformat()
