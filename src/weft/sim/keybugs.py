"""The planted bugs of fabrics with keys, which intruders or changes of keys show.

Nothing imports this but `canaries.load`.
"""
# ruff: noqa: ARG001, ARG005  # a bug takes what the right method takes, and ignores it

from typing import Any

import weft.node.authority as authority_module
from weft.base.keys import Holder, KeyTable
from weft.node.authority import Authority
from weft.sim.canaries import canary
from weft.sim.intruders import INTRUDERS
from weft.sim.keyplan import AWAY, CHANGES


@canary(Authority, "judge", caught_by="sealed", within=5, scenario=INTRUDERS)
def authority_not_asked(right: Any) -> Any:
    """The owner of any known key may say everything, in anybody's name."""
    return lambda self, source, message: None


@canary(authority_module, "may", caught_by="sealed", within=5, scenario=INTRUDERS)
def every_role_may_everything(right: Any) -> Any:
    """A known key may do whatever any role may."""
    return lambda roles, verb: True


@canary(KeyTable, "find", caught_by="sealed", within=5, scenario=INTRUDERS)
def any_key_is_known(right: Any) -> Any:
    """An unknown key is treated as that of the first known owner."""

    def find(self: KeyTable, key: str) -> Holder | None:
        found: Holder | None = right(self, key)
        return found or next(iter(self), None)

    return find


@canary(Authority, "told_of", caught_by="calm", within=5, scenario=AWAY)
def assignments_tell_no_keys(right: Any) -> Any:
    """A node that is placed is told where to go, but not whose key to expect there."""
    return lambda self, nodes: {}


@canary(Authority, "_bind", caught_by="sealed", within=5, scenario=CHANGES)
def revoked_key_stays_known(right: Any) -> Any:
    """Nodes keep a binding that the root has deleted."""

    def bind(self: Authority, uuid: bytes, value: bytes | None) -> None:
        if value:
            right(self, uuid, value)

    return bind


@canary(Authority, "nodes_at", caught_by="durable", within=5, scenario=CHANGES)
def the_former_one_is_looked_for(right: Any) -> Any:
    """At an address whose former owner lost its key, a node still expects that owner and accepts nobody else."""

    def nodes_at(self: Authority, place: str) -> tuple[bytes, ...]:
        return (self.places[place],) if place in self.places else right(self, place)

    return nodes_at
