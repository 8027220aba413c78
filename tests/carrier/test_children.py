"""The side towards the children: who is taken, who is not, and what is made of what they say."""

from typing import Any

import pytest

from tests.carrier.rig import Machine, World, joined, spans
from weft.base.effects import Persist, Source
from weft.base.errors import PeerError
from weft.base.records import EraRecord, LostRecord, Stream, StreamRecord
from weft.base.spool import Journaled
from weft.cores.carrier.childprogress import ChildProgress, Progress
from weft.cores.carrier.memory import Received
from weft.cores.carrier.messages import (
    Beat,
    Bye,
    ChildJoined,
    ChildLost,
    ChildRefused,
    Hack,
    Hello,
    HoldBack,
    Hop,
    LoopFound,
    MessageRefused,
    ParentLost,
    ParentRefused,
    Refuse,
    Welcome,
)
from weft.cores.carrier.states import State
from weft.wire.carried import to_item
from weft.wire.hop import HopItem

A, B = b"a" * 16, b"b" * 16


class Play:
    """A parent whose children are played by the test."""

    def __init__(self, level: str = "root") -> None:
        self.world = World()
        self.machine: Machine = self.world.root("p") if level == "root" else self.world.collector("p", "")

    def say(self, peer: bytes, message: Any, proved: bytes | None = None) -> list[Any]:
        """Say a message to it; returns what it answers."""
        self.machine.said.clear()
        try:
            self.machine.core.receive(message, Source("down", peer, proved), self.world.now)
        finally:
            self.machine.do()
        return list(self.machine.said)

    def greet(self, peer: bytes, proved: bytes | None = None, **fields: Any) -> Any:
        standard: dict[str, Any] = {"v": 1, "role": "node", "name": "a", "id": A, "era": 7, "first": 1, "next": 1}
        answers = self.say(peer, Hello(**standard | fields), proved)
        assert 1 == len(answers)
        return answers[0]

    def hop(self, peer: bytes, first: int, *records: Any, era: int = 7, me: bytes = A) -> list[Any]:
        parts = [to_item(record, me) for record in records]
        frames = [frame for _, frames in parts for frame in frames]
        return self.say(peer, Hop(era, first, [item for item, _ in parts], frames))

    def told(self, kind: type) -> list[Any]:
        return self.machine.events(kind)


def sample(sequence: int, rows: int = 1, **fields: Any) -> StreamRecord:
    standard: dict[str, Any] = {"origin": A, "era": 7, "at": 0, "received": 0, "key": "", "payload": b"x"}
    standard |= {"stream": Stream.SAMPLES, "sequence": sequence, "attributes": {"n": rows}}
    return StreamRecord(**standard | fields)


@pytest.mark.proves("CLI-005")
@pytest.mark.parametrize(
    "message", [Beat(), Hop(7, 1, [HopItem(mid=(A, 7, 1), type="x", via=(A,), depth=0, ts=0)], [b""])]
)
def test_anything_but_hello_first_is_refused(message: Any) -> None:
    play = Play()
    assert [Refuse("bad-hello", "say hello first")] == play.say(b"1", message)
    assert [] == play.say(b"1", message), "one answer a second is enough"
    assert [] == play.say(b"2", Bye("done"))
    assert {"bad-hello": 2} == play.machine.core.counters.refused
    assert isinstance(play.greet(b"1"), Welcome)


@pytest.mark.proves("CLI-005")
@pytest.mark.parametrize(
    ("fields", "why", "event"),
    [
        ({"v": 2}, "version", "version"),
        ({"role": "client"}, "bad-hello", "bad-hello"),
        ({"name": "two words"}, "bad-hello", "bad-hello"),
        ({"first": 3, "next": 2}, "bad-hello", "bad-hello"),
        ({"id": b"p".ljust(16, b".")}, "denied", "myself"),
        ({"name": "p"}, "busy", "name-taken"),
    ],
)
def test_greetings_that_are_refused(fields: dict[str, Any], why: str, event: str) -> None:
    play = Play()
    for _ in range(3):
        assert why == play.greet(b"1", **fields).why
    assert [ChildRefused(fields.get("name", "a"), event)] == play.told(ChildRefused)
    assert 3 == play.machine.core.counters.refused[event]
    assert 0 == play.machine.core.counters.children


