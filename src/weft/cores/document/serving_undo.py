"""Undo and redo (DOC-055): of a person's last entry, or of a named one.

An undo is an ordinary entry that names what it takes back. So the log alone shows every node what is undone: an undo
takes back an entry, a redo takes back an undo, and an entry that is taken back no longer counts. After another entry of
that person there is nothing to redo.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from weft.cores.document.fold.tree import Pair
from weft.cores.document.fold.undoing import Superseded
from weft.cores.document.own import Issued
from weft.cores.kit.refusals import Refusal
from weft.wire.document.operations import Operation, uuid_text

if TYPE_CHECKING:
    from weft.cores.document.session import Session  # tidy: as serving.py

DIGITS_MIN = 4
"""Shortest prefix by which a source may be named."""


class Undo(msgspec.Struct, frozen=True):
    entry: str = ""
    """`SOURCE:N`, where a prefix of the source is enough; empty: that person's last entry."""
    by: str = ""
    force: bool = False


class Redo(msgspec.Struct, frozen=True):
    by: str = ""
    force: bool = False


def undo(session: "Session", wanted: Undo) -> tuple[Issued, Operation]:
    """Undo an entry; Refusal `not-found`, `nothing-to-undo`, `superseded`."""
    session.fold()
    person = _Person(session, wanted.by)
    operation = _named(session, wanted.entry) if wanted.entry else person.last_done()
    if operation is None:
        raise Refusal("nothing-to-undo", f"{person.name} has entered nothing that stands", "weft doc log: what was")
    return _take_back(session, operation, person, force=wanted.force), operation


def redo(session: "Session", wanted: Redo) -> tuple[Issued, Operation]:
    """Undo a person's last undo; Refusal `nothing-to-redo`, `superseded`."""
    session.fold()
    person = _Person(session, wanted.by)
    operation = person.last_undone()
    if operation is None:
        raise Refusal("nothing-to-redo", f"{person.name} has undone nothing since the last entry", "weft doc undo")
    return _take_back(session, operation, person, force=wanted.force), operation


class _Person:
    """All entries under a person's name, at any node; without a name, all entries made here."""

    def __init__(self, session: "Session", by: str) -> None:
        self._engine, self._uuid = session.engine, session.context.uuid
        self.by = by or session.context.settings.operator

    @property
    def name(self) -> str:
        """The name for display."""
        return self.by or "whoever enters here"

    def is_of(self, operation: Operation) -> bool:
        """Whether it is an entry of this person."""
        return operation.by == self.by and bool(self.by or operation.source == self._uuid)

    def last_done(self) -> Operation | None:
        """The last entry or redo that counts."""
        return next((each for each, depth in self._standing() if depth % 2 == 0), None)

    def last_undone(self) -> Operation | None:
        """The last undo that counts; None if there is a later entry."""
        for operation, depth in self._standing():
            if depth % 2:
                return operation
            if depth == 0:
                return None
        return None

    def _standing(self) -> Iterator[tuple[Operation, int]]:
        """All entries that are not taken back, the last first.

        `depth`: 0 an entry, 1 an undo of it, 2 a redo, and so on.
        """
        undone: set[Pair] = set()
        targets: dict[Pair, Pair] = {}
        found: list[Operation] = []
        for operation in self._engine.backward.operations():
            pair = (operation.source, operation.sequence)
            if operation.undoes is not None:
                targets[pair] = operation.undoes
                if pair not in undone:
                    undone.add(operation.undoes)
            if pair not in undone and self.is_of(operation):
                found.append(operation)
        return ((each, _depth(targets, (each.source, each.sequence))) for each in found)


def _depth(targets: dict[Pair, Pair], pair: Pair) -> int:
    """How many levels of undo an entry has; a circle, which only a malicious peer can make, ends the count."""
    depth, seen = 0, {pair}
    while (below := targets.get(pair)) is not None and below not in seen:
        depth, pair = depth + 1, below
        seen.add(below)
    return depth


def _named(session: "Session", entry: str) -> Operation:
    front, _, digits = entry.rpartition(":")
    begin = front.replace("-", "").lower()
    found = [
        source for source, _ in session.log.sources() if len(begin) >= DIGITS_MIN and source.hex().startswith(begin)
    ]
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= 16 else 0
    if len(found) != 1 or not 1 <= number <= session.log.latest(found[0]):
        raise Refusal("not-found", f"there is no one entry {entry!r}", "weft doc log: SOURCE:N in front of each")
    return next(
        each for each in session.engine.backward.operations() if (each.source, each.sequence) == (found[0], number)
    )


def _take_back(session: "Session", operation: Operation, person: _Person, *, force: bool) -> Issued:
    known: dict[Pair, str] = {each.pair: each.by for each in session.engine.backward.operations()}

    def is_other(pair: Pair) -> bool:
        """Whether the author is neither that of the entry taken back nor the person who takes it back."""
        by = known.get(pair, "")
        return (pair[0], by) != (operation.pair[0], operation.by) and not (
            by == person.by and (bool(by) or pair[0] == session.context.uuid)
        )

    try:
        acts = session.engine.backward.acts(operation, is_other, force=force)
    except Superseded as error:
        by = f" by {uuid_text(error.by[0])[:8]}:{error.by[1]}" if error.by else ""
        raise Refusal(
            "superseded", f"{error.slot} has been changed since{by}", "--force: take it back all the same"
        ) from None
    if not acts:
        raise Refusal(
            "nothing-to-undo", "nothing of that entry stands in the document", "weft doc log: what became of it"
        )
    return session.own.issue_all(acts, operation, by=person.by)
