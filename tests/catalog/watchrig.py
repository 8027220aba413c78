"""A broker that only publishes, and watchers that hear what a careless network leaves over.

broker = Broker()
broker.register("thermo", tags=["lab"])      each is one indexed change
broker.state("thermo", "inactive")
broker.published()                            what went to the XPUB since, as Said
watcher = Watcher(broker, {"tags": ["lab"]})  a Follower, and the sockets it would have
watcher.settle()                              hears and asks until there is nothing to do
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from weft.base.chance import Chance
from weft.base.effects import Send
from weft.base.now import SECOND, Now
from weft.client.catalog.entries import Change
from weft.client.catalog.following import Ask, Follower, Reopen, Subscribe
from weft.cores.catalog.answers import Answers
from weft.cores.catalog.book import Book
from weft.cores.catalog.context import Asker, Context
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.messages import CatalogSettings
from weft.cores.catalog.publishing import Publishing
from weft.cores.catalog.queries import Queries
from weft.cores.catalog.states import State
from weft.wire.catalog.messages import Publication, Subscription

NODE = bytes(range(16))
WALL = 1_795_227_299 * SECOND
ASKER = Asker(b"c", "REQ", "127.0.0.1", (), b"\0\0\0\0")


class Said(NamedTuple):
    """One publication, read."""

    topic: str
    meta: dict[str, Any]
    record: dict[str, Any] | None


def read(frames: tuple[bytes, ...]) -> Said:
    """Topic, meta and record as a plain reader has them."""
    topic, meta, record = frames
    return Said(topic.decode(), json.loads(meta), json.loads(record) if record else None)


class Broker:
    """The parts of the core that publish, and time."""

    def __init__(self, era: int = 1, **settings: Any) -> None:
        self.context = Context(CatalogSettings(**settings), NODE, era, Chance("watches"))
        self.book = Book(self.context)
        self.queries = Queries(self.context, self.book, Answers(self.context, self.book))
        self.publishing = Publishing(self.context, self.book, self.queries)
        self.watchers: list[Watcher] = []
        self.mono = 0
        self.advance(0)

    # What services do

    def register(self, name: str, instance_id: str = "i", **record: Any) -> Instance:
        """A new instance, or a new record of one that is there."""
        instance = self.book.get(name, instance_id) or Instance(name, instance_id, "127.0.0.1", "127.0.0.1")
        instance.record, instance.state, instance.since = record, State.ACTIVE, self.context.wall
        self.book.put(instance)
        self.announce("register", instance)
        return instance

    def update(self, name: str, instance_id: str = "i", **record: Any) -> None:
        """Other keys in its record."""
        instance = self.instance(name, instance_id)
        instance.record = {**instance.record, **record}
        self.announce("update", instance)

    def state(self, name: str, word: str, instance_id: str = "i", reason: str = "") -> None:
        """Another state."""
        instance = self.instance(name, instance_id)
        instance.state, instance.since = State[word.upper()], self.context.wall
        self.announce(word, instance, reason)

    def health(self, name: str, word: str, instance_id: str = "i") -> None:
        """Another health."""
        instance = self.instance(name, instance_id)
        instance.health = word
        self.announce("health", instance)

    def remove(self, name: str, instance_id: str = "i", reason: str = "reaped") -> None:
        """It is gone."""
        instance = self.instance(name, instance_id)
        self.book.drop(instance)
        self.announce("remove", instance, reason)

    def instance(self, name: str, instance_id: str = "i") -> Instance:
        """One that is there."""
        found = self.book.get(name, instance_id)
        assert found is not None, (name, instance_id)
        return found

    def announce(self, op: str, instance: Instance, reason: str = "") -> None:
        """A change, and what is said of it to who watches."""
        self.context.announce(op, instance, reason)
        self.deliver()

    # What others hear and ask

    def deliver(self) -> None:
        """Everything that was published reaches the watchers, as far as their network lets it."""
        if self.watchers:
            for publication in self.publications():
                for watcher in self.watchers:
                    watcher.receive((publication.topic, *publication.body))

    def publications(self) -> list[Publication]:
        """What went to the XPUB since it was asked last."""
        return [effect.message for effect in self.context.take() if isinstance(effect, Send)]

    def published(self) -> list[Said]:
        """The same, read."""
        return [read((said.topic, *said.body)) for said in self.publications()]

    def ask(self, *frames: bytes) -> Any:
        """A query and its answer."""
        return json.loads(self.queries.answer(frames, ASKER)[0])

    def watch(self, given: dict[str, Any]) -> Any:
        """`dbp.watch`."""
        return self.ask(b"dbp.watch", json.dumps(given).encode())

    def changes(self, since: int, epoch: str | None = None) -> Any:
        """`dbp.changes`."""
        told = {"epoch": epoch or self.context.epoch, "since": since}
        return self.ask(b"dbp.changes", json.dumps(told).encode())

    def subscribe(self, topic: bytes, *, is_on: bool = True) -> None:
        """What an XPUB says of its subscribers."""
        self.publishing.subscribed(Subscription(is_on, topic), self.context.now)
        self.deliver()

    # Time

    def advance(self, span_s: float) -> None:
        """Time passes; the broker is woken whenever it wants to be."""
        until = self.mono + round(span_s * SECOND)
        while (due := self.publishing.deadline()) is not None and due <= until:
            self.at(due)
            self.publishing.wake(self.context.now)
            self.deliver()
            for watcher in self.watchers:
                watcher.wake()
        self.at(until)

    def at(self, mono: int) -> None:
        """It is so late."""
        self.mono = mono
        self.context.now = Now(mono, WALL + mono)

    def again(self, *, is_kept: bool) -> "Broker":
        """The broker after a restart, with its disk or without; its watchers' sockets connect to it by themselves."""
        fresh = Broker(era=self.context.era + 1)
        fresh.at(self.mono)
        for instance in list(self.book.all()) if is_kept else []:
            fresh.book.put(instance)
        fresh.watchers = self.watchers
        for watcher in fresh.watchers:
            watcher.broker = fresh
            for topic in sorted(watcher.topics):
                fresh.subscribe(topic)
        return fresh

    def table(self, given: dict[str, Any]) -> dict[tuple[str, str], Any]:
        """What matches a filter, by name and instance, as a query answers it."""
        answer = self.ask(b"dbp.query", json.dumps(given).encode())
        return {(told["name"], told["instance"]): told["record"] for told in answer["records"]}


