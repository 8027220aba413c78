"""Replays a recording to the handlers of a program, without a node and without waiting (CLI-025).

The client is the one that programs use, with a file in place of its connection. The clock of the event loop jumps from
one recorded multipart to the next. So a handler that sleeps takes no time, and a night is replayed in seconds.
"""

import asyncio
import selectors
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, Final

import msgspec

from weft.base.errors import PeerError
from weft.base.now import SECOND
from weft.client.chain.client import ChainClient
from weft.client.chain.recording import HEARD, SAID, Row
from weft.wire import clients

WAIT_S: Final = 3_600.0
"""How long handlers may continue after the last multipart, in virtual time."""
Attach = Callable[[ChainClient], Awaitable[None] | None]
Answers = dict[tuple[int, int], tuple[str, Any, tuple[bytes, ...]]]
"""By the recording's registration number and the message's number: kind of answer, destination, frames."""


class Outcome(msgspec.Struct):
    """The result of a replay."""

    messages: int = 0
    """Messages given to handlers."""
    of_nobody: int = 0
    """Messages for whose registration there is no handler."""
    answers: Counter[str] = msgspec.field(default_factory=Counter)
    """Answers of the handlers: `next`, `drop`, `fail`, `conf`; and their sends, `send`."""
    same: int = 0
    """Answers that equal the recorded ones."""
    differences: list[tuple[int, int, str, str]] = []
    """Registration, message, recorded answer, given answer; only the first ones if there are many."""
    different: int = 0
    unreadable: int = 0


DIFFERENCES_MAX: Final = 100


class Stuck(Exception):
    """A handler waits for something that never comes in the recording."""


class _Selector(selectors.DefaultSelector):
    """A selector that never waits: it moves the virtual clock instead."""

    loop: "Skipping"

    def select(self, timeout: float | None = None) -> list[Any]:
        """Files that are ready; without any, the clock jumps by the timeout."""
        ready = super().select(0)
        if not ready and timeout is None:
            raise Stuck
        if not ready and timeout:
            self.loop.now_s += timeout
        return ready


class Skipping(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next event."""

    def __init__(self) -> None:
        self.now_s = 0.0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        """Seconds since the first multipart."""
        return self.now_s


class Replay(ChainClient):
    """A client whose node is a file."""

    def __init__(self) -> None:
        super().__init__("replay")
        self.outcome = Outcome()
        self.answers: Answers = {}
        self._regs: dict[int, int] = {}
        """By the number of a recorded registration: the number of the handler that gets its messages."""
        self._recorded_regs: dict[int, int] = {}
        """The reverse of `_regs`."""
        self._recorded: dict[int, clients.Reg] = {}
        self.recorded: Answers = {}

    async def play(self, rows: Iterable[Row], attach: Attach) -> Outcome:
        """Replay all rows, each at its recorded time by the virtual clock."""
        self._loop = asyncio.get_running_loop()
        self._standing, self._end = self._loop.create_future(), self._loop.create_future()
        self._connection: Any = self
        attached = attach(self)
        if attached is not None:
            await attached
        began: int | None = None
        for row in rows:
            began = row.at if began is None else began
            pause = (row.at - began) / SECOND - self._loop.time()
            if pause > 0:
                await asyncio.sleep(pause)
            self._feed(row)
            self.flush()
            if self.is_busy():
                await asyncio.sleep(0)
        await self._settle_down()
        return self._judged()

    async def _settle_down(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_S):
                for link in self.links.values():
                    await link.finish()
        self.flush()

    def _feed(self, row: Row) -> None:
        try:
            if row.direction == HEARD:
                self._hear(clients.decode_answered(row.parts))
            elif row.direction == SAID:
                self._note(clients.decode_asked(row.parts))
        except PeerError:
            self.outcome.unreadable += 1

    # Messages of the recorded node

    def _hear(self, message: clients.Answered) -> None:
        if isinstance(message, clients.Welcome):
            self.stand(message)
        elif isinstance(message, clients.Rec):
            self._show(message)
        elif isinstance(message, clients.Status | clients.Credit | clients.Place):
            self.hear(message)

    def _show(self, rec: clients.Rec) -> None:
        reg = self._regs.get(rec.reg)
        if reg is None:
            self.outcome.of_nobody += len(rec.m)
            return
        self.outcome.messages += len(rec.m)
        self.hear(msgspec.structs.replace(rec, reg=reg))

    # Messages of the recorded client

    def _note(self, message: Any) -> None:
        if isinstance(message, clients.Reg):
            self._match(message)
        elif type(message) in OPS:
            _collect(message, self.recorded, lambda reg: reg)

    def _match(self, recorded: clients.Reg) -> None:
        """Give a recorded registration the first free handler for the same direction, type and access."""
        taken = self._recorded_regs
        for number, link in self.links.items():
            mine = link.reg
            if number not in taken and (mine.dir, mine.type, mine.access) == (
                recorded.dir,
                recorded.type,
                recorded.access,
            ):
                self._regs[recorded.reg], taken[number] = number, recorded.reg
                return

    # In place of a connection

    is_clear = True

    def say(self, frames: list[bytes]) -> None:
        """Collect the answers of the handlers."""
        message = clients.decode_asked(frames)
        if type(message) in OPS:
            count = _collect(message, self.answers, lambda reg: self._recorded_regs.get(reg, reg))
            self.outcome.answers[OPS[type(message)]] += count
        elif isinstance(message, clients.Send):
            self.outcome.answers["send"] += len(message.m)

    def _judged(self) -> Outcome:
        """The outcome, with each answer compared to the recorded one."""
        outcome = self.outcome
        for which, answer in self.answers.items():
            recorded = self.recorded.get(which)
            if recorded is None:
                continue
            if recorded == answer:
                outcome.same += 1
                continue
            outcome.different += 1
            if len(outcome.differences) < DIFFERENCES_MAX:
                outcome.differences.append((*which, _shown(recorded), _shown(answer)))
        return outcome


OPS: Final[dict[type, str]] = {clients.Next: "next", clients.Drop: "drop", clients.Fail: "fail", clients.Conf: "conf"}


def _collect(message: Any, into: Answers, reg_of: Callable[[int], int]) -> int:
    """Note the answers in one multipart; returns how many."""
    op, reg = OPS[type(message)], reg_of(message.reg)
    if isinstance(message, clients.Next):
        at = 0
        for item in message.m:
            into[reg, item.id] = op, item.to, tuple(map(bytes, message.frames[at : at + item.n]))
            at += item.n
        return len(message.m)
    ids = message.ids if isinstance(message, clients.Conf) else [item.id for item in message.m]
    for number in ids:
        into[reg, number] = op, None, ()
    return len(ids)


def _shown(answer: tuple[str, Any, tuple[bytes, ...]]) -> str:
    op, to, frames = answer
    return " ".join([op, *([str(to)] if to else []), *[repr(frame[:64])[1:] for frame in frames]])


def replay(rows: Iterable[Row], attach: Attach) -> Outcome:
    """Give recorded messages to the handlers that `attach` registers."""
    with asyncio.Runner(loop_factory=Skipping) as runner:
        return runner.run(Replay().play(rows, attach))
