"""What clients hear, without chains: batches, their order, and that nothing but old copies is lost, whatever a socket takes."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chains.sessions_rig import A, B, C, Node, Whole, hello, parcel, recs, send, statuses
from weft.base.effects import Persist, Send
from weft.base.now import MILLISECOND
from weft.base.records import CoreRecord
from weft.cores.chains import limits
from weft.cores.chains.messages import ClientLost
from weft.cores.chains.session import Session
from weft.wire import clients
from weft.wire.clients import (
    Beat,
    Done,
    Next,
    NextItem,
    Rec,
    RecItem,
    Reg,
    Status,
    Unreg,
)

# What is said


@pytest.mark.proves("CHN-033", "CLI-008")
def test_what_is_said_stands_below_what_has_to_be_durable_and_one_turn_is_one_batch() -> None:
    node = Node()
    session = node.welcome(A)
    record = CoreRecord("chains", 1, b"")
    for number in range(3):
        session.offer(1, parcel(number))
        session.copy(2, parcel(number))
        node.read(A, clients.encode(send(number)))
        node.context.keep(record)
    node.sessions.flush(node.now)
    effects = node.context.take()
    assert Persist((record,) * 3) == effects[0]
    said = [effect.message for effect in effects[1:] if isinstance(effect, Send)]
    assert [Rec, Rec, Status] == [type(message) for message in said]
    assert [3, 3, 3] == [len(message.m) for message in said]


@pytest.mark.proves("CLI-008")
def test_a_multipart_has_64_messages_and_256_kib_at_most_and_fits_the_codec() -> None:
    node = Node()
    session = node.welcome(A)
    for number in range(130):
        session.offer(1, parcel(number))
        session.copy(2, parcel(number, b"x" * 100_000))
        session.copy(3, parcel(number, *[b"x"] * 16))
        session.offer(4, parcel(number, via=tuple(bytes([at]) * 16 for at in range(64))))
    session.copy(5, parcel(1, b"x" * (1 << 20)))
    messages = node.turn(A)
    sizes = {reg: [len(each.m) for each in messages if each.reg == reg] for reg in range(1, 6)}
    assert ([64, 64, 2], [2] * 65, [16] * 8 + [2], [1]) == (sizes[1], sizes[2], sizes[3], sizes[5])
    assert 130 == sum(sizes[4])
    assert list(range(130)) == [item.id for item in recs(messages, 4)]


@pytest.mark.proves("CHN-014", "CLI-008")
def test_copies_share_the_payload_and_later_changes_are_not_seen() -> None:
    node = Node()
    session, payload = node.welcome(A), b"first"
    message = parcel(1, payload)
    session.copy(1, message)
    session.copy(2, message)
    message.frames, message.to = (b"second",), ("PARENTSOF",)
    session.copy(3, message)
    node.sessions.flush(node.now)
    said = [effect.message for effect in node.context.take() if isinstance(effect, Send)]
    assert [[payload], [payload], [b"second"]] == [rec.frames for rec in said]
    assert all(rec.frames[0] is payload for rec in said[:2])
    assert [("DIRECT",), ("DIRECT",), ("PARENTSOF",)] == [rec.m[0].to for rec in said]


def test_a_message_says_whose_it_is_and_whether_it_comes_again() -> None:
    node = Node()
    one, other = node.welcome(A), node.welcome(B)
    message = parcel(7, b"1", b"2")
    message.sender = one
    one.offer(1, message)
    other.offer(1, message, re=True)
    (own,), (foreign,) = recs(node.turn(A), 1), recs(node.heard[B], 1)
    expected = RecItem(
        id=7, type="t", mid=(b"a" * 16, 3, 7), own=True, to=["DIRECT"], via=(), depth=0, ts=9, n=2
    )  # fmt: skip
    assert expected == own
    assert (False, True) == (foreign.own, foreign.re)
    node.hear(C, hello("a", A[0]))
    node.sessions._by_peer[C].copy(1, message)
    assert recs(node.turn(C), 1)[0].own, "the same client, come back"


def test_an_answer_keeps_its_place_between_the_messages_of_a_registration() -> None:
    node = Node()
    session = node.welcome(A)
    session.offer(1, parcel(1))
    session.say(Done("unreg", 1))
    session.say(Done("reg", 1, 1, 1))
    session.offer(1, parcel(2))
    assert [Rec, Done, Done, Rec] == [type(message) for message in node.turn(A)]


# Clients that take nothing


@pytest.mark.proves("CHN-018")
def test_of_one_who_takes_no_copies_the_oldest_are_discarded_and_the_next_one_says_so() -> None:
    node = Node()
    session = node.welcome(A)
    node.takes = lambda peer: False
    session.copy(1, parcel(0))
    node.turn()
    for number in range(1, limits.COPIES_MAX + 50):
        session.copy(1 + number % 2, parcel(number))
        node.turn()
    assert 50 == session.post.copies_lost
    node.takes = lambda peer: True
    node.wait(3_000)
    one, two = recs(node.heard[A], 1), recs(node.heard[A], 2)
    assert sorted([*range(50, 1_000 + 50)]) == sorted(item.id for item in one + two)
    assert (25, 25, {0}) == (one[0].lost, two[0].lost, {item.lost for item in one[1:] + two[1:]})


@pytest.mark.proves("CHN-018")
def test_the_copies_that_wait_have_a_bound_in_bytes() -> None:
    node = Node()
    session = node.welcome(A)
    node.takes = lambda peer: False
    for number in range(20):
        session.copy(1, parcel(number, b"x" * (1 << 19), b"x" * (1 << 19)))
        node.turn()
    node.takes = lambda peer: True
    node.wait(1_000)
    assert [*range(12, 20)] == [item.id for item in recs(node.heard[A], 1)]
    assert 12 == recs(node.heard[A], 1)[0].lost


def test_what_one_turn_makes_for_whoever_takes_it_is_not_discarded() -> None:
    node = Node()
    session = node.welcome(A)
    for number in range(3 * limits.COPIES_MAX):
        session.copy(1, parcel(number))
    assert 3 * 1_000 == len(recs(node.turn(A), 1))


def test_a_registration_that_is_over_leaves_no_losses_to_the_next_of_its_number() -> None:
    node = Node()
    session = node.welcome(A)
    node.hear(A, Reg(reg=1, dir="in", type="t"))
    node.takes = lambda peer: False
    for number in range(limits.COPIES_MAX + 1):
        session.copy(1, parcel(number, b"x"))
        node.turn()
    node.hear(A, Unreg(1), Reg(reg=1, dir="in", type="t"))
    node.takes = lambda peer: True
    node.wait(1_000)
    session.copy(1, parcel(9_999))
    node.turn()
    assert {0} == {item.lost for item in recs(node.heard[A], 1)}


@pytest.mark.proves("CHN-018")
def test_a_copy_that_said_what_was_lost_and_is_lost_itself_hands_the_news_on() -> None:
    node = Node()
    session = node.welcome(A)
    node.takes = lambda peer: False
    for number in range(limits.COPIES_MAX + 200):
        session.copy(1, parcel(number))
        node.turn()
        node.wait(1)
    node.takes = lambda peer: True
    node.wait(1_000)
    copies = recs(node.heard[A], 1)
    assert (200, 200, 1_000) == (copies[0].id, copies[0].lost, len(copies))
    assert {0} == {item.lost for item in copies[1:]}


@pytest.mark.proves("CHN-018")
def test_a_copy_that_has_left_is_not_discarded_in_place_of_one_that_waits() -> None:
    node = Node()
    session = node.welcome(A)
    node.takes = lambda peer: False
    for number in range(limits.COPIES_MAX):
        session.copy(1, parcel(number))
        node.turn()
    node.takes = lambda peer: True
    node.wait(5)
    assert [0] == [item.id for item in recs(node.heard[A], 1)], "one multipart is tried first"
    for number in range(limits.COPIES_MAX, limits.COPIES_MAX + 74):
        session.copy(1, parcel(number))
    node.wait(100)
    copies = recs(node.heard[A], 1)
    assert [0, *range(74, 1_000 + 74)] == [item.id for item in copies]
    assert {1: 73} == {at: item.lost for at, item in enumerate(copies) if item.lost}


def test_what_was_said_in_front_of_a_turn_comes_back_with_what_was_said_in_it() -> None:
    """An order from outside has its own time; what follows from it leaves with the next turn."""
    node = Node()
    session = node.welcome(A)
    node.takes = lambda peer: False
    session.offer(1, parcel(1))
    node.sessions.flush(node.now)
    node.skip(1)
    session.offer(1, parcel(2))
    node.hear(A, Beat())
    node.takes = lambda peer: True
    node.wait(100)
    assert [1, 2] == [item.id for item in recs(node.heard[A], 1)]


def test_what_is_said_before_a_failure_is_known_waits_behind_it() -> None:
    node = Node()
    session = node.welcome(A)
    session.offer(1, parcel(1))
    node.sessions.flush(node.now)
    node.context.take()
    session.offer(1, parcel(2))
    node.sessions.not_sent(A, node.now)
    assert [] == node.turn(A), "not before its pause is over"
    node.wait(5)
    assert [1] == [item.id for item in recs(node.heard[A], 1)]
    node.wait(5)
    assert [1, 2] == [item.id for item in recs(node.heard[A], 1)]


def test_what_has_left_is_not_kept() -> None:
    node = Node()
    session = node.welcome(A)
    session.offer(1, parcel(1))
    node.turn()
    node.wait(1_000)
    assert {Beat} >= {type(each) for each in session.post._sent + session.post._before}


@pytest.mark.proves("CHN-018")
def test_a_client_that_takes_nothing_is_tried_again_after_pauses_that_grow() -> None:
    node = Node()
    session = node.welcome(A)
    tried: list[float] = []

    def note(peer: bytes) -> bool:
        tried.append(node.now.mono / MILLISECOND)
        return False

    node.takes = note
    session.offer(1, parcel(1))
    node.turn()
    node.wait(400)
    pauses = [round(later - earlier) for earlier, later in pairwise(tried)]
    assert [5, 10, 20, 40, 80, 100, 100] == pauses
    node.takes = lambda peer: True
    node.wait(100)
    assert [1] == [item.id for item in recs(node.heard[A], 1)]
    node.takes, tried[:] = note, []
    session.offer(1, parcel(2))
    node.turn()
    node.wait(5)
    assert 2 == len(tried), "the next one begins with a short pause"


def test_what_is_tried_again_and_again_is_kept_once() -> None:
    node = Node()
    session = node.welcome(A)
    node.takes = lambda peer: False
    for number in range(200):
        session.copy(1 + number % 2, parcel(number))
    node.turn()
    for _ in range(20):
        node.hear(A, Beat())
        node.wait(1_000)
    assert 200 <= len(session.post._copies) <= 2 * 200
    node.takes = lambda peer: True
    node.wait(1_000)
    assert (0, 200) == (len(session.post._copies), len(recs(node.heard[A], 1) + recs(node.heard[A], 2)))


def test_one_who_takes_nothing_does_not_hold_up_the_others() -> None:
    node = Node()
    slow, quick = node.welcome(A), node.welcome(B)
    node.takes = lambda peer: peer != A
    for number in range(100):
        slow.offer(1, parcel(number))
        quick.offer(1, parcel(number))
        node.turn()
    assert (0, 100) == (len(recs(node.heard[A], 1)), len(recs(node.heard[B], 1)))


def test_one_who_asks_on_and_never_reads_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ANSWERS_MAX", 100)
    node = Node()
    session = node.welcome(A)
    node.takes = lambda peer: False
    tag = 0
    while not session.is_gone and tag < 1_000:
        tag += 10
        node.hear(A, send(*range(tag, tag + 10)))
        node.wait(1)
    assert ClientLost("a", "deaf", 0) == node.told[-1]
    assert 100 <= tag <= 1_000


def test_one_who_takes_nothing_and_is_silent_dies_as_everybody() -> None:
    node = Node()
    session = node.welcome(A)
    node.takes = lambda peer: False
    session.offer(1, parcel(1))
    node.turn()
    node.wait(6_000)
    assert [ClientLost("a", "silent", 0)] == node.told[1:]
    assert None is node.sessions.deadline()
    node.sessions.not_sent(A, node.now)
    assert [] == node.turn(A)


# Properties

STEPS = st.lists(
    st.tuples(st.sampled_from(["offer", "copy", "status", "say", "turn", "wait", "wake"]), st.integers(1, 3)),
    max_size=60,
)


def settle(node: Node, session: Session, tag: int) -> None:
    """One send, and its final status."""
    node.read(A, clients.encode(send(tag)))
    session.answer(tag, ok=True, why="x")


@pytest.mark.proves("CHN-018", "CLI-008")
@given(steps=STEPS, moods=st.lists(st.booleans(), max_size=60))
def test_nothing_but_old_copies_is_lost_whatever_a_socket_takes(
    steps: list[tuple[str, int]], moods: list[bool]
) -> None:
    """Offers, statuses and answers arrive once and in order; the gaps among copies are as large as they say."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"BATCH_MESSAGES_MAX": 3, "COPIES_MAX": 5, "PORTION_MAX": 4}.items():
            patch.setattr(limits, name, value)  # so that a few messages reach them
        play(steps, moods)


