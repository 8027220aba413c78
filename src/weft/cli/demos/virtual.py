"""A row of the walk-through in virtual time: three simulated nodes, and the programs beside them (DEM-006).

The programs speak the clients' protocol, in the order in which they were started. Time is virtual, so every count is
exact, and a row takes no real time.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from weft.base.effects import Source
from weft.base.errors import OurFault
from weft.cli.demos import report
from weft.cli.demos.programs import (
    PARENTS_OF,
    REWRITES,
    Aggregator,
    Detector,
    Drop,
    Heard,
    Hold,
    Link,
    Pass,
    Program,
    Responder,
    Rewriter,
)
from weft.cli.demos.rows import AGGREGATOR, DETECTOR, FIRST_PID, OK, PARENTS, RESPONDER, REWRITER, Act, Outcome, Row
from weft.sim.tree import CLIENTS, Tree
from weft.wire import clients

BEAT_MS: Final = 1_000
SILENCE_MS: Final = 10_000  # longer than a node waits for a client that says nothing
Make = Callable[[Act, clients.Welcome, int], Program]
MAKE: Final[dict[str, Make]] = {
    DETECTOR: lambda act, welcome, _: Detector(welcome.name, act.sends),
    RESPONDER: lambda act, _, __: Responder(act.on, access=act.access, hold=act.hold),
    AGGREGATOR: lambda act, welcome, _: Aggregator(welcome.name, outbound=act.is_outbound),
    REWRITER: lambda _, welcome, pid: Rewriter(welcome.addr, pid),
}


class Guest:
    """One program beside one simulated node."""

    program: Program

    def __init__(self, tree: Tree, act: Act, number: int, pid: int) -> None:
        self.tree, self.act = tree, act
        self.seen: list[bytes] = []
        """Received payloads, in order."""
        self.statuses: Counter[str] = Counter()
        self.is_dead = False
        self._pid, self._tag = pid, 0
        self._peer = number.to_bytes(clients.CLIENT_ID_BYTES, "little")
        tree.attach(act.node, self._peer, self)
        name = f"{act.program}-{number}"
        tree.say(act.node, self._peer, clients.Hello(v=clients.VERSION, role="client", name=name, id=self._peer))

    def tick(self) -> None:
        """A period has passed."""
        for payload in self.program.tick():
            self._tag += 1
            item = clients.SendItem(tag=self._tag, type=report.TYPE, to=list(PARENTS_OF), fmt="xml")
            self.tree.say(self.act.node, self._peer, clients.Send([item], [payload]))

    def beat(self) -> None:
        """Send a heartbeat, if the program still runs."""
        if not self.is_dead:
            self.tree.say(self.act.node, self._peer, clients.Beat())

    def hear(self, message: clients.Answered) -> None:
        """Handle a message of the node, and answer it."""
        if self.is_dead:
            return
        match message:
            case clients.Welcome():
                self.program = MAKE[self.act.program](self.act, message, self._pid)
                for number, link in enumerate(self.program.links, 1):
                    self._post(_registration(number, link))
            case clients.Rec():
                self._take(message)
            case clients.Status():
                self.statuses.update(OK if item.ok else item.why for item in message.m)
            case clients.Refuse() | clients.Error() | clients.Bye():
                raise OurFault(f"{self.act} was answered {message}")
            case _:
                pass

    def _take(self, message: clients.Rec) -> None:
        link = self.program.links[message.reg - 1]
        for item, frames in clients.each_with_frames(message.m, message.frames):
            self.seen.append(frames[0])
            verdict = self.program.take(Heard(link.on, frames, item.own))
            if link.access == REWRITES and not isinstance(verdict, Hold):
                self._post(_answer(message.reg, item.id, verdict))

    def _post(self, message: clients.Asked) -> None:
        self.tree.post(self.act.node, Source(CLIENTS, self._peer), clients.encode(message))


def _registration(number: int, link: Link) -> clients.Reg:
    return clients.Reg(
        reg=number, dir=link.on, type=report.TYPE, at=link.at, access=link.access, timeout=link.timeout_ms
    )


def _answer(reg: int, number: int, verdict: Pass | Drop) -> clients.Asked:
    if isinstance(verdict, Drop):
        return clients.Drop(reg, [clients.GiveUp(id=number, why=verdict.why)])
    if verdict.payload is None:
        return clients.Next(reg, [clients.NextItem(id=number)], [])
    return clients.Next(reg, [clients.NextItem(id=number, n=1)], [verdict.payload])


def play(row: Row, ticks: int, period_ms: int) -> Outcome:
    """Play one row; returns its result."""
    tree = Tree(PARENTS)
    guests = list(_guests(tree, row))
    detectors, aggregators = (
        [guest for guest in guests if guest.act.program == program] for program in (DETECTOR, AGGREGATOR)
    )
    for _ in range(ticks):
        for guest in (*detectors, *aggregators):
            guest.tick()
        _pass(tree, guests, period_ms)
    for guest in guests:
        guest.is_dead = bool(guest.act.hold)
    _pass(tree, guests, SILENCE_MS)
    watched = [guest for guest in guests if guest.act.program == RESPONDER and not guest.is_dead]
    return Outcome(
        {guest.act.node: [report.label(payload) for payload in guest.seen] for guest in watched},
        {guest.act.node: dict(guest.statuses) for guest in detectors},
    )


def _guests(tree: Tree, row: Row) -> Iterator[Guest]:
    pid = FIRST_PID
    for number, act in enumerate(row.acts, 1):
        yield Guest(tree, act, number, pid)
        pid += act.program == REWRITER


def _pass(tree: Tree, guests: Iterable[Guest], span_ms: int) -> None:
    while span_ms > 0:
        tree.advance(min(span_ms, BEAT_MS))
        span_ms -= BEAT_MS
        for guest in guests:
            guest.beat()
