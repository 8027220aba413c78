"""Simulated programs on a machine: clients of its node's chains, some of them badly behaved.

They speak the messages of `wire.clients` with the node on their own machine. There is no cable between them, so nothing
is lost on the way; but a process that has ended receives nothing, a paused one answers nothing, and a power failure
ends all of them. A program that hears nothing for too long reconnects through a fresh socket: with the same client id,
the same registrations, and the same tags for what has no status yet (CLI-022, CHN-042). One that has died comes back as
another client.
"""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from weft.base.chance import Chance
from weft.base.now import MILLISECOND, SECOND
from weft.cores.chains.messages import ProcessEnded
from weft.sim.links import routing_id
from weft.sim.plan import Load, ProgramPlan, Stand
from weft.wire import clients

if TYPE_CHECKING:
    from weft.sim.machine import Machine

CHANNEL: Final = "clients"
LOCAL_NS: Final = 100_000  # from one process to another on the same machine
TICK_NS: Final = SECOND // 4  # how often a program looks at the clock
DEAD_NS: Final = 5 * SECOND
BEAT_NS: Final = SECOND
BOOT_NS: Final = 2 * SECOND  # after the power is back
ANSWER_NS: Final = 50 * MILLISECOND
LATE_NS: Final = 3 * SECOND
OPEN_MAX: Final = 200  # sends without a status that one program keeps
BATCH: Final = 32
BANDS: Final = {0: "after-all", -1: "before-all"}
FORGED: Final = b"!"
"""Appended to payloads that no node may ever take: an answer for a message that its program does not hold."""
FAR: Final = 1_000_000
NOTICE_NS: Final = 10 * MILLISECOND
PROCESS_MIN, PROCESS_MAX = 1_000, 4_000_000


class Asked(NamedTuple):
    """A message that a program was handed and has to answer."""

    stand: Stand
    item: clients.RecItem
    frames: tuple[bytes, ...]


