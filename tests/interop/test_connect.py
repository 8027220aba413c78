"""Whoever runs Spark, the same program makes the same tables (PIP-013, PIP-081): a server of Spark Connect, which needs
packages that Weft does not, the driver's own JVM, and clusters; and what happens when the server is killed.
"""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.interop.programs import needed
from tests.pipeline import kills
from tests.pipeline.conftest import INTERPRETED
from tests.pipeline.test_cluster import ROWS, Machine, again, fill
from weft.base.chance import Chance
from weft.lake.layout import Layout
from weft.pipeline.check import Check
from weft.pipeline.cluster import spark_home

PEERS: Final = Path(__file__).parents[2] / "var" / "peers" / "connect"
PORT: Final = 15_360
URL: Final = f"sc://127.0.0.1:{PORT}"
PATIENCE_S: Final = 240.0
SERVER: Final = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.ui.enabled": "false",
    **INTERPRETED,
}


def server_words(port: int) -> list[str]:
    """The program that serves Spark Connect on loopback."""
    told = SERVER | {"spark.connect.grpc.binding.port": str(port)}
    settings = [word for key, value in told.items() for word in ("--conf", f"{key}={value}")]
    name = "org.apache.spark.sql.connect.service.SparkConnectServer"
    words = ["org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", "--driver-memory", "512m"]
    return [str(spark_home() / "bin" / "spark-class"), *words, *settings, "--class", name, "spark-internal"]


class Server:
    """A server of Spark Connect on loopback."""

    def __init__(self, place: Path) -> None:
        program = server_words(PORT)
        ours = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        environment = kills.environment(place / "state") | ours
        with (place / "server.log").open("ab") as log:
            self.process = subprocess.Popen(program, stdout=log, stderr=log, cwd=place, env=environment)
        ends_at = time.monotonic() + PATIENCE_S
        while not self._answers():
            assert self.process.poll() is None, (place / "server.log").read_text("utf-8")[-2000:]
            assert time.monotonic() < ends_at

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", PORT), 1.0).close()
        except OSError:
            try:
                self.process.wait(0.2)
            except subprocess.TimeoutExpired:
                return False
            return False
        return True

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path)
    yield running
    running.kill()


def environment(place: Path) -> dict[str, str]:
    (packages,) = Path(needed(str(PEERS))).glob("lib/python3.*/site-packages")
    return {**kills.environment(place / "state"), "PYTHONPATH": str(packages)}


def run(place: Path, lake: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "weft.cli.main", "lake", "run", "--once", "--json", "--lake", str(lake), *words]
    return again(command, environment(place))


def done(ended: "subprocess.CompletedProcess[Any]") -> None:
    assert 0 == ended.returncode, ended.stderr[-3000:]


@pytest.mark.proves("PIP-013", "PIP-081")
def test_whoever_runs_spark_the_tables_are_those_of_the_journals(server: Server, tmp_path: Path, soak: bool) -> None:
    """Each takes a part, and goes on where another has ended."""
    journals = kills.Journals(tmp_path, tmp_path / "lake")
    lake = Layout(tmp_path / "lake")
    machine = Machine(tmp_path, PORT + 10)
    more = [("--remote", URL), ("--master", "local-cluster[2,1,1024]")] if soak else []
    modes = [("--remote", URL), ("--master", "local[2]"), *more, ("--master", machine.told["master"])]
    try:
        for chunk, words in zip(kills.scene(Chance("connect"), 15_000, len(modes)), modes, strict=True):
            journals.add(chunk)
            journals.drain()
            journals.finish()
            done(run(tmp_path, lake.root, *words))
    finally:
        journals.end()
        machine.process.terminate()
        machine.process.wait()
    assert {} == kills.judge(lake, journals)
    assert "equal" == Check(lake).run().state


@pytest.mark.soak
def test_a_server_that_goes_away_ends_the_driver_and_nothing_is_doubled(server: Server, tmp_path: Path) -> None:
    lake = fill(tmp_path / "lake")
    command = ["lake", "run", "--json", "--lake", str(lake.root), "--remote", URL]
    driver = subprocess.Popen(
        [sys.executable, "-m", "weft.cli.main", *command], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
        env=environment(tmp_path),
    )  # fmt: skip
    log = lake.table("bronze", "samples") / "_delta_log" / "00000000000000000001.json"
    while not log.exists() and driver.poll() is None:
        try:
            driver.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
    server.process.send_signal(signal.SIGKILL)
    _, told = driver.communicate(timeout=PATIENCE_S)
    assert 3 == driver.returncode, told[-3000:]
    assert b"does not answer any more" in told
    done(run(tmp_path, lake.root))
    verdict = Check(lake).run()
    assert ("equal", ROWS) == (verdict.state, verdict.rows["silver.samples"])


def test_nobody_at_the_address_is_one_sentence(tmp_path: Path) -> None:
    ended = run(tmp_path, fill(tmp_path / "lake").root, "--remote", "sc://127.0.0.1:15361")
    assert 3 == ended.returncode
    assert "no server of Spark Connect answers at sc://127.0.0.1:15361" in ended.stderr
    assert "Traceback" not in ended.stderr
