"""Many machines, one document: whatever the network, the clocks and the disks do, all end with the same (DOC-012, GSP-010 to GSP-030)."""

import pytest

from tests.document.net import Machine, Net, Weather
from tests.document.storm import Storm
from tests.document.test_scale import body_of
from tests.document.villain import Villain
from tests.document.witness import assert_all_is_the_same, assert_rest
from weft.base.now import MILLISECOND, SECOND
from weft.base.records import StreamRecord


def pair() -> tuple[Net, Machine, Machine]:
    net = Net(1)
    alice = net.machine("alice")
    bob = net.machine("bob", peers=[alice])
    net.until(net.is_mesh, 5 * SECOND)
    return net, alice, bob


def test_what_one_enters_the_other_has() -> None:
    net, alice, bob = pair()
    net.edit(alice, "add", {"period": "1", "jam": "1"}, xml='<pass team="home" points="4"/>')
    net.edit(bob, "set", {"period": "1", "jam": "1"}, attributes={"duration": "90"})
    net.until(net.is_equal, 2 * SECOND)
    assert (2, 2) == (alice.up.log.count, bob.up.log.count)
    net.judge()


def test_a_pulled_cable_and_everything_is_the_same_afterwards() -> None:
    net, alice, bob = pair()
    net.part([alice], [bob])
    for number in range(1, 11):
        net.edit(alice, "add", {"period": "1", "jam": str(number)}, xml='<pass team="home" points="4"/>')
        net.edit(bob, "set", {"period": "1", "jam": str(number)}, attributes={"duration": str(number)})
        net.pass_time(5 * SECOND)
    net.heal()
    net.until(lambda: net.is_mesh() and net.is_equal(), 10 * SECOND)
    assert 20 == alice.up.log.count
    net.judge()


@pytest.mark.proves("GSP-026")
def test_at_rest_nobody_gossips() -> None:
    net, alice, _ = pair()
    net.edit(alice, "add", {"period": "1", "jam": "1"}, xml="<lead/>")
    net.pass_time(20 * SECOND)
    last = net.gsip_at
    net.pass_time(60 * SECOND)
    assert last == net.gsip_at


def test_a_crash_with_its_disk_kept_loses_nothing_and_the_disk_alone_is_enough() -> None:
    net, alice, bob = pair()
    for number in range(1, 6):
        net.edit(alice, "add", {"period": "1", "jam": str(number)}, xml='<pass team="home" points="4"/>')
    net.pass_time(SECOND)
    net.crash(alice)
    net.crash(bob)
    net.start(alice)
    net.start(bob, [alice])
    net.until(lambda: net.is_mesh() and net.is_equal(), 10 * SECOND)
    assert 5 == bob.up.log.count
    net.judge()


@pytest.mark.parametrize("loss", [0.0, 0.1, 0.3])
def test_four_machines_under_loss_have_all_of_it(loss: float) -> None:
    net = Net(3, weather=Weather(loss=loss, double=0.05, most_ns=20 * MILLISECOND, in_order=False))
    first = net.machine()
    for _ in range(3):
        net.machine(peers=[first])
    net.until(net.is_mesh, 120 * SECOND)
    for number in range(40):
        writer = net.machines[number % 4]
        net.edit(writer, "add", {"period": "1", "jam": str(1 + number % 9)}, xml='<pass team="away" points="1"/>')
        net.pass_time(10 * MILLISECOND)
    net.until(net.is_equal, 60 * SECOND)
    assert 40 == first.up.log.count
    net.judge()


@pytest.mark.proves("GSP-014", "GSP-023", "GSP-030")
def test_a_source_that_dies_with_a_gap_holds_nobody_up_and_fills_it_when_it_is_back() -> None:
    net, alice, bob = pair()
    carol = net.machine("carol", peers=[bob])
    net.until(net.is_mesh, 5 * SECOND)
    net.part([carol], [alice, bob])
    net.edit(carol, "add", {"path": "note"}, text="heard by nobody")
    net.heal()
    net.edit(carol, "add", {"path": "note"}, text="heard by all")
    net.pass_time(20 * MILLISECOND)
    source = carol.uuid
    net.crash(carol)
    net.edit(alice, "set", {"path": "venue"}, text="Hall 5")
    net.until(net.is_equal, 5 * SECOND)
    assert [(0, 2)] * 2 == [(each.up.log.latest(source), each.up.log.lowest_held(source)) for each in (alice, bob)]
    assert_rest(net)
    for each in (alice, bob):
        net.crash(each)
        net.start(each, [alice])
    net.until(lambda: net.is_mesh() and net.is_equal(), 10 * SECOND)
    assert [(0, 2)] * 2 == [(each.up.log.latest(source), each.up.log.lowest_held(source)) for each in (alice, bob)]
    net.start(carol, [bob])
    net.until(lambda: net.is_mesh() and net.is_equal(), 15 * SECOND)
    assert [2] * 3 == [each.up.log.latest(source) for each in net.machines]
    net.judge()
    assert_all_is_the_same(net)


