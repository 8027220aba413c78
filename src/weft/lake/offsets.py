"""Offsets of the Spark stream: how far each drain has been read, and a digest that proves it (PIP-004).

`at` holds per drain `[number, row]`: all segments below that number are read, and the first `row` rows of that segment.
Segments never change, so `at` defines a version vector: the numbers in all segments that are read completely. `vec` is
its digest; a source that computes a different one after a restart refuses to continue. Keeping only the highest
sequence per origin would be shorter but wrong: a hole that a later segment fills would never be read.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from weft.base.errors import UserError
from weft.base.vectors import VersionVector
from weft.lake.layout import is_drain

VERSION: Final = 1
SHOWN_ORIGINS_MAX: Final = 64  # up to this many ranges, the offset also lists its vector, for people to read
SHOWN_CHARACTERS_MAX: Final = 4096

At = dict[str, tuple[int, int]]
"""Per drain: the number of the next segment, and how many of its rows are read."""


class Offset(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One position of the stream. `at` decides; the other fields are there to verify it, and for people to read."""

    v: int
    """Version of this format: `VERSION`."""
    o: int
    """Number of origins in the vector."""
    vec: str
    """BLAKE2b-128 of the vector's WV1 form."""
    at: At
    vector: dict[str, str] = {}
    """The vector as text, `{"origin/era": "1-1000,1004-1010"}`; only if there are few origins."""

    def plain(self) -> dict[str, Any]:
        """The form that Spark takes. Keys are sorted, so that equal offsets are equal text."""
        built: dict[str, Any] = msgspec.to_builtins(self, order="sorted")
        return built

    def text(self) -> str:
        """One line of canonical JSON."""
        return msgspec.json.encode(self, order="sorted").decode()


def offset_of(at: At, vector: VersionVector) -> Offset:
    """The offset of a position whose complete segments hold `vector`."""
    return Offset(v=VERSION, o=len(vector), vec=vector.digest(), at=dict(sorted(at.items())), vector=_shown(vector))


def parse(given: str | Mapping[str, Any]) -> Offset:
    """An offset from its JSON, or from the dict that Spark kept. UserError `bad-offset` for anything else."""
    try:
        if isinstance(given, str):
            offset = msgspec.json.decode(given, type=Offset)
        else:
            offset = msgspec.convert(dict(given), type=Offset)
    except msgspec.MsgspecError as error:
        raise _bad(str(error)) from None
    if offset.v != VERSION:
        raise _bad(f"version {offset.v} is not known")
    for drain, (number, row) in offset.at.items():
        if not is_drain(drain) or number < 1 or row < 0:
            raise _bad(f"{drain}: [{number}, {row}] is not a position")
    return offset


def _bad(why: str) -> UserError:
    return UserError(
        "bad-offset", f"not an offset of this stream: {why}", 'earliest, latest, a time, or {"at":…,"v":1}'
    )


def _shown(vector: VersionVector) -> dict[str, str]:
    if len(vector) > SHOWN_ORIGINS_MAX:
        return {}
    words = {str(origin): ",".join(_range(*pair) for pair in ranges) for origin, ranges in vector}
    return words if sum(map(len, words.values())) <= SHOWN_CHARACTERS_MAX else {}


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
