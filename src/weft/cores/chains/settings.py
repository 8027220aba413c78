"""The filter tables of a settings file: text in, specifications out, and every mistake with its code (CFG-071).

    [[chains.filter]]
    name = "hot-only"          # unique; the tie-breaker among equal places
    kind = "threshold"         # match, rate-limit, threshold
    types = ["weft.metric"]    # or "*", or "app.*"
    dir = "out"                # or "in"
    place = 200                # 1 to 4294967294
    where = { name = "cpu" }   # whom it sees; for `match`, what stays
    on_error = "keep"          # or "drop", "fail"
    above = 90.0               # keys of the kind

Pure functions; the loader of the file adds where the file is.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from weft.base.settings import Table, is_plain_name, nearest
from weft.cores.chains import limits
from weft.cores.chains.where import GETTERS, LABEL, VALUE, Condition, Where, is_field, parse_where

DIRECTIONS: Final = ("in", "out")
ON_ERROR: Final = ("keep", "drop", "fail")
MODES: Final = ("pass", "edge")

_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9._-]*", re.ASCII)


class MatchOptions(msgspec.Struct, frozen=True, tag="match"):
    """Keys of `match`."""

    invert: bool = False


class RateOptions(msgspec.Struct, frozen=True, tag="rate-limit"):
    """Keys of `rate-limit`."""

    count: int
    per_ns: int
    burst: int
    key: tuple[str, ...] = ()
    """Fields; none: one bucket for all."""


class ThresholdOptions(msgspec.Struct, frozen=True, tag="threshold"):
    """Keys of `threshold`."""

    field: str = VALUE
    above: float | int | None = None
    below: float | int | None = None
    mode: str = "pass"
    clear: float | int | None = None
    for_ns: int = 0
    key: tuple[str, ...] = ()
    """Fields; none: each series by itself."""


Options = MatchOptions | RateOptions | ThresholdOptions


class FilterSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One filter of the configuration; two equal specifications filter alike."""

    name: str
    kind: str
    types: tuple[str, ...] = ("weft.metric",)
    direction: str = "out"
    place: int = limits.PLACE_USUAL
    where: tuple[Condition, ...] = ()
    on_error: str = "keep"
    options: Options

    def compiled(self) -> Where:
        """The conditions, ready to be used."""
        return Where(self.where)

    @property
    def state(self) -> tuple[object, ...]:
        """What a filter's state depends on: equal in two versions of it, the state goes on (CHN-070)."""
        options = self.options
        if isinstance(options, RateOptions):
            return self.kind, options.key, options.per_ns
        if isinstance(options, ThresholdOptions):
            return self.kind, options.key, options.for_ns, options.field
        return (self.kind,)


def parse_filters(tables: Any) -> tuple[list[FilterSpec], list[str]]:
    """The filters of `[[chains.filter]]`, in their order, and everything that is wrong with them (CFG-071).

    A filter with a mistake may be among them; whoever finds mistakes uses none.
    """
    mistakes: list[str] = []
    if not isinstance(tables, list):
        return [], ["E04 chains.filter: must be a list of tables, [[chains.filter]]"]
    if len(tables) > limits.LINKS_MAX:
        return [], [f"E04 chains.filter: {len(tables)} filters, {limits.LINKS_MAX} at most"]
    specs: list[FilterSpec] = []
    names: dict[str, int] = {}
    for index, values in enumerate(tables):
        table = Table(values, f"chains.filter[{index}]", mistakes)
        if not isinstance(values, dict):
            continue
        spec = _filter(table)
        if spec is None:
            continue
        if spec.name in names:
            table.say("E14", "name", f"{spec.name!r} is the name of chains.filter[{names[spec.name]}], too")
        names.setdefault(spec.name, index)
        specs.append(spec)
    return specs, mistakes


def _filter(table: Table) -> FilterSpec | None:
    name = table.text("name", is_required=True)
    if name and not is_plain_name(name):
        table.say("E15", "name", "1 to 63 letters, digits, `_`, `.`, `-`")
    kind = table.text("kind", is_required=True)
    if kind and kind not in KINDS:
        table.say("E04", "kind", f"{kind!r} is none of {', '.join(KINDS)}{nearest(kind, KINDS)}")
    if kind not in KINDS:
        return None  # which keys it may have is not known either
    spec = FilterSpec(
        name=name,
        kind=kind,
        types=_types(table),
        direction=table.choice("dir", DIRECTIONS, "out"),
        place=table.whole("place", limits.PLACE_USUAL, limits.PLACE_MIN, limits.PLACE_MAX),
        where=parse_where(table),
        on_error=table.choice("on_error", ON_ERROR, "keep"),
        options=KINDS[kind](table),
    )
    if kind == "match" and not spec.where:
        table.say("E03", "where", "is missing: a match without conditions matches everything")
    table.end()
    return spec


def _types(table: Table) -> tuple[str, ...]:
    types = table.texts("types") or ("weft.metric",)
    for kind in types:
        stem = kind.removesuffix("*")
        is_wild = kind == "*" or (kind.endswith(".*") and _TYPE.fullmatch(stem) is not None)
        if len(kind) > limits.TYPE_BYTES_MAX or not (is_wild or _TYPE.fullmatch(kind)):
            table.say("E15", "types", f"{kind!r} is no type: small letters, digits, `.`, `_`, `-`; or `*`, or `x.*`")
    return types


def _match(table: Table) -> Options:
    return MatchOptions(table.flag("invert"))


def _rate(table: Table) -> Options:
    count = table.whole("count", 0, 1, limits.COUNT_MAX)
    if "count" not in table:
        table.say("E03", "count", "is missing")
    per_ns = table.span("per", 1_000_000_000)
    if per_ns <= 0:
        table.say("E04", "per", "must be longer than nothing")
    return RateOptions(count, per_ns, table.whole("burst", max(1, count), 1, limits.COUNT_MAX), _key(table))


def _threshold(table: Table) -> Options:
    field = table.text("field", VALUE)
    if field != VALUE and not field.startswith(LABEL):
        table.say("E04", "field", f"{field!r} is no number: `value`, or a label that holds one")
    above, below = table.number("above"), table.number("below")
    if (above is None) == (below is None):
        table.say("E03", "above", "or below, one of the two")
        above = 0 if above is None else above
        below = None
    options = ThresholdOptions(
        field=field,
        above=above,
        below=below,
        mode=table.choice("mode", MODES, "pass"),
        clear=table.number("clear"),
        for_ns=table.span("for", 0),
        key=_key(table),
    )
    _check_edge(table, options)
    return options


def _check_edge(table: Table, options: ThresholdOptions) -> None:
    if options.mode != "edge":
        for key in ("clear", "for", "key"):
            if key in table:
                table.say("E11", key, 'belongs to mode = "edge"')
        return
    clear = options.clear
    if clear is None:
        return
    if (options.above is not None and clear > options.above) or (options.below is not None and clear < options.below):
        table.say("E11", "clear", "must lie on the quiet side of the limit")


def _key(table: Table) -> tuple[str, ...]:
    fields = table.texts("key")
    for field in fields:
        if not is_field(field) or field == VALUE:
            table.say("E02", "key", f"{field!r} is no field of a series{nearest(field, [*GETTERS, LABEL])}")
    return tuple([field for field in fields if is_field(field) and field != VALUE])


KINDS: Final[dict[str, Callable[[Table], Options]]] = {"match": _match, "rate-limit": _rate, "threshold": _threshold}
