"""Version vectors: any bytes are the one form of a vector, or refused by a name (WV1; LAK-019)."""

from collections.abc import Iterable

from fuzz.house.running import attempt, run
from fuzz.house.vectors import payloads
from weft.base.vectors import VersionVector


def one(data: bytes) -> None:
    """Read, written, and joined with itself."""
    code, vector = attempt(VersionVector.decode, data)
    assert code in ("accepted", "unknown-format", "truncated", "not-canonical"), code
    if vector is not None:
        assert data == vector.encode(), vector
        assert vector == vector | vector, vector
        assert not vector - vector, vector


def seeds() -> Iterable[bytes]:
    """All of the vectors, those that are refused too."""
    return payloads("pipeline", of="wv")


if __name__ == "__main__":
    run(one)
