"""Messages by which real MoaT-KV servers coordinate, on the topics `ping` and `del`.

    init = {t, node}            vers = {t, node, version, cycle, gap, nodes, splits, n_hosts, force_in}, ours also `weft`
    ping = {t, node, value, history}                            hist = {t, value, history}

They are sent with exactly these keys: other keys may end a server that receives them.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from weft.base.errors import PeerError
from weft.wire.store import bus, pack
from weft.wire.store.bus import NAME_BYTES_MAX, is_name
from weft.wire.store.ranges import TICK_MAX

BYTES_MAX: Final = 64 << 10
HISTORY_MAX: Final = 64  # names; real servers send `splits`
COUNT_MAX: Final = 10_000  # of nodes, splits, hosts
SPAN_MAX: Final = 1e6  # seconds of a cycle or gap

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_BYTES_MAX)]
Text = Annotated[str, msgspec.Meta(max_length=NAME_BYTES_MAX)]
Tock = Annotated[int, msgspec.Meta(ge=0, le=TICK_MAX)]
Count = Annotated[int, msgspec.Meta(ge=0, le=COUNT_MAX)]
Span = Annotated[float, msgspec.Meta(gt=0, le=SPAN_MAX)]
Value = tuple[Tock, Tock]
History = Annotated[tuple[Name, ...], msgspec.Meta(max_length=HISTORY_MAX)]


class Init(msgspec.Struct, frozen=True, tag="init", tag_field="t"):
    """A node has started; a node that receives its own name from another one stops."""

    node: Name


class Vers(msgspec.Struct, frozen=True, tag="vers", tag_field="t"):
    """The configuration of a node's pings (PNG-030)."""

    node: Name
    version: int = 0
    cycle: Span = 10.0
    """Seconds."""
    gap: Span = 2.0
    """Seconds."""
    nodes: Count = 5
    splits: Count = 4
    n_hosts: Count = 10
    force_in: bool = False
    weft: Text = ""
    """Version of Weft; empty: a real server (PNG-031)."""


class Pinged(msgspec.Struct, frozen=True, tag="ping", tag_field="t"):
    """A node is there."""

    node: Name
    value: Value | None
    """Tock and tick, on `del` its oldest and newest tag; None: not ready."""
    history: History
    """Itself, and the nodes that it heard last."""


class Hist(msgspec.Struct, frozen=True, tag="hist", tag_field="t"):
    """The ping of the side that lost, after a split."""

    value: Value | None
    history: History


Message = Init | Vers | Pinged | Hist
_encode: Final = msgspec.msgpack.Encoder().encode


def encode(message: Message) -> bytes:
    """The bytes of a message."""
    if isinstance(message, Vers):
        return _encode(
            {key: value for key, value in msgspec.to_builtins(message).items() if (key, value) != ("weft", "")}
        )
    return _encode(message)


class _AnyKind(msgspec.Struct):
    """Any of the four, before its kind is known."""

    t: Annotated[str, msgspec.Meta(max_length=16)] | UnsetType = UNSET
    node: Name | UnsetType = UNSET
    value: Value | UnsetType | None = UNSET
    history: History | UnsetType = UNSET
    version: Annotated[int, msgspec.Meta(ge=0, le=TICK_MAX)] | UnsetType = UNSET
    cycle: Span | UnsetType = UNSET
    gap: Span | UnsetType = UNSET
    nodes: Count | UnsetType = UNSET
    splits: Count | UnsetType = UNSET
    n_hosts: Count | UnsetType = UNSET
    force_in: bool | Annotated[int, msgspec.Meta(ge=0, le=1)] | UnsetType = UNSET
    weft: Text | UnsetType = UNSET


_KEYS: Final[dict[str, tuple[Callable[..., Message], tuple[str, ...]]]] = {
    "init": (Init, ("node",)),
    "vers": (Vers, ("node",)),
    "ping": (Pinged, ("node", "value", "history")),
    "hist": (Hist, ("value", "history")),
}
"""What each kind must have."""
DEFAULTS: Final[dict[str, dict[str, Any]]] = {"ping": {}, "del": {"version": 1, "cycle": 100.0, "gap": 10.0}}
"""By topic, the values that a `vers` without them means, where they differ from `Vers`."""
_SETTINGS: Final = ("version", "cycle", "gap", "nodes", "splits", "n_hosts", "force_in", "weft")
_decode: Final = msgspec.msgpack.Decoder(_AnyKind).decode


def decode(payload: bytes, topic: str = "ping") -> Message:
    """The message of a payload on `ping` or `del`; PeerError with a code of COD-007. Keys that nobody knows are ignored."""
    if len(payload) > BYTES_MAX:
        raise PeerError("too-large", f"{len(payload)} bytes", payload)
    pack.check_sound(payload)
    try:
        raw = _decode(payload)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise PeerError("bad-field" if bus.is_map(payload) else "bad-type", str(error), payload) from None
    if raw.t is UNSET:
        raise PeerError("wrong-dialect", "a message without a kind", payload)
    if raw.t not in _KEYS:
        raise PeerError("bad-field", "no kind of message", payload)
    kind, needed = _KEYS[raw.t]
    fields = {key: getattr(raw, key) for key in needed}
    for key, value in fields.items():
        if value is UNSET:
            raise PeerError("missing-field", key, payload)
    if kind is Vers:
        fields |= DEFAULTS.get(topic, {}) | {key: v for key in _SETTINGS if (v := getattr(raw, key)) is not UNSET}
        fields["force_in"] = bool(fields.get("force_in", False))
    return _judged(kind(**fields))


def _judged(message: Message) -> Message:
    if not isinstance(message, Hist) and not is_name(message.node):
        raise PeerError("bad-field", "no name of a node")
    if isinstance(message, Pinged | Hist) and not all(map(is_name, message.history)):
        raise PeerError("bad-field", "no name of a node")
    if isinstance(message, Pinged) and message.history[:1] != (message.node,):
        raise PeerError("bad-field", "a history that does not begin with its node")
    return message
