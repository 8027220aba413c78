"""A foreign child lives with a real root and a real collector: it joins, replicates, follows, and may speak nonsense."""

import json
import uuid
from collections.abc import Iterator
from typing import Any, Final

import pytest
import zmq

from tests.fabric.fabric import FLEET
from tests.fabric.placed import PlacedFabric
from tests.fabric.test_config import in_here
from tests.peers import plain
from weft.shell.blocks import free_blocks

NAMES: Final = ("root", "collector-1")
LAB: Final = "/CONFIG/lab/"
MALFORMED, UNKNOWN_COMMAND, TOO_LARGE = 1, 2, 6
POLO: Final = (b"polo", b"127.0.0.1:27500", bytes(15) + b"\x01", b"{}")
ICANHAZ: Final = (b"ICANHAZ", b"", b"", b"", b"/CONFIG/lab/")


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlacedFabric]:
    with PlacedFabric(tmp_path_factory.mktemp("fabric"), NAMES) as fabric:
        fabric.until(lambda: fabric.is_joined("collector-1"), "the collector has its place")
        fabric.until(lambda: fabric.number("root") == fabric.number("collector-1") > 0, "it has the configuration")
        yield fabric


def config(fabric: PlacedFabric, *words: str) -> str:
    """What `weft config` prints at the root."""
    ran = in_here([*words, "--port", str(fabric.ports["root"])], fabric.place)
    assert 0 == ran.code, ran.said
    return ran.said


def next_write(updates: plain.Updates) -> plain.Update:
    while (found := updates.hear()) is None:
        pass
    return found


def changed(frames: tuple[bytes, ...], at: int, frame: bytes) -> tuple[bytes, ...]:
    return (*frames[:at], frame, *frames[at + 1 :])


@pytest.mark.proves("TOP-001", "TOP-002", "TOP-003", "TOP-010", "TOP-012", "CFG-010", "CFG-012")
def test_it_hears_the_call_of_a_root_that_knows_its_endpoint_and_is_assigned_a_parent(fabric: PlacedFabric) -> None:
    (block,) = free_blocks(1, 21_000)
    own = f"127.0.0.1:{block}"
    calls = plain.Calls(own)
    try:
        config(fabric, "set", "lab/members", json.dumps(["127.0.0.0/8", own]))
        key, root, said = calls.hear()
    finally:
        calls.close()
    assert ("/MARCO", fabric.endpoint("root"), FLEET, 1) == (key, root, said["fleet"], said["protocol"])
    for kind in plain.KINDS:
        node = uuid.uuid4()
        place = plain.join(root, own, node, kind, "plain")
        assert place == plain.join(root, own, node, kind, "plain")
        expected = {"parent": fabric.endpoint("collector-1"), "root": root, "level": "leaf", "group": "lab", "tier": 2}
        assert expected == {name: place[name] for name in expected}, kind
        record = plain.snapshot(root, f"/TOPO/lab/node/{node.hex}", "REQ").pairs[f"/TOPO/lab/node/{node.hex}"]
        assert (own, "leaf", "plain") == (record["endpoint"], record["level"], record["name"])


@pytest.mark.proves("CFG-001", "CFG-010", "CFG-011", "CFG-013", "CFG-018")
@pytest.mark.parametrize("kind", plain.KINDS)
def test_each_kind_of_socket_gets_the_same_snapshot_of_root_and_collector(fabric: PlacedFabric, kind: str) -> None:
    expected = fabric.values("root", LAB)
    for name in NAMES:
        number = fabric.number(name)
        found = plain.snapshot(fabric.endpoint(name), LAB, kind)
        assert expected == found.pairs
        assert 0 < found.number <= number
        assert found.messages == (1 if kind.endswith("REQ") else len(expected) + 1)


@pytest.mark.proves("CFG-018", "CFG-019", "CFG-040")
@pytest.mark.parametrize("kind", plain.KINDS)
def test_tips_and_chains_are_told(fabric: PlacedFabric, kind: str) -> None:
    root = fabric.endpoint("root")
    fabric.ask("root", "set", key=f"{LAB}metric/uptime", value={"detail": "UPTIME", "rate": "1s"})
    fabric.ask("root", "delete", key=f"{LAB}metric/uptime")
    tip = plain.snapshot(root, f"/.tip{LAB}", kind)
    assert ({}, 1) == (tip.pairs, tip.messages)
    assert tip.number == plain.snapshot(root, LAB, kind).number
    (chain,) = plain.snapshot(root, f"/.chains{LAB}", kind).pairs.items()
    assert ("/.chains/CONFIG/lab/metric/uptime", True) == (chain[0], chain[1]["deleted"])
    assert chain[1]["prev"] == tip.number - 1


