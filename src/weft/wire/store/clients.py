"""Messages between a store node and its clients over TCP, both directions.

    server = greeting *(answer / item)        client = [hello] *(request / ack)

Each is one MessagePack map; `seq` says what belongs together, 0 is the connection itself. Values are kept as bytes.
What a field means for which action, and whether its value is allowed, is decided by the store core.
"""

import math
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from weft.base.changes import Chain, Path
from weft.base.errors import PeerError
from weft.wire.store.bus import is_name
from weft.wire.store.path import pack_path, unpack_path

VERSION: Final = (0, 71, 40)
"""Version of the protocol: that of the MoaT-KV whose messages these are."""
QLEN: Final = 10
"""Items of one stream that may be unacknowledged, and the most a client may ask for (CLN-001)."""
ACK_EACH: Final = 4
"""A receiver acknowledges each third of them."""
MESSAGE_BYTES_MAX: Final = 4 << 20
PATH_CODE: Final = 3  # the extension code of paths (COD-002)
LINKS_MAX: Final = 64  # of a chain
CAPS: Final = ("watch.since", "watch.latest", "batch", "ttl", "until", "conv", "ack")
"""What of `weft.caps` this server has."""

NO_VALUE: Final = Raw(b"")
"""A value that is absent; null is a value (R1)."""
Ranges = list[Any]
Maybe = UnsetType | None
Flag = bool | int
"""Some clients say 1 and 0."""


class Links(msgspec.Struct, frozen=True, gc=False):  # tidy: bounded by its message
    """A chain as a client sees it: `prev` null ends it, without `prev` it is cut."""

    node: str
    tick: int
    prev: "Links | UnsetType | None" = UNSET


class Greeting(msgspec.Struct, omit_defaults=True, frozen=True, kw_only=True):  # tidy: bounded by its message
    """The server's first message."""

    seq: int = -1
    version: list[int] = []
    node: str = ""
    tick: int = -1
    tock: int = -1
    qlen: int = 0
    auth: list[str | None] | UnsetType = UNSET
    """The ways to log in, the current one first; absent: none is needed."""
    weft: dict[str, Any] | UnsetType = UNSET
    """Absent: the server is not a Weft node."""


class ClientHello(msgspec.Struct, omit_defaults=True, frozen=True):
    """The client's answer to the greeting: it counts and acknowledges items of streams."""

    qlen: int = 0
    seq: int = -1
    conv: str = ""


class Op(msgspec.Struct, omit_defaults=True, frozen=True, kw_only=True, gc=False):  # tidy: bounded by its message
    """One write of a batch: as `set_value`, or without a value `delete_value`."""

    path: Any = UNSET
    value: Raw = NO_VALUE
    prev: Raw = NO_VALUE
    chain: Links | UnsetType | None = UNSET
    idem: Flag = False
    ttl: float | Maybe = UNSET
    until: float | Maybe = UNSET
    """When it ends by itself, in Unix seconds; `ttl` says the same by how long."""


class Request(msgspec.Struct, omit_defaults=True, frozen=True, kw_only=True, gc=False):  # tidy: bounded by its message
    """A request; also the acknowledgement of items (`state` is `ack`), also a hello (`seq` is 0)."""

    seq: int = -1
    action: str = ""
    path: Any = UNSET
    """A `Path`; on the wire an extension or a plain array. Text is the name of a file."""
    value: Raw = NO_VALUE
    prev: Raw = NO_VALUE
    """The value that must be there."""
    chain: Links | UnsetType | None = UNSET
    """The change that must be the last one; None: there must be no value."""
    nchain: int | bool | UnsetType = UNSET
    """How many links of chains the answer shall have; -1: all. MoaT-KV's own programs say False and True for 0 and 1."""
    idem: Flag = False
    ops: list[Op] | UnsetType = UNSET
    """Of a batch."""
    ack: int | str | Maybe = UNSET
    ttl: float | Maybe = UNSET
    until: float | Maybe = UNSET
    node: str | UnsetType = UNSET
    tick: int | UnsetType = UNSET
    min_depth: int | Maybe = UNSET
    max_depth: int | Maybe = UNSET
    empty: Flag | Maybe = UNSET
    with_data: Flag | Maybe = UNSET
    fetch: Flag | Maybe = UNSET
    from_server: str | Maybe = UNSET
    """Name of the node that joins by this request."""
    task: int | UnsetType = UNSET
    state: str | UnsetType = UNSET
    mode: str | UnsetType = UNSET
    """Of a watch: `all` or `latest`; of `test_acl`: a letter."""
    since: Any = UNSET
    """Of a watch: the position to go on at; None: from now on, and say positions."""
    nodes: dict[str, Ranges] | Flag | UnsetType = UNSET
    known: Flag | UnsetType = UNSET
    superseded: Flag | UnsetType = UNSET
    deleted: Flag | UnsetType = UNSET
    missing: Flag | UnsetType = UNSET
    remote_missing: Flag | UnsetType = UNSET
    present: Flag | UnsetType = UNSET
    node_drop: Flag | UnsetType = UNSET
    max: int | Maybe = UNSET
    current: Flag | UnsetType = UNSET
    acl: str | Maybe = UNSET
    qlen: int | UnsetType = UNSET
    """Of a hello."""
    conv: str | UnsetType = UNSET
    """Of a hello: the group whose codecs convert what this client reads and writes."""


