"""The Spark session in which Weft's jobs and notebooks run (PIP-083).

It runs in the machine's own Java (or the wheel's), binds loopback only, uses UTC, logs only errors, and has settings
that the promises of the tables depend on. Settings that would break a promise (speculation, ANSI off, other timestamp
types) are refused with the reason.

On a cluster (any master but `local[…]`) the driver stays here: it plans, commits, and keeps the lease. Executors read
segments and write Parquet files, so they open the lake by the same path. The cluster's secret goes to the JVM in its
environment and to Spark in memory, never into a list of arguments (PIP-081, PIP-088).
"""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from weft.base.errors import UserError
from weft.pipeline import classes
from weft.pipeline.java import Java, choose

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAP_MB: Final = 512  # enough for the demonstration and for 100,000 rows/s (PIP-083)
LAUNCHER_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""For the short-lived JVM that only computes a command line: halves its run time."""
LOG_SETTINGS: Final = Path(__file__).with_name("log4j2.properties")
JVM_OPTIONS: Final = (
    "-XX:+UseSerialGC",  # with two cores and half a gigabyte a parallel collector gains nothing
    # Ten times later than the default: most work for a small batch is planning, and optimizing that code costs more
    # than it saves. Loops over many rows are still optimized.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
SMALL_HEAP: Final = (
    # Else Java begins with a 64th of the machine's memory, and gives nothing back; the maximum stays that of `heap_mb`.
    "-Xms64m",
    "-XX:NewRatio=7",  # an eighth of the heap for new objects: with a third, rows come no faster
    "-XX:TrimNativeHeapInterval=15000",  # ms; else glibc keeps what the compiler has freed. Java before 17.0.9 ignores it
    "-XX:MinHeapFreeRatio=20",
    "-XX:MaxHeapFreeRatio=40",
    "-XX:MetaspaceSize=160m",  # a driver needs as much for its classes; each step up to there would collect everything
)
"""For the driver's JVM."""
ARENAS: Final = ("MALLOC_ARENA_MAX", "2")
"""glibc gives each busy thread an arena of its own, up to eight per core, and keeps what was freed in it."""
LOOPBACK: Final = "127.0.0.1"
PARTITIONS_MAX: Final = 8
PARTITIONS: Final = "spark.sql.shuffle.partitions"
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
AUTH: Final = "spark.authenticate"
AUTH_ENVIRONMENT: Final = "_SPARK_AUTH_SECRET"
"""The environment variable in which Spark's programs look for the secret of their cluster."""
EXECUTOR_MB: Final = 768

SETTINGS: Final[dict[str, str]] = {
    "spark.app.name": "weft",
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    "spark.eventLog.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # the promises of the tables depend on these
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.hadoop.parquet.compression.codec.zstd.level": "1",
    "spark.hadoop.parquet.page.write-checksum.enabled": "true",
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    "spark.speculation": "false",
    "spark.scheduler.mode": "FAIR",  # between batches and folds
    # for Python and Arrow
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.python.authenticate.socketTimeout": "120s",  # 15 s are too few for a Python that starts on a busy machine
    # for a micro-batch of a few thousand rows: the cost is per job, not per row
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.codegen.cache.maxEntries": "2000",  # with 100, the entries of one batch would evict each other
    # Aggregates of structs and lists: with more keys than this, Spark sorts all rows with their contents.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "10000",
    "spark.sql.ui.explainMode": "simple",
    # Otherwise each column expression first sends its line in Python to the JVM: five calls instead of two.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.maxPlanStringLength": "1000",
    "spark.sql.maxConcurrentOutputFileWriters": "16",  # days of a batch; with more, its rows are sorted by day
    "spark.hadoop.parquet.summary.metadata.level": "none",
    # a job that runs for months must not keep history in its heap
    "spark.sql.ui.retainedExecutions": "2",
    "spark.ui.retainedJobs": "2",
    "spark.ui.retainedStages": "2",
    "spark.ui.retainedTasks": "20",
}
SMALL_PAGES: Final[dict[str, str]] = {
    # Each sort, hash map and broadcast takes at least one of these, which by default has 4 MB.
    "spark.buffer.pageSize": "256k",
    "spark.broadcast.blockSize": "128k",
}
"""Settings of a local session whose heap has at most `SMALL_PAGES_HEAP_MB`; in a larger one a task could run out of pages."""
SMALL_PAGES_HEAP_MB: Final = 2_048  # the 8,192 pages that Spark allows a task have as much
ON_A_CLUSTER: Final[dict[str, str]] = {
    "spark.executor.memory": f"{EXECUTOR_MB}m",
    # A task whose executor was given up may still run beside its second attempt; only one of them is committed.
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "1",
    "spark.executor.extraJavaOptions": shlex.join(JVM_OPTIONS),
    "spark.network.timeout": "60s",
    "spark.executor.heartbeatInterval": "5s",
}
"""Settings that are different if tasks run in other processes than the driver."""
CACHED: Final = ("PythonUtils", "PythonSQLUtils", "functions", "org.apache.spark.sql.functions")
"""Classes that PySpark looks up at each use, which searches all jars; cached here, they are found once."""
REFUSED: Final[dict[str, tuple[str, str]]] = {
    "spark.speculation": ("false", "a speculative task writes its rows twice"),
    "spark.sql.ansi.enabled": ("true", "without it an overflow becomes a wrong number"),
    "spark.sql.timestampType": ("TIMESTAMP_LTZ", "the tables keep instants"),
    "spark.sql.parquet.outputTimestampType": ("TIMESTAMP_MICROS", "the tables keep microseconds"),
    "spark.sql.session.timeZone": ("UTC", "days of the tables are days in UTC"),
}
"""Settings that a promise depends on: the only allowed value, and the reason."""


