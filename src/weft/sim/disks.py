"""Changes to a machine's disk and file while its node does not run, and what the next start reports."""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft.base.chance import Chance
from weft.base.now import Now
from weft.base.records import Entry
from weft.cores.carrier.messages import AnnounceDamage
from weft.node.events import JournalDamaged, NodeStarted
from weft.node.node import Node
from weft.sim.disk import NOTHING
from weft.sim.meters import Meters
from weft.wire.segments import Verdict

PART: Final = 50
"""Records of the journal that are restored at once; few, so that most journals have several parts."""
REFUSED: Final = "refused"
"""The verdict on a journal on which no node starts."""

if TYPE_CHECKING:
    from weft.sim.machine import Machine


def restore(node: Node, entries: list[Entry], next_lsn: int, now: Now) -> None:
    """Restore a node from its journal in parts, as the process does; here they are small."""
    for begin in range(0, max(1, len(entries)), PART):
        node.restore(entries[begin : begin + PART], next_lsn, now)


def tell_start(machine: "Machine", node: Node, now: Now) -> None:
    """Report the state of the journal, as the process does (JRN-022)."""
    disk = machine.disk
    verdict, disk.verdict = disk.verdict.value, Verdict.CLEAN
    node.tell(NodeStarted(machine.name, machine.level, "simulated", verdict), now)
    machine.fabric.recorder.note(machine.name, machine.era, "event", "verdict", [verdict])
    for damage, listed, _ in disk.damages:
        first, end = damage.first_lsn, damage.end_lsn
        node.tell(JournalDamaged(damage.file, 0, 0, first, end, damage.why), now)
        if "carrier" in node.cores:
            node.command("carrier", AnnounceDamage(first, end, listed), now)


def refuses(machine: "Machine") -> bool:
    """Whether a start is refused, because the journal is not whole: a person has to look at it (JRN-024)."""
    if machine.disk.is_refused:
        machine.fabric.recorder.meet(f"a {machine.level} that does not start on its journal")
        machine.fabric.recorder.note(machine.name, machine.era, "event", "verdict", [REFUSED])
    return machine.disk.is_refused


def harm(machine: "Machine", how: str, chance: Chance) -> None:
    """Its journal is damaged while the node does not run."""
    before = len(machine.disk.damages)
    if machine.node is None and machine.disk.harm(how, chance):
        machine.fabric.recorder.harmed(machine, how, machine.disk.damages[before:])


def repair(machine: "Machine") -> None:
    """Somebody repairs its journal, as `weft journal repair` does: notes of the loss stand where records are missing."""
    if machine.disk.is_refused:
        machine.disk.is_refused = False
        machine.fabric.recorder.meet("a damaged journal repaired")
        machine.fabric.recorder.note(machine.name, machine.era, "info", "repaired", None)


def replace(machine: "Machine") -> None:
    """Somebody gives it an empty disk, because its journal does not start."""
    if machine.disk.is_refused:
        machine.fabric.recorder.meet("a damaged journal replaced")
        lose(machine)


def lose(machine: "Machine") -> None:
    """Its disk is empty: it is another node of the same name."""
    machine.disk.go_back(NOTHING)
    machine.node_id = machine.keys.live_anew()
    machine.era = 0
    machine.fabric.recorder.went_back(machine, "lost")


def go_back(machine: "Machine") -> None:
    """Its disk is as it was in its image, if there is one."""
    if machine.image is not None:
        machine.disk.go_back(machine.image)
    machine.fabric.recorder.went_back(machine, "old")


FORGETS: Final = {"lost": lose, "old": go_back}
"""Crashes that take what was durable."""


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
