"""A real Prometheus scrapes the root of a living fleet (MET-006)."""

import json
import select
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fabric.fabric import Fabric
from tests.interop.programs import needed
from tests.patience import PATIENCE_S
from tests.shell.ports import free_port

CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: weft
    metrics_path: /metrics/fleet
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


@contextmanager
def scraping(place: Path, target: int) -> Iterator[int]:
    """A Prometheus that scrapes a node's port; its own."""
    port = free_port()
    with running(place, port, CONFIG.format(port=target)):
        yield port


@contextmanager
def running(place: Path, port: int, config: str = "", *words: str) -> Iterator[None]:
    """A Prometheus on a port; what it has is still there when it runs again."""
    (place / "prometheus.yml").write_text(config, "utf-8")
    own = [f"--config.file={place / 'prometheus.yml'}", f"--storage.tsdb.path={place / 'tsdb'}", "--log.level=warn"]
    with (place / "prometheus.log").open("ab") as log:
        process = subprocess.Popen(
            [needed("prometheus"), *own, *words, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


def asked(port: int, query: str) -> dict[str, float]:
    """The newest value of each series of a query, by the name of its node."""
    said = urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{said}", timeout=5) as answer:
            found = json.load(answer)["data"]["result"]
    except OSError:
        return {}  # it begins
    return {one["metric"].get("node", ""): float(one["value"][1]) for one in found}


def until(port: int, query: str, nodes: set[str]) -> dict[str, float]:
    ends_at = time.monotonic() + PATIENCE_S
    while set(found := asked(port, query)) != nodes:
        assert time.monotonic() < ends_at, f"{query} has {found}"
        select.select([], [], [], 0.2)  # Prometheus tells nobody when it has scraped
    return found


@pytest.mark.proves("MET-006", part="a real Prometheus scrapes the values of all machines, and the up of its target")
def test_a_real_prometheus_has_the_values_of_all_machines(tmp_path: Path) -> None:
    fabric = Fabric(tmp_path, {"root": "", "sensor-1": "root"})
    with fabric, scraping(tmp_path, fabric.ports["root"] + 6) as port:
        shares = until(port, "max by (node) (weft_cpu_ratio)", {"root", "sensor-1"})
        assert all(0 <= value <= 1 for value in shares.values())
        used = until(port, 'weft_memory_bytes{metric="memory"}', {"root", "sensor-1"})
        assert all(value > 1 << 20 for value in used.values())
        assert {"": 1.0} == asked(port, 'up{job="weft"}')
        assert {} == asked(port, "scrape_samples_scraped == 0")