class Options(NamedTuple):
    """How to start a session."""

    master: str = "local[*]"
    heap_mb: int = HEAP_MB
    state: Path | None = None
    """Directory of launcher and class archive; default: the user's state directory."""
    settings: Mapping[str, str] = {}
    """More Spark settings, from `[lake.spark]`."""
    ui: bool = False
    """Whether Spark serves its own web pages, on loopback."""
    jvm: tuple[str, ...] = ()
    """More options of the JVM."""
    log: Path | None = None
    """Where the JVM's standard error goes; default: this process's."""
    inherited: tuple[int, ...] = ()
    """File descriptors that the JVM keeps open for its lifetime (the lock of a lease)."""
    secret: Path | None = None
    """The file with the secret of the cluster, if it has one."""
    partitions: int | None = None
    """Number of shuffle partitions; default: one per core, at most eight."""
    remote: str | None = None
    """A Spark Connect server, `sc://HOST:PORT`; then no Java starts here, and `master` is ignored."""


def session(options: Options | None = None) -> "SparkSession":
    """The session of this process, started on first use; later calls return the same.

    Raises UserError `no-java` (exit 78), `refused-setting` naming the promise that a setting would break, `no-secret`, or
    `unavailable` (3) if Java ends at its start, or a cluster does not answer or refuses this driver's secret.
    """
    options = options or Options()
    settings = settings_of(options)
    from py4j.protocol import Py4JError
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    if options.remote is not None:
        from weft.pipeline.remote import connected

        return connected(options.remote, settings)
    state = options.state or default_state()
    java = choose(state)
    _prepare_environment(java)
    settings[JAVA_OPTIONS] += f" {shlex.join(classes.options(state, java))}"
    try:
        with interrupt_kept():
            _start(settings, options)
            return SparkSession.builder.getOrCreate()
    except Py4JError as error:
        if is_local(options.master):
            raise
        what = f"{options.master} does not answer, or does not know this driver's secret"
        raise UserError("unavailable", what, "check that the cluster runs; --secret FILE, if it has one") from error


@contextlib.contextmanager
def interrupt_kept() -> Iterator[None]:
    """Leave SIGINT to the handler that the program has set for it, if it has: PySpark takes it when a session starts.

    PySpark's handler cancels all jobs, so that Ctrl-C would end a driver in the middle of a batch, and not behind it.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        is_taken = signal.getsignal(signal.SIGINT) is not before
        if is_taken and callable(before) and before is not signal.default_int_handler:
            signal.signal(signal.SIGINT, before)


def settings_of(options: Options) -> dict[str, str]:
    """Every Spark setting of a session; UserError `refused-setting` for one that breaks a promise."""
    for key, (only, why) in REFUSED.items():
        wanted = str(options.settings.get(key, only))
        if wanted.lower() != only.lower():
            raise UserError("refused-setting", f"{key} = {wanted}: {why}", f"leave it at {only}")
    state = options.state or default_state()
    jvm = [*JVM_OPTIONS, *SMALL_HEAP, *options.jvm, f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}"]
    return {
        **SETTINGS,
        "spark.master": options.master,
        "spark.driver.memory": f"{options.heap_mb}m",
        JAVA_OPTIONS: shlex.join(jvm),
        "spark.sql.warehouse.dir": (state / "warehouse").absolute().as_uri(),
        "spark.ui.enabled": str(options.ui).lower(),
        PARTITIONS: str(options.partitions or default_partitions(options.master)),
        **_for_its_place(options),
        **({} if options.secret is None else {AUTH: "true"}),
        **{key: _text(value) for key, value in options.settings.items()},
    }


def _for_its_place(options: Options) -> dict[str, str]:
    """The settings that depend on where tasks run, and with how much memory."""
    if options.remote is not None or not is_local(options.master):
        return ON_A_CLUSTER
    return SMALL_PAGES if options.heap_mb <= SMALL_PAGES_HEAP_MB else {}


def is_local(master: str) -> bool:
    """Whether tasks run in the driver's own JVM."""
    return master == "local" or master.startswith("local[")


