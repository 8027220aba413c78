"""Says what is wrong with a table of a node's file, key by key, in the words of a fleet's file; loaded only where something is."""

import re
import types
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec

from weft.base.settings import nearest

KINDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}
"""What msgspec calls a type, and what people call it."""
_PLACE: Final = re.compile(r" - at `[^`]*`$")
_KIND: Final = re.compile(r"`([^`]*)`")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")


def mistakes_in(path: str, value: Any, kind: Any) -> Iterator[str]:
    """Each mistake in a value that should be of this type, as `CODE path: sentence`.

    >>> class Table(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    ...     name: str
    ...     port: int = 1
    >>> list(mistakes_in("node", {"nam": "a", "port": "27500"}, Table))[:2]
    ['E02 node.nam: is not known here, did you mean `name`?', 'E03 node.name: is missing']
    >>> list(mistakes_in("node", {"name": "a", "port": "27500"}, Table))
    ['E04 node.port: has to be a whole number, not a text']
    """
    kind = _without_none(kind)
    if get_origin(kind) is Annotated and get_origin(get_args(kind)[0]) in (dict, list, tuple):
        yield from list(mistakes_in(path, value, get_args(kind)[0])) or _in_value(path, value, kind)  # then its bounds
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield from _in_table(path, value, kind)
    elif get_origin(kind) is dict and isinstance(value, dict):
        for key, each in value.items():
            yield from mistakes_in(f"{path}.{key if _PLAIN.fullmatch(key) else repr(key)}", each, get_args(kind)[1])
    elif get_origin(kind) in (tuple, list) and isinstance(value, list):
        for each in value:
            yield from mistakes_in(path, each, get_args(kind)[0])
    else:
        yield from _in_value(path, value, kind)


def _without_none(kind: Any) -> Any:
    """`T` of `T | None`: a file has no null."""
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    kinds = [each for each in get_args(kind) if each is not type(None)]
    return kinds[0] if len(kinds) == 1 else kind


def _in_table(path: str, value: Any, kind: type[msgspec.Struct]) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"E04 {path}: has to be a table"
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    yield from (f"E02 {path}.{key}: is not known here{nearest(key, fields)}" for key in value if key not in fields)
    yield from (f"E03 {path}.{key}: is missing" for key, field in fields.items() if field.required and key not in value)
    for key, field in fields.items():
        if key in value:
            yield from mistakes_in(f"{path}.{key}", value[key], field.type)


def _in_value(path: str, value: Any, kind: Any) -> Iterator[str]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        yield f"E04 {path}: {_sentence(value, kind, str(error))}"


def _sentence(value: Any, kind: Any, message: str) -> str:
    """What msgspec says of one value, for people."""
    if get_origin(kind) is Literal:
        return f"{value!r} is none of {', '.join(map(repr, get_args(kind)))}"
    message = _KIND.sub(lambda found: _named(found[1]), _PLACE.sub("", message))
    return message.replace("Expected", "has to be", 1).replace(", got ", ", not ", 1)


def _named(kinds: str) -> str:
    return " or ".join(KINDS.get(each, each) for each in kinds.split(" | ") if each != "null")
