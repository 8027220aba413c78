"""Messages that wait for a client to come back (`fail = "wait"`, CHN-019).

They wait under direction, type and the client's name, until a link of that name stands on that chain again. Those of a
confirming reader wait without limit, all others `wait_ms`.
"""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from weft.base.now import MILLISECOND, Now
from weft.cores.chains import limits
from weft.cores.chains.clientlink import Held, HolderLink

Place = tuple[str, str, str, bool]
"""Direction, type, name of the client, whether it confirms."""


class Waiter(NamedTuple):
    """One message, and the link that had it; none if that was in an earlier run of this node."""

    held: Held
    link: HolderLink | None


class Waiting:
    """All who wait."""

    def __init__(self, wait_ms: int) -> None:
        self._wait_ns = wait_ms * MILLISECOND
        self._rooms: dict[Place, dict[int, Waiter]] = {}
        self._until: deque[tuple[int, Place, int]] = deque()
        """In the order of their ends, since all wait equally long."""
        self._count = self._last = 0

    def __len__(self) -> int:
        return self._count

    def admit(self, place: Place, held: Held, link: HolderLink | None, now: Now) -> bool:
        """Whether there was room to let a message wait."""
        if self._count >= limits.WAITING_MAX:
            return False
        self._count += 1
        self._last += 1
        self._rooms.setdefault(place, {})[self._last] = Waiter(held, link)
        if not place[3]:
            self._until.append((now.mono + self._wait_ns, place, self._last))
        return True

    def claim(self, link: HolderLink) -> list[Held]:
        """Those for which this link has been waited for, in id order; of one message, what is to be confirmed first."""
        kinds = [place for place in self._rooms if _is_for(link, place)]
        found = [waiter.held for place in kinds for waiter in self._rooms.pop(place).values()]
        self._count -= len(found)
        return sorted(found, key=lambda held: (held.parcel.id, not held.is_copy))

    def take_back(self, link: HolderLink, number: int) -> Held | None:
        """A message whose deadline at this link has passed, and which is answered after all; None: there is none."""
        found = next(self._places_of(link, number), None)
        if found is None:
            return None
        place, at = found
        room = self._rooms[place]
        held = room.pop(at).held
        self._count -= 1
        if not room:
            del self._rooms[place]
        return held

    def _places_of(self, link: HolderLink, number: int) -> Iterator[tuple[Place, int]]:
        for place, room in self._rooms.items():
            for at, (held, was_at) in room.items():
                if was_at is link and held.parcel.id == number and held.due is not None:
                    yield place, at

    def expired(self, now: Now) -> list[Waiter]:
        """Those that have waited long enough, in the order in which they came."""
        gone: list[Waiter] = []
        while self._until and self._until[0][0] <= now.mono:
            _, place, number = self._until.popleft()
            room = self._rooms.get(place, {})
            if number in room:
                gone.append(room.pop(number))
                self._count -= 1
                if not room:
                    del self._rooms[place]
        return gone

    def empty(self) -> list[Waiter]:
        """All of them, in id order; nobody waits any more."""
        found = [waiter for room in self._rooms.values() for waiter in room.values()]
        self._rooms.clear()
        self._until.clear()
        self._count = 0
        return sorted(found, key=lambda waiter: waiter.held.parcel.id)

    def deadline(self) -> int | None:
        """When the next one has waited long enough, or may have."""
        return self._until[0][0] if self._until else None


def _is_for(link: HolderLink, place: Place) -> bool:
    direction, kind, name, confirms = place
    return direction == link.direction and name == link.name and confirms == link.confirms and link.covers(kind)
