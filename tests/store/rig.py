"""Replicas and changes in a few words, for all tests of the store.

one = Node("a")
one.write("x.y", 5)                         a change of its own
one.hear(change("b:3", 30, "x.y", 6, "a:1"))   one of b's, tock 30, below it a's first
one.turn()                                  what the core would do: records to its journal, the rest handed back
one.again()                                 the node after a crash, from its journal
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path as File
from typing import Any, Final

from weft.base.chance import Chance
from weft.base.changes import Chain, Element, Event, Link
from weft.base.effects import Effect, Persist, Tell
from weft.base.ranges import RangeSet
from weft.base.records import Entry
from weft.cores.store import memory
from weft.cores.store.bus import Bus
from weft.cores.store.context import Context
from weft.cores.store.messages import Change, StoreSettings
from weft.cores.store.replica import Replica, Written
from weft.wire.store import bus as codec
from weft.wire.store.messages import Ticks, Update
from weft.wire.store.pack import canonical, pack, unpack
from weft.wire.store.path import key_of, parse

VECTORS: Final = File(__file__).parents[1] / "vectors" / "store-computed.jsonl"
DELETE: Final = object()
"""In place of a value: the entry is deleted. None is a value."""


def link(text: str) -> Link:
    """`n:5` in words."""
    node, _, tick = text.rpartition(":")
    return node, int(tick)


def chain(text: str) -> Chain:
    """`n1:6 n2:4`, newest first; `…` at the end: cut there."""
    words = text.split()
    is_cut = bool(words) and words[-1] == "…"
    return Chain(tuple(map(link, words[:-1] if is_cut else words)), is_cut)


def change(head: str, tock: int, path: str, value: Any = DELETE, below: str = "") -> Event:
    """A change: own link, tock, path as text, value, and the chain below it."""
    raw = None if value is DELETE else pack(value)
    return Event(chain(f"{head} {below}"), tock, parse(path), raw)


def ticks(**ranges: Sequence[int | tuple[int, int]]) -> Ticks:
    """Sets of ticks by node: numbers, and inclusive ranges."""
    return {node: RangeSet((r, r) if isinstance(r, int) else r for r in those) for node, those in ranges.items()}


def vectors(group: str) -> list[dict[str, Any]]:
    """The computed examples whose id begins so."""
    return [row for row in map(json.loads, VECTORS.read_text("utf-8").splitlines()) if row["id"].startswith(group)]


def events_of(frames: Iterable[str]) -> list[Event]:
    """The changes that updates in hex tell of."""
    messages = [message for frame in frames for message in codec.decode("update", bytes.fromhex(frame))]
    return [message.event for message in messages if isinstance(message, Update)]


class Node:
    """A replica with a journal, and nothing around it."""

    def __init__(self, name: str, journal: Iterable[Entry] = (), **settings: Any) -> None:
        self.settings = settings
        self.context = Context(StoreSettings(name=name, **settings), Chance(name))
        self.bus = Bus(self.context)
        self.bus.has_broker = True
        self.replica = Replica(self.context, self.bus)
        self.tree, self.book = self.replica.tree, self.replica.book
        self.journal: list[Entry] = list(journal)
        self.replica.restore(self.journal)
        self.told: list[Any] = []
        """Events."""
        self.changes: list[Change] = []
        self.replica.listeners.append(self.changes.append)

    def write(self, path: str, value: Any = DELETE, **how: Any) -> Written:
        """A change of its own."""
        return self.replica.write(parse(path), None if value is DELETE else pack(value), **how)

    def hear(self, *events: Event) -> list[str]:
        """What came of each."""
        return [self.replica.receive(event, "peer").outcome for event in events]

    def turn(self) -> list[Effect]:
        """The effects of the turn; its records are in the journal."""
        self.bus.flush()
        effects = self.context.take()
        for effect in effects:
            if isinstance(effect, Persist):
                first = len(self.journal) + 1
                self.journal += enumerate(effect.records, first)
            elif isinstance(effect, Tell):
                self.told.append(effect.event)
        return effects

    def again(self, upto: int | None = None) -> "Node":
        """The node after a crash, with the first `upto` records of its journal."""
        return Node(self.context.settings.name, self.journal[:upto], **self.settings)

    def at(self, *path: Element) -> Event:
        """The change that stands there."""
        event = self.tree.get(path)
        assert event is not None, path
        return event

    def headed(self, text: str) -> Event:
        """The entry that this change heads."""
        event = self.tree.by_link(link(text))
        assert event is not None, text
        return event

    def value(self, path: str) -> Any:
        """What stands there; DELETE for a tombstone, KeyError if there is none."""
        event = self.tree.get(parse(path))
        if event is None:
            raise KeyError(path)
        return DELETE if event.value is None else unpack(event.value)

    def entries(self) -> dict[bytes, tuple[Link, int, bytes | None]]:
        """E: by path the head, tock and value of the greatest change."""
        return {
            key_of(event.path): (event.chain.head, event.tock, canonical(event.value) if event.value else event.value)
            for event in self.tree.walk()
        }

    def seen(self) -> dict[str, list[tuple[int, int]]]:
        """S: which ticks are settled, by node."""
        return {node: list(seen) for node in sorted(self.book.nodes()) if (seen := self.book.seen(node))}

    def digest(self) -> tuple[Any, ...]:
        """All that must be the same after a restart."""
        return self.context.name, tuple(map(memory.memory_of, self.replica.condense()))
