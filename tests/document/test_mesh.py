"""Calling, greeting, keeping in touch, parting: when, in what order, and whom (PEE-010 to PEE-014)."""

from itertools import combinations, pairwise
from typing import Any, Final

import pytest

from tests.document.meshnet import MeshNet
from tests.document.rig import EA, EB, EC, ED, START, A, B, C, D, Rig, Word, gsip, only
from weft.base.effects import Disconnect, Tell
from weft.base.now import SECOND
from weft.cores.document import limits
from weft.cores.document.messages import (
    Found,
    LinkFull,
    Opened,
    OpenSession,
    PeerEvasive,
    PeerGone,
    PeerMismatch,
    Stop,
    Vanished,
)
from weft.cores.document.peers import Saying
from weft.wire.document.messages import Beat, Bout, Gbye, Gsip, Helo, PeerAt, Time, Xmsg

FAR: Final = "192.168.1.20"


def instants(rig: Rig, span: float, kind: type) -> list[float]:
    """Seconds from now at which something of that type is said to B."""
    start, found = rig.seconds, []
    while rig.seconds < start + span:
        due = rig.node.deadline()
        if due is None:
            break
        rig_said = only(rig.at(max(rig.seconds, (due - START) / SECOND)), kind)
        if rig.seconds <= start + span:
            found += [round(rig.seconds - start, 3) for word in rig_said if word.to == EB]
    return found


def friend(**changes: Any) -> Rig:
    """A with B, who has been ACTIVE for two seconds and told the time."""
    rig = Rig(**changes)
    rig.befriend(B, EB, time=1_763_800_000.0)
    rig.pass_seconds(2)
    rig.hear(B, Beat(0, rig.peers.view, 0))
    rig.told.clear()
    rig.dropped.clear()
    return rig


# Calling


@pytest.mark.proves("PEE-010")
def test_helo_is_said_again_more_and_more_seldom() -> None:
    rig = Rig()
    assert [Word(EB, Helo(EA))] == rig.meet(EB)
    assert [1, 3, 7, 15, 31, 61, 91] == instants(rig, 100, Helo)


@pytest.mark.proves("PEE-010")
def test_bout_is_said_again_until_the_peer_is_silent_for_thirty_seconds() -> None:
    rig = Rig()
    rig.hear(B, Helo(EB))
    assert [1, 3, 7, 15] == instants(rig, 30, Bout)
    assert [PeerGone("", B, EB, "silent")] == rig.events(PeerGone)


@pytest.mark.proves("PEE-010")
def test_a_lost_peer_is_called_soon_and_then_every_five_seconds_for_ten_minutes() -> None:
    rig = friend()
    rig.order(LinkFull("", EB))
    calls = instants(rig, 700, Helo)
    assert [1, 3, 7, 12, 17] == calls[:5]
    assert 597 == calls[-1]
    assert [] == rig.peers.all()


@pytest.mark.proves("PEE-010")
def test_a_lost_peer_that_a_person_has_named_is_called_for_ever() -> None:
    rig = Rig(peers=(EB,))
    assert [Word(EB, Helo(EA))] == rig.first
    rig.hear(B, Helo(EB), Bout(""))
    rig.pass_seconds(1)
    rig.order(LinkFull("", EB))
    calls = instants(rig, 900, Helo)
    assert [602, 632, 662] == [call for call in calls if 598 < call < 670]
    assert 870 < calls[-1]


@pytest.mark.proves("PEE-010")
def test_who_says_goodbye_is_left_alone_for_ten_seconds() -> None:
    rig = friend()
    assert [] == rig.hear(B, Gbye("later"))
    assert [PeerGone("", B, EB, "goodbye")] == rig.told
    assert [EB] == rig.dropped
    assert [10, 12, 16, 21] == instants(rig, 25, Helo)


