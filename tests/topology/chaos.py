"""Random histories of a fleet: crashes with the disk kept or lost, cuts, loss; then quiet."""

from functools import partial
from random import Random

from tests.topology.net import Machine, Net
from weft.base.now import MILLISECOND

QUIET_BEATS = 60


def build(seed: str) -> Net:
    """A fleet of 3..14 nodes in one to three groups, with or without named collectors."""
    random = Random(f"{seed}/build")
    net = Net(seed, loss=random.choice([0.0, 0.0, 0.05, 0.2]), delay_ns=random.choice([2, 20, 80]) * MILLISECOND)
    net.wired = False
    net.restart_ns = random.choice([0, 400]) * MILLISECOND
    collectors, sensors = random.randrange(1, 5), random.randrange(1, 7)
    names = [f"10.0.1.{i + 1}:27500" for i in range(collectors)]
    site = {"members": ["10.0.0.0/16"], "fanout": random.choice([2, 3, 64])}
    if random.random() < 0.7:
        site["collectors"] = names
    net.configure(site=site)
    lower = [f"10.1.0.{i + 1}:27500" for i in range(random.randrange(2, 5))] if random.random() < 0.4 else []
    if lower:
        net.configure(web={"members": ["10.1.*"], "parent": "site"})
    everyone = [*names, *(f"10.0.2.{i + 1}:27500" for i in range(sensors)), *lower]
    root = "10.0.0.1:27500"
    net.add("root", root, level="root", join=tuple(everyone))
    for i, endpoint in enumerate(everyone):
        level = "sensor" if random.random() < 0.2 and endpoint not in names else "auto"
        join = (root, everyone[0])
        net.add(f"n{i + 1}", endpoint, level=level, join=join)
    return net


def trouble(net: Net, random: Random) -> None:
    """One thing goes wrong, or is mended."""
    machines = list(net.machines.values())
    machine = random.choice(machines)
    kind = random.randrange(8)
    if kind <= 2:
        strike(net, machine, random)
    elif kind == 3 and net.root is not None:
        net.root.crash()
    elif kind <= 5:
        revive(machine)
    elif kind == 6:
        side = [m.name for m in machines if random.random() < 0.4]
        net.cut(side, [m.name for m in machines if m.name not in side])
    else:
        net.heal()


def strike(net: Net, machine: Machine, random: Random) -> None:
    """Crash a node; only nodes without a vote lose their disk, since that may break any promise."""
    if not machine.up:
        return
    is_voter = machine.is_root or machine.name == "root" or machine.core.election.is_voter
    machine.crash(disk_lost=not is_voter and random.random() < 0.2)


def revive(machine: Machine) -> None:
    if not machine.up:
        machine.start()


def play(seed: str) -> Net:
    """A whole history, quiet at its end; what is wrong stands in `wrong`."""
    random = Random(f"{seed}/play")
    net = build(seed)
    for machine in net.machines.values():
        net.later(random.randrange(2_000) * MILLISECOND, partial(revive, machine))
    net.run(random.choice([3, 10]))
    for _ in range(random.randrange(1, 8)):
        trouble(net, random)
        net.run(random.choice([0.05, 0.5, 2, 7, 12]))
    net.heal()
    net.loss = 0.0
    for machine in net.machines.values():
        revive(machine)
    if net.run_until(net.is_settled, QUIET_BEATS) is None:
        net.wrong += ["not settled", *net.unsettled()]
    else:
        net.run(12)
        if not net.is_settled():
            net.wrong += ["unsettled again", *net.unsettled()]
    return net
