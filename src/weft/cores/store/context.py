"""State that all parts of the store core share: identity, the common clock of changes, the outbox.

All records of a turn stand in one Persist ahead of all effects of the turn (STO-030, STO-031).
"""

from collections import Counter
from typing import Any, Final

from weft.base.budget import Budget
from weft.base.chance import Chance
from weft.base.effects import Effect
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.cores.kit.outbox import Outbox
from weft.cores.store import limits
from weft.cores.store.memory import TockLimit, record_of
from weft.cores.store.messages import StoreMalformed, StoreSettings
from weft.wire.store.messages import Info

COLLISION: Final = "name-collision"
"""Why no orders are accepted where another live node has the same name."""


class Context(Outbox):
    """Shared by reference; only parts of the core change it."""

    def __init__(self, settings: StoreSettings, chance: Chance) -> None:
        super().__init__()
        self.settings, self.chance = settings, chance
        self.budget = Budget()
        self.name = settings.name
        self.tick = 0
        """Tick of this node's last change; 0: it has made none (R7)."""
        self.tock = 0
        """Highest tock of any message or change sent or seen (STO-007)."""
        self.tock_limit = 0
        """On disk: no tock above this one was ever sent."""
        self._tock_limit_kept = 0
        self.takes_any_tock = True
        """LISTEN and JOIN: nothing is known that a jump could be compared with."""
        self.is_full = False
        """The journal has no room: orders are refused, reading and merging go on (STO-032)."""
        self.read_only = ""
        """Why no orders are accepted: `dropped`, `name-collision`, `unconfirmed`; empty: they are."""
        self.now = Now(0, 0)
        self.counters: Counter[tuple[str, str]] = Counter()
        """Counts by metric and label: `("events", "newer")`, `("malformed", "bad-path")` (ADM-030)."""
        self.foreign: dict[str, None] = {}
        """Names of real MoaT-KV servers, in the order in which they appeared (PNG-031)."""

    # Time

    def next_tock(self) -> int:
        """The tock for a new message or change; the limit on disk is kept ahead of it (STO-007)."""
        self.tock += 1
        if self.tock > self.tock_limit:
            self.tock_limit = self.tock + limits.TOCKS_AHEAD
        return self.tock

    def hear_tock(self, tock: int) -> None:
        """The tock of another node's message or change; PeerError `tock-jump`."""
        if tock <= self.tock:
            return
        if tock - self.tock > limits.TOCK_JUMP_MAX and not (self.takes_any_tock and tock <= limits.TOCK_MAX):
            raise PeerError("tock-jump", str(tock))
        self.tock = tock

    def check_tick(self, known: int, tick: int) -> None:
        """A change of a node was named, of which `known` is the highest tick known; PeerError `tick-jump` (FLD-011)."""
        if tick - known > limits.TICK_JUMP_MAX and not (self.takes_any_tock and tick <= limits.TOCK_MAX):
            raise PeerError("tick-jump", str(tick))

    def restore_tock(self, limit: int) -> None:
        """No tock above the limit was sent before: this start begins there (STO-007)."""
        self._tock_limit_kept = self.tock_limit = max(self.tock_limit, limit)
        self.tock = max(self.tock, limit)

    # Saying

    def info(self, **fields: Any) -> Info:
        """A new info message of this node, with a tock."""
        return Info(node=self.name, tick=self.tick, tock=self.next_tock(), **fields)

    def count(self, metric: str, label: str = "", by: int = 1) -> None:
        self.counters[metric, label] += by

    def refuse(self, peer: str, code: str) -> None:
        """Count a message that is not allowed; one event per sender in ten seconds (COD-007)."""
        self.counters["malformed", code] += 1
        by = ("malformed_by", peer)
        if by not in self.counters and len(self.counters) >= limits.NODES_MAX:  # a stranger can invent names
            by = ("malformed_by", "others")
        self.counters[by] += 1
        event = StoreMalformed(peer, code, self.counters[by])
        self.tell_seldom(peer, event, self.now.mono, limits.TELL_NS)

    def take(self) -> list[Effect]:
        """The effects, behind the records of the turn and the limit of tocks; empties the outbox."""
        if self.tock_limit > self._tock_limit_kept:
            self._tock_limit_kept = self.tock_limit
            self.keep(record_of(TockLimit(self.tock_limit)))
        return super().take()
