"""The options of each kind of filter, and how they are read; every error has a code (CFG-071)."""

import re
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

import msgspec

from weft.base.settings import Table, nearest
from weft.cores.chains import limits, patterns
from weft.cores.chains.destinations import flaw
from weft.cores.chains.fields import is_path
from weft.cores.chains.order import is_type
from weft.cores.chains.where import GETTERS, LABEL, VALUE, Condition, is_field, parse_where

MODES: Final = ("pass", "edge")


class MatchOptions(msgspec.Struct, frozen=True, tag="match"):
    """Keys of `match`."""

    invert: bool = False


class SampleOptions(msgspec.Struct, frozen=True, tag="sample"):
    """Keys of `sample`: either a rate or `every`."""

    rate: float | int | None = None
    """The share that stays, from 0 to 1."""
    every: int = 0
    salt: str = ""
    """Two filters with different salts decide independently."""
    key: tuple[str, ...] = ()
    """Fields whose values decide together; none: each message or sample by itself."""


class RateOptions(msgspec.Struct, frozen=True, tag="rate-limit"):
    """Keys of `rate-limit`."""

    count: int
    per_ns: int
    burst: int
    key: tuple[str, ...] = ()
    """Fields; none: one bucket for all."""


class DedupeOptions(msgspec.Struct, frozen=True, tag="dedupe"):
    """Keys of `dedupe`."""

    fields: tuple[str, ...]
    within_ns: int
    max_keys: int = limits.KEYS_MAX


class ThresholdOptions(msgspec.Struct, frozen=True, tag="threshold"):
    """Keys of `threshold`."""

    field: str = VALUE
    above: float | int | None = None
    below: float | int | None = None
    mode: str = "pass"
    clear: float | int | None = None
    for_ns: int = 0
    key: tuple[str, ...] = ()
    """Fields; none: per series, or per type and origin of messages."""


class EditOptions(msgspec.Struct, frozen=True, tag="edit"):
    """Keys of `edit`."""

    edits: tuple[tuple[Any, ...], ...]
    """Each is a verb, a field, and the verb's arguments."""


class NoOptions(msgspec.Struct, frozen=True, tag="none"):
    """`forward` and `journal` have no keys of their own."""


class AggregateOptions(msgspec.Struct, frozen=True, tag="aggregate"):
    """Keys of `aggregate`."""

    window_ns: int
    group: tuple[str, ...] = ()
    field: str = VALUE
    functions: tuple[str, ...] = ()
    """`mean`, `p50`, `p99.9`; all other functions are always included."""
    grace_ns: int = 2_000_000_000
    name: str = ""
    """Type of the result; empty: the type of the collected messages."""


class BatchOptions(msgspec.Struct, frozen=True, tag="batch"):
    """Keys of `batch`."""

    count: int
    within_ns: int


class RouteRule(msgspec.Struct, frozen=True):
    """Where the messages go that have a record which fulfils these conditions."""

    where: tuple[Condition, ...]
    to: tuple[Any, ...]


class RouteOptions(msgspec.Struct, frozen=True, tag="route"):
    """Keys of `route`: the first rule that fits decides."""

    to: tuple[Any, ...]
    """For messages that fit no rule; empty: they go where they would have gone."""
    rules: tuple[RouteRule, ...] = ()


class PythonOptions(msgspec.Struct, frozen=True, tag="python"):
    """Keys of `python`."""

    call: str
    """`module:function`."""


Options = (
    MatchOptions
    | SampleOptions
    | RateOptions
    | DedupeOptions
    | ThresholdOptions
    | EditOptions
    | NoOptions
    | AggregateOptions
    | BatchOptions
    | RouteOptions
    | PythonOptions
)


def state_of(options: Options) -> tuple[object, ...]:
    """The options that a filter's state depends on, besides its kind (CHN-070)."""
    if isinstance(options, SampleOptions):
        return options.key, options.every
    if isinstance(options, RateOptions):
        return options.key, options.per_ns
    if isinstance(options, DedupeOptions):
        return options.fields, options.within_ns
    if isinstance(options, ThresholdOptions):
        return options.key, options.for_ns, options.field
    if isinstance(options, AggregateOptions):
        return options.group, options.window_ns, options.field, options.name
    return ()


def reads_fields(options: Options) -> bool:
    """Whether a filter uses the payload; if not, an unreadable payload is an ordinary record."""
    if isinstance(options, SampleOptions | RateOptions):
        return bool(options.key)
    return isinstance(options, DedupeOptions | ThresholdOptions | EditOptions | AggregateOptions)


# Reading


