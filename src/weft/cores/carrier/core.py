"""Both sides of the reliable link between a child and its parent.

The journal is the outbox: records behind the safe cursor go up in lsn order, in batches, through a window. The parent
writes them into its own journal before it acknowledges them, and sends them on in the same way. When they are durable
at the root, `safe` comes back down, and only then may a child forget them (CHN-030..043, MEA-023..028).

Samples never expire on the way (CHN-041 applies to mail), and live records do not overtake the backlog, since all
travel in lsn order. Mail uses the same stream for one hop: `screen` decides what becomes of it where it arrives, and
the records that `screen` returns stand in one Persist with the record that the hop is done.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from weft.base.chance import Chance
from weft.base.effects import Effect, Source
from weft.base.errors import OurFault, PeerError
from weft.base.now import Now
from weft.base.records import CoreRecord, DamageRecord, Entry, Record, StreamRecord
from weft.cores.carrier import limits
from weft.cores.carrier.child import UP, Child
from weft.cores.carrier.context import Context, Counters
from weft.cores.carrier.intake import Intake, Screen
from weft.cores.carrier.memory import (
    CORE,
    PLACED,
    ChildKept,
    Doubted,
    GivenUp,
    Home,
    Met,
    MetKept,
    Received,
    Rooted,
    Safe,
    SeenKept,
    SpoolKept,
    from_record,
    to_record,
)
from weft.cores.carrier.messages import (
    AnnounceDamage,
    AssignParent,
    CarrierSettings,
    DismissParent,
    Drained,
    DropOldest,
    FiltersKnown,
    Garbled,
    HoldBack,
    InLake,
    Journaled,
    LakeUnread,
    PostMail,
    RecordsFetched,
    Released,
    RootIs,
    SpoolDropped,
    Stop,
)
from weft.cores.carrier.outbox import Outbox, is_carried, weight
from weft.cores.carrier.parent import Parent, doubt
from weft.cores.carrier.spool import Damages, Dropping, HighWater
from weft.cores.carrier.states import State
from weft.cores.carrier.takeover import TakeOver
from weft.cores.kit.timers import earliest
from weft.wire.carried import is_mail


class Carrier:
    """The carrier core of node `node` in its start `era`. A record that is durable at the root is safe."""

    name = CORE

    def __init__(self, settings: CarrierSettings, node: bytes, era: int, chance: Chance) -> None:
        self.context = Context(settings, node, era)
        self.budget = self.context.budget
        self.outbox = outbox = Outbox(node, era, settings.memory_bytes, self.context.counters)
        outbox.room = self.budget.part("records", limits.RECORDS_PERCENT, lambda: outbox.cost, settings.memory_bytes)
        outbox.is_on_disk_only = chance.rarely("a spool that is on disk only")
        self.intake = Intake(self.context)
        self.parent = Parent(self.context, lambda: self.outbox.seen_lsn, self.intake)
        self.child = Child(self.context, chance, self.outbox, self.intake)
        if chance.rarely("a window of one message"):
            self.parent.window = 1
        self._settle_ns = 0 if chance.rarely("what is safe is passed on at once") else limits.SETTLE_NS
        self._is_root = settings.is_root
        self.take_over = TakeOver(self.context, chance, outbox, self.intake, self.parent)
        self._dropping: Dropping | None = None
        self._damages = Damages()
        self._high_water = HighWater(self.context)
        self._drained_lsn = 0
        """At a root: records up to here are in the lake; a new root counts that when it has read its journal."""
        self._promised_lsn = 0
        """The lsn of the mail that stopped the last drop; 0: none did."""
        self._now = Now(0, 0)
        self._settle_at: int | None = None
        self._asked_for: int | None = None
        self._released = self._written_lsn = self._counted_lsn = self._heard_lsn = 0

    @property
    def screen(self) -> Screen:
        """Called for each new record and each new piece of mail; returns the records to keep in its place (CHN-033)."""
        return self.intake.screen

    @screen.setter
    def screen(self, screen: Screen) -> None:
        self.intake.screen = screen

    @property
    def state(self) -> State:
        """The state of the link to the parent."""
        return self.child.state

    @property
    def counters(self) -> Counters:
        """Counters of records sent, held, safe and refused, and a few current values (CHN-082)."""
        counters = self.context.counters
        counters.children = len(self.parent.links)
        counters.oldest_at = 0 if self._is_root else self.outbox.oldest_at()
        return counters

    # Memory

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Restore cursors and progress; unsafe records are read from the journal when they are sent."""
        for lsn, record in entries:
            if type(record) is CoreRecord:
                if record.core == CORE:
                    self._recall(lsn, record)
            elif is_carried(record):
                self._recount(lsn, record)
                self._damages.note(record)
            elif type(record) is DamageRecord:  # records stood there that numbers of children may end at
                self.outbox.resume(0, record.end_lsn - 1)
        self.outbox.resume(self._written_lsn, 0)
        self._settle_at = now.mono

    def _recall(self, lsn: int, record: CoreRecord) -> None:
        memory = from_record(record)
        parent = self.parent
        match memory:
            case Received():
                parent.note(memory, lsn, self.outbox.seen_lsn)
            case Safe() | GivenUp():
                if lsn > self._counted_lsn:
                    self._recall_spool(memory)
            case SpoolKept():
                self._counted_lsn = memory.seen_lsn
                self.outbox.resume(0, memory.seen_lsn)
                self._recall_spool(memory)
            case ChildKept():
                parent.progress.adopt(memory)
            case SeenKept():
                parent.seen.adopt(memory)
            case Rooted():
                self.take_over.recall(memory)
            case Doubted():
                self._damages.doubted[memory] = None
                parent.progress.roll_back(memory, lsn)
            case _:
                self._recall_mail(memory)

    def _recall_mail(self, memory: Any) -> None:
        match memory:
            case Met():
                self.intake.met.replay(memory)
            case MetKept():
                self.intake.met.adopt(memory)
            case Home():
                self.outbox.home_lsn = memory.lsn

    def _recall_spool(self, memory: Safe | SpoolKept | GivenUp) -> None:
        self._written_lsn = max(self._written_lsn, memory.lsn)
        self.context.counters.spool_records, self.context.counters.spool_bytes = memory.records, memory.bytes
        if isinstance(memory, GivenUp):
            self.parent.progress.postpone(memory.lsn, self.outbox.seen_lsn)
        elif not self.context.settings.is_safe_at_once:
            self.parent.progress.pass_on(memory.lsn)

    def _recount(self, lsn: int, record: Any) -> None:
        self.outbox.resume(0, lsn)
        if self._is_root:
            if type(record) is StreamRecord and not is_mail(record):
                self.parent.seen.take(record)
        elif lsn > self._counted_lsn:
            self.context.counters.spool_records += 1
            self.context.counters.spool_bytes += weight(record)

    def condense(self) -> Iterable[CoreRecord]:
        """Everything that `restore` needs, as of the last record journaled."""
        outbox, counters = self.outbox, self.context.counters
        frontier = outbox.safe_lsn if self._is_root else outbox.frontier()
        if self._is_root and self.take_over.epoch:
            yield to_record(Rooted(self.take_over.epoch))
        yield to_record(SpoolKept(frontier, counters.spool_records, counters.spool_bytes, outbox.seen_lsn))
        for child in self.parent.progress.condense(outbox.seen_lsn):
            yield to_record(child)
        for seen in self.parent.seen.condense():
            yield to_record(seen)
        for met in self.intake.met.condense():
            yield to_record(met)
        if self.outbox.home_lsn:
            yield to_record(Home(self.outbox.home_lsn))

    # Verbs

    def receive(self, message: Any, source: Source, now: Now) -> None:
        """Process a message of the parent (`up`) or of a child (`down`); PeerError, counted, if it is not allowed."""
        self._look_at_clock(now)
        try:
            if source.channel == UP:
                self._hear_parent(message, source, now)
            else:
                self.parent.receive(message, source, now)
        except PeerError as error:
            self.context.counters.refuse(error.code)
            raise

    def _hear_parent(self, message: Any, source: Source, now: Now) -> None:
        safe_lsn = self.outbox.safe_lsn
        self.child.receive(message, source, now)
        self._know_parent()
        if self.outbox.safe_lsn != safe_lsn:
            self._settle_soon(now)

    def _know_parent(self) -> None:
        self.parent.parent, self.parent.parent_name = self.child.parent, self.child.parent_name
        self.intake.dispatch.has_parent = self.child.state is not State.NONE

    def command(self, order: Any, now: Now) -> None:
        """Obey an order of `messages`; OurFault for any other."""
        self._look_at_clock(now)
        obey = _OBEY.get(type(order))
        if obey is None:
            raise OurFault(f"the carrier knows no order {type(order).__name__}")
        obey(self, order, now)

    def wake(self, now: Now) -> None:
        """Do what is due. If the wake-up comes much later than asked for, all silence timers start again (REC-001)."""
        self._look_at_clock(now)
        self.child.wake(now)
        self._know_parent()
        self.parent.wake(now)
        self.intake.dispatch.wake(now)
        self.take_over.wake(now)
        if self._settle_at is not None and now.mono >= self._settle_at:
            self._settle()

    def _look_at_clock(self, now: Now) -> None:
        """Recognise that the machine has slept, by a wake-up that is long overdue, whichever input comes first.

        The silence timers are restarted at once, and only once: otherwise the next wake-up would restart them too, and
        hide that a peer died long after the sleep.
        """
        self._now = now
        if self._asked_for is not None and now.mono > self._asked_for + self.context.dead_ns // 2:
            self._asked_for = None
            self.child.forgive(now)
            self.parent.forgive(now)

    def deadline(self) -> int | None:
        """Monotonic nanoseconds at which to be woken; None: never."""
        of_links = self.child.deadline(), self.parent.deadline()
        of_mail = self.intake.dispatch.deadline(), self.take_over.deadline()
        self._asked_for = earliest(self._settle_at, *of_links, *of_mail)
        return self._asked_for

    def effects(self) -> list[Effect]:
        """All effects, in order. One turn makes one `Persist`, one `hack` per child, and full hops."""
        self.parent.flush(self._now)
        if not self._is_root:
            self.child.pump(self._now)
        self.parent.pump(self._now)
        self._high_water.look()
        return self.context.take()

    # Orders

    def _assign(self, order: AssignParent, now: Now) -> None:
        if self._is_root:
            raise OurFault("a root has no parent")
        self.child.assign(order, now)
        self._know_parent()

    def _root_is(self, order: RootIs, now: Now) -> None:
        root = (order.node, order.epoch)
        if root != self.context.root:
            self.context.root = root
            safe_lsn = self.outbox.safe_lsn
            self.child.root_is()
            self.parent.root_is()
            if self.outbox.safe_lsn != safe_lsn:
                self._settle_soon(now)

    def _dismiss(self, order: DismissParent, now: Now) -> None:
        self.child.dismiss("dismissed", now)
        self._know_parent()

    def _stop(self, order: Stop, now: Now) -> None:
        self.child.dismiss("stopping", now)
        self.parent.stop(now)
        self.intake.dispatch.stop()
        self._settle()

    def _journaled(self, order: Journaled, now: Now) -> None:
        last, node, era = self.outbox.seen_lsn, self.context.node, self.context.era
        if self._is_root:
            self._journaled_at_root(order)
        else:
            self.outbox.add(order.first_lsn, order.records)
        for lsn, record in enumerate(order.records, order.first_lsn):
            if type(record) is CoreRecord:
                if record.core == CORE and record.kind in PLACED:
                    self._place(from_record(record), lsn, last)
                    self._settle_soon(now)
            elif is_carried(record):
                last = lsn
                if type(record) is StreamRecord and record.origin == node and record.era == era:
                    self.parent.given[record.stream] = max(record.last, self.parent.given.get(record.stream, 0))
        self._heard_lsn = order.first_lsn + len(order.records) - 1
        if self._heard_lsn >= self._released + limits.RELEASE_STEP:
            self._settle_soon(now)

    def _place(self, memory: Any, lsn: int, last: int) -> None:
        """The journal has this memory at `lsn`; the last carried record before it stands at `last`."""
        if type(memory) is Received:
            self.parent.note(memory, lsn, last)
        else:
            self.parent.progress.postpone(memory.lsn, last)

    def _journaled_at_root(self, order: Journaled) -> None:
        for lsn, record in enumerate(order.records, order.first_lsn):
            if type(record) is CoreRecord:
                continue
            if is_carried(record):
                self.outbox.seen_lsn = lsn
            if type(record) is StreamRecord and not is_mail(record):
                self.parent.seen.take(record)

    def _drained(self, order: Drained, now: Now) -> None:
        """Note what is in the lake.

        A root that is no root after its next start sends the records behind that (REC-015).
        """
        if self._is_root:
            self._drained_lsn = order.upto
            self._settle_soon(now)

    def _in_lake(self, order: InLake, now: Now) -> None:
        self.take_over.in_lake(order, now)
        self._settle_soon(now)

    def _lake_unread(self, order: LakeUnread, now: Now) -> None:
        self.take_over.lake_unread(order, now)

    def _fetched(self, order: RecordsFetched, now: Now) -> None:
        if self._is_root:
            self.take_over.take_journal(order, now)
            self._settle_soon(now)
            return
        self.child.pause_fetching(self.outbox.fetched(order), now)
        self._settle_soon(now)
        dropping = self._dropping
        if dropping is None or order.after != dropping.after:
            return
        if dropping.take(order, self.outbox.safe_lsn):
            self._finish_drop(dropping)
        else:
            self.context.perform(dropping.work(CORE))

    def _drop(self, order: DropOldest, now: Now) -> None:
        """Give up the oldest records.

        The losses are read from the journal, since `spans` also contains records that are safe.
        """
        if self._is_root:
            raise OurFault("a root has no spool")
        frontier = self.outbox.frontier()
        if frontier < self._promised_lsn <= order.upto and not self.outbox.is_taken(self._promised_lsn):
            return  # the last drop stopped at this mail: do not read for it again
        if self._dropping is not None:
            self._dropping.upto = max(self._dropping.upto, order.upto)
        elif order.upto > frontier:
            self._dropping = Dropping(order, frontier, self.outbox.is_taken)
            self.context.perform(self._dropping.work(CORE))
        else:
            self._settle()

    def _finish_drop(self, dropping: Dropping) -> None:
        """Announce what is lost.

        Children keep their records until the announcement is safe at the root: our disk may fail first.

        Nothing is given up if mail stands there whose sender was told `spooled`.
        """
        self._dropping = None
        self._promised_lsn = dropping.promised_lsn
        if self._promised_lsn:
            return
        self.outbox.drop(dropping.upto, dropping.records, dropping.bytes)
        counters = self.context.counters
        counters.dropped += dropping.records
        records: list[Record] = dropping.announcements()
        kind = GivenUp if records else Safe
        records.append(to_record(kind(dropping.upto, counters.spool_records, counters.spool_bytes)))
        self._written_lsn = max(self._written_lsn, dropping.upto)
        self.context.persist(records)
        self.context.tell(SpoolDropped(dropping.records, dropping.spans()))
        if kind is Safe:
            self._settle()  # otherwise when the journal says at which lsn the announcements stand

    def _announce(self, order: AnnounceDamage, now: Now) -> None:
        """Announce numbers that could not be read and will never come, unless all of them have arrived (JRN-023).

        What the damage may have taken of others is asked for again, once: children keep what this node has not called
        safe, and a root's lake knows what it holds.
        """
        is_safe = order.end_lsn <= self.outbox.safe_lsn + 1
        fresh = () if is_safe else self._damages.fresh(order)
        if fresh:
            self.context.persist(fresh)
        doubted = Doubted(order.first_lsn, order.end_lsn)
        if doubted in self._damages.doubted:
            return
        self._damages.doubted[doubted] = None
        if self._is_root:
            self.take_over.doubt(doubted, now)
        elif not is_safe:
            doubt(self.parent, doubted, now)

    def _hold_back(self, order: HoldBack, now: Now) -> None:
        self.parent.hold_back(is_full=order.is_full)
        self.child.hold_back(is_full=order.is_full)

    def _know_filters(self, order: FiltersKnown, now: Now) -> None:
        if self.context.awaits_filters:
            self.context.awaits_filters = False
            self.parent.turn_all()
            self.child.turn()
            self.take_over.begin(now)

    def _post(self, order: PostMail, now: Now) -> None:
        self.intake.dispatch.obey(order, now)

    def _garbled(self, order: Garbled, now: Now) -> None:
        self.context.counters.refuse(order.code)
        if order.channel == UP:
            self.child.garbled(order.code, now)
        else:
            self.parent.garbled(order.peer, order.code, now)

    # What is safe

    def _settle_soon(self, now: Now) -> None:
        if self._settle_at is None:
            self._settle_at = now.mono + self._settle_ns

    def _settle(self) -> None:
        """Tell the journal, the memory of this core and the children what has become safe."""
        self._settle_at = None
        outbox = self.outbox
        if self._drained_lsn > outbox.safe_lsn and not self.parent.is_waiting:
            outbox.resume(self._drained_lsn, 0)
        frontier = self._unneeded_lsn()
        if frontier > self._released:
            self._released = frontier
            self.context.tell(Released(CORE, frontier))
        durable = outbox.safe_lsn if self._is_root else frontier
        if outbox.safe_lsn > self._written_lsn:
            self._written_lsn = durable
            self.context.persist((to_record(self._safe(durable)),), limits.ACK_WITHIN_NS)
        if not self.context.settings.is_safe_at_once:
            self.parent.pass_on(durable)

    def _unneeded_lsn(self) -> int:
        """The lsn up to which this core no longer needs the journal. A new root needs all that was not safe before."""
        if not self._is_root:
            return self.outbox.frontier()
        return self.outbox.safe_lsn if not self.take_over.is_done else max(self.outbox.seen_lsn, self._heard_lsn)

    def _safe(self, lsn: int) -> Safe:
        return Safe(lsn, self.context.counters.spool_records, self.context.counters.spool_bytes)


_OBEY: Final[dict[type, Callable[[Carrier, Any, Now], None]]] = {
    AssignParent: Carrier._assign,
    RootIs: Carrier._root_is,
    DismissParent: Carrier._dismiss,
    Stop: Carrier._stop,
    Journaled: Carrier._journaled,
    RecordsFetched: Carrier._fetched,
    DropOldest: Carrier._drop,
    AnnounceDamage: Carrier._announce,
    HoldBack: Carrier._hold_back,
    FiltersKnown: Carrier._know_filters,
    Drained: Carrier._drained,
    InLake: Carrier._in_lake,
    LakeUnread: Carrier._lake_unread,
    PostMail: Carrier._post,
    Garbled: Carrier._garbled,
}
