"""A new root learns which records it already has, before it takes any (CHN-035, REC-015, LAK-007).

It reads two places: the part of its journal that was not safe at the earlier root, and its lake, if it was a root
before: children may send again what it drained then. Then it reads its journal once more, and gives itself the mail that
did not go up: some of it may be here already as records of the lake, which a former root sent up (CHN-036). Until all is
read it takes nothing from children, which keep their records, and lets the journal forget nothing, although the drain has
begun.

A lake that cannot be read is asked again, less and less often. After `limits.LAKE_PATIENCE_NS` the root goes on without
it and reports that: until the lake is read, a record that comes again may be kept twice. When all is learned, `Rooted`
is written. A node that restarts before that learns again; nothing is lost, since what is not in the lake is in the
journal.
"""

from typing import Any, TypeGuard

from weft.base.chance import Chance
from weft.base.mail import OUTBOX
from weft.base.now import Now
from weft.base.records import Record, StreamRecord
from weft.cores.carrier import limits
from weft.cores.carrier.context import Context
from weft.cores.carrier.intake import Intake
from weft.cores.carrier.memory import CORE, Doubted, Home, Rooted, to_record
from weft.cores.carrier.messages import (
    FetchRecords,
    InLake,
    LakeUnknown,
    LakeUnread,
    ReadVectors,
    RecordsFetched,
    TookOver,
)
from weft.cores.carrier.outbox import Outbox
from weft.cores.carrier.parent import Parent, doubt
from weft.cores.carrier.seen import Seen
from weft.cores.kit.timers import earliest
from weft.wire.carried import is_mail


