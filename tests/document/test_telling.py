"""Both parties of a conflict hear of it, once (DOC-040)."""

import pytest

from tests.document.net import Machine, Net
from weft.base.now import SECOND
from weft.cores.document.messages import ConflictFound


def told(machine: Machine) -> list[str]:
    return [event.kind for event in machine.told if isinstance(event, ConflictFound)]


@pytest.mark.proves("DOC-040")
def test_both_parties_are_told_of_a_conflict_once_and_not_again_after_a_restart() -> None:
    net = Net(1)
    alice = net.machine()
    bob = net.machine(peers=[alice])
    net.until(net.is_mesh, 5 * SECOND)
    net.part([alice], [bob])
    for machine, duration in ((alice, "90"), (bob, "91")):
        net.edit(machine, "set", {"period": "1", "jam": "1"}, attributes={"duration": duration})
    net.heal()
    net.until(lambda: net.is_mesh() and net.is_equal(), 60 * SECOND)
    assert ["set-set"] == told(alice) == told(bob)
    net.pass_time(SECOND)  # by then what alice said is on bob's disk
    net.crash(bob)
    bob.told.clear()
    net.start(bob, [alice])
    net.until(lambda: net.is_mesh() and net.is_equal(), 60 * SECOND)
    net.edit(bob, "set", {"period": "1", "jam": "2"}, attributes={"duration": "1"})
    net.pass_time(5 * SECOND)
    assert [] == told(bob)
