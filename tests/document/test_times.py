"""Session time: who takes whose, and who keeps its own (PEE-040 to PEE-043)."""

import pytest

from tests.document.meshnet import MeshNet
from tests.document.rig import EB, EC, EPOCH, START, A, B, C, D, Rig, Word, only
from weft.base.now import MILLISECOND, SECOND, Now
from weft.cores.document.context import Context, seconds_of
from weft.cores.document.messages import SessionSettings, TimeSkew
from weft.wire.document.messages import Time

ASK = [Word(EB, Time())]


def asking() -> Rig:
    """A, a virgin, has just asked B."""
    rig = Rig()
    assert ASK == only(rig.befriend(B, EB), Time)
    return rig


def grown(uuid: bytes = A) -> Rig:
    """Who has taken a time, and is alone."""
    rig = Rig(uuid=uuid)
    rig.befriend(C, EC, time=EPOCH)
    assert not rig.mesh.is_virgin
    return rig


@pytest.mark.proves("PEE-040")
def test_session_time_starts_as_the_wall_clock_and_follows_no_jump_of_it() -> None:
    context = Context(SessionSettings(name="", uuid=A))
    context.begin(Now(START, EPOCH * SECOND))
    assert EPOCH == context.time
    for jump in (-3600, 86_400):
        context.begin(Now(START + 5 * SECOND, (EPOCH + jump) * SECOND))
        assert EPOCH + 5 == context.time


@pytest.mark.proves("PEE-041")
def test_a_virgin_asks_its_first_peer_three_times_at_most() -> None:
    rig = asking()
    asks = []
    for _ in range(40):
        asks += [rig.seconds for word in rig.pass_seconds(0.25) if word == ASK[0]]
    assert [0.5, 1.0] == asks
    assert rig.mesh.is_virgin


@pytest.mark.proves("PEE-041")
def test_a_virgin_with_another_peer_asks_nobody() -> None:
    rig = asking()
    rig.pass_seconds(2)
    assert [] == only(rig.befriend(C, EC), Time)


@pytest.mark.proves("PEE-041")
def test_nobody_is_asked_any_more_who_is_gone() -> None:
    rig = asking()
    rig.peers.forget(rig.peers.active()[0])
    assert [] == only(rig.pass_seconds(5), Time)


@pytest.mark.proves("PEE-041")
def test_who_has_a_time_tells_each_new_peer() -> None:
    rig = grown()
    rig.pass_seconds(2)
    assert [Word(EB, Time(EPOCH + 2.0))] == only(rig.befriend(B, EB), Time)


@pytest.mark.parametrize(("after", "way"), [(0.0, 0.0), (0.1, 0.05), (0.4, 0.2)])
@pytest.mark.proves("PEE-043")
def test_an_answer_is_half_its_way_old(after: float, way: float) -> None:
    rig = asking()
    rig.pass_seconds(after)
    rig.hear(B, Time(EPOCH + 1000.0))
    assert EPOCH + 1000 + way == rig.session_time
    assert not rig.mesh.is_virgin
    assert [] == only(rig.pass_seconds(5), Time), "who has a time does not ask"


@pytest.mark.proves("PEE-043")
def test_the_way_is_that_of_the_last_question() -> None:
    rig = asking()
    rig.pass_seconds(0.6)
    rig.hear(B, Time(EPOCH + 1000.0))
    assert EPOCH + 1000.05 == rig.session_time


@pytest.mark.proves("PEE-043")
def test_a_time_that_nobody_asked_for_is_taken_as_it_is() -> None:
    rig = asking()
    rig.pass_seconds(3)
    rig.hear(B, Time(EPOCH - 500.0))
    assert EPOCH - 500 == rig.session_time
    other = asking()
    other.befriend(C, EC)
    other.pass_seconds(0.2)
    other.hear(C, Time(EPOCH + 7.0))
    assert EPOCH + 7 == other.session_time


