"""The catalogue of everything that can be measured, for people and programs (MET-001); built from DETAILS."""

from typing import NamedTuple

from weft.cores.measurement.details import ADDRESS, DETAILS, FILE, Detail
from weft.cores.measurement.units import MEASURED, WRITTEN

PARAMS = {"device": "sda", "mount": "/", "process": "nginx", FILE: "/var/log/syslog", ADDRESS: "http://127.0.0.1:80/"}


class Entry(NamedTuple):
    """One detail in words; an empty field has no value."""

    name: str
    says: str
    unit: str
    """UCUM unit; if there are several, each with its value of the label `unit`."""
    kind: str
    """`gauge` or `counter`."""
    labels: str
    param: str
    per: str
    source: str
    otel: str
    limit: str
    """How a limit can be written."""
    example: str
    """A complete `[metric.…]`."""


def catalogue() -> list[Entry]:
    """All details, by name."""
    return [_entry(name, DETAILS[name]) for name in sorted(DETAILS)]


def _entry(name: str, row: Detail) -> Entry:
    units = ", ".join(f"{unit} ({label})" for label, unit in row.units.items())
    return Entry(
        name=name,
        says=row.says,
        unit=row.unit or units,
        kind=row.kind,
        labels=", ".join(row.labels),
        param=row.param and (f"{row.param}, needed" if row.needs_param else row.param),
        per=", ".join(row.per),
        source=row.source,
        otel=row.otel,
        limit=_limit(row),
        example=_example(name, row),
    )


def _limit(row: Detail) -> str:
    """With every unit that is allowed; a plain number always is."""
    measured = MEASURED.get(row.unit)
    fitting = [name for name, size in WRITTEN.items() if measured is not None and size.dimension == measured.dimension]
    return ", ".join(fitting)


def _example(name: str, row: Detail) -> str:
    param = f', param = "{PARAMS[row.param]}"' if row.needs_param else ""
    rate = "" if row.type == "once" else ', rate = "10s"'
    return f'[metric.{name.lower()}] detail = "{name}"{rate}{param}'
