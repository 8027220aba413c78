"""`weft metrics`: the catalogue at the command line (MET-001)."""

import json

import pytest

from weft.base.errors import UserError
from weft.cli.metrics import metrics


@pytest.mark.proves("MET-001", part="`weft metrics` says everything about one")
def test_one_detail_is_told_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == metrics("disk_percent")
    lines = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert ("DISK_PERCENT", "%", "gauge", "mount, device") == tuple(
        lines[key] for key in ("name", "unit", "kind", "labels")
    )
    assert '[metric.disk_percent] detail = "DISK_PERCENT", rate = "10s"' == lines["example"]


def test_a_name_that_is_not_known_gets_the_nearest() -> None:
    with pytest.raises(UserError) as caught:
        metrics("DISK_PERCENTAGE")
    assert "no-metric" == caught.value.code
    assert "DISK_PERCENT" in str(caught.value)


def test_programs_get_every_detail(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == metrics(json=True)
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert "Cel" == rows["TEMP"]["unit"]
    assert "B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB" == rows["MEMORY"]["limit"]


def test_people_get_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == metrics()
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("PRESSURE ")]
    assert ["PRESSURE", "us/s", "time", "in"] == line.split()[:4]
