"""Copies a service's messages while somebody taps it (MON-003, MON-004).

A message is copied after it has passed, and the copies of one turn of the loop are sent together. Messages beyond a tap's
rate, and between two of its samples, are only counted, so that they cost little (MON-009).
"""

import asyncio
import time
from typing import Final

from weft.client.catalog.driving import Driver, now
from weft.client.catalog.sockets import Plug
from weft.cores.service.messages import Passed
from weft.wire.catalog.messages import Message

CALLERS_MAX: Final = 10_000  # peers whose address is remembered
CALLS_MAX: Final = 10_000  # calls whose start is remembered


class Tapping:
    """Notes what passes the ROUTER and the publisher of a service."""

    def __init__(self, router: Plug, driver: Driver) -> None:
        self._router, self._driver, self._taps = router, driver, driver.core.taps
        self._taps.settle = self._settle
        self._callers: dict[bytes, str] = {}
        self._begun: dict[int, int] = {}
        """When each unanswered call came, by a monotonic clock in nanoseconds; the key is the `id` of its message."""
        self._given = self._skips = 0
        """How many messages are only counted, as the last look said, and how many of them are still to come."""
        self._came = self._published = 0
        """Messages that were only counted, and not yet reported to the core: received, published. All others are answers."""
        self._timer: asyncio.TimerHandle | None = None

    def heard(self, frames: list[bytes], call: Message | None) -> None:
        """A message has arrived at the ROUTER. `call`: its decoded form; None if it cannot be decoded."""
        if self._skips:
            self._skips -= 1
            self._came += 1
            return
        word = call.command.decode("utf-8", "replace") if call is not None else ""
        self._note(Passed("in", "router", self._name(frames[0]), frames[1:], word))
        if call is not None:
            if len(self._begun) >= CALLS_MAX:
                self._begun.clear()
            self._begun[id(call)] = time.monotonic_ns()

    def answered(self, frames: list[bytes], call: Message) -> None:
        """A call was answered."""
        begun = self._begun.pop(id(call), None) if self._begun else None
        if self._skips:
            self._skips -= 1
            return
        took_us = (time.monotonic_ns() - begun) // 1_000 if begun is not None else None
        peer = self._callers.get(frames[0]) or f"/{frames[0].hex()}"
        word = call.command.decode("utf-8", "replace")
        self._note(Passed("out", "router", peer, frames[1:], word, took_us))

    def published(self, frames: list[bytes]) -> None:
        """Something was published."""
        if self._skips:
            self._skips -= 1
            self._published += 1
            return
        self._note(Passed("out", "pub", "", frames))

    def _note(self, passed: Passed) -> None:
        at = now()
        self._settle()
        if self._driver.passed(passed, at):
            return  # so may be the next one
        idle = self._taps.idle(at)
        self._given = self._skips = idle.messages
        if idle.messages and idle.until - at.mono < LONG_NS:
            self._timer = asyncio.get_running_loop().call_later((idle.until - at.mono) / 1e9, self._settle)

    def _settle(self) -> None:
        """Report the messages that were only counted to the core, and look at the next one."""
        if not self._given:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        went = self._given - self._skips - self._came - self._published
        for way, socket, count in (
            ("in", "router", self._came),
            ("out", "router", went),
            ("out", "pub", self._published),
        ):
            if count:
                self._taps.skip(way, socket, count)
        self._given = self._skips = self._came = self._published = 0

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
