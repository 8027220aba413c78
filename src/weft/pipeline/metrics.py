"""The counters of a driver as OpenMetrics, for a Prometheus that scrapes them (PIP-089): `weft lake run --metrics PORT`.

Counters start at zero with the driver. How many rows wait is looked up at each scrape, in the manifests of the segments
after the position that the job has committed.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from weft.lake.consumers import consumers
from weft.lake.layout import Layout
from weft.lake.reader import Source
from weft.pipeline.quarantined import reasons_of
from weft.pipeline.tables import STAGES

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily

HOST: Final = "127.0.0.1"
SECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
WAITING_MAX: Final = 4_096  # segments whose manifests one scrape reads


class Meter:
    """The numbers of one driver; `hear` counts, `serve` shows them."""

    def __init__(self, lake: Layout) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.lake = lake
        self.registry = registry = CollectorRegistry(auto_describe=False)
        stream = ("stream",)
        name = "weft_lake_{}".format
        self._rows = Counter(name("rows"), "rows by the step that took them", ("stream", "step"), registry=registry)
        self._segments = Counter(name("segments"), "segments, whole or in part", stream, registry=registry)
        self._bytes = Counter(name("bytes"), "bytes of whole segments", stream, registry=registry)
        self._refused = Counter(name("quarantined"), "rows refused", ("stream", "reason"), registry=registry)
        self._duplicates = Counter(name("duplicates"), "rows that were there", stream, registry=registry)
        self._batch = Histogram(name("batch_seconds"), "of a batch", stream, registry=registry, buckets=SECONDS)
        self._commit = Histogram(
            name("commit_seconds"), "of its transactions", stream, registry=registry, buckets=SECONDS
        )
        self._freshness = Gauge(name("freshness_seconds"), "from arrival to tables", stream, registry=registry)
        self._missing = Gauge(name("missing"), "numbers missing", stream, registry=registry)
        self._epoch = Gauge(name("lease_epoch"), "of the driver's lease", registry=registry)
        registry.register(_Waiting(lake))

    def hear(self, done: Any) -> None:
        """Count a batch (`weft.pipeline.job.Done`) that is in the tables."""
        job, outcome = done.job, done.outcome
        for step, rows in (("in", outcome.rows), ("silver", outcome.silver), ("values", outcome.values)):
            self._rows.labels(job, step).inc(max(rows, 0))
        self._segments.labels(job).inc(done.segments)
        self._bytes.labels(job).inc(done.bytes)
        self._duplicates.labels(job).inc(outcome.duplicates)
        if outcome.quarantined > 0:
            for reason, rows in self._reasons(done).items():
                self._refused.labels(job, reason).inc(rows)
        self._batch.labels(job).observe(done.seconds)
        self._commit.labels(job).observe(done.commit_s)
        if done.freshness_ms is not None:
            self._freshness.labels(job).set(done.freshness_ms / 1_000)
        self._missing.labels(job).set(done.missing)
        self._epoch.set(done.run)

    def _reasons(self, done: Any) -> dict[str, int]:
        """Refused rows by reason; all under an empty reason if the table cannot be read just now."""
        from deltalake.exceptions import DeltaError

        try:
            return reasons_of(self.lake, STAGES[done.job].quarantine, done.number)
        except (OSError, DeltaError):
            return {"": done.outcome.quarantined}

    def text(self) -> str:
        """All numbers, as OpenMetrics."""
        from prometheus_client import openmetrics

        written: bytes = openmetrics.exposition.generate_latest(self.registry)  # type: ignore[no-untyped-call]  # theirs
        return written.decode()

    def serve(self, port: int) -> int:
        """Serve them on loopback until the process ends; returns the port. OSError if it is taken."""
        from prometheus_client import start_http_server

        server, _ = start_http_server(port, HOST, self.registry)
        return int(server.server_port)


class _Waiting:
    """Counts, at each scrape, the rows that are not in the tables yet."""

    def __init__(self, lake: Layout) -> None:
        self.lake = lake

    def collect(self) -> "Iterator[GaugeMetricFamily]":
        from prometheus_client.core import GaugeMetricFamily

        rows = GaugeMetricFamily("weft_lake_lag_rows", "rows of segments that no table has yet", labels=("stream",))
        for stream in STAGES:
            if self.lake.drains(stream).is_dir():
                rows.add_metric((stream,), waiting_rows(self.lake, stream))
        yield rows


def waiting_rows(lake: Layout, stream: str, most: int | None = WAITING_MAX) -> int:
    """How many rows the segments have that the job of a stream has not committed.

    Only the first `most` of these segments are counted; None: all.
    """
    source = Source(lake, stream)
    position = next((each.offset.at for each in consumers(lake, stream) if each.name == stream), {})
    rows = 0
    for count, manifest in enumerate(source.manifests(position, source.latest())):
        if most is not None and count >= most:
            break
        rows += manifest.rows
    return rows - sum(row for _, row in position.values())
