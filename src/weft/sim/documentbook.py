"""Records facts about documents: operations that are received, durable and passed on, and the final state of all logs.

Contents of a journal are read from the batches that become durable, messages from the bytes that travel. Only at rest
are the sessions asked what they show.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from weft.base.effects import Tell
from weft.base.errors import PeerError
from weft.base.records import CoreRecord, Entry, Record, Stream, StreamRecord
from weft.cores.document import memory, messages
from weft.cores.document.fold.engine import Engine
from weft.node.node import NodeEffect, Transmit
from weft.wire.document.frames import decode
from weft.wire.document.messages import UUID_BYTES, operations_of
from weft.wire.document.operations import header_of, parse

if TYPE_CHECKING:
    from weft.sim.fabric import Fabric
    from weft.sim.machine import Machine

CHANNEL: Final = "document"
BETWEEN: Final = b"\0"
NOBODY: Final = bytes(UUID_BYTES)


class DocumentBook:
    """Records facts for the checkers of documents; does nothing without documents."""

    def __init__(self, fabric: "Fabric") -> None:
        self.fabric, self.recorder = fabric, fabric.recorder
        self.is_wanted = fabric.plan.documents is not None
        self._rewound: dict[str, None] = {}
        """Machines whose disk was replaced, until they start."""

    def _note(self, machine: "Machine", kind: str, what: str, value: list[Any]) -> None:
        self.recorder.note(machine.name, machine.era, kind, what, value)

    # Durable

    def durable(self, machine: "Machine", entries: Iterable[Entry]) -> None:
        """A batch is about to be durable."""
        for _, record in entries if self.is_wanted and machine.plan.sessions else ():
            self._durable(machine, record)

    def _durable(self, machine: "Machine", record: Record) -> None:
        if type(record) is StreamRecord and record.stream == Stream.DOCUMENTS:
            session, _, source = str(record.origin).rpartition("/")
            if session in machine.plan.sessions:
                self._note(machine, "durable", "operation", [session, source, record.sequence])
        elif type(record) is CoreRecord and record.core == memory.CORE:
            remembered = memory.memory_of(record)
            if isinstance(remembered, memory.HeldKept):
                self.recorder.meet("an operation beyond a gap")
                self._note(
                    machine, "durable", "operation", [remembered.session, remembered.source.hex(), remembered.sequence]
                )

    # Received and sent

    def heard(self, machine: "Machine", peer: bytes, frames: list[bytes]) -> None:
        """A message of another session was read from a socket."""
        for body in operations_in(frames) if self.is_wanted else ():
            self._operation(machine, "event", peer, body)

    def spoke(self, machine: "Machine", effect: NodeEffect) -> None:
        """An effect is about to be carried out."""
        if not self.is_wanted:
            return
        if type(effect) is Transmit:
            for body in operations_in(effect.frames) if effect.channel == CHANNEL else ():
                self.recorder.counts["operations said"] += 1
                self._operation(machine, "sent", effect.peer, body)
        elif type(effect) is Tell and type(effect.event) in TOLD:
            self.recorder.meet(TOLD[type(effect.event)].format(event=effect.event))

    def _operation(self, machine: "Machine", kind: str, peer: bytes, body: bytes) -> None:
        session = peer.partition(BETWEEN)[0].decode()
        try:
            header = header_of(body)
        except PeerError:
            return
        self._note(machine, kind, "operation", [session, header.source.hex(), header.sequence])

    def went_back(self, machine: "Machine") -> None:
        """The disk is empty or an old copy; its contents are recorded at the next start."""
        self._rewound[machine.name] = None

    harmed = went_back
    """A journal that was harmed is read anew in the same way."""

    def began(self, machine: "Machine") -> None:
        """A start has restored the contents of its disk."""
        if self._rewound.pop(machine.name, True):
            return
        for name, session in self._sessions(machine).items():
            for source, latest in session.log.sources():
                for number in range(1, latest + 1):
                    self._note(machine, "durable", "operation", [name, source.hex(), number])

    # At rest

    def waits(self, machine: "Machine") -> str:
        """What its sessions wait for; empty if nothing."""
        for name, session in self._sessions(machine).items():
            if session.is_catching_up:
                return f"the document {name}, which is being folded"
            for other in self._others(machine, name):
                if _log_digest(session) != _log_digest(other):
                    return f"the log of {name}, which others have otherwise"
        return machine.editor.waits()

    def rest(self, machine: "Machine") -> None:
        """The final contents of its sessions."""
        for name, session in self._sessions(machine).items():
            log, shown = _log_digest(session), session.engine.digest()
            self._note(machine, "info", "document", [name, log, shown, _folded_anew(session)])
            self._note(machine, "info", "state", [f"the document {name}", shown])
            ranges = [[source.hex(), [[1, latest]]] for source, latest in session.log.sources()]
            self._note(machine, "info", "log", [name, ranges])

    def _sessions(self, machine: "Machine") -> dict[str, Any]:
        core: Any = machine.node.cores.get("document") if machine.node is not None and self.is_wanted else None
        return core.sessions if core is not None else {}

    def _others(self, machine: "Machine", name: str) -> list[Any]:
        machines = (other for other in self.fabric.machines.values() if other is not machine)
        return [self._sessions(other)[name] for other in machines if name in self._sessions(other)]


def operations_in(frames: list[bytes]) -> tuple[bytes, ...]:
    """The operations in a message of a peer; none if it was altered on the way, or is of another kind."""
    try:
        return operations_of(decode([NOBODY, *frames]).message)
    except PeerError:
        return ()


def _log_digest(session: Any) -> str:
    """Every operation of every source."""
    log = session.log
    operations = [
        (source, number, log.body(source, number))
        for source, latest in log.sources()
        for number in range(1, latest + 1)
    ]
    return blake2b(repr(operations).encode(), digest_size=16).hexdigest()


def _folded_anew(session: Any) -> str:
    """The document that results from folding the log from its first operation."""
    engine = Engine(session.schema)
    log = session.log
    for source, latest in log.sources():
        engine.insert([parse(log.body(source, number)) for number in range(1, latest + 1)])
    while engine.is_behind:
        engine.work()
    return engine.digest()


TOLD: Final[dict[type, str]] = {
    messages.PeerGone: "a peer that is gone: {event.why}",
    messages.PeerEvasive: "a peer that is silent",
    messages.LogFork: "a fork of a log",
    messages.IdentityReused: "an identity that was used before",
    messages.LogDegraded: "a log without room on its disk",
    messages.ConflictFound: "a conflict in a document",
}
"""The situations that events of documents name."""
