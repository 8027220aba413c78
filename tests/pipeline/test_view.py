"""What a person sees of a run: rates and sums of the samples, and a line for each other stream."""

import io

from rich.console import Console

from weft.cli.lake_view import View
from weft.pipeline.batch import Outcome
from weft.pipeline.job import Done


def done(job: str, number: int, silver: int) -> Done:
    outcome = Outcome(silver + 1, silver, 1, 0, 0)
    return Done(job, number, outcome, 1, 1500, 0.5, {}, 7 if job == "samples" else 0, 2)


def test_other_streams_are_counted_beside_the_samples() -> None:
    view = View(Console(file=io.StringIO(), width=100))
    for batch in (done("messages", 0, 3), done("samples", 4, 40), done("events", 0, 1), done("messages", 1, 1000)):
        view(batch)
    view.live.console.print(view.table(done("samples", 4, 40)))
    assert isinstance(view.live.console.file, io.StringIO)
    lines = [line.split(maxsplit=1) for line in view.live.console.file.getvalue().splitlines()]
    shown = {words[0]: words[1].strip() for words in lines if len(words) == 2}
    assert ("4, 1 segments in 0.50 s", "41", "40", "7") == tuple(
        shown[name] for name in ("batch", "rows", "silver", "missing")
    )
    assert ("1,003", "1") == (shown["messages"], shown["events"])
