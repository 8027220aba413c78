"""All answers to children that are being sent: whose turn it is, and which may send more.

A restart of a root brings the requests of all its children at once, so nothing here walks over all answers for one of them.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

from weft.base.effects import Confirm, Send
from weft.base.now import Now
from weft.cores.configuration import limits
from weft.cores.configuration.context import SERVE
from weft.cores.configuration.store import batch
from weft.wire.envelope import Answer, Envelope
from weft.wire.replication import KThxBai, KvPack, KvSync, pack


class Content(NamedTuple):
    """What an answer consists of."""

    pairs: Sequence[KvSync]
    end: KThxBai
    is_packed: bool = False


class Stream:
    """An answer that is being sent."""

    __slots__ = (
        "content",
        "due_at",
        "envelope",
        "moved_at",
        "pairs",
        "peer",
        "portion",
        "portion_max",
        "position",
        "sent",
        "token",
        "turn",
    )

    def __init__(self, peer: bytes, envelope: Envelope, content: Content, portion_max: int = limits.PORTION) -> None:
        self.peer, self.envelope, self.content, self.pairs = peer, envelope, content, content.pairs
        self.position = 0
        """How many pairs, then the end, have been sent and confirmed."""
        self.sent: list[int] = []
        """How many of these each message has that was sent since then and is not confirmed yet."""
        self.portion = self.portion_max = min(portion_max, limits.PACKS) if content.is_packed else portion_max
        self.token = 0
        """Token of the last `Confirm`; an answer with another token is not for this stream."""
        self.due_at: int | None = None
        """When to send more; None: after the last portion is confirmed."""
        self.moved_at = 0
        self.turn = 0
        """The one with the least is served first."""

    @property
    def is_ending(self) -> bool:
        """Whether the end has been sent."""
        return self.position >= len(self.pairs) and bool(self.sent)

    @property
    def is_done(self) -> bool:
        """Whether the end has been confirmed."""
        return self.position > len(self.pairs)

    def step(self, effects: list[Any], token: int) -> int:
        """Send the next portion, or the end; returns what it counts in a turn."""
        messages: Sequence[Any] = self._portion() or (self.content.end,)
        effects += [Send(SERVE, self.peer, Answer(self.envelope, message)) for message in messages]
        effects.append(Confirm(SERVE, self.peer, len(messages), token))
        self.sent = [len(message.pairs) if type(message) is KvPack else 1 for message in messages]
        self.token, self.due_at = token, None
        return limits.PORTION if self.content.is_packed else len(messages)

    def _portion(self) -> Sequence[KvSync] | Sequence[KvPack]:
        """The next messages with pairs; none: all are sent."""
        if self.content.is_packed:
            return _packed(self.pairs, self.position, self.portion)
        return batch(self.pairs, self.position, self.portion, limits.PORTION_BYTES)

    def confirm(self, refused: int, now: Now) -> None:
        """The last portion was sent, except its last `refused` messages."""
        assert refused <= len(self.sent), "no more is refused than was said"
        taken, self.sent = sum(self.sent[: len(self.sent) - refused]), []
        self.position += taken
        if taken:
            self.moved_at = now.mono
        if refused:
            self.portion = max(self.portion // 2, 1)
        else:
            self.portion = min(self.portion * 2, self.portion_max)
        self.due_at = now.mono + (limits.PORTION_NS if refused else 0)


def _packed(pairs: Sequence[KvSync], begin: int, count: int) -> Sequence[KvPack]:
    """The next pairs in at most `count` messages."""
    found: list[KvPack] = []
    size = 0
    while begin < len(pairs) and len(found) < count and size < limits.PACKS_BYTES:
        found.append(pack(batch(pairs, begin, limits.PACK_PAIRS, limits.PACK_BYTES)))
        begin += len(found[-1].pairs)
        size += len(found[-1].body)
    return found


class Streams:
    """Answers by their turn, by child, by token, and those that may send more."""

    def __init__(self) -> None:
        self._turns = count()
        self._all: dict[Stream, None] = {}
        self._of_peer: dict[bytes, list[Stream]] = {}
        self._unconfirmed: dict[int, Stream] = {}
        """By token of the last portion."""
        self._ready: dict[Stream, None] = {}
        """Those with an instant at which to send more."""

    def __len__(self) -> int:
        return len(self._all)

    def open_of(self, peer: bytes) -> int:
        """How many answers to a child have not sent their end."""
        return sum(not stream.is_ending for stream in self._of_peer.get(peer, ()))

    def add(self, stream: Stream) -> None:
        """Its turn comes after all others."""
        stream.turn = next(self._turns)
        self._all[stream] = None
        self._of_peer.setdefault(stream.peer, []).append(stream)

    def remove(self, stream: Stream) -> None:
        """It has ended."""
        del self._all[stream]
        self._ready.pop(stream, None)
        self._unconfirmed.pop(stream.token, None)
        of_peer = self._of_peer[stream.peer]
        of_peer.remove(stream)
        if not of_peer:
            del self._of_peer[stream.peer]

    def step(self, stream: Stream, effects: list[Any], token: int) -> int:
        """Send its next portion, or the end; returns what it counts in a turn."""
        self._ready.pop(stream, None)
        self._unconfirmed.pop(stream.token, None)
        self._unconfirmed[token] = stream
        return stream.step(effects, token)

    def confirm(self, token: int, refused: int, now: Now) -> Stream | None:
        """The portion of that token was sent, except its last `refused` messages; None: it is of no answer any more."""
        stream = self._unconfirmed.pop(token, None)
        if stream is not None:
            stream.confirm(refused, now)
            self._ready[stream] = None
        return stream

    def due(self, now: Now) -> list[Stream]:
        """Those that may send more now, in turn."""
        due = [stream for stream in self._ready if stream.due_at is not None and now.mono >= stream.due_at]
        return sorted(due, key=lambda stream: stream.turn)

    def served_upto(self, last: Stream) -> None:
        """There was no time for more in this turn: next time those after `last` are first."""
        for stream in self.in_turn():
            if stream.turn > last.turn:
                break
            stream.turn = next(self._turns)

    def in_turn(self) -> list[Stream]:
        """All of them."""
        return sorted(self._all, key=lambda stream: stream.turn)

    def clear(self) -> None:
        """Forget all of them."""
        self._all, self._of_peer, self._unconfirmed, self._ready = {}, {}, {}, {}

    def deadline(self) -> int | None:
        """When the first of them may send more."""
        return min((stream.due_at for stream in self._ready if stream.due_at is not None), default=None)
