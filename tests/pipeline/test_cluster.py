"""A standalone cluster of this machine: who may take part, what a job is told, and that nothing of it outlives it."""

import contextlib
import json
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.pipeline import kills
from tests.pipeline.ground import DRAIN, MEM, A, taken
from weft.base.errors import UserError
from weft.lake.layout import Layout
from weft.lake.segments import append_segment, open_lake
from weft.pipeline import cluster, runner
from weft.pipeline.check import Check
from weft.pipeline.checkpoint import Checkpoint
from weft.pipeline.cluster import Plan
from weft.pipeline.runner import Executors
from weft.pipeline.session import Options, default_partitions, read_secret, settings_of

pytestmark = pytest.mark.prove("Spark in processes of its own")

PORT = 15_340
PATIENCE_S = 240.0
TRIES = 5
ROWS = 60_000  # more than the driver writes itself


@pytest.mark.proves("PIP-088", part="a cluster's secret is drawn, its owner's alone, and in no list of arguments")
def test_the_secret_is_for_its_owner_and_in_no_list_of_arguments(tmp_path: Path) -> None:
    plan = Plan(tmp_path / "state", port=PORT)
    first = cluster.prepare(plan)
    secret = cluster.secret_of(plan.url, plan.state)
    assert secret is not None
    assert 0o600 == stat.S_IMODE(secret.stat().st_mode)
    assert {0o700} == {stat.S_IMODE(place.stat().st_mode) for place in (plan.place, plan.place.parent)}
    text = read_secret(secret)
    assert text == first["_SPARK_AUTH_SECRET"]
    assert len(text) == 2 * 32
    told = [*cluster.master_command(plan), *cluster.worker_command(plan)]
    assert not any(text in word for word in told)
    assert not any(text in value for value in settings_of(Options(master=plan.url, secret=secret)).values())
    assert text != cluster.prepare(plan)["_SPARK_AUTH_SECRET"]
    secret.chmod(0o640)
    with pytest.raises(UserError) as refused:
        read_secret(secret)
    assert "no-secret" == refused.value.code


@pytest.mark.parametrize(
    ("options", "is_small"),
    [
        (Options(master="local[2]"), True),
        (Options(master="local[2]", heap_mb=2_048), True),
        (Options(master="local[2]", heap_mb=4_096), False),
        (Options(master="spark://127.0.0.1:1"), False),
        (Options(remote="sc://127.0.0.1:1"), False),
    ],
)
def test_pages_are_small_only_where_no_task_can_need_more_than_8192_of_them(options: Options, is_small: bool) -> None:
    assert is_small == ("spark.buffer.pageSize" in settings_of(options))


@pytest.mark.parametrize("master", ["spark://10.0.0.7:15340", "local[2]", "spark://127.0.0.1:15341", "yarn"])
def test_a_secret_is_found_for_a_cluster_of_this_machine_alone(tmp_path: Path, master: str) -> None:
    cluster.prepare(Plan(tmp_path, port=PORT))
    assert cluster.secret_of(master, tmp_path) is None
    assert cluster.secret_of(f"spark://localhost:{PORT}", tmp_path) is not None


def test_a_job_on_a_cluster_is_told_otherwise(tmp_path: Path) -> None:
    committer = "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version"
    (tmp_path / "secret").write_text("s", "utf-8")
    here = settings_of(Options(master="local[2]"))
    there = settings_of(Options(master="spark://127.0.0.1:1", secret=tmp_path / "secret", settings={"a.b": "true"}))
    assert ("2", None) == (here[committer], here.get("spark.authenticate"))
    assert ("1", "true", "true") == (there[committer], there["spark.authenticate"], there["a.b"])
    assert (
        "3g"
        == settings_of(Options(master=there["spark.master"], settings={"spark.executor.memory": "3g"}))[
            "spark.executor.memory"
        ]
    )


@pytest.mark.proves("PIP-027")
@pytest.mark.parametrize(
    "master,parts", [("local", 1), ("local[2]", 2), ("local[64]", 8), ("local-cluster[3,2,1024]", 6), ("local[2,4]", 2)]
)
def test_a_shuffle_has_a_part_per_core_at_most_eight_unless_it_was_fixed(master: str, parts: int) -> None:
    assert parts == default_partitions(master)
    assert str(parts) == settings_of(Options(master=master))["spark.sql.shuffle.partitions"]
    assert "5" == settings_of(Options(master=master, partitions=5))["spark.sql.shuffle.partitions"]
    assert 1 <= default_partitions("local[*]") <= 8
    assert 1 <= default_partitions("spark://127.0.0.1:7077") <= 8


@pytest.mark.proves("PIP-027")
def test_the_parts_of_a_shuffle_are_those_of_the_first_start(tmp_path: Path) -> None:
    checkpoint = Checkpoint(Layout(tmp_path), "samples")
    assert checkpoint.partitions() is None
    assert 5 == checkpoint.open(has_rows=False, partitions=5).partitions
    assert 5 == checkpoint.open(has_rows=False, partitions=8).partitions == checkpoint.partitions()
    path = Layout(tmp_path).checkpoint_id("samples")
    path.write_text(json.dumps({"id": "ab" * 16}), "utf-8")  # written before they were kept
    assert 2 == checkpoint.partitions()


