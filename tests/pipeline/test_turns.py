"""Batches that the driver takes in turn, and Spark's own streaming: each goes on where the other has ended."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.ground import MEM, Ground, taken
from weft.lake import consumers
from weft.lake.reader import Limits
from weft.pipeline.job import SamplesJob
from weft.pipeline.turns import Turns

ROWS = [(MEM, n, None) for n in range(5)]


class Pulled(Exception):
    pass


def job_of(ground: Ground) -> SamplesJob:
    ground.epoch += 1
    return SamplesJob(ground.lake, ground.spark, ground.epoch, ground.options)


def streamed(ground: Ground) -> list[int]:
    """What Spark's own query takes of what is there; numbers of its batches."""
    job, batches = job_of(ground), list[int]()

    def each(_: Any, number: int) -> None:
        batches.append(number)
        job.batch(number)

    stream = ground.spark.readStream.format("weft").option("lake", str(ground.lake.root)).option("stream", "samples")
    writer = stream.option("consumer", "samples").load().writeStream.foreachBatch(each)
    query = writer.option("checkpointLocation", str(job.checkpoint.directory)).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    return batches


def in_turn(ground: Ground, limits: Limits | None = None) -> list[int]:
    turns, done = Turns(job_of(ground), limits), list[int]()
    turns.until_now()
    while (batch := turns.take()) is not None:
        done.append(batch.number)
    return done


def numbers(ground: Ground) -> list[int]:
    return [row[0] for row in ground.rows("silver.samples", "sequence")]


def test_turns_and_a_streaming_query_follow_one_another(spark: SparkSession, ground: Ground) -> None:
    ground.write(taken(1, ROWS))
    ground.write(taken(6, ROWS))
    assert [0, 1] == in_turn(ground, Limits(5, 256))
    assert [] == in_turn(ground)
    ground.write(taken(11, ROWS))
    assert [2] == streamed(ground)
    ground.write(taken(16, ROWS))
    assert [3] == in_turn(ground)
    (consumer,) = consumers.consumers(ground.lake)
    assert [5] == [number for number, _ in consumer.offset.at.values()], "nobody needs the four segments any more"
    ground.write(taken(21, ROWS))
    assert [4] == streamed(ground)
    assert list(range(1, 26)) == numbers(ground)


def test_a_batch_that_was_begun_is_repeated_as_it_was(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    ground.write(taken(1, ROWS))
    turns = Turns(job_of(ground))
    with monkeypatch.context() as patch:
        patch.setattr(turns.job, "batch", lambda number: (_ for _ in ()).throw(Pulled))
        with pytest.raises(Pulled):
            turns.take()
    ground.write(taken(6, ROWS))
    again = Turns(job_of(ground))
    first, second = again.take(), again.take()
    assert first is not None
    assert second is not None
    assert (0, 5, 1, 5) == (first.number, first.outcome.silver, second.number, second.outcome.silver)
    assert again.take() is None
    assert list(range(1, 11)) == numbers(ground)