def test_a_name_that_the_key_does_not_prove_is_refused() -> None:
    play = Play()
    assert "denied" == play.greet(b"1", proved=B).why
    assert isinstance(play.greet(b"1", proved=A), Welcome)
    with pytest.raises(PeerError) as caught:
        play.say(b"1", Beat(), proved=B)
    assert "not-yours" == caught.value.code


@pytest.mark.proves("CHN-037")
def test_of_two_live_nodes_with_one_id_the_earlier_start_is_refused() -> None:
    play = Play()
    play.greet(b"1", era=8)
    assert "busy" == play.greet(b"2", era=7).why
    assert [ChildRefused("a", "two-nodes-one-id")] == play.told(ChildRefused)
    play.world.advance(6)
    assert isinstance(play.greet(b"2", era=7), Welcome), "the other one is silent"


@pytest.mark.proves("CHN-037")
def test_a_restarted_node_is_not_locked_out_by_its_own_ghost() -> None:
    play = Play()
    play.greet(b"1", era=7)
    assert isinstance(play.greet(b"2", era=8), Welcome)
    assert [ChildLost(A, "a", "replaced")] == play.told(ChildLost)
    assert [Refuse("bad-hello", "say hello first")] == play.say(b"1", Beat())
    assert "busy" == play.greet(b"3", era=7).why, "the older one was alive: a clone, and that is told"


def test_a_fresh_socket_of_the_same_start_takes_the_place_of_the_old_one() -> None:
    play = Play()
    play.greet(b"1")
    play.hop(b"1", 1, sample(1))
    assert 1 == play.greet(b"2", next=2).upto
    assert 1 == play.machine.core.counters.children


def test_of_two_live_nodes_with_one_name_the_newer_is_refused() -> None:
    play = Play()
    play.greet(b"1", id=A)
    assert "busy" == play.greet(b"2", id=B).why
    assert [ChildRefused("a", "name-taken")] == play.told(ChildRefused)
    play.world.advance(6)
    assert isinstance(play.greet(b"2", id=B), Welcome)
    assert [ChildLost(A, "a", "silent")] == play.told(ChildLost)


def test_the_last_eras_of_a_child_are_kept() -> None:
    play = Play()
    for era in range(10, 16):
        play.greet(b"%d" % era, era=era)
        play.hop(b"%d" % era, 1, sample(1, era=era), era=era)
    kept = {era: play.machine.core.parent.progress.find(A, era) is not None for era in range(10, 16)}
    assert {10: False, 11: False, 12: True, 13: True, 14: True, 15: True} == kept


@pytest.mark.proves("CHN-032")
def test_numbers_that_were_here_are_counted_and_acknowledged_again() -> None:
    play = Play()
    play.greet(b"1")
    play.hop(b"1", 1, sample(1), sample(2))
    (hack,) = play.hop(b"1", 1, sample(1), sample(2), sample(3))
    assert (3, 3, False) == (hack.upto, hack.safe, hack.back)
    assert [1, 2, 3] == [record.sequence for record in play.machine.samples()]
    assert (2, 3) == (play.machine.core.counters.repeated, play.machine.core.counters.accepted)


@pytest.mark.proves("CHN-032")
def test_an_old_hop_takes_nothing_back() -> None:
    play = Play()
    play.greet(b"1")
    play.hop(b"1", 1, sample(1), sample(2), sample(3))
    (hack,) = play.hop(b"1", 1, sample(1), sample(2))
    assert 3 == hack.upto
    (hack,) = play.hop(b"1", 4, sample(4))
    assert (4, False) == (hack.upto, hack.back)