class Watcher:
    """A follower and the sockets it would have: a SUB that may lose what it hears, and questions."""

    def __init__(self, broker: Broker, given: dict[str, Any] | None = None, *, joins_late: bool = False) -> None:
        self.given = given or {}
        self.follower = Follower(given)
        self.told: list[Change] = []
        self.asked: list[str] = []
        self.loses: Callable[[tuple[bytes, ...]], bool] = lambda frames: False
        self.topics: list[bytes] = []
        self.inbox: list[tuple[bytes, ...]] = []
        self.asks: list[Ask] = []
        self.joins_late = joins_late
        self.late: list[bytes] = []
        self.connect(broker)

    def connect(self, broker: Broker) -> None:
        """A fresh socket to a broker."""
        self.broker = broker
        self.topics.clear()
        self.inbox.clear()
        if self not in broker.watchers:
            broker.watchers.append(self)
        self.follower.opened(broker.mono)
        self.act()

    def receive(self, frames: tuple[bytes, ...]) -> None:
        """Something was published: it waits in the socket, unless the topic is another, or it is lost."""
        if any(frames[0].startswith(topic) for topic in self.topics) and not self.loses(frames):
            self.inbox.append(frames)

    def act(self) -> None:
        """Do what the follower wants; questions wait for `answer`."""
        for action in self.follower.actions():
            if isinstance(action, Subscribe):
                self.late.append(action.topic)
            elif isinstance(action, Ask):
                self.asks.append(action)
            else:
                assert isinstance(action, Reopen)
                self.connect(self.broker)
        self.told += self.follower.changes()
        if not self.joins_late:
            self.join()

    def join(self) -> None:
        """What it subscribed to reaches the broker, in that order."""
        late, self.late = self.late, []
        for topic in late:
            self.topics.append(topic)
            self.broker.subscribe(topic)

    def wake(self) -> None:
        """Time has passed, and nothing waits to be read."""
        due = self.follower.deadline()
        if due is not None and due <= self.broker.mono and not self.inbox:
            self.follower.wake(self.broker.mono)
            self.act()

    def hear(self) -> None:
        """Read everything that waits."""
        inbox, self.inbox = self.inbox, []
        for frames in inbox:
            self.follower.heard(frames, self.broker.mono)
        self.act()

    def answer(self) -> None:
        """Get every question answered."""
        asks, self.asks = self.asks, []
        for ask in asks:
            self.asked.append(ask.frames[0].decode())
            self.follower.answered(ask.ticket, self.broker.ask(*ask.frames), self.broker.mono)
        self.act()

    def settle(self) -> None:
        """Hear and ask until there is nothing to do."""
        for _ in range(1_000):
            self.wake()
            if not self.inbox and not self.asks:
                return
            self.hear()
            self.answer()
        raise AssertionError("it asks for ever")

    def table(self) -> dict[tuple[str, str], Any]:
        """What the follower has, in the form of the broker's own table."""
        return {key: {**entry.record, "_dbp": entry.facts} for key, entry in self.follower.entries.items()}

    def replayed(self) -> dict[tuple[str, str], Any]:
        """What somebody has who only heard what was told."""
        table: dict[tuple[str, str], Any] = {}
        for change in self.told:
            key = (change.name, change.instance)
            if change.entry is None or change.op == "leave":
                table.pop(key, None)
            else:
                table[key] = {**change.entry.record, "_dbp": change.entry.facts}
        return table

    def ops(self) -> list[str]:
        """What was told, in short: `register thermo`."""
        return [f"{change.op} {change.name}".strip() for change in self.told]
