"""Clients of a node, without chains: who is let in, what each is told, and how much it may send."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chains.sessions_rig import NODE, A, B, C, Node, Whole, hello, parcel, send, statuses
from tests.wire.strict import frames_of, lines
from weft.base.now import SECOND
from weft.cores.chains import limits
from weft.cores.chains.clientlink import HeldMessage, HolderLink
from weft.cores.chains.messages import ClientLost, ClientRefused, ClientWelcomed, Placed
from weft.cores.chains.order import after_all
from weft.wire import clients
from weft.wire.clients import (
    Beat,
    Bye,
    Conf,
    Credit,
    Done,
    Drop,
    Error,
    Fail,
    GiveUp,
    Next,
    NextItem,
    Place,
    Refuse,
    Reg,
    SendItem,
    Status,
    StatusItem,
    Unreg,
    Welcome,
)

VECTORS = {name: line for name, line in lines("chains-frames.jsonl").items() if name.startswith("x-")}

# Greetings


@pytest.mark.proves("CLI-005", "CLI-007")
def test_a_client_is_welcomed_with_the_place_of_the_node_its_credit_and_the_times() -> None:
    node = Node()
    node.context.placed = Placed("collector", "C", ((b"1" * 16, "A"),))
    expected = Welcome(
        v=1, node=NODE, name="B", addr="127.0.0.1", boot=7, level="collector", parent="C", children=["A"],
        credit=1_024, credit_bytes=8 << 20, beat=1_000, dead=5_000,
    )  # fmt: skip
    assert [expected] == node.hear(A, hello("demoresponder"))
    assert [ClientWelcomed("demoresponder", 4711)] == node.told
    assert (1, 1) == (len(node.sessions), node.sessions.counters.welcomed)


@pytest.mark.proves("CLI-005")
@pytest.mark.parametrize("first", [send(1), Reg(reg=1, dir="in", type="t"), Beat(), [b"\x80"]])
def test_whoever_does_not_say_hello_first_is_refused_and_has_done_nothing(first: Any) -> None:
    node = Node()
    assert [Refuse("bad-hello", "say hello first")] == node.hear(A, first)
    assert [] == node.chains.calls
    assert [] == node.hear(A, *[first] * 10), "one answer in a second"
    node.skip(SECOND)
    assert 1 == len(node.hear(A, first))
    assert {"bad-hello": 12} == node.sessions.counters.refused


def test_a_goodbye_of_nobody_needs_no_answer() -> None:
    assert [] == Node().hear(A, Bye("done"))


@pytest.mark.proves("CLI-005", "CLI-006")
@pytest.mark.parametrize(
    "fields, expected",
    [
        ({"v": 2}, "version"),
        ({"v": 0}, "version"),
        ({"role": "node"}, "bad-hello"),
        ({"name": " a"}, "bad-hello"),
        ({"name": "a "}, "bad-hello"),
        ({"name": "-a"}, "bad-hello"),
        ({"name": "a\nb"}, "bad-hello"),
        ({"name": "a\x00"}, "bad-hello"),
        ({"name": "é"}, "bad-hello"),
        ({"name": "/bin/a"}, "bad-hello"),
    ],
)
def test_a_greeting_with_a_mistake_is_refused_and_told_once(fields: dict[str, Any], expected: str) -> None:
    node, wrong = Node(), hello(**fields)
    (refusal, _) = node.hear(A, wrong, wrong)
    assert expected == refusal.why
    assert [ClientRefused(wrong.name, expected)] == node.told
    assert 0 == len(node.sessions)


@pytest.mark.parametrize("name", ["a", "7", "demo.report_2", "my program (2)", "python3 -m x", "a" * 64, "x@host:1"])
def test_programs_may_be_called_as_programs_are(name: str) -> None:
    assert isinstance(Node().hear(A, hello(name))[0], Welcome)


@pytest.mark.proves("CLI-006")
def test_a_full_house_is_busy_but_whoever_was_in_may_come_back() -> None:
    node = Node(clients=2)
    node.welcome(A)
    node.welcome(B)
    assert "busy" == node.hear(C, hello("c", 3))[0].why
    assert isinstance(node.hear(C, hello("b", B[0]))[0], Welcome)
    assert 2 == len(node.sessions)


@pytest.mark.proves("CHN-016", "CHN-030")
def test_the_same_id_again_is_the_same_client_come_back_and_its_old_session_is_over_before() -> None:
    node = Node()
    node.chains.keeps = True
    old = node.welcome(A, number=1)
    node.hear(A, Reg(reg=4, dir="in", type="t", access="rw"), send(1))
    link = old.links[4]
    assert isinstance(link, HolderLink)
    link.pending[8] = HeldMessage(parcel(8), after_all(1))
    node.told.clear()
    assert isinstance(node.hear(B, hello("a2", 1))[0], Welcome)
    assert [("lose", "a", [4])] == node.chains.calls[1:]
    assert [ClientLost("a", "replaced", 1), ClientWelcomed("a2", 4711)] == node.told
    assert [Bye("replaced")] == node.heard[A][-1:]
    old.answer(1, ok=True, why="spooled")
    old.offer(4, parcel(9))
    old.copy(4, parcel(9))
    old.say(Beat())
    assert [] == node.turn(A), "nothing to whoever is gone"
    assert ["refuse"] == [clients.encode(each)[0][5:11].decode() for each in node.hear(A, Beat())]


def test_one_who_greets_again_begins_anew() -> None:
    node = Node()
    node.welcome(A, number=1)
    assert [Welcome] == [type(each) for each in node.hear(A, hello("a", 1))]
    assert [Welcome] == [type(each) for each in node.hear(A, hello("b", 2))]
    assert [("lose", "a", []), ("lose", "a", [])] == node.chains.calls
    assert 1 == len(node.sessions)


# What is asked


@pytest.mark.proves("CLI-004")
def test_every_request_reaches_the_engine_with_its_own_frames() -> None:
    node = Node()
    node.welcome(A)
    assert [Done("reg", 1, 1, 1)] == node.hear(A, Reg(reg=1, dir="in", type="t"))
    items = [SendItem(tag=1, type="t", to=["DIRECT"]), SendItem(tag=2, type="t", to=["DIRECT"], n=2)]
    items.append(SendItem(tag=3, type="t", to=["DIRECT"], n=0))
    node.hear(A, clients.Send(items, [b"1", b"2a", b"2b"]))
    node.hear(A, Next(1, [NextItem(id=5), NextItem(id=6, n=1)], [b"new"]))
    node.hear(A, Drop(1, [GiveUp(id=7, why="x"), GiveUp(id=8)]), Fail(1, [GiveUp(id=9)]), Conf(1, [10, 11]))
    expected = [
        ("accept", "a", 1, (b"1",)),
        ("accept", "a", 2, (b"2a", b"2b")),
        ("accept", "a", 3, ()),
        ("next", "a", 1, NextItem(id=5), ()),
        ("next", "a", 1, NextItem(id=6, n=1), (b"new",)),
        ("drop", "a", 1, GiveUp(id=7, why="x")),
        ("drop", "a", 1, GiveUp(id=8)),
        ("fail", "a", 1, GiveUp(id=9)),
        ("conf", "a", 1, 10),
        ("conf", "a", 1, 11),
    ]
    assert expected == node.chains.calls
    assert [Done("unreg", 1)] == node.hear(A, Unreg(1))


@pytest.mark.proves("CLI-005", "CLI-006")
@pytest.mark.parametrize("name", VECTORS)
def test_bad_input_gets_the_answer_of_its_vector(name: str) -> None:
    """What is well-formed is the engine's to judge: here it only has to reach it."""
    node, frames, means = Node(), frames_of(VECTORS[name]), VECTORS[name]["means"]
    if name == "x-early":
        (refusal,) = node.hear(A, frames)
        assert means["refused"] == f"refuse {refusal.why}"
        return
    session = node.welcome(A)
    answers = node.hear(A, frames)
    if means["refused"] in ("bad-header", "bad-frames", "unknown-op"):
        assert [Error(about="multipart", why=means["refused"])] == answers
        assert {means["refused"]: 1} == session.errors == node.context.counters.errors
    elif name == "x-key":
        assert [] == answers
    else:
        assert 1 == len(node.chains.calls) + len(session.links)
    assert not session.is_gone


