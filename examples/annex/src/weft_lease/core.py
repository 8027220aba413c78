"""Leases as a core: whoever gives one writes it down before it says so, so that a restart gives none twice.

The holder counts its span from when it asked, the giver from when it heard: the holder's is over first.
"""

from collections.abc import Iterable

import msgspec

from weft.base.budget import Budget
from weft.base.effects import Effect, Source
from weft.base.now import SECOND, Now
from weft.base.records import CoreRecord, Entry
from weft.cores.kit.outbox import Outbox
from weft.cores.kit.refusals import Refused
from weft.cores.kit.tickets import Tickets
from weft_lease.wire import Answer, Ask

HELD = 1
"""Kind of its one record: the name, who has it, and until when by the wall clock."""
PATIENCE_NS = 5 * SECOND  # for an answer; a node that restarts needs two
LEASES_MAX = 10_000  # some 200 bytes each


class Take(msgspec.Struct, frozen=True):
    """Order: what a person wants. `who` may be empty: this node."""

    ticket: int
    verb: str
    name: str
    who: str
    span_s: float


class HoldBack(msgspec.Struct, frozen=True):
    """Order: the journal has no room, or has room again."""

    is_full: bool


class Lease:
    """Gives leases, or asks the node `at` an endpoint that does."""

    name = "lease"

    def __init__(self, own_name: str, at: str) -> None:
        self.budget = Budget()
        self._own_name, self._at = own_name, at
        self._held: dict[str, tuple[str, int]] = {}
        self._is_full = False
        self._waiting: Tickets[tuple[int, str]] = Tickets()
        """Ticket, and for whom, of orders that wait for the giver's answer."""
        self._dues: dict[int, int] = {}
        self._outbox = Outbox()

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        for _, record in entries:
            if isinstance(record, CoreRecord) and record.core == self.name and record.kind == HELD:
                name, holder, until = msgspec.msgpack.decode(record.data, type=tuple[str, str, int])
                self._held[name] = holder, until

    def condense(self) -> Iterable[CoreRecord]:
        return [self._record(name) for name in self._held]

    def receive(self, message: Ask | Answer, source: Source, now: Now) -> None:
        if isinstance(message, Ask):
            self._outbox.send("lease", source.peer, self._decide(message, now))
        else:
            self._finish(message)

    def command(self, order: Take | HoldBack, now: Now) -> None:
        if isinstance(order, HoldBack):
            self._is_full = order.is_full
            return
        who = order.who or self._own_name
        ask = Ask(self._waiting.open((order.ticket, who)), order.verb, order.name, who, order.span_s)
        if not self._at:
            self._finish(self._decide(ask, now))
            return
        self._dues[ask.serial] = now.mono + PATIENCE_NS
        self._outbox.send("lease-ask", self._at.encode(), ask)

    def wake(self, now: Now) -> None:
        for serial in [serial for serial, at in self._dues.items() if at <= now.mono]:
            self._give_up(serial)

    def deadline(self) -> int | None:
        return next(iter(self._dues.values()), None)  # all wait equally long

    def effects(self) -> list[Effect]:
        return self._outbox.take()

    def _decide(self, ask: Ask, now: Now) -> Answer:
        """What the giver says; `keep` has the lease on disk before the answer leaves."""
        holder, until = self._held.get(ask.name, ("", 0))
        if ask.verb != "look" and (until <= now.wall or holder == ask.who):
            if self._is_full or not self._has_room(now):
                return Answer(ask.serial, "full", "", 0)
            span_s = ask.span_s if ask.verb == "take" else 0
            holder, until = self._held[ask.name] = ask.who, now.wall + int(span_s * SECOND)
            self._outbox.keep(self._record(ask.name))
        left_s = max(0, until - now.wall) / SECOND
        return Answer(ask.serial, "held" if left_s else "free", holder if left_s else "", left_s)

    def _has_room(self, now: Now) -> bool:
        """Whether there may be one more; leases that are over make room."""
        if len(self._held) >= LEASES_MAX:
            self._held = {name: held for name, held in self._held.items() if held[1] > now.wall}
        return len(self._held) < LEASES_MAX

    def _record(self, name: str) -> CoreRecord:
        return CoreRecord(self.name, HELD, msgspec.msgpack.encode((name, *self._held[name])))

    def _finish(self, answer: Answer) -> None:
        """Answer an order; what comes too late, or what nobody asked for, is nothing to anybody."""
        self._dues.pop(answer.serial, None)
        if (waiting := self._waiting.close(answer.serial)) is not None:
            ticket, who = waiting
            fields = {"code": answer.code, "holder": answer.holder, "left_s": answer.left_s}
            self._outbox.reply(ticket, {**fields, "is_yours": answer.holder == who})

    def _give_up(self, serial: int) -> None:
        del self._dues[serial]
        if (waiting := self._waiting.close(serial)) is not None:
            self._outbox.reply(waiting[0], Refused("no-answer", f"{self._at} is silent, and may still give the lease"))
