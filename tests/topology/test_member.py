"""A root calls, nodes answer, and each is told its place: the dialogue of joining, word by word."""

import contextlib
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.base.chance import Chance
from weft.base.effects import Connect, Effect, Persist, Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.base.records import DamageRecord
from weft.cores.topology.core import Topology
from weft.cores.topology.messages import (
    Announcement,
    Answer,
    Asked,
    Beacon,
    Control,
    LearnPairs,
    ParentIs,
    PlaceAssigned,
    PlaceLost,
    RecordsWanted,
    RecordWritten,
    RootKnown,
    RootTaken,
    TopologySettings,
    Wtf,
)
from weft.cores.topology.states import Role, Standing

GROUP = (("/CONFIG/all/members", b'["*"]'),)


def at(seconds: float) -> Now:
    return Now(round(seconds * SECOND), 1_795_000_000 * SECOND + round(seconds * SECOND))


def make(name: str, port: int, **changes: Any) -> Topology:
    settings = TopologySettings(
        fleet="lab", name=name, level=changes.pop("level", "auto"), base_port=port, beacons=False, **changes
    )
    core = Topology(settings, name.encode().ljust(16, b"."), 1, Chance(name))
    core.restore((), at(0))
    return core


def run(core: Topology, until: float) -> list[Effect]:
    """Wake it as often as it asks for until then."""
    done = core.effects()
    while (due := core.deadline()) is not None and due <= until * SECOND:
        core.wake(Now(due, due))
        done += core.effects()
    return done


def events(effects: list[Effect]) -> list[Any]:
    return [effect.event for effect in effects if isinstance(effect, Tell)]


def sent(effects: list[Effect], channel: str) -> list[Any]:
    return [effect.message for effect in effects if isinstance(effect, Send) and effect.channel == channel]


def make_root(*, join: tuple[str, ...] = ()) -> Topology:
    root = make("root", 27_500, level="root", join=join)
    root.command(LearnPairs(GROUP, 1), at(0))
    return root


@pytest.mark.proves("TOP-001", "TOP-002", "TOP-003", "TOP-010", "TOP-012", "TOP-016")
def test_a_node_is_called_answers_and_is_told_its_place_after_its_record_is_written() -> None:
    root, node = make_root(join=("127.0.0.1:27600",)), make("n1", 27_600)
    run(node, 0)
    said = run(root, 4)
    assert [RootTaken(0, False, 1, 1)] == events(said)[:1]
    assert [Connect("announce", "127.0.0.1:27600")] == [e for e in said if isinstance(e, Connect)]
    marco = sent(said, "announce")[0]
    assert ("/MARCO", "127.0.0.1:27500", root.node) == (marco.key, marco.endpoint, marco.uuid)
    assert {"fleet": "lab", "epoch": 0, "count": 1, "protocol": 1} == {
        name: marco.content[name] for name in ("fleet", "epoch", "count", "protocol")
    }

    node.receive(marco, Source("announced", b""), at(4))
    assert Standing.CALLED is node.standing
    polo = sent(node.effects(), "call")[0]
    assert ("polo", "127.0.0.1:27600", node.node) == (polo.command, polo.endpoint, polo.uuid)

    root.receive(Asked((b"",), polo), Source("control", b"\x00id"), at(4))
    effects = root.effects()
    wanted = next(event for event in events(effects) if isinstance(event, RecordsWanted))
    assert [] == sent(effects, "control")  # not before it is written
    assert [f"/TOPO/all/node/{node.node.hex()}"] == [key for key, _ in wanted.writes]
    assert all(len(key) + len(value) <= 400 for key, value in wanted.writes)

    root.command(RecordWritten(wanted.ticket), at(4))
    (answer,) = sent(root.effects(), "control")
    assert isinstance(answer, Answer)
    node.receive(answer.message, Source("call", b"127.0.0.1:27500"), at(4))
    effects = node.effects()
    place = PlaceAssigned("127.0.0.1:27500", "root", "127.0.0.1:27500", "collector", "all", 1, 0, ("/",))
    assert [place, RootKnown(root.node, 0)] == events(effects)
    assert isinstance(effects[0], Persist)
    assert Standing.JOINED is node.standing