def play(steps: list[tuple[str, int]], moods: list[bool]) -> None:
    node = Node(credit=1 << 20)
    node.chains.keeps = True
    session = node.welcome(A)
    mood = iter(moods)
    node.takes = lambda peer: next(mood, True)
    number, made = 0, dict[str, list[int]](offer=[], copy=[], status=[], say=[])
    acts: dict[str, Callable[[int], None]] = {
        "offer": lambda reg: session.offer(reg, parcel(number)),
        "copy": lambda reg: session.copy(reg + 10, parcel(made["copy"].count(reg))),
        "status": lambda _: settle(node, session, number),
        "say": lambda reg: session.say(Done("reg", number, reg, 3)),
    }
    offered: dict[int, list[int]] = {1: [], 2: [], 3: []}
    for what, value in steps:
        number += 1
        if what in acts:
            acts[what](value)
            made[what].append(value if what == "copy" else number)
            if what == "offer":
                offered[value].append(number)
        elif what == "wait":
            node.wait(10 * value)
        else:
            node.skip(value)
            if what == "wake":
                node.sessions.wake(node.now)
            node.turn()
        assert session.post.retry_at is None or session.post._copies_count <= 1_000
    node.turn()
    mood = iter(())
    node.wait(1_000)
    heard = node.heard[A]
    assert offered == {reg: [item.id for item in recs(heard, reg)] for reg in (1, 2, 3)}
    assert made["status"] == [tag for tag, _ in statuses(heard)]
    assert made["say"] == [message.reg for message in heard if isinstance(message, Done)]
    for reg in (1, 2, 3):
        expected = 0
        for item in recs(heard, reg + 10):
            assert expected + item.lost == item.id
            expected = item.id + 1
        if expected:
            assert made["copy"].count(reg) == expected, "the newest are kept"
    assert {} == node.sessions._behind
    assert session.post.answers == session.post._copies_count == session.post._copies_bytes == 0


