"""Entries of other networks: the link each one is taken from, and its instance in the book (BRI-005, BRI-006).

An entry may be offered over several links. The shortest path wins; between equal ones, the link to the network whose
name sorts first. When that link goes down, the next best offer replaces it. An offer whose path contains this network
is not an offer, and withdraws what the same link offered before. So nothing circulates, and an entry that has gone
everywhere disappears.
"""

from collections import OrderedDict
from typing import Final

from weft.base.now import MILLISECOND
from weft.cores.catalog import limits, records
from weft.cores.catalog.book import Book
from weft.cores.catalog.context import Context
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.refusals import Refusal
from weft.cores.catalog.registry import Registry
from weft.cores.catalog.states import State
from weft.wire.catalog.bridges import Offer

Key = tuple[str, str, str]
STATES: Final = {state.name.lower(): state for state in (State.ACTIVE, State.SUSPECT, State.INACTIVE)}
HIDDEN: Final = ("ip", "port", "interfaces", "name", "id", "checks", records.RESERVED_KEY)
"""Keys of a record that have no meaning outside its network: nodes never connect across (BRI-001)."""


def local_name(key: Key) -> tuple[str, str]:
    """Name and instance in the book here.

    >>> local_name(("green", "thermo", "t1"))
    ('thermo@green', 't1')
    """
    return f"{key[1]}@{key[0]}", key[2]


class Routes:
    """All offers, and the imported instances made from them."""

    def __init__(self, context: Context, book: Book, registry: Registry) -> None:
        self._context, self._book, self._registry = context, book, registry
        self._offers: dict[Key, dict[str, Offer]] = {}
        """By entry, by network of the link."""
        self._dirty: OrderedDict[Key, str] = OrderedDict()
        """Entries to update, with the reason in case they are gone."""
        self._gone: OrderedDict[Key, int] = OrderedDict()
        """Unreachable entries, and when each is forgotten."""

    def __len__(self) -> int:
        return len(self._offers)

    def best(self, key: Key) -> tuple[str, Offer] | None:
        """The network over which an entry is taken, and its offer."""
        offers = self._offers.get(key)
        if not offers:
            return None
        return min(offers.items(), key=lambda item: (len(item[1].path), item[0]))

    def all_best(self) -> list[Offer]:
        """The best offer of every entry."""
        return [found[1] for key in self._offers if (found := self.best(key)) is not None]

    def of_link(self, net: str) -> list[Key]:
        """All offers of a link."""
        return [key for key, offers in self._offers.items() if net in offers]

    def of_net(self, net: str) -> list[Key]:
        """The entries of a network."""
        return [key for key in self._offers if key[0] == net]

    def put(self, net: str, offer: Offer) -> None:
        """A link offers an entry; Refusal if it is not valid."""
        if offer.state not in STATES or offer.health not in records.HEALTHS:
            raise Refusal("bad-field", "no entry")
        records.of_another_network(offer.name, bytes(offer.record), HIDDEN)
        if offer.key not in self._offers and len(self._offers) >= limits.IMPORTS_MAX:
            raise Refusal("limit", "too many entries of other networks")
        self._offers.setdefault(offer.key, {})[net] = offer
        self._dirty[offer.key] = "withdrawn"

    def withdraw(self, net: str, key: Key, why: str) -> None:
        """A link no longer offers an entry: `withdrawn`, or the link is down (`link`)."""
        offers = self._offers.get(key)
        if offers is None or net not in offers:
            return
        del offers[net]
        if not offers:
            del self._offers[key]
        self._dirty[key] = why

    # The book

    def settle(self) -> list[Key]:
        """Make the book match the offers, as far as one turn may change; returns the changed entries."""
        changed = []
        while self._dirty and not self._registry.is_busy:
            key, why = self._dirty.popitem(last=False)
            if self._apply(key, why):
                changed.append(key)
        return changed

    def _apply(self, key: Key, why: str) -> bool:
        instance = self._book.get(*local_name(key))
        found = self.best(key)
        if found is not None:
            self._gone.pop(key, None)
            return self._enter(key, found[1]) if instance is None else self._change(instance, found[1])
        if instance is None:
            return False
        if why == "link":
            self._gone[key] = self._context.now.mono + (self._context.settings.reap_ns or limits.REAP_NS)
            if instance.state is not State.INACTIVE:
                self._become(instance, State.INACTIVE, "link")
                self._registry.announce("inactive", instance, "link")
            return True
        self._forget(key, instance, "withdrawn")
        return True

    def _enter(self, key: Key, offer: Offer) -> bool:
        name, instance_id = local_name(key)
        instance = Instance(name, instance_id, f"@{offer.net}", "")
        instance.net, instance.is_imported = offer.net, True
        self._describe(instance, offer)
        self._become(instance, STATES[offer.state], "")
        self._book.put(instance)
        self._registry.announce("register", instance)
        return True

    def _change(self, instance: Instance, offer: Offer) -> bool:
        state, health, before = STATES[offer.state], instance.health, instance.record
        is_another = self._describe(instance, offer)
        if instance.state is not state:
            self._become(instance, state, "")
            self._registry.announce(offer.state, instance)
        elif is_another or health != instance.health:
            self._registry.announce("update" if before != instance.record else "health", instance)
        else:
            return True  # the path to it may have changed
        return True

    def _describe(self, instance: Instance, offer: Offer) -> bool:
        """Update an instance's record from its offer, with its address here for calls.

        Returns whether anything changed.
        """
        record = records.of_another_network(offer.name, bytes(offer.record), HIDDEN)
        relay = self._context.relays.place_of(instance.key) if self._context.relays is not None else {}
        record |= relay
        is_new = record != instance.record
        instance.record, instance.health = record, offer.health
        instance.interval_ns = min(offer.interval_ms, limits.INTERVAL_MS[1]) * MILLISECOND
        self._book.weigh(instance, records.cost_of(record))
        return is_new

    def _become(self, instance: Instance, state: State, reason: str) -> None:
        if instance.state is not state or not instance.since:
            instance.since = self._context.wall
        instance.state, instance.reason = state, reason

    def _forget(self, key: Key, instance: Instance, why: str) -> None:
        self._gone.pop(key, None)
        self._book.drop(instance)
        self._registry.announce("remove", instance, why)
        instance.state = State.NONE

    # Time

    def wake(self, mono: int) -> None:
        """Forget entries that have been unreachable for long enough."""
        while self._gone and (due := next(iter(self._gone.items())))[1] <= mono:
            instance = self._book.get(*local_name(due[0]))
            del self._gone[due[0]]
            if instance is not None and due[0] not in self._offers:
                self._forget(due[0], instance, "reaped")

    def deadline(self, mono: int) -> int | None:
        """When there is something to do."""
        if self._dirty:
            return self._registry.free_at or mono
        return next(iter(self._gone.values()), None)
