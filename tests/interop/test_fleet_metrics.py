"""promtool is content with what a node tells of its fleet."""

import subprocess

import pytest

from tests.interop.programs import needed
from tests.shell.test_console import ROOT, SENSOR, at, batch
from tests.shell.test_fleetmetrics import CPU, DISK, NAMES, scraped
from weft.shell import fleetmetrics
from weft.wire.samples import Series

MORE = [("MEM_PART", "basic", {"part": "Cached"}), ("LOAD", "basic", {}), ("NET_IF", "rate", {"unit": "packets"})]


@pytest.mark.proves("MET-006", part="promtool check metrics is content")
def test_promtool_is_content_with_the_metrics_of_the_fleet() -> None:
    values = scraped()
    series = [CPU, DISK, *(Series(detail.lower(), detail, kind, labels) for detail, kind, labels in MORE)]
    for second in range(2):
        for node in (ROOT, SENSOR):
            values.note([batch(node, second, 1, *((one, 5 * second, 9 * second) for one in series))], at(second))
    text = fleetmetrics.exposition(values.fresh(NAMES.__getitem__, at(1)), values.left_out)
    assert text.count(b"# HELP") == len(series) + 1
    ended = subprocess.run([needed("promtool"), "check", "metrics"], input=text, capture_output=True, check=False)
    assert (0, b"", b"") == (ended.returncode, ended.stdout, ended.stderr)
