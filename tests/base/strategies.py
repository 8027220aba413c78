"""Drawn values of the base: spans of numbers, origins, vectors."""

from hypothesis import strategies as st

from weft.base.identity import Origin, is_canonical
from weft.base.ranges import RangeSet
from weft.base.vectors import NUMBER_MAX, VersionVector

NUMBERS = st.integers(1, 40)
SPANS = st.tuples(NUMBERS, st.integers(0, 12)).map(lambda span: (span[0], span[0] + span[1]))
RANGE_SETS = st.lists(SPANS, max_size=12).map(RangeSet)

ERAS = st.integers(0, 2) | st.integers(0, (1 << 64) - 1)
NODES = st.sampled_from([bytes(16), bytes([255]) * 16, b"0123456789abcdef"]) | st.binary(min_size=16, max_size=16)
NAMES = st.sampled_from(["a", "b", "n1", "0123456789abcdef", "é"]) | st.text(st.characters(codec="utf-8"), min_size=1)
ORIGINS = st.one_of(
    st.builds(Origin, NODES, ERAS),
    st.builds(Origin, NAMES, st.none() | ERAS),
).filter(lambda origin: is_canonical(*origin))

WIDE_SPANS = st.tuples(st.integers(1, NUMBER_MAX), st.integers(1, NUMBER_MAX)).map(lambda pair: (min(pair), max(pair)))
VECTORS = st.lists(st.tuples(ORIGINS, st.lists(SPANS | WIDE_SPANS, max_size=8)), max_size=6).map(VersionVector)
