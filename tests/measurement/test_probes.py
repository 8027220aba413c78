"""What people watch and no kernel file counts: files, addresses, failed units, shares (MET-002)."""

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.measurement.test_meters import Box, box, meters, one, read, spec
from weft.cores.measurement.messages import Verdict
from weft.shell.meters import Meters, probes

__all__ = ["box", "meters"]

pytestmark = pytest.mark.proves("MET-002", part="shares, probes and states of devices")


class Answer(BaseHTTPRequestHandler):
    """Says the status that its path names; 302 points elsewhere."""

    def do_GET(self) -> None:
        self.send_response(int(self.path[1:]))
        self.send_header("Location", "/500")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Answer) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def by_unit(meters: Meters, address: str) -> dict[str, float]:
    return {dict(labels)["unit"]: value for labels, value in read(meters, "HTTP", param=address).items()}


@pytest.mark.parametrize(("status", "up"), [(200, 1), (204, 1), (302, 1), (404, 0), (500, 0)])
def test_an_address_is_up_if_its_status_says_so(meters: Meters, server: str, status: int, up: int) -> None:
    found = by_unit(meters, f"{server}/{status}")
    assert (up, status) == (found["up"], found["status"])
    assert 0 < found["seconds"] < probes.HTTP_S


def test_an_address_where_nobody_is_is_down_and_has_no_status(meters: Meters) -> None:
    assert {"up": 0} == by_unit(meters, "http://127.0.0.1:9/")


def test_age_and_size_of_a_file(meters: Meters, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    file.write_bytes(b"x" * 1234)
    os.utime(file, (0, file.stat().st_mtime - 3600))
    assert 1234 == one(meters, "FILE_SIZE", param=str(file))
    assert 3600 <= one(meters, "FILE_AGE", param=str(file)) < 3700


def test_a_file_that_is_not_there_is_said(meters: Meters, tmp_path: Path) -> None:
    (reading,) = meters.measure((spec("FILE_AGE", param=str(tmp_path / "none")),))
    assert (Verdict.UNSUPPORTED, f"{tmp_path}/none: No such file or directory") == (reading.verdict, reading.why)


def test_shares_of_disks_are_those_of_psutil(meters: Meters) -> None:
    for labels, value in read(meters, "DISK_PERCENT").items():
        assert psutil.disk_usage(dict(labels)["mount"]).percent == pytest.approx(value, abs=0.5)


def test_share_of_memory_and_swap(box: Box) -> None:
    box.file("meminfo", "MemTotal: 1000 kB\nMemAvailable: 250 kB\nSwapTotal: 400 kB\nSwapFree: 300 kB\n")
    assert (75.0, 25.0) == (box.one("MEMORY_PERCENT"), box.one("SWAP_PERCENT"))


def test_a_machine_without_swap_says_so(box: Box) -> None:
    box.file("meminfo", "MemTotal: 1000 kB\nMemAvailable: 250 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n")
    assert "this machine has no swap" == box.reading("SWAP_PERCENT").why


def test_errors_and_drops_of_both_directions(box: Box) -> None:
    box.file("net/dev", "Inter-|\n face |\n  eth0: 9 9 1 2 0 0 0 0 9 9 3 4 0 0 0 0\n")
    assert {(("device", "eth0"),): 10} == box.read("NET_ERRORS")


def test_busy_graphics_processors(box: Box) -> None:
    for card, text in (("card0", "37\n"), ("card1", "")):
        place = box.sys / "class" / "drm" / card / "device"
        place.mkdir(parents=True)
        (place / "gpu_busy_percent").write_text(text)
    assert {(("device", "card0"),): 37} == box.read("GPU")


def test_starts_of_processes_are_counted_once_each(box: Box) -> None:
    box.process(7, "web", start=10)
    assert 1 == box.one("PROC_STARTS", param="web")
    assert 1 == box.one("PROC_STARTS", param="web")
    box.end(7)
    box.process(8, "web", start=20)
    assert 2 == box.one("PROC_STARTS", param="web")


def test_units_that_failed_are_counted(box: Box, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "systemctl"
    program.write_text("#!/bin/sh\necho 'a.service loaded failed failed A'\necho 'b.service loaded failed failed B'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(probes, "SYSTEMD", str(tmp_path))
    assert 2 == box.one("UNITS_FAILED")
