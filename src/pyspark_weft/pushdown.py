"""Decides which segments and row groups a filter can skip (PIP-010). Spark checks every row again."""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from pyspark.sql import datasource as spark

from weft.lake.manifest import Manifest

COLUMNS: Final = frozenset({"origin", "era", "sequence", "at_ns", "received_ns", "series"})


class Predicate(NamedTuple):
    """One pushed filter: a column, an operator, and the value to compare with."""

    column: str
    by: str
    value: Any


class Bounds(NamedTuple):
    """The range of a column in some rows; None: unknown."""

    low: Any
    high: Any
    may_be_null: bool = True


def predicates(filters: Iterable[spark.Filter]) -> tuple[Predicate, ...]:
    """The filters that can be used to skip segments."""
    found = []
    for entry in filters:
        by = _NAMES.get(type(entry))
        attribute: tuple[str, ...] = getattr(entry, "attribute", ())
        if by is not None and len(attribute) == 1 and attribute[0] in COLUMNS:
            found.append(Predicate(attribute[0], by, getattr(entry, "value", None)))
    return tuple(found)


def may_hold(predicate: Predicate, manifest: Manifest) -> bool:
    """Whether a segment may hold a matching row, judged by its manifest alone."""
    bounds = _MANIFEST.get(predicate.column)
    return bounds is None or any(_TESTS[predicate.by](entry, predicate.value) for entry in bounds(manifest))


def may_match(predicate: Predicate, chunk: Any) -> bool:
    """Whether a row group may hold a matching row, judged by the statistics of the column."""
    found = chunk.statistics if chunk is not None else None
    if found is None or not found.has_min_max:
        return True
    return _TESTS[predicate.by](Bounds(found.min, found.max, found.null_count != 0), predicate.value)


_NAMES: Final[dict[type, str]] = {
    spark.EqualTo: "=",
    spark.EqualNullSafe: "<=>",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
    spark.In: "in",
    spark.IsNull: "null",
}


def _within(bounds: Bounds, value: Any) -> bool:
    return bool(bounds.low <= value <= bounds.high)


_TESTS: Final[dict[str, Callable[[Bounds, Any], bool]]] = {
    "=": _within,
    "<=>": lambda bounds, value: bounds.may_be_null if value is None else _within(bounds, value),
    ">": lambda bounds, value: bool(bounds.high > value),
    ">=": lambda bounds, value: bool(bounds.high >= value),
    "<": lambda bounds, value: bool(bounds.low < value),
    "<=": lambda bounds, value: bool(bounds.low <= value),
    "in": lambda bounds, values: any(value is not None and _within(bounds, value) for value in values),
    "null": lambda bounds, _: bounds.may_be_null,
}


def _origins(manifest: Manifest) -> list[Bounds]:
    return [Bounds(name, name, may_be_null=False) for name, _, _ in manifest.ranges]


def _eras(manifest: Manifest) -> list[Bounds]:
    return [Bounds(-1 if era is None else era, -1 if era is None else era) for _, era, _ in manifest.ranges]


def _sequences(manifest: Manifest) -> list[Bounds]:
    return [Bounds(ranges[0][0], ranges[-1][1]) for _, _, ranges in manifest.ranges if ranges]


def _received(manifest: Manifest) -> list[Bounds]:
    if manifest.first_received is None or manifest.last_received is None:
        return []
    return [Bounds(manifest.first_received, manifest.last_received)]


_MANIFEST: Final[dict[str, Callable[[Manifest], list[Bounds]]]] = {
    "origin": _origins,
    "era": _eras,
    "sequence": _sequences,
    "received_ns": _received,
}
