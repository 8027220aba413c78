"""A real Prometheus is written to, and is away for a minute while the root dies: it gets every sample (MET-006)."""

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fabric.fabric import Fabric
from tests.interop.test_prometheus import running
from tests.shell.ports import free_port
from weft.base.records import Stream, StreamRecord
from weft.shell.journal import JournalReader
from weft.wire import samples

CUT_S = 60.0
EXPORT = """
[export.prom]
prometheus = "http://127.0.0.1:{port}/api/v1/write"
"""
Samples = dict[str, dict[int, float]]
"""Values of the metric `memory`, by the node's name and the instant in ms."""


def told(port: int) -> Samples:
    """What Prometheus has."""
    said = urllib.parse.urlencode({"query": 'weft_memory_bytes{metric="memory"}[20m]'})
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{said}", timeout=20) as answer:
            found = json.load(answer)["data"]["result"]
    except OSError:
        return {}  # it begins
    return {one["metric"]["node"]: {round(at * 1_000): float(value) for at, value in one["values"]} for one in found}


def measured(place: Path) -> Samples:
    """What stands in the journals of the nodes themselves."""
    return {name: dict(own(place / name / "journal")) for name in ("root", "sensor-1")}


def own(journal: Path) -> Iterator[tuple[int, float]]:
    entries = list(JournalReader(journal).entries())
    first = next(each.origin for _, each in entries if isinstance(each, StreamRecord) and each.stream == Stream.EVENTS)
    mine = [each for _, each in entries if isinstance(each, StreamRecord) and each.origin == first]
    for batch in [samples.decode(record.payload) for record in mine if record.stream == Stream.SAMPLES]:
        for row in batch.rows:
            if batch.series[row.series].config_name == "memory":
                yield batch.t0_ms + row.offset_ms, float(row.value)


class Exported(Fabric):
    """A fabric whose root writes to a Prometheus."""

    def settings(self, name: str, port: int, state: Path) -> str:
        text = super().settings(name, port, state)
        return text if name == "root" else text.replace(self.more, "")


@pytest.mark.proves("MET-006", part="a real Prometheus takes remote-write through a cut of a minute with nothing lost")
def test_a_prometheus_that_is_away_for_a_minute_gets_every_sample(tmp_path: Path) -> None:
    port = free_port()
    accepting = "--web.enable-remote-write-receiver"
    with Exported(tmp_path, {"root": "", "sensor-1": "root"}, EXPORT.format(port=port)) as fabric:
        with running(tmp_path, port, "", accepting):
            fabric.until(lambda: {"root", "sensor-1"} == set(told(port)), "it has values of both")
        ends_at = time.monotonic() + CUT_S
        fabric.until(lambda: time.monotonic() > ends_at - CUT_S / 2, "half of the cut")
        fabric.kill("root")
        fabric.until(lambda: time.monotonic() > ends_at, "the whole cut")
        assert "refused" in fabric.log_of("root"), "that it fails is said"
        with running(tmp_path, port, "", accepting):
            fabric.until(lambda: fabric.status("root").get("cores", {}).get("export", {}).get("samples", 0) > 0, "back")
            fabric.measure_on()
            fabric.fleet.stop(["sensor-1"], patience_s=30)
            fabric.until(lambda: fabric.status("root")["cores"]["carrier"]["spool_records"] == 0, "all is at the root")
            fabric.until(lambda: fabric.status("root")["cores"]["export"]["waiting"] == 0, "it has caught up")
            has = told(port)
        fabric.stop()
        made = measured(tmp_path)
    began = {name: min(own) for name, own in has.items()}
    sensor = {at: value for at, value in made["sensor-1"].items() if at >= began["sensor-1"]}
    assert sensor == has["sensor-1"]
    assert len(sensor) > CUT_S * 8, "ten a second"
    upto = max(has["root"])
    assert {at: value for at, value in made["root"].items() if began["root"] <= at <= upto} == has["root"]
