"""Sends of this node's clients: from `accept` down the `out` chain to its end, with one final status (CHN-030)."""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from weft.base.mail import OUTBOX, TICKET, Mail, to_record
from weft.base.now import Now
from weft.base.records import Record, StreamRecord
from weft.cores.chains import limits, routing
from weft.cores.chains.clientlink import RESERVED, Session
from weft.cores.chains.context import Context
from weft.cores.chains.inbox import Inbox
from weft.cores.chains.messages import MailPosted, PostFailed, PostReached
from weft.cores.chains.order import TYPE
from weft.cores.chains.parcel import GHOST, OUT, Parcel
from weft.cores.chains.receipts import Receipts
from weft.cores.chains.routing import Way
from weft.cores.chains.straight import SEEN_HERE, SENT_HERE, SPOOLED, Straight
from weft.cores.chains.tags import Outcome, Tags
from weft.cores.chains.walk import Walker
from weft.cores.kit.tickets import Tickets
from weft.wire import clients

WANTS: Final = frozenset({"spool", "dest", "none"})
KEEPS: Final = frozenset({"disk", "memory"})
FORMATS: Final = frozenset({"raw", "text", "json", "msgpack", "xml"})
FAR: Final = frozenset({"overload"})
"""Reasons why a more distant node may have refused a message."""


