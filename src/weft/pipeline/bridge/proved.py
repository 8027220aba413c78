"""What former questions of this process have found out about drained rows, so that it is not asked again (PIP-102).

Drained rows wait for some seconds, and somebody who looks twice a second would have the same ones judged each time. A
segment never changes, and its digest is verified before each answer; so what was true of all its rows stays true.
"""

from collections.abc import Hashable, Iterable
from typing import Final

from weft.lake.reader import Slice

CLAIMS_MAX: Final = 64
PROOFS_MAX: Final = 4_096
"""Slices of a claim; twice as many as wait for a driver at most."""

_Proof = tuple[str, int, int]
"""The digest of a segment, and which of its rows."""


class Proved:
    """For each claim the slices of which it is true."""

    def __init__(self) -> None:
        self._claims: dict[Hashable, set[_Proof]] = {}

    def without(self, slices: Iterable[Slice], claim: Hashable) -> tuple[Slice, ...]:
        """Those of the slices of which nobody knows yet whether the claim is true."""
        proofs = self._claims.get(claim, set())
        return tuple(piece for piece in slices if _proof(piece) not in proofs)

    def note(self, slices: Iterable[Slice], claim: Hashable) -> None:
        """The claim is true of all rows of these slices."""
        if claim not in self._claims and len(self._claims) >= CLAIMS_MAX:
            self._claims.clear()
        proofs = self._claims.setdefault(claim, set())
        if len(proofs) > PROOFS_MAX:
            proofs.clear()
        proofs.update(map(_proof, slices))


PROVED: Final = Proved()


def _proof(piece: Slice) -> _Proof:
    return piece.sha256, piece.first, piece.last
