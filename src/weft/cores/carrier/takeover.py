"""What a new root has to learn before it takes records: what it has already (CHN-035, REC-015, LAK-007).

Two places know it: its journal, behind what was safe at the root before, and its lake, if it has been the root before
and drained what may come home now. Until both have answered nothing is taken from children, who keep their records.

A lake that cannot be read is asked again, less and less often. After `limits.LAKE_PATIENCE_NS` the root goes on without
it and says so: from then until the lake is read, what comes home may be kept twice. Only who has learned everything is
`Rooted`; a start before that learns again, and nothing is lost by it: what is not in the lake is in the journal.
"""

from typing import Any

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
        """The last epoch in which this node, as root, has learned what it has."""
        self.trouble = ""
        """Why this root has gone on without knowing what its lake holds; empty: it has not."""
        self._is_looking = self._has_looked = False
        self._doubted: list[Doubted] = []
        """Damages of the journal that the lake's answer makes good."""
        self._awaits_lake = context.settings.has_lake
        self._why = "it has not answered"
        self._failed = 0
        self._ask_at: int | None = None
        self._patience_at: int | None = None

    @property
    def is_done(self) -> bool:
        """Whether everything is learned, or nothing has to be: a root without an epoch has never been anything else."""
        return self.epoch >= self._context.settings.epoch

    def recall(self, memory: Rooted) -> None:
        """This node has learned what it has, in that epoch; what it has follows."""
        self.epoch, self._parent.seen = memory.epoch, Seen()
        self._parent.is_waiting = not self.is_done

    def begin(self, now: Now) -> None:
        """Read the records of the journal that were not safe at the earlier root, which are drained here, and ask the lake.

        What was safe there is in its lake, or comes again when that root returns.
        """
        if not self._parent.is_waiting or self._is_looking or self._context.awaits_filters:
            return
        self._is_looking, self._parent.seen = True, Seen()
        self._context.tell(TookOver(self._outbox.safe_lsn))
        if self._awaits_lake:
            self._ask_lake(now)
        self._context.perform(FetchRecords(CORE, self._outbox.safe_lsn, limits.FETCH_BYTES))

    def doubt(self, doubted: Doubted, now: Now) -> None:
        """The journal has lost records, and with them what this root knows of them: learn from the lake what it holds."""
        if not self._context.settings.has_lake:
            return
        self._doubted.append(doubted)
        if self.is_done and not self._is_looking:
            self._is_looking = self._has_looked = self._awaits_lake = self._parent.is_waiting = True
            self._ask_lake(now)

    def _ask_lake(self, now: Now) -> None:
        self._patience_at = now.mono + limits.LAKE_PATIENCE_NS
        self._context.perform(ReadVectors())

    def looked(self, order: RecordsFetched, now: Now) -> None:
        """A piece of the journal, and what mail it holds for this node."""
        kept: list[Record] = []
        is_home = True
        for lsn, record in order.entries:
            if is_mail(record):
                if record.stream == OUTBOX and lsn > self._outbox.home_lsn:
                    kept += self._intake.take_home(record, now)
                    is_home = False
            elif type(record) is StreamRecord:
                self._parent.seen.take(record)
        if not is_home:
            self._outbox.home_lsn = order.upto
            self._context.persist((*kept, to_record(Home(order.upto))))
        if order.upto < self._outbox.seen_lsn:
            self._context.perform(FetchRecords(CORE, order.upto, limits.FETCH_BYTES))
            return
        self._has_looked = True
        self._go_on(now)

    def in_lake(self, order: InLake, now: Now) -> None:
        """What this root drained when it was the root before may come back from the root between, which did not know."""
        if self._awaits_lake and self._is_looking:
            self._parent.seen.adopt_vectors(order.vectors)
            self._awaits_lake, self._patience_at = False, None
            if self.trouble:
                self.trouble = ""
                self._context.tell(LakeUnknown(is_unknown=False, detail=""))
            self._go_on(now)

    def lake_unread(self, order: LakeUnread, now: Now) -> None:
        """Ask again later."""
        self._why = order.why
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
            self._patience_at, self.trouble = None, self._why
            self._context.tell(LakeUnknown(is_unknown=True, detail=self._why))
            self._go_on(now)

    def deadline(self) -> int | None:
        """Monotonic nanoseconds at which to be woken; None: never."""
        return earliest(self._ask_at, self._patience_at)

    def _go_on(self, now: Now) -> None:
        if not self._has_looked or (self._awaits_lake and not self.trouble):
            return
        if not self._awaits_lake:
            self.epoch = self._context.settings.epoch
            memories: list[Any] = [Rooted(self.epoch), *self._parent.seen.condense()]
            self._context.persist(map(to_record, memories))
            for doubted in self._doubted:
                doubt(self._parent, doubted, now)
            self._is_looking, self._doubted = False, []
        if self._parent.is_waiting:
            self._parent.begin()
