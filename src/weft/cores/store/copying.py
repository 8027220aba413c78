"""Takes over the store in a file: its changes keep their identities. Only before this node has joined others (ADM-013).

The pieces come as orders and are merged at once, like a download (CLN-020). So a copy that was interrupted is started
again from the beginning, and changes that are here already have no effect.
"""

from collections.abc import Callable

from weft.base.errors import PeerError
from weft.base.now import Now
from weft.base.ranges import RangeSet
from weft.cores.kit.refusals import Refusal
from weft.cores.store.context import Context
from weft.cores.store.messages import CopyFile
from weft.cores.store.replica import Replica
from weft.wire.store.files import Reader, State
from weft.wire.store.messages import Ticks

FILE = "file"


class Copying:
    """At most one file at a time."""

    def __init__(self, context: Context, replica: Replica) -> None:
        self._context, self._replica = context, replica
        self.may_copy: Callable[[], bool] = lambda: False
        """Whether this node has joined no other, and has made no change."""
        self.on_done: Callable[[Now], None] = lambda _: None
        """Called when the last piece is merged."""
        self._begin()

    def _begin(self) -> None:
        self._reader = Reader()
        self._links: Ticks = {}
        self._states: list[State] = []

    def take(self, order: CopyFile, now: Now) -> dict[str, int]:
        """Merge a piece; returns how many changes were merged and how many were invalid.

        Refusal `exists`, `bad-value`.
        """
        if not self.may_copy():
            raise Refusal("exists", "this node has a store, or is joining one: load the file as new, at any member")
        if order.is_first:
            self._begin()
        merged = refused = 0
        for record in order.records:
            try:
                merged += self._merge(record)
            except PeerError as error:
                if error.code not in MERGING:
                    raise Refusal("bad-value", f"that is no file of a store: {error.why or error.code}") from None
                self._context.refuse(FILE, error.code)
                refused += 1
        if order.is_last:
            try:
                self._settle(is_whole=order.is_whole)
            except PeerError as error:
                raise Refusal("bad-value", f"the file's state may not be said: {error.why or error.code}") from None
            self.on_done(now)
        return {"merged": merged, "refused": refused}

    def _merge(self, record: bytes) -> int:
        found = self._reader.read(record)
        if isinstance(found, State):
            self._states.append(found)
            return 0
        for node, tick in found.chain.links:
            self._links.setdefault(node, RangeSet()).add(tick)
        self._replica.receive(found, FILE)
        return 1

    def _settle(self, *, is_whole: bool) -> None:
        """Apply what the store knew beyond its entries; deletions that still stand here are also listed as deleted."""
        book, nothing = self._replica.book, RangeSet()
        for state in self._states:
            self._context.hear_tock(state.tock)
            for node, tick in state.nodes.items():
                book.check(((node, tick),))
                book.raise_top(node, tick)
            self._replica.settle(state.known, "known")
            left = {node: ticks - self._links.get(node, nothing) for node, ticks in state.deleted.items()}
            self._replica.settle({node: ticks for node, ticks in left.items() if ticks}, "deleted")
        if is_whole:
            self._replica.settle(book.missing(), "known")
        self._begin()


MERGING = frozenset(("bad-chain", "too-large", "tock-jump", "tick-jump", "dropped"))
"""Errors that concern one change, not the whole file."""
