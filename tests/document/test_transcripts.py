"""The exact dialogues of specs/04: the transcripts of the vectors, and Alice, Bob and Charlie of the seed."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.document.rig import (
    EB,
    EPOCH,
    A,
    B,
    C,
    D,
    Line,
    Lone,
    Node,
    Rig,
    as_frames,
    transcripts,
)
from weft.cores.document.messages import PeerMismatch, SessionSettings
from weft.wire.document import frames

OF_PEERS: Final = ("T01", "T02", "T03", "T04", "T05", "T06", "T07", "T11", "T12")
UUIDS: Final = {f"127.0.0.1:{50_000 + n}": uuid for n, uuid in enumerate((A, B, C, D), 1)}


def play(lines: list[Line], rig: Rig) -> None:
    """Feed what comes in at its time, and expect exactly what goes out."""
    lines = list(lines)
    while lines:
        line = lines.pop(0)
        said = rig.at(line.at)
        if line.direction == "order":
            said += rig.meet(line.means["order"].removeprefix("meet "))
        elif line.direction == "in":
            uuid = UUIDS[line.peer]
            said += rig.hear(uuid, frames.decode([uuid, *line.frames]).message)
        else:
            raise AssertionError(f"{line.id}: nothing was said")
        expected = []
        while lines and lines[0].direction == "out":
            expected.append(lines.pop(0))
        assert [out.words for out in expected] == as_frames(said), line.id
        for spoken in (line, *expected):
            check_after(rig, spoken.means.get("after", {}))


def check_after(rig: Rig, after: dict[str, Any]) -> None:
    """What the vectors say of the node itself behind a line."""
    if "virgin" in after:
        assert after["virgin"] == rig.mesh.is_virgin
    if "session_time" in after:
        assert EPOCH + 100.505 == rig.session_time
    if "counter" in after:
        assert 1 <= rig.counters[after["counter"]]
    if "peers" in after:
        assert after["peers"] == len(rig.peers.all())
    if "link.drop 127.0.0.1:50002" in after.get("tell", []):
        assert [EB] == rig.dropped
        assert ["Bout 7"] == [event.theirs for event in rig.events(PeerMismatch)]


def stage(make: Callable[[SessionSettings], Node], state: str) -> Rig:
    """The node as a transcript finds it."""
    if "B is ACTIVE at EB since t=-60" not in state:
        return Rig(make)
    rig = Rig(make, at=-60)
    rig.befriend(B, EB, time=EPOCH - 60.0)
    assert not rig.mesh.is_virgin
    rig.pass_seconds(60, heard=[B])
    return rig


@pytest.mark.parametrize("name", OF_PEERS)
@pytest.mark.proves("PEE-010", "PEE-012", "PEE-030", "PEE-033", "PEE-041", "PEE-042", "PEE-043")
def test_a_dialogue_of_peers_goes_as_written(name: str) -> None:
    lines = transcripts(name)[name]
    play(lines, stage(Lone, lines[0].means["setup"].get("state", "")))
