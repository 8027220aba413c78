"""The first two steps after a split: which node reports what there is, which one what is missing, and who steps in.

A step waits by the position in the chain that this side had before the merge. It is dropped when another node of that
same chain has done it (HEA-002); a node of the other side acts only for its own side.
"""

from collections.abc import Callable

import msgspec

from weft.base.changes import Chain
from weft.cores.store.context import Context
from weft.cores.store.messages import SplitFound, SplitHealed
from weft.cores.store.pingchains import overlap


def takeover_ns(clock_ns: int, position: int) -> int:
    """How long the node at a position waits for those ahead of it: all but 2^-p of a clock (R8)."""
    return clock_ns - (clock_ns >> position)


class Merge(msgspec.Struct):
    """Two sides that hear each other again."""

    own: Chain
    other: Chain | None
    has_lost: bool
    began_at: int
    ticks_at: int | None
    """When to report what there is; None: another node has done it."""
    missing_at: int | None = None
    """When to report what is missing, once that is known."""

    @property
    def is_open(self) -> bool:
        return self.ticks_at is not None or self.missing_at is not None


class Splits:
    """`say_ticks(merge)`, `say_missing()`: called for the two steps."""

    def __init__(
        self, context: Context, clock_ns: int, say_ticks: Callable[[Merge], None], say_missing: Callable[[], None]
    ) -> None:
        self._context, self._clock = context, clock_ns
        self._length = context.settings.ping_length
        self._say_ticks, self._say_missing = say_ticks, say_missing
        self.merge: Merge | None = None
        """The last merge."""
        self._received = 0
        self._is_healing = False

    def begin(self, own: Chain, other: Chain | None, *, has_lost: bool) -> None:
        """Begin a merge, unless the same two sides have just begun one."""
        now = self._context.now.mono
        if self.merge is not None and self._is_same(self.merge, own, other, now):
            return
        position = self.position_in(own)
        self.merge = Merge(own, other, has_lost, now, now + takeover_ns(self._clock, position))
        self._is_healing, self._received = True, 0
        self._context.tell(SplitFound(other.head[0] if other else "", not has_lost))
        self.wake()

    def _is_same(self, merge: Merge, own: Chain, other: Chain | None, now: int) -> bool:
        if now - merge.began_at >= 2 * self._clock:
            return False
        if other is None or merge.other is None:
            return now - merge.began_at < self._clock or merge.is_open
        names, heard = _names(merge.other) | _names(merge.own), _names(other)
        return bool(names & heard)

    def position_in(self, chain: Chain) -> int:
        """This node's position in a chain; behind it if it is not on it."""
        names = [node for node, _ in chain.links[: self._length]]
        return names.index(self._context.name) if self._context.name in names else self._length

    def own_chain(self) -> Chain | None:
        """The own chain before the merge, for as long as its steps may continue."""
        if self.merge is None or self._context.now.mono - self.merge.began_at > 4 * self._clock:
            return None
        return self.merge.own

    def is_own_reason(self, reason: Chain) -> bool:
        """Whether `reason` is the chain of this node's own side, which lost."""
        own = self.own_chain()
        return own is not None and (overlap(own.links, reason.links) or bool(_names(own) >= _names(reason)))

    def heard_ticks(self, node: str) -> None:
        """A node has sent its full list: step 1, if it is on the own side."""
        merge = self.merge
        if merge is None or merge.ticks_at is None or not merge.own.has(node):
            return
        merge.ticks_at = None
        self._await_missing(merge)

    def heard_missing(self, node: str) -> None:
        """A node has told all what it misses: step 2, if it is on the own side."""
        if self.merge is not None and self.merge.own.has(node):
            self.merge.missing_at = None

    def _await_missing(self, merge: Merge) -> None:
        delay = takeover_ns(self._clock, self.position_in(merge.own) + 1)
        merge.missing_at = self._context.now.mono + delay

    def received(self) -> None:
        """A missing change has arrived."""
        self._received += 1

    def healed(self) -> None:
        """Nothing is missing any more."""
        if self._is_healing and self.merge is not None and not self.merge.is_open:
            self._is_healing = False
            self._context.tell(SplitHealed(self._received, self._context.now.mono - self.merge.began_at))

    def wake(self) -> None:
        now, merge = self._context.now.mono, self.merge
        if merge is None:
            return
        if merge.ticks_at is not None and merge.ticks_at <= now:
            merge.ticks_at = None
            self._await_missing(merge)
            self._context.count("recoveries", "ticks")
            self._say_ticks(merge)
        elif merge.missing_at is not None and merge.missing_at <= now:
            merge.missing_at = None
            self._say_missing()

    def deadline(self) -> int | None:
        return None if self.merge is None else self.merge.ticks_at or self.merge.missing_at


def _names(chain: Chain) -> set[str]:
    return {node for node, _ in chain.links}