def default_partitions(master: str) -> int:
    """Number of shuffle partitions: one per core, at most eight.

    >>> default_partitions("local[2]"), default_partitions("local-cluster[3,2,1024]"), default_partitions("local[64]")
    (2, 6, 8)
    """
    numbers = [int(number) for number in re.findall(r"\d+", master.partition("[")[2])]
    cores = os.cpu_count() or 1
    if master.startswith("local-cluster") and len(numbers) > 1:
        cores = numbers[0] * numbers[1]
    elif master == "local" or (is_local(master) and numbers):
        cores = numbers[0] if numbers else 1
    return max(1, min(cores, PARTITIONS_MAX))


def read_secret(file: Path) -> str:
    """The secret of a cluster. UserError `no-secret` if it cannot be read, or if other users can read it."""
    try:
        if file.stat().st_mode & 0o077:
            raise UserError("no-secret", f"other users may read {file}", f"make a new secret, then chmod 600 {file}")
        return file.read_text("utf-8").strip()
    except OSError as error:
        raise UserError(
            "no-secret", f"{file}: {error.strerror}", "--secret FILE; weft lake cluster writes one"
        ) from None


def default_state() -> Path:
    """The user's state directory."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "weft"


def is_running(patience_s: float = 0.0) -> bool:
    """Whether the JVM of the session is alive, and still is after `patience_s` seconds. If not, every call to Spark fails."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway  # only PySpark's gateway knows the process
    if gateway is None or gateway.proc is None:
        return gateway is not None
    with contextlib.suppress(subprocess.TimeoutExpired):
        gateway.proc.wait(patience_s)
    return gateway.proc.poll() is None


def _prepare_environment(java: Java) -> None:
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = LOOPBACK
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", LAUNCHER_OPTIONS)
    os.environ.setdefault(*ARENAS)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _caching(found: Any) -> Any:
    """A Java class that looks up each method once: for every look-up Java copies the list of all methods."""
    from py4j.java_gateway import JavaClass, JavaMember

    class Caching(JavaClass):  # type: ignore[misc]  # it has no types
        def __getattr__(self, name: str) -> Any:
            member = super().__getattr__(name)
            if isinstance(member, JavaMember):
                self.__dict__[name] = member
            return member

    return Caching(found._fqn, found._gateway_client)


def _start(settings: Mapping[str, str], options: Options) -> None:
    """Start the JVM and the context in it."""
    from pyspark import SparkConf, SparkContext, java_gateway
    from pyspark.errors import PySparkRuntimeError

    launch: Callable[..., Any] = java_gateway.launch_gateway
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    if options.secret is not None:
        os.environ[AUTH_ENVIRONMENT] = read_secret(options.secret)
    process: dict[str, Any] = {"pass_fds": options.inherited}
    try:
        if options.log is None:
            gateway = launch(conf, process)
        else:
            options.log.parent.mkdir(parents=True, exist_ok=True)
            with options.log.open("ab") as log:
                gateway = launch(conf, {**process, "stderr": log})
    except PySparkRuntimeError as error:
        where = options.log or "its messages above"
        mend = "start it again; weft doctor, if that does not help"
        raise UserError("unavailable", f"Java ended before Spark had started; see {where}", mend) from error
    if options.secret is not None:  # only now, because the options at the JVM's start are visible in the process list
        conf.set(f"{AUTH}.secret", os.environ[AUTH_ENVIRONMENT])
    SparkContext(conf=conf, gateway=gateway)
    jvm = gateway.jvm
    for name in CACHED:
        setattr(jvm, name, _caching(getattr(jvm, name)))
    # Hadoop would start two processes to write a checksum file beside each Parquet file, and nobody reads it.
    jvm.org.apache.hadoop.fs.FileSystem.getLocal(jvm.org.apache.hadoop.conf.Configuration()).setWriteChecksum(False)