@pytest.mark.proves("CHN-032", "CHN-038")
def test_a_greeting_in_the_turn_of_a_hop_finds_it_there() -> None:
    play = Play("collector")
    play.greet(b"1")
    core, now = play.machine.core, play.world.now
    item, frames = to_item(sample(1), A)
    core.receive(Hop(7, 1, [item], frames), Source("down", b"1"), now)
    hello = Hello(v=1, role="node", name="a", id=A, era=7, first=1, next=2)
    core.receive(hello, Source("down", b"2"), now)
    play.machine.said.clear()
    play.machine.do()
    (welcome,) = play.machine.heard_to_say(Welcome)
    assert 1 == welcome.upto
    play.hop(b"2", 1, sample(1), sample(2))
    assert [1, 2] == [record.sequence for record in play.machine.samples()]


@pytest.mark.proves("CHN-038")
def test_what_a_child_says_is_safe_is_safe_at_a_new_parent_too() -> None:
    play = Play("collector")
    welcome = play.greet(b"1", first=5, next=8)
    assert (4, 4) == (welcome.upto, welcome.safe)
    (hack,) = play.hop(b"1", 5, sample(5))
    assert (5, 4) == (hack.upto, hack.safe)


@pytest.mark.proves("RTE-004")
def test_what_is_only_refused_becomes_safe_with_what_is_there() -> None:
    play = Play("collector")
    play.greet(b"1")
    (hack,) = play.hop(b"1", 1, sample(1, origin=B, attributes={"via": [B, play.machine.node]}))
    assert (1, 0) == (hack.upto, hack.safe)
    play.machine.order(Journaled(play.machine.next_lsn, ()))
    play.world.advance(2)
    assert 1 == play.machine.heard_to_say(Hack)[-1].safe


def test_one_gap_is_answered_once() -> None:
    play = Play()
    play.greet(b"1")
    (hack,) = play.hop(b"1", 2, sample(2))
    assert (0, True) == (hack.upto, hack.back)
    assert [] == play.hop(b"1", 3, sample(3))
    (hack,) = play.hop(b"1", 1, sample(1))
    assert (1, False) == (hack.upto, hack.back)
    (hack,) = play.hop(b"1", 3, sample(3))
    assert (1, True) == (hack.upto, hack.back)


@pytest.mark.proves("CHN-032")
def test_a_stream_of_another_era_is_refused() -> None:
    play = Play()
    play.greet(b"1", era=7)
    with pytest.raises(PeerError) as caught:
        play.hop(b"1", 1, sample(1), era=6)
    assert "bad-era" == caught.value.code
    assert [] == play.machine.samples()


@pytest.mark.proves("CHN-033", "JRN-001")
def test_what_a_turn_brings_is_one_wall_with_the_answers_below_it() -> None:
    play = Play()
    play.greet(b"1", id=A, name="a")
    play.greet(b"2", id=B, name="b")
    core, now = play.machine.core, play.world.now
    for peer, me, number in ((b"1", A, 1), (b"2", B, 1), (b"1", A, 2)):
        item, frames = to_item(sample(number, origin=me), me)
        core.receive(Hop(7, number, [item], frames), Source("down", peer), now)
    effects = core.effects()
    assert ["Persist", "Send", "Send"] == [type(effect).__name__ for effect in effects]
    assert isinstance(effects[0], Persist)
    kinds = [type(record).__name__ for record in effects[0].records]
    assert ["StreamRecord", "StreamRecord", "CoreRecord", "StreamRecord", "CoreRecord"] == kinds


@pytest.mark.proves("CHN-036", "MEA-027")
def test_the_root_keeps_each_identity_once() -> None:
    play = Play()
    play.greet(b"1", id=A, name="a")
    play.greet(b"2", id=B, name="b")
    play.hop(b"1", 1, sample(1, 3), sample(4, 3), sample(1, stream=Stream.EVENTS))
    (hack,) = play.hop(b"2", 1, sample(4, 3), sample(7, 3), sample(1, 3), sample(1, stream=Stream.LOGS), me=B)
    assert 4 == hack.upto
    kept = [(record.stream, record.sequence, record.last) for record in play.machine.samples()]
    assert [(1, 1, 3), (1, 4, 6), (4, 1, 1), (1, 7, 9), (3, 1, 1)] == kept
    assert 2 == play.machine.core.counters.known


