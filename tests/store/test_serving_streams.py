"""Answers of many pieces: counted, acknowledged, in turns, and never more than a client takes (CLN-001)."""

import pytest

from tests.store.desk import Desk, Visitor, value_of


def ready() -> tuple[Desk, Visitor]:
    desk = Desk("n1")
    desk.node.write(":", "root")
    return desk, desk.client()


@pytest.mark.proves("CLN-001")
def test_no_more_than_the_window_is_said_before_it_is_acknowledged() -> None:
    desk, _ = ready()
    for number in range(30):
        desk.node.write(f"t.{number}", number)
    for wanted, window in ((10, 10), (4, 4), (500, 10)):
        client = desk.client(qlen=wanted, acks=False)
        seq = client.open("get_tree", path="t")
        assert list(range(1, window + 1)) == [answer.wseq for answer in client.heard(seq)]
        client.acknowledge(seq, 3)
        desk.settle()
        assert [window + 1, window + 2, window + 3] == [answer.wseq for answer in client.heard(seq)]
        client.acknowledge(seq, 1_000_000)
        desk.settle()
        assert window == len(client.heard(seq)), "what was not said cannot be acknowledged"
    client = desk.client(qlen=10)
    answers = client.heard(client.open("get_tree", path="t"))
    assert list(range(1, 33)) == [answer.wseq for answer in answers]
    plain = desk.client()
    assert {0} == {answer.wseq for answer in plain.heard(plain.open("get_tree", path="t"))}


def test_a_client_that_does_not_read_is_told_nothing_more() -> None:
    desk, _ = ready()
    for number in range(3_000):
        desk.node.write(f"t.{number}", number)
    client = desk.client()
    seq = client.start("get_tree", path="t")
    client.pause()
    desk.settle()
    assert len(client.heard(seq)) <= 250 + 1
    desk.turn()
    assert ([], None) == (client.heard(seq), desk.serving.deadline())
    client.resume()
    desk.settle()
    answers = client.heard(seq)
    assert ("end", 3_000 - 250 + 1) == (answers[-1].state, len(answers))


def test_a_large_answer_leaves_in_pieces_and_others_have_their_turn() -> None:
    desk, _ = ready()
    for number in range(5_000):
        desk.node.write(f"t.{number}", "x" * 40)
    desk.settle()
    slow, quick = desk.client(), desk.client()
    desk.turns.clear()
    seq = slow.start("get_tree", path="t")
    desk.turn()
    other = quick.start("get_value", path="t.7")
    desk.turn()
    assert "x" * 40 == value_of(quick.heard(other)[0])
    desk.settle()
    assert 5_002 == len(slow.heard(seq))
    assert 5_000 / 1_000 <= len(desk.turns) <= 5_000 / 250 + 10
    assert desk.sent_max < 200_000


def test_large_values_make_smaller_pieces() -> None:
    desk, _ = ready()
    for number in range(100):
        desk.node.write(f"t.{number}", "x" * 60_000)
    desk.settle()
    client = desk.client()
    assert 102 == len(client.heard(client.open("get_tree", path="t")))
    assert desk.sent_max < 2 << 20
