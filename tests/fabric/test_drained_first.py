"""A real root that calls safe only what a segment holds, and hides what its owner calls secret (LAK-006, LAK-014)."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.fabric.fabric import Fabric

pytestmark = pytest.mark.prove("a second story of the drain")

MORE = """
safe = "segment"
secrets = ["/CONFIG/all/metric/**"]
"""


def writes(fabric: Fabric) -> dict[str, dict[str, Any]]:
    """Rows of the configuration's segments by key."""
    found = sorted((fabric.lake / "drain" / "configuration").rglob("*.parquet"))
    return {row["key"]: row for path in found for row in pq.read_table(path).to_pylist()}


@pytest.mark.proves("LAK-006", "LAK-014")
def test_nodes_below_hear_that_it_is_safe_and_no_segment_holds_a_secret(tmp_path: Path) -> None:
    with Fabric(tmp_path, {"root": "", "sensor-1": "root"}, MORE) as fabric:
        fabric.measure_on(20)

        def safe() -> int:
            return int(fabric.status("sensor-1").get("cores", {}).get("carrier", {}).get("safe", 0))

        fabric.until(lambda: safe() > 10, "the sensor hears that something is in the lake")
        fabric.until(lambda: "/CONFIG/global/name" in writes(fabric), "the founding writes are drained")
        fabric.stop()
        made, (drained, again) = fabric.made(), fabric.drained()
    assert made == drained
    assert 0 == again
    rows = writes(fabric)
    hidden = rows["/CONFIG/all/metric/cpu"]
    assert hidden["body"].startswith('{"$masked":"')
    assert hidden["raw"] is None
    assert "per" not in repr(hidden["attributes"])
    assert rows["/CONFIG/global/name"]["raw"] is not None
    assert 0o600 == (tmp_path / "root" / "drain.json").stat().st_mode & 0o777
    assert 0o700 == fabric.lake.stat().st_mode & 0o777
