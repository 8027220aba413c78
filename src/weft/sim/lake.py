"""The lake of a simulated root: segments in memory, published step by step, with a crash between any two (LAK-005).

A segment exists exactly when its manifest does. Parquet is not modelled: what matters here is which records a segment
holds, which number it has, and whether the drain was told.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from weft.base.chance import Chance
from weft.base.identity import Origin
from weft.base.now import MILLISECOND, SECOND
from weft.base.vectors import VersionVector
from weft.cores.carrier.limits import LAKE_PATIENCE_NS
from weft.cores.carrier.messages import InLake, LakeUnread
from weft.cores.drain.messages import (
    InspectLake,
    LakeFound,
    LakeRefused,
    SegmentFailed,
    SegmentWritten,
    StreamTip,
    WriteSegment,
)
from weft.sim.disk import Claim, JournalDisk
from weft.sim.world import World

WRITE_NS: Final = (2 * MILLISECOND, 200 * MILLISECOND)  # time from the order to the manifest's rename
ANSWER_NS: Final = (50_000, 20 * MILLISECOND)  # time from the rename to the core's order
INSPECT_NS: Final = (MILLISECOND, SECOND // 2)
LATE_NS: Final = (SECOND, 2 * LAKE_PATIENCE_NS)  # a new root goes on without its lake in half of the cases
ROW_BYTES: Final = 30
ROWS: Final = frozenset({"record", "message"})
"""Kinds of claims that are rows of a segment."""
NO_PRIOR: Final = "0" * 32


class Segment(NamedTuple):
    """A published segment."""

    number: int
    first_lsn: int
    last_lsn: int
    claims: tuple[Claim, ...]
    rows: int
    digest: str


class Lake:
    """What one root has drained.

    `publish` is called with each new segment, `answer` gives orders to the drain of the process that asked.
    """

    def __init__(self, world: World, chance: Chance, publish: Callable[[int, Segment], None]) -> None:
        self.world = world
        self._chance = chance
        self._publish = publish
        self.segments: dict[int, dict[int, Segment]] = {}
        self.failures = 0
        """Share of segments that are refused, in 65,536ths."""

    def _soon(self, bounds: tuple[int, int]) -> int:
        return self.world.at + self._chance.randint(*bounds)

    def inspect(self, _work: InspectLake, answer: Callable[[Any], None]) -> None:
        """Answer with the last segment of each stream."""
        if self._is_refused():
            self.world.call_at(self._soon(ANSWER_NS), answer, LakeRefused("failed", "the lake is not mounted"))
        else:
            self.world.call_at(self._soon(INSPECT_NS), self._found, answer)

    def _found(self, answer: Callable[[Any], None]) -> None:
        tips = []
        for stream, numbered in self.segments.items():
            last = numbered[max(numbered)]
            tips.append(StreamTip(stream, last.number, last.last_lsn, last.digest))
        answer(LakeFound(tuple(tips)))

    def read_vectors(self, named: Mapping[str, Origin], answer: Callable[[Any], None]) -> None:
        """Answer with what the segments of each stream hold; a lake that fails answers late, too."""
        if self._is_refused():
            self.world.call_at(self._soon(ANSWER_NS), answer, LakeUnread("the lake is not mounted"))
            return
        by_stream: dict[int, VersionVector] = {}
        claims = (
            (stream, claim) for stream, of in self.segments.items() for each in of.values() for claim in each.claims
        )
        for stream, claim in claims:
            if claim.kind in ROWS:
                by_stream.setdefault(stream, VersionVector()).add(named[claim.origin], claim.first, claim.last)
        vectors = tuple((stream, vector.encode()) for stream, vector in by_stream.items())
        self.world.call_at(self._soon(LATE_NS if self._is_refused() else INSPECT_NS), answer, InLake(vectors))

    def _is_refused(self) -> bool:
        return bool(self.failures) and self._chance.getrandbits(16) < self.failures

    def write(
        self, work: WriteSegment, disk: JournalDisk, answer: Callable[[Any], None], is_alive: Callable[[], bool]
    ) -> None:
        """Publish a segment after a delay; nothing happens once the process that asked has ended."""
        if self._is_refused():
            why = "full" if self._chance.getrandbits(1) else "failed"
            failed = SegmentFailed(work.stream, work.number, why, "the simulated lake says no")
            self.world.call_at(self._soon(WRITE_NS), answer, failed)
        else:
            self.world.call_at(self._soon(WRITE_NS), self._rename, (work, disk, answer, is_alive))

    def _rename(self, what: tuple[WriteSegment, JournalDisk, Callable[[Any], None], Callable[[], bool]]) -> None:
        """The manifest is renamed: from here on the segment exists, even if nobody knows it."""
        work, disk, answer, is_alive = what
        if not is_alive():
            return
        numbered = self.segments.setdefault(work.stream, {})
        made = numbered.get(work.number)
        if made is None or (made.first_lsn, made.last_lsn) != (work.first_lsn, work.last_lsn):
            made = numbered[work.number] = _segment_of(work, disk.between(work.first_lsn, work.last_lsn))
            self._publish(work.stream, made)
        event = SegmentWritten(work.stream, work.number, work.last_lsn, made.rows, made.rows * ROW_BYTES, made.digest)
        self.world.call_at(self._soon(ANSWER_NS), answer, event)


def _segment_of(work: WriteSegment, claims: Sequence[Claim]) -> Segment:
    mine = tuple(claim for claim in claims if claim.stream == work.stream)
    rows = sum(claim.last - claim.first + 1 for claim in mine if claim.kind in ROWS)
    digest = blake2b(f"{work!r}{mine!r}".encode(), digest_size=16).hexdigest()
    return Segment(work.number, work.first_lsn, work.last_lsn, mine, rows, digest)
