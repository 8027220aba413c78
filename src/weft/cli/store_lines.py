"""Formats values of the store: as YAML for people, as JSON for programs."""

import base64
import json as to_json
import math
from typing import Any

from weft.base.changes import Chain
from weft.base.errors import PeerError
from weft.client.store.values import MISSING, Entry
from weft.wire.store.pack import PathValue
from weft.wire.store.path import text_of
from weft.wire.store.yamltext import dump


def plain(value: Any) -> Any:
    r"""A value for JSON; a type that JSON does not have becomes a map with one key.

    >>> plain({"a": [1, b"\xff"], "p": PathValue(("x", 1))})
    {'a': [1, {'b64': '/w=='}], 'p': {'path': 'x:1'}}
    >>> plain({1: None}), plain(float("inf"))
    ({'map': [[1, None]]}, {'float': 'inf'})
    """
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: plain(item) for key, item in value.items()}
        return {"map": [[plain(key), plain(item)] for key, item in value.items()]}
    if type(value) in (list, tuple):
        return [plain(item) for item in value]
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    if isinstance(value, PathValue):
        return {"path": text_of(tuple(value))}
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, str | int | float | None):
        return value
    return {"ext": [value.code, base64.b64encode(bytes(value.data)).decode()]}


def document(value: Any) -> str:
    """A value as YAML, which `weft set -e` reads back."""
    try:
        return dump(value).rstrip("\n")
    except PeerError:  # a value of a foreign type, which YAML cannot express
        return line(plain(value))


def line(value: Any) -> str:
    """A value on one line, as JSON, which is YAML as well.

    >>> line(21.5), line("12"), line(None), line([1, "a"]), line(MISSING)
    ('21.5', "'12'", 'null', '[1, "a"]', 'deleted')
    """
    if value is MISSING:
        return "deleted"
    if isinstance(value, str | bytes | int | float | PathValue | None):
        return document(value)
    return to_json.dumps(plain(value), ensure_ascii=False)


def links(chain: Chain | None) -> str:
    """A chain for people, newest first.

    >>> links(Chain((("a", 3), ("b", 1)), is_cut=True)), links(None)
    ('a:3 b:1 …', '-')
    """
    if chain is None:
        return "-"
    return " ".join([f"{node}:{tick}" for node, tick in chain.links] + ["…"] * chain.is_cut)


def facts(entry: Entry) -> dict[str, Any]:
    """An entry for JSON; a deleted one has no `value`."""
    found: dict[str, Any] = {"path": entry.text}
    if entry.is_there:
        found["value"] = plain(entry.value)
    if entry.until is not None:
        found["until"] = entry.until
    return found | chain_facts(entry.chain, entry.tock)


def chain_facts(chain: Chain | None, tock: int) -> dict[str, Any]:
    """Who changed an entry last, as JSON."""
    return {"chain": [list(link) for link in chain.links] if chain else None, "tock": tock}
