"""What is said at the door: any frames are a message that comes back, or refused by a name (SEC-022)."""

from collections.abc import Iterable

from fuzz.house.choices import frames_of, joined
from fuzz.house.running import attempt, run
from fuzz.house.vectors import multiparts
from weft.base.keys import Binding
from weft.wire import enrolment
from weft.wire.enrolment import Welcome

CODES = frozenset(["accepted", "bad-message", "too-big"])


def one(data: bytes) -> None:
    """As the root hears it, and as the machine that joins."""
    frames = frames_of(data)
    ways = ((enrolment.decode_join, enrolment.encode_join), (enrolment.decode_answer, enrolment.encode_answer))
    for decode, encode in ways:
        code, message = attempt(decode, frames)
        assert code in CODES, code
        if message is not None:
            assert message == decode(encode(message)), message


def seeds() -> Iterable[bytes]:
    """Those of the vectors, and a WELCOME."""
    yield from multiparts("security")
    keys = {"0" * 32: Binding(curve=("A" * 40,), name="root", roles=("collector",))}
    yield joined(enrolment.encode_answer(Welcome("lab", ("sensor",), "pi7", ("10.0.0.1:27500",), keys, "0" * 32)))
    yield joined([b"WELCOME", b'{"fabric":7}'])
    yield joined([b"REFUSED", b"used", b"\xff"])


if __name__ == "__main__":
    run(one)
