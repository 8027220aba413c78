"""How a service hears of its broker, and lets itself be heard (BEA-003 to BEA-021)."""

from itertools import pairwise

import pytest

from tests.service.rig import EPOCH, OTHER, SEED, Rig, up, waited
from weft.base.now import SECOND
from weft.cores.service.messages import (
    BEACONS,
    BEATS,
    Dropped,
    Lost,
    PathChanged,
)
from weft.wire.catalog import beacon as beacons
from weft.wire.catalog.messages import (
    APPROVED,
    AWK,
    DENIED,
    DISCONNECT,
    HEARTBEAT,
    REGISTRATION,
    Beacon,
)


@pytest.mark.proves("BEA-004", "BEA-003")
def test_without_seeds_it_waits_for_a_beacon_and_calls_where_that_came_from() -> None:
    rig = Rig(seeds=())
    rig.start()
    rig.run(60)
    assert ("IDLE", None) == (rig.state, rig.core.deadline())
    rig.beacon("10.0.0.7", port=5300)
    assert (["10.0.0.7:5300"], False) == (rig.dialled, "beacon" in rig.registration())


@pytest.mark.proves("BEA-003")
def test_a_beacon_from_nowhere_is_of_this_machine() -> None:
    rig = Rig(seeds=())
    rig.start()
    rig.beacon("0.0.0.0")
    assert ["127.0.0.1:5246"] == rig.dialled


@pytest.mark.proves("BEA-005")
def test_the_first_that_is_heard_is_called_until_it_is_lost() -> None:
    rig = Rig(seeds=())
    rig.start()
    rig.beacon("10.0.0.1")
    rig.approve()
    rig.beacon("10.0.0.2", id=OTHER)
    rig.run(0.5)
    assert (["10.0.0.1:5246"], "UP") == (rig.dialled, rig.state)
    for _ in range(12):
        rig.run(1)
        rig.beacon("10.0.0.2", id=OTHER)
    assert "10.0.0.2:5246" in rig.dialled


@pytest.mark.proves("BEA-005")
def test_only_beacons_of_its_network_count() -> None:
    rig = Rig(seeds=(), net="blue")
    rig.start()
    rig.beacon(net="red")
    rig.beacon(net="")
    assert [] == rig.dialled
    rig.beacon("10.0.0.3", net="blue")
    assert ["10.0.0.3:5246"] == rig.dialled


@pytest.mark.proves("BEA-007")
def test_with_a_key_only_signed_beacons_count() -> None:
    rig = Rig(seeds=(), beacon_key="secret")
    rig.start()
    said = Beacon(5246, dbp=1, id=EPOCH)
    for beacon in (said, beacons.sign(said, b"other")):
        rig.hear(beacons.decode(beacons.encode(beacon)), BEACONS, b"10.0.0.1")
    assert [] == rig.dialled
    rig.hear(beacons.decode(beacons.encode(beacons.sign(said, b"secret"))), BEACONS, b"10.0.0.1")
    assert [SEED] == rig.dialled


@pytest.mark.proves("BEA-021")
def test_a_new_run_of_its_broker_is_registered_with_within_an_interval() -> None:
    rig = up()
    rig.beacon()
    rig.beacon(id=OTHER)
    assert ("DROPPED", [Dropped("restarted")]) == (rig.state, rig.told())
    assert waited(rig) <= 1.001
    rig.approve(epoch=OTHER)
    assert "UP" == rig.state


@pytest.mark.proves("BEA-021")
def test_a_beacon_of_the_run_before_that_comes_late_restarts_nothing() -> None:
    rig = up()
    rig.beacon(id=OTHER)
    waited(rig)
    rig.approve(epoch=OTHER)
    rig.beacon(id=EPOCH)
    assert ("UP", 2) == (rig.state, len(rig.dialled))


@pytest.mark.proves("BEA-021")
def test_a_beacon_of_the_returned_broker_ends_a_long_wait() -> None:
    rig = up()
    rig.run(60)
    while rig.state != "DROPPED" or (rig.core.deadline() or 0) - rig.at < 4 * SECOND:
        rig.run(0.1)
    rig.beacon(id=OTHER)
    assert waited(rig) <= 1.001


