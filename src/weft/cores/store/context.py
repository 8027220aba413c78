"""What all parts of the store core share: who we are, the common clock of changes, and what we want done.

All records of a turn stand in one Persist in front of everything that the turn says: nothing leaves above it
(STO-030, STO-031).
"""

from collections import Counter
from typing import Any

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


class Context(Outbox):
    """Shared by reference; the parts of the core change it, nobody else does."""

    def __init__(self, settings: StoreSettings, chance: Chance) -> None:
        super().__init__()
        self.settings, self.chance = settings, chance
        self.budget = Budget()
        self.name = settings.name
        self.tick = 0
        """Of this node's last change; 0: it has no data of its own (R7)."""
        self.tock = 0
        """Of the greatest message or change, sent or seen (STO-007)."""
        self.tock_limit = 0
        """Kept on disk: no tock above it was ever sent."""
        self._tock_limit_kept = 0
        self.takes_any_tock = True
        """LISTEN and JOIN: there is nothing to compare a jump with."""
        self.is_full = False
        """The journal has no room: orders are refused, reading and merging go on (STO-032)."""
        self.read_only = ""
        """Why no order is taken, if so: `dropped`, `name-collision`, `unconfirmed`."""
        self.now = Now(0, 0)
        self.counters: Counter[tuple[str, str]] = Counter()
        """What has happened, by metric and label: `("events", "newer")`, `("malformed", "bad-path")` (ADM-030)."""
        self.foreign: dict[str, None] = {}
        """Names of nodes that are real MoaT-KV servers, in the order of their appearance (PNG-031)."""

    # Time

    def next_tock(self) -> int:
        """A tock for one more message or change; its limit is kept ahead of use (STO-007)."""
        self.tock += 1
        if self.tock > self.tock_limit:
            self.tock_limit = self.tock + limits.TOCKS_AHEAD
        return self.tock

    def hear_tock(self, tock: int) -> None:
        """A message or change of somebody else says how late it is; PeerError `tock-jump`."""
        if tock <= self.tock:
            return
        if tock - self.tock > limits.TOCK_JUMP_MAX and not (self.takes_any_tock and tock <= limits.TOCK_MAX):
            raise PeerError("tock-jump", str(tock))
        self.tock = tock

    def check_tick(self, known: int, tick: int) -> None:
        """Somebody names a change of a node of which `known` is the highest here; PeerError `tick-jump` (FLD-011)."""
        if tick - known > limits.TICK_JUMP_MAX and not (self.takes_any_tock and tick <= limits.TOCK_MAX):
            raise PeerError("tick-jump", str(tick))

    def restore_tock(self, limit: int) -> None:
        """No tock above the limit was sent before: this start begins there (STO-007)."""
        self._tock_limit_kept = self.tock_limit = max(self.tock_limit, limit)
        self.tock = max(self.tock, limit)

    # Saying

    def info(self, **said: Any) -> Info:
        """An info of this node, dated."""
        return Info(node=self.name, tick=self.tick, tock=self.next_tock(), **said)

    def count(self, metric: str, label: str = "", by: int = 1) -> None:
        self.counters[metric, label] += by

    def refuse(self, peer: str, code: str) -> None:
        """Count what may not be said; one event per sender in ten seconds (COD-007)."""
        self.counters["malformed", code] += 1
        self.counters["malformed_by", peer] += 1
        event = StoreMalformed(peer, code, self.counters["malformed_by", peer])
        self.tell_seldom(peer, event, self.now.mono, limits.TELL_NS)

    def take(self) -> list[Effect]:
        """What to do, the records of the turn first, the limit of tocks with them; asking empties it."""
        if self.tock_limit > self._tock_limit_kept:
            self._tock_limit_kept = self.tock_limit
            self.keep(record_of(TockLimit(self.tock_limit)))
        return super().take()
