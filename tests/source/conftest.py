"""One Spark session for all tests that need one."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from weft.pipeline.session import Options, session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    home = tmp_path_factory.mktemp("spark")
    running = session(Options(master="local[2]", heap_mb=512, state=home, log=home / "jvm.log"))
    yield running
    running.stop()
