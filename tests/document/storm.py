"""A random life of a session: who edits, what breaks and comes back, all from one seed."""

from collections.abc import Callable
from typing import Final

from tests.document.net import Machine, Net, Weather
from tests.document.villain import Villain, strange_frames
from tests.document.witness import assert_all_is_the_same, assert_rest
from weft.base.chance import Chance
from weft.base.now import MILLISECOND, SECOND

HOUR_NS: Final = 3_600 * SECOND
CALM_NS: Final = 240 * SECOND
"""After the last fault: until everybody has everything; gone peers are called every few seconds."""
MACHINES_MAX: Final = 7
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
        self.net = Net(seed, weather=weather, schema=chance.choice(("derby", "derby", "derby", "plain")))
        self.lost: set[str] = set()
        """Machines whose disk was lost once: what only they had may be gone."""
        self.eids: list[str] = []
        self.villains: list[Villain] = []
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
        for machine in net.alive:
            net.hold_back(machine, is_full=False)
        for villain in self.villains:
            for machine in net.alive:
                villain.leave(machine)
            del net.ears[villain.endpoint]
        for machine in net.machines:
            if machine.session is None:
                net.start(machine, net.alive[:1])
        net.pass_time(SECOND)
        net.until(lambda: net.is_mesh() and net.is_equal(), CALM_NS, SECOND)
        net.judge(machine for machine in net.machines if machine.name in self.lost)
        assert_all_is_the_same(net)
        assert_rest(net)
        assert net.is_mesh(), net.standing()
        assert net.is_equal(), net.standing()

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
        kind = chance.randrange(8)
        if kind == 0 or not self.eids:
            self._add_element(machine)
        elif kind == 1:
            net.edit(machine, "set", self._place(), attributes={"duration": str(chance.randint(1, 120))}, force=True)
        elif kind == 2:
            attributes = {"points": str(chance.randint(1, 9))}
            net.edit(machine, "set", {"eid": chance.choice(self.eids)}, attributes=attributes, force=True)
        elif kind == 3:
            net.edit(machine, "remove", {"eid": chance.choice(self.eids)}, force=True)
        elif kind == 4:
            net.edit(machine, "add", {"path": "venue"}, text=f"{chance.randint(0, 99)} ", force=True)
        elif kind == 5:
            team = {"team": "home"} if net.schema == "derby" else {"path": "/"}
            net.edit(machine, "add", team, xml=f'<person number="{chance.randint(1, 5)}"/>', force=True)
        elif kind == 6:
            net.ask(machine, "chat", text=f"at {net.now_ns}")
        else:
            self._resolve(machine)

    def _place(self) -> dict[str, str]:
        if self.net.schema == "plain":
            return {"path": self.chance.choice(("venue", "note", "/", "note/deep"))}
        return {"period": str(self.chance.randint(1, 2)), "jam": str(self.chance.randint(1, 6))}

    def _add_element(self, machine: Machine) -> None:
        inner = "<note>late</note>" if self.chance.random() < 0.3 else ""
        xml = f'<pass team="home" points="{self.chance.randint(0, 9)}">{inner}</pass>'
        answer = self.net.edit(machine, "add", self._place(), xml=xml)
        self.eids += answer.body.get("eids") or ()

    def _resolve(self, machine: Machine) -> None:
        found = [conflict for conflict in machine.up.engine.conflicts() if conflict.is_open]
        if found:
            choice = self.chance.choice(("first", "second", "seen"))
            self.net.ask(machine, "resolve", id=self.chance.choice(found).id, choice=choice)

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
        uuid, disk = machine.up.context.uuid, list(machine.disk)
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

    def _full_disk(self) -> None:
        """Nothing is entered there, and what others say is held in memory (GSP-031)."""
        if not self.net.alive:
            return
        machine = self.chance.choice(self.net.alive)
        self.net.hold_back(machine, is_full=True)
        answer = self.net.edit(machine, "set", {"path": "note"}, text="no room", force=True)
        assert answer.code == "storage-full"
        if self.chance.random() < 0.5:
            self._edit_some()
            if machine.session is not None:
                self.net.hold_back(machine, is_full=False)

    def _step_clock(self) -> None:
        self.chance.choice(self.net.machines).skew_ns = self._skew()

    def _fill_a_link(self) -> None:
        if len(self.net.machines) > 1:
            one, other = self.chance.sample(self.net.machines, 2)
            self.net.full.add((one.endpoint, other.endpoint))

    def _three_islands(self) -> None:
        """Each edits alone, and all three meet at once."""
        machines, net = self.net.machines, self.net
        islands = [machines[place::3] for place in range(3)]
        for place, island in enumerate(islands):
            net.part(island, [machine for other in islands[:place] for machine in other])
        for _ in range(3):
            self._edit_some()
        net.pass_time(self.chance.choice((SECOND, 40 * SECOND)))
        net.heal()

    def _die_with_a_gap(self) -> None:
        """One operation gets lost, the next is heard, and their source is no more; perhaps its disk comes back."""
        if len(self.net.alive) < 2:
            return
        net, machine = self.net, self.chance.choice(self.net.alive)
        others = [other for other in net.machines if other is not machine]
        before = set(net.cut)
        net.part([machine], others)
        self._edit(machine)
        net.pass_time(5 * SECOND)
        net.cut = before
        self._edit(machine)
        if self.chance.random() < 0.5:
            self.lost.add(machine.name)
            net.later(2 * MILLISECOND, lambda: net.crash(machine, "lost"))
        else:
            net.later(2 * MILLISECOND, lambda: net.crash(machine))
        net.pass_time(10 * MILLISECOND)

    def _join_by_one_that_is_dead(self) -> None:
        """Another machine, which was told of two: one of them is off."""
        net = self.net
        if len(net.machines) > MACHINES_MAX or not net.alive:
            return
        dead = net.machine(start=False)
        made = net.machine(peers=[dead, self.chance.choice(net.alive)], skew_ns=self._skew())
        net.edit(made, "add", self._place(), xml="<note>new here</note>")

    def _villain(self) -> None:
        """It speaks to one or two of them, and says a few things of all that can be said."""
        alive, chance = self.net.alive, self.chance
        if not alive:
            return
        villain = Villain(self.net, chance.getrandbits(32))
        self.villains.append(villain)
        targets = chance.sample(alive, min(2, len(alive)))
        for target in targets:
            villain.join(target)
            for do in chance.sample((villain.drop_some, villain.block, villain.pour, villain.lie, villain.steal), 3):
                if target.session is not None:
                    do(target)
        self.net.pass_time(chance.choice((0, SECOND, 10 * SECOND)))

    def _strange_frames(self) -> None:
        for machine in self.net.alive:
            strange_frames(self.net, machine)

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
    Storm._full_disk,
    Storm._step_clock,
    Storm._fill_a_link,
    Storm._three_islands,
    Storm._die_with_a_gap,
    Storm._join_by_one_that_is_dead,
    Storm._villain,
    Storm._villain,
    Storm._strange_frames,
)
