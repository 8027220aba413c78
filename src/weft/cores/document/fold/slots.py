"""From the displayed name of an element (DOC-040) back to a reference for operations (DOC-020)."""

from weft.cores.document.fold.schema import Schema
from weft.wire.document.xml import EID


def reference_of(schema: Schema, slot: str) -> dict[str, str]:
    """`eid:X` by its eid, `/period[1]/jam[3]` by the chain of the schema, anything else by the tags of its path.

    >>> derby = Schema.load("derby")
    >>> reference_of(derby, "/period[1]/jam[3]"), reference_of(derby, "/venue[#1]/city[#1]"), reference_of(derby, "/")
    ({'period': '1', 'jam': '3'}, {'path': 'venue/city'}, {'path': ''})
    """
    if not slot.startswith("/"):
        return {EID: slot.removeprefix("eid:")}
    parts = [part.partition("[") for part in slot.strip("/").split("/") if part]
    keys: dict[str, str] = {}
    parent = schema.root
    for tag, _, rest in parts:
        chain = schema.below.get(parent, {}).get(tag)
        if chain is None:
            return {"path": "/".join(tag for tag, _, _ in parts)}
        keys[chain.ref] = rest.removesuffix("]")
        parent = tag
    return keys or {"path": ""}