class Working:
    """A session with so many executors."""

    def __init__(self) -> None:
        self.count = 1

    def __getattr__(self, name: str) -> Any:
        return self if name in {"sparkContext", "_jsc"} else lambda: self

    def size(self) -> int:
        return 1 + self.count


def test_a_driver_for_whom_nobody_works_ends_with_a_sentence() -> None:
    session: Any = Working()
    watched = Executors(session, "spark://127.0.0.1:1")
    session.count = 0
    watched.look(0.0)  # they may be on their way
    watched.look(runner.PATIENCE_S)
    session.count = 1
    watched.look(runner.PATIENCE_S + 10)
    session.count = 0
    watched.look(2 * runner.PATIENCE_S)
    with pytest.raises(UserError) as ended:
        watched.look(3 * runner.PATIENCE_S)
    assert "unavailable" == ended.value.code
    Executors(session, "local[*]").look(1e9)


def test_a_process_of_sparks_that_is_gone_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    session: Any = Working()
    monkeypatch.setattr(runner, "is_running", lambda _: True)
    assert runner._lost(session, Options()) is None
    monkeypatch.setattr(runner, "is_running", lambda _: False)
    ended = runner._lost(session, Options())
    assert ended is not None
    assert ("unavailable", "Spark's Java process has ended") == (ended.code, ended.text)
    monkeypatch.setattr(runner, "answers", lambda _: False)
    remote = runner._lost(session, Options(remote="sc://h:1"))
    assert remote is not None
    assert "sc://h:1 does not answer any more" == remote.text


def test_what_is_leashed_ends_with_its_parent(tmp_path: Path) -> None:
    leashed = [sys.executable, "-m", "weft.pipeline.leash", "/bin/sh", "-c", "echo $$; exec sleep 600"]
    program = f"import subprocess, sys\nsubprocess.Popen({leashed!r}).wait()"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    with contextlib.suppress(psutil.NoSuchProcess):
        assert child.wait(30) is None


def again(command: list[str], environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run it; and again where a machine with too much to do gave Spark's Python no time to start."""
    left = TRIES
    while True:
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False, text=True, env=environment)
        left -= 1
        if not left or done.returncode != 3 or "did not start in time" not in done.stderr:
            return done


class Machine:
    """`weft lake cluster` as a process, and drivers beside it."""

    def __init__(self, place: Path, port: int = PORT) -> None:
        self.place, self.port = place, port
        self.environment = kills.environment(place / "state")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "weft.cli.main", "lake", "cluster", "--port", str(port), "--json"],
            stdout=subprocess.PIPE, env=self.environment,
        )  # fmt: skip
        assert self.process.stdout is not None
        with self.process.stdout as said:  # it says nothing more
            self.told = json.loads(said.readline())
        self.all = psutil.Process(self.process.pid).children(recursive=True)

    def run(self, lake: Path, *words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "weft.cli.main", "lake", "run", "--once", "--json", "--lake", str(lake)]
        return again([*command, "--master", self.told["master"], *words], self.environment)

    def end(self, how: int) -> list[psutil.Process]:
        """Those of its processes that are left."""
        self.process.send_signal(how)
        self.process.wait(60)
        left: list[psutil.Process] = psutil.wait_procs(self.all, 30)[1]
        return left


@contextlib.contextmanager
def machine(place: Path) -> Iterator[Machine]:
    running = Machine(place)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def fill(root: Path) -> Layout:
    lake = Layout(root)
    open_lake(lake, "ab" * 16, 1)
    (root / "lake.toml").write_text(kills.SETTINGS, "utf-8")
    records = [taken(first, [(MEM, first + n, None) for n in range(500)], A) for first in range(1, ROWS, 500)]
    append_segment(lake, "samples", DRAIN, list(enumerate(records, 1)))
    return lake


@pytest.mark.soak
def test_a_cluster_makes_the_tables_lets_no_stranger_in_and_ends_as_a_whole(tmp_path: Path) -> None:
    """tests/interop/test_connect.py has the tables of a cluster in every run."""
    lake = fill(tmp_path / "lake")
    with machine(tmp_path) as running:
        done = running.run(lake.root)
        assert 0 == done.returncode, done.stderr[-3000:]
        assert ROWS == sum(json.loads(line)["silver"] for line in done.stdout.splitlines())
        assert "equal" == Check(lake, deep=True).run().state
        executors_ = [*(tmp_path / "state/weft/cluster" / str(PORT) / "work").glob("app-*/*")]
        assert 2 == len(executors_)
        secret = read_secret(tmp_path / "state/weft/cluster" / str(PORT) / "secret")
        lines = [kills.line_of(process) for process in running.all]
        assert 3 == sum("org.apache.spark.deploy" in line for line in lines)
        assert not any(secret in line for line in lines)
        (tmp_path / "wrong").write_text("0" * 64, "utf-8")
        (tmp_path / "wrong").chmod(0o600)
        stranger = running.run(fill(tmp_path / "other").root, "--secret", str(tmp_path / "wrong"))
        assert 3 == stranger.returncode, stranger.stderr[-3000:]
        assert "does not know this driver's secret" in stranger.stderr
        assert [] == running.end(signal.SIGKILL)