class Program:
    """One program."""

    def __init__(self, plan: ProgramPlan, machine: "Machine") -> None:
        self.plan, self.machine, self.world = plan, machine, machine.world
        self.name = f"{machine.name}.{plan.name}"
        self.chance = Chance(f"{machine.fabric.plan.seed}/program/{self.name}")
        self.is_alive = self.is_hung = self.is_standing = False
        self.has_ended = False
        """It was ended on purpose, and is not started when the power is back."""
        self.id = self.peer = b""
        self.process = 0
        self.open: dict[int, tuple[clients.SendItem, bytes]] = {}
        """Sends without a status."""
        self.asked: dict[tuple[int, int], Asked] = {}
        """Messages that it was handed in this session and has not answered, by registration and id."""
        self._life = self._number = self._tag = 0
        self._has_credit = True
        self._heard_at = self._said_at = self._knocked_at = 0
        self._unread: deque[list[bytes]] = deque()
        self._in_flight = 0

    # Life

    def begin(self) -> None:
        """A process of it starts, as a new client."""
        if self.is_alive:
            return
        self._life += 1
        self.id = self.chance.randbytes(clients.CLIENT_ID_BYTES)
        self.is_alive, self.is_hung, self.has_ended = True, False, False
        self.process = self.chance.randint(PROCESS_MIN, PROCESS_MAX)
        self._later(self.chance.randint(0, TICK_NS), self._tick)
        for load in self.plan.loads:
            self._later(self.chance.randint(0, load.rate_ns), partial(self._produce, load))
        self._knock()

    def end(self) -> None:
        """It dies without a goodbye. The kernel may tell the node, after everything that it sent (CLI-005)."""
        if self.is_alive and self.chance.getrandbits(1):
            self.world.call_at(self.world.at + NOTICE_NS, self._tell_end, (self.machine.starts, self.process))
        self.is_alive = False
        self._fall()
        self.open.clear()

    def _tell_end(self, what: tuple[int, int]) -> None:
        starts, process = what
        machine = self.machine
        if machine.node is None or machine.starts != starts:
            return
        if machine.is_busy or machine.is_paused:
            self.world.call_at(self.world.at + NOTICE_NS, self._tell_end, what)
            return
        machine.fabric.recorder.meet("a program of whose death the kernel tells")
        machine.obey("chains", ProcessEnded(process))

    def hang(self) -> None:
        """It is paused."""
        self.is_hung = True

    def go_on(self) -> None:
        """It is resumed, and reads what has arrived meanwhile."""
        if self.is_hung:
            self.is_hung = False
            self._read()

    def calm(self) -> None:
        """The faults are over: it reconnects once more, and behaves well from now on."""
        self.go_on()
        if self.is_alive:
            self._knock()
        self.begin()

    def waits(self) -> str:
        """What it waits for."""
        if self.open or self.asked:
            return f"{self.name}: {len(self.open)} statuses to come, {len(self.asked)} answers to give"
        return ""

    def _later(self, span: int, do: Callable[[], None]) -> None:
        self.world.call_at(self.world.at + span, self._if_same, (self._life, do))

    def _if_same(self, what: tuple[int, Callable[[], None]]) -> None:
        life, do = what
        if self.is_alive and life == self._life:
            do()

    def _note(self, kind: str, what: str, value: list[Any]) -> None:
        machine = self.machine
        machine.fabric.recorder.note(machine.name, machine.era, kind, what, value)

    # The session

    def _tick(self) -> None:
        self._later(TICK_NS, self._tick)
        if self.is_hung:
            return
        at = self.world.at
        if self.is_standing and at - self._heard_at > DEAD_NS:
            self.machine.fabric.recorder.meet("a program that hears nothing")
            self._fall()
        if not self.is_standing and at - self._knocked_at >= SECOND:
            self._knock()
        elif self.is_standing and at - self._said_at >= BEAT_NS:
            self._say(clients.Beat())

    def _knock(self) -> None:
        """Send a hello through a fresh socket."""
        self._fall()
        self.peer = routing_id(self.chance)
        self.machine.programs.kinds[self.peer] = f"localhost:0:0:{self.process}"
        self._knocked_at = self.world.at
        self._say(clients.Hello(v=clients.VERSION, role="client", name=self.plan.name, id=self.id))

    def _fall(self) -> None:
        self.is_standing, self.peer = False, b""
        self.asked.clear()
        self._unread.clear()
        self._in_flight = 0

    def lose_node(self) -> None:
        """The node's process has ended, and the kernel says so."""
        if self.is_alive and self.chance.getrandbits(1):
            self._fall()

    def _say(self, message: clients.Asked) -> None:
        self._said_at = self.world.at
        machine = self.machine
        what = machine.starts, self.peer, clients.encode(message)
        self.world.call_at(self.world.at + LOCAL_NS, self._arrive, what)

    def _arrive(self, what: tuple[int, bytes, list[bytes]]) -> None:
        starts, peer, frames = what
        if self.machine.node is not None and starts == self.machine.starts:
            self.machine.hear(CHANNEL, peer, frames, None)

    # What the node sends

    def take(self, frames: list[bytes]) -> bool:
        """Take a message of the node; False if its queue for this program is full."""
        if self._in_flight >= self.plan.queue:
            self.machine.fabric.recorder.meet("a program that does not read")
            return False
        self._in_flight += 1
        self.world.call_at(self.world.at + LOCAL_NS, self._reach, (self.peer, frames))
        return True

    def _reach(self, what: tuple[bytes, list[bytes]]) -> None:
        peer, frames = what
        if peer == self.peer and self.is_alive:
            self._unread.append(frames)
            self._read()

    def _read(self) -> None:
        while self._unread and not self.is_hung:
            self._in_flight -= 1
            message = clients.decode_answered(self._unread.popleft())
            self._heard_at = self.world.at
            hear = HEAR.get(type(message))
            if hear is not None:
                hear(self, message)

    def _welcome(self, _: clients.Welcome) -> None:
        self.is_standing, self._has_credit = True, True
        for number, stand in enumerate(self.plan.stands, 1):
            self._say(_reg(number, stand))
        self._resend()

    def _stands(self, done: clients.Done) -> None:
        """It is registered; for a reader that confirms, the node has that on disk."""
        stand = self.plan.stands[done.reg - 1]
        if stand.access == "confirm":
            self._note("ok", "standing", [self.plan.name, stand.type])

    def _resend(self) -> None:
        again = list(self.open.values())
        if again:
            self.machine.fabric.recorder.meet("sends repeated with their tags")
        for begin in range(0, len(again), BATCH):
            part = again[begin : begin + BATCH]
            self._say(clients.Send([item for item, _ in part], [frame for _, frame in part]))

    def _refused(self, _: clients.Refuse | clients.Bye) -> None:
        self._fall()

    def _credit(self, message: clients.Credit) -> None:
        self._has_credit = message.credit > 0

    def _statuses(self, message: clients.Status) -> None:
        for item in message.m:
            sent = self.open.pop(item.tag, None)
            text = shown(sent[1]) if sent is not None else ""
            session = f"{self.id.hex()} {self.peer.hex()}"
            self._note("ok", "status", [self.name, session, item.tag, item.ok, item.why, text])

    # Sending

    def _produce(self, load: Load) -> None:
        if self.machine.programs.is_resting:
            return
        self._later(self.chance.randint(load.rate_ns // 2, load.rate_ns * 3 // 2), partial(self._produce, load))
        if self.is_hung or len(self.open) >= OPEN_MAX or not self._has_credit:
            return
        made = [self._send(load) for _ in range(self.chance.randint(1, load.burst))]
        if self.is_standing:
            self._say(clients.Send([item for item, _ in made], [frame for _, frame in made]))

    def _send(self, load: Load) -> tuple[clients.SendItem, bytes]:
        self._tag += 1
        self._number += 1
        payload = f"{self.name}/{self._number}".encode()
        item = clients.SendItem(tag=self._tag, type=load.type, to=[load.kind], want=load.want, keep=load.keep)
        is_promised = load.want != "none" and load.keep == "disk"
        if load.want != "none":
            self.open[self._tag] = item, payload
        session = f"{self.id.hex()} {self.peer.hex()}"
        self._note("invoke", "send", [self.name, session, self._tag, load.type, shown(payload), is_promised])
        return item, payload

    # Answering

    def _records(self, message: clients.Rec) -> None:
        stand = self.plan.stands[message.reg - 1]
        for item, frames in clients.each_with_frames(message.m, message.frames):
            origin = self.machine.fabric.origin_name(item.mid[0], item.mid[1])
            what = [self.name, self.id.hex(), message.reg, origin, item.mid[2], item.type, item.re]
            self._note("ok", "offered", what)
            if item.lost:
                self.machine.fabric.recorder.meet("copies lost")
            if stand.access != "ro":
                self.asked[message.reg, item.id] = Asked(stand, item, frames)
                self._plan_answer(message.reg, item.id, stand)

    def _plan_answer(self, reg: int, number: int, stand: Stand) -> None:
        habit = self._habit()
        delay = self.chance.randint(0, ANSWER_NS)
        if habit == "late":
            delay = stand.timeout_ms * MILLISECOND + self.chance.randint(-LATE_NS // 10, LATE_NS)
        if habit != "never":
            self._later(max(0, delay), partial(self._answer, self.peer, reg, number, habit))

    def _habit(self) -> str:
        drawn = self.chance.getrandbits(16)
        if self.machine.fabric.is_stormy:
            for habit, share in self.plan.habits:
                if drawn < share:
                    return habit
                drawn -= share
        return "pass"

    def _answer(self, peer: bytes, reg: int, number: int, habit: str) -> None:  # tidy: who, what, and how
        asked = self.asked.get((reg, number))
        if peer != self.peer or asked is None:
            return
        if self.is_hung:
            self._later(TICK_NS, partial(self._answer, peer, reg, number, habit))
            return
        del self.asked[reg, number]
        self.machine.fabric.recorder.meet(f"an answer of habit {habit}")
        for message in ANSWERS[habit](self, reg, asked):
            self._say(message)

    def _right(self, reg: int, message: Asked) -> clients.Asked:
        """The answer of a program that behaves well."""
        if message.stand.access == "confirm":
            mid = message.item.mid
            self._note("ok", "confirmed", [self.plan.name, self.machine.fabric.origin_name(mid[0], mid[1]), mid[2]])
            return clients.Conf(reg, [message.item.id])
        if not self.plan.marks:
            return clients.Next(reg, [clients.NextItem(id=message.item.id)], [])
        frame = message.frames[0] + b"+" + self.plan.name.encode()
        return clients.Next(reg, [clients.NextItem(id=message.item.id, n=1)], [frame])

    def _pass(self, reg: int, message: Asked) -> Iterator[clients.Asked]:
        yield self._right(reg, message)

    def _twice(self, reg: int, message: Asked) -> Iterator[clients.Asked]:
        yield self._right(reg, message)
        yield _forged(reg, message.item.id, message)

    def _wrong_id(self, reg: int, message: Asked) -> Iterator[clients.Asked]:
        yield _forged(reg, message.item.id + FAR, message)
        yield self._right(reg, message)

    def _wrong_reg(self, reg: int, message: Asked) -> Iterator[clients.Asked]:
        yield _forged(len(self.plan.stands) + 7, message.item.id, message)
        yield self._right(reg, message)

    def _not_mine(self, reg: int, message: Asked) -> Iterator[clients.Asked]:
        """Answer for a message that another program of this machine holds, on a chain where this one has no link."""
        for other in self.machine.programs:
            for theirs in list(other.asked.values()):
                if theirs.stand.direction != message.stand.direction:
                    yield _forged(reg, theirs.item.id, theirs)
        yield self._right(reg, message)

    def _drop(self, reg: int, message: Asked) -> Iterator[clients.Asked]:
        item = message.item
        origin = self.machine.fabric.origin_name(item.mid[0], item.mid[1])
        self._note("invoke", "drop", [self.name, origin, item.mid[2]])
        yield clients.Drop(reg, [clients.GiveUp(id=item.id)])
        if message.stand.access == "confirm":
            yield self._right(reg, message)  # a reader cannot delete

    def _fail(self, reg: int, message: Asked) -> Iterator[clients.Asked]:
        yield clients.Fail(reg, [clients.GiveUp(id=message.item.id, why="a fault of the plan")])

    def _die(self, *_: Any) -> Iterator[clients.Asked]:
        """It dies holding the message, and starts again."""
        self.end()
        self.world.call_at(self.world.at + self.chance.randint(0, 20 * SECOND), self._revive)
        yield from ()

    def _revive(self, _: None) -> None:
        if self.machine.node is not None:
            self.begin()


def _forged(reg: int, number: int, asked: Asked) -> clients.Next:
    return clients.Next(reg, [clients.NextItem(id=number, n=1)], [asked.frames[0] + FORGED])


def _reg(number: int, stand: Stand) -> clients.Reg:
    confirms = stand.access == "confirm"
    return clients.Reg(
        reg=number,
        dir=stand.direction,
        type=stand.type,
        at=BANDS.get(stand.at, stand.at),
        access="ro" if confirms else stand.access,
        fail=stand.fail or None,
        timeout=stand.timeout_ms,
        window=stand.window,
        confirm=confirms,
        noself=stand.is_noself,
        ordered=stand.is_ordered,
        away=stand.away_ms,
    )


def shown(payload: bytes) -> str:
    """A payload of programs as text."""
    return payload.decode("ascii", "replace")


HEAR: Final[dict[type, Callable[[Program, Any], None]]] = {
    clients.Welcome: Program._welcome,
    clients.Done: Program._stands,
    clients.Refuse: Program._refused,
    clients.Bye: Program._refused,
    clients.Credit: Program._credit,
    clients.Status: Program._statuses,
    clients.Rec: Program._records,
}

ANSWERS: Final[dict[str, Callable[[Program, int, Asked], Iterator[clients.Asked]]]] = {
    "pass": Program._pass,
    "late": Program._pass,
    "twice": Program._twice,
    "wrong-id": Program._wrong_id,
    "wrong-reg": Program._wrong_reg,
    "not-mine": Program._not_mine,
    "drop": Program._drop,
    "fail": Program._fail,
    "die": Program._die,
}
"""What a program does with a message; `never`: nothing."""
HABITS: Final = (*ANSWERS, "never")


class Programs:
    """All programs of one machine."""

    def __init__(self, machine: "Machine") -> None:
        self.machine = machine
        self._all = {plan.name: Program(plan, machine) for plan in machine.plan.programs}
        self.is_resting = False
        """No program sends any more."""
        self.kinds: dict[bytes, str] = {}
        """What the kernel says of each socket's other end (CHN-080)."""

    def __iter__(self) -> Iterator[Program]:
        return iter(self._all.values())

    def __getitem__(self, name: str) -> Program:
        return self._all[name]

    def deliver(self, peer: bytes, frames: list[bytes]) -> bool:
        """The node says something to a peer; False: nobody is there, or its queue is full."""
        for program in self:
            if program.peer == peer and program.is_alive:
                is_taken = program.take(frames)
                if is_taken:
                    self.machine.fabric.mailbook.handed(self.machine, peer, frames)
                return is_taken
        return False

    def note_start(self) -> None:
        """The node's process has begun: programs that a power failure ended start, too."""
        for program in self:
            if not program.is_alive and not program.has_ended:
                self.machine.later(program.chance.randint(0, BOOT_NS), program.begin)

    def note_end(self, *, is_loud: bool) -> None:
        """The node's process has ended; with its kernel, all programs have."""
        for program in self:
            if is_loud:
                program.lose_node()
            else:
                program.end()

    def calm(self) -> None:
        """All faults are over."""
        for program in self:
            program.calm()

    def waits(self) -> str:
        """What somebody waits for; empty if nothing."""
        return next((text for program in self if (text := program.waits())), "")
