"""Whatever peers say, in whatever order: nothing raises, and the tables of peers stay whole (PEE-006)."""

from functools import reduce
from operator import xor
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.document.rig import EA, EB, EC, ED, A, B, C, D, Rig, gsip
from weft.cores.document.messages import Found, LinkFull, Vanished
from weft.cores.document.peers import head_of
from weft.wire.document.messages import Beat, Bout, Chat, Gbye, Helo, PeerAt, Time, Xmsg

ENDPOINTS: Final = (EA, EB, EC, ED, "0.0.0.0:50002", "192.168.1.20:50003", "[fe80::1]:50001")
UUIDS: Final = st.sampled_from((A, B, C, D))
ADDRESSES: Final = st.sampled_from(("127.0.0.1", "192.168.1.20", "fe80::1", "", "nowhere"))
PLACES: Final = st.sampled_from(ENDPOINTS)
SAID: Final = st.one_of(
    st.builds(Helo, PLACES),
    st.builds(Helo, PLACES),
    st.builds(Bout, st.sampled_from(("", "", "", "other"))),
    st.builds(PeerAt, PLACES),
    st.builds(Beat, st.integers(0, 3), st.none() | st.integers(0, 1 << 32), st.none() | st.integers(0, 9)),
    st.builds(Time, st.none() | st.floats()),
    st.just(gsip(B, 1)),
    st.just(Xmsg(b"<")),
    st.just(Chat("hi")),
    st.just(Gbye("")),
)
STEPS: Final = st.one_of(
    st.tuples(st.just("hear"), UUIDS, SAID, ADDRESSES),
    st.tuples(st.just("hear"), UUIDS, SAID, ADDRESSES),
    st.tuples(st.just("befriend"), UUIDS, PLACES),
    st.tuples(st.just("befriend"), UUIDS, PLACES),
    st.tuples(st.just("pass"), st.sampled_from((0.1, 1.0, 5.0, 31.0, 700.0))),
    st.tuples(st.just("meet"), PLACES, st.sampled_from(("manual", "mdns", "peer"))),
    st.tuples(st.just("order"), st.builds(Found, st.just(""), PLACES, st.none() | UUIDS, st.sampled_from(("", "x")))),
    st.tuples(st.just("order"), st.builds(Vanished, st.just(""), PLACES)),
    st.tuples(st.just("order"), st.builds(LinkFull, st.just(""), PLACES)),
    st.tuples(st.just("own")),
)


def step(rig: Rig, what: tuple[object, ...]) -> None:
    match what:
        case ("hear", bytes(uuid), message, str(address)):
            rig.hear(uuid, message, address=address)  # type: ignore[arg-type]  # one of SAID
        case ("befriend", bytes(uuid), str(endpoint)):
            rig.befriend(uuid, endpoint)
        case ("pass", float(span)):
            rig.pass_seconds(span)
        case ("meet", str(endpoint), str(how)):
            rig.meet(endpoint, how)
        case ("order", order):
            rig.order(order)
        case _:
            rig.do(rig.mesh.note_own)


def check_whole(rig: Rig) -> None:
    """Both names of a peer lead to it and to it alone; the view is that of all who are ACTIVE; time goes on."""
    peers = rig.peers.all()
    assert len(peers) == len({peer.endpoint for peer in peers})
    for peer in peers:
        assert peer is rig.peers.at(peer.endpoint) or peer.endpoint in rig.peers.aliases
        assert peer.uuid is None or peer is rig.peers.get(peer.uuid)
        assert peer.uuid is not None or peer.stage.name in ("CALLING", "GONE")
    active = [peer for peer in peers if peer.is_active]
    assert sorted(active, key=lambda peer: peer.id) == rig.peers.active()
    assert reduce(xor, (head_of(peer.id) for peer in active), head_of(A)) == rig.peers.view
    for uuid in (B, C, D):
        peer_of = rig.peers.get(uuid)
        assert peer_of is None or (peer_of in peers and uuid == peer_of.uuid)
    assert rig.peers.get(A) is None
    assert (rig.mesh.alone_since is None) == bool(active)


@pytest.mark.proves("PEE-006", "PEE-012")
@given(st.lists(STEPS, min_size=10, max_size=40))
def test_whatever_peers_say_the_tables_stay_whole(steps: list[tuple[object, ...]]) -> None:
    rig = Rig()
    for what in steps:
        step(rig, what)
        check_whole(rig)
