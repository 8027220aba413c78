"""Messages that wait to be sent to one client, in order, and those sent recently, which may come back unsent.

The messages of one turn for a registration, and its statuses, are combined into batches (CLI-008). A client whose queue
in the shell is full accepts nothing: the messages sent last come back one by one from the end, take their old places at
the head, and are sent again after a pause that grows. Such a client is "behind": all offers and answers for it are
kept, but only the newest copies, and the first copy left says how many before it were lost (CHN-018). The messages of
one turn for a client that is not behind do not wait, so this bound does not apply to them.
"""

from collections import deque
from typing import Final

import msgspec

from weft.base.budget import Part
from weft.base.effects import Effect, Send
from weft.cores.chains import limits
from weft.wire.clients import Answered, Rec, RecItem, Status, StatusItem

CLIENTS: Final = "clients"
"""The channel."""
STATUSES: Final = -1
"""The registration number that stands for statuses; no client has it."""


class Copies:
    """Memory of the copies that wait for all clients."""

    __slots__ = ("bytes", "count", "room")

    def __init__(self) -> None:
        self.bytes = self.count = 0
        self.room = Part("copies", lambda: self.cost)
        """Its part of the core's budget; the whole of it here."""

    @property
    def cost(self) -> int:
        """Bytes of memory."""
        return self.bytes + limits.COPY_COST * self.count


class Batch:
    """Messages of one registration, or statuses, for one multipart."""

    __slots__ = ("bytes", "frames", "is_copies", "is_said", "items", "nodes", "reg")

    def __init__(self, reg: int, *, is_copies: bool) -> None:
        self.reg, self.is_copies = reg, is_copies
        self.items: list[RecItem] = []
        self.frames: list[bytes] = []
        self.bytes = self.nodes = 0
        """Payload bytes, and the number of nodes in all `via`, which make a header long."""
        self.is_said = False

    def has_room(self, size: int, frames: int, nodes: int) -> bool:
        """Whether one more message of that size fits into the multipart."""
        return (
            len(self.items) < limits.BATCH_MESSAGES_MAX
            and self.bytes + size <= limits.BATCH_BYTES_MAX
            and len(self.frames) + frames <= limits.BATCH_FRAMES_MAX
            and self.nodes + nodes <= limits.BATCH_NODES_MAX
        )

    def again(self) -> "Batch":
        """A copy to be sent again; what was given out of this one stays unchanged."""
        fresh = Batch(self.reg, is_copies=self.is_copies)
        fresh.items, fresh.frames = self.items.copy(), self.frames.copy()
        fresh.bytes, fresh.nodes = self.bytes, self.nodes
        return fresh

    def discard_first(self) -> tuple[RecItem, int]:
        """Remove the oldest message; returns it and its bytes."""
        first = self.items.pop(0)
        size = sum(map(len, self.frames[: first.n]))
        del self.frames[: first.n]
        self.bytes -= size
        return first, size


Entry = Batch | Answered


