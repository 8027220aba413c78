"""The one node that writes (CFG-021 to CFG-027): orders, numbers, history, times to live, majorities."""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from weft.base.keys import bound_node
from weft.base.now import SECOND, Now
from weft.base.paths import is_under
from weft.base.records import Stream, StreamRecord
from weft.cores.configuration import limits
from weft.cores.configuration.context import Context
from weft.cores.configuration.history import History
from weft.cores.configuration.large import Batch, LargeOrders, batch_of
from weft.cores.configuration.majority import Majority
from weft.cores.configuration.memory import Took, Wrote
from weft.cores.configuration.messages import (
    HistoryRead,
    LoadTree,
    NoteApplied,
    OrderRefused,
    ReadHistory,
    RollBack,
    TakeRoot,
    Write,
    WriteDone,
    WriteKeys,
    Written,
)
from weft.cores.configuration.store import Store
from weft.cores.configuration.telling import Teller
from weft.cores.configuration.writes import growth, is_unchanged, refusal, refusal_of_dead, smallest
from weft.cores.kit.timers import earliest
from weft.wire.replication import (
    NO_QUORUM,
    NOT_ROOT,
    TOO_LARGE,
    UNSPECIFIED,
    KvPub,
    chain_of,
    counter_of,
    epoch_of,
    number_of,
)

ORIGIN: Final = "root"
"""The origin of the writes in the lake, whichever node is root."""


class Pending(NamedTuple):
    """An order that waits until a majority has a number."""

    by: int
    number: int
    writes: int
    ticket: int
    core: str
    dead: tuple[str, ...] = ()
    """Alerts that can never fire after a rollback."""


