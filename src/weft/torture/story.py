"""The report of a run: figures and a verdict, or the story of a failure and how to repeat it."""

from collections.abc import Iterator
from typing import Final

from weft.torture.run import Outcome

STORY_LINES: Final = 200


def lines(outcome: Outcome) -> Iterator[str]:
    """The lines that are printed at the end of a run."""
    figures = outcome.figures
    if outcome.wrong:
        yield "the faults, and what happened:"
        yield from outcome.story[-STORY_LINES:]
    yield ""
    yield "acknowledged  " + ", ".join(f"{protocol} {count:,}" for protocol, count in figures["acknowledged"].items())
    yield "taps          " + (
        ", ".join(f"{what} {count:,}" for what, count in figures["taps"].items()) or "nothing heard"
    )
    yield "faults        " + (", ".join(f"{kind} {count}" for kind, count in figures["faults"].items()) or "none")
    if figures["frames"]:
        yield "cables        " + ", ".join(f"{what} {count:,}" for what, count in figures["frames"].items())
    if figures["closed"]:
        yield "keys          " + ", ".join(f"{what} {count}" for what, count in figures["keys"].items())
        yield f"strangers     knocked {figures['knocks']:,} times"
    yield "memory in MB, from the beginning to the end of the run:"
    for name, sizes in figures["memory_megabytes"].items():
        yield f"  {name:12} " + " ".join(f"{size:5}" for size in sizes)
    yield from (f"\nBROKEN  {each}" for each in outcome.wrong)
    yield ""
    if outcome.wrong:
        yield f"seed {outcome.plan.seed}: {len(outcome.wrong)} promises broken; disks, logs and history: {outcome.directory}"
        more = " --closed" if figures["closed"] else ""
        yield f"again: weft torture --plan {outcome.directory / 'plan.json'}{more}"
    else:
        yield f"seed {outcome.plan.seed}: lost 0, doubled 0, all replicas equal, every number accounted for"
