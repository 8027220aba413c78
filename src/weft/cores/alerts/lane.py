"""The notices of one sink: each is durable before its first attempt, and until one succeeds (MET-004)."""

from collections import Counter, deque
from typing import Any, Final

import msgspec

from weft.base.now import MILLISECOND, Now
from weft.base.records import CoreRecord
from weft.cores.alerts import limits
from weft.cores.alerts.messages import AlertNotSent, AlertsSettings, Notice, NoticeFailed, NoticeSent, SendNotice
from weft.cores.alerts.states import TABLE, On, State
from weft.cores.kit.outbox import Outbox

NAME: Final = "alerts"
NOTICE: Final = 3  # kind of the core record: a Notice
DONE: Final = 4  # its number: it was sent, or was given up


class Lane:
    """Sends the notices of one sink, one at a time."""

    def __init__(self, sink: str, settings: AlertsSettings, outbox: Outbox, counts: Counter[str]) -> None:
        self.sink, self.state = sink, State.IDLE
        self.notices: deque[Notice] = deque()
        self.tries = 0
        """Failed attempts in a row for the first notice."""
        self.why = ""
        """Reason of the last failure; empty: the last attempt succeeded."""
        self.due_at: int | None = None
        """Monotonic ns of the next attempt, or of the timeout of the attempt under way; None: nothing is due."""
        self._most = settings.notices_max
        self._outbox, self._counts = outbox, counts
        self._attempt = 0

    # Before the first wake

    def restored(self, notice: Notice) -> None:
        """Restore a notice from the journal."""
        self.notices.append(notice)
        self.state, self.due_at = State.RESTING, 0

    def restored_done(self, number: int) -> None:
        """Restore that a notice is done."""
        self.notices = deque(notice for notice in self.notices if notice.number != number)
        if not self.notices:
            self.state, self.due_at = State.IDLE, None

    # Orders and time

    def add(self, notice: Notice, now: Now) -> None:
        """Queue a notice; if the queue is full, give up the oldest one that is not being sent."""
        if len(self.notices) >= self._most:
            oldest = self.notices[1] if self.state is State.SENDING else self.notices[0]
            self.notices.remove(oldest)
            self.give_up(oldest, f"more than {self._most} notices wait", now)
        self.notices.append(notice)
        self._outbox.keep(CoreRecord(NAME, NOTICE, msgspec.msgpack.encode(notice)))
        self._turn(On.NOTICE, "", now)

    def hear(self, order: NoticeSent | NoticeFailed, now: Now) -> None:
        """The result of an attempt; the result of any attempt but the last one is stale and ignored."""
        is_awaited = self.state is State.SENDING and order.attempt == self._attempt
        if not is_awaited or order.number != self.notices[0].number:
            self._counts["stale"] += 1
        elif isinstance(order, NoticeSent):
            self._counts["sent"] += 1
            self._done(now)
        else:
            self._failed(order.why[: limits.WHY_CHARS_MAX], now, is_final=order.is_final)

    def wake(self, now: Now) -> None:
        """Make the next attempt, or time out the one under way."""
        if self.due_at is None or self.due_at > now.mono:
            return
        if self.state is State.SENDING:
            self._failed(f"no answer for {limits.LATE_NS // 10**9} s", now, is_final=False)
        else:
            self._turn(On.DUE, "", now)

    def _failed(self, why: str, now: Now, *, is_final: bool) -> None:
        notice = self.notices[0]
        self._counts["failed"] += 1
        self.why = why
        if is_final or now.wall // MILLISECOND - notice.made_at >= limits.GIVE_UP_MS:
            self.give_up(notice, why, now)
            self._done(now)
            return
        self._turn(On.FAILED, why, now)

    def _done(self, now: Now) -> None:
        """The first notice is done: remove it."""
        done = self.notices.popleft()
        self.tries, self.why = 0, ""
        self._outbox.keep(_done_record(done.number))
        self._turn(On.DONE_MORE if self.notices else On.DONE_ALL, "", now)

    def give_up(self, notice: Notice, why: str, now: Now) -> None:
        """Drop a notice unsent, and tell it."""
        self._counts["given_up"] += 1
        self._outbox.keep(_done_record(notice.number))
        self._outbox.tell_seldom((self.sink, "given up", why), self._not_sent(notice, why, is_given_up=True), now.mono)

    def _not_sent(self, notice: Notice, why: str, *, is_given_up: bool) -> AlertNotSent:
        alert, waiting = notice.alert, len(self.notices)
        return AlertNotSent(self.sink, alert.name, alert.node, notice.what, why, is_given_up, waiting)

    # Transitions

    def _turn(self, on: On, why: str, now: Now) -> None:
        cell = TABLE.get((self.state, on))
        if cell is not None:
            self.state = cell.then
            getattr(self, cell.do)(why, now)

    def send_first(self, why: str, now: Now) -> None:
        """Ask the shell to send the first notice."""
        self._attempt += 1
        self.due_at = now.mono + limits.LATE_NS
        self._outbox.perform(SendNotice(self.notices[0], self._attempt))

    def rest(self, why: str, now: Now) -> None:
        """No notice waits."""
        self.due_at = None

    def put_off(self, why: str, now: Now) -> None:
        """Retry later, with a pause that grows."""
        self.tries += 1
        wait_ns = min(limits.RETRY_NS << min(self.tries - 1, 16), limits.RETRY_MAX_NS)
        self.due_at = now.mono + wait_ns
        event = self._not_sent(self.notices[0], why, is_given_up=False)
        self._outbox.tell_seldom((self.sink, why), event, now.mono, limits.QUIET_NS)

    def facts(self, now_mono: int) -> dict[str, Any]:
        """Numbers for the status."""
        is_resting = self.state is State.RESTING and self.due_at is not None
        next_s = max(0, (self.due_at or 0) - now_mono) // 10**9 if is_resting else None
        return {
            "sink": self.sink,
            "state": self.state.name,
            "waiting": len(self.notices),
            "tries": self.tries,
            "why": self.why,
            "next_s": next_s,
        }


def _done_record(number: int) -> CoreRecord:
    return CoreRecord(NAME, DONE, msgspec.msgpack.encode(number))
