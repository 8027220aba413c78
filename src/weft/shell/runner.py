"""One turn: receive, let the cores work, make durable, send. Nothing is sent before it is on disk (JRN-001).

All input and output of a node passes these lines. The event loop only says *when*: a descriptor is readable, the timer is
due, a worker has finished. `work` then runs turns until nothing is left to receive. A turn handles a few hundred messages,
with one write and one sync. A failed write raises `StorageFailed`, and nothing after it happens.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

from weft.base.effects import Confirm, Connect, Disconnect, Perform, Reply, Source, Tell
from weft.base.errors import StorageFailed
from weft.base.now import MILLISECOND, SECOND, Now
from weft.base.records import Record
from weft.node.events import JournalChanged
from weft.node.node import Ended, Node, NodeEffect, Transmit, Turn, part_at_wall
from weft.node.receipts import Receipts
from weft.shell.clock import Clock
from weft.shell.flight import Flight
from weft.shell.journal import Journal, State, StorageFull
from weft.shell.links import Links
from weft.shell.timing import Timings

TURNS_MAX: Final = 8  # turns in one callback; then other callbacks of the loop (http, timers) run
TURNS_NS: Final = 20 * MILLISECOND  # the same for long turns


class NodeRunner(Protocol):
    """What a link that runs in the node's process needs of its runner."""

    inside: dict[tuple[str, bytes], Callable[[list[bytes]], None]]
    """By channel and peer, what takes messages that the node sends there."""

    def post(self, source: Source, frames: list[bytes]) -> None:
        """Queue a message for the node's next turn."""

    def order(self, core: str, order: Any) -> None:
        """Give a core an order."""

    def break_off(self, failure: BaseException) -> None:
        """End the node: a promise inside Weft is broken."""


