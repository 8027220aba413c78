"""What the driver knows of every origin, before and after each micro-batch (PIP-021, PIP-030, PIP-043).

For each origin and era there are four sets of numbers, kept as ranges:

- *covered*: silver or quarantine has a row with this number;
- *lost*: announced lost before it came;
- *known*: covered or lost;
- *hollow*: known, but silver has no sample for it (it was lost or refused), so pairs of samples span it.

A contiguous range of known numbers is an *island*. Two samples of one island are neighbours if only hollow numbers lie
between them. The plan of a batch follows from these sets without reading a row: which numbers are fresh, to which island
they belong, which islands have merged. Usually each origin continues where it stopped; then the plan is one range per
origin, and Spark has no further step to do.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from weft.base.identity import Origin
from weft.base.ranges import Range, RangeSet
from weft.base.vectors import VersionVector
from weft.lake.files import put_here
from weft.lake.manifest import name_of, origin_of
from weft.pipeline.intake import Intake, Loss

RETURNED: Final = "returned"
"""The reason under which numbers are saved that stay hollow although silver has their samples.

They were released from quarantine, or came after they had been announced lost. They are covered, and so do not count as lost.
"""
BATCHES_KEPT: Final = 3  # states on disk: that before and that after the last batch are needed; one more is for people


class Piece(NamedTuple):
    """A range of fresh numbers of one origin."""

    origin: Origin
    first: int
    last: int
    island: int
    """First number of the island that they belong to now."""
    lost: int
    """How many hollow numbers that island has before `first`."""


class Move(NamedTuple):
    """An island that has merged into another one."""

    origin: Origin
    was: int
    """Its former first number."""
    island: int
    """First number of the island that it belongs to now."""
    shift: int
    """How many hollow numbers of the new island come before its former first number."""


class Hole(NamedTuple):
    """Numbers that have not arrived although later ones have."""

    first: int
    last: int
    since: int
    """When this hole was first seen, wall-clock nanoseconds."""


class Plan(NamedTuple):
    """The plan of a batch, from the ranges alone."""

    fresh: VersionVector
    """Its numbers that were not covered before."""
    repeated: VersionVector
    """Its numbers that were covered before: all rows with them are duplicates."""
    late: VersionVector
    """Fresh numbers that had been announced lost. Their samples form no pairs."""
    touched: tuple[Origin, ...]
    """Origins of which the batch brings numbers, losses or an end."""
    finished: tuple[Origin, ...]
    """Eras that are closed and complete as of this batch: no more neighbours can arrive."""
    before: dict[Origin, RangeSet]
    """The islands of the touched origins before the batch."""


class Kept(msgspec.Struct, frozen=True):
    """The part of the state that a version vector cannot express, as JSON."""

    now: int
    offset: str
    ends: list[tuple[str, int | None, int]]
    holes: list[tuple[str, int | None, int, int, int]]
    losses: dict[str, bytes] = {}
    """Lost numbers by reason, as WV1: a filter may leave as many ranges as there are batches."""
    lost: list[tuple[str, int | None, int, int, str]] = []
    """The same as an older version wrote it. It is still read."""


class Coverage:
    """The state after a batch; `advance` turns it into the state after the next one.

    `is_dense`: every number of an origin is expected, so an absent one is missing. False for messages, of which only
    forwarded ones arrive: then nothing is ever missing. `runs_on`: numbers continue from era to era, as writes of the
    configuration do from root to root. So an era should begin where the earlier ones ended, not with 1.
    """

    def __init__(self, *, is_dense: bool = True, runs_on: bool = False) -> None:
        self.is_dense, self.runs_on = is_dense, runs_on
        self.covered = VersionVector()
        self.known = VersionVector()
        self.hollow = VersionVector()
        self.lost: dict[str, VersionVector] = {}
        """Numbers announced lost before they came, by reason."""
        self.ends: dict[Origin, int] = {}
        self.holes: dict[Origin, list[Hole]] = {}
        self.now = 0
        self.offset = ""

    def advance(self, intake: Intake, now: int) -> Plan:
        """Add what a batch brings, and return its plan; `now` is the time of the batch, wall-clock nanoseconds."""
        self.now = now
        touched = _touched(intake)
        before = {origin: self.known[origin].copy() for origin in touched}
        fresh, repeated, late = VersionVector(), VersionVector(), VersionVector()
        for origin, ranges in intake.received:
            covered, hollow = self.covered[origin], self.hollow[origin]
            _put(repeated, origin, covered & ranges)
            _put(fresh, origin, _outside(covered, ranges))
            _put(late, origin, hollow & fresh[origin])
        self.covered.update(intake.received)
        self.known.update(intake.received)
        self._lose(intake.lost)
        self.ends.update(intake.ends)
        for origin in self._concerned(touched) if self.is_dense else ():
            self._look_for_holes(origin)
        finished = tuple(origin for origin in touched if self._is_finished(origin))
        return Plan(fresh, repeated, late, touched, finished, before)

    def _lose(self, losses: Iterable[Loss]) -> None:
        """Add announced losses of numbers that have not arrived."""
        for loss in losses:
            for first, last in self.known[loss.origin].gaps(loss.last, loss.first):
                self._note_lost(Loss(loss.origin, first, last, loss.why))

    def _note_lost(self, loss: Loss) -> None:
        self.lost.setdefault(loss.why, VersionVector()).add(*loss[:3])
        self.hollow.add(*loss[:3])
        self.known.add(*loss[:3])

    def refuse(self, quarantined: VersionVector) -> None:
        """Add quarantined numbers: for their neighbours they count as lost (PIP-043)."""
        self.hollow.update(quarantined)

    def losses_of(self, origin: Origin) -> list[tuple[int, int, str]]:
        """Numbers of an origin that were announced lost and have not arrived: first, last and reason, in order."""
        covered = self.covered[origin]
        return sorted(
            (first, last, why) for why, lost in self.lost.items() for first, last in _outside(covered, lost[origin])
        )

    @property
    def missing(self) -> int:
        """How many numbers are missing, of all origins."""
        return sum(hole.last - hole.first + 1 for holes in self.holes.values() for hole in holes)

    def highest_known(self, origin: Origin) -> int:
        """The highest number of an origin that is known to exist."""
        return max(self.known[origin].highest, self.ends.get(origin, 0))

    def _is_finished(self, origin: Origin) -> bool:
        return origin in self.ends and self.known[origin].prefix() >= self.highest_known(origin)

    def _concerned(self, touched: tuple[Origin, ...]) -> Iterable[Origin]:
        """Origins whose holes may have changed."""
        if not self.runs_on:
            return touched
        nodes = {origin.node for origin in touched}
        return [origin for origin, _ in self.known if origin.node in nodes]

    def first_of(self, origin: Origin) -> int:
        """The number with which an era should begin."""
        if not self.runs_on:
            return 1
        before = [
            known.highest for other, known in self.known if other.node == origin.node and _is_before(other, origin)
        ]
        lowest = next((first for first, _ in self.known[origin]), 1)
        return min(max(before, default=0) + 1, lowest)

    def _look_for_holes(self, origin: Origin) -> None:
        """Record missing numbers, and since when. A hole that shrinks keeps its age."""
        old = self.holes.get(origin, [])
        gaps = self.known[origin].gaps(self.highest_known(origin), self.first_of(origin))
        if not gaps:
            self.holes.pop(origin, None)
            return
        starts = [hole.first for hole in old]
        self.holes[origin] = [Hole(first, last, _age(old, starts, first, self.now)) for first, last in gaps]

    # Input of Spark jobs.

    def pieces(self, plan: Plan) -> Iterator[Piece]:
        """The fresh numbers whose samples can have neighbours: without late and refused ones."""
        for origin, ranges in plan.fresh:
            islands = list(self.known[origin])
            starts = [first for first, _ in islands]
            hollow = self.hollow[origin]
            # the island of the piece before, how many of its numbers up to `counted` are hollow
            current, before, counted = 0, 0, 0
            for first, last in _outside(hollow, ranges):
                island = starts[bisect_right(starts, first) - 1]
                if island != current:
                    current, before, counted = island, 0, island - 1
                before += _count(hollow, counted + 1, first - 1)
                counted = last
                yield Piece(origin, first, last, island, before)

    def moves(self, plan: Plan) -> Iterator[Move]:
        """Islands that are part of another one since this batch."""
        for origin in plan.touched:
            islands = list(self.known[origin])
            starts = [first for first, _ in islands]
            hollow = self.hollow[origin]
            for was, _ in plan.before[origin]:
                island = starts[bisect_right(starts, was) - 1]
                if island != was:
                    yield Move(origin, was, island, _count(hollow, island, was - 1))

    # Saving and loading.

    def save(self, path: Path) -> None:
        """Save the state after a batch: the vector as WV1 at `path`, the rest beside it; the vector last."""
        kept = Kept(
            now=self.now,
            offset=self.offset,
            losses={why: numbers.encode() for why, numbers in self.lost.items()},
            ends=[(name_of(origin.node), origin.era, last) for origin, last in self.ends.items()],
            holes=[(name_of(o.node), o.era, *hole) for o, holes in self.holes.items() for hole in holes],
        )
        put_here(path.with_suffix(".json"), msgspec.json.encode(kept))
        put_here(path, self.covered.encode())

    @classmethod
    def load(cls, path: Path, *, is_dense: bool = True, runs_on: bool = False) -> "Coverage":
        """Load the state after a batch. Numbers in quarantine are not saved: add them afterwards with `refuse`."""
        kept = msgspec.json.decode(path.with_suffix(".json").read_bytes(), type=Kept)
        state = cls(is_dense=is_dense, runs_on=runs_on)
        state.now, state.offset = kept.now, kept.offset
        state.covered = VersionVector.decode(path.read_bytes())
        state.known = state.covered.copy()
        for name, era, first, last, why in kept.lost:
            state._note_lost(Loss(origin_of(name, era), first, last, why))
        for why, data in kept.losses.items():
            numbers = state.lost[why] = VersionVector.decode(data)
            state.hollow.update(numbers)
            state.known.update(numbers)
        state.ends = {origin_of(name, era): last for name, era, last in kept.ends}
        for name, era, first, last, since in kept.holes:
            state.holes.setdefault(origin_of(name, era), []).append(Hole(first, last, since))
        return state


def forget_before(directory: Path, batch: int) -> None:
    """Delete the states that no repetition of batch `batch` can need."""
    for old in directory.glob("*.*"):
        if old.stem.lstrip("-").isdigit() and int(old.stem) <= batch - BATCHES_KEPT:
            old.unlink(missing_ok=True)


def _touched(intake: Intake) -> tuple[Origin, ...]:
    named = [origin for origin, _ in intake.received]
    named += [loss.origin for loss in intake.lost]
    named += [origin for origin, _ in intake.ends]
    return tuple(dict.fromkeys(named))


def _is_before(other: Origin, origin: Origin) -> bool:
    """Whether an era of a node is earlier than another."""
    return other.era is not None and origin.era is not None and other.era < origin.era


def _put(vector: VersionVector, origin: Origin, ranges: Iterable[Range]) -> None:
    for first, last in ranges:
        vector.add(origin, first, last)


def _outside(taken: RangeSet, ranges: Iterable[Range]) -> Iterator[Range]:
    """The parts of some ranges that are not in `taken`. The cost depends on how many ranges of `taken` lie in them."""
    for first, last in ranges:
        yield from taken.gaps(last, first)


def _count(ranges: RangeSet, first: int, last: int) -> int:
    """How many numbers of `first..last` are in `ranges`."""
    return sum(b - a + 1 for a, b in ranges.overlap(first, last)) if first <= last else 0


def _age(old: list[Hole], starts: list[int], first: int, now: int) -> int:
    """When a gap that begins at `first` was first seen: if an old hole had that number, when that was."""
    index = bisect_right(starts, first) - 1
    return old[index].since if index >= 0 and first <= old[index].last else now
