"""Topics of watched filters (CAT-041).

The topics that an instance matches are the bits of one number per instance. A change compares old and new bits to find
the topics that the instance enters, leaves or stays in. Filters are found by exact name or first tag; only filters
without either are tried on every change.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

from weft.cores.catalog import limits
from weft.cores.catalog.filters import Filter
from weft.cores.catalog.instances import Change, Instance
from weft.cores.catalog.refusals import Refusal
from weft.cores.kit.timers import earliest

Key = TypeVar("Key")
NAME_BYTES: Final = len("watch/0123456789abcdef")


class Topic:
    """One filter that is watched."""

    __slots__ = ("bit", "filter", "is_watched", "last", "name")

    def __init__(self, found: Filter, slot: int, last: int) -> None:
        self.filter = found
        self.name = found.topic.encode()
        self.bit = 1 << slot
        self.last = last
        """Index of its last event; 0: none."""
        self.is_watched = False
        """A client has subscribed to exactly this topic."""


class Touch(NamedTuple):
    """A change concerns a topic: the op, and the index of the topic's preceding event."""

    topic: Topic
    op: str
    prev: int


class Watching:
    """All topics of filters, the instances in them, and their subscriptions."""

    def __init__(self, topics_max: int) -> None:
        self._topics_max = topics_max
        self._topics: dict[bytes, Topic] = {}
        self._slots: list[Topic | None] = []
        self._matched: dict[tuple[str, str], int] = {}
        self._by_name: dict[str, int] = {}
        self._by_tag: dict[str, int] = {}
        self._general = 0
        self._idle: dict[Topic, int] = {}
        """Topics without a subscription of their own name, and since when; the longest first."""
        self._ticking: dict[Topic, int] = {}
        """When each topic gets its next tick; the soonest first."""
        self._others: dict[bytes, None] = {}
        """Subscriptions to topics that do not exist yet, or to many topics."""
        self._has_dropped = False

    def __len__(self) -> int:
        return len(self._topics)

    # Topics

    def open(self, found: Filter, instances: Iterable[Instance], index: int, mono: int) -> Topic:
        """The topic of a filter, from now on kept at least as long as an idle one; raises Refusal `limit`.

        `instances` are all that match now. A topic that was dropped and opened again has missed changes. Any topic may
        have existed before; so once a topic was dropped, a new one reports that its last event was just now, and a
        watcher that has seen less takes a snapshot.
        """
        topic = self._topics.get(found.topic.encode())
        if topic is None:
            topic = self._make(found, index if self._has_dropped else 0)
            self._ticking[topic] = mono + limits.FILTER_TICK_NS
            topic.is_watched = topic.name in self._others
            self._others.pop(topic.name, None)
            for instance in instances:
                self._matched[instance.key] = self._matched.get(instance.key, 0) | topic.bit
        if not topic.is_watched:
            self._idle.pop(topic, None)
            self._idle[topic] = mono
        return topic

    def _make(self, found: Filter, last: int) -> Topic:
        if len(self._topics) >= self._topics_max:
            raise Refusal("limit", f"{self._topics_max} filters are watched already")
        slot = self._slots.index(None) if None in self._slots else len(self._slots)
        topic = Topic(found, slot, last)
        self._slots[slot : slot + 1] = [topic]
        self._topics[topic.name] = topic
        self._index(topic)
        return topic

    def _index(self, topic: Topic) -> None:
        name, tag = topic.filter.exact_name, topic.filter.first_tag
        if name is not None:
            self._by_name[name] = self._by_name.get(name, 0) | topic.bit
        elif tag is not None:
            self._by_tag[tag] = self._by_tag.get(tag, 0) | topic.bit
        else:
            self._general |= topic.bit

    def _drop(self, topics: list[Topic]) -> None:
        """Forget topics, in one pass over all matches."""
        dead = 0
        for topic in topics:
            dead |= topic.bit
            del self._topics[topic.name], self._ticking[topic], self._idle[topic]
            self._slots[topic.bit.bit_length() - 1] = None
        self._has_dropped = True
        self._general &= ~dead
        _clear(self._by_name, dead)
        _clear(self._by_tag, dead)
        _clear(self._matched, dead)

    # Changes

    def touched(self, change: Change) -> list[Touch]:
        """Which topics a change concerns: `enter` and `leave` where it begins or ceases to match (CAT-041).

        O(topics of its name, of its tags, and of neither).
        """
        key = change.instance.key
        was = self._matched.get(key, 0)
        now = 0 if change.op == "remove" else self._matching(change.instance)
        if now:
            self._matched[key] = now
        elif was:
            del self._matched[key]
        return [self._touch(topic, was, now, change) for topic in self._of_bits(was | now)]

    def _touch(self, topic: Topic, was: int, now: int, change: Change) -> Touch:
        op = change.op
        if not was & topic.bit:
            op = "enter"
        elif not now & topic.bit and op != "remove":
            op = "leave"
        prev, topic.last = topic.last, change.index
        return Touch(topic, op, prev)

    def _matching(self, instance: Instance) -> int:
        candidates = self._general | self._by_name.get(instance.name, 0)
        if self._by_tag:
            for tag in instance.record.get("tags") or ():
                candidates |= self._by_tag.get(tag, 0)
        return sum(topic.bit for topic in self._of_bits(candidates) if topic.filter.matches(instance))

    def _of_bits(self, bits: int) -> Iterator[Topic]:
        while bits:
            slot = (bits & -bits).bit_length() - 1
            bits &= bits - 1
            topic = self._slots[slot]
            assert topic is not None, slot
            yield topic

    # Subscribers

    def subscribed(self, name: bytes, mono: int, *, is_on: bool) -> None:
        """A client subscribed to a topic or prefix, or the last subscriber has left."""
        topic = self._topics.get(name)
        if topic is not None:
            topic.is_watched = is_on
            self._idle.pop(topic, None)
            if not is_on:
                self._idle[topic] = mono
        elif not is_on:
            self._others.pop(name, None)
        elif len(name) > NAME_BYTES:
            return  # no topic has such a name
        elif name.startswith(b"watch/") or b"watch/".startswith(name):
            self._others[name] = None
            if len(self._others) > self._topics_max:
                del self._others[next(iter(self._others))]

    def _is_covered(self, topic: Topic) -> bool:
        """Whether a subscription to a prefix of it exists."""
        return any(topic.name[:size] in self._others for size in range(len(topic.name)))

    # Time

    def ticks(self, mono: int) -> list[Topic]:
        """The topics whose tick is due; sets the next tick of each."""
        found = []
        while self._ticking and (due := next(iter(self._ticking.items())))[1] <= mono:
            found.append(due[0])
            del self._ticking[due[0]]
            self._ticking[due[0]] = mono + limits.FILTER_TICK_NS
        return found

    def expire(self, mono: int) -> int:
        """Drop topics without a subscription for a minute; returns how many."""
        expired = []
        for topic, since in list(self._idle.items()):
            if since + limits.TOPIC_IDLE_NS > mono:
                break
            if self._is_covered(topic):
                del self._idle[topic]
                self._idle[topic] = mono
            else:
                expired.append(topic)
        if expired:
            self._drop(expired)
        return len(expired)

    def postpone(self, late_ns: int) -> None:
        """The broker stood still: no client could subscribe meanwhile (BEA-022)."""
        self._idle = {topic: since + late_ns for topic, since in self._idle.items()}

    def deadline(self) -> int | None:
        """When a tick or the end of a topic is due."""
        tick_at = next(iter(self._ticking.values()), None)
        since = next(iter(self._idle.values()), None)
        return earliest(tick_at, None if since is None else since + limits.TOPIC_IDLE_NS)


def _clear(table: dict[Key, int], dead: int) -> None:
    """Clear these bits in every number of a table; numbers that become 0 are removed."""
    for key, bits in [(key, bits) for key, bits in table.items() if bits & dead]:
        if bits & ~dead:
            table[key] = bits & ~dead
        else:
            del table[key]
