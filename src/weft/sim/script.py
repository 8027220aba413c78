"""Plays the script of a transcript: statements about a small fabric, and then what happened, in prose (SIM-016).

    root r, collector c under r, sensor a under c
    settle
    a takes 3 samples
    settle
    cut c r
    advance 10s
    heal
    settle

A statement per line; the table `STATEMENTS` holds all of them. Machines of a script wake in time, their disks sync in
a millisecond and their cables take one, so that a story shows only what it is about.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from weft.base.errors import UserError
from weft.base.now import MILLISECOND, SECOND
from weft.base.records import Stream
from weft.checks import CHECKERS
from weft.cores.measurement.messages import MeasureNow
from weft.cores.measurement.settings import ON_DEMAND
from weft.sim.fabric import Fabric
from weft.sim.faults import perform
from weft.sim.machine import Machine
from weft.sim.plan import Action, Metric, NodePlan, Plan
from weft.sim.prose import Prose

METRIC: Final = Metric("cpu", "CPU", ON_DEMAND)
SETTLE_NS: Final = 120 * SECOND
CORES: Final = ("measurement", "chains", "carrier", "topology")  # a story is about the link between two nodes
STEP_NS: Final = 100 * MILLISECOND
BREATH_NS: Final = 1_500 * MILLISECOND  # flush of what was measured, and the lake's idle time
UNITS: Final = {"ms": MILLISECOND, "s": SECOND, "min": 60 * SECOND, "h": 3600 * SECOND}
BYTES: Final = {"B": 1, "kB": 1_000}


class Script:
    """A script that is being played."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self.nodes: list[NodePlan] = []
        self.options: dict[str, Any] = {}
        self._streams = frozenset(int(stream) for stream in Stream)
        self._fabric: Fabric | None = None
        self._prose: Prose | None = None

    def play(self, text: str) -> "Script":
        """Carry out all statements; UserError `bad-script` names an invalid line."""
        for number, line in enumerate(text.splitlines(), 1):
            statement = line.partition("#")[0].strip()
            if statement:
                self._obey(number, statement)
        return self

    def as_prose(self) -> str:
        """What happened."""
        assert self._prose is not None, "a script has statements"
        return self._prose.text()

    def _obey(self, number: int, statement: str) -> None:
        for pattern, obey in STATEMENTS:
            match = pattern.fullmatch(statement)
            if match is not None:
                obey(self, *match.groups())
                return
        raise UserError("bad-script", f"line {number}: {statement!r} is no statement", "see sim/script.py, STATEMENTS")

    # Before the start.

    def declare(self, list_of_nodes: str) -> None:
        """`root r, collector c under r`."""
        for each in list_of_nodes.split(","):
            words = each.split()
            if len(words) not in (2, 4) or words[0] not in ("root", "collector", "sensor"):
                raise UserError("bad-script", f"{each!r} declares no node", "sensor NAME under PARENT")
            parent = words[3] if len(words) == 4 else ""
            plan = NodePlan(
                name=words[1],
                level=words[0],
                parent=parent,
                metrics=(METRIC,),
                runs=(*CORES, "drain") if words[0] == "root" else CORES,
                late_ns=0,
                sync_least_ns=MILLISECOND,
                sync_spread_ns=0,
            )
            self.nodes.append(plan)

    def only(self, stream: str) -> None:
        """`only samples`: records of other streams are left out of the story."""
        self._streams = frozenset({int(Stream[stream.upper()])})

    def set_option(self, name: str, amount: str, unit: str) -> None:
        """`beat 1s`, `dead 5s`."""
        self.options[f"{name}_ms"] = _span(amount, unit) // MILLISECOND

    def small_segments(self, name: str, records: str) -> None:
        """`a keeps 4 records per segment`: its journal can forget soon."""
        index = next(index for index, node in enumerate(self.nodes) if node.name == name)
        made = msgspec.structs.replace(self.nodes[index], segment_records=int(records), snapshot_records=int(records))
        self.nodes[index] = made

    @property
    def fabric(self) -> Fabric:
        """The fabric; the first statement that needs it builds it."""
        if self._fabric is None:
            plan = Plan(
                seed=self.seed,
                scenario="script",
                nodes=tuple(self.nodes),
                spread_ns=0,
                safety_ns=0,
                settle_ns=0,
                **self.options,
            )
            self._fabric = Fabric(plan, [kind() for kind in CHECKERS])
            self._prose = Prose(self._fabric)
            self._prose.streams = self._streams
            for machine in self._fabric.machines.values():
                machine.start()
        return self._fabric

    # Afterwards.

    def machine(self, name: str) -> Machine:
        """The machine of that name; UserError `bad-script` if there is none."""
        if name not in self.fabric.machines:
            raise UserError("bad-script", f"no node is called {name!r}", "declare it in the first line")
        return self.fabric.machines[name]

    def _act(self, do: str, node: str = "", other: str = "", how: str = "", number: int = 0) -> None:
        for name in (node, other):
            if name:
                self.machine(name)
        perform(self.fabric, Action(self.fabric.world.at, do, node, other, how, number))

    def settle(self) -> None:
        """Run until everything that was taken is in the lake, at most two minutes."""
        world = self.fabric.world
        ends_at = world.at + SETTLE_NS
        world.run(world.at + BREATH_NS)
        while world.at < ends_at and any(machine.waits() for machine in self.fabric.machines.values() if machine.node):
            world.run(world.at + STEP_NS)

    def advance(self, amount: str, unit: str) -> None:
        """Let this much time pass."""
        world = self.fabric.world
        world.run(world.at + _span(amount, unit))

    def take(self, name: str, count: str) -> None:
        """`a takes 3 samples`: one after the other, within a millisecond each."""
        world = self.fabric.world
        for _ in range(int(count) if count.isdigit() else 1):
            self.machine(name).obey("measurement", MeasureNow((METRIC.name,)))
            world.run(world.at + MILLISECOND)

    def cut(self, here: str, there: str, one_way: str | None) -> None:
        """`cut a b`, `cut a b one way`."""
        self._act("cut", here, there, "one" if one_way else "both")

    def heal(self) -> None:
        """All cables are whole."""
        cuts = list(self.fabric.cuts)
        for here, there in cuts:
            if (there, here) not in cuts:
                self._act("mend", here, there, "one")
            elif here < there:
                self._act("mend", here, there, "both")

    def crash(self, name: str, disk: str | None) -> None:
        """`crash a`, `crash a disk lost`."""
        self._act("crash", name, how=disk or "kept", number=1)

    def restart(self, name: str) -> None:
        """`restart a`."""
        self._act("start", name)

    def plain(self, do: str, name: str) -> None:
        """`pause a`, `resume a`, `stop a`, `image a`."""
        self._act(do, name)

    def skew(self, name: str, amount: str, unit: str) -> None:
        """`skew a by -1h`."""
        self._act("step", name, number=_span(amount, unit))

    def give_up(self, name: str, amount: str, unit: str) -> None:
        """`tcp of a gives up, seen above after 3s`."""
        self._act("give-up", name, number=_span(amount, unit))

    def fill(self, name: str, amount: str, unit: str) -> None:
        """`a may keep 2kB`."""
        self._act("fill", name, number=int(amount) * BYTES[unit])

    def room(self, name: str) -> None:
        """`a has room`."""
        self._act("fill", name)

    def garbage(self, name: str, kind: str, channel: str) -> None:
        """`a hears noise on up`."""
        self._act("garbage", name, how=kind, number=("up", "down", "beacon").index(channel))


