"""Planted bugs that show where protocols meet on one node. Nothing imports this but `canaries.load`."""

from typing import Any, Final

from weft.base.records import StreamRecord
from weft.base.spool import Journaled
from weft.cores.carrier.core import Carrier
from weft.cores.clone.context import Context
from weft.cores.clone.messages import KvSync
from weft.sim.canaries import canary

EVERYTHING: Final = "everything"


@canary(Carrier, "command", caught_by="complete", within=5, scenario="everything-tree")
def what_is_no_starts_own_stays_below(right: Any) -> Any:
    """Records of the store and of documents, whose origin is no start of a node, do not go up."""

    def command(self: Carrier, order: Any, now: Any) -> None:
        if isinstance(order, Journaled):
            for record in order.records:
                if isinstance(record, StreamRecord) and record.era is None:
                    return
        right(self, order, now)

    return command


@canary(Context, "learn", caught_by="converged", within=20, scenario=EVERYTHING)
def deleted_pairs_stay_with_clones(right: Any) -> Any:
    """A pair that is deleted in the configuration is still sent to clients of the Clone pattern."""

    def learn(self: Context, pair: KvSync) -> None:
        if pair.value:
            right(self, pair)

    return learn
