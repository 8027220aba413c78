"""The parent's side: snapshots, tips, last writes of chains, beats (CFG-013, CFG-019, CFG-040..045).

A snapshot is a list of immutable pairs, taken when the answer begins, and sent in portions, one at a time. The next
portion starts at the first message that the shell did not confirm as sent (FLD-001). The end is a portion of its own, so
it never reaches a child without all pairs before it. A child that accepts packed pairs gets many in one message. They
are packed when they are sent, so that a snapshot takes no memory beside the store.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec

from weft.base.effects import Confirmed, Source
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.cores.configuration import limits
from weft.cores.configuration.answering import Content, Stream, Streams
from weft.cores.configuration.context import SERVE, Context
from weft.cores.configuration.tally import Tally, tally_of
from weft.cores.kit.timers import earliest
from weft.wire.envelope import Answer, Asked, Envelope
from weft.wire.replication import (
    BUSY,
    CHAINS,
    NOT_READY,
    TIP,
    TOO_LARGE,
    Bundle,
    Hugz,
    ICanHaz,
    KThxBai,
    KvSync,
    Wtf,
)

FRAME_BYTES = 48  # size of a pair in a bundle beyond key and value


class ChainTold(msgspec.Struct, frozen=True, gc=False):
    """A chain's last write as sent; fields in the order of canonical JSON."""

    deleted: bool
    prev: int


_encode = msgspec.json.Encoder().encode


class Waiting:
    """A request that waits until this node can serve it."""

    __slots__ = ("asked", "by", "envelope", "source")

    def __init__(self, by: int, source: Source, envelope: Envelope, asked: ICanHaz) -> None:
        self.by, self.source, self.envelope, self.asked = by, source, envelope, asked


def _path(subtree: str) -> str:
    """The subtree of a request."""
    for special in (TIP, CHAINS):
        if subtree.startswith(special + "/"):
            return subtree[len(special) :]
    return subtree


def _end(request: ICanHaz, number: int, tally: Tally | None) -> KThxBai:
    """The end of an answer; with count and digest of its pairs, if that was asked for."""
    if tally is None:
        return KThxBai(request.subtree, number)
    return KThxBai(request.subtree, number, tally.count, tally.digest)