def test_the_root_of_a_file_waits_two_beats_without_its_disk_and_not_at_all_with_it_alone() -> None:
    root = make_root()
    assert [] == events(run(root, 3.9))
    assert Role.STARTING is root.role
    effects = run(root, 4.0)
    assert RootTaken(0, False, 1, 1) in events(effects)
    kept = [record for effect in effects if isinstance(effect, Persist) for record in effect.records]
    again = make("root", 27_500, level="root")
    again.restore(list(enumerate(kept, 1)), at(0))
    assert RootTaken(0, False, 1, 1) in events(run(again, 0))


@pytest.mark.proves("JRN-023")
def test_a_root_that_has_lost_records_and_has_no_collectors_leads_without_a_person() -> None:
    root = make("root", 27_500, level="root")
    root.restore([(1, DamageRecord(1, 2, "file", "why"))], at(0))
    assert Role.ROOT is (run(root, 60) and root.role)


@pytest.mark.proves(
    "SEC-026", part="whose key is no collector's is placed as none, whatever its file and its group say"
)
@pytest.mark.parametrize("level", ["auto", "collector", "root"])
@pytest.mark.parametrize("may_serve, placed", [(True, "branch"), (False, "leaf")])
def test_who_may_not_serve_others_is_never_made_a_collector(level: str, may_serve: bool, placed: str) -> None:
    root, node = make_root(), make("n1", 27_600)
    root.command(LearnPairs((("/CONFIG/all/collectors", b'["127.0.0.1:27600"]'),), 2), at(0))
    root.may = lambda who, verb: may_serve or (who, verb) != (node.node, "serve")
    run(root, 4)
    polo = Control(
        "polo", node.context.endpoint, node.node, {"fleet": "lab", "name": "n1", "level": level, "protocol": 1}
    )
    for second in (5, 6):
        root.receive(Asked((b"",), polo), Source("control", b"id"), at(second))
        writes = [w for e in events(root.effects()) if isinstance(e, RecordsWanted) for w in e.writes]
        levels = [json.loads(value)["level"] for _, value in writes]
        assert [placed] * len(levels) == levels
        assert levels or second == 6


def test_a_node_whose_group_comes_back_before_its_record_is_deleted_is_recorded_again() -> None:
    root, node = make_root(), make("n1", 27_600)
    run(root, 4)
    polo = Control("polo", node.context.endpoint, node.node, node.member.portrait(at(4)))

    def written() -> list[tuple[str, bytes]]:
        root.receive(Asked((b"",), polo), Source("control", b"id"), at(5))
        wanted = [event for event in events(root.effects()) if isinstance(event, RecordsWanted)]
        return [write for event in wanted for write in event.writes]

    ((key, record),) = written()
    root.command(RecordWritten(1), at(5))
    root.command(LearnPairs(((key, record),), 2), at(5))
    root.command(LearnPairs((("/CONFIG/all/members", b'["x"]'),), 3), at(5))
    assert [(key, b"")] == written()
    root.command(LearnPairs(GROUP, 4), at(5))
    assert [(key, record)] == written()


def test_a_call_of_another_fleet_or_in_plain_text_is_no_reason_to_stop() -> None:
    node = make("n1", 27_600)
    run(node, 0)
    other = Announcement("/MARCO", "127.0.0.1:27500", b"r" * 16, {"fleet": "elsewhere", "epoch": 9})
    node.receive(other, Source("announced", b""), at(1))
    assert Standing.BASE is node.standing
    node.receive(Announcement("/MARCO", "127.0.0.1:27500", b"r" * 16, {"text": "7"}), Source("announced", b""), at(1))
    assert ["polo"] == [said.command for said in sent(node.effects(), "call") if isinstance(said, Control)]