def test_a_collector_forwards_what_comes_twice() -> None:
    play = Play("collector")
    play.greet(b"1", id=A, name="a")
    play.greet(b"2", id=B, name="b")
    play.hop(b"1", 1, sample(1))
    play.hop(b"2", 1, sample(1), me=B)
    assert 2 == len(play.machine.samples())


@pytest.mark.proves("CHN-036")
def test_a_batch_that_repeats_a_part_is_refused_and_its_other_numbers_are_announced_as_lost() -> None:
    play = Play()
    play.greet(b"1")
    play.hop(b"1", 1, sample(3, 4))
    (hack,) = play.hop(b"1", 2, sample(1, 10), sample(20))
    assert (3, [(2, "overlap")]) == (hack.upto, hack.no)
    assert [LostRecord(1, A, 7, 1, 2, "overlap"), LostRecord(1, A, 7, 7, 10, "overlap")] == play.machine.lost()
    assert [3, 20] == [record.sequence for record in play.machine.samples()]
    assert {"overlap": 1} == play.machine.core.counters.refused
    assert [MessageRefused("a", 2, "overlap")] == play.told(MessageRefused)


def test_losses_and_era_links_are_kept_once() -> None:
    play = Play("collector")
    play.greet(b"1")
    notes = [LostRecord(1, A, 7, 3, 4, "spool-full"), EraRecord(1, A, 7, 6, 9)]
    play.hop(b"1", 1, *notes)
    (hack,) = play.hop(b"1", 3, *notes)
    assert 4 == hack.upto
    assert notes == [record for record in play.machine.archive() if type(record).__name__ != "CoreRecord"]
    assert 2 == play.machine.core.counters.known


@pytest.mark.proves("RTE-004")
def test_a_message_that_was_here_before_is_refused_for_good() -> None:
    play = Play("collector")
    play.greet(b"1")
    (hack,) = play.hop(b"1", 1, sample(1, origin=B, attributes={"via": [B, play.machine.node]}), sample(2))
    assert (2, [(1, "loop")]) == (hack.upto, hack.no)
    assert [2] == [record.sequence for record in play.machine.samples()]
    assert {"loop": 1} == play.machine.core.counters.refused


def test_what_a_former_root_gives_back_is_taken_and_what_was_never_given_is_not() -> None:
    play = Play("collector")
    me = play.machine.node
    play.greet(b"1")
    era = play.machine.core.context.era
    play.machine.core.command(Journaled(1, (sample(1, 5, origin=me, era=era),)), play.world.now)
    before, given = sample(3, origin=me, era=era - 1), sample(1, 5, origin=me, era=era)
    (hack,) = play.hop(b"1", 1, before, given, sample(6, origin=me, era=era), sample(1, origin=me, era=era + 1))
    assert (4, [(3, "loop"), (4, "loop")]) == (hack.upto, hack.no)
    assert [(era - 1, 3), (era, 1)] == [(record.era, record.sequence) for record in play.machine.samples()]


def test_at_a_root_a_way_ends() -> None:
    play = Play()
    play.greet(b"1")
    play.hop(b"1", 1, sample(1, origin=B, attributes={"via": [B]}))
    assert [{}] == [record.attributes for record in play.machine.samples()]


@pytest.mark.parametrize("to", [None, ["PARENTSOF"]])
def test_a_message_without_a_frame_that_nobody_let_expire_is_refused_for_good(to: Any) -> None:
    play = Play()
    play.greet(b"1")
    empty = HopItem(mid=(A, 7, 1), type="demo.report", to=to, via=(A,), depth=0, ts=0, n=0)
    (hack,) = play.say(b"1", Hop(7, 1, [empty], []))
    counters = play.machine.core.counters
    assert (1, [(1, "empty")], 0, 1, {"empty": 1}) == (
        hack.upto,
        hack.no,
        counters.expired,
        counters.turned_away,
        counters.refused,
    )


