"""The entries of this node: written, merged, kept, restored.

A replica is (E, S): per path the greatest change received, per node the settled ticks. Receiving is a join, so order
and repetition do not matter. Restoring is the same join, without events (STO-012).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from weft.base.changes import Chain, Event, Link, Path
from weft.base.errors import PeerError
from weft.base.now import SECOND
from weft.base.ranges import RangeSet
from weft.base.records import CoreRecord, DamageRecord, Entry, Stream, StreamRecord
from weft.cores.kit.refusals import Refusal
from weft.cores.store import limits, memory
from weft.cores.store.admitting import Admitting
from weft.cores.store.bus import Bus
from weft.cores.store.conflicts import Conflict, Conflicts
from weft.cores.store.context import Context
from weft.cores.store.merging import clash_order, judge, merged_twins
from weft.cores.store.messages import Change, IdClash, LimitExceeded, NameChanged, StaleDropped
from weft.cores.store.rules import Rules
from weft.cores.store.ticks import TickBook
from weft.cores.store.tree import Tree
from weft.cores.store.unsaid import Unsaid
from weft.wire.store.messages import Ticks, Update
from weft.wire.store.pack import LEFT_OUT
from weft.wire.store.path import normal, text_of


class Written(NamedTuple):
    """The effect of an order."""

    before: Event | None
    """The change that stood there before."""
    now: Event | None
    """The change that stands there now; None: there was nothing to delete."""

    @property
    def changed(self) -> bool:
        """Whether there is a new change; deleting an entry without a value makes none (DEL-001)."""
        return self.now is not self.before

    @property
    def event(self) -> Event:
        """The change that stands there."""
        assert self.now is not None, "a deletion of nothing has no event"
        return self.now


class Joined(NamedTuple):
    """The effect of a received change on (E, S)."""

    change: Change
    news: list[Link]
    """The ticks that it settled."""
    is_kept: bool
    """Whether the change itself must be durable, and not only the ticks."""
    conflict: Conflict | None = None


class Replica:
    """One node's copy of the store."""

    def __init__(self, context: Context, bus: Bus) -> None:
        self._context, self._bus = context, bus
        self.tree = Tree(context.settings.keys)
        self.book = TickBook(context, self.tree)
        self.unsaid = Unsaid(context, self.book)
        self.conflicts = Conflicts()
        self.rules = Rules(context, self.tree)
        self.listeners: list[Callable[[Change], None]] = [self.rules.note]
        """Called for each merge and own write, in order, in the same turn."""
        self.removed: list[Callable[[Event], None]] = []
        """Called for each live entry that is removed because it was a copy of something purged."""
        self.purge_horizon = 0
        """The greatest tock of any tombstone purged here."""
        self.names: dict[str, None] = {context.name: None}
        """All names that this node ever had: journal records under them are its own."""
        self._is_named = False
        """Whether the present name is durable."""
        self._over: set[str] = set()
        tree = self.tree
        self.room = context.budget.part("entries", limits.ENTRIES_PERCENT, lambda: tree.cost)
        conflicts = self.conflicts
        self.admitting = Admitting(context, tree, self.book, self.rules, self.room)
        conflicts.room = context.budget.part("conflicts", limits.CONFLICTS_PERCENT, lambda: conflicts.cost)

    # Writing

    def write(  # tidy: each is a property of the change
        self,
        path: Path,
        value: bytes | None,
        *,
        by: str = "",
        via: str = "",
        chain: Chain | None = None,
        until: float | None = None,
        wants_ack: bool = False,
    ) -> Written:
        """Make a change of this node (STO-030); None deletes. `chain`: replaces the entry's chain, for repairs.

        `until`: when it ends by itself, by the wall clock; `wants_ack`: ask the others to confirm it. Refusal, and then
        no tick is taken: bad-path, bad-value, too-large, storage-full, read-only, not-ready, tick-exhausted.
        """
        path = self.admitting.checked(path, value)
        if value is not None and chain is None:
            self.rules.check(path, value)
        before = self.tree.at(path)
        if value is None and chain is None and (before is None or before.value is None):
            return Written(before, before)
        self.admitting.check_room(path, before, value)
        return self.write_checked(path, value, before, by=by, via=via, chain=chain, until=until, wants_ack=wants_ack)

    def write_checked(  # tidy: as `write`
        self,
        path: Path,
        value: bytes | None,
        before: Event | None,
        *,
        by: str = "",
        via: str = "",
        chain: Chain | None = None,
        until: float | None = None,
        wants_ack: bool = False,
    ) -> Written:
        """Make a change that was checked in this turn, alone or in `admitting.check_all`; `before` stands there now. Never refuses."""
        below = chain or (before.chain if before else Chain(()))
        for link in below.links:
            self.book.see(*link)
        links_max = limits.LINKS_MAX if chain else self._context.settings.chain_length
        event = self._next_event(path, value, by, below, links_max, until)
        kept = self.tree.put(event)
        self.book.see(*event.chain.head)
        head = before.chain.head if before else None
        self._context.keep(memory.own_record_of(event, via, head, self._context.now.wall))
        self.unsaid.wrote(event.tick, before)
        self._bus.say(Update(event, wants_ack=wants_ack))
        self._context.count("sets")
        self._announce(Change("newer" if before else "first", kept, before))
        return Written(before, kept)

    def _next_event(  # tidy: as `write`
        self, path: Path, value: bytes | None, by: str, below: Chain, links_max: int, until: float | None
    ) -> Event:
        """The event: own link, then the old chain without the own link (STO-006), with a new tock."""
        context = self._context
        self._name()
        context.tick += 1
        links = ((context.name, context.tick), *(link for link in below.links if link[0] != context.name))
        chain = Chain(links[:links_max], below.is_cut or len(links) > links_max)
        return Event(chain, context.next_tock(), path, value, _in_seconds(context.now.wall), by, until)

    # Merging

    def receive(self, event: Event, peer: str) -> Change:
        """Join a change of any node (STO-011); PeerError, and then nothing has changed (COD-007)."""
        event = self._admitted(event)
        self._context.hear_tock(event.tock)
        joined = self._join(event)
        self._keep(event, joined)
        change = joined.change
        self._context.count("events", change.outcome)
        if change.outcome == "first":
            self._look_at_limits()
        if joined.conflict is not None:
            self._tell_conflict(joined.conflict)
        self._announce(change)
        self.book.tell_ahead()
        return change

    def _admitted(self, event: Event) -> Event:
        """The event as it can be kept: at its normal path, and without a value that is too large."""
        links = event.chain.links
        self._check_links(links)
        self.book.admit(links)
        path = normal(event.path, self._context.settings.keys)
        value = event.value
        if value is not None and len(value) > limits.EVENT_BYTES_MAX:
            value = LEFT_OUT
        if value is event.value and (path is event.path or (path == event.path and _is_same_kind(path, event.path))):
            return event
        return Event(event.chain, event.tock, path, value, event.at, event.by, event.until)

    def _check_links(self, links: tuple[Link, ...]) -> None:
        if not 1 <= len(links) <= limits.LINKS_MAX:
            raise PeerError("bad-chain", f"{len(links)} links")
        if len(links) > 1 and len({node for node, _ in links}) < len(links):
            raise PeerError("bad-chain", "a node stands on it twice")
        if not all(1 <= tick <= limits.TICK_MAX for _, tick in links):
            raise PeerError("bad-chain", "a tick that is none")
        self.book.check(links)
        node, tick = links[0]
        if tick > self.book.caps.get(node, limits.TICK_MAX):
            raise PeerError("dropped", f"{node}:{tick}")

    def _join(self, event: Event) -> Joined:
        """Change (E, S), and nothing else; restoring does the same."""
        current = self.tree.at(event.path)
        node, tick = event.chain.links[0]
        news = [link for link in event.chain.links if self.book.see(*link)]
        if self.book.is_deleted(node, tick) or (
            current is None and event.tock <= self.purge_horizon and event.chain.links[0] not in news
        ):
            return Joined(Change("stale", event, current), news, is_kept=False)
        if current is None:
            return Joined(Change("first", self._put(event), None), news, is_kept=True)
        if current.chain.links[0] == event.chain.links[0]:
            return self._join_twin(event, current, news)
        outcome, reason = judge(event, current)
        if outcome in ("newer", "conflict-taken"):
            kept = self._put(event)
            conflict = self.conflicts.note(kept, current, reason) if reason else None
            return Joined(Change(outcome, kept, current), news, is_kept=True, conflict=conflict)
        conflict = self.conflicts.note(current, event, reason) if reason else None
        return Joined(Change(outcome, event, current), news, is_kept=conflict is not None, conflict=conflict)

    def _put(self, event: Event) -> Event:
        self.book.revive(event.chain.links[1:])
        return self.tree.put(event)

    def _join_twin(self, event: Event, current: Event, news: list[Link]) -> Joined:
        """Two events with one identity: keep the longer chain, and of two contents the greater (STO-011, STO-016)."""
        merged = merged_twins(current, event)
        if merged is None:
            is_greater = clash_order(event) > clash_order(current)
            kept, lost = (self.tree.put(event), current) if is_greater else (current, event)
            conflict = self.conflicts.note(kept, lost, "id-clash")
            outcome = "conflict-taken" if is_greater else "conflict-kept"
            return Joined(
                Change(outcome, event, current), news, is_kept=conflict is not None or is_greater, conflict=conflict
            )
        is_changed = merged is not current
        if is_changed:
            self.tree.put(merged)
        return Joined(Change("duplicate", event, self.tree.at(event.path)), news, is_kept=is_changed)

    def _look_at_limits(self) -> None:
        """Changes of other nodes are always kept; exceeding a limit is told once (STO-005)."""
        tree = self.tree
        for what, present, limit in (
            ("entries", tree.entries, limits.ENTRIES_MAX),
            ("bytes", tree.bytes, limits.STORE_BYTES_MAX),
            ("memory", tree.cost, self.room.full_max),
        ):
            if present <= limit:
                self._over.discard(what)
            elif what not in self._over:
                self._over.add(what)
                self._context.tell(LimitExceeded(what, limit))

    def _keep(self, event: Event, joined: Joined) -> None:
        """Make durable what is new: the change with its links, or only the ticks (STO-031)."""
        context = self._context
        if joined.is_kept:
            is_shown = joined.change.is_shown
            if event.node in context.foreign:
                record = memory.foreign_record_of(event, context.name, context.now.wall, is_shown=is_shown)
                context.keep(record)
            else:
                context.keep(memory.record_of(memory.kept_of(event, is_shown=is_shown)))
        elif joined.news:
            known: dict[str, list[tuple[int, int]]] = {}
            for node, tick in joined.news:
                known.setdefault(node, []).append((tick, tick))
            context.keep(memory.record_of(memory.Settled(known)))

    def _tell_conflict(self, conflict: Conflict) -> None:
        if conflict.reason == "id-clash":
            kept = conflict.kept
            self._context.tell(IdClash(text_of(kept.path), kept.node, kept.tick))
        self._context.tell(conflict.as_event())

    def _announce(self, change: Change) -> None:
        for listener in self.listeners:
            listener(change)

    # Settling

    def settle(self, ticks: Ticks, how: str) -> None:
        """Ticks need not come any more: `known`, or `deleted` together with their tombstones (DEL-004).

        No node can settle an own change that it cannot have received (FLD-021).
        """
        ticks = self.unsaid.spared(ticks)
        if how == "deleted":
            self._delete(ticks)
        else:
            new = self._settled(ticks)
            if new:
                self._context.keep(memory.record_of(memory.Settled(known=memory.ranges_of(new))))
        self.book.tell_ahead()

    def purge(self, heads: Ticks) -> Ticks:
        """Forget these tombstones, heads and links; returns what to send to others as `deleted`.

        Other changes are not touched.
        """
        purged: Ticks = {}
        for node, ticks in self.unsaid.spared(heads).items():
            for event in self.tree.heads_within(node, ticks):
                for name, tick in event.chain.links if event.value is None else ():
                    purged.setdefault(name, RangeSet()).add(tick)
        self.settle(purged, "deleted")
        return purged

    def _settled(self, ticks: Ticks) -> Ticks:
        return {
            node: new
            for node, ranges in ticks.items()
            if self._has_room(node) and (new := self.book.see_all(node, ranges))
        }

    def _has_room(self, node: str) -> bool:
        return self.book.top(node) > 0 or self.book.has_room

    def _delete(self, ticks: Ticks) -> None:
        new, removed = self._deleted(ticks)
        if new:
            self._context.keep(memory.record_of(memory.Settled(deleted=memory.ranges_of(new))))
        for event in removed:
            if event.value is None:
                self._context.count("purged")
                continue
            self._context.keep(memory.record_of(memory.StaleKept(memory.kept_of(event))))
            self._context.tell(StaleDropped(text_of(event.path), event.node, event.tick, event.value.hex()))
            for listener in self.removed:
                listener(event)

    def _deleted(self, ticks: Ticks) -> tuple[Ticks, list[Event]]:
        """Change (E, S): mark ticks as deleted; returns the newly deleted ones and the entries that are removed."""
        new: Ticks = {}
        removed: list[Event] = []
        for node, ranges in ticks.items():
            if not self._has_room(node) or not (found := self.book.delete(node, ranges)):
                continue
            new[node] = found
            for event in self.tree.heads_within(node, found):
                self.tree.remove(event)
                removed.append(event)
                if event.value is None:
                    self.purge_horizon = max(self.purge_horizon, event.tock)
        return new, removed

    # Who we are

    def rename(self, name: str) -> None:
        """Continue under a name without changes (STO-034)."""
        context = self._context
        before, context.name, context.tick = context.name, name, 0
        self.unsaid.forget()
        self._is_named = False
        self._name()
        context.tell(NameChanged(before, name, self.book.top(before)))

    def next_name(self) -> str:
        """`NAME~2`, or the first such name that is not in use."""
        base = self._context.settings.name
        for number in range(2, limits.NODES_MAX + 2):
            suffix = f"~{number}"
            name = base.encode()[: limits.NAME_BYTES_MAX - len(suffix)].decode(errors="ignore") + suffix
            if not self.book.top(name) and name not in self.names:
                return name
        raise Refusal("tick-exhausted", "no name is left")

    def go_on(self) -> None:
        """Continue after the highest own tick that others know: they have confirmed it, or a person did (STO-034)."""
        context = self._context
        context.tick = max(context.tick, self.book.top(context.name))
        self._is_named = False
        self._name()
        self.mended()

    def empty(self) -> None:
        """Forget all entries and ticks: the node comes back after it was dropped (DEL-006)."""
        self._context.keep(memory.record_of(memory.Emptied()))
        self._forget_all()

    def mended(self) -> None:
        """The lost records are back, or no node has them: own ticks are certain again, or the name has changed."""
        if self.admitting.is_damaged:
            self.admitting.is_damaged = False
            self._context.keep(memory.record_of(memory.Mended()))

    def _name(self) -> None:
        """Make the name durable, ahead of the first change under it."""
        if not self._is_named:
            context = self._context
            self._is_named = True
            self.names[context.name] = None
            context.keep(memory.record_of(memory.Named(context.name, context.tick)))

    def _forget_all(self) -> None:
        self.tree.clear()
        self.book.clear()
        self.unsaid.forget()
        self.purge_horizon = 0

    # Conflicts

    def write_again(self, number: int, *, by: str = "", via: str = "") -> Written:
        """Write a change again that lost a conflict, with its original end; Refusal `not-found`."""
        conflict = self.conflicts.get(number)
        if conflict is None or conflict.lost.value == LEFT_OUT:
            raise Refusal("not-found", f"there is no conflict {number} to restore")
        lost = conflict.lost
        written = self.write(lost.path, lost.value, by=by, via=via, until=lost.until)
        self.conflicts.forget(number)
        self._context.keep(memory.record_of(memory.Forgotten(number)))
        return written

    # Memory

    def restore(self, entries: Iterable[Entry]) -> None:
        """Restore from the journal; further pieces in order (STO-032)."""
        for _, record in entries:
            if isinstance(record, StreamRecord):
                if record.stream == Stream.STORE and memory.keeper_of(record) in self.names:
                    self._restore_change(record)
            elif isinstance(record, DamageRecord):
                self.admitting.is_damaged = True
            elif (kept := memory.memory_of(record)) is not None:
                _RESTORERS[type(kept)](self, kept)
        self.book.silence()

    def _restore_change(self, record: StreamRecord) -> None:
        """Own changes restore this node's tick; own changes that it only heard of do not (STO-034)."""
        context = self._context
        if record.origin == context.name:
            context.tick = max(context.tick, record.sequence)
        self._restore_event(memory.event_of_stream(record))

    def _restore_event(self, event: Event) -> None:
        self._context.tock = max(self._context.tock, event.tock)
        self._join(event)

    def _restore_kept(self, kept: memory.EventKept) -> None:
        self._restore_event(memory.event_of_kept(kept))

    def _restore_settled(self, kept: memory.Settled) -> None:
        self._settled(memory.ticks_of(kept.known))
        self._deleted(memory.ticks_of(kept.deleted))

    def _restore_tock_limit(self, kept: memory.TockLimit) -> None:
        """No tock above this was sent: this start begins there (STO-007)."""
        self._context.restore_tock(kept.limit)

    def _restore_name(self, kept: memory.Named) -> None:
        """A new name in the configuration takes precedence over the recorded name.

        A name that the node chose itself stays.
        """
        self.names[kept.name] = None
        if kept.name == self._context.settings.name or _is_later_name(kept.name, self._context.settings.name):
            self._context.name, self._context.tick = kept.name, kept.tick
            self._is_named = True

    def _restore_claim(self, kept: memory.Claimed) -> None:
        self.book.raise_top(kept.name, kept.tick)

    def _restore_counts(self, kept: memory.Counted) -> None:
        self.conflicts.last_number = kept.conflicts
        self.admitting.is_damaged = kept.is_damaged
        self.purge_horizon = kept.purge_horizon

    def condense(self) -> Iterator[CoreRecord]:
        """Records from which `restore` makes an equal replica; equal replicas give equal records (STO-033)."""
        return map(memory.record_of, self._memories())

    def _memories(self) -> Iterator[memory.MemoryKind]:
        context = self._context
        for name in self.names:
            if name != context.name:
                yield memory.Named(name, 0)
        if self._is_named:
            yield memory.Named(context.name, context.tick)
        yield memory.TockLimit(context.tock_limit)
        yield from map(memory.kept_of, self.tree.sorted())
        yield from self.book.condense()
        yield from self.unsaid.condense()
        yield from self.conflicts.condense()
        yield memory.Counted(self.conflicts.last_number, self.admitting.is_damaged, self.purge_horizon)


