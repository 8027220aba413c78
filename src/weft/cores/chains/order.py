"""The order of links in a chain: one total key per link, so that order is sorting and nothing else (CHN-010).

    before-all (0, 0, 0, -a)     number p (1, p, 0, name) from configuration     after-all (2, 0, 0, a)
                                          (1, p, 1, a) of a client

`a` is the attach number, which increases within a node's run. There are three strict bands. Within a band, and among
equal numbers, the order of attaching decides; the newest before-all is first. Filters from configuration stand by
number and name, so their order does not depend on when the configuration arrived.
"""

import re
from typing import Final

from weft.cores.chains import limits

TYPE: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
Key = tuple[int, int, int, int | str]

BEFORE_ALL: Final = 0
NUMBERED: Final = 1
AFTER_ALL: Final = 2


def before_all(attach: int) -> Key:
    """Ahead of every present link."""
    return BEFORE_ALL, 0, 0, -attach


def by_filter(place: int, name: str) -> Key:
    """A filter from configuration."""
    return NUMBERED, place, 0, name


def by_client(place: int, attach: int) -> Key:
    """A client that asked for a number; after the filters with the same number."""
    return NUMBERED, place, 1, attach


def after_all(attach: int) -> Key:
    """After every present link."""
    return AFTER_ALL, 0, 0, attach


BANDS: Final = {"before-all": before_all, "after-all": after_all}


def key_of(at: int | str, attach: int) -> Key | None:
    """The key of a client that asked for this place; None: the place is invalid.

    >>> key_of("after-all", 7), key_of(5, 7), key_of("behind", 7), key_of(0, 7)
    ((2, 0, 0, 7), (1, 5, 1, 7), None, None)
    """
    if isinstance(at, str):
        band = BANDS.get(at)
        return None if band is None else band(attach)
    return by_client(at, attach) if limits.PLACE_MIN <= at <= limits.PLACE_MAX else None


def is_type(kind: str) -> bool:
    """Whether this is a valid message type (CHN-002).

    >>> is_type("demo.report"), is_type("*"), is_type("Demo"), is_type("")
    (True, False, False, False)
    """
    return TYPE.fullmatch(kind) is not None


def covers(pattern: str, kind: str) -> bool:
    """Whether a registration for `pattern` stands on the chain of type `kind` (CHN-002).

    >>> covers("weft.*", "weft.metric"), covers("*", "demo"), covers("weft.metric", "weft.metrics")
    (True, True, False)
    """
    if pattern.endswith("*"):
        return pattern == "*" or kind.startswith(pattern[:-1])
    return pattern == kind
