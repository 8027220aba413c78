"""The configuration of the fleet, written by one root and replicated down the tree.

The root numbers every write and publishes it. A replica first subscribes, then asks for a snapshot, adopts it as a
whole, and follows the updates; a node with children serves them in the same way. A lower number empties a replica, and
a gap makes it ask again. A collector that had to ask again repeats the last writes that its children cannot know, so
that they notice. So all replicas become equal, or report that they are not.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Final

from weft.base.chance import Chance
from weft.base.effects import Confirmed, Effect, SendFailed, Source
from weft.base.errors import OurFault, PeerError
from weft.base.now import Now
from weft.base.records import CoreRecord, DamageRecord, Entry
from weft.cores.configuration import limits
from weft.cores.configuration.context import ASK, UPDATES, Context, Counters
from weft.cores.configuration.memory import (
    CORE,
    Adopted,
    Applied,
    Begun,
    Kept,
    Memory,
    Noted,
    Old,
    Part,
    Took,
    Wiped,
    Wrote,
    from_record,
    to_record,
)
from weft.cores.configuration.messages import (
    ConfigurationSettings,
    FollowParent,
    KeysListed,
    LeaveParent,
    ListKeys,
    LoadTree,
    NoteApplied,
    NotePromises,
    NoteVoters,
    ReadHistory,
    RollBack,
    SetTimes,
    StepDown,
    Stop,
    TakeRoot,
    TellPairs,
    WriteKeys,
)
from weft.cores.configuration.replica import Replica
from weft.cores.configuration.root import Root
from weft.cores.configuration.serving import Serving
from weft.cores.configuration.states import State
from weft.cores.configuration.store import Store
from weft.cores.configuration.telling import Teller
from weft.cores.kit.timers import earliest

_key_of: Final = attrgetter("key")


class Configuration:
    """The configuration core of one node, which is root, collector or sensor, as ordered."""

    name = CORE

    def __init__(self, settings: ConfigurationSettings, node: bytes, chance: Chance) -> None:
        self.context = Context(settings, node)
        self.budget = self.context.budget
        self.teller = Teller(self.context)
        self.replica = Replica(self.context, self.teller, chance)
        self.root = Root(self.context, self.teller)
        self.serving = Serving(
            self.context,
            1 if chance.rarely("one pair in a portion") else limits.PORTION,
            1 if chance.rarely("a snapshot of one pair is packed") else limits.PACKED_FROM,
        )
        self._now = Now(0, 0)
        self._asked_for: int | None = None
        self._is_untold = False
        self._breaks = 0

    @property
    def state(self) -> State:
        """The state of the replica; IDLE at a root."""
        return self.replica.state

    @property
    def store(self) -> Store:
        """The store of this node. Do not change it."""
        return self.context.store

    @property
    def shown_digest(self) -> bytes:
        """Digest of all pairs; empty on a node that has only a part, or other pairs than its parent (FLD-002)."""
        return self.context.shown_digest()

    @property
    def counters(self) -> Counters:
        """Counters of updates applied, repeated, asked again and served (CFG-090)."""
        return self.context.counters

    @property
    def is_current(self) -> bool:
        """Whether this node is root, or its replica follows without a gap."""
        return self.root.is_root or self.replica.state is State.RUN

    # Memory

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Restore the store as stale: it is readable, and served only after SYNC (CFG-048)."""
        for _, record in entries:
            if type(record) is CoreRecord and record.core == CORE:
                memory = from_record(record)
                _RECALL[type(memory)](self, memory)
            elif type(record) is DamageRecord:
                self.root.history.cut(self.store.number)
        self.replica.published = {chain: last.number for chain, last in self.store.chains.items()}
        self._is_untold = bool(self.store.pairs)

    def _recall_applied(self, memory: Applied) -> None:
        self.store.apply(memory.key, memory.number, memory.value, memory.prev)
        if memory.expires_at:
            self.store.expiries[memory.key] = memory.expires_at

    def _recall_wrote(self, memory: Wrote) -> None:
        self.root.adopt(memory, self.store.value(memory.key))

    def _recall_wiped(self, memory: Wiped) -> None:
        self.store.wipe()
        self.store.seen = memory.seen

    def _recall_piece(self, memory: Begun | Part) -> None:
        self.context.note(memory)

    def _recall_adopted(self, memory: Adopted | Kept) -> None:
        for piece in self.context.parts:
            if isinstance(piece, Part):
                self.store.take(piece)
            elif piece.is_whole:
                self.context.store = Store(self.store.room)
        self.context.note(memory)
        self.store.adopt(memory)
        if isinstance(memory, Kept):
            self.root.history.reaches, self.root.history.is_cut = memory.history_from, memory.is_history_cut

    def _recall_took(self, memory: Took) -> None:
        self.root.begin(memory)

    def _recall_noted(self, memory: Noted) -> None:
        self.store.note(memory.last)

    def _recall_old(self, memory: Old) -> None:
        self.root.history.adopt(memory.writes)

    def condense(self) -> Iterable[CoreRecord]:
        """The whole store, and the history of a root, in bounded records (JRN-040)."""
        store, history = self.store, self.root.history
        if not self.context.settings.is_kept:
            return
        for memory in (*store.condense(), *history.condense()):
            yield to_record(memory)
        floors = sorted(store.floors.items())
        yield to_record(Kept(store.number, store.seen, floors, store.wrote_from, history.reaches, history.is_cut))
        for piece in self.context.parts:
            yield to_record(piece)

    # Verbs

    def receive(self, message: Any, source: Source, now: Now) -> None:
        """Process a message of the parent (`updates`, `ask`) or a child (`serve`).

        PeerError, counted, if it is not allowed.
        """
        self._look_at_clock(now)
        try:
            if source.channel == UPDATES:
                self.replica.hear_update(message, source, now)
            elif source.channel == ASK:
                self.replica.hear_answer(message, source, now)
            else:
                self.serving.receive(message, source, now, is_ready=self.is_current)
        except PeerError as error:
            self.counters.count(self.counters.refused, error.code)
            raise

    def command(self, order: Any, now: Now) -> None:
        """Obey an order of `messages`; OurFault for any other."""
        self._look_at_clock(now)
        obey = _OBEY.get(type(order))
        if obey is None:
            raise OurFault(f"configuration knows no order {type(order).__name__}")
        if self._is_untold and type(order) not in (
            Stop,
            NotePromises,
        ):  # other cores continue with the values from before the start
            self._is_untold = False
            self.teller.tell_all()
            self.teller.flush(now, is_root=type(order) is TakeRoot)
        obey(self, order, now)

    def wake(self, now: Now) -> None:
        """Do what is due. If the wake-up comes much later than asked for, all silence timers start again (REC-001)."""
        self._look_at_clock(now)
        self.replica.wake(now)
        self.root.wake(now)
        self.serving.wake(now)

    def _look_at_clock(self, now: Now) -> None:
        self._now = now
        if self._asked_for is not None and now.mono > self._asked_for + self.context.dead_ns // 2:
            self._asked_for = None
            self.replica.forgive(now)

    def deadline(self) -> int | None:
        """Monotonic nanoseconds at which to be woken; None: never."""
        tell_at = self.teller.deadline() if self.replica.state is not State.SYNC else None
        of_parts = (self.replica.deadline(), self.root.deadline(), self.serving.deadline())
        self._asked_for = earliest(tell_at, *of_parts)
        return self._asked_for

    def effects(self) -> list[Effect]:
        """All effects in order: one wall for the turn, and everything else behind it."""
        now = self._now
        if self.replica.state is not State.SYNC:
            self.teller.flush(now, is_root=self.root.is_root)
        if self._breaks != self.replica.breaks:
            self._breaks = self.replica.breaks
            self.serving.break_off()
        if self.serving.waiting and self.is_current:
            self.serving.release(now)
        self.serving.beat(now, is_due=self._is_believed(now))
        return self.context.take()

    def _is_believed(self, now: Now) -> bool:
        """Whether children should keep hearing us (CFG-045)."""
        if self.root.is_root:
            return True
        replica = self.replica
        return replica.serves and replica.state is not State.IDLE and not replica.silence.is_orphaned(now)

    # Orders

    def _follow(self, order: FollowParent, now: Now) -> None:
        if self.root.is_root:
            self.root.step_down()
        self.replica.assign(order, now)

    def _leave(self, order: LeaveParent, now: Now) -> None:
        self.replica.leave(now)

    def _take_root(self, order: TakeRoot, now: Now) -> None:
        self.replica.leave(now)
        self.teller.settle()
        self.root.take(order, now)

    def _step_down(self, order: StepDown, now: Now) -> None:
        self.root.step_down()

    def _list(self, order: ListKeys, now: Now) -> None:
        """The pairs of a subtree as they are known here."""
        count_max = min(max(order.count_max, 1), limits.LIST_MAX)
        found: list[tuple[str, int, bytes]] = []
        size, is_more = 0, False
        view = self.store.view(order.subtree)
        begin = bisect_right(view, order.after, key=_key_of)
        for pair in view[begin : begin + count_max + 1]:
            size += len(pair.key) + len(pair.value)
            is_more = len(found) >= count_max or (bool(found) and size > limits.LIST_BYTES_MAX)
            if is_more:
                break
            found.append((pair.key, pair.number, pair.value))
        self.context.reply(order.ticket, KeysListed(tuple(found), self.store.number, self.is_current, is_more))

    def _write(self, order: WriteKeys, now: Now) -> None:
        self.root.write(order, now)

    def _load(self, order: LoadTree, now: Now) -> None:
        self.root.load(order, now)

    def _roll_back(self, order: RollBack, now: Now) -> None:
        self.root.roll_back(order, now)

    def _read_history(self, order: ReadHistory, now: Now) -> None:
        self.root.read_history(order, now)

    def _note_voters(self, order: NoteVoters, now: Now) -> None:
        self.root.majority.note_voters(order, now)

    def _set_times(self, order: SetTimes, now: Now) -> None:
        self.context.set_times(order.heartbeat_ns, order.dead_after)
        self.replica.silence.forgive(now)

    def _note_applied(self, order: NoteApplied, now: Now) -> None:
        self.root.note_applied(order, now)

    def _note_promises(self, order: NotePromises, now: Now) -> None:
        self.context.promises = order.promises

    def _confirmed(self, order: Confirmed, now: Now) -> None:
        self.serving.confirm(order, now)

    def _send_failed(self, order: SendFailed, now: Now) -> None:
        """Portions of snapshots are confirmed; anything else that was lost is asked for again."""

    def _tell(self, order: TellPairs, now: Now) -> None:
        """Nothing to do: any order makes the teller report all pairs first."""

    def _stop(self, order: Stop, now: Now) -> None:
        self.root.step_down()
        self.replica.leave(now)
        self.serving.forget()


