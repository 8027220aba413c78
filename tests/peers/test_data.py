"""A program of any language sends its samples to +4 of a real root, and finds them in the lake; nonsense is set aside."""

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import zmq

from tests.fabric.fabric import Fabric
from weft.base.endpoints import DATA
from weft.base.now import MILLISECOND

SOURCE = b"10.9.8.7:5556"
PROPERTIES = json.dumps(
    {
        "type": ["str", "percent"],
        "detail": ["str", "CPU"],
        "config-name": ["str", "old_cpu"],
        "config-seqid": ["int", 3],
        "core": "2",
    }
).encode()
TIMES = (1_700_000_000_000, 1_700_000_000_500)


def sample(at_ms: int) -> list[bytes]:
    return [SOURCE, PROPERTIES, struct.pack(">Q", at_ms), struct.pack(">d", 95133.5), struct.pack(">d", 217439.0)]


def weft(fabric: Fabric, *words: str) -> str:
    command = [sys.executable, "-m", "weft.cli.main", *words, "--port", str(fabric.ports["root"])]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


COLUMNS = ("detail", "type", "at_ns", "value_double", "base_double")


def rows_of(fabric: Fabric) -> list[tuple[Any, ...]]:
    rows: list[dict[str, Any]] = []
    for path in sorted((fabric.lake / "drain" / "samples").rglob("*.parquet")):
        rows += pq.read_table(path, columns=[*COLUMNS, "config_name", "labels"]).to_pylist()
    mine = [row for row in rows if row["config_name"] == "old_cpu"]
    return [(*(row[name] for name in COLUMNS), tuple(sorted(dict(row["labels"]).items()))) for row in mine]


def measurement(fabric: Fabric) -> dict[str, int]:
    found: dict[str, int] = fabric.status("root").get("cores", {}).get("measurement", {})
    return found


def say(fabric: Fabric, pub: "zmq.Socket[bytes]") -> None:
    """Two samples, each twice, and nonsense, through a connection that stands."""
    pub.linger = 0
    pub.connect(f"tcp://127.0.0.1:{fabric.ports['root'] + DATA}")

    def beats() -> bool:
        pub.send_multipart([SOURCE, b'{"type":"HUGZ"}', b"", b"", b""])
        return measurement(fabric).get("foreign_beats", 0) > 0

    fabric.until(beats, "the connection stands")
    for at_ms in TIMES + TIMES:
        pub.send_multipart(sample(at_ms))
    pub.send_multipart([SOURCE, b"\x1b[2Jnonsense", b"", b"", b""])
    fabric.until(lambda: bool(fabric.status("root").get("refused")), "the nonsense is counted")


@pytest.mark.proves("MEA-020", "CFG-008", "CFG-093")
def test_samples_of_a_foreign_node_are_rows_of_the_lake_and_nonsense_is_set_aside(tmp_path: Path) -> None:
    with Fabric(tmp_path, {"root": ""}) as fabric:
        fabric.until(lambda: fabric.taken("root") > 0, "the root is at work")
        pub: zmq.Socket[bytes]
        with zmq.Context.instance().socket(zmq.PUB) as pub:
            say(fabric, pub)
        assert [2, 2, 1] == [measurement(fabric)[f"foreign{end}"] for end in ("", "_repeated", "_sources")]
        kept = json.loads(weft(fabric, "quarantine", "--json"))
        assert (1, ["properties"]) == (kept["refused"], [message["code"] for message in kept["messages"]])
        shown = weft(fabric, "quarantine")
        assert ("data  properties" in shown, ".[2Jnonsense" in shown, "\x1b" in shown) == (True, True, False)
        labels = (("core", "2"), ("source", SOURCE.decode()))
        expected = [("CPU", "percent", at_ms * MILLISECOND, 95133.5, 217439.0, labels) for at_ms in TIMES]
        fabric.until(lambda: rows_of(fabric) == expected, "the samples are in the lake")
        fabric.measure_on(5)
        fabric.stop()
        made, (drained, doubled) = fabric.made(), fabric.drained()
        assert ({}, 0) == (dict(made - drained), doubled)