def called(
    node: Topology, *, epoch: int = 0, endpoint: str = "127.0.0.1:27500", why: str = "", t: float = 1
) -> list[Any]:
    content: dict[str, Any] = {"fleet": "lab", "epoch": epoch, "count": 1, "protocol": 1}
    if why:
        content["why"] = why
    node.receive(Announcement("/MARCO", endpoint, b"r" * 16, content), Source("announced", b""), at(t))
    return sent(node.effects(), "call")


def answered(node: Topology, message: Any, endpoint: str = "127.0.0.1:27500", t: float = 1) -> list[Effect]:
    node.receive(message, Source("call", endpoint.encode()), at(t))
    return node.effects()


def assignment(node: Topology, **changes: Any) -> Control:
    properties = {
        "parent": "127.0.0.1:27600",
        "root": "127.0.0.1:27500",
        "level": "leaf",
        "group": "web",
        "tier": 2,
        "epoch": 0,
        "alternates": ["127.0.0.1:27700"],
        **changes,
    }
    return Control("assignment", "127.0.0.1:27900", node.node, properties)


def joined(**changes: Any) -> Topology:
    node = make("n1", 27_900)
    run(node, 0)
    called(node)
    answered(node, assignment(node, **changes))
    assert Standing.JOINED is node.standing
    return node


@pytest.mark.parametrize("code, least, most", [(5, 0.9, 1.1), (7, 0.9, 1.1), (10, 27, 33), (3, 27, 33)])
def test_a_refusal_is_answered_by_a_pause_that_grows(code: int, least: float, most: float) -> None:
    node = make("n1", 27_900)
    run(node, 0)
    called(node)
    pauses, t = [], 1.0
    for _ in range(3):
        answered(node, Wtf(code, "no"), t=t)
        due = node.deadline()
        assert due is not None
        pauses.append(due / SECOND - t)
        t = due / SECOND
        node.wake(Now(due, due))
        assert ["polo"] == [said.command for said in sent(node.effects(), "call")]
    assert least <= pauses[0] <= most
    assert all(1.6 <= later / before <= 2.5 for before, later in pairwise(pauses))


def test_silence_is_answered_by_asking_again_for_ever() -> None:
    node = make("n1", 27_900, join=("127.0.0.1:27500", "127.0.0.1:27501"))
    asked, effects = [], []
    for _ in range(60):
        due = node.deadline()
        assert due is not None
        node.wake(Now(due, due))
        effects += node.effects()
    asked = [e.peer for e in effects if isinstance(e, Send) and e.channel == "call"]
    assert {b"127.0.0.1:27500", b"127.0.0.1:27501"} == {*asked}
    assert len(asked) >= 29


def test_a_node_in_a_pause_is_deaf_to_the_same_call_but_not_to_a_later_root_or_a_group() -> None:
    node = make("n1", 27_900)
    run(node, 0)
    called(node)
    answered(node, Wtf(10, "no group"))
    assert [] == called(node)
    assert ["polo"] == [said.command for said in called(node, epoch=1, endpoint="127.0.0.1:27501")]


@pytest.mark.proves("TOP-006")
def test_a_referral_is_followed_but_not_in_a_ring() -> None:
    node = make("n1", 27_900, join=("127.0.0.1:27501",))
    run(node, 0)
    asked = []
    for turn in range(8):
        peer = f"127.0.0.1:{27_501 + turn % 2}"
        effects = answered(node, Wtf(12, f"the root is 127.0.0.1:{27_501 + (turn + 1) % 2}"), peer)
        asked += sent(effects, "call")
    assert 4 == len(asked)
    assert Standing.BASE is node.standing


def test_who_is_no_root_says_who_is() -> None:
    node = joined()
    polo = Control("polo", "127.0.0.1:28000", b"x" * 16, {})
    node.receive(Asked((b"",), polo), Source("control", b"id"), at(2))
    (answer,) = sent(node.effects(), "control")
    assert Answer((b"",), Wtf(12, "the root is 127.0.0.1:27500")) == answer


