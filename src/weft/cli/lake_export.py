"""`weft lake export`: a table, or a part of it, as a file for other programs."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from cyclopts import Parameter

from weft.base.errors import UserError
from weft.cli.home import home_of
from weft.cli.kit.options import Flag

if TYPE_CHECKING:
    from weft.pipeline.exporting import Wish

Format = Literal["auto", "parquet", "arrow", "csv", "openmetrics"]
ENDINGS: Final = {".parquet": "parquet", ".arrow": "arrow", ".csv": "csv", ".om": "openmetrics", ".prom": "openmetrics"}


def export(
    table: str,
    out: Path,
    /,
    *,
    lake: Annotated[Path | None, Parameter(name="--lake")] = None,
    format: Format = "auto",  # noqa: A002  # the name of the option
    since: str = "",
    until: str = "",
    json: Flag = False,
) -> None:
    """Write a table, or a part of it, to a file: `weft lake export samples --since 2026-11-21 --until 2026-11-22 day.parquet`.

    The finished file replaces an existing one. Rows that are not folded yet are included.

    Args:
        table: `gold.rollup_1h`, or a bare name; views too.
        out: the file.
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        format: parquet and arrow keep every type; csv is for spreadsheets; openmetrics is for samples and values, and
            `weft lake import` reads it back unchanged; auto chooses by the ending of the file.
        since: from this instant on, 2026-11-21 or 2026-11-21T12:00Z.
        until: before this instant.
        json: print the outcome as a line of JSON instead of a sentence.
    """
    from weft.pipeline.exporting import Wish, table_named
    from weft.pipeline.filing import refuse_inside
    from weft.pipeline.versions import instant

    form = ENDINGS.get(out.suffix, "") if format == "auto" else format
    if not form:
        raise UserError("bad-format", f"{out.name} does not say its format", f"--format, or {', '.join(ENDINGS)}")
    if not out.parent.is_dir():
        raise UserError("no-directory", f"there is no directory {out.parent}", f"mkdir -p {out.parent}")
    wish = Wish(table_named(table), *(instant(text) if text else None for text in (since, until)))
    home = home_of(lake)
    refuse_inside(home, out)
    rows, left_out = _export(home, wish, out, form)
    if json:
        sys.stdout.write(msgspec.json.encode({"rows": rows, "left_out": left_out, "file": str(out)}).decode() + "\n")
        return
    print(f"{rows:,} rows of {wish.table.full_name} in {out}")
    if left_out:
        print(
            "  left out, because OpenMetrics cannot express them: "
            + ", ".join(f"{n:,} {why}" for why, n in left_out.items())
        )


def _export(home: Path, wish: "Wish", out: Path, form: str) -> tuple[int, dict[str, int]]:
    from weft.pipeline.exporting import expose, rows_of
    from weft.pipeline.filing import file_rows
    from weft.pipeline.sql import Lake

    with Lake(home) as asked:
        if form == "openmetrics":
            return expose(asked, wish, out)
        if form == "csv":
            from weft.cli.tables import file_csv

            return file_csv(rows_of(asked, wish), out), {}
        files = {"parquet": out if form == "parquet" else None, "arrow": out if form == "arrow" else None}
        return file_rows(rows_of(asked, wish), **files), {}
