"""Manifests: what a segment holds, and the hash chain that reveals a removed or swapped segment (LAK-010).

A manifest is one line of canonical JSON: keys sorted, no spaces, UTF-8, LF. `prior` is the BLAKE2b-128 digest of the
manifest before it, so a reader that knows one digest can verify everything that follows.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b, sha256
from typing import Any, Final, NamedTuple

import msgspec

from weft.base.errors import WeftError
from weft.base.identity import NODE_ID_BYTES, Origin
from weft.base.records import Stream, StreamRecord
from weft.base.vectors import VersionVector

FORMAT: Final = 1
NO_PRIOR: Final = "0" * 32
"""`prior` of segment 1, which has none before it."""
ERA_END: Final = "era-end"
"""`why` of an era link in `lost`: the era ended at this number; nothing was lost."""
HELD_MAX: Final = 1_000  # characters; an error message is cut after as many of the ranges

RangeList = list[tuple[int, int]]
Bytes = bytes  # within Manifest, `bytes` means the field


class SegmentFault(WeftError):
    """A segment does not match its chain of manifests (PIP-008).

    `code`: `segment-gone`, `segment-changed`, `segment-unreadable`, `offset-mismatch`.
    """

    def __init__(self, code: str, drain: str, number: int, why: str) -> None:
        super().__init__(f"{code}: drain {drain}, segment {number}: {why}")
        self.code, self.drain, self.number, self.why = code, drain, number, why

    def __reduce__(self) -> tuple[type["SegmentFault"], tuple[str, str, int, str]]:
        return type(self), (self.code, self.drain, self.number, self.why)


class Manifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The description of one segment, with the fields of LAK-010.

    Times are wall-clock nanoseconds, null if there is no row.
    """

    format: int
    stream: str
    schema: int
    drain: str
    number: int
    rows: int
    bytes: int
    sha256: str
    """SHA-256 of the Parquet file, hex. Empty if the manifest was lost too and this one replaces it (`skipped`)."""
    first_received: int | None
    last_received: int | None
    lsn: tuple[int, int]
    ranges: list[tuple[str, int | None, RangeList]]
    """Numbers received: by origin and era, sorted, as maximal ranges."""
    lost: list[tuple[str, int | None, int, int, str]]
    """Numbers announced lost, and era links, in the order of their records (LAK-011)."""
    prior: str
    gone: bool = False
    """True for a stub: retention deleted the Parquet file (LAK-017)."""
    was: str = ""
    """In a stub, or with `skipped`: the digest of the manifest that this one replaces."""
    skipped: str = ""
    """Why an operator gave up the rows, which were gone before they were read (PIP-008); they count as lost.

    Empty: nobody has given them up.
    """

    def line(self) -> Bytes:
        """Canonical bytes, including the LF."""
        return msgspec.json.encode(self, order="sorted") + b"\n"

    def describes(self, data: Bytes) -> bool:
        """Whether `data` is the content of its Parquet file: its length and its hash."""
        return len(data) == self.bytes and sha256(data).hexdigest() == self.sha256

    def vector(self) -> VersionVector:
        """Numbers received, as a version vector."""
        return VersionVector((origin_of(name, era), ranges) for name, era, ranges in self.ranges)

    def held(self) -> str:
        """Its numbers in words, for an error message: `1-3, 7 of b`, with the start (era) where there are starts."""
        of_all = (
            ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in ranges)
            + f" of {name}"
            + ("" if era is None else f" (start {era})")
            for name, era, ranges in self.ranges
        )
        return "; ".join(of_all)[:HELD_MAX]

    def lost_vector(self) -> VersionVector:
        """Numbers announced lost, without era links."""
        return VersionVector(
            (origin_of(name, era), [(first, last)]) for name, era, first, last, why in self.lost if why != ERA_END
        )

    def era_ends(self) -> list[tuple[Origin, int]]:
        """Eras that have ended, with their last sequence."""
        return [(origin_of(name, era), last) for name, era, _, last, why in self.lost if why == ERA_END]