@pytest.mark.proves("BEA-021")
def test_a_broker_with_two_addresses_is_one() -> None:
    rig = up()
    rig.beacon("192.168.0.1")
    rig.beacon("192.168.0.1", id=OTHER)
    assert "DROPPED" == rig.state


def test_who_repeats_the_epoch_of_our_broker_does_not_turn_our_beats_away() -> None:
    rig = up()
    before = rig.core._brokers.beats_at
    rig.beacon("10.0.0.2", hb=9)
    assert ("UP", before) == (rig.state, rig.core._brokers.beats_at)


@pytest.mark.proves("BEA-021")
def test_the_beacons_of_others_restart_nothing() -> None:
    rig = up()
    rig.beacon("10.0.0.2", id=OTHER)
    rig.beacon("10.0.0.2", id="0" * 16)
    assert "UP" == rig.state


@pytest.mark.proves("BEA-010")
def test_the_first_beat_comes_after_a_random_share_and_the_others_each_interval() -> None:
    firsts = []
    for name in "abcdefgh":
        rig = up(name=name)
        rig.run_with_beacons(20)
        at = rig.times(BEATS)
        firsts.append(at[0])
        assert [] == [gap for gap in (b - a for a, b in pairwise(at)) if not 0.95 <= gap <= 1.05]
        assert [] == rig.said(), "and nothing over the connection"
    assert (True, 8) == (max(firsts) <= 1.0, len(set(firsts)))


@pytest.mark.proves("BEA-010")
def test_a_beat_says_who_it_is_and_counts() -> None:
    rig = up()
    rig.run_with_beacons(3)
    sent = [what for _, on, what in rig.log if on == BEATS]
    assert [("thermo", "i1", 1), ("thermo", "i1", 2)] == [(beat.name, beat.id, beat.seq) for beat in sent[:2]]


@pytest.mark.proves("BEA-011")
def test_with_a_beat_key_beats_are_signed() -> None:
    from weft.wire.catalog import beats

    rig = Rig()
    rig.start()
    rig.approve(beat_key="0b" * 32)
    rig.run_with_beacons(2)
    (line,) = beats.decode(beats.encode(rig.last(BEATS))).lines
    assert beats.is_signed(line, b"\x0b" * 32)


@pytest.mark.proves("BEA-018")
def test_without_a_word_beats_go_over_the_connection_too_and_the_broker_must_answer() -> None:
    rig = up()
    rig.run(1.499)
    assert [] == rig.said()
    rig.run(0.002)
    assert ([HEARTBEAT], [PathChanged(over_tcp=True)]) == (rig.said(), rig.told())
    rig.run(2.998)
    assert "UP" == rig.state
    rig.run(0.002)
    assert ("DROPPED", [Dropped("silent")]) == (rig.state, rig.told())


@pytest.mark.proves("BEA-018", "BEA-019")
def test_a_broker_that_answers_by_connection_alone_keeps_its_service() -> None:
    rig = up()
    rig.run(1.5)
    for _ in range(200):
        rig.say(AWK)
        rig.run(0.5)
    words = rig.said()
    assert ("UP", {HEARTBEAT}) == (rig.state, set(words))
    assert 98 <= len(words) <= 106, "one each interval, and none in answer to an acknowledgement"


@pytest.mark.proves("BEA-018", "BEA-020")
def test_an_acknowledgement_by_datagram_keeps_beats_off_the_connection() -> None:
    rig = up()
    for _ in range(30):
        rig.run(1)
        rig.acknowledge()
    assert ([], "UP") == (rig.said(), rig.state)
    rig.acknowledge("somebody else")
    rig.run(1.6)
    assert [HEARTBEAT] == rig.said()


@pytest.mark.proves("BEA-018", "BEA-019")
def test_asked_by_its_broker_it_answers_and_beats_over_the_connection_until_datagrams_are_heard_again() -> None:
    rig = up()
    rig.run_with_beacons(5)
    rig.log.clear()
    rig.say(HEARTBEAT, b"thermo", b"i1")
    assert ([AWK, HEARTBEAT], [PathChanged(over_tcp=True)]) == (rig.said(), rig.told())
    for _ in range(5):
        rig.run_with_beacons(1)
        rig.say(AWK)
    assert 4 <= len(rig.said()) <= 6
    rig.say(HEARTBEAT, b"thermo", b"i1", b"udp")
    rig.run_with_beacons(5)
    assert ([AWK], [PathChanged(over_tcp=False)]) == (rig.said(), rig.told())


