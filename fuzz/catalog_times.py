"""Time frames: any bytes are read within reach of our clock, and answered in their own size (CAT-010, CAT-011)."""

from collections.abc import Iterable

from fuzz.house.running import run
from fuzz.house.vectors import payloads
from weft.wire.catalog import times

WALL_S = 1_795_227_299.0


def one(data: bytes) -> None:
    """What was read comes back, and is not far off."""
    found = times.read(data, WALL_S)
    answer = times.answer(data, WALL_S)
    if found.seconds is None:
        assert (8 if len(data) == 8 else 4) == len(answer), answer
        return
    assert abs(found.seconds - WALL_S) <= times.WINDOW_S, found
    assert times.read(answer, WALL_S).format == found.format or times.read(answer, WALL_S).seconds is not None, answer


def seeds() -> Iterable[bytes]:
    """Of the vectors."""
    return payloads("catalog-computed", of="time")


if __name__ == "__main__":
    run(one)
