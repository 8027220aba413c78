"""Conditions of a filter, compiled once (CHN-060): `where = { name = "cpu", value = { gt = 90 } }`.

A sample has the fields `name` (its metric), `detail`, `type`, `labels.X` and `value`. All but the value belong to the
series, so they are tested once per series of a batch, not once per row. The value is the calculated one (MEA-001),
since a raw counter means nothing by itself. A message has the fields of its payload, whatever they are; a dot leads
into a map. A missing or null field fulfils only `exists = false` and `ne`. A field of another type than the operand is
neither equal to it nor greater nor less.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from weft.base.settings import Table, nearest
from weft.cores.chains import limits
from weft.cores.chains.fields import Read, is_path, reader
from weft.wire.samples import Series

Scalar = str | int | float
Test = Callable[[Any], bool]
OfSeries = Callable[[Series], bool]

FIELDS: Final = ("name", "detail", "type", "value", "labels.")
LABEL: Final = "labels."
VALUE: Final = "value"


class Condition(msgspec.Struct, frozen=True):
    """One field, one comparison."""

    field: str
    test: str
    operand: Scalar | bool | tuple[Scalar | bool, ...]


def _eq(operand: Any) -> Test:
    if isinstance(operand, bool):
        return lambda found: found is operand
    return lambda found: found == operand and found is not True and found is not False


def _ne(operand: Any) -> Test:
    is_equal = _eq(operand)
    return lambda found: not is_equal(found)


def _gt(operand: Any) -> Test:
    if isinstance(operand, str):
        return lambda found: type(found) is str and found > operand
    return lambda found: type(found) in NUMBERS and found > operand


def _ge(operand: Any) -> Test:
    if isinstance(operand, str):
        return lambda found: type(found) is str and found >= operand
    return lambda found: type(found) in NUMBERS and found >= operand


def _lt(operand: Any) -> Test:
    if isinstance(operand, str):
        return lambda found: type(found) is str and found < operand
    return lambda found: type(found) in NUMBERS and found < operand


def _le(operand: Any) -> Test:
    if isinstance(operand, str):
        return lambda found: type(found) is str and found <= operand
    return lambda found: type(found) in NUMBERS and found <= operand


def _in(operand: Any) -> Test:
    if all(isinstance(item, str) for item in operand):
        texts = frozenset(operand)
        return lambda found: type(found) is str and found in texts
    tests = [_eq(item) for item in operand]
    return lambda found: any(test(found) for test in tests)


def _prefix(operand: Any) -> Test:
    return lambda found: type(found) is str and found.startswith(operand)


def _exists(operand: Any) -> Test:
    return lambda found: (found is not None) is operand


NUMBERS: Final = (float, int)  # by exact type: true is not a number
TESTS: Final[dict[str, Callable[[Any], Test]]] = {
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
    """A function that reads a field of a series; it returns None if there is no such label or field."""
    if name.startswith(LABEL):
        label = name[len(LABEL) :]
        return lambda series: series.labels.get(label)
    return GETTERS.get(name, _nothing)


def _nothing(_: Series) -> None:
    return None


GETTERS: Final[dict[str, Callable[[Series], str | None]]] = {
    "name": lambda series: series.config_name,
    "detail": lambda series: series.detail,
    "type": lambda series: series.type,
}


class Where:
    """All conditions of a filter; without conditions, everything matches."""

    def __init__(self, conditions: tuple[Condition, ...]) -> None:
        self._series = [_of_series(condition) for condition in conditions if condition.field != VALUE]
        self.of_values: list[Test] = [
            TESTS[condition.test](condition.operand) for condition in conditions if condition.field == VALUE
        ]
        """Tests of a sample's value; if there are none, its series decides alone."""
        self.of_records: list[tuple[Read, Test]] = [
            (reader(condition.field), TESTS[condition.test](condition.operand)) for condition in conditions
        ]
        """The same conditions for the records of a message."""

    @property
    def is_empty(self) -> bool:
        return not self.of_records

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


def parse_where(table: Table, *, of_samples: bool = True) -> tuple[Condition, ...]:
    """The conditions of a filter's `where`, with its mistakes noted in the table.

    The fields and operand types of samples are fixed; those of messages are free.
    """
    values = table.raw("where")
    if values is None:
        return ()
    if not isinstance(values, dict):
        table.say("E04", "where", "must be a table: field = value, or field = { gt = 90 }")
        return ()
    found: list[Condition] = []
    for field, wanted in _flat(values):
        if of_samples and not is_field(field):
            table.say("E02", f"where.{field}", f"is no field of a sample{nearest(field, FIELDS)}")
            continue
        if not is_path(field):
            table.say("E15", f"where.{field[:64]}", "is no field: names with dots between them")
            continue
        tests = wanted if isinstance(wanted, dict) else {"eq": wanted}
        known = _known_kinds(field) if of_samples else None
        found += [made for test, operand in tests.items() if (made := _condition(table, field, (test, operand), known))]
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


Kinds = tuple[type, ...]
ANY_SCALAR: Final[Kinds] = (str, int, float, bool)
ORDERED: Final[Kinds] = (str, int, float)
OPERANDS: Final[dict[str, Kinds]] = {
    **dict.fromkeys(("eq", "ne", "in"), ANY_SCALAR),
    **dict.fromkeys(("gt", "ge", "lt", "le"), ORDERED),
    "prefix": (str,),
    "exists": (bool,),
}
"""The operand type of each comparison, where the field may have any type."""


def _known_kinds(field: str) -> Kinds:
    return (int, float) if field == VALUE else (str,)


def _condition(table: Table, field: str, comparison: tuple[str, object], known: Kinds | None) -> Condition | None:
    test, operand = comparison
    place = f"where.{field}.{test}"
    if test not in TESTS:
        table.say("E02", place, f"is no comparison{nearest(test, TESTS)}")
        return None
    kinds = OPERANDS[test] if known is None or test == "exists" else known
    if test == "in":
        is_right = isinstance(operand, list) and all(_is_a(item, kinds) for item in operand)
    else:
        is_right = _is_a(operand, kinds) and not (test == "prefix" and str not in kinds)
    if not is_right:
        table.say("E04", place, f"{operand!r} does not go with {test}: {_sentence(field, kinds)}")
        return None
    return Condition(field, test, tuple(operand) if isinstance(operand, list) else operand)  # type: ignore[arg-type]  # just looked at


def _sentence(field: str, kinds: Kinds) -> str:
    wanted = [text for kind, text in ((str, "text"), (int, "numbers"), (bool, "true or false")) if kind in kinds]
    return f"{field} is compared with {', '.join(wanted)}"


def _is_a(operand: object, kinds: Kinds) -> bool:
    return isinstance(operand, kinds) and (bool in kinds or not isinstance(operand, bool))
