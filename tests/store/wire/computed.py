"""The computed vectors of the store, and the values of all vectors as Python has them."""

import json
from pathlib import Path as File
from typing import Any, Final

from weft.base.changes import Chain
from weft.wire.store.pack import PathValue

VECTORS: Final = File(__file__).parents[2] / "vectors"


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (VECTORS / name).read_text("utf-8").splitlines()]


COMPUTED: Final = {line["id"]: line for line in lines("store-computed.jsonl")}


def group(prefix: str) -> list[Any]:
    """Ids that begin so."""
    found = [name for name in COMPUTED if name.startswith(prefix)]
    assert found, prefix
    return found


def payload(line: dict[str, Any]) -> bytes:
    return bytes.fromhex(line["payload"])


def value_of(said: Any) -> Any:
    """A value as `pack.unpack` gives it."""
    if not isinstance(said, dict):
        return [value_of(item) for item in said] if isinstance(said, list) else said
    if "$path" in said:
        return PathValue(value_of(said["$path"]))
    if big := said.get("$int", said.get("$bignum")):
        return int(big)
    if "$text" in said:
        return said["$text"] * said["times"]
    if "$bin" in said:
        return bytes.fromhex(said["$bin"])
    return {key: value_of(item) for key, item in said.items()}


def path_of(said: list[Any]) -> tuple[Any, ...]:
    return tuple(value_of(said))


def chain_of(said: dict[str, Any]) -> Chain:
    """Nested `node tick prev` as a chain."""
    links: list[tuple[str, int]] = []
    rest: dict[str, Any] | None = said
    while rest is not None:
        links.append((rest["node"], rest.get("tick", 0)))
        if "prev" not in rest:
            return Chain(tuple(links), is_cut=True)
        rest = rest["prev"]
    return Chain(tuple(links))


def as_json_has_it(value: Any) -> Any:
    """A value whose keys are texts, as those of a vector are."""
    if isinstance(value, dict):
        return {str(key): as_json_has_it(item) for key, item in value.items()}
    return [as_json_has_it(item) for item in value] if type(value) is list else value
