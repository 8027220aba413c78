"""JSON Schema, as far as the store needs it (ADM-010): why a value does not fit a schema.

It has the assertions of draft 2020-12 and `$ref` within the same schema; nothing is fetched. Unknown keywords and
formats are ignored, as in the standard. Values that are not JSON (bytes, paths) have no type. The number of steps is
limited: beyond it, the value does not fit.
"""

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from weft.base.errors import PeerError
from weft.wire.store.pack import PathValue, canonical, pack

STEPS_MAX: Final = 20_000  # for one value: 16,384 items need one step each
BYTES_MAX: Final = 1 << 20  # compared or searched for one value: 16 times the size of a value
REF_DEPTH_MAX: Final = 64
COMPARED_DEPTH_MAX: Final = 128  # levels of a value: members may nest deeper than users, who are limited to 32


class Misfit(Exception):
    """The value does not fit; the text says where and why."""


class Unjudged(Misfit):
    """The check takes too many steps, so the value does not fit, even under `not`."""


class BadSchema(Exception):
    """The schema is invalid."""


class Checker:
    """One schema."""

    def __init__(self, schema: Any) -> None:
        self._whole = schema
        self._left, self._bytes_left = STEPS_MAX, BYTES_MAX

    def check(self, value: Any) -> None:
        """Misfit if the value does not fit, BadSchema if a keyword of the schema is invalid."""
        self._left, self._bytes_left = STEPS_MAX, BYTES_MAX
        try:
            self.apply(self._whole, value, "", 0)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise BadSchema(str(error)[:80]) from None

    def apply(self, schema: Any, value: Any, where: str, depth: int) -> None:
        """Like `check`, for a part of both; Misfit, BadSchema."""
        self._left -= 1
        if self._left < 0 or depth > REF_DEPTH_MAX:
            raise Unjudged(f"{where or 'the value'}: checking it takes too long")
        if schema is True:
            return
        if schema is False:
            raise Misfit(f"{where or 'the value'}: nothing fits here")
        if not isinstance(schema, dict):
            raise BadSchema("a schema is a map, true or false")
        for keyword, limit in schema.items():
            rule = RULES.get(keyword)
            if rule is not None:
                rule(Here(self, schema, value, where, depth), limit)

    def spend(self, size: int, where: str) -> None:
        """Count bytes that are compared or searched; Misfit beyond the limit."""
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise Unjudged(f"{where or 'the value'}: checking it takes too long")

    def at(self, reference: Any) -> Any:
        """The part of the schema that a `$ref` names: `#`, `#/$defs/name`."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise BadSchema(f"$ref {str(reference)[:80]!r} is no place of this schema")
        part = self._whole
        for step in reference.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(part, list) and name.isascii() and name.isdecimal() and int(name) < len(part):
                part = part[int(name)]
            elif isinstance(part, dict) and name in part:
                part = part[name]
            else:
                raise BadSchema(f"$ref {reference[:80]!r} is no place of this schema")
        return part


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class Here(NamedTuple):
    """A part of a value, and the part of the schema that applies to it."""

    checker: Checker
    schema: dict[Any, Any]
    value: Any
    where: str
    depth: int

    def apply(self, schema: Any, value: Any, step: str = "") -> None:
        """Check a part of this part; `step` leads there."""
        self.checker.apply(schema, value, self.where + step, self.depth + 1)

    def fits(self, schema: Any, value: Any) -> bool:
        """Whether it fits."""
        try:
            self.apply(schema, value)
        except Unjudged:
            raise
        except Misfit:
            return False
        return True

    def fail(self, why: str) -> None:
        raise Misfit(f"{self.where or 'the value'} {why}")


Rule = Callable[[Here, Any], None]
IS: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "array": lambda value: isinstance(value, list | tuple) and not isinstance(value, PathValue),
    "object": lambda value: isinstance(value, dict),
}


def _type(at: Here, limit: Any) -> None:
    names = [limit] if isinstance(limit, str) else limit
    if not isinstance(names, list) or not all(isinstance(name, str) and name in IS for name in names):
        raise BadSchema(f"type: {limit!r}")
    if not any(IS[name](at.value) for name in names):
        at.fail(f"is not of type {' or '.join(names)}")


def _same(at: Here, value: Any) -> bytes:
    """A key that is equal for equal values: 1 and 1.0 are equal, 1 and true are not."""
    try:
        packed = pack(_whole(value))
        at.checker.spend(len(packed), at.where)
        return canonical(packed)
    except PeerError as error:
        raise Misfit(f"a value that cannot be compared: {error.why}") from None


def _whole(value: Any, depth: int = 0) -> Any:
    if depth > COMPARED_DEPTH_MAX:
        raise Unjudged("the value: nested too deep to be compared")
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _whole(item, depth + 1) for key, item in value.items()}
    return [_whole(item, depth + 1) for item in value] if type(value) in (list, tuple) else value


def _const(at: Here, limit: Any) -> None:
    if _same(at, limit) != _same(at, at.value):
        at.fail(f"is not {str(limit)[:80]}")


def _enum(at: Here, limit: Any) -> None:
    if not isinstance(limit, list):
        raise BadSchema("enum is a list")
    wanted = _same(at, at.value)
    if all(_same(at, one) != wanted for one in limit):
        at.fail("is none of those listed")


def _bound(kind: str, holds: Callable[[Any, Any], bool], words: str, measure: Callable[[Any], Any]) -> Rule:
    def rule(at: Here, limit: Any) -> None:
        if not _is_number(limit):
            raise BadSchema(f"{words}: {limit!r}")
        if IS[kind](at.value) and not holds(measure(at.value), limit):
            at.fail(f"is not {words} {limit}")

    return rule


def _is_multiple(value: Any, limit: Any) -> bool:
    if isinstance(value, int) and isinstance(limit, int):
        return limit > 0 and value % limit == 0
    try:
        quotient = value / limit if limit > 0 else math.nan
    except OverflowError:
        return False
    return math.isfinite(quotient) and abs(quotient - round(quotient)) < 1e-9  # floats are not exact


@lru_cache(256)
def _pattern(text: str) -> Callable[[str], Any]:
    """Compile a pattern with linear running time: a type must not be able to stop a node."""
    import re2  # type: ignore[import-untyped]  # the wheel has no types

    options = re2.Options()
    options.log_errors = False
    try:
        found: Callable[[str], Any] = re2.compile(text, options=options).search
    except re2.error as error:
        raise BadSchema(f"pattern {text[:80]!r}: {error}") from None
    return found


def _matches(text: Any, value: str) -> bool:
    if not isinstance(text, str):
        raise BadSchema("a pattern is text")
    try:
        return bool(_pattern(text)(value))
    except (UnicodeError, re.error) as error:
        raise BadSchema(f"pattern {text[:80]!r}: {error}") from None


def _found(at: Here, text: Any, name: str) -> bool:
    """Whether a pattern for names matches one."""
    at.checker.spend(1 + len(name), at.where)
    return _matches(text, name)


def _has_pattern(at: Here, limit: Any) -> None:
    is_met = _matches(limit, at.value if isinstance(at.value, str) else "")
    if isinstance(at.value, str) and not is_met:
        at.fail(f"does not match {limit[:80]}")


def _items(at: Here, limit: Any) -> None:
    if IS["array"](at.value):
        for number, item in enumerate(at.value[len(at.schema.get("prefixItems", ())) :]):
            at.apply(limit, item, f"[{number}]")


def _prefix_items(at: Here, limit: Any) -> None:
    if not isinstance(limit, list):
        raise BadSchema("prefixItems is a list")
    if IS["array"](at.value):
        for number, (part, item) in enumerate(zip(limit, at.value, strict=False)):
            at.apply(part, item, f"[{number}]")


def _contains(at: Here, limit: Any) -> None:
    if not IS["array"](at.value):
        return
    count = sum(at.fits(limit, item) for item in at.value)
    least, most = at.schema.get("minContains", 1), at.schema.get("maxContains")
    if count < least or (most is not None and count > most):
        at.fail("does not contain what it should, as often as it should")


def _unique(at: Here, limit: Any) -> None:
    if limit is True and IS["array"](at.value) and len({_same(at, item) for item in at.value}) < len(at.value):
        at.fail("has an item twice")


def _properties(at: Here, limit: Any) -> None:
    if not isinstance(limit, dict):
        raise BadSchema("properties is a map")
    if isinstance(at.value, dict):
        for name, part in limit.items():
            if name in at.value:
                at.apply(part, at.value[name], f".{name}")


def _pattern_properties(at: Here, limit: Any) -> None:
    if not isinstance(limit, dict):
        raise BadSchema("patternProperties is a map")
    for text, part in limit.items():
        for name, item in at.value.items() if isinstance(at.value, dict) else ():
            if isinstance(name, str) and _found(at, text, name):
                at.apply(part, item, f".{name}")


def _additional(at: Here, limit: Any) -> None:
    if not isinstance(at.value, dict):
        return
    named, texts = at.schema.get("properties", {}), at.schema.get("patternProperties", {})
    for name, item in at.value.items():
        if name in named or (isinstance(name, str) and any(_found(at, text, name) for text in texts)):
            continue
        at.apply(limit, item, f".{name}")


def _property_names(at: Here, limit: Any) -> None:
    for name in at.value if isinstance(at.value, dict) else ():
        at.apply(limit, name, f": the name {name!r}")


def _required(at: Here, limit: Any) -> None:
    if not isinstance(limit, list):
        raise BadSchema("required is a list")
    at.checker.spend(len(limit), at.where)
    absent = [name for name in limit if name not in at.value] if isinstance(at.value, dict) else []
    if absent:
        at.fail(f"has no {absent[0]!r}")


def _dependent(at: Here, limit: Any) -> None:
    if not isinstance(limit, dict):
        raise BadSchema("dependentRequired is a map")
    for name, others in limit.items() if isinstance(at.value, dict) else ():
        at.checker.spend(1 + len(others), at.where)
        if name in at.value and (absent := [other for other in others if other not in at.value]):
            at.fail(f"has {name!r} and no {absent[0]!r}")


def _all_of(at: Here, limit: Any) -> None:
    for part in _list(limit):
        at.apply(part, at.value)


def _any_of(at: Here, limit: Any) -> None:
    if not any(at.fits(part, at.value) for part in _list(limit)):
        at.fail("fits none of several schemas")


def _one_of(at: Here, limit: Any) -> None:
    if sum(at.fits(part, at.value) for part in _list(limit)) != 1:
        at.fail("does not fit exactly one of several schemas")


def _not(at: Here, limit: Any) -> None:
    if at.fits(limit, at.value):
        at.fail("fits what it must not")


def _if(at: Here, limit: Any) -> None:
    word = "then" if at.fits(limit, at.value) else "else"
    at.apply(at.schema.get(word, True), at.value)


def _ref(at: Here, limit: Any) -> None:
    at.apply(at.checker.at(limit), at.value)


def _foreign(_: Here, limit: Any) -> None:
    raise BadSchema(f"references to other schemas are not followed: {str(limit)[:80]}")


def _list(limit: Any) -> list[Any]:
    if not isinstance(limit, list) or not limit:
        raise BadSchema("a list of schemas is needed")
    return limit


RULES: Final[dict[str, Rule]] = {
    "type": _type,
    "const": _const,
    "enum": _enum,
    "minimum": _bound("number", lambda value, limit: value >= limit, "at least", lambda value: value),
    "maximum": _bound("number", lambda value, limit: value <= limit, "at most", lambda value: value),
    "exclusiveMinimum": _bound("number", lambda value, limit: value > limit, "more than", lambda value: value),
    "exclusiveMaximum": _bound("number", lambda value, limit: value < limit, "less than", lambda value: value),
    "multipleOf": _bound("number", _is_multiple, "a multiple of", lambda value: value),
    "minLength": _bound("string", lambda value, limit: value >= limit, "of a length of at least", len),
    "maxLength": _bound("string", lambda value, limit: value <= limit, "of a length of at most", len),
    "minItems": _bound("array", lambda value, limit: value >= limit, "of a length of at least", len),
    "maxItems": _bound("array", lambda value, limit: value <= limit, "of a length of at most", len),
    "minProperties": _bound("object", lambda value, limit: value >= limit, "of a size of at least", len),
    "maxProperties": _bound("object", lambda value, limit: value <= limit, "of a size of at most", len),
    "pattern": _has_pattern,
    "items": _items,
    "prefixItems": _prefix_items,
    "contains": _contains,
    "uniqueItems": _unique,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "propertyNames": _property_names,
    "required": _required,
    "dependentRequired": _dependent,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "$ref": _ref,
    "$dynamicRef": _foreign,
}
