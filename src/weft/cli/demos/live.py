"""Demonstrations beside a real node: programs on the client library, one line per message, counts at the end."""

import asyncio
import sys
import time
from asyncio import Future
from collections.abc import Callable
from typing import Any, Final

import msgspec

from weft.cli.chain_ends import until_any
from weft.cli.chain_lines import Lines, who
from weft.cli.demos import report
from weft.cli.demos.programs import PARENTS_OF, REWRITES, Drop, Heard, Hold, Link, Pass, Program, Verdict
from weft.client.chain.client import chain_client
from weft.client.chain.links import Handler
from weft.client.chain.message import Message, Receipt, SendFailed, drop
from weft.wire.clients import Welcome

LAST_STATUS_S: Final = 15.0  # a node keeps a message in memory for up to 10 s while its link is down
Make = Callable[[Welcome], Program]
Stand = Callable[[Handler], Handler]
VERDICTS: Final[dict[type, str]] = {Drop: "dropped", Hold: "held"}


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """How a program is run."""

    name: str
    node: str | None = None
    period_s: float = 0.0
    """Time between two ticks; 0: it has no ticks."""
    is_prompt: bool = False
    """Whether the first tick is at the beginning instead of a period later."""
    waits: bool = False
    """Whether it waits for a line of standard input with the instant to begin, in seconds since 1970."""
    to: tuple[Any, ...] = PARENTS_OF
    json: bool = False


def run(make: Make, stage: Stage) -> int:
    """Run a program beside a node until it is done or a signal ends it; a second signal ends it at once."""
    asyncio.run(Player(make, stage).play())
    return 0


class Player:
    """One program while it runs."""

    def __init__(self, make: Make, stage: Stage) -> None:
        self._make, self._stage = make, stage
        self._lines = Lines(stage.json)
        self._open: set[Future[Receipt]] = set()

    async def play(self) -> None:
        """Run from the hello to the final counts."""
        async with chain_client(self._stage.name, node=self._stage.node) as chain:
            self._chain, self._program = chain, self._make(chain.here)
            for link in self._program.links:
                self._stand(link)
            await chain.ready()
            self._greet()
            await until_any(chain.run(), self._tick(), self._lines.broken())
        await asyncio.sleep(0)  # messages without a status get one here
        self._lines.end(dict(+self._program.counts), dict(chain.counts))

    def _greet(self) -> None:
        here, links = self._chain.here, self._program.links
        places = " and ".join(f"on {link.on}" for link in links) or "in no chain"
        words = f"{self._stage.name} stands {places} of {here.name}, a {here.level}; Ctrl-C ends it"
        self._lines.begin(words, node=here.name, address=here.addr)

    def _stand(self, link: Link) -> None:
        """Register a link; a program that holds messages needs a handler that waits."""
        chain = self._chain
        if link.access != REWRITES:
            reads: Stand = chain.reads(report.TYPE, on=link.on, place=link.at)
            reads(lambda message: self._see(link, message))
            return

        async def wait(message: Message) -> Any:
            verdict = self._see(link, message)
            if isinstance(verdict, Hold):
                await asyncio.Event().wait()
            return _answer(message, verdict)

        rewrites: Stand = chain.rewrites(
            report.TYPE, on=link.on, place=link.at, timeout=link.timeout_ms / 1_000, parallel=link.holds + 1
        )
        rewrites(wait if link.holds else lambda message: _answer(message, self._see(link, message)))

    def _see(self, link: Link, message: Message) -> Verdict:
        verdict = self._program.take(Heard(link.on, message.frames, message.own))
        word, payload = "", message.payload
        if link.access == REWRITES:
            word = VERDICTS.get(type(verdict), "")
            if isinstance(verdict, Pass) and verdict.payload is not None:
                payload = verdict.payload
        self._lines.message(message, who(message, self._chain.here), word, payload)
        return verdict

    async def _tick(self) -> None:
        """Tick once each period; ticks that were missed while the machine slept are left out."""
        stage, loop = self._stage, asyncio.get_running_loop()
        if not stage.period_s:
            await asyncio.Event().wait()
        begin_at = await _told_when() if stage.waits else time.time()
        due = loop.time() + begin_at - time.time() + (0.0 if stage.is_prompt else stage.period_s)
        while not self._program.is_done:
            await asyncio.sleep(due - loop.time())
            for payload in self._program.tick():
                self._send(payload)
            due += stage.period_s * max(1, (loop.time() - due) // stage.period_s)
        if self._open:
            await asyncio.wait(self._open, timeout=LAST_STATUS_S)

    def _send(self, payload: bytes) -> None:
        sent = self._chain.send(report.TYPE, payload, to=self._stage.to, fmt="xml")
        self._open.add(sent)
        at = time.time_ns()
        sent.add_done_callback(lambda future: self._settle(future, payload, at))

    def _settle(self, sent: "Future[Receipt]", payload: bytes, at: int) -> None:
        self._open.discard(sent)
        if sent.cancelled():
            return
        error = sent.exception()
        why = error.why if isinstance(error, SendFailed) else str(error) if error else sent.result().why
        self._program.settled(why)
        self._lines.sent(at, why, payload, ok=error is None)


async def _told_when() -> float:
    """The instant on the next line of standard input; BrokenPipeError if the input has ended."""
    loop, came = asyncio.get_running_loop(), asyncio.Event()
    words = sys.stdin.fileno()
    loop.add_reader(words, came.set)
    try:
        await came.wait()
    finally:
        loop.remove_reader(words)
    line = sys.stdin.readline()
    if not line:
        raise BrokenPipeError
    return float(line)


def _answer(message: Message, verdict: Verdict) -> Any:
    if isinstance(verdict, Drop):
        return drop(verdict.why)
    if isinstance(verdict, Pass) and verdict.payload is not None:
        return message.replace(payload=verdict.payload)
    return message
