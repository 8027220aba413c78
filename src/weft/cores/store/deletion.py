"""When a deletion may be forgotten, and how nodes that do not come back are dropped (DEL-002..007).

A tombstone is purged once every deleter has reported that it has it, and that it has all changes that any deleter made
before having it. Then no change that the tombstone beat is still on its way, and a later repetition is recognised as
settled. Real MoaT-KV servers send no such reports: with them among the deleters, the presence of all of them for four
tags in a row counts instead.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from weft.base.changes import Event, Link, Path
from weft.base.errors import PeerError
from weft.base.memories import Memories
from weft.base.now import Now
from weft.base.ranges import RangeSet
from weft.base.records import CoreRecord, Entry
from weft.cores.kit.refusals import Refusal
from weft.cores.store import limits, memory
from weft.cores.store.bus import Bus
from weft.cores.store.context import Context
from weft.cores.store.messages import (
    BecameReadOnly,
    Change,
    ChangesOrphaned,
    DropNode,
    NodeDropped,
    SetDeleters,
    StoreRefused,
    TombstonesPurged,
)
from weft.cores.store.replica import Replica
from weft.cores.store.ticks import in_parts
from weft.wire.store import pack
from weft.wire.store.messages import Info, Ticks

DELETERS: Final[Path] = (None, "actor", "del")
DROPPED: Final[Path] = (None, "dropped")


class OrphansKept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Changes of this node that no other node accepted, because it had been dropped."""

    events: list[memory.EventKept]


