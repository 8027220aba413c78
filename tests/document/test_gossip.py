"""What is missing is asked for, of whom, and how often; what others lack they are told; at rest nobody says anything."""

from itertools import pairwise

import pytest

from tests.document.logs import Node, bodies, body, gossiped, run
from tests.document.rig import EB, EC, ED, EPOCH, A, B, C, D, Word, gsip, only
from weft.base.now import MILLISECOND, SECOND
from weft.cores.document import gossip as gossip_module
from weft.cores.document import knowing as knowing_module
from weft.cores.document import limits
from weft.cores.document.knowing import Knowing, Places
from weft.cores.document.messages import LinkFull, LogFull
from weft.cores.document.peers import Peer
from weft.wire.document.messages import Beat, Gsip, Progress, Xmsg

E, G = bytes.fromhex("e0000000000040008000000000000005"), bytes.fromhex("90000000000040008000000000000006")
"""Sources that are not there."""


def party(*peers: tuple[bytes, str]) -> Node:
    node = Node()
    for uuid, endpoint in peers or ((B, EB), (C, EC)):
        node.befriend(uuid, endpoint)
    return node


def asked(said: list[Word]) -> list[tuple[str, bytes, int]]:
    return gossiped(said)


def seconds_of(node: Node, span: float, *, alive: tuple[bytes, ...] = ()) -> list[tuple[float, str, bytes, int]]:
    """What is asked meanwhile, and when."""
    found, began = [], node.seconds
    while node.seconds < began + span:
        for uuid in alive:
            node.hear(uuid, Beat())
        step = min(0.01, began + span - node.seconds)
        found += [(round(node.seconds - began, 2), *each) for each in gossiped(node.pass_seconds(step))]
    return found


# Asking


@pytest.mark.proves("GSP-020")
def test_the_source_itself_is_asked_if_it_is_there_else_who_told_us() -> None:
    node = party()
    assert [(EC, C, 0)] == asked(node.hear(B, gsip(C, 3)))
    assert [(EB, E, 0)] == asked(node.hear(B, gsip(E, 3)))


@pytest.mark.proves("GSP-010", "GSP-020")
def test_a_gap_is_asked_for_in_front_of_what_the_turn_keeps() -> None:
    node = party()
    said = node.hear(B, Xmsg(body(C, 5)))
    assert [(EC, C, 0)] == asked(said)
    assert [(EC, Gsip((Progress(C, 0),)))] == [(word.to, word.message) for word in said]


def is_asked_once(node: Node) -> bool:
    """Of the same source and number, within 150 ms."""
    first = asked(node.hear(B, gsip(E, 5)))
    again = [each for _ in range(5) for each in asked(node.hear(B, gsip(E, 5))) + asked(node.hear(C, gsip(E, 6)))]
    again += asked(node.hear(B, Xmsg(body(E, 4)))) + asked(node.hear(B, Xmsg(body(E, 6))))
    return ([(EB, E, 0)], []) == (first, again)


@pytest.mark.proves("GSP-020")
def test_the_same_is_not_asked_twice_within_150_ms() -> None:
    node = party()
    assert is_asked_once(node)
    assert [0.15] == [at for at, *_ in seconds_of(node, 0.2)]


def test_canary_an_ask_without_hold_off_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    node = party()
    monkeypatch.setattr(type(node.session.context.timing), "ask_hold_ns", 0, raising=False)
    assert not is_asked_once(node)


@pytest.mark.proves("GSP-021")
def test_who_does_not_answer_is_asked_again_ever_more_slowly_and_others_too() -> None:
    node = party((B, EB), (C, EC), (D, ED))
    node.hear(C, gsip(E, 4))
    node.hear(B, gsip(E, 5))
    found = [each for each in seconds_of(node, 8, alive=(B, C, D)) if each[2] == E]
    waits = [round(later[0] - each[0], 2) for each, later in pairwise(found)]
    assert 0.15 == found[0][0]
    assert [0.3, 0.6, 1.2, 2.0, 2.0] == [pytest.approx(wait, abs=0.02) for wait in waits[:5]]
    assert {EB, EC} == {to for _, to, *_ in found}, "every third try goes to another one that knows more"
    assert ED not in {to for _, to, *_ in found}