def _in_seconds(nanoseconds: int) -> float:
    """Seconds, as in updates; shown, never compared."""
    return nanoseconds / SECOND


def _is_same_kind(path: Path, other: Path) -> bool:
    """Whether equal paths have elements of equal types: `1` equals `True`."""
    return all(type(a) is type(b) for a, b in zip(path, other, strict=True))


def _is_later_name(name: str, base: str) -> bool:
    """Whether the node gave itself this name because its own was taken (STO-034)."""
    front, _, number = name.rpartition("~")
    return number.isdecimal() and bool(front) and base.startswith(front)


def _set_mended(replica: Replica, _: memory.Mended) -> None:
    replica.admitting.is_damaged = False


_RESTORERS: Final[dict[type[memory.MemoryKind], Callable[[Replica, Any], object]]] = {
    memory.EventKept: Replica._restore_kept,
    memory.Settled: Replica._restore_settled,
    memory.TockLimit: Replica._restore_tock_limit,
    memory.Named: Replica._restore_name,
    memory.Claimed: Replica._restore_claim,
    memory.StaleKept: lambda _, __: None,
    memory.ConflictKept: lambda replica, kept: replica.conflicts.restore_one(kept),
    memory.LosersKept: lambda replica, kept: replica.conflicts.restore_losers(kept),
    memory.Counted: Replica._restore_counts,
    memory.Forgotten: lambda replica, kept: replica.conflicts.forget(kept.number),
    memory.Mended: _set_mended,
    memory.Heard: lambda replica, kept: replica.unsaid.restore(kept),
    memory.Emptied: lambda replica, _: replica._forget_all(),
}
