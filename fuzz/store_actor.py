"""The words of real servers: any payload is a message that comes back, or refused by a name (COD-007)."""

from collections.abc import Iterable

from fuzz.house.running import attempt, run
from fuzz.house.vectors import payloads
from weft.wire.store import actor

CODES = frozenset(["accepted", "malformed", "bad-type", "missing-field", "bad-field", "too-large", "wrong-dialect"])


def one(data: bytes) -> None:
    """Both topics, which differ in what they take for granted."""
    for topic in ("ping", "del"):
        code, message = attempt(actor.decode, data, topic)
        assert code in CODES, code
        if message is not None:
            assert message == actor.decode(actor.encode(message), topic), message


def seeds() -> Iterable[bytes]:
    """Of the vectors."""
    return payloads("store-moat")


if __name__ == "__main__":
    run(one)
