"""One message on its way down a chain of this node."""

from collections.abc import Callable
from typing import Any, Final

from weft.base.mail import Mail

OUT, IN = "out", "in"


class Ghost:
    """The sender of a message without a client; it ignores its status."""

    id = bytes(16)
    is_gone = True


GHOST: Final = Ghost()


class Parcel:
    """A message on its way down a chain. Only `frames`, `to` and the engine's own marks change (CHN-006).

    Marks that most messages never set are class attributes: there are two parcels per message, and creating them is
    most of a message's cost.
    """

    sender: Any = None
    """The client that sent it, while it is attached to this node (CHN-013, CHN-030)."""
    tag = 0
    want, keep = "none", "disk"
    is_kept = False
    """Whether the journal has an inbox record of it."""
    is_again = False
    """It was offered before, in an earlier run of this node or to an earlier client (`re`)."""
    is_handed = False
    """`forward` or `journal` has made a record of it; no second one is made (CHN-036)."""
    weight = 0
    """Bytes of memory counted for it while it waits."""
    is_over = False
    """Its walk has ended."""
    unconfirmed = 0
    """Confirming readers that have not confirmed it yet (CHN-019)."""
    waits: tuple[tuple[str, bool], ...] = ()
    """Names of clients that it is kept for, and whether each has to confirm it."""
    carries: Callable[[], None] | None = None
    """Called when it reaches the bottom or ends: the messages it was made of are then no longer kept."""
    taken: "Parcel | None" = None
    """For a message on `out` that a filter has collected: its parcel in the inbox."""
    counted_in: frozenset[tuple[str, int, bytes]] = frozenset()
    """Filter, window and group of results of an earlier run that contain it; it is not counted there again."""
    flow: Any = None
    """The counters of its chain (CHN-082)."""

    def __init__(self, number: int, direction: str, mail: Mail) -> None:
        self.id = number
        """Its number between node and clients (CHN-005)."""
        self.sent = mail
        """As it was at the top of the chain."""
        self.direction, self.type = direction, mail.type
        self.origin, self.era, self.sequence = mail.origin, mail.era, mail.sequence
        self.frames: tuple[bytes, ...] = mail.frames
        """Never changed in place: a change sets a new tuple, so that copies given out before stay as they are
        (CHN-014).
        """
        self.fmt, self.to = mail.fmt, mail.to
        self.via, self.depth, self.at, self.exp = mail.via, mail.depth, mail.at, mail.exp

    def let_go(self) -> None:
        """It has reached the bottom or ended: release the messages it was made of, ahead of the records it becomes."""
        if self.carries is not None:
            carried, self.carries = self.carries, None
            carried()

    @property
    def size(self) -> int:
        """Payload bytes."""
        return sum(map(len, self.frames))

    def mail(self) -> Mail:
        """The mail to send on; the original object, if nothing has changed."""
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