@pytest.mark.proves("PEE-043")
def test_who_has_a_time_keeps_it_and_tells_of_two_seconds_and_more() -> None:
    rig = grown()
    rig.befriend(B, EB)
    rig.hear(B, Time(EPOCH + 2.0))
    assert [] == rig.events(TimeSkew)
    rig.hear(B, Time(EPOCH + 2.5))
    rig.hear(B, Time(EPOCH + 3.5))  # which is nothing new
    rig.hear(B, Time(EPOCH + 1.5))
    rig.hear(B, Time(EPOCH - 90.0))
    assert [TimeSkew("", B, 2_500_000_000), TimeSkew("", B, -90 * SECOND)] == rig.events(TimeSkew)
    assert EPOCH == rig.session_time
    (peer,) = (peer for peer in rig.peers.active() if peer.id == B)
    assert -90 * SECOND == peer.skew_ns


@pytest.mark.proves("PEE-041")
def test_who_has_issued_an_operation_is_no_virgin() -> None:
    rig = asking()
    rig.do(rig.mesh.note_own)
    rig.hear(B, Time(EPOCH + 1000.0))
    assert EPOCH == rig.session_time
    assert [] == only(rig.pass_seconds(5), Time)


@pytest.mark.parametrize(("ours", "answers"), [(A, True), (b"\xff" + A[1:], False)])
@pytest.mark.proves("PEE-042")
def test_of_two_virgins_the_smaller_uuid_is_the_reference(ours: bytes, answers: bool) -> None:
    rig = Rig(uuid=ours)
    rig.befriend(B, EB)
    rig.pass_seconds(0.25)
    assert ([Word(EB, Time(EPOCH + 0.25))] if answers else []) == rig.hear(B, Time())
    assert answers is not rig.mesh.is_virgin
    rig.hear(B, Time(EPOCH + 1000.0))
    assert (EPOCH + 0.25 if answers else EPOCH + 1000.125) == rig.session_time


@pytest.mark.proves("PEE-042")
@pytest.mark.parametrize("uuid", [A, D], ids=["the smaller UUID", "the greater UUID"])
def test_who_has_a_time_answers_everybody(uuid: bytes) -> None:
    rig = grown(uuid)
    rig.befriend(B, EB)
    rig.pass_seconds(1)
    assert [Word(EB, Time(EPOCH + 1.0))] == rig.hear(B, Time())


@pytest.mark.parametrize("seconds", [0.0, -5.0, 1e300, float("inf"), float("nan")])
@pytest.mark.proves("PEE-006")
def test_a_time_that_is_none_changes_nothing_and_is_counted(seconds: float) -> None:
    rig = asking()
    rig.hear(B, Time(seconds))
    assert rig.mesh.is_virgin
    assert 1 == rig.counters["mesh.rx.bad_body"]


@pytest.mark.proves("PEE-041", "PEE-042", "PEE-043")
def test_all_who_join_in_turn_have_one_time_however_wrong_their_clocks_are() -> None:
    net = MeshNet("clocks", 8)
    for caller in range(1, 8):
        net.meet(caller, caller - 1)
        net.run(3)
    net.run_until_full(15)
    offsets = [member.core.context.offset_ns for member in net.members]
    known = [offset for offset in offsets if offset is not None]
    assert 8 == len(known)
    assert max(known) - min(known) <= 8 * 20 * MILLISECOND
    assert [False] * 8 == [member.core.mesh.is_virgin for member in net.members]


def test_seconds_are_written_in_whole_microseconds() -> None:
    assert "1763800000.25" == repr(seconds_of(1_763_800_000_250_000_999))


@pytest.mark.proves("PEE-043")
def test_however_wrong_a_clock_is_its_skew_can_be_told() -> None:
    rig = grown()
    rig.befriend(B, EB)
    rig.told.clear()
    rig.hear(B, Time(253_402_300_799.0))
    assert [TimeSkew("", B, (1 << 63) - 1)] == rig.told