def test_an_expired_message_is_counted_and_acknowledged() -> None:
    play = Play()
    play.greet(b"1")
    gone = HopItem(mid=(A, 7, 1), type="demo.report", via=(A,), depth=0, ts=0, exp=5, n=0)
    (hack,) = play.say(b"1", Hop(7, 1, [gone], []))
    assert (1, 1) == (hack.upto, play.machine.core.counters.expired)


@pytest.mark.proves("FUZ-001")
def test_an_item_that_is_no_record_does_not_block_the_others() -> None:
    play = Play()
    play.greet(b"1")
    bad = HopItem(mid=(A, 7, 0), type="weft.metric", via=(A,), depth=0, ts=0)
    good, frames = to_item(sample(1), A)
    (hack,) = play.say(b"1", Hop(7, 1, [bad, good], [b"", *frames]))
    assert (2, [(1, "bad-record")]) == (hack.upto, hack.no)
    assert [1] == [record.sequence for record in play.machine.samples()]


def test_records_without_a_promise_are_refused_for_good() -> None:
    play = Play()
    play.greet(b"1")
    item, frames = to_item(sample(1), A)
    (hack,) = play.say(b"1", Hop(8, 1, [item], frames, mem=True))
    assert (8, 1, [(1, "unimplemented")]) == (hack.era, hack.upto, hack.no)
    assert [] == play.machine.samples()


def test_a_full_parent_stops_its_children_and_lets_them_go_on() -> None:
    world = World()
    root = world.root()
    a = world.sensor("a")
    a.names_era = False
    world.settle()
    a.make()
    world.settle()
    a.make()
    root.order(HoldBack(is_full=True))
    world.settle()
    assert State.STOPPED is a.core.state
    for _ in range(100):
        a.make()
        world.advance(1)
    assert (State.STOPPED, 1) == (a.core.state, len(root.samples()))
    assert 1 == root.core.counters.held_back
    root.order(HoldBack(is_full=False))
    world.settle()
    assert (State.OPEN, 102) == (a.core.state, len(root.samples()))
    assert [] == a.events(ParentLost)


def test_what_a_full_parent_did_not_take_comes_again_by_itself() -> None:
    world = World()
    root = world.root()
    a = world.sensor("a")
    world.settle()
    root.core.command(HoldBack(is_full=True), world.now)
    a.make()
    world.settle()
    assert (2, 0) == (root.core.counters.held_back, len(root.samples()))
    root.order(HoldBack(is_full=False))
    world.settle()
    assert 1 == len(root.samples())


@pytest.mark.proves("RTE-004", "RTE-008")
def test_two_nodes_that_are_each_other_s_parents_lose_nothing() -> None:
    world = World()
    root = world.root()
    c = world.collector("c", "d")
    d = world.collector("d", "c")
    a = world.sensor("a", "c")
    for _ in range(30):
        a.make()
        c.make()
        world.advance(1)
    assert c.events(ParentRefused) + d.events(ParentRefused) + c.events(LoopFound) + d.events(LoopFound)
    assert 0 == a.core.counters.safe
    c.crash()
    c.parent = "root"
    c.start()
    world.advance(60)
    arrived = {origin: joined(pieces) for origin, pieces in spans(root.samples()).items()}
    assert [(1, 30)] == arrived[a.node, a.era]
    assert 60 == len(root.samples())


@pytest.mark.proves("RTE-008")
def test_three_nodes_in_a_ring_lose_nothing_and_do_not_write_for_ever() -> None:
    world = World()
    root = world.root()
    c, d, e = world.collector("c", "d"), world.collector("d", "e"), world.collector("e", "c")
    a = world.sensor("a", "c")
    for _ in range(20):
        a.make()
        world.advance(1)
    world.advance(120)
    assert [LoopFound("c")] == e.events(LoopFound)
    assert 0 == a.core.counters.safe
    assert all(m.next_lsn < 500 for m in (c, d, e)), "nothing goes round"
    c.crash()
    c.parent = "root"
    c.start()
    world.advance(60)
    assert {(a.node, a.era): [(1, 20)]} == {origin: joined(p) for origin, p in spans(root.samples()).items()}
    assert [0, 0, 0] == [m.core.counters.spool_records for m in (c, d, e)]


