"""Copies a service's messages while somebody taps it (MON-003, MON-004).

A message is copied after it has passed, and copies are sent together. Messages between two samples are only counted, those
beyond a tap's rate are not even shown to this module, so that they cost little (MON-009).
"""

import asyncio
import time
from typing import Final

from weft.base.now import Now
from weft.client.catalog.driving import Driver, now
from weft.client.catalog.endpoints import ANSWERS
from weft.client.catalog.sockets import Plug
from weft.client.catalog.traffic import Traffic
from weft.cores.kit.tapping import FAR, Idle
from weft.cores.service.messages import Passed
from weft.wire.catalog.messages import Message

CALLERS_MAX: Final = 10_000  # peers whose address is remembered
CALLS_MAX: Final = 10_000  # calls whose start is remembered


class Tapping:
    """Notes what passes the ROUTER and the publisher of a service, from its construction to `end`."""

    def __init__(self, router: Plug, driver: Driver, traffic: Traffic) -> None:
        self._router, self._driver, self._taps, self._traffic = router, driver, driver.core.taps, traffic
        self._taps.settle = self._settle
        self._callers: dict[bytes, str] = {}
        self._begun: dict[int, int] = {}
        """When each unanswered call came, by a monotonic clock in nanoseconds; the key is the `id` of its message."""
        self._skips = 0
        """How many of the next messages are only counted."""
        self._rests = False
        """Whether some messages were only counted, and not yet reported to the core."""
        self._was = _passed(traffic)
        """How many messages had passed without a look, when they were last reported to the core."""
        self._timer: asyncio.TimerHandle | None = None
        self._look()

    def end(self) -> None:
        """No tap is left: look at no further message."""
        self._stop_timer()
        self._traffic.unwatch()
        self._taps.settle = _nothing

    def heard(self, frames: list[bytes], call: Message | None) -> None:
        """A message has arrived at the ROUTER. `call`: its decoded form; None if it cannot be decoded."""
        if self._skips:
            self._skips -= 1
            self._traffic.calls += 1
            return
        word = ""
        if call is not None:
            if call.command not in ANSWERS:
                self._begin(call)
            word = call.command.decode("utf-8", "replace")
        self._note(Passed("in", "router", self._name(frames[0]), frames[1:], word))

    def _begin(self, call: Message) -> None:
        if len(self._begun) >= CALLS_MAX:
            self._begun.clear()
        self._begun[id(call)] = time.monotonic_ns()

    def answered(self, frames: list[bytes], call: Message) -> None:
        """A call was answered."""
        begun = self._begun.pop(id(call), None) if self._begun else None
        if self._skips:
            self._skips -= 1
            self._traffic.answers += 1
            self._rest_of_answers()
            return
        took_us = (time.monotonic_ns() - begun) // 1_000 if begun is not None else None
        peer = self._callers.get(frames[0]) or f"/{frames[0].hex()}"
        word = call.command.decode("utf-8", "replace")
        self._note(Passed("out", "router", peer, frames[1:], word, took_us))

    def published(self, frames: list[bytes]) -> None:
        """Something was published."""
        if self._skips:
            self._skips -= 1
            self._traffic.publications += 1
            return
        self._note(Passed("out", "pub", "", frames))

    def _note(self, passed: Passed) -> None:
        at = now()
        if self._rests:
            self._settle()
        if not self._driver.passed(passed, at):  # else the next one may be copied, too
            self._rest(self._taps.idle(at), at)

    # What nobody looks at

    def _look(self) -> None:
        """Look at the next message."""
        self._skips, self._rests = 0, False
        traffic = self._traffic
        traffic.on_call, traffic.on_answer, traffic.on_publication = self.heard, self.answered, self.published

    def _rest(self, idle: Idle, at: Now) -> None:
        """Only count messages, as far as no tap wants them."""
        self._skips, self._rests = idle.messages, True
        if idle.messages and idle.until - at.mono < LONG_NS:
            self._timer = asyncio.get_running_loop().call_later((idle.until - at.mono) / 1e9, self._settle)
        if idle.messages >= FAR:
            self._driver.flush_soon()
            self._traffic.on_call = self._traffic.on_publication = None
            self._rest_of_answers()

    def _rest_of_answers(self) -> None:
        """Until the calls whose arrival was noted are answered, answers are looked at."""
        if self._traffic.on_call is None and not self._begun:
            self._traffic.on_answer = None

    def _settle(self) -> None:
        """Report the messages that were only counted to the core, and look at the next one."""
        self._stop_timer()
        passed = _passed(self._traffic)
        if passed != self._was:
            for (way, socket), count, was in zip(WAYS, passed, self._was, strict=True):
                if count > was:
                    self._taps.skip(way, socket, count - was)
            self._was = passed
        self._look()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _name(self, peer: bytes) -> str:
        """Address and routing id of the sender of the current message."""
        known = self._callers.get(peer)
        if known is None:
            if len(self._callers) >= CALLERS_MAX:
                self._callers.clear()
            known = self._callers[peer] = f"{self._router.heard_from}/{peer.hex()}"
        return known


LONG_NS: Final = 3_600 * 10**9
"""Longer than any tap runs: for such a wait no timer is set."""
WAYS: Final = (("in", "router"), ("out", "router"), ("out", "pub"))


def _passed(traffic: Traffic) -> tuple[int, int, int]:
    """Messages that nobody has looked at, of each of `WAYS`."""
    return traffic.calls, traffic.answers, traffic.publications


def _nothing() -> None:
    """Do nothing: without a tap no message is counted."""