@pytest.mark.proves("PEE-010", "PEE-011")
def test_another_session_is_refused_for_a_minute_and_then_called_if_a_person_named_it() -> None:
    rig = Rig(name="final", peers=(EB,))
    assert [Word(EB, Gbye("session"))] == rig.hear(B, Helo(EB), Bout("semi"))[-1:]
    assert [PeerMismatch("final", EB, "semi")] == rig.told
    assert [] == rig.peers.all()
    assert [] == rig.meet(EB, "peer")
    assert [60] == instants(rig, 60.5, Helo)
    came = Rig(name="final")
    came.hear(B, Helo(EB), Bout("semi"))
    assert [] == instants(came, 200, Helo)


@pytest.mark.proves("PEE-011")
@pytest.mark.parametrize("theirs", ["Final", "final ", "", "final;schema=plain"])
def test_sessions_are_compared_byte_for_byte(theirs: str) -> None:
    rig = Rig(name="final")
    rig.hear(B, Helo(EB), Bout(theirs))
    assert [PeerMismatch("final", EB, theirs)] == rig.told


@pytest.mark.proves("PEE-011")
def test_a_session_of_another_schema_says_so() -> None:
    rig = Rig(name="notes", schema="plain")
    assert Word(EB, Bout("notes;schema=plain")) in rig.hear(B, Helo(EB))


# Keeping in touch


@pytest.mark.proves("PEE-010")
def test_a_quiet_link_carries_a_beat_every_five_seconds() -> None:
    rig = friend()
    rig.hear(B, Beat(0, rig.peers.view, 0))
    first = rig.pass_seconds(20, heard=[B])
    assert {Beat(0, rig.peers.view, 0, ("c1", "z1"))} == {word.message for word in first}
    assert 4 == len(first)


@pytest.mark.proves("PEE-010")
def test_a_busy_link_carries_a_beat_every_fifteen_seconds_at_least() -> None:
    rig = friend()
    beats = []
    for _ in range(60):
        rig.do(lambda: rig.node.context.say(EB, Xmsg(b"<a/>")))
        rig.hear(B, gsip(A))
        beats += [rig.seconds for word in rig.pass_seconds(0.5) if isinstance(word.message, Beat)]
    assert [15] == [round(after - before) for before, after in pairwise(beats)]


@pytest.mark.proves("PEE-010")
def test_half_a_second_after_the_last_own_operation_a_beat_tells_all() -> None:
    rig = friend()
    rig.befriend(C, EC)
    rig.pass_seconds(2)
    log: Any = rig.mesh.log
    log.latest, log.check = lambda source: 7, 0xABCD
    rig.do(rig.mesh.note_own)
    rig.pass_seconds(0.3)
    rig.do(rig.mesh.note_own)
    assert [] == rig.pass_seconds(0.4)
    beat = Beat(7, rig.peers.view, 0xABCD, ("c1", "z1"))
    assert [Word(EB, beat), Word(EC, beat)] == rig.pass_seconds(0.2)
    assert not rig.mesh.is_virgin


@pytest.mark.proves("PEE-010")
def test_a_silent_peer_is_told_of_nudged_once_and_dropped_after_thirty_seconds() -> None:
    rig = friend()
    said = rig.pass_seconds(10)
    assert [PeerEvasive("", B, EB)] == rig.told
    assert [gsip(B)] == [word.message for word in said if isinstance(word.message, Gsip)]
    assert [] == only(rig.pass_seconds(19.9), Gsip)
    assert [PeerEvasive("", B, EB)] == rig.told
    rig.pass_seconds(0.1)
    assert [PeerEvasive("", B, EB), PeerGone("", B, EB, "silent")] == rig.told
    assert [Tell(PeerGone("", B, EB, "silent")), Disconnect("document", EB.encode())] == rig.effects


@pytest.mark.proves("PEE-010")
def test_any_word_ends_the_silence() -> None:
    rig = friend()
    rig.pass_seconds(29)
    rig.hear(B, gsip(A))
    rig.pass_seconds(9)
    assert [PeerEvasive("", B, EB)] == rig.told
    rig.pass_seconds(2)
    assert [PeerEvasive("", B, EB)] * 2 == rig.told


