"""A broker's book, answers and queries with nothing round them; instances are entered by hand."""

import json
from typing import Any

from weft.base.chance import Chance
from weft.base.now import MILLISECOND, SECOND, Now
from weft.cores.catalog import records
from weft.cores.catalog.answers import Answers
from weft.cores.catalog.book import Book
from weft.cores.catalog.context import Asker, Context
from weft.cores.catalog.instances import Change, Instance
from weft.cores.catalog.messages import CatalogSettings
from weft.cores.catalog.queries import Queries
from weft.cores.catalog.states import State

SOMEBODY = Asker(b"peer", "DEALER", "10.0.0.9", (), b"\0\0\0\0")
WALL = 1_795_227_299 * SECOND
DBP_VARIES = ("since", "index")


class Entered:
    """Who is entered here was announced as a registry does it."""

    def __init__(self, **settings: Any) -> None:
        self.context = Context(CatalogSettings(**settings), b"n" * 16, 7, Chance("entered"))
        self.context.now = Now(100 * SECOND, WALL)
        self.book = Book(self.context)
        self.answers = Answers(self.context, self.book)
        self.queries = Queries(self.context, self.book, self.answers)

    def enter(self, name: str, *, seen_at: str = "127.0.0.1", state: State = State.ACTIVE, **record: Any) -> Instance:
        """An instance that has registered with these keys."""
        found = records.registration(json.dumps({"name": name, **record}).encode())
        instance = Instance(name, found.instance_id(seen_at, self.context.settings.rewrite), seen_at, seen_at)
        instance.record, instance.health = found.record, found.health
        instance.interval_ns, instance.state, instance.since = found.interval_ns, state, self.context.wall
        self.book.put(instance)
        self.announce("register", instance)
        return instance

    def announce(self, op: str, instance: Instance) -> None:
        """Say that it has changed: the next index."""
        self.context.index += 1
        instance.index = self.context.index
        for listener in self.context.listeners:
            listener(Change(instance.index, op, instance, self.context.wall))

    def turn(self, instance: Instance, state: State, reason: str = "") -> None:
        """It has another state from now on."""
        instance.state, instance.reason, instance.since = state, reason, self.context.wall
        self.announce(state.name.lower(), instance)

    def ask(self, *names: str | bytes) -> dict[str, Any]:
        """The answer to a REQUEST, decoded."""
        frames = tuple(name.encode() if isinstance(name, str) else name for name in names)
        told = json.loads(self.queries.answer(frames, SOMEBODY)[0])
        assert isinstance(told, dict)
        return told

    def expire(self, ms: int) -> None:
        """Time passes."""
        now = self.context.now
        self.context.now = Now(now.mono + ms * MILLISECOND, now.wall + ms * MILLISECOND)
