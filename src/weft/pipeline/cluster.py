"""A standalone Spark cluster on this machine, from the package that is installed (PIP-081, PIP-088).

```
<state>/cluster/<port>/secret        what every program of the cluster must know; 0600
                       spark.conf    settings of master and workers
                       work/         logs and files of executors
```

The cluster consists of Spark's own programs, in the Java that the jobs use. Only programs that know the secret can join. The secret goes
from the file into a process's environment, never into its arguments, which every user of a machine can read. All ports
are on loopback. Jobs cannot be submitted by HTTP; the web pages are read-only.
"""

import json
import os
import re
import secrets
import shlex
import sys
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.base.errors import UserError
from weft.pipeline.java import choose
from weft.pipeline.session import AUTH_ENVIRONMENT, LAUNCHER_OPTIONS, LOG_SETTINGS, LOOPBACK

SECRET_BYTES: Final = 32
DAEMON_MB: Final = 192  # heap of a master or worker: they only start and supervise executors
ASK_S: Final = 2.0  # to wait for an answer of the master's web page
MASTER: Final = re.compile(r"spark://([^:,/]+):(\d{1,5})")
CONF: Final = {
    "spark.authenticate": "true",
    "spark.master.rest.enabled": "false",  # true would let anybody submit jobs without the secret
    "spark.master.ui.decommission.allow.mode": "DENY",
    "spark.ui.killEnabled": "false",
    "spark.worker.cleanup.enabled": "true",  # deletes directories of drivers that ended a day ago
    "spark.worker.cleanup.appDataTtl": "86400",
    "spark.worker.ui.retainedExecutors": "20",
    "spark.deploy.retainedApplications": "20",
}
"""Settings of master and workers. A driver sets those of its executors."""


class Plan(NamedTuple):
    """The cluster to start."""

    state: Path
    port: int = 17_077
    """Port of the master; its web page is one higher."""
    workers: int = 2
    cores: int = 1
    """Cores of each worker."""
    memory_mb: int = 1024
    """Memory for the executors of each worker."""

    @property
    def url(self) -> str:
        """The value for `weft lake run --master`."""
        return f"spark://{LOOPBACK}:{self.port}"

    @property
    def place(self) -> Path:
        return self.state / "cluster" / str(self.port)


def prepare(plan: Plan) -> dict[str, str]:
    """Write the files that the cluster reads; returns the environment for its programs.

    Each call makes a new secret. UserError `no-java` (exit 78).
    """
    place = plan.place
    (place / "work").mkdir(parents=True, exist_ok=True)
    for directory in (place.parent, place):
        directory.chmod(0o700)
    secret = secrets.token_hex(SECRET_BYTES)
    _write_private(place / "secret", secret)
    _write_private(place / "spark.conf", "".join(f"{key} {value}\n" for key, value in CONF.items()))
    options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}"]
    return {
        **os.environ,
        "JAVA_HOME": str(choose(plan.state).home),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_LAUNCHER_OPTS": LAUNCHER_OPTIONS,
        "SPARK_DAEMON_MEMORY": f"{DAEMON_MB}m",
        "SPARK_DAEMON_JAVA_OPTS": shlex.join(options),
        AUTH_ENVIRONMENT: secret,
        "PYSPARK_PYTHON": sys.executable,
    }


def master_command(plan: Plan) -> list[str]:
    """Arguments for this Python that start the master; it ends when its parent ends."""
    pages = ("--webui-port", str(plan.port + 1))
    return _spark_class(plan, "master.Master", "--host", LOOPBACK, "--port", str(plan.port), *pages)


def worker_command(plan: Plan) -> list[str]:
    """Arguments for this Python that start a worker; it ends when its parent ends."""
    limits = ("--cores", str(plan.cores), "--memory", f"{plan.memory_mb}m", "--work-dir", str(plan.place / "work"))
    return _spark_class(plan, "worker.Worker", "--host", LOOPBACK, "--webui-port", "0", *limits, last=plan.url)


def alive_workers(plan: Plan) -> int:
    """How many live workers the master reports; -1 if it does not answer."""
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{plan.port + 1}/json/", timeout=ASK_S) as answer:
            state: dict[str, Any] = json.load(answer)
    except (OSError, ValueError):
        return -1
    return int(state.get("aliveworkers", 0))


def secret_of(master: str, state: Path) -> Path | None:
    """The file with the secret of a cluster on this machine; None for any other master."""
    place = MASTER.fullmatch(master)
    if place is None or place[1] not in (LOOPBACK, "localhost"):
        return None
    file = state / "cluster" / place[2] / "secret"
    return file if file.exists() else None


def spark_home() -> Path:
    """The directory of the installed Spark; UserError `no-spark`."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise UserError("no-spark", "PySpark is not installed", "pip install 'weft[lake]'")
    return Path(found.origin).parent


def _spark_class(plan: Plan, name: str, *words: str, last: str = "") -> list[str]:
    program = str(spark_home() / "bin" / "spark-class")
    named = ("--properties-file", str(plan.place / "spark.conf"), *([last] if last else []))
    return ["-m", "weft.pipeline.leash", program, f"org.apache.spark.deploy.{name}", *words, *named]


def _write_private(path: Path, text: str) -> None:
    fresh = path.with_suffix(".tmp")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.rename(path)