def test_goodbyes_are_said_and_understood() -> None:
    world = World()
    root = world.root()
    c = world.collector("c")
    a = world.sensor("a", "c")
    world.settle()
    world.stop("a")
    world.settle()
    assert [ChildLost(a.node, "a", "stopping")] == c.events(ChildLost)
    b = world.sensor("b", "c")
    world.settle()
    world.stop("c")
    world.settle()
    assert [ParentLost("bye: stopping")] == b.events(ParentLost)
    assert [ChildLost(c.node, "c", "stopping")] == root.events(ChildLost)
    assert [] == [hello for hello in c.told if isinstance(hello, ChildJoined) and hello.name == "b"][1:]


@pytest.mark.proves("CLI-005")
def test_children_hear_beats_and_the_silent_ones_are_given_up() -> None:
    play = Play()
    play.greet(b"1", id=A, name="a")
    play.machine.said.clear()
    play.world.advance(4)
    assert 2 <= len(play.machine.heard_to_say(Beat)) <= 4
    play.world.advance(2)
    assert [ChildLost(A, "a", "silent")] == play.told(ChildLost)
    assert play.machine.core.parent.deadline() is None, "nobody is there to be looked after"


@pytest.mark.proves("REC-001")
def test_a_suspended_parent_gives_its_children_time_to_speak() -> None:
    play = Play()
    play.greet(b"1")
    play.world.advance(1)
    play.world.sleep(3_600)
    play.machine.core.wake(play.world.now)
    play.machine.do()
    assert [] == play.told(ChildLost)


@pytest.mark.proves("MEA-024")
def test_safe_is_said_only_of_what_is_safe_above() -> None:
    world = World()
    root, c = world.root(), world.collector("c")
    a = world.sensor("a", "c")
    world.settle()
    world.cut("c")
    for _ in range(5):
        a.make()
        world.advance(0.1)
    hacks = c.heard_to_say(Hack)
    assert ([6], {0}) == ([max(h.upto for h in hacks)], {h.safe for h in hacks})
    world.heal("c")
    world.advance(20)
    assert 6 == max(hack.safe or 0 for hack in c.heard_to_say(Hack))
    assert 6 == a.core.counters.safe
    assert 5 == len(root.samples())


@pytest.mark.proves("MEA-024")
@pytest.mark.parametrize("hops", [1, 2, 255, 256, 257, 258, 1_000, 1_001])
def test_many_marks_are_thinned_out_and_the_last_one_stays(hops: int) -> None:
    progress = Progress()
    told = 0
    for upto in range(1, hops + 1):
        progress.mark(upto, 10 * upto)
        assert len(progress.marks) <= 256
    for frontier in range(0, 10 * hops, 7):
        progress.pass_on(frontier)
        assert progress.safe <= frontier // 10
        assert told <= progress.safe
        told = progress.safe
    assert progress.pass_on(10 * hops)
    assert hops == progress.safe


@pytest.mark.proves("MEA-024")
def test_marks_of_earlier_hops_stay_beside_later_ones() -> None:
    kept = ChildProgress(is_safe_at_once=False)
    for upto in (1, 2, 3):
        kept.note(Received(A, 7, upto), lsn=10 * upto + 1, last=10 * upto)
    assert [(A, 7)] == kept.pass_on(20)
    progress = kept.find(A, 7)
    assert progress is not None
    assert (2, 3) == (progress.safe, progress.upto)
    kept.note(Received(A, 7, 4), lsn=41, last=40)
    assert (2, 4) == (progress.safe, progress.upto)


def test_what_was_safe_is_safe_after_a_restart() -> None:
    world = World()
    world.root()
    c = world.collector("c")
    a = world.sensor("a", "c")
    for _ in range(3):
        a.make()
        world.advance(2)
    c.crash()
    c.start()
    progress = c.core.parent.progress.find(a.node, a.era)
    assert progress is not None
    assert (4, 4) == (progress.upto, progress.safe)
