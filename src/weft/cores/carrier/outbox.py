"""The journal as an outbox: which of its records go up next, and which have arrived (CHN-032, CHN-039, MEA-025).

Every carried record behind the safe cursor waits here, in lsn order. None overtakes another, so spooled records are
sent before new ones. A record gets its hop number when it is sent for the first time.

    safe <= given,  held <= sent <= given      (hop numbers of this era; a drop may move safe beyond held)

      durable at the root      held by the parent      in flight          not sent on this link
    ─────────────────────────┬───────────────────────┬──────────────────┬────────────────────────►
                            safe                    held               sent          lsn order

The records behind `held` up to `_upto` (an lsn) are in memory, as far as the limit allows; all others are read back
with `fetch`. For each number between safe and given, its lsn is remembered.
"""

from array import array
from bisect import bisect_right
from typing import TypeGuard

import msgspec

from weft.base.budget import Part
from weft.base.errors import PeerError
from weft.base.mail import OUTBOX, TICKET
from weft.base.records import CARRIED, Carried, Entry, Record, StreamRecord
from weft.base.spool import FetchRecords, RecordsFetched
from weft.cores.carrier import limits
from weft.cores.carrier.context import Counters
from weft.cores.carrier.messages import MailFailed, MailReached
from weft.wire.carried import MAIL_STREAMS, Uncarriable, gone_item, is_mail, to_item
from weft.wire.hop import Hop, HopItem
from weft.wire.multipart import ITEM_FRAMES_MAX, MULTIPART_FRAMES_MAX

Slot = tuple[int, Carried | None, int]
"""lsn, record, bytes. The record is None if there is nothing to send any more and only the hop number counts."""


def is_carried(record: Record) -> TypeGuard[Carried]:
    """Whether a record goes up the tree. Of mail, only mail to the parent, and never the record that it was lost."""
    if not isinstance(record, CARRIED):
        return False
    return record.stream not in MAIL_STREAMS or (record.stream == OUTBOX and type(record) is StreamRecord)


def weight(record: Carried) -> int:
    """Bytes that a record takes on disk and on the link, estimated."""
    return limits.RECORD_BYTES + (len(record.payload) if type(record) is StreamRecord else 0)


def header_bytes(item: HopItem) -> int:
    """Bytes that an item takes in the header of its batch, estimated; for mail, an upper bound."""
    size = limits.VIA_BYTES * len(item.via)
    if item.to is None:
        return size + limits.ITEM_HEADER_BYTES
    return size + limits.MAIL_HEADER_BYTES + len(item.fmt.encode())


class Ledger:
    """lsn, weight and time of the hop numbers `base + 1`, `base + 2` …; memory 20 bytes each."""

    def __init__(self) -> None:
        self.base = 0
        self._skip = 0
        self._lsns, self._weights, self._ats = array("Q"), array("I"), array("q")

    def append(self, lsn: int, size: int, at: int) -> None:
        """Append the next number."""
        self._lsns.append(lsn)
        self._weights.append(size)
        self._ats.append(at)

    def lsn(self, number: int) -> int:
        return self._lsns[self._skip + number - self.base - 1]

    def at(self, number: int) -> int:
        return self._ats[self._skip + number - self.base - 1]

    def number_at(self, lsn: int) -> int:
        """The highest number whose record stands at or before `lsn`."""
        return self.base + bisect_right(self._lsns, lsn, self._skip) - self._skip

    def forget(self, upto: int) -> int:
        """Drop all numbers up to `upto`; returns the sum of their weights."""
        end = self._skip + upto - self.base
        freed = sum(self._weights[self._skip : end])
        self.base, self._skip = upto, end
        if self._skip > len(self._lsns) // 2:
            del self._lsns[: self._skip], self._weights[: self._skip], self._ats[: self._skip]
            self._skip = 0
        return freed


class Batch(msgspec.Struct):
    """The result of one `take`: a hop, and the records that had to be left out of it."""

    hop: Hop
    left_out: list[tuple[Carried, str]]


