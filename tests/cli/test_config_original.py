"""What an original root of 2014 runs becomes a fleet's file: asked of a socket that says what such a root was heard to say."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import zmq

from tests.patience import PATIENCE_MS
from tests.wire.strict import frames_of, lines
from weft.base.errors import PeerError, UserError
from weft.cli.config_original import original
from weft.node.cfgtext import to_cfg
from weft.node.fleet import read_fleet
from weft.wire.dcamp2014 import Ask, Beat, End, Pair, decode, encode
from weft.wire.pickles import Made

SAID = [frames_of(line) for line in lines("config-dcamp2014.jsonl").values() if "KVSYNC" in line["what"]]
"""Rows of snapshots, of several fleets: only their groups `group1` make one fleet."""
GROUP1 = [frames for frames in SAID if b"/global/" in frames[0] or b"/CONFIG/group1/" in frames[0]]


@contextmanager
def root(answer: list[list[bytes]]) -> Iterator[str]:
    """An original root that gives one snapshot; its first port."""
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    port = router.bind_to_random_port("tcp://127.0.0.1")

    def serve() -> None:
        if not router.poll(PATIENCE_MS):
            return
        peer, *asked = router.recv_multipart()
        if decode(asked) == Ask("/"):
            for frames in answer:
                router.send_multipart([peer, *frames])

    served = threading.Thread(target=serve)
    served.start()
    yield f"127.0.0.1:{port - 3}"
    served.join()
    context.destroy(0)


@pytest.mark.proves("CFG-100", part="what a root of 2014 has is asked for, and is a fleet's file")
def test_what_an_original_root_runs_becomes_a_file_that_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = {frames[0]: frames for frames in reversed(GROUP1)}
    file = tmp_path / "fleet.toml"
    with root([encode(Beat("/TOPO/HUGZ")), *first.values(), encode(End("/", 9))]) as place:
        assert 0 == original(place, output=file)
    fleet = read_fleet(file.read_text("utf-8")).fleet
    assert fleet is not None
    assert (2, ("localhost:55700", "localhost:55730", "localhost:55760")) == (
        fleet.times["heartbeat"],
        fleet.groups["group1"].members,
    )
    assert {"proc": ("CPU", "2s"), "disk": ("DISK", "2s")}.items() <= {
        name: (metric["detail"], metric["rate"]) for name, metric in fleet.groups["group1"].metrics.items()
    }.items()
    assert [f"{file} says what {place} runs"] == capsys.readouterr().out.splitlines()
    with root([*first.values(), encode(End("/", 9))]) as place:
        original(place, json=True)
    assert {"file": None, "toml": file.read_text("utf-8")} == json.loads(capsys.readouterr().out)


def test_who_is_no_original_root_is_said_to_be_none(tmp_path: Path) -> None:
    with root([[b"WTF", b"\0\0\0\0", b"I know not you!"]]) as place, pytest.raises(UserError) as raised:
        original(place, output=tmp_path / "file")
    assert "bad-answer" == raised.value.code
    with root([]) as place, pytest.raises(UserError) as raised:
        original(place, within=0.05)
    assert "unavailable" == raised.value.code
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "value",
    [
        "text",
        [1],
        [Made("EndpntSpec", {"host": "h\n[x]", "port": 1})],
        [Made("EndpntSpec", {"host": None, "port": 1})],
        [Made("MetricSpec", {"config_name": "cpu"})],
    ],
)
def test_pairs_that_no_original_root_has_are_refused(value: object) -> None:
    with pytest.raises(PeerError):
        to_cfg([Pair("/CONFIG/global/heartbeat", 0, 2), Pair("/CONFIG/g/endpoints", 1, value)])


def test_every_setting_of_a_metric_is_told() -> None:
    spec = {"config_name": "m", "rate": 5, "detail": "PROC_MEM", "param": "nginx", "aggr": "sum"}
    over = Made("ThreshSpec", {"op": ">", "value": 10})
    every = Made("ThreshSpec", {"op": "*", "value": 60})
    texts = [
        to_cfg(
            [
                Pair("/CONFIG/global/heartbeat", 0, 2),
                Pair("/CONFIG/g/filters", 1, [Made("FilterSpec", {"action": "-", "match": "10.0.0.0/8"})]),
                Pair("/CONFIG/g/metrics", 2, [Made("MetricSpec", {**spec, "threshold": threshold})]),
                Pair("/TOPO/root", 3, None),
            ]
        )
        for threshold in (over, every)
    ]
    expected = """[global]
heartbeat = 2s

[g]
-10.0.0.0/8
m

[m]
rate = 5s
metric = PROC_MEM
threshold = THRESHOLD
param = nginx
aggregate = sum
"""
    assert [expected.replace("THRESHOLD", text) for text in (">10", "*60s")] == texts