@pytest.mark.proves("CHN-030", "CHN-013")
@given(st.lists(st.integers(1, 5), min_size=1, max_size=12), st.lists(st.booleans(), max_size=80))
def test_whatever_sockets_take_every_message_passes_its_holder_once_and_has_one_status(
    counts: list[int], moods: list[bool]
) -> None:
    """The whole core: a sender, a client that hands everything back, and a reader behind it."""
    node = Whole()
    for peer in (A, B, C):
        node.welcome(peer)
    node.hear(B, Reg(reg=1, dir="out", type="t", access="rw", at=1, timeout=60_000))
    node.hear(C, Reg(reg=1, dir="out", type="t", at=2))
    mood = iter(moods)
    node.takes = lambda peer: next(mood, True)
    tag = handed = 0
    for count in [*counts, *[0] * 100]:
        if not count:
            mood = iter(())
        else:
            node.hear(A, send(*range(tag + 1, tag + count + 1)))
            tag += count
        held = recs(node.heard[B], 1)[handed:]
        handed += len(held)
        for item in held:
            node.hear(B, Next(1, [NextItem(id=item.id)], []))
        node.wait(40 if count else 4)
    assert [*range(1, tag + 1)] == [item.mid[2] for item in recs(node.heard[B], 1)]
    assert [*range(1, tag + 1)] == [item.mid[2] for item in recs(node.heard[C], 1)]
    assert [(each, "local") for each in range(1, tag + 1)] == statuses(node.heard[A])
