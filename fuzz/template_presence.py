"""Presence, the example of a protocol: any frames are a message that comes back, or refused by a name."""

from collections.abc import Iterable

from fuzz.house.choices import frames_of, joined
from fuzz.house.running import attempt, run
from weft.wire import template


def one(data: bytes) -> None:
    """As either end hears it."""
    code, message = attempt(template.decode, frames_of(data))
    assert code in ("accepted", "bad-message", "too-big"), code
    if message is not None:
        assert message == template.decode(template.encode(message)), message


def seeds() -> Iterable[bytes]:
    """One of each kind."""
    for message in (template.Ping(7), template.Pong(7, 1 << 62)):
        yield joined(template.encode(message))
    yield joined([b"x" * 40])


if __name__ == "__main__":
    run(one)
