"""Messages between a node and the clients of its chains (CLI-001 to CLI-008).

    client = hello *(reg / unreg / send / next / drop / fail / conf / beat) bye
    node   = welcome / refuse, then *(done / status / rec / credit / place / error / beat) bye
    payload frames follow the header in the order of its `m`; `n` says how many belong to a message

A header is one bounded, typed map (CLI-003). What a client may ask for, and when, is decided by the chains core; this
module only reads and writes requests.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from weft.base.errors import PeerError
from weft.wire.multipart import ITEM_FRAMES_MAX, MESSAGES_MAX, Dialect, write

VERSION: Final = 1
CLIENT_ID_BYTES: Final = 16
AWAY_MS_MAX: Final = 30 * 86_400_000  # 30 days: a reader that is away for longer has no more than a name

Number = Annotated[int, Meta(ge=0)]
Small = Annotated[int, Meta(ge=0, le=0xFFFF_FFFF)]
ClientId = Annotated[bytes, Meta(min_length=CLIENT_ID_BYTES, max_length=CLIENT_ID_BYTES)]
Name = Annotated[str, Meta(min_length=1, max_length=64)]
Text = Annotated[str, Meta(max_length=256)]
Frames = Annotated[int, Meta(ge=0, le=ITEM_FRAMES_MAX)]
Batch = Meta(min_length=1, max_length=MESSAGES_MAX)


class Hello(msgspec.Struct, tag_field="op", tag="hello", omit_defaults=True, frozen=True, kw_only=True):
    """A program asks to be a client; the same `id` again is the same client after a reconnect (CLI-022)."""

    v: int
    role: Text
    name: Name
    id: ClientId
    pid: Number | None = None


class Welcome(msgspec.Struct, tag_field="op", tag="welcome", omit_defaults=True, frozen=True, kw_only=True):
    """The node takes the client."""

    v: int
    node: bytes
    name: Name
    addr: Text
    boot: Number
    level: Text
    parent: Text | None
    """The parent's name; nil: there is none."""
    children: list[Name]
    credit: Number
    """How many sends may be without a final status."""
    credit_bytes: Number = msgspec.field(name="bytes")
    beat: Number
    """Milliseconds of silence after which either side sends `beat`."""
    dead: Number
    """Milliseconds of silence after which either side gives the other up."""


class Refuse(msgspec.Struct, tag_field="op", tag="refuse", omit_defaults=True, frozen=True):
    """The node does not take the client: `bad-hello`, `version`, `denied` or `busy`; nothing follows."""

    why: Text
    text: Text = ""


class Reg(msgspec.Struct, tag_field="op", tag="reg", omit_defaults=True, frozen=True, kw_only=True):
    """Register in a chain. `reg` is the client's own number for the registration."""

    reg: Small
    dir: Text
    type: Text
    at: Number | Text = "after-all"
    """`before-all`, `after-all`, or a place from 1 to 4,294,967,294."""
    access: Text = "ro"
    fail: Text | None = None
    """`open`, `closed`, `drop`, `wait`; nil: `open`, and `wait` with `confirm`."""
    timeout: Annotated[int, Meta(ge=1, le=3_600_000)] = 5_000
    """Milliseconds in which a message must be handed back."""
    window: Annotated[int, Meta(ge=1, le=65_536)] = 64
    """How many messages may be offered and not answered yet."""
    confirm: bool = False
    noself: bool = False
    ordered: bool = False
    away: Annotated[int, Meta(ge=0, le=AWAY_MS_MAX)] = 600_000
    """Milliseconds that a confirming reader may stay away before it is forgotten, and the messages that wait for it are
    given up."""


class Unreg(msgspec.Struct, tag_field="op", tag="unreg", omit_defaults=True, frozen=True):
    """Leave the chain."""

    reg: Small
    forget: bool = False
    """A confirming reader will not come back: it is forgotten at once, and the messages that wait for it are given
    up."""


class Done(msgspec.Struct, tag_field="op", tag="done", omit_defaults=True, frozen=True):
    """It is registered, `place`th of `of`; or, for `unreg`, it is not any more."""

    about: Text
    reg: Small
    place: Number = 0
    of: Number = 0


class SendItem(msgspec.Struct, omit_defaults=True, frozen=True, kw_only=True, gc=False):
    """One message to be sent."""

    tag: Number
    type: Text
    to: Any
    """`[kind, node?, ttl?]` (RTE-002); checked by the core, which answers to the tag."""
    want: Text = "spool"
    """`spool`, `dest` or `none`: which status is the final one (CHN-030)."""
    cause: Number | None = None
    """The `id` of the message that caused this one: the depth is that one's plus 1."""
    fmt: Text = "raw"
    keep: Text = "disk"
    exp: Number = 0
    """Nanoseconds since 1970 after which it is not wanted any more; 0: never."""
    n: Frames = 1


class NextItem(msgspec.Struct, omit_defaults=True, frozen=True, kw_only=True, gc=False):
    """Hand a message back; `n` absent: its payload is unchanged, and no frame follows. 0 is no payload: it is refused."""

    id: Number
    to: Any = None
    n: Annotated[int, Meta(ge=1, le=ITEM_FRAMES_MAX)] = 0


class GiveUp(msgspec.Struct, omit_defaults=True, frozen=True, kw_only=True, gc=False):
    """One message that is deleted, or could not be handled."""

    id: Number
    why: Text = ""


class SendHeader(msgspec.Struct, tag_field="op", tag="send", frozen=True):
    """The header frame of a `Send`."""

    m: Annotated[list[SendItem], Batch]


class NextHeader(msgspec.Struct, tag_field="op", tag="next", frozen=True):
    """The header frame of a `Next`."""

    reg: Small
    m: Annotated[list[NextItem], Batch]


