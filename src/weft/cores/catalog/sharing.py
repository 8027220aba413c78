"""Entries that cross bridges: offers to other networks, and offers of theirs (BRI-004 to BRI-007)."""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, Now
from weft.cores.catalog import limits
from weft.cores.catalog.answers import state_word
from weft.cores.catalog.book import Book
from weft.cores.catalog.bridgelinks import Key, Link
from weft.cores.catalog.bridgestates import Word
from weft.cores.catalog.context import Context
from weft.cores.catalog.filters import glob
from weft.cores.catalog.instances import Change, Instance
from weft.cores.catalog.records import canonical
from weft.cores.catalog.refusals import Refusal
from weft.cores.catalog.routes import Routes
from weft.wire.catalog import bridges as wire

OFFERED, REMOVED = "offer", "remove"


class Lists:
    """What the settings let cross (BRI-004)."""

    def __init__(self, context: Context) -> None:
        settings = context.settings
        self.exports_name = _any(settings.exports)
        self.imports_name = _any(settings.imports)
        exports, imports = _any(settings.export_topics), _any(settings.import_topics)
        self.exports_topic: Callable[[bytes], bool] = lambda topic: exports(topic.decode("utf-8", "replace"))
        self.imports_topic: Callable[[bytes], bool] = lambda topic: imports(topic.decode("utf-8", "replace"))


