"""How a machine joins a closed fabric: one question and one answer over a connection that CURVE protects (SEC-022).

    JOIN     id  node  proof  json      id = 8 bytes of the token, node = UUID, json = {name, level, host, version}
    WELCOME  json                       {fabric, roles, name, parents, keys, root, beacon_key}
    REFUSED  code  text                 code is one of CODES

The proof is HMAC-SHA256 over both CURVE keys of the connection, under the token's secret: only the holder of the token
can make it, and nobody can use it for another key. The secret itself is never sent.
"""

import hmac
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from weft.base.errors import UNREADABLE, PeerError
from weft.base.identity import NODE_ID_BYTES
from weft.base.keys import Binding, Role
from weft.wire.token import ID_BYTES

PROOF_BYTES: Final = 32
PROOF_LABEL: Final = b"weft-join-1\x00"
JOIN_JSON_BYTES_MAX: Final = 1 << 10  # four short texts
WELCOME_JSON_BYTES_MAX: Final = 256 << 10  # about 1,000 keys
PARENTS_MAX: Final = 64
KEYS_MAX: Final = 256
CODE_BYTES_MAX: Final = 32
TEXT_BYTES_MAX: Final = 1 << 10
CODES: Final = (
    "unknown-token",
    "expired",
    "used",
    "revoked",
    "bad-proof",
    "bad-name",
    "name-taken",
    "uuid-taken",
    "busy",
)
"""Why a machine is not let in. `bad-name`: the invitation is for other names."""

Short = Annotated[str, Meta(max_length=64)]
Address = Annotated[str, Meta(max_length=300)]
Uuid = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]


class About(msgspec.Struct, frozen=True, gc=False):
    """What a machine tells about itself when it joins."""

    name: Short
    level: Annotated[str, Meta(max_length=16)] = ""
    """The level that it wants; empty: the root decides."""
    host: Address = ""
    version: Short = ""


class Join(msgspec.Struct, frozen=True, gc=False):
    """A machine asks to be let in."""

    ident: bytes
    """The id of the invitation."""
    node: bytes
    proof: bytes
    about: About


class Welcome(msgspec.Struct, frozen=True, gc=False):
    """The machine is let in: the contents of its file."""

    fabric: Short
    roles: Annotated[tuple[Short, ...], Meta(max_length=len(Role))]
    name: Short
    parents: Annotated[tuple[Address, ...], Meta(max_length=PARENTS_MAX)]
    """Addresses to call: `host:port` of port blocks, the root's first."""
    keys: Annotated[dict[Uuid, Binding], Meta(max_length=KEYS_MAX)]
    """The keys to know until the configuration has all: its own, the root's, those of possible roots."""
    root: Uuid
    """The UUID of the root that the token names; its address is the first of `parents`."""
    beacon_key: Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")] = ""
    """The fabric's secret for datagrams, in hex (BEA-007)."""

    def __repr__(self) -> str:
        return f"Welcome(fabric={self.fabric!r}, name={self.name!r}, roles={self.roles!r}, parents={self.parents!r})"


class Refused(msgspec.Struct, frozen=True, gc=False):
    """The machine is not let in."""

    code: str
    text: str


Answer = Welcome | Refused

_encode: Final = msgspec.json.Encoder(order="sorted").encode
_decode_about: Final = msgspec.json.Decoder(About).decode
_decode_welcome: Final = msgspec.json.Decoder(Welcome).decode


def proof_of(secret: bytes, ident: bytes, node: bytes, client_key: bytes, server_key: bytes) -> bytes:
    """A proof that only the holder of the token can make, and for this pair of CURVE keys only."""
    return hmac.digest(secret, PROOF_LABEL + ident + node + client_key + server_key, "sha256")


def is_same(one: bytes, other: bytes) -> bool:
    """Whether two secrets are equal; the time it takes does not depend on them (SEC-023)."""
    return hmac.compare_digest(one, other)


def encode_join(message: Join) -> list[bytes]:
    """The frames of a question."""
    return [b"JOIN", message.ident, message.node, message.proof, _encode(message.about)]


def decode_join(frames: list[bytes]) -> Join:
    """The question of these frames; PeerError `bad-message` or `too-big` for anything else."""
    if len(frames) != 5 or frames[0] != b"JOIN":  # tidy: five frames, as drawn above
        raise PeerError("bad-message", f"{len(frames)} frames, or no JOIN")
    _, ident, node, proof, about_json = frames
    lengths = len(ident), len(node), len(proof)
    if lengths != (ID_BYTES, NODE_ID_BYTES, PROOF_BYTES):
        raise PeerError("bad-message", f"frames of {lengths} bytes")
    about: About = _typed(_decode_about, about_json, JOIN_JSON_BYTES_MAX)
    return Join(ident, node, proof, about)


def encode_answer(message: Answer) -> list[bytes]:
    """The frames of an answer."""
    if isinstance(message, Welcome):
        return [b"WELCOME", _encode(message)]
    return [b"REFUSED", message.code.encode(), message.text.encode()]


def decode_answer(frames: list[bytes]) -> Answer:
    """The answer of these frames; PeerError `bad-message` or `too-big` for anything else."""
    match frames:
        case [b"WELCOME", welcome_json]:
            welcome: Welcome = _typed(_decode_welcome, welcome_json, WELCOME_JSON_BYTES_MAX)
            return welcome
        case [b"REFUSED", code, text]:
            return Refused(_text(code, CODE_BYTES_MAX), _text(text, TEXT_BYTES_MAX))
    raise PeerError("bad-message", f"{len(frames)} frames, neither WELCOME nor REFUSED")


def _typed(decode: Any, data: bytes, bytes_max: int) -> Any:
    if len(data) > bytes_max:
        raise PeerError("too-big", f"{len(data)} bytes", data)
    try:
        return decode(data)
    except UNREADABLE as error:
        raise PeerError("bad-message", str(error), data) from None


def _text(data: bytes, bytes_max: int) -> str:
    if len(data) > bytes_max:
        raise PeerError("too-big", f"{len(data)} bytes", data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise PeerError("bad-message", "not UTF-8", data) from None
