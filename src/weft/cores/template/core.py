"""Presence as a core: it pings the other end, answers pings, counts meetings, and notices silence.

Only the number of meetings must survive a crash. It is persisted before anyone is told, so no number is ever told for
two meetings. All other state is found out again after a start.
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
"""Kind of the only record of this core: the number of meetings, as text."""


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
        """Restore the number of meetings; the other end counts as absent."""
        for _, record in entries:
            if isinstance(record, CoreRecord) and record.core == self.name and record.kind == MEETINGS:
                self.meetings = int(record.data)

    def condense(self) -> Iterable[CoreRecord]:
        return [CoreRecord(self.name, MEETINGS, str(self.meetings).encode())] if self.meetings else []

    def receive(self, message: Message, source: Source, now: Now) -> None:
        """Process a message of the other end.

        PeerError `unknown-serial` for an answer to a ping that was never sent.
        """
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
        """Count a meeting durably, then tell it."""
        self.meetings += 1
        self._outbox.persist(self.condense())
        self._outbox.tell(PeerArrived(self.meetings))

    def meet_and_answer(self, message: Ping, now: Now) -> None:
        """Meet because the other end pinged. The answer carries the new number, so it stands behind the wall."""
        self.meet(message, now)
        self.answer(message, now)

    def answer(self, message: Ping, now: Now) -> None:
        """Answer a ping."""
        self._outbox.send(CHANNEL, b"", Pong(message.serial, self.meetings))

    def hear(self, message: Pong, now: Now) -> None:
        """Nothing to do: `receive` has noted already when the other end was last heard."""

    def miss(self, message: None, now: Now) -> None:
        """The other end has been silent for too long."""
        self._outbox.tell(PeerVanished(now.mono - self._heard_at))

    def rest(self, message: None, now: Now) -> None:
        """Stop pinging, and forget whether the other end is there."""
        self._timers.stop("ping", "silence")


DUE: Final[dict[str, Callable[[Template, Now], None]]] = {
    "silence": Template._fall_silent,
    "ping": Template._ping,  # the table stands below the class
}
