"""Recognises repeated sends (CHN-042): the last tags of each client, with their status or that they are under way."""

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
    """A status that no journal record stands for: it is known only in this run."""

    __slots__ = ()


KEPT: Final = ("spooled", "local")
"""Statuses that a journal record may stand for."""


class Tags:
    """By client and tag."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, OrderedDict[int, Parcel | Outcome]] = OrderedDict()

    def get(self, client: bytes, tag: int) -> Parcel | Outcome | None:
        """The outcome of a send; None: it is new, or was forgotten."""
        known = self._known.get(client)
        return None if known is None else known.get(tag)

    def note(self, client: bytes, tag: int, what: Parcel | Outcome) -> None:
        """Set the outcome of a send, or that it is under way; the oldest of too many tags is forgotten.

        The order is that of sending, which is also the order of the journal.
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
        """The tags that the journal stands for, for a snapshot; refused sends may be repeated."""
        for client, known in self._known.items():
            tags = [(tag, what.why) for tag, what in known.items() if _is_kept(what)]
            if tags:
                yield TagsKept(client, tags)

    def adopt(self, kept: TagsKept) -> None:
        """Restore the tags of a snapshot."""
        for tag, why in kept.tags:
            self.note(kept.client, tag, Outcome(ok=True, why=why))


def _is_kept(what: Parcel | Outcome) -> TypeGuard[Outcome]:
    """Whether a later start recognises it."""
    return isinstance(what, Outcome) and what.why in KEPT and not isinstance(what, Fleeting)
