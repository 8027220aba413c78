"""Updates, infos and pings of the store: any payload is messages that come back, or refused by a name (COD-007)."""

from collections.abc import Iterable

from fuzz.house.running import attempt, run
from fuzz.house.vectors import payloads
from weft.wire.store import bus, pack
from weft.wire.store.messages import Update

TOPICS = ("update", "info", "wping")
CODES = frozenset(
    [
        "accepted",
        "malformed",
        "bad-type",
        "missing-field",
        "bad-field",
        "bad-path",
        "bad-chain",
        "too-large",
        "wrong-dialect",
    ]
)


def one(data: bytes) -> None:
    """The first byte picks the topic."""
    topic, payload = TOPICS[data[0] % 3 if data else 0], data[1:]
    code, messages = attempt(bus.decode, topic, payload)
    assert code in CODES, code
    for message in messages or ():
        assert [message] == bus.decode(topic, bus.encode(message)), message
        if isinstance(message, Update) and message.event.value is not None:
            pack.check(message.event.value, len(payload))


def seeds() -> Iterable[bytes]:
    """Of the vectors."""
    return [bytes((topic,)) + said for said in payloads("store-computed") for topic in range(3)]


if __name__ == "__main__":
    run(one)
