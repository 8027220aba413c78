"""Planted bugs of documents. Nothing imports this but `canaries.load`."""
# a bug takes what the right method takes, and ignores it

from typing import Any, Final

from weft.base.effects import Persist
from weft.cores.document.context import Context
from weft.cores.document.fold.order import Order
from weft.cores.document.gossip import HEARD, Gossip
from weft.cores.document.log import Log, Taken
from weft.sim.canaries import canary
from weft.wire.document.messages import Xmsg
from weft.wire.document.operations import header_of

DOCUMENTS: Final = "documents"
FEW: Final = 2


@canary(Context, "take", caught_by="wall", within=3, scenario=DOCUMENTS)
def operation_said_before_persist(right: Any) -> Any:
    """An own operation is sent to everybody before it is written to the journal."""
    return lambda self: sorted(right(self), key=lambda effect: isinstance(effect, Persist))


@canary(Order, "_merge", caught_by="prefix_fold", within=5, scenario=DOCUMENTS)
def folded_in_the_order_of_arrival(_: Any) -> Any:
    """Operations are folded in the order of their arrival."""

    def merge(self: Order, fresh: list[Any]) -> int:
        self.entries.extend(fresh)
        return len(self.entries) - len(fresh)

    return merge


@canary(HEARD, Xmsg, caught_by="prefix_fold", within=40, scenario=DOCUMENTS)
def forwarded_past_a_gap(right: Any) -> Any:
    """An operation is passed on although earlier ones are missing."""

    def flood(self: Gossip, knowing: Any, xmsg: Any) -> None:
        right(self, knowing, xmsg)
        if self.log.held():
            self._answering.spread(xmsg.body)

    return flood


@canary(Log, "take", caught_by="durable", within=5, scenario=DOCUMENTS)
def others_have_no_room_for_more(right: Any) -> Any:
    """A log takes only a few operations of each other source, and drops the rest silently."""

    def take(self: Log, body: bytes, sender: bytes) -> Taken:
        taken: Taken = right(self, body, sender) if header_of(body).sequence <= FEW else Taken("full")
        return taken

    return take


@canary(Context, "keep_own", caught_by="wall", within=5, scenario=DOCUMENTS)
def own_operation_is_not_kept(_: Any) -> Any:
    """What is entered here is sent to others, and never written to the journal."""
    return lambda *_: None


@canary(Context, "keep", caught_by="converged", within=10, scenario=DOCUMENTS)
def what_others_enter_is_not_kept(_: Any) -> Any:
    """Only own operations are written to the journal, so a start restores less than was in memory."""
    return lambda *_: None
