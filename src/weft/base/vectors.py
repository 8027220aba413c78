"""Version vectors with ranges: what has been seen of every origin.

`WV1` is their compact canonical form (LAK-019): a vector has exactly one encoding, so its hash names it. Any other
encoding is refused.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Final

from weft.base.errors import PeerError
from weft.base.identity import NODE_ID_BYTES, ORIGIN_BYTES_MAX, Origin, is_canonical, sort_key
from weft.base.ranges import RangeSet

MAGIC: Final = b"WV1"
NUMBER_MAX: Final = (1 << 64) - 1
LEB_BYTES_MAX: Final = 10  # 64 bits at 7 per byte


class VersionVector:
    """Mutable map `origin -> RangeSet` without empty entries. Equal contents are equal values."""

    __slots__ = ("_seen",)

    def __init__(self, entries: Iterable[tuple[Origin, Iterable[tuple[int, int]]]] = ()) -> None:
        self._seen: dict[Origin, RangeSet] = {}
        for origin, ranges in entries:
            for first, last in ranges:
                self.add(origin, first, last)

    def add(self, origin: Origin, first: int, last: int | None = None) -> int:
        """Add numbers of one origin; returns how many were new. O(1) for the number after the last."""
        seen = self._seen.get(origin)
        if seen is None:
            seen = self._seen[origin] = RangeSet()
        return seen.add(first, last)

    def __getitem__(self, origin: Origin) -> RangeSet:
        """What has been seen of one origin; an empty set if nothing. Do not change it: it is no copy."""
        return self._seen.get(origin) or RangeSet()

    def __contains__(self, origin: Origin) -> bool:
        return origin in self._seen

    def contains(self, origin: Origin, number: int) -> bool:
        """Whether that number of that origin has been seen. O(log ranges)."""
        return number in self[origin]

    def prefix(self, origin: Origin) -> int:
        """The contiguous prefix: all of 1..n have been seen."""
        return self[origin].prefix()

    def update(self, other: "VersionVector") -> None:
        """Add everything that `other` has seen."""
        for origin, ranges in other:
            self._seen.setdefault(origin, RangeSet()).update(ranges)

    def copy(self) -> "VersionVector":
        """An equal vector that shares nothing with this one."""
        twin = VersionVector()
        twin._seen = {origin: ranges.copy() for origin, ranges in self._seen.items()}
        return twin

    def __or__(self, other: "VersionVector") -> "VersionVector":
        both = self.copy()
        both.update(other)
        return both

    def __sub__(self, other: "VersionVector") -> "VersionVector":
        """What is here and not in `other`: all that anti-entropy ever has to send."""
        rest = VersionVector()
        for origin, ranges in self._seen.items():
            theirs = other._seen.get(origin)
            if ranges == theirs:
                continue  # the usual case
            left = ranges.copy() if theirs is None else ranges - theirs
            if left:
                rest._seen[origin] = left
        return rest

    def __iter__(self) -> Iterator[tuple[Origin, RangeSet]]:
        """Entries in canonical order."""
        return iter(sorted(self._seen.items(), key=lambda entry: sort_key(entry[0])))

    def __len__(self) -> int:
        return len(self._seen)

    def __bool__(self) -> bool:
        return bool(self._seen)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VersionVector):
            return NotImplemented
        return self._seen == other._seen

    __hash__ = None  # type: ignore[assignment]  # mutable: must not be a key

    def __repr__(self) -> str:
        return f"VersionVector({[(str(origin), list(ranges)) for origin, ranges in self]})"

    def encode(self) -> bytes:
        """The canonical WV1 bytes; every origin must be canonical (`base.identity.is_canonical`)."""
        out = bytearray(MAGIC)
        _put(out, len(self._seen))
        for origin, ranges in self:
            _put_origin(out, origin)
            _put(out, len(ranges))
            previous = 0
            for first, last in ranges:
                _put(out, first - previous)
                _put(out, last - first)
                previous = last
        return bytes(out)

    @classmethod
    def decode(cls, data: bytes) -> "VersionVector":
        """The vector of WV1 bytes; PeerError `unknown-format`, `truncated` or `not-canonical` for the rest."""
        if data[: len(MAGIC)] != MAGIC:
            raise PeerError("unknown-format", "not a WV1 version vector", data)
        reader = _Reader(data, len(MAGIC))
        vector = cls()
        before: tuple[bytes, int] | None = None
        for _ in range(reader.number()):
            origin = reader.origin()
            key = sort_key(origin)
            if before is not None and key <= before:
                raise reader.refusal("origins out of order")
            before = key
            vector._seen[origin] = reader.ranges()
        if reader.at != len(data):
            raise reader.refusal("bytes after the end")
        return vector

    def digest(self) -> str:
        """BLAKE2b-128 of the WV1 form, hex: the name of this vector."""
        return blake2b(self.encode(), digest_size=16).hexdigest()


def _put(out: bytearray, number: int) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _put_origin(out: bytearray, origin: Origin) -> None:
    assert is_canonical(*origin), origin
    name = origin.node if isinstance(origin.node, bytes) else origin.node.encode()
    _put(out, len(name))
    out += name
    if origin.era is None:
        out.append(0)
    else:
        out.append(1)
        out += origin.era.to_bytes(8, "big")


class _Reader:
    """Reads WV1, refusing every form but the canonical one."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def refusal(self, why: str) -> PeerError:
        return PeerError("not-canonical", f"{why} at byte {self.at}", self.data)

    def take(self, count: int) -> bytes:
        piece = self.data[self.at : self.at + count]
        if len(piece) != count:
            raise PeerError("truncated", f"ends at byte {len(self.data)}", self.data)
        self.at += count
        return piece

    def number(self) -> int:
        value = 0
        for index in range(LEB_BYTES_MAX):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if (byte == 0 and index) or value > NUMBER_MAX:
                    raise self.refusal("number not in its shortest form")
                return value
        raise self.refusal("number too long")

    def origin(self) -> Origin:
        length = self.number()
        if not 1 <= length <= ORIGIN_BYTES_MAX:
            raise self.refusal("origin of a forbidden length")
        name = self.take(length)
        has_era = self.take(1)[0]
        if has_era > 1:
            raise self.refusal("unknown era mark")
        era = int.from_bytes(self.take(8), "big") if has_era else None
        if era is not None and length == NODE_ID_BYTES:
            return Origin(name, era)
        try:
            origin = Origin(name.decode(), era)
        except UnicodeDecodeError:
            raise self.refusal("origin is not text") from None
        if not is_canonical(*origin):
            raise self.refusal("a node written as text")
        return origin

    def ranges(self) -> RangeSet:
        ranges = RangeSet()
        count = self.number()
        if count == 0:
            raise self.refusal("an origin without ranges")
        previous = 0
        for index in range(count):
            gap, length = self.number(), self.number()
            if gap < (2 if index else 1):
                raise self.refusal("ranges touch")
            first = previous + gap
            previous = first + length
            if previous > NUMBER_MAX:
                raise self.refusal("number over 64 bits")
            ranges.add(first, previous)
        return ranges