class Answer(msgspec.Struct, omit_defaults=True, frozen=True, kw_only=True, gc=False):  # tidy: bounded by its message
    """An answer to a request: the answer itself, or a piece of a stream (`state`, or an item with `path`)."""

    seq: int = -1
    tock: int = -1
    """Of the entry where the answer is about one, else of the server."""
    wseq: int = 0
    """The number of this item in its stream; 0: the stream is not counted."""
    state: str = ""
    """`start`, `end`, `uptodate`, `gap`; empty: an item, or no stream at all."""
    changed: bool | int | UnsetType = UNSET
    chain: Links | UnsetType | None = UNSET
    value: Raw = NO_VALUE
    prev: Raw = NO_VALUE
    """The value before; of items of `delete_tree`: the chain behind `node` and `tick`."""
    old_value: Raw = NO_VALUE
    path: Any = UNSET
    """A `Path`, without what `depth` says."""
    depth: int | UnsetType = UNSET
    """How many elements of the item before stand before `path` (CLN-005)."""
    position: Any = UNSET
    """Where a watch stands after this item, for `since`."""
    node: str | UnsetType = UNSET
    tick: int | UnsetType = UNSET
    until: float | UnsetType = UNSET
    """When the entry ends by itself, in seconds of the wall clock."""
    result: Any = UNSET
    results: list[dict[str, Any]] | UnsetType = UNSET
    """Of a batch, one for each of its writes: `changed`, `tock`, `chain` if links are wanted."""
    access: bool | UnsetType = UNSET
    nodes: dict[str, int | None] | UnsetType = UNSET
    """None: a real server knows only the name of that node."""
    known: dict[str, Ranges] | UnsetType = UNSET
    superseded: dict[str, Ranges] | UnsetType = UNSET
    deleted: dict[str, Ranges] | UnsetType = UNSET
    missing: dict[str, Ranges] | UnsetType = UNSET
    remote_missing: dict[str, Ranges] | UnsetType = UNSET
    present: dict[str, Ranges] | UnsetType = UNSET
    node_drop: list[str] | UnsetType = UNSET
    durable: int = 0
    """Of a write that is `unconfirmed`: how many members have it, this one included."""
    of: int = 0
    """And how many members there are."""
    error: str = ""
    etype: str = ""
    """One of CLN-003, where the server is a Weft node."""


class _Numbered(msgspec.Struct):
    seq: Any = None


class _Body:
    """The inside of a path's extension, or of another one."""

    __slots__ = ("body", "code")

    def __init__(self, code: int, body: memoryview) -> None:
        self.code, self.body = code, bytes(body)


_encoder = msgspec.msgpack.Encoder()
_request = msgspec.msgpack.Decoder(Request, ext_hook=_Body)
_answer = msgspec.msgpack.Decoder(Answer, ext_hook=_Body)
_greeting = msgspec.msgpack.Decoder(Greeting)
_numbered = msgspec.msgpack.Decoder(_Numbered, ext_hook=_Body)
_UNREADABLE: Final = (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError, TypeError)
T = TypeVar("T", Request, Answer, Op)


class BadRequest(PeerError):
    """A request that cannot be read, and whose number can: it is answered (CLN-002)."""

    def __init__(self, seq: int, code: str, why: str) -> None:
        super().__init__(code, why)
        self.seq = seq


AnyMessage = Greeting | ClientHello | Request | Answer
_WITH_PATH: Final = (Request, Answer)
_PLAIN: Final = frozenset((str, bytes, int, float, bool, type(None)))
"""The types of plain values, as they are decoded."""


