"""A node takes another key, and nothing is lost meanwhile (SEC-024, SEC-054).

The new pair is made and stays where the node is; only its public half travels. The node offers it to the root, which writes
it into the binding behind the old one. When those who speak with the node know both, the node starts again with the new
pair, and then the root takes the old one out. Each step is seen from what the binding says, so whoever crashed goes on;
what travels is repeated until the binding says that it has arrived.
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
    """How far a node's own key is, by what its binding says."""

    STILL = "it has one key, and nobody wants another"
    WANTED = "the binding wants another key, or one was made here"
    KNOWN = "the binding has the next key, too"
    TAKEN = "the node has the next key, and the binding the old one still"


class Rotation:
    """What a node does to have another key, and what a root does for it."""

    def __init__(self, context: Context, bindings: Bindings) -> None:
        self.context, self.bindings = context, bindings
        self.following = ""
        """The public half of the pair that waits on this disk; empty: none."""
        self.look_at: int | None = None
        self._is_made_for: list[int] = []
        """Tickets of those who wait until the pair is made."""
        self._is_at_once = False
        """Whether those who do not know the next key yet are waited for no more."""
        self._is_switching = False
        """Whether this start is about to end, with the next pair in place."""
        self._known_at: int | None = None
        """When this node heard that its binding has both keys, monotonic nanoseconds."""
        self._is_written = False
        """Whether this start of a root has written its own next key."""
        self._number = 0
        """Of the configuration, in which this node's binding has changed last."""
        self._applied: dict[bytes, int] = {}
        self._offered_at: dict[bytes, int] = {}

    @property
    def stage(self) -> Stage:
        """How far this node's own key is."""
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
        """Let a node have another key: this one, or at the root any."""
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
        """Write into its binding that a node shall have another key."""

        def written(code: int, _: Now) -> None:
            if code:
                self.context.refuse(ticket, "busy", "the configuration cannot be written now")
            else:
                self.context.reply(ticket, RotationBegun(node.hex(), binding.name, binding.curve[0]))

        self.bindings.write(node, msgspec.structs.replace(binding, renew=True), written)

    def make(self, now: Now) -> None:
        """Have a pair, which stays the same until it is in force."""
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

    # What is seen from the binding

    def learn(self, number: int, now: Now) -> None:
        """Bindings have changed with that number."""
        was_known = self._known_at is not None
        self._known_at = (self._known_at or now.mono) if self.stage is Stage.KNOWN else None
        if self._known_at is not None and not was_known:
            self._number = number
        self.look_at = now.mono

    def look(self, now: Now) -> None:
        """Do what comes next, if it can be done."""
        stage = self.stage
        self.look_at = None if stage is Stage.STILL else now.mono + limits.RETELL_NS
        _NEXT[stage](self, now)

    def _rest(self, now: Now) -> None:
        """Nobody wants anything."""

    def _offer(self, now: Now) -> None:
        if not self.following:
            self.context.perform(MakeKey())
        elif self.context.can_invite:
            self._put_behind(self.context.node, self.following, now)
        else:
            self.context.tell(KeyOffered(self.following))

    def _switch(self, now: Now) -> None:
        """Take the next pair as soon as those who speak with this node know it; a root that starts waits until it leads."""
        if self._is_switching:
            return
        if self.context.settings.starts_as_root and not self.context.is_root:
            return
        if self.context.can_invite and not self._is_written:
            self._is_written = True  # what others said of it may have been said before this start
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
        """Names of those nodes that have not said yet that they know this root's next key; of others' keys a root waits for nobody."""
        if node != self.context.node or not self.context.can_invite or self.stage is not Stage.KNOWN:
            return ()
        known = self.bindings.known.items()
        return tuple(
            each.name for other, each in known if other != node and _runs(each) and self._lacks(other, self._number)
        )

    def _lacks(self, node: bytes, number: int) -> bool:
        return self._applied.get(node, -1) < number

    def note_applied(self, order: NoteApplied, now: Now) -> None:
        """A node has said which number of the configuration it has."""
        if order.node in self.bindings.known and order.number > self._applied.get(order.node, -1):
            self._applied[order.node] = order.number
            if self.stage is Stage.KNOWN:
                self.look_at = now.mono

    # What a root does for others

    def hear(self, order: HearKey, now: Now) -> None:
        """A node has offered its next key, or taken it."""
        if self.context.can_invite and order.node in self.bindings.known:
            (self._take_out if order.is_taken else self._hear_offer)(order.node, order.curve, now)

    def _hear_offer(self, node: bytes, curve: str, now: Now) -> None:
        """A key of two nodes would be nobody's: the key of another is refused."""
        if any(curve in each.curve for other, each in self.bindings.known.items() if other != node):
            self.context.counters.offers_refused += 1
            return
        last = self._offered_at.get(node)
        if last is None or now.mono - last >= limits.OFFER_NS:
            self._offered_at[node] = now.mono
            self._put_behind(node, curve, now)

    def _put_behind(self, node: bytes, curve: str, now: Now) -> None:
        """It also has its whole time again: of two bindings of one node, that which ends later is in force."""
        binding = self.bindings.known[node]
        if curve not in binding.curve:
            self._is_written = self._is_written or node == self.context.node
            until = until_of(now, limits.UNTIL_S)
            self.bindings.write(node, _with(binding, (binding.curve[0], curve), until))

    def _take_out(self, node: bytes, curve: str, now: Now) -> None:
        """Only the key that came last stays."""
        binding = self.bindings.known[node]
        if len(binding.curve) > 1 and binding.curve[-1] == curve:
            self.bindings.write(node, _with(binding, (curve,), max(binding.until + 1, until_of(now, limits.UNTIL_S))))


_NEXT: Final[dict[Stage, Callable[[Rotation, Now], None]]] = {
    Stage.STILL: Rotation._rest,
    Stage.WANTED: Rotation._offer,
    Stage.KNOWN: Rotation._switch,
    Stage.TAKEN: Rotation._tell_taken,
}


def _with(binding: Binding, curve: tuple[str, ...], until: int) -> Binding:
    return msgspec.structs.replace(binding, curve=curve, until=until, renew=False)


def _runs(binding: Binding) -> bool:
    """Whether a key is that of a node, which follows the configuration."""
    return any(ROLES.get(role) in RUNS_NODES for role in binding.roles)