@pytest.mark.proves("GSP-021")
def test_progress_makes_asking_quick_again() -> None:
    node = party()
    node.hear(B, gsip(E, 9))
    seconds_of(node, 3)
    node.hear(B, Xmsg(body(E, 1)))
    assert [(EB, E, 1)] == [each[1:] for each in seconds_of(node, 0.17)]


@pytest.mark.proves("GSP-021")
def test_a_gap_that_closes_in_part_is_asked_for_at_once() -> None:
    node = party()
    node.hear(C, *(Xmsg(body(C, n)) for n in (3, 6)))
    assert [] == asked(node.hear(B, gsip(C, 6)))
    assert [(EC, C, 1)] == asked(node.hear(C, Xmsg(body(C, 1))))
    assert [(EC, C, 3)] == asked(node.hear(C, Xmsg(body(C, 2))))
    assert [] == asked(node.hear(C, Xmsg(body(C, 4)), Xmsg(body(C, 5))))[1:]
    assert [] == [each for each in seconds_of(node, 1.5) if each[2] == C]


def test_the_next_piece_is_asked_for_when_the_last_one_of_an_answer_came() -> None:
    node = party()
    assert [(EB, E, 0)] == asked(node.hear(B, gsip(E, 1_200)))
    assert [(EB, E, 500)] == asked(node.hear(B, *map(Xmsg, run(E, 1, 600))))
    assert [(EB, E, 1_000)] == asked(node.hear(B, *map(Xmsg, run(E, 601, 1_199))))
    assert node.session.gossip.is_catching_up is False
    assert [] == asked(node.hear(B, Xmsg(body(E, 1_200))))


def test_while_much_comes_in_that_is_known() -> None:
    node = party()
    node.hear(B, gsip(E, 1_200))
    assert not node.session.gossip.is_catching_up, "nothing has come yet"
    node.hear(B, *map(Xmsg, run(E, 1, 9)))
    assert node.session.gossip.is_catching_up
    node.pass_seconds(0.2)
    assert not node.session.gossip.is_catching_up, "it dried up"


def test_what_a_source_says_meanwhile_is_no_sign_of_a_loss() -> None:
    node = party()
    node.hear(C, Beat(5_000))
    for number in range(1, 100):
        assert [] == asked(node.hear(C, Xmsg(body(C, number)), Xmsg(body(C, 5_000 + number))))


def test_a_hole_in_an_answer_is_asked_for_at_once() -> None:
    node = party()
    node.hear(B, gsip(E, 100))
    assert [] == asked(node.hear(B, *map(Xmsg, run(E, 1, 9))))
    assert [(EB, E, 9)] == asked(node.hear(B, *map(Xmsg, run(E, 11, 20))))


@pytest.mark.proves("GSP-020", "GSP-024")
def test_one_peer_owes_us_no_more_than_its_link_holds() -> None:
    node = party((B, EB))
    sources = [bytes([0xE0, n]) + E[2:] for n in range(10)]
    first = asked(node.hear(B, *(gsip(source, 400) for source in sources)))
    assert [(EB, source, 0) for source in sources[:5]] == first
    more = asked(node.hear(B, *map(Xmsg, run(sources[0], 1, 400))))
    assert [(EB, sources[5], 0)] == more
    for source in sources[1:]:
        node.hear(B, *map(Xmsg, run(source, 1, 400)))
    assert 10 * 400 == node.log.count
    assert [] == [each for each in seconds_of(node, 1.5) if each[2] in sources and each[3] == 0]


