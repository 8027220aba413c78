"""Many machines, one document: whatever the network, the clocks and the disks do, all end with the same (DOC-012, GSP-010 to GSP-030)."""

import pytest

from tests.document.net import Machine, Net, Weather
from tests.document.storm import Storm
from weft.base.now import MILLISECOND, SECOND


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


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.proves("DOC-012", "GSP-021")
def test_any_life_of_a_session_ends_with_the_same_for_all(seed: int) -> None:
    Storm(seed).run()
