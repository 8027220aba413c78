"""Messages of the catalog: any frames are one that comes back, or refused by a name (CAT-005, CAT-081)."""

from collections.abc import Iterable

from fuzz.house.choices import frames_of
from fuzz.house.running import attempt, run
from fuzz.house.vectors import multiparts
from weft.wire.catalog import commands, publications, times

CODES = frozenset(["accepted", "malformed", "unknown-command"])
WALL_S = 1_795_227_299.0


def one(data: bytes) -> None:
    """As what peers say, and as what a program hears."""
    frames = frames_of(data)
    for decode in (commands.decode, commands.decode_call):
        code, message = attempt(decode, frames)
        assert code in CODES, code
        if message is not None:
            assert frames == commands.encode(message), message
            assert times.answer(message.time, WALL_S), message
    for hear in (publications.decode, publications.decode_taken, publications.decode_publication):
        assert attempt(hear, frames)[0] in CODES, hear


def seeds() -> Iterable[bytes]:
    """Of the vectors."""
    return multiparts("catalog-computed", "catalog-hermes", "catalog-peers")


if __name__ == "__main__":
    run(one)
