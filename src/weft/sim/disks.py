"""Changes to a machine's disk and file while its node does not run, and what the next start reports."""

from typing import TYPE_CHECKING, Any

import msgspec

from weft.base.chance import Chance
from weft.base.now import Now
from weft.node.events import JournalDamaged, NodeStarted
from weft.node.node import Node
from weft.sim.meters import Meters
from weft.wire.segments import Verdict

if TYPE_CHECKING:
    from weft.sim.machine import Machine


def tell_start(machine: "Machine", node: Node, now: Now) -> None:
    """Report the state of the journal, as the process does (JRN-022)."""
    disk = machine.disk
    verdict, disk.verdict = disk.verdict.value, Verdict.CLEAN
    node.tell(NodeStarted(machine.name, machine.level, "simulated", verdict), now)
    machine.fabric.recorder.note(machine.name, machine.era, "event", "verdict", [verdict])
    for damage in disk.damages:
        node.tell(JournalDamaged(damage.file, 0, 0, damage.first_lsn, damage.end_lsn, damage.why), now)


def harm(machine: "Machine", how: str, chance: Chance) -> None:
    """Damage the machine's journal while the node does not run."""
    if machine.node is None and machine.disk.harm(how, chance):
        machine.fabric.recorder.harmed(machine, how)


def edit(machine: "Machine", **changes: Any) -> None:
    """Change its settings file; this takes effect at the next start."""
    machine.plan = msgspec.structs.replace(machine.plan, **changes)
    machine.meters = Meters(machine.plan.name, machine.plan.metrics)
    machine.fabric.recorder.meet("a file that was edited")


def copy(original: "Machine", twin: "Machine") -> None:
    """Give the second machine the disk of the first one, with its identity."""
    twin.origin, twin.node_id, twin.era = original.name, original.node_id, original.era
    twin.disk.go_back(original.disk.image())
    original.fabric.recorder.copied(original, twin)
