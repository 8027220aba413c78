"""What must hold in a world of `net`, judged without the product: what each life of a machine can know, and what all have in the end.

It reads bodies by itself, and reckons prefixes, checks and documents by itself (`fold/oracle.py`).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sized
from functools import lru_cache, reduce
from hashlib import sha256
from operator import xor
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from tests.document.fold import oracle
from tests.document.fold.feeding import result_of
from weft.base.now import MILLISECOND, SECOND
from weft.base.records import Record, StreamRecord
from weft.cores.document.limits import ADOPT_RANK_NS
from weft.cores.document.session import Session
from weft.wire.document.messages import Beat, Gsip, Time, Xmsg

if TYPE_CHECKING:
    from tests.document.net import Machine, Net

BEATS_NS: Final = 5 * SECOND
"""At rest a node says BEAT to each other one so often (PEE-050)."""
SETTLED_NS: Final = 30 * SECOND
"""After that nothing is left to say: what was told of once is told again by then (GSP-025)."""
OPERATION_BYTES_MAX: Final = 262_144
FRESH_NS: Final = 150 * MILLISECOND
PASSING: Final = 100
"""Sources, endpoints, tries: what is kept of what is over."""
TAG: Final = re.compile(rb"<([A-Za-z_][^\s<>/]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>")
SOURCE: Final = re.compile(rb"""\ssource\s*=\s*["']([^"']*)["']""")
SEQUENCE: Final = re.compile(rb"""\ssequence\s*=\s*["']([0-9]{1,16})["']""")

Pair = tuple[bytes, int]


@lru_cache(maxsize=1 << 16)
def pair_of(body: bytes) -> Pair | None:
    """Source and sequence; None for what has no place in any log (GSP-012)."""
    tag = TAG.search(body)
    if tag is None or len(body) > OPERATION_BYTES_MAX or b"<!" in body[: tag.start()]:
        return None
    source, sequence = SOURCE.search(tag[2]), SEQUENCE.search(tag[2])
    if source is None or sequence is None or not int(sequence[1]):
        return None
    try:
        return UUID(source[1].decode()).bytes, int(sequence[1])
    except ValueError:
        return None


class Life:
    """One life of a machine: what has come to it, and what it may say by that."""

    def __init__(self, machine: "Machine", session: Session, faults: list[str]) -> None:
        self._machine, self._session, self._faults = machine, session, faults
        self._known: dict[bytes, set[int]] = defaultdict(set)
        self._prefix: dict[bytes, int] = {}
        self._records: set[tuple[str, int, bytes]] = set()
        self._heard: dict[Pair, tuple[int, bytes]] = {}
        """When the first body of a number came, and which."""
        self._recorded: dict[str, set[int]] = defaultdict(set)
        """Numbers, by origin."""
        self._offset = session.context.offset_ns
        self._is_grown = False
        """Its session time is used, and stays (PEE-041)."""
        for source, latest in session.log.sources():
            self._known[source] = set(range(1, latest + 1))
            self._recorded[f"{session.context.session}/{source.hex()}"] = set(self._known[source])
        for source, sequence in session.log.held():
            self._known[source].add(sequence)

    def hear(self, body: bytes, now: int) -> None:
        pair = pair_of(body)
        if pair is not None:
            self._known[pair[0]].add(pair[1])
            self._heard.setdefault(pair, (now, body))

    def keep(self, records: Iterable[Record], *, is_wall: bool) -> None:
        """Its own are known from here on; in one life no operation is recorded twice, nor before what it follows (GSP-034)."""
        for record in records:
            if not isinstance(record, StreamRecord):
                continue
            origin, number = str(record.origin), record.sequence
            if (origin, number, record.payload) in self._records:
                self._fault(f"recorded {number} of {origin} twice")
            self._records.add((origin, number, record.payload))
            numbers = self._recorded[origin]
            if numbers and number not in numbers and number != max(numbers) + 1:
                self._fault(f"recorded {number} of {origin} after {max(numbers)}")
            numbers.add(number)
            if is_wall:
                self.hear(record.payload, self._session.context.now.mono)
                self._is_grown = self._is_grown or pair_of(record.payload) is not None

    def prefix(self, source: bytes) -> int:
        """How much of a source it can have without a gap."""
        latest, known = self._prefix.get(source, 0), self._known.get(source, ())
        while latest + 1 in known:
            latest += 1
        self._prefix[source] = latest
        return latest

    def say(self, endpoint: str, message: Any) -> None:
        """Look at what it says to whom."""
        match message:
            case Xmsg(body):
                self._look_at_body(endpoint, body)
            case Gsip(entries):
                for source, upto in entries:
                    if upto > self.prefix(source):
                        self._fault(f"says that it holds {upto} of {source.hex()[:8]}, beyond a gap")
            case Beat(sequence=int() as sequence) if sequence > self.prefix(self._machine.uuid):
                self._fault(f"says that it has issued {sequence}")
            case Time(seconds=float()):
                self._is_grown = True

    def _look_at_body(self, endpoint: str, body: bytes) -> None:
        pair = pair_of(body)
        if pair is None:
            self._fault("sent what is no operation")
        elif pair[0] == self._machine.uuid:
            if (pair[0].hex(), pair[1]) not in self._machine.kept:
                self._fault(f"said {pair[1]} of its own before it was durable")
        elif pair[1] > self.prefix(pair[0]):
            self._fault(f"forwarded {pair[1]} of {pair[0].hex()[:8]} beyond a gap")
        else:
            self._look_for_haste(endpoint, pair, body)

    def _look_for_haste(self, endpoint: str, pair: Pair, body: bytes) -> None:
        """What somebody who is there said just now is left to it (GSP-022 c); the winner of a fork goes to all at once."""
        source = self._session.peers.get(pair[0])
        heard_at, first = self._heard.get(pair, (-FRESH_NS, body))
        is_new = self._session.context.now.mono - heard_at < FRESH_NS
        if is_new and first == body and source is not None and source.is_active and source.endpoint != endpoint:
            self._fault(f"forwarded {pair[1]} of {pair[0].hex()[:8]}, who had just said it")

    def look_at_time(self) -> None:
        """Session time is set once at most, and never when it was used."""
        offset = self._session.context.offset_ns
        if offset != self._offset:
            if self._is_grown:
                self._fault("changed its session time")
            self._offset, self._is_grown = offset, True

    def _fault(self, what: str) -> None:
        self._faults.append(f"{self._machine.name} {what}")


# In the end


def bodies_of(session: Session) -> dict[Pair, bytes]:
    """All prefix operations."""
    log = session.log
    return {(source, n): log.body(source, n) for source, latest in log.sources() for n in range(1, latest + 1)}


def check_of(bodies: dict[Pair, bytes]) -> int:
    """PEE-022, as it is written."""
    chains: dict[bytes, tuple[int, bytes]] = {}
    for (source, sequence), body in sorted(bodies.items()):
        before = chains.get(source, (0, bytes(32)))[1]
        chains[source] = sequence, sha256(before + sha256(body).digest()).digest()
    heads = [sha256(source + n.to_bytes(8, "big") + chain).digest()[:4] for source, (n, chain) in chains.items()]
    return reduce(xor, (int.from_bytes(head, "big") for head in heads), 0)


def assert_all_is_the_same(net: "Net") -> None:
    """Logs, checks, documents, outcomes, parked steps and conflicts: on all machines, on their disks, and by the oracle."""
    bodies = bodies_of(net.alive[0].up)
    assert {pair: pair_of(body) for pair, body in bodies.items()} == {pair: pair for pair in bodies}
    expected = oracle.result_of(map(oracle.read, bodies.values()), net.schema)
    for machine in net.alive:
        session = machine.up
        assert bodies == bodies_of(session), machine.name
        assert check_of(bodies) == session.log.check, machine.name
        assert expected == result_of(session.engine), machine.name
        restored = net.restored(machine)
        assert bodies == bodies_of(restored), f"the disk of {machine.name}"
        assert session.log.held() == restored.log.held(), f"the disk of {machine.name}"


def assert_rest(net: "Net", span_ns: int = 60 * SECOND) -> None:
    """Nothing but BEAT passes, and that as seldom as it should (GSP-026, PEE-050); and nobody waits for anything.

    What is stranded behind a gap is adopted before (GSP-040).
    """
    net.pass_time(SETTLED_NS)
    if any(machine.up.log.has_held for machine in net.alive):
        net.pass_time(75 * SECOND + len(net.alive) * ADOPT_RANK_NS)
    net.said.clear()
    net.pass_time(span_ns)
    count = len(net.alive)
    beats = net.said.pop("Beat", 0)
    assert Counter() == net.said
    assert beats <= count * (count - 1) * (span_ns // BEATS_NS + 1)
    for machine in net.alive:
        assert_small(machine)


def assert_small(machine: "Machine") -> None:
    """What is over is forgotten."""
    session = machine.up
    asking = session.gossip._asking
    waiting: list[Sized] = [asking._open, asking._owed, asking._waiting, session.log._unkept, session.log._fresh]
    assert [0] * len(waiting) == [len(one) for one in waiting], machine.name
    context = session.context
    assert not context.effects
    assert len(context.said_at) <= len(session.peers.all())
    for knowing in session.gossip._known.values():
        sent = knowing.sent
        assert (0, 0) == (len(knowing.owed), len(knowing.to_tell)), machine.name
        assert len(sent._runs) <= PASSING