def test_whoever_goes_is_not_waited_for() -> None:
    node = party()
    node.hear(C, gsip(E, 4))
    assert [] == asked(node.hear(B, gsip(E, 5)))
    node.order(link_full(EC))
    assert [(EB, E, 0)] == [each[1:] for each in seconds_of(node, 0.05) if each[2] == E]


def link_full(endpoint: str) -> object:
    return LinkFull("", endpoint)


def test_a_gap_that_nobody_can_fill_is_left_alone_until_somebody_can() -> None:
    node = party((B, EB), (C, EC))
    node.hear(C, Xmsg(body(C, 2)))
    node.order(link_full(EC))
    assert [] == [each for each in seconds_of(node, 20, alive=(B,)) if each[2] == C]
    assert [(EB, C, 0)] == asked(node.hear(B, gsip(C, 1)))


def test_a_source_that_is_not_taken_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.cores.document.log.SOURCES_MAX", 1)
    node = party()
    node.hear(B, Xmsg(body(B, 1)))
    assert [] == asked(node.hear(C, gsip(E, 4), Beat(7)))
    assert [LogFull("", "sources")] == node.events(LogFull)


# Telling


@pytest.mark.proves("GSP-023", "GSP-025")
def test_who_becomes_a_peer_is_told_of_all_others_in_the_order_of_uuids() -> None:
    node = party((B, EB))
    node.issue()
    node.hear(B, Xmsg(body(B, 1)), Xmsg(body(E, 1)), Xmsg(body(E, 2)), Xmsg(body(C, 1)), Xmsg(body(G, 3)))
    said = gossiped(node.befriend(C, EC))
    assert [(EC, C, 1), (EC, A, 1), (EC, B, 1), (EC, E, 2)] == said


def told_of(node: Node, span: float) -> list[tuple[str, bytes, int]]:
    return [each[1:] for each in seconds_of(node, span, alive=(B, C, D))]


@pytest.mark.proves("GSP-025")
def test_every_two_seconds_the_next_peer_is_told_what_it_may_lack_and_not_again_for_thirty() -> None:
    node = party((B, EB), (C, EC), (D, ED))
    node.hear(B, Xmsg(body(E, 1)))
    found = [(at, to) for at, to, *_ in seconds_of(node, 29, alive=(B, C, D))]
    assert [EC, ED] == [to for _, to in found], "B said it, so B has it"
    assert all(1.6 <= at <= 7.2 for at, _ in found)
    assert [EC, ED] == sorted(to for to, *_ in told_of(node, 14))


@pytest.mark.proves("GSP-025")
def test_a_newer_number_is_told_at_once_in_its_turn() -> None:
    node = party((B, EB), (C, EC))
    node.hear(B, Xmsg(body(E, 1)))
    assert [(EC, E, 1)] == told_of(node, 5)
    node.hear(B, Xmsg(body(E, 2)))
    assert [(EC, E, 2)] == told_of(node, 5)


def with_a_gap() -> Node:
    node = party((B, EB))
    node.hear(B, Xmsg(body(B, 1)), Xmsg(body(B, 3)))
    return node


def tells_the_prefix(node: Node) -> bool:
    return [1] == [upto for to, source, upto in gossiped(node.befriend(C, EC)) if (to, source) == (EC, B)]


@pytest.mark.proves("GSP-010", "GSP-023")
def test_what_is_beyond_a_gap_is_not_spoken_of() -> None:
    node = with_a_gap()
    assert tells_the_prefix(node)
    assert [] == [each for each in told_of(node, 10) if each[1] == B and each[0] != EB], "it has a gap"


def test_a_source_that_is_gone_with_a_gap_is_spoken_of_up_to_the_gap() -> None:
    node = party((B, EB), (C, EC), (D, ED))
    node.hear(B, Xmsg(body(B, 1)), Xmsg(body(B, 3)))
    node.order(link_full(EB))
    assert [(EC, B, 1), (ED, B, 1)] == sorted(each[1:] for each in seconds_of(node, 10, alive=(C, D)) if each[2] == B)


