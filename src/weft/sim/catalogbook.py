"""Records facts about catalogs: changes that are durable at their broker, and what brokers report."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft.base.effects import Tell
from weft.base.records import Entry, Stream, StreamRecord
from weft.cores.catalog import messages
from weft.node.node import NodeEffect, Transmit
from weft.wire.catalog.messages import APPROVED

if TYPE_CHECKING:
    from weft.sim.fabric import Fabric
    from weft.sim.machine import Machine

OF_CATALOGS: Final = ("service", "watcher", "caller")
"""Channels of programs that talk to brokers."""


NO_CHANGES: Final = (b"tick", b"tap/")
"""Topics whose publications tell of no change."""


class CatalogBook:
    """Records facts for the checkers of catalogs; does nothing without a broker."""

    def __init__(self, fabric: "Fabric") -> None:
        self.fabric, self.recorder = fabric, fabric.recorder
        self.is_wanted = fabric.plan.catalog is not None

    def _note(self, machine: "Machine", kind: str, what: str, value: list[Any]) -> None:
        self.recorder.note(machine.name, machine.era, kind, what, value)

    def durable(self, machine: "Machine", entries: Iterable[Entry]) -> None:
        """A batch is about to be durable; changes of the broker itself may be in it."""
        for _, record in entries if self.is_wanted and machine.plan.is_broker else ():
            if type(record) is StreamRecord and record.stream == Stream.CATALOG and record.origin == machine.node_id:
                self._changed(machine, record)

    def _changed(self, machine: "Machine", record: StreamRecord) -> None:
        attributes = record.attributes
        op, instance = attributes["op"], f"{record.key}/{attributes['instance']}"
        self.recorder.counts["catalog changes"] += 1
        self.recorder.meet(f"an instance: {op}")
        self._note(machine, "durable", "announced", [attributes["epoch"], record.sequence, op, instance])
        if "@" not in record.key:  # `bridgebook` records entries of other networks
            self._note(
                machine,
                "durable",
                "listed",
                [attributes["epoch"], record.key, attributes["instance"], op, attributes["reason"]],
            )
        if self.recorder.listener is not None:
            text = f"keeps change {record.sequence} of its catalog: {instance}, {op} {attributes['reason']}".rstrip()
            self.recorder.listener(self.fabric.world.at, machine.name, "catalog", text)

    def spoke(self, machine: "Machine", effect: NodeEffect) -> None:
        """An effect is about to be carried out."""
        if not (self.is_wanted and machine.plan.is_broker):
            return
        if type(effect) is Transmit:
            if effect.channel == "catalog" and APPROVED in effect.frames:
                self._note_sent(machine, effect.frames[-1])
            elif effect.channel == "catalog-events" and not effect.frames[0].startswith(NO_CHANGES):
                self._note_sent(machine, effect.frames[1])
        elif type(effect) is Tell and isinstance(effect.event, messages.CatalogOpened):
            self._note(machine, "info", "opened", [effect.event.epoch, self._listed_at_start(machine)])
        elif type(effect) is Tell and type(effect.event) in TOLD:
            self.recorder.meet(TOLD[type(effect.event)])

    def _listed_at_start(self, machine: "Machine") -> list[str]:
        """The instances that the broker lists when it starts, before its first change."""
        core: Any = machine.running.cores["catalog"]
        return sorted(f"{instance.name}/{instance.id}" for instance in core.book.all())

    def _note_sent(self, machine: "Machine", data: bytes) -> None:
        """An approval or an event is being sent: the change that it names must be durable."""
        body = msgspec.json.decode(data)
        self._note(machine, "sent", "catalog", [body["epoch"], body["index"]])

    def went_back(self, machine: "Machine") -> None:
        """The disk is empty or an old copy, and so is the catalog."""

    def waits(self, machine: "Machine") -> str:
        """What a broker and its clients wait for; empty: nothing."""
        core = self._core(machine)
        if core is None:
            return ""
        live = {instance.id for instance in _own(core)}
        for host in self.fabric.hosts.values():
            is_mine = host.plan.runs in OF_CATALOGS and machine.name in (*host.plan.calls, host.plan.net)
            why = host.waits(core, live) if is_mine else ""
            if why:
                return f"{host.name}, {why}"
        return ""

    def rest(self, machine: "Machine") -> None:
        """Record which instances are listed at the end, and which services should be."""
        core = self._core(machine)
        if core is not None:
            live = sorted([instance.name, instance.id] for instance in _own(core))
            self._note(machine, "info", "catalog", [core.context.epoch, core.context.index, live])

    def _core(self, machine: "Machine") -> Any:
        return machine.node.cores.get("catalog") if machine.node is not None and self.is_wanted else None


def _own(core: Any) -> Iterator[Any]:
    """The live instances of a broker's own network."""
    return (instance for instance in core.book.all() if instance.is_live and not instance.is_imported)


TOLD: Final[dict[type, str]] = {
    messages.Paused: "a broker that stood still",
    messages.RequestDenied: "a request that a broker denies",
    messages.PathChanged: "beats that go another way",
    messages.EvictionsHeld: "evictions that are held",
    messages.PeerMalformed: "a peer that says what is no message",
}
"""The situations that the broker's events name."""
