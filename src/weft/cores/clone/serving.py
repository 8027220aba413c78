"""Serves Clone clients: snapshots, every write as it happens, beats, and the clients' own writes (CFG-060..063).

This dialect has no refusal message: a request that must not be answered stays unanswered, and is counted under the code
of its PeerError. A snapshot is a list of immutable pairs, taken when the client asks, and sent in portions, one at a
time. The next portion starts at the first message that the shell did not confirm as sent (FLD-001). The end message is
part of the last portion, so a client whose queue is full never gets the end before all pairs.
"""

from collections import deque
from typing import Any

import msgspec

from weft.base.effects import Confirmed, Source
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, SECOND, Now
from weft.base.paths import is_key, is_under
from weft.cores.clone import limits
from weft.cores.clone.context import PUBLISH, SERVE, Context, numbered, wanted
from weft.cores.clone.messages import Hugz, ICanHaz, KThxBai, KvPub, KvSet, KvSync, LearnPairs
from weft.cores.kit.timers import earliest
from weft.wire.chp import Pair
from weft.wire.envelope import Answer, Asked, Envelope


class Cause(msgspec.Struct, frozen=True, gc=False):
    """A write of a client that the configuration has not answered yet."""

    key: str
    message: KvSet


class Stream:
    """A snapshot that is being sent."""

    __slots__ = ("due_at", "end", "envelope", "moved_at", "pairs", "peer", "position", "sent", "token")

    def __init__(self, peer: bytes, envelope: Envelope, pairs: list[KvSync], end: KThxBai) -> None:
        self.peer, self.envelope, self.pairs, self.end = peer, envelope, pairs, end
        self.position = 0
        """How many messages (pairs, then the end) have been sent and confirmed."""
        self.sent = 0
        """How many messages were sent since then and are not confirmed yet."""
        self.token = 0
        """Token of the last `Confirm`; an answer with another token is not for this stream."""
        self.due_at: int | None = None
        """When to send more; None: after the last portion is confirmed."""
        self.moved_at = 0

    def portion(self) -> list[Any]:
        """The messages to send next."""
        at = self.position
        return list(self.pairs[at : at + limits.PORTION]) or [self.end]

    def confirm(self, refused: int, now: Now) -> bool:
        """The last portion was sent, except its last `refused` messages.

        Returns whether the whole snapshot has been sent.
        """
        taken, self.sent = self.sent - refused, 0
        assert taken >= 0, "no more is refused than was said"
        self.position += taken
        if taken:
            self.moved_at = now.mono
        self.due_at = now.mono + (limits.PORTION_NS if refused else 0)
        return self.position > len(self.pairs)