@pytest.mark.proves("TOP-007")
def test_a_polo_says_who_one_is_and_what_one_holds() -> None:
    node = make("n1", 27_900, labels={"rack": "r7"})
    node.command(LearnPairs((), (2 << 40) + 9), at(0))
    run(node, 0)
    (polo,) = called(node)
    said = polo.properties
    assert (1, {"rack": "r7"}, [2, 9], ["strict"]) == (
        said["incarnation"],
        said["labels"],
        said["holds"],
        said["dialects"],
    )


@pytest.mark.proves("TOP-012")
def test_an_assignment_is_kept_told_and_moves_only_if_it_is_another() -> None:
    node = joined()
    assert [] == events(answered(node, assignment(node)))
    (moved,) = events(answered(node, assignment(node, parent="127.0.0.1:27700", name="c2")))
    assert ("127.0.0.1:27700", "c2", "web", 2) == (moved.parent, moved.parent_name, moved.group, moved.tier)
    again = make("n1", 27_900)
    again.restore(list(enumerate(node.condense(), 1)), at(0))
    assert [moved] == [event for event in events(run(again, 0)) if isinstance(event, PlaceAssigned)]


def test_assignments_that_cannot_be_are_refused_and_change_nothing() -> None:
    node = joined(epoch=3)
    wrong: list[dict[str, Any]] = [
        {"parent": "nowhere"},
        {"level": "king"},
        {"tier": 99},
        {"group": "a/b"},
        {"epoch": 2},
        {"alternates": ["x"]},
        {"epoch": -1},
        {"root_uuid": "that of a king"},
    ]
    for changes in wrong:
        with pytest.raises(PeerError):
            answered(node, assignment(node, **{"epoch": 3, **changes}))
    with pytest.raises(PeerError):
        answered(node, assignment(node, epoch=4), "127.0.0.1:9999")  # nobody asked that one
    other = Control("assignment", "127.0.0.1:27900", b"z" * 16, assignment(node, epoch=3).properties)
    with pytest.raises(PeerError):
        answered(node, other)
    assert ("127.0.0.1:27600", 3) == (node.context.place.parent, node.context.place.epoch)


def test_a_root_of_the_past_is_told_who_leads_now() -> None:
    node = joined(epoch=3)
    (wtf,) = called(node, epoch=1, endpoint="127.0.0.1:27999")
    assert (9, "epoch 3 is led by 127.0.0.1:27500") == (wtf.code, wtf.text)


def test_a_node_of_another_fleet_is_refused() -> None:
    root = make_root()
    run(root, 4)
    polo = Control("polo", "127.0.0.1:27900", b"n" * 16, {"incarnation": 1, "fleet": "elsewhere"})
    root.receive(Asked((b"",), polo), Source("control", b"id"), at(5))
    assert [3] == [said.message.code for said in sent(root.effects(), "control")]


def test_who_asks_a_root_that_is_starting_is_answered_when_it_leads() -> None:
    root = make_root()
    run(root, 1)
    polo = Control("polo", "127.0.0.1:27900", b"n" * 16, {"incarnation": 1})
    root.receive(Asked((b"",), polo), Source("control", b"id"), at(2))
    assert [] == sent(root.effects(), "control")
    wanted = [event for event in events(run(root, 4)) if isinstance(event, RecordsWanted)]
    root.command(RecordWritten(wanted[-1].ticket), at(4))
    assert ["assignment"] == [said.message.command for said in sent(root.effects(), "control")]


def test_before_there_are_groups_nobody_is_sent_away_for_long() -> None:
    root = make("root", 27_500, level="root")
    run(root, 4)
    polo = Control("polo", "127.0.0.1:27900", b"n" * 16, {"incarnation": 1})
    root.receive(Asked((b"",), polo), Source("control", b"id"), at(5))
    assert [7] == [said.message.code for said in sent(root.effects(), "control")]
    root.command(LearnPairs(GROUP, 1), at(6))
    assert ["/GROUP/all/"] == [said.key for said in sent(run(root, 6), "announce") if said.group]


