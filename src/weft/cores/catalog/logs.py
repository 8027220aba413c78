"""Log records of all services: brought into one form and order, journaled, published and remembered (LOG-001..009).

A record passes: its form → sampling (LOG-008) → the order of its publisher's numbers (LOG-006) → merging equal records
(LOG-007) → the ring for `dbp.logs`, the XPUB as `logs/LEVEL/SERVICE`, the journal's stream `logs` (LOG-005). Records of
a plain `PUBHandler` below the `bus_level` of its service (WARNING if it has none) are in the ring only (LOG-004).

    dbp.logs {"level", "service", "since", "contains", "limit"}    {"logs": [normal form…], "more"}

Oldest first: the newest `limit` of those that match. `level` means that one and above, `since` Unix seconds of
`received`.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from ipaddress import ip_address, ip_network
from typing import Any, Final

import msgspec

from weft.base.budget import Part
from weft.base.endpoints import endpoint_of
from weft.base.errors import UNREADABLE
from weft.base.now import MILLISECOND, SECOND, Now
from weft.base.records import CoreRecord, Entry, Stream, StreamRecord
from weft.cores.catalog import limits
from weft.cores.catalog.arguments import read_argument
from weft.cores.catalog.book import Book
from weft.cores.catalog.context import PROBE, Asker, Context
from weft.cores.catalog.gaps import Hole, Lost, Run
from weft.cores.catalog.instances import Change, Instance
from weft.cores.catalog.logforms import (
    LEVELS,
    SEVERE,
    Line,
    Log,
    Origin,
    Span,
    Topic,
    decode,
    line_of,
    read,
    read_refill,
    severity_of,
)
from weft.cores.catalog.logqueue import LogQueue
from weft.cores.catalog.memory import LogsHeard, heard_of, memory_of
from weft.cores.catalog.messages import LogsLost
from weft.cores.catalog.publishing import Publishing
from weft.cores.catalog.queries import Queries
from weft.cores.catalog.records import calling_address
from weft.cores.catalog.refusals import Refusal
from weft.cores.catalog.repeats import Repeats
from weft.cores.catalog.subscribedtopics import SubscribedTopics
from weft.cores.catalog.topics import Key
from weft.cores.kit.timers import earliest
from weft.wire.catalog import times
from weft.wire.catalog.messages import REPLY, Message, Subscription

PREFIX: Final = b"logs/"
QUERY: Final = b"dbp.logs"


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """The argument of `dbp.logs`."""

    level: str = "DEBUG"
    service: str | None = None
    since: float = 0.0
    contains: str = ""
    limit: int = limits.LOGS_LISTED


_ASKED: Final = msgspec.json.Decoder(Asked)


class Talker:
    """One publisher of records."""

    __slots__ = ("key", "origin", "run", "second", "spoken")

    def __init__(self, key: Key, net: str, run: Run) -> None:
        self.key, self.run = key, run
        self.origin = Origin(*key, net)
        self.second = self.spoken = 0
        """How many records it sent in the current second, and which second that is (LOG-008)."""


class Logs:
    """Log records of services, in one place."""

    def __init__(self, context: Context, book: Book, queries: Queries, publishing: Publishing) -> None:
        self.context, self.book, self.publishing = context, book, publishing
        self.ring: deque[Line] = deque()
        self._ring_bytes = 0
        self._talkers: dict[Key, Talker] = {}
        self._tops: dict[Key, int] = {}
        """From earlier starts: the last number received of each instance."""
        self._repeats = Repeats()
        self._wanted = SubscribedTopics(PREFIX)
        self._holes: deque[Hole] = deque()
        """In the order of their deadlines, which is the order of creation."""
        self._asked: dict[bytes, list[Hole]] = {}
        """By endpoint: holes that were asked for there and are not answered."""
        self._allowed = [ip_network(network, strict=False) for network in context.settings.probe_allow]
        self._held = self._held_bytes = 0
        """Number and bytes of records behind holes, of all publishers."""
        self._queue = LogQueue(lambda _: context.count("log_dropped", "queue"))
        self._rooms = self._parts_of(context)
        self._turn_at = self._turn_bytes = 0
        """Bytes journaled in the turn of this instant; all messages of a turn have the same instant."""
        context.listeners.append(self.changed)
        queries.add("dbp.logs", self.answer)

    def _parts_of(self, context: Context) -> dict[str, Part]:
        """The parts of the core's budget for log records; each drops its oldest records to make room."""
        part, waiting = context.budget.part, limits.LOGS_WAITING_PERCENT
        self._queue.room = part("logs-queued", waiting, lambda: self._queue.cost)
        self._repeats.room = part("logs-repeated", waiting, lambda: self._repeats.cost)
        behind_holes = part("logs-behind-holes", waiting, lambda: self._held_bytes + limits.LOG_COST * self._held)
        ring = part("logs", limits.LOGS_PERCENT, lambda: self._ring_bytes + limits.LOG_COST * len(self.ring))
        return {each.name: each for each in (behind_holes, ring)}

    # Memory

    def noting(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yields the same entries, and notes from them the last number received of each instance."""
        for lsn, record in entries:
            if isinstance(record, StreamRecord) and record.stream == Stream.LOGS and record.origin == self.context.node:
                self._note(record.payload)
            elif isinstance(record, CoreRecord) and isinstance(heard := memory_of(record, b""), LogsHeard):
                self._tops[heard.name, heard.id] = heard.top
            yield lsn, record

    def _note(self, payload: bytes) -> None:
        try:
            log = decode(payload)
        except UNREADABLE:  # of a later version
            return
        if log.level not in LEVELS:
            return
        self._remember(Line(log, payload))
        key = str(log.fields.get("publisher", log.service)), log.instance
        number = log.lost.last if isinstance(log.lost, Span) else log.seq
        if number is not None and log.repeated is msgspec.UNSET:
            self._tops[key] = number

    def condense(self) -> Iterator[CoreRecord]:
        """The last number of each instance whose records have left in order."""
        for key, talker in list(self._talkers.items()):
            if talker.run.settled:
                yield heard_of(*key, talker.run.settled)

    def open(self) -> None:
        """Mark all restored instances as old.

        Their earlier records are in the journal, or belong to no start of ours.
        """
        for instance in self.book.all():
            run = Run(self._tops.get(instance.key, 0), is_old=True)
            self._talkers.setdefault(instance.key, Talker(instance.key, self.context.settings.net, run))
        self._tops = {}

    # Hearing

    def hear(self, key: Key, topic: Topic, body: tuple[bytes, ...], now: Now) -> None:
        """A publisher sent a record."""
        talker = self._talkers.get(key)
        if talker is None:
            talker = self._talkers[key] = Talker(key, self.context.settings.net, Run())
        log = read(topic, body, talker.origin, self.context.wall)
        entry = line_of(log, is_local=self._is_local(log, key)) if self._is_sample(talker, now) else None
        if log.seq is None:
            self._let_go([entry], talker, now)
        else:
            self._order(talker, log.seq, entry, now)

    def _is_local(self, log: Log, key: Key) -> bool:
        """Whether it stays off the bus (LOG-004).

        Services with our own form filter for themselves; others send every record.
        """
        if log.severity >= SEVERE or log.seq is not None:
            return False
        instance = self.book.get(*key)
        return instance is None or log.severity < severity_of(instance.record.get("bus_level"))

    def _is_sample(self, talker: Talker, now: Now) -> bool:
        """Whether it is within the first thousand records of its publisher in this second (LOG-008)."""
        second = now.mono // SECOND
        if talker.second != second:
            talker.second, talker.spoken = second, 0
        talker.spoken += 1
        if talker.spoken <= limits.LOG_RATE_MAX:
            return True
        self.context.count("log_dropped", "sampled")
        return False

    def changed(self, change: Change) -> None:
        """A removed instance sends no more records: release what waits of it."""
        if change.op != "remove" or (talker := self._talkers.pop(change.instance.key, None)) is None:
            return
        holes = talker.run.holes()
        self._held -= talker.run.held
        self._held_bytes -= talker.run.held_bytes
        self._let_go(talker.run.end(), talker, self.context.now)
        for hole in holes:
            self._forget(hole)

    # Order (LOG-006, LOG-009)

    def _order(self, talker: Talker, number: int, entry: Line | None, now: Now) -> None:
        run = talker.run
        before, held, held_bytes = run.newest_hole, run.held, run.held_bytes
        ready = run.hear(number, entry, now.mono)
        self._held += run.held - held
        self._held_bytes += run.held_bytes - held_bytes
        self._let_go(ready, talker, now)
        if (hole := run.newest_hole) is not None and hole is not before:
            hole.owner = talker
            self._holes.append(hole)
            self._ask(talker, hole, now)
        room = self._rooms["logs-behind-holes"]
        while self._holes and (
            self._held > limits.LOGS_MAX or self._held_bytes > limits.LOGS_BYTES_MAX or room.is_over
        ):
            self._give_up(self._holes.popleft(), now)

    def _ask(self, talker: Talker, hole: Hole, now: Now) -> None:
        """Ask once for the missing records.

        A publisher that must not be asked, or has no endpoint, cannot fill the hole.
        """
        instance = self.book.get(*talker.key)
        address = (
            calling_address(instance.record, instance.observed_ip, self.context.settings.rewrite) if instance else None
        )
        if instance is None or address is None or not self._may_ask(instance, address.ip):
            self._give_up(hole, now)
            return
        hole.peer = endpoint_of(address.ip, address.port).encode()
        self._asked.setdefault(hole.peer, []).append(hole)
        wanted = msgspec.json.encode(Span(hole.first, hole.last))
        time = times.write("f32le", self.context.wall)
        self.context.send(PROBE, hole.peer, Message(QUERY, time, (wanted,)))
        self.context.count("log_refills")

    def _may_ask(self, instance: Instance, ip: str) -> bool:
        """Whether it is at the address it registered from, or where the broker may probe (BEA-016)."""
        if ip == instance.observed_ip:
            return True
        try:
            address = ip_address(ip)
        except ValueError:  # a host name: only its resolver knows where that leads
            return False
        return any(address in network for network in self._allowed)

    def hear_refill(self, message: Message, peer: bytes, now: Now) -> None:
        """A service has sent missing records again (LOG-006); those that it leaves out it does not have."""
        asked = [hole for hole in self._asked.get(peer, []) if not hole.is_over]
        if not asked:
            self.context.count("log_dropped", "unasked")
            return
        body = message.body if message.command == REPLY else ()
        for hole in asked:
            found = read_refill(body, hole.owner.origin, self.context.wall)
            if found and not any(number in hole for number in found):
                continue
            self._fill(hole, {number: line_of(log) for number, log in found.items()}, now)
            return

    def _fill(self, hole: Hole, found: dict[int, Line], now: Now) -> None:
        run = hole.owner.run
        held, held_bytes = run.held, run.held_bytes
        ready = run.fill(hole, found) + run.close(hole)
        self._held += run.held - held
        self._held_bytes += run.held_bytes - held_bytes
        self._forget(hole)
        self._let_go(ready, hole.owner, now)

    def _give_up(self, hole: Hole, now: Now) -> None:
        """Stop waiting: the records stay missing."""
        self._fill(hole, {}, now)

    def _forget(self, hole: Hole) -> None:
        hole.is_closed = True
        if hole in (asked := self._asked.get(hole.peer, [])):
            asked.remove(hole)
            if not asked:
                del self._asked[hole.peer]

    def _let_go(self, items: list[Any], talker: Talker, now: Now) -> None:
        """Process what is in order: records, `Lost`, and None for a record that was not sampled."""
        for item in items:
            if isinstance(item, Lost):
                self._lose(item, talker, now)
            elif item is not None:
                self._collapse(item, now)

    def _lose(self, lost: Lost, talker: Talker, now: Now) -> None:
        """Report that records are missing for good: by a record, an event and a counter (LOG-006)."""
        name, instance, net = talker.origin
        self.context.count("log_gaps")
        self.context.tell(LogsLost(name, instance, lost.first, lost.last))
        log = Log(
            ts=None,
            received=self.context.wall,
            net=net,
            level="WARNING",
            service=name,
            instance=instance,
            logger="",
            message=f"records {lost.first} to {lost.last} are lost",
            seq=None,
            fields={},
            lost=Span(lost.first, lost.last),
        )
        self._write(line_of(log), now)

    # What becomes of a record

    def _collapse(self, entry: Line, now: Now) -> None:
        self._close_repeats(now)
        if self._repeats.passes(entry, now.mono):
            self._write(entry, now)
        else:
            self.context.count("log_repeated")

    def _close_repeats(self, now: Now) -> None:
        for entry in self._repeats.due(now.mono):
            self._write(entry, now)

    def _write(self, entry: Line, now: Now) -> None:
        """Remember, publish and journal a record."""
        log = entry.log
        self.context.count("log_records", log.level)
        self._remember(entry)
        if entry.is_local:
            return
        topic = f"logs/{log.level}/{log.service}".encode()
        if topic in self._wanted:
            self.publishing.publish(topic, entry.data)
        self._queue.put(entry)
        self._keep(now)

    def _remember(self, entry: Line) -> None:
        self.ring.append(entry)
        self._ring_bytes += len(entry.data)
        logs_max, room = self.context.settings.logs_max, self._rooms["logs"]
        while self.ring and (len(self.ring) > logs_max or self._ring_bytes > limits.LOGS_BYTES_MAX or room.is_over):
            self._ring_bytes -= len(self.ring.popleft().data)

    def _keep(self, now: Now) -> None:
        """Hand the journal as much as fits into one turn; the rest waits (JRN-030)."""
        context = self.context
        if self._turn_at != now.mono:
            self._turn_at, self._turn_bytes = now.mono, 0
        while len(self._queue) and not context.is_full and self._turn_bytes < limits.LOG_TURN_BYTES:
            entry = self._queue.next()
            self._turn_bytes += limits.CHANGE_BYTES + len(entry.data)
            context.keep_numbered(self._record_of(entry, now))

    def _record_of(self, entry: Line, now: Now) -> StreamRecord:
        context, log = self.context, entry.log
        received = round(log.received * 1_000_000) * 1_000
        at = received if log.ts is None else round(log.ts * 1_000_000) * 1_000
        if abs(at - received) > limits.LOG_TS_NS:  # a wrong clock; the record keeps the stated time
            at = received
        number = context.next_number(Stream.LOGS)
        about = {"level": log.level, "fmt": "json"}
        return StreamRecord(
            Stream.LOGS, context.node, context.era, number, at, received, log.service, entry.data, about
        )

    # Time

    def wake(self, now: Now) -> None:
        """Report holes that were not filled, merge repetitions, and journal what waited."""
        while self._holes and (self._holes[0].is_over or self._holes[0].due_at <= now.mono):
            self._give_up(self._holes.popleft(), now)  # an expired hole: only its question is left
        self._close_repeats(now)
        self._keep(now)

    def deadline(self) -> int | None:
        if len(self._queue) and not self.context.is_full:
            return self._turn_at + MILLISECOND
        return earliest(self._repeats.deadline(), self._holes[0].due_at if self._holes else None)

    # Those who ask

    def subscribed(self, subscription: Subscription, now: Now) -> None:
        """Notes which topics below `logs/` are wanted."""
        self._wanted.note(subscription)

    def answer(self, args: tuple[bytes, ...], asker: Asker) -> tuple[bytes, ...]:
        """`dbp.logs {…}`."""
        asked = read_argument(args, 0, _ASKED)
        severity = LEVELS.get(asked.level.upper())
        if severity is None or not 1 <= asked.limit <= limits.LOGS_LISTED_MAX:
            raise Refusal("bad-argument", f"a level of {', '.join(LEVELS)}; a limit of 1 to {limits.LOGS_LISTED_MAX}")
        found: deque[bytes] = deque()
        size = more = 0
        for log, data, _ in reversed(self.ring):
            if not _matches(log, asked, severity):
                continue
            size += len(data)
            if more or len(found) >= asked.limit or (found and size > limits.LISTED_BYTES_MAX):
                more += 1
            else:
                found.appendleft(data)
        rest = b',"more":%d' % more if more else b""
        return (b'{"logs":[' + b",".join(found) + b"]" + rest + b"}",)


def _matches(log: Log, asked: Asked, severity: int) -> bool:
    return (
        log.severity >= severity
        and log.received >= asked.since
        and asked.service in (None, log.service)
        and asked.contains in log.message
    )
