"""The Clone pattern: any frames are what a server or client says, which comes back, or refused by a name (CFG-060..064)."""

from collections.abc import Iterable

from fuzz.house.choices import frames_of
from fuzz.house.running import attempt, run
from fuzz.house.vectors import multiparts
from weft.wire import chp
from weft.wire.envelope import Answer
from weft.wire.replication import Hugz

CODES = frozenset(
    [
        "accepted",
        "frame-count",
        "envelope",
        "command",
        "key",
        "sequence",
        "uuid",
        "properties",
        "value",
        "subtree",
        "too-large",
    ]
)


def one(data: bytes) -> None:
    """As a request, a part of a snapshot, an update, a write."""
    frames = frames_of(data)
    code, asked = attempt(chp.decode_ask, frames)
    assert code in CODES, code
    if asked is not None:
        subtree = chp.decode_ask(chp.encode_ask(asked.message)).message.subtree
        assert asked.message.subtree == subtree, asked
    code, part = attempt(chp.decode_answer, frames)
    assert code in CODES, code
    if part is not None:
        assert part == chp.decode_answer(chp.encode_answer(Answer((), part))), part
    code, update = attempt(chp.decode_update, frames)
    assert code in CODES, code
    if update is not None and type(update) is not Hugz:
        assert frames == chp.encode_update(update), update
    code, write = attempt(chp.decode_set, frames)
    assert code in CODES, code
    if write is not None:
        assert frames == chp.encode_set(write), write


def seeds() -> Iterable[bytes]:
    """What real servers and clients said."""
    return multiparts("config-chp")


if __name__ == "__main__":
    run(one)