def test_an_unknown_node_is_a_newcomer_again() -> None:
    node = joined()
    node.command(ParentIs("silent"), at(5))
    run(node, 5)
    effects = answered(node, Wtf(4, "who"), t=5)
    assert [Persist, Tell] == [type(effect) for effect in effects if isinstance(effect, Persist | Tell)]
    assert [PlaceLost("unknown")] == events(effects)
    assert ["polo"] == [said.command for said in sent(run(node, 5), "call")]


def test_a_root_is_found_by_its_beacon() -> None:
    node = make("n1", 27_900)
    run(node, 0)
    node.receive(Beacon("lab", "root", b"r" * 16, "root", 27_500, 5), Source("beacon", b"127.0.0.1"), at(1))
    assert [b"127.0.0.1:27500"] == [e.peer for e in node.effects() if isinstance(e, Send)]


def test_a_root_calls_its_neighbours() -> None:
    root = make_root()
    run(root, 9)
    root.receive(Beacon("lab", "n1", b"n" * 16, "sensor", 27_900, 5), Source("beacon", b"127.0.0.1"), at(10))
    effects = run(root, 11.9)
    assert [Connect("announce", "127.0.0.1:27900")] == [e for e in effects if isinstance(e, Connect)]
    assert 6 == len(sent(effects, "announce"))


@pytest.mark.proves("TOP-005")
def test_marco_goes_out_six_times_on_a_new_connection_and_by_a_new_root_and_then_every_beat() -> None:
    root = make_root(join=("127.0.0.1:27600",))
    tenths: list[int] = []
    while (due := root.deadline()) is not None and due <= 20 * SECOND:
        root.wake(Now(due, due))
        tenths += [due // (SECOND // 10) for _ in sent(root.effects(), "announce")]
    assert [0, 1, 2, 4, 8, 16, 36] == tenths[:7]  # it calls, and beats every two seconds
    assert [40, 41, 42, 44, 48, 56] == tenths[7:13]  # it has become the root
    assert [76, 96, 116, 136, 156, 176, 196] == tenths[13:]


@pytest.mark.proves("TOP-004", part="the configured one")
def test_the_endpoint_is_the_configured_one() -> None:
    settings = TopologySettings(
        fleet="lab", name="n", level="auto", host="2001:db8::7", base_port=27_500, join=("h:1",)
    )
    core = Topology(settings, b"n" * 16, 1, Chance("n"))
    (polo,) = sent(run(core, 0), "call")
    assert "[2001:db8::7]:27500" == polo.endpoint


@pytest.mark.proves("TOP-011")
def test_a_question_asked_twice_is_answered_once_and_a_refused_write_is_told() -> None:
    root = make_root()
    run(root, 4)
    polo = Control("polo", "127.0.0.1:27900", b"n" * 16, {"incarnation": 1})
    for peer in (b"one", b"two"):
        root.receive(Asked((b"",), polo), Source("control", peer), at(5))
    effects = root.effects()
    (wanted,) = [event for event in events(effects) if isinstance(event, RecordsWanted)]
    root.command(RecordWritten(wanted.ticket), at(5))
    assert [b"two"] == [e.peer for e in root.effects() if isinstance(e, Send) and e.channel == "control"]
    other = Control("polo", "127.0.0.1:28000", b"m" * 16, {"incarnation": 1})
    root.receive(Asked((b"",), other), Source("control", b"three"), at(6))
    (wanted,) = [event for event in events(root.effects()) if isinstance(event, RecordsWanted)]
    root.command(RecordWritten(wanted.ticket, 11), at(6))
    assert [11] == [said.message.code for said in sent(root.effects(), "control")]
    assert b"m" * 16 not in root.registry.planner.tree.nodes


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)
)
NAMES = [
    "epoch",
    "why",
    "acting",
    "holds",
    "propose",
    "election",
    "parent",
    "labels",
    "level",
    "uptime",
    "tier",
    "root",
]


