"""Presence as a core: it pings, answers, counts meetings, and notices silence.

The number of meetings is what must survive a crash: it is persisted before anyone hears it, so a number is never
told twice for two meetings. Everything else is only believed, and found out again after a start.
"""

from collections.abc import Iterable
from typing import Any, Final

from weft.base.budget import Budget
from weft.base.chance import Chance
from weft.base.effects import Effect, Persist, Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.base.records import CoreRecord, Entry
from weft.cores.template import limits
from weft.cores.template.messages import Message, PeerArrived, PeerVanished, Ping, Pong, Rest, Watch
from weft.cores.template.states import TABLE, On, State

CHANNEL: Final = "template"
MEETINGS: Final = 1
"""Kind of the one record that this core keeps: the number of meetings, as text."""


class Template:
    """One end of the presence protocol."""

    name = "template"

    def __init__(self, chance: Chance) -> None:
        self.state = State.ABSENT
        self.meetings = 0
        self.budget = Budget()
        self._chance = chance
        self._serial = 0
        self._heard_at = 0
        self._ping_at: int | None = None
        self._effects: list[Effect] = []

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Take the number of meetings back; nobody is believed to be there."""
        for _, record in entries:
            if isinstance(record, CoreRecord) and record.core == self.name and record.kind == MEETINGS:
                self.meetings = int(record.data)

    def condense(self) -> Iterable[CoreRecord]:
        return [CoreRecord(self.name, MEETINGS, str(self.meetings).encode())] if self.meetings else []

    def receive(self, message: Message, source: Source, now: Now) -> None:
        """Hear the other end; PeerError `unknown-serial` for an answer to what was never asked."""
        if isinstance(message, Pong) and not 0 < message.serial <= self._serial:
            raise PeerError("unknown-serial", str(message.serial))
        self._heard_at = now.mono
        self._turn(On.PING if isinstance(message, Ping) else On.PONG, message, now)

    def command(self, order: Any, now: Now) -> None:
        if isinstance(order, Watch) and self._ping_at is None:
            self._ping_at = now.mono
        elif isinstance(order, Rest):
            self._turn(On.RESTED, None, now)

    def wake(self, now: Now) -> None:
        if self.state is State.PRESENT and now.mono >= self._heard_at + limits.SILENCE_NS:
            self._turn(On.SILENCE, None, now)
        if self._ping_at is not None and now.mono >= self._ping_at:
            self._ping_at = now.mono + self._chance.about(limits.PING_NS, limits.PING_SHARE)
            self._serial += 1
            self._effects.append(Send(CHANNEL, b"", Ping(self._serial)))

    def deadline(self) -> int | None:
        silent_at = self._heard_at + limits.SILENCE_NS if self.state is State.PRESENT else None
        return min((at for at in (silent_at, self._ping_at) if at is not None), default=None)

    def effects(self) -> list[Effect]:
        done, self._effects = self._effects, []
        return done

    def _turn(self, on: On, message: Message | None, now: Now) -> None:
        cell = TABLE[self.state, on]
        self.state = cell.then
        getattr(self, cell.do)(message, now)

    def meet(self, message: Message, now: Now) -> None:
        """A meeting: counted durably, then told."""
        self.meetings += 1
        self._effects.append(Persist(tuple(self.condense())))
        self._effects.append(Tell(PeerArrived(self.meetings)))

    def meet_and_answer(self, message: Ping, now: Now) -> None:
        """A meeting by being called. The answer carries the new number, so it stands below the wall."""
        self.meet(message, now)
        self.answer(message, now)

    def answer(self, message: Ping, now: Now) -> None:
        """Say that we are here."""
        self._effects.append(Send(CHANNEL, b"", Pong(message.serial, self.meetings)))

    def hear(self, message: Pong, now: Now) -> None:
        """The other end is still there: that it was heard is noted already."""

    def miss(self, message: None, now: Now) -> None:
        """Nobody there any more."""
        self._effects.append(Tell(PeerVanished(now.mono - self._heard_at)))

    def rest(self, message: None, now: Now) -> None:
        """Call no more."""
        self._ping_at = None
