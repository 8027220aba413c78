"""Sends that are known again (CHN-042): of each client the last tags, with their status or what is still under way."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeGuard

from weft.cores.chains import limits
from weft.cores.chains.memory import TagsKept
from weft.cores.chains.parcel import Parcel


class Outcome(NamedTuple):
    """The final status of a send, as its client hears it."""

    ok: bool
    why: str
    reached: int | None = None
    failed: int = 0


class Fleeting(Outcome):
    """One for which nothing stands in the journal: it is known as long as this node runs."""

    __slots__ = ()


KEPT: Final = ("spooled", "local")
"""What the journal may stand for."""


class Tags:
    """By client and tag."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, OrderedDict[int, Parcel | Outcome]] = OrderedDict()

    def get(self, client: bytes, tag: int) -> Parcel | Outcome | None:
        """What became of a send; None: it is new, or forgotten."""
        known = self._known.get(client)
        return None if known is None else known.get(tag)

    def note(self, client: bytes, tag: int, what: Parcel | Outcome) -> None:
        """This is what is under way, or has become of it; the oldest of too many is forgotten.

        What was sent counts from then on: that is the order of the journal.
        """
        known = self._known.get(client)
        if known is None:
            if len(self._known) >= limits.TAGGED_CLIENTS_MAX:
                self._known.popitem(last=False)
            known = self._known[client] = OrderedDict()
        known[tag] = what
        if _is_kept(what):
            known.move_to_end(tag)
            self._known.move_to_end(client)
        if len(known) > limits.TAGS_MAX:
            known.popitem(last=False)

    def condense(self) -> Iterator[TagsKept]:
        """Those for which the journal stands, for a snapshot; what was refused may be tried again."""
        for client, known in self._known.items():
            tags = [(tag, what.why) for tag, what in known.items() if _is_kept(what)]
            if tags:
                yield TagsKept(client, tags)

    def adopt(self, kept: TagsKept) -> None:
        """Take back what a snapshot has kept."""
        for tag, why in kept.tags:
            self.note(kept.client, tag, Outcome(ok=True, why=why))


def _is_kept(what: Parcel | Outcome) -> TypeGuard[Outcome]:
    """Whether a start after this one knows it again."""
    return isinstance(what, Outcome) and what.why in KEPT and not isinstance(what, Fleeting)