@given(st.data())
def test_whatever_a_peer_says_is_heard_or_refused(data: st.DataObject) -> None:
    root = data.draw(st.booleans())
    core = make_root() if root else joined()
    run(core, 4)
    for _ in range(3):
        said = data.draw(st.dictionaries(st.sampled_from(NAMES), JSON, max_size=5))
        key = data.draw(st.sampled_from(["/MARCO", "/GROUP/web/", "/RECOVERY/wutup", "/RECOVERY/iwin"]))
        command = data.draw(st.sampled_from(["polo", "assignment", "stop", "sos", "keepcalm", "yo", "aye", "nay"]))
        control = Control(command, "127.0.0.1:27999", b"x" * 16, said)
        messages = [
            (Announcement(key, "127.0.0.1:27999", b"x" * 16, said), Source("announced", b"")),
            (Asked((b"",), control), Source("control", b"id")),
            (control, Source("call", b"127.0.0.1:27500")),
            (
                Wtf(data.draw(st.integers(0, 12)), "epoch 2 is led by 127.0.0.1:27999"),
                Source("call", b"127.0.0.1:27500"),
            ),
        ]
        for message, source in messages:
            with contextlib.suppress(PeerError):
                core.receive(message, source, at(5))
    again = Topology(core.settings, core.node, 2, core.context.chance)
    again.restore(list(enumerate(core.condense(), 1)), at(5))
    assert core.context.memories() == again.context.memories()


LATER = "10.0.0.9:27500"


def claimed() -> Topology:
    """A root that was told of one of epoch 3, and has asked it."""
    root = make_root()
    run(root, 4)
    (asked,) = called(root, epoch=3, endpoint=LATER, t=5)
    assert ("polo", Role.ROOT) == (asked.command, root.role)
    return root


@pytest.mark.proves("FLD-010", part="a root gives way to a later one only on that one's own answer")
@pytest.mark.parametrize(
    "changes, node, endpoint, role",
    [
        ({}, b"", LATER, Role.FOLLOW),
        ({"root": "10.0.0.8:27500"}, b"", LATER, Role.ROOT),
        ({"epoch": 0}, b"", LATER, Role.ROOT),
        ({}, b"z" * 16, LATER, Role.ROOT),
        ({}, b"", "10.0.0.8:27500", Role.ROOT),
    ],
    ids=["right", "it names another root", "it is not later", "it is for another node", "nobody asked that one"],
)
def test_a_root_gives_way_only_to_the_answer_of_the_later_root(
    changes: dict[str, Any], node: bytes, endpoint: str, role: Role
) -> None:
    root = claimed()
    said = assignment(root, **{"root": LATER, "epoch": 3, **changes})
    answered(root, Control("assignment", said.endpoint, node or root.node, said.properties), endpoint, 5.1)
    assert role is root.role


@pytest.mark.parametrize("code", range(1, 16))
def test_which_refusals_say_that_somebody_leads(code: int) -> None:
    root = claimed()
    answered(root, Wtf(code, "x"), LATER, 5.1)
    assert (Role.FOLLOW if code in (5, 10, 11) else Role.ROOT) is root.role


def test_a_root_asks_nobody_who_only_acts_in_the_stead_of_one() -> None:
    root = make_root()
    run(root, 4)
    content = {"fleet": "lab", "epoch": 3, "count": 1, "protocol": 1, "acting": True, "holds": [9, 9]}
    root.receive(Announcement("/MARCO", LATER, b"z" * 16, content), Source("announced", b""), at(5))
    assert [] == sent(root.effects(), "call")


def test_a_place_that_is_asked_for_is_not_asked_for_again_during_the_pause_behind_a_refusal() -> None:
    node = joined()
    node.member.recheck("127.0.0.1:27500", 0, at(2))
    assert ["polo"] == [said.command for said in sent(node.effects(), "call")]
    answered(node, Wtf(7, "busy"), t=2)
    node.member.recheck("127.0.0.1:27500", 0, at(2.1))
    assert [] == sent(node.effects(), "call")
