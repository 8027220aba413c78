"""The planted bugs of fabrics with keys: intruders show them, and keys that change. Nothing imports this but `canaries.load`."""
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
    """Who has a key that is known may say everything, in anybody's name."""
    return lambda self, source, message: None


@canary(authority_module, "may", caught_by="sealed", within=5, scenario=INTRUDERS)
def every_role_may_everything(right: Any) -> Any:
    """A key that is known may do whatever somebody may."""
    return lambda roles, verb: True


@canary(KeyTable, "find", caught_by="sealed", within=5, scenario=INTRUDERS)
def any_key_is_known(right: Any) -> Any:
    """A key that nobody has is taken for that of whoever is known first."""

    def find(self: KeyTable, key: str) -> Holder | None:
        found: Holder | None = right(self, key)
        return found or next(iter(self), None)

    return find


@canary(Authority, "told_of", caught_by="converged", within=5, scenario=AWAY)
def assignments_tell_no_keys(right: Any) -> Any:
    """Whoever places a node tells it where to go, and not by which key it knows who is there."""
    return lambda self, nodes: {}


@canary(Authority, "_bind", caught_by="sealed", within=5, scenario=CHANGES)
def revoked_key_stays_known(right: Any) -> Any:
    """A binding that the root has deleted is kept by everybody."""

    def bind(self: Authority, uuid: bytes, value: bytes | None) -> None:
        if value:
            right(self, uuid, value)

    return bind


@canary(Authority, "nodes_at", caught_by="durable", within=5, scenario=CHANGES)
def the_former_one_is_looked_for(right: Any) -> Any:
    """At a place where somebody stood whose key is nobody's any more, nobody else is looked for."""

    def nodes_at(self: Authority, place: str) -> tuple[bytes, ...]:
        return (self.places[place],) if place in self.places else right(self, place)

    return nodes_at
