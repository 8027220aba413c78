"""Compares two stores (STO-017): they are equal if the same paths have values, with the same last change and value.

here, there = await contents_of(client), await contents_of(other)
await contents_of(client, "home")                        only a subtree
here.digest == there.digest                              true if nothing differs
differing(here, there)                                   else the entries that differ
"""

from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from weft.base.changes import Event, Path
from weft.wire.store.pack import canonical
from weft.wire.store.path import key_of, text_of

if TYPE_CHECKING:
    from weft.client.store.client import Client
    from weft.client.store.values import Where


class Contents(NamedTuple):
    """The entries of a store, or of a subtree."""

    entries: dict[bytes, Event]
    """Those that have a value, by the key of the path."""
    digest: str
    """SHA-256 over paths, last changes and values, in hexadecimal."""
    deleted: frozenset[Path] = frozenset()
    """Paths whose value was deleted, as far as the store remembers."""


class Differing(NamedTuple):
    """An entry that differs between two stores; None: that store has no value at this path."""

    path: Path
    here: Event | None
    there: Event | None


async def contents_of(client: "Client", under: "Where" = ()) -> Contents:
    """The entries of a store at and below a path; raises StoreError."""
    events = [event async for event in client.events(under, deleted=True)]
    entries = {key_of(event.path): event for event in events if event.value is not None}
    digest = sha256()
    for key in sorted(entries):
        event = entries[key]
        for part in (key, f"{event.node}:{event.tick}".encode(), canonical(event.value or b"")):
            digest.update(b"%d:" % len(part) + part)
    return Contents(entries, digest.hexdigest(), frozenset(event.path for event in events if event.value is None))


def differing(here: Contents, there: Contents) -> list[Differing]:
    """The entries in which two stores differ, by path."""
    found: list[Differing] = []
    for key in here.entries.keys() | there.entries.keys():
        one, other = here.entries.get(key), there.entries.get(key)
        event = one or other
        assert event is not None, "each key is of one of the two"
        if not _is_same(one, other):
            found.append(Differing(event.path, one, other))
    return sorted(found, key=lambda each: text_of(each.path))


def _is_same(one: Event | None, other: Event | None) -> bool:
    if one is None or other is None:
        return False
    is_one_change = (one.node, one.tick) == (other.node, other.tick)
    return is_one_change and canonical(one.value or b"") == canonical(other.value or b"")
