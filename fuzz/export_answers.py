"""What a receiver of OTLP answers: any bytes are fields or a PeerError, and a count with a text (FUZ-002)."""

from collections.abc import Iterable

from fuzz.house.running import outcomes, run
from weft.base.errors import PeerError
from weft.wire.exported import otlp_refused
from weft.wire.protobuf import integer, message, read, text


def one(data: bytes) -> None:
    """One answer."""
    try:
        fields = list(read(data))
    except PeerError as error:
        outcomes.add(("refused", error.code))
    else:
        outcomes.add(("read", "something" if fields else "nothing"))
        assert sum(len(value) for _, value in fields if isinstance(value, bytes)) <= len(data), fields
    count, why = otlp_refused(data)
    assert isinstance(count, int), count
    assert isinstance(why, str), why


def seeds() -> Iterable[bytes]:
    """Nothing, and some refused, whole and broken off."""
    yield b""
    said = message(1, integer(1, 3), text(2, "too old"))
    yield from (said[:size] for size in range(1, len(said) + 1))
    yield integer(1, -1)


if __name__ == "__main__":
    run(one)
