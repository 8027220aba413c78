"""Rows come back from quarantine when nothing refuses them any more, once, whatever dies meanwhile (PIP-033)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.ground import MEM, NET, A, B, Ground, Plot, event, lost, taken
from tests.pipeline.plain import lake_of, put
from weft.base.errors import UserError
from weft.cli import lake_quarantine
from weft.pipeline.check import Check
from weft.pipeline.job import Done
from weft.pipeline.releasing import Found, Releasing, look, plan
from weft.pipeline.ruleset import Rule, Rules
from weft.pipeline.tables import STAGES
from weft.wire.samples import Series

pytestmark = pytest.mark.prove("whole batches in Spark")

HOT = Rules(user=(Rule("hot", "value_long > 100"),))
DISK = Series("disk", "DISK", "basic", {})
INSTANTS = (
    "before coverage", "before silver", "before values", "before quarantine", "before progress", "after progress",
)  # fmt: skip


class Pulled(Exception):
    """The plug."""


def rules(plot: Plot, chosen: Rules) -> None:
    """A driver that starts again with these rules."""
    plot.restart(plot.options._replace(rules=chosen))


def bring(plot: Plot, reason: str = "rule:hot") -> tuple[Found, Done]:
    """What `weft lake quarantine retry` does."""
    found = look(plot.work, reason)
    plan(plot.work, reason, found.passing)
    return found, taken_up(plot)


def taken_up(plot: Plot) -> Done:
    """The batch that a driver does next."""
    done = plot.work.take()
    assert done is not None
    plot.number += 1
    return done


def tally(ground: Ground) -> list[tuple[Any, ...]]:
    ground.job.fold()
    columns = ("origin", "received", "silver_rows", "duplicates", "quarantined", "lost", "missing")
    return ground.rows("gold.completeness", *columns)


def values_of(ground: Ground) -> list[tuple[Any, ...]]:
    return ground.rows("silver.values", "origin", "sequence", "from_sequence", "result", "reason")


@pytest.mark.proves("PIP-033", "PIP-043")
def test_what_a_rule_refused_comes_back_when_the_rule_is_gone(ground: Ground) -> None:
    rules(ground, HOT)
    rows = [(MEM, 1, None), (MEM, 101, None), (NET, 10, None), (NET, 120, None), (NET, 30, None)]
    ground.take(taken(1, rows), taken(1, [(DISK, 500, None), (DISK, 5, None)], origin=B))
    ground.take(taken(4, [(NET, 121, None)]))  # a duplicate with other content: refused, too
    assert [(A, 5, 3, 1, 2, 0, 0), (B, 2, 1, 0, 1, 0, 0)] == tally(ground)
    pair = (A, 5, 3, 10.0, "across-lost")
    assert [(A, 1, None, 1.0, None), pair, (B, 2, None, 5.0, None)] == values_of(ground)
    rules(ground, Rules())
    found, done = bring(ground)
    assert (3, {}) == (found.held, found.reasons)
    assert (0, 3, 0, -3, 2) == done.outcome
    assert [] == ground.rows("quarantine.samples", "sequence", "reason")
    flagged = [row for row in ground.rows("silver.samples", "origin", "sequence", "flags", "batch") if row[2]]
    assert [(A, 2, ["after-lost"], 2), (A, 4, ["after-lost"], 2), (B, 1, ["after-lost"], 2)] == flagged
    assert [(A, 1), (A, 2), (A, 5), (B, 1), (B, 2)] == [row[:2] for row in values_of(ground)]
    assert pair in values_of(ground), "what was published is not retracted"
    assert [(A, 5, 5, 1, 0, 0, 0), (B, 2, 2, 0, 0, 0, 0)] == tally(ground)
    windows = ground.rows("gold.rollup_1d", "node", "n", "max", order=("node", "max"))
    assert [(A, 1, 10.0), (A, 2, 101.0), (B, 2, 500.0)] == windows
    assert {"mem", "net", "disk"} == {name for (name,) in ground.rows("silver.series", "config_name")}
    verdict = Check(ground.lake).run()
    assert ("equal", []) == (verdict.state, verdict.differences)
    ground.restart()
    ground.take(taken(6, [(NET, 40, None)]), lost(7, 7), taken(8, [(NET, 60, None)]))
    later = [row for row in values_of(ground) if row[1] > 5]
    assert [(A, 6, 5, 10.0, None), (A, 8, 6, 10.0, "across-lost")] == later
    again, _ = bring(ground)
    assert 0 == again.held


@pytest.mark.soak
@pytest.mark.proves("PIP-033", "PIP-022")
def test_whatever_dies_in_between_a_row_comes_back_once(ground: Ground) -> None:
    number = 1
    for instant in INSTANTS:
        rules(ground, HOT)
        ground.take(taken(number, [(MEM, number, None), (MEM, 100 + number, None)]))
        number += 2
        rules(ground, Rules())
        plan(ground.work, "rule:hot", look(ground.work, "rule:hot").passing)
        with pytest.raises(Pulled):
            pulled(ground, instant, lambda: ground.work.take())  # noqa: PLW0108  # it is another job after the restart
        if instant != INSTANTS[0]:
            rules(ground, HOT)  # its file was edited meanwhile: what was begun is done as it was begun
        assert (0, 1, 0, -1, 1) == taken_up(ground).outcome, instant
    assert list(range(1, number)) == [number for (number,) in ground.rows("silver.samples", "sequence")]
    assert [] == ground.rows("quarantine.samples", "sequence")
    assert number - 1 == len(values_of(ground))
    assert [(A, number - 1, number - 1, 0, 0, 0, 0)] == tally(ground)
    verdict = Check(ground.lake).run()
    assert ("equal", []) == (verdict.state, verdict.differences)


def pulled(ground: Ground, instant: str, act: Callable[[], object]) -> None:
    """Act with a plug that is pulled at an instant."""

    def watch(when: str, step: str) -> None:
        if f"{when} {step}" == instant:
            raise Pulled

    ground.restart(ground.options._replace(watcher=watch))
    try:
        act()
    finally:
        ground.restart(ground.options._replace(watcher=lambda *_: None))


@pytest.mark.soak
def test_a_return_that_forgets_quarantine_is_found(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Releasing, "_leave", lambda *_: None)
    rules(ground, HOT)
    ground.take(taken(1, [(MEM, 1, None), (MEM, 101, None)]))
    rules(ground, Rules())
    bring(ground)
    assert "broken" == Check(ground.lake).run().state


@pytest.mark.proves("PIP-034", "PIP-033")
def test_rules_and_returns_of_another_stream_and_what_stays(spark: SparkSession, tmp_path: Path) -> None:
    plot = Plot(tmp_path / "lake", spark, "events")
    noisy = Rule("noisy", "attributes['level'] = 'debug'", stream="events")
    rules(plot, Rules(user=(noisy, Rule("hot", "value_long > 1"))))
    done = plot.take(event(1, "a", "info"), event(2, "b", "debug"), event(3, "c", "debug"))
    assert (3, 1, 0, 2) == done.outcome[:4]
    rules(plot, Rules(user=(noisy._replace(when="key = 'c'", name="third"),)))
    found, done = bring(plot, "rule:noisy")
    assert (2, {"rule:third": 1}) == (found.held, found.reasons)
    assert (0, 1, 0, -1, 0) == done.outcome
    assert [(3, "rule:noisy")] == plot.rows("quarantine.events", "sequence", "reason")
    assert [1, 2] == [number for (number,) in plot.rows("silver.events", "sequence")]
    verdict = Check(plot.lake, deep=True).run()
    assert ("equal", []) == (verdict.state, verdict.differences)
    with pytest.raises(UserError, match="keeps them"):
        look(plot.work, "changed")
    plot.work.checkpoint.save(plot.work.last_number + 1, plot.work.checkpoint.coverage(plot.work.last_number))
    with pytest.raises(UserError, match="not done yet"):
        plan(plot.work, "rule:noisy", found.passing)


def test_rows_of_imported_logs_that_stay_are_counted_and_a_reason_without_rows_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = lake_of(tmp_path / "lake")
    assert 0 == lake_quarantine._imported(lake, "samples", "rule:hot")
    own, imported = ({"reason": "rule:hot", "attributes": attributes} for attributes in ([], [("dataset", "attic")]))
    put(lake, STAGES["samples"].quarantine, own, imported, imported)
    assert 2 == lake_quarantine._imported(lake, "samples", "rule:hot")
    lake_quarantine.show("future", lake=lake.root)
    assert "no row of samples was refused as future: weft lake quarantine ls\n" == capsys.readouterr().out