class OrphansReplayed(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """They were written again."""


MEMORIES: Final[Memories[OrphansKept | OrphansReplayed]] = Memories(memory.CORE, {48: OrphansKept, 49: OrphansReplayed})


class Buried(msgspec.Struct, gc=False):
    """A tombstone, and when it first came here."""

    at: int
    tock: int
    """This node's tock at that time (PNG-037)."""


class Deletion:
    """Purges tombstones that all deleters have."""

    def __init__(self, context: Context, bus: Bus, replica: Replica) -> None:
        self._context, self._bus, self._replica = context, bus, replica
        settings = context.settings
        self._clock = settings.cycle_ns if settings.dialects == ("moat",) else settings.clock_ns
        self.positions: Callable[[], list[str]] = list
        """Names on the chain of pings, its head first."""
        self.is_member: Callable[[], bool] = lambda: True
        """Whether this node has what the others have."""
        self.on_rejoin: Callable[[Now], None] | None = None
        """This node was dropped; it is now empty and has another name, and has to join again."""
        self.on_ask: Callable[[list[str], Ticks, Now], None] | None = None
        """Asks one of these nodes, over its client port, which of the ticks are forgotten (`check_deleted`)."""
        self.orphans: list[Event] = []
        self._haves: dict[str, Ticks] = {}
        self._heard: dict[str, int] = {}
        self._since: int | None = None  # since when this node would notice another one
        self._buried: dict[Link, Buried] = {}
        self._reported: Ticks = {}
        self._rounds = 0
        self._due_at: int | None = None
        self._lagging: dict[str, None] = {}
        self._is_dropped = False

    # Hearing

    def heard(self, node: str, now: Now) -> None:
        """Any message of that node shows that it is present."""
        if node in self._heard or len(self._heard) < limits.NODES_MAX:
            self._heard[node] = now.mono

    def hear_info(self, info: Info, peer: str, now: Now) -> None:
        """`have`: what that node has durably; it replaces its earlier reports about the same nodes."""
        if not info.node:
            return
        self.heard(info.node, now)
        if info.have is not None and info.node in self._heard:
            top = self._replica.book.top
            self._haves.setdefault(info.node, {}).update({node: had for node, had in info.have.items() if top(node)})

    def listen(self, change: Change) -> None:
        """A merge or own write: note since when a deletion is here, and process entries of dropped nodes."""
        event = change.event
        if not change.is_shown:
            return
        if event.is_deletion:
            self._bury(event, self._context.now.mono)
        if len(event.path) == len(DROPPED) + 1 and event.path[: len(DROPPED)] == DROPPED:
            self._hear_dropped(event)

    def _bury(self, event: Event, at: int) -> None:
        self._buried[event.chain.head] = Buried(at, self._context.tock)
        tree = self._replica.tree
        if len(self._buried) > 2 * tree.tombstones + limits.BURIED_SPARE:  # most are written again or forgotten since
            found = {head: tree.by_link(head) for head in self._buried}
            self._buried = {head: self._buried[head] for head, event in found.items() if event and event.is_deletion}
        if self._due_at is None:
            self._due_at = at + self._clock

    # Time

    def wake(self, now: Now) -> None:
        """Report what this node has; forget what may be forgotten; leave, if this node was dropped."""
        if self._is_dropped:
            self._start_anew(now)
        for node in list(self._lagging):
            self._raise_cap(node)
        if self._due_at is None or self._due_at > now.mono:
            return
        self._due_at = now.mono + self._clock
        if self._rounds % limits.HAVE_CLOCKS == 0 and self.is_member():
            self._say_have(is_full=self._rounds % (limits.HAVE_CLOCKS * limits.HAVE_FULL) == 0)
        self._rounds += 1
        if self.positions()[:1] == [self._context.name] and self.is_member():
            self._purge(now)
            self._drop_absent(now)

    def deadline(self) -> int | None:
        """When something is due, in monotonic nanoseconds."""
        return self._context.now.mono if self._is_dropped or self._lagging else self._due_at

    def recall(self, now: Now) -> None:
        """After a restore: deletions count as just received; dropped nodes stay dropped."""
        for entry in self._replica.tree.walk():
            if entry.is_deletion:
                self._bury(entry, now.mono)
        for path in self._replica.tree.children(DROPPED):
            dropped = self._replica.tree.get(path)
            if dropped is not None:
                self._hear_dropped(dropped)
        self._due_at = self._since = now.mono

    # Forgetting deletions

    def _say_have(self, *, is_full: bool) -> None:
        """DEL-002. The report covers whole nodes only, so that it can replace earlier ones."""
        seen = {node: self._replica.book.seen(node) for node in self._replica.book.nodes()}
        part: Ticks = {}
        room = limits.RANGES_PER_INFO
        for node, ranges in seen.items():
            if not is_full and self._reported.get(node) == ranges:
                continue
            cut = RangeSet(list(ranges)[: limits.RANGES_PER_INFO])  # reporting less than it has does no harm
            if len(cut) > room:
                self._bus.say(self._context.info(have=part))
                part, room = {}, limits.RANGES_PER_INFO
            part[node] = cut
            room -= len(cut)
        self._reported = seen
        if part:
            self._bus.say(self._context.info(have=part))

    @property
    def dropped(self) -> dict[str, int]:
        """Dropped nodes, each with the last of its changes that counts."""
        return self._replica.book.caps

    @property
    def deleters(self) -> list[str]:
        """The nodes that must have a deletion before it is forgotten (DEL-003)."""
        entry = self._replica.tree.get(DELETERS)
        named = names_in(entry.value) if entry is not None else []
        return [name for name in named or self._replica.book.nodes() if name not in self.dropped]

    def _purge(self, now: Now) -> None:
        """At the head of the chain: forget what all deleters have, and tell the others (DEL-004)."""
        deleters = [name for name in self.deleters if name != self._context.name]
        if not self._buried or self._context.foreign.keys() & set(deleters):
            return
        if self._are_here(deleters, now) and self._are_level(deleters):
            before = now.mono - limits.BURIED_CLOCKS * self._clock
            self._forget([head for head in self._old(before) if self._have_all(head, deleters)])

    def _are_here(self, deleters: list[str], now: Now) -> bool:
        since = now.mono - limits.BURIED_CLOCKS * self._clock
        return all(name in self._bus.members or self._heard.get(name, since) > since for name in deleters)

    def _are_level(self, deleters: Iterable[str]) -> bool:
        """Whether each deleter has all that any of them had changed by the time of its report.

        Then no change that one of their tombstones beats is still on its way: a node with a tombstone overrides it only
        with greater changes (DEL-005).
        """
        book, own = self._replica.book, self._context.name
        haves = {name: self._haves.get(name, {}) for name in deleters}
        haves[own] = {node: book.seen(node) for node in book.nodes()}
        last = {name: have.get(name, RangeSet()).highest for name, have in haves.items()}
        return all(have.get(name, RangeSet()).covers(1, tick) for have in haves.values() for name, tick in last.items())

    def _old(self, before: int) -> list[Link]:
        """Tombstones older than `before`, a bounded number; those examined come last the next time."""
        found: list[Link] = []
        for head in list(self._buried)[: limits.PURGED_MAX]:
            buried = self._buried.pop(head)
            event = self._replica.tree.by_link(head)
            if event is None or not event.is_deletion:
                continue
            self._buried[head] = buried
            if buried.at < before:
                found.append(head)
        return found

    def _have_all(self, head: Link, deleters: list[str]) -> bool:
        """Whether each of them has reported the deletion, and everything before it."""
        event = self._replica.tree.by_link(head)
        assert event is not None, head
        return all(
            tick in self._haves.get(name, {}).get(node, RangeSet())
            for name in deleters
            for node, tick in event.chain.links
        )

    def _forget(self, heads: list[Link]) -> None:
        """Purge these, and tell the others."""
        ticks: Ticks = {}
        for node, tick in heads:
            ticks.setdefault(node, RangeSet()).add(tick)
            self._buried.pop((node, tick), None)
        if not ticks:
            return
        purged = self._replica.purge(ticks)
        self._context.tell(TombstonesPurged(len(heads)))
        # A real server would delete an entry that was written again meanwhile (HEA-004).
        ears = list(self._bus.members) if self._context.foreign else [""]
        for part in in_parts(purged):
            for ear in ears:
                self._bus.say(self._context.info(deleted=part), ear)

    def tagged(self, first: int, names: list[str], now: Now) -> None:
        """All deleters of the moat dialect have been present since tock `first` (PNG-037).

        Each node forgets on its own.
        """
        deleters = [name for name in names if name != self._context.name and name not in self._context.foreign]
        if not self._replica.book.is_whole or not self.is_member():
            return
        heads = [head for head in self._old(now.mono) if self._buried[head].tock < first]
        if deleters:
            heads = [head for head in heads if self._have_all(head, deleters)]
        self._forget(heads)

    def away(self, names: list[str], now: Now) -> None:
        """After a long absence, others may have forgotten deletions: ask which of our entries are gone (DEL-007)."""
        if self.on_ask is not None and names:
            book = self._replica.book
            present = {node: book.present(node) for node in book.nodes()}
            self.on_ask(names, self._replica.unsaid.spared(present), now)

    def set_deleters(self, order: SetDeleters, now: Now) -> None:
        """Name the deleters (DEL-003); empty: all nodes."""
        value = pack.pack({"nodes": list(order.nodes)}) if order.nodes else None
        try:
            self._replica.write(DELETERS, value)
        except Refusal as error:
            self._context.reply(order.ticket, StoreRefused(error.code, error.why))
        else:
            self._context.reply(order.ticket, {"deleters": self.deleters})

    # Nodes that do not come back

    def drop(self, order: DropNode, now: Now) -> None:
        """The order to drop a node."""
        try:
            tick = self.drop_node(order.node)
        except Refusal as error:
            self._context.reply(order.ticket, StoreRefused(error.code, error.why))
        else:
            self._context.reply(order.ticket, {"node": order.node, "tick": tick})

    def _drop_absent(self, now: Now) -> None:
        """At the head of the chain: drop nodes away for too long, while most are present: neither half drops the other."""
        context, since = self._context, self._since
        if not (longest := context.settings.absent_max_ns) or since is None or context.foreign:
            return
        others = [name for name in self._replica.book.nodes() if name not in self.dropped and name != context.name]
        lately = now.mono - limits.BURIED_CLOCKS * self._clock
        here = [name for name in others if name in self._bus.members or self._heard.get(name, 0) > lately]
        are_most = 2 * (len(here) + 1) > len(others) + 1
        for name in others if are_most else []:
            if name not in here and max(since, self._heard.get(name, 0)) + longest <= now.mono:
                try:
                    self.drop_node(name)
                except Refusal as error:
                    context.count("deletion", error.code)

    def drop_node(self, node: str) -> int:
        """Stop waiting for a node, and accept none of its changes after this tick (DEL-006); Refusal."""
        self._check_drop(node)
        tick = self._replica.book.seen(
            node
        ).highest  # ticks only heard of do not count; the node brings them if it returns
        self._replica.write((*DROPPED, node), pack.pack({"tick": tick}))
        self._bus.say(self._context.info(node_drop=(node,)))
        return tick

    def _check_drop(self, node: str) -> None:
        if node == self._context.name:
            raise Refusal("bad-request", "a node does not drop itself")
        if not self._replica.book.top(node):
            raise Refusal("not-found", f"no node called {node!r} has ever changed this store")
        if self._context.foreign and any(self._live_heads(node)):
            raise Refusal("bad-request", f"{node} heads live entries, which real MoaT-KV servers would forget")

    def _live_heads(self, node: str) -> Iterable[Event]:
        found = (self._replica.tree.by_link((node, tick)) for tick in list(self._replica.tree.heads_of(node)))
        return (event for event in found if event is not None and not event.is_deletion)

    def _hear_dropped(self, event: Event) -> None:
        """An entry about a dropped node: its highest accepted tick; if deleted, the node is normal again."""
        node, tick = event.path[-1], tick_in(event.value)
        if not isinstance(node, str):
            return
        if tick is None:
            self.dropped.pop(node, None)
        elif node == self._context.name:
            self._is_dropped = True
        else:
            is_new = self.dropped.get(node) != tick
            self.dropped[node] = tick
            self._haves.pop(node, None)
            if self._replica.book.seen(node).highest > tick:
                self._lagging[node] = None
            if is_new:
                self._context.tell(NodeDropped(node, tick))

    def _raise_cap(self, node: str) -> None:
        """This node knows more changes of a dropped node than the limit allows: raise it, so that they stay accepted."""
        del self._lagging[node]
        tick = self._replica.book.seen(node).highest
        if self.is_member() and tick > self.dropped.get(node, tick):
            try:
                self._replica.write((*DROPPED, node), pack.pack({"tick": tick}))
            except Refusal as error:
                self._context.count("deletion", error.code)

    def _start_anew(self, now: Now) -> None:
        """This node was dropped: set its unaccepted changes aside, and come back empty under another name (DEL-006)."""
        self._is_dropped = False
        entry = self._replica.tree.get((*DROPPED, self._context.name))
        last = tick_in(entry.value) if entry is not None else None
        if last is None:
            return
        orphans = [event for event in self._own_heads() if event.tick > last]
        self._context.tell(BecameReadOnly("dropped"))
        self._context.tell(ChangesOrphaned(len(orphans)))
        self.orphans += orphans
        self._context.keep(*_records_of(orphans))
        name = self._replica.next_name()
        self._replica.empty()
        self._replica.rename(name)
        self._buried.clear()
        self._haves.clear()
        self._reported.clear()
        if self.on_rejoin is not None:
            self.on_rejoin(now)

    def _own_heads(self) -> list[Event]:
        heads = self._replica.tree.heads_of(self._context.name)
        found = (self._replica.tree.by_link((self._context.name, tick)) for tick in sorted(heads))
        return [event for event in found if event is not None]

    def replay(self, by: str = "") -> int:
        """Write set-aside changes again; returns how many. Refusal, and then the remaining ones stay aside."""
        count = 0
        try:
            while self.orphans:
                event = self.orphans[0]
                self._replica.write(event.path, event.value, by=by, via="replay", until=event.until)
                del self.orphans[0]
                count += 1
        finally:
            if count:
                self._context.keep(MEMORIES.to_record(OrphansReplayed()), *_records_of(self.orphans))
        return count

    # Memory

    def restore(self, entries: Iterable[Entry]) -> None:
        """Restore the changes that were set aside."""
        for _, record in entries:
            if isinstance(record, CoreRecord) and record.core == memory.CORE and record.kind in MEMORIES.kinds:
                kept = MEMORIES.from_record(record)
                events = kept.events if isinstance(kept, OrphansKept) else []
                self.orphans = [*self.orphans, *map(memory.event_of_kept, events)] if events else []

    def condense(self) -> Iterable[CoreRecord]:
        """The same, for a snapshot."""
        return _records_of(self.orphans)


def _records_of(orphans: list[Event]) -> Iterator[CoreRecord]:
    """Records of changes that are set aside, each of bounded size."""
    part: list[memory.EventKept] = []
    size = 0
    for event in orphans:
        part.append(memory.kept_of(event))
        size += limits.ENTRY_COST + len(event.value or b"")
        if size >= limits.ORPHANS_BYTES:
            yield MEMORIES.to_record(OrphansKept(part))
            part, size = [], 0
    if part:
        yield MEMORIES.to_record(OrphansKept(part))


def names_in(value: bytes | None) -> list[str]:
    """The names that an entry of deleters lists; empty if it has any other content.

    >>> names_in(pack.pack({"nodes": ["n1", "n2"]}))
    ['n1', 'n2']
    """
    names = _table_in(value).get("nodes")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list | tuple) else []


def tick_in(value: bytes | None) -> int | None:
    """The last tick that counts of a dropped node.

    >>> tick_in(pack.pack({"tick": 7}))
    7
    """
    tick = _table_in(value).get("tick")
    return tick if isinstance(tick, int) and not isinstance(tick, bool) and tick >= 0 else None


def _table_in(value: bytes | None) -> dict[Any, Any]:
    try:
        found = pack.unpack(value) if value else None
    except PeerError:
        return {}
    return found if isinstance(found, dict) else {}
