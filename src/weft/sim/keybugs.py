"""The planted bugs of fabrics with keys: intruders show them. Nothing imports this but `canaries.load`."""
# ruff: noqa: ARG001, ARG005  # a bug takes what the right method takes, and ignores it

from typing import Any

import weft.node.authority as authority_module
from weft.base.keys import Holder, KeyTable
from weft.node.authority import Authority
from weft.sim.canaries import canary
from weft.sim.intruders import INTRUDERS


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