@pytest.mark.prove("an hour")
@pytest.mark.proves("DOC-012", "PEE-043")
def test_three_groups_that_grew_apart_for_an_hour_merge_at_once() -> None:
    net = Net("islands")
    first = net.machine()
    for number in range(1, 6):
        net.machine(peers=[first], skew_ns=number * 1_000 * SECOND)
    net.until(net.is_mesh, 10 * SECOND)
    islands = [net.machines[place::3] for place in range(3)]
    for place, island in enumerate(islands):
        net.part(island, [machine for other in islands[:place] for machine in other])
    for number in range(36):
        writer, jam = net.machines[number % 6], {"period": "1", "jam": str(1 + number % 3)}
        net.edit(writer, "set", jam, attributes={"duration": str(number)}, force=True)
        net.edit(writer, "add", {"team": "home"}, xml=f'<person number="{number % 4}"/>')
        net.pass_time(100 * SECOND)
    net.heal()
    net.until(lambda: net.is_mesh() and net.is_equal(), 40 * SECOND)
    assert 72 == first.up.log.count
    net.judge()
    assert_all_is_the_same(net)


@pytest.mark.proves("PEE-020")
def test_a_newcomer_that_knows_one_dead_and_one_living_address_has_everything() -> None:
    net, alice, bob = pair()
    net.edit(alice, "add", {"path": "note"}, text="hello")
    net.pass_time(SECOND)
    net.crash(alice)
    carol = net.machine("carol", peers=[alice, bob])
    net.until(net.is_equal, 5 * SECOND)
    assert 1 == carol.up.log.count
    net.start(alice)
    net.until(lambda: net.is_mesh() and net.is_equal(), 40 * SECOND)
    net.judge()
    assert_all_is_the_same(net)


@pytest.mark.proves("GSP-015")
def test_an_old_image_of_a_disk_makes_no_second_operation_under_a_number() -> None:
    net, alice, bob = pair()
    net.edit(alice, "add", {"path": "note"}, text="first")
    net.pass_time(SECOND)
    uuid, disk = alice.uuid, list(alice.disk)
    net.edit(alice, "add", {"path": "note"}, text="second")
    net.pass_time(SECOND)
    net.crash(alice)
    alice.disk = disk
    net.start(alice, [bob], uuid)
    net.until(net.is_mesh, 60 * SECOND)
    net.edit(alice, "add", {"path": "note"}, text="third")
    net.until(lambda: net.is_mesh() and net.is_equal(), 20 * SECOND)
    assert uuid != alice.uuid
    assert (2, 3) == (bob.up.log.latest(uuid), bob.up.log.count)
    net.judge()
    assert_all_is_the_same(net)


@pytest.mark.proves("GSP-031", "GSP-034")
def test_what_came_while_a_disk_was_full_is_recorded_once_and_in_order() -> None:
    net, alice, _ = pair()
    villain = Villain(net, 1)
    villain.join(alice)
    net.hold_back(alice, is_full=True)
    for number in (3, 1, 2, 4):
        villain.say_operation(alice, body_of("a", number))
    net.pass_time(SECOND)
    assert [] == [record.sequence for record in alice.disk if isinstance(record, StreamRecord)]
    net.hold_back(alice, is_full=False)
    net.pass_time(SECOND)
    assert [1, 2, 3, 4] == [record.sequence for record in alice.disk if isinstance(record, StreamRecord)]


@pytest.mark.proves("GSP-026")
def test_whoever_claimed_more_and_is_equal_after_all_is_asked_no_more() -> None:
    net, alice, bob = pair()
    villain = Villain(net, 1)
    villain.join(alice)
    villain.claim(alice, bytes([7] * 16), 5)
    net.edit(bob, "add", {"path": "note"}, text="hello")
    net.pass_time(10 * SECOND)
    assert net.now_ns - net.gsip_at < 3 * SECOND
    villain.agree(alice)
    net.pass_time(3 * SECOND)
    last = net.gsip_at
    net.pass_time(5 * SECOND)
    assert last == net.gsip_at


@pytest.mark.prove("many long lives")
@pytest.mark.proves("DOC-012", "GSP-021", "GSP-010", "GSP-026", "GSP-034")
def test_any_life_of_a_session_ends_with_the_same_for_all(soak: bool) -> None:
    for seed in (*range(2_000 if soak else 20), 2_591, 2_709):  # the last two: an old disk, and who proves it gets lost
        live(Storm(seed), seed)


@pytest.mark.prove("many nodes")
def test_so_does_a_life_of_sixteen(soak: bool) -> None:
    for seed in range(40 if soak else 1):
        live(Storm(seed, nodes=16, faults=5), seed)


def live(storm: Storm, seed: int) -> None:
    """All of it; who reads of a failure reads how to have it again."""
    try:
        storm.run()
    except Exception as error:
        error.add_note(f"seed {seed}, {storm.count} nodes: {'; '.join(storm.done)}")
        raise
