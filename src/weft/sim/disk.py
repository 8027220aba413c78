"""The journal of a simulated machine: what is durable, what is only written, what a crash leaves (SIM-022).

Records are kept as the bytes that `wire` makes of them, one batch per turn, so everything that is read back has been
through the codec. A batch is written whole and synced later; at most one is written and not yet synced (JRN-003). A
crash leaves it or not, but never a part of it (JRN-002): torn batches are tested elsewhere. Segments and snapshots are
modelled because they decide what a journal may forget (JRN-040, JRN-041). Between two runs a segment may be damaged:
then it is made of bytes, one batch per turn, and read by the judge that recovery uses (JRN-020).
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from weft.base.chance import Chance
from weft.base.records import CoreRecord, DamageRecord, Entry, Record, StreamRecord
from weft.base.spool import RecordsFetched, Span
from weft.wire.journal import decode_record, encode_body, encode_record
from weft.wire.segments import SEGMENT, Gap, Judgement, Place, Verdict, close_batch, decode_header, encode_header, judge

RECORD_HEAD_BYTES: Final = 4
BATCH_HEAD_BYTES: Final = 32
SEGMENTS_MIN: Final = 8  # segments into which a full budget is divided, at least
CRASHES: Final = ("kept", "torn", "lost", "old")
FLIPPED, CUT = "with a flipped bit", "with a segment cut short"
HARMS: Final = (FLIPPED, CUT, "without a segment", "with two segments swapped", "with a misplaced segment")
"""What happens to a journal between two runs. Of the last three, and of a damaged header, a start refuses what is not in its
place, and names the command that repairs it (JRN-024); that puts a note of the loss where the records were."""
_OWNER: Final = bytes(16)


class Claim(NamedTuple):
    """A record that goes up, for the history: see `checks.history`."""

    kind: str
    """`record`, `loss` or `link`."""
    stream: int
    origin: str
    first: int
    last: int


class Image(NamedTuple):
    """A disk as it was at an instant, to go back to."""

    first_lsn: int
    data: list[bytes]
    claims: list[Claim | None]
    snapshots: list[tuple[int, tuple[bytes, ...]]]
    starts: list[int]
    turns: list[int]


NOTHING: Final = Image(1, [], [], [], [1], [])


class Damage(NamedTuple):
    """Records that are lost from a segment."""

    record: DamageRecord
    listed: tuple[Span, ...]
    """Their numbers, if the footer of the segment can still be read."""
    gone: tuple[Claim, ...]
    """What they held, for the history."""


class JournalDisk:
    """One journal. Lsns count from 1; `claim_of` names what a record holds, None for a core's own."""

    def __init__(self, claim_of: Callable[[Record], Claim | None], segment_records: int, budget: int) -> None:
        self._claim_of = claim_of
        self._segment_records = segment_records
        self.budget = budget
        """Bytes that it may use; a segment takes at most an eighth of it."""
        self.first_lsn = 1
        self._data: list[bytes] = []
        self.claims: list[Claim | None] = []
        self._unsynced: list[bytes] = []
        self._unsynced_claims: list[Claim | None] = []
        self._snapshots: list[tuple[int, tuple[bytes, ...]]] = []
        self._starts: list[int] = [1]
        """First lsns of the segments that are still there."""
        self._turns: list[int] = []
        """First lsns of the batches."""
        self.damages: list[Damage] = []
        """What was found damaged; of a record that is lost no bytes are left."""
        self.is_refused = False
        """Whether a start refuses the journal, until somebody repairs it (JRN-024)."""
        self.verdict = Verdict.CLEAN
        """Of the segments that the next start reads."""
        self.bytes_used = 0
        self._segment_bytes = 0

    @property
    def durable_upto(self) -> int:
        """The last lsn that a crash does not take."""
        return self.first_lsn + len(self._data) - 1

    @property
    def next_lsn(self) -> int:
        return self.durable_upto + len(self._unsynced) + 1

    @property
    def snapshot_upto(self) -> int:
        """The last lsn that the newest snapshot covers, 0 without one."""
        return self._snapshots[-1][0] if self._snapshots else 0

    def write(self, records: Sequence[Record]) -> None:
        """Append a batch, not yet synced."""
        assert not self._unsynced, "at most one batch is written and not synced (JRN-003)"
        self._unsynced = [encode_record(record) for record in records]
        self._unsynced_claims = [self._claim_of(record) for record in records]

    def unsynced_bytes(self) -> list[bytes]:
        """Bytes of the batch that waits for its sync, for the trace."""
        return self._unsynced

    def sync(self) -> list[Claim]:
        """Make the batch durable; returns its records that go up."""
        claims = self._unsynced_claims
        if self._unsynced:
            self._turns.append(self.durable_upto + 1)
        self._data += self._unsynced
        self.claims += claims
        size = sum(map(len, self._unsynced)) + RECORD_HEAD_BYTES * len(claims) + BATCH_HEAD_BYTES
        self.bytes_used += size
        self._segment_bytes += size
        self._unsynced, self._unsynced_claims = [], []
        is_long = self.durable_upto - self._starts[-1] + 1 >= self._segment_records
        if is_long or self._segment_bytes * SEGMENTS_MIN >= self.budget:
            self._begin_segment()
        return [claim for claim in claims if claim is not None]

    def _begin_segment(self) -> None:
        self._starts.append(self.durable_upto + 1)
        self._segment_bytes = 0

    def snapshot(self, condensed: Iterable[CoreRecord]) -> None:
        """Write a snapshot of the cores' condensed state, which covers all durable records; the last two are kept."""
        self._snapshots.append((self.durable_upto, tuple(map(encode_record, condensed))))
        del self._snapshots[:-2]

    def may_forget(self, upto: int) -> bool:
        """Whether `forget` would remove anything."""
        starts = self._starts
        if len(starts) < 2 or len(self._snapshots) < 2:
            return False
        return starts[1] - 1 <= upto and starts[1] - 1 <= self._snapshots[0][0]

    def forget(self, upto: int) -> list[Claim]:
        """Remove whole segments up to `upto` that the older snapshot covers; returns what they held."""
        covered = self._snapshots[0][0] if len(self._snapshots) == 2 else 0
        ends = [start - 1 for start in self._starts[1:]]
        keep = sum(1 for end in ends if end <= min(upto, covered))
        if not keep:
            return []
        first = self._starts[keep]
        count = first - self.first_lsn
        gone = [claim for claim in self.claims[:count] if claim is not None]
        self.bytes_used -= sum(map(len, self._data[:count])) + RECORD_HEAD_BYTES * count
        del self._starts[:keep], self._data[:count], self.claims[:count]
        self.first_lsn = first
        self._turns = [turn for turn in self._turns if turn >= first]
        return gone

    def read(self, holder: str, after: int, bytes_max: int) -> RecordsFetched:
        """The durable records behind `after`, about `bytes_max` bytes of them."""
        entries: list[Entry] = []
        begin = max(after + 1, self.first_lsn)
        taken = 0
        for lsn in range(begin, self.durable_upto + 1):
            data = self._data[lsn - self.first_lsn]
            if entries and taken + len(data) > bytes_max:
                break
            taken += len(data)
            if data:
                entries.append((lsn, decode_record(data)))
        upto = entries[-1][0] if entries else max(after, self.durable_upto)
        return RecordsFetched(holder, after, upto, tuple(entries))

    def between(self, first_lsn: int, last_lsn: int) -> list[Claim]:
        """The records with these lsns that go up, except forgotten ones."""
        begin, end = max(first_lsn, self.first_lsn) - self.first_lsn, last_lsn - self.first_lsn + 1
        return [claim for claim in self.claims[begin:end] if claim is not None]

    def oldest(self, released: int) -> tuple[int, tuple[Span, ...]]:
        """The last lsn of the lowest closed segment that some reader has not released, and its records."""
        for begin, after in pairwise(self._starts):
            if after - 1 > released:
                return after - 1, self._spans(begin, after)
        return 0, ()

    def _spans(self, begin: int, end: int) -> tuple[Span, ...]:
        stored = self._data[begin - self.first_lsn : end - self.first_lsn]
        records = [decode_record(data) for data in stored if data]
        return tuple(
            Span(record.stream, record.origin, record.era, record.sequence, record.last)
            for record in records
            if isinstance(record, StreamRecord)
        )

    def recover(self) -> list[Entry]:
        """What a start restores: the newest snapshot and every record after it. Begins a new segment."""
        if self._starts[-1] != self.durable_upto + 1:
            self._begin_segment()
        upto, condensed = self._snapshots[-1] if self._snapshots else (0, ())
        entries: list[Entry] = [(upto, decode_record(data)) for data in condensed]
        begin = max(upto + 1, self.first_lsn)
        assert not self.is_refused, "no start on a journal that is not whole (JRN-024)"
        found = {damage.record.first_lsn: damage.record for damage in self.damages}
        for lsn in range(begin, self.next_lsn):
            if lsn in found:
                entries.append((lsn, found[lsn]))
            if data := self._data[lsn - self.first_lsn]:
                entries.append((lsn, decode_record(data)))
        return entries

    def crash(self, chance: Chance, disk: str, on_survival: Callable[[int], None] = lambda _: None) -> list[Claim]:
        """The machine stops now; returns the records that became durable without anyone hearing of it.

        `on_survival` is called with the first lsn of these, just before. `disk` is `kept` (the unsynced batch may have
        reached the disk), `torn` (it did not) or `lost` (nothing is left).
        """
        if disk == "kept" and self._unsynced and chance.random() < 0.5:
            on_survival(self.durable_upto + 1)
            return self.sync()
        self._unsynced, self._unsynced_claims = [], []
        if disk == "lost":
            self.go_back(NOTHING)
        return []

    def image(self) -> Image:
        """The disk as it is now."""
        return Image(
            self.first_lsn,
            self._data.copy(),
            self.claims.copy(),
            self._snapshots.copy(),
            self._starts.copy(),
            self._turns.copy(),
        )

    def go_back(self, image: Image) -> None:
        """Restore an old image of the disk."""
        self.first_lsn = image.first_lsn
        self._data, self.claims = image.data.copy(), image.claims.copy()
        self._snapshots, self._starts = image.snapshots.copy(), image.starts.copy()
        self._turns, self.damages = image.turns.copy(), []
        self.verdict, self.is_refused = Verdict.CLEAN, False
        self.bytes_used = sum(map(len, self._data)) + RECORD_HEAD_BYTES * len(self._data)

    # Damage between two runs

    def harm(self, how: str, chance: Chance) -> bool:
        """Damage a closed segment that the next start reads, in one of the ways of `HARMS`.

        False if there is none, or if only bytes without a meaning were touched, those that fill up the last batch.
        """
        ends = list(pairwise(self._starts))
        closed = [index for index, (begin, after) in enumerate(ends) if begin < after > self.snapshot_upto + 1]
        if not closed:
            return False
        index = chance.choice(closed)
        swaps = how == "with two segments swapped" and index > 0
        harmed = [self._harm(how, begin, after, chance) for begin, after in ends[index - swaps : index + 1]]
        return any(harmed)

    def _harm(self, how: str, begin: int, after: int, chance: Chance) -> bool:
        """Whether a start has to say so: something cannot be read, or a record was lost."""
        data = bytearray(self._file(begin, after))
        if how == FLIPPED:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        elif how == CUT:
            del data[chance.randrange(len(data)) :]
        else:
            data.clear()
        judgement = judge(bytes(data), _OWNER, is_last=False) if data else Judgement(Verdict.BAD_HEADER)
        gaps, end = judgement.gaps, max((batch.end_lsn for batch in judgement.batches), default=begin)
        if judgement.header is None or (not gaps and end < after):  # only the next file shows that records are missing
            gaps = (Gap(0, 0, end, after, "missing"),)
            self.is_refused = True
        readable_lsns = {lsn for batch in judgement.batches for lsn in range(batch.lsn, batch.end_lsn)}
        has_footer = how == FLIPPED and judgement.header is not None
        file = f"{begin:016x}.seg"
        for gap in gaps:
            end = gap.end_lsn or after
            listed = self._spans(gap.first_lsn, end) if has_footer else ()
            record = DamageRecord(gap.first_lsn, end, file, gap.why)
            self.damages.append(Damage(record, listed, tuple(self.between(gap.first_lsn, end - 1))))
        self._lose(lsn for lsn in range(begin, after) if lsn not in readable_lsns)
        if gaps:
            self.verdict = Verdict.DAMAGED
        return bool(gaps) or len(readable_lsns) < after - begin

    def _lose(self, lsns: Iterable[int]) -> None:
        for lsn in lsns:
            place = lsn - self.first_lsn
            self.bytes_used -= len(self._data[place])
            self._data[place], self.claims[place] = b"", None

    def _file(self, begin: int, after: int) -> bytes:
        """A segment as on a real disk, except for its seal."""
        header = encode_header(SEGMENT, _OWNER, begin, 0, 0)
        salt, chain, data = decode_header(header).salt, 0, bytearray(header)
        turns = [turn for turn in self._turns if begin <= turn < after]
        for turn, end in pairwise([*turns, after]):
            stored = self._data[turn - self.first_lsn : end - self.first_lsn]
            records = [decode_record(record) for record in stored if record]
            buffer, _ = encode_body(records)
            chain = close_batch(buffer, Place(turn, len(records), chain), salt)
            data += buffer
        return bytes(data)
