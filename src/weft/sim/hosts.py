"""Machines without a node: each runs one program, which is connected to nodes by separate cables.

A program is a core, or works like one: it receives bytes, asks to be woken, and says what it wants done. The host gives
it sockets, datagrams and a clock that drifts. A process that has ended receives nothing; a paused one receives it
later.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from weft.base.chance import Chance
from weft.base.now import MILLISECOND, Now
from weft.sim.clocks import Clocks
from weft.sim.links import routing_id, size_of
from weft.sim.plan import EPOCH_NS, HostPlan
from weft.sim.sockets import Flow, Plug, Router

if TYPE_CHECKING:
    from weft.sim.fabric import Fabric

LATE_NS: Final = 5 * MILLISECOND  # the longest delay of a wake-up (SIM-003)
PORT: Final = 7_000  # where a program serves, if it serves


class Program(Protocol):
    """A program on a host; `act` carries out what follows from its input."""

    def begin(self, now: Now) -> None:
        """The process has started."""

    def hear(self, channel: str, peer: bytes, frames: list[bytes], now: Now) -> None:
        """A message has arrived."""

    def wake(self, now: Now) -> None:
        """Time has passed."""

    def deadline(self) -> int | None:
        """When to be woken, monotonic ns."""

    def stop(self, now: Now) -> None:
        """Request an orderly end."""

    def act(self) -> None:
        """Carry out what follows."""

    def waits(self, core: Any) -> str:
        """What it waits for from the core that it talks to; empty: nothing."""

    def noted(self, what: str) -> None:
        """Record a change of its process: started, ended, paused, resumed, stopped."""


class Host:
    """One machine, and the program on it while it runs."""

    queue_messages = 0
    key: str | None = None
    """It has no key."""

    def __init__(self, plan: HostPlan, fabric: "Fabric", make: Callable[["Host"], Program]) -> None:
        self.plan, self.name, self.fabric = plan, plan.name, fabric
        self.world = fabric.world
        self.address = fabric.address_of(plan.name)
        self.chance = Chance(f"{fabric.plan.seed}/host/{plan.name}")
        self.clocks = Clocks(EPOCH_NS, 0, plan.drift_ppm)
        self._make = make
        self.program: Program | None = None
        self.starts = 0
        self.is_gone = False
        """Ended for good: nobody starts it again."""
        self.is_paused = self.is_ill = False
        """Whether its process is paused, and whether it refuses every check."""
        self._inbox: list[tuple[str, bytes, list[bytes], Flow | None]] = []
        self._timer_at: int | None = None
        self._routers: list[Router] = []

    # The process

    @property
    def is_listening(self) -> bool:
        return self.program is not None

    @property
    def is_well(self) -> bool:
        """Whether its port accepts connections; for a paused process the kernel still accepts them."""
        return self.is_listening and not self.is_ill

    @property
    def now(self) -> Now:
        return self.clocks.now(self.world.at)

    def start(self) -> None:
        """Start a process, if none runs."""
        if self.program is not None or self.is_gone:
            return
        self.clocks.boot(self.world.at, self.chance.randint(0, 1 << 50))
        self.starts += 1
        program = self.program = self._make(self)
        self._note(program, "started")
        self._turn(program.begin)

    def kill(self, *, is_loud: bool) -> None:
        """End the process at once."""
        program = self.program
        if program is None:
            return
        for router in self._routers:
            self.fabric.streams.unbind(router, is_loud=is_loud)
        self.fabric.streams.leave(self.name, is_loud=is_loud)
        self._routers.clear()
        self._inbox.clear()
        self.program = self._timer_at = None
        self.is_paused = False
        self._note(program, "ended")

    def stop(self) -> None:
        """Ask it to end: it says goodbye, and ends."""
        program = self.program
        if program is not None and not self.is_paused:
            self._note(program, "stopped")
            self._turn(program.stop)
            self.kill(is_loud=True)

    def pause(self) -> None:
        """Pause the process."""
        if self.program is not None and not self.is_paused:
            self.is_paused = True
            self._note(self.program, "paused")

    def resume(self) -> None:
        """Resume the process: it reads what has arrived meanwhile, or the clock first."""
        if self.program is None or not self.is_paused:
            return
        self.is_paused = False
        self._note(self.program, "resumed")
        if self.chance.getrandbits(1):
            self._turn(self._wake)
        inbox, self._inbox = self._inbox, []
        for channel, peer, frames, flow in inbox:
            self.hear(channel, peer, frames, flow)
        self._turn(self._wake)

    def _note(self, program: Program, what: str) -> None:
        """Record a change of the process in the history and in the story."""
        program.noted(what)
        listener = self.fabric.recorder.listener
        if listener is not None:
            listener(
                self.world.at, self.name, "host", f"the {self.plan.runs} {what.replace('stopped', 'says goodbye')}"
            )

    def waits(self, core: Any, listed: set[str]) -> str:
        """What it waits for from the core that it speaks with; empty if nothing."""
        if self.program is None:
            return "which is gone and listed" if self.name in listed else ""
        return self.program.waits(core)

    # Turns

    def hear(self, channel: str, peer: bytes, frames: list[bytes], flow: Flow | None) -> None:
        """A message has reached a socket."""
        if self.is_paused:
            self._inbox.append((channel, peer, frames, flow))
        elif self.program is not None:
            if flow is not None:
                flow.read(size_of(frames))
            self._turn(partial(self.program.hear, channel, peer, frames))

    def order(self, do: Callable[[Now], Any]) -> None:
        """Let the program do something now, unless it is paused."""
        if not self.is_paused:
            self._turn(do)

    def _turn(self, do: Callable[[Now], Any]) -> None:
        program = self.program
        if program is None:
            return
        now = self.now
        do(now)
        program.act()
        self._arm(program, now)

    def _wake(self, now: Now) -> None:
        if self.program is not None:
            self.program.wake(now)

    def _arm(self, program: Program, now: Now) -> None:
        due = program.deadline()
        if due is None:
            return
        late_ns = self.chance.getrandbits(20) * LATE_NS >> 20
        at = max(self.clocks.true_at(max(due, now.mono)), self.world.at) + late_ns
        if self._timer_at is None or at < self._timer_at:
            self._timer_at = at
            self.world.call_at(at, self._rung, (self.starts, at))

    def _rung(self, what: tuple[int, int]) -> None:
        starts, at = what
        if starts == self.starts and at == self._timer_at:
            self._timer_at = None
            if not self.is_paused:
                self._turn(self._wake)

    # Sockets

    def serve(self, channel: str) -> None:
        """Listen at its own port."""
        self._routers.append(self.fabric.streams.bind(self, f"{self.address}:{PORT}", channel))

    def answer(self, peer: bytes, frames: list[bytes]) -> None:
        """Answer a client of that port."""
        if self._routers:
            self.fabric.streams.send_down(self._routers[0], peer, frames)

    def connect(self, channel: str, endpoint: str, tag: bytes, topics: tuple[bytes, ...] = ()) -> None:
        """Open a new socket in place of the previous one."""
        self.fabric.streams.disconnect(self.name, channel)
        self.fabric.streams.connect(self, Plug(endpoint, routing_id(self.chance), channel, tag, topics))

    def disconnect(self, channel: str) -> None:
        """Close it."""
        self.fabric.streams.disconnect(self.name, channel)

    def say(self, channel: str, frames: list[bytes]) -> None:
        """Send through it."""
        self.fabric.streams.send_up(self.name, frames, channel)

    def note(self, kind: str, what: str, value: list[Any]) -> None:
        """A fact for the checkers."""
        self.fabric.recorder.note(self.name, self.starts, kind, what, value)
