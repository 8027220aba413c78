"""Stopping a group, or all nodes: they are called, they answer, and get the order to stop (TOP-017)."""

from weft.base.now import Now
from weft.cores.topology import limits
from weft.cores.topology.atlas import Located
from weft.cores.topology.context import Context
from weft.cores.topology.messages import Announcement, Control, NodeLeft, NodesStopped, StopNodes
from weft.cores.topology.registry import Asker, Registry
from weft.wire.discovery import MARCO, group_key


class Halting:
    """One order at a time: a second order is answered at once, with no node stopped."""

    def __init__(self, context: Context, registry: Registry) -> None:
        self.context, self.registry = context, registry
        self._order: StopNodes | None = None
        self._missing: dict[bytes, Located] = {}
        self._stopped: dict[bytes, Located] = {}
        self._end_at = self._next_at = 0
        self._times = 0

    def begin(self, order: StopNodes, now: Now) -> None:
        """Call the nodes that have to stop."""
        if not self.context.is_root or self._order is not None:
            self.context.reply(order.ticket, NodesStopped((), ()))
            return
        nodes = self.registry.planner.tree.nodes
        self._order, self._stopped, self._times = order, {}, 0
        self._missing = {n: located for n, located in sorted(nodes.items()) if order.group in ("", located.group)}
        self._end_at, self._next_at = now.mono + limits.STOP_NS, now.mono

    def takes(self, asker: Asker) -> bool:
        """Whether the POLO is from a node that has to stop; if so, it gets the order."""
        located = self._missing.pop(asker.guest.node, None) or self._stopped.get(asker.guest.node)
        if self._order is None or located is None:
            return False
        self._stopped[asker.guest.node] = located
        if not self._missing:
            self._end_at = 0  # all have answered
        order = Control("stop", self.context.endpoint, self.context.node, {})
        self.context.answer(asker.peer, asker.envelope, order)
        return True

    def deadline(self) -> int | None:
        return None if self._order is None else min(self._end_at, self._next_at)

    def wake(self, now: Now) -> None:
        """Call again; finish when all have answered, or when time is over."""
        if self._order is None:
            return
        if not self._missing or now.mono >= self._end_at:
            self._end(self._order, now)
        elif now.mono >= self._next_at:
            self.registry.announcer.say(self._call(self._order))
            self._next_at = now.mono + min(limits.MARCO_GAP_NS << self._times, self.context.beat_ns)
            self._times = min(self._times + 1, 16)

    def _call(self, order: StopNodes) -> Announcement:
        """Call with a new UUID, as a root that no node knows (TOP-003)."""
        context = self.context
        content = {"fleet": context.settings.fleet, "epoch": max(context.root.epoch, 0), "why": "stop"}
        key = group_key(order.group) if order.group else MARCO
        return Announcement(key, context.endpoint, context.chance.randbytes(16), content)

    def _end(self, order: StopNodes, now: Now) -> None:
        self._order = None
        stopped = list(self._stopped.values())
        for located in stopped:
            self.registry.planner.tree.drop(located.node)
            self.context.tell(NodeLeft(located.record.name, located.record.endpoint, "stopped"))
        self.registry.write((), stopped, now)
        answer = NodesStopped(_names(stopped), _names(list(self._missing.values())))
        self.context.reply(order.ticket, answer)
        self._missing, self._stopped = {}, {}

    def retire(self) -> None:
        """This node stops leading: answer the order with what was done so far."""
        if self._order is not None:
            answer = NodesStopped(_names(list(self._stopped.values())), _names(list(self._missing.values())))
            self.context.reply(self._order.ticket, answer)
            self._order = None


def _names(nodes: list[Located]) -> tuple[str, ...]:
    return tuple(located.record.name or located.record.endpoint for located in nodes)