@pytest.mark.proves("PEE-021")
def test_a_hint_of_mdns_is_confirmed_by_five_seconds_of_silence() -> None:
    rig = friend()
    assert [Beat] == [type(word.message) for word in rig.order(Vanished("", EB))]
    rig.pass_seconds(4.9)
    assert [] == rig.told
    rig.pass_seconds(0.1)
    assert [PeerGone("", B, EB, "silent")] == rig.told
    alive = friend()
    alive.order(Vanished("", EB))
    alive.pass_seconds(4)
    alive.hear(B, gsip(A))
    alive.pass_seconds(9)
    assert [] == alive.told


@pytest.mark.proves("PEE-002")
def test_a_full_link_is_dropped_and_called_anew() -> None:
    rig = friend()
    rig.order(LinkFull("", EB))
    assert [PeerGone("", B, EB, "link-full")] == rig.told
    assert [EB] == rig.dropped
    assert [Word(EB, Helo(EA))] == only(rig.pass_seconds(1), Helo)


@pytest.mark.proves("PEE-022")
def test_the_view_is_that_of_all_who_are_active() -> None:
    rig = friend()
    assert 0xA0000000 ^ 0xB0000000 == rig.peers.view
    rig.hear(C, Helo(EC))
    assert 0xA0000000 ^ 0xB0000000 == rig.peers.view
    rig.hear(C, Bout(""))
    assert 0xA0000000 ^ 0xB0000000 ^ 0xC0000000 == rig.peers.view
    rig.hear(B, Gbye(""))
    assert 0xA0000000 ^ 0xC0000000 == rig.peers.view


# Answering


@pytest.mark.parametrize("word", [Helo(EB), Bout("")])
@pytest.mark.proves("PEE-010")
def test_a_repeated_word_is_answered_once_a_second_at_most(word: Helo | Bout) -> None:
    rig = friend()
    answers = []
    for _ in range(40):
        answers += [rig.seconds for answer in rig.hear(B, word) if answer.to == EB]
        rig.pass_seconds(0.25)
    assert 1 <= len(answers) <= 10
    assert all(after - before >= 1 for before, after in pairwise(answers))


