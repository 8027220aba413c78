"""Tokens that people paste: any text is a token that comes back, or refused by a name (SEC-021)."""

from collections.abc import Iterable

from fuzz.house.running import attempt, run
from fuzz.house.vectors import payloads
from weft.wire import token
from weft.wire.z85 import from_z85, to_z85

CODES = frozenset(["accepted", "unknown-version", "bad-checksum", "unknown-role"])


def one(data: bytes) -> None:
    """As `weft join` reads it; and the same bytes with a right checksum, which a stranger can make."""
    text = data.decode("utf-8", "replace")
    key = from_z85(text)
    assert key is None or to_z85(key) == text
    for told in (text, token.PREFIX + token.sealed(data)):
        code, read = attempt(token.decode, told)
        assert code in CODES, code
        if read is not None:
            assert told.strip() == token.encode(read), read


def seeds() -> Iterable[bytes]:
    """Those of the vectors; bodies that lack only their checksum; a key."""
    yield from payloads("security")
    yield bytes([1, 0]) + bytes(8 + 16 + 32 + 4) + b"\x01\x0e10.0.0.1:27509"
    yield bytes([1, 5]) + bytes(8 + 16 + 32 + 4) + b"\x02\x05a:100\x05b:200"
    yield bytes([1, 0]) + bytes(8 + 16 + 32 + 4) + b"\x02\x05a:100\xff"
    yield bytes([2, 0]) + bytes(8 + 16 + 32 + 4) + b"\x00"
    yield b"szs#hp/J=p+C%@ouhp/lzke8P<-A2PtgxmzxZ}%D"


if __name__ == "__main__":
    run(one)