class LateWrites:
    """Has the journal's buffer written in time, unless a wall takes it along before."""

    def __init__(self, clock: Clock, write: Callable[[], None]) -> None:
        self.is_waiting = False
        """Whether the buffer will be written; whoever writes it before says False."""
        self._clock, self._write = clock, write
        self._due = 0
        self._timer: asyncio.TimerHandle | None = None

    def write_by(self, due: int) -> None:
        """Write the buffer at `due`, monotonic ns, or earlier if that was said before."""
        if self.is_waiting and self._due <= due:
            return
        self.stop()  # it was meant for records that a wall has taken along
        self.is_waiting, self._due = True, due
        wait_s = max(0, due - self._clock.mono()) / SECOND
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._ring)

    def stop(self) -> None:
        """Write nothing."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        if self.is_waiting:
            self.is_waiting = False
            self._write()


class Runner:
    """Joins one node to its clock, journal, links and workers."""

    def __init__(self, node: Node, clock: Clock, journal: Journal, links: Links) -> None:
        self.node, self.clock, self.journal, self.links = node, clock, journal, links
        self.performers: dict[type, Callable[[Any], None]] = {}
        self.on_tell: Callable[[Any], None] = lambda _: None
        self.on_reply: Callable[[int, Any], None] = lambda _, __: None
        self.on_durable: Callable[[Iterable[Record], Now], None] = lambda _, __: None
        """Called with the records of a turn, once they are durable."""
        self.ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.turns = 0
        self.timings, self.flight = Timings(), Flight()
        self.inside: dict[tuple[str, bytes], Callable[[list[bytes]], None]] = {}
        """Functions that get the messages for a peer without a ZeroMQ socket, by channel and peer (CLI-023)."""
        self.doors: dict[str, Callable[[bytes, list[bytes]], None]] = {}
        """Functions that send all messages of a channel that has no ZeroMQ socket."""
        self.hang_ups: dict[str, Callable[[bytes], None]] = {}
        """Functions that close a connection of such a channel."""
        self._posted: list[tuple[Source, list[bytes]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._due: int | None = None
        """The node's deadline after its last turn."""
        self.wakes_at: int | None = None
        """When the timer is due, monotonic ns; None: none is set."""
        self.late = LateWrites(clock, self._flush_now)
        self._released, self._receipts = 0, Receipts()
        self._is_turning = False
        """Whether a turn is under way: orders that come meanwhile, such as outcomes of work, are for the next turn."""
        self._meanwhile: list[tuple[str, Any, Now]] = []
        """These orders. Cores get them behind the receipts."""

    def work(self) -> None:
        """Run turns until there is nothing left, or other callbacks are due."""
        if self._is_turning or self.ended.done():
            return
        now = self.clock.now()
        ends_at = now.mono + TURNS_NS
        try:
            for _ in range(TURNS_MAX):
                if not self._go_round(now):
                    break
                now = self.clock.now()
                if now.mono > ends_at:
                    self.soon(self.work)
                    break
            else:
                self.soon(self.work)
        except Exception as fault:  # half of a turn has no next one
            self.break_off(fault)
            if not isinstance(fault, StorageFailed):
                raise
        self._arm()

    def _go_round(self, now: Now) -> bool:
        """Run one turn; returns whether there may be more to receive."""
        heard, more = self.links.drain()
        if heard:
            self._hear(heard, now)
        if self._posted:
            posted, self._posted = self._posted, []
            self._hear(posted, now)
        due = self.node.deadline()
        if due is not None and due <= now.mono:
            self.node.wake(now)
        self._turn(now)
        due = self._due = self.node.deadline()
        is_due = due is not None and due <= now.mono
        return more or is_due or self.node.has_effects or bool(self._posted) or self.links.has_more()

    def _hear(self, messages: Sequence[tuple[Source, list[bytes]]], now: Now) -> None:
        self.timings.turn_messages.observe(len(messages))
        for source, frames in messages:
            self.flight.heard(now.mono, source, frames)
        self.node.hear(messages, now)

    def post(self, source: Source, frames: list[bytes]) -> None:
        """Queue a message that came without a ZeroMQ socket, for the next turn."""
        if not self._posted:
            self.soon(self.work)
        self._posted.append((source, frames))

    def soon(self, do: Callable[[], None]) -> None:
        """Call a function in a later callback, after this turn."""
        asyncio.get_running_loop().call_soon(do)

    def order(self, core: str, order: Any) -> None:
        """Give a core an order from outside, and run a turn; if one is under way, the next turn handles it."""
        if not self.ended.done():
            now = self.clock.now()
            self.flight.ordered(now.mono, core, order)
            if self._is_turning:
                self._meanwhile.append((core, order, now))
                return
            self.node.command(core, order, now)
            self.work()

    def tell(self, event: Any) -> None:
        """Pass an event of the shell through the wiring, and run a turn like `order`."""
        if not self.ended.done():
            self.node.tell(event, self.clock.now())
            self.work()

    def finish(self) -> None:
        """End in order, after everything has been sent."""
        self.break_off(None)

    def break_off(self, reason: Any) -> None:
        """End at once: the node is over, nothing can be made durable (JRN-032), or a promise of Weft is broken."""
        if not self.ended.done():
            self.ended.set_result(reason)
        self.late.stop()
        if self._timer is not None:
            self._timer.cancel()

    def note_room(self) -> None:
        """Tell the node when the journal has become full, or has room again (JRN-030)."""
        if self._tell_room(self.clock.now()):
            self.work()

    def _tell_room(self, now: Now) -> bool:
        node, state = self.node, self.journal.state
        if (state is State.FULL) == node.is_full or state not in (State.OPEN, State.FULL) or self.ended.done():
            return False
        why = f"{self.journal.bytes_used} bytes are used of {self.journal.limits.budget_bytes}"
        node.tell(JournalChanged(state.name, why, node.unrecorded_samples, node.unrecorded_events), now)
        return True

    def _turn(self, now: Now) -> None:
        """Carry out the effects of this turn: what needs no disk, then the write and its sync, then the rest (JRN-001)."""
        effects = self.node.effects()
        if not effects:
            return
        self.turns += 1
        self._is_turning = True
        try:
            turn = part_at_wall(effects)
            self._speak(turn.free, now)
            if turn.records:
                self._keep(turn, now)
            if turn.walled:
                self._speak(turn.walled, now)
        finally:
            self._is_turning = False
        releasable = self.node.releasable
        if releasable > self._released:
            self._released = releasable
            self.journal.forget(releasable)
            self.timings.released(releasable, now.mono)
        if self._receipts or self._meanwhile:
            self._tell_receipts(now)
        self._tell_room(now)
        self.timings.turn_seconds.observe(self.clock.mono() - now.mono)

    def _tell_receipts(self, now: Now) -> None:
        """Tell the cores which of their messages were sent, before they get anything else."""
        receipts, self._receipts = self._receipts, Receipts()
        meanwhile, self._meanwhile = self._meanwhile, []
        for core, order, at in [*((*each, now) for each in receipts.orders()), *meanwhile]:
            self.node.command(core, order, at)

    def _keep(self, turn: Turn, now: Now) -> None:
        """Make the records of a turn durable: the node has given them numbers, so they are promises (JRN-030)."""
        if not turn.within_ns:
            before = self.clock.mono()
            self.journal.write(turn.records, now.wall, promised=True)
            self.timings.sync_seconds.observe(self.clock.mono() - before)
            self.late.is_waiting = False
            self._wrote(turn, now)
            return
        self.journal.buffer(turn.records, promised=True)
        self._wrote(turn, now)
        self.late.write_by(now.mono + turn.within_ns)

    def _wrote(self, turn: Turn, now: Now) -> None:
        count, next_lsn = len(turn.records), self.journal.next_lsn
        self.timings.wrote(count, next_lsn, now.mono)
        self.flight.wrote(now.mono, count, next_lsn)
        self.on_durable(turn.records, now)

    def _flush_now(self) -> None:
        try:
            self.journal.flush(self.clock.now().wall)
        except StorageFull:
            return  # late records wait for space, and are written with the next wall
        except StorageFailed as failure:
            self.break_off(failure)

    def _speak(self, effects: Iterable[NodeEffect], now: Now) -> None:
        for effect in effects:
            self.flight.did(now.mono, effect)
            self._say[type(effect)](self, effect)

    def _transmit(self, effect: Transmit) -> None:
        key = (effect.channel, effect.peer)
        door = self.doors.get(effect.channel)
        if door is not None:
            door(effect.peer, effect.frames)
            return
        if self.inside and (hear := self.inside.get(key)) is not None:
            hear(effect.frames)
            return
        is_open = not self._receipts.has_failed(*key)
        if not (is_open and self.links.send(effect.channel, effect.peer, effect.frames)):
            self._receipts.note_unsent(*key)

    def _confirm(self, effect: Confirm) -> None:
        self._receipts.confirm(effect)

    def _connect(self, effect: Connect) -> None:
        self.links.connect(effect)

    def _disconnect(self, effect: Disconnect) -> None:
        if (hang_up := self.hang_ups.get(effect.channel)) is not None:
            hang_up(effect.peer)
        else:
            self.links.disconnect(effect.channel, effect.peer)

    def _perform(self, effect: Perform) -> None:
        self.performers[type(effect.work)](effect.work)

    def _tell(self, effect: Tell) -> None:
        self.on_tell(effect.event)

    def _reply(self, effect: Reply) -> None:
        self.on_reply(effect.ticket, effect.answer)

    def _ended(self, effect: Ended) -> None:
        self.break_off(effect.event)

    _say: Final[dict[type, Callable[..., None]]] = {
        Transmit: _transmit,
        Confirm: _confirm,
        Connect: _connect,
        Disconnect: _disconnect,
        Perform: _perform,
        Tell: _tell,
        Reply: _reply,
        Ended: _ended,
    }

    def _arm(self) -> None:
        """Set the timer to the node's deadline of the last turn, unless it is set so already."""
        due = None if self.ended.done() else self._due
        if due == self.wakes_at:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.wakes_at = due
        if due is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0, due - self.clock.mono()) / SECOND, self._ring)

    def _ring(self) -> None:
        assert self.wakes_at is not None, "a timer rings once"
        self.timings.loop_lag_seconds.observe(max(0, self.clock.mono() - self.wakes_at))
        self._timer = self.wakes_at = None
        self.work()