def test_answers_to_answers_die_out_however_long_the_way_is() -> None:
    for way in range(1, limits.ANSWER_MOST_NS // SECOND // 2):
        ends, now, answers = [Saying(), Saying()], 0, 0
        while ends[answers % 2].may_answer(now):
            ends[answers % 2].said_at = now
            now += way * SECOND
            answers += 1
            assert answers < 20, way
        assert 1 <= answers


def test_who_repeats_itself_because_answers_are_lost_gets_an_answer_each_time() -> None:
    end, now = Saying(), 0
    for pause in limits.CALLS_NS:
        assert end.may_answer(now)
        end.said_at = now
        now += pause


@pytest.mark.proves("PEE-010")
def test_what_was_said_before_bout_is_heard_after_it_in_order_and_bounded() -> None:
    rig = Rig()
    passed: list[Any] = []
    rig.gossip.hear = lambda peer, message: passed.append(message)
    rig.hear(B, Helo(EB), *[gsip(B, n) for n in range(limits.QUEUED_MAX + 3)])
    assert [] == passed
    rig.hear(B, Bout(""))
    assert [gsip(B, n) for n in range(256)] == passed
    assert 3 == rig.counters["mesh.rx.not_active"]


@pytest.mark.proves("PEE-010")
def test_a_peer_that_becomes_active_is_introduced_then_told_of_the_log_then_beaten_then_asked_the_time() -> None:
    rig = Rig()
    rig.befriend(C, EC)
    rig.pass_seconds(3)
    rig.gossip.greet = lambda peer: rig.node.context.say(peer.endpoint, gsip(D, 4))
    rig.hear(B, Helo(EB))
    said = rig.hear(B, Bout(""))
    assert [(EC, PeerAt), (EB, Gsip), (EB, Beat)] == [(word.to, type(word.message)) for word in said]
    rig.do(rig.mesh.note_own)
    rig.hear(D, Helo(ED))
    assert Time in [type(word.message) for word in rig.hear(D, Bout(""))]


# Who it is


@pytest.mark.proves("PEE-012")
def test_our_own_helo_tells_which_endpoints_are_ours() -> None:
    rig = Rig()
    rig.order(Opened("", "192.168.1.7:50001"))
    rig.meet(EA)
    assert [] == rig.hear(A, Helo("192.168.1.7:50001"))
    assert [EA] == rig.dropped
    assert [] == rig.peers.all()
    assert [] == rig.meet(EA)
    assert [] == instants(rig, 100, Helo)


@pytest.mark.parametrize(
    ("said", "address", "expected"),
    [
        ("0.0.0.0:50002", FAR, f"{FAR}:50002"),
        ("127.0.0.1:50002", FAR, f"{FAR}:50002"),
        ("[::]:50002", "fe80::7", "[fe80::7]:50002"),
        ("[::1]:50002", FAR, f"{FAR}:50002"),
        ("127.0.0.1:50002", "127.0.0.1", EB),
        ("10.1.1.1:50002", FAR, "10.1.1.1:50002"),
        ("127.0.0.1:50002", "", EB),
        ("0.0.0.0:50002", "not an address", "0.0.0.0:50002"),
    ],
)
@pytest.mark.proves("PEE-012")
def test_an_endpoint_that_nobody_else_can_call_is_replaced_by_the_address_of_its_connection(
    said: str, address: str, expected: str
) -> None:
    rig = Rig()
    heard = rig.hear(B, Helo(said), address=address)
    assert {expected} == {word.to for word in heard}


@pytest.mark.proves("PEE-012")
def test_another_uuid_at_a_known_endpoint_is_a_process_that_started_anew() -> None:
    rig = friend()
    gone: list[bytes] = []
    rig.gossip.gone = lambda peer: gone.append(peer.id)
    said = rig.hear(C, Helo(EB))
    assert [Helo(EA), Bout(""), gsip(C)] == [word.message for word in said]
    assert [PeerGone("", B, EB, "restarted")] == rig.told
    assert [B] == gone
    assert rig.peers.get(B) is None
    assert rig.peers.at(EB) is rig.peers.get(C)
    assert isinstance(rig.effects[1], Disconnect), "the old link is dropped before the new one is opened"


@pytest.mark.proves("PEE-012")
def test_a_uuid_at_another_endpoint_has_moved() -> None:
    rig = friend()
    assert [Word(EC, Helo(EA))] == rig.hear(B, Helo(EC))
    assert [EB] == rig.dropped
    assert rig.peers.at(EB) is None
    assert [EC] == [peer.endpoint for peer in rig.peers.active()]


@pytest.mark.proves("PEE-012")
def test_who_moves_to_where_somebody_else_was_takes_its_place() -> None:
    rig = friend()
    rig.befriend(C, EC)
    rig.hear(B, Helo(EC))
    assert [PeerGone("", C, EC, "restarted")] == rig.events(PeerGone)
    assert [(B, EC)] == [(peer.id, peer.endpoint) for peer in rig.peers.all()]


@pytest.mark.proves("PEE-012")
def test_a_peer_that_was_lost_and_has_moved_is_welcome() -> None:
    rig = friend()
    rig.order(LinkFull("", EB))
    rig.pass_seconds(1.5)
    said = rig.hear(B, Helo(EC))
    assert [Word(EC, Helo(EA)), Word(EC, Bout("")), Word(EC, gsip(B))] == said
    assert [EC] == [peer.endpoint for peer in rig.peers.all()]


@pytest.mark.proves("PEE-012")
def test_a_peer_that_is_called_anew_and_says_another_address_of_its_machine_has_moved() -> None:
    rig = friend()
    rig.order(LinkFull("", EB))
    rig.pass_seconds(1.5)
    heard = rig.hear(B, Helo(f"{FAR}:50002"))
    assert [Helo(EA), Bout(""), gsip(B)] == [word.message for word in heard]
    assert [(B, f"{FAR}:50002")] == [(peer.id, peer.endpoint) for peer in rig.peers.all()]


@pytest.mark.proves("PEE-012")
def test_one_machine_called_by_two_addresses_is_one_peer() -> None:
    rig = Rig()
    rig.order(Opened("", f"{FAR}:50001"))
    rig.meet(EB)  # loopback of this machine, where B says its other address
    heard = rig.hear(B, Helo(f"{FAR}:50002"), Bout(""), address=FAR)
    assert {f"{FAR}:50002"} == {word.to for word in heard}
    assert [f"{FAR}:50002"] == [peer.endpoint for peer in rig.peers.all()]
    assert [] == rig.meet(EB)
    assert [] == instants(rig, 100, Helo)
    assert rig.peers.all()[0].is_manual, "a person has named it, if otherwise"


@pytest.mark.proves("PEE-012")
def test_who_says_that_it_listens_where_we_do_is_not_answered() -> None:
    rig = Rig()
    assert [] == rig.hear(B, Helo(EA))
    assert 1 == rig.counters["mesh.endpoint_taken"]
    assert [] == rig.peers.all()


# Beginning and ending


@pytest.mark.proves("PEE-013")
def test_who_leaves_says_goodbye_to_all_and_drops_them() -> None:
    rig = friend()
    rig.hear(C, Helo(EC))
    assert [Word(EB, Gbye("")), Word(EC, Gbye(""))] == rig.order(Stop())
    assert [EB, EC] == rig.dropped
    assert rig.node.deadline() is None
    assert [] == rig.hear(B, Helo(EB), Bout(""))
    assert [] == rig.meet(ED)


@pytest.mark.proves("PEE-013")
def test_who_comes_back_calls_all_whom_it_knew() -> None:
    rig = friend()
    rig.befriend(C, EC)
    rig.order(Stop())
    rig.performed.clear()
    rig.do(lambda: rig.mesh.open(rig.now))
    assert [OpenSession("", A, "127.0.0.1", "", "", False)] == rig.performed
    assert [Word(EB, Helo(EA)), Word(EC, Helo(EA))] == rig.order(Opened("", EA))


@pytest.mark.proves("GSP-015")
def test_another_identity_says_goodbye_under_the_old_one_and_calls_under_the_new_one() -> None:
    rig = friend()
    rig.performed.clear()
    assert [Word(EB, Gbye("identity"))] == rig.do(lambda: rig.mesh.restart(D))
    assert [OpenSession("", D, "127.0.0.1", "", "", False)] == rig.performed
    assert [Word(EB, Helo(EA))] == rig.order(Opened("", EA))
    rig.hear(B, Helo(EB), Bout(""))
    assert 0xD0000000 ^ 0xB0000000 == rig.peers.view


@pytest.mark.proves("PEE-001")
def test_without_a_port_nobody_is_called() -> None:
    rig = Rig(peers=(EB,))
    assert [] == rig.order(Opened("", ""))
    assert [] == rig.meet(EC)
    assert rig.node.deadline() is None
    assert rig.mesh.alone_since is None


@pytest.mark.proves("JAM-021")
def test_it_knows_since_when_it_is_alone() -> None:
    rig = Rig()
    assert START == rig.mesh.alone_since
    rig.befriend(B, EB)
    assert rig.mesh.alone_since is None
    rig.pass_seconds(3)
    rig.hear(B, Gbye(""))
    assert START + 3 * SECOND == rig.mesh.alone_since
    rig.pass_seconds(1.5)
    assert {"CALLING": 0, "GONE": 1, "alone_s": 1, "skew_ms": 0} == {"CALLING": 0} | rig.mesh.facts()


@pytest.mark.proves("PEE-043")
def test_the_greatest_skew_of_all_peers_is_shown() -> None:
    rig = friend()
    rig.befriend(C, EC, time=1_763_800_005.25)
    assert {"ACTIVE": 2, "alone_s": 0, "skew_ms": 3250} == rig.mesh.facts()


# mDNS


@pytest.mark.proves("PEE-020", "PEE-021")
def test_mdns_entries_of_ours_of_others_and_of_peers_that_we_have_are_not_called() -> None:
    rig = friend(name="")
    assert [] == rig.order(Found("", EC, A, ""))
    assert [] == rig.meet(EC)
    assert [] == rig.order(Found("", ED, D, "another"))
    assert [] == rig.order(Found("", "10.0.0.9:50002", B, ""))
    assert [Word(ED, Helo(EA))] == rig.order(Found("", ED, D, ""))
    assert [] == rig.order(Found("", ED, D, ""))


@pytest.mark.proves("PEE-020")
def test_mdns_brings_back_who_was_lost_at_once() -> None:
    rig = friend()
    rig.order(LinkFull("", EB))
    assert [Word(EB, Helo(EA))] == rig.order(Found("", EB, C, ""))


@pytest.mark.proves("PEE-020")
def test_a_person_brings_back_who_was_lost_at_once() -> None:
    rig = friend()
    rig.hear(B, Gbye(""))
    assert [] == rig.meet(EB, "peer")
    assert [Word(EB, Helo(EA))] == rig.meet(EB)


# Limits


@pytest.mark.proves("PEE-034")
def test_a_hundred_unknown_callers_a_second_are_answered() -> None:
    rig = Rig()
    answered = sum(bool(rig.hear(bytes([9, n]) + B[2:], Helo(f"10.0.0.{n}:5000"))) for n in range(1, 131))
    assert 100 == answered
    assert 30 == rig.counters["mesh.helo_throttled"]
    rig.pass_seconds(1)
    assert rig.hear(C, Helo(EC))


@pytest.mark.proves("PEE-014")
def test_no_more_peers_than_the_limit_are_called_or_welcomed() -> None:
    rig = Rig()
    for n in range(limits.PEERS_MAX):
        rig.meet(f"10.0.{n // 200}.{n % 200 + 1}:5000", "manual")  # nobody gives way whom a person has named
    assert [] == rig.meet(EB, "peer")
    assert [] == rig.hear(C, Helo(EC))
    assert 2 == rig.counters["mesh.full"]
    assert 256 == len(rig.peers.all())


@pytest.mark.proves("PEE-014")
def test_of_too_many_endpoints_the_oldest_that_nobody_named_is_forgotten() -> None:
    rig = Rig()
    rig.meet(EB)
    for n in range(limits.REMEMBERED_MAX + 8):
        endpoint = f"10.0.{n // 200}.{n % 200 + 1}:5000"
        rig.meet(endpoint, "peer")
        rig.order(LinkFull("", endpoint))
    assert 512 == len(rig.peers.all())
    assert rig.peers.at(EB) is not None
    assert rig.peers.at("10.0.0.1:5000") is None
    assert rig.peers.at("10.0.2.100:5000") is not None


@pytest.mark.proves("PEE-014")
def test_the_list_of_the_refused_is_bounded() -> None:
    rig = Rig()
    for n in range(limits.REFUSED_MAX + 5):
        rig.peers.refuse(f"10.0.{n // 200}.{n % 200 + 1}:5000", "x" * 10_000)
    assert 512 == len(rig.peers.refused) == len(rig.peers.sessions)
    assert 512 == max(map(len, rig.peers.sessions.values()))


# All together


@pytest.mark.parametrize("nodes", [2, 3, 8])
@pytest.mark.proves("PEE-010")
def test_everybody_says_one_helo_and_one_bout_to_everybody(nodes: int) -> None:
    for seed in range(12):
        net = MeshNet(seed, nodes)
        for pair in combinations(net.chance.sample(range(nodes), nodes), 2):
            net.meet(*pair)
            if net.chance.random() < 0.3:
                net.meet(*pair[::-1])
        net.run_until_full(15)
        net.run(30)
        assert (nodes * (nodes - 1),) * 2 == (net.said["Helo"], net.said["Bout"])


@pytest.mark.proves("PEE-050", "GSP-026")
def test_at_rest_there_are_beats_and_nothing_else() -> None:
    nodes = 16
    net = MeshNet("rest", nodes)
    for caller in range(1, nodes):
        net.meet(caller, 0)
    net.run_until_full(15)
    net.run(10)
    net.said.clear()
    net.run(60)
    assert ["Beat"] == list(net.said)
    assert net.said["Beat"] <= 60 * nodes * (nodes - 1) / 5
