"""The road to one receiver: what it has, what is under way, and what waits (MET-006)."""

from collections import Counter, deque
from typing import Any, Final

import msgspec

from weft.base.chance import Chance
from weft.base.memories import Memories
from weft.base.now import Now
from weft.cores.export import limits
from weft.cores.export.messages import NAME, ExportBack, ExportFailing, ExportGaveUp, RangeFailed, RangeSent, SendRange
from weft.cores.export.states import TABLE, On, State
from weft.cores.kit.outbox import Outbox


class Place(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far a receiver is."""

    sink: str
    warm: int
    """A start reads behind this one, to calculate with."""
    after: int
    """Everything up to here it has, or will never get."""
    upto: int
    """The end of the range under way; equal to `after`: none is."""


MEMORIES: Final = Memories[Place](NAME, {1: Place})


class Lane:
    """Sends one range at a time, in the order of the journal."""

    def __init__(self, sink: str, outbox: Outbox, chance: Chance, counts: Counter[str]) -> None:
        self.sink, self.state = sink, State.IDLE
        self.place: Place | None = None
        """None: nothing is known before the first record of this start; what stands before it is not sent."""
        self.due_at: int | None = None
        """Monotonic ns of the next range or try, or of the timeout of the one under way; None: nothing is due."""
        self.why = ""
        """Why the last try failed; empty: it did not."""
        self._heard = 0  # the last record of samples that is known to stand in the journal
        self._tries = 0
        self._attempt = 0
        self._marks: deque[tuple[int, int]] = deque()  # when, and how far the receiver was then
        self._outbox, self._chance, self._counts = outbox, chance, counts

    @property
    def waiting(self) -> int:
        """Records of the journal between what the receiver has and the last one with samples."""
        return 0 if self.place is None else max(0, self._heard - self.place.after)

    # Before the first wake

    def restored(self, place: Place) -> None:
        """Restore the place; a range that was under way is sent again."""
        self.place, self._heard = place, max(self._heard, place.upto)
        is_under_way = place.upto > place.after
        self.state, self.due_at = (State.RESTING, 0) if is_under_way else (State.IDLE, None)

    def restored_samples(self, lsn: int) -> None:
        """The journal has a record of samples; it waits, unless the receiver has it."""
        self._heard = lsn

    def begin(self) -> None:
        """All records are restored: gather what the receiver has not got."""
        if self.place is not None and self._heard > self.place.after and self.state is State.IDLE:
            self.state, self.due_at = State.GATHERING, 0

    # Orders and time

    def journaled(self, first_lsn: int, last_lsn: int, samples_lsn: int, now: Now) -> None:
        """Records stand in the journal; `samples_lsn` is the last one with samples, 0 if there is none."""
        if self.place is None:
            self._move(after=first_lsn - 1, upto=first_lsn - 1, now=now)
            self._remember()
        if samples_lsn:
            self._heard = samples_lsn
        self._turn(On.SAMPLES if samples_lsn else On.OTHERS, last_lsn, now)

    def hear(self, order: RangeSent | RangeFailed, now: Now) -> None:
        """The result of an attempt; of any attempt but the last one it is stale and ignored."""
        if self.state is not State.SENDING or order.attempt != self._attempt:
            self._counts["stale"] += 1
        elif isinstance(order, RangeSent):
            self._sent(order, now)
        else:
            self._failed(order.why[: limits.WHY_CHARS_MAX], now)

    def wake(self, now: Now) -> None:
        """Name the next range or try again; time out the attempt under way."""
        if self.due_at is None or self.due_at > now.mono:
            return
        if self.state is State.SENDING:
            self._failed(f"no answer for {limits.LATE_NS // 10**9} s", now)
        else:
            self._turn(On.DUE, 0, now)

    def give_way(self, upto: int, now: Now) -> None:
        """Let go of the records up to `upto`, and tell it."""
        place = self.place
        if place is None or place.warm >= upto:
            return
        lost = upto - place.after
        if lost > 0:
            self._counts["given_up"] += lost
            self._outbox.tell(ExportGaveUp(self.sink, lost))
            self._move(after=upto, upto=upto, now=now)
            self._turn(On.GAVE_WAY, 0, now)
        self._marks.clear()
        assert self.place is not None
        self.place = msgspec.structs.replace(self.place, warm=upto)
        self._remember()

    def _sent(self, order: RangeSent, now: Now) -> None:
        assert self.place is not None
        assert self.place.after <= order.upto <= self.place.upto, (self.place, order)
        for name in ("samples", "refused", "skipped"):
            self._counts[name] += getattr(order, name)
        if order.refused:
            self._complain(order.why[: limits.WHY_CHARS_MAX], now)
        if self.why:
            self._outbox.tell(ExportBack(self.sink))
        self._tries, self.why = 0, ""
        self._move(after=order.upto, upto=self.place.upto, now=now)
        if order.upto < self.place.upto:
            self._turn(On.SENT_PART, 0, now)
            return
        self._remember()
        self._turn(On.SENT_MORE if self.waiting else On.SENT_ALL, 0, now)

    def _failed(self, why: str, now: Now) -> None:
        self._counts["failed"] += 1
        self.why = why
        self._complain(why, now)
        self._turn(On.FAILED, 0, now)

    def _complain(self, why: str, now: Now) -> None:
        self._outbox.tell_seldom((self.sink, why), ExportFailing(self.sink, why, self.waiting), now.mono)

    # What the table names

    def _turn(self, on: On, lsn: int, now: Now) -> None:
        cell = TABLE.get((self.state, on))
        if cell is not None:
            self.state = cell.then
            getattr(self, cell.do)(lsn, now)

    def gather(self, lsn: int, now: Now) -> None:
        """Wait a little for more, unless a whole range waits."""
        self.due_at = now.mono if self.waiting >= limits.RANGE_LSNS else now.mono + limits.PACE_NS

    def pass_by(self, lsn: int, now: Now) -> None:
        """The receiver has everything, and these records are nothing for it."""
        self._move(after=lsn, upto=lsn, now=now)

    def name_range(self, lsn: int, now: Now) -> None:
        """Remember the next range, then send it."""
        assert self.place is not None, "nothing is gathered before a place is known"
        upto = min(self._heard, self.place.after + limits.RANGE_LSNS)
        if upto <= self.place.after:  # the journal made room meanwhile
            self.state, self.due_at = State.IDLE, None
            return
        self._move(after=self.place.after, upto=upto, now=now)
        self._outbox.keep(MEMORIES.to_record(self.place))
        self.send(lsn, now)

    def send(self, lsn: int, now: Now) -> None:
        """Let the shell send what the receiver has not got of the range."""
        assert self.place is not None, "a range has a place"
        self._attempt += 1
        self.due_at = now.mono + limits.LATE_NS
        place = self.place
        self._outbox.perform(SendRange(self.sink, self._attempt, place.warm, place.after, place.upto))

    def put_off(self, lsn: int, now: Now) -> None:
        """Try again, later each time."""
        self.due_at = now.mono + limits.BACK_OFF.pause_ns(self._chance, self._tries)
        self._tries += 1

    def rest(self, lsn: int, now: Now) -> None:
        """Nothing waits."""
        self.due_at = None

    def _remember(self) -> None:
        assert self.place is not None
        self._outbox.keep_soon(MEMORIES.to_record(self.place), limits.PLACE_WITHIN_NS)

    def _move(self, after: int, upto: int, now: Now) -> None:
        """Move the place, and behind it, two minutes later, what a start reads again."""
        if not self._marks or now.mono - self._marks[-1][0] >= limits.MARK_NS:
            self._marks.append((now.mono, after))
        warm = after if self.place is None else self.place.warm
        while self._marks and now.mono - self._marks[0][0] >= limits.WARM_NS:
            warm = max(warm, self._marks.popleft()[1])
        self.place = Place(self.sink, warm, after, upto)

    def facts(self) -> dict[str, Any]:
        """What people are shown."""
        return {"name": self.sink, "state": self.state.name, "waiting": self.waiting, "why": self.why}