@pytest.mark.proves("CFG-001", "CFG-005", "CFG-017", "CFG-045")
@pytest.mark.parametrize("parent", NAMES)
def test_a_write_reaches_its_subscription_and_beats_follow(fabric: PlacedFabric, parent: str) -> None:
    updates = plain.Updates(fabric.endpoint(parent), LAB)
    try:
        while updates.hear() is not None:  # a beat: the subscription has arrived
            pass
        prev = plain.snapshot(fabric.endpoint("root"), f"/.tip{LAB}", "REQ").number
        value = {"detail": "LOAD", "rate": "1s"}
        config(fabric, "set", "lab/metric/load", json.dumps(value))
        written = next_write(updates)
        assert ("/CONFIG/lab/metric/load", prev, value) == (written.key, written.properties["prev"], written.value)
        assert {"prev", "sum"} == set(written.properties)  # a plain peer passes over what it does not know
        assert fabric.status("root")["node"] == written.root.hex()
        assert plain.snapshot(fabric.endpoint("root"), LAB, "REQ").number == written.number
        assert value == plain.snapshot(fabric.endpoint(parent), LAB, "DEALER").pairs[written.key]
        assert updates.hear() is None
        config(fabric, "delete", "lab/metric/load")
        deleted = next_write(updates)
        assert (written.key, written.number, None) == (deleted.key, deleted.properties["prev"], deleted.value)
    finally:
        updates.close()


NONSENSE: Final[tuple[tuple[int, str, int, tuple[bytes, ...]], ...]] = (
    (plain.SNAPSHOTS, "frame-count", MALFORMED, ICANHAZ[:4]),
    (plain.SNAPSHOTS, "frame-count", MALFORMED, (*ICANHAZ, b"more")),
    (plain.SNAPSHOTS, "sequence", MALFORMED, changed(ICANHAZ, 1, b"seven..")),
    (plain.SNAPSHOTS, "uuid", MALFORMED, changed(ICANHAZ, 2, b"short")),
    (plain.SNAPSHOTS, "properties", MALFORMED, changed(ICANHAZ, 3, b'{"bundle":true,"bundle":true}')),
    (plain.SNAPSHOTS, "properties", MALFORMED, changed(ICANHAZ, 3, b'{"bundle":1}')),
    (plain.SNAPSHOTS, "too-large", TOO_LARGE, changed(ICANHAZ, 3, b"{" + b" " * 5_000 + b"}")),
    (plain.SNAPSHOTS, "subtree", MALFORMED, changed(ICANHAZ, 4, b"CONFIG/lab/")),
    (plain.SNAPSHOTS, "command", UNKNOWN_COMMAND, changed(ICANHAZ, 0, b"GIMME")),
    (plain.CONTROL, "frame-count", MALFORMED, POLO[:3]),
    (plain.CONTROL, "endpoint", MALFORMED, changed(POLO, 1, b"nowhere")),
    (plain.CONTROL, "uuid", MALFORMED, changed(POLO, 2, bytes(15))),
    (plain.CONTROL, "properties", MALFORMED, changed(POLO, 3, b"[NaN]")),
    (plain.CONTROL, "command", UNKNOWN_COMMAND, changed(POLO, 0, b"pollo")),
)
CHANNEL: Final = {plain.SNAPSHOTS: "serve", plain.CONTROL: "control"}


def refused(fabric: PlacedFabric, where: int, code: str) -> int:
    return int(fabric.status("root")["refused"].get(f"{CHANNEL[where]}:{code}", 0))


def standing(fabric: PlacedFabric) -> tuple[Any, ...]:
    """What nonsense must not change; who has said by now which number it runs is another matter."""
    tree = [{key: row[key] for key in row if key not in ("number", "at")} for row in fabric.status("root")["tree"]]
    return fabric.number("root"), fabric.values("root", "/"), tree


@pytest.mark.proves("CFG-007", "CFG-008", "CFG-011")
@pytest.mark.parametrize("kind", plain.KINDS)
def test_nonsense_is_answered_counted_and_changes_nothing(fabric: PlacedFabric, kind: str) -> None:
    before = standing(fabric)
    for where, named, answer, frames in NONSENSE:
        is_unknown = kind == "bare DEALER" and named == "command"  # neither a delimiter nor a known word
        reason, code = ("envelope", MALFORMED) if is_unknown else (named, answer)
        count = refused(fabric, where, reason)
        with plain.talk(fabric.endpoint("root"), where, kind) as said:
            said.say(*frames)
            with pytest.raises(plain.Refused) as told:
                said.hear()
        assert code == told.value.code, (reason, frames)
        assert len(told.value.text.encode()) <= 200
        assert count + 1 == refused(fabric, where, reason), (reason, frames)
    assert before == standing(fabric)


@pytest.mark.prove("a fleet under noise")
@pytest.mark.proves("CFG-008")
def test_noise_where_nobody_answers_leaves_the_root_at_work(fabric: PlacedFabric) -> None:
    before = standing(fabric)
    count = fabric.status("root")["refused"].get("announced:frame-count", 0)
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PUB)
    try:
        socket.linger = 0
        socket.connect(f"tcp://{fabric.endpoint('root')}")

        def shout() -> bool:
            socket.send_multipart([b"/MARCO", b"noise"])
            return bool(fabric.status("root")["refused"].get("announced:frame-count", 0) > count)

        fabric.until(shout, "the noise is counted")
    finally:
        socket.close()
    assert before == standing(fabric)
    fabric.measure_on(10)
    assert "ok" == fabric.status("root")["health"]["state"]
    assert before[1] == plain.snapshot(fabric.endpoint("root"), "/", "REQ").pairs
