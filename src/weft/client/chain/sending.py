"""What was sent and has no final status yet, and what waits for the node's credit (CLI-007, CLI-022)."""

from asyncio import Future
from collections import deque
from collections.abc import Iterator

from msgspec.structs import replace

from weft.base.errors import WeftError
from weft.client.chain.message import Receipt, SendFailed
from weft.wire.clients import SendItem, StatusItem

Frames = tuple[bytes, ...]


class Pending:
    """One message until its final status."""

    __slots__ = ("boot", "frames", "future", "item", "size")

    def __init__(self, item: SendItem, frames: Frames, boot: int, future: "Future[Receipt]") -> None:
        self.item, self.frames, self.future = item, frames, future
        self.boot = boot
        """The run of the node that knows the message which `cause` names."""
        self.size = sum(map(len, frames))


class Sends:
    """All sends of one client, in the order of their tags."""

    def __init__(self) -> None:
        self.credit = self.credit_bytes = 0
        self._waiting: deque[Pending] = deque()
        self._open: dict[int, Pending] = {}
        self._open_bytes = 0

    def add(self, pending: Pending) -> None:
        """One more, behind the others."""
        self._waiting.append(pending)

    def ready(self) -> Iterator[Pending]:
        """What may be said now; it is open from then on, unless nobody wants to know what becomes of it."""
        while self._waiting:
            pending = self._waiting[0]
            if not pending.future.cancelled() and not self._has_credit(pending):
                return
            self._waiting.popleft()
            if pending.future.cancelled():
                continue  # whoever waited has given up before it was said
            if pending.item.want == "none":
                pending.future.set_result(Receipt(""))
            else:
                self._open[pending.item.tag] = pending
                self._open_bytes += pending.size
            yield pending

    def settle(self, status: StatusItem) -> bool:
        """The final status of a send; False: it had one, or never was."""
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
        """Everything that is open is to be said again, first and with its tag.

        A node that started anew numbers its messages anew: then the cause would name another message.
        """
        again = list(self._open.values())
        self._open, self._open_bytes = {}, 0
        self._waiting.extendleft(reversed(again))
        for pending in self._waiting:
            if pending.item.cause is not None and pending.boot != boot:
                pending.item = replace(pending.item, cause=None)

    def fail(self, error: WeftError) -> None:
        """None of them will have a status."""
        for pending in (*self._open.values(), *self._waiting):
            if not pending.future.done():
                pending.future.set_exception(error)
        self._open, self._open_bytes = {}, 0
        self._waiting.clear()

    def _has_credit(self, pending: Pending) -> bool:
        """A message larger than all the credit goes alone, for the node to judge."""
        fits = not self._open or self._open_bytes + pending.size <= self.credit_bytes
        return len(self._open) < self.credit and fits
