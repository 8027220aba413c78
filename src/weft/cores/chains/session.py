"""One client of a node's chains, from its greeting until it leaves or falls silent (CLI-001, CLI-007)."""

from weft.base.effects import Source
from weft.cores.chains.clientlink import ClientLink
from weft.cores.chains.messages import ChainsSettings
from weft.cores.chains.parcel import Parcel
from weft.cores.chains.post import Post
from weft.wire.clients import Answered, Error, Hello, RecItem, SendItem, StatusItem


class Session:
    """One client from its greeting until it leaves or falls silent; the engine knows it by its links."""

    __slots__ = (
        "_credit",
        "_credit_bytes",
        "_owed",
        "_owed_bytes",
        "_unwanted",
        "errors",
        "garbled",
        "garbled_at",
        "heard_at",
        "id",
        "is_gone",
        "links",
        "name",
        "peer",
        "pid",
        "post",
        "process",
        "source",
    )

    def __init__(self, hello: Hello, post: Post, settings: ChainsSettings) -> None:
        self.id, self.name, self.pid = hello.id, hello.name, hello.pid or 0
        self.process = 0
        """Its process id by the kernel's information; 0: unknown."""
        self.source: Source | None = None
        """Its identity; None for the node's own user, who may do everything."""
        self.peer, self.post = post.peer, post
        self.links: dict[int, ClientLink] = {}
        """By the client's own numbers; the engine adds and removes entries."""
        self.is_gone = False
        self.heard_at = 0
        self.errors: dict[str, int] = {}
        """Errors sent to it, by code."""
        self.garbled = self.garbled_at = 0
        self._credit, self._credit_bytes = settings.credit, settings.credit_bytes
        self._owed: dict[int, int] = {}
        """Payload bytes of each send without final status, by tag."""
        self._owed_bytes = 0
        self._unwanted: set[int] = set()
        """Tags whose status the client does not want (CHN-030)."""

    # For the engine

    def offer(self, reg: int, parcel: Parcel, *, re: bool = False) -> None:
        """Give it a message of a read-write or confirming link; never discarded while the client is attached."""
        if not self.is_gone:
            self.post.offer(reg, self._item(parcel, is_again=re or parcel.is_again), parcel.frames)

    def copy(self, reg: int, parcel: Parcel) -> None:
        """Give it a copy of a read-only link; if it does not read them, the oldest are discarded (CHN-018)."""
        if not self.is_gone:
            self.post.copy(reg, self._item(parcel, is_again=parcel.is_again), parcel.frames)

    def answer(self, tag: int, ok: bool, why: str, count: int | None = None, failed: int = 0) -> None:  # noqa: FBT001  # the wire's own order
        """The final status of a send: frees its credit, and is sent once, if it is wanted."""
        size = self._owed.pop(tag, None)
        if size is None:
            return
        self._owed_bytes -= size
        if self._unwanted and tag in self._unwanted:
            self._unwanted.discard(tag)
        elif not self.is_gone:
            self.post.status(StatusItem(tag=tag, ok=ok, why=why, count=count, failed=failed))

    def say(self, message: Answered) -> None:
        """Send it any other message."""
        if self.is_gone:
            return
        if type(message) is Error:
            count_code(self.errors, message.why)
        self.post.say(message)

    def _item(self, parcel: Parcel, *, is_again: bool) -> RecItem:
        sender = parcel.sender
        return RecItem(
            id=parcel.id,
            type=parcel.type,
            mid=(parcel.origin, parcel.era, parcel.sequence),
            own=sender is self or (sender is not None and sender.id == self.id),
            to=parcel.to,
            via=parcel.via,
            depth=parcel.depth,
            ts=parcel.at,
            fmt=parcel.fmt,
            re=is_again,
            n=len(parcel.frames),
        )

    # Credit

    def owe(self, item: SendItem, size: int) -> bool:
        """Count a send against the client's credit; False: there is none left (CLI-007). A tag counts once."""
        owed = self._owed
        if item.tag in owed:
            return True
        if len(owed) >= self._credit or self._owed_bytes + size > self._credit_bytes:
            return False
        owed[item.tag] = size
        self._owed_bytes += size
        if item.want == "none":
            self._unwanted.add(item.tag)
        return True

    def turn_down(self, item: SendItem, why: str) -> None:
        """Refuse a send that was not counted; an earlier send with the same tag still gets its status."""
        if item.want != "none" and item.tag not in self._owed:
            self.post.status(StatusItem(tag=item.tag, ok=False, why=why))


def count_code(counts: dict[str, int], code: str) -> None:
    """Count one more of this code."""
    counts[code] = counts.get(code, 0) + 1
