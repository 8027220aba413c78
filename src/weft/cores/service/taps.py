"""Copies of a service's messages, for a broker that asked for them (MON-002 to MON-005).

A copy is noted when its message has passed, and sent later together with others, so no message waits for a copy. A copy
without room in the queue is counted as dropped. A tap ends when its time is over, when it is stopped, when the broker
is silent for three seconds, and when the service registers again.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from weft.base.effects import SendFailed
from weft.base.endpoints import endpoint_of, host_of
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.cores.kit.outbox import Outbox
from weft.cores.kit.tapping import FAR, Idle, Sampler, cut
from weft.cores.kit.timers import earliest
from weft.cores.service import limits
from weft.cores.service.messages import COPIES, MONITOR, Passed, TapsChanged
from weft.wire.catalog import taps, times
from weft.wire.catalog.messages import Message


class _Tap:
    """One tap, and its socket to the monitor port."""

    def __init__(self, start: taps.Start, instance: str, now: Now) -> None:
        self.start, self.instance, self.tag = start, instance, start.tap.encode()
        self.sampler = Sampler(start.sockets, start.dir, start.sample, start.rate)
        self.waiting: deque[tuple[Passed, int]] = deque()
        """Messages to be copied, and when they passed (wall ns)."""
        self.sequence = 0
        self.ends_at = now.mono + round(start.seconds * SECOND)
        self.heard_at = self.told_at = now.mono

    @property
    def due_at(self) -> int:
        return min(self.ends_at, self.told_at + limits.TAP_REPORT_NS, self.heard_at + limits.TAP_SILENCE_NS)


class Taps:
    """All taps of one service; usually none."""

    def __init__(self, name: str, outbox: Outbox) -> None:
        self._name, self._outbox = name, outbox
        self.settle: Callable[[], None] = lambda: None
        """Called before counts are reported, and before another tap begins: code that passes messages without a look then
        reports their number by `skip`, and looks at the next one.
        """
        self._taps: dict[bytes, _Tap] = {}

    @property
    def is_on(self) -> bool:
        """Whether any tap wants copies."""
        return bool(self._taps)

    def idle(self, now: Now) -> Idle:
        """How many of the next messages no tap wants, and until when that holds."""
        found = [tap.sampler.idle(now.mono) for tap in self._taps.values()]
        return Idle(min(idle.messages for idle in found), min(idle.until for idle in found)) if found else Idle(0, FAR)

    def skip(self, way: str, socket: str, count: int) -> None:
        """Count messages that passed without a look."""
        for tap in self._taps.values():
            tap.sampler.skip(way, socket, count)

    # Orders of the broker

    def hear(self, message: Message, broker: str, instance: str, now: Now) -> None:
        """`start` or `stop`; any other message changes nothing."""
        try:
            order = taps.read_order(message)
        except PeerError:
            return
        if isinstance(order, taps.Stop):
            self._end(order.tap.encode(), "stopped", now)
        elif order.tap.encode() not in self._taps and len(self._taps) < limits.TAPS_MAX:
            self.settle()
            tap = self._taps[order.tap.encode()] = _Tap(order, instance, now)
            self._outbox.connect(MONITOR, endpoint_of(host_of(broker), order.port), tap.tag)
            self._report(tap, now)
            self._outbox.tell(TapsChanged(is_on=True))

    def hear_monitor(self, message: Message, tag: bytes, now: Now) -> None:
        """The broker has received the last report."""
        tap = self._taps.get(tag)
        try:
            taps.read_beat(message)
        except PeerError:
            return
        if tap is not None:
            tap.heard_at = now.mono

    # Messages

    def note(self, passed: Passed, now: Now) -> bool:
        """A message has passed; True: a copy of it waits for `flush`."""
        is_copied = False
        for tap in self._taps.values():
            if not tap.sampler.takes(passed.way, passed.socket, now.mono):
                continue
            if len(tap.waiting) >= limits.COPIES_WAITING_MAX:
                tap.sampler.lose()
                continue
            tap.waiting.append((passed, now.wall))
            is_copied = True
        return is_copied

    def flush(self, now: Now) -> None:
        """Send the noted copies."""
        for tap in self._taps.values():
            self._flush(tap)

    def _flush(self, tap: _Tap) -> None:
        while tap.waiting:
            self._outbox.send(COPIES, tap.tag, self._copy(tap, *tap.waiting.popleft()))

    def _copy(self, tap: _Tap, passed: Passed, wall: int) -> Message:
        tap.sequence += 1
        ts = _unix(wall)
        part = cut(passed.frames, tap.start.max_frame)
        way: Any = passed.way
        header = taps.Copy(
            tap=tap.start.tap,
            service=self._name,
            instance=tap.instance,
            seq=tap.sequence,
            dir=way,
            socket=passed.socket,
            peer=passed.peer,
            ts=ts,
            frames=len(passed.frames),
            bytes=part.bytes,
            cut=part.is_cut,
            word=passed.word,
            took_us=passed.took_us,
            sizes=part.sizes,
        )
        return taps.message_of(header, times.write("f64le", ts), part.frames)

    def failed(self, order: SendFailed) -> None:
        """The socket accepted no more: a lost report is replaced by the next one."""
        tap = self._taps.get(order.peer)
        if tap is not None and order.channel == COPIES:
            tap.sampler.lose()

    # Time

    def wake(self, now: Now) -> None:
        """Send reports, and end taps whose time is over."""
        for tap in list(self._taps.values()):
            if now.mono >= tap.ends_at:
                self._end(tap.tag, "time", now)
            elif now.mono >= tap.heard_at + limits.TAP_SILENCE_NS:
                self._end(tap.tag, "monitor silent", now)
            elif now.mono >= tap.told_at + limits.TAP_REPORT_NS:
                self._report(tap, now)

    def deadline(self) -> int | None:
        return earliest(*[tap.due_at for tap in self._taps.values()]) if self._taps else None

    def end(self, why: str, now: Now) -> None:
        """End all taps."""
        for tag in list(self._taps):
            self._end(tag, why, now)

    def _end(self, tag: bytes, why: str, now: Now) -> None:
        tap = self._taps.get(tag)
        if tap is not None:
            self._flush(tap)
            self._report(tap, now, why)
            del self._taps[tag]
            self._outbox.tell(TapsChanged(is_on=self.is_on))
            self._outbox.disconnect(MONITOR, tag)

    def _report(self, tap: _Tap, now: Now, ended: str = "") -> None:
        self.settle()
        self._flush(tap)
        tap.told_at = now.mono
        sampler = tap.sampler
        report = taps.Report(
            tap=tap.start.tap,
            service=self._name,
            instance=tap.instance,
            ended=ended,
            proof=tap.start.proof,
            seen=sampler.seen,
            copied=sampler.copied,
            dropped=sampler.dropped,
            sampled=sampler.sampled,
        )
        self._outbox.send(MONITOR, tap.tag, taps.message_of(report, times.write("f64le", _unix(now.wall))))


MICROSECONDS: Final = 1_000_000.0


def _unix(wall: int) -> float:
    """Unix seconds, for display (CAT-012)."""
    return wall // 1_000 / MICROSECONDS
