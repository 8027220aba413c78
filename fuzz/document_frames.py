"""What peers of a session say: any bytes are a message that comes back, or move one counter (PEE-006)."""

from collections.abc import Iterable

from fuzz.house.choices import frames_of
from fuzz.house.running import attempt, run
from fuzz.house.vectors import multiparts
from weft.wire.document import endpoints, frames

CODES = frozenset(["accepted", "unknown_type", "bad_identity", "bad_frames", "bad_sum", "bad_body"])


def one(data: bytes) -> None:
    """What a ROUTER may deliver."""
    said = frames_of(data)
    code, heard = attempt(frames.decode, said)
    assert code in CODES, code
    if heard is not None:
        assert heard == frames.decode([heard.sender, *frames.encode(heard.message)]), heard
        if endpoint := getattr(heard.message, "endpoint", ""):
            assert 0 < endpoints.split(endpoint)[1] <= endpoints.PORT_MAX, endpoint


def seeds() -> Iterable[bytes]:
    """Of the vectors."""
    return multiparts("document-wire", "document-mesh")


if __name__ == "__main__":
    run(one)
