"""The export core: any story of samples, receivers that take them or do not, a journal that needs room, crashes (FUZ-002)."""

from collections.abc import Iterable
from typing import Any

from fuzz.house.choices import Choices
from fuzz.house.life import Cast, Life, play
from fuzz.house.running import run
from fuzz.house.stories import drawn
from weft.base.chance import Chance
from weft.base.records import StreamRecord
from weft.cores.export.core import Export
from weft.cores.export.messages import ExportSettings, GiveWay, RangeFailed, RangeSent, SendRange

NODE = b"n" * 16
SINKS = ("prometheus", "otlp")


def _grow(life: Life, choices: Choices) -> None:
    """Other cores keep something: samples, mostly."""
    count = 1 + choices.below(6)
    life.keep(
        *(
            StreamRecord(choices.pick((1, 1, 2)), NODE, 1, lsn, lsn, lsn, "weft.metric", b"p", {"n": 1})
            for lsn in range(life.next_lsn, life.next_lsn + count)
        )
    )


def _sent(work: Any, choices: Choices) -> Any:
    """The receiver takes all of a range, some of it, or nothing."""
    assert isinstance(work, SendRange), work
    assert work.warm <= work.after < work.upto, work
    if choices.flag(3):
        return RangeFailed(work.sink, work.attempt, "away")
    upto = work.after + 1 + choices.below(work.upto - work.after)
    return RangeSent(work.sink, work.attempt, upto, 1, choices.below(2), choices.below(2), "old")


CAST = Cast(
    make=lambda start: Export(ExportSettings(SINKS), Chance(f"{start}")),
    says=(),
    orders=(
        lambda choices: GiveWay(choices.below(60)),
        RangeSent("prometheus", 1, 1),
        RangeFailed("otlp", 1, "x"),
        RangeSent("nobody", 1, 1),
    ),
    works=_sent,
    acts=(_grow,),
)


def one(data: bytes) -> None:
    """One node."""
    play(CAST, data)


def seeds() -> Iterable[bytes]:
    """Stories drawn from seeds."""
    return drawn("export")


if __name__ == "__main__":
    run(one)