class Of(Enum):
    """What is filtered, samples or messages; decides which fields exist."""

    SAMPLES = "samples only, whose fields are known"
    MESSAGES = "messages, perhaps samples among them: fields are free"


def _match(table: Table, _of: Of) -> Options:
    return MatchOptions(table.flag("invert"))


def _sample(table: Table, of: Of) -> Options:
    rate, every = table.number("rate"), table.whole("every", 0, 1, limits.COUNT_MAX)
    if ("rate" in table) == ("every" in table):
        table.say("E03", "rate", "or every, one of the two")
    if rate is not None and not 0 <= rate <= 1:
        table.say("E04", "rate", f"{rate!r} is no share from 0 to 1")
    salt = table.text("salt")
    if len(salt.encode("utf-8", "replace")) > limits.SALT_BYTES_MAX:
        table.say("E04", "salt", f"{limits.SALT_BYTES_MAX} bytes at most")
    return SampleOptions(rate, every, salt, _fields(table, "key", of))


def _rate(table: Table, of: Of) -> Options:
    count = table.whole("count", 0, 1, limits.COUNT_MAX)
    if "count" not in table:
        table.say("E03", "count", "is missing")
    per_ns = table.span("per", 1_000_000_000)
    if per_ns <= 0:
        table.say("E04", "per", "must be longer than nothing")
    burst = table.whole("burst", max(1, count), 1, limits.COUNT_MAX)
    return RateOptions(count, per_ns, burst, _fields(table, "key", of))


def _dedupe(table: Table, of: Of) -> Options:
    fields = _fields(table, "fields", of, with_value=True)
    for key in ("fields", "within"):
        if key not in table:
            table.say("E03", key, "is missing")
    if "fields" in table and table.raw("fields") in ([], ""):
        table.say("E03", "fields", "is empty: which fields make two records the same?")
    within_ns = table.span("within", 0)
    if "within" in table and within_ns <= 0:
        table.say("E04", "within", "must be longer than nothing")
    return DedupeOptions(fields, within_ns, table.whole("max_keys", limits.KEYS_MAX, 1, limits.KEYS_MAX))


def _threshold(table: Table, of: Of) -> Options:
    field = table.text("field", VALUE)
    if of is Of.SAMPLES and field != VALUE and not field.startswith(LABEL):
        table.say("E04", "field", f"{field!r} is no number: `value`, or a label that holds one")
    elif not is_path(field):
        table.say("E15", "field", "is no field: names with dots between them")
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
        key=_fields(table, "key", of),
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


def _edit(table: Table, _of: Of) -> Options:
    steps = table.raw("edits", is_required=True)
    if steps is None:
        return EditOptions(())
    if not isinstance(steps, list) or not 1 <= len(steps) <= limits.EDITS_MAX:
        table.say("E04", "edits", f'must be 1 to {limits.EDITS_MAX} steps: [["remove", "password"], …]')
        return EditOptions(())
    return EditOptions(
        tuple([step for at, written in enumerate(steps) if (step := _step(table, at, written)) is not None])
    )


FORMS: Final = {
    "set": ("field", "value"),
    "rename": ("field", "field"),
    "remove": ("field",),
    "mask": ("field",),
    "hash": ("field",),
    "replace": ("field", "pattern", "text"),
}
"""The steps of an edit, with the arguments of each verb."""


def _step(table: Table, at: int, written: Any) -> tuple[Any, ...] | None:
    place = f"edits[{at}]"
    verb = written[0] if isinstance(written, list) and written else None
    if not isinstance(verb, str) or verb not in FORMS:
        shown = verb if isinstance(verb, str) else ""
        table.say("E04", place, f"begins with none of {', '.join(FORMS)}{nearest(shown, FORMS)}")
        return None
    form = FORMS[verb]
    if len(written) != len(form) + 1:
        table.say("E04", place, f'must be ["{verb}", {", ".join(form)}]')
        return None
    wrong = [
        f"{text!r:.80} is no {what}" for what, text in zip(form, written[1:], strict=True) if not PARTS[what](text)
    ]
    if not wrong and verb == "replace" and (why := patterns.mistake(written[2], written[3])):
        wrong = [f"{written[2]!r} with {written[3]!r}: {why}"]
    if wrong:
        table.say("E04", place, wrong[0])
        return None
    return tuple(written)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value.encode("utf-8", "replace")) <= limits.EDIT_BYTES_MAX


PARTS: Final[dict[str, Callable[[Any], bool]]] = {
    "field": lambda value: isinstance(value, str) and is_path(value),
    "value": lambda value: _is_text(value) or isinstance(value, int | float),
    "pattern": _is_text,
    "text": _is_text,
}


