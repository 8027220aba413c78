"""What the enrolment core keeps: its invitations. Of a secret, its SHA-256 (SEC-023)."""

from typing import Final

import msgspec

from weft.base.memories import Memories
from weft.cores.enrolment.states import State


class Joined(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Somebody who has joined."""

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
    """Proofs so far."""

    @property
    def is_open(self) -> bool:
        """Whether somebody new may join by it."""
        return self.state == State.OPEN.name


MEMORIES: Final = Memories[Invitation]("enrolment", {1: Invitation})
to_record = MEMORIES.to_record
from_record = MEMORIES.from_record