class Root:
    """Makes the writes while this node is root. Times are monotonic nanoseconds unless stated."""

    def __init__(self, context: Context, teller: Teller) -> None:
        self.context, self.teller = context, teller
        self.history = history = History()
        history.room = context.budget.part("history", limits.HISTORY_PERCENT, lambda: history.cost)
        self.is_root = self.is_acting = False
        self.epoch = 0
        self.majority = Majority(context)
        self._pending: list[Pending] = []
        self._large = LargeOrders(self._begin, self._make)
        self._expiring: list[tuple[int, str, int]] = []
        """When, key, number: a heap; entries of overwritten keys are ignored."""
        self.newly_dead: Callable[[Store, Sequence[Write]], tuple[str, ...]] = lambda *_: ()
        """The alerts that these writes would leave unable to fire, each as `key: sentence` (MET-003). The node sets it,
        because no core knows what another one measures."""

    # Being the root

    def take(self, order: TakeRoot, now: Now) -> None:
        """Become root, from the present counter on (REC-012)."""
        store = self.context.store
        was_root, self.is_root, self.is_acting, self.epoch = self.is_root, True, order.is_acting, order.epoch
        if not was_root:
            self.context.is_diverged = False
            self.majority.begin()
        if order.is_acting:
            self._give_up()
        elif not store.wrote_from:
            took = Took(self._next_number())
            self.context.remember(took)
            self.begin(took)
        self._expiring = []
        for key, at in sorted(store.expiries.items()):
            self._expire_at(key, now.mono + max(at - now.wall, 0))

    def begin(self, took: Took) -> None:
        """The effect of becoming root; also when it is restored."""
        self.context.store.wrote_from = took.first
        self.history.begin(self.context.store.number)

    def step_down(self) -> None:
        """Stop being root: waiting orders are answered as unconfirmed."""
        self.is_root = self.is_acting = False
        self._give_up()
        pending, self._pending, self._expiring = self._pending, [], []
        for each in pending:
            self._answer(each, is_confirmed=False)

    def _next_number(self) -> int:
        """Above every earlier number; a new epoch continues with the counter."""
        number = max(self.context.store.number, self.context.store.seen)
        return number_of(max(self.epoch, epoch_of(number)), counter_of(number) + 1)

    # Orders

    def write(self, order: WriteKeys, now: Now) -> None:
        """Make all writes of an order, or none (CFG-022)."""
        if batch := self._begin(order, order.writes, now):
            self._make(batch, len(batch.left), now)

    def load(self, order: LoadTree, now: Now) -> None:
        """Make the subtrees contain exactly these pairs, in as many turns as it takes."""
        for key, _ in order.pairs:
            if not any(is_under(key, prefix) for prefix in order.prefixes):
                self._refuse(
                    order.ticket, "", OrderRefused(UNSPECIFIED, f"{key} lies under none of the prefixes", key=key)
                )
                return
        wanted = dict(order.pairs)
        self._line_up(order, lambda: smallest(self.context.store, wanted, order.prefixes), now)

    def roll_back(self, order: RollBack, now: Now) -> None:
        """Restore keys to their state just after a number, by new writes.

        Bindings are left alone: a key revoked since then must not come back (SEC-025).
        """
        reaches, last = self.history.reaches, self.context.store.number
        if self.is_root and not reaches <= order.number <= last:
            text = f"there is no write {order.number} to go back to: the history has {reaches} to {last}"
            self._refuse(order.ticket, "", OrderRefused(UNSPECIFIED, text))
            return
        self._line_up(order, lambda: self._writes_back_to(order), now)

    def _writes_back_to(self, order: RollBack) -> tuple[Write, ...]:
        then = self.history.before(order.number, order.subtree)
        return tuple(Write(key, value) for key, value in sorted(then.items()) if bound_node(key) is None)

    def read_history(self, order: ReadHistory, now: Now) -> None:
        """The last writes of a subtree."""
        if not self.is_root:
            self._refuse(order.ticket, "", self._not_root())
            return
        count = min(max(order.count_max, 1), limits.LIST_MAX)
        self.context.reply(order.ticket, HistoryRead(self.history.newest(order.subtree, count)))

    def _not_root(self) -> OrderRefused:
        root = self.context.root().endpoint
        who = root or "none is known yet; one that starts listens for another for some seconds"
        return OrderRefused(NOT_ROOT, f"only the root writes: {who}", root)

    def _refuse(self, ticket: int, core: str, refused: OrderRefused) -> None:
        self.context.counters.count(self.context.counters.refused, refused.code)
        if core:
            self.context.tell(WriteDone(core, ticket, 0, refused.code))
        else:
            self.context.reply(ticket, refused)

    def _line_up(self, order: LoadTree | RollBack, find: Callable[[], tuple[Write, ...]], now: Now) -> None:
        if not self.is_root:
            self._refuse(order.ticket, "", self._not_root())
        elif self._large.is_full:
            self._refuse(order.ticket, "", OrderRefused(UNSPECIFIED, f"{limits.LARGE_MAX} large orders wait already"))
        else:
            writes = WriteKeys(order.ticket, (), order.who, is_rollback=isinstance(order, RollBack))
            self._large.add(writes, find, now)

    def _give_up(self) -> None:
        """Refuse what is left of the large orders; what was written stays."""
        for order, how_far in self._large.give_up():
            text = f"this node stopped being root{how_far}"
            self._refuse(order.ticket, order.by, OrderRefused(NOT_ROOT, text, self.context.root().endpoint))

    def _begin(self, order: WriteKeys, writes: tuple[Write, ...], now: Now) -> Batch | None:
        """The writes that change something; None if the order is refused."""
        refused = self._refusal(order, writes, now)
        dead = () if refused or order.by else self.newly_dead(self.context.store, writes)
        refused = refused or (None if order.is_rollback else refusal_of_dead(dead))
        if refused:
            self._refuse(order.ticket, order.by, refused)
            return None
        return batch_of(order, self._changing(writes), dead)

    def _refusal(self, order: WriteKeys, writes: tuple[Write, ...], now: Now) -> OrderRefused | None:
        if not self.is_root:
            return self._not_root()
        if self.is_acting:
            return OrderRefused(NO_QUORUM, "there is no root, only one that acts for it")
        if len(order.who.encode()) > limits.WHO_BYTES_MAX:
            return OrderRefused(UNSPECIFIED, f"`who` is a name of at most {limits.WHO_BYTES_MAX} bytes")
        if refused := refusal(self.context.store, writes) or self._lacks_memory(writes):
            return refused
        if not order.by and self._waits(order) and self.majority.is_alone(now):
            return OrderRefused(NO_QUORUM, "most of the first-level collectors are out of reach")
        return None

    def _make(self, batch: Batch, count: int, now: Now) -> None:
        """Make up to `count` writes; after the last one, promise."""
        for _ in range(min(count, len(batch.left))):
            write = batch.left.popleft()
            chain = chain_of(write.key)
            batch.of_chain[chain] -= 1
            self._write(write, batch.order.who, now, is_more=batch.of_chain[chain] > 0)
        if batch.left:
            return
        if batch.total:
            self.teller.flush(now, is_root=True)
        self._promise(batch, now)

    def _lacks_memory(self, writes: tuple[Write, ...]) -> OrderRefused | None:
        """Refuse writes that memory has no room for; deletions and shorter values are always accepted (FLD-032)."""
        store = self.context.store
        if self.context.room.has_room(sum([growth(store, write) for write in writes])):
            return None
        self.context.room.refuse()
        return OrderRefused(TOO_LARGE, f"no memory left: {store.cost} bytes of {self.context.room.bytes_max}")

    def _changing(self, writes: tuple[Write, ...]) -> list[Write]:
        """Leave out writes that change nothing; of several writes of one key only the last counts."""
        last = {write.key: write for write in writes}
        return [write for write in last.values() if not is_unchanged(self.context.store, write)]

    def _write(self, write: Write, who: str, now: Now, *, is_more: bool) -> None:
        """One write: number it, make it durable, apply it, publish it."""
        store, key, value = self.context.store, write.key, write.value
        number, chain = self._next_number(), chain_of(write.key)
        last = store.chains.get(chain)
        prev = last.number if last is not None else 0
        ttl = write.ttl_s if value else None
        expires_at = now.wall + round(ttl * SECOND) if ttl is not None else 0
        old = store.value(key)
        wrote = Wrote(key, number, value, prev, expires_at, who, now.wall)
        update = KvPub(key, number, self.context.node, value, prev, ttl, is_more)
        self.context.remember(wrote)
        self._to_lake(update, who, now)
        self.adopt(wrote, old)
        self.majority.note_digest()
        if ttl is not None:
            self._expire_at(key, now.mono + round(ttl * SECOND))
        self.context.counters.written += 1
        self.context.publish(update)
        self.teller.note(key, value, "root")
        self.teller.expect(chain, now, is_more=is_more)

    def adopt(self, wrote: Wrote, old: bytes) -> None:
        """The effect of a durable own write; also when it is restored."""
        store = self.context.store
        if wrote.number >= store.number:
            store.apply(wrote.key, wrote.number, wrote.value, wrote.prev)
            if wrote.expires_at:
                store.expiries[wrote.key] = wrote.expires_at
        self.history.add((wrote.number, wrote.who, wrote.at, wrote.key, old, wrote.value))

    def _to_lake(self, update: KvPub, who: str, now: Now) -> None:
        """The record of the write for the lake, in the same Persist."""
        if not self.context.settings.is_kept:
            return
        attributes = {"who": who, "prev": update.prev, "deleted": not update.value}
        record = StreamRecord(
            stream=Stream.CONFIGURATION,
            origin=ORIGIN,
            era=epoch_of(update.number),
            sequence=counter_of(update.number),
            at=now.wall,
            received=now.wall,
            key=update.key,
            payload=update.value,
            attributes=attributes,
        )
        self.context.keep(record)

    # Acknowledgement

    def note_applied(self, order: NoteApplied, now: Now) -> None:
        """A node has applied a number (CFG-047); this may complete the majority for a waiting order (CFG-024)."""
        if not self.is_root:
            return
        self.majority.note_applied(order, now)
        if not self._pending:
            return
        confirmed = self.majority.confirmed()
        done = [each for each in self._pending if each.number <= confirmed]
        self._pending = [each for each in self._pending if each.number > confirmed]
        for each in done:
            self._answer(each, is_confirmed=True)

    def _waits(self, order: WriteKeys) -> bool:
        """Whether the order's answer waits for a majority (CFG-024)."""
        ack = order.ack or self.context.settings.write_ack
        return ack == "quorum" or (ack == "auto" and self.majority.voters > 2)

    def _promise(self, batch: Batch, now: Now) -> None:
        order = batch.order
        number = self.context.store.number if batch.total else 0
        waits = self._waits(order)
        pending = Pending(now.mono + limits.ACK_NS, number, batch.total, order.ticket, order.by, batch.dead)
        if waits and number > self.majority.confirmed() and len(self._pending) < limits.PENDING_MAX:
            self._pending.append(pending)
        else:
            self._answer(pending, is_confirmed=not waits or number <= self.majority.confirmed())

    def _answer(self, pending: Pending, *, is_confirmed: bool) -> None:
        if pending.core:
            self.context.tell(WriteDone(pending.core, pending.ticket, pending.number))
        else:
            self.context.reply(
                pending.ticket, Written(pending.number, pending.writes, is_confirmed, pending.dead[: limits.DEAD_MAX])
            )

    # Time

    def _expire_at(self, key: str, at: int) -> None:
        pair = self.context.store.pairs.get(key)
        if pair is not None:
            heappush(self._expiring, (at, key, pair.number))
        if len(self._expiring) > 2 * len(self.context.store.expiries) + limits.EXPIRING_SPARE:
            self._expiring = [each for each in self._expiring if self._is_current(*each[1:])]
            heapify(self._expiring)

    def _is_current(self, key: str, number: int) -> bool:
        """Whether a key was not written since, and still has an end."""
        pair = self.context.store.pairs.get(key)
        return pair is not None and pair.number == number and key in self.context.store.expiries

    def wake(self, now: Now) -> None:
        """Go on with a large order, delete keys whose time to live is over, answer orders that have waited too long."""
        if not self.is_root:
            return
        self._large.wake(now)
        late = [each for each in self._pending if now.mono >= each.by]
        self._pending = [each for each in self._pending if now.mono < each.by]
        for each in late:
            self._answer(each, is_confirmed=False)
        while self._expiring and now.mono >= self._expiring[0][0] and not self.is_acting:
            self._expire(now)

    def _expire(self, now: Now) -> None:
        _, key, number = heappop(self._expiring)
        if self._is_current(key, number):
            self._write(Write(key, b""), "ttl", now, is_more=False)
            self.context.counters.expired += 1
            self.teller.flush(now, is_root=True)

    def deadline(self) -> int | None:
        if not self.is_root:
            return None
        answer_by = self._pending[0].by if self._pending else None
        return earliest(
            self._large.deadline(), answer_by, self._expiring[0][0] if self._expiring and not self.is_acting else None
        )
