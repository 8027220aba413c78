"""Payloads in pieces: any pieces in any order give whole payloads or nothing, and never more than is allowed (LNK-004)."""

from collections.abc import Iterable

from fuzz.house.choices import Choices, frames_of, joined
from fuzz.house.running import attempt, run
from weft.base.now import Now
from weft.wire.store import pieces
from weft.wire.store.pieces import Pieces

CODES = frozenset(["accepted", "malformed", "bad-field", "too-large"])


def one(data: bytes) -> None:
    """As frames, one after the other; and a payload that is cut, mixed and put together."""
    heap = Pieces()
    for at, frame in enumerate(frames_of(data)):
        code, _ = attempt(heap.take, frame, Now(at, at))
        assert code in CODES, code
        assert pieces.is_piece(frame) or code != "accepted" or frame[:1] != pieces.MARK[:1], frame
    _mixed(data)


def _mixed(data: bytes) -> None:
    choices = Choices(data[:8])
    bytes_max, turn = 24 + choices.below(100), choices.below(7)
    payload = data * (1 + choices.below(3))
    cut = pieces.cut(payload, "n1", 7, bytes_max)
    if len(cut) == 1:
        return
    mixed = cut[turn % len(cut) :] + cut[: turn % len(cut)]
    mixed += mixed[:1]  # once more, which is nothing new
    heap = Pieces()
    found = [whole for piece in mixed if (whole := heap.take(piece, Now(1, 1))) is not None]
    assert all(len(piece) <= bytes_max for piece in cut), bytes_max
    assert [payload] == found, len(cut)


def seeds() -> Iterable[bytes]:
    """A payload in three pieces, and pieces that are none."""
    yield joined(pieces.cut(b"0123456789" * 4, "n1", 7, 40))
    yield joined([b"\x81\xa3_p0\x94\xa2n1\x07\x00\xc4\x00", b"\x81\xa3_p0\xc0", b"\xc0"])
    yield b"\x10\x03" + bytes(range(200))


if __name__ == "__main__":
    run(one)