REFUSED_BY_CHAINS: dict[str, Any] = {
    "x-empty": (1, "empty"),
    "x-kind": (1, "bad-destination"),
    "x-multicast": (1, "unimplemented"),
    "x-type": "bad-type",
    "x-at0": "bad-position",
}


@pytest.mark.proves("CLI-006", "CHN-030")
@pytest.mark.parametrize("name", REFUSED_BY_CHAINS)
def test_bad_requests_get_the_answer_of_their_vector_from_the_whole_core(name: str) -> None:
    node, expected = Whole(), REFUSED_BY_CHAINS[name]
    node.welcome(A)
    said = node.hear(A, frames_of(VECTORS[name]))
    if isinstance(expected, tuple):
        tag, why = expected
        assert VECTORS[name]["means"]["refused"] == f"status {why} for tag {tag}"
        assert [Status([StatusItem(tag=tag, ok=False, why=why)])] == said
    else:
        assert VECTORS[name]["means"]["refused"] == expected
        assert [Error(about="reg", why=expected, reg=1)] == said


@pytest.mark.proves("CLI-006")
def test_ten_unreadable_multiparts_in_a_minute_end_a_session_and_a_slower_drip_does_not() -> None:
    node = Node()
    session = node.welcome(A)
    for _ in range(limits.GARBLED_MAX - 1):
        node.hear(A, [b"\x80"])
    node.skip(limits.GARBLED_NS + 1)
    node.hear(A, [b"\x80"], *[[b"\x81\xa2op\xa1x"]] * 20)
    assert not session.is_gone, "nine and one, a minute apart; unknown words do not count"
    node.heard[A].clear()
    node.hear(A, *[[b"\x80"]] * (limits.GARBLED_MAX - 1))
    assert session.is_gone
    assert [Error(about="multipart", why="bad-header")] * 9 + [Bye("garbled")] == node.heard[A]
    assert ClientLost("a", "garbled", 0) == node.told[-1]
    assert [("lose", "a", [])] == node.chains.calls
    assert [] == node.hear(A, hello(), Beat()), "not heard for a minute"
    node.skip(limits.GARBLED_NS)
    assert isinstance(node.hear(A, hello())[0], Welcome)