class Sharing:
    """Keeps other networks informed of this network's entries, and the other way round."""

    def __init__(
        self,
        context: Context,
        book: Book,
        routes: Routes,
        links: Callable[[], Iterable[Link]],
        turn: Callable[[Link, Word], None],
    ) -> None:
        """`turn`: reports an input to a link's state table."""
        self.context, self.book, self.routes, self.lists = context, book, routes, Lists(context)
        self._links, self._turn = links, turn
        context.listeners.append(self.changed)

    # What comes

    def hear_snapshot(self, link: Link, header: wire.Snapshot, frames: tuple[bytes, ...], now: Now) -> None:
        """A part of the other end's complete list of exports; entries in none of its parts are no longer exported."""
        if header.part == 0:
            link.epoch, link.parts, link.snapshot = header.epoch, 0, set()
        if header.part != link.parts or header.epoch != link.epoch:
            self._turn(link, Word.LOST)
            return
        link.parts += 1
        for frame in frames:
            key = self._take(link, frame)
            if key is not None:
                link.snapshot.add(key)
        if link.parts >= header.parts:
            link.index = header.index
            for key in self.routes.of_link(link.net):
                if key not in link.snapshot:
                    self.routes.withdraw(link.net, key, "withdrawn")
            link.snapshot = set()
            self._turn(link, Word.WHOLE)

    def hear_change(self, link: Link, header: wire.Change, frames: tuple[bytes, ...], now: Now) -> None:
        """One entry has changed; a gap in the numbers makes us ask for the complete list again (BRI-007)."""
        if header.epoch != link.epoch or header.index != link.index + 1:
            self._turn(link, Word.LOST)
            return
        link.index = header.index
        if frames:
            self._take(link, frames[0])
        else:
            self.routes.withdraw(link.net, (header.net, header.name, header.instance), "withdrawn")

    def _take(self, link: Link, frame: bytes) -> Key | None:
        """Apply an offer; an offer that is not for us withdraws this link's earlier offer of the entry."""
        try:
            offer = wire.read_offer(frame)
        except PeerError:
            self.context.count("bridge_dropped", "malformed")
            return None
        own = self.context.settings.net
        why = "loop" if own in offer.path else "hops" if len(offer.path) > wire.HOPS_MAX else ""
        if not why and not (offer.path and offer.path[-1] == link.net and offer.path[0] == offer.net):
            why = "malformed"
        if not why and not self.lists.imports_name(offer.name):
            why = "not-imported"
        try:
            if not why:
                self.routes.put(link.net, offer)
                return offer.key
        except Refusal as refusal:
            why = refusal.code
        self.context.count("bridge_dropped", why)
        self.routes.withdraw(link.net, offer.key, "withdrawn")
        return None

    # What goes

    def changed(self, change: Change) -> None:
        """An instance here has changed: send it to the networks that may know it."""
        if not change.instance.is_imported:
            self._offer_all((self.context.settings.net, *change.instance.key))

    def settle(self) -> None:
        """Update the book from received offers, as far as one turn may change, and pass changes on to other bridges."""
        for key in self.routes.settle():
            if self.context.settings.transit:
                self._offer_all(key)

    def _offer_all(self, key: Key) -> None:
        for link in self._links():
            if link.is_on:
                self._offer(link, key)

    def _offer(self, link: Link, key: Key) -> None:
        """Send an entry's present state to a link, if it differs from the last one sent.

        Later, if there is no credit.
        """
        offer = self._offer_of(link, key)
        encoded = wire.encode_offer(offer) if offer is not None else None
        if encoded == link.offered.get(key):
            link.late.pop(key, None)
            return
        if not link.has_credit(len(encoded or b"")):
            link.late[key] = None
            return
        link.late.pop(key, None)
        link.said_index += 1
        if encoded is None:
            del link.offered[key]
        else:
            link.offered[key] = encoded
        op = REMOVED if encoded is None else OFFERED
        net, name, instance = key
        header = wire.Change(
            epoch=self.context.epoch, index=link.said_index, op=op, net=net, name=name, instance=instance
        )
        link.say(header, () if encoded is None else (encoded,))

    def say_late(self, link: Link) -> None:
        """Send entries that waited for credit, the newest state of each."""
        for key in list(link.late):
            self._offer(link, key)
            if key in link.late:
                return
        while link.waiting:
            waiting, (header, frames) = next(iter(link.waiting.items()))
            if not link.has_credit(sum(map(len, frames))):
                return
            del link.waiting[waiting]
            link.say(header, frames)

    def _offers_to(self, link: Link) -> Iterator[wire.Offer]:
        own = self.context.settings.net
        for instance in self.book.all():
            if not instance.is_imported and (offer := self._offer_of(link, (own, *instance.key))) is not None:
                yield offer
        if self.context.settings.transit:
            for found in self.routes.all_best():
                if (offer := self._offer_of(link, found.key)) is not None:
                    yield offer

    def _offer_of(self, link: Link, key: Key) -> wire.Offer | None:
        net, name, instance_id = key
        if not self.lists.exports_name(name):
            return None
        if net == self.context.settings.net:
            instance = self.book.get(name, instance_id)
            return _offer(instance, net) if instance is not None else None
        found = self.routes.best(key) if self.context.settings.transit else None
        if found is None or link.net in found[1].path or len(found[1].path) >= wire.HOPS_MAX:
            return None
        return msgspec.structs.replace(found[1], path=(*found[1].path, self.context.settings.net))

    def say_all(self, link: Link) -> None:
        """Send the complete list of exports, in parts; numbers go on within one run of this broker."""
        offers = {offer.key: wire.encode_offer(offer) for offer in self._offers_to(link)}
        link.offered = offers
        link.late.clear()
        parts = list(_parted(offers.values()))
        for number, part in enumerate(parts):
            header = wire.Snapshot(epoch=self.context.epoch, index=link.said_index, part=number, parts=len(parts))
            link.say(header, part)


def _offer(instance: Instance, net: str) -> wire.Offer:
    return wire.Offer(
        net=net,
        name=instance.name,
        instance=instance.id,
        path=(net,),
        state=state_word(instance),
        health=instance.health,
        since=instance.since,
        interval_ms=instance.interval_ns // MILLISECOND,
        record=msgspec.Raw(canonical(instance.record)),
    )


def _any(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    found = [glob(pattern) for pattern in patterns]
    return lambda text: any(fits(text) for fits in found)


def _parted(offers: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Parts of a complete list: at least one, each of bounded size."""
    part: list[bytes] = []
    size = 0
    for offer in offers:
        if part and (len(part) >= limits.PART_OFFERS or size + len(offer) > limits.PART_BYTES):
            yield part
            part, size = [], 0
        part.append(offer)
        size += len(offer)
    yield part
