"""Replication: any frames are an update, a request or an answer that comes back, or refused by a name (CFG-008, CFG-014)."""

from collections.abc import Iterable

from fuzz.house.choices import frames_of, joined
from fuzz.house.running import attempt, run
from fuzz.house.vectors import multiparts
from weft.wire import replication
from weft.wire.envelope import Answer
from weft.wire.replication import KvPub, KvSync

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
        "code",
        "too-large",
    ]
)


def one(data: bytes) -> None:
    """As what is published, as a request, as an answer."""
    frames = frames_of(data)
    code, update = attempt(replication.decode_update, frames)
    assert code in CODES, code
    if type(update) is KvPub:
        assert frames == replication.encode_update(update), update
    code, asked = attempt(replication.decode_ask, frames)
    assert code in CODES, code
    if asked is not None and asked.message.dialect == "strict":
        assert asked.message == replication.decode_ask(replication.encode_ask(asked.message)).message, asked
    code, answer = attempt(replication.decode_answer, frames)
    assert code in CODES, code
    if answer is not None:
        assert answer == replication.decode_answer(replication.encode_answer(Answer((b"",), answer))), answer


def seeds() -> Iterable[bytes]:
    """The captured and made messages of the protocol."""
    yield from multiparts("config-strict", "config-chp")
    for pairs in ((KvSync("/a", 1, b"1"),), (KvSync("/a", 5, b"1"), KvSync("/a/b", 256, b"xx"))):
        yield joined(replication.encode_answer(Answer((), replication.pack(pairs))))


if __name__ == "__main__":
    run(one)
