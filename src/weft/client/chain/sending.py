"""A client's messages from sending to their final status, and how many the node's credit allows (CLI-007, CLI-022)."""

from asyncio import Future
from collections import deque
from collections.abc import Iterator

from msgspec.structs import replace

from weft.base.errors import WeftError
from weft.client.chain.message import Receipt, SendFailed
from weft.wire.clients import SendItem, StatusItem

Frames = tuple[bytes, ...]


class Pending:
    """A message that has no final status yet."""

    __slots__ = ("boot", "frames", "future", "item", "size")

    def __init__(self, item: SendItem, frames: Frames, boot: int, future: "Future[Receipt]") -> None:
        self.item, self.frames, self.future = item, frames, future
        self.boot = boot
        """The start of the node in which the number in `cause` was given; a later start numbers messages anew."""
        self.size = sum(map(len, frames))


class Sends:
    """All messages of one client without a final status, in the order of their tags."""

    def __init__(self) -> None:
        self.credit = self.credit_bytes = 0
        self._waiting: deque[Pending] = deque()
        self._open: dict[int, Pending] = {}
        self._open_bytes = 0

    def add(self, pending: Pending) -> None:
        """Add a message at the end."""
        self._waiting.append(pending)

    def ready(self) -> Iterator[Pending]:
        """Messages that may be sent now. They stay open until their status comes, unless the program wants none."""
        while self._waiting:
            pending = self._waiting[0]
            if not pending.future.cancelled() and not self._has_credit(pending):
                return
            self._waiting.popleft()
            if pending.future.cancelled():
                continue  # the caller gave up before it was sent
            if pending.item.want == "none":
                pending.future.set_result(Receipt(""))
            else:
                self._open[pending.item.tag] = pending
                self._open_bytes += pending.size
            yield pending

    def settle(self, status: StatusItem) -> bool:
        """Set the final status of a message; False: no open message has this tag."""
        pending = self._open.pop(status.tag, None)
        if pending is None:
            return False
        self._open_bytes -= pending.size
        if pending.future.done():
            return True
        if status.ok:
            pending.future.set_result(Receipt(status.why, status.count))
        else:
            pending.future.set_exception(SendFailed(status.why, status.count, status.failed))
        return True

    def repeat(self, boot: int) -> None:
        """Send all open messages again, with their tags, before those that were never sent.

        If the node was restarted, it numbers messages anew: then causes are left out, because they would name other
        messages.
        """
        again = list(self._open.values())
        self._open, self._open_bytes = {}, 0
        self._waiting.extendleft(reversed(again))
        for pending in self._waiting:
            if pending.item.cause is not None and pending.boot != boot:
                pending.item = replace(pending.item, cause=None)

    def fail(self, error: WeftError) -> None:
        """Let all of them fail with this error, because no status will come."""
        for pending in (*self._open.values(), *self._waiting):
            if not pending.future.done():
                pending.future.set_exception(error)
        self._open, self._open_bytes = {}, 0
        self._waiting.clear()

    def _has_credit(self, pending: Pending) -> bool:
        """A message larger than the whole credit is sent alone, and the node decides."""
        fits = not self._open or self._open_bytes + pending.size <= self.credit_bytes
        return len(self._open) < self.credit and fits