def test_canary_a_gsip_of_the_highest_number_instead_of_the_prefix_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    node = with_a_gap()
    monkeypatch.setattr(node.log, "latest", node.log._holding.highest)
    assert not tells_the_prefix(node)


@pytest.mark.proves("GSP-026")
def test_an_equal_check_says_that_a_peer_has_everything() -> None:
    node = party((B, EB), (C, EC))
    node.hear(B, *map(Xmsg, run(E, 1, 3)), Xmsg(body(B, 1)))
    for uuid in (B, C):
        node.hear(uuid, Beat(0, 0, node.log.check))
    assert [] == told_of(node, 40)


@pytest.mark.proves("GSP-025")
def test_of_many_nodes_one_in_sixteen_is_told_at_a_time() -> None:
    node = Node()
    for n in range(32):
        node.befriend(bytes([0xB0, n]) + B[2:], f"127.0.0.1:{51_000 + n}")
    node.hear(bytes([0xB0, 0]) + B[2:], Xmsg(body(E, 1)))
    turns = [len({word.to for word in only(node.do(node.session.gossip._tell_next), Gsip)}) for _ in range(3)]
    assert [2, 3, 3] == turns, "of 33 nodes, itself counted, three, and one of the first three knows it"


def test_thousands_of_sources_are_told_in_the_pace_of_a_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowing_module, "TOLD_MAX", 10)
    node = party((B, EB))
    node.hear(B, *(Xmsg(body(bytes([0xE0, n]) + E[2:], 1)) for n in range(25)))
    assert 11 == len(gossiped(node.befriend(C, EC))), "one of them is the question what it has itself"
    assert [10, 5, 0] == [len([each for each in gossiped(node.pass_seconds(0.1)) if each[0] == EC]) for _ in range(3)]


# Memory


def knowing_of(uuid: bytes) -> Knowing:
    return Knowing(Peer(endpoint=EB, how="helo", uuid=uuid), 0)


@pytest.mark.proves("GSP-014")
def test_what_peers_name_without_showing_it_takes_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowing_module, "NAMED_MAX", 3)
    places, knowing = Places(), knowing_of(B)
    for n in range(50):
        source = bytes([n]) * 16
        place, loser = places.take(source, is_real=n % 10 == 0)
        if loser is not None:
            knowing.clear(place)
        assert 0 == knowing.known(place), "the next one of a place begins at nothing"
        knowing.learn(place, n + 1)
    assert 5 + 3 >= len(knowing.knows)
    assert [1, 11, 21, 31, 41] == [knowing.known(places.find(bytes([n]) * 16) or 0) for n in (0, 10, 20, 30, 40)]


def test_what_all_peers_know_of_all_sources_fits() -> None:
    knowing = knowing_of(B)
    for place in range(limits.SOURCES_MAX + limits.NAMED_MAX):
        knowing.learn(place, 1 << 50)
    assert len(knowing.knows) * knowing.knows.itemsize * 256 <= 16 << 20


def test_a_new_identity_forgets_what_peers_know() -> None:
    node = party((B, EB), (C, EC))
    node.hear(B, gsip(E, 4), gsip(A, 4))
    assert {} == node.session.gossip._known
    node.pass_seconds(0.2)
    assert None is node.session.gossip.deadline()


def test_a_liar_that_names_ever_more_is_asked_only_now_and_then() -> None:
    node = party((B, EB))
    for _ in range(200):
        node.hear(B, gsip(E, limits.SEQUENCE_MAX))
        node.pass_seconds(0.01)
    count = len(only(node.pass_seconds(10), Gsip))
    assert count <= 8
    assert (2 * SECOND, 150 * MILLISECOND) == (
        node.session.context.timing.ask_most_ns,
        node.session.context.timing.ask_hold_ns,
    )
    assert gossip_module.JITTER_PERCENT == 20
    assert EPOCH < node.session.context.time
    assert [] == bodies(node.pass_seconds(0))
