"""Conflicts are told when they come up: by every node that has both sides, so that both parties hear of it (DOC-040)."""

from weft.cores.document.context import Context
from weft.cores.document.fold.engine import Engine
from weft.cores.document.messages import ConflictFound


class Telling:
    """What of the document's conflicts has been told."""

    def __init__(self, context: Context, engine: Engine) -> None:
        self._context, self._engine = context, engine
        self._known: set[str] | None = None
        """None: the log is still being taken back."""
        self._last: tuple[int, str] = (0, "")
        """How many there were, and the last of them: looking through all of them with every entry would cost too much."""

    def learn(self) -> None:
        """What is there at the start was told by a start before."""
        self._known = {conflict.id for conflict in self._engine.conflicts()}

    def tell(self) -> None:
        """Of those that are new, and still open; one that was taken back and comes again is not told twice."""
        found = self._engine.conflicts()
        last = (len(found), found[-1].id if found else "")
        if self._known is None or last == self._last:
            return
        self._last = last
        for conflict in found:
            if conflict.id not in self._known:
                self._known.add(conflict.id)
                if conflict.is_open:
                    event = ConflictFound(
                        self._context.session, conflict.id, conflict.kind, conflict.slot, conflict.attr
                    )
                    self._context.tell(event)
