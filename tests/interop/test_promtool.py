"""What `weft lake export` writes as OpenMetrics, read by Prometheus' own tool (12.6)."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.interop.programs import needed
from tests.patience import PATIENCE_S
from weft.lake.series import define
from weft.pipeline.exposition import Exposition

SAMPLE = re.compile(r"(\{.*\}) (\S+) (\d+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def row(number: int, kind: str = "percent", **labels: str) -> dict[str, Any]:
    """A sample of a series that these labels name."""
    is_paired = kind == "percent"
    series = define("cpu", "CPU", kind, "", labels).key()
    found: dict[str, Any] = {
        "node": 'n"1\\',
        "config_name": "cpu",
        "detail": "CPU",
        "type": kind,
        "param": "",
        "labels": list(labels.items()),
    }
    found |= {"series": series, "at_ns": (1_795_227_300_005 + 1000 * number) * 1_000_000, "value": number * 1.5}
    return found | {
        "value_long": None,
        "base": number * 7.0 if is_paired else None,
        "base_long": number * 7 if is_paired else None,
    }


def dumped(home: Path, text: str) -> list[tuple[dict[str, str], float, int]]:
    """What Prometheus has of a text: labels, value and milliseconds of each sample."""
    (home / "export.om").write_text(text, "utf-8")
    tool = needed("promtool")
    made = [tool, "tsdb", "create-blocks-from", "openmetrics", str(home / "export.om"), str(home / "out")]
    subprocess.run(made, check=True, capture_output=True, timeout=PATIENCE_S)
    (home / "out" / "wal").mkdir()  # the dump wants a log of what is not in blocks yet
    told = subprocess.run(
        [tool, "tsdb", "dump", str(home / "out")], check=True, capture_output=True, timeout=PATIENCE_S, encoding="utf-8"
    )
    found = []
    for line in told.stdout.splitlines():
        match = SAMPLE.fullmatch(line)
        assert match is not None, line
        labels = {name: json.loads(f'"{value}"') for name, value in LABEL.findall(match[1])}
        found.append((labels, float(match[2]), int(match[3])))
    return found


def ordered(samples: list[Any]) -> list[Any]:
    return sorted(((sorted(labels.items()), *rest) for labels, *rest in samples), key=str)


def test_prometheus_reads_what_is_exported(tmp_path: Path) -> None:
    rows = [row(number, "basic", where="süd\n") for number in range(50)]
    rows += [row(number, cpu=cpu, **{"a b": "x"}) for cpu in ("0", "1") for number in range(50)]
    rows.sort(key=lambda one: (one["config_name"], one["type"], one["node"], one["series"], one["at_ns"]))
    found = dumped(tmp_path, "".join(Exposition().lines(rows)))
    wanted = []
    for one in rows:
        at, labels = one["at_ns"] // 1_000_000, {"instance": one["node"], "weft_detail": "CPU"}
        if one["type"] == "basic":
            wanted.append((labels | {"__name__": "cpu", "where": "süd\n"}, one["value"], at))
            continue
        # a second type of one name is a second family
        labels |= {
            "__name__": "cpu__total",
            "cpu": dict(one["labels"])["cpu"],
            "weft_name": "cpu",
            "weft_type": "percent",
        }
        labels["weft_labels"] = '{"a b": "x"}'
        wanted += [(labels, one["value"], at), (labels | {"weft_part": "base"}, one["base"], at)]
    assert ordered(wanted) == ordered(found)