class Drop(msgspec.Struct, tag_field="op", tag="drop", frozen=True):
    """Delete these messages."""

    reg: Small
    m: Annotated[list[GiveUp], Batch]


class Fail(msgspec.Struct, tag_field="op", tag="fail", frozen=True):
    """These could not be handled: do with them as the registration's policy says."""

    reg: Small
    m: Annotated[list[GiveUp], Batch]


class Conf(msgspec.Struct, tag_field="op", tag="conf", frozen=True):
    """These were processed (CHN-019)."""

    reg: Small
    ids: Annotated[list[Number], Batch]


class StatusItem(msgspec.Struct, omit_defaults=True, frozen=True, kw_only=True, gc=False):
    """The final status of one send."""

    tag: Number
    ok: bool
    why: Text
    count: Number | None = None
    """Nodes reached."""
    failed: Number = 0


class Status(msgspec.Struct, tag_field="op", tag="status", frozen=True):
    """Final statuses."""

    m: Annotated[list[StatusItem], Batch]


class RecItem(msgspec.Struct, omit_defaults=True, frozen=True, kw_only=True, gc=False):
    """One message for a client."""

    id: Number
    type: str
    mid: tuple[Any, int | None, Number]
    own: bool
    """Whether this client itself has sent it."""
    to: Any
    via: tuple[bytes, ...]
    depth: Number
    ts: int
    fmt: Text = "raw"
    re: bool = False
    """Whether it was offered before."""
    lost: Number = 0
    """So many copies before this one were discarded (CHN-018)."""
    n: Frames = 1


class RecHeader(msgspec.Struct, tag_field="op", tag="rec", frozen=True):
    """The header frame of a `Rec`."""

    reg: Small
    m: Annotated[list[RecItem], Batch]


class Credit(msgspec.Struct, tag_field="op", tag="credit", frozen=True):
    """From now on so many sends, and so many bytes of them, may be without a final status."""

    credit: Number
    credit_bytes: Number = msgspec.field(name="bytes")


class Place(msgspec.Struct, tag_field="op", tag="place", frozen=True):
    """The node has another place in the tree."""

    level: Text
    parent: Text | None
    children: list[Name]


class Error(msgspec.Struct, tag_field="op", tag="error", omit_defaults=True, frozen=True, kw_only=True):
    """A request was not carried out (CLI-006)."""

    about: Text
    why: Text
    reg: Small | None = None
    id: Number | None = None
    text: Text = ""


class Beat(msgspec.Struct, tag_field="op", tag="beat", frozen=True):
    """Still here."""


class Bye(msgspec.Struct, tag_field="op", tag="bye", omit_defaults=True, frozen=True):
    """An orderly end."""

    why: Text = ""


class Send(msgspec.Struct, frozen=True):
    """Messages to be sent; `frames` are the payload frames of all of them, one after another."""

    m: list[SendItem]
    frames: list[bytes]


class Next(msgspec.Struct, frozen=True):
    """Messages handed back."""

    reg: int
    m: list[NextItem]
    frames: list[bytes]


class Rec(msgspec.Struct, frozen=True):
    """Messages for a client."""

    reg: int
    m: list[RecItem]
    frames: list[bytes]


Asked = Hello | Reg | Unreg | Send | Next | Drop | Fail | Conf | Beat | Bye
Answered = Welcome | Refuse | Done | Status | Rec | Credit | Place | Error | Beat | Bye


def each_with_frames(items: list[Any], frames: list[bytes]) -> Iterator[tuple[Any, tuple[bytes, ...]]]:
    """Each message of a batch with its own frames."""
    at = 0
    for item in items:
        yield item, tuple(frames[at : at + item.n])
        at += item.n


_ASKED: Final = Dialect(Hello, Reg, Unreg, SendHeader, NextHeader, Drop, Fail, Conf, Beat, Bye)
_ANSWERED: Final = Dialect(Welcome, Refuse, Done, Status, RecHeader, Credit, Place, Error, Beat, Bye)


def encode(message: Asked | Answered) -> list[bytes]:
    """The frames of a message: header, then payload frames unchanged."""
    if isinstance(message, Send):
        return [write(SendHeader(message.m)), *message.frames]
    if isinstance(message, Next):
        return [write(NextHeader(message.reg, message.m)), *message.frames]
    if isinstance(message, Rec):
        return [write(RecHeader(message.reg, message.m)), *message.frames]
    return [write(message)]


def decode_asked(frames: list[bytes]) -> Asked:
    """A message of a client; PeerError `bad-header`, `unknown-op` or `bad-frames`."""
    header = _ASKED.read(frames)
    if type(header) is SendHeader:
        _count(header.m, frames)
        return Send(header.m, frames[1:])
    if type(header) is NextHeader:
        _count(header.m, frames)
        return Next(header.reg, header.m, frames[1:])
    message: Asked = _bare(header, frames)
    return message


def decode_answered(frames: list[bytes]) -> Answered:
    """A message of a node; PeerError as for a client."""
    header = _ANSWERED.read(frames)
    if type(header) is RecHeader:
        _count(header.m, frames)
        return Rec(header.reg, header.m, frames[1:])
    message: Answered = _bare(header, frames)
    return message


def _count(items: list[Any], frames: list[bytes]) -> None:
    announced = sum([item.n for item in items])
    if announced != len(frames) - 1:
        raise PeerError("bad-frames", f"{announced} payload frames announced, {len(frames) - 1} came", frames[0])


def _bare(header: Any, frames: list[bytes]) -> Any:
    if len(frames) != 1:
        raise PeerError("bad-frames", "payload frames that nothing announces", frames[0])
    return header
