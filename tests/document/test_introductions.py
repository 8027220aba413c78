"""Who is told of whom; how many words it takes; what mends what got lost (PEE-020 to PEE-034)."""

from itertools import pairwise
from typing import Final

import pytest

from tests.document.meshnet import MeshNet
from tests.document.rig import EA, EB, EC, ED, A, B, C, D, Rig, Word, only
from weft.base.now import MILLISECOND
from weft.cores.document.introductions import explained
from weft.cores.document.messages import LinkFull
from weft.cores.document.peers import Peer, head_of
from weft.wire.document.messages import Beat, Bout, Helo, PeerAt

E: Final = bytes.fromhex("e0000000000040008000000000000005")
EE: Final = "127.0.0.1:50005"
STRANGE: Final = 0x12345678
"""A view that none of these peers explains."""


def between(*endpoints: tuple[bytes, str]) -> Rig:
    """A, who was called by each of them, one after the other; all see each other."""
    rig = Rig()
    for uuid, endpoint in endpoints:
        rig.befriend(uuid, endpoint)
        rig.pass_seconds(3, heard=[peer.id for peer in rig.peers.active()])
    return rig


def introductions(said: list[Word]) -> list[tuple[str, str]]:
    """To whom, of whom."""
    return [(word.to, word.message.endpoint) for word in said if isinstance(word.message, PeerAt)]


# At once


@pytest.mark.proves("PEE-030")
def test_who_calls_us_is_introduced_to_all_others() -> None:
    rig = between((B, EB), (C, EC))
    assert [(EB, ED), (EC, ED)] == introductions(rig.befriend(D, ED))


@pytest.mark.proves("PEE-030")
def test_who_told_us_of_somebody_needs_not_be_told_and_neither_need_others() -> None:
    rig = between((B, EB), (C, EC))
    assert [Word(ED, Helo(EA))] == rig.hear(B, PeerAt(ED))
    assert [] == introductions(rig.befriend(D, ED))


@pytest.mark.proves("PEE-030")
def test_whom_a_person_named_is_introduced_as_well() -> None:
    rig = between((B, EB))
    rig.meet(ED)
    assert [(EB, ED)] == introductions(rig.befriend(D, ED))


@pytest.mark.proves("PEE-030")
def test_two_that_mdns_has_found_know_each_other() -> None:
    rig = Rig()
    for endpoint in (EB, EC):
        rig.meet(endpoint, "mdns")
    rig.befriend(D, ED)
    rig.befriend(B, EB)
    assert [(ED, EC)] == introductions(rig.befriend(C, EC))


@pytest.mark.proves("PEE-030")
def test_a_newcomer_introduces_nobody_who_comes_because_it_was_introduced() -> None:
    rig = Rig(peers=(EB,))
    rig.befriend(B, EB)
    rig.pass_seconds(1)
    assert [] == introductions(rig.befriend(C, EC))
    assert [] == introductions(rig.hear(C, Beat(0, view(A, B, C), 0)))
    rig.pass_seconds(1.5)
    assert [(EB, ED), (EC, ED)] == introductions(rig.befriend(D, ED)), "two seconds later it is no newcomer any more"


@pytest.mark.proves("PEE-030", "PEE-032")
def test_a_newcomer_of_a_newcomer_is_introduced_when_its_first_beat_shows_that_it_is_alone() -> None:
    rig = Rig(peers=(EB,))
    rig.befriend(B, EB)
    rig.befriend(C, EC)
    assert [(EB, EC)] == introductions(rig.hear(C, Beat(0, view(A, C), 0)))
    assert [] == introductions(rig.hear(C, Beat(0, view(A, C), 0)))


@pytest.mark.proves("PEE-030")
def test_who_was_called_first_in_vain_is_no_first_peer() -> None:
    rig = Rig(peers=(EB,))
    rig.befriend(C, EC)
    assert [(EC, EB)] == introductions(rig.befriend(B, EB))
    assert [(EB, ED), (EC, ED)] == introductions(rig.befriend(D, ED))


