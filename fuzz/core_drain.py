"""The drain core: any story of records, segments, full lakes and crashes (FUZ-002)."""

from collections.abc import Iterable
from typing import Any

from fuzz.house.choices import Choices
from fuzz.house.life import Cast, Life, play
from fuzz.house.running import run
from fuzz.house.stories import drawn
from weft.base.records import CoreRecord, EraRecord, LostRecord, Record, StreamRecord
from weft.cores.drain.core import Drain
from weft.cores.drain.messages import (
    DrainSettings,
    InspectLake,
    LakeFound,
    LakeRefused,
    SegmentFailed,
    SegmentWritten,
    WriteSegment,
)

NODE = b"n" * 16


def _grow(life: Life, choices: Choices) -> None:
    """Other cores keep something."""
    records: list[Record] = []
    for lsn in range(life.next_lsn, life.next_lsn + 1 + choices.below(6)):
        stream = choices.pick((1, 1, 3, 4, 7))
        kinds: tuple[Record, ...] = (
            StreamRecord(stream, NODE, 1, lsn, lsn, lsn, "k", b"p" * 20, {"n": 1 + choices.below(50)}),
            LostRecord(stream, NODE, 1, lsn, lsn, "spool-full"),
            EraRecord(stream, NODE, 2, 1, lsn),
            CoreRecord("measurement", 1, b""),
        )
        records.append(choices.pick(kinds))
    life.keep(*records)


def _done(work: Any, choices: Choices) -> Any:
    """The lake obeys, or does not. What it holds at a start is what was told to be written, or less."""
    if isinstance(work, InspectLake):
        return LakeRefused(choices.pick(("full", "failed")), "x") if choices.flag(4) else LakeFound(())
    assert isinstance(work, WriteSegment), work
    if choices.flag(4):
        return SegmentFailed(work.stream, work.number, choices.pick(("full", "failed")))
    return SegmentWritten(work.stream, work.number, work.last_lsn, 1, 1, f"{work.number:032x}")


CAST = Cast(
    make=lambda start: Drain(DrainSettings(rows_max=60, bytes_max=1 << 12, age_s=1.0, idle_s=0.3)),
    says=(),
    orders=(lambda choices: SegmentFailed(1, 99, "failed"), LakeRefused("failed", "x")),
    works=_done,
    acts=(_grow,),
)


def one(data: bytes) -> None:
    """One root."""
    play(CAST, data)


def seeds() -> Iterable[bytes]:
    """Stories drawn from seeds."""
    return drawn("drain")


if __name__ == "__main__":
    run(one)