class Sending:
    """All messages on `out`."""

    def __init__(self, context: Context, walker: Walker, inbox: Inbox, tags: Tags, straight: Straight) -> None:
        self._context, self._walker, self._inbox, self._tags = context, walker, inbox, tags
        self._straight = straight
        self.held = 0
        """Bytes of memory of the open messages."""
        self._room = context.budget.part("sends", limits.SENDS_PERCENT, lambda: self.held)
        self._posted = Tickets[Parcel]()
        self.receipts = Receipts(context)
        context.receipted = self.note_receipt
        context.dispatch = self.dispatch
        self._types: dict[str, None] = {}
        """Types known to be valid."""

    def accept(self, session: Session, item: clients.SendItem, frames: tuple[bytes, ...], now: Now) -> None:
        """Process one send: refuse it, recognise it as a repetition, or send it on its way."""
        has_status = item.want != "none"
        if has_status and self._is_known(session, item.tag):
            return
        why = self._refusal(item, frames)
        if why:
            self._context.counters.refuse(why)
            session.answer(item.tag, False, why)
            return
        if self._straight.take(session, item, frames, now):
            return
        weight = limits.PARCEL_COST + sum(map(len, frames))
        if not self._room.has_room(weight):
            self._room.refuse()
            self._context.counters.refuse("overload")
            session.answer(item.tag, False, "overload")
            return
        parcel = self._parcel(session, item, frames, now)
        self.held += weight
        parcel.weight = weight
        self._walker.start(parcel, now)
        if has_status and not parcel.is_over:
            self._tags.note(session.id, item.tag, parcel)

    @property
    def posted(self) -> int:
        """Messages posted without the outbox whose outcome is open."""
        return len(self._posted) + self.receipts.left

    def knows(self, session: Session, tag: int) -> bool:
        """Whether this client has sent this tag before; then its status is known, or still to come (CHN-042)."""
        return self._tags.get(session.id, tag) is not None

    def _is_known(self, session: Session, tag: int) -> bool:
        known = self._tags.get(session.id, tag)
        if known is None:
            return False
        self._context.counters.repeated_tags += 1
        if isinstance(known, Parcel):
            known.sender = session  # the client has reconnected: it gets the status when there is one
        else:
            session.answer(tag, *known)
        return True

    def _refusal(self, item: clients.SendItem, frames: tuple[bytes, ...]) -> str:
        """Why a send is refused; empty: it is accepted."""
        size = len(frames[0]) if len(frames) == 1 else sum(map(len, frames))
        if not 0 < size <= limits.PAYLOAD_BYTES_MAX:
            return "too-big" if size else "empty"
        if item.type not in self._types and (why := self._type_fault(item.type)):
            return why
        if item.want not in WANTS or item.keep not in KEEPS or item.fmt not in FORMATS:
            return "unimplemented"
        if item.cause is not None and self._context.depth_after(item.cause) > limits.DEPTH_MAX:
            return "loop"
        return routing.flaw(item.to)

    def _type_fault(self, kind: str) -> str:
        if not TYPE.fullmatch(kind):
            return "bad-type"
        if kind.startswith(RESERVED):
            return "denied"
        if len(self._types) < limits.CHAINS_MAX:
            self._types[kind] = None
        return ""

    def _parcel(self, session: Session, item: clients.SendItem, frames: tuple[bytes, ...], now: Now) -> Parcel:
        context = self._context
        depth = 0 if item.cause is None else context.depth_after(item.cause)
        parcel = Parcel(context.next_id(), OUT, context.mail_of(item, frames, now, depth))
        parcel.sender, parcel.tag, parcel.want, parcel.keep = session, item.tag, item.want, item.keep
        if depth:
            context.note_depth(parcel.id, depth)
        return parcel

    def dispatch(self, mail: Mail, now: Now) -> None:
        """Send a message that a filter on `in` has made, past the chain; no client waits for its status."""
        parcel = Parcel(self._context.next_id(), OUT, mail)
        parcel.sender = GHOST
        self._walker.enter(parcel)
        self.deliver(parcel, now)

    # The bottom

    def deliver(self, parcel: Parcel, now: Now) -> None:
        """It has passed all links: send it."""
        parcel.let_go()
        why = routing.flaw(parcel.to) if parcel.to is not parcel.sent.to else ""
        if not why and parcel.exp and parcel.exp <= now.wall:
            why = "expired"
        if why:
            self.end(parcel, why)
            return
        way = routing.way(parcel.to, self._context)
        WAYS[way.how](self, parcel, way, now)

    def end(self, parcel: Parcel, why: str) -> None:
        """It ends, and its sender gets the reason."""
        parcel.let_go()
        self._finish(parcel, Outcome(ok=False, why=why))

    def after(self, parcel: Parcel, made: list[Record]) -> None:
        """On `out`, records are made only at the end of the chain."""

    def forget(self, parcel: Parcel, name: str) -> None:
        """On `out` there are no confirming readers."""

    def _refuse(self, parcel: Parcel, way: Way, now: Now) -> None:
        self.end(parcel, way.why)

    def _reach_nobody(self, parcel: Parcel, way: Way, now: Now) -> None:
        self._finish(parcel, Outcome(ok=True, why="delivered", reached=0))

    def _send_here(self, parcel: Parcel, way: Way, now: Now) -> None:
        if not self._inbox.has_room(parcel):
            self.end(parcel, "overload")
            return
        is_kept = self._inbox.receive_own(parcel, self._by(parcel), now)
        self._finish(parcel, SENT_HERE if is_kept else SEEN_HERE)

    def _send_up(self, parcel: Parcel, way: Way, now: Now) -> None:
        if parcel.keep != "disk":
            if self._context.placed.parent:
                self._post(parcel, way, now)
            else:
                self.end(parcel, "no-parent")
        elif routing.is_spent(parcel.to, parcel.via):
            self.end(parcel, "ttl")
        else:
            record = to_record(parcel.mail(), OUTBOX, now.wall)
            by = self._by(parcel)
            if by is not None:
                record.attributes["by"] = by
            if parcel.want == "dest" and (ticket := self._ticket(parcel)):
                record.attributes[TICKET] = ticket
                self._context.keep(record)
                return
            self._context.keep(record)
            self._finish(parcel, SPOOLED)

    def _post(self, parcel: Parcel, way: Way, now: Now) -> None:
        if routing.is_spent(parcel.to, parcel.via):
            self.end(parcel, "ttl")
        elif ticket := self._ticket(parcel):
            mail = parcel.mail()
            if parcel.want == "dest" and parcel.to[0] == "DIRECT" and not way.nodes:
                mail = replace(mail, rcpt=True)  # the first node that receives it may not be its destination
                self.receipts.wait(parcel, ticket, now)
            self._context.tell(MailPosted(ticket, mail, way.nodes))
        else:
            self.end(parcel, "overload")

    def _ticket(self, parcel: Parcel) -> int:
        """The ticket under which it waits for the carrier's answer; 0: too many wait already."""
        return self._posted.open(parcel) if len(self._posted) < limits.TICKETS_MAX and self.receipts.has_room else 0

    def note_receipt(self, record: StreamRecord) -> None:
        """The destination has received the message, or refused it (RTE-006)."""
        heard = self.receipts.heard(record)
        if heard is None:
            return
        waiting, why = heard
        parcel = waiting.parcel
        self._posted.close(waiting.ticket)
        if why == "delivered":
            self._finish(parcel, Outcome(ok=True, why=why, reached=1))
        else:
            self.end(parcel, why if why in FAR else "lost")

    def wake(self, now: Now) -> None:
        """Give up waiting for receipts that did not come."""
        for waiting in self.receipts.overdue(now):
            self._posted.close(waiting.ticket)
            self.end(waiting.parcel, "unconfirmed")

    def note_post(self, answer: PostReached | PostFailed) -> None:
        """The outcome of a posted message."""
        parcel = self._posted.close(answer.ticket)
        if parcel is None:
            return
        if isinstance(answer, PostFailed):
            self.receipts.forget(parcel)
            self.end(parcel, answer.why)
        elif self.receipts.leave(parcel):
            return
        elif answer.failed:
            self._finish(parcel, Outcome(ok=False, why="partial", reached=answer.count, failed=answer.failed))
        else:
            self._finish(parcel, Outcome(ok=True, why="delivered", reached=answer.count))

    def _by(self, parcel: Parcel) -> list[Any] | None:
        """The sender, so that a later start recognises the tag (CHN-042)."""
        return None if parcel.want == "none" else [parcel.sender.id, parcel.tag]

    def _finish(self, parcel: Parcel, outcome: Outcome) -> None:
        """Give the sender its one final status, if it is still attached."""
        assert not parcel.is_over, parcel.id
        parcel.is_over = True
        self.held -= parcel.weight
        parcel.flow.end("delivered" if outcome.ok else outcome.why)
        sender = parcel.sender
        if parcel.want != "none":
            self._tags.note(sender.id, parcel.tag, outcome)
        if not sender.is_gone:
            sender.answer(parcel.tag, *outcome)


WAYS: Final[dict[str, Callable[[Sending, Parcel, Way, Now], None]]] = {
    "local": Sending._send_here,
    "up": Sending._send_up,
    "post": Sending._post,
    "none": Sending._reach_nobody,
    "refused": Sending._refuse,
}
