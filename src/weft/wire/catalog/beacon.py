"""The beacon by which nodes find the broker: one UDP datagram of text to port 5245 (BEA-001, BEA-007).

    beacon = "SHALOM" SP port [SP "dbp=1"] [SP "id=" epoch] [SP "hb=" port] [SP "pub=" port]
             [SP "caps=" word *("," word)] [SP "net=" net] [SP "mac=" code]
    epoch  = 16 hexadecimal digits      net = 1*32 of a-z, 0-9, "-"      code = 32 hexadecimal digits, always last

Unknown tokens are ignored. A datagram in which a known token is repeated or malformed is no beacon. Existing brokers
send only the first two words.
"""

import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from weft.base.errors import PeerError
from weft.wire.catalog.messages import Beacon

BYTES_MAX: Final = 512
MAC_DIGITS: Final = 32
_FABRIC: Final = re.compile(r"[0-9a-f]{64}")
_DIGITS: Final = re.compile(r"[0-9]{1,5}")
_EPOCH: Final = re.compile(r"[0-9a-f]{16}")
_CAPS: Final = re.compile(r"[\x21-\x2b\x2d-\x7e]{1,32}(?:,[\x21-\x2b\x2d-\x7e]{1,32})*")
_NET: Final = re.compile(r"[a-z0-9-]{1,32}")
_MAC: Final = re.compile(r"[0-9a-f]{32}")


def mac_of(signed: bytes, key: bytes) -> str:
    """The code over what stands before it: half an HMAC-SHA256, as hexadecimal digits."""
    return hmac.digest(key, signed, "sha256").hex()[:MAC_DIGITS]


def secret_of(key: str) -> bytes:
    """The secret that a key names: 64 hexadecimal digits are that of a closed fabric, anything else is the text itself.

    >>> secret_of("lab"), secret_of("5e" * 32)[:2]
    (b'lab', b'^^')
    """
    return bytes.fromhex(key) if _FABRIC.fullmatch(key) else key.encode()


def sign(beacon: Beacon, key: bytes) -> Beacon:
    """The beacon with its code."""
    signed = _text(beacon).encode()
    return msgspec.structs.replace(beacon, mac=mac_of(signed, key), signed=signed)


def is_signed(beacon: Beacon, key: bytes) -> bool:
    """Whether a beacon that was read has the code of this key."""
    return hmac.compare_digest(mac_of(beacon.signed, key), beacon.mac)


def encode(beacon: Beacon) -> list[bytes]:
    """The one frame of a beacon."""
    text = _text(beacon)
    data = (f"{text} mac={beacon.mac}" if beacon.mac else text).encode()
    assert len(data) <= BYTES_MAX, data
    return [data]


def decode(frames: Sequence[bytes]) -> Beacon:
    """The beacon of a datagram; PeerError `bad-beacon` for anything else.

    >>> decode([b"SHALOM 5246"]).port
    5246
    """
    if len(frames) != 1 or len(frames[0]) > BYTES_MAX:
        raise PeerError("bad-beacon", "not one datagram of at most 512 bytes")
    data = frames[0]
    try:
        word, _, rest = data.decode().partition(" ")
        port, *tokens = rest.split(" ")
        number = _port(port) if word == "SHALOM" else 0
        fields = read_tokens(tokens, _READERS)
    except ValueError as error:
        raise PeerError("bad-beacon", str(error)[:200], data) from None
    if not number:
        raise PeerError("bad-beacon", "no word, or no port", data)
    if "mac" in fields:
        fields["signed"] = data[: data.rindex(b" mac=")]
    return Beacon(number, **fields)


Reader = Callable[[str], Any]


def read_tokens(tokens: Sequence[str], readers: Mapping[str, Reader]) -> dict[str, Any]:
    """The values of `key=value` tokens, each read by the reader of its key; ValueError for a repeated key or a code that is not last.

    Keys without a reader are ignored.
    """
    fields: dict[str, Any] = {}
    for token in tokens:
        key, equals, value = token.partition("=")
        reader = readers.get(key) if equals else None
        if reader is None:
            continue
        if key in fields:
            raise ValueError(f"{key} twice")
        fields[key] = reader(value)
    if "mac" in fields and not tokens[-1].startswith("mac="):
        raise ValueError("something behind the code")
    return fields


def read_mac(text: str) -> str:
    """A code of the form that `mac_of` gives; ValueError otherwise."""
    if not _MAC.fullmatch(text):
        raise ValueError("no code")
    return text


def _text(beacon: Beacon) -> str:
    """All but the code."""
    fields = (
        ("dbp", beacon.dbp),
        ("id", beacon.id),
        ("hb", beacon.hb),
        ("pub", beacon.pub),
        ("caps", ",".join(beacon.caps)),
        ("net", beacon.net),
    )
    return " ".join(["SHALOM", str(beacon.port), *(f"{key}={value}" for key, value in fields if value)])


def _port(text: str) -> int:
    """0 to 65535."""
    if not _DIGITS.fullmatch(text) or int(text) > 65_535:
        raise ValueError("no port")
    return int(text)


def _like(pattern: re.Pattern[str]) -> Reader:
    def reader(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"not {pattern.pattern}")
        return text

    return reader


def _caps(text: str) -> tuple[str, ...]:
    if not _CAPS.fullmatch(text):
        raise ValueError("no capabilities")
    return tuple(text.split(","))


_READERS: Final[dict[str, Reader]] = {
    "dbp": _port,
    "id": _like(_EPOCH),
    "hb": _port,
    "pub": _port,
    "caps": _caps,
    "net": _like(_NET),
    "mac": read_mac,
}
