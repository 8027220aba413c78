"""Announcements and control: any frames are one that comes back, or refused by a name (TOP-001..003, CFG-008)."""

from collections.abc import Iterable

from fuzz.house.choices import frames_of
from fuzz.house.running import attempt, run
from fuzz.house.vectors import multiparts
from weft.wire import discovery
from weft.wire.envelope import Answer

CODES = frozenset(
    [
        "accepted",
        "frame-count",
        "envelope",
        "command",
        "key",
        "endpoint",
        "uuid",
        "content",
        "properties",
        "code",
        "too-large",
    ]
)


def one(data: bytes) -> None:
    """As said to all, as said to a node, as its answer."""
    frames = frames_of(data)
    code, said = attempt(discovery.decode_announcement, frames)
    assert code in CODES, code
    if said is not None:
        written = discovery.encode_announcement(said)
        assert written == discovery.encode_announcement(discovery.decode_announcement(written)), said
    for decode in (discovery.decode_control, discovery.decode_called):
        code, control = attempt(decode, frames)
        assert code in CODES, code
        if control is not None:
            message = getattr(control, "message", control)
            written = discovery.encode_call(message)
            assert written == discovery.encode_control_answer(Answer((b"",), message)), message
            assert message == discovery.decode_called(written), message


def seeds() -> Iterable[bytes]:
    """The captured and made messages of the protocol."""
    return multiparts("config-strict")


if __name__ == "__main__":
    run(one)
