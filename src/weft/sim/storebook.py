"""Records facts about the store: what is durable where, what was lost in which conflict, the final state.

Contents of a journal are read from the batches that become durable. The store core is asked only at rest.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from weft.base.changes import Event, Link
from weft.base.effects import Tell
from weft.base.records import CoreRecord, Entry, Record, Stream, StreamRecord
from weft.cores.store import memory, messages
from weft.cores.store.states import State
from weft.node.node import NodeEffect
from weft.sim.disk import Damage
from weft.wire.store.path import text_of

if TYPE_CHECKING:
    from weft.sim.fabric import Fabric
    from weft.sim.machine import Machine


class Storebook:
    """Records facts for the checkers of the store; does nothing without a store."""

    def __init__(self, fabric: "Fabric") -> None:
        self.fabric, self.recorder = fabric, fabric.recorder
        self.is_wanted = fabric.plan.store is not None

    def _note(self, machine: "Machine", kind: str, what: str, value: Any, text: str = "") -> None:
        self.recorder.note(machine.name, machine.era, kind, what, value)
        if text and self.recorder.listener is not None:
            self.recorder.listener(self.fabric.world.at, machine.name, "store", text)

    # Durable

    def durable(self, machine: "Machine", entries: Iterable[Entry]) -> None:
        """A batch is about to be durable."""
        if self.is_wanted:
            for lsn, record in entries:
                self._durable(machine, lsn, record)

    def _durable(self, machine: "Machine", lsn: int, record: Record) -> None:
        if type(record) is StreamRecord and record.stream == Stream.STORE:
            # Records that return to their maker, as from a former root to the next, were received later than they were made.
            if _is_of(machine, memory.keeper_of(record)) and record.received == record.at:
                self._change(machine, lsn, memory.event_of_stream(record), record)
        elif type(record) is CoreRecord and record.core == memory.CORE:
            remembered = memory.memory_of(record)
            if isinstance(remembered, memory.EventKept):
                self._change(machine, lsn, memory.event_of_kept(remembered), record)
            elif isinstance(remembered, memory.StaleKept):
                event = memory.event_of_kept(remembered.event)
                self.recorder.meet("a stale copy that was removed")
                self._note(machine, "durable", "stale", [lsn, text_of(event.path), *event.chain.head])
            elif isinstance(remembered, memory.Emptied):
                self.recorder.meet("a dropped node that begins anew")
                self._note(machine, "durable", "emptied", [lsn])

    def _change(self, machine: "Machine", lsn: int, event: Event, record: StreamRecord | CoreRecord) -> None:
        is_own, is_shown, before = type(record) is StreamRecord, True, None
        if isinstance(record, StreamRecord):
            before = record.attributes.get("before")
        else:
            remembered = memory.memory_of(record)
            is_shown = isinstance(remembered, memory.EventKept) and remembered.is_shown
        value = None if event.value is None else event.value.hex()
        links = [list(link) for link in event.chain.links]
        fact = [lsn, text_of(event.path), event.tock, value, links, is_own, is_shown, before]
        self.recorder.counts["store own" if is_own else "store others"] += 1
        how = "" if is_shown else ", which has lost"
        text = f"keeps {event.node}:{event.tick} of {fact[1]}: {'deleted' if value is None else value}, tock {event.tock}, chain {links}{how}"
        self._note(machine, "durable", "change", fact, text)

    def _lost(self, machine: "Machine", event: messages.ConflictResolved) -> None:
        lost, kept = event.lost, event.kept
        self.recorder.meet("a conflict")
        if lost["tock"] == kept["tock"]:
            self.recorder.meet("two changes of one tock")
        if "deleted" in lost or "deleted" in kept:
            self.recorder.meet("a conflict with a deletion")
        fact = [event.path, lost["node"], lost["tick"], kept["node"], kept["tick"]]
        self._note(machine, "event", "conflict", fact, f"says that {fact[1]}:{fact[2]} lost to {fact[3]}:{fact[4]}")

    def went_back(self, machine: "Machine") -> None:
        """The disk is empty or an old copy, and the journal goes on from there."""
        if self.is_wanted:
            self._lost_records(machine, machine.disk.next_lsn)

    def harmed(self, machine: "Machine", damages: Sequence[Damage]) -> None:
        """Its journal lost records between two runs."""
        for damage in damages if self.is_wanted else ():
            self._lost_records(machine, damage.record.first_lsn, damage.record.end_lsn)

    def _lost_records(self, machine: "Machine", *lsns: int) -> None:
        self._note(machine, "info", "journal", list(lsns))
        self._note(machine, "ok", "session", [machine.store_clients.asker.title])

    # Sent

    def spoke(self, machine: "Machine", effect: NodeEffect) -> None:
        """An effect is about to be carried out."""
        if self.is_wanted and type(effect) is Tell:
            event = effect.event
            name = EVENTS.get(type(event))
            if name is not None:
                self.recorder.meet(name)
                self._note(machine, "event", "store", [type(event).__name__], f"says {event}")
            if isinstance(event, messages.ConflictResolved):
                self._lost(machine, event)

    # At rest

    def waits(self, machine: "Machine") -> str:
        """What the store of a machine waits for; empty if nothing."""
        core = self._core(machine)
        if core is None:
            return ""
        if core.membership.state is not State.MEMBER:
            return f"its store, which is {core.membership.state.name}"
        others = [other for other in self._cores() if other is not core]
        for node, tick in _missing(core):
            if any(other.replica.book.is_seen(node, tick) for other in others):
                return f"change {node}:{tick}, which others know"
        if others and _tree_digest(core) != _tree_digest(others[0]):
            return "a store that is equal to the others'"
        return machine.store_clients.waits()

    def rest(self, machine: "Machine") -> None:
        """Record what it holds at the end."""
        core = self._core(machine)
        if core is None:
            return
        book = core.replica.book
        entries = [[text_of(event.path), *event.chain.head, event.tock, event.value is None] for event in _all(core)]
        deleted = {node: list(map(list, book.deleted(node))) for node in book.nodes()}
        self._note(machine, "info", "holding", [core.context.name, entries, deleted, dict(book.caps)])
        self._note(machine, "info", "state", ["the store", _tree_digest(core)])
        is_waiting = self.waits(machine)
        for watcher in machine.store_clients.watchers if not is_waiting else ():
            self._note(machine, "ok", "watching", [watcher.name, "rest", 0])

    def _core(self, machine: "Machine") -> Any:
        return machine.node.cores.get("store") if machine.node is not None and self.is_wanted else None

    def _cores(self) -> list[Any]:
        found = [self._core(machine) for machine in self.fabric.machines.values()]
        return [core for core in found if core is not None]


def _is_of(machine: "Machine", name: str) -> bool:
    """Whether the store of this machine may have that name: after a lost disk it goes on as `NAME~2` (STO-034)."""
    return name.partition("~")[0] == machine.name


def _missing(core: Any) -> Iterator[Link]:
    for node, ticks in core.replica.book.missing().items():
        for first, last in ticks:
            yield from ((node, tick) for tick in range(first, last + 1))


def _all(core: Any) -> list[Event]:
    return sorted(core.replica.tree.walk(), key=lambda event: text_of(event.path))


def _tree_digest(core: Any) -> str:
    """Digest of all entries and tombstones."""
    entries = [(text_of(event.path), event.chain.head, event.tock, event.value) for event in _all(core)]
    return blake2b(repr(entries).encode(), digest_size=16).hexdigest()


EVENTS: Final[dict[type, str]] = {
    messages.StoreJoined: "a node that joined the store",
    messages.StoreIncomplete: "a store that lacks what nobody has",
    messages.SplitFound: "a split of the store",
    messages.SplitHealed: "a split of the store that is healed",
    messages.TombstonesPurged: "deletions that are forgotten",
    messages.StaleDropped: "a stale copy dropped",
    messages.IdClash: "two changes of one name",
    messages.NameCollision: "two nodes of one name",
    messages.NameChanged: "a node that goes on under another name",
    messages.NodeDropped: "a node that is dropped",
    messages.ChangesOrphaned: "changes that nobody took",
    messages.BecameReadOnly: "a store that is read only",
    messages.StoreMalformed: "malformed words of the store",
    messages.StoreLinkDown: "a link of the store that is down",
}
"""The situations that events of the store name."""
