"""The filter of a query or a watch (CAT-035, CAT-041)."""

import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from weft.cores.catalog import limits, records
from weft.cores.catalog.book import Book
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.refusals import Refusal
from weft.cores.catalog.states import State

Condition = Callable[[Instance], bool]
STATES: Final = {"active": State.ACTIVE, "suspect": State.SUSPECT, "inactive": State.INACTIVE}
"""The words that answers use for states."""
_WILD: Final = re.compile(r"[*?]")


class Filter:
    """Conditions that must all hold; an empty filter matches every instance."""

    __slots__ = ("_conditions", "canonical", "exact_name", "first_tag", "given")

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self._conditions = [CONDITIONS[key](value) for key, value in given.items()]
        self.canonical = records.canonical(given)
        """The filter as canonical JSON."""
        name, tags = given.get("name"), given.get("tags")
        self.exact_name: str | None = None if name is None or _WILD.search(name) else name
        """The only name that can match; None: several names can."""
        self.first_tag: str | None = tags[0] if tags else None
        """A tag that every match must have; None: there is none."""

    @property
    def topic(self) -> str:
        """`watch/` and the first 16 hex digits of SHA-256 of the canonical filter.

        >>> Filter({}).topic
        'watch/44136fa355b3678a'
        """
        return "watch/" + hashlib.sha256(self.canonical).hexdigest()[:16]

    def matches(self, instance: Instance) -> bool:
        """Whether the instance matches as it is now: O(length · pattern) for the name, else O(tags and metadata)."""
        return all(condition(instance) for condition in self._conditions)

    def among(self, book: Book) -> Iterable[Instance]:
        """Those of a book that match, in its order; for no condition nothing is done to any of them."""
        instances: Iterable[Instance] = book.all() if self.exact_name is None else book.of_name(self.exact_name)
        for condition in self._conditions:
            instances = filter(condition, instances)
        return instances


def parse(body: bytes) -> Filter:
    """Decode a filter; empty bytes match everything. Raises Refusal `bad-argument`."""
    if not body:
        return Filter({})
    if len(body) > limits.RECORD_BYTES_MAX:
        raise _bad("it is too long")
    try:
        given = records.parse_object(body)
    except Refusal as refusal:
        raise _bad(refusal.why) from None
    if unknown := sorted(given.keys() - CONDITIONS.keys()):
        raise _bad(f"there is no condition {unknown[0][: limits.NAME_BYTES_MAX]}")
    return Filter(given)


def canonical(found: Filter) -> bytes:
    """Sorted keys, no spaces, UTF-8 (CAT-041)."""
    return found.canonical


def _bad(why: str) -> Refusal:
    return Refusal("bad-argument", f"this is no filter: {why}")


# Globs


def glob(pattern: str) -> Callable[[str], bool]:
    """A function that tests whether a whole name matches `pattern`: `*` any text, `?` one character.

    O(length · pattern) in all cases.

    Text between two stars is matched at its first possible place; a later place would never help, so no place is tried
    twice.

    >>> [glob("*a?c")(name) for name in ("abc", "xaabc", "abcd")]
    [True, True, False]
    """
    if not _WILD.search(pattern):
        return pattern.__eq__
    first, *rest = (_piece(text) for text in pattern.split("*"))
    text = first
    if rest:
        *middle, last = rest
        text += "".join(f"(?>.*?{piece})" for piece in middle if piece) + f".*{last}"
    match = re.compile(rf"(?s:{text})\Z").match
    return lambda name: match(name) is not None


def _piece(text: str) -> str:
    return "".join("." if letter == "?" else re.escape(letter) for letter in text)


# Conditions, each with what it takes


def _texts(key: str, value: Any, among: dict[str, Any] | None = None) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise _bad(f"{key} takes a list of texts")
    if len(value) > limits.TAGS_MAX:
        raise _bad(f"{key} takes at most {limits.TAGS_MAX}")
    if among is not None and (strange := [text for text in value if text not in among]):
        raise _bad(f"{key} is never {strange[0][: limits.NAME_BYTES_MAX]}")
    return value


def _one_or_more(key: str, value: Any, among: dict[str, Any] | None = None) -> list[str]:
    return _texts(key, [value] if isinstance(value, str) else value, among)


def _name(value: Any) -> Condition:
    if not isinstance(value, str) or len(value) > limits.NAME_BYTES_MAX:
        raise _bad(f"name takes a text of at most {limits.NAME_BYTES_MAX} characters")
    fits = glob(value)
    return lambda instance: fits(instance.name)


def _tags(value: Any) -> Condition:
    required = frozenset(_texts("tags", value))
    return lambda instance: required.issubset(instance.record.get("tags", ()))


def _any_tags(value: Any) -> Condition:
    required = frozenset(_texts("any_tags", value))
    return lambda instance: not required.isdisjoint(instance.record.get("tags", ()))


def _metadata(value: Any) -> Condition:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise _bad("metadata takes texts by key")
    if len(value) > limits.METADATA_MAX:
        raise _bad(f"metadata takes at most {limits.METADATA_MAX}")
    required = value.items()
    return lambda instance: required <= instance.record.get("metadata", {}).items()


def _state(value: Any) -> Condition:
    required = [STATES[word] for word in _one_or_more("state", value, STATES)]
    return lambda instance: instance.state in required


def _health(value: Any) -> Condition:
    required = _one_or_more("health", value, dict.fromkeys(records.HEALTHS))
    return lambda instance: instance.health in required


def _net(value: Any) -> Condition:
    required = _one_or_more("net", value)
    return lambda instance: instance.net in required


def _function(value: Any) -> Condition:
    required = _one_or_more("function", value)
    return lambda instance: instance.record.get("function") in required


CONDITIONS: Final[dict[str, Callable[[Any], Condition]]] = {
    "name": _name,
    "tags": _tags,
    "any_tags": _any_tags,
    "metadata": _metadata,
    "state": _state,
    "health": _health,
    "net": _net,
    "function": _function,
}
