"""Entries made here become the next operations of our own source (GSP-002 to GSP-006, GSP-013, GSP-054, GSP-055)."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from weft.base.errors import PeerError
from weft.base.now import SECOND
from weft.cores.document.context import Context
from weft.cores.document.fold.conflicts import Writer
from weft.cores.document.fold.engine import Engine
from weft.cores.document.fold.undoing import Act
from weft.cores.document.gossip import Gossip
from weft.cores.document.limits import BURST, EMITTED_BYTES_MAX, RATE
from weft.cores.document.log import Log
from weft.cores.document.mesh import Mesh
from weft.cores.kit.refusals import Refusal
from weft.wire.document.operations import ACTION, SET, TEXT, Operation, Stamp, emit, parse, step_of, uuid_text
from weft.wire.document.sums import with_sum
from weft.wire.document.xml import Payload


class Issued(NamedTuple):
    """The result of an entry."""

    operation: Operation
    outcome: str
    """As in the log (DOC-035); `applied-but-hidden` if a later write of another author replaces it (GSP-003)."""
    hidden_by: Writer | None


Authorise = Callable[[str, str, dict[str, str]], str]
"""(operator, verb, reference) → why it is not allowed; empty: it is (GSP-054). It may keep a reference to the document.
"""

HIDDEN: Final = "applied-but-hidden"
INERT: Final = "inert:"
PARKED: Final = "parked"
FAULTS: Final = {
    "malformed": ("that is no operation", ""),
    "name": ("a name of an element or attribute is none", "letters, digits, _ . -; a letter first"),
    "verb": ("that can nobody do", "add, set, remove"),
    "depth": ("the payload is too deep", "enter it in parts"),
    "size": ("the payload has too many elements", "enter it in parts"),
    "no-reference": ("nothing says what is meant", "name an element: eid=…, period=1 jam=3, path=…"),
    "bad-key": ("no such number can be", "numbers begin at 1 and have an end; see the schema"),
    "bad-path": ("that path leads nowhere", "tags below the root, parted by slashes"),
    "absent": ("there is nothing to remove", ""),
    "target-removed": ("what is meant was removed", "add it again, with the same eid"),
    "fixed": ("that always stays", "remove what stands in it"),
    "bad-attribute": ("that attribute cannot be set", "eids and keys stay as they are"),
    "nothing-new": ("all of it is there already", ""),
    "too-big": ("the document would be too large", ""),
}
"""Why an operation would have no effect (DOC-035), and what helps. It is not logged, unless `force` is set."""


class Own:
    """Issues operations."""

    def __init__(self, context: Context, log: Log, engine: Engine, gossip: Gossip, mesh: Mesh) -> None:
        self.context, self.log, self.engine, self.gossip, self.mesh = context, log, engine, gossip, mesh
        self.authorise: Authorise = _allow
        self._tokens_ns = BURST * SECOND // RATE
        """The entries allowed at once, as the time that earns them."""
        self._earned_at: int | None = None

    def issue(  # tidy: these are the words of an operation
        self,
        verb: str,
        reference: dict[str, str],
        payload: Payload,
        *,
        by: str = "",
        resolves: str = "",
        force: bool = False,
        waits: bool = True,
    ) -> Issued:
        """Enter an operation: durable first, then sent to all; raises Refusal, and then nothing has changed.

        `force` gives it a timestamp after the last writer's, however far ahead that is (GSP-003), and enters even an
        operation without effect. Without `waits`, an operation that would only wait for its target is refused: a typing
        error would otherwise take effect much later.
        """
        by = by or self.context.settings.operator
        self._permit(by, verb, reference)
        slots = _slots_of(verb, payload)
        stamp = self._stamp(reference, slots if force else [])
        source, sequence = self.context.uuid, self.log.latest(self.context.uuid) + 1
        body = self._written(verb, reference, Stamp(source, stamp, sequence, by, resolves), payload)
        operation = parse(body)
        if not force:
            self._try(operation, stamp, waits=waits)
        self._spend()
        self._enter(body, operation)
        return self._issued(reference, slots, operation)

    def issue_all(self, acts: Sequence[Act], undone: Operation, *, by: str = "") -> Issued:
        """Enter the steps of an undo as one operation (DOC-034, DOC-055), after all who wrote there; raises Refusal."""
        by = by or self.context.settings.operator
        writes: list[tuple[dict[str, str], list[str]]] = []
        for verb, reference, payload in acts:
            self._permit(by, verb, reference)
            writes.append((reference, _slots_of(verb, payload)))
        effs = [
            writer.eff for where, slots in writes for slot in slots if (writer := self.engine.writer_of(where, slot))
        ]
        stamp = self.log.stamps.next(max([*effs, self.engine.eff_of(undone.source, undone.sequence)]))
        source, sequence = self.context.uuid, self.log.latest(self.context.uuid) + 1
        undoes = f"{uuid_text(undone.source)}/{undone.sequence}"
        stamped = Stamp(source, stamp, sequence, by, undoes=undoes)
        if len(acts) == 1:
            body = self._written(*acts[0][:2], stamped, acts[0].payload)
        else:
            body = self._written(ACTION, {}, stamped, Payload("", [step_of(*act) for act in acts]))
        operation = parse(body)
        self._try(operation, stamp, waits=False)
        self._spend()
        self._enter(body, operation)
        return Issued(operation, self.engine.outcome(source, sequence), None)

    def _enter(self, body: bytes, operation: Operation) -> None:
        self.log.append(body, operation)
        self.gossip.push(body, operation.source, operation.sequence)
        self.mesh.note_own()
        self.engine.insert(self.log.fresh())

    def adopt(self, body: bytes) -> bool:
        """Adopt an operation of a source that is gone; False: no entry is possible now."""
        if self.context.is_full or self.log.is_full:
            return False
        self._enter(body, parse(body))
        return True

    def _permit(self, by: str, verb: str, reference: dict[str, str]) -> None:
        """Refuse, unless an entry is possible now."""
        why = self.authorise(by, verb, reference)
        if why:
            raise Refusal("not-allowed", why)
        if not reference:
            raise Refusal(
                "no-reference", "nothing says what is meant", "name an element: eid=…, period=1 jam=3, path=…"
            )
        if self.context.is_full:
            raise Refusal("storage-full", "the journal has no room", "make room on the disk; it goes on by itself")
        if not self.log.room.has_room(1):
            self.log.room.refuse()
            raise Refusal(
                "log-full", "this node has no memory left for more entries", "begin another session elsewhere"
            )
        if self.log.is_full:
            raise Refusal("log-full", "the session holds as many operations as it can", "begin another session")
        if self._tokens(self.context.now.mono) < SECOND // RATE:
            raise Refusal("too-fast", f"more than {RATE} entries a second", "wait a little")

    def _tokens(self, now: int) -> int:
        if self._earned_at is None:
            self._earned_at = now
        self._tokens_ns = min(self._tokens_ns + now - self._earned_at, BURST * SECOND // RATE)
        self._earned_at = now
        return self._tokens_ns

    def _spend(self) -> None:
        self._tokens_ns -= SECOND // RATE

    def _stamp(self, reference: dict[str, str], slots: list[str]) -> float:
        effs = [writer.eff for slot in slots if (writer := self.engine.writer_of(reference, slot)) is not None]
        return self.log.stamps.next(max(effs) if effs else None)

    def _written(self, verb: str, reference: dict[str, str], stamp: Stamp, payload: Payload) -> bytes:
        """The bytes of an operation; text that XML cannot express, or that is too large, is refused."""
        try:
            body = with_sum(emit(verb, reference, stamp, payload))
        except PeerError as error:
            raise Refusal("bad-xml", error.why) from None
        if len(body) > EMITTED_BYTES_MAX:
            raise Refusal(
                "too-large", f"{len(body)} bytes; an entry has at most {EMITTED_BYTES_MAX}", "enter it in parts"
            )
        return body

    def _try(self, operation: Operation, stamp: float, *, waits: bool) -> None:
        """Refuse an operation that would have no effect; one that waits for its target is allowed with `waits`."""
        if self.engine.is_behind:
            outcomes = [INERT + operation.inert] if operation.inert else []
        else:
            latest = self.log.latest(self.context.uuid)
            before = self.log.eff(self.context.uuid, latest) if latest else stamp
            outcomes = self.engine.trial(operation, max(stamp, before))
        if outcomes and all(outcome.startswith(INERT) for outcome in outcomes):
            code = outcomes[0].removeprefix(INERT)
            raise Refusal(code, *FAULTS.get(code, ("nothing like that is there", "")))
        if PARKED in outcomes and not waits:
            raise Refusal(
                "not-found", "what it refers to is not there", "weft doc show: what there is; --force: wait for it"
            )

    def _issued(self, reference: dict[str, str], slots: list[str], operation: Operation) -> Issued:
        source, sequence = operation.pair
        outcome = self.engine.outcome(source, sequence)
        eff = self.log.eff(source, sequence)
        for slot in slots if outcome == "applied" else []:
            writer = self.engine.writer_of(reference, slot)
            if writer is not None and (writer.source, writer.sequence) != (source, sequence) and writer.eff >= eff:
                return Issued(operation, HIDDEN, writer)
        return Issued(operation, outcome, None)


def _slots_of(verb: str, payload: Payload) -> list[str]:
    """The slots that a `set` writes: attributes, or the text."""
    if verb != SET:
        return []
    return list(payload.attributes) or [TEXT]


def _allow(*_: object) -> str:
    """Allows everything."""
    return ""
