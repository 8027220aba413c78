"""Planted bugs of the classes of mistakes that no other planted bug covers: docs/torture.md lists them all."""
# ruff: noqa: ARG001, ARG005  # a bug takes what the right method takes, and ignores it

from typing import Any

import weft.sim.disk as disk_module
from weft.base.now import Now
from weft.cores.carrier.childprogress import ChildProgress
from weft.cores.carrier.context import Context as CarrierContext
from weft.cores.carrier.spool import Damages
from weft.cores.carrier.takeover import TakeOver
from weft.cores.configuration.stage import Stage
from weft.cores.topology.beaconing import Beaconing
from weft.cores.topology.context import Context
from weft.node.node import Node
from weft.sim.canaries import canary
from weft.wire.segments import Verdict

# A number claims more than was checked.


@canary(Stage, "short_by", caught_by="claimed", within=60, scenario="snapshots")
def number_taken_without_count_and_digest(right: Any) -> Any:
    """Whatever has arrived when a snapshot ends counts as the whole snapshot."""
    return lambda self: None


# A hint is acted upon as if it were proved.


@canary(Beaconing, "ask_twin", caught_by="unmoved", within=20, scenario="liars")
def beacon_ends_a_node(right: Any) -> Any:
    """A node that hears in a beacon of an older node with its name gives way at once."""
    return lambda self, received, now: self.give_way(received.beacon.node, now)


# Epochs without a bound, and no return to the right root.


@canary(Context, "check_epoch", caught_by="unmoved", within=40, scenario="liars")
def epoch_without_a_bound(right: Any) -> Any:
    """Any epoch that anybody names is taken for the epoch of the fleet."""
    return lambda self, epoch: None


@canary(Context, "is_of_record", caught_by="converged", within=20, scenario="liars")
def no_way_home(right: Any) -> Any:
    """A fleet that has followed a wrong root does not accept the right one when it is heard again."""
    return lambda self, node: False


# A stranger claims that records are safe.


@canary(CarrierContext, "believes", caught_by="complete", within=20, scenario="liars")
def safe_believed_of_a_stranger(right: Any) -> Any:
    """Whoever says that records are safe is believed."""
    return lambda self, root: True


@canary(Beaconing, "follow", caught_by="unmoved", within=20, scenario="strangers")
def beacon_moves_a_child(right: Any) -> Any:
    """A child that hears its parent's name from another address goes there, even if the parent answers."""

    def follow(self: Beaconing, received: Any, now: Now) -> None:
        self.is_linked, self._knocked_at = False, None
        right(self, received, now)

    return follow


# Verdicts that hide something.


@canary(disk_module, "judge", caught_by="told", within=20, scenario="damages")
def damage_read_as_clean(right: Any) -> Any:
    """Unreadable parts of a segment are skipped, and the journal is called clean."""
    return lambda data, node, *, is_last: right(data, node, is_last=is_last)._replace(verdict=Verdict.CLEAN, gaps=())


# Damage of a journal that others have given records to.


@canary(ChildProgress, "roll_back", caught_by="wall", within=60, scenario="damages-anywhere")
def damage_not_asked_for_again(right: Any) -> Any:
    """A collector still says that it holds what the damage of its journal has taken, although its children have it."""
    return lambda self, doubted, lsn: False


@canary(TakeOver, "doubt", caught_by="exactly_once", within=60, scenario="damages-anywhere")
def lake_not_asked_after_damage(right: Any) -> Any:
    """A root whose journal has lost what its lake has takes that again, and drains it again."""
    return lambda self, doubted, now: None


@canary(Damages, "fresh", caught_by="complete", within=60, scenario="damages-anywhere")
def losses_by_damage_unannounced(right: Any) -> Any:
    """Nobody announces what a damaged journal has lost, although its footers list it."""
    return lambda self, order: ()


# Numbers of the journal that a node counts wrongly.


@canary(Node, "restore", caught_by="complete", within=20, scenario="everything-tree")
def next_number_set_back_by_each_part(right: Any) -> Any:
    """A record that a core keeps while the journal is restored is not counted when a further part is restored."""

    def restore(self: Node, entries: Any, next_lsn: int, now: Now) -> None:
        self.next_lsn = 0
        right(self, entries, next_lsn, now)

    return restore