@pytest.mark.parametrize("endpoint", [EA, EB, EC, "0.0.0.0:50009"])
@pytest.mark.proves("PEE-033")
def test_an_endpoint_that_is_ours_or_known_or_nobodys_is_no_news(endpoint: str) -> None:
    rig = between((B, EB), (C, EC))
    assert [] == rig.hear(B, PeerAt(endpoint))
    assert 2 == len(rig.peers.all())


@pytest.mark.proves("PEE-030")
def test_who_was_gone_and_comes_back_is_introduced_anew() -> None:
    rig = between((B, EB))
    rig.hear(B, PeerAt(ED))
    rig.befriend(D, ED)
    rig.order(LinkFull("", ED))
    assert [(EB, ED)] == introductions(rig.befriend(D, ED))


# When something got lost


def view(*uuids: bytes) -> int:
    """Of somebody who sees these, itself among them."""
    seen = 0
    for uuid in uuids:
        seen ^= head_of(uuid)
    return seen


@pytest.mark.proves("PEE-022", "PEE-031")
def test_who_lacks_one_of_ours_is_told_of_that_one() -> None:
    rig = between((B, EB), (C, EC), (D, ED))
    assert [] == rig.hear(B, Beat(0, view(A, B, C), 0))
    assert [(EB, ED)] == introductions(rig.pass_seconds(1))
    assert [] == introductions(rig.pass_seconds(9, heard=[C, D]))


@pytest.mark.proves("PEE-031")
def test_who_sees_others_is_shown_ours_and_told_of_all_if_that_does_not_help() -> None:
    rig = between((B, EB), (C, EC), (D, ED))
    rig.hear(B, Beat(0, STRANGE, 0))
    assert [(EB, Beat)] == [(word.to, type(word.message)) for word in rig.pass_seconds(1)]
    assert [(EB, EC), (EB, ED)] == introductions(rig.pass_seconds(2))


@pytest.mark.proves("PEE-031")
def test_the_same_peer_is_told_of_all_once_in_ten_seconds() -> None:
    rig = between((B, EB), (C, EC))
    told = []
    for _ in range(70):
        rig.hear(B, Beat(0, STRANGE, 0))
        rig.hear(C, Beat(0, rig.peers.view, 0))
        told += [rig.seconds for _ in introductions(rig.pass_seconds(0.5))]
    assert 3 <= len(told) <= 4
    assert all(after - before >= 10 for before, after in pairwise(told))


@pytest.mark.proves("PEE-031")
def test_what_one_missing_peer_does_not_explain_after_all_makes_the_whole_list() -> None:
    rig = between((B, EB), (C, EC), (D, ED))
    told = []
    for _ in range(10):
        rig.hear(B, Beat(0, view(A, B, C), 0))
        told += introductions(rig.pass_seconds(1))
    assert [(EB, ED), (EB, EC), (EB, ED)] == told


@pytest.mark.proves("PEE-031")
def test_nobody_is_told_what_it_told_us_lately() -> None:
    rig = between((B, EB), (C, EC), (D, ED))
    rig.hear(B, PeerAt(ED))
    rig.hear(B, Beat(0, STRANGE, 0))
    assert [(EB, EC)] == introductions(rig.pass_seconds(3))


@pytest.mark.proves("PEE-031")
def test_views_that_differ_because_of_a_newcomer_mend_themselves() -> None:
    rig = between((B, EB), (C, EC))
    rig.hear(B, Beat(0, view(A, B, C, D), 0))
    rig.pass_seconds(0.5)
    rig.hear(B, PeerAt(ED))
    rig.befriend(D, ED)
    assert [] == introductions(rig.pass_seconds(2))
    rig.befriend(E, EE)
    rig.pass_seconds(0.5)
    rig.hear(B, Beat(0, view(A, B, C, D), 0))
    assert [] == introductions(rig.pass_seconds(2)), "it had said so before it heard of E"


@pytest.mark.proves("PEE-031")
def test_who_shows_no_view_is_told_of_all_once_a_minute() -> None:
    rig = between((B, EB), (C, EC))
    told = []
    start = rig.seconds
    while rig.seconds < start + 190:
        rig.hear(B, Beat())
        rig.hear(C, Beat(0, rig.peers.view, 0))
        told += [round(rig.seconds - start) for to, _ in introductions(rig.pass_seconds(4)) if to == EB]
    assert 3 == len(told)
    assert all(60 <= after - before <= 66 for before, after in pairwise(told))


