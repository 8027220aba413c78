"""Packs what is sent in one turn of the loop into multiparts of at most 64 messages and 256 KiB (CLI-008).

No message waits for later ones. New messages go before answers: after the answer to a message the node has forgotten it,
and could not record it as their cause. Answers of one registration keep their order where it matters: for messages that
are handed back, and for failures.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from weft.client.chain.limits import BATCH_BYTES, BATCH_FRAMES, BATCH_MESSAGES
from weft.wire import clients

Frames = tuple[bytes, ...]
MAKERS: Final[dict[str, Callable[[int, list[Any], list[bytes]], clients.Asked]]] = {
    "send": lambda _, items, frames: clients.Send(items, frames),
    "next": clients.Next,
    "drop": lambda reg, items, _: clients.Drop(reg, items),
    "fail": lambda reg, items, _: clients.Fail(reg, items),
    "conf": lambda reg, items, _: clients.Conf(reg, items),
}
IN_ORDER: Final = frozenset({"next", "fail"})


class Run:
    """Messages of one kind and registration that leave in one multipart."""

    __slots__ = ("frames", "items", "op", "reg", "size")

    def __init__(self, op: str, reg: int) -> None:
        self.op, self.reg, self.size = op, reg, 0
        self.items: list[Any] = []
        self.frames: list[bytes] = []

    def has_room(self, frames: Frames, size: int) -> bool:
        """Whether one more message fits; the first one always does."""
        return not self.items or (
            len(self.items) < BATCH_MESSAGES
            and self.size + size <= BATCH_BYTES
            and len(self.frames) + len(frames) <= BATCH_FRAMES
        )

    def add(self, item: Any, frames: Frames, size: int) -> None:
        """Add a message."""
        self.items.append(item)
        self.frames += frames
        self.size += size

    def encoded(self) -> list[bytes]:
        """The frames of the multipart."""
        return clients.encode(MAKERS[self.op](self.reg, self.items, self.frames))


class Outgoing:
    """Everything to be sent since the last multipart left."""

    def __init__(self) -> None:
        self._sends: list[Run] = []
        self._answers: list[Run] = []
        self._last: dict[tuple[str, int], Run] = {}

    def __bool__(self) -> bool:
        return bool(self._sends or self._answers)

    def send(self, item: clients.SendItem, frames: Frames, size: int) -> None:
        """Add a message to be sent."""
        if not (self._sends and self._sends[-1].has_room(frames, size)):
            self._sends.append(Run("send", 0))
        self._sends[-1].add(item, frames, size)

    def answer(self, op: str, reg: int, item: Any, frames: Frames = ()) -> None:
        """Add the answer to a message."""
        size = sum(map(len, frames))
        key = ("", reg) if op in IN_ORDER else (op, reg)
        run = self._last.get(key)
        if run is None or run.op != op or not run.has_room(frames, size):
            run = self._last[key] = Run(op, reg)
            self._answers.append(run)
        run.add(item, frames, size)

    def forget(self) -> None:
        """Drop everything, because its connection is lost."""
        self._sends, self._answers, self._last = [], [], {}

    def take(self) -> Iterator[list[bytes]]:
        """Remove and return the multiparts, in order."""
        runs = self._sends + self._answers
        self.forget()
        return (run.encoded() for run in runs)
