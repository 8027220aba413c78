"""Whether this node may make a change now: by its state, the value, the rules and its memory (STO-030, FLD-032)."""

from weft.base.budget import Part
from weft.base.changes import Event, Path
from weft.base.errors import PeerError
from weft.cores.kit.refusals import Refusal
from weft.cores.store import limits
from weft.cores.store.context import Context
from weft.cores.store.rules import Rules
from weft.cores.store.ticks import TickBook
from weft.cores.store.tree import Tree, growth
from weft.wire.store.pack import check
from weft.wire.store.path import normal


class Admitting:
    """Raises Refusal for a change that this node may not make; changes nothing."""

    def __init__(self, context: Context, tree: Tree, book: TickBook, rules: Rules, room: Part) -> None:
        self._context, self._tree, self._book, self._rules, self._room = context, tree, book, rules, room
        self.is_damaged = False
        """The journal has lost records: completeness is unknown until nothing is missing (STO-032)."""

    def checked(self, path: Path, value: bytes | None) -> Path:
        """The normal path, if the node's state, path and value allow a write."""
        self._check_state()
        try:
            path = normal(path, self._context.settings.keys)
        except PeerError as error:
            raise Refusal(error.code, error.why) from None
        if value is not None:
            _check_value(value)
        return path

    def check_room(self, path: Path, before: Event | None, value: bytes | None) -> None:
        """Refuse a write without room; a deletion is never refused for lack of room (FLD-032)."""
        if value is not None:
            is_new = before is None or before.value is None
            self._check_growth(growth(path, value, before), int(is_new), len(value))

    def check_all(self, writes: list[tuple[Path, bytes | None, Event | None]]) -> None:
        """Refusal unless all of these could be written one after the other, by the rules as they are now.

        Each is a normal path, a value, and what stands there now; the paths are distinct.
        """
        if not writes:
            return
        costs = entries = bytes_ = 0
        self._check_state()
        for path, value, before in writes:
            if value is not None:
                _check_value(value)
                self._rules.check(path, value)
                # a write that frees memory may come after one that has no room without it
                costs += max(0, growth(path, value, before))
                entries += before is None or before.value is None
                bytes_ += len(value)
        if self._context.tick + len(writes) > limits.TICK_MAX:
            raise Refusal("tick-exhausted", "")
        self._check_growth(costs, entries, bytes_)

    def _check_state(self) -> None:
        context = self._context
        if context.is_full:
            raise Refusal("storage-full", context.read_only)
        if context.read_only:
            raise Refusal("read-only", context.read_only)
        if self._book.own_ahead or self.is_damaged:
            raise Refusal("not-ready", "")
        if context.tick >= limits.TICK_MAX:
            raise Refusal("tick-exhausted", "")

    def _check_growth(self, cost: int, entries: int, size: int) -> None:
        """Whether there is room for so many more bytes of memory, entries, and bytes of values."""
        if cost and not self._room.has_room(cost):
            self._room.refuse()
            raise Refusal("storage-full", "this node has no memory left for more")
        if entries and self._tree.entries + entries > limits.ENTRIES_MAX:
            raise Refusal("too-large", f"more than {limits.ENTRIES_MAX} entries")
        if self._tree.bytes + size > limits.STORE_BYTES_MAX:
            raise Refusal("too-large", f"more than {limits.STORE_BYTES_MAX} bytes")


def _check_value(value: bytes) -> None:
    try:
        check(value, limits.VALUE_BYTES_MAX, limits.VALUE_ITEMS_MAX, limits.VALUE_DEPTH_MAX)
    except PeerError as error:
        raise Refusal("too-large" if error.code == "too-large" else "bad-value", error.why) from None
