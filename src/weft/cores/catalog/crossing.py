"""Publications across bridges: only those that a subscriber there wants, each at most once (BRI-009, BRI-014).

Who subscribes to `net/green/room/` at this broker gets what services of `green` publish under `room/`, as
`net/green/room/temp`; the last values are kept under the publisher's name `thermo@green`. A publication is identified
by network, publisher, instance and number; a broker that has seen it before drops it.
"""

from collections.abc import Callable, Iterable
from typing import Final

from weft.base.now import Now
from weft.cores.catalog import limits
from weft.cores.catalog.bridgelinks import Link
from weft.cores.catalog.context import Context
from weft.cores.catalog.publishing import Publishing
from weft.cores.catalog.values import Values
from weft.wire.catalog import bridges as wire
from weft.wire.catalog.messages import Subscription

PREFIX: Final = b"net/"
Seen = tuple[str, str, str, int]


class Crossing:
    """Subscriptions across bridges, and publications seen."""

    def __init__(
        self,
        context: Context,
        publishing: Publishing,
        values: Values,
        links: Callable[[], Iterable[Link]],
        link_to: Callable[[str], Link | None],
    ) -> None:
        self._context, self._publishing, self._values = context, publishing, values
        self._links, self._link_to = links, link_to
        self._own: dict[bytes, tuple[str, str]] = {}
        """By topic subscribed to here: (network, prefix); an empty network means all networks."""
        self._announced: set[tuple[str, str, str]] = set()
        """(network of the link, network, prefix) subscriptions that were sent."""
        self._number = context.era
        """Of the last publication. Eras are microseconds, so a later start begins above all that were given."""
        self._seen: dict[Seen, None] = {}

    # Subscriptions

    def subscribed(self, subscription: Subscription, now: Now) -> None:
        """A client here subscribes, or the last subscriber of a topic has left."""
        if not subscription.topic.startswith(PREFIX) or len(subscription.topic) > limits.SUBSCRIPTION_BYTES_MAX:
            return
        net, slash, prefix = subscription.topic[len(PREFIX) :].decode("utf-8", "replace").partition("/")
        if not subscription.is_on:
            self._own.pop(subscription.topic, None)
        elif len(self._own) < limits.SUBSCRIBED_TOPICS_MAX:
            self._own[subscription.topic] = (net, prefix) if slash else ("", "")
        self.spread()

    def spread(self) -> None:
        """Subscribe at each network to what is wanted from it, here or behind another bridge.

        Unsubscribe from what is not wanted any more.
        """
        wanted = {
            (link.net, net, prefix)
            for net, prefix in self._all_wanted()
            if (link := self._link_to(net)) is not None and link.is_on
        }
        by_net = {link.net: link for link in self._links() if link.is_on}
        for via, net, prefix in sorted(wanted - self._announced):
            by_net[via].say(wire.Sub(net, prefix))
        for via, net, prefix in sorted(self._announced - wanted):
            if via in by_net:
                by_net[via].say(wire.Unsub(net, prefix))
        self._announced = wanted

    def _all_wanted(self) -> set[tuple[str, str]]:
        nets = {link.net for link in self._links() if link.is_on}
        own = {(each, prefix) for net, prefix in self._own.values() for each in ([net] if net else nets)}
        passed = {want for link in self._links() for want in link.wants if want[0] != self._context.settings.net}
        return own | passed if self._context.settings.transit else own

    def wanted(self, link: Link, header: wire.Sub | wire.Unsub) -> None:
        """Another network subscribes or unsubscribes. When it subscribes, the kept values are sent at once."""
        want = (header.net, header.topic)
        if isinstance(header, wire.Unsub):
            link.wants.discard(want)
        elif len(link.wants) < limits.SUBSCRIBED_TOPICS_MAX and want not in link.wants:
            link.wants.add(want)
            if header.net == self._context.settings.net:
                self._say_kept(link, header.topic.encode())
        self.spread()

    def lost(self, link: Link) -> None:
        """A bridge is down: its subscriptions have to be sent again."""
        self._announced = {each for each in self._announced if each[0] != link.net}
        self.spread()

    def _say_kept(self, link: Link, prefix: bytes) -> None:
        for key, frames in self._values.kept(prefix, limits.VALUES_LISTED_MAX):
            if "@" not in key[0] and self._context.bridging.exports_topic(frames[0]):
                self._say(link, self._header(key), frames)

    # Publications

    def published(self, key: tuple[str, str], frames: tuple[bytes, ...]) -> None:
        """A service here has published something."""
        wanting = [link for link in self._links() if self._wants(link, self._context.settings.net, frames[0])]
        if wanting and self._context.bridging.exports_topic(frames[0]):
            header = self._header(key)
            for link in wanting:
                self._say(link, header, frames)

    def _header(self, key: tuple[str, str]) -> wire.Pub:
        self._number = (self._number + 1) % wire.COUNT_MAX
        net = self._context.settings.net
        return wire.Pub(net=net, publisher=key[0], instance=key[1], seq=self._number, path=(net,))

    def heard(self, link: Link, header: wire.Pub, frames: tuple[bytes, ...], now: Now) -> None:
        """A service of another network has published something."""
        own = self._context.settings.net
        seen: Seen = (header.net, header.publisher, header.instance, header.seq)
        if not frames or own in header.path or len(header.path) > wire.HOPS_MAX:
            self._context.count("bridge_dropped", "loop")
            return
        if (header.path[:1], header.path[-1:]) != ((header.net,), (link.net,)):
            self._context.count("bridge_dropped", "malformed")
            return
        if seen in self._seen:
            self._context.count("bridge_dropped", "seen")
            return
        self._seen[seen] = None
        if len(self._seen) > limits.SEEN_MAX:
            del self._seen[next(iter(self._seen))]
        if self._context.bridging.imports_topic(frames[0]) and self._is_wanted(header.net, frames[0]):
            self._values.hear((f"{header.publisher}@{header.net}", header.instance), frames, now)
            self._publishing.publish(PREFIX + header.net.encode() + b"/" + frames[0], *frames[1:])
        if self._context.settings.transit:
            onward = wire.Pub(
                net=header.net,
                publisher=header.publisher,
                instance=header.instance,
                seq=header.seq,
                path=(*header.path, own),
            )
            for further in self._links():
                if further.net not in onward.path and self._wants(further, header.net, frames[0]):
                    self._say(further, onward, frames)

    def _is_wanted(self, net: str, topic: bytes) -> bool:
        return any(each in ("", net) and topic.startswith(prefix.encode()) for each, prefix in self._own.values())

    def _wants(self, link: Link, net: str, topic: bytes) -> bool:
        return link.is_on and any(each == net and topic.startswith(prefix.encode()) for each, prefix in link.wants)

    def _say(self, link: Link, header: wire.Pub, frames: tuple[bytes, ...]) -> None:
        """Send at once, or when there is credit again; then only the last value of each topic (BRI-008)."""
        if link.has_credit(sum(map(len, frames))) and not link.waiting:
            link.say(header, frames)
            return
        key = (header.net, header.publisher, header.instance, frames[0])
        if link.waiting.pop(key, None) is not None:
            self._context.count("bridge_dropped", "credit")
        if len(link.waiting) >= limits.VALUES_LISTED_MAX:
            link.waiting.popitem(last=False)
            self._context.count("bridge_dropped", "credit")
        link.waiting[key] = (header, frames)
