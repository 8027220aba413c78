"""The token that `weft invite` prints and `weft join` takes: one line, and nothing else has to be copied (SEC-021).

    token   = "weft1." , unpadded base64url of body
    body    = version , role , id , secret , key , expires , count , count * ( length , endpoint ) , sum
    version = u8, 1             role   = u8, a place in ROLES
    id      = 8 bytes           secret = 16 bytes           key = 32 bytes, the root's CURVE key
    expires = u32, minutes since 1970
    count   = u8                length = u8                 endpoint = `host:port` of the root's door
    sum     = CRC-32 of all before it

Numbers stand in network order. The checksum tells a slip of the pen; what makes a token good is its secret.
"""

import binascii
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

import msgspec

from weft.base.endpoints import is_address
from weft.base.errors import PeerError
from weft.base.keys import ROLES, Role
from weft.base.now import SECOND

PREFIX: Final = "weft1."
VERSION: Final = 1
ID_BYTES: Final = 8
SECRET_BYTES: Final = 16
KEY_BYTES: Final = 32
ENDPOINTS_MAX: Final = 8  # a machine has few addresses
ENDPOINT_BYTES_MAX: Final = 255  # its length is one byte
MINUTE_NS: Final = 60 * SECOND
MINUTES_END: Final = 1 << 32
TOKEN_CHARACTERS_MAX: Final = 4 << 10  # eight endpoints of 255 bytes need 2,900
_HEAD: Final = struct.Struct("!BB8s16s32sIB")
_SUM: Final = struct.Struct("!I")

assert len(PREFIX) + (_HEAD.size + ENDPOINTS_MAX * (1 + ENDPOINT_BYTES_MAX) + _SUM.size) * 4 // 3 < TOKEN_CHARACTERS_MAX


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """What a token says. Its `repr` shows no secret (SEC-047)."""

    role: str
    ident: bytes
    """Of the invitation; not secret."""
    secret: bytes
    server_key: bytes
    """The root's CURVE key: a machine that joins connects to nobody else."""
    expires_minutes: int
    endpoints: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Token(role={self.role!r}, ident={self.ident.hex()}, endpoints={self.endpoints!r})"

    def is_expired(self, wall_ns: int) -> bool:
        """Whether its time is over."""
        return wall_ns >= self.expires_minutes * MINUTE_NS


def encode(token: Token) -> str:
    """The one line of a token."""
    texts = [endpoint.encode("ascii") for endpoint in token.endpoints]
    assert len(texts) <= ENDPOINTS_MAX, token
    head = (VERSION, ROLES[token.role], token.ident, token.secret, token.server_key, token.expires_minutes, len(texts))
    body = _HEAD.pack(*head) + b"".join(bytes([len(text)]) + text for text in texts)
    return PREFIX + sealed(body)


def sealed(body: bytes) -> str:
    """A body with its checksum, as text."""
    return urlsafe_b64encode(body + _SUM.pack(binascii.crc32(body))).rstrip(b"=").decode()


def decode(text: str) -> Token:
    """The token of a line; blanks and line breaks around it do not count.

    PeerError `unknown-version` for what is no token of this version, `bad-checksum` for one that was damaged on its way,
    `unknown-role`. That its time is over is no error here: `Token.is_expired`.
    """
    line = text.strip()
    if not line.startswith(PREFIX) or len(line) > TOKEN_CHARACTERS_MAX:
        raise PeerError("unknown-version", f"a token begins with {PREFIX}")
    body = _bytes_of(line.removeprefix(PREFIX))
    if body[0] != VERSION:
        raise PeerError("unknown-version", f"version {body[0]}")
    _, role, ident, secret, key, minutes, count = _HEAD.unpack_from(body)
    if role not in ROLES.values():
        raise PeerError("unknown-role", f"role {role}")
    return Token(
        role=Role(role).name.lower(),
        ident=ident,
        secret=secret,
        server_key=key,
        expires_minutes=minutes,
        endpoints=_endpoints(body[_HEAD.size :], count),
    )


def _bytes_of(line: str) -> bytes:
    """The body without its checksum."""
    try:
        whole = urlsafe_b64decode(line + "=" * (-len(line) % 4)) if line.isascii() else b""
    except ValueError:
        whole = b""
    body, end = whole[: -_SUM.size], whole[-_SUM.size :]
    is_canonical = urlsafe_b64encode(whole).rstrip(b"=").decode() == line
    if len(body) < _HEAD.size or _SUM.pack(binascii.crc32(body)) != end or not is_canonical:
        raise PeerError("bad-checksum", "the token is not whole")
    return body


def _endpoints(rest: bytes, count: int) -> tuple[str, ...]:
    found: list[str] = []
    while len(found) < count and rest:
        text, rest = rest[1 : 1 + rest[0]], rest[1 + rest[0] :]
        found.append(text.decode("ascii", "replace"))
    if rest or not 1 <= len(found) == count <= ENDPOINTS_MAX or not all(map(is_address, found)):
        raise PeerError("bad-checksum", "the endpoints of the token cannot be read")
    return tuple(found)
