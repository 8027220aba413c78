"""Planted bugs of those classes of mistakes that have no other planted bug: docs/torture.md lists which class is where."""
# ruff: noqa: ARG001, ARG005  # a bug takes what the right method takes, and ignores it

from typing import Any

import weft.sim.disk as disk_module
from weft.base.now import Now
from weft.cores.carrier.context import Context as CarrierContext
from weft.cores.configuration.stage import Stage
from weft.cores.topology.beaconing import Beaconing
from weft.cores.topology.context import Context
from weft.sim.canaries import canary
from weft.wire.segments import Verdict

# A number that claims what was never checked.


@canary(Stage, "short_by", caught_by="claimed", within=60, scenario="snapshots")
def number_taken_without_count_and_digest(right: Any) -> Any:
    """Whatever has come when the end of a snapshot comes is taken for all of it."""
    return lambda self: None


# A hint is acted upon as if it were proved.


@canary(Beaconing, "ask_twin", caught_by="unmoved", within=20, scenario="liars")
def beacon_ends_a_node(right: Any) -> Any:
    """Who hears in a beacon that an older node has its name gives way at once."""
    return lambda self, heard, now: self.give_way(heard.beacon.node, now)


# Epochs without a bound, and no return to the right root.


@canary(Context, "check_epoch", caught_by="unmoved", within=40, scenario="liars")
def epoch_without_a_bound(right: Any) -> Any:
    """Whatever anybody says is taken for the epoch of the fleet."""
    return lambda self, epoch: None


@canary(Context, "is_of_record", caught_by="converged", within=20, scenario="liars")
def no_way_home(right: Any) -> Any:
    """A fleet that has followed a wrong root does not know the right one when that speaks again."""
    return lambda self, node: False


# What a stranger calls safe.


@canary(CarrierContext, "believes", caught_by="complete", within=20, scenario="liars")
def safe_believed_of_a_stranger(right: Any) -> Any:
    """Whoever says that something is safe is believed."""
    return lambda self, root: True


@canary(Beaconing, "follow", caught_by="unmoved", within=20, scenario="strangers")
def beacon_moves_a_child(right: Any) -> Any:
    """Who hears the name of its parent from elsewhere goes there, whether the parent answers or not."""

    def follow(self: Beaconing, heard: Any, now: Now) -> None:
        self.is_linked, self._knocked_at = False, None
        right(self, heard, now)

    return follow


# Verdicts that say too little.


@canary(disk_module, "judge", caught_by="told", within=20, scenario="damages")
def damage_read_as_clean(right: Any) -> Any:
    """What cannot be read of a segment is passed over, and the journal is called clean."""
    return lambda data, node, *, is_last: right(data, node, is_last=is_last)._replace(verdict=Verdict.CLEAN, gaps=())
