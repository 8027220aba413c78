"""State that the parts of the enrolment core share: the outbox, the node's keys, and open writes."""

import hmac
from collections.abc import Callable
from typing import Final

import msgspec

from weft.base.budget import Budget
from weft.base.effects import Source
from weft.base.keys import UNTIL_MAX, Binding
from weft.base.now import SECOND, Now
from weft.cores.enrolment import limits
from weft.cores.enrolment.messages import BindingWanted, EnrolmentRefused, EnrolmentSettings
from weft.cores.kit.outbox import Outbox
from weft.cores.kit.tickets import Tickets
from weft.wire.enrolment import Answer
from weft.wire.token import SECRET_BYTES

SECRET_LABEL: Final = b"weft-invitation-1\x00"
Then = Callable[[int, Now], None]
"""Called with the result of a write: 0 if it is durable."""


class Counters(msgspec.Struct):
    """Plain counts since the start."""

    joined: int = 0
    """Machines that have joined."""
    refused: int = 0
    """JOINs that were refused."""
    offers_refused: int = 0
    """Next keys that nodes offered although they belong to other nodes."""


class Context(Outbox):
    """State of the enrolment core."""

    def __init__(self, settings: EnrolmentSettings, node: bytes, secret: bytes) -> None:
        """`secret`: of the machine. Secrets derived from it need not be stored, and cannot be guessed."""
        super().__init__()
        self.settings, self.node = settings, node
        self.budget = Budget()
        self.counters = Counters()
        self.is_root = False
        self.curve = self.beacon_key = ""
        """Empty: this node has no keys."""
        self._secret = secret
        self._writes = Tickets[Then]()

    @property
    def can_invite(self) -> bool:
        """Whether this node can invite: it is a root with keys."""
        return self.is_root and bool(self.curve)

    def secret_of(self, ident: bytes) -> bytes:
        """The secret of an invitation; derived each time, so that it is on no disk."""
        return invitation_secret(self._secret, ident)

    def want(self, key: str, value: bytes, then: Then) -> None:
        """Request the write of a pair; an empty value deletes it."""
        self.tell(BindingWanted(self._writes.open(then), key, value))

    def written(self, ticket: int, code: int, now: Now) -> None:
        """The result of a write: durable, or refused with a code."""
        then = self._writes.close(ticket)
        if then is not None:
            then(code, now)

    def refuse(self, ticket: int, code: str, text: str) -> None:
        """Refuse an order."""
        self.reply(ticket, EnrolmentRefused(code, text))

    def answer(self, source: Source, message: Answer) -> None:
        """Answer the sender of a JOIN."""
        self.send(source.channel, source.peer, message)


def invitation_secret(machine_secret: bytes, ident: bytes) -> bytes:
    """The secret that the token of an invitation carries (SEC-021)."""
    return hmac.digest(machine_secret, SECRET_LABEL + ident, "sha256")[:SECRET_BYTES]


def until_of(now: Now, before: Binding | None = None) -> int:
    """The end of a binding that is written now, in seconds since 1970.

    It is later than that of the binding `before` it, whatever the clock says: of two bindings of one node the one that ends
    later counts, and a node may have been told the former one when it joined (SEC-025).
    """
    until = now.wall // SECOND + limits.UNTIL_S
    return until if before is None else min(UNTIL_MAX, max(until, before.until + 1))
