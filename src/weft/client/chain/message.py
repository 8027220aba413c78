"""The messages that handlers are given, and the answers that they may give."""

from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from weft.client.chain.addressing import destination
from weft.client.chain.payloads import of_frame, to_frames
from weft.client.link.errors import LinkError
from weft.wire.clients import RecItem


class SendFailed(LinkError):
    """A message was not sent: `why` is the word of the status (CHN-030)."""

    def __init__(self, why: str, count: int | None = None, failed: int = 0) -> None:
        super().__init__(why if not failed else f"{why}: {count or 0} nodes reached, {failed} not", why)
        self.why, self.count, self.failed = why, count, failed


class Receipt(Struct, frozen=True):
    """The outcome of a sent message. `why`: `spooled`, `local` or `delivered`; empty if it was sent with `want="none"`."""

    why: str
    count: int | None = None
    """Number of nodes reached; None if the destination can only be one node."""


class Dropped(NamedTuple):
    """The answer that deletes a message."""

    why: str


def drop(why: str = "") -> Dropped:
    """Delete the message: its chain ends here, and on `out` its sender hears `deleted`."""
    return Dropped(why)


class Message:
    """One message on its way down a chain. It is immutable: `replace` returns a changed one."""

    __slots__ = ("_frames", "_item", "_to", "direction", "is_changed", "session")

    def __init__(self, item: RecItem, frames: list[bytes], direction: str, session: Any) -> None:
        self._item, self._frames = item, frames
        self.direction = direction
        """`in` or `out`."""
        self._to: list[Any] | None = None
        self.is_changed = False
        """Whether the payload differs from the one that the node offered."""
        self.session = session
        """The connection on which it came. On a later connection its number would mean another message."""

    @property
    def id(self) -> int:
        """Its number between this node and its clients (CHN-005)."""
        return self._item.id

    @property
    def type(self) -> str:
        return self._item.type

    @property
    def payload(self) -> bytes:
        """The first frame; nearly always the only one."""
        return self._frames[0] if self._frames else b""

    @property
    def frames(self) -> tuple[bytes, ...]:
        return tuple(self._frames)

    @property
    def text(self) -> str:
        """The first frame as text; UnicodeDecodeError if it is none."""
        return self.payload.decode()

    def json(self) -> Any:
        """The values in the first frame: MessagePack if `fmt` says so, else JSON; ValueError if it is neither."""
        return of_frame(self.payload, self._item.fmt)

    @property
    def fmt(self) -> str:
        """The format of the first frame: `raw`, `text`, `json`, `msgpack`, `xml`, or a word of the sender's own."""
        return self._item.fmt

    @property
    def mid(self) -> tuple[Any, int | None, int]:
        """Its identity `(origin, era, sequence)` (CHN-004), the same at every node that it passes."""
        return self._item.mid

    @property
    def origin(self) -> Any:
        """The id of the node that sent it first."""
        return self._item.mid[0]

    @property
    def own(self) -> bool:
        """Whether this client has sent it."""
        return self._item.own

    @property
    def to(self) -> tuple[Any, ...]:
        """Its destination."""
        return tuple(self._to if self._to is not None else self._item.to)

    @property
    def via(self) -> tuple[bytes, ...]:
        """The nodes that have forwarded it, the origin first."""
        return self._item.via

    @property
    def depth(self) -> int:
        """How many messages precede it in the chain of causes: 0 if no message caused it."""
        return self._item.depth

    @property
    def at(self) -> int:
        """The origin's wall clock when it was sent, in nanoseconds since 1970."""
        return self._item.ts

    @property
    def re(self) -> bool:
        """Whether it has been offered to this client before."""
        return self._item.re

    @property
    def lost(self) -> int:
        """How many copies before this one were discarded (CHN-018)."""
        return self._item.lost

    @property
    def size(self) -> int:
        """Bytes of its payload."""
        return sum(map(len, self._frames))

    @property
    def new_to(self) -> list[Any] | None:
        """The destination set by `replace`; None: unchanged."""
        return self._to

    def replace(self, payload: Any = None, to: Any = None) -> "Message":
        """The same message with another payload, and on `out` with another destination (CHN-006).

        The payload is converted as in a send, in the message's own `fmt`. ValueError for an invalid destination.
        """
        made = Message(self._item, self._frames, self.direction, self.session)
        made._to, made.is_changed = self._to, self.is_changed
        if payload is not None:
            frames, _ = to_frames(payload, self._item.fmt)
            made._frames, made.is_changed = list(frames), True
        if to is not None:
            made._to = destination(to)
            if made._to is None:
                raise ValueError(f"no destination: {to!r}")
        return made

    def with_losses(self, count: int) -> "Message":
        """The same message, with `count` copies before it reported as discarded."""
        made = Message(replace(self._item, lost=self._item.lost + count), self._frames, self.direction, self.session)
        made._to, made.is_changed = self._to, self.is_changed
        return made

    def __repr__(self) -> str:
        return f"<Message {self.id} {self.type} {self.direction} {self.payload[:64]!r}>"
