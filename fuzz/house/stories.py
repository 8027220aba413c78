"""Stories to begin with: drawn bytes, of which the corpus keeps those that go a new way."""

from collections.abc import Iterator

from weft.base.chance import Chance

LENGTHS = (12, 60, 200, 500)


def drawn(name: str, casts: int = 1, count: int = 36) -> Iterator[bytes]:
    """Inputs of several lengths; the first byte goes through the casts of the core."""
    chance = Chance(f"fuzz/{name}")
    for number in range(count):
        yield bytes((number % casts,)) + chance.randbytes(LENGTHS[number % len(LENGTHS)])
