"""Conditions of a filter, compiled once (CHN-060): `where = { name = "cpu", value = { gt = 90 } }`.

A sample has the fields `name` (its metric), `detail`, `type`, `labels.X` and `value`. All but the value belong to the
series, so they are looked at once per series of a batch, and not once per row. The value is the calculated one
(MEA-001), since a raw counter says nothing by itself. A field that is not there fulfils only `exists = false` and
`ne`.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from weft.base.settings import Table, nearest
from weft.cores.chains import limits
from weft.wire.samples import Series

Scalar = str | int | float
OfSeries = Callable[[Series], bool]
OfValue = Callable[[int | float | None], bool]

FIELDS: Final = ("name", "detail", "type", "value", "labels.")
LABEL: Final = "labels."
VALUE: Final = "value"


class Condition(msgspec.Struct, frozen=True):
    """One field, one comparison."""

    field: str
    test: str
    operand: Scalar | bool | tuple[Scalar, ...]


def _eq(operand: Any) -> Callable[[Any], bool]:
    return lambda found: found == operand


def _ne(operand: Any) -> Callable[[Any], bool]:
    return lambda found: found != operand


def _gt(operand: Any) -> Callable[[Any], bool]:
    return lambda found: found is not None and found > operand


def _ge(operand: Any) -> Callable[[Any], bool]:
    return lambda found: found is not None and found >= operand


def _lt(operand: Any) -> Callable[[Any], bool]:
    return lambda found: found is not None and found < operand


def _le(operand: Any) -> Callable[[Any], bool]:
    return lambda found: found is not None and found <= operand


def _in(operand: Any) -> Callable[[Any], bool]:
    return lambda found: found in operand


def _prefix(operand: Any) -> Callable[[Any], bool]:
    return lambda found: found is not None and found.startswith(operand)


def _exists(operand: Any) -> Callable[[Any], bool]:
    return lambda found: (found is not None) is operand


TESTS: Final[dict[str, Callable[[Any], Callable[[Any], bool]]]] = {
    "eq": _eq,
    "ne": _ne,
    "gt": _gt,
    "ge": _ge,
    "lt": _lt,
    "le": _le,
    "in": _in,
    "prefix": _prefix,
    "exists": _exists,
}


def field_of(name: str) -> Callable[[Series], str | None]:
    """Reads a field of a series; None if it has no such label."""
    if name.startswith(LABEL):
        label = name[len(LABEL) :]
        return lambda series: series.labels.get(label)
    return GETTERS[name]


GETTERS: Final[dict[str, Callable[[Series], str]]] = {
    "name": lambda series: series.config_name,
    "detail": lambda series: series.detail,
    "type": lambda series: series.type,
}


class Where:
    """All conditions of a filter; without any, everything matches."""

    def __init__(self, conditions: tuple[Condition, ...]) -> None:
        self._series = [_of_series(condition) for condition in conditions if condition.field != VALUE]
        self.of_values: list[OfValue] = [
            TESTS[condition.test](condition.operand) for condition in conditions if condition.field == VALUE
        ]
        """Tests of a row's value; where there are none, its series decides."""

    @property
    def is_empty(self) -> bool:
        return not self._series and not self.of_values

    def matches_series(self, series: Series) -> bool:
        """Whether the conditions on the series hold."""
        return all(test(series) for test in self._series)


def _of_series(condition: Condition) -> OfSeries:
    read, test = field_of(condition.field), TESTS[condition.test](condition.operand)
    return lambda series: test(read(series))


# Parsing


def is_field(name: str) -> bool:
    """Whether a sample has fields of this name."""
    return name in GETTERS or name == VALUE or (name.startswith(LABEL) and len(name) > len(LABEL))


def parse_where(table: Table) -> tuple[Condition, ...]:
    """The conditions of a filter's `where`, with its mistakes noted in the table."""
    values = table.raw("where")
    if values is None:
        return ()
    if not isinstance(values, dict):
        table.say("E04", "where", "must be a table: field = value, or field = { gt = 90 }")
        return ()
    found: list[Condition] = []
    for field, wanted in _flat(values):
        if not is_field(field):
            table.say("E02", f"where.{field}", f"is no field of a sample{nearest(field, FIELDS)}")
            continue
        tests = wanted if isinstance(wanted, dict) else {"eq": wanted}
        found += [made for test, operand in tests.items() if (made := _condition(table, field, test, operand))]
    if len(found) > limits.CONDITIONS_MAX:
        table.say("E04", "where", f"{len(found)} conditions, {limits.CONDITIONS_MAX} at most")
    return tuple(found)


def _flat(values: dict[str, Any]) -> list[tuple[str, Any]]:
    """`labels = { cpu = "0" }` says the same as `"labels.cpu" = "0"`."""
    flat: list[tuple[str, Any]] = []
    for field, wanted in values.items():
        if field == "labels" and isinstance(wanted, dict):
            flat += [(f"{LABEL}{label}", inner) for label, inner in wanted.items()]
        else:
            flat.append((field, wanted))
    return flat


def _condition(table: Table, field: str, test: str, operand: object) -> Condition | None:
    place = f"where.{field}.{test}"
    if test not in TESTS:
        table.say("E02", place, f"is no comparison{nearest(test, TESTS)}")
        return None
    kind = (int, float) if field == VALUE else (str,)
    if test == "exists":
        is_right = isinstance(operand, bool)
    elif test == "in":
        is_right = isinstance(operand, list) and all(_is_a(item, kind) for item in operand)
    else:
        is_right = _is_a(operand, kind) and not (test == "prefix" and field == VALUE)
    if not is_right:
        wanted = "numbers" if field == VALUE else "text"
        table.say("E04", place, f"{operand!r} does not go with {test}: {field} is compared with {wanted}")
        return None
    return Condition(field, test, tuple(operand) if isinstance(operand, list) else operand)  # type: ignore[arg-type]  # just looked at


def _is_a(operand: object, kinds: tuple[type, ...]) -> bool:
    return isinstance(operand, kinds) and not isinstance(operand, bool)
