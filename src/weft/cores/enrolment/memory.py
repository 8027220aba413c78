"""The enrolment core's records: its invitations. Of a secret only the SHA-256 is kept (SEC-023)."""

from typing import Final

import msgspec

from weft.base.memories import Memories
from weft.cores.enrolment.states import State


class Joined(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A machine that has joined."""

    node: bytes
    curve: str
    name: str


class Invitation(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One invitation as it stands."""

    ident: bytes
    role: str
    uses: int
    names: str
    expires_at: int
    """Wall-clock nanoseconds."""
    digest: bytes
    """SHA-256 of its secret."""
    state: str = State.OPEN.name
    joined: tuple[Joined, ...] = ()
    wrong: int = 0
    """Wrong proofs so far."""

    @property
    def is_open(self) -> bool:
        """Whether a new machine may join with it."""
        return self.state == State.OPEN.name


MEMORIES: Final = Memories[Invitation]("enrolment", {1: Invitation})
to_record = MEMORIES.to_record
from_record = MEMORIES.from_record
