"""Sends peers the operations that they lack (GSP-022 to GSP-024, GSP-027).

In order, not twice in a row, and no faster than the link takes them.
"""

from collections import deque
from collections.abc import Iterator

from weft.cores.document.context import Context
from weft.cores.document.knowing import Knowing, gaps
from weft.cores.document.limits import ANSWER_MAX, OWED_MAX, PACKED_ABOVE
from weft.cores.document.log import Log
from weft.wire.document.messages import (
    PACK_BYTES_MAX,
    PACK_LENGTH_BYTES,
    PACK_MAX,
    READS_PACKS,
    Xmsg,
    Xpak,
)


class Answering:
    """Sends operations of gapless prefixes."""

    def __init__(self, context: Context, log: Log, known: dict[bytes, Knowing]) -> None:
        self._context, self._log, self._known = context, log, known
        self._pushed: deque[tuple[int, int]] = deque()
        """(when, number) of own operations recently sent to all peers; these count as sent."""

    def push(self, body: bytes, sequence: int) -> None:
        """Send an own operation to every ACTIVE peer."""
        now, message = self._context.now.mono, Xmsg(body)
        for knowing in self._by_uuid():
            knowing.note_sent(len(body), now)
            self._context.say(knowing.peer.endpoint, message)
        self._forget_pushed(now)
        self._pushed.append((now, sequence))

    def spread(self, body: bytes) -> None:
        """Tell every ACTIVE peer, once, which of two bodies counts (GSP-011)."""
        message = Xmsg(body)
        for knowing in self._by_uuid():
            self._context.say(knowing.peer.endpoint, message)

    def _by_uuid(self) -> list[Knowing]:
        return [self._known[uuid] for uuid in sorted(self._known)]

    def answer(self, knowing: Knowing, source: bytes, upto: int, most: int = ANSWER_MAX) -> None:
        """A peer has `upto` operations of a source: send it the following ones, as many as its pace allows.

        Never beyond the next 500, sent already or not, so that questions sent before the answers arrive do not fill a
        slow link.
        """
        knowing.owed.pop(source, None)
        last = min(self._last(knowing, source), upto + most)
        room = most
        for first, end in self._unsent(knowing, source, upto + 1, last):
            end = min(end, first + room - 1)  # noqa: PLW2901 # the end of what is sent
            sent = self._send(knowing, source, first, end)
            room -= sent
            if sent < end - first + 1:
                if len(knowing.owed) < OWED_MAX:
                    knowing.owed[source] = (first + sent - 1, room)
                return
            if not room:
                return

    def _last(self, knowing: Knowing, source: bytes) -> int:
        """Never beyond a gap.

        And operations that another source has just sent are left to that source (GSP-022 c, GSP-023).
        """
        if source in self._known and source != knowing.uuid:
            return self._log.settled(source, self._context.now.mono - self._context.timing.fresh_ns)
        return self._log.latest(source)

    def _unsent(self, knowing: Knowing, source: bytes, first: int, last: int) -> list[tuple[int, int]]:
        """The part of first..last that was not sent recently.

        The first operation counts as lost sooner than the others.
        """
        if first > last:
            return []
        now, timing = self._context.now.mono, self._context.timing
        knowing.sent.forget(now - timing.resend_hold_ns)
        found = list(gaps(self._sent(knowing, source, now - timing.resend_hold_ns), first, last))
        is_first_in = bool(found) and found[0][0] == first
        if not is_first_in:
            lately = self._sent(knowing, source, now - timing.resend_first_ns)
            if not any(begin <= first <= end for begin, end in lately):
                found.insert(0, (first, first))
        return found

    def _sent(self, knowing: Knowing, source: bytes, before: int) -> list[tuple[int, int]]:
        ranges = knowing.sent.since(source, before)
        if source == self._context.uuid:
            since = max(before, knowing.active_at - 1)
            ranges += [(number, number) for at, number in self._pushed if at > since]
        return ranges

    def _send(self, knowing: Knowing, source: bytes, first: int, last: int) -> int:
        """Send first..last, many of them together to a peer that reads that; returns how many fitted."""
        bodies = self._fitting(knowing, source, first, last)
        is_packed = len(bodies) > PACKED_ABOVE and READS_PACKS in knowing.peer.caps
        for message in map(Xpak, packs(bodies)) if is_packed else map(Xmsg, bodies):
            self._context.say(knowing.peer.endpoint, message)
        if bodies:
            knowing.sent.add(source, first, first + len(bodies) - 1, self._context.now.mono)
        return len(bodies)

    def _fitting(self, knowing: Knowing, source: bytes, first: int, last: int) -> list[bytes]:
        """The first of these operations, as many as its pace allows now; they count as sent."""
        now, bodies = self._context.now.mono, list[bytes]()
        for sequence in range(first, last + 1):
            body = self._log.body(source, sequence)
            if not knowing.has_room(len(body), now):
                break
            knowing.note_sent(len(body), now)
            bodies.append(body)
        return bodies

    def resume(self, knowing: Knowing) -> None:
        """Its pace allows more: continue the answers that were held back."""
        owed, knowing.owed = knowing.owed, {}
        for source, (upto, most) in owed.items():
            self.answer(knowing, source, upto, most)

    def restart(self) -> None:
        """Own operations have another source from now on."""
        self._pushed.clear()

    def _forget_pushed(self, now: int) -> None:
        before = now - self._context.timing.resend_hold_ns
        while self._pushed and self._pushed[0][0] <= before:
            self._pushed.popleft()


def packs(bodies: list[bytes]) -> Iterator[tuple[bytes, ...]]:
    """The same in as few packs as their limits allow (GSP-027).

    >>> [len(pack) for pack in packs([bytes(200_000)] * 12)]
    [5, 5, 2]
    """
    pack: list[bytes] = []
    room = PACK_BYTES_MAX
    for body in bodies:
        size = PACK_LENGTH_BYTES + len(body)
        if pack and (size > room or len(pack) == PACK_MAX):
            yield tuple(pack)
            pack, room = [], PACK_BYTES_MAX
        pack.append(body)
        room -= size
    if pack:
        yield tuple(pack)
