"""Values of the store: three readers agree about any bytes, and what one accepts can be written again (STO-005)."""

from collections.abc import Iterable

from fuzz.house.running import attempt, run
from fuzz.house.vectors import hostile, payloads
from weft.wire.store import pack


def one(data: bytes) -> None:
    """As a value, beside limits, and against itself."""
    codes = [attempt(pack.check, data, 4_096)[0], attempt(pack.unpack, data)[0], attempt(pack.canonical, data)[0]]
    assert codes in (["accepted"] * 3, ["malformed"] * 3, ["too-large", "accepted", "unencodable"]), codes
    assert attempt(pack.check, data, 60, 9, 3)[0] in ("accepted", "malformed", "too-large")
    if codes[0] == "accepted":
        plain = pack.canonical(data)
        assert plain == pack.canonical(plain)
        assert pack.same_value(data, plain)
        assert plain == pack.canonical(pack.pack(pack.unpack(data)))


def seeds() -> Iterable[bytes]:
    """Of the vectors."""
    return [*payloads("store-computed", of="mp"), *hostile("msgpack", "msgpack-value")]


if __name__ == "__main__":
    run(one)