@pytest.mark.proves("BEA-018")
def test_a_broker_whose_beacon_is_heard_but_that_does_not_answer_is_dropped() -> None:
    rig = up()
    rig.run_with_beacons(5)
    rig.say(HEARTBEAT, b"thermo")
    rig.run_with_beacons(4)
    assert [PathChanged(over_tcp=True), Dropped("silent")] == rig.told()[-2:]


@pytest.mark.proves("BEA-004")
def test_an_existing_broker_is_left_alone_while_its_beacon_is_heard() -> None:
    rig = Rig()
    rig.start()
    rig.say(APPROVED)
    rig.run_with_beacons(10, dbp=0, id="", hb=0)
    assert ([], [REGISTRATION], "UP") == (rig.said(BEATS), rig.said(), rig.state)
    rig.run(2)
    rig.say(DENIED, b"invalid command")
    assert ([HEARTBEAT], "UP") == (rig.said(), rig.state)
    rig.run_with_beacons(10, dbp=0, id="", hb=0)
    assert ([HEARTBEAT], "UP") == (rig.said(), rig.state)
    rig.run(4.6)
    assert "DROPPED" == rig.state


@pytest.mark.proves("BEA-021")
def test_a_connection_that_broke_means_another_run_of_an_existing_broker_only() -> None:
    rig = up()
    rig.order(Lost(rig.core.tag))
    assert ("UP", []) == (rig.state, rig.told())
    rig = Rig()
    rig.start()
    rig.say(APPROVED)
    rig.told()
    rig.order(Lost(b"an older one"))
    assert "UP" == rig.state
    rig.order(Lost(rig.core.tag))
    assert ("DROPPED", [Dropped("lost")]) == (rig.state, rig.told())
    assert waited(rig) <= 1.001


@pytest.mark.proves("BEA-018")
def test_a_broker_without_a_port_for_beats_is_beaten_over_the_connection() -> None:
    rig = Rig()
    rig.start()
    rig.approve(hb=0)
    for _ in range(10):
        rig.run(1)
        rig.say(AWK)
    assert ([], "UP", True) == (rig.said(BEATS), rig.state, 9 <= rig.said().count(HEARTBEAT) <= 11)


@pytest.mark.proves("BEA-021", "BEA-022")
def test_the_beacon_of_a_broker_that_stood_still_ends_a_long_wait() -> None:
    rig = up()
    rig.beacon()
    rig.run(60)
    while rig.state != "DROPPED" or (rig.core.deadline() or 0) - rig.at < 4 * SECOND:
        rig.run(0.1)
    rig.beacon()
    due_at = rig.core.deadline()
    rig.beacon()
    assert due_at == rig.core.deadline(), "only the first one hastens"
    assert waited(rig) <= 1.001


@pytest.mark.proves("BEA-022")
def test_who_stood_still_does_not_take_that_for_silence() -> None:
    rig = up()
    rig.run(1.6)
    rig.say(AWK)
    rig.log.clear()
    rig.sleep(30)
    rig.run(0)
    assert ("UP", [HEARTBEAT]) == (rig.state, rig.said())
    rig.run(2.5)
    assert ("DROPPED", [Dropped("silent")]) == (rig.state, rig.told())


@pytest.mark.proves("BEA-020")
def test_it_says_whether_it_hears_beacons() -> None:
    rig = up()
    rig.beacon()
    rig.say(DISCONNECT)
    waited(rig)
    assert "beacon" not in rig.registration()
    rig.run(6)
    assert False is rig.registration()["beacon"]


@pytest.mark.proves("CAT-011")
def test_times_of_eight_bytes_are_for_brokers_that_read_them() -> None:
    rig = Rig(seeds=())
    rig.start()
    rig.beacon(caps=("f64",))
    eight = rig.last().time
    rig = up()
    rig.run(2)
    assert (8, 4) == (len(eight), len(rig.last().time))