class Link(NamedTuple):
    """A manifest whose place in the chain is verified."""

    manifest: Manifest
    digest: str
    """The digest that the next manifest must have as `prior`."""


_DECODER: Final = msgspec.json.Decoder(Manifest)


def digest_of(data: bytes) -> str:
    """BLAKE2b-128 of a manifest's bytes including its LF, hex."""
    return blake2b(data, digest_size=16).hexdigest()


def decode(data: bytes, drain: str, number: int) -> Link:
    """A manifest and its digest.

    SegmentFault `segment-changed` unless it is canonical and has the expected drain and number.
    """
    try:
        manifest = _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SegmentFault("segment-changed", drain, number, f"manifest cannot be read: {error}") from None
    if manifest.format != FORMAT:
        raise SegmentFault("segment-changed", drain, number, f"manifest of unknown format {manifest.format}")
    if (manifest.drain, manifest.number) != (drain, number):
        raise SegmentFault("segment-changed", drain, number, f"says it is {manifest.drain}:{manifest.number}")
    if manifest.line() != data:
        raise SegmentFault("segment-changed", drain, number, "manifest is not canonical")
    if manifest.skipped and not manifest.sha256:
        # The original manifest is lost. Its digest is only known from the `prior` of the next one, and cannot be checked.
        return Link(manifest, manifest.was)
    if not (manifest.gone or manifest.skipped):
        return Link(manifest, digest_of(data))
    if manifest.was != digest_of(msgspec.structs.replace(manifest, gone=False, was="", skipped="").line()):
        raise SegmentFault(
            "segment-changed", drain, number, "its `was` is not the digest of the manifest that it replaces"
        )
    return Link(manifest, manifest.was)


def verify(data: bytes, drain: str, number: int, prior: str) -> Link:
    """Like `decode`, and verifies the chain: SegmentFault `segment-changed` unless `prior` is the digest before it."""
    link = decode(data, drain, number)
    if link.manifest.prior != prior:
        raise SegmentFault("segment-changed", drain, number, "does not follow the segment before it")
    return link


def origin_of(name: str, era: int | None) -> Origin:
    """The origin for a name in the lake. A name of 32 hex with an era is a node's UUID (as in WV1)."""
    if era is not None and len(name) == 2 * NODE_ID_BYTES:
        try:
            node = bytes.fromhex(name)
        except ValueError:
            return Origin(name, era)
        return Origin(node if node.hex() == name else name, era)
    return Origin(name, era)


def vector_of(rows: Iterable[Mapping[str, Any]]) -> VersionVector:
    """The numbers in rows of tables that have origin, era, first and last; a row whose `first` is null has none."""
    return VersionVector(
        (origin_of(row["origin"], row["era"]), [(row["first"], row["last"])])
        for row in rows
        if row["first"] is not None
    )


def name_of(node: bytes | str) -> str:
    """An origin's name in the lake."""
    return node.hex() if isinstance(node, bytes) else node


def record_name(record: StreamRecord) -> str:
    """The origin column of a record.

    For documents that is `session/origin`; for all other streams it is the origin.
    """
    name = name_of(record.origin)
    if record.stream != Stream.DOCUMENTS or isinstance(record.origin, str):
        return name
    session = record.attributes.get("session")
    return f"{name_of(session)}/{name}" if isinstance(session, bytes | str) and session else name


def range_rows(seen: Iterable[tuple[tuple[str, int | None], RangeList]]) -> list[tuple[str, int | None, RangeList]]:
    """`ranges` of a manifest, sorted by the origin's bytes; entries without an era come first."""
    ordered = sorted(seen, key=lambda entry: (entry[0][0].encode(), -1 if entry[0][1] is None else entry[0][1]))
    return [(name, era, ranges) for (name, era), ranges in ordered]
