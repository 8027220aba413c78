"""How a watcher misses nothing (CAT-043), without sockets and clocks: what it hears and is answered goes in, what to do comes out.

    follower = Follower(filter)              a dict as CAT-035 has it; {} or None: everything
    follower.opened(now)                     a fresh SUB socket stands (after the first start and after each Reopen)
    follower.heard(frames, now)              frames of that socket
    follower.answered(ticket, told, now)     what a query was answered, as decoded JSON
    follower.failed(ticket, now)             a query got no answer
    follower.wake(now) / deadline()          monotonic nanoseconds
    follower.actions()                       Subscribe, Ask, Reopen: to be done in that order
    follower.changes()                       what to tell: Change, oldest first; op `resync` begins a new state
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.client.catalog.entries import Change, Entry


class Subscribe(NamedTuple):
    """Subscribe the SUB socket to this topic."""

    topic: bytes


class Ask(NamedTuple):
    """Ask the broker this query (`u_U` with these frames); answer with `answered` or `failed` under this ticket."""

    ticket: int
    frames: tuple[bytes, ...]


class Reopen(NamedTuple):
    """Nothing is heard: close the SUB socket, open a fresh one to where the broker is now, then call `opened`."""


Action = Subscribe | Ask | Reopen


class Follower:
    """One watch."""

    def __init__(self, filter: dict[str, Any] | None = None) -> None:
        self.topic = b""
        self.entries: dict[tuple[str, str], Entry] = {}
        """What matches now, by name and instance."""
        self.is_live = False
        """Whether a snapshot is taken and ticks come: `entries` is what the broker has, as far as can be known."""

    def opened(self, now: int) -> None:
        """A fresh SUB socket stands."""

    def heard(self, frames: Sequence[bytes], now: int) -> None:
        """What the SUB socket received; anything may be in it."""

    def answered(self, ticket: int, told: Any, now: int) -> None:
        """A query was answered; raises CatalogError where the broker refuses the watch."""

    def failed(self, ticket: int, now: int) -> None:
        """A query got no answer: it is asked again later."""

    def wake(self, now: int) -> None:
        """Time has passed."""

    def deadline(self) -> int | None:
        """When to be woken, in monotonic nanoseconds."""
        return None

    def actions(self) -> list[Action]:
        """What to do, in order; asking empties the list."""
        return []

    def changes(self) -> list[Change]:
        """What to tell, in order; asking empties the list."""
        return []
