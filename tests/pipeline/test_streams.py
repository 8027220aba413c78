"""A driver that is told which streams (PIP-080): Spark's own queries, and nobody else's tables."""

import threading
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.ground import DRAIN, MEM, event, taken
from tests.pipeline.plain import lake_of
from weft.lake.reader import Limits
from weft.lake.segments import append_segment
from weft.pipeline.executors import Executors
from weft.pipeline.job import Done, JobOptions
from weft.pipeline.runner import Runner
from weft.pipeline.steps import NOBODY, Watcher


def following(spark: SparkSession, runner: Runner) -> Runner:
    """A runner in the session of the tests, which it may not end."""
    runner._executors = Executors(spark, "local[2]")
    return runner


@pytest.mark.proves("PIP-080")
def test_only_the_wanted_streams_become_tables(spark: SparkSession, tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake")
    append_segment(lake, "samples", DRAIN, [(1, taken(1, [(MEM, 1, None)]))])
    append_segment(lake, "events", DRAIN, [(2, event(1, "a", "info"))])
    heard: list[Done] = []
    options = JobOptions(streams=("events", "logs"), gold_every_s=float("inf"))
    following(spark, Runner(lake, heard.append, options))._run(spark, 1, once=True)
    assert [("events", 0, 1)] == [(done.job, done.number, done.outcome.silver) for done in heard]
    assert {"events"} == {path.name for path in (lake.tables() / "silver").iterdir()}
    assert heard[0].bytes > 0 < heard[0].commit_s


def test_the_first_samples_are_in_the_tables_before_sparks_query_stands_and_what_was_begun_is_left_to_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_of(tmp_path / "lake")
    append_segment(lake, "samples", DRAIN, [(1, taken(1, [(MEM, 1, None), (MEM, 2, None)]))])
    heard, before = list[tuple[int, int]](), list[list[tuple[int, int]]]()
    start = Runner._start

    def started(runner: Runner, *given: Any, **more: Any) -> None:
        before.append(list(heard))
        start(runner, *given, **more)

    monkeypatch.setattr(Runner, "_start", started)
    monkeypatch.setattr("weft.pipeline.runner.FIRST", Limits(1, 1))

    def pulled(when: str, step: str) -> None:
        if (when, step) == ("before", "silver"):
            raise InterruptedError

    def run(epoch: int, watcher: Watcher = NOBODY) -> None:
        options = JobOptions(gold_every_s=float("inf"), watcher=watcher)
        runner = Runner(lake, lambda done: heard.append((done.number, done.outcome.silver)), options)
        following(spark, runner)._run(spark, epoch, once=True)

    run(1)
    assert ([[(0, 1)]], [(0, 1), (1, 1)]) == (before, heard)
    append_segment(lake, "samples", DRAIN, [(2, taken(3, [(MEM, 3, None)]))])
    with pytest.raises(InterruptedError):
        run(2, pulled)
    before.clear()
    run(3)
    assert ([[(0, 1), (1, 1)]], [(0, 1), (1, 1), (2, 1)]) == (before, heard)


@pytest.mark.proves("PIP-080")
def test_a_batch_that_takes_too_long_to_end_is_broken_off_without_a_word_and_repeated(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.pipeline.runner.FINISH_S", 0.0)
    lake = lake_of(tmp_path / "lake")
    append_segment(lake, "events", DRAIN, [(2, event(1, "a", "info"))])

    def linger(when: str, step: str) -> None:
        if (when, step) == ("before", "silver"):
            slow.stop()
            for _ in range(3_000):
                if slow._is_cut or threading.Event().wait(0.01):
                    break
            raise InterruptedError

    options = JobOptions(streams=("events",), gold_every_s=float("inf"))
    heard: list[Done] = []
    slow = following(spark, Runner(lake, heard.append, options._replace(watcher=linger)))
    slow._run(spark, 1, once=False)
    assert [] == heard
    following(spark, Runner(lake, heard.append, options))._run(spark, 2, once=True)
    assert [(0, 1)] == [(done.number, done.outcome.silver) for done in heard]


def test_what_ended_a_driver_is_the_query_that_ended_first_not_the_batch_that_was_broken_off_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.pipeline.runner.FINISH_S", 0.0)
    runner = Runner(lake_of(tmp_path / "lake"), lambda _: None)
    without_python = ConnectionError("Python worker failed to connect back.")
    broken = Mock(isActive=False, awaitTermination=Mock(side_effect=without_python))
    slow = Mock(isActive=True, stop=lambda: setattr(runner, "_failure", InterruptedError()))
    runner._queries, runner._executors = {"samples": slow, "events": broken}, Mock()
    runner._busy.acquire()
    with pytest.raises(ConnectionError, match="Python worker"):
        runner._follow(None, lambda: None, once=False)
    assert isinstance(runner._failure, InterruptedError)
