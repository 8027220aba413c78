"""Confirming readers are remembered: messages that arrive while they, or their node, are away wait for them (FLD-020).

stand     a reader has registered: it is remembered before it gets `done`
leave     it has left its chain, or is lost: an `AwayLink` takes its place
restore   after a restart, every remembered reader is away
forget    it was away for too long, or a person says that it will not come back: its messages are given up

A reader is identified by its client's name and the type it registered for. Messages for it wait under that name
(`waiting`), within a bound of messages and bytes; the messages themselves are kept in the inbox.
"""

from typing import Any

from weft.base.now import MILLISECOND, SECOND, Now
from weft.cores.chains import limits, memory
from weft.cores.chains.clientlink import AwayLink, HolderLink
from weft.cores.chains.context import Context
from weft.cores.chains.holding import Holding
from weft.cores.chains.memory import Forgotten, Remembered
from weft.cores.chains.messages import ReaderForgotten
from weft.cores.chains.order import Key, covers, key_of
from weft.cores.chains.roster import Roster
from weft.cores.chains.waiting import Waiting

AWAY_MS_USUAL = 600_000  # for a reader in a journal that has no such value yet
Name = tuple[str, str]
"""Name of the client, and the type it registered for."""


class Reader:
    """One reader that is remembered."""

    __slots__ = ("away", "here", "remembered", "since")

    def __init__(self, remembered: Remembered) -> None:
        self.remembered = remembered
        self.here = 0
        """Number of its links that are in their chain."""
        self.away: AwayLink | None = None
        self.since = 0
        """Since when it is away, or this node runs without it; monotonic ns."""

    @property
    def until(self) -> int:
        """When it is forgotten, if it does not come back."""
        return self.since + self.remembered.away_ms * MILLISECOND


class Readers:
    """All readers that this node remembers."""

    def __init__(self, context: Context, roster: Roster, waiting: Waiting, holding: Holding) -> None:
        self._context, self._roster, self._waiting, self._holding = context, roster, waiting, holding
        self._all: dict[Name, Reader] = {}
        self._due: int | None = None

    def __len__(self) -> int:
        return len(self._all)

    @property
    def away(self) -> int:
        """Number of readers that are away."""
        return sum([reader.away is not None for reader in self._all.values()])

    # Coming and going

    def has_room(self, name: str, kind: str) -> bool:
        """Whether this reader is remembered, or one more could be."""
        return (name, kind) in self._all or len(self._all) < limits.READERS_MAX

    def stand(self, link: HolderLink) -> None:
        """It has attached, and is remembered from now on."""
        remembered = Remembered(link.name, link.type, link.registration.at, link.registration.away)
        reader = self._all.get((link.name, link.type))
        if reader is None or reader.remembered != remembered:
            self._context.keep(memory.to_record(remembered))
        if reader is None:
            reader = self._all[link.name, link.type] = Reader(remembered)
        reader.remembered = remembered
        reader.here += 1
        self._call_in(reader)

    def leave(self, link: HolderLink, now: Now) -> None:
        """It is away, unless it has a second link."""
        reader = self._all.get((link.name, link.type))
        if reader is None:
            return
        reader.here -= 1
        if not reader.here:
            self._send_away(reader, link.key, now)

    def _send_away(self, reader: Reader, key: Key, now: Now) -> None:
        remembered = reader.remembered
        reader.since = now.mono
        reader.away = AwayLink(remembered.name, remembered.type, str(remembered.at), key)
        self._roster.attach(reader.away, (remembered.type,))
        self._plan()

    def _call_in(self, reader: Reader) -> None:
        if reader.away is not None:
            self._roster.detach(reader.away, (reader.remembered.type,))
            reader.away = None
            self._plan()

    # Memory

    def recall(self, kept: Remembered | Forgotten, now: Now) -> None:
        """Process one of this core's records: remembered readers are away at first."""
        reader = self._all.get((kept.name, kept.type))
        if isinstance(kept, Forgotten):
            if reader is not None:
                self._call_in(reader)
                del self._all[kept.name, kept.type]
        elif reader is not None:
            reader.remembered = kept
            self._plan()
        elif (key := key_of(kept.at, self._context.next_attach())) is not None:
            reader = self._all[kept.name, kept.type] = Reader(kept)
            self._send_away(reader, key, now)

    def expect(self, name: str, kind: str, now: Now) -> None:
        """Messages of this type wait for a reader.

        A journal of an earlier version has no record that it is remembered.
        """
        if self._covers(name, kind) or len(self._all) >= limits.READERS_MAX:
            return
        remembered = Remembered(name, kind, "after-all", AWAY_MS_USUAL)
        self._context.keep(memory.to_record(remembered))
        self.recall(remembered, now)

    def condense(self) -> list[Remembered]:
        """The remembered readers, for a snapshot."""
        return [self._all[name].remembered for name in sorted(self._all)]

    # The end

    def forget(self, name: str, why: str, now: Now, kind: str | None = None) -> int:
        """Forget a reader, in one of its registrations or in all that are away.

        Returns how many messages were given up.
        """
        gone = [
            reader
            for reader in self._all.values()
            if reader.remembered.name == name and reader.away is not None and kind in (None, reader.remembered.type)
        ]
        return sum([self._forget(reader, why, now) for reader in gone])

    def _forget(self, reader: Reader, why: str, now: Now) -> int:
        remembered = reader.remembered
        self._call_in(reader)
        del self._all[remembered.name, remembered.type]
        self._context.keep(memory.to_record(Forgotten(remembered.name, remembered.type)))
        given_up = self._waiting.give_up(
            remembered.name, lambda kind: covers(remembered.type, kind) and not self._covers(remembered.name, kind)
        )
        for held in given_up:
            self._holding.forgo(remembered.name, held, why)
        self._context.tell(ReaderForgotten(remembered.name, remembered.type, why, len(given_up)))
        return len(given_up)

    def _covers(self, name: str, kind: str) -> bool:
        return any(
            reader.remembered.name == name and covers(reader.remembered.type, kind) for reader in self._all.values()
        )

    # Time

    def wake(self, now: Now) -> None:
        """Forget readers that have been away too long, unless the journal has no room to record it."""
        if self._due is None or now.mono < self._due or self._context.is_full:
            return
        late = [reader for reader in self._all.values() if reader.away is not None and reader.until <= now.mono]
        for reader in late:
            self._forget(reader, "time-over", now)

    def deadline(self) -> int | None:
        """When the next reader has been away too long."""
        return None if self._context.is_full else self._due

    def _plan(self) -> None:
        self._due = min([reader.until for reader in self._all.values() if reader.away is not None], default=None)

    # Shown

    def show(self, now: Now) -> list[dict[str, Any]]:
        """The remembered readers, and what waits for each, as plain data."""
        return [self._show(reader, now) for reader in self._all.values()]

    def _show(self, reader: Reader, now: Now) -> dict[str, Any]:
        line, remembered = self._waiting.line(reader.remembered.name), reader.remembered
        is_away = reader.away is not None
        return {
            "name": remembered.name,
            "type": remembered.type,
            "place": str(remembered.at),
            "is_away": is_away,
            "away_max_s": remembered.away_ms // 1_000,
            "forgotten_in_s": max(0, reader.until - now.mono) // SECOND if is_away else None,
            "waiting": line.messages,
            "waiting_bytes": line.bytes,
        }
