"""Sessions of Spark Connect: the driver runs here, Spark in a server (PIP-081).

The server opens the lake by the same path as the driver. Settings that a session can have are set as usual. The others
are those with which the server was started; `spark.speculation` is read, and refused if it is on. The driver writes tables,
commits, and holds the lease, as in every mode.
"""

import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from weft.base.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTRA: Final = "pip install grpcio grpcio-status googleapis-common-protos"
PORT: Final = 15_002  # default port of such a server
KNOCK_S: Final = 5.0  # to wait for a connection
RETRIES: Final = 6  # waits of 0.05, 0.2, 0.8, 3.2, 5 and 5 s
BACKOFF_MAX_MS: Final = 5_000
HADOOP: Final = "spark.hadoop."
SETTABLE: Final = ("spark.sql.", HADOOP)
"""Prefixes of settings that a session can have, except `STATIC`."""
STATIC: Final = ("spark.sql.warehouse.dir", "spark.sql.ui.", "spark.sql.codegen.cache.")
"""Prefixes of settings that only the start of the server can set."""


def connected(url: str, settings: Mapping[str, str]) -> "SparkSession":
    """A session of the server at `sc://HOST:PORT`, with the settings that a session can have.

    UserError `bad-option` if the address has another form, `no-connect` if a package is missing, `unavailable` (3) if no
    server answers, `refused-setting` if the server has `spark.speculation` on.
    """
    if not url.startswith("sc://"):
        raise UserError(
            "bad-option", f"{url!r} is not the address of a Spark Connect server", "--remote sc://HOST:15002"
        )
    try:
        import pyspark.sql.connect.session  # noqa: F401  # checks that all required packages are there
    except ImportError as error:
        raise UserError("no-connect", f"a package for Spark Connect is missing: {error}", EXTRA) from None
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    _try_connection(url)
    try:
        spark = SparkSession.builder.remote(url).getOrCreate()
        _limit_retries(spark)
        for key, value in settings.items():
            if is_settable(key):
                spark.conf.set(key.removeprefix(HADOOP), value)
        speculates = spark.conf.get("spark.speculation", "false")
    except PySparkException as error:
        raise _unavailable(url, str(error).partition("\n")[0]) from error
    if speculates != "false":
        why = "a speculative task writes its rows twice"
        raise UserError(
            "refused-setting", f"the server has spark.speculation on: {why}", "start it without that setting"
        )
    return spark


def is_settable(key: str) -> bool:
    """Whether a session may have its own value, different from the server's."""
    return key.startswith(SETTABLE) and not key.startswith(STATIC)


def is_remote(spark: "SparkSession") -> bool:
    """Whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def answers(spark: "SparkSession") -> bool:
    """Whether the server still executes commands."""
    try:
        return bool(spark.range(1).count())
    except Exception:  # noqa: BLE001  # any error means no
        return False


def parallelism(spark: "SparkSession") -> int:
    """How many tasks run at once. A server does not say, so the number of shuffle partitions is used."""
    if is_remote(spark):
        return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    return int(spark.sparkContext.defaultParallelism)


def _limit_retries(spark: Any) -> None:
    """Give up an unresponsive server after fifteen seconds instead of ten minutes."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    spark.client.set_retry_policies([DefaultPolicy(max_retries=RETRIES, max_backoff=BACKOFF_MAX_MS)])


def _try_connection(url: str) -> None:
    """Check that a server listens: Spark itself would retry for ten minutes."""
    place = urlsplit(url)
    try:
        socket.create_connection((place.hostname or "", place.port or PORT), KNOCK_S).close()
    except (OSError, ValueError) as error:
        raise _unavailable(url, str(error)) from None


def _unavailable(url: str, why: str) -> UserError:
    what = f"no server of Spark Connect answers at {url}: {why}"
    return UserError("unavailable", what, "start one there; or run without --remote, with --master local[*]")
