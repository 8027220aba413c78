"""What is known of waiting rows is asked once, and is not kept without bound (PIP-102)."""

import pytest

from weft.lake.reader import Slice
from weft.pipeline.bridge import claims
from weft.pipeline.bridge.claims import Claims, Named


def piece(number: int, digest: str = "", last: int = 10) -> Slice:
    return Slice("d1", number, f"/{number}", 0, last, 10, 1_000, digest or f"{number:064x}")


@pytest.mark.proves("PIP-102", part="no waiting row is judged twice in a process")
def test_a_slice_is_asked_of_once_by_its_digest_and_rows() -> None:
    known, asked = Claims(), list[int]()

    def ask(new: tuple[Slice, ...]) -> set[Named]:
        asked.extend(one.number for one in new)
        return {("d1", 2)} & {(one.drain, one.number) for one in new}

    first = (piece(1), piece(2), piece(3))
    assert [piece(2)] == list(known.contradicted("claim", first, ask))
    assert [piece(2)] == list(known.contradicted("claim", first, ask))
    assert [1, 2, 3] == asked
    assert [piece(2)] == list(known.contradicted("another", first, ask))
    changed = (piece(1, digest="ab" * 32), piece(3, last=5), piece(4), piece(2))
    assert [piece(2)] == list(known.contradicted("claim", changed, ask))
    assert [1, 2, 3, 1, 2, 3, 1, 3, 4] == asked, "another segment in its place; a part of its rows; a new one"
    assert () == known.contradicted("claim", (), ask)


@pytest.mark.proves("PIP-102", part="what is known is bounded")
def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "CLAIMS_MAX", 3)
    monkeypatch.setattr(claims, "FOUND_MAX", 8)
    known = Claims()

    def ask(new: tuple[Slice, ...]) -> set[Named]:
        return {(one.drain, one.number) for one in new if one.number % 2}

    for number in range(100):
        waiting = tuple(map(piece, range(number, number + 4)))
        odd = tuple(one for one in waiting if one.number % 2)
        assert odd == known.contradicted("often", waiting, ask)
        assert odd == known.contradicted(number, waiting, ask)
        assert len(known._found) <= 3
        assert len(known._found["often"]) <= 8 + len(waiting)
