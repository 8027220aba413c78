"""Messages that wait for a client to come back (`fail = "wait"`, CHN-019).

They wait under direction, type and the client's name, until a link of that name is on that chain again. Messages of a
confirming reader wait until it comes back or is forgotten (`readers`), all others `wait_ms`.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from weft.base.now import MILLISECOND, Now
from weft.cores.chains import limits
from weft.cores.chains.clientlink import HeldMessage, HolderLink

Place = tuple[str, str, str, bool]
"""Direction, type, name of the client, whether it confirms."""


class Waiter(NamedTuple):
    """One message, and the link that had it; None if that was in an earlier run of this node."""

    held: HeldMessage
    link: HolderLink | None


class Line:
    """The messages that wait for one confirming reader."""

    __slots__ = ("bytes", "messages", "overflowed")

    def __init__(self) -> None:
        self.messages = self.bytes = 0
        self.overflowed = 0
        """Those that the reader's link, which is attached, had no room for."""


class Waiting:
    """All waiting messages."""

    def __init__(self, wait_ms: int, reader_messages: int, reader_bytes: int) -> None:
        self._wait_ns = wait_ms * MILLISECOND
        self._reader_messages, self._reader_bytes = reader_messages, reader_bytes
        self._lines: dict[str, Line] = {}
        """By name of the confirming reader."""
        self._rooms: dict[Place, dict[int, Waiter]] = {}
        self._until: deque[tuple[int, Place, int]] = deque()
        """In the order of their ends, since all wait equally long."""
        self._count = self._last = 0

    def __len__(self) -> int:
        return self._count

    @property
    def copies(self) -> int:
        """Number of copies that readers have to confirm."""
        return sum([line.messages for line in self._lines.values()])

    def of(self, direction: str) -> list[HeldMessage]:
        """Number of waiting messages of a direction."""
        rooms = [room for place, room in self._rooms.items() if place[0] == direction]
        return [waiter.held for room in rooms for waiter in room.values()]

    def admit(self, place: Place, held: HeldMessage, link: HolderLink | None, now: Now) -> bool:
        """Let a message wait; returns whether there was room."""
        if self._count >= limits.WAITING_MAX or (place[3] and not self._line_up(place[2], held)):
            return False
        self._count += 1
        self._last += 1
        self._rooms.setdefault(place, {})[self._last] = Waiter(held, link)
        if not place[3]:
            self._until.append((now.mono + self._wait_ns, place, self._last))
        return True

    def _line_up(self, name: str, held: HeldMessage) -> bool:
        line = self._lines.get(name) or Line()
        size = _size(held)
        if line.messages >= self._reader_messages or line.bytes + size > self._reader_bytes:
            return False
        line.messages += 1
        line.bytes += size
        line.overflowed += held.has_overflowed
        self._lines[name] = line
        return True

    def line(self, name: str) -> Line:
        """The messages that wait for a confirming reader."""
        return self._lines.get(name) or Line()

    def _leave(self, place: Place, held: HeldMessage) -> None:
        """Remove a message that waits."""
        self._count -= 1
        if not place[3]:
            return
        line = self._lines[place[2]]
        line.messages -= 1
        line.bytes -= _size(held)
        line.overflowed -= held.has_overflowed
        if not line.messages:
            del self._lines[place[2]]

    def claim(self, link: HolderLink, *, overflowed: bool = False) -> list[HeldMessage]:
        """Remove and return the messages that wait for this link, in id order.

        For one message, the copy to be confirmed comes first.

        `overflowed`: only those that it had no room for.
        """
        found: list[HeldMessage] = []
        for place in [place for place in self._rooms if _is_for(link, place)]:
            found += self._empty(place, overflowed=overflowed)
        return sorted(found, key=lambda held: (held.parcel.id, not held.is_copy))

    def give_up(self, name: str, is_covered: Callable[[str], bool]) -> list[HeldMessage]:
        """Remove and return the messages of these types that wait for a confirming reader, in id order."""
        places = [place for place in self._rooms if place[3] and place[2] == name and is_covered(place[1])]
        found = [held for place in places for held in self._empty(place)]
        return sorted(found, key=lambda held: held.parcel.id)

    def _empty(self, place: Place, *, overflowed: bool = False) -> list[HeldMessage]:
        room = self._rooms[place]
        taken = {at: waiter.held for at, waiter in room.items() if waiter.held.has_overflowed or not overflowed}
        for at, held in taken.items():
            del room[at]
            self._leave(place, held)
            held.has_overflowed = False
        if not room:
            del self._rooms[place]
        return list(taken.values())

    def take_back(self, link: HolderLink, number: int) -> HeldMessage | None:
        """Remove a message that was answered after its deadline at this link; None: there is none."""
        found = next(self._places_of(link, number), None)
        if found is None:
            return None
        place, at = found
        room = self._rooms[place]
        held = room.pop(at).held
        self._leave(place, held)
        if not room:
            del self._rooms[place]
        return held

    def _places_of(self, link: HolderLink, number: int) -> Iterator[tuple[Place, int]]:
        for place, room in self._rooms.items():
            for at, (held, was_at) in room.items():
                if was_at is link and held.parcel.id == number and held.due is not None:
                    yield place, at

    def expired(self, now: Now) -> list[Waiter]:
        """The messages that have waited long enough, in the order in which they came."""
        gone: list[Waiter] = []
        while self._until and self._until[0][0] <= now.mono:
            _, place, number = self._until.popleft()
            room = self._rooms.get(place, {})
            if number in room:
                gone.append(room.pop(number))
                self._leave(place, gone[-1].held)
                if not room:
                    del self._rooms[place]
        return gone

    def empty(self) -> list[Waiter]:
        """Remove and return all messages, in id order."""
        found = [waiter for room in self._rooms.values() for waiter in room.values()]
        self._rooms.clear()
        self._lines.clear()
        self._until.clear()
        self._count = 0
        return sorted(found, key=lambda waiter: waiter.held.parcel.id)

    def deadline(self) -> int | None:
        """When the next message may have waited long enough; possibly too early."""
        return self._until[0][0] if self._until else None


def _size(held: HeldMessage) -> int:
    return sum(map(len, held.frames))


def _is_for(link: HolderLink, place: Place) -> bool:
    direction, kind, name, confirms = place
    return direction == link.direction and name == link.name and confirms == link.confirms and link.covers(kind)
