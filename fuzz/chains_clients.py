"""Clients of chains: any frames are what a program or a node says, which comes back, or refused by a name (CLI-003, CLI-006)."""

from collections.abc import Iterable

from fuzz.house.choices import frames_of
from fuzz.house.running import attempt, run
from fuzz.house.vectors import multiparts
from weft.wire import clients

CODES = frozenset(["accepted", "bad-header", "unknown-op", "bad-frames"])


def one(data: bytes) -> None:
    """In both directions."""
    frames = frames_of(data)
    for decode in (clients.decode_asked, clients.decode_answered):
        code, message = attempt(decode, frames)
        assert code in CODES, code
        if message is None:
            continue
        written = clients.encode(message)
        assert written == clients.encode(decode(written)), message
        if isinstance(message, clients.Send | clients.Next | clients.Rec):
            each = list(clients.each_with_frames(message.m, message.frames))
            assert message.frames == [frame for _, own in each for frame in own], message


def seeds() -> Iterable[bytes]:
    """The frames of client links."""
    return multiparts("chains-frames")


if __name__ == "__main__":
    run(one)