class Server:
    """Answers clients while this node is the root. Times are monotonic nanoseconds."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.is_active = False
        self.streams: deque[Stream] = deque()
        self._causes: dict[int, Cause] = {}
        self._open_bytes = 0
        """Bytes of the clients' writes that are not answered yet."""
        self._room = context.budget.part("writes", limits.WRITES_PERCENT, lambda: self._open_bytes)
        self._beat_at = 0
        self._tokens = 0

    def begin(self, now: Now) -> None:
        """Start publishing and answering."""
        if self._context.settings.serves and not self.is_active:
            self.is_active = True
            self._beat(now)

    def end(self) -> None:
        """Stop publishing and answering."""
        self.is_active = False
        self.streams.clear()

    def _check(self, code: str, shown: str, *, holds: bool) -> None:
        if not holds:
            raise PeerError(code, shown, shown.encode())

    # Snapshots

    def hear_ask(self, asked: Any, source: Source, now: Now) -> None:
        """A client asks for all pairs under a prefix; PeerError `command`, `not-root`, `busy`."""
        request = asked.message if type(asked) is Asked else None
        if type(request) is not ICanHaz:
            raise PeerError("command", type(asked).__name__)
        self._check("not-root", request.subtree, holds=self.is_active)
        of_peer = sum(stream.peer == source.peer for stream in self.streams)
        is_free = of_peer < limits.REQUESTS_PER_CLIENT_MAX and len(self.streams) < limits.REQUESTS_MAX
        self._check("busy", request.subtree, holds=is_free)
        context, subtree = self._context, request.subtree
        found = [context.pairs[key] for key in context.sorted_keys() if key.startswith(subtree)]
        stream = Stream(source.peer, asked.envelope, found, KThxBai(subtree, context.number))
        stream.moved_at = now.mono
        self.streams.append(stream)
        self._say(stream)

    def _say(self, stream: Stream) -> int:
        portion = stream.portion()
        for message in portion:
            self._context.send(SERVE, stream.peer, Answer(stream.envelope, message))
        self._tokens += 1
        stream.sent, stream.token, stream.due_at = len(portion), self._tokens, None
        self._context.confirm(SERVE, stream.peer, len(portion), self._tokens)
        return len(portion)

    def confirm(self, order: Confirmed, now: Now) -> None:
        """A portion was sent; messages that the queue refused are sent again."""
        for stream in self.streams:
            if stream.token == order.token and stream.sent:
                if stream.confirm(order.refused, now):
                    self._context.counters.served += 1
                    self._context.counters.pairs_served += len(stream.pairs)
                    self.streams.remove(stream)
                return

    def _go_on(self, stream: Stream, now: Now) -> int:
        if now.mono < stream.moved_at + limits.STUCK_NS:
            return self._say(stream)
        self._context.counters.stuck += 1
        self.streams.remove(stream)
        return 0

    # Writes of clients

    def hear_set(self, message: Any, now: Now) -> None:
        """A client asks for a write; PeerError `not-root`, `loose-key`, `key`, `not-writable`, `busy` (CFG-063)."""
        assert type(message) is KvSet
        settings, key = self._context.settings, message.key
        self._check("not-root", key, holds=self.is_active)
        if not key.startswith("/"):
            self._check("loose-key", key, holds=bool(settings.loose_prefix))
            key = settings.loose_prefix + key
        self._check("key", key, holds=is_key(key) and not key.endswith("/HUGZ"))
        self._check("not-writable", key, holds=any(is_under(key, prefix) for prefix in settings.writable))
        cost = limits.PAIR_COST + len(message.value)
        if not (has_room := self._room.has_room(cost)):
            self._room.refuse()
        self._check("busy", key, holds=has_room and len(self._causes) < limits.OPEN_MAX)
        self._context.counters.sets += 1
        self._open_bytes += cost
        self._causes[self._context.want((wanted(key, message, now),))] = Cause(key, message)

    def done(self, ticket: int, code: int) -> None:
        """The configuration has answered a write of a client."""
        cause = self._causes.pop(ticket, None)
        if cause is None:
            return
        self._open_bytes -= limits.PAIR_COST + len(cause.message.value)
        if code:
            self._context.refuse(cause.key, code)

    # What is published

    def learn(self, order: LearnPairs, now: Now) -> None:
        """Apply the configuration's writes to the copy, and publish them with the UUID of the client (CFG-062)."""
        for number, key, value in numbered(order):
            cause = self._cause_of(key, value)
            uuid = cause.uuid if cause is not None else b""
            self._context.learn(KvSync(key, number, uuid, value, expires_ms=_end_of(cause, now)))
            if self.is_active:
                ttl_s = cause.ttl_s if cause is not None and value else None
                self._context.counters.published += 1
                self._context.send(PUBLISH, b"", KvPub(key, number, uuid or self._context.node, value, ttl_s))
        self._context.number = max(self._context.number, order.number)

    def _cause_of(self, key: str, value: bytes) -> Pair | None:
        for cause in self._causes.values():
            if cause.key == key and cause.message.value == value:
                return cause.message
        return None

    def _beat(self, now: Now) -> None:
        """Send a beat. Its number is 0: reference clients would take any other number for a pair (CFG-061)."""
        self._beat_at = now.mono
        self._context.counters.beats += 1
        self._context.send(PUBLISH, b"", Hugz())

    # Time

    def wake(self, now: Now) -> None:
        """Send the next portions in turn, and a beat each second: of updates a client hears only its subtree."""
        if self.is_active and now.mono >= self._beat_at + limits.BEAT_NS:
            self._beat(now)
        budget = limits.TURN_MAX
        for _ in range(len(self.streams)):
            stream = self.streams[0]
            self.streams.rotate(-1)
            if stream.due_at is not None and now.mono >= stream.due_at and budget > 0:
                budget -= self._go_on(stream, now)

    def deadline(self) -> int | None:
        beat_due = self._beat_at + limits.BEAT_NS if self.is_active else None
        return earliest(beat_due, *[stream.due_at for stream in self.streams])


def _end_of(cause: Pair | None, now: Now) -> int | None:
    """When a pair expires, as an instant, which is what servers of the pattern send in a snapshot (CFG-064)."""
    if cause is None or cause.ttl_s is None or not cause.value:
        return cause.expires_ms if cause is not None else None
    return (now.wall + round(cause.ttl_s * SECOND)) // MILLISECOND
