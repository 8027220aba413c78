"""Arrived messages: they go down the `in` chain, and stay in the journal until that is finished (CHN-033, CHN-034).

arrive    walk at once; if the walk is finished, nothing is kept; if it waits at a link, its record is journaled
end       an entry that has ended is DONE, within a second: at worst the message comes again, marked as repeated
restart   open messages go down the chain again from the top; those for an absent client wait for a client of its name
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from weft.base.mail import INBOX, Mail, of_record, to_record
from weft.base.now import Now
from weft.base.records import CoreRecord, Record, StreamRecord
from weft.cores.chains import limits, memory
from weft.cores.chains.clientlink import HeldMessage, HolderLink
from weft.cores.chains.context import Context
from weft.cores.chains.memory import Done, Emitted, GaveUp, Handed, InboxKept, TagsKept, Waits
from weft.cores.chains.messages import PressureChanged
from weft.cores.chains.messageview import MessageView
from weft.cores.chains.order import Key
from weft.cores.chains.parcel import GHOST, IN, Parcel
from weft.cores.chains.readers import Readers
from weft.cores.chains.relay import JournalLink
from weft.cores.chains.roster import Chain, Roster
from weft.cores.chains.waiting import Waiting
from weft.cores.chains.walk import Walker

Mid = tuple[bytes, int, int]
TOP: Final[Key] = (-1, 0, 0, 0)
"""The key above every link."""
TAKEN: Final = "taken"
"""Attribute of a record that a filter on `out` has collected."""
RELIEF: Final = 0.8  # of the inbox's room: below it, sends are accepted again (CHN-040)


class Entry:
    """One message that has not ended."""

    __slots__ = ("counted_in", "is_handed", "is_home", "is_under_way", "record", "waits")

    def __init__(self, record: StreamRecord, waits: list[tuple[str, bool]], *, is_under_way: bool = False) -> None:
        self.record, self.waits = record, waits
        self.is_under_way = is_under_way
        """False for a message of an earlier run that has not been sent down its chain again."""
        self.counted_in: list[tuple[str, int, bytes]] = []
        """The results of filters that contain it."""
        self.is_handed = False
        """`forward` or `journal` has made a record of it."""
        self.is_home = False
        """The copy that `forward` had made came back, since its node is the root now."""


class Inbox:
    """All messages on `in`."""

    def __init__(self, context: Context, roster: Roster, walker: Walker, waiting: Waiting) -> None:
        self._context, self._roster, self._walker, self._waiting = context, roster, walker, waiting
        self._open: dict[Mid, Entry] = {}
        self.bytes = 0
        """Payload bytes of all open messages."""
        self._volatile = 0
        """Bytes of memory of messages at links that have no entry here."""
        self._room = context.budget.part("inbox", limits.INBOX_PERCENT, lambda: self.cost)
        self._is_high = False

    def __len__(self) -> int:
        return len(self._open)

    @property
    def cost(self) -> int:
        """Bytes of memory."""
        return self.bytes + limits.PARCEL_COST * len(self._open) + self._volatile

    # Arriving

    def arrive(self, record: StreamRecord, now: Now) -> list[Record]:
        """Mail from another node goes down the chain; returns the records to keep in its place."""
        entry = self._open.get(mid_of(record))
        if entry is not None:
            return self._come_again(entry, record, now)
        chain = self._roster.chain(IN, record.key)
        is_short = len(chain.links) < 2 and self._context.trace is None
        if is_short and (made := self._straight(chain, record, now)) is not None:
            return made
        parcel = self._parcel(record)
        is_durable = not record.attributes.get("mem")
        if not is_durable and not self._room.has_room(weight_of(parcel)):
            self._room.refuse()
            self._walker.enter(parcel)
            self.end(parcel, "overload")
            return []
        made = self._walker.start(parcel, now)
        if not self._is_held(parcel):
            return made
        return self._keep(parcel, record, made) if is_durable else self._hold(parcel, made)

    def _hold(self, parcel: Parcel, made: list[Record]) -> list[Record]:
        """It waits at a link without a journal record, and is lost if this node ends."""
        parcel.weight = weight_of(parcel)
        self._volatile += parcel.weight
        self._feel_pressure()
        return made

    def _come_again(self, entry: Entry, record: StreamRecord, now: Now) -> list[Record]:
        """Mail came that is here already and has not ended: nothing is new, unless it comes home.

        What this node had forwarded stands in its outbox, one deeper. As root, this node is its own parent and takes
        that mail into its own journal; links that still hold the message get it from the entry here (REC-015).
        """
        is_home = self._context.is_root and entry.is_handed and _depth(record) > _depth(entry.record)
        if not is_home or entry.is_home:
            self._context.counters.duplicates += 1
            return []
        entry.is_home = True
        chain, parcel = self._roster.chain(IN, record.key), self._parcel(record)
        chain.flow.accepted += 1
        chain.flow.delivered += 1
        links = [link for link in chain.links if isinstance(link, JournalLink)]
        taking = [link for link in links if link.sees_all or link.takes(MessageView(parcel)) is None]
        made = [link.take(parcel, now) for link in taking]
        return [record for record in made if record is not None]

    def _straight(self, chain: Chain, record: StreamRecord, now: Now) -> list[Record] | None:
        """The usual case, without building a parcel: no link at all, or at the root only the `journal` filter."""
        made: list[Record] = []
        if chain.links:
            link = chain.links[0]
            if type(link) is not JournalLink or not link.sees_all or not self._context.is_root:
                return None
            link.counters.offered += 1
            link.counters.passed += 1
            made.append(link.straight(record, now))
        self._context.next_id()
        chain.flow.accepted += 1
        chain.flow.delivered += 1
        return made

    def has_room(self, parcel: Parcel) -> bool:
        """Whether a message of this node's programs may come in; one caused by another message always may (CHN-040)."""
        if parcel.depth or self._room.has_room(weight_of(parcel)):
            return True
        self._room.refuse()
        return False

    def receive_own(self, sent: Parcel, by: list[Any] | None, now: Now) -> bool:
        """Process a message that this node sent to itself; its records are durable before the sender hears `local`.

        Returns whether there are any: then the journal also knows by whom it was sent.
        """
        mail = sent.mail()
        if self._context.awaits_filters and sent.keep == "disk":
            record = self._record_of(mail, by, now)
            self.restore(record)  # as if an earlier run had left it: it goes down its chain when the filters are known
            self._context.keep(record)
            return True
        parcel = Parcel(self._context.next_id(), IN, mail)
        parcel.sender = sent.sender
        self._context.note_depth(parcel.id, parcel.depth)
        made = self._walker.start(parcel, now)
        if sent.keep != "disk" and self._is_held(parcel):
            self._hold(parcel, made)
        if sent.keep == "disk" and self._is_held(parcel):
            made = self._keep(parcel, self._record_of(mail, by, now), made)
        elif made and by is not None:
            made = [*made, memory.to_record(TagsKept(by[0], [(by[1], "local")]))]
        if made:
            self._context.keep(*made)
        return bool(made)

    def _record_of(self, mail: Mail, by: list[Any] | None, now: Now) -> StreamRecord:
        record = to_record(mail, INBOX, now.wall)
        if by is not None:
            record.attributes["by"] = by
        return record

    def _parcel(self, record: StreamRecord) -> Parcel:
        mail = of_record(record)
        if TAKEN in record.attributes:
            mail = msgspec.structs.replace(mail, sequence=mid_of(record)[2])
        parcel = Parcel(self._context.next_id(), IN, mail)
        self._context.note_depth(parcel.id, parcel.depth)
        return parcel

    def _is_held(self, parcel: Parcel) -> bool:
        return not parcel.is_over or parcel.unconfirmed > 0

    def _keep(self, parcel: Parcel, record: StreamRecord, made: list[Record]) -> list[Record]:
        parcel.is_kept = True
        self._put(mid_of(record), Entry(record, [], is_under_way=True))
        return [record, *self._waits(parcel), *made, *self._handed(parcel, made)]

    def keep_taken(self, record: StreamRecord) -> Parcel:
        """Keep a record that a filter on `out` has collected, until the result is emitted; `taken_of` recognises it."""
        self._put(mid_of(record), Entry(record, [], is_under_way=True))
        self._context.keep(record)
        parcel = self._parcel(record)
        parcel.is_kept = parcel.is_over = True
        return parcel

    # Steps on its way

    def deliver(self, parcel: Parcel, now: Now) -> None:
        """It has passed all links: discard it."""
        self.end(parcel, "delivered")

    def end(self, parcel: Parcel, why: str) -> None:
        """End it."""
        parcel.let_go()
        parcel.is_over = True
        parcel.flow.end(why)
        self._finish(parcel)

    def after(self, parcel: Parcel, made: list[Record]) -> None:
        """It has finished a part of its way: keep the resulting records, in one Persist with its end (CHN-033c)."""
        if made:
            self._context.keep(*made, *self._handed(parcel, made))
        if parcel.sender is GHOST and parcel.carries is None and not parcel.is_kept and self._is_held(parcel):
            self._context.keep(*self._keep(parcel, to_record(parcel.mail(), INBOX, parcel.at), []))
        if parcel.is_kept and parcel.waits:
            self._context.keep(*self._waits(parcel))  # behind a wall: a crash does not forget who has to confirm it
        self._finish(parcel)

    def _finish(self, parcel: Parcel) -> None:
        if parcel.weight and not self._is_held(parcel):
            self._volatile -= parcel.weight
            parcel.weight = 0
            self._feel_pressure()
        if parcel.is_kept and not self._is_held(parcel):
            parcel.is_kept = False
            mid = parcel.sent.mid
            self._drop(mid)
            self._context.keep_soon(memory.to_record(Done(*mid)), limits.DONE_WITHIN_NS)

    def _waits(self, parcel: Parcel) -> list[CoreRecord]:
        """The records that say for whom it is kept, as far as they are not written yet."""
        entry = self._open.get(parcel.sent.mid)
        if entry is None:
            return []
        fresh = [wait for wait in parcel.waits if wait not in entry.waits]
        entry.waits += fresh
        return [memory.to_record(Waits(*parcel.sent.mid, name, confirms)) for name, confirms in fresh]

    def _handed(self, parcel: Parcel, made: list[Record]) -> list[CoreRecord]:
        """A record was made of a message that is still open: after a restart its walk must not make a second one."""
        entry = self._open.get(parcel.sent.mid)
        if not made or entry is None or not parcel.is_kept or not self._is_held(parcel):
            return []
        entry.is_handed = True
        return [memory.to_record(Handed(*parcel.sent.mid))]

    def forget(self, parcel: Parcel, name: str) -> None:
        """It is no longer kept for this reader, but for others."""
        entry = self._open.get(parcel.sent.mid)
        if parcel.is_kept and entry is not None and (name, True) in entry.waits:
            entry.waits.remove((name, True))
            self._context.keep(memory.to_record(GaveUp(*parcel.sent.mid, name)))

    # Memory

    def restore(self, record: StreamRecord) -> None:
        """A record of the journal: the message is open until another record ends it."""
        self._put(mid_of(record), Entry(record, []))

    def recall_counted(self, emitted: Emitted) -> None:
        """Note the messages that are part of an emitted result."""
        for origin, era, numbers in emitted.taken:
            for sequence in numbers:
                entry = self._open.get((origin, era, sequence))
                if entry is not None:
                    entry.counted_in.append((emitted.filter, emitted.start, emitted.group))

    def recall(self, kept: Done | Waits | Handed | InboxKept | GaveUp) -> None:
        """Process one of this core's own records."""
        mid = (kept.origin, kept.era, kept.sequence)
        entry = self._open.get(mid)
        if isinstance(kept, InboxKept):
            content = kept.type, kept.payload, kept.attributes
            entry = Entry(StreamRecord(INBOX, *mid, kept.at, kept.received, *content), list(kept.waits))
            entry.is_handed, entry.counted_in = kept.is_handed, list(kept.counted_in)
            self._put(mid, entry)
        elif isinstance(kept, Done):
            self._drop(mid)
        elif isinstance(kept, Handed):
            if entry is not None:
                entry.is_handed = True
        elif isinstance(kept, GaveUp):
            if entry is not None and (kept.name, True) in entry.waits:
                entry.waits.remove((kept.name, True))
        elif entry is not None and (kept.name, kept.confirms) not in entry.waits:
            entry.waits.append((kept.name, kept.confirms))

    def condense(self) -> Iterator[InboxKept]:
        """The open messages, for a snapshot."""
        for mid, entry in self._open.items():
            record, more = entry.record, (entry.waits, entry.is_handed, entry.counted_in)
            yield InboxKept(*mid, record.at, record.received, record.key, record.payload, record.attributes, *more)

    def walk_again(self, readers: Readers, take_again: Callable[[Parcel, Now], None], now: Now) -> None:
        """After a restart: send open messages down their chains from the top, marked as repeated (CHN-034)."""
        for entry in self._open.values():
            for name in [name for name, confirms in entry.waits if confirms and not entry.is_under_way]:
                readers.expect(name, entry.record.key, now)
        for entry in [entry for entry in self._open.values() if not entry.is_under_way]:
            entry.is_under_way = True
            parcel = self._parcel(entry.record)
            parcel.counted_in = frozenset(entry.counted_in)
            parcel.is_kept = parcel.is_again = True
            parcel.waits, parcel.is_handed = tuple(entry.waits), entry.is_handed
            if TAKEN in entry.record.attributes:
                parcel.is_over = True
                take_again(parcel, now)
                self._finish(parcel)
            else:
                self._walk_again(parcel, now)
        here = [link for chain in self._roster if chain.direction == IN for link in chain.links]
        for link in here:
            if isinstance(link, HolderLink):  # the client came back before this node has read its inbox
                self._walker.holding.return_to(link, now)

    def _walk_again(self, parcel: Parcel, now: Now) -> None:
        self._walker.enter(parcel)
        is_parked = False
        for name, confirms in parcel.waits:
            held = HeldMessage(parcel, TOP, is_copy=confirms)
            parcel.unconfirmed += confirms
            self._context.copies.accepted += confirms
            if self._waiting.admit((IN, parcel.type, name, confirms), held, None, now):
                is_parked = is_parked or not confirms
            elif confirms:
                self._walker.holding.forgo(name, held, "no-room")
        if not is_parked:
            self._walker.resume(parcel, TOP, now)

    def _put(self, mid: Mid, entry: Entry) -> None:
        self._drop(mid)
        self._open[mid] = entry
        self.bytes += len(entry.record.payload)
        self._feel_pressure()

    def _drop(self, mid: Mid) -> None:
        entry = self._open.pop(mid, None)
        if entry is not None:
            self.bytes -= len(entry.record.payload)
            self._feel_pressure()

    def _feel_pressure(self) -> None:
        share = RELIEF if self._is_high else 1
        most = self._room.bytes_max * limits.PRESSURE_PERCENT // 100
        is_high = self.bytes > self._context.settings.inbox_bytes * share or self.cost > most * share
        if is_high is not self._is_high:
            self._is_high = is_high
            self._context.tell(PressureChanged(is_high))


def weight_of(parcel: Parcel) -> int:
    """Bytes of memory of a waiting message."""
    return limits.PARCEL_COST + sum(map(len, parcel.frames))


def _depth(record: StreamRecord) -> int:
    return int(record.attributes.get("depth", 0))


def mid_of(record: StreamRecord) -> Mid:
    """The identity of a record's message; the sequence is negative for a record that `keep_taken` has kept."""
    sequence = -abs(record.sequence) if TAKEN in record.attributes else record.sequence
    return record.origin, record.era or 0, sequence
