"""Who may read, rewrite and send in the chains of a node (CHN-080, CHN-081).

    uid:1000    a program of this machine, by the user that opened the socket in the state directory, as the kernel reports
    key:cam     a program of another machine, by the key that it has proved
    anybody     over TCP to a node without keys: such a node cannot identify clients (SEC-002)

Without a rule, the node's own user, root, and an operator's key may do everything; a service's key may read and send;
on a node without keys every client that can connect may do everything. All others may do what a rule allows. No program
may send or rewrite Weft's own types (`weft.…`): the engine refuses that, whatever this table says.
"""

from collections.abc import Callable
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from weft.base.effects import Source
from weft.base.keys import Holder, Role
from weft.cores.chains import limits
from weft.cores.chains.order import covers

READ, REWRITE, SEND = "read", "rewrite", "send"
Verb = Literal["read", "rewrite", "send"]
ANYBODY: Final = "anybody"
NOBODY: Final = ""
"""A peer without a known user or a bound key."""
LOCAL: Final = "localhost:"
"""Prefix for a peer on a socket of the file system: `localhost:UID:GID:PID`."""
SUPERUSER: Final = 0
OF_ROLES: Final[dict[Role, frozenset[str]]] = {
    Role.OPERATOR: frozenset({READ, REWRITE, SEND}),
    Role.SERVICE: frozenset({READ, SEND}),
}
"""What a key may do without a rule, by its role."""


class Allow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[[chains.allow]]`: one rule; the rights of several rules add up."""

    user: Annotated[str, Meta(pattern=r"^(uid:[0-9]{1,10}|key:[A-Za-z0-9_.-]{1,63}|anybody)$")]
    verbs: Annotated[tuple[Verb, ...], Meta(min_length=1, max_length=3)]
    types: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^(\*|[a-z0-9][a-z0-9._-]{0,63}(\.\*)?)$")], ...],
        Meta(min_length=1, max_length=limits.RULE_TYPES_MAX),
    ] = ("*",)
    """Patterns as programs register them: `app.report`, `app.*`, `*`."""
    dir: Annotated[tuple[Literal["in", "out"], ...], Meta(min_length=1, max_length=2)] = ("in", "out")

    def allows(self, verb: str, direction: str, kind: str) -> bool:
        """Whether it allows this for all types that `kind` covers."""
        return verb in self.verbs and direction in self.dir and any(covers(each, kind) for each in self.types)


class Rights:
    """Decides what a peer may do; if no owner was configured, every peer counts as the owner."""

    def __init__(self, allow: tuple[Allow, ...], own: int | None, *, is_closed: bool) -> None:
        self.holder_of: Callable[[bytes], Holder | None] = lambda _: None
        """The current holder of the key for a node's UUID."""
        self._own, self._is_closed = own, is_closed
        self._rules: dict[str, list[Allow]] = {}
        for rule in allow:
            self._rules.setdefault(rule.user, []).append(rule)

    def user_of(self, source: Source) -> str:
        """The user of a peer.

        >>> Rights((), 7, is_closed=False).user_of(Source("clients", b"", None, "localhost:1000:1000:4711"))
        'uid:1000'
        """
        if source.proved is not None:
            bound = self._bound(source)
            return NOBODY if bound is None else f"key:{bound.name}"
        if source.kind.startswith(LOCAL):
            return f"uid:{source.kind.split(':')[1]}"
        return ANYBODY if source.kind else NOBODY

    def is_owner(self, source: Source) -> bool:
        """Whether the peer is the node's own user, who may do everything."""
        own = (f"uid:{self._own}", f"uid:{SUPERUSER}")
        return self._own is None or (source.proved is None and self.user_of(source) in own)

    def may(self, source: Source, verb: str, direction: str, kind: str) -> bool:
        """Whether the peer may do that."""
        user = self.user_of(source)
        if self.is_owner(source) or (user == ANYBODY and not self._is_closed):
            return True
        bound = self._bound(source)
        if bound is not None and any(verb in OF_ROLES.get(role, ()) for role in bound.roles):
            return True
        return any(rule.allows(verb, direction, kind) for rule in self._rules.get(user, ()))

    def may_attach(self, source: Source) -> bool:
        """Whether the peer may do anything at all."""
        user = self.user_of(source)
        if self.is_owner(source) or user in self._rules or (user == ANYBODY and not self._is_closed):
            return True
        bound = self._bound(source)
        return bound is not None and not OF_ROLES.keys().isdisjoint(bound.roles)

    def _bound(self, source: Source) -> Holder | None:
        """The holder of the key that the peer proved; None if it proved none, or the key is no longer bound."""
        return None if source.proved is None else self.holder_of(source.proved)
