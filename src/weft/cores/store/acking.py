"""Writes whose answer waits until other members have them durably (STO-035).

    order with `ack` -> update with `ack:true` -> each member: durable -> info `have` -> enough have it: the answer

A member reports all changes of the author that it has, so a later report makes up for a lost one. If too few members
report in time, the answer is `unconfirmed`, with the number that have it and the number needed; the write stands.
"""

from collections.abc import Callable

import msgspec
from msgspec import UNSET

from weft.base.histograms import of_spans
from weft.base.now import Now
from weft.base.ranges import RangeSet
from weft.cores.kit.refusals import Refusal
from weft.cores.store import limits
from weft.cores.store.bus import Bus
from weft.cores.store.context import Context
from weft.cores.store.replica import Replica
from weft.wire.store.clients import Answer, Request
from weft.wire.store.messages import Info, Update

LOCAL, ONE, MAJORITY = "local", "one", "majority"


class PendingAck(msgspec.Struct, gc=False):
    """An answer that waits."""

    say: Callable[[Answer], None]
    answer: Answer
    first: int
    last: int
    """Tick of the last change."""
    needed: int
    """How many members must have the changes, this one included."""
    of: int
    level: str
    since: int
    due_at: int


class Acking:
    """Both sides: reports that this node owes to authors, and members that have confirmed this node's own changes."""

    def __init__(self, context: Context, bus: Bus, replica: Replica) -> None:
        self._context, self._bus, self._replica = context, bus, replica
        self._owed: dict[str, None] = {}
        """Authors to whom this node has to report what it has of their changes."""
        self._have: dict[str, RangeSet] = {}
        """The ticks of this node's changes that each member has reported, while an answer waits."""
        self._waiting: list[PendingAck] = []
        self._counted: list[str] = []
        """Whose reports the last look counted: with the same ones and no new report, only what is new can be answered."""
        self.took = of_spans()
        """How long answers waited until enough members had the changes (ADM-030)."""

    # Of others

    def hear_update(self, update: Update) -> None:
        """A change was merged; it is durable when the effects of this turn are sent."""
        if update.wants_ack and update.sender is None and update.event.node != self._context.name:
            self._owed[update.event.node] = None

    def flush(self) -> None:
        """Send one report to all authors of this turn."""
        owed, self._owed = self._owed, {}
        for author in owed:
            seen = RangeSet(list(self._replica.book.seen(author))[: limits.RANGES_PER_INFO])
            self._bus.say(self._context.info(have={author: seen}), author)

    # Of this node

    @property
    def members(self) -> list[str]:
        """The members that count: every Weft node that ever made a change and was not dropped, this one included."""
        book, foreign = self._replica.book, self._context.foreign
        return [name for name in book.nodes() if name not in book.caps and name not in foreign]

    def needed(self, ack: object) -> int:
        """How many members an order requires, this one included; Refusal `bad-request` for an impossible number."""
        if ack is UNSET or ack is None or ack == LOCAL:  # most orders: nobody has to be counted
            return 1
        count = len(self.members)
        wanted = {ONE: 2, MAJORITY: count // 2 + 1}.get(ack, ack)  # type: ignore[call-overload]  # what hashes
        if type(wanted) is not int or wanted < 1:
            raise Refusal("bad-request", "`ack` is local, one, majority, or a number of members")
        if wanted > max(count, 1):
            raise Refusal("bad-request", f"{wanted} members are to have it, and there are {count}")
        return wanted

    def hold(self, say: Callable[[Answer], None], request: Request, answer: Answer, first: int) -> None:
        """Send the answer once enough members have this node's changes from `first` to the last one."""
        needed, level = self.needed(request.ack), str(request.ack)
        last, now = self._context.tick, self._context.now.mono
        held = PendingAck(say, answer, first, last, needed, len(self.members), level, now, now + limits.ACK_NS)
        self._waiting.append(held)
        if self._reported() != self._counted:
            self._look()
        elif self._is_answered(held):
            self._waiting.pop()
            self._forget()

    def hear_info(self, info: Info) -> None:
        """A member reports what it has."""
        mine = (info.have or {}).get(self._context.name)
        if mine is not None and self._waiting:
            self._have[info.node] = mine
            self._look()

    def _look(self) -> None:
        """Answer all that enough members have by now."""
        self._counted = self._reported()
        self._waiting = [held for held in self._waiting if not self._is_answered(held)]
        self._forget()

    def _forget(self) -> None:
        """Without an answer that waits, no report is of use."""
        if not self._waiting:
            self._have.clear()
            self._counted.clear()

    def _reported(self) -> list[str]:
        """The members, beside this one, that have reported since answers wait."""
        own, have = self._context.name, self._have
        return [name for name in self.members if name in have and name != own]

    def _is_answered(self, held: PendingAck) -> bool:
        if self._durable(held) < held.needed:
            return False
        self._context.count("acks", f"{held.level}:reached")
        self.took.observe(self._context.now.mono - held.since)
        held.say(held.answer)
        return True

    def _durable(self, held: PendingAck) -> int:
        """How many members have the changes, this one included."""
        return 1 + sum(self._have[name].covers(held.first, held.last) for name in self._counted)

    # Time

    def wake(self, now: Now) -> None:
        """Answer those that have waited too long, with the number of confirmations so far."""
        late = [held for held in self._waiting if held.due_at <= now.mono]
        if late:
            self._counted = self._reported()
        for held in late:
            durable = self._durable(held)
            self._context.count("acks", f"{held.level}:unconfirmed")
            text = f"written, and {durable} of {held.of} members have it after {limits.ACK_NS // 10**9} s"
            held.say(msgspec.structs.replace(held.answer, error=text, etype="unconfirmed", durable=durable, of=held.of))
        if late:
            self._waiting = [held for held in self._waiting if held.due_at > now.mono]
            self._look()

    def deadline(self) -> int | None:
        """When the first answer times out."""
        return min([held.due_at for held in self._waiting]) if self._waiting else None
