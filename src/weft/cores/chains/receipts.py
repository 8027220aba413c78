"""Who waits until a message has come to a node further away, and the answer that such a node gives (RTE-006).

    the sender's node     DIRECT, `want: dest`, no child of it    asks for a receipt, and keeps the sender waiting
    the nodes between     take it along as all else
    the node it is for    says `weft.receipt` to the origin, once it is in its `in` chain

A receipt is mail as any other, DIRECT and without an outbox. Without one in `RECEIPT_NS` the sender hears `unconfirmed`: the
message may have come, or not.
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
    """What has come, by its identity at the origin; and what became of it: `delivered`, or why it was not."""

    era: int
    sequence: int
    why: str = "delivered"


_decode: Final = msgspec.msgpack.Decoder(Receipt).decode
_encode: Final = msgspec.msgpack.Encoder().encode


class Waiting:
    """A message whose sender waits. `ticket`: under which its first hop is not known yet; 0: it is."""

    __slots__ = ("due_at", "parcel", "ticket")

    def __init__(self, parcel: Parcel, ticket: int, due_at: int) -> None:
        self.parcel, self.ticket, self.due_at = parcel, ticket, due_at


class Receipts:
    """Messages of this node that wait for one."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._open: OrderedDict[tuple[int, int], Waiting] = OrderedDict()
        self.left = 0
        """Those that the first node on the way has."""

    def __len__(self) -> int:
        return len(self._open)

    @property
    def has_room(self) -> bool:
        """Whether one more may wait."""
        return len(self._open) < limits.TICKETS_MAX

    def wait(self, parcel: Parcel, ticket: int, now: Now) -> None:
        """It is to go."""
        self._open[parcel.era, parcel.sequence] = Waiting(parcel, ticket, now.mono + limits.RECEIPT_NS)

    def leave(self, parcel: Parcel) -> bool:
        """The first node on the way has it; whether that is not enough."""
        waiting = self._open.get((parcel.era, parcel.sequence))
        if waiting is None:
            return False
        waiting.ticket = 0
        self.left += 1
        return True

    def forget(self, parcel: Parcel) -> None:
        """It did not leave."""
        self._open.pop((parcel.era, parcel.sequence), None)

    def _end(self, key: tuple[int, int]) -> Waiting:
        waiting = self._open.pop(key)
        self.left -= not waiting.ticket
        return waiting

    def heard(self, record: StreamRecord) -> tuple[Waiting, str] | None:
        """What a receipt answers, and with which word; None, and counted: nothing, or it comes from somebody else."""
        try:
            said = _decode(record.payload)
        except UNREADABLE:
            self._context.counters.refuse("receipt")
            return None
        waiting = self._open.get((said.era, said.sequence))
        if waiting is None or not _may_say(waiting.parcel, record.origin):
            self._context.counters.refuse("receipt")
            return None
        return self._end((said.era, said.sequence)), said.why

    def overdue(self, now: Now) -> list[Waiting]:
        """Those that have waited for long enough."""
        found: list[Waiting] = []
        while self._open and (first := next(iter(self._open.items())))[1].due_at <= now.mono:
            found.append(self._end(first[0]))
        return found

    def deadline(self) -> int | None:
        """When the first of them has."""
        return next(iter(self._open.values())).due_at if self._open else None


def _may_say(parcel: Parcel, origin: bytes) -> bool:
    """Whether a node can say that it has this: it is the one that the message names, where that is said by its id."""
    node = parcel.to[1]
    return not isinstance(node, bytes) or node == origin


def receipt_of(record: StreamRecord, why: str, context: Context, now: Now) -> Mail:
    """What is said to the origin of mail that has come."""
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
