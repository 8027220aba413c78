"""The dialogues of specs/04 that are about logs, word for word."""

from tests.document.logs import A1, B1
from tests.document.rig import EB, A, B, Line, Rig, transcripts
from tests.document.test_transcripts import play, stage
from weft.cores.document.messages import IdentityReused
from weft.cores.document.session import Session
from weft.wire.document.messages import Xmsg

SINCE = "B is ACTIVE at EB since t=-60"


def pushed(lines: list[Line]) -> Rig:
    """Own operations 1..3 were pushed ten seconds ago."""
    rig = Rig(Session, at=-60)
    rig.befriend(B, EB, time=lines[0].at - 60 + 1_763_800_000)
    rig.pass_seconds(50, heard=[B])
    own = [A1, *(line.frames[1] for line in lines if line.direction == "out")]

    def push() -> None:
        for sequence, body in enumerate(own[:3], 1):
            rig.node.log.append(body)
            rig.node.gossip.push(body, A, sequence)

    said = rig.do(push)
    assert own[:3] == [word.message.body for word in said]
    rig.pass_seconds(10, heard=[B])
    return rig


def test_a_gap_is_asked_for_once_and_what_came_early_is_not_lost() -> None:
    lines = transcripts("T08")["T08"]
    rig = stage(Session, SINCE)
    play(lines, rig)
    assert lines[-1].means["after"]["latest"] == {"b0000000-0000-4000-8000-000000000002": rig.node.log.latest(B)}
    assert 2 == rig.node.engine.operations


def test_a_gsip_below_our_own_latest_is_answered() -> None:
    lines = transcripts("T09")["T09"]
    play(lines, pushed(lines))


def test_a_beat_that_names_more_than_we_hold_is_asked_about() -> None:
    rig = stage(Session, SINCE)
    rig.hear(B, Xmsg(B1))
    play(transcripts("T10")["T10"], rig)


def test_somebody_remembers_more_of_us_than_we_do() -> None:
    rig = stage(Session, SINCE)
    play(transcripts("T13")["T13"], rig)
    (told,) = rig.events(IdentityReused)
    assert (B, A, rig.node.station.uuid) == (told.peer, told.old, told.new)
    assert A != told.new
