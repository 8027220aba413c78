"""What a driver takes and in which order, how it ends, and what it leaves (PIP-080, PIP-100)."""

import threading
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.ground import DRAIN, MEM, event, log_record, taken
from tests.pipeline.plain import lake_of
from weft.base.errors import UserError
from weft.lake import consumers
from weft.lake.reader import Limits
from weft.lake.segments import append_segment
from weft.pipeline.job import Done, JobOptions
from weft.pipeline.runner import Runner
from weft.pipeline.steps import NOBODY, Watcher

pytestmark = pytest.mark.prove("whole batches in Spark")


@pytest.mark.proves("PIP-080")
def test_only_the_wanted_streams_become_tables(spark: SparkSession, tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake")
    append_segment(lake, "samples", DRAIN, [(1, taken(1, [(MEM, 1, None)]))])
    append_segment(lake, "events", DRAIN, [(2, event(1, "a", "info"))])
    heard: list[Done] = []
    options = JobOptions(streams=("events", "logs"), gold_every_s=float("inf"))
    Runner(lake, heard.append, options)._run(spark, 1, once=True)
    assert [("events", 0, 1)] == [(done.job, done.number, done.outcome.silver) for done in heard]
    assert {"events"} == {path.name for path in (lake.tables() / "silver").iterdir()}
    assert heard[0].bytes > 0 < heard[0].commit_s


@pytest.mark.proves("PIP-080", part="what has an end takes what was there when it began, of every stream")
def test_what_comes_while_a_driver_with_an_end_works_is_left_to_the_next(spark: SparkSession, tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake")
    append_segment(lake, "samples", DRAIN, [(1, taken(1, [(MEM, 1, None)]))])
    append_segment(lake, "events", DRAIN, [(2, event(1, "a", "info"))])
    heard: list[tuple[str, int]] = []

    def more(done: Done) -> None:
        heard.append((done.job, done.outcome.silver))
        if len(heard) == 1:
            append_segment(lake, "samples", DRAIN, [(3, taken(2, [(MEM, 2, None)]))])
            append_segment(lake, "events", DRAIN, [(4, event(2, "a", "info"))])
            append_segment(lake, "logs", DRAIN, [(5, log_record(1))])

    Runner(lake, more, JobOptions(gold_every_s=float("inf")))._run(spark, 1, once=True)
    assert [("samples", 1), ("events", 1)] == heard


@pytest.mark.proves("PIP-100", part="one driver takes all batches; what was begun is repeated as it was begun")
def test_a_small_batch_of_samples_comes_first_and_one_that_was_begun_is_repeated(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_of(tmp_path / "lake")
    append_segment(lake, "samples", DRAIN, [(1, taken(1, [(MEM, 1, None), (MEM, 2, None)]))])
    append_segment(lake, "events", DRAIN, [(2, event(1, "a", "info"))])
    heard = list[tuple[str, int, int]]()
    monkeypatch.setattr("weft.pipeline.runner.FIRST", Limits(1, 1))

    def pulled(when: str, step: str) -> None:
        if (when, step) == ("before", "silver"):
            raise InterruptedError

    def run(epoch: int, watcher: Watcher = NOBODY) -> None:
        options = JobOptions(gold_every_s=float("inf"), watcher=watcher)
        Runner(lake, lambda done: heard.append((done.job, done.number, done.outcome.silver)), options)._run(
            spark, epoch, once=True
        )

    run(1)
    assert [("samples", 0, 1), ("samples", 1, 1), ("events", 0, 1)] == heard
    append_segment(lake, "samples", DRAIN, [(3, taken(3, [(MEM, 3, None)]))])
    with pytest.raises(InterruptedError):
        run(2, pulled)
    append_segment(lake, "samples", DRAIN, [(4, taken(4, [(MEM, 4, None), (MEM, 5, None)]))])
    run(3)
    assert [("samples", 2, 1), ("samples", 3, 2)] == heard[3:]
    assert {"id", "coverage", "rules.json"} >= {path.name for path in (lake.checkpoint("samples") / "weft").iterdir()}
    assert ["weft"] == [path.name for path in lake.checkpoint("samples").iterdir()], "no log of Spark's"
    (consumer, _) = sorted(consumers.consumers(lake), key=lambda one: one.stream != "samples")
    assert {DRAIN: (4, 0)} == consumer.offset.at, "nobody needs the segments any more"


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
    slow = Runner(lake, heard.append, options._replace(watcher=linger))
    slow._run(spark, 1, once=False)
    assert [] == heard
    Runner(lake, heard.append, options)._run(spark, 2, once=True)
    assert [(0, 1)] == [(done.number, done.outcome.silver) for done in heard]


def test_a_driver_for_whom_nobody_works_ends_while_its_batch_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = UserError("unavailable", "nobody works", "look")
    monkeypatch.setattr("weft.pipeline.runner.Executors", Mock(return_value=Mock(look=Mock(side_effect=nobody))))
    end = threading.Event()
    with pytest.raises(UserError, match="nobody works"):
        Runner(lake_of(tmp_path / "lake"), lambda _: None)._follow(Mock(), partial(takes, end))
    end.set()


def takes(end: threading.Event) -> None:
    """A batch that waits for somebody who works."""
    end.wait(60)


def test_what_fails_a_batch_is_raised_where_the_driver_was_called(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        Runner(lake_of(tmp_path / "lake"), lambda _: None)._follow(Mock(), Mock(side_effect=ZeroDivisionError))


@pytest.mark.proves(
    "PIP-045", part="upkeep changes nothing that a fold under way has read, and runs again when it has ended"
)
def test_upkeep_waits_for_the_end_of_a_fold(tmp_path: Path) -> None:
    runner = Runner(lake_of(tmp_path / "lake"), lambda _: None)
    upkeep = runner._upkeep = Mock()
    runner._jobs = {"samples": Mock(is_folding=True), "events": Mock(is_folding=False)}
    runner._beside_batches()
    upkeep.turn.assert_not_called()
    runner._jobs["samples"] = Mock(is_folding=False)
    runner._beside_batches()
    upkeep.turn.assert_called_once()
