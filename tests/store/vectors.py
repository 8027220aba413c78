"""The recorded talk of real servers and their clients, typed (vectors `store-client`)."""

import json
from pathlib import Path as File
from typing import Any, Final, NamedTuple

from weft.wire.store.pack import PathValue

FILE: Final = File(__file__).parents[1] / "vectors" / "store-client.jsonl"
TO_CLIENT, TO_SERVER = "server→client", "client→server"


class Row(NamedTuple):
    """One message."""

    id: str
    what: str
    is_of_server: bool
    raw: bytes
    means: dict[str, Any]


def plain(value: Any) -> Any:
    """A value of the vectors as `wire.store.pack` reads it."""
    if isinstance(value, dict):
        if set(value) == {"$path"}:
            return PathValue(plain(element) for element in value["$path"])
        if set(value) == {"$bin"}:
            return bytes.fromhex(value["$bin"])
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def rows(group: str) -> list[Row]:
    """All messages between client and server whose id begins so, in order."""
    found = []
    for line in FILE.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["id"].startswith(group) and row["direction"] in (TO_CLIENT, TO_SERVER):
            raw = bytes.fromhex(row["payload"])
            found.append(
                Row(row["id"], row["what"], row["direction"] == TO_CLIENT, raw, plain(row["means"]["message"]))
            )
    return found
