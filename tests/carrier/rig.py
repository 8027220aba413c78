"""Machines that hold one carrier each, joined by bytes, in virtual time.

A machine keeps what its core persists, tells it so at once, reads it back when asked, and forgets what is released,
as a node does. Links behave like ROUTER and DEALER: in order, lost as a block when cut; a peer whose connection was
cut is never heard again under its old id (SIM-020, Z7), so only a fresh socket heals.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from weft.base.chance import Chance
from weft.base.effects import Connect, Disconnect, Effect, Perform, Persist, Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.mail import INBOX, OUTBOX, Mail, to_record
from weft.base.now import SECOND, Now
from weft.base.records import Carried, CoreRecord, Entry, EraRecord, LostRecord, Record, Stream, StreamRecord
from weft.base.spool import DropOldest, FetchRecords, Journaled, RecordsFetched, Released, Span
from weft.cores.carrier.core import Carrier
from weft.cores.carrier.messages import (
    AssignParent,
    CarrierSettings,
    Garbled,
    InLake,
    LakeUnread,
    PostMail,
    ReadVectors,
    Stop,
)
from weft.wire import hop
from weft.wire.carried import is_mail

WALL = 1_795_000_000 * SECOND
Frames = list[bytes]
STEPS_MAX = 200_000


class Machine:
    """One node: a disk, and as long as it is up, a carrier."""

    def __init__(self, world: "World", name: str, level: str, **settings: Any) -> None:
        self.world, self.name = world, name
        self.node = name.encode().ljust(16, b".")
        self.settings = CarrierSettings(name=name, level=level, **settings)
        self.era = 0
        self.sequence = 0
        self.disk: list[Entry] = []
        self.next_lsn = 1
        self.parent = ""
        self.peer = b""
        self.core: Carrier
        self.is_up = False
        self.told: list[Any] = []
        self.said: list[Any] = []
        """Every message that was said, whether or not it arrived."""
        self.fetches = 0
        self.orders: deque[FetchRecords | ReadVectors] = deque()
        self.dies_before: Callable[[Effect], bool] = lambda effect: False
        self.may_fetch = True
        self.lake: InLake | LakeUnread | None = InLake(())
        """What its lake answers; None: nothing."""
        self.asked_lake = 0
        self.reads_nothing = False
        self.names_era = True
        self.mails = 0
        self.screened: list[StreamRecord] = []
        """What the screen was asked about, in this start and those before."""
        self.screened_in: list[int] = []
        """The era of this node in which it was."""
        self.tickets = 0
        self.judge: Callable[[StreamRecord], Iterable[Record]] = lambda record: (record,)

    # Life

    def start(self) -> "Machine":
        """Begin a new era with what is on disk."""
        self.era, self.sequence, self.mails, self.is_up = self.world.next_era(), 0, 0, True
        self.orders.clear()
        self.core = Carrier(self.settings, self.node, self.era, Chance(f"{self.name}/{self.era}"))
        self.core.screen = self.screen
        self.core.restore(list(self.disk), self.world.now)
        self.do()
        if self.parent:
            self.order(AssignParent(self.parent, self.parent))
        return self

    def crash(self) -> None:
        """Die: memory and unsaid words are gone; the kernel closes the sockets."""
        self.is_up = False
        self.world.cut_off(self)

    def condense(self) -> None:
        """Replace the core's own records by a snapshot, as the journal does."""
        mine = list(self.core.condense())
        self.disk = [(0, record) for record in mine] + [e for e in self.disk if not isinstance(e[1], CoreRecord)]

    # Doing

    def order(self, order: Any) -> None:
        self.core.command(order, self.world.now)
        self.do()

    def make(self, rows: int = 1, size: int = 10) -> StreamRecord:
        """One batch of samples, durable."""
        records: list[Record] = []
        if not self.sequence and self.names_era:
            records.append(EraRecord(Stream.SAMPLES, self.node, self.era, 0, 0))
        body = bytes([self.sequence % 251]) * size
        wall = self.world.now.wall
        record = StreamRecord(Stream.SAMPLES, self.node, self.era, self.sequence + 1, wall, wall, "", body, {"n": rows})
        self.sequence += rows
        records.append(record)
        self.do([Persist(tuple(records))])
        return record

    def mail(self, **fields: Any) -> Mail:
        """The next message of this node."""
        self.mails += 1
        standard: dict[str, Any] = {"origin": self.node, "era": self.era, "sequence": self.mails, "type": "demo.report"}
        standard |= {"frames": (b"%d" % self.mails,), "to": ("PARENTSOF",), "at": self.world.now.wall}
        return Mail(**standard | fields)

    def post(self, **fields: Any) -> Mail:
        """One message for the parent, durable."""
        mail = self.mail(**fields)
        self.write(to_record(mail, OUTBOX, self.world.now.wall))
        return mail

    def send(self, *nodes: bytes, **fields: Any) -> Mail:
        """One message without the outbox."""
        mail, self.tickets = self.mail(**fields), self.tickets + 1
        self.order(PostMail(self.tickets, mail, nodes))
        return mail

    def screen(self, record: StreamRecord, now: Now) -> tuple[Record, ...]:
        """The screen of its carrier: notes what it was asked, and does as `judge` says."""
        self.screened.append(record)
        self.screened_in.append(self.era)
        return tuple(self.judge(record))

    def write(self, *records: Record) -> None:
        """Anything else, durable."""
        self.do([Persist(records)])

    def do(self, first: Iterable[Effect] = ()) -> None:
        """Carry out effects in order; each record is told back at once, and what follows from it queues up behind."""
        queue = deque(first)
        if not queue:
            queue.extend(self.core.effects())
        while queue:
            effect = queue.popleft()
            if self.dies_before(effect):
                self.dies_before = lambda effect: False
                self.crash()
                return
            queue.extend(self._perform(effect))

    def _perform(self, effect: Effect) -> list[Effect]:
        match effect:
            case Persist():
                return self._persist(effect)
            case Send():
                self.said.append(effect.message)
                self.world.carry(self, effect)
            case Connect():
                self.world.connect(self, effect.endpoint)
            case Disconnect():
                self.world.disconnect(self)
            case Perform():
                self.orders.append(effect.work)
            case Tell():
                self.told.append(effect.event)
                if isinstance(effect.event, Released):
                    self._forget(effect.event.upto)
        return []

    def _persist(self, persist: Persist) -> list[Effect]:
        first = self.next_lsn
        self.next_lsn += len(persist.records)
        self.disk += enumerate(persist.records, first)
        if not any(isinstance(record, Carried) for record in persist.records):
            return []
        self.core.command(Journaled(first, persist.records), self.world.now)
        return self.core.effects()

    def answer(self, work: FetchRecords | ReadVectors) -> None:
        """What the shell does for its core."""
        answer = self.read(work) if isinstance(work, FetchRecords) else self.lake
        self.asked_lake += isinstance(work, ReadVectors)
        if answer is not None:
            self.order(answer)

    def read(self, work: FetchRecords | ReadVectors) -> RecordsFetched:
        """What the journal answers now."""
        assert isinstance(work, FetchRecords)
        assert work.holder == "carrier"
        self.fetches += 1
        found: list[Entry] = []
        size, upto = 0, work.after
        for lsn, record in self.disk:
            if lsn <= work.after:
                continue
            if size >= work.bytes_max:
                break
            found.append((lsn, record))
            size += 100 + len(getattr(record, "payload", b""))
            upto = lsn
        if self.reads_nothing:
            found, upto = [], work.after
        elif size < work.bytes_max:
            upto = self.next_lsn - 1
        return RecordsFetched("carrier", work.after, upto, tuple(found))

    def _forget(self, upto: int) -> None:
        """The inbox is another core's to keep, so it stays."""
        self.disk = [
            (lsn, r)
            for lsn, r in self.disk
            if lsn > upto or isinstance(r, CoreRecord) or (isinstance(r, StreamRecord) and r.stream == INBOX)
        ]

    # What it has

    def samples(self) -> list[StreamRecord]:
        return [record for record in self.archive() if isinstance(record, StreamRecord) and not is_mail(record)]

    def inbox(self) -> list[StreamRecord]:
        """The mail that has arrived and was kept."""
        return [record for record in self.archive() if isinstance(record, StreamRecord) and record.stream == INBOX]

    def outbox(self) -> list[StreamRecord]:
        """The mail that was to go up."""
        return [record for record in self.archive() if isinstance(record, StreamRecord) and record.stream == OUTBOX]

    def lost(self) -> list[LostRecord]:
        return [record for record in self.archive() if isinstance(record, LostRecord)]

    def archive(self) -> list[Record]:
        return [record for _, record in self.disk]

    def events(self, kind: type) -> list[Any]:
        return [event for event in self.told if isinstance(event, kind)]

    def heard_to_say(self, kind: type) -> list[Any]:
        """Messages of one kind that it said since the last time somebody asked for any."""
        said, self.said = self.said, []
        return [message for message in said if isinstance(message, kind)]

    def spool_bytes(self) -> int:
        return sum(100 + len(record.payload) for _, record in self.disk if isinstance(record, StreamRecord))

    def drop_oldest(self, share: int = 4) -> None:
        """What a full journal asks for: give up the oldest part."""
        kept = [(lsn, record) for lsn, record in self.disk if isinstance(record, Carried)]
        oldest = kept[: max(1, len(kept) // share)]
        spans = [Span(r.stream, r.origin, r.era, r.sequence, r.last) for _, r in oldest if isinstance(r, StreamRecord)]
        self.order(DropOldest(oldest[-1][0], tuple(spans)))


class Root(Machine):
    """A machine that forgets nothing, since nobody drains it."""

    def _forget(self, upto: int) -> None:
        """The drain has not released it."""


class World:
    """All machines, the time, and what is under way."""

    def __init__(self) -> None:
        self.now = Now(10 * SECOND, WALL)
        self.machines: dict[str, Machine] = {}
        self.wire: deque[tuple[bytes, str, Frames]] = deque()
        """peer, `up` or `down`, frames: in order per peer and direction."""
        self._owner: dict[bytes, tuple[Machine, str]] = {}
        self.deaf: set[bytes] = set()
        self.cuts: set[str] = set()
        self.weather: Callable[[Frames], Frames] = lambda frames: frames
        """What the cable makes of a multipart."""
        self._eras = 1_000
        self._peers = 0

    # Making

    def next_era(self) -> int:
        self._eras += 1
        return self._eras

    def root(self, name: str = "root", **settings: Any) -> Machine:
        return self._add(Root(self, name, "root", **settings))

    def collector(self, name: str, parent: str = "root", **settings: Any) -> Machine:
        return self._add(Machine(self, name, "collector", **settings), parent)

    def sensor(self, name: str, parent: str = "root", **settings: Any) -> Machine:
        return self._add(Machine(self, name, "sensor", **settings), parent)

    def _add(self, machine: Machine, parent: str = "") -> Machine:
        self.machines[machine.name] = machine
        machine.parent = parent
        return machine.start()

    # Links

    def connect(self, machine: Machine, endpoint: str) -> None:
        self.disconnect(machine)
        self._peers += 1
        machine.peer = b"p%d" % self._peers
        self._owner[machine.peer] = (machine, endpoint)

    def disconnect(self, machine: Machine) -> None:
        if machine.peer:
            self.deaf.add(machine.peer)
            self.wire = deque(item for item in self.wire if item[0] != machine.peer or item[1] == "up")
            machine.peer = b""

    def cut(self, *names: str) -> None:
        """Nothing passes between these machines and their parents."""
        for name in names:
            self.cuts.add(name)
            peer = self.machines[name].peer
            self.deaf.add(peer)
            self.wire = deque(item for item in self.wire if item[0] != peer)

    def heal(self, *names: str) -> None:
        self.cuts -= set(names)

    def cut_off(self, machine: Machine) -> None:
        """A machine died: what was under way to it is lost; what it had said may still arrive."""
        self.wire = deque(
            (peer, direction, frames)
            for peer, direction, frames in self.wire
            if machine.name != (self._owner[peer][1] if direction == "up" else self._owner[peer][0].name)
        )

    def carry(self, sender: Machine, send: Send) -> None:
        frames = hop.seal(send.message)
        peer = sender.peer if send.channel == "up" else send.peer
        owner = self._owner.get(peer)
        if owner is None or peer in self.deaf or owner[0].name in self.cuts:
            return
        self.wire.append((peer, send.channel, frames))

    def lose(self, *indices: int) -> list[Any]:
        """Multiparts that are under way never arrive; returns them."""
        lost = [self.wire[index] for index in indices]
        self.wire = deque(item for index, item in enumerate(self.wire) if index not in indices)
        return [hop.decode(frames) for _, _, frames in lost]

    def deliver(self, index: int = 0) -> None:
        """Hand over one multipart."""
        self.wire.rotate(-index)
        peer, direction, frames = self.wire.popleft()
        self.wire.rotate(index)
        child, endpoint = self._owner[peer]
        if direction == "up":
            if endpoint in self.machines:
                self.hand(self.machines[endpoint], "down", peer, frames)
        elif child.peer == peer:
            self.hand(child, "up", b"", frames)

    def hand(self, machine: Machine, channel: str, peer: bytes, frames: Frames) -> None:
        """Let a machine hear frames."""
        if not machine.is_up:
            return
        try:
            message = hop.decode(self.weather(frames))
        except PeerError as error:
            machine.core.command(Garbled(channel, peer, error.code), self.now)
        else:
            try:
                machine.core.receive(message, Source(channel, peer), self.now)
            except PeerError as error:
                machine.told.append(error)
        machine.do()

    # Time

    def settle(self) -> None:
        """Deliver and obey everything that there is at this instant."""
        for _ in range(STEPS_MAX):
            if not self.step():
                return
        raise AssertionError("does not settle")

    def step(self) -> bool:
        """One message, one answer of a disk, or one wake-up; False if there is nothing to do now."""
        for machine in self.machines.values():
            if machine.is_up and machine.orders and machine.may_fetch:
                machine.answer(machine.orders.popleft())
                return True
        if self.wire:
            self.deliver()
            return True
        for machine in self.machines.values():
            due = machine.core.deadline() if machine.is_up else None
            if due is not None and due <= self.now.mono:
                machine.core.wake(self.now)
                machine.do()
                return True
        return False

    def advance(self, seconds: float) -> None:
        """Let time pass, from deadline to deadline."""
        until = self.now.mono + round(seconds * SECOND)
        self.settle()
        while (due := self._next()) is not None and due <= until:
            self._set(max(due, self.now.mono))
            self.settle()
        self._set(until)

    def sleep(self, seconds: float) -> None:
        """Time passes and nobody is woken: the machines were suspended."""
        self._set(self.now.mono + round(seconds * SECOND))

    def _set(self, mono: int) -> None:
        self.now = Now(mono, WALL + mono)

    def _next(self) -> int | None:
        dues = [due for m in self.machines.values() if m.is_up and (due := m.core.deadline()) is not None]
        return min(dues, default=None)

    def stop(self, name: str) -> None:
        self.machines[name].order(Stop())
        self.machines[name].is_up = False


def spans(records: Iterable[StreamRecord]) -> dict[tuple[bytes, int | None], list[tuple[int, int]]]:
    """What records hold, by origin, in the order in which they stand."""
    found: dict[tuple[bytes, int | None], list[tuple[int, int]]] = {}
    for record in records:
        found.setdefault((record.origin, record.era), []).append((record.sequence, record.last))
    return found


def joined(pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Consecutive pieces put together; what is out of order or doubled stays visible."""
    whole: list[tuple[int, int]] = []
    for first, last in pieces:
        if whole and whole[-1][1] + 1 == first:
            whole[-1] = (whole[-1][0], last)
        else:
            whole.append((first, last))
    return whole
