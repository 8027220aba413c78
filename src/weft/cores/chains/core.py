"""Ordered chains of clients and filters that messages pass on their way out of this node, or into it (docs/chains.md).

roster     the links of each chain, in order
walk       takes a message down a chain; holding: links at which messages wait
engine     requests of clients; sessions: the attached clients, and messages to them
sending    the `out` chain and its end; inbox: the `in` chain, and its records in the journal
screen     what the carrier has received, before it is journaled
batches    samples, which pass a chain as batches
readers    confirming readers, remembered while they are away
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from weft.base.effects import Effect, SendFailed, Source
from weft.base.mail import INBOX, OUTBOX
from weft.base.now import MILLISECOND, Now
from weft.base.records import CoreRecord, Entry, Record, StreamRecord
from weft.cores.chains import limits, memory
from weft.cores.chains.absorbing import Absorbing
from weft.cores.chains.batches import Batches, Counters
from weft.cores.chains.context import Context
from weft.cores.chains.engine import Engine
from weft.cores.chains.filterset import FilterSet
from weft.cores.chains.inbox import Inbox
from weft.cores.chains.memory import Emitted, Forgotten, Remembered, TagsKept
from weft.cores.chains.messages import (
    ChainsSettings,
    FiltersPlanned,
    ForgetReader,
    Garbled,
    HoldBack,
    PassBatch,
    Placed,
    PlanFilters,
    PostFailed,
    PostReached,
    ProcessEnded,
    ShowChains,
    Stop,
    TraceChains,
)
from weft.cores.chains.messageview import MessageView
from weft.cores.chains.order import Key
from weft.cores.chains.roster import Roster, Standing
from weft.cores.chains.screen import Screen
from weft.cores.chains.sending import Sending
from weft.cores.chains.sessions import Sessions
from weft.cores.chains.settings import FilterSpec
from weft.cores.chains.show import show, show_clients, totals
from weft.cores.chains.straight import Straight
from weft.cores.chains.tags import Outcome, Tags
from weft.cores.chains.tracing import Trace
from weft.cores.chains.waiting import Waiting
from weft.cores.chains.walk import Walker
from weft.cores.kit.timers import earliest


class Chains:
    """The chains core of node `node` in its start `era`."""

    name = memory.CORE

    def __init__(
        self,
        filters: Sequence[FilterSpec] = (),
        settings: ChainsSettings | None = None,
        node: bytes = bytes(16),
        era: int = 0,
    ) -> None:
        self.context = Context(settings or ChainsSettings(), node, era)
        self.budget = self.context.budget
        self.roster = Roster()
        mine = self.context.settings
        self.waiting = Waiting(mine.wait_ms, mine.reader_messages, mine.reader_bytes)
        self.walker = Walker(self.context, self.roster, self.waiting, MessageView)
        self.inbox = Inbox(self.context, self.roster, self.walker, self.waiting)
        self.tags = Tags()
        straight = Straight(self.context, self.roster, self.tags)
        self.sending = Sending(self.context, self.walker, self.inbox, self.tags, straight)
        self.walker.found(self.sending, self.inbox)
        self.absorbing = Absorbing(self.context, self.roster, self.walker, self.inbox)
        self.engine = Engine(self.context, self.roster, self.walker, self.waiting, self.sending)
        self.sessions = Sessions(self.context, self.engine)
        self.batches = Batches(self.context, self.roster)
        self._screen = Screen(self.context, self.roster, self.batches, self.inbox)
        self._cut_off: Emitted | None = None
        self._now = Now(0, 0)
        self._again_at: int | None = None
        self._stop_at: int | None = None
        self._filters = FilterSet(self.context, self.roster, self.absorbing, self.batches.counters)
        self._filters.replace(filters, self._now)

    @property
    def counters(self) -> Counters:
        """Counters of rows of batches; messages are counted per chain (`ShowChains`)."""
        return self.batches.counters

    # Memory

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Restore the open messages of `in`, and the tags of sends (CHN-034, CHN-042)."""
        record: Record | None = None
        for _, record in entries:
            if type(record) is CoreRecord:
                if record.core == memory.CORE:
                    self._recall(record, now)
            elif type(record) is StreamRecord and record.stream in (INBOX, OUTBOX):
                self._recount(record)
        self._cut_off = self._emitted(record)
        if len(self.inbox) or self._cut_off is not None:
            self._again_at = now.mono

    def _emitted(self, last: Record | None) -> Emitted | None:
        """A filter's last result: if a crash came before its own record, that record is missing.

        Then send the result again.
        """
        if not isinstance(last, CoreRecord) or last.core != memory.CORE:
            return None
        emitted = memory.from_record(last)
        return emitted if isinstance(emitted, Emitted) else None

    def _recall(self, record: CoreRecord, now: Now) -> None:
        kept = memory.from_record(record)
        if isinstance(kept, TagsKept):
            self.tags.adopt(kept)
        elif isinstance(kept, Emitted):
            self.inbox.recall_counted(kept)
        elif isinstance(kept, Remembered | Forgotten):
            self.engine.readers.recall(kept, now)
        else:
            self.inbox.recall(kept)

    def _recount(self, record: StreamRecord) -> None:
        if record.stream == INBOX:
            self.inbox.restore(record)
        by = record.attributes.get("by")
        if by is not None:
            self.tags.note(by[0], by[1], Outcome(ok=True, why="local" if record.stream == INBOX else "spooled"))

    def condense(self) -> Iterable[CoreRecord]:
        yield from map(memory.to_record, self.engine.readers.condense())
        yield from map(memory.to_record, self.inbox.condense())
        yield from map(memory.to_record, self.tags.condense())

    # Hearing

    def receive(self, message: Any, source: Source, now: Now) -> None:
        self._now = now
        self._go_on(now)
        self.sessions.receive(message, source, now)

    def screen(self, record: StreamRecord, now: Now) -> Sequence[Record]:
        """The records to keep in place of one that another node has sent (CHN-033)."""
        assert not self.context.awaits_filters, "the carrier waits for the filters, too"
        self._now = now
        self._go_on(now)
        return self._screen.judge(record, now)

    def command(self, order: Any, now: Now) -> None:
        self._now = now
        ORDERS[type(order)](self, order, now)

    def _plan(self, order: PlanFilters, now: Now) -> None:
        self._filters.change(order.filters, now)
        if self.context.awaits_filters:
            self.context.awaits_filters = False
            self._again_at = now.mono
            self._go_on(now)
        self.context.tell(FiltersPlanned(len(order.filters)))

    def _place(self, order: Placed, now: Now) -> None:
        if order != self.context.placed:
            self.context.placed = order
            self.sessions.place(order)

    def _hold_back(self, order: HoldBack, now: Now) -> None:
        if order.is_full is not self.context.is_full:
            self.context.is_full = order.is_full
            self.sessions.hold_back(order.is_full)

    def _note_garbled(self, order: Garbled, now: Now) -> None:
        self.sessions.garbled(order.peer, order.code, now)

    def _note_ended(self, order: ProcessEnded, now: Now) -> None:
        self.sessions.ended(order.process, now)

    def _note_unsent(self, order: SendFailed, now: Now) -> None:
        self.sessions.not_sent(order.peer, now)

    def _note_post(self, order: PostReached | PostFailed, now: Now) -> None:
        self.sending.note_post(order)

    def totals(self) -> dict[str, Any]:
        """What has become of all messages, and current values, as plain data."""
        return totals(self.context, self.roster, self.inbox, self.engine, self.sessions)

    def _show(self, order: ShowChains, now: Now) -> None:
        shown = show(self.context, self.roster, self.inbox, self.engine) | show_clients(self.sessions)
        shown["readers"] = self.engine.readers.show(now)
        self.context.reply(order.ticket, shown)

    def _trace(self, order: TraceChains, now: Now) -> None:
        """Start a trace. Only one runs at a time: a second request is answered with an empty result that says so."""
        if self.context.trace is not None:
            self.context.reply(order.ticket, {"messages": [], "is_busy": True})
            return
        ends_at = now.mono + min(order.span_ms, limits.TRACE_MS_MAX) * MILLISECOND
        count = min(order.count, limits.TRACED_MAX)
        self.context.trace = Trace(order.ticket, order.type, order.direction, count, ends_at)

    def _end_trace(self, trace: Trace) -> None:
        if trace.is_over(self._now):
            self.context.trace = None
            self.context.reply(trace.ticket, trace.result())

    def _forget(self, order: ForgetReader, now: Now) -> None:
        """Forget a reader that is away; answers how many messages were given up."""
        before = len(self.engine.readers)
        count = 0 if self.context.is_full else self.engine.readers.forget(order.name, "forgotten", now)
        forgotten = before - len(self.engine.readers)
        answer = {"name": order.name, "forgotten": forgotten, "messages": count, "is_full": self.context.is_full}
        self.context.reply(order.ticket, answer)

    # Stopping (CHN-043)

    @property
    def is_ending(self) -> bool:
        """Whether it was told to stop, and still waits for messages that clients hold."""
        return self._stop_at is not None

    def _stop(self, order: Stop, now: Now) -> None:
        self.context.is_stopping = True
        self._stop_at = now.mono + self.context.settings.stop_ms * MILLISECOND if self.engine.parked else now.mono
        self._end_stop(now)

    def _end_stop(self, now: Now) -> None:
        if self._stop_at is not None and (now.mono >= self._stop_at or not self.engine.parked):
            self._stop_at = None
            self.engine.give_up_all(now)
            self.sessions.stop(now)

    # Time

    def wake(self, now: Now) -> None:
        self._now = now
        self._go_on(now)
        self.absorbing.wake(now)
        self.sending.wake(now)
        self.engine.wake(now)
        self.sessions.wake(now)
        self._end_stop(now)

    def _go_on(self, now: Now) -> None:
        """Send the messages of the earlier run down their chains, before any new message."""
        if self._again_at is not None and not self.context.awaits_filters:
            self._again_at = None
            self.inbox.walk_again(self.engine.readers, self.absorbing.take_again, now)
            if self._cut_off is not None:
                self.absorbing.send_again(self._cut_off, now)
                self._cut_off = None

    def deadline(self) -> int | None:
        again_at = None if self.context.awaits_filters else self._again_at
        trace_at = self.context.trace.ends_at if self.context.trace is not None else None
        of_parts = self.absorbing.deadline(self._now), self.engine.deadline(), self.sessions.deadline()
        return earliest(again_at, trace_at, self._stop_at, self.sending.receipts.deadline(), *of_parts)

    def effects(self) -> list[Effect]:
        if self._stop_at is not None:
            self._end_stop(self._now)
        self.sessions.flush(self._now)
        if self.context.trace is not None:
            self._end_trace(self.context.trace)
        return self.context.take()

    # Links

    def attach(self, link: Standing, kinds: tuple[str, ...] = ("*",)) -> None:
        """Add a link at the place of its key; every chain that it covers has it from the next message on."""
        self.roster.attach(link, kinds)

    def detach(self, link: Standing, kinds: tuple[str, ...] = ("*",)) -> None:
        """Remove a link from all chains."""
        self.roster.detach(link, kinds)

    def chain(self, direction: str, kind: str) -> list[Any]:
        """The links of a chain, in order (CHN-001, CHN-002)."""
        return self.roster.chain(direction, kind).links

    def walk(self, order: PassBatch, now: Now, after: Key | None = None) -> None:
        """Send a batch of samples down its chain."""
        self.batches.walk(order, now, after)


ORDERS: Final[dict[type, Callable[[Chains, Any, Now], None]]] = {
    PassBatch: Chains.walk,
    PlanFilters: Chains._plan,
    Placed: Chains._place,
    HoldBack: Chains._hold_back,
    Garbled: Chains._note_garbled,
    SendFailed: Chains._note_unsent,
    ProcessEnded: Chains._note_ended,
    PostReached: Chains._note_post,
    PostFailed: Chains._note_post,
    ShowChains: Chains._show,
    TraceChains: Chains._trace,
    ForgetReader: Chains._forget,
    Stop: Chains._stop,
}
