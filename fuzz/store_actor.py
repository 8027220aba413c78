"""The words of real servers: any payload is a message that comes back, or refused by a name (COD-007)."""  # noqa: INP001  # a script

from house.running import attempt, run

from weft.wire.store import actor

CODES = frozenset(["accepted", "malformed", "bad-type", "missing-field", "bad-field", "too-large", "wrong-dialect"])


def one(data: bytes) -> None:
    """Both topics, which differ in what they take for granted."""
    for topic in ("ping", "del"):
        code, message = attempt(actor.decode, data, topic)
        assert code in CODES, code
        if message is not None:
            assert message == actor.decode(actor.encode(message), topic), message


if __name__ == "__main__":
    run(one)