@pytest.mark.proves("CLI-006")
def test_the_errors_of_one_client_are_no_business_of_another() -> None:
    node = Node()
    node.welcome(A)
    node.welcome(B)
    node.hear(A, *[[b"\x80"]] * 50)
    assert [(1, "spooled")] == statuses(node.hear(B, send(1)))


# Credit


@pytest.mark.proves("CLI-007", "CHN-030")
def test_sends_beyond_credit_are_turned_down_and_a_final_status_gives_credit_back() -> None:
    node = Node(credit=2)
    node.chains.keeps = True
    session = node.welcome(A)
    assert [(3, "overload"), (4, "overload")] == statuses(node.hear(A, send(1, 2, 3, 4)))
    session.answer(1, ok=True, why="local", count=None)
    assert [(1, "local")] == statuses(node.turn(A))
    assert [(6, "overload")] == statuses(node.hear(A, send(5, 6)))
    assert [1, 2, 5] == [call[2] for call in node.chains.calls]
    assert {"overload": 3} == node.context.counters.refused


@pytest.mark.proves("CLI-007")
def test_bytes_are_credit_too() -> None:
    node = Node(credit_bytes=10)
    node.chains.keeps = True
    session = node.welcome(A)
    assert [(3, "overload")] == statuses(node.hear(A, send(1, 2, 3, payload=b"12345")))
    session.answer(2, ok=False, why="deleted")
    item = SendItem(tag=4, type="t", to=["DIRECT"], n=2)
    assert [(2, "deleted"), (4, "overload")] == statuses(node.hear(A, clients.Send([item], [b"123", b"456"])))
    assert [(5, "overload")] == statuses(node.hear(A, send(5, payload=b"123456")))
    assert [] == node.hear(A, send(6, payload=b"12345"))


