"""Messages and pickles of the nodes of 2014: any are read and come back, or refused by a name (CFG-100)."""

from collections.abc import Iterable

from fuzz.house.choices import frames_of
from fuzz.house.running import attempt, run
from fuzz.house.vectors import multiparts
from weft.wire import dcamp2014, pickles
from weft.wire.dcamp2014 import Pair

CODES = frozenset(
    ["accepted", "frame-count", "key", "sequence", "properties", "value", "subtree", "pickle", "too-large"]
)


def one(data: bytes) -> None:
    """As a root's answer, and as a pickle alone."""
    code, message = attempt(dcamp2014.decode, frames_of(data))
    assert code in CODES, code
    if message is not None and not isinstance(message, Pair):
        assert message == dcamp2014.decode(dcamp2014.encode(message)), message
    if isinstance(message, Pair):
        code, _ = attempt(dcamp2014.shown, message.value)
        assert code in CODES, code
    code, _ = attempt(pickles.read, data)
    assert code in CODES, code


def seeds() -> Iterable[bytes]:
    """What the original nodes were heard to say."""
    return multiparts("config-dcamp2014")


if __name__ == "__main__":
    run(one)