class Serving:
    """Answers children. Times are monotonic nanoseconds."""

    def __init__(
        self, context: Context, portion_max: int = limits.PORTION, packed_from: int = limits.PACKED_FROM
    ) -> None:
        self._context, self._portion_max, self._packed_from = context, portion_max, packed_from
        self.waiting: deque[Waiting] = deque()
        self.streams = Streams()
        self._beat_at: int | None = None
        """When the last beat went out; None: children should not hear us."""
        self._tokens = 0

    # Requests

    def receive(self, asked: Any, source: Source, now: Now, *, is_ready: bool) -> None:
        """A request of a child; PeerError `command` for any other message."""
        request = asked.message if type(asked) is Asked else None
        if type(request) is not ICanHaz:
            raise PeerError("command", type(asked).__name__)
        peer = source.peer
        of_peer = sum(each.source.peer == peer for each in self.waiting)
        of_peer += self.streams.open_of(peer)
        total = len(self.waiting) + len(self.streams)
        if of_peer >= limits.REQUESTS_PER_CHILD_MAX or total >= limits.REQUESTS_MAX:
            self.refuse(peer, asked.envelope, BUSY)
        elif is_ready:
            self._answer(request, source, asked.envelope, now)
        else:
            self.waiting.append(Waiting(now.mono + limits.WAIT_NS, source, asked.envelope, request))

    def release(self, now: Now) -> None:
        """This node can serve now: answer all waiting requests."""
        waiting, self.waiting = self.waiting, deque()
        for each in waiting:
            self._answer(each.asked, each.source, each.envelope, now)

    def break_off(self) -> None:
        """Answers being sent belong to a history that no longer counts: stop them; the children ask again."""
        streams = self.streams.in_turn()
        self.streams.clear()
        for stream in streams:
            self.refuse(stream.peer, stream.envelope, NOT_READY)

    def refuse(self, peer: bytes, envelope: Envelope, code: int) -> None:
        """Answer a child with WTF, counted by code (CFG-007)."""
        self._context.counters.count(self._context.counters.wtf_said, code)
        self._context.send(SERVE, peer, Answer(envelope, Wtf(code)))

    def _answer(self, request: ICanHaz, source: Source, envelope: Envelope, now: Now) -> None:
        if not self._context.store.has(_path(request.subtree)):
            self.refuse(source.peer, envelope, NOT_READY)
            return
        if request.subtree.startswith(TIP + "/"):
            end = self._tip(request)
            self._context.send(SERVE, source.peer, Answer(envelope, end))  # if it is lost, the child asks again
            return
        content = self._content(request)
        if request.is_bundle or source.kind == "REQ":
            self._say_bundle(content.pairs, content.end, source.peer, envelope)
            return
        stream = Stream(source.peer, envelope, content, self._portion_max)
        stream.moved_at = now.mono
        self.streams.add(stream)
        self._step(stream)

    def _tip(self, request: ICanHaz) -> KThxBai:
        path, store = _path(request.subtree), self._context.store
        return _end(request, store.tip(path), store.tally_of(path) if request.wants_digest else None)

    def _content(self, request: ICanHaz) -> Content:
        store, subtree = self._context.store, request.subtree
        if subtree.startswith(CHAINS + "/"):
            path = _path(subtree)
            lasts = [
                KvSync(CHAINS + last.key, last.number, _encode(ChainTold(last.is_deleted, last.prev)))
                if last.prev is not None
                else KvSync(
                    CHAINS + last.key, last.number, b'{"deleted":%b}' % (b"true" if last.is_deleted else b"false")
                )
                for _, last in store.lasts("" if path == "/" else path)
            ]
            return Content(lasts, _end(request, store.tip(path), tally_of(lasts) if request.wants_digest else None))
        tally = store.tally_of(subtree) if request.wants_digest else None
        pairs = store.view(subtree)
        is_packed = request.takes_packs and len(pairs) >= self._packed_from
        return Content(pairs, _end(request, store.tip(subtree), tally), is_packed)

    def _say_bundle(self, pairs: Sequence[KvSync], end: KThxBai, peer: bytes, envelope: Envelope) -> None:
        size = sum(len(pair.key) + len(pair.value) + FRAME_BYTES for pair in pairs)
        if size > limits.BUNDLE_BYTES_MAX:
            self.refuse(peer, envelope, TOO_LARGE)
            return
        self._context.counters.served += 1
        self._context.counters.pairs_served += len(pairs)
        message = Bundle(tuple(pairs), end) if pairs else end
        self._context.send(SERVE, peer, Answer(envelope, message))

    # Streams

    def confirm(self, order: Confirmed, now: Now) -> None:
        """A portion was sent, or a part of it was refused."""
        self._context.counters.choked += order.refused
        stream = self.streams.confirm(order.token, order.refused, now)
        if stream is not None and stream.is_done:
            self._context.counters.served += 1
            self._context.counters.pairs_served += len(stream.pairs)
            self.streams.remove(stream)

    def _step(self, stream: Stream) -> int:
        self._tokens += 1
        return self.streams.step(stream, self._context.effects, self._tokens)

    def wake(self, now: Now) -> None:
        """Send the next portions in turn; refuse requests that have waited too long."""
        while self.waiting and now.mono >= self.waiting[0].by:
            each = self.waiting.popleft()
            self.refuse(each.source.peer, each.envelope, NOT_READY)
        budget = limits.TURN_MAX
        for stream in self.streams.due(now):
            budget -= self._go_on(stream, now)
            if budget <= 0:
                self.streams.served_upto(stream)
                break

    def _go_on(self, stream: Stream, now: Now) -> int:
        if now.mono < stream.moved_at + limits.STUCK_NS:
            return self._step(stream)
        self._context.counters.stuck += 1
        self.streams.remove(stream)
        return 0

    def forget(self) -> None:
        """Stop serving."""
        self.waiting.clear()
        self.streams.clear()

    # Beats

    def beat(self, now: Now, *, is_due: bool) -> None:
        """Send a beat every heartbeat, also between updates: of these a child hears only what it subscribed to (CFG-045).

        `is_due`: whether children should keep hearing us.
        """
        if not is_due:
            self._beat_at = None
        elif self._beat_at is None or now.mono >= self._beat_at + self._context.heartbeat_ns:
            self._context.publish(Hugz())
            self._context.counters.hugz += 1
            self._beat_at = now.mono

    def deadline(self) -> int | None:
        answer_by = self.waiting[0].by if self.waiting else None
        beat_due = None if self._beat_at is None else self._beat_at + self._context.heartbeat_ns
        return earliest(answer_by, beat_due, self.streams.deadline())
