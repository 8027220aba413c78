"""What peers of a session say: any bytes are a message that comes back, or move one counter (PEE-006)."""  # noqa: INP001  # a script

from house.running import attempt, run

from weft.wire.document import endpoints, frames

CODES = frozenset(["accepted", "unknown_type", "bad_identity", "bad_frames", "bad_body"])


def one(data: bytes) -> None:
    """Frames, each behind its length in two bytes: what a ROUTER may deliver."""
    said = []
    while data:
        size = int.from_bytes(data[:2], "big")
        said.append(data[2 : 2 + size])
        data = data[2 + size :]
    code, heard = attempt(frames.decode, said)
    assert code in CODES, code
    if heard is not None:
        assert heard == frames.decode([heard.sender, *frames.encode(heard.message)]), heard
        if endpoint := getattr(heard.message, "endpoint", ""):
            assert 0 < endpoints.split(endpoint)[1] <= endpoints.PORT_MAX, endpoint


if __name__ == "__main__":
    run(one)
