"""Screens what other nodes send, before the journal keeps it (CHN-033).

Mail for this node goes down its `in` chain. A record on its way to the root (a batch of samples or an event) passes the
chain of its type, if any link stands there. What a filter drops is announced as lost, so that every missing number has
a reason.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from weft.base.errors import PeerError
from weft.base.mail import INBOX, RCPT, Mail
from weft.base.now import Now
from weft.base.records import LostRecord, Record, Stream, StreamRecord
from weft.cores.chains.batches import Batches
from weft.cores.chains.clientlink import ClientLink
from weft.cores.chains.context import Context
from weft.cores.chains.inbox import Inbox
from weft.cores.chains.messages import PassBatch
from weft.cores.chains.messageview import MessageView
from weft.cores.chains.parcel import IN, Parcel
from weft.cores.chains.receipts import RECEIPT, receipt_of
from weft.cores.chains.relay import RelayLink
from weft.cores.chains.roster import Chain, Roster
from weft.cores.chains.states import Verdict
from weft.wire import samples

TYPES: Final[dict[int, str]] = {
    Stream.SAMPLES: "weft.metric",
    Stream.LOGS: "weft.log",
    Stream.EVENTS: "weft.event",
}
FILTERED: Final = "filtered"


class Screen:
    """The `in` chains, as the carrier sees them."""

    def __init__(self, context: Context, roster: Roster, batches: Batches, inbox: Inbox) -> None:
        self._context, self._roster, self._batches, self._inbox = context, roster, batches, inbox

    def judge(self, record: StreamRecord, now: Now) -> Sequence[Record]:
        """The records to keep in place of this one; the record itself if no link registered for its type."""
        if record.stream == INBOX:
            return self._arrive(record, now)
        kind = TYPES.get(record.stream)
        if kind is None:
            return (record,)
        chain = self._roster.chain(IN, kind)
        if all(isinstance(link, RelayLink) for link in chain.links):
            return (record,)  # it goes up, and into the journal, anyway
        if record.stream == Stream.SAMPLES:
            return self._sift(record, chain, now)
        return self._look_at(record, chain, now)

    def _arrive(self, record: StreamRecord, now: Now) -> Sequence[Record]:
        """Mail has arrived; its origin gets a receipt if it asked for one (RTE-006)."""
        if RCPT not in record.attributes:
            if record.key == RECEIPT:
                self._context.receipted(record)
            return self._inbox.arrive(record, now)
        room = self._context.budget.parts["inbox"]
        refused = room.refused
        made = self._inbox.arrive(record, now)
        why = "overload" if room.refused > refused else "delivered"
        self._context.dispatch(receipt_of(record, why, self._context, now), now)
        return made

    # Batches

    def _sift(self, record: StreamRecord, chain: Chain, now: Now) -> Sequence[Record]:
        try:
            batch = samples.decode(record.payload)
        except PeerError:
            return (record,)  # the lake quarantines unreadable records
        counters = self._batches.counters
        view = self._batches.view_of(PassBatch(IN, chain.type, batch, record.origin))
        counters.accepted += len(batch.rows)
        is_refused = False
        for link in chain.links:
            if isinstance(link, ClientLink):
                self._show(link, record, view.close(), chain.type)
            elif (verdict := link.offer(view, now)) in (Verdict.FAILED, Verdict.DROPPED):
                is_refused = verdict is Verdict.FAILED
                break
        kept = [] if is_refused else view.kept
        counters.delivered += len(kept)
        dropped = len(batch.rows) - len(kept)
        counters.refused += dropped if is_refused else 0
        counters.dropped += 0 if is_refused else dropped
        return (record,) if not dropped else _parted(record, batch, kept)

    def _show(self, link: ClientLink, record: StreamRecord, batch: samples.SampleBatch, kind: str) -> None:
        whole = len(batch.rows) == record.last - record.sequence + 1
        if batch.rows:
            body = record.payload if whole else samples.encode(batch)
            link.counters.offered += 1
            link.copy(link.reg, self._parcel(record, kind, body))

    # Single records

    def _look_at(self, record: StreamRecord, chain: Chain, now: Now) -> Sequence[Record]:
        parcel = self._parcel(record, chain.type, record.payload)
        chain.flow.accepted += 1
        view = MessageView(parcel)
        for link in chain.links:
            if isinstance(link, ClientLink):
                parcel.frames = view.close()
                link.counters.offered += 1
                link.copy(link.reg, parcel)
            elif link.offer(view, now) in (Verdict.FAILED, Verdict.DROPPED):
                chain.flow.end("deleted")
                return (_lost(record, record.sequence, record.sequence),)
        chain.flow.end("delivered")
        payload = view.close()[0]
        return (record,) if payload is record.payload else (msgspec.structs.replace(record, payload=payload),)

    def _parcel(self, record: StreamRecord, kind: str, body: bytes) -> Parcel:
        mail = Mail(
            origin=record.origin,
            era=record.era or 0,
            sequence=record.sequence,
            type=kind,
            frames=(body,),
            to=("PARENTSOF",),
            via=tuple(record.attributes.get("via", ())),
            at=record.at,
            fmt=record.attributes.get("fmt", "msgpack"),
        )
        return Parcel(self._context.next_id(), IN, mail)


def _parted(record: StreamRecord, batch: samples.SampleBatch, kept: list[int]) -> list[Record]:
    """The rows that are left, as records of consecutive rows, with the numbers between them as lost."""
    made: list[Record] = []
    at = 0
    for first, end in _runs(kept):
        if at < first:
            made.append(_lost(record, record.sequence + at, record.sequence + first - 1))
        rows = samples.select(batch, batch.rows[first:end])
        attributes = {**record.attributes, "n": end - first}
        made.append(
            msgspec.structs.replace(
                record, sequence=record.sequence + first, payload=samples.encode(rows), attributes=attributes
            )
        )
        at = end
    if at < len(batch.rows):
        made.append(_lost(record, record.sequence + at, record.sequence + len(batch.rows) - 1))
    return made


def _runs(kept: list[int]) -> list[tuple[int, int]]:
    """Ascending numbers as ranges, the end of each excluded.

    >>> _runs([0, 1, 4, 6, 7])
    [(0, 2), (4, 5), (6, 8)]
    """
    if not kept:
        return []
    breaks = [at for at, (one, next_one) in enumerate(pairwise(kept), 1) if next_one != one + 1]
    return [(kept[begin], kept[end - 1] + 1) for begin, end in pairwise([0, *breaks, len(kept)])]


def _lost(record: StreamRecord, first: int, last: int) -> LostRecord:
    return LostRecord(record.stream, record.origin, record.era, first, last, FILTERED)