@pytest.mark.proves("CHN-040", "CLI-007")
def test_a_full_node_gives_no_credit_and_gives_it_back() -> None:
    node = Node()
    node.welcome(A)
    node.sessions.hold_back(is_full=True)
    node.sessions.hold_back(is_full=True)
    assert [Credit(0, 0)] == node.turn(A)
    assert (0, 0) == (node.hear(B, hello("b", 2))[0].credit, node.heard[B][0].credit_bytes)
    assert [(1, "overload")] == statuses(node.hear(A, send(1)))
    node.sessions.hold_back(is_full=False)
    assert [Credit(1_024, 8 << 20)] == node.turn(A)
    assert [(1, "spooled")] == statuses(node.hear(A, send(1)))


@pytest.mark.proves("CHN-042")
@pytest.mark.parametrize("trouble", ["full", "stopping"])
def test_a_tag_that_was_sent_before_hears_its_status_again_from_a_node_in_trouble(trouble: str) -> None:
    """It was told that it was not sent, by a node that had it on disk."""
    node = Node()
    node.welcome(A)
    node.chains.known.add(1)
    node.sessions.is_full, node.context.is_stopping = trouble == "full", trouble == "stopping"
    why = {"full": "overload", "stopping": "closing"}[trouble]
    assert [(1, "spooled"), (2, why)] == sorted(statuses(node.hear(A, send(1, 2))))


@pytest.mark.proves("CHN-043", "CHN-030")
def test_a_stopping_node_takes_no_sends_and_no_clients_and_says_goodbye_last() -> None:
    node = Node()
    node.chains.keeps = True
    session = node.welcome(A)
    node.welcome(B)
    node.hear(A, send(1))
    node.context.is_stopping = True
    assert [(2, "closing")] == statuses(node.hear(A, send(2)))
    assert "busy" == node.hear(C, hello("c", 3))[0].why
    session.answer(1, ok=True, why="spooled")
    node.sessions.stop(node.now)
    assert [Status([StatusItem(tag=1, ok=True, why="spooled")]), Bye("stopping")] == node.turn(A)
    assert [Bye("stopping")] == node.heard[B]
    assert [ClientLost("a", "stopping", 0), ClientLost("b", "stopping", 0)] == node.told[-2:]
    node.wait(10_000)
    assert None is node.sessions.deadline()
    assert "busy" == node.hear(A, hello())[0].why


@pytest.mark.proves("CHN-030")
def test_a_status_is_said_once_and_not_at_all_if_nobody_wants_it() -> None:
    node = Node()
    node.chains.keeps = True
    session = node.welcome(A)
    node.hear(A, send(1), send(2, want="none"), send(3, want="dest"))
    for tag in (1, 1, 2, 3, 3, 7):
        session.answer(tag, ok=True, why="delivered", count=tag, failed=0)
    expected = [StatusItem(tag=tag, ok=True, why="delivered", count=tag) for tag in (1, 3)]
    assert [Status(expected)] == node.turn(A)
    session.answer(1, ok=True, why="delivered")
    node.sessions.hold_back(is_full=True)
    assert [Credit(0, 0)] == node.hear(A, send(9, want="none")), "refused, and still no status"


@pytest.mark.proves("CHN-030", "CLI-007")
def test_a_tag_that_comes_again_meanwhile_costs_credit_once_and_is_answered_once() -> None:
    node = Node(credit=1)
    node.chains.keeps = True
    session = node.welcome(A)
    assert [] == node.hear(A, send(1), send(1))
    node.context.is_stopping = True
    assert [] == node.hear(A, send(1)), "its status is still to come"
    assert 2 == len(node.chains.calls), "whether it is known is the engine's to say"
    session.answer(1, ok=True, why="spooled")
    session.answer(1, ok=True, why="spooled")
    assert [(1, "spooled")] == statuses(node.turn(A))


# Time


