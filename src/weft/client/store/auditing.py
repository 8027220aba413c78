"""Whether two stores have the same (STO-017): live entries by path, last change and value; deletions as what is not there.

here, there = await told(client), await told(other)      await told(client, "home"): of a subtree
here.digest == there.digest                        nothing differs
differing(here, there)                             else: in which entries
"""

from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from weft.base.changes import Event, Path
from weft.wire.store.pack import canonical
from weft.wire.store.path import key_of, text_of

if TYPE_CHECKING:
    from weft.client.store.client import Client
    from weft.client.store.values import Where


class Told(NamedTuple):
    """All live entries of a store, by key of the path."""

    entries: dict[bytes, Event]
    digest: str
    deleted: frozenset[Path] = frozenset()
    """What was deleted, as far as the store remembers."""


class Differing(NamedTuple):
    """An entry that differs between two stores; None: there is no value."""

    path: Path
    here: Event | None
    there: Event | None


async def told(client: "Client", under: "Where" = ()) -> Told:
    """The entries of a store at and below a path; raises StoreError."""
    events = [event async for event in client.events(under, deleted=True)]
    entries = {key_of(event.path): event for event in events if event.value is not None}
    made = sha256()
    for key in sorted(entries):
        event = entries[key]
        for part in (key, f"{event.node}:{event.tick}".encode(), canonical(event.value or b"")):
            made.update(b"%d:" % len(part) + part)
    return Told(entries, made.hexdigest(), frozenset(event.path for event in events if event.value is None))


def differing(here: Told, there: Told) -> list[Differing]:
    """The entries in which two stores differ, by path."""
    found = [
        Differing((one or other or _nobody()).path, one, other)
        for key in here.entries.keys() | there.entries.keys()
        if not _is_same(one := here.entries.get(key), other := there.entries.get(key))
    ]
    return sorted(found, key=lambda each: text_of(each.path))


def _nobody() -> Event:
    raise AssertionError("an entry of neither")


def _is_same(one: Event | None, other: Event | None) -> bool:
    if one is None or other is None:
        return False
    is_one_change = (one.node, one.tick) == (other.node, other.tick)
    return is_one_change and canonical(one.value or b"") == canonical(other.value or b"")
