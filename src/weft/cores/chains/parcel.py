"""One message on its way down a chain of this node."""

from collections.abc import Callable
from typing import Any, Final

from weft.base.mail import Mail

OUT, IN = "out", "in"


class Ghost:
    """The sender of what nobody has sent: it hears nothing."""

    id = bytes(16)
    is_gone = True


GHOST: Final = Ghost()


class Parcel:
    """What walks down a chain. Only `frames`, `to` and the engine's own marks ever change (CHN-006).

    Marks that most messages never have set stand in the class: there are two parcels per message, and their making is
    most of what a message costs.
    """

    sender: Any = None
    """The client that has sent it, as long as it is attached to this node (CHN-013, CHN-030)."""
    tag = 0
    want, keep = "none", "disk"
    is_kept = False
    """Whether a record of it stands in the inbox of the journal."""
    is_again = False
    """It was offered before, by an earlier run of this node or to an earlier client (`re`)."""
    is_handed = False
    """`forward` or `journal` has taken it: none of them does so again (CHN-036)."""
    weight = 0
    """Bytes of memory that it is counted with while it waits."""
    is_over = False
    """Its walk has ended."""
    unconfirmed = 0
    """Confirming readers that have it and have not said so (CHN-019)."""
    waits: tuple[tuple[str, bool], ...] = ()
    """Names of clients for whom it is kept until they come back, and whether they are to confirm it."""
    carries: Callable[[], None] | None = None
    """What is done when it comes to its bottom or its end: what it was made of is not kept any longer."""
    taken: "Parcel | None" = None
    """What is kept in the inbox of a message on `out` of which a filter has taken something in."""
    told: frozenset[tuple[str, int, bytes]] = frozenset()
    """Filter, window and group: what an earlier run has told of it, and nobody counts again."""
    flow: Any = None
    """Where it is counted (CHN-082)."""

    def __init__(self, number: int, direction: str, mail: Mail) -> None:
        self.id = number
        """Between node and clients (CHN-005)."""
        self.sent = mail
        """As it came to the top of the chain."""
        self.direction, self.type = direction, mail.type
        self.origin, self.era, self.sequence = mail.origin, mail.era, mail.sequence
        self.frames: tuple[bytes, ...] = mail.frames
        """Never changed in place: a new tuple takes its place, so that no copy handed out before changes (CHN-014)."""
        self.fmt, self.to = mail.fmt, mail.to
        self.via, self.depth, self.at, self.exp = mail.via, mail.depth, mail.at, mail.exp

    def let_go(self) -> None:
        """It has come to its bottom or its end: let go of what it was made of, in front of what it becomes."""
        if self.carries is not None:
            carried, self.carries = self.carries, None
            carried()

    @property
    def size(self) -> int:
        """Payload bytes."""
        return sum(map(len, self.frames))

    def mail(self) -> Mail:
        """What travels; the very object that came, if nothing has changed."""
        sent = self.sent
        if self.frames is sent.frames and self.to is sent.to:
            return sent
        return Mail(
            origin=self.origin,
            era=self.era,
            sequence=self.sequence,
            type=self.type,
            frames=self.frames,
            to=self.to,
            via=self.via,
            depth=self.depth,
            at=self.at,
            fmt=self.fmt,
            exp=self.exp,
            rcpt=sent.rcpt,
        )