def encode(message: AnyMessage | tuple[AnyMessage, ...]) -> bytes:
    """The bytes of any message of this protocol, or of several in a row."""
    if isinstance(message, tuple):
        return encode(message[0]) if len(message) == 1 else b"".join(map(encode, message))
    if isinstance(message, Request) and message.ops is not UNSET:
        ops = [msgspec.structs.replace(op, path=_packed(op.path)) for op in message.ops]
        message = msgspec.structs.replace(message, ops=ops)
    if isinstance(message, _WITH_PATH) and isinstance(message.path, tuple):
        return _encoder.encode(msgspec.structs.replace(message, path=_packed(message.path)))
    return _encoder.encode(message)


def _packed(path: Any) -> Any:
    return msgspec.msgpack.Ext(PATH_CODE, pack_path(path)) if isinstance(path, tuple) else path


def decode_request(raw: bytes) -> Request:
    """A request of a client; BadRequest if at least its number can be read, else PeerError `malformed`."""
    try:
        request = _with_path(_request.decode(raw))
        for op in request.ops if request.ops is not UNSET else ():
            _with_path(op)
    except PeerError as error:
        raise BadRequest(_seq_of(raw), error.code, error.why) from error
    except _UNREADABLE as error:
        raise BadRequest(_seq_of(raw), "bad-request", str(error)) from error
    return request


def decode_answer(raw: bytes) -> Greeting | Answer:
    """An answer of a server; PeerError if it cannot be read."""
    try:
        read = _answer.decode(raw)
        return _greeting.decode(raw) if read.seq == 0 and not read.error else _with_path(read)
    except _UNREADABLE as error:
        raise PeerError("malformed", str(error), raw) from error


def links_of(chain: Chain, count: int = -1) -> Links:
    """The newest `count` links of a chain for a client; -1: all."""
    links = chain.links if count < 0 else chain.links[:count]
    is_cut = chain.is_cut or len(links) < len(chain.links)
    head: Links | UnsetType | None = UNSET if is_cut else None
    for node, tick in reversed(links):
        head = Links(node, tick, head)
    assert isinstance(head, Links), "a chain has at least one link"
    return head


def chain_of(links: Links) -> Chain:
    """The chain that a server sent; PeerError `bad-chain`."""
    pairs: list[tuple[str, int]] = []
    here: Links | UnsetType | None = links
    while isinstance(here, Links):
        pairs.append((here.node, here.tick))
        here = here.prev
    if len(pairs) > LINKS_MAX or not all(is_name(node) for node, _ in pairs):
        raise PeerError("bad-chain", f"{len(pairs)} links, or a name that is none")
    return Chain(tuple(pairs), is_cut=here is UNSET)


def until_of(answer: Answer) -> float | None:
    """When an entry ends by itself, as a server sent it; PeerError for what is no instant."""
    if answer.until is UNSET:
        return None
    if not math.isfinite(answer.until):
        raise PeerError("bad-field", "an instant that is no number")
    return answer.until


class PathShortener:
    """Leaves out of each path what it shares with the one before (CLN-005); one for each stream."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: Path = ()

    def cut(self, path: Path) -> tuple[int, Path]:
        """Depth, and what stands behind it. Every item of the stream counts, deletions too."""
        depth = 0
        for mine, other in zip(path, self._last, strict=False):
            if mine != other or type(mine) is not type(other):
                break
            depth += 1
        self._last = path
        return depth, path[depth:]


class PathExpander:
    """Restores the whole paths of a stream; one for each."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: Path = ()

    def full(self, depth: int, path: Path) -> Path:
        """The path of an item; PeerError if it refers to more elements than there were."""
        if not 0 <= depth <= len(self._last):
            raise PeerError("bad-path", f"depth {depth} behind {len(self._last)} elements")
        self._last = (*self._last[:depth], *path)
        return self._last


def _with_path(read: T) -> T:
    raw = read.path
    if raw is UNSET or isinstance(raw, str):
        return read
    if isinstance(raw, _Body) and raw.code == PATH_CODE:
        path = unpack_path(raw.body)
    elif isinstance(raw, list):
        if not _PLAIN.issuperset(map(type, raw)):
            raise PeerError("bad-path", "an element is no plain value")
        path = tuple(raw)
    else:
        raise PeerError("bad-path", "neither a path nor an array")
    msgspec.structs.force_setattr(read, "path", path)
    return read


def _seq_of(raw: bytes) -> int:
    try:
        seq = _numbered.decode(raw).seq
    except _UNREADABLE as error:
        raise PeerError("malformed", "no MessagePack map", raw) from error
    if type(seq) is not int:
        raise PeerError("malformed", "no number `seq`", raw)
    return seq
