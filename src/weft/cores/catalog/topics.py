"""Last values by topic and by prefix (LVC-003, LVC-005)."""

from bisect import bisect_left
from collections.abc import Iterator

from weft.cores.catalog import limits

Key = tuple[str, str]
"""Name and instance of a publisher."""


class Publisher:
    """The publisher of values."""

    __slots__ = ("is_stale", "key", "values")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.is_stale = False
        """It is INACTIVE: its values may no longer hold (LVC-007)."""
        self.values: dict[bytes, Value] = {}


class Value:
    """The last message of a topic."""

    __slots__ = ("at", "count", "frames", "is_restored", "number", "publisher", "received", "size", "topic")

    def __init__(self, topic: bytes, publisher: Publisher) -> None:
        self.topic, self.publisher = topic, publisher
        self.frames: tuple[bytes, ...] = ()
        """The whole message, topic first, unchanged (LVC-002)."""
        self.size = self.count = self.at = 0
        self.received = 0.0
        self.number = 0
        """Of the message among all that were heard in this start; 0: none was."""
        self.is_restored = False
        """It is from before a restart, and there may be a newer one that nobody heard (LVC-008)."""

    @property
    def is_stale(self) -> bool:
        """Whether it may no longer hold."""
        return self.is_restored or self.publisher.is_stale

    @property
    def is_kept(self) -> bool:
        return self.publisher.values.get(self.topic) is self


class Topics:
    """Adding and removing cost O(1) amortised; a lookup by prefix sorts the topics added since the last one."""

    def __init__(self) -> None:
        self._by_topic: dict[bytes, dict[Key, Value]] = {}
        """Empty dicts are topics without values that are not removed from `_sorted` yet."""
        self._sorted: list[bytes] = []
        self._fresh: list[bytes] = []
        self._gone = self._gone_bytes = 0

    def add(self, value: Value) -> None:
        """Add a value; the publisher must have none for this topic."""
        values = self._by_topic.get(value.topic)
        if values is None:
            values = self._by_topic[value.topic] = {}
            self._fresh.append(value.topic)
        elif not values:
            self._gone -= 1
            self._gone_bytes -= len(value.topic)
        values[value.publisher.key] = value

    def drop(self, value: Value) -> None:
        """Remove a value that was added."""
        values = self._by_topic[value.topic]
        del values[value.publisher.key]
        if not values:
            self._gone += 1
            self._gone_bytes += len(value.topic)
            if self._gone > 1_000 + len(self._by_topic) // 2 or self._gone_bytes > limits.GONE_BYTES_MAX:
                self._clear_gone()

    def _clear_gone(self) -> None:
        self._by_topic = {topic: values for topic, values in self._by_topic.items() if values}
        self._sorted, self._fresh = sorted(self._by_topic), []
        self._gone = self._gone_bytes = 0

    def of_topic(self, topic: bytes) -> Iterator[Value]:
        """The values of one topic, of all publishers."""
        yield from self._by_topic.get(topic, {}).values()

    def count(self, prefix: bytes) -> int:
        """How many values have a topic with this prefix; one step each."""
        return sum(map(len, map(self._by_topic.__getitem__, self._span(prefix))))

    def with_prefix(self, prefix: bytes) -> Iterator[Value]:
        """The values whose topic has this prefix, ordered by topic."""
        for topic in self._span(prefix):
            yield from self._by_topic[topic].values()

    def lasting(self, prefix: bytes) -> Iterator[Value]:
        """The same, for reading over several turns: values removed meanwhile are left out."""
        span = self._span(prefix)
        return (value for topic in span for value in tuple(self._by_topic.get(topic, {}).values()))

    def _span(self, prefix: bytes) -> list[bytes]:
        if self._fresh:
            self._sorted += self._fresh
            self._sorted.sort()
            self._fresh = []
        stem = prefix.rstrip(b"\xff")
        # the first text after all that have this prefix
        after = stem[:-1] + bytes([stem[-1] + 1]) if stem else None
        start = bisect_left(self._sorted, prefix)
        return self._sorted[start : None if after is None else bisect_left(self._sorted, after)]
