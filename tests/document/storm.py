"""A random life of a session: who edits, what breaks and comes back, all from one seed (specs/04, section 9, Simulation)."""

from collections.abc import Callable
from typing import Final

from tests.document.net import Machine, Net, Weather
from weft.base.chance import Chance
from weft.base.now import MILLISECOND, SECOND

HOUR_NS: Final = 3_600 * SECOND
CALM_NS: Final = 240 * SECOND
"""After the last fault: until everybody has everything; gone peers are called every few seconds."""
EDITS: Final = 6
"""Between two faults, at most."""


class Storm:
    """Nodes, edits and faults of one seed."""

    def __init__(self, seed: int, *, nodes: int | None = None, faults: int = 8) -> None:
        self.chance = chance = Chance(f"{seed}/storm")
        self.count, self.faults = nodes or chance.choice((2, 3, 4, 6)), faults
        loss = chance.choice((0.0, 0.0, 0.05, 0.1, 0.3))
        most = chance.choice((5 * MILLISECOND, 50 * MILLISECOND, SECOND, 5 * SECOND))
        weather = Weather(loss, chance.choice((0.0, 0.1)), MILLISECOND, most, in_order=chance.random() < 0.5)
        self.net = Net(seed, weather=weather)
        self.lost: set[str] = set()
        """Machines whose disk was lost once: what only they had may be gone."""
        self.eids: list[str] = []
        self.done: list[str] = []
        """What happened, for whoever looks at a seed."""

    def run(self) -> Net:
        """All of it; the net, at rest, judged."""
        net, chance = self.net, self.chance
        first = net.machine(skew_ns=self._skew())
        for _ in range(self.count - 1):
            net.machine(peers=[first], skew_ns=self._skew())
        for _ in range(self.faults):
            self._edit_some()
            fault = chance.choice(FAULTS)
            self.done.append(f"{net.now_ns / SECOND:.1f} {fault.__name__.strip('_')}")
            fault(self)
            net.pass_time(chance.choice((0, 100 * MILLISECOND, 3 * SECOND, 20 * SECOND, 45 * SECOND)))
        self._edit_some()
        self._calm()
        return net

    def _calm(self) -> None:
        net = self.net
        net.heal()
        net.full.clear()
        net.weather = Weather()
        for machine in net.machines:
            if machine.session is None:
                net.start(machine, net.alive[:1])
        net.until(lambda: net.is_mesh() and net.is_equal(), CALM_NS, SECOND)
        net.judge(machine for machine in net.machines if machine.name in self.lost)

    def _skew(self) -> int:
        return self.chance.choice((0, 0, 1, -1)) * self.chance.randrange(HOUR_NS)

    # Edits

    def _edit_some(self) -> None:
        for _ in range(self.chance.randrange(EDITS + 1)):
            alive = self.net.alive
            if alive:
                self._edit(self.chance.choice(alive))
            self.net.pass_time(self.chance.choice((0, 10 * MILLISECOND, SECOND)))

    def _edit(self, machine: Machine) -> None:
        chance, net = self.chance, self.net
        jam = {"period": str(chance.randint(1, 2)), "jam": str(chance.randint(1, 6))}
        kind = chance.randrange(6)
        if kind == 0 or not self.eids:
            answer = net.edit(machine, "add", jam, xml=f'<pass team="home" points="{chance.randint(0, 9)}"/>')
            self.eids += answer.body.get("eids") or ()
        elif kind == 1:
            net.edit(machine, "set", jam, attributes={"duration": str(chance.randint(1, 120))}, force=True)
        elif kind == 2:
            net.edit(machine, "set", {"eid": chance.choice(self.eids)}, attributes={"points": "7"}, force=True)
        elif kind == 3:
            net.edit(machine, "remove", {"eid": chance.choice(self.eids)}, force=True)
        elif kind == 4:
            net.edit(machine, "add", {"path": "venue"}, text=f"{chance.randint(0, 99)} ", force=True)
        else:
            net.edit(machine, "add", {"team": "home"}, xml=f'<person number="{chance.randint(1, 5)}"/>', force=True)

    # Faults

    def _nothing(self) -> None:
        """Sometimes all is well."""

    def _cut(self) -> None:
        some, others = self._halves()
        self.net.part(some, others)

    def _cut_one_way(self) -> None:
        some, others = self._halves()
        self.net.part(some, others, one_way=True)

    def _heal(self) -> None:
        self.net.heal()

    def _crash(self) -> None:
        if self.net.alive:
            self.net.crash(self.chance.choice(self.net.alive))

    def _crash_torn(self) -> None:
        if self.net.alive:
            self.net.crash(self.chance.choice(self.net.alive), "torn")

    def _crash_lost(self) -> None:
        if len(self.net.alive) > 1:
            machine = self.chance.choice(self.net.alive)
            self.lost.add(machine.name)
            self.net.crash(machine, "lost")

    def _restart(self) -> None:
        down = [machine for machine in self.net.machines if machine.session is None]
        if down:
            self.net.start(
                self.chance.choice(down), self.chance.sample(self.net.machines, min(2, len(self.net.machines)))
            )

    def _same_uuid(self) -> None:
        """A disk image from a while ago is put back, and the process takes the UUID of then."""
        if not self.net.alive:
            return
        machine = self.chance.choice(self.net.alive)
        uuid, disk = machine.up.station.uuid, list(machine.disk)
        self._edit(machine)
        self.net.pass_time(SECOND)
        self.net.crash(machine)
        self.lost.add(machine.name)
        machine.disk = disk
        self.net.start(machine, self.net.machines[:2], uuid)

    def _all_off_and_on(self) -> None:
        for machine in self.net.alive:
            self.net.crash(machine)
        self.net.pass_time(SECOND)
        for machine in self.net.machines:
            self.net.start(machine, self.net.machines[:1])

    def _goodbye(self) -> None:
        if len(self.net.alive) > 1:
            self.net.stop(self.chance.choice(self.net.alive))

    def _snapshot(self) -> None:
        for machine in self.net.alive:
            self.net.condense(machine)

    def _step_clock(self) -> None:
        self.chance.choice(self.net.machines).skew_ns = self._skew()

    def _fill_a_link(self) -> None:
        if len(self.net.machines) > 1:
            one, other = self.chance.sample(self.net.machines, 2)
            self.net.full.add((one.endpoint, other.endpoint))

    def _halves(self) -> tuple[list[Machine], list[Machine]]:
        some = self.chance.sample(self.net.machines, self.chance.randint(1, max(1, len(self.net.machines) - 1)))
        return some, [machine for machine in self.net.machines if machine not in some]


FAULTS: Final[tuple[Callable[[Storm], None], ...]] = (
    Storm._nothing,
    Storm._cut,
    Storm._cut_one_way,
    Storm._heal,
    Storm._heal,
    Storm._crash,
    Storm._crash_torn,
    Storm._crash_lost,
    Storm._restart,
    Storm._restart,
    Storm._same_uuid,
    Storm._all_off_and_on,
    Storm._goodbye,
    Storm._snapshot,
    Storm._step_clock,
    Storm._fill_a_link,
)
