"""Of two live nodes with one name in the store, the newer is refused (LNK-022); one that has only moved is accepted.

A node that starts again elsewhere greets while its former start still counts as alive. So its first greeting is not
answered: if the former start is heard after that, there are two nodes.
"""

from collections.abc import Mapping
from enum import Enum

from weft.base.now import Now
from weft.cores.store import limits
from weft.cores.store.bus import Bus
from weft.cores.store.context import COLLISION, Context
from weft.cores.store.linkstates import Caller, Peer
from weft.cores.store.messages import BecameReadOnly, NameCollision
from weft.wire.store.mesh import Hello


class Verdict(Enum):
    FREE = "no other live node has the name"
    UNCLEAR = "an older start of the name was alive a moment ago"
    TAKEN = "an older live node has the name"


class Namesakes:
    """`peers`: the links that this node dials, `callers`: the nodes that dialled it; both belong to the mesh."""

    def __init__(self, context: Context, bus: Bus, peers: Mapping[str, Peer], callers: Mapping[bytes, Caller]) -> None:
        self._context, self._bus, self._peers, self._callers = context, bus, peers, callers
        self._has_barred = False
        """Whether it was a member of the mesh that made this node read-only, and not a server at a broker."""

    # Names of others

    def judge(self, hello: Hello, now: Now) -> Verdict:
        """Whether the caller may have its name; a collision is reported."""
        verdict = self._judge(hello, now)
        if verdict is Verdict.TAKEN:
            self._context.tell(NameCollision(hello.node, hello.endpoint))
        return verdict

    def _judge(self, hello: Hello, now: Now) -> Verdict:
        mine = self._context.settings
        if hello.fabric != mine.fabric:
            return Verdict.FREE
        if hello.node == self._context.name and hello.boot > mine.boot:
            return Verdict.TAKEN
        silent_before = now.mono - limits.MESH_SILENCE_NS
        for caller in self._callers.values():
            is_alive = caller.heard_at > silent_before and caller.endpoint != hello.endpoint
            if caller.node == hello.node and is_alive and caller.boot < hello.boot:
                newer = (hello.boot, hello.endpoint)
                if caller.doubted_by != newer:
                    caller.doubted_by, caller.doubted_at = newer, now.mono
                return Verdict.TAKEN if caller.heard_at > caller.doubted_at else Verdict.UNCLEAR
        return Verdict.FREE

    # The name of this node

    def refused(self, peer: Peer) -> None:
        """This peer knows an older live node with this node's name: accept no orders (4.1)."""
        peer.has_refused_name = True
        if not self._context.read_only:
            self._context.read_only, self._has_barred = COLLISION, True
            self._context.tell(NameCollision(self._context.name, peer.endpoint))
            self._context.tell(BecameReadOnly(COLLISION))

    def withdrawn(self, peer: Peer) -> None:
        """This peer accepts the node, or answers no more: orders are accepted if some peer is there and none refuses."""
        peer.has_refused_name = False
        is_refused = any(each.has_refused_name for each in self._peers.values())
        if self._has_barred and self._bus.members and not is_refused:
            self._has_barred = False
            if self._context.read_only == COLLISION:
                self._context.read_only = ""
