"""Decides about arriving records and mail: whether they are repeated, whom they are for, what is written."""

from collections.abc import Callable, Sequence

import msgspec

from weft.base.errors import PeerError
from weft.base.mail import INBOX, OUTBOX, of_record
from weft.base.now import Now
from weft.base.records import Record, StreamRecord
from weft.cores.carrier import limits
from weft.cores.carrier.context import Context
from weft.cores.carrier.dispatch import UP, Dispatch
from weft.cores.carrier.identities import Identities, Meeting
from weft.cores.carrier.links import Link, Links
from weft.cores.carrier.memory import to_record
from weft.cores.carrier.messages import Hop, HopItem, MessageRefused
from weft.cores.carrier.seen import seen_of
from weft.cores.carrier.volatile import Heard
from weft.wire import carried
from weft.wire.carried import hops_max, is_mail, is_over, is_past

Screen = Callable[[StreamRecord, Now], Sequence[Record]]
"""Returns the records to keep in the journal in place of a record that has arrived."""


def keep_all(record: StreamRecord, _now: Now) -> Sequence[Record]:
    """The screen of a node without chains: keeps every record."""
    return (record,)


class Intake:
    """Classifies arrivals. `screen` is called for each one that is new and not for another node (RTE-003)."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.links = Links()
        self.dispatch = Dispatch(context, self.links)
        self.screen: Screen = keep_all
        self.met, self._met_volatile = met, volatile = Identities(), Identities(is_durable=False)
        met.room = volatile.room = context.budget.part("met", limits.MET_PERCENT, lambda: met.bytes + volatile.bytes)
        self._heard = Heard()
        self.volatile: list[Record] = []
        """Records to keep because of volatile mail."""

    def pass_record(self, record: StreamRecord, now: Now) -> Sequence[Record]:
        """The records to keep in place of a record.

        A root whose screen drops numbers also notes that it has seen them.
        """
        replacements = self.screen(record, now)
        if (replacements and replacements[0] is record) or not self._context.settings.is_root:
            return replacements
        if any(_has_all(each, record) for each in replacements):
            return replacements
        return (*replacements, to_record(seen_of(record)))

    def pass_mail(self, record: StreamRecord, link: Link, now: Now) -> Sequence[Record]:
        """The records to keep in place of mail; PeerError for mail that is not allowed.

        Mail is accepted once, whatever route it takes (CHN-035).
        """
        way = self._way(record, link)
        if not self._is_new(self.met, record):
            return ()
        if way is None:
            return self.screen(record, now)
        if way == UP:
            return (msgspec.structs.replace(record, stream=OUTBOX),)
        self.dispatch.relay(of_record(record), way, now)
        return ()

    def take_home(self, record: StreamRecord, now: Now) -> Sequence[Record]:
        """The records to keep in place of mail for the parent, at a root: a root is its own parent."""
        if is_past(record.attributes.get("exp", 0), now.wall):
            self._context.counters.lose_mail("expired")
            return ()
        node = self.dispatch.elsewhere(record.attributes["to"])
        if node is None:
            return self.screen(msgspec.structs.replace(record, stream=INBOX), now)
        try:
            self.dispatch.relay(of_record(record), self.dispatch.way(node), now)
        except PeerError as error:
            self._context.counters.lose_mail(error.code)
        return ()

    def _way(self, record: StreamRecord, link: Link | None) -> bytes | None:
        """The node to forward the mail to; None: it is for this node."""
        if record.origin == self._context.node:
            raise PeerError("loop", "what this node has sent itself")
        to = record.attributes["to"]
        node = self.dispatch.elsewhere(to)
        if node is None:
            return None
        if len(record.attributes["via"]) >= hops_max(to):
            raise PeerError("ttl", "not there yet")
        return self.dispatch.way(node, link, is_from_parent=link is None)

    def _is_new(self, met: Identities, record: StreamRecord) -> bool:
        counters = self._context.counters
        meeting = met.meet(record.origin, record.era or 0, record.sequence)
        if meeting is Meeting.DUPLICATE:
            counters.known += 1
            return False
        counters.unsure += meeting is Meeting.UNSURE
        counters.accepted += 1
        return True

    # Without a promise

    def take_volatile(self, hop: Hop, node: bytes, link: Link | None, now: Now) -> list[tuple[int, str]]:
        """Accept volatile mail of a child (`link`) or of the parent (`node`).

        Returns the numbers refused for good, with reasons.
        """
        upto = self._heard.upto(node, hop.era, is_child=link is not None)
        counters = self._context.counters
        counters.received += len(hop.m)
        no: list[tuple[int, str]] = []
        for number, item, frames in hop.numbered():
            if number <= upto:
                counters.repeated += 1
                continue
            upto = number
            try:
                self._take(item, frames, link, now)
            except PeerError as error:
                no.append((number, error.code))
        self._heard.note(node, hop.era, upto, is_child=link is not None)
        for number, why in no:
            self._turn_away("the parent" if link is None else link.name, number, why, now)
        return no

    def heard_upto(self, node: bytes, era: int, *, is_child: bool) -> int:
        """The last number received on a node's volatile stream."""
        return self._heard.upto(node, era, is_child=is_child)

    def _take(self, item: HopItem, frames: list[bytes], link: Link | None, now: Now) -> None:
        if is_over(item) or is_past(item.exp, now.wall):
            self._context.counters.expired += 1
            return
        if not item.n:
            raise PeerError("empty", "a message without a frame")
        if item.to is None:
            raise PeerError("unimplemented", "a volatile record")
        if self._context.node in item.via:
            raise PeerError("loop", "it was here before")
        record = carried.to_record(item, frames, now.wall)
        assert is_mail(record), record
        way = self._way(record, link)
        if way is not None:
            self.dispatch.relay(of_record(record), way, now)
            self._context.counters.accepted += 1
        elif self._is_new(self._met_volatile, record):
            record.attributes["mem"] = True
            self.volatile += [each for each in self.screen(record, now) if not _is_inbox(each)]

    def _turn_away(self, name: str, number: int, why: str, now: Now) -> None:
        context = self._context
        context.counters.turned_away += 1
        context.counters.refuse(why)
        context.tell_seldom((name, f"no {why}"), MessageRefused(name, number, why), now.mono)


def _has_all(replacement: Record, record: StreamRecord) -> bool:
    """Whether `replacement` writes all numbers of the record to the journal, changed or not."""
    numbers = (record.stream, record.sequence, record.last)
    return type(replacement) is StreamRecord and (replacement.stream, replacement.sequence, replacement.last) == numbers


def _is_inbox(record: Record) -> bool:
    """Whether a record is mail for this node; volatile mail gets no durability here either."""
    return type(record) is StreamRecord and record.stream == INBOX
