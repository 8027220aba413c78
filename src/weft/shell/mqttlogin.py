"""Access to a broker that others can reach: TLS, name and password, and a MAC on every message (LNK-030).

    sealed = msgpack {"_m": [key id, mac, payload]}     mac = first 16 bytes of HMAC-SHA256(key, topic 00 payload)

A broker does not say who wrote a message: whoever may publish to its topics may write to the store. On a closed fabric
the key is derived from the fabric's secret, which every admitted node has. A message without the right MAC is dropped and
counted. MoaT-KV programs do not know this form, so no MACs are used where their dialect is spoken. A replayed message
changes nothing, because changes and pings have numbers.
"""

import hmac
import ssl
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from weft.base.errors import UNREADABLE, UserError
from weft.node.storetable import StoreTable

OTHERS: Final = 0o077  # permissions that only the owner may have
PASSWORD_BYTES_MAX: Final = 64 << 10  # of MQTT
MAC_BYTES: Final = 16
ID_BYTES: Final = 4
LABEL: Final = b"weft-mqtt-1"
"""Makes the key derived for MQTT differ from the one for datagrams."""


class Login(NamedTuple):
    """Credentials for a broker; the repr hides the password (SEC-047)."""

    user: str = ""
    password: str = ""
    tls: ssl.SSLContext | None = None

    def __repr__(self) -> str:
        return f"Login(user={self.user!r}, password=..., tls={self.tls is not None})"


NO_LOGIN: Final = Login()


def login_of(table: StoreTable, state: Path) -> Login:
    """The credentials in `[store]`; paths are relative to the state directory. UserError `bad-broker`, `open-keys`."""
    password = _secret(state / table.broker_password) if table.broker_password else ""
    try:
        tls = _tls(table, state) if table.broker_tls else None
    except (OSError, ssl.SSLError) as error:
        text = f"[store] broker_ca or broker_certificate cannot be used: {error}"
        raise UserError("bad-broker", text, "the path of a file in PEM form that this user can read") from None
    return Login(table.broker_user, password, tls)


def _tls(table: StoreTable, state: Path) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(state / table.broker_ca) if table.broker_ca else None)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    if table.broker_certificate:
        made.load_cert_chain(str(state / table.broker_certificate))
    return made


def _secret(path: Path) -> str:
    """The first line of a file that only its owner may read."""
    try:
        mode = path.stat().st_mode
        with path.open(encoding="utf-8") as file:
            text = file.read(PASSWORD_BYTES_MAX).partition("\n")[0]
    except (OSError, UnicodeDecodeError) as error:
        text = f"[store] broker_password: {path} cannot be read: {error}"
        raise UserError("bad-broker", text, "the path of a file whose first line is the password") from None
    if mode & OTHERS:
        raise UserError("open-keys", f"{path} can be read by others than its owner", f"chmod 600 {path}")
    return text


class Sealer:
    """Adds a MAC to messages for a broker, and checks the MAC of received ones."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, LABEL, "sha256")
        self.id = sha256(self._key).digest()[:ID_BYTES]
        """Identifies the key, without revealing it."""

    def seal(self, topic: str, payload: bytes) -> bytes:
        """The message with its MAC."""
        return _encode({"_m": (self.id, self._mac(topic, payload), payload)})

    def open(self, topic: str, data: bytes) -> bytes | None:
        """The message without its MAC; None: it has no MAC, a wrong one, or one for another topic."""
        try:
            key, mac, payload = _decode(data).m
        except UNREADABLE:
            return None
        return payload if key == self.id and hmac.compare_digest(mac, self._mac(topic, payload)) else None

    def _mac(self, topic: str, payload: bytes) -> bytes:
        return hmac.digest(self._key, topic.encode() + b"\0" + payload, "sha256")[:MAC_BYTES]


class _Sealed(msgspec.Struct, rename={"m": "_m"}):
    m: tuple[bytes, bytes, bytes]


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Sealed).decode
