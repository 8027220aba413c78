"""What former questions of this process have found out about drained rows, so that it is not asked again (PIP-102).

Drained rows wait for some seconds, and somebody who looks twice a second would have the same ones judged each time. A
segment never changes, and its digest is verified before each answer; so what was found in its rows stays true.
"""

from collections.abc import Callable, Hashable
from typing import Final

from weft.lake.reader import Slice

CLAIMS_MAX: Final = 32
FOUND_MAX: Final = 4_096  # slices of a claim: twice as many as wait for a driver at most

_Rows = tuple[bytes, int, int]
"""The digest of a segment, and which of its rows."""
Named = tuple[str, int]
"""The drain and the number of a segment."""


class Claims:
    """For each claim, of which slices it is known whether one of their rows contradicts it."""

    def __init__(self) -> None:
        self._found: dict[Hashable, dict[_Rows, bool]] = {}

    def contradicted(
        self, claim: Hashable, slices: tuple[Slice, ...], ask: Callable[[tuple[Slice, ...]], set[Named]]
    ) -> tuple[Slice, ...]:
        """The slices with a row that contradicts a claim. `ask` finds them among those of which that is not known yet."""
        found = self._found.pop(claim, {})
        new = tuple(piece for piece in slices if _rows(piece) not in found)
        against = ask(new) if new else set()
        if len(found) > FOUND_MAX:
            found = {_rows(piece): found[_rows(piece)] for piece in slices if _rows(piece) in found}
        found.update((_rows(piece), (piece.drain, piece.number) in against) for piece in new)
        while len(self._found) >= CLAIMS_MAX:
            self._found.pop(next(iter(tuple(self._found))), None)  # unused for the longest time
        self._found[claim] = found
        return tuple(piece for piece in slices if found[_rows(piece)])


CLAIMS: Final = Claims()


def _rows(piece: Slice) -> _Rows:
    return bytes.fromhex(piece.sha256), piece.first, piece.last
