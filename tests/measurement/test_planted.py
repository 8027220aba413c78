"""Bugs that were made on purpose are caught by the tests that stand against them."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.measurement.test_gates import BASIC
from tests.measurement.test_meters import Box, check_sums_never_run_backwards
from tests.measurement.test_numbering import check_restarts
from tests.measurement.test_schedule import check_changed_rate
from tests.measurement.world import World, metrics
from weft.base.calculated import Point
from weft.base.now import MILLISECOND, SECOND, Now
from weft.base.records import Entry
from weft.cores.measurement.core import Measurement
from weft.cores.measurement.gates import Limit
from weft.cores.measurement.lines import Line
from weft.cores.measurement.messages import Stop
from weft.cores.measurement.numbering import Numbering
from weft.cores.measurement.settings import MetricSpec
from weft.cores.measurement.tasks import Task
from weft.shell.meters.processes import Part, Sums


def test_planted_sum_of_processes_that_runs_backwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def forget(self: Sums, part: Part) -> None:
        """The ended process takes its part with it."""

    monkeypatch.setattr(Sums, "_end", forget)
    with pytest.raises(AssertionError, match="backwards"):
        check_sums_never_run_backwards(Box(tmp_path))


def test_planted_second_sample_at_a_changed_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    retune = Measurement._retune

    def twice(self: Measurement, task: Task, spec: MetricSpec, now: Now) -> None:
        """A new rate begins like a new metric, besides the tick that was due."""
        retune(self, task, spec, now)
        task.due_at = now.mono

    monkeypatch.setattr(Measurement, "_retune", twice)
    with pytest.raises(AssertionError):
        check_changed_rate(1_000, 400, SECOND + 5 * MILLISECOND)


def test_planted_era_that_is_kept_over_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Numbering.__init__

    def keep(self: Numbering, node: bytes, era: int) -> None:
        start(self, node, 10)

    def blind(self: Numbering, entries: Iterable[Entry]) -> None:
        """The journal is not asked."""

    monkeypatch.setattr(Numbering, "__init__", keep)
    monkeypatch.setattr(Numbering, "restore", blind)
    with pytest.raises(AssertionError, match=r"a number twice|era"):
        check_restarts([(3_000, True), (3_000, True)])


def test_planted_sample_that_is_sent_twice_by_a_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(self: Limit, line: Line, point: Point) -> None:
        """The sample before goes along even if it went already."""
        if line.before is not None:
            self._put(line, line.before)
        self._put(line, point)

    monkeypatch.setattr(Limit, "take", take)
    world = World(metrics(m={**BASIC, "threshold": ">0"}))
    world.run(5)
    world.order(Stop())
    with pytest.raises(AssertionError):
        assert len(dict.fromkeys(world.numbered)) == len(world.numbered)
