"""Publishes every change, and ticks by which a watcher notices that it missed one (CAT-040..044).

    catalog/NAME 00 INSTANCE   every change of it; `prev` by name
    watch/HASH                 changes of what matches a filter; `prev` by topic, `enter` and `leave`
    tick                       the index, each second, and at once after a subscription

A watcher first subscribes to its topic, then to `tick`. The next tick shows that both subscriptions are active, and
only then it asks for the snapshot. So every change that the snapshot lacks is published to it.
"""

from typing import Final

import msgspec

from weft.base.now import SECOND, Now
from weft.cores.catalog import events, filters, limits
from weft.cores.catalog.arguments import read_argument
from weft.cores.catalog.book import Book
from weft.cores.catalog.context import Asker, Context
from weft.cores.catalog.events import Event, Kept, Tick
from weft.cores.catalog.instances import Change
from weft.cores.catalog.queries import Queries
from weft.cores.catalog.ring import Ring
from weft.cores.catalog.watching import Watching
from weft.cores.kit.timers import earliest
from weft.wire.catalog.messages import Publication, Subscription

TICK: Final = events.TICK.encode()


class Since(msgspec.Struct, frozen=True):
    """The argument of `dbp.changes`."""

    epoch: str
    since: int
    """The last index that the client knows."""


_SINCE: Final = msgspec.json.Decoder(Since)


class Publishing:
    """The XPUB of events, from the core's side."""

    def __init__(self, context: Context, book: Book, queries: Queries) -> None:
        self._context, self._book, self._answers = context, book, queries.answers
        self._watching = Watching(context.settings.topics_max)
        self._ring = Ring(context.settings.ring_max)
        self._ring.room = context.budget.part("changes", limits.CHANGES_PERCENT, lambda: self._ring.cost)
        self._names: dict[str, int] = {}
        """Index of the last event of each name that has an instance, or an event in the ring."""
        self._forgotten = 0
        """The highest index dropped together with its name: a name that is not known may have had events up to this
        index.
        """
        self._tick_at: int | None = None
        self._asked_at = 0
        self._asked = 0
        context.listeners.append(self.changed)
        queries.add("dbp.watch", self.watch)
        queries.add("dbp.changes", self.changes)
        queries.gauges["filter_topics"] = lambda: {"": len(self._watching)}

    def open(self, now: Now) -> None:
        """Start the ticks."""
        if self._tick_at is None:
            self._tick_at = now.mono + limits.TICK_NS

    def publish(self, topic: bytes, *frames: bytes) -> None:
        """Publish on a topic."""
        self._context.publish(Publication(topic, frames))

    # Changes

    def changed(self, change: Change) -> None:
        """An instance changed: publish the change, and keep it for watchers that miss it (CAT-040)."""
        self.open(self._context.now)
        instance = change.instance
        record = b"" if change.op == "remove" else self._answers.record(instance)
        prev = self._names.get(instance.name, self._forgotten)
        self._names[instance.name] = change.index
        self.publish(events.topic_of(*instance.key), self._meta(change, change.op, prev), record)
        for touch in self._watching.touched(change):
            self.publish(touch.topic.name, self._meta(change, touch.op, touch.prev), record)
        self._keep(change, prev, record)

    def _meta(self, change: Change, op: str, prev: int) -> bytes:
        name, instance = change.instance.key
        epoch = self._context.epoch
        return events.encode(
            Event(events.VERSION, epoch, change.index, prev, op, name, instance, change.ts, change.reason)
        )

    def _keep(self, change: Change, prev: int, record: bytes) -> None:
        name, instance = change.instance.key
        shown = msgspec.Raw(record or b"null")
        text = events.encode(Kept(change.index, prev, change.op, name, instance, change.ts, shown, change.reason))
        for index, gone in self._ring.add(change.index, name, text):
            self._forget(index, gone)

    def _forget(self, index: int, name: str) -> None:
        """A change has left the ring. Drop its name too, if it had no later event and no instance has it."""
        if self._names[name] == index and not self._book.of_name(name):
            del self._names[name]
            self._forgotten = index

    # Queries

    def watch(self, args: tuple[bytes, ...], asker: Asker) -> tuple[bytes, ...]:
        """`dbp.watch filter`: its topic, and the instances that match now (CAT-041)."""
        context = self._context
        self.open(context.now)
        found = filters.parse(args[0] if args else b"")
        matching = list(found.among(self._book))
        topic = self._watching.open(found, matching, context.index, context.now.mono)
        head = b'{"topic":"%b","epoch":"%b","index":%d' % (topic.name, context.epoch.encode(), context.index)
        return (self._answers.listed(head, matching),)

    def changes(self, args: tuple[bytes, ...], asker: Asker) -> tuple[bytes, ...]:
        """`dbp.changes {"epoch","since"}`: the changes after an index, or that they are no longer kept (CAT-044).

        `index` is the last change in the answer, and `more` how many follow; the client asks for them in the same way.
        """
        context, ring = self._context, self._ring
        asked = read_argument(args, 0, _SINCE)
        if asked.epoch != context.epoch or not ring.has(asked.since):
            context.count("resyncs", "epoch" if asked.epoch != context.epoch else "ring")
            return (b'{"resync":true}',)
        texts, upto = ring.behind(asked.since)
        more = b',"more":%d' % (context.index - upto) if upto < context.index else b""
        head = b'{"epoch":"%b","index":%d%b,"changes":[' % (context.epoch.encode(), upto, more)
        return (head + b",".join(texts) + b"]}",)

    # Subscriptions and ticks

    def subscribed(self, subscription: Subscription, now: Now) -> None:
        """A client subscribed, or the last subscriber of a topic has left."""
        self.open(now)
        self._watching.subscribed(subscription.topic, now.mono, is_on=subscription.is_on)
        if subscription.is_on and TICK.startswith(subscription.topic):
            self._tick_at_once(now)

    def _tick_at_once(self, now: Now) -> None:
        """Send a tick at once, at most TICKS_MAX per second.

        Otherwise the subscriber gets one within a second anyway (CAT-042).
        """
        if now.mono - self._asked_at >= SECOND:
            self._asked_at, self._asked = now.mono, 0
        self._asked += 1
        if self._asked <= limits.TICKS_MAX:
            self._tick(TICK)
        else:
            self._context.count("dropped", "ticks")

    def _tick(self, topic: bytes, last: int | None = None) -> None:
        context = self._context
        self.publish(
            topic,
            events.encode(Tick(events.VERSION, context.epoch, context.index, events.TICK, context.wall, last)),
            b"",
        )

    def wake(self, now: Now) -> None:
        """Send ticks that are due; drop topics that nobody watches."""
        due = self.deadline()
        if due is not None and now.mono - due > self._context.settings.pause_ns:
            self._watching.postpone(now.mono - due)
        if self._tick_at is not None and self._tick_at <= now.mono:
            self._tick(TICK)
            self._tick_at = now.mono + limits.TICK_NS
        for topic in self._watching.ticks(now.mono):
            self._tick(topic.name, topic.last)
        self._context.count("topics_dropped", by=self._watching.expire(now.mono))

    def deadline(self) -> int | None:
        """When the next tick, or the end of a topic, is due."""
        return earliest(self._tick_at, self._watching.deadline())
