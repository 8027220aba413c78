"""What a person sees of a run: a line for each stream, and the last trouble."""

import io
from pathlib import Path

from rich.console import Console

from tests.pipeline.ground import DRAIN, MEM, event, taken
from tests.pipeline.plain import lake_of
from weft.cli.lake_view import COLUMNS, Bar, View
from weft.lake.segments import append_segment
from weft.pipeline.batch import Outcome
from weft.pipeline.job import Done


def done(job: str, number: int, silver: int) -> Done:
    outcome = Outcome(silver + 1, silver, 1, 0, 0)
    return Done(job, number, outcome, 1, 1500, 0.5, {}, 7 if job == "samples" else 0, 2)


def shown(view: View) -> list[str]:
    view.live.console.print(view.shown())
    assert isinstance(view.live.console.file, io.StringIO)
    return view.live.console.file.getvalue().splitlines()


def test_every_stream_has_its_line() -> None:
    view = View(Console(file=io.StringIO(), width=160))
    for batch in (done("messages", 0, 3), done("samples", 4, 40), done("events", 0, 1), done("messages", 1, 1000)):
        view(batch)
    head, *lines = shown(view)
    assert ["stream", *COLUMNS] == head.split()
    cells = {line.split()[0]: line.split()[1:] for line in lines}
    assert ["4", "0", "2", "1.5", "s", "41", "40", "0", "1", "0", "7"] == cells["samples"]
    assert ["1,005", "1,003", "0", "2", "0", "0"] == cells["messages"][5:]
    assert {"messages", "samples", "events"} == cells.keys()


def test_trouble_stays_to_be_seen_and_what_is_none_does_not_cover_it() -> None:
    view = View(Console(file=io.StringIO(), width=160))
    view(done("samples", 1, 1))
    at = "2026-11-22T09:30:00.000+00:00"
    view.note({"at": at, "level": "warning", "event": "hole-found", "stream": "samples", "missing": 3})
    view.note({"at": at, "level": "info", "event": "run-ended"})
    assert "09:30:00 hole-found: stream samples, missing 3" == shown(view)[-1].strip()


def test_of_a_run_that_ends_it_is_seen_how_many_rows_are_left(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake")
    append_segment(lake, "samples", DRAIN, [(1, taken(1, [(MEM, 1, None)] * 5))])
    append_segment(lake, "events", DRAIN, [(1, event(1, "a", "info"))])
    console = Console(file=io.StringIO(), width=80)
    with Bar(lake, console) as bar:
        (task,) = bar.progress.tasks
        assert ("Spark starts; rows", 0) == (task.description, task.completed)
        bar(done("samples", 0, 4))
        assert ("rows", 5, 6) == (task.description, task.completed, task.total)
