"""All registered instances: by name, by owner, by observed address, and counted by state."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final

import msgspec

from weft.cores.catalog.context import Context
from weft.cores.catalog.instances import Change, Instance
from weft.cores.catalog.states import State

Key = tuple[str, str]


class _Noted(msgspec.Struct, frozen=True, gc=False):
    """The values under which an instance was last counted; the next change subtracts exactly these."""

    state: State
    owner: str
    address: str


def _noted(instance: Instance) -> _Noted:
    return _Noted(instance.state, instance.owner, instance.observed_ip)


_index_of: Final = attrgetter("index")


class Book:
    """All instances, in the order of registration.

    Counts are updated with each change, so reading them costs nothing.
    """

    def __init__(self, context: Context) -> None:
        self.counts: Counter[State] = Counter()
        """Instances by state."""
        self.forgetters: list[Callable[[Instance], None]] = []
        """Called after any change or removal of an instance; what they keep for its name is then out of date."""
        self._instances: dict[Key, Instance] = {}
        self._by_name: dict[str, dict[str, Instance]] = {}
        self._names: list[str] = []
        self._noted: dict[Key, _Noted] = {}
        self._owners: Counter[str] = Counter()
        self._addresses: dict[str, dict[Key, Instance]] = {}
        self._states_at: dict[str, Counter[State]] = {}
        self.bytes = 0
        """Bytes of memory that all instances take."""
        self.live_addresses = 0
        """Observed addresses with an ACTIVE or SUSPECT instance."""
        self.silent_addresses = 0
        """Those of them where every live instance is SUSPECT (BEA-023)."""
        context.listeners.insert(0, self._hear)

    def __len__(self) -> int:
        return len(self._instances)

    def get(self, name: str, instance_id: str) -> Instance | None:
        return self._instances.get((name, instance_id))

    def of_name(self, name: str) -> list[Instance]:
        """All instances of a name, in every state, by the index of their last change."""
        found = self._by_name.get(name)
        if found is None:
            return []
        return sorted(found.values(), key=_index_of) if len(found) > 1 else list(found.values())

    def any_of_name(self, name: str) -> Iterable[Instance]:
        """The same as a view, in no particular order; no list is made."""
        return self._by_name.get(name, {}).values()

    def all(self) -> Iterable[Instance]:
        """Every instance, in every state. Copy first if you change the book while iterating."""
        return self._instances.values()

    def names(self) -> list[str]:
        """Every name that has an instance, sorted. This is the book's own list: do not change or keep it."""
        return self._names

    def by_owner(self, owner: str) -> int:
        """How many instances an owner has, in every state."""
        return self._owners[owner]

    def addresses(self) -> dict[str, dict[Key, Instance]]:
        """Every observed address and its instances, in every state."""
        return self._addresses

    def put(self, instance: Instance) -> None:
        """Add an instance; one with the same name and id is replaced."""
        key = instance.key
        before = self._instances.get(key)
        if before is not None and before is not instance:
            self.drop(before)
        if before is not instance:
            self.bytes += instance.cost
        if instance.name not in self._by_name:
            self._by_name[instance.name] = {}
            insort(self._names, instance.name)
        self._by_name[instance.name][instance.id] = self._instances[key] = instance
        self.changed(instance)

    def weigh(self, instance: Instance, cost: int) -> None:
        """Set the bytes of memory that an instance takes."""
        if self._instances.get(instance.key) is instance:
            self.bytes += cost - instance.cost
        instance.cost = cost

    def drop(self, instance: Instance) -> None:
        """Remove an instance; nothing happens if it is not in the book."""
        key = instance.key
        if self._instances.get(key) is not instance:
            return
        del self._instances[key]
        self.bytes -= instance.cost
        of_name = self._by_name[instance.name]
        del of_name[instance.id]
        if not of_name:
            del self._by_name[instance.name]
            del self._names[bisect_left(self._names, instance.name)]
        self._uncount(instance)
        self._forget(instance)

    def changed(self, instance: Instance) -> None:
        """Update the counts after a change of an instance's record, state, health, owner or index.

        `announce` calls it by itself.
        """
        if self._instances.get(instance.key) is instance:
            noted = self._noted.get(instance.key)
            if not instance.is_imported and noted != _noted(instance):
                self._uncount(instance)
                self._count(instance)
        self._forget(instance)

    def _hear(self, change: Change) -> None:
        self.changed(change.instance)

    def _forget(self, instance: Instance) -> None:
        for forget in self.forgetters:
            forget(instance)

    # Counting

    def _count(self, instance: Instance) -> None:
        if instance.is_imported:  # its liveness is not watched here (BEA-023), and it has no owner here
            return
        noted = self._noted[instance.key] = _noted(instance)
        self.counts[noted.state] += 1
        self._owners[noted.owner] += 1
        self._addresses.setdefault(noted.address, {})[instance.key] = instance
        self._recount(noted.address, noted.state, 1)

    def _uncount(self, instance: Instance) -> None:
        noted = self._noted.pop(instance.key, None)
        if noted is None:
            return
        self.counts[noted.state] -= 1
        self._owners[noted.owner] -= 1
        if not self._owners[noted.owner]:
            del self._owners[noted.owner]
        self._recount(noted.address, noted.state, -1)
        at_address = self._addresses[noted.address]
        del at_address[instance.key]
        if not at_address:
            del self._addresses[noted.address], self._states_at[noted.address]

    def _recount(self, address: str, state: State, by: int) -> None:
        """The states at one address have changed: count the address again."""
        states = self._states_at.get(address)
        if states is None:
            states = self._states_at[address] = Counter()
        self._tally(states, -1)
        states[state] += by
        self._tally(states, 1)

    def _tally(self, states: Counter[State], by: int) -> None:
        if states[State.ACTIVE]:
            self.live_addresses += by
        elif states[State.SUSPECT]:
            self.live_addresses += by
            self.silent_addresses += by
