"""Records facts about messages of programs: what is durable where, what is acknowledged, the state of the chains.

Contents of a journal are read from the batches that become durable, acknowledgements from the bytes that travel. The
chains core is asked only at rest, and now and then before, for what it counts itself.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft.base.effects import Tell
from weft.base.mail import INBOX, OUTBOX
from weft.base.records import CoreRecord, Entry, Record, Stream, StreamRecord
from weft.checks.accounts import stretches
from weft.cores.carrier.memory import CORE, Met, from_record
from weft.cores.carrier.messages import SpoolDropped
from weft.cores.chains.clientlink import HolderLink
from weft.cores.chains.messages import MessagesGivenUp, ReaderForgotten
from weft.node.node import NodeEffect, Transmit
from weft.sim.disk import Claim
from weft.sim.programs import shown
from weft.wire import clients, hop

if TYPE_CHECKING:
    from weft.sim.fabric import Fabric
    from weft.sim.machine import Machine

BOXES: Final = {OUTBOX: "out", INBOX: "in", int(Stream.MESSAGES): "journal"}


class Mailbook:
    """Records facts for the checkers of messages; does nothing if no messages are sent."""

    def __init__(self, fabric: "Fabric") -> None:
        self.fabric, self.recorder = fabric, fabric.recorder
        self.is_wanted = bool(fabric.plan.mail)
        self._last_lsn: dict[str, int] = {}
        """The lsn of the last message in a journal, by machine."""

    def begin(self) -> None:
        """Record what may be expected of each type."""
        if self.is_wanted:
            types = [[kind.name, kind.is_whole, kind.is_ordered] for kind in self.fabric.plan.mail]
            self.recorder.note("", 0, "info", "mail-types", types)

    # Durable

    def durable(self, machine: "Machine", entries: Iterable[Entry]) -> None:
        """A batch is about to be durable."""
        if not self.is_wanted:
            return
        for lsn, record in entries:
            if type(record) is StreamRecord and record.stream in BOXES:
                self._note_mail(machine, record, lsn)
            elif type(record) is CoreRecord and record.core == CORE:
                self._note_met(machine, record)

    def _note_mail(self, machine: "Machine", record: StreamRecord, lsn: int) -> None:
        by = record.attributes.get("by")
        whose = None if by is None else [by[0].hex(), by[1]]
        origin = self.fabric.origin_name(record.origin, record.era)
        box = BOXES[record.stream]
        self._last_lsn[machine.name] = lsn
        value = [box, origin, record.sequence, record.key, shown(record.payload), whose]
        self.recorder.counts[f"mail {box}"] += 1
        self.recorder.note(machine.name, machine.era, "durable", "mail", value)

    def _note_met(self, machine: "Machine", record: Record) -> None:
        met = from_record(record)  # type: ignore[arg-type]  # of the carrier
        if isinstance(met, Met):
            origin = self.fabric.origin_name(met.origin, met.era)
            self.recorder.note(machine.name, machine.era, "durable", "met", [origin, met.numbers])

    def published(self, machine: "Machine", messages: Sequence[Claim]) -> None:
        """A segment of the lake exists, with these messages."""
        if messages:
            value = [[claim.origin, claim.first, claim.last] for claim in messages]
            self.recorder.note(machine.name, machine.era, "durable", "mail-segment", value)

    # Sent

    def spoke(self, machine: "Machine", effect: NodeEffect) -> None:
        """An effect is about to be carried out."""
        if not self.is_wanted:
            return
        if type(effect) is Transmit:
            if effect.channel == "up" and effect.frames and b"\xa3hop" in effect.frames[0][:12]:
                self._sent(machine, effect)
        elif type(effect) is Tell:
            note = TOLD.get(type(effect.event))
            if note is not None:
                note(self, machine, effect.event)

    def handed(self, machine: "Machine", peer: bytes, frames: list[bytes]) -> None:
        """A node hands something to a program: record the place of its link, and who else may rewrite there."""
        if not self.is_wanted or b"\xa3rec" not in frames[0][:12]:
            return
        message = clients.decode_answered(frames)
        core: Any = machine.running.cores["chains"]
        session = core.sessions._by_peer.get(peer)
        if not isinstance(message, clients.Rec) or session is None:
            return
        link = session.links.get(message.reg)
        for item in message.m if _rewrites(link) else ():
            chain = core.roster.chain(link.direction, item.type)
            places = [list(other.key) for other in chain.links if _rewrites(other) and _is_asked(other)]
            origin = self.fabric.origin_name(item.mid[0], item.mid[1])
            value = [link.direction, origin, item.mid[2], list(link.key), places, item.re]
            self.recorder.note(machine.name, machine.era, "sent", "offer", value)

    def _sent(self, machine: "Machine", effect: Transmit) -> None:
        message = hop.decode(effect.frames)
        if not isinstance(message, hop.Hop) or message.mem:
            return
        for number, item, _ in message.numbered():
            if item.to is not None and item.n:
                origin = self.fabric.origin_name(*item.mid[:2])
                value = [message.era, number, origin, item.mid[2]]
                self.recorder.note(machine.name, machine.era, "sent", "mail", value)

    def _dropped(self, machine: "Machine", event: SpoolDropped) -> None:
        for span in event.spans:
            if span.stream == OUTBOX:
                origin = self.fabric.origin_name(span.origin, span.era)
                self.recorder.meet("a message that a full spool gave up")
                self.recorder.note(machine.name, machine.era, "event", "mail-dropped", [origin, span.first, span.last])

    def _given_up(self, machine: "Machine", event: MessagesGivenUp) -> None:
        self.recorder.meet(f"messages that a reader will never get: {event.why}")
        for origin, era, first, last in event.spans:
            value = [event.reader, self.fabric.origin_name(origin, era), first, last]
            self.recorder.note(machine.name, machine.era, "event", "given-up", value)

    def _forgotten(self, machine: "Machine", event: ReaderForgotten) -> None:
        self.recorder.note(machine.name, machine.era, "event", "forgotten", [event.reader, event.type])

    # At rest, and now and then

    def look(self, machine: "Machine") -> None:
        """Record the messages under way, as the chains count them and as their links hold them (CHN-082)."""
        core: Any = machine.node.cores.get("chains") if machine.node is not None and self.is_wanted else None
        if core is not None:
            self.recorder.note(machine.name, machine.era, "info", "idle", _idle(core))
            carrier: Any = machine.node.cores["carrier"]  # type: ignore[union-attr]  # it runs
            counters = msgspec.to_builtins(carrier.counters)
            value = [[each.name, each.taken, each.missing] for each in stretches(core.totals(), counters)]
            self.recorder.note(machine.name, machine.era, "info", "accounts", value)

    def rest(self, machine: "Machine") -> None:
        """The final state of the chains."""
        core: Any = machine.node.cores.get("chains") if machine.node is not None and self.is_wanted else None
        if core is None:
            return
        self.look(machine)
        value = [_in_flight(core), core.engine.parked, len(core.inbox)]
        self.recorder.note(machine.name, machine.era, "info", "chains", value)
        for program in machine.programs:
            self.recorder.note(machine.name, machine.era, "info", "program", [program.name, sorted(program.open)])

    def went_back(self, machine: "Machine") -> None:
        """The disk is empty or an old copy, whatever its last message is."""
        self._last_lsn.pop(machine.name, None)

    def waits(self, machine: "Machine") -> str:
        """What a machine waits for; empty if nothing."""
        node = machine.node
        core: Any = node.cores.get("chains") if node is not None and self.is_wanted else None
        if node is None or core is None:
            return ""
        reader = "drain" if "drain" in node.cores else "carrier"
        if node.released.get(reader, 0) < self._last_lsn.get(machine.name, 0):
            return f"its {reader} to let go of its messages"
        if _in_flight(core) or core.engine.parked or len(core.inbox):
            return f"{_in_flight(core)} messages in its chains, {len(core.inbox)} in its inbox"
        return ""


TOLD: Final[dict[type, Callable[[Mailbook, "Machine", Any], None]]] = {
    SpoolDropped: Mailbook._dropped,
    MessagesGivenUp: Mailbook._given_up,
    ReaderForgotten: Mailbook._forgotten,
}


def _rewrites(link: Any) -> bool:
    return isinstance(link, HolderLink) and not link.confirms


def _is_asked(link: HolderLink) -> bool:
    """Whether a link has to be offered every message: it takes its own, too, and was never skipped as too slow."""
    return not link.noself and not link.counters.timed_out


def _in_flight(core: Any) -> int:
    return int(core.totals()["in_flight"])


def _idle(core: Any) -> int:
    """Messages queued at a link that has room for them."""
    return sum([len(link.backlog) for link in core.engine._holders if link.has_room])
