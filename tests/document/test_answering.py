"""What others lack is sent: all of it, in order, not twice in a row, no faster than their link takes, never beyond a gap."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from tests.document.logs import Node, body, numbers, pushed, run
from tests.document.rig import EB, EC, A, B, C, gsip
from weft.base.now import MILLISECOND, SECOND
from weft.cores.document.answering import packs
from weft.cores.document.knowing import Knowing, Sent, gaps
from weft.wire.document.messages import READS_PACKS, Beat, Xmsg, Xpak, operations_of

E = bytes.fromhex("e0000000000040008000000000000005")
"""A source that is not there."""


def full(count: int, **how: object) -> Node:
    """A node that holds operations of a source that is away, and whom B may ask for them."""
    node = Node()
    node.befriend(B, EB)
    node.do(lambda: [node.log.take(one, C) for one in run(E, 1, count, **how)])
    return node


def ask(node: Node, upto: int, peer: bytes = B, source: bytes = E) -> list[int]:
    """What comes of an ask at once."""
    return numbers(node.hear(peer, gsip(source, upto)))


@pytest.mark.proves("GSP-022", "GSP-024")
def test_an_answer_is_what_follows_in_order_and_at_most_five_hundred() -> None:
    node = full(1_200)
    assert list(range(11, 511)) == ask(node, 10)
    assert list(range(511, 1_011)) == ask(node, 510)
    assert list(range(1_011, 1_201)) == ask(node, 1_010)
    assert [] == ask(node, 1_200)


@pytest.mark.proves("GSP-022")
def test_what_was_sent_lately_is_not_sent_again_but_the_first_one_soon() -> None:
    node = full(4)
    assert [2, 3, 4] == ask(node, 1)
    assert [] == ask(node, 1)
    node.pass_seconds(0.06)
    assert [2] == ask(node, 1)
    assert [1] == ask(node, 0), "that one was never sent"
    node.pass_seconds(1.9)
    assert [2] == ask(node, 1)
    node.pass_seconds(0.1)
    assert [3, 4] == ask(node, 2)


@pytest.mark.proves("GSP-024")
def test_asking_again_before_the_answer_can_have_come_fills_no_link() -> None:
    node = full(2_000)
    assert 500 == len(ask(node, 0))
    node.pass_seconds(0.15)
    assert [1] == ask(node, 0)
    assert [] == numbers(node.pass_seconds(0.3))
    assert [1] == ask(node, 0)


@pytest.mark.proves("GSP-022")
def test_what_was_sent_to_one_is_sent_to_another() -> None:
    node = full(3)
    node.befriend(C, EC)
    assert [1, 2, 3] == ask(node, 0)
    assert [1, 2, 3] == ask(node, 0, C)


@pytest.mark.proves("GSP-022")
def test_a_first_push_counts_as_sent() -> None:
    node = Node()
    node.befriend(B, EB)
    for _ in range(3):
        node.issue()
    assert [] == ask(node, 0, source=A)
    node.pass_seconds(0.06)
    assert [1] == ask(node, 0, source=A)
    node.befriend(C, EC)
    assert [1, 2, 3] == ask(node, 0, C, source=A), "who came later was sent nothing"
    node.pass_seconds(2.1)
    assert [1, 2, 3] == ask(node, 0, source=A)


@pytest.mark.proves("GSP-022")
def test_what_a_source_that_is_there_said_just_now_is_left_to_itself() -> None:
    node = Node()
    node.befriend(B, EB)
    node.befriend(C, EC)
    node.hear(C, Xmsg(body(C, 1)))
    node.pass_seconds(0.1)
    node.hear(C, Xmsg(body(C, 2)), Xmsg(body(C, 3)))
    assert [] == ask(node, 0, source=C)
    node.pass_seconds(0.06)
    assert [1] == ask(node, 0, source=C)
    node.pass_seconds(0.1)
    assert [2, 3] == ask(node, 1, source=C)


def test_what_lay_beyond_a_gap_was_heard_when_it_came() -> None:
    node = Node()
    node.befriend(B, EB)
    node.befriend(C, EC)
    node.hear(C, Xmsg(body(C, 2)))
    node.pass_seconds(1)
    node.hear(C, Xmsg(body(C, 1)))
    assert [] == ask(node, 0, source=C)
    node.pass_seconds(0.16)
    assert [1, 2] == ask(node, 0, source=C)


@pytest.mark.proves("GSP-023")
def test_nothing_beyond_a_gap_is_sent() -> None:
    node = full(2)
    node.hear(C, Xmsg(body(E, 4)))
    node.do(lambda: node.log.take(body(E, 4), C))
    assert [1, 2] == ask(node, 0)


# Packs


def able(count: int, **how: object) -> Node:
    """The same, and B reads packs."""
    node = full(count, **how)
    node.hear(B, Beat(0, 0, 0, (READS_PACKS,)))
    return node


@pytest.mark.proves("GSP-027")
@pytest.mark.parametrize(("count", "expected"), [(20, [Xmsg] * 20), (21, [Xpak]), (500, [Xpak])])
def test_an_answer_of_many_operations_goes_as_one_message_to_who_reads_that(count: int, expected: list[type]) -> None:
    node = able(count)
    said = [word.message for word in node.hear(B, gsip(E, 0)) if isinstance(word.message, Xmsg | Xpak)]
    assert expected == [type(message) for message in said]
    assert run(E, 1, count) == unpacked(said)
    assert [] == node.hear(B, gsip(E, 0)), "they count as sent"


@pytest.mark.proves("GSP-027")
def test_who_does_not_say_that_it_reads_packs_gets_each_operation_alone() -> None:
    assert [Xmsg] * 300 == [type(word.message) for word in full(300).hear(B, gsip(E, 0))]


@pytest.mark.proves("GSP-027")
def test_a_pack_is_taken_as_if_each_operation_had_come_alone() -> None:
    one, other = Node(), Node()
    bodies = [*run(E, 1, 30), b"<no operation", *run(E, 33, 34)]
    for node, said in ((one, [Xpak(tuple(bodies))]), (other, list(map(Xmsg, bodies)))):
        node.befriend(B, EB)
        node.hear(B, *said)
    assert (30, 30) == (one.log.latest(E), other.log.latest(E))
    assert (one.log.highest(E), one.log.check) == (other.log.highest(E), other.log.check)


@pytest.mark.proves("GSP-027")
def test_packs_are_as_few_as_their_bounds_allow() -> None:
    bodies = [bytes([number]) * 200_000 for number in range(12)]
    made = list(packs(bodies))
    assert bodies == [body for pack in made for body in pack]
    assert [5, 5, 2] == [len(pack) for pack in made]
    assert [500, 1] == [len(pack) for pack in packs([b"x"] * 501)]
    assert [] == list(packs([]))


def unpacked(said: Sequence[Xmsg | Xpak]) -> list[bytes]:
    return [body for one in said for body in operations_of(one)]


# Pace


def window(node: Node, asks: int) -> int:
    """How many operations go out in a tenth of a second, however much is asked for."""
    sent = 0
    for number in range(asks):
        sent += len(ask(node, number * 500))
        sent += len(numbers(node.pass_seconds(0.001)))
    return sent


@pytest.mark.proves("GSP-024")
def test_to_one_peer_no_more_than_1500_operations_go_out_in_a_tenth_of_a_second() -> None:
    assert 1_500 == window(full(2_500), 5)


def test_canary_an_answer_that_is_not_paced_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Knowing, "has_room", lambda knowing, size, now: bool(knowing) and size < now)
    assert 1_500 < window(full(2_500), 5)


@pytest.mark.proves("GSP-024")
def test_to_one_peer_no_more_than_a_mebibyte_goes_out_in_a_tenth_of_a_second() -> None:
    node = full(12, value="x" * 200_000)
    assert [1, 2, 3, 4, 5] == ask(node, 0)
    assert [6, 7, 8, 9, 10] == numbers(node.pass_seconds(0.1))
    assert [11, 12] == numbers(node.pass_seconds(0.1))
    assert [] == numbers(node.pass_seconds(1))


def test_an_answer_that_is_held_back_goes_on_by_itself_and_ends_where_it_would_have() -> None:
    node = full(2_500)
    for number in range(3):
        assert 500 == len(ask(node, number * 500))
    assert [] == ask(node, 1_500)
    assert [] == numbers(node.pass_seconds(0.09))
    assert list(range(1_501, 2_001)) == numbers(node.pass_seconds(0.02))
    assert [] == numbers(node.pass_seconds(1))


def test_every_peer_has_a_pace_of_its_own() -> None:
    node = full(2_000)
    node.befriend(C, EC)
    assert 1_500 == sum(len(ask(node, n * 500)) for n in range(4))
    assert 1_500 == sum(len(ask(node, n * 500, C)) for n in range(4))


def test_own_entries_are_said_at_once_and_count() -> None:
    node = full(2_000)
    assert 1_500 == sum(len(ask(node, n * 500)) for n in range(4))
    assert [1] == numbers(node.issue()), "nobody waits for its own entry to leave"


def test_what_waits_for_a_pace_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.cores.document.answering.OWED_MAX", 2)
    node = Node()
    node.befriend(B, EB)
    sources = [bytes([0xE0, n]) + E[2:] for n in range(6)]
    node.do(lambda: [node.log.take(one, C) for source in sources for one in run(source, 1, 500)])
    assert [500, 500, 500, 0, 0, 0] == [len(ask(node, 0, source=source)) for source in sources]
    assert 1_000 == len(numbers(node.pass_seconds(0.2)))
    assert [] == numbers(node.pass_seconds(1))


@pytest.mark.proves("GSP-024")
def test_a_newcomer_has_everything_after_little_more_than_the_pace_takes() -> None:
    there, here = full(3_200), Node(uuid=B)
    here.befriend(A, EB)
    mail, sent = here.hear(A, gsip(E, 3_200)), 0
    while here.log.latest(E) < 3_200:
        answers = [word for asked in mail for word in there.hear(B, asked.message)] + there.pass_seconds(0.005)
        sent += len(pushed(answers))
        mail = here.hear(A, *(word.message for word in answers if isinstance(word.message, Xmsg))) + here.pass_seconds(
            0.005
        )
        assert there.seconds < 0.3
    assert 3_200 == sent
    assert there.log.check == here.log.check


# Tables


def test_what_is_not_covered() -> None:
    assert [(1, 9)] == list(gaps([], 1, 9))
    assert [(3, 3), (7, 9)] == list(gaps([(4, 6), (1, 2), (5, 5)], 1, 9))
    assert [] == list(gaps([(1, 4), (5, 20)], 2, 9))
    assert [] == list(gaps([], 3, 2))


@examples(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=6), st.integers(1, 12), st.integers(1, 12))
def test_gaps_are_what_a_set_would_lack(runs: list[tuple[int, int]], first: int, last: int) -> None:
    ranges = [(min(run), max(run)) for run in runs]
    covered = {number for low, high in ranges for number in range(low, high + 1)}
    found = [number for low, high in gaps(ranges, first, last) for number in range(low, high + 1)]
    assert [number for number in range(first, last + 1) if number not in covered] == found


def test_what_was_sent_is_remembered_for_a_while_and_no_longer() -> None:
    sent = Sent()
    for at in range(10_000):
        sent.add(E, at + 1, at + 1, at * MILLISECOND)
        sent.forget((at - 2_000) * MILLISECOND)
    assert 2_000 == len(sent._runs)
    assert (8_001, 10_000) == (min(sent.since(E, 0))[0], max(sent.since(E, 0))[1])
    sent.forget(SECOND * SECOND)
    assert ([], {}) == (sent.since(E, 0), sent._by_source)
