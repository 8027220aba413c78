"""Senders that wait until a message has reached a more distant node, and the receipt that this node sends (RTE-006).

    the sender's node     DIRECT, `want: dest`, no child of it    asks for a receipt, and keeps the sender waiting
    the nodes between     forward it like any other mail
    the node it is for    sends `weft.receipt` to the origin, once it is in its `in` chain

A receipt is ordinary mail, DIRECT and volatile. Without a receipt in `RECEIPT_NS` the sender hears `unconfirmed`: the
message may have arrived, or not.
"""

from collections import OrderedDict
from typing import Final

import msgspec

from weft.base.errors import UNREADABLE
from weft.base.mail import Mail
from weft.base.now import Now
from weft.base.records import StreamRecord
from weft.cores.chains import limits
from weft.cores.chains.context import Context
from weft.cores.chains.parcel import Parcel

RECEIPT: Final = "weft.receipt"


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """The arrived message, by its identity at the origin, and the outcome: `delivered`, or why not."""

    era: int
    sequence: int
    why: str = "delivered"


_decode: Final = msgspec.msgpack.Decoder(Receipt).decode
_encode: Final = msgspec.msgpack.Encoder().encode


class Waiting:
    """A message whose sender waits.

    `ticket`: the post to the first hop, while its outcome is open; 0: it has arrived there.
    """

    __slots__ = ("due_at", "parcel", "ticket")

    def __init__(self, parcel: Parcel, ticket: int, due_at: int) -> None:
        self.parcel, self.ticket, self.due_at = parcel, ticket, due_at


class Receipts:
    """This node's messages that wait for a receipt."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._open: OrderedDict[tuple[int, int], Waiting] = OrderedDict()
        self.left = 0
        """Number of those that the first node on the way has."""

    def __len__(self) -> int:
        return len(self._open)

    @property
    def has_room(self) -> bool:
        """Whether one more message may wait."""
        return len(self._open) < limits.TICKETS_MAX

    def wait(self, parcel: Parcel, ticket: int, now: Now) -> None:
        """Wait for the receipt of a message that is about to be sent."""
        self._open[parcel.era, parcel.sequence] = Waiting(parcel, ticket, now.mono + limits.RECEIPT_NS)

    def leave(self, parcel: Parcel) -> bool:
        """The first node on the way has it; returns whether the sender has to wait longer."""
        waiting = self._open.get((parcel.era, parcel.sequence))
        if waiting is None:
            return False
        waiting.ticket = 0
        self.left += 1
        return True

    def forget(self, parcel: Parcel) -> None:
        """It was not sent: stop waiting."""
        self._open.pop((parcel.era, parcel.sequence), None)

    def _end(self, key: tuple[int, int]) -> Waiting:
        waiting = self._open.pop(key)
        self.left -= not waiting.ticket
        return waiting

    def heard(self, record: StreamRecord) -> tuple[Waiting, str] | None:
        """The message that a receipt is for, and its outcome.

        None, and counted, if there is none or the receipt comes from another node.
        """
        try:
            receipt = _decode(record.payload)
        except UNREADABLE:
            self._context.counters.refuse("receipt")
            return None
        waiting = self._open.get((receipt.era, receipt.sequence))
        if waiting is None or not _may_say(waiting.parcel, record.origin):
            self._context.counters.refuse("receipt")
            return None
        return self._end((receipt.era, receipt.sequence)), receipt.why

    def overdue(self, now: Now) -> list[Waiting]:
        """Messages that have waited too long."""
        found: list[Waiting] = []
        while self._open and (first := next(iter(self._open.items())))[1].due_at <= now.mono:
            found.append(self._end(first[0]))
        return found

    def deadline(self) -> int | None:
        """When the first message has waited too long."""
        return next(iter(self._open.values())).due_at if self._open else None


def _may_say(parcel: Parcel, origin: bytes) -> bool:
    """Whether this node may send the receipt: it is the destination, where the message names that by id."""
    node = parcel.to[1]
    return not isinstance(node, bytes) or node == origin


def receipt_of(record: StreamRecord, why: str, context: Context, now: Now) -> Mail:
    """The receipt for mail that has arrived."""
    return Mail(
        origin=context.node,
        era=context.era,
        sequence=context.next_sequence(),
        type=RECEIPT,
        frames=(_encode(Receipt(record.era or 0, record.sequence, why)),),
        to=("DIRECT", record.origin),
        depth=min(record.attributes.get("depth", 0) + 1, limits.DEPTH_MAX),
        at=now.wall,
        fmt="msgpack",
    )