@pytest.mark.proves("PEE-032")
def test_a_change_of_whom_we_see_is_shown_soon_to_those_who_may_not_know() -> None:
    rig = Rig()
    rig.befriend(B, EB)
    said = only(rig.pass_seconds(1.5), Beat)
    assert [(EB, view(A, B))] == [(word.to, word.message.view) for word in said if isinstance(word.message, Beat)]
    rig.hear(B, Beat(0, view(A, B), 0))
    rig.hear(C, Helo(EC), Bout(""))
    assert [EC] == [word.to for word in only(rig.hear(B, Beat(0, view(A, B, C), 0)) + rig.pass_seconds(1.6), Beat)]


@pytest.mark.parametrize(("lacks", "expected"), [((B,), [EB]), ((B, D), [EB, ED]), ((B, C, D), []), ((E,), [])])
def test_up_to_two_peers_explain_a_difference(lacks: tuple[bytes, ...], expected: list[str]) -> None:
    peers = [Peer(endpoint=endpoint, how="helo", uuid=uuid) for uuid, endpoint in ((B, EB), (C, EC), (D, ED))]
    assert expected == [peer.endpoint for peer in explained(peers, view(*lacks))]


# All together


@pytest.mark.parametrize(("nodes", "gap"), [(16, 0.6), (16, 3), (16, 10), (24, 3)])
@pytest.mark.proves("PEE-032", "PEE-030")
def test_joining_in_turn_takes_about_one_introduction_per_pair(nodes: int, gap: float) -> None:
    net = MeshNet(nodes, nodes)
    for caller in range(1, nodes):
        net.meet(caller, net.chance.randrange(caller))
        net.run(gap)
    net.run_until_full(15)
    net.run(30)
    least = (nodes - 1) * (nodes - 2) // 2  # each newcomer but the first two, to all but whom it called
    assert least <= net.said["PeerAt"] <= least + nodes
    assert (nodes * (nodes - 1),) * 2 == (net.said["Helo"], net.said["Bout"])


def scattered(seed: object, loss: float, nodes: int = 16) -> MeshNet:
    """Contacts in any pattern that connects all, some at once and some later."""
    net = MeshNet(seed, nodes, loss=loss)
    order = net.chance.sample(range(nodes), nodes)
    for number in range(1, nodes):
        pair = order[number], order[net.chance.randrange(number)]
        net.meet(*(pair if net.chance.random() < 0.5 else pair[::-1]))
        net.run(net.chance.choice((0, 0, 0.01, 0.5, 2)))
    return net


@pytest.mark.prove("many meshes")
@pytest.mark.proves("PEE-032")
def test_any_pattern_of_contacts_is_a_full_mesh_within_fifteen_seconds() -> None:
    for seed in range(20):
        scattered(f"pattern {seed}", 0).run_until_full(15)


@pytest.mark.prove("many meshes")
@pytest.mark.proves("PEE-032")
def test_where_one_message_in_ten_is_lost_it_takes_two_minutes_at_most() -> None:
    for seed in range(10):
        scattered(f"lossy {seed}", 0.1).run_until_full(120)


@pytest.mark.proves("PEE-020", "PEE-030")
def test_nodes_with_mdns_and_nodes_without_end_in_one_mesh() -> None:
    net = MeshNet("mixed", 8)
    for caller in range(4):
        for called in range(4):
            if caller != called:
                net.meet(caller, called, "mdns")
    for caller in range(4, 8):
        net.meet(caller, caller - 4)
    net.run_until_full(15)
    assert (8 * 7,) * 2 == (net.said["Helo"], net.said["Bout"])


@pytest.mark.proves("PEE-010")
def test_where_the_way_takes_seconds_greetings_end_all_the_same() -> None:
    net = MeshNet("slow", 5, delays=(500 * MILLISECOND, 4_000 * MILLISECOND))
    for caller in range(1, 5):
        net.meet(caller, caller - 1)
    net.run_until_full(120)
    net.run(120)
    net.said.clear()
    net.run(120)
    assert ["Beat"] == list(net.said)
