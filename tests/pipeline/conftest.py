"""One Spark session for all tests that need one, and lakes to try things on."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from tests.pipeline import oracle
from tests.pipeline.ground import Ground, Plot, change, event, instance_change, log_record, message, operation, write
from tests.pipeline.worlds import play, world
from weft.base.chance import Chance
from weft.pipeline.session import Options, session


class Filled(NamedTuple):
    """A lake with rows in all its tables, and what they must be."""

    ground: Ground
    expected: oracle.Tables


CHANGES = (
    change("n1", 1, ("a", "b"), 5, tock=10),
    change("n2", 1, ("a", "b"), 6, tock=10),
    change("n2", 2, ("a", "c"), "x", tock=11),
    change("n1", 2, ("a", "c"), None, tock=12),
    change("n1", 3, ("a",), b"\xc1", tock=13),
)
"""Two at once, of which n1's has won; one deleted; one that nobody can read."""

QUICK = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
"""A JVM that lives for minutes does not earn back what it costs to compile well.

With one compiler Java keeps 48 MB for what is compiled, which Spark fills in a minute; then all of it is thrown away and
compiled again, over and over. So the room is what it is with both compilers.
"""

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Nor do plans over a dozen rows earn back the Java that is written and compiled for them. `weft lake run` as a process
in test_job_process, and this session in `make soak`, have it compiled, as users have."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    home = tmp_path_factory.mktemp("spark")
    settings = {} if request.config.getoption("--soak") else INTERPRETED
    options = Options(master="local[2]", heap_mb=512, state=home, log=home / "jvm.log", jvm=QUICK, settings=settings)
    running = session(options)
    yield running
    running.stop()


@pytest.fixture
def ground(spark: SparkSession, tmp_path: Path) -> Ground:
    return Ground(tmp_path / "lake", spark)


@pytest.fixture(scope="session")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """A lake of two batches, only the first of them folded; nobody writes to it but who folds the second.

    Of messages, events, changes of the store and of the catalog, log records, operations and writes it has one batch each.
    """
    history = world(Chance("filled"), batches=2)
    ground = Ground(tmp_path_factory.mktemp("filled") / "lake", spark)
    for arrival in history.arrivals:
        play(ground, arrival)
        if ground.number == 1:
            ground.job.fold()
    Plot(ground.lake.root, spark, "messages").take(message(2, b"x"), message(5, b"\xff", fmt="text"))
    Plot(ground.lake.root, spark, "events").take(event(1, "node.started", "info"), event(2, "", "", number=1 << 70))
    Plot(ground.lake.root, spark, "store").take(*CHANGES)
    instances = (instance_change(1, "register", {}), instance_change(2, "update", {}, epoch=None))
    Plot(ground.lake.root, spark, "catalog").take(*instances)
    Plot(ground.lake.root, spark, "logs").take(log_record(1), log_record(2, message=None))
    Plot(ground.lake.root, spark, "documents").take(operation(1), operation(3), operation(2, eff=None))
    Plot(ground.lake.root, spark, "configuration").take(write(1, "/app/x", b"1"), write(2, "/app/x", b"", epoch=None))
    return Filled(ground, history.expected())
