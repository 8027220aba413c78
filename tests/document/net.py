"""Sessions of any number of machines in virtual time: lossy links, skewed clocks, cuts, crashes and disks.

What must hold always is looked at with every effect (`witness`): an own operation leaves only behind its wall, nothing is
forwarded or claimed beyond a gap, what is answered to a program is durable, no link overflows. `is_mesh`, `is_equal` and
`judge` say whether all have the same in the end.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from tests.document.witness import Life
from weft.base.chance import Chance
from weft.base.effects import Disconnect, Perform, Persist, Reply, Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, SECOND, Now
from weft.base.records import Entry, Record, StreamRecord
from weft.cores.document import messages
from weft.cores.document.limits import DURABLE_NS
from weft.cores.document.messages import SessionSettings, Timing
from weft.cores.document.session import Session
from weft.wire.document import frames
from weft.wire.document.clients import Answer, Asked
from weft.wire.document.messages import Envelope, Gsip, operations_of

EPOCH_NS = 1_763_800_000 * SECOND
STEPS_MAX = 2_000_000
LINK_MAX = 3_000
"""Messages on a link that have not arrived; one more, and it is full (PEE-002)."""


class Weather(NamedTuple):
    """What the network does to every message."""

    loss: float = 0.0
    double: float = 0.0
    least_ns: int = MILLISECOND
    most_ns: int = 5 * MILLISECOND
    in_order: bool = True
    """Whether what is said first comes first; TCP does that, as long as a connection lasts."""


CALM: Final = Weather()


class Machine:
    """One node of the session: what runs, its clocks, its disk."""

    def __init__(self, name: str, number: int, skew_ns: int = 0) -> None:
        self.name, self.endpoint = name, f"10.0.{number // 250}.{number % 250 + 1}:50000"
        self.skew_ns = skew_ns
        self.session: Session | None = None
        self.uuid = b""
        """Under which its links speak."""
        self.life: Life | None = None
        self.disk: list[Record] = []
        self.late: list[tuple[int, Record]] = []
        """Records that are durable from an instant on."""
        self.kept: set[tuple[str, int]] = set()
        """Operations that its disk has, by source and number."""
        self.acked: list[tuple[bytes, int]] = []
        """Own operations that a program was told of."""
        self.answers: list[Answer] = []
        self.told: list[Any] = []
        self.starts = 0

    @property
    def up(self) -> Session:
        assert self.session is not None, f"{self.name} is down"
        return self.session


class Net:
    """The world."""

    def __init__(self, seed: str | int, *, schema: str = "derby", weather: Weather = CALM) -> None:
        self.chance, self.schema, self.weather = Chance(f"{seed}/net"), schema, weather
        self.now_ns = 0
        self.machines: list[Machine] = []
        self._places: dict[str, Machine] = {}
        self.cut: set[tuple[str, str]] = set()
        """Ordered pairs of endpoints between which nothing passes."""
        self.said: Counter[str] = Counter()
        """Messages, by type, that anybody has said to somebody who is there."""
        self.bytes = 0
        """Of operations in them."""
        self.gsip_at = 0
        """When the last GSIP was said."""
        self.timing = Timing()
        self.uuids: dict[str, bytes] = {}
        self.full: set[tuple[str, str]] = set()
        """Links whose queue is full."""
        self.faults: list[str] = []
        self.flip: Callable[[list[bytes]], list[bytes]] = lambda said: said
        """What the cables make of the frames of a message."""
        self.refused: Counter[str] = Counter()
        """Messages that nobody could read, by code."""
        self.ears: dict[str, Callable[[Envelope], None]] = {}
        """Whoever else listens at an endpoint."""
        self._flying: Counter[tuple[str, str]] = Counter()
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0
        self._last_at: dict[tuple[str, str], int] = {}

    # Machines

    def machine(
        self, name: str = "", *, peers: Iterable[Machine] = (), skew_ns: int = 0, start: bool = True
    ) -> Machine:
        made = Machine(name or f"m{len(self.machines)}", len(self.machines), skew_ns)
        self.machines.append(made)
        self._places[made.endpoint] = made
        if start:
            self.start(made, peers)
        return made

    def start(self, machine: Machine, peers: Iterable[Machine] = (), uuid: bytes | None = None) -> None:
        """A start: what the disk has is taken back, under a new UUID unless an old one is forced."""
        machine.starts += 1
        settings = SessionSettings(
            name="friday",
            schema=self.schema,
            uuid=uuid or self.fresh_uuid(),
            listen=machine.endpoint,
            peers=tuple(peer.endpoint for peer in peers),
            mdns=False,
            timing=self.timing,
        )
        machine.session = session = Session(settings)
        session.restore(_numbered(machine.disk), self.at(machine))
        machine.life = Life(machine, session, self.faults)
        self._take(machine)
        self._order(machine, messages.Begin())

    def fresh_uuid(self) -> bytes:
        drawn = UUID(int=self.chance.getrandbits(128), version=4).bytes
        return drawn if drawn[0] else self.fresh_uuid()

    def crash(self, machine: Machine, disk: str = "kept") -> None:
        """`kept`: all that was durable; `torn`: without the last of that; `lost`: nothing."""
        machine.session = None
        self._settle_disk(machine)
        machine.late.clear()
        if disk == "torn" and machine.disk and not machine.acked:
            machine.disk.pop()
        if disk == "lost":
            machine.disk.clear()

    def stop(self, machine: Machine) -> None:
        """In order: goodbye, and everything is on disk."""
        self._order(machine, messages.Stop())
        self._keep(machine, [record for _, record in machine.late])
        machine.late.clear()
        machine.session = None

    def hold_back(self, machine: Machine, *, is_full: bool) -> None:
        """The disk is full, or has room again."""
        self._order(machine, messages.HoldBack(is_full))

    def condense(self, machine: Machine) -> None:
        """A snapshot in the place of all records so far; the journal flushes what is late first."""
        self._keep(machine, [record for _, record in machine.late])
        machine.late.clear()
        machine.disk = list(machine.up.condense())

    def restored(self, machine: Machine) -> Session:
        """What a start would find on its disk, once all that is late is there."""
        session = Session(machine.up.context.settings)
        records = [*machine.disk, *(record for _, record in machine.late)]
        session.restore(_numbered(records), self.at(machine))
        return session

    def at(self, machine: Machine) -> Now:
        return Now(self.now_ns, EPOCH_NS + self.now_ns + machine.skew_ns)

    # Programs

    def ask(self, machine: Machine, verb: str, /, **args: Any) -> Answer:
        """A program of that machine asks; its first answer."""
        before = len(machine.answers)
        machine.up.receive(Asked(b"q", verb, "friday", args), Source("doc-clients", b"program"), self.at(machine))
        self._take(machine)
        answer = machine.answers[before]
        if verb in ("edit", "resolve") and not answer.code:
            machine.acked.append((UUID(answer.body["source"]).bytes, answer.body["sequence"]))
        return answer

    def edit(self, machine: Machine, verb: str, reference: dict[str, str], **args: Any) -> Answer:
        return self.ask(machine, "edit", verb=verb, reference=reference, **args)

    # The network

    def part(self, one: Iterable[Machine], other: Iterable[Machine], *, one_way: bool = False) -> None:
        """Nothing passes between the two groups."""
        other = list(other)
        for a in one:
            for b in other:
                self.cut.add((a.endpoint, b.endpoint))
                if not one_way:
                    self.cut.add((b.endpoint, a.endpoint))

    def heal(self) -> None:
        self.cut.clear()

    def _post(self, machine: Machine, endpoint: str, message: Any) -> None:
        assert machine.life is not None
        machine.life.say(endpoint, message)
        link = (machine.endpoint, endpoint)
        if self._at_endpoint(endpoint) is not None:
            self.said[type(message).__name__] += 1
        if isinstance(message, Gsip):
            self.gsip_at = self.now_ns
        if link in self.full or self._flying[link] >= LINK_MAX:
            if link not in self.full:
                self.faults.append(f"{machine.name} said more to {endpoint} than its link takes")
            order = messages.LinkFull("friday", endpoint)
            self.later(0, lambda: self._order(machine, order))
            return
        self.say(machine.uuid, *link, message)

    def say(self, sender: bytes, source: str, target: str, message: Any) -> None:
        """Somebody at `source` says it, as the network lets it; `source` need be no machine's."""
        self.bytes += sum(map(len, operations_of(message)))
        try:
            said = frames.decode([sender, *self.flip(frames.encode(message))])
        except PeerError as error:
            self.refused[error.code] += 1
            return
        for _ in range(1 + (self.chance.random() < self.weather.double)):
            if (source, target) in self.cut or self.chance.random() < self.weather.loss:
                continue
            self._carry(source, target, said)

    def _carry(self, source: str, target: str, said: Envelope) -> None:
        delay = self.chance.randint(self.weather.least_ns, self.weather.most_ns)
        due = self.now_ns + delay
        if self.weather.in_order:
            due = max(due, self._last_at.get((source, target), 0))
            self._last_at[source, target] = due
        self.fly(due, Flight(self, source, target, said))

    def fly(self, due: int, flight: "Flight") -> None:
        """It is under way until then."""
        self._flying[flight.source, flight.target] += 1
        self._at(due, flight)

    def lose(self, flight: "Flight") -> None:
        """It never arrives."""
        self._flying[flight.source, flight.target] -= 1

    def arrive(self, flight: "Flight") -> None:
        """It is there, unless the cable was cut meanwhile."""
        source, target, said = flight.source, flight.target, flight.said
        self.lose(flight)
        if (source, target) in self.cut:
            return
        if target in self.ears:
            self.ears[target](said)
        machine = self._at_endpoint(target)
        if machine is None or machine.session is None or machine.life is None:
            return
        for body in operations_of(said.message):
            machine.life.hear(body, self.now_ns)
        address = source.rpartition(":")[0]
        machine.session.receive(said, Source("document", said.sender, None, address), self.at(machine))
        self._take(machine)

    def _at_endpoint(self, endpoint: str) -> Machine | None:
        """Who lives there now."""
        machine = self._places.get(endpoint)
        return machine if machine is not None and machine.session is not None else None

    # Effects

    def _order(self, machine: Machine, order: Any) -> None:
        if machine.session is not None:
            machine.session.command(order, self.at(machine))
            self._take(machine)

    def _take(self, machine: Machine) -> None:
        self._settle_disk(machine)
        assert machine.life is not None
        machine.life.look_at_time()
        while effects := machine.up.effects():
            for effect in effects:
                self._do(machine, effect)
        due = machine.up.deadline()
        if due is not None:
            session = machine.up
            self._at(max(due, self.now_ns), lambda: self._wake(machine, session))

    def _do(self, machine: Machine, effect: Any) -> None:
        match effect:
            case Persist(records, within):
                assert machine.life is not None
                machine.life.keep(records, is_wall=not within)
                if within > DURABLE_NS:
                    self.faults.append(f"{machine.name} keeps after {within} ns")
                if within:
                    machine.late += [(self.now_ns + within, record) for record in records]
                else:
                    self._keep(machine, [*(record for _, record in machine.late), *records])
                    machine.late.clear()
            case Send("document", peer, message):
                self._post(machine, peer.decode(), message)
            case Send("doc-clients", _, answer):
                machine.answers.append(answer)
                self._look_at_answer(machine, answer)
            case Perform(messages.OpenSession(uuid=uuid)):
                machine.uuid = uuid
                self.later(0, lambda: self._order(machine, messages.Opened("friday", machine.endpoint)))
            case Tell(event):
                machine.told.append(event)
            case Disconnect() | Reply():
                pass
            case _:
                raise AssertionError(effect)

    def _look_at_answer(self, machine: Machine, answer: Answer) -> None:
        """An entry that is answered is on disk (GSP-005)."""
        if isinstance(answer.body, dict) and "outcome" in answer.body and "sequence" in answer.body:
            made = UUID(answer.body["source"]).hex, answer.body["sequence"]
            if made not in machine.kept:
                self.faults.append(f"{machine.name} answered {made[1]} before it was durable")

    def _wake(self, machine: Machine, session: Session) -> None:
        if machine.session is not session:
            return
        due = session.deadline()
        if due is not None and due <= self.now_ns:
            session.wake(self.at(machine))
            self._take(machine)

    def _settle_disk(self, machine: Machine) -> None:
        while machine.late and machine.late[0][0] <= self.now_ns:
            self._keep(machine, [machine.late.pop(0)[1]])

    def _keep(self, machine: Machine, records: Iterable[Record]) -> None:
        for record in records:
            machine.disk.append(record)
            if isinstance(record, StreamRecord):
                machine.kept.add((record.origin.rpartition("/")[2].replace("-", ""), record.sequence))

    # Time

    def later(self, after_ns: int, do: Callable[[], None]) -> None:
        self._at(self.now_ns + after_ns, do)

    def _at(self, due: int, do: Callable[[], None]) -> None:
        self._number += 1
        heappush(self._queue, (due, self._number, do))

    def pass_time(self, span_ns: int) -> None:
        ends_at = self.now_ns + span_ns
        steps = 0
        while self._queue and self._queue[0][0] <= ends_at:
            due, _, do = heappop(self._queue)
            self.now_ns = max(self.now_ns, due)
            do()
            steps += 1
            assert steps < STEPS_MAX, "the world does not come to rest"
        self.now_ns = ends_at

    def until(self, holds: Callable[[], bool], most_ns: int, step_ns: int = 100 * MILLISECOND) -> int:
        """Until something holds; after how long."""
        began = self.now_ns
        while not holds():
            assert self.now_ns - began < most_ns, f"not within {most_ns / SECOND} s; {self.standing()}"
            self.pass_time(step_ns)
        return self.now_ns - began

    # Judging

    @property
    def alive(self) -> list[Machine]:
        return [machine for machine in self.machines if machine.session is not None]

    def is_mesh(self) -> bool:
        """Whether everybody alive is ACTIVE with everybody else alive."""
        return all(len(machine.up.peers.active()) == len(self.alive) - 1 for machine in self.alive)

    def is_equal(self) -> bool:
        """Whether all that is alive has the same log and document."""
        states = {(machine.up.log.check, machine.up.engine.digest()) for machine in self.alive}
        return len(states) == 1 and not any(machine.up.engine.is_behind for machine in self.alive)

    def judge(self, lost: Iterable[Machine] = ()) -> None:
        """Every answered operation of machines whose disk survived is in every log; nothing was said too early."""
        assert [] == self.faults, self.faults[:5]
        gone = list(lost)
        for writer in self.machines:
            if writer in gone:
                continue
            for source, sequence in writer.acked:
                for machine in self.alive:
                    assert sequence <= machine.up.log.latest(source), (
                        f"{machine.name} lacks {sequence} of {writer.name} ({source.hex()[:8]}): {self.standing()}"
                    )

    def standing(self) -> str:
        return "; ".join(
            f"{machine.name} {machine.up.log.count} ops, check {machine.up.log.check:08x}, "
            f"{len(machine.up.peers.active())} active"
            for machine in self.alive
        )


class Flight(msgspec.Struct, frozen=True):
    """A message that is under way."""

    net: Net
    source: str
    target: str
    said: Envelope

    def __call__(self) -> None:
        self.net.arrive(self)


def _numbered(records: Iterable[Record]) -> list[Entry]:
    return list(enumerate(records, 1))
