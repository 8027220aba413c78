"""`weft metrics`: what can be measured, and in which unit (MET-001)."""

from json import dumps
from typing import Annotated, Any

from cyclopts import Parameter

from weft.base.errors import UserError
from weft.base.settings import nearest
from weft.cli.kit.console import console, plain_table
from weft.cli.kit.options import Flag
from weft.cores.measurement.catalogue import Entry, catalogue


def names_of(_: Any) -> dict[str, str]:
    """Completions for the Tab key: every detail with its description."""
    return {row.name: row.says for row in catalogue()}


def metrics(
    name: Annotated[str | None, Parameter(completer=names_of)] = None, /, *, grafana: Flag = False, json: Flag = False
) -> int:
    """List what can be measured; with NAME, everything about one.

    `weft metrics`, `weft metrics DISK_PERCENT`

    A name goes behind `detail =` of a `[metric.…]` in the fleet's file.

    Args:
        name: a detail, in upper or lower case.
        grafana: print a Grafana dashboard with all of them, for a Prometheus that scrapes /metrics/fleet of the root.
        json: one JSON array of objects.
    """
    if grafana:
        from weft.cli.grafana import dashboard

        print(dumps(dashboard(), indent=1))
        return 0
    rows = catalogue()
    if name is not None:
        rows = [row for row in rows if row.name == name.upper()]
        if not rows:
            known = [row.name for row in catalogue()]
            raise UserError(
                "no-metric", f"{name} is not measured{nearest(name.upper(), known)}", "list all by `weft metrics`"
            )
    if json:
        print(dumps([row._asdict() for row in rows]))
    elif name is None:
        _table(rows)
    else:
        _one(rows[0])
    return 0


def _table(rows: list[Entry]) -> None:

    shown = plain_table()
    for column in ("name", "unit", "what"):
        shown.add_column(column, overflow="fold")
    for row in rows:
        shown.add_row(row.name, row.unit, row.says)
    console().print(shown)


def _one(row: Entry) -> None:
    for key, value in row._asdict().items():
        if value:
            print(f"{key:<9} {value}")
