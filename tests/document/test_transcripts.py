"""The exact dialogues of documents: the transcripts of the vectors, and Alice, Bob and Charlie of the seed."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.document.meshnet import MeshNet
from tests.document.rig import EB, EPOCH, VECTORS, A, B, C, D, Line, Lone, Node, Rig, as_frames, transcripts
from weft.base.now import MILLISECOND
from weft.cores.document.messages import IdentityReused, PeerMismatch, SessionSettings
from weft.cores.document.session import Session
from weft.wire.document import frames
from weft.wire.document.messages import Bout, Helo, PeerAt, Xmsg
from weft.wire.document.operations import header_of, parse

OF_PEERS: Final = ("T01", "T02", "T03", "T04", "T05", "T06", "T07", "T11", "T12")
UUIDS: Final = {f"127.0.0.1:{50_000 + n}": uuid for n, uuid in enumerate((A, B, C, D), 1)}


def play(lines: list[Line], rig: Rig) -> None:
    """Feed what comes in at its time, and expect exactly what goes out."""
    lines = list(lines)
    while lines:
        line = lines.pop(0)
        said, counter = rig.at(line.at), line.means.get("after", {}).get("counter", "")
        before = rig.counters.get(counter, 0)
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
        assert before + bool(counter) == rig.counters.get(counter, 0)
        for spoken in (line, *expected):
            check_after(rig, spoken.means.get("after", {}))


def check_after(rig: Rig, after: dict[str, Any]) -> None:
    """What the vectors say of the node itself behind a line."""
    if "virgin" in after:
        assert after["virgin"] == rig.mesh.is_virgin
    if "session_time" in after:
        assert EPOCH + 100.505 == rig.session_time
    if "peers" in after:
        assert after["peers"] == len(rig.peers.all())
    if "link.drop 127.0.0.1:50002" in after.get("tell", []):
        assert [EB] == rig.dropped
        assert ["Bout 7"] == [event.theirs for event in rig.events(PeerMismatch)]
    if "identity.reused" in after.get("tell", []):
        assert [(B, A)] == [(event.peer, event.old) for event in rig.events(IdentityReused)]
        (opened,) = (work.uuid for work in rig.performed[-1:])
        assert opened == rig.node.context.uuid != A
    for source, latest in after.get("latest", {}).items():
        assert latest == rig.mesh.log.latest(frames.uuid_of(source))


def staged(make: Callable[[SessionSettings], Node], line: Line) -> Rig:
    """The node as a transcript finds it."""
    state = line.means["setup"].get("state", "")
    if "B is ACTIVE at EB since t=-60" not in state:
        return Rig(make)
    rig = Rig(make, at=-60)
    rig.befriend(B, EB, time=EPOCH - 60.0)
    assert not rig.mesh.is_virgin
    if "log holds B 1" in state:
        rig.hear(B, Xmsg(operations_of("S06")[B][0]))
    rig.pass_seconds(50, heard=[B])
    for sequence, body in enumerate(map(bytes.fromhex, line.means.get("own", [])), 1):
        issue(rig, body, sequence)
    rig.pass_seconds(10, heard=[B])
    return rig


def issue(rig: Rig, body: bytes, sequence: int) -> None:
    """An own operation whose bytes are given."""
    session = rig.node
    assert isinstance(session, Session)

    def append() -> None:
        session.log.append(body, parse(body))
        session.gossip.push(body, A, sequence)

    rig.do(append)


def operations_of(vector: str) -> dict[bytes, list[bytes]]:
    """The bodies of a vector of logs, by source."""
    rows = map(json.loads, VECTORS.with_name("document-sign.jsonl").read_text("utf-8").splitlines())
    (bodies,) = ([bytes.fromhex(frame) for frame in row["frames"]] for row in rows if row["id"] == vector)
    found: dict[bytes, list[bytes]] = {}
    for body in bodies:
        found.setdefault(header_of(body).source, []).append(body)
    return found


@pytest.mark.parametrize("name", OF_PEERS)
@pytest.mark.proves("PEE-010", "PEE-012", "PEE-030", "PEE-033", "PEE-041", "PEE-042", "PEE-043")
def test_a_dialogue_of_peers_goes_as_written(name: str) -> None:
    lines = transcripts(name)[name]
    play(lines, staged(Lone, lines[0]))


@pytest.mark.parametrize("name", sorted(transcripts()))
@pytest.mark.proves("PEE-010", "GSP-010", "GSP-015", "GSP-020", "GSP-022")
def test_a_whole_session_says_what_is_written_and_nothing_else(name: str) -> None:
    lines = transcripts(name)[name]
    play(lines, staged(Session, lines[0]))


# Alice, Bob and Charlie: the seed's own dialogue


WORDS: Final[dict[type, str]] = {Helo: "HELO", PeerAt: "PEER", Bout: "BOUT"}


def dialogue(net: MeshNet) -> list[str]:
    """Who says which of these words to whom, and of whom: `a->b PEER c`."""
    letters = dict(zip((member.endpoint for member in net.members), "abc", strict=True))
    return [
        f"{letters[sender]}->{letters[to]} {WORDS[type(message)]} {letters.get(getattr(message, 'endpoint', ''), '')}".strip()
        for sender, to, message in net.dialogue
        if type(message) in WORDS
    ]


@pytest.mark.proves("PEE-010", "PEE-030", "PEE-033")
def test_charlie_walks_up_to_alice_and_bob() -> None:
    alice, bob, charlie = range(3)
    net = MeshNet("dialogue", 3, delays=(MILLISECOND, MILLISECOND))
    net.meet(bob, alice)
    net.run(60)
    assert ["b->a HELO b", "a->b HELO a", "a->b BOUT", "b->a BOUT"] == dialogue(net)
    net.dialogue.clear()
    net.meet(charlie, alice)
    net.run(60)
    # The seed's eight lines less the three PEERs that say nothing new; and BOUT, which comes before introductions.
    assert [
        "c->a HELO c",
        "a->c HELO a",
        "a->c BOUT",
        "c->a BOUT",
        "a->b PEER c",
        "b->c HELO b",
        "c->b HELO c",
        "c->b BOUT",
        "b->c BOUT",
    ] == dialogue(net)
    assert net.is_full()
