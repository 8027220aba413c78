"""What a parent makes of messages that nobody can read."""

import pytest

from tests.carrier.test_children import A, B, Play, sample
from weft.cores.carrier.messages import Beat, Bye, ChildLost, Garbled, Welcome


@pytest.mark.proves("CLI-006")
def test_ten_unreadable_multiparts_in_a_minute_cut_a_peer_off() -> None:
    play = Play()
    play.greet(b"1", id=A, name="a")
    play.greet(b"2", id=B, name="b")
    for _ in range(9):
        play.machine.order(Garbled("down", b"1", "bad-header"))
    play.world.advance(4)
    play.say(b"1", Beat())
    play.say(b"2", Beat())
    assert 2 == play.machine.core.counters.children
    play.machine.order(Garbled("down", b"1", "bad-frames"))
    assert [ChildLost(A, "a", "garbled")] == play.told(ChildLost)
    assert {"bad-header": 9, "bad-frames": 1} == play.machine.core.counters.refused
    assert [] == play.say(b"1", Beat())
    with pytest.raises(AssertionError):
        play.greet(b"1")
    assert isinstance(play.greet(b"3"), Welcome), "a fresh socket may try again"
    (hack,) = play.hop(b"2", 1, sample(1, origin=B), me=B)
    assert 1 == hack.upto, "the other one never noticed"


@pytest.mark.proves("CLI-006")
def test_ten_unreadable_multiparts_in_more_than_a_minute_are_weather() -> None:
    play = Play()
    play.greet(b"1")
    for _ in range(30):
        play.machine.order(Garbled("down", b"1", "bad-header"))
        for _ in range(3):
            play.world.advance(3)
            play.say(b"1", Beat())
    assert [] == play.told(ChildLost)


@pytest.mark.proves("FLD-030")
def test_a_hello_that_was_altered_on_the_way_is_answered_so_that_its_child_says_it_again() -> None:
    play = Play()
    play.machine.order(Garbled("down", b"1", "bad-sum"))
    assert [Bye("damaged")] == play.machine.heard_to_say(Bye)
    play.machine.order(Garbled("down", b"1", "bad-sum"))
    assert [] == play.machine.heard_to_say(Bye), "once a second at most"
    play.machine.order(Garbled("down", b"2", "bad-header"))
    assert [] == play.machine.heard_to_say(Bye), "who does not speak the protocol is left alone"
    assert isinstance(play.greet(b"1"), Welcome)
