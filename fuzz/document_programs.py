"""What programs ask of a session's node: any bytes are a request that comes back, or refused by a name."""

from collections.abc import Iterable

from fuzz.house.running import attempt, run
from fuzz.house.vectors import hostile
from weft.wire.document import programs
from weft.wire.document.clients import Answer, Asked


def one(data: bytes) -> None:
    """A request behind an id, and an answer."""
    code, asked = attempt(programs.decode, [b"1", data])
    assert code in ("accepted", programs.BAD_REQUEST), code
    if asked is not None:
        again = programs.decode(programs.encode_request(asked))
        assert programs.encode_request(asked) == programs.encode_request(again), asked
    code, answer = attempt(programs.decode_answer, [b"1", data])
    assert code in ("accepted", "bad-answer"), code
    if answer is not None:
        assert programs.encode(answer) == programs.encode(programs.decode_answer(programs.encode(answer))), answer


def seeds() -> Iterable[bytes]:
    """Requests of people, and answers."""
    add = {
        "do": "add",
        "reference": {"period": "1", "jam": "3"},
        "xml": "<pass team='home' points='4'/>",
        "force": True,
    }
    for asked in (
        Asked(b"1", "edit", "friday", add),
        Asked(b"1", "log", "", {"from": 3, "tail": None, "limit": 1 << 63, "at": 0.5}),
        Asked(b"12345678", "status"),
    ):
        yield programs.encode_request(asked)[1]
    yield programs.encode(Answer(b"1", {"outcome": "new", "sequence": 7, "list": [b"x", -1]}, more=True))[1]
    yield programs.encode(Answer(b"1", {"text": "no", "mend": "yes"}, "not-allowed"))[1]
    yield from hostile("msgpack")


if __name__ == "__main__":
    run(one)