class Outbox:
    """The records that go up, by hop number and by lsn."""

    def __init__(self, node: bytes, era: int, memory_bytes: int, counters: Counters) -> None:
        self._node, self._era, self._counters = node, era, counters
        self.safe = self.held = self.sent = self.given = 0
        self.safe_lsn = 0
        """All carried records up to here are safe or given up."""
        self.seen_lsn = 0
        """The last carried record that the journal has."""
        self._ledger = Ledger()
        self._slots: list[Slot] = []
        self._bytes = self._flight_bytes = 0
        self.room = Part("records", lambda: self._bytes, cap=memory_bytes)
        """The memory for waiting records, a part of the budget. It does not shrink when memory is short: the records
        have to be sent.
        """
        self.is_on_disk_only = False
        """Whether new records wait only in the journal, although there is room in memory."""
        self._upto = 0
        self._fetching: int | None = None
        self._late: list[Slot] = []
        self._late_from = self._late_bytes = 0
        self._fruitless = 0
        self.answers: list[MailReached | MailFailed] = []
        """Answers for senders of mail; whoever sends them empties the list."""
        self.home_lsn = 0
        """Mail up to this lsn was given to this node's own `in` chain while it was a root."""

    @property
    def cost(self) -> int:
        """Bytes of the records in memory."""
        return self._bytes

    # What the journal has

    def resume(self, safe_lsn: int, seen_lsn: int) -> None:
        """After a restart: everything behind `safe_lsn` counts as unsent (CHN-032)."""
        self.safe_lsn = self._upto = max(self.safe_lsn, safe_lsn)
        self.seen_lsn = max(self.seen_lsn, seen_lsn)

    def add(self, first_lsn: int, records: tuple[Record, ...]) -> None:
        """Add records that the journal has now; they stay in memory unless a backlog is on disk."""
        is_at_end = self._upto >= self.seen_lsn
        counters = self._counters
        for lsn, record in enumerate(records, first_lsn):
            if not is_carried(record):
                continue
            size = weight(record)
            self.seen_lsn = lsn
            counters.spool_records += 1
            counters.spool_bytes += size
            if is_at_end and self._bytes < self.room.full_max and not self.is_on_disk_only:
                self._slots.append((lsn, record, size))
                self._bytes += size
                continue
            if is_at_end:
                is_at_end = False
                self._upto = lsn - 1
            if self._fetching is not None:
                self._keep_late((lsn, record, size))
        if is_at_end:
            self._upto = max(self._upto, first_lsn + len(records) - 1)

    def _keep_late(self, slot: Slot) -> None:
        if self._late_bytes <= limits.LATE_BYTES_MAX:
            self._late.append(slot)
            self._late_bytes += slot[2]

    def fetch(self, holder: str) -> FetchRecords | None:
        """What to read back now, if memory has run out of records; one fetch at a time."""
        if self._fetching is not None or self._upto >= self.seen_lsn:
            return None
        if self._bytes - self._flight_bytes >= limits.FETCH_BYTES or self._bytes >= self.room.full_max:
            return None
        self._fetching = self._upto
        self._late, self._late_bytes, self._late_from = [], 0, self.seen_lsn + 1
        self._counters.fetches += 1
        return FetchRecords(holder, self._upto, limits.FETCH_BYTES)

    def fetched(self, order: RecordsFetched) -> int:
        """Add records that were read back. Returns ns to wait before the next fetch, if there was nothing new."""
        if order.after != self._fetching:
            return 0
        self._fetching = None
        late, self._late = self._late, []
        if order.after != self._upto:
            return 0  # the link has continued elsewhere meanwhile
        if order.upto <= order.after:
            self._fruitless += 1
            return min(limits.FETCH_RETRY_NS << min(self._fruitless - 1, 10), limits.FETCH_RETRY_MAX_NS)
        self._fruitless = 0
        self._extend(order.entries, order.upto)
        if self._late_bytes <= limits.LATE_BYTES_MAX and self._upto >= self._late_from - 1:
            late = [slot for slot in late if slot[0] > self._upto]
            self._slots += late
            self._bytes += sum(slot[2] for slot in late)
            self._upto = max(self._upto, self.seen_lsn)
        return 0

    def _extend(self, entries: tuple[Entry, ...], upto: int) -> None:
        slots: list[Slot] = [(lsn, rec, weight(rec)) for lsn, rec in entries if is_carried(rec)]
        number = self.held + len(self._slots)
        last = min(self.given, self._ledger.number_at(upto))
        if number < last:
            slots = self._fill(slots, number, last)
        self._slots += slots
        self._bytes += sum(slot[2] for slot in slots)
        self._upto = upto
        if slots:
            self.seen_lsn = max(self.seen_lsn, slots[-1][0])

    def _fill(self, slots: list[Slot], number: int, last: int) -> list[Slot]:
        """Keep the place of numbers whose records cannot be read any more (CHN-041)."""
        found = {slot[0]: slot for slot in slots}
        given = [self._ledger.lsn(each) for each in range(number + 1, last + 1)]
        end = given[-1]
        return [found.get(lsn, (lsn, None, 0)) for lsn in given] + [slot for slot in slots if slot[0] > end]

    # What goes up

    def take(self, room: int, room_bytes: int, wall: int = 0) -> Batch | None:
        """The next batch to send at `wall`.

        At most `room` messages and `room_bytes` are then unacknowledged in total.
        """
        start = self.sent - self.held
        room = min(room - start, limits.BATCH_MESSAGES_MAX)
        if room <= 0 or start >= len(self._slots):
            return None
        items: list[HopItem] = []
        frames: list[bytes] = []
        left_out: list[tuple[Carried, str]] = []
        first = self.sent + 1
        size = header = 0
        for index in range(start, min(start + room, len(self._slots))):
            slot = self._slots[index]
            if items and size + slot[2] > limits.BATCH_BYTES_MAX:
                break
            if self._flight_bytes and self._flight_bytes + slot[2] > room_bytes:
                break
            if len(frames) + ITEM_FRAMES_MAX >= MULTIPART_FRAMES_MAX:
                break
            item, parts = self._item(index, left_out, wall)
            items.append(item)
            frames += parts
            size += slot[2]
            self._flight_bytes += slot[2]
            header += header_bytes(item)
            if header > limits.BATCH_HEADER_BYTES:
                break
        if not items:
            return None
        return Batch(Hop(self._era, first, items, frames), left_out)

    def _item(self, index: int, left_out: list[tuple[Carried, str]], wall: int) -> tuple[HopItem, list[bytes]]:
        lsn, record, size = self._slots[index]
        self.sent += 1
        if self.sent > self.given:
            self.given = self.sent
            at = record.at if type(record) is StreamRecord else 0
            self._ledger.append(lsn, size, at)
            self._counters.sent += 1
        else:
            self._counters.resent += 1
        if record is not None and not (is_mail(record) and lsn <= self.home_lsn):
            try:
                item, frames = to_item(record, self._node, wall)
            except Uncarriable as error:
                left_out.append((record, error.why))
                self._slots[index] = (lsn, None, size)
            else:
                if not item.n:
                    self._counters.lose_mail("expired")
                    self._answer(record, "expired")
                    self._slots[index] = (lsn, None, size)
                return item, frames
        return gone_item(self._node, self._era, self.sent), []

    def is_taken(self, lsn: int) -> bool:
        """Whether the mail at this lsn has arrived at the parent, or at this node itself."""
        return lsn <= self.home_lsn or (self.held > self.safe and lsn <= self._ledger.lsn(self.held))

    def queue(self) -> dict[str, int]:
        """Records in memory that the parent has not acknowledged: number, bytes, and the limit of the bytes."""
        return {"items": len(self._slots), "bytes": self._bytes, "bytes_max": self.room.full_max}

    def stage(self, lsn: int) -> str:
        """How far a carried record has come: `waiting`, `sent`, `held` by the parent, or `safe`."""
        if lsn <= self.safe_lsn:
            return "safe"
        for name, number in (("held", self.held), ("sent", self.sent)):
            if number > self.safe and lsn <= self._ledger.lsn(number):
                return name
        return "waiting"

    def in_flight(self) -> int:
        """How many messages were sent on this link and are not acknowledged."""
        return self.sent - self.held

    def record_of(self, number: int) -> Carried | None:
        """The record of a number in flight."""
        index = number - self.held - 1
        return self._slots[index][1] if 0 <= index < self.sent - self.held else None

    # What has arrived

    def begin(self, upto: int) -> None:
        """A link begins: the parent has everything up to `upto`; PeerError `bad-upto` if that is impossible.

        What only an earlier parent has is sent again, mail too: that parent may have lost it, or may never come back.
        """
        if not self.safe <= upto <= self.given:
            raise PeerError("bad-upto", f"{upto} is not in {self.safe}..{self.given}")
        ahead = upto - self.held
        if 0 <= ahead <= len(self._slots):
            self._bytes -= self._hand_over(ahead)
        else:
            self._slots.clear()
            self._bytes = 0
            self._upto = self.safe_lsn if upto == self.safe else self._ledger.lsn(upto)
        self.held = self.sent = upto
        self._flight_bytes = 0

    def check(self, upto: int, safe: int) -> None:
        """PeerError `bad-upto` or `bad-safe` for impossible numbers in an acknowledgement."""
        if upto > self.sent:
            raise PeerError("bad-upto", f"{upto} was not sent")
        if safe > max(upto, self.held):
            raise PeerError("bad-safe", f"{safe} is above {upto}")

    def acknowledge(self, upto: int) -> int:
        """The parent holds everything up to `upto`; returns how many of these were not acknowledged before."""
        count = upto - self.held
        if count <= 0:
            return 0
        freed = self._hand_over(count)
        self._bytes -= freed
        self._flight_bytes -= freed
        self.held = upto
        self._counters.held += count
        return count

    def _hand_over(self, count: int) -> int:
        """Remove the first slots: the parent holds them; returns their bytes."""
        size = 0
        for _, record, weight_ in self._slots[:count]:
            size += weight_
            if type(record) is StreamRecord and record.stream == OUTBOX:
                self._answer(record, "")
        del self._slots[:count]
        return size

    def _answer(self, record: Carried, why: str) -> None:
        """Tell whoever waits for this mail that it has arrived, or why not."""
        assert type(record) is StreamRecord, record
        ticket = record.attributes.get(TICKET)
        if ticket is not None and record.era == self._era and record.origin == self._node:
            self.answers.append(MailFailed(ticket, why) if why else MailReached(ticket, 1))

    def refuse(self, number: int, why: str) -> None:
        """The parent refused the mail with this number, which is in flight."""
        record = self.record_of(number)
        if record is not None:
            self._answer(record, why)

    def go_back(self) -> None:
        """Mark everything behind `held` as unsent."""
        self.sent = self.held
        self._flight_bytes = 0

    def release(self, safe: int) -> bool:
        """Everything up to number `safe` is durable at the root; returns whether that is new."""
        count = safe - self.safe
        if count <= 0:
            return False
        self.safe_lsn = max(self.safe_lsn, self._ledger.lsn(safe))
        self._forget(safe)
        self._counters.safe += count
        return True

    def _forget(self, number: int) -> None:
        counters = self._counters
        counters.spool_records = max(0, counters.spool_records - (number - self.safe))
        counters.spool_bytes = max(0, counters.spool_bytes - self._ledger.forget(number))
        self.safe = number

    def drop(self, upto_lsn: int, records: int, size: int) -> None:
        """Give up everything up to `upto_lsn`: `records` of `size` bytes. Numbers in flight keep their place."""
        number = max(self.safe, min(self.given, self._ledger.number_at(upto_lsn)))
        loaded = self.held + len(self._slots)
        self._slots += [(self._ledger.lsn(n), None, 0) for n in range(max(loaded, self.safe) + 1, number + 1)]
        flight = self.sent - self.held
        self._slots = [
            slot if slot[0] > upto_lsn else (slot[0], None, 0)
            for n, slot in enumerate(self._slots, self.held + 1)
            if slot[0] > upto_lsn or n <= self.given
        ]
        self._bytes = sum(slot[2] for slot in self._slots)
        self._flight_bytes = sum(slot[2] for slot in self._slots[:flight])
        if number > self.safe:
            self._ledger.forget(number)
            self.safe = number
        self._counters.spool_records = max(0, self._counters.spool_records - records)
        self._counters.spool_bytes = max(0, self._counters.spool_bytes - size)
        self.safe_lsn = max(self.safe_lsn, upto_lsn)
        self._upto = max(self._upto, upto_lsn)

    # Where we stand

    def frontier(self) -> int:
        """The lsn up to which no carried record is needed here any more."""
        if self.safe < self.given:
            return max(self.safe_lsn, self._ledger.lsn(self.safe + 1) - 1)
        unsent = self.given - self.held
        return max(self.safe_lsn, self._slots[unsent][0] - 1 if unsent < len(self._slots) else self._upto)

    def has_gone(self, lsn: int) -> bool:
        """Whether the parent holds every carried record up to `lsn`."""
        return self._upto >= lsn and (not self._slots or self._slots[0][0] > lsn)

    def oldest_at(self) -> int:
        """The origin's time of the oldest unsafe record in memory; 0: none known."""
        if self.safe < self.given:
            return self._ledger.at(self.safe + 1)
        unsent = self.given - self.held
        return getattr(self._slots[unsent][1], "at", 0) if unsent < len(self._slots) else 0
