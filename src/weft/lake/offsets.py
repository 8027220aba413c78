"""Offsets of the Spark stream: how far each drain has been read, and the name of what that is (PIP-004).

`at` holds per drain `[number, row]`: every segment below that number, and `row` rows of it, is read. Segments never
change, so this *defines* a version vector, that of the whole segments below; `vec` names it, and a source that
computes another one at a restart refuses to go on. The highest sequence per origin would be shorter and wrong: a
hole that another segment fills later would be skipped.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from weft.base.errors import UserError
from weft.base.vectors import VersionVector
from weft.lake.layout import is_drain

VERSION: Final = 1
SHOWN_ORIGINS_MAX: Final = 64  # up to here the offset also spells out its vector, for people
SHOWN_CHARACTERS_MAX: Final = 4096

At = dict[str, tuple[int, int]]
"""Per drain: the next segment, and how many rows of it are read."""


class Offset(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One position of the stream. `at` is the truth; the rest proves and shows it."""

    v: int
    o: int
    """How many origins the vector has."""
    vec: str
    """BLAKE2b-128 of the vector's WV1 form."""
    at: At
    vector: dict[str, str] = {}
    """The vector in words: `{"origin/era": "1-1000,1004-1010"}`; only for few origins."""

    def plain(self) -> dict[str, Any]:
        """As Spark takes it: keys sorted, so that equal offsets are equal text."""
        built: dict[str, Any] = msgspec.to_builtins(self, order="sorted")
        return built

    def text(self) -> str:
        """One line of canonical JSON."""
        return msgspec.json.encode(self, order="sorted").decode()


def offset_of(at: At, vector: VersionVector) -> Offset:
    """The offset of a position whose whole segments hold `vector`."""
    return Offset(v=VERSION, o=len(vector), vec=vector.digest(), at=dict(sorted(at.items())), vector=_shown(vector))


def parse(given: str | Mapping[str, Any]) -> Offset:
    """An offset from its JSON, or from what Spark kept of it. UserError `bad-offset` for anything else."""
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
            raise _bad(f"{drain}: [{number}, {row}] is no position")
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
