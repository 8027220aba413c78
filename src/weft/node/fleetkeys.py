"""A fleet as replicated keys and values, and back again (CFG-020, CFG-070).

    /CONFIG/global/name|heartbeat|dead_after|…     text, seconds, a count
    /CONFIG/global/filter/<name>                   a filter of all nodes: its table, without its name
    /CONFIG/<group>/members                        always there; the next ones only if the file has them:
    /CONFIG/<group>/exclude|collectors|parent|fanout|prefer|labels
    /CONFIG/<group>/metric/<name>                  the metric's table; a key for each, so a changed rate is a small update
    /CONFIG/<group>/filter/<name>                  the filter's table, without its name
    /CONFIG/<group>/alert/<name>                   the alert's table
    /CONFIG/global/key/<uuid>                      the key of a node (weft.base.keys); never in a file

Values are canonical JSON (CFG-002).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from weft.base.keys import bound_node
from weft.base.paths import is_under
from weft.base.settings import is_plain_name
from weft.node.fleetparts import RESERVED, SPANS, Fleet, Group
from weft.wire import jsontext

CONFIG: Final = "/CONFIG/"
GLOBAL: Final = "/CONFIG/global/"
TABLES: Final = ("metric", "filter", "alert")
"""Kinds of tables of which a group may have several, each with a name."""
LISTS: Final = ("members", "exclude", "collectors")
VALUE_BYTES_MAX: Final = 1 << 20
_TABLE: Final = msgspec.json.Decoder(dict[str, Any])
_TYPE: Final = re.compile("Expected `([^`]+)`, got `([^`]+)`")
_WORDS: Final = {
    "array": 'a list like ["a", "b"]',
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": 'a table like {"a": 1}',
    "str": "a text",
}
"""Names of types in messages for people."""
_KINDS: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    "members": msgspec.json.Decoder(tuple[str, ...]),
    "exclude": msgspec.json.Decoder(tuple[str, ...]),
    "collectors": msgspec.json.Decoder(tuple[str, ...]),
    "parent": msgspec.json.Decoder(str),
    "fanout": msgspec.json.Decoder(int),
    "prefer": msgspec.json.Decoder(bool),
    "labels": msgspec.json.Decoder(dict[str, str]),
}
_GLOBALS: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    "name": msgspec.json.Decoder(str),
    "dead_after": msgspec.json.Decoder(int),
    **{key: msgspec.json.Decoder(int | float) for key in SPANS},
}


class Unusable(ValueError):
    """A value that does not fit its key."""


def canonical(value: Any) -> bytes:
    """Canonical JSON: keys sorted, no spaces, UTF-8 (CFG-002).

    >>> canonical({"rate": 60, "detail": "CPU"})
    b'{"detail":"CPU","rate":60}'
    """
    return jsontext.encode(value)


def to_pairs(fleet: Fleet) -> tuple[tuple[str, bytes], ...]:
    """Keys and values of a fleet, in key order."""
    pairs = {f"{GLOBAL}{key}": canonical(value) for key, value in fleet.times.items()}
    pairs |= {f"{GLOBAL}filter/{name}": canonical(table) for name, table in fleet.filters.items()}
    for group in fleet.groups.values():
        pairs |= _pairs_of(group)
    return tuple(sorted(pairs.items()))


def _pairs_of(group: Group) -> dict[str, bytes]:
    start = f"{CONFIG}{group.name}/"
    values: dict[str, Any] = {"members": group.members}
    others = {key: getattr(group, key) for key in ("exclude", "collectors", "parent", "fanout", "prefer", "labels")}
    values |= {key: value for key, value in others.items() if value}
    for kind in TABLES:
        values |= {f"{kind}/{name}": table for name, table in getattr(group, f"{kind}s").items()}
    return {start + key: canonical(value) for key, value in values.items()}


def from_pairs(pairs: Iterable[tuple[str, bytes]]) -> tuple[Fleet, tuple[str, ...]]:
    """The fleet of these pairs, and what is wrong with pairs that no fleet's file could have.

    Other subtrees and keys of nodes are skipped. The pairs of the result are the given ones, without those that are wrong.
    """
    times: dict[str, Any] = {}
    filters: dict[str, dict[str, Any]] = {}
    groups: dict[str, dict[str, Any]] = {}
    mistakes: list[str] = []
    for key, value in sorted(pairs):
        if bound_node(key) is not None:
            continue
        try:
            if is_under(key, GLOBAL):
                _take_global(key, value, times, filters)
            elif is_under(key, CONFIG):
                _take(key, value, groups)
        except Unusable as error:
            mistakes.append(f"{key}: {error}")
    made = {name: Group(name=name, **fields) for name, fields in groups.items()}
    return Fleet(times=times, filters=filters, groups=made), tuple(mistakes)


def _take_global(key: str, value: bytes, times: dict[str, Any], filters: dict[str, dict[str, Any]]) -> None:
    name = key.removeprefix(GLOBAL)
    kind, _, what = name.partition("/")
    if kind == "filter" and is_plain_name(what):
        filters[what] = table_of(value)
        return
    if name not in _GLOBALS:
        raise Unusable(f"nobody reads it: /CONFIG/global/ has {', '.join(_GLOBALS)}, filter/NAME")
    times[name] = decoded(_GLOBALS[name], value)


def _take(key: str, value: bytes, groups: dict[str, dict[str, Any]]) -> None:
    name, _, rest = key.removeprefix(CONFIG).partition("/")
    kind, _, what = rest.partition("/")
    if not is_plain_name(name) or name in RESERVED:
        raise Unusable("the key belongs to no group")
    fields = groups.setdefault(name, {})
    if kind in TABLES and is_plain_name(what):
        fields.setdefault(f"{kind}s", {})[what] = table_of(value)
    elif rest in _KINDS:
        fields[rest] = decoded(_KINDS[rest], value)
    else:
        raise Unusable(
            f"nobody reads it: a group has {', '.join(_KINDS)}, {', '.join(f'{table}/NAME' for table in TABLES)}"
        )


def decoded(decoder: "msgspec.json.Decoder[Any]", value: bytes) -> Any:
    """The value, decoded to the type of its key; raises Unusable with a sentence for people."""
    if len(value) > VALUE_BYTES_MAX:
        raise Unusable(f"longer than {VALUE_BYTES_MAX} bytes")
    try:
        return decoder.decode(value)
    except msgspec.ValidationError as error:
        raise Unusable(_TYPE.sub(_in_words, str(error))) from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Unusable(str(error)) from None


def _in_words(match: re.Match[str]) -> str:
    wanted, found = ([_WORDS.get(name, name) for name in types.split(" | ")] for types in match.groups())
    return f"it has to be {' or '.join(wanted)}, not {' or '.join(found)}"


def table_of(value: bytes) -> dict[str, Any]:
    """The table of a metric, a filter or an alert."""
    table: dict[str, Any] = decoded(_TABLE, value)
    return table


def group_pairs(pairs: Mapping[str, bytes], group: str, kind: str) -> dict[str, bytes]:
    """The pairs `/CONFIG/<group>/<kind>/<name>` by name, in order; `g1` does not match `g10` (CFG-020)."""
    start = f"{CONFIG}{group}/{kind}/"
    return {key[len(start) :]: pairs[key] for key in sorted(pairs) if is_under(key, start)}
