"""The ROUTER under whatever comes: P1, what is pushed and to whom, and that no memory grows beyond its bound (CAT-081)."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.rig import Broker, Peer
from weft.base.effects import Effect, Persist, Source
from weft.cores.catalog import limits
from weft.cores.catalog.context import ROUTER
from weft.cores.catalog.messages import PeerIgnored, PeerMalformed, RequestDenied
from weft.cores.catalog.states import Link, On, State
from weft.wire.catalog import times
from weft.wire.catalog.messages import COMMANDS, HEARTBEAT, Message
from weft.wire.journal import encode_body

A: Final = {"name": "A", "id": "t1", "ip": "127.0.0.1", "port": 9}
JUNK: Final = [b"no message"]
BEAT: Final = Message(HEARTBEAT, b"", (b"A", b"t1"))


def bound(broker: Broker) -> Peer:
    dealer = broker.dealer()
    assert [b"OwO"] == dealer.commands(b"UwU", A)
    return dealer


# P1

VALUES: Final = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(1 << 64), 1 << 64),
        st.floats(),
        st.text(max_size=4),
        st.sampled_from(["A", "t1", "127.0.0.1", "critical"]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
KEYS: Final = ["name", "id", "ip", "port", "heartbeat", "interfaces", "tags", "metadata", "topics", "health", "_dbp"]
OBJECTS: Final = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4)
BODIES: Final = st.one_of(
    OBJECTS.map(lambda said: json.dumps({"name": "A", **said}).encode()),
    VALUES.map(lambda said: json.dumps(said).encode()),
    st.binary(max_size=8),
    st.sampled_from([b"A", b"t1", b"", b"zz", b"\xff", b"{", b"[" * 100_000, b"1" * 5000, json.dumps(A).encode()]),
)
QUERIES: Final = ["status", "metrics", "query", "list", "instances", "watch", "changes", "deregister", "topics", "lcv"]
NAMES: Final = st.sampled_from([b"dbp." + name.encode() for name in (*QUERIES, "logs", "tap", "liveness", "x")])
TIMES: Final = st.sampled_from([b"", b"\x00" * 4, b"\xff" * 8, b"1795227299", b"x" * 300])
LIKELY: Final = st.builds(
    lambda envelope, command, time, body: [*envelope, b"", command, time, *body],
    st.sampled_from([(), (), (), (b"q",), (b"q", b"p")]),
    st.sampled_from(sorted(COMMANDS)),
    TIMES,
    st.one_of(st.lists(BODIES, max_size=3), st.builds(lambda name, rest: [name, *rest], NAMES, st.lists(BODIES))),
)
FRAMES: Final = st.one_of(LIKELY, LIKELY, LIKELY, st.lists(st.binary(max_size=6), max_size=80))


@given(st.lists(st.tuples(st.sampled_from(["dealer", "dealer", "req", "admin"]), FRAMES), max_size=15))
@pytest.mark.proves("CAT-003", "CAT-080", "CAT-081", "CAT-005")
def test_whatever_frames_come_there_is_at_most_one_answer_and_lookups_go_on(said: list[tuple[str, Any]]) -> None:
    broker = Broker()
    bound(broker)
    peers = {kind: getattr(broker, kind)() for kind in ("dealer", "req", "admin")}
    for kind, frames in said:
        answers = peers[kind].send(frames)
        assert len(answers) <= 1
        for answer in answers:
            assert answer.command in (b"o_O", b"OwO", b"(O_O)", b"u.u", b"</3")
            assert not answer.envelope or list(answer.envelope) == frames[: len(answer.envelope)]
    broker.pass_time(10)
    assert "unknown" == broker.req().ask(b"zz")["state"]
    assert broker.state() == broker.restart().state()


# Pushing


@pytest.mark.proves("CAT-006", "CAT-011")
@pytest.mark.parametrize("form", ["f32le", "f64le", "i64be-ns", "ascii"])
def test_what_is_pushed_has_the_time_in_the_format_of_the_connection(form: str) -> None:
    broker = Broker()
    dealer = bound(broker)
    dealer.say(b"<3", time=times.write(form, broker.core.context.wall))
    assert broker.core.serving.push(broker.one("A"), BEAT)
    broker.turn()
    (answer,) = dealer.heard()
    assert (b"<3", (b"A", b"t1")) == (answer.command, answer.body)
    assert times.write(form, broker.core.context.wall) == answer.time


@pytest.mark.proves("CAT-006")
def test_nothing_is_pushed_to_who_is_no_dealer_or_gone() -> None:
    broker = Broker()
    push = broker.core.serving.push
    broker.req().say(b"UwU", A)
    assert not push(broker.one("A"), BEAT)
    dealer = broker.dealer()
    dealer.say(b"<3", b"A")
    assert push(broker.one("A"), BEAT)
    dealer.say(b"u_U")
    dealer.say(b"OwO", b"")
    assert not push(broker.one("A"), BEAT)
    ends: list[Callable[[Peer], object]] = [
        lambda peer: peer.say(b"</3"),
        lambda peer: [peer.send(JUNK) for _ in range(limits.MALFORMED_MAX)],
        lambda peer: broker.unroutable(peer.identity),
        lambda peer: broker.move("A", On.SILENT, On.OVERDUE),
    ]
    for end in ends:
        dealer = broker.dealer()
        dealer.say(b"UwU", A)
        assert push(broker.one("A"), BEAT)
        end(dealer)
        assert not push(broker.one("A"), BEAT)


def test_who_could_not_be_reached_is_pushed_to_again_once_it_speaks() -> None:
    broker = Broker()
    dealer = bound(broker)
    broker.unroutable(dealer.identity)
    broker.pass_time(1.6)
    assert (["127.0.0.1:9"], []) == (broker.probed, dealer.heard())
    assert [b"u.u"] == dealer.commands(b"<3")
    assert broker.core.serving.push(broker.one("A"), BEAT)


@pytest.mark.proves("CAT-021")
def test_a_beat_under_a_new_routing_id_takes_the_connection_over() -> None:
    broker = Broker()
    before, after = bound(broker), broker.dealer()
    assert [b"u.u"] == after.commands(b"<3", b"A")
    broker.pass_time(1.6)
    assert ([], [b"<3"]) == ([a.command for a in before.heard()], [b"<3" for _ in broker.said[-1:]])
    assert after.identity == broker.said[-1][0]
    assert [b"u.u"] == after.commands(b"<3")


@pytest.mark.proves("BEA-019")
def test_the_answer_to_a_beat_of_ours_is_a_sign_of_life_and_never_answered() -> None:
    broker = Broker()
    dealer = bound(broker)
    broker.pass_time(1.6)
    assert State.SUSPECT is broker.one("A").state
    assert [b"<3"] == [answer.command for answer in dealer.heard()]
    assert [] == dealer.say(b"u.u")
    assert State.ACTIVE is broker.one("A").state


@pytest.mark.proves("BEA-011")
@pytest.mark.parametrize(("command", "is_sign"), [(b"u_U", True), (b"<3", True), (b"UoU", True), (b"<\\3", False)])
def test_what_its_owner_says_is_a_sign_of_life_unless_it_is_refused(
    command: bytes, is_sign: bool
) -> None:  # a parameter of the test
    broker = Broker()
    dealer = bound(broker)
    broker.move("A", On.SILENT)
    dealer.say(command, b"{}" if command == b"UoU" else b"A")
    assert (State.ACTIVE if is_sign else State.SUSPECT) is broker.one("A").state


def test_a_query_for_which_one_has_no_right_is_denied_and_other_mistakes_are_answers() -> None:
    req = Broker().req()
    (answer,) = req.say(b"u_U", b"dbp.deregister", b"A")
    assert (b"(O_O)", "not-authorised") == (answer.command, answer.json["code"])
    assert "unknown-query" == req.ask(b"dbp.zz")["code"]


# Goodbye


@pytest.mark.proves("CAT-020")
def test_a_goodbye_names_whom_it_means_and_only_an_own_one_goes() -> None:
    broker = Broker()
    broker.req("10.0.0.2").say(b"UwU", A | {"id": "t2"})
    broker.req().say(b"UwU", A)
    assert [b"u.u"] == broker.req("10.0.0.2").commands(b"</3", b"A", b"t1")
    assert State.ACTIVE is broker.one("A", "t1").state
    assert [b"u.u"] == broker.req().commands(b"</3", b"A")
    assert (State.INACTIVE, State.ACTIVE) == (broker.one("A", "t1").state, broker.one("A", "t2").state)
    assert [b"u.u"] == broker.req().commands(b"</3", b"A", b"t1")
    assert 1 == [op for op, _ in broker.changes].count("inactive")


# Who says no message


@pytest.mark.proves("CAT-080")
@pytest.mark.parametrize("kind", ["dealer", "req"])
def test_after_twenty_things_that_are_no_message_a_peer_is_ignored_for_a_minute(kind: str) -> None:
    broker = Broker()
    peer: Peer = getattr(broker, kind)()
    for _ in range(limits.MALFORMED_MAX - 1):
        assert [] == peer.send(JUNK)
    assert [b"o_O"] == peer.commands(b"u_U")
    peer.send(JUNK)
    broker.pass_time(59.9)
    assert [] == peer.say(b"u_U")
    broker.pass_time(0.1)
    assert [b"o_O"] == peer.commands(b"u_U")
    assert 20 == broker.counted("malformed")
    assert 1 == broker.counted("dropped", "ignored")
    assert [PeerIgnored(peer.identity.hex(), 60)] == [one for one in broker.events if isinstance(one, PeerIgnored)]


def test_nineteen_in_a_minute_for_ever_are_let_pass() -> None:
    broker = Broker()
    peer = broker.dealer()
    for _ in range(60):
        peer.send(JUNK)
        broker.pass_time(3.2)
    assert Link.NEW is broker.core.connections.state_of(peer.identity)


@pytest.mark.proves("CAT-080")
def test_garbage_is_told_of_once_in_ten_seconds_and_how_often_it_came() -> None:
    broker = Broker()
    peer = broker.dealer()
    for span in (1, 1, 9, 1):
        peer.send(JUNK)
        broker.pass_time(span)
    told = [one for one in broker.events if isinstance(one, PeerMalformed)]
    assert [1, 3] == [one.count for one in told]
    assert {peer.identity.hex()} == {one.peer for one in told}


def test_a_refusal_is_told_of_once_in_ten_seconds_by_address() -> None:
    broker = Broker()
    for _ in range(5):
        broker.req("10.0.0.1").say(b"UoU", {"name": "zz"})
    broker.pass_time(10)
    broker.req("10.0.0.1").say(b"UwU", {"name": "@"})
    told = [one for one in broker.events if isinstance(one, RequestDenied)]
    assert [("10.0.0.1", "not-registered", "zz", 1), ("10.0.0.1", "bad-name", "", 5)] == [
        (one.peer, one.code, one.name, one.count) for one in told
    ]
    assert (5, 1) == (broker.counted("denied", "not-registered"), broker.counted("denied", "bad-name"))


def test_thousands_of_new_peers_make_no_thousands_of_events() -> None:
    broker = Broker()
    for _ in range(300):
        broker.dealer().send(JUNK)
    assert 100 == len(broker.events) - broker.told.index("PeerMalformed")
    broker.pass_time(10)
    broker.dealer().send(JUNK)
    assert 100 + 1 == broker.told.count("PeerMalformed")


# Memory


@pytest.mark.proves("CAT-020")
def test_who_was_closed_is_remembered_for_ten_minutes() -> None:
    broker = Broker()
    dealer = broker.dealer()
    dealer.say(b"</3")
    broker.pass_time(599.9)
    assert [] == dealer.say(b"u_U")
    broker.pass_time(0.1)
    assert [b"o_O"] == dealer.commands(b"u_U")


@pytest.mark.proves("CAT-020", "CAT-081")
def test_no_memory_of_peers_grows_beyond_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLOSED_MAX", 5)
    monkeypatch.setattr(limits, "PEERS_MAX", 5)
    broker = Broker()
    broker.req().say(b"UwU", A)
    for _ in range(8):
        broker.dealer().say(b"</3")
        broker.dealer().say(b"<3", b"A")
        broker.dealer().send(JUNK)
        flooder = broker.dealer()
        for _ in range(limits.MALFORMED_MAX):
            flooder.send(JUNK)
    broker.dealer().send(JUNK)
    peers = vars(broker.core.connections)
    sizes = {name: len(memory) for name, memory in peers.items() if isinstance(memory, dict)}
    assert {"_bound": 5, "_closed": 5, "_ignored": 5, "_garbled": 5, "_reported": 5} == sizes


def test_who_was_forgotten_puts_that_right_with_its_next_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PEERS_MAX", 2)
    broker = Broker()
    first = bound(broker)
    for _ in range(2):
        broker.dealer().say(b"<3", b"A")
    assert Link.NEW is broker.core.connections.state_of(first.identity)
    assert [b"u.u"] == first.commands(b"<3", b"A")
    assert Link.BOUND is broker.core.connections.state_of(first.identity)


def test_who_only_asks_is_not_remembered() -> None:
    broker = Broker()
    for _ in range(50):
        broker.dealer().say(b"u_U")
        broker.req().say(b"UoU", {"name": "zz"})
    memories = vars(broker.core.connections)
    assert [] == [name for name in ("_bound", "_closed", "_ignored", "_garbled") if memories[name]]


LARGE: Final = {"name": "A", "id": "t1", "x": "x" * 60_000}


def in_one_turn(broker: Broker, said: list[tuple[Peer, Message]]) -> None:
    """What comes in a burst is heard together, and kept in one batch."""
    effects: list[Effect] = []
    for peer, message in said:
        broker.core.receive(message, Source(ROUTER, peer.identity, None, f"{peer.kind} {peer.address}"), broker.now)
        effects += broker.core.effects()  # a node takes them after each verb
    encode_body([record for effect in effects if isinstance(effect, Persist) for record in effect.records])
    broker.perform(effects)


@pytest.mark.proves("CAT-081")
def test_a_burst_of_small_updates_of_a_large_record_is_no_batch_that_cannot_be_written() -> None:
    broker = Broker()
    req = broker.req()
    req.say(b"UwU", LARGE)
    updates = [Message(b"UoU", b"", (json.dumps({"name": "A", "n": n}).encode(),)) for n in range(300)]
    in_one_turn(broker, [(req, update) for update in updates])
    answers = [answer.command for answer in req.heard()]
    assert 300 == len(answers)
    assert {b"u.u", b"(O_O)"} == set(answers)
    assert answers.count(b"u.u") == len(broker.rows) - 1
    assert [b"u.u"] == req.commands(b"UoU", {"name": "A", "n": -1})
    assert broker.state() == broker.restart().state()


@pytest.mark.prove("a burst of thousands")
@pytest.mark.proves("CAT-081")
def test_a_burst_of_returns_and_goodbyes_is_no_batch_that_cannot_be_written() -> None:
    broker = Broker()
    req = broker.req()
    names = [f"s{n}" for n in range(300)]
    for name in names:
        req.say(b"UwU", LARGE | {"name": name})
        broker.move(name, On.SILENT)
    for command, state in ((b"<3", State.ACTIVE), (b"</3", State.INACTIVE)):
        while any(broker.one(name).state is not state for name in names):
            before = len(broker.rows)
            in_one_turn(broker, [(req, Message(command, b"", (name.encode(),))) for name in names])
            assert before < len(broker.rows)
    assert broker.counted("dropped", "busy")


@pytest.mark.proves("CAT-081")
def test_hundreds_of_large_records_that_fall_silent_at_once_are_no_batch_that_cannot_be_written() -> None:
    broker = Broker()
    req = broker.req()
    for n in range(300):
        req.say(b"UwU", LARGE | {"name": f"s{n}"})
    broker.skip(1.6)
    turns = 0
    while broker.core.book.counts[State.SUSPECT] < 300:
        broker.core.wake(broker.now)
        encode_body(broker.core.context.records)
        broker.turn()
        broker.skip(0.001)
        turns += 1
    assert 3 == turns


@pytest.mark.proves("CAT-082")
def test_requests_and_drops_are_counted_with_what_came_of_them() -> None:
    broker = Broker()
    dealer = bound(broker)
    dealer.say(b"u_U")
    dealer.say(b"<3")
    dealer.say(b"UoU", {"id": "t9"})
    dealer.say(b"</3")
    dealer.say(b"u_U")
    broker.req().say(b"</3", b"A")
    broker.dealer().say(b"u.u")
    counted = {label: n for (metric, label), n in broker.core.context.counters.items() if metric == "requests"}
    expected = {"UwU,approved", "u_U,answered", "<3,acknowledged", "UoU,denied", "</3,parted"}
    assert {**dict.fromkeys(expected, 1), "</3,parted": 2} == counted
    assert (1, 1) == (broker.counted("dropped", "closed"), broker.counted("dropped", "awk while new"))
