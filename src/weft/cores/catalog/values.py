"""The last value of each topic, for late subscribers (LVC-002..008).

    dbp.lcv TOPIC [{"publisher"}]   {"values": [{topic, publisher, instance, frames, received, stale}…], "more"}, frames…
    dbp.topics {"prefix"}           {"topics": [{topic, publisher, instance, count, bytes, age_s, stale}…], "more", …}

`frames` is the number of frames after the JSON that belong to the value: the whole message, topic first. A topic that
ends in `*` asks for all topics with that prefix. On the XPUB, `lcv/TOPIC` carries the message without its topic.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any, Final, NamedTuple

import msgspec

from weft.base.now import SECOND, Now
from weft.cores.catalog import limits
from weft.cores.catalog.arguments import read_argument
from weft.cores.catalog.book import Book
from weft.cores.catalog.context import Asker, Context
from weft.cores.catalog.instances import Change
from weft.cores.catalog.memory import ValueKept
from weft.cores.catalog.publishing import Publishing
from weft.cores.catalog.queries import Queries
from weft.cores.catalog.refusals import Refusal
from weft.cores.catalog.subscribedtopics import SubscribedTopics
from weft.cores.catalog.topics import Key, Publisher, Topics, Value
from weft.wire.catalog.messages import Subscription

PREFIX: Final = b"lcv/"
REPLAYS_TURN: Final = 16  # started in one turn; the others in the next turns


class OfPublisher(msgspec.Struct, forbid_unknown_fields=True):
    """The second argument of `dbp.lcv`."""

    publisher: str | None = None


class OfPrefix(msgspec.Struct, forbid_unknown_fields=True):
    """The argument of `dbp.topics`."""

    prefix: str = ""


_OF_PUBLISHER: Final = msgspec.json.Decoder(OfPublisher)
_OF_PREFIX: Final = msgspec.json.Decoder(OfPrefix)


class Found(NamedTuple):
    """Values ordered by topic, and how many there are."""

    values: Iterator[Value]
    total: int


class Values:
    """Last messages by (name, instance, topic), all frames unchanged (LVC-002).

    A new message costs O(1), including eviction.
    """

    def __init__(self, context: Context, book: Book, queries: Queries, publishing: Publishing) -> None:
        self.context, self.book, self.publishing = context, book, publishing
        self.bytes = self.evicted = self.heard = 0
        self.published: Callable[[Key, tuple[bytes, ...]], None] | None = None
        """Called for each publication of a service here: bridges need them."""
        self._room = context.budget.part(
            "values", limits.VALUES_PERCENT, lambda: self.bytes + limits.VALUE_COST * len(self._order)
        )
        self._publishers: dict[Key, Publisher] = {}
        self._topics = Topics()
        self._order: OrderedDict[tuple[Key, bytes], Value] = OrderedDict()
        """The value received longest ago is first, and is evicted next."""
        self._wanted = SubscribedTopics(PREFIX)
        self._replays: deque[Iterator[Value]] = deque()
        """The kept values that new subscribers still have to get."""
        self._replayed_at = 0
        self._replayed: set[bytes] = set()
        """Subscriptions that were answered at this instant."""
        context.listeners.append(self.changed)
        queries.add("dbp.lcv", self.lcv)
        queries.add("dbp.topics", self.topics)

    def __len__(self) -> int:
        return len(self._order)

    # Hearing

    def hear(self, key: Key, frames: tuple[bytes, ...], now: Now) -> None:
        """Keep a message as the last one of its topic."""
        topic, size = frames[0], sum(map(len, frames))
        self.context.count("lvc_messages")
        if topic.startswith(PREFIX):  # of a broker, perhaps this one: its echo would be echoed again
            self.context.count("lvc_dropped", "echo")
            return
        if (live := PREFIX + topic) in self._wanted:
            self.publishing.publish(live, *frames[1:])
        publisher = self._publisher(key)
        value = publisher.values.get(topic)
        if size > limits.VALUE_BYTES_MAX:  # too large to keep, and the value kept before is no longer the last
            self.context.count("lvc_dropped", "too-large")
            self._drop(value)
            self._tidy(publisher)
            return
        value = self._put(publisher, value, frames)
        self.heard += 1
        value.at, value.received, value.number, value.is_restored = now.mono, self.context.wall, self.heard, False
        value.count += 1
        self._evict()
        if self.published is not None and "@" not in key[0]:
            self.published(key, frames)

    def kept(self, prefix: bytes, most: int) -> Iterator[tuple[Key, tuple[bytes, ...]]]:
        """The last values whose topic has this prefix, with their publishers; at most `most`."""
        found = islice(self._topics.with_prefix(prefix), most)
        return ((value.publisher.key, value.frames) for value in found if not value.is_stale)

    def _put(self, publisher: Publisher, value: Value | None, frames: tuple[bytes, ...]) -> Value:
        """The value with these frames, as the newest one."""
        topic, size = frames[0], sum(map(len, frames))
        if value is None:
            value = self._add(Value(topic, publisher))
        self._order.move_to_end((publisher.key, topic))
        self.bytes += size - value.size
        value.frames, value.size = frames, size
        return value

    def _publisher(self, key: Key) -> Publisher:
        publisher = self._publishers.get(key)
        if publisher is None:
            publisher = self._publishers[key] = Publisher(key)
        return publisher

    def _add(self, value: Value) -> Value:
        value.publisher.values[value.topic] = value
        self._order[value.publisher.key, value.topic] = value
        self._topics.add(value)
        return value

    def _drop(self, value: Value | None) -> None:
        if value is None:
            return
        del value.publisher.values[value.topic]
        del self._order[value.publisher.key, value.topic]
        self._topics.drop(value)
        self.bytes -= value.size
        self._tidy(value.publisher)

    def _tidy(self, publisher: Publisher) -> None:
        """Drop a publisher without values, since publishers of other networks may have any name; a stale one stays."""
        if not publisher.values and not publisher.is_stale:
            self._publishers.pop(publisher.key, None)

    def _evict(self) -> None:
        """Evict the value received longest ago (LVC-008)."""
        settings = self.context.settings
        while self._order and (
            len(self._order) > settings.values_max or self.bytes > settings.values_bytes_max or self._room.is_over
        ):
            self._drop(next(iter(self._order.values())))
            self.evicted += 1
            self.context.count("lvc_evicted")

    def changed(self, change: Change) -> None:
        """An INACTIVE instance's values become stale; a removed instance's values are removed (LVC-007)."""
        publisher = self._publishers.get(change.instance.key)
        if publisher is None:
            return
        publisher.is_stale = not change.instance.is_live
        if change.op == "remove" or (publisher.is_stale and not self.context.settings.lvc_keep):
            self.forget(change.instance.key)

    def forget(self, key: Key) -> None:
        """Drop what this publisher said."""
        publisher = self._publishers.pop(key, None)
        for value in list(publisher.values.values()) if publisher is not None else ():
            self._drop(value)

    # From before a restart

    def newest(self) -> Iterator[Value]:
        """All values, the one heard last first."""
        return reversed(self._order.values())

    def restore(self, kept: ValueKept) -> None:
        """Take a value from the journal; a later record of the topic replaces it."""
        if not kept.frames:
            return
        publisher = self._publisher((kept.name, kept.id))
        value = self._put(publisher, publisher.values.get(kept.frames[0]), kept.frames)
        value.received, value.count, value.is_restored = kept.received, kept.count, True
        value.at = self.context.now.mono - max(0, int((self.context.wall - kept.received) * SECOND))
        self._evict()

    def opened(self) -> None:
        """All instances are restored: only they have values."""
        for key, publisher in list(self._publishers.items()):
            instance = self.book.get(*key)
            publisher.is_stale = instance is None or not instance.is_live
            if instance is None or (publisher.is_stale and not self.context.settings.lvc_keep):
                self.forget(key)

    # Subscribers

    def subscribed(self, subscription: Subscription, now: Now) -> None:
        """A subscriber of `lcv/…` gets the kept values at once (LVC-005); many of them over several turns."""
        self._wanted.note(subscription)
        if not subscription.is_on or not subscription.topic.startswith(PREFIX):
            return
        if self._replayed_at == now.mono and subscription.topic in self._replayed:
            return  # all subscribers got what was just published
        if len(self._replays) >= limits.REPLAYS_MAX:
            self.context.count("lvc_dropped", "replay")
            return
        if self._replayed_at != now.mono:
            self._replayed_at, self._replayed = now.mono, set()
        self._replayed.add(subscription.topic)
        rest = self._topics.lasting(subscription.topic.removeprefix(PREFIX))
        if len(self._replayed) > REPLAYS_TURN or self._replay(rest) is not None:
            self._replays.append(rest)

    def _replay(self, values: Iterator[Value]) -> Iterator[Value] | None:
        """Publish one turn's share of the kept values, each with its latest message.

        Returns the rest, None if nothing is left.
        """
        count = size = 0
        for value in values:
            if not value.is_kept:
                continue
            self.publishing.publish(PREFIX + value.topic, *value.frames[1:])
            count, size = count + 1, size + value.size
            if count >= limits.REPLAY_TURN or size >= limits.LISTED_BYTES_MAX:
                return values
        return None

    def wake(self, now: Now) -> None:
        """Continue the replays for subscribers."""
        if self._replays and (rest := self._replay(self._replays.popleft())) is not None:
            self._replays.append(rest)

    def deadline(self) -> int | None:
        return self.context.now.mono if self._replays else None

    # Questions

    def lcv(self, args: tuple[bytes, ...], asker: Asker) -> tuple[bytes, ...]:
        """`dbp.lcv topic [{"publisher"}]` (LVC-003)."""
        if not args:
            raise Refusal("bad-argument", "dbp.lcv: which topic?")
        found = self._matching(args[0], read_argument(args, 1, _OF_PUBLISHER).publisher)
        chosen = _first(found.values)
        head: dict[str, Any] = {"values": [_shown(value) for value in chosen]}
        if found.total > len(chosen):
            head["more"] = found.total - len(chosen)
        return (msgspec.json.encode(head), *chain.from_iterable(value.frames for value in chosen))

    def _matching(self, topic: bytes, name: str | None) -> Found:
        """All values of a topic, or of a prefix that ends in `*`; of one publisher only, if named."""
        prefix = topic.removesuffix(b"*")
        if prefix == topic:
            found = [value for value in self._topics.of_topic(topic) if name in (None, value.publisher.key[0])]
        elif name is None:
            return Found(self._topics.with_prefix(prefix), self._topics.count(prefix))
        else:
            of_name = [publisher for key, publisher in self._publishers.items() if key[0] == name]
            values = chain.from_iterable(publisher.values.values() for publisher in of_name)
            found = sorted((value for value in values if value.topic.startswith(prefix)), key=lambda value: value.topic)
        return Found(iter(found), len(found))

    def topics(self, args: tuple[bytes, ...], asker: Asker) -> tuple[bytes, ...]:
        """`dbp.topics {"prefix"}` (LVC-004, LVC-008)."""
        prefix = read_argument(args, 0, _OF_PREFIX).prefix.encode()
        chosen = list(islice(self._topics.with_prefix(prefix), limits.VALUES_LISTED_MAX))
        more = self._topics.count(prefix) - len(chosen)
        now = self.context.now.mono
        head: dict[str, Any] = {"topics": [_counted(value, now) for value in chosen]}
        if more:
            head["more"] = more
        head |= {"values": len(self._order), "bytes": self.bytes, "evicted": self.evicted}
        return (msgspec.json.encode(head),)


def _first(values: Iterator[Value]) -> list[Value]:
    """As many as fit into one answer; at least one, however long."""
    chosen: list[Value] = []
    size = 0
    for value in islice(values, limits.VALUES_LISTED_MAX):
        size += value.size
        if chosen and size > limits.LISTED_BYTES_MAX:
            break
        chosen.append(value)
    return chosen


def _named(value: Value) -> dict[str, Any]:
    """Publisher and topic of a value; a topic that is not text stands only in its frames."""
    name, instance = value.publisher.key
    return {"topic": value.topic.decode(errors="replace"), "publisher": name, "instance": instance}


def _shown(value: Value) -> dict[str, Any]:
    how = {"frames": len(value.frames), "received": value.received, "stale": value.is_stale}
    return _named(value) | how


def _counted(value: Value, now: int) -> dict[str, Any]:
    age = max(0, now - value.at) / SECOND
    how = {"count": value.count, "bytes": value.size, "age_s": age, "stale": value.is_stale}
    return _named(value) | how
