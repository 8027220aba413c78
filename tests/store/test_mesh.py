"""Links between store nodes without a broker: who is greeted, who is refused, who is believed to be there."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.base.chance import Chance
from weft.base.effects import Disconnect, Effect, Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.cores.store import limits
from weft.cores.store.bus import MESH, Bus
from weft.cores.store.context import Context
from weft.cores.store.linkstates import TABLE, LinkState, On
from weft.cores.store.mesh import HEARD, Mesh
from weft.cores.store.messages import BecameReadOnly, NameCollision, StoreLinkDown, StoreLinkUp, StoreSettings
from weft.wire.store import mesh as codec
from weft.wire.store.mesh import Beat, Bye, Hello
from weft.wire.store.messages import Publication


class End:
    """One node's mesh, and what it was told by others."""

    def __init__(self, name: str, number: int, *, peers: tuple[str, ...] = (), fabric: str = "lab") -> None:
        endpoint = f"10.0.0.{number}:27500"
        settings = StoreSettings(name=name, fabric=fabric, boot=number, endpoint=endpoint, peers=peers)
        self.context = Context(settings, Chance(f"tests/mesh/{name}/{number}"))
        self.bus = Bus(self.context)
        self.said: list[tuple[str, Publication]] = []
        self.changes: list[tuple[str, bool]] = []
        self.mesh = Mesh(self.context, self.bus, self._hear, self._change)
        self.endpoint = endpoint

    def _hear(self, said: Publication, peer: str, now: Now) -> None:
        self.said.append((peer, said))

    def _change(self, member: str, is_up: bool, now: Now) -> None:  # as the mesh calls it
        self.changes.append((member, is_up))

    @property
    def told(self) -> list[object]:
        """Events of this end that were not taken yet."""
        return [effect.event for effect in self.context.effects if isinstance(effect, Tell)]


