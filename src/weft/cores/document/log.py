"""All operations of all sources, and the length of each source's gapless prefix (GSP-001 to GSP-015).

    sources   the gapless prefix of each source; only that is folded, forwarded and told
    holding   operations beyond a gap
    forks     two bodies under one number
    memory    records: one stream record per prefix operation, in order; the others are only for this core

An operation is journaled in the turn that received it. If the journal has no room, or a closed gap releases more than
one write can take, it waits in memory and is journaled later (GSP-031).
"""

from array import array
from bisect import insort
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Final, NamedTuple

from weft.base.budget import Part
from weft.base.errors import OurFault, PeerError
from weft.base.now import Now
from weft.base.records import CoreRecord, Entry, StreamRecord
from weft.cores.document.context import Context
from weft.cores.document.forks import Forks, next_uuid, wins
from weft.cores.document.holding import Holding, Kept
from weft.cores.document.limits import (
    BODY_COPIES,
    KEPT_BYTES_MAX,
    OPERATION_COST,
    OPERATIONS_MAX,
    PIECE_BYTES,
    SOURCES_MAX,
    TAG_COST,
)
from weft.cores.document.memory import (
    HeldKept,
    LoserKept,
    PieceKept,
    SessionKept,
    cut,
    kept_of_stream,
    memory_of,
    record_of,
    stream_record,
)
from weft.cores.document.messages import LogFull
from weft.cores.document.sources import Source
from weft.cores.document.stamps import Stamps
from weft.wire.document.operations import Operation, parse
from weft.wire.document.sums import is_altered, is_proved

INDEX_SHIFT: Final = 32
"""An entry of `arrivals` has the source's place in the upper bits, the sequence below; no source has 2^32 operations.
"""
OVERHEAD_BYTES: Final = 512
"""Estimated overhead of a record beside its body."""


def _ignore(operation: Operation) -> None:
    """For a log that is not folded."""


def _ignore_reuse(peer: bytes, uuid: bytes) -> None:
    """For a log that no peer is told of."""


class Taken(NamedTuple):
    """The result for a received body."""

    code: str
    """`new`, `held`, `duplicate`, `fork`, `no_header`, `altered`, `own_source`, `shed`, `full`."""
    source: bytes = b""
    sequence: int = 0
    is_further: bool = False
    """Whether the gapless prefix of its source has grown; for a fork: whether another body counts now."""