def _span(amount: str, unit: str) -> int:
    return round(float(amount) * UNITS[unit])


_SPAN: Final = r"(-?[\d.]+) ?(ms|s|min|h)"
_NAME: Final = r"([\w-]+)"
STATEMENTS: Final[list[tuple[re.Pattern[str], Callable[..., None]]]] = [
    (re.compile(r"((?:root|collector|sensor) .*)"), Script.declare),
    (re.compile(r"only (samples|events)"), Script.only),
    (re.compile(rf"(beat|dead) {_SPAN}"), Script.set_option),
    (re.compile(rf"{_NAME} keeps (\d+) records per segment"), Script.small_segments),
    (re.compile(r"settle"), Script.settle),
    (re.compile(rf"advance {_SPAN}"), Script.advance),
    (re.compile(rf"{_NAME} takes (a|\d+) samples?"), Script.take),
    (re.compile(rf"cut {_NAME} {_NAME}( one way)?"), Script.cut),
    (re.compile(r"heal"), Script.heal),
    (re.compile(rf"crash {_NAME}(?: disk (kept|torn|lost|old))?"), Script.crash),
    (re.compile(rf"restart {_NAME}"), Script.restart),
    (re.compile(rf"(pause|resume|stop|image) {_NAME}"), Script.plain),
    (re.compile(rf"skew {_NAME} by {_SPAN}"), Script.skew),
    (re.compile(rf"tcp of {_NAME} gives up, seen above after {_SPAN}"), Script.give_up),
    (re.compile(rf"{_NAME} may keep (\d+) ?(B|kB)"), Script.fill),
    (re.compile(rf"{_NAME} has room"), Script.room),
    (re.compile(rf"{_NAME} hears ([\w-]+) on (up|down|beacon)"), Script.garbage),
]
"""What a script may say."""


def play(seed: str, text: str) -> str:
    """The prose of a script."""
    return Script(seed).play(text).as_prose()