class Post:
    """Everything that waits for one client. `dirty` maps peers to posts with something new."""

    __slots__ = (
        "_all",
        "_before",
        "_copies",
        "_copies_bytes",
        "_copies_count",
        "_dirty",
        "_has_failed",
        "_lost",
        "_open",
        "_pause",
        "_portion",
        "_queue",
        "_sent",
        "_statuses",
        "_turn",
        "answers",
        "copies_lost",
        "peer",
        "retry_at",
        "said_at",
    )  # fmt: skip

    def __init__(self, peer: bytes, dirty: dict[bytes, "Post"], copies: Copies | None = None) -> None:
        """`copies`: shared by all clients."""
        self.peer, self._dirty, self._all = peer, dirty, copies or Copies()
        self.retry_at: int | None = None
        """When to try a client that is behind again; None: it is not behind."""
        self.said_at = 0
        self.answers = 0
        """Number of waiting statuses and other messages that do not come from chains."""
        self.copies_lost = 0
        """Copies discarded so far."""
        self._queue: deque[Entry] = deque()
        self._open: dict[int, Batch] = {}
        self._statuses: list[StatusItem] | None = None
        self._copies: deque[Batch] = deque()
        """The batch of each waiting copy, oldest first; batches that were sent do not count."""
        self._copies_count = self._copies_bytes = 0
        self._lost: dict[int, int] = {}
        self._sent: list[Entry] = []
        self._before: list[Entry] = []
        """What was sent in this turn and in the turn before; nothing older can come back."""
        self._turn = 0
        self._has_failed = False
        self._pause, self._portion = 0, limits.PORTION_MAX

    # Adding messages

    def offer(self, reg: int, item: RecItem, frames: tuple[bytes, ...]) -> None:
        """A message that the client has to answer: never discarded."""
        self._gather(reg, item, frames, is_copies=False)

    def copy(self, reg: int, item: RecItem, frames: tuple[bytes, ...]) -> None:
        """A copy; if the client is behind, its oldest copies make room."""
        batch, size = self._gather(reg, item, frames, is_copies=True)
        self._copies.append(batch)
        self._count_out(-1, -size)
        if self.retry_at is not None:
            self._trim()

    def status(self, item: StatusItem) -> None:
        """A final status."""
        self.answers += 1
        statuses = self._statuses
        if statuses is None or len(statuses) >= limits.BATCH_MESSAGES_MAX:
            statuses = self._statuses = []
            self._append(Status(statuses))
        statuses.append(item)

    def say(self, message: Answered) -> None:
        """Any other message; it keeps its place in the order."""
        self.answers += 1
        self._open.clear()  # a number that is registered again then starts a batch of its own kind
        self._statuses = None
        self._append(message)

    def forget(self, reg: int) -> None:
        """The registration has ended: a later one with the same number is not told of its lost copies."""
        self._lost.pop(reg, None)

    def _gather(self, reg: int, item: RecItem, frames: tuple[bytes, ...], *, is_copies: bool) -> tuple[Batch, int]:
        count, nodes = len(frames), len(item.via)
        size = len(frames[0]) if count == 1 else sum(map(len, frames))
        batch = self._open.get(reg)
        if batch is None or not batch.has_room(size, count, nodes):
            batch = self._open[reg] = Batch(reg, is_copies=is_copies)
            self._append(batch)
        batch.items.append(item)
        batch.frames += frames
        batch.bytes += size
        batch.nodes += nodes
        return batch, size

    def _append(self, entry: Entry) -> None:
        self._queue.append(entry)
        if self.retry_at is None:
            self._dirty[self.peer] = self

    # Copies

    def _trim(self) -> None:
        while self._copies_count and (
            self._copies_count > limits.COPIES_MAX
            or self._copies_bytes > limits.COPIES_BYTES_MAX
            or self._all.room.is_over
        ):
            batch = self._copies.popleft()
            if batch.is_said:
                continue
            first, size = batch.discard_first()
            self._count_out(1, size)
            self.copies_lost += 1
            self._lost[batch.reg] = self._lost.get(batch.reg, 0) + 1 + first.lost

    def _count_out(self, count: int, size: int) -> None:
        self._copies_count -= count
        self._copies_bytes -= size
        self._all.count -= count
        self._all.bytes -= size

    def close(self) -> None:
        """The client is gone: drop everything."""
        self._count_out(self._copies_count, self._copies_bytes)

    # Saying it

    def speak(self, effects: list[Effect], turn: int, mono: int) -> None:
        """Send what waits, in order; a client that is behind gets a portion that doubles while it accepts all."""
        self._settle(turn)
        if not self._has_failed:
            self._pause, self._portion = 0, min(2 * self._portion, limits.PORTION_MAX)
        self._has_failed = False
        self._open.clear()
        self._statuses = None
        queue, peer = self._queue, self.peer
        for _ in range(min(self._portion, len(queue))):
            entry = queue.popleft()
            message = self._leave(entry)
            if message is not None:
                self._sent.append(entry)
                effects.append(Send(CLIENTS, peer, message))
                self.said_at = mono
        if queue:
            self.retry_at = mono + limits.RETRY_NS
            while self._copies and self._copies[0].is_said:
                self._copies.popleft()
            self._trim()
        else:
            self.retry_at = None
            self._copies.clear()

    def _leave(self, entry: Entry) -> Answered | None:
        """The message to send for an entry; None if nothing is left of it."""
        if not isinstance(entry, Batch):
            self.answers -= _answers_in(entry)
            return entry
        entry.is_said = True
        if entry.is_copies:
            self._count_out(len(entry.items), entry.bytes)
            if self._lost and entry.items and (lost := self._lost.pop(entry.reg, 0)):
                entry.items[0] = msgspec.structs.replace(entry.items[0], lost=lost)
        return Rec(entry.reg, entry.items, entry.frames) if entry.items else None

    def _settle(self, turn: int) -> None:
        """A new turn: messages sent before the last turn cannot come back any more.

        At the latest a beat lets them go.
        """
        if turn != self._turn:
            self._before = self._sent if turn == self._turn + 1 else []
            self._sent, self._turn = [], turn

    def take_back(self, mono: int) -> bool:
        """What was sent last did not leave: put it back in front. Returns whether there was anything."""
        sent = self._sent or self._before
        if not sent:
            return False
        if not self._has_failed:
            self._has_failed, self._portion = True, 1
            self._pause = min(max(2 * self._pause, limits.RETRY_NS), limits.RETRY_MAX_NS)
        self.retry_at = mono + self._pause
        self._dirty.pop(self.peer, None)
        self._return(sent.pop())
        return True

    def _return(self, entry: Entry) -> None:
        if isinstance(entry, Batch):
            entry = entry.again()
            if entry.is_copies:
                self._copies.extendleft([entry] * len(entry.items))
                self._count_out(-len(entry.items), -entry.bytes)
        else:
            self.answers += _answers_in(entry)
        self._queue.appendleft(entry)
        self._trim()


def _answers_in(message: Answered) -> int:
    return len(message.m) if isinstance(message, Status) else 1