class Log:
    """Memory and records only; the context makes the records durable."""

    def __init__(
        self,
        context: Context,
        reused: Callable[[bytes, bytes], None] = _ignore_reuse,
        forked: Callable[[Operation], None] = _ignore,
    ) -> None:
        """`reused`: called with the peer that knows more of our source, and our new UUID.

        `forked`: called with the winner for a number that `fresh` returned before.
        """
        self.context = context
        self._tell_reused, self._tell_forked = reused, forked
        self.stamps = Stamps(context)
        self._sources: dict[bytes, Source] = {}
        self._by_index: list[Source] = []
        self._sorted: list[bytes] = []
        """UUIDs of sources with a prefix, sorted."""
        self._holding = Holding()
        self.bytes = 0
        """Estimated bytes of memory of all prefixes and their folded document."""
        self.room = Part("log", lambda: self.bytes)
        """Its part of the core's budget; the whole of it here."""
        self._forks = Forks(context)
        self._arrivals = array("Q")
        self._fresh: dict[tuple[bytes, int], Operation] = {}
        self._unkept: OrderedDict[tuple[bytes, int], bool] = OrderedDict()
        """Operations without a record, in the order of records; and whether each was beyond a gap when added."""
        self._turn_bytes = 0
        self._check = 0
        self._turned: dict[bytes, None] = {}
        """Sources whose part of the check has to be computed again."""
        self._schema: str | None = None
        """The schema in the journal."""
        self._is_full_told = False
        self._is_dormant = not any(context.uuid)
        """Whether its operations are not folded."""
        self._bare: dict[tuple[bytes, int], None] = {}
        """Restored operations that are in a prefix now and may have no stream record: the node ended in between."""

    @property
    def held_bytes(self) -> int:
        """Bytes of memory of operations beyond gaps."""
        return self._holding.cost

    def share(self, log: Part, holding: Part) -> None:
        """Let these parts, which the logs of all sessions share, decide how much room there is."""
        self.room, self._holding.room = log, holding

    def begin(self) -> None:
        """All is restored. Journal name and schema of the session once: it is this node's own in later starts."""
        self._unkept.update({pair: False for pair in sorted(self._bare) if pair[1] <= self.latest(pair[0])})
        self._bare = {}
        schema = cut(self.context.settings.schema_name or self.context.settings.schema)
        if self._schema is None:  # operations carried for others count as this session's from now on
            self._unkept.update(dict.fromkeys(map(self.arrival, range(self.count)), False))
            self._unkept.update(dict.fromkeys(self.held(), True))
        if self._schema != schema:
            self._schema = schema
            self.context.keep(record_of(SessionKept(self.context.session, schema)))

    # What is known

    def latest(self, source: bytes) -> int:
        """Length of the gapless prefix."""
        there = self._sources.get(source)
        return len(there.bodies) if there else 0

    def highest(self, source: bytes) -> int:
        """The greatest number of a source, including those beyond gaps."""
        return max(self.latest(source), self._holding.highest(source))

    def lowest_held(self, source: bytes) -> int:
        """The least number beyond a gap; 0: there is no gap."""
        return self._holding.lowest(source)

    def body(self, source: bytes, sequence: int) -> bytes:
        """The bytes of a prefix operation."""
        return self._of(source, sequence).bodies[sequence - 1]

    def kept(self, source: bytes, sequence: int) -> Kept:
        """A prefix operation; KeyError where there is none."""
        return self._of(source, sequence).kept(sequence)

    def eff(self, source: bytes, sequence: int) -> float:
        """Effective time of a prefix operation (DOC-010)."""
        return self._of(source, sequence).effs[sequence - 1]

    def position(self, source: bytes, sequence: int) -> int:
        """The position, from 0, at which a prefix operation became known."""
        return self._of(source, sequence).positions[sequence - 1]

    def _of(self, source: bytes, sequence: int) -> Source:
        there = self._sources.get(source)
        if there is None or not 0 < sequence <= len(there.bodies):
            raise KeyError((source, sequence))
        return there

    def arrival(self, position: int) -> tuple[bytes, int]:
        """(source, sequence) of the prefix operation that became known as the `position`-th; IndexError if none did."""
        entry = self._arrivals[position]
        return self._by_index[entry >> INDEX_SHIFT].uuid, entry & ((1 << INDEX_SHIFT) - 1)

    def settled(self, source: bytes, before: int) -> int:
        """Up to which number the prefix was received before an instant (monotonic)."""
        there = self._sources.get(source)
        return there.settled(before) if there else 0

    def sources(self) -> list[tuple[bytes, int]]:
        """(uuid, latest) of all with a prefix, by uuid."""
        sources = self._sources
        return [(uuid, len(sources[uuid].bodies)) for uuid in self._sorted]

    @property
    def has_held(self) -> bool:
        """Whether operations are held beyond a gap."""
        return self._holding.count > 0

    def held(self) -> list[tuple[bytes, int]]:
        """(uuid, sequence) of all operations beyond gaps."""
        return [(source, sequence) for source, sequence, _ in self._holding.items()]

    @property
    def count(self) -> int:
        """Operations in all prefixes."""
        return len(self._arrivals)

    @property
    def check(self) -> int:
        """The check of all prefixes (PEE-022). Changes since the last call are hashed now, once."""
        if self._turned:
            for source in self._turned:
                self._check ^= self._sources[source].turn()
            self._turned = {}
        return self._check

    def fresh(self) -> list[Operation]:
        """Operations that entered prefixes since the last call, in order of arrival."""
        found, self._fresh = self._fresh, {}
        return list(found.values())

    @property
    def has_fresh(self) -> bool:
        """Whether `fresh` would return anything."""
        return bool(self._fresh)

    # Hearing

    def take(self, body: bytes, sender: bytes) -> Taken:
        """Process a body from a peer (GSP-010 to GSP-015)."""
        try:
            operation = parse(body)
        except PeerError:
            self.context.count("log.no_header")
            return Taken("no_header")
        if is_altered(body, operation.attributes):
            self.context.count("log.altered")  # altered on the way, to us or to the sender; gossip asks for the gap
            return Taken("altered")
        now = self.context.now
        kept = Kept(body, now.wall, sender, now.mono)
        taken = self._judge(operation, kept)
        if taken.code in COUNTED:
            self.context.count(COUNTED[taken.code])
        return taken

    def _judge(self, operation: Operation, kept: Kept) -> Taken:
        source, sequence = operation.source, operation.sequence
        known = self._known(source, sequence)
        if source == self.context.uuid:
            return Taken(self._hear_own(known, kept), source, sequence)
        if known is not None:
            if known.body == kept.body:
                return Taken("duplicate", source, sequence)
            return Taken("fork", source, sequence, self._fork(operation, kept, known))
        if self.refuses(source):
            if not self.room.has_room(1):
                self.room.refuse()
            return Taken("full", source, sequence)
        self.stamps.see(source, sequence, operation.timestamp)
        if sequence == self.latest(source) + 1:
            self._enter(operation, kept)
            self._release(source)
            return Taken("new", source, sequence, is_further=True)
        return Taken("held" if self._hold(source, sequence, kept) else "shed", source, sequence)

    def _hear_own(self, known: Kept | None, kept: Kept) -> str:
        """A peer has an operation of our source that we did not issue: another node uses our identity (GSP-015).

        A `fork` here is our own operation that lost its checksum on the way: the sender gets the original.
        """
        if known is not None and is_proved(known.body) and not is_proved(kept.body):
            return "fork"
        if known is None or known.body != kept.body:
            self._change_identity(kept.received_from)
        return "own_source"

    def _change_identity(self, peer: bytes) -> None:
        self._tell_reused(peer, next_uuid(self.context.uuid, self.context.now.wall))

    def doubt(self, sequence: int, peer: bytes) -> bool:
        """A peer knows this much of our source; True if that is more than we issued, and we have a new identity now."""
        if sequence <= self.latest(self.context.uuid):
            return False
        self._change_identity(peer)
        return True

    def known(self, source: bytes, sequence: int) -> bytes:
        """The bytes under a number, including those beyond a gap."""
        kept = self._known(source, sequence)
        if kept is None:
            raise KeyError((source, sequence))
        return kept.body

    def _known(self, source: bytes, sequence: int) -> Kept | None:
        there = self._sources.get(source)
        if there is not None and sequence <= len(there.bodies):
            return there.kept(sequence)
        return self._holding.get(source, sequence)

    def refuses(self, source: bytes) -> bool:
        """Whether no more operations of this source are accepted (GSP-014)."""
        is_new = source not in self._sources
        what = ""
        if is_new and len(self._sources) >= SOURCES_MAX:
            what = "sources"
        elif self.is_full:
            what = "operations" if self.room.has_room(1) else "memory"
        if what and not self._is_full_told:
            self._is_full_told = True
            self.context.tell(LogFull(self.context.session, what))
        return bool(what)

    @property
    def is_full(self) -> bool:
        """Whether no more operations are accepted: the maximum number is reached, or memory is full (FLD-032)."""
        return len(self._arrivals) + self._holding.count >= OPERATIONS_MAX or not self.room.has_room(1)

    def _hold(self, source: bytes, sequence: int, kept: Kept) -> bool:
        self._source(source)
        self._holding.put(source, sequence, kept)
        shed = self._holding.shed(source)
        self.context.count("log.shed", len(shed))
        if (source, sequence) in shed:
            return False
        self._keep(source, sequence, None)
        return True

    def _source(self, uuid: bytes) -> Source:
        there = self._sources.get(uuid)
        if there is None:
            there = self._sources[uuid] = Source(uuid, len(self._by_index))
            self._by_index.append(there)
        return there

    def _enter(self, operation: Operation, kept: Kept, *, is_new: bool = True) -> None:
        """Append the next operation of a prefix. One that is not new has its record already."""
        source = operation.source
        there = self._source(source)
        if not there.bodies:
            insort(self._sorted, source)
        there.append(kept, operation.timestamp, len(self._arrivals))
        self.bytes += cost_of(kept.body)
        there.settle(self.context.now.mono - self.context.timing.fresh_ns)
        self._arrivals.append(there.index << INDEX_SHIFT | operation.sequence)
        self._turned[source] = None
        if not self._is_dormant:
            self._fresh[source, operation.sequence] = operation
        if is_new:
            self.context.count("log.ops")
            self.context.count("log.inert", bool(operation.inert))
            self._keep(source, operation.sequence, operation)

    def _release(self, source: bytes, *, is_new: bool = True) -> None:
        """Append held operations that are next, now that the gap is closed."""
        if source not in self._holding:
            return
        while (kept := self._holding.take(source, self.latest(source) + 1)) is not None:
            self._enter(parse(kept.body), kept, is_new=is_new)

    def append(self, body: bytes, operation: Operation) -> None:
        """Take the next own operation, and the bytes that it was read from; a wall stands before what the turn says."""
        source, now = self.context.uuid, self.context.now
        assert (operation.source, operation.sequence) == (source, self.latest(source) + 1)
        self._enter(operation, Kept(body, now.wall, source), is_new=False)
        self.stamps.used(operation.timestamp)
        self.context.count("log.ops")
        self.context.keep_own(self._record(operation))

    # Forks

    def _fork(self, operation: Operation, kept: Kept, known: Kept, *, is_new: bool = True) -> bool:
        """Two bodies of one number: returns whether the received one counts from now on."""
        source, sequence = operation.source, operation.sequence
        is_winner = wins(kept.body, known.body)
        winner, loser = (kept, known) if is_winner else (known, kept)
        if self._forks.note(source, sequence, loser) and is_new:
            self._forks.tell((source, sequence), winner.body, loser.body, kept.received_from)
            self._forks.owe(source, sequence)
        if is_winner:
            self._replace(operation, kept, is_new=is_new)
        return is_winner

    def _replace(self, operation: Operation, kept: Kept, *, is_new: bool) -> None:
        source, sequence = operation.source, operation.sequence
        if sequence > self.latest(source):
            self._holding.put(source, sequence, kept)
        else:
            self.bytes += cost_of(kept.body) - cost_of(self.body(source, sequence))
            self._sources[source].replace(sequence, kept, operation.timestamp)
            self._turned[source] = None
            if (source, sequence) in self._fresh:
                self._fresh[source, sequence] = operation
            else:
                self._tell_forked(operation)
        if is_new:
            self._keep(source, sequence, operation)

    # Keeping

    def _keep(self, source: bytes, sequence: int, operation: Operation | None) -> None:
        """Journal it in this turn, if the journal and the turn have room; else later."""
        context = self.context
        if not context.records:
            self._turn_bytes = 0
        if context.is_full or self._unkept or self._turn_bytes >= KEPT_BYTES_MAX:
            self._keep_later(source, sequence)
        else:
            self._keep_now(source, sequence, operation)

    def _keep_later(self, source: bytes, sequence: int) -> None:
        """Queue a record once, after its predecessor, even if it arrived before that (GSP-034)."""
        pair = (source, sequence)
        if self._unkept.get(pair):
            del self._unkept[pair]
        self._unkept.setdefault(pair, sequence > self.latest(source))

    def _keep_now(self, source: bytes, sequence: int, operation: Operation | None) -> None:
        if sequence <= self.latest(source):
            record: StreamRecord | CoreRecord = self._record(operation or parse(self.body(source, sequence)))
        else:
            waiting = self._holding.get(source, sequence)
            if waiting is None:
                return
            record = record_of(HeldKept(self.context.session, source, sequence, waiting[1], waiting[2], waiting.body))
        self._turn_bytes += OVERHEAD_BYTES + len(self.known(source, sequence))
        self.context.keep(record)

    def _record(self, operation: Operation) -> StreamRecord:
        there = self._sources[operation.source]
        sequence = operation.sequence
        return stream_record(self.context.settings, operation, there.kept(sequence), there.effs[sequence - 1])

    def wake(self, now: Now) -> None:
        """Journal what had no room, as much as one turn takes."""
        self._turn_bytes = 0
        while self._waits_for_room and self._turn_bytes < KEPT_BYTES_MAX and not self.context.is_full:
            if self._forks.are_owed:
                self._turn_bytes += OVERHEAD_BYTES + self._forks.keep_next()
                continue
            pair, _ = self._unkept.popitem(last=False)
            self._keep_now(*pair, None)

    def deadline(self) -> int | None:
        """At once, if records wait and there is room."""
        return self.context.now.mono if self._waits_for_room and not self.context.is_full else None

    @property
    def _waits_for_room(self) -> bool:
        return bool(self._unkept) or self._forks.are_owed

    # Memory

    def restore(self, entries: Iterable[Entry]) -> None:
        """Restore records of this session, in any order, with repetitions."""
        for _, record in entries:
            if isinstance(record, StreamRecord):
                source, sequence, kept = kept_of_stream(record)
                self._restore_one(source, sequence, kept)
                self._bare.pop((source, sequence), None)
            elif isinstance(record, CoreRecord):
                self._restore_memory(record)

    def _restore_memory(self, record: CoreRecord) -> None:
        memory = memory_of(record)
        if isinstance(memory, SessionKept):
            self._schema = memory.schema
        elif isinstance(memory, PieceKept):
            uuids = memory.uuids
            for source, sequence, received, sender, body in memory.operations:
                self._restore_one(uuids[source], sequence, Kept(body, received, uuids[sender]))
        else:
            kept = Kept(memory.body, memory.received_ns, memory.received_from)
            if isinstance(memory, HeldKept) and self._known(memory.source, memory.sequence) is None:
                self._bare[memory.source, memory.sequence] = None
            self._restore_one(memory.source, memory.sequence, kept)

    def _restore_one(self, source: bytes, sequence: int, kept: Kept) -> None:
        known = self._known(source, sequence)
        if known is not None and known.body == kept.body:
            return
        try:
            operation = parse(kept.body)
        except PeerError as error:
            raise OurFault(f"newer-data: the operation {sequence} of {source.hex()} cannot be read: {error}") from None
        if known is not None:
            self._fork(operation, kept, known, is_new=False)
            return
        self.stamps.see(source, sequence, operation.timestamp, is_told=False)
        if sequence == self.latest(source) + 1:
            self._enter(operation, kept, is_new=False)
            self._release(source, is_new=False)
        else:
            self._source(source)
            self._holding.put(source, sequence, kept)

    def condense(self) -> Iterator[CoreRecord]:
        """Records from which `restore` makes the same log: arrivals in order, in pieces."""
        session = self.context.session
        if self._schema is not None:
            yield record_of(SessionKept(session, self._schema))
        bare = {pair: None for pair in self._unkept if pair[1] <= self.latest(pair[0])}
        yield from self._pieces(session, bare)
        arrived = [(*pair, self.kept(*pair)) for pair in bare]  # so that the next start writes their records
        for source, sequence, kept in [*arrived, *self._holding.items()]:
            yield record_of(HeldKept(session, source, sequence, kept[1], kept[2], kept.body))
        for source, sequence, kept in self._forks.items():
            yield record_of(LoserKept(session, source, sequence, kept[1], kept[2], kept.body))

    def _pieces(self, session: str, bare: Container[tuple[bytes, int]]) -> Iterator[CoreRecord]:
        places: dict[bytes, int] = {}
        operations: list[tuple[int, int, int, int, bytes]] = []
        room = PIECE_BYTES
        for position in range(len(self._arrivals)):
            source, sequence = self.arrival(position)
            if (source, sequence) in bare:
                continue
            body, received, sender, _ = self.kept(source, sequence)
            if room < len(body) + 64:
                yield record_of(PieceKept(session, list(places), operations))
                places, operations, room = {}, [], PIECE_BYTES
            places_of = [places.setdefault(uuid, len(places)) for uuid in (source, sender)]
            operations.append((places_of[0], sequence, received, places_of[1], body))
            room -= len(body) + 64
        if operations:
            yield record_of(PieceKept(session, list(places), operations))


def cost_of(body: bytes) -> int:
    """Estimated bytes of memory of an operation, in the log and in the document."""
    return OPERATION_COST + BODY_COPIES * len(body) + TAG_COST * body.count(b"<")


COUNTED: Final = {
    "duplicate": "log.duplicate",
    "own_source": "log.own_source",
    "fork": "log.fork",
    "full": "log.full",
}