_OBEY: Final[dict[type, Callable[[Configuration, Any, Now], None]]] = {
    FollowParent: Configuration._follow,
    LeaveParent: Configuration._leave,
    TakeRoot: Configuration._take_root,
    StepDown: Configuration._step_down,
    WriteKeys: Configuration._write,
    LoadTree: Configuration._load,
    ListKeys: Configuration._list,
    ReadHistory: Configuration._read_history,
    RollBack: Configuration._roll_back,
    NoteApplied: Configuration._note_applied,
    NotePromises: Configuration._note_promises,
    NoteVoters: Configuration._note_voters,
    SetTimes: Configuration._set_times,
    Confirmed: Configuration._confirmed,
    TellPairs: Configuration._tell,
    SendFailed: Configuration._send_failed,
    Stop: Configuration._stop,
}
_RECALL: Final[dict[type[Memory], Callable[[Configuration, Any], None]]] = {
    Applied: Configuration._recall_applied,
    Wrote: Configuration._recall_wrote,
    Wiped: Configuration._recall_wiped,
    Begun: Configuration._recall_piece,
    Part: Configuration._recall_piece,
    Adopted: Configuration._recall_adopted,
    Kept: Configuration._recall_adopted,
    Took: Configuration._recall_took,
    Noted: Configuration._recall_noted,
    Old: Configuration._recall_old,
}
