"""The client port of the store: any stream is cut into the same messages, however it comes; the rest is garbage, once (CLN-001)."""

from collections.abc import Iterable

from fuzz.house.choices import Choices
from fuzz.house.running import outcomes, run
from fuzz.house.vectors import hostile, lines
from weft.shell.storeport import GARBAGE, Splitter


def one(data: bytes) -> None:
    """As a whole, byte by byte, and in pieces of any sizes."""
    whole, single, pieced = Splitter(), Splitter(), Splitter()
    expected = whole.feed(data)
    outcomes.add((str(min(len(expected), 6)), str(whole.is_broken)))
    assert expected[-1:] == [GARBAGE] or not whole.is_broken, expected
    assert GARBAGE not in expected[:-1], expected
    said = b"".join(message for message in expected if message != GARBAGE)
    assert data.startswith(said), expected
    assert expected == [message for at in range(len(data)) for message in single.feed(data[at : at + 1])], data
    choices, found, at = Choices(data[::-1]), [], 0
    while at < len(data):
        size = 1 + choices.below(40)
        found += pieced.feed(data[at : at + size])
        at += size
    assert expected == found, data


def seeds() -> Iterable[bytes]:
    """Sessions, and what is no message."""
    said = [bytes.fromhex(line["payload"]) for line in lines("store-client") if "payload" in line]
    for at in range(0, 60, 6):
        yield b"".join(said[at : at + 6])[:1_500]
    yield from hostile("msgpack", "msgpack-value")
    yield b"\x81\xa3seq\x01\x80\xc1\x80"


if __name__ == "__main__":
    run(one)
