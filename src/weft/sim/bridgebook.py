"""Records facts about brokers that are bridged: what is listed of other networks, health, and what taps copy."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from weft.base.effects import Tell
from weft.base.records import Entry, Stream, StreamRecord
from weft.cores.catalog import messages
from weft.node.node import NodeEffect, Transmit
from weft.sim.catalog import ServiceProgram, name_of
from weft.sim.catalogplan import broker_of

if TYPE_CHECKING:
    from weft.sim.fabric import Fabric
    from weft.sim.machine import Machine


class BridgeBook:
    """Records facts for the checkers of bridges, checks and taps; does nothing where no broker is bridged."""

    def __init__(self, fabric: "Fabric") -> None:
        self.fabric, self.recorder = fabric, fabric.recorder
        self.is_wanted = fabric.plan.catalog is not None and fabric.plan.catalog.is_bridged

    def _note(self, machine: "Machine", what: str, value: list[Any]) -> None:
        self.recorder.note(machine.name, machine.era, "info", what, value)

    def durable(self, machine: "Machine", entries: Iterable[Entry]) -> None:
        """A batch is about to become durable; record the changes of imported entries in it."""
        for _, record in entries if machine.plan.is_broker else ():
            if type(record) is StreamRecord and record.stream == Stream.CATALOG and record.origin == machine.node_id:
                name, _, net = record.key.partition("@")
                if net:
                    attributes = record.attributes
                    self.recorder.counts["imports"] += 1
                    state = attributes["op"] if attributes["op"] == "remove" else attributes["state"]
                    self._note(machine, "imported", [attributes["epoch"], net, name, attributes["instance"], state])

    def spoke(self, machine: "Machine", effect: NodeEffect) -> None:
        """An effect is about to be carried out."""
        if not (self.is_wanted and machine.plan.is_broker):
            return
        if type(effect) is Transmit:
            if effect.channel == "catalog-events" and effect.frames[0].startswith(b"tap/"):
                self._tapped(machine, msgspec.json.decode(effect.frames[1]), effect.frames[2:])
        elif type(effect) is Tell:
            if isinstance(effect.event, messages.BridgeDown):
                self.recorder.meet("a bridge that is down")
            elif isinstance(effect.event, messages.BridgeUp):
                self.recorder.meet("a bridge that is up")

    def _tapped(self, machine: "Machine", header: dict[str, Any], frames: list[bytes]) -> None:
        """A tap's copy, the counts of a service, or the end of a tap is being published."""
        counts = [header.get(name, 0) for name in ("seen", "copied", "dropped", "sampled")]
        if header["type"] == "copy":
            self.recorder.counts["copies"] += 1
            call = frames[-1].decode() if header["dir"] == "in" else ""
            self._note(machine, "copied", [header["tap"], header["instance"], header["seq"], call])
        elif header["type"] == "report":
            self._note(machine, "tapped", [header["tap"], header["instance"], *counts])
        else:
            self.recorder.meet(f"a tap that ended: {header['why']}")
            self._note(machine, "untapped", [header["tap"], *counts])

    def went_back(self, machine: "Machine") -> None:
        """The disk is empty or an old copy, and so is the catalog."""

    def waits(self, machine: "Machine") -> str:
        """What a broker still waits for; empty if nothing."""
        core = self._core(machine)
        if core is None:
            return ""
        if core.taps.deadline() is not None:
            return "the end of a tap"
        own, imported = self._listed(core)
        due = self._due(machine.name)
        return "" if (own, imported) == due else "what its bridges bring, or the health of its services"

    def _listed(self, core: Any) -> tuple[list[list[str]], list[list[str]]]:
        """The live instances of a broker, and those of other networks: name, instance, health."""
        live = [each for each in core.book.all() if each.is_live]
        rows: tuple[list[list[str]], list[list[str]]] = ([], [])
        for each in live:
            rows[each.is_imported].append([each.name, each.id, each.health])
        return sorted(rows[0]), sorted(rows[1])

    def _due(self, broker: str) -> tuple[list[list[str]], list[list[str]]]:
        """What the broker should list at rest, given the actual state of the services."""
        rows: tuple[list[list[str]], list[list[str]]] = ([], [])
        for host in self.fabric.hosts.values():
            if isinstance(host.program, ServiceProgram):
                net = broker_of(host.plan)
                name = name_of(host.name) if net == broker else f"{name_of(host.name)}@{net}"
                rows[net != broker].append([name, host.name, "critical" if host.is_ill else "passing"])
        return sorted(rows[0]), sorted(rows[1])

    def rest(self, machine: "Machine") -> None:
        """Record what is listed at the end."""
        core = self._core(machine)
        if core is not None:
            own, imported = self._listed(core)
            self._note(machine, "imports", imported)
            self._note(machine, "health", own)

    def _core(self, machine: "Machine") -> Any:
        return machine.node.cores.get("catalog") if machine.node is not None and self.is_wanted else None
