"""Reports changes of the configuration to its users: whole writes, and after a snapshot only the differences.

Nothing is reported while a snapshot is under way (CFG-031). Writes that belong together are reported with the last of
them, or after a second (CFG-026). The number in force is reported soon after it has changed (CFG-047).
"""

from operator import attrgetter

from weft.base.now import Now
from weft.cores.configuration import limits
from weft.cores.configuration.context import Context
from weft.cores.configuration.messages import ConfigurationApplied, PairsChanged
from weft.wire.replication import KvSync


class Teller:
    """Collects the changes since the last report."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._snapshot: list[KvSync] = []
        """Changes that a snapshot brought, in order, as long as there are no others; one dict more would take long."""
        self._changed: dict[str, KvSync] = {}
        """By key; an empty value: deleted by the write of that number, 0 if the number is unknown."""
        self._open: dict[str, None] = {}
        """Chains of which more writes are announced."""
        self._together_by: int | None = None
        self._before: dict[str, KvSync] | None = None
        """The pairs that users still use after the store was emptied (CFG-036)."""
        self._why = ""
        self._reported_at: int | None = None

    def note(self, key: str, value: bytes, why: str, number: int = 0) -> None:
        """A pair has changed; an empty value deletes. `number`: of the write; 0: the last one here."""
        self._join()
        self._changed.pop(key, None)
        self._changed[key] = KvSync(key, number or self._context.store.number, value)
        self._why = why

    def expect(self, chain: str, now: Now, *, is_more: bool) -> None:
        """Whether more writes follow that belong to this chain's last one."""
        if is_more:
            self._open[chain] = None
            if self._together_by is None:
                self._together_by = now.mono + limits.TOGETHER_NS
        elif self._open:
            self._open.pop(chain, None)

    def report(self, why: str) -> None:
        """The number has changed, even if no pair has."""
        self._why = why

    def before_wipe(self) -> None:
        """The store is about to be emptied: keep the pairs that users still use."""
        if self._before is None:
            self._before = dict(self._context.store.pairs)

    def settle(self) -> None:
        """The present pairs are the valid ones, even if there are none."""
        if self._before is not None:
            self.compare(self._context.store.pairs)

    def compare(self, new: dict[str, KvSync]) -> None:
        """A snapshot is about to replace what users know."""
        old = self._context.store.pairs if self._before is None else self._before
        self._before = None
        self._join()
        changed = list(new.values())
        if old:
            changed = [pair for pair in changed if (was := old.get(pair.key)) is None or was.value != pair.value]
        dropped = [key for key in self._changed if key not in new]
        for key in dropped + [key for key in old if key not in new]:
            self._changed[key] = KvSync(key, 0, b"")
        for key in [key for key in self._changed if key in new]:
            self._changed[key] = new[key]
        changed.sort(key=attrgetter("number"))
        self._note_all(changed, "snapshot")
        self._open.clear()
        self._together_by = None

    def _note_all(self, pairs: list[KvSync], why: str) -> None:
        """As `note` for each pair, in this order; their numbers are known."""
        if pairs:
            self._join()
            self._snapshot, self._why = pairs, why
            if self._changed:
                self._join()

    def _join(self) -> None:
        """Let all changes be in `_changed`."""
        if self._snapshot:
            new = {pair.key: pair for pair in self._snapshot}
            self._changed = {key: pair for key, pair in self._changed.items() if key not in new} | new
            self._snapshot = []

    def tell_all(self) -> None:
        """Users know nothing yet: report all pairs."""
        self._note_all(list(self._context.store.view("")), "")

    def flush(self, now: Now, *, is_root: bool = False) -> None:
        """Report, unless more is to come; call it only while nothing is missing."""
        if self._open and self._together_by is not None and now.mono < self._together_by:
            return
        self._open.clear()
        self._together_by = None
        number = self._context.store.number
        if changed := self._snapshot or list(self._changed.values()):
            pairs = tuple([(pair.key, pair.value or None) for pair in changed])
            numbers = tuple([pair.number or number for pair in changed])
            self._context.tell(PairsChanged(pairs, number, is_root, numbers, self._context.shown_digest()))
            self._snapshot, self._changed = [], {}
        if self._why and (self._reported_at is None or now.mono >= self._reported_at + limits.REPORT_NS):
            count, digest = self._context.store.tally.count, self._context.shown_digest().hex()
            self._context.tell(ConfigurationApplied(number, self._why, count, digest, self._context.candidates()))
            self._why, self._reported_at = "", now.mono

    def deadline(self) -> int | None:
        """When `flush` has something to report."""
        if self._open:
            return self._together_by
        return (self._reported_at or 0) + limits.REPORT_NS if self._why else None