class Wire:
    """Ends joined by links that work, or that are cut; every message travels as bytes."""

    def __init__(self, *ends: End) -> None:
        self.ends = {end.endpoint: end for end in ends}
        self.now = Now(SECOND, SECOND)
        self.events: list[object] = []
        self.hellos = 0
        self.cut: set[str] = set()
        self.hung_up: dict[str, list[str]] = {end.endpoint: [] for end in ends}
        self._dialled: dict[bytes, tuple[End, str]] = {}

    def run(self, span_s: float) -> None:
        """Let time pass, a tenth of a second at a time."""
        for _ in range(round(span_s * 10)):
            self.now = Now(self.now.mono + SECOND // 10, self.now.wall + SECOND // 10)
            for end in self.ends.values():
                end.context.now = self.now
                due = end.mesh.deadline()
                if due is not None and due <= self.now.mono:
                    end.mesh.wake(self.now)
                end.bus.flush()
            self.carry()

    def carry(self) -> None:
        """Until nobody has anything to say."""
        while any(end.context.effects for end in self.ends.values()):
            for end in self.ends.values():
                for effect in end.context.take():
                    self._do(end, effect)

    def _do(self, end: End, effect: Effect) -> None:
        if isinstance(effect, Send):
            self._pass(end, effect)
        elif isinstance(effect, Tell):
            self.events.append(effect.event)
        elif isinstance(effect, Disconnect):
            self.hung_up[end.endpoint].append(effect.peer.decode())

    def _pass(self, end: End, effect: Send) -> None:
        message = codec.decode(codec.encode(effect.message))
        self.hellos += isinstance(message, Hello)
        if effect.channel == MESH:
            endpoint = effect.peer.decode()
            routing_id = b"%d>%s" % (end.context.settings.boot, effect.peer)
            self._dialled[routing_id] = (end, endpoint)
            there = self.ends.get(endpoint)
            if there is not None and not {end.endpoint, endpoint} & self.cut:
                self._hear(there, message, Source(HEARD, routing_id))
        else:
            there, endpoint = self._dialled[effect.peer]
            if there.endpoint in self.ends and not {there.endpoint, end.endpoint} & self.cut:
                self._hear(there, message, Source(MESH, endpoint.encode()))

    def _hear(self, end: End, message: codec.Message, source: Source) -> None:
        end.context.now = self.now
        try:
            if source.channel == HEARD:
                end.mesh.hear_call(message, source, self.now)
            else:
                end.mesh.hear_answer(message, source, self.now)
        except PeerError:
            end.context.count("refused")


def pair(**more: str) -> tuple[End, End, Wire]:
    """Two ends, of which one knows where the other is."""
    a, b = End("a", 1, peers=("10.0.0.2:27500",)), End("b", 2, **more)  # type: ignore[arg-type]  # texts only
    return a, b, Wire(a, b)


@pytest.mark.proves("LNK-020")
def test_one_that_knows_the_other_is_enough_for_both_to_be_linked() -> None:
    a, b, wire = pair()
    wire.run(2)
    assert ({"b": b.endpoint}, {"a": a.endpoint}) == (a.bus.members, b.bus.members)
    assert [("b", True)] == a.changes
    assert [("a", True)] == b.changes
    b.bus.say(b.context.info())
    wire.run(0.1)
    assert [("b", "info")] == [(peer, said.topic) for peer, said in a.said]


@pytest.mark.proves("LNK-021")
def test_whom_a_member_knows_everybody_comes_to_know() -> None:
    ends = [End("a", 1), *(End(f"n{number}", number, peers=("10.0.0.1:27500",)) for number in range(2, 8))]
    wire = Wire(*ends)
    wire.run(5)
    names = {end.context.name for end in ends}
    assert [names - {end.context.name} for end in ends] == [set(end.bus.members) for end in ends]


@pytest.mark.proves("LNK-021")
def test_a_mesh_that_starts_as_a_whole_says_hello_a_few_times_for_each_link_however_many_there_are() -> None:
    def hellos(count: int) -> float:
        every = tuple(f"10.0.0.{number}:27500" for number in range(1, count + 1))
        wire = Wire(*(End(f"n{number}", number, peers=every) for number in range(1, count + 1)))
        wire.run(5)
        assert {count - 1} == {len(end.bus.members) for end in wire.ends.values()}
        return wire.hellos / (count * (count - 1))

    assert hellos(20) <= hellos(5) <= 8


@pytest.mark.proves("LNK-021")
def test_silence_of_three_seconds_ends_a_link_and_it_comes_back() -> None:
    a, b, wire = pair()
    wire.run(2)
    wire.cut = {b.endpoint}
    wire.run(5)
    assert ({}, {}) == (a.bus.members, b.bus.members)
    assert StoreLinkDown("mesh", "b", "silent") in wire.events
    wire.cut = set()
    wire.run(10)
    assert ({"b": b.endpoint}, {"a": a.endpoint}) == (a.bus.members, b.bus.members)
    assert 2 == wire.events.count(StoreLinkUp("mesh", "b"))


@pytest.mark.proves("SIM-021")
def test_who_is_silent_is_called_through_a_new_socket_next_and_so_is_who_never_answers() -> None:
    a, b, wire = pair()
    wire.run(2)
    wire.cut = {b.endpoint}
    wire.run(5)
    assert [b.endpoint] == wire.hung_up[a.endpoint][:1]
    before = len(wire.hung_up[a.endpoint])
    wire.run(60)
    assert 1 <= len(wire.hung_up[a.endpoint]) - before <= 6


def test_who_calls_while_it_is_greeted_in_vain_is_greeted_at_once() -> None:
    a, b, wire = pair()
    del wire.ends[b.endpoint]
    wire.run(20)
    wire.ends[b.endpoint] = b
    b.mesh.know(a.endpoint)
    wire.run(0.3)
    assert ({"b": b.endpoint}, {"a": a.endpoint}) == (a.bus.members, b.bus.members)


def test_a_goodbye_ends_a_link_at_once() -> None:
    a, b, wire = pair()
    wire.run(2)
    b.mesh.stop(wire.now)
    wire.carry()
    assert {} == a.bus.members
    assert StoreLinkDown("mesh", "b", "stopping") in wire.events


def test_who_starts_again_is_greeted_again_at_once() -> None:
    a, b, wire = pair()
    wire.run(2)
    again = End("b", 2)
    again.context.settings = msgspec.structs.replace(again.context.settings, boot=9)
    wire.ends[again.endpoint] = again
    wire.run(3)
    assert {"b": b.endpoint} == a.bus.members
    assert 9 == a.mesh.peers[b.endpoint].boot
    assert {"a": a.endpoint} == again.bus.members


def test_who_goes_on_under_another_name_is_known_by_it_everywhere() -> None:
    a, b, wire = pair()
    wire.run(2)
    b.context.name = "b~2"
    b.mesh.greet_all(wire.now)
    wire.run(1)
    assert {"b~2": b.endpoint} == a.bus.members
    assert [("b", True), ("b", False), ("b~2", True)] == a.changes


@pytest.mark.proves("LNK-021")
def test_another_fabric_is_left_alone_for_a_minute() -> None:
    a, b, wire = pair(fabric="other")
    wire.run(2)
    assert LinkState.REFUSED is a.mesh.peers[b.endpoint].state
    refused_until = a.mesh.peers[b.endpoint].due_at
    wire.run(50)
    assert refused_until == a.mesh.peers[b.endpoint].due_at
    assert ({}, {}) == (a.bus.members, b.bus.members)


@pytest.mark.proves("LNK-022")
def test_of_two_live_nodes_of_one_name_the_newer_takes_no_orders_and_both_say_so() -> None:
    a, b = End("a", 1), End("b", 2, peers=("10.0.0.1:27500",))
    newer = End("b", 3, peers=("10.0.0.1:27500", "10.0.0.2:27500"))
    wire = Wire(a, b)
    wire.run(3)
    wire.ends[newer.endpoint] = newer
    wire.run(6)
    assert b.endpoint == a.bus.members["b"]
    assert ("", "name-collision") == (b.context.read_only, newer.context.read_only)
    assert BecameReadOnly("name-collision") in wire.events
    assert {NameCollision("b", newer.endpoint), NameCollision("b", b.endpoint)} <= {
        event for event in wire.events if isinstance(event, NameCollision)
    }


@pytest.mark.proves("LNK-022")
@pytest.mark.parametrize("away_s", [0.1, 0.5, 1, 2, 2.9, 3, 4, 10])
def test_a_node_that_starts_again_at_another_address_is_no_second_one(away_s: float) -> None:
    a, c, b = End("a", 1), End("c", 2, peers=("10.0.0.1:27500",)), End("b", 3, peers=("10.0.0.1:27500",))
    wire = Wire(a, c, b)
    wire.run(3)
    del wire.ends[b.endpoint]
    wire.run(away_s)
    moved = End("b", 4, peers=("10.0.0.1:27500", "10.0.0.2:27500"))
    wire.ends[moved.endpoint] = moved
    wire.run(10)
    assert "" == moved.context.read_only
    assert (moved.endpoint, moved.endpoint) == (a.bus.members.get("b"), c.bus.members.get("b"))
    assert [] == [event for event in wire.events if isinstance(event, NameCollision)]


@pytest.mark.proves("LNK-022")
def test_who_was_refused_for_its_name_is_accepted_once_the_older_one_is_gone() -> None:
    a, b = End("a", 1), End("b", 2, peers=("10.0.0.1:27500",))
    newer = End("b", 3, peers=("10.0.0.1:27500",))
    wire = Wire(a, b)
    wire.run(3)
    wire.ends[newer.endpoint] = newer
    wire.run(7)
    assert "name-collision" == newer.context.read_only
    del wire.ends[b.endpoint]
    wire.run(65)
    assert ("", newer.endpoint) == (newer.context.read_only, a.bus.members.get("b"))


@pytest.mark.proves("LNK-022")
def test_a_collision_that_a_server_at_a_broker_caused_is_not_for_the_mesh_to_end() -> None:
    a, b = End("a", 1), End("b", 2, peers=("10.0.0.1:27500", "10.0.0.9:27500"))
    wire = Wire(a, b)
    b.context.read_only = "name-collision"
    wire.run(30)
    assert ({"a": a.endpoint}, "name-collision") == (b.bus.members, b.context.read_only)


@pytest.mark.proves("LNK-022")
def test_who_was_refused_at_two_addresses_of_one_peer_is_accepted_at_both() -> None:
    a, b = End("a", 1), End("b", 2, peers=("10.0.0.1:27500",))
    newer = End("b", 3, peers=("10.0.0.1:27500", "10.0.0.9:27500"))
    wire = Wire(a, b)
    wire.ends["10.0.0.9:27500"] = a
    wire.run(3)
    wire.ends[newer.endpoint] = newer
    wire.run(10)
    assert "name-collision" == newer.context.read_only
    del wire.ends[b.endpoint]
    wire.run(130)
    assert ("", newer.endpoint) == (newer.context.read_only, a.bus.members.get("b"))


@pytest.mark.proves("LNK-022")
def test_a_doubt_of_long_ago_does_not_count_against_a_node_that_moves() -> None:
    a, b = End("a", 1), End("b", 3, peers=("10.0.0.1:27500",))
    wire = Wire(a, b)
    wire.run(3)
    passing = End("b", 4, peers=("10.0.0.1:27500",))
    wire.ends[passing.endpoint] = passing
    wire.run(0.1)
    del wire.ends[passing.endpoint]
    wire.run(10)
    del wire.ends[b.endpoint]
    moved = End("b", 5, peers=("10.0.0.1:27500",))
    wire.ends[moved.endpoint] = moved
    wire.run(10)
    assert ("", moved.endpoint) == (moved.context.read_only, a.bus.members.get("b"))


def test_a_node_that_calls_itself_by_another_address_notices() -> None:
    a = End("a", 1, peers=("10.0.0.9:27500",))
    wire = Wire(a)
    wire.ends["10.0.0.9:27500"] = a
    wire.run(2)
    assert ({}, {}) == (a.bus.members, a.mesh.peers)


def test_a_stranger_is_told_to_say_hello_first_and_changes_nothing() -> None:
    a = End("a", 1)
    with pytest.raises(PeerError) as caught:
        a.mesh.hear_call(Publication("update", b"\x80"), Source(HEARD, b"x"), Now(1, 1))
    assert "malformed" == caught.value.code
    assert [Send(HEARD, b"x", Bye("stranger"))] == a.context.take()
    assert [] == a.said


@pytest.mark.proves("LNK-023")
def test_a_mesh_takes_no_more_than_it_may_have() -> None:
    a = End("a", 1)
    for number in range(limits.MEMBERS_MAX + 10):
        a.mesh.know(f"10.1.0.{number}:27500")
    assert 256 == len(a.mesh.peers)


@pytest.mark.proves("FLD-010")
def test_a_flood_of_beacons_kept_a_member_out() -> None:
    a, b = End("a", 1), End("b", 2)
    for number in range(256):
        a.mesh.peer_heard(f"10.1.0.{number}:27500", Now(SECOND, SECOND))
    a.mesh.peer_heard(b.endpoint, Now(SECOND, SECOND))
    Wire(a, b).run(2)
    assert ({"b": b.endpoint}, 256) == (a.bus.members, len(a.mesh.peers))


def test_who_never_answers_is_forgotten_unless_a_file_names_it() -> None:
    a = End("a", 1, peers=("10.0.0.2:27500",))
    a.mesh.know("10.0.0.3:27500")
    Wire(a).run(6 * 400)
    assert ["10.0.0.2:27500"] == list(a.mesh.peers)


@pytest.mark.parametrize("state, on", list(TABLE), ids=str)
def test_every_cell_of_the_table_leads_where_it_says(state: LinkState, on: On) -> None:
    a = End("a", 1, peers=("10.0.0.2:27500",))
    peer = a.mesh.peers["10.0.0.2:27500"]
    peer.state, peer.node = state, "b"
    a.mesh._turn(peer, on, Now(9 * SECOND, 0), "why")
    assert TABLE[state, on].then is peer.state


@given(st.lists(st.binary(max_size=60), max_size=4))
def test_any_frames_are_a_message_or_refused(frames: list[bytes]) -> None:
    try:
        message = codec.decode(frames)
    except PeerError as error:
        assert error.code in ("malformed", "too-large", "bad-field", "bad-sum")
    else:
        assert isinstance(message, Hello | Beat | Bye | Publication)


HELLOS = st.builds(
    Hello,
    fabric=st.text(min_size=1, max_size=64),
    node=st.text(st.characters(codec="ascii", min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=64),
    boot=st.integers(0, (1 << 63) - 1),
    endpoint=st.text(max_size=128),
    client=st.integers(0, 65_535),
    peers=st.lists(st.text(max_size=128), max_size=4).map(tuple),
    tock=st.integers(0, (1 << 63) - 1),
)
SAID = st.builds(Publication, st.sampled_from(codec.TOPICS), st.binary())


@given(HELLOS | SAID | st.just(Beat()) | st.builds(Bye, st.text(max_size=16)))
def test_decode_of_encode_is_identity(message: codec.Message) -> None:
    assert message == codec.decode(codec.encode(message))


@pytest.mark.proves("LNK-021")
def test_who_was_stopped_or_busy_for_long_does_not_take_the_others_for_dead() -> None:
    a, b = End("a", 1, peers=("10.0.0.2:27500",)), End("b", 2)
    wire = Wire(a, b)
    wire.run(5)
    wire.now = Now(wire.now.mono + 10 * SECOND, wire.now.wall + 10 * SECOND)
    wire.run(5)
    assert (["b"], ["a"]) == (list(a.bus.members), list(b.bus.members))
    assert [] == [event for event in wire.events if isinstance(event, StoreLinkDown)]
    wire.cut.add(b.endpoint)
    wire.run(5)
    assert [] == list(a.bus.members)


@pytest.mark.proves("LNK-021")
def test_a_member_that_speaks_and_answers_late_is_busy_and_one_that_never_answers_is_deaf() -> None:
    a, b = End("a", 1, peers=("10.0.0.2:27500",)), End("b", 2)
    wire = Wire(a, b)
    wire.run(5)
    [peer] = a.mesh.peers.values()
    answered_at = peer.heard_at
    [routing_id] = a.mesh.callers
    for second in range(1, 40):
        now = Now(answered_at + second * SECOND, 0)
        a.mesh.hear_call(Beat(), Source(HEARD, routing_id, None), now)
        a.mesh.wake(now)
        assert (second < 30) == ("b" in a.bus.members), second


MESSAGES = [
    Hello(fabric="weft", node="a", boot=7, endpoint="127.0.0.1:5000", peers=("127.0.0.1:6000",), tock=3, sums=True),
    Publication("update", b"\x83\xa1a\x01", has_sum=True),
]


@pytest.mark.proves("FLD-030", part="links of the mesh of the store")
@pytest.mark.parametrize("message", MESSAGES, ids=("hello", "update"))
def test_no_bit_of_a_hello_or_of_a_change_can_flip_on_the_way_unnoticed(message: codec.Message) -> None:
    frames = codec.encode(message)
    assert message == codec.decode(frames)
    for at, frame in enumerate(frames):
        for bit in range(8 * len(frame)):
            altered = bytearray(frame)
            altered[bit // 8] ^= 1 << bit % 8
            try:
                heard = codec.decode([*frames[:at], bytes(altered), *frames[at + 1 :]])
            except PeerError:
                continue
            assert message == heard, (at, bit)  # the bit was one of the name of the sum's key


def test_a_member_of_an_earlier_version_is_sent_no_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = End("a", 1, peers=("10.0.0.2:27500", "10.0.0.3:27500")), End("b", 2)
    old = End("old", 3)
    hello = old.mesh._hello
    monkeypatch.setattr(old.mesh, "_hello", lambda: msgspec.structs.replace(hello(), sums=False))
    wire = Wire(a, b, old)
    wire.run(3)
    a.bus.say(a.context.info())
    wire.run(1)
    assert [True] == [said.has_sum for peer, said in b.said if peer == "a" and said.topic == "info"]
    assert [False] == [said.has_sum for peer, said in old.said if peer == "a" and said.topic == "info"]


def test_changes_have_a_sum_only_for_those_who_say_that_they_read_it() -> None:
    assert [b"update", b"x", b"\x08\xae\x18\xd6"] == codec.encode(Publication("update", b"x", has_sum=True))
    assert [b"update", b"x"] == codec.encode(Publication("update", b"x"))
    assert Publication("update", b"x") == codec.decode([b"update", b"x"])
