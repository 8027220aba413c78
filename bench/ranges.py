"""Ranges and version vectors against the naive model: a Python set of every number."""

import random
import sys

from bench.measure import Row, compare, show
from weft.base.identity import Origin
from weft.base.ranges import RangeSet
from weft.base.vectors import VersionVector

NUMBERS = 20_000
HOLED = [number for number in range(1, NUMBERS + 1) if number % 10]  # one in ten is missing
SHUFFLED = random.Random("bench/ranges").sample(HOLED, len(HOLED))
ORIGIN = Origin(bytes(16), 1)


def add_all(numbers: list[int]) -> RangeSet:
    seen = RangeSet()
    for number in numbers:
        seen.add(number)
    return seen


def add_to_vector(numbers: list[int]) -> VersionVector:
    vector = VersionVector()
    for number in numbers:
        vector.add(ORIGIN, number)
    return vector


def set_add_all(numbers: list[int]) -> set[int]:
    seen: set[int] = set()
    for number in numbers:
        seen.add(number)  # one by one is what is measured
    return seen


def add_batches(size: int) -> RangeSet:
    seen = RangeSet()
    for first in range(1, NUMBERS + 1, size):
        seen.add(first, first + size - 1)
    return seen


def set_add_batches(size: int) -> set[int]:
    seen: set[int] = set()
    for first in range(1, NUMBERS + 1, size):
        seen.update(range(first, first + size))
    return seen


def rows() -> list[Row]:
    line = list(range(1, NUMBERS + 1))
    ours, model = RangeSet((n, n) for n in HOLED), set(HOLED)
    missing = len(line) - len(HOLED)
    vector = VersionVector(
        (Origin(bytes([n // 256, n % 256]) * 8, 1), [(1, 1000), (1004, 1010)]) for n in range(10_000)
    )
    written = vector.encode()
    other = vector.copy()
    other.add(ORIGIN, 2_000, 3_000)
    return [
        compare("add the next number in line", lambda: add_all(line), lambda: set_add_all(line), NUMBERS),
        compare("add a batch of 100, per number", lambda: add_batches(100), lambda: set_add_batches(100), NUMBERS),
        compare("the same in a vector", lambda: add_to_vector(line), lambda: set_add_all(line), NUMBERS),
        compare(
            "add in any order, a tenth missing", lambda: add_all(SHUFFLED), lambda: set_add_all(SHUFFLED), len(HOLED)
        ),
        compare("is it in", lambda: [n in ours for n in line], lambda: [n in model for n in line], NUMBERS),
        compare("find a hole", lambda: ours.gaps(NUMBERS), lambda: [n for n in line if n not in model], missing),
        compare("difference, per range", lambda: ours - ours, lambda: model - model, len(ours)),
        compare("encode, per origin of 10,000", vector.encode, None, 10_000),
        compare("decode, per origin of 10,000", lambda: VersionVector.decode(written), None, 10_000),
        compare("difference, per origin of 10,000", lambda: other - vector, None, 10_000),
        compare("copy and union, per origin of 10,000", lambda: other | vector, None, 10_000),
    ]


def memory() -> str:
    ours, model = RangeSet((n, n) for n in HOLED), set(HOLED)
    held = sys.getsizeof(ours._firsts) + sys.getsizeof(ours._lasts) + 2 * len(ours) * sys.getsizeof(NUMBERS)
    naive = sys.getsizeof(model) + len(model) * sys.getsizeof(NUMBERS)
    return f"memory of {len(HOLED):,} numbers in {len(ours):,} ranges: {held:,} bytes; as a set {naive:,} bytes\n"


if __name__ == "__main__":
    show("Ranges", rows(), "set")
    print(memory())
