"""The whole road over an object store that somebody else wrote (PIP-105): moto's server, which keeps conditions as S3 does."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.interop.programs import needed
from tests.lake.test_publication import NODE, drain_all, read
from tests.patience import PATIENCE_S, until
from tests.pipeline import kills
from weft.lake.objects import ObjectPath, lake_path
from weft.shell.recorder import Recorder

PROGRAM: Final = Path(__file__).parents[2] / "var" / "peers" / "objects" / "bin" / "moto_server"
PORT: Final = 15_990
KEYS: Final = {
    "AWS_ACCESS_KEY_ID": "weft",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_ENDPOINT_URL": f"http://127.0.0.1:{PORT}",
}
URI: Final = "s3://fleet/home/lake"
SPARK: Final = """
import json, sys
from weft.pipeline.session import session
spark = session()
rows = spark.read.format("weft").option("lake", sys.argv[1]).option("stream", "samples").load()
print(json.dumps(sorted(row.sequence for row in rows.select("sequence").collect())))
spark.stop()
"""


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    words = [needed(str(PROGRAM)), "-H", "127.0.0.1", "-p", str(PORT)]
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    bucket = lake_path("s3://fleet")
    assert isinstance(bucket, ObjectPath)
    try:
        until(answers, "the object store answers")
        bucket.bucket.put("", b"")  # makes the bucket
        yield
    finally:
        running.kill()
        running.wait()
        bucket.bucket._line.close()


def answers() -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{PORT}/moto-api/", timeout=1.0).close()
    except OSError:
        return False
    return True


def weft(place: Path, *words: str) -> str:
    return said(place, [sys.executable, "-m", "weft.cli.main", *words])


def said(place: Path, words: list[str]) -> str:
    environment = {**kills.environment(place / "state"), **KEYS}
    done = subprocess.run(
        words, capture_output=True, check=False, text=True, timeout=2 * PATIENCE_S, env=environment, cwd=place
    )
    assert 0 == done.returncode, done.stderr[-3000:]
    return done.stdout


@pytest.mark.proves("LAK-009")
@pytest.mark.proves(
    "PIP-105", part="drain, copy, tables of the copy, and Spark's source, over a server that somebody else wrote"
)
@pytest.mark.usefixtures("store")
def test_what_is_drained_into_an_object_store_is_in_spark_and_in_the_tables_of_a_copy(tmp_path: Path) -> None:
    drain_all(Recorder(URI, NODE, read, print))
    assert "3 segments, 11 rows, 0 faults" in weft(tmp_path, "lake", "verify", "--deep", "--lake", URI)
    copy = str(tmp_path / "copy")
    told = [json.loads(line) for line in weft(tmp_path, "lake", "fetch", URI, "--lake", copy, "--json").splitlines()]
    assert {("samples", 2, 9), ("logs", 1, 2)} == {(row["stream"], row["segments"], row["rows"]) for row in told}
    assert "" == weft(tmp_path, "lake", "fetch", URI, "--lake", copy)
    assert [1, 2, 3, 4, 5, 8, 9, 10, 11] == json.loads(
        said(tmp_path, [sys.executable, "-c", SPARK, URI]).splitlines()[-1]
    )
    weft(tmp_path, "lake", "run", "--once", "--lake", copy)
    counted = weft(tmp_path, "sql", "SELECT count(*) AS n FROM silver.samples", "--json", "--lake", copy)
    assert [{"n": 9}] == json.loads(counted.splitlines()[0])