class TakeOver:
    """The first moments of a root in its epoch."""

    def __init__(self, context: Context, chance: Chance, outbox: Outbox, intake: Intake, parent: Parent) -> None:
        self._context, self._chance, self._outbox = context, chance, outbox
        self._intake, self._parent = intake, parent
        self.epoch = 0
        """The last epoch in which this node, as root, has learned which records it has."""
        self.trouble = ""
        """Why this root has gone on without knowing what its lake holds; empty: it has not."""
        self._is_learning = self._has_read_journal = False
        self._mail_after: int | None = None
        """The lsn before the first mail of the journal that did not go up; None: there is none left to look at."""
        self._is_at_mail = False
        """Whether the journal is being read for that mail."""
        self._doubted: list[Doubted] = []
        """Damages of the journal; the lake's answer says which records are not lost."""
        self._awaits_lake = context.settings.has_lake
        self._lake_fault = "it has not answered"
        self._failed = 0
        self._ask_at: int | None = None
        self._patience_at: int | None = None

    @property
    def is_done(self) -> bool:
        """Whether everything is learned. A root without an epoch has nothing to learn: it was always the root."""
        return self.epoch >= self._context.settings.epoch

    def recall(self, memory: Rooted) -> None:
        """Note that this node learned in that epoch which records it has; the SEEN records that follow name them."""
        self.epoch, self._parent.seen = memory.epoch, Seen()
        self._parent.is_waiting = not self.is_done

    def begin(self, now: Now) -> None:
        """Read the journal records that were not safe at the earlier root, since this node drains them; and ask the lake.

        What was safe there is in its lake, or comes again when that root returns.
        """
        if not self._parent.is_waiting or self._is_learning or self._context.awaits_filters:
            return
        self._is_learning, self._parent.seen = True, Seen()
        self._context.tell(TookOver(self._outbox.safe_lsn))
        if self._awaits_lake:
            self._ask_lake(now)
        self._context.perform(FetchRecords(CORE, self._outbox.safe_lsn, limits.FETCH_BYTES))

    def doubt(self, doubted: Doubted, now: Now) -> None:
        """The journal has lost records, and with them what this root knows of them: learn from the lake what it holds."""
        if not self._context.settings.has_lake:
            return
        self._doubted.append(doubted)
        if self.is_done and not self._is_learning:
            self._is_learning = self._has_read_journal = self._awaits_lake = self._parent.is_waiting = True
            self._ask_lake(now)

    def _ask_lake(self, now: Now) -> None:
        self._patience_at = now.mono + limits.LAKE_PATIENCE_NS
        self._context.perform(ReadVectors())

    def take_journal(self, order: RecordsFetched, now: Now) -> None:
        """Process a piece of the journal."""
        if self._is_at_mail:
            self._take_mail(order, now)
        else:
            self._note_records(order)
        if order.upto < self._outbox.seen_lsn:
            self._context.perform(FetchRecords(CORE, order.upto, limits.FETCH_BYTES))
            return
        if self._is_at_mail:
            self._is_at_mail, self._mail_after = False, None
        self._has_read_journal = True
        self._go_on(now)

    def _note_records(self, order: RecordsFetched) -> None:
        for lsn, record in order.entries:
            if self._is_own_mail(record, lsn):
                self._mail_after = lsn - 1 if self._mail_after is None else self._mail_after
            elif type(record) is StreamRecord and not is_mail(record):
                self._parent.seen.take(record)

    def _take_mail(self, order: RecordsFetched, now: Now) -> None:
        records: list[Record] = []
        mails = [record for lsn, record in order.entries if self._is_own_mail(record, lsn)]
        for mail in mails:
            records += self._parent.seen.without_repeats(self._intake.take_home(mail, now), mail)
        if mails:
            self._outbox.home_lsn = order.upto
            self._context.persist((*records, to_record(Home(order.upto))))

    def _is_own_mail(self, record: Record, lsn: int) -> TypeGuard[StreamRecord]:
        return type(record) is StreamRecord and record.stream == OUTBOX and lsn > self._outbox.home_lsn

    def in_lake(self, order: InLake, now: Now) -> None:
        """Note what this node drained as an earlier root: the root after it did not know that, and may send it again."""
        if self._awaits_lake and self._is_learning:
            self._parent.seen.adopt_vectors(order.vectors)
            self._awaits_lake, self._patience_at = False, None
            if self.trouble:
                self.trouble = ""
                self._context.tell(LakeUnknown(is_unknown=False, detail=""))
            self._go_on(now)

    def lake_unread(self, order: LakeUnread, now: Now) -> None:
        """Ask again later."""
        self._lake_fault = order.why
        self._context.counters.lake_unread += 1
        self._ask_at = now.mono + limits.LAKE_BACK_OFF.pause_ns(self._chance, self._failed)
        self._failed += 1

    def wake(self, now: Now) -> None:
        """Do what is due."""
        self.begin(now)
        if self._ask_at is not None and now.mono >= self._ask_at:
            self._ask_at = None
            self._context.perform(ReadVectors())
        if self._patience_at is not None and now.mono >= self._patience_at:
            self._patience_at, self.trouble = None, self._lake_fault
            self._context.tell(LakeUnknown(is_unknown=True, detail=self._lake_fault))
            self._go_on(now)

    def deadline(self) -> int | None:
        """Monotonic nanoseconds at which to be woken; None: never."""
        return earliest(self._ask_at, self._patience_at)

    def _go_on(self, now: Now) -> None:
        if not self._has_read_journal or self._is_at_mail or (self._awaits_lake and not self.trouble):
            return
        if self._mail_after is not None:
            self._is_at_mail = True
            self._context.perform(FetchRecords(CORE, self._mail_after, limits.FETCH_BYTES))
            return
        if not self._awaits_lake:
            self.epoch = self._context.settings.epoch
            memories: list[Any] = [Rooted(self.epoch), *self._parent.seen.condense()]
            self._context.persist(map(to_record, memories))
            for doubted in self._doubted:
                doubt(self._parent, doubted, now)
            self._is_learning, self._doubted = False, []
        if self._parent.is_waiting:
            self._parent.begin()