ALWAYS_TOLD: Final = ("count", "sum", "min", "max", "last")
PERCENTILE: Final = re.compile(r"p([1-9]?\d(\.\d{1,3})?|100)", re.ASCII)


def _aggregate(table: Table, of: Of) -> Options:
    window_ns, grace_ns = table.span("window", 0), table.span("grace", 2_000_000_000)
    if window_ns <= 0:
        table.say("E03" if "window" not in table else "E04", "window", "must be longer than nothing")
    field = table.text("field", VALUE)
    if not is_path(field):
        table.say("E15", "field", "is no field: names with dots between them")
    functions = table.texts("functions")
    for function in functions:
        if function not in (*ALWAYS_TOLD, "mean") and not PERCENTILE.fullmatch(function):
            table.say("E04", "functions", f"{function[:32]!r} is none of {', '.join(ALWAYS_TOLD)}, mean, p50, p99.9 …")
    further = tuple([function for function in functions if function not in ALWAYS_TOLD])
    options = AggregateOptions(
        max(window_ns, 1), _fields(table, "group", of), field, further, max(grace_ns, 0), table.text("as")
    )
    if options.name and not is_type(options.name):
        table.say("E15", "as", f"{options.name[:64]!r} is no type")
    return options


def _batch(table: Table, _of: Of) -> Options:
    count = table.whole("count", limits.FRAMES_MAX, 2, limits.FRAMES_MAX)
    within_ns = table.span("within", 1_000_000_000)
    if within_ns <= 0:
        table.say("E04", "within", "must be longer than nothing")
    return BatchOptions(count, max(within_ns, 1))


def _route(table: Table, _of: Of) -> Options:
    tables = table.raw("rules")
    if tables is None:
        return RouteOptions(_destination(table))
    if not isinstance(tables, list) or not 1 <= len(tables) <= limits.ROUTE_RULES_MAX:
        table.say("E04", "rules", f'must be 1 to {limits.ROUTE_RULES_MAX} tables: [{{ where = {{ … }}, to = "…" }}, …]')
        tables = []
    rules = [_rule(Table(values, f"{table.path}.rules[{at}]", table.mistakes)) for at, values in enumerate(tables)]
    return RouteOptions(_destination(table) if "to" in table else (), tuple(rules))


def _rule(table: Table) -> RouteRule:
    if not table.raw("where", is_required=True):
        table.say("E03", "where", "without conditions this rule fits everything: give the filter a `to` instead")
    rule = RouteRule(parse_where(table, of_samples=False), _destination(table))
    table.end()
    return rule


def _destination(table: Table) -> tuple[Any, ...]:
    text = table.text("to", is_required=True)
    parts: list[Any] = text.split(":")
    parts[0] = {"local": "DIRECT"}.get(parts[0].lower(), parts[0].upper())
    if parts[1:] and not parts[1]:
        parts[1] = None
    if parts[2:] and parts[2].isdecimal():
        parts[2] = int(parts[2])
    why = flaw(parts) if text else ""
    if why:
        table.say(
            "E04", "to", f"{text[:64]!r} is no destination ({why}): parentsof, childrenof, nearestcoord, direct:NODE"
        )
    return tuple(parts)


def _python(table: Table, _of: Of) -> Options:
    call = table.text("call", is_required=True)
    if call and not CALL.fullmatch(call):
        table.say("E04", "call", 'must be "module:function"')
    return PythonOptions(call)


CALL: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def _nothing(_table: Table, _of: Of) -> Options:
    return NoOptions()


def _fields(table: Table, key: str, of: Of, *, with_value: bool = False) -> tuple[str, ...]:
    fields = table.texts(key)
    good = []
    for field in fields:
        if of is Of.SAMPLES and (not is_field(field) or (field == VALUE and not with_value)):
            table.say("E02", key, f"{field!r} is no field of a series{nearest(field, [*GETTERS, LABEL])}")
        elif not is_path(field):
            table.say("E15", key, f"{field[:64]!r} is no field: names with dots between them")
        else:
            good.append(field)
    return tuple(good)


KINDS: Final[dict[str, Callable[..., Options]]] = {
    "match": _match,
    "sample": _sample,
    "rate-limit": _rate,
    "dedupe": _dedupe,
    "edit": _edit,
    "threshold": _threshold,
    "forward": _nothing,
    "journal": _nothing,
    "aggregate": _aggregate,
    "batch": _batch,
    "route": _route,
    "absorb": _nothing,
    "stdout": _nothing,
    "python": _python,
}
HANDOVERS: Final = ("forward", "journal")
OF_MESSAGES: Final = ("edit", "aggregate", "batch", "route", "absorb", "stdout", "python")
"""Kinds that let samples pass."""
