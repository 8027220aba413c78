"""The numbers of the chains core, each with unit and reason."""

from typing import Final

PLACE_MIN: Final = 1
PLACE_MAX: Final = 4_294_967_294  # numbers of a place in a chain (CHN-010)
PLACE_USUAL: Final = 1_000
LINKS_MAX: Final = 10_000  # of one node (specs/05, 2.6)
CHAINS_MAX: Final = 10_000  # remembered walks; a further type finds its links anew for every batch
TYPE_BYTES_MAX: Final = 64
KEYS_MAX: Final = 100_000  # states that one filter keeps, by key: the oldest goes first (CHN-063)
SERIES_MAX: Final = 100_000  # last samples kept to calculate values from: five full sensors of 20,000
CONDITIONS_MAX: Final = 64  # of one `where`
COUNT_MAX: Final = 1_000_000  # of a rate limit, and of its burst

assert KEYS_MAX >= SERIES_MAX, "a filter by series keeps a state for every series that has values"
assert PLACE_MIN <= PLACE_USUAL <= PLACE_MAX, "a filter without a place has one"
