"""Sends peers the operations that they lack (GSP-022 to GSP-024).

In order, not twice in a row, and no faster than the link takes them.
"""

from collections import deque

from weft.cores.document.context import Context
from weft.cores.document.knowing import Knowing, gaps
from weft.cores.document.limits import ANSWER_MAX, OWED_MAX
from weft.cores.document.log import Log
from weft.wire.document.messages import Xmsg


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
        """Send first..last; returns how many fitted."""
        now, log, endpoint = self._context.now.mono, self._log, knowing.peer.endpoint
        sequence = first
        while sequence <= last:
            body = log.body(source, sequence)
            if not knowing.has_room(len(body), now):
                break
            self._context.say(endpoint, Xmsg(body))
            knowing.note_sent(len(body), now)
            sequence += 1
        if sequence > first:
            knowing.sent.add(source, first, sequence - 1, now)
        return sequence - first

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
