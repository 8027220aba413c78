"""A node changes its key without an interruption (SEC-024, SEC-054).

The new pair is made on the node and stays there; only its public half is sent. The node offers it to the root, which
adds it to the binding after the old key. When the nodes that talk to this node know both, it restarts with the new
pair, and the root then removes the old key. Each step follows from the state of the binding, so a node that crashed
continues; messages are repeated until the binding shows that they have arrived.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final

import msgspec

from weft.base.keys import ROLES, Binding, Role
from weft.base.now import Now
from weft.cores.enrolment import limits
from weft.cores.enrolment.bindings import Bindings
from weft.cores.enrolment.context import Context, until_of
from weft.cores.enrolment.messages import (
    HearKey,
    KeyMade,
    KeyOffered,
    KeyTaken,
    MakeKey,
    NoteApplied,
    RotateKey,
    RotationBegun,
    SwitchKey,
)

RUNS_NODES: Final = (Role.SENSOR, Role.COLLECTOR)


class Stage(Enum):
    """The stage of a node's key change, according to its binding."""

    STILL = "it has one key, and nobody wants another"
    WANTED = "the binding wants another key, or one was made here"
    KNOWN = "the binding has the next key, too"
    TAKEN = "the node has the next key, and the binding the old one still"


class Rotation:
    """The node's side of a key change, and the root's."""

    def __init__(self, context: Context, bindings: Bindings) -> None:
        self.context, self.bindings = context, bindings
        self.following = ""
        """The public key of the next pair on this disk; empty: none."""
        self.look_at: int | None = None
        self._is_made_for: list[int] = []
        """Tickets of orders that wait until the pair is made."""
        self._is_at_once = False
        """Whether to switch without waiting for nodes that do not know the next key."""
        self._is_switching = False
        """Whether this start is about to end, with the next pair in place."""
        self._known_at: int | None = None
        """When this node saw that its binding has both keys, monotonic ns."""
        self._is_written = False
        """Whether a root has written its own next key in this start."""
        self._number = 0
        """The number of the configuration with the last change of this node's binding."""
        self._applied: dict[bytes, int] = {}
        self._offered_at: dict[bytes, int] = {}

    @property
    def stage(self) -> Stage:
        """The stage of this node's own key change."""
        own, curve = self.bindings.known.get(self.context.node), self.context.curve
        if own is None or not curve or curve not in own.curve:
            return Stage.STILL
        if len(own.curve) > 1 and own.curve[-1] == curve:
            return Stage.TAKEN
        if len(own.curve) > 1 and own.curve[-1] == self.following:
            return Stage.KNOWN
        return Stage.WANTED if own.renew or self.following else Stage.STILL

    # Orders

    def rotate(self, order: RotateKey, now: Now) -> None:
        """Change the key of a node: of this one, or, at the root, of any."""
        node = self.bindings.named(order.node) if order.node else self.context.node
        binding = self.bindings.known.get(node) if node else None
        if node is None or binding is None:
            self.context.refuse(order.ticket, "not-found", f"no key of {order.node[:64] or 'this node'!r} is known")
        elif node == self.context.node:
            self._is_at_once = self._is_at_once or order.at_once
            self._is_made_for.append(order.ticket)
            self.make(now)
        elif not self.context.is_root:
            self.context.refuse(order.ticket, "not-root", "only the root asks other nodes for another key")
        else:
            self._ask(node, binding, order.ticket)

    def _ask(self, node: bytes, binding: Binding, ticket: int) -> None:
        """Write into a node's binding that it has to change its key."""

        def written(code: int, _: Now) -> None:
            if code:
                self.context.refuse(ticket, "busy", "the configuration cannot be written now")
            else:
                self.context.reply(ticket, RotationBegun(node.hex(), binding.name, binding.curve[0]))

        self.bindings.write(node, msgspec.structs.replace(binding, renew=True), written)

    def make(self, now: Now) -> None:
        """Make the next pair; it stays the same until it is in force."""
        if self.following:
            self.made(KeyMade(self.following), now)
        else:
            self.context.perform(MakeKey())

    def made(self, order: KeyMade, now: Now) -> None:
        """The pair is on disk; without a key: it could not be written."""
        waiting, self._is_made_for = self._is_made_for, []
        own = self.bindings.known.get(self.context.node)
        for ticket in waiting:
            if order.curve and own is not None:
                self.context.reply(ticket, RotationBegun(self.context.node.hex(), own.name, own.curve[0]))
            else:
                self.context.refuse(ticket, "storage-failed", order.why)
        self.following = order.curve
        self.look_at = now.mono

    # Steps that follow from the binding

    def learn(self, number: int, now: Now) -> None:
        """Bindings have changed with that number."""
        was_known = self._known_at is not None
        self._known_at = (self._known_at or now.mono) if self.stage is Stage.KNOWN else None
        if self._known_at is not None and not was_known:
            self._number = number
        self.look_at = now.mono

    def look(self, now: Now) -> None:
        """Take the next step, if possible."""
        stage = self.stage
        self.look_at = None if stage is Stage.STILL else now.mono + limits.RETELL_NS
        _NEXT[stage](self, now)

    def _rest(self, now: Now) -> None:
        """No key change is wanted."""

    def _offer(self, now: Now) -> None:
        if not self.following:
            self.context.perform(MakeKey())
        elif self.context.can_invite:
            self._put_behind(self.context.node, self.following, now)
        else:
            self.context.tell(KeyOffered(self.following, self.context.curve))

    def _switch(self, now: Now) -> None:
        """Switch as soon as the nodes that talk to this one know the next key; a starting root waits until it leads."""
        if self._is_switching:
            return
        if self.context.settings.starts_as_root and not self.context.is_root:
            return
        if self.context.can_invite and not self._is_written:
            self._is_written = True  # reports of other nodes may be from before this start
            self._known_at = None
            self.bindings.write(self.context.node, self.bindings.known[self.context.node])
            return
        ready_at = (self._known_at or now.mono) + limits.SETTLE_NS
        if self._is_at_once or (now.mono >= ready_at and not self.missing(self.context.node)):
            self._is_switching = True
            self.context.perform(SwitchKey())
        else:
            self.look_at = ready_at if ready_at > now.mono else self.look_at

    def _tell_taken(self, now: Now) -> None:
        if self.context.can_invite:
            self._take_out(self.context.node, self.context.curve, now)
        elif not self.context.is_root:
            self.context.tell(KeyTaken(self.context.curve))

    def missing(self, node: bytes) -> tuple[str, ...]:
        """Names of the nodes that have not confirmed this root's next key.

        For other nodes' keys a root does not wait.
        """
        if node != self.context.node or not self.context.can_invite or self.stage is not Stage.KNOWN:
            return ()
        known = self.bindings.known.items()
        return tuple(
            each.name for other, each in known if other != node and _runs(each) and self._lacks(other, self._number)
        )

    def _lacks(self, node: bytes, number: int) -> bool:
        return self._applied.get(node, -1) < number

    def note_applied(self, order: NoteApplied, now: Now) -> None:
        """A node has reported its number of the configuration."""
        if order.node in self.bindings.known and order.number > self._applied.get(order.node, -1):
            self._applied[order.node] = order.number
            if self.stage is Stage.KNOWN:
                self.look_at = now.mono

    # The root's side

    def hear(self, order: HearKey, now: Now) -> None:
        """A node has offered its next key, or has switched to it."""
        if not self.context.can_invite or order.node not in self.bindings.known:
            return
        if order.is_taken:
            self._take_out(order.node, order.curve, now)
        elif self._is_anothers(order) or self._is_of_before(order):
            self.context.counters.offers_refused += 1
        else:
            self._take_offer(order, now)

    def _is_anothers(self, order: HearKey) -> bool:
        """Whether another node has the key: bound to two nodes it would identify neither."""
        known = self.bindings.known.items()
        return any(order.curve in each.curve for node, each in known if node != order.node)

    def _is_of_before(self, order: HearKey) -> bool:
        """Whether the key under which it was offered is nobody's any more.

        An offer may be under way for long: if the machine was revoked and let in again since, who has its stolen disk has
        the next key of that time, too.
        """
        return bool(order.by) and order.by not in self.bindings.known[order.node].curve

    def _take_offer(self, order: HearKey, now: Now) -> None:
        last = self._offered_at.get(order.node)
        if last is None or now.mono - last >= limits.OFFER_NS:
            self._offered_at[order.node] = now.mono
            self._put_behind(order.node, order.curve, now)

    def _put_behind(self, node: bytes, curve: str, now: Now) -> None:
        """The binding also gets its full time again: of two bindings of one node, the one that ends later counts."""
        binding = self.bindings.known[node]
        if curve not in binding.curve:
            self._is_written = self._is_written or node == self.context.node
            self.bindings.write(node, _with(binding, (binding.curve[0], curve), now))

    def _take_out(self, node: bytes, curve: str, now: Now) -> None:
        """Keep only the newest key."""
        binding = self.bindings.known[node]
        if len(binding.curve) > 1 and binding.curve[-1] == curve:
            self.bindings.write(node, _with(binding, (curve,), now))


_NEXT: Final[dict[Stage, Callable[[Rotation, Now], None]]] = {
    Stage.STILL: Rotation._rest,
    Stage.WANTED: Rotation._offer,
    Stage.KNOWN: Rotation._switch,
    Stage.TAKEN: Rotation._tell_taken,
}


def _with(binding: Binding, curve: tuple[str, ...], now: Now) -> Binding:
    return msgspec.structs.replace(binding, curve=curve, until=until_of(now, binding), renew=False)


def _runs(binding: Binding) -> bool:
    """Whether the key belongs to a node that follows the configuration."""
    return any(ROLES.get(role) in RUNS_NODES for role in binding.roles)
