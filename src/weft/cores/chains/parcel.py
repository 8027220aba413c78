"""One message on its way down a chain of this node."""

from typing import Any

from weft.base.mail import Mail

OUT, IN = "out", "in"


class Parcel:
    """What walks down a chain. Only `frames`, `to` and the engine's own marks ever change (CHN-006)."""

    __slots__ = (
        "at",
        "depth",
        "direction",
        "era",
        "exp",
        "flow",
        "fmt",
        "frames",
        "id",
        "is_again",
        "is_kept",
        "is_over",
        "keep",
        "origin",
        "sender",
        "sent",
        "sequence",
        "tag",
        "to",
        "type",
        "unconfirmed",
        "via",
        "waits",
        "want",
    )

    def __init__(self, number: int, direction: str, mail: Mail) -> None:
        self.id = number
        """Between node and clients (CHN-005)."""
        self.direction, self.type = direction, mail.type
        self.origin, self.era, self.sequence = mail.origin, mail.era, mail.sequence
        self.frames: tuple[bytes, ...] = mail.frames
        """Never changed in place: a new tuple takes its place, so that no copy handed out before changes (CHN-014)."""
        self.fmt, self.to = mail.fmt, mail.to
        self.via, self.depth, self.at, self.exp = mail.via, mail.depth, mail.at, mail.exp
        self.sender: Any = None
        """The client that has sent it, as long as it is attached to this node (CHN-013, CHN-030)."""
        self.tag = 0
        self.want, self.keep = "none", "disk"
        self.is_kept = False
        """Whether a record of it stands in the inbox of the journal."""
        self.is_again = False
        """It was offered before, by an earlier run of this node or to an earlier client (`re`)."""
        self.is_over = False
        """Its walk has ended."""
        self.unconfirmed = 0
        """Confirming readers that have it and have not said so (CHN-019)."""
        self.waits: tuple[tuple[str, bool], ...] = ()
        """Names of clients for whom it is kept until they come back, and whether they are to confirm it."""
        self.flow: Any = None
        """Where it is counted (CHN-082)."""
        self.sent = mail
        """As it came to the top of the chain."""

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
        )
