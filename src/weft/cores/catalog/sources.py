"""Publishers that the broker subscribes to, for last values and logs (LVC-001, LOG-001).

Each interface named `pub`, or of type `PUB`, of each instance that is not INACTIVE gets a socket; its tag is name,
instance and interface. A message from it is a log record, or else a last value.
"""

from ipaddress import ip_address
from typing import Any, Final, NamedTuple

from weft.base.endpoints import endpoint_of
from weft.base.now import Now
from weft.cores.catalog import limits
from weft.cores.catalog.book import Book
from weft.cores.catalog.context import VALUES, Context
from weft.cores.catalog.instances import Change, Instance
from weft.cores.catalog.logforms import PREFIX, read_topic
from weft.cores.catalog.logs import Logs
from weft.cores.catalog.records import effective_address
from weft.cores.catalog.topics import Key
from weft.cores.catalog.values import Values
from weft.wire.catalog.messages import Taken

ALL: Final = (b"",)


class Feed(NamedTuple):
    """One publisher's socket, and its subscriptions."""

    key: Key
    endpoint: str
    topics: tuple[bytes, ...]

    def has(self, topic: bytes) -> bool:
        """Whether the instance wants its values on this topic kept; `log.` is subscribed to in addition."""
        return any(topic.startswith(prefix) for prefix in self.topics)

    @property
    def subscriptions(self) -> tuple[bytes, ...]:
        return self.topics if b"" in self.topics else tuple(dict.fromkeys((*self.topics, PREFIX)))


class Sources:
    """All sockets to publishers."""

    def __init__(self, context: Context, book: Book, values: Values, logs: Logs) -> None:
        self.context, self.book, self.values, self.logs = context, book, values, logs
        self.feeds: dict[bytes, Feed] = {}
        """By tag; those that have a socket."""
        self._waiting: dict[bytes, Feed] = {}
        """Those beyond the limit, in the order of arrival."""
        self._tags: dict[Key, list[bytes]] = {}
        context.listeners.append(self.changed)

    def open(self, now: Now) -> None:
        """Subscribe to all restored publishers; `changed` handles later changes."""
        self.logs.open()
        for instance in self.book.all():
            self._follow(instance)

    def changed(self, change: Change) -> None:
        """Subscribe to new and returned instances, unsubscribe from lost ones, reconnect to those that moved."""
        instance = change.instance
        if instance.is_imported:  # nodes never connect across (BRI-001)
            return
        if change.op == "remove" or not instance.is_live:
            self._replace(instance.key, {})
        elif change.op != "suspect":
            self._follow(instance)

    def hear(self, taken: Taken, tag: bytes, now: Now) -> None:
        """A publisher sent a message; O(1)."""
        feed = self.feeds.get(tag)
        if feed is None:
            self.context.count("dropped", "no-source")
            return
        topic = taken.frames[0]
        if topic.startswith(PREFIX) and (found := read_topic(topic)) is not None:
            self.logs.hear(feed.key, found, taken.frames[1:], now)
        elif feed.has(topic):
            self.values.hear(feed.key, taken.frames, now)
        else:
            self.context.count("dropped", "no-log")

    # Sockets

    def _follow(self, instance: Instance) -> None:
        feeds = feeds_of(instance, self.context.settings.rewrite) if instance.is_live else {}
        self._replace(instance.key, feeds)

    def _replace(self, key: Key, feeds: dict[bytes, Feed]) -> None:
        """The present publishers of an instance; unchanged ones keep their sockets."""
        for tag in self._tags.pop(key, []):
            if tag not in feeds:
                self._close(tag)
        for tag, feed in feeds.items():
            if self.feeds.get(tag, self._waiting.get(tag)) != feed:
                self._open(tag, feed)
        if feeds:
            self._tags[key] = list(feeds)

    def _open(self, tag: bytes, feed: Feed) -> None:
        if tag not in self.feeds and len(self.feeds) >= limits.SOURCES_MAX:
            self._waiting[tag] = feed
            self.context.count("dropped", "sources")
            return
        self.feeds[tag] = feed
        self.context.connect(VALUES, feed.endpoint, tag, feed.subscriptions)

    def _close(self, tag: bytes) -> None:
        if self._waiting.pop(tag, None) is not None:
            return
        del self.feeds[tag]
        self.context.disconnect(VALUES, tag)
        if self._waiting:
            following = next(iter(self._waiting))
            self._open(following, self._waiting.pop(following))


def feeds_of(instance: Instance, rewrite: Any) -> dict[bytes, Feed]:
    """The publishers of an instance by tag, one per endpoint (LVC-001)."""
    interfaces = instance.record.get("interfaces")
    topics = topics_of(instance.record)
    found: dict[bytes, Feed] = {}
    endpoints: set[str] = set()
    for name, interface in (interfaces if isinstance(interfaces, dict) else {}).items():
        if not (name == "pub" or (isinstance(interface, dict) and interface.get("type") == "PUB")):
            continue
        endpoint = _endpoint(interface, instance.observed_ip, rewrite)
        if endpoint is None or endpoint in endpoints or len(found) >= limits.PUBLISHERS_MAX:
            continue
        endpoints.add(endpoint)
        tag = f"{instance.name}\0{instance.id}\0{name}".encode()
        found[tag] = Feed(instance.key, endpoint, topics)
    return found


def _endpoint(interface: Any, observed_ip: str, rewrite: Any) -> str | None:
    """A publisher's endpoint, as answers would state it (CAT-016)."""
    if not isinstance(interface, dict):
        return None
    own = {"ip": interface.get("ip"), "port": interface.get("port")}
    address = effective_address(own, observed_ip, rewrite)
    try:
        return endpoint_of(str(ip_address(address.ip)), address.port) if address else None
    except ValueError:  # a host name, not an address
        return None


def topics_of(record: dict[str, Any]) -> tuple[bytes, ...]:
    """The topic prefixes whose values are kept: missing or null means all, an empty list none (LVC-001)."""
    topics = record.get("topics")
    if not isinstance(topics, list):
        return ALL
    return tuple(dict.fromkeys(topic.encode() for topic in topics if isinstance(topic, str)))
