"""Presence as a core: it pings, answers, counts meetings, and notices silence.

The number of meetings is what must survive a crash: it is persisted before anyone hears it, so a number is never
told twice for two meetings. Everything else is only believed, and found out again after a start.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from weft.base.budget import Budget
from weft.base.chance import Chance
from weft.base.effects import Effect, Source
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.base.records import CoreRecord, Entry
from weft.cores.kit.outbox import Outbox
from weft.cores.kit.timers import Timers
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
        self._timers = Timers()
        self._outbox = Outbox()

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
        self._timers.set("silence", now.mono + limits.SILENCE_NS)
        self._turn(On.PING if isinstance(message, Ping) else On.PONG, message, now)

    def command(self, order: Any, now: Now) -> None:
        if isinstance(order, Watch) and "ping" not in self._timers:
            self._timers.set("ping", now.mono)
        elif isinstance(order, Rest):
            self._turn(On.RESTED, None, now)

    def wake(self, now: Now) -> None:
        for name in self._timers.due(now):
            DUE[name](self, now)

    def deadline(self) -> int | None:
        return self._timers.earliest()

    def effects(self) -> list[Effect]:
        return self._outbox.take()

    def _ping(self, now: Now) -> None:
        self._timers.set("ping", now.mono + self._chance.about(limits.PING_NS, limits.PING_SHARE))
        self._serial += 1
        self._outbox.send(CHANNEL, b"", Ping(self._serial))

    def _fall_silent(self, now: Now) -> None:
        self._turn(On.SILENCE, None, now)

    def _turn(self, on: On, message: Message | None, now: Now) -> None:
        cell = TABLE[self.state, on]
        self.state = cell.then
        getattr(self, cell.do)(message, now)

    def meet(self, message: Message, now: Now) -> None:
        """A meeting: counted durably, then told."""
        self.meetings += 1
        self._outbox.persist(self.condense())
        self._outbox.tell(PeerArrived(self.meetings))

    def meet_and_answer(self, message: Ping, now: Now) -> None:
        """A meeting by being called. The answer carries the new number, so it stands below the wall."""
        self.meet(message, now)
        self.answer(message, now)

    def answer(self, message: Ping, now: Now) -> None:
        """Say that we are here."""
        self._outbox.send(CHANNEL, b"", Pong(message.serial, self.meetings))

    def hear(self, message: Pong, now: Now) -> None:
        """The other end is still there: that it was heard is noted already."""

    def miss(self, message: None, now: Now) -> None:
        """Nobody there any more."""
        self._outbox.tell(PeerVanished(now.mono - self._heard_at))

    def rest(self, message: None, now: Now) -> None:
        """Call no more, and have no opinion."""
        self._timers.stop("ping", "silence")


DUE: Final[dict[str, Callable[[Template, Now], None]]] = {
    "silence": Template._fall_silent,
    "ping": Template._ping,  # the table stands below the class
}
