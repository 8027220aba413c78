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
PATIENCE_S: Final = 120.0  # two busy cores take long to start three JVMs


def cluster(
    *,
    workers: int = 2,
    cores: int | None = None,
    memory_mb: int = 1024,
    port: int = 17_077,
    state: Path | None = None,
    json: Flag = False,
) -> None:
    """Run a Spark cluster on this machine: a master and workers of the installed Spark.

    `weft lake cluster --workers 2`, and beside it `weft lake run --master spark://127.0.0.1:17077`

    Prints its address when the workers run. All processes end with Ctrl-C, or when this process ends in any way. A worker
    that dies is started again. The cluster listens on loopback only, needs its secret, and takes no jobs by HTTP.

    Args:
        workers: number of workers.
        cores: of each worker; default: an equal share of the machine's.
        memory_mb: memory in MiB for the executors of each worker.
        port: of the master; its page is at the next port.
        state: directory of secret, settings and logs; default: in the user's state directory.
        json: the address as a JSON object.
    """
    from weft.pipeline.cluster import Plan
    from weft.pipeline.session import default_state

    if workers < 1 or not 1024 <= port < 65_535:
        raise UserError("usage", "a cluster has at least one worker, and a port from 1024", "--workers 2 --port 17077")
    each = cores or max(1, (os.cpu_count() or 1) // workers)
    plan = Plan((state or default_state()).absolute(), port, workers, each, memory_mb)
    _end_on_signals()
    os.umask(0o077)  # only the owner may read what executors write (PIP-088)
    running = Running(plan)
    try:
        running.start()
        facts = {"master": plan.url, "page": f"http://127.0.0.1:{port + 1}", "workers": workers, "cores": each}
        size = f"{workers} workers, {each} core{'s' * (each != 1)} each"
        print(msgspec.json.encode(facts).decode() if json else f"{plan.url}  {size}")
        sys.stdout.flush()
        running.follow()
    except KeyboardInterrupt:
        pass
    finally:
        running.stop()


class Running:
    """Master and workers as processes. A worker that dies is started again; when the master dies, all end."""

    def __init__(self, plan: Any) -> None:
        self.plan = plan
        self.fleet = Fleet(plan.place)
        self.master = Member("master", ())

    def start(self) -> None:
        """Start all; returns when the master knows all workers. UserError `unavailable`, `port-taken`, `no-java`."""
        from weft.pipeline import cluster as spark

        if spark.alive_workers(self.plan) >= 0:
            raise UserError("port-taken", f"{self.plan.url} is there already", "--port, another one")
        os.environ.update(spark.prepare(self.plan))
        self.master.arguments = spark.master_command(self.plan)
        self.fleet.add(self.master)
        self._until(lambda: spark.alive_workers(self.plan) >= 0, "the master does not answer")
        for number in range(1, self.plan.workers + 1):
            self.fleet.add(Member(f"worker-{number}", spark.worker_command(self.plan)))
        self._until(lambda: spark.alive_workers(self.plan) >= self.plan.workers, "not all workers have registered")

    def follow(self) -> None:
        """Restart dead workers until the master ends; then UserError `unavailable`."""
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