@pytest.mark.proves("CLI-005")
def test_silence_is_filled_with_beats_and_whoever_is_silent_too_long_is_dead() -> None:
    node = Node()
    node.welcome(A)
    node.welcome(B)
    for _ in range(10):
        node.wait(600)
        node.hear(B, Beat())
    assert 5 <= node.heard[B].count(Beat()) <= 6
    assert all(each == Beat() for each in node.heard[B])
    assert [ClientLost("a", "silent", 0)] == node.told[2:]
    assert [("lose", "a", [])] == node.chains.calls
    assert 4 <= node.heard[A].count(Beat()) <= 5


@pytest.mark.proves("CLI-005")
def test_a_client_dies_within_a_sweep_of_its_time() -> None:
    node = Node(beat_ms=100, dead_ms=300)
    node.welcome(A)
    node.wait(299)
    assert 1 == len(node.sessions)
    node.wait(60)
    assert 0 == len(node.sessions)
    assert None is node.sessions.deadline()


@pytest.mark.proves("CLI-005")
def test_a_crowd_of_newcomers_does_not_put_off_a_death() -> None:
    node = Node()
    node.welcome(A)
    for number in range(60):
        node.wait(100)
        node.welcome(bytes([100 + number]), "x")
    assert ClientLost("a", "silent", 0) in node.told


@pytest.mark.parametrize("first", ["wake", "receive"])
def test_a_machine_that_has_slept_forgives_all_silences_once(first: str) -> None:
    node = Node()
    node.welcome(A)
    node.welcome(B)
    node.sessions.deadline()
    node.skip(3_600 * SECOND)
    if first == "receive":
        node.hear(B, Beat())
    node.sessions.wake(node.now)
    assert 2 == len(node.sessions)
    node.wait(6_000)
    assert 0 == len(node.sessions)


def test_what_was_forgiven_once_does_not_forgive_a_later_silence() -> None:
    node = Node()
    node.welcome(A)
    node.sessions.deadline()
    node.skip(3_600 * SECOND)
    node.hear(A, Beat())
    node.skip(6 * SECOND)
    node.sessions.wake(node.now)
    assert 0 == len(node.sessions)


def test_a_goodbye_ends_a_session_with_its_own_words() -> None:
    node = Node()
    node.chains.keeps = True
    session = node.welcome(A)
    session.offer(1, parcel(1))
    assert [] == node.hear(A, send(1), Bye("done")), "nor what waited for it"
    session.answer(1, ok=True, why="spooled")
    assert [] == node.turn(A)
    assert [ClientLost("a", "done", 0)] == node.told[1:]
    node.welcome(B)
    node.hear(B, Bye())
    assert ClientLost("b", "bye", 0) == node.told[-1]


def test_all_clients_hear_of_another_place() -> None:
    node = Node()
    node.welcome(A)
    node.welcome(B)
    node.sessions.place(Placed("collector", "", ((b"1" * 16, "x"),)))
    assert [Place("collector", None, ["x"])] == node.turn(A) == node.heard[B]


@pytest.mark.proves("CLI-007", "CHN-030")
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("send"), st.integers(1, 12), st.sampled_from(["spool", "dest", "none"])),
            st.tuples(st.just("answer"), st.integers(1, 12), st.just("")),
            st.tuples(st.sampled_from(["full", "empty", "again"]), st.just(0), st.just("")),
        ),
        max_size=80,
    )
)
def test_credit_is_never_exceeded_and_every_send_has_one_status(steps: list[tuple[str, int, str]]) -> None:
    node = Node(credit=4)
    node.chains.keeps = True
    session = node.welcome(A)
    owed: dict[int, str] = {}
    expected: list[tuple[int, str]] = []
    is_full = False
    for what, tag, want in steps:
        if what == "send":
            node.hear(A, send(tag, want=want))
            if not is_full and (tag in owed or len(owed) < 4):
                owed.setdefault(tag, want)
            elif tag not in owed and want != "none":
                expected.append((tag, "overload"))
        elif what == "answer":
            session.answer(tag, ok=True, why="local")
            if owed.pop(tag, "none") != "none":
                expected.append((tag, "local"))
        elif what == "again":
            session = node.welcome(A)
            owed.clear()
            expected.clear()
        else:
            is_full = what == "full"
            node.sessions.hold_back(is_full=is_full)
        node.turn()
        assert len(session._owed) <= 4
    assert expected == statuses(node.heard[A])
