"""`weft lake cluster`: a standalone Spark cluster on this machine, for as long as the command runs (PIP-081)."""

import os
import sys
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from weft.base.errors import UserError
from weft.cli.fleet import Fleet, Member
from weft.cli.kit.exits import notice
from weft.cli.kit.options import Flag

LOOK_S: Final = 0.25
PATIENCE_S: Final = 120.0  # two cores that have other things to do start three JVMs


def cluster(
    *,
    workers: int = 2,
    cores: int | None = None,
    memory_mb: int = 1024,
    port: int = 17_077,
    state: Path | None = None,
    json: Flag = False,
) -> None:
    """Run a Spark cluster on this machine: a master and workers, of the Spark that is installed.

    `weft lake cluster --workers 2`, and beside it `weft lake run --master spark://127.0.0.1:17077`

    Prints its address when the workers are there. Ctrl-C ends all of its processes; so does the end of this one, whatever
    ended it. A worker that dies is started again. Only loopback, only with its secret, and no jobs by HTTP.

    Args:
        workers: how many.
        cores: of each; default: those of the machine, shared.
        memory_mb: for the executors of each, in MiB.
        port: of the master; its page is one higher.
        state: where secret, settings and logs are kept; default: the user's state directory.
        json: the address as a JSON object.
    """
    from weft.pipeline.cluster import Plan
    from weft.pipeline.session import default_state

    if workers < 1 or not 1024 <= port < 65_535:
        raise UserError("usage", "a cluster has at least one worker, and a port from 1024", "--workers 2 --port 17077")
    each = cores or max(1, (os.cpu_count() or 1) // workers)
    plan = Plan((state or default_state()).absolute(), port, workers, each, memory_mb)
    _end_on_signals()
    os.umask(0o077)  # executors write what nobody else reads (PIP-088)
    running = Running(plan)
    try:
        running.start()
        told = {"master": plan.url, "page": f"http://127.0.0.1:{port + 1}", "workers": workers, "cores": each}
        print(msgspec.json.encode(told).decode() if json else f"{plan.url}  {workers} workers, {each} cores each")
        sys.stdout.flush()
        running.follow()
    except KeyboardInterrupt:
        pass
    finally:
        running.stop()


class Running:
    """Master and workers as processes; a dead worker comes back, a dead master is the end."""

    def __init__(self, plan: Any) -> None:
        self.plan = plan
        self.fleet = Fleet(plan.place)
        self.master = Member("master", ())

    def start(self) -> None:
        """Start everything; returns when all workers are known. UserError `unavailable`, `port-taken`, `no-java`."""
        from weft.pipeline import cluster as spark

        if spark.alive_workers(self.plan) >= 0:
            raise UserError("port-taken", f"{self.plan.url} is there already", "--port, another one")
        os.environ.update(spark.prepare(self.plan))
        self.master.arguments = spark.master_command(self.plan)
        self.fleet.add(self.master)
        self._until(lambda: spark.alive_workers(self.plan) >= 0, "the master does not answer")
        for number in range(1, self.plan.workers + 1):
            self.fleet.add(Member(f"worker-{number}", spark.worker_command(self.plan)))
        self._until(lambda: spark.alive_workers(self.plan) >= self.plan.workers, "not all workers came")

    def follow(self) -> None:
        """Until the master ends. UserError `unavailable`."""
        while self._is_master_there():
            self.fleet.watch()
            for line in self.fleet.news:
                notice(line)
            self.fleet.news.clear()
            time.sleep(LOOK_S)

    def stop(self) -> None:
        self.fleet.stop_all()

    def _until(self, is_so: Any, otherwise: str) -> None:
        ends_at = time.monotonic() + PATIENCE_S
        while not is_so():
            if not self._is_master_there() or time.monotonic() > ends_at:
                raise self._failed(otherwise)
            time.sleep(LOOK_S)

    def _is_master_there(self) -> bool:
        if self.master.is_running:
            return True
        raise self._failed("the master has ended")

    def _failed(self, what: str) -> UserError:
        return UserError("unavailable", what, f"look into {self.plan.place}/*.log")


def _end_on_signals() -> None:
    import signal

    def on_signal(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGHUP, on_signal)
