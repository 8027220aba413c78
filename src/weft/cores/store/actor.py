"""Coordination as real MoaT-KV servers do it: turns of pings, and what happens when two lists meet (PNG-030..037).

Every participant keeps a short list of the nodes that pinged last; a node's place in it decides when it pings. Two
pings based on different lists show that two groups were apart and have met: the greater value wins, and both sides
recover. Two instances run side by side on their own topics: `ping` for all servers, `del` for the nodes that must agree
before deletions are forgotten.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from weft.base.changes import Chain
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.cores.kit.timers import Timers
from weft.cores.store import limits
from weft.cores.store.bus import Bus
from weft.cores.store.context import COLLISION, Context
from weft.cores.store.deletion import DELETERS, names_in
from weft.cores.store.membership import Membership
from weft.cores.store.messages import Change, EchoMissing, NameCollision, StoreSettings
from weft.cores.store.nodelist import NodeList, Value, is_late, turn, turn_off_list
from weft.cores.store.recovery import Recovery
from weft.cores.store.replica import Replica
from weft.wire.store import actor as wire

TAGS: Final = 4  # tags that the value of `del` covers (PNG-037)
OWN_PINGS: Final = 16  # remembered, to recognise pings of another node with the same name
VERSION: Final = "1"  # sent as `weft` in `vers`, so that Weft nodes recognise each other (PNG-031)


class Rules(msgspec.Struct, frozen=True):
    """Settings that all nodes of a topic share; the highest version wins (PNG-030)."""

    version: int
    cycle_ns: int
    gap_ns: int
    nodes: int = 5
    splits: int = 4
    n_hosts: int = 10
    is_forced: bool = False


def rules_of(settings: StoreSettings, topic: str) -> Rules:
    """The settings that this node would use."""
    if topic == "del":
        return Rules(1, settings.del_cycle_ns, settings.del_gap_ns)
    return Rules(0, settings.cycle_ns, settings.gap_ns)


class Actor:
    """One topic of the `moat` dialect."""

    def __init__(  # tidy: the parts that it coordinates, each once
        self,
        context: Context,
        bus: Bus,
        replica: Replica,
        membership: Membership,
        recovery: Recovery,
        topic: str,
    ) -> None:
        self._context, self._bus, self._replica = context, bus, replica
        self._membership, self._recovery, self._topic = membership, recovery, topic
        self.rules = rules_of(context.settings, topic)
        self.nodes = NodeList(self.rules.nodes)
        self.values: dict[str, Value] = {}
        """The value in the last ping of each node ever heard."""
        self.is_tagged_until = 0
        """This node pinged last and no other has pinged since: until then it does what one node has to do for all
        (PNG-036).
        """
        self.on_away: Callable[[list[str], Now], None] | None = None
        """This node was away, on `del` for longer than the tags of the others cover: one of these nodes knows what was
        forgotten.
        """
        self.on_tag: Callable[[int, list[str], Now], None] | None = None
        """`del`: all these nodes have been present since that tock (PNG-037)."""
        self.tag_seen = 0
        """`del`: the newest tag, own or received; 0: none."""
        self._weft: set[str] = set()
        self._introduced: set[str] = set()
        """Weft nodes that know, since their start, that this is a Weft node."""
        self._unjudged: dict[str, int] = {}
        self._tags: list[int] = []
        self._full_pings = 0
        self._timers = Timers()
        self._is_on = False
        self._is_greeted = False
        self._is_returning = True
        self._greeted_at = 0
        self._sent: list[wire.Pinged] = []
        self._lost: wire.Hist | None = None
        self._healed: dict[tuple[str, ...], int] = {}
        if topic == "del":
            replica.listeners.append(self._entry_changed)

    # Questions of other parts

    @property
    def positions(self) -> list[str]:
        """The node list, the last one that pinged first."""
        return self.nodes.names

    @property
    def weft_positions(self) -> list[str]:
        """The Weft nodes in it."""
        return [name for name in self.nodes.names if name not in self._context.foreign]

    @property
    def weft_nodes(self) -> set[str]:
        """All nodes known to be Weft nodes, and those of the mesh."""
        return self._weft | set(self._bus.members)

    # Links

    def link_up(self, now: Now) -> None:
        """The broker is connected: subscribe, and wait until it returns our own messages (PNG-032)."""
        self._is_on = True
        self._is_greeted = False
        self._timers.clear()
        self._timers.set("echo", now.mono + self.rules.cycle_ns + 2 * self.rules.gap_ns)
        self._say(wire.Init(self._context.name))
        self._say_rules(now)

    def link_down(self, now: Now) -> None:
        """The broker is gone: be silent. The list stays, so that two halves recognise each other by it later."""
        self._is_on = False
        self._timers.clear()
        self._unjudged.clear()
        self.is_tagged_until = 0

    # Hearing

    def hear(self, message: wire.Message, now: Now) -> None:
        """A message of this topic, own ones included; PeerError if it is not allowed."""
        HEARD[type(message)](self, message, now)

    def _hear_init(self, message: wire.Init, now: Now) -> None:
        """A node has started: it may be another kind of server than before."""
        if message.node == self._context.name:
            self._hear_own_init(now)
        else:
            self._weft.discard(message.node)
            self._introduced.discard(message.node)

    def _hear_own_init(self, now: Now) -> None:
        if self._is_greeted:
            self._context.tell(NameCollision(self._context.name, "mqtt"))
            return
        self._begin(now)

    def _begin(self, now: Now) -> None:
        """Take part: at once as a newcomer, within a gap after a broken link, when all nodes begin again."""
        self._is_greeted = True
        self._timers.stop("echo")
        if not self._is_passive:
            wait = 0 if self._value is None else round(self._context.chance.random() * self.rules.gap_ns)
            self._timers.set("ping", now.mono + wait)
            if not wait:
                self._ping(now)

    def _no_echo(self, now: Now) -> None:
        if self._topic == "ping":
            self._context.tell(EchoMissing("mqtt"))
        self._begin(now)

    def _hear_vers(self, message: wire.Vers, now: Now) -> None:
        if message.node == self._context.name or not self._has_room(message.node):
            return
        self._know(message.node, is_weft=bool(message.weft), now=now)
        if message.version > self.rules.version:
            self._adopt_rules(message)
        if message.version >= self.rules.version:
            self._timers.stop("vers")  # another node has answered
        else:
            self._timers.start("vers", now.mono + self._takeover(self.nodes.position(self._context.name)))

    def _has_room(self, node: str) -> bool:
        """Whether the kind of one more node may be noted: a message can claim any name."""
        foreign = self._context.foreign
        if node in self._weft or node in foreign or len(self._weft) + len(foreign) < limits.NODES_MAX:
            return True
        self._context.count("actor", "too-many-nodes")
        return False

    def _know(self, node: str, *, is_weft: bool, now: Now) -> None:
        """Note the kind of a node. Weft nodes introduce themselves once more, for nodes that came later."""
        was_unjudged = self._unjudged.pop(node, None) is not None
        if not is_weft:
            self._weft.discard(node)
            self._context.foreign.setdefault(node)
        else:
            self._greet(node, now)
        if was_unjudged and node in self.nodes.names:
            self._hear_good(self.nodes.names, now)

    def _greet(self, node: str, now: Now) -> None:
        self._weft.add(node)
        self._context.foreign.pop(node, None)
        if node not in self._introduced or now.mono - self._greeted_at >= self.rules.cycle_ns:
            self._introduced.add(node)
            self._timers.start("greet", now.mono + round(self._context.chance.random() * self.rules.gap_ns))

    def _wonder(self, node: str, now: Now) -> None:
        """A node pings whose configuration was not received: it was here first, or its message was lost.

        A Weft node answers ours.
        """
        is_known = node in self._weft or node in self._context.foreign or node in self._bus.members
        if is_known or node in self._unjudged or len(self._unjudged) >= limits.NODES_MAX:
            return
        self._unjudged[node] = now.mono + 2 * self.rules.gap_ns
        self._timers.set("judge", min(self._unjudged.values()))
        self._say_rules(now)

    def _judge(self, now: Now) -> None:
        """A node that has not said that it is a Weft node counts as none (PNG-031)."""
        for node in [node for node, due in self._unjudged.items() if due <= now.mono]:
            if self._has_room(node):
                self._know(node, is_weft=False, now=now)
            else:
                del self._unjudged[node]
        if self._unjudged:
            self._timers.set("judge", min(self._unjudged.values()))

    def _adopt_rules(self, message: wire.Vers) -> None:
        cycle_ns, gap_ns = round(message.cycle * SECOND), round(message.gap * SECOND)
        if cycle_ns < 3 * gap_ns or gap_ns <= 0 or not 1 <= message.splits <= message.nodes <= limits.NODES_MAX:
            self._context.count("actor", "bad-rules")
            return
        self.rules = Rules(
            message.version,
            cycle_ns,
            gap_ns,
            message.nodes,
            message.splits,
            max(message.n_hosts, 1),
            message.force_in,
        )
        self.nodes.shrink(message.nodes)

    def _hear_ping(self, message: wire.Pinged, now: Now) -> None:
        node = message.node
        if message in self._sent:
            return  # returned by the broker
        if node == self._context.name:
            self._hear_namesake(now)
            return
        self._count_value(node, message.value)
        self._wonder(node, now)
        self._note(node, message.value, message.history, now)
        if self._lost is not None and self._lost.history[0] == node:
            self._drop_hist()
        if self.nodes.names[:1] == [node]:
            self._go_on(now)
        else:
            self._compare(message.history, message.value, now, is_hist=False)
        self._count_full(node, message.value, now)

    def _hear_hist(self, message: wire.Hist, now: Now) -> None:
        """The list of the side that lost, repeated so that the winning side knows about it."""
        if not message.history:
            raise PeerError("bad-field", "history")
        node = message.history[0]
        self._count_value(node, message.value)
        if node != self._context.name and self.nodes.names[:1] != [node]:
            self._note(node, message.value, message.history, now)
            self._compare(message.history, message.value, now, is_hist=True)

    def _hear_namesake(self, now: Now) -> None:
        """A ping under our name that we did not send: another node has this name. Of two that ping, one has to stop."""
        if self._context.read_only != COLLISION:
            self._context.tell(NameCollision(self._context.name, "mqtt"))
            self._membership.bar(COLLISION, now)

    def _count_value(self, node: str, value: Value) -> None:
        """Tock and tick of a ping count like those of any message (STO-020)."""
        if value is None:
            return
        if self._topic == "del":
            self._context.hear_tock(value[1])
        else:
            self._context.hear_tock(value[0])

    def _note(self, node: str, value: Value, history: tuple[str, ...], now: Now) -> None:
        if node not in self.values and len(self.values) >= limits.NODES_MAX:
            self._context.count("actor", "too-many-nodes")
            return
        self.values[node] = value
        if value is None or self._topic == "del":
            return
        self._recovery.hear_links(((node, value[1]),), "mqtt", now)
        self._hear_good(history, now)

    def _hear_good(self, history: Sequence[str], now: Now) -> None:
        """While this node is not ready, nodes with data are known; their kind has to be known too (PNG-034)."""
        if self._value is None:
            good = [name for name in history if self.values.get(name) is not None and name not in self._unjudged]
            if good:
                self._ask_forgotten(good, now)
                is_seed = "seed" in self._context.settings.dialects
                is_weft = is_seed and not any(name in self._context.foreign for name in good)
                self._membership.heard_authority(good, now, is_weft=is_weft)

    def _ask_forgotten(self, good: list[str], now: Now) -> None:
        """A node that starts with old data may have missed that deletions were forgotten: ask (DEL-007)."""
        if self._is_returning:
            self._is_returning = False
            if self.on_away is not None and self._context.tick:
                self.on_away(good, now)

    # Two lists

    def _compare(self, history: tuple[str, ...], value: Value, now: Now, *, is_hist: bool) -> None:
        """Does a received list continue the own list, or is it a different one (PNG-034)?"""
        old = self.nodes.names
        if list(history[1:2]) == old[:1]:
            if not is_hist:
                self.nodes.push(history[0])
                self._go_on(now)
            return
        has_lost = self._is_greater(history[0], value, old)
        old_value = self.values.get(old[0]) if old else None
        if has_lost:
            self.nodes.adopt(history)
            self._go_on(now)
        if list(history[1:2]) != old[1:2] and self._context.name in old and self._value is not None:
            self._split(old, old_value, has_lost, history, now)

    def _is_greater(self, node: str, value: Value, old: list[str]) -> bool:
        """Whether its list wins: the greater value does; between equal values, the lower name."""
        if not old:
            return True
        ours = self.values.get(old[0])
        if value == ours:
            return node.encode() < old[0].encode()
        return value is not None and (ours is None or value > ours)

    def _split(self, old: list[str], value: Value, has_lost: bool, history: tuple[str, ...], now: Now) -> None:  # noqa: FBT001  # tidy: as Recovery.split
        """Two sides have met: recover, by the places in the list before, and inform the own side."""
        position = old.index(self._context.name)
        self._lost = wire.Hist(value, tuple(old[: self.rules.splits]))
        self._timers.set("hist", now.mono + self._takeover(position))
        if not position:
            self._say_hist(now)
        if self._topic == "del" or self._healed.get(history, 0) > now.mono:
            return
        self._healed = {key: until for key, until in self._healed.items() if until > now.mono}
        self._healed[history] = now.mono + self.rules.cycle_ns
        self._recovery.split(self._chain_of(old), has_lost, now, self._chain_of(list(history)))

    def _chain_of(self, names: list[str]) -> Chain:
        return Chain(tuple((name, (self.values.get(name) or (0, 0))[1]) for name in names), is_cut=True)

    def _takeover(self, position: int | None) -> int:
        """How long to wait for the nodes ahead of this one; the first one acts at once."""
        place = len(self.nodes.names) if position is None else position
        return round(self.rules.gap_ns * (1 - 0.5**place))

    def _drop_hist(self) -> None:
        self._lost = None
        self._timers.stop("hist")

    def _say_hist(self, now: Now) -> None:
        lost, self._lost = self._lost, None
        self._timers.stop("hist")
        if lost is not None:
            self._say(lost)

    # Taking turns

    def _go_on(self, now: Now) -> None:
        """A ping counts: whoever pinged before is no longer last, and the wait begins again (PNG-035)."""
        self._timers.stop("tag")
        self.is_tagged_until = 0
        if self._is_on and self._is_greeted and not self._is_passive:
            wait = self.rules.cycle_ns + self.rules.gap_ns * self._turn()
            self._timers.set("ping", now.mono + round(wait))

    def _turn(self) -> float:
        """Delay after the cycle, in gaps."""
        chance, names = self._context.chance, self.nodes.names
        if not names:
            return 1.7 + chance.random() / 5
        if self._value is None and is_late(names, self.values):
            return 2 + chance.random() / 3
        position = self.nodes.position(self._context.name)
        if position is not None:
            return turn(position, len(names))
        hosts = max(len(self.values), self.rules.n_hosts)
        return turn_off_list(self.rules.nodes - len(names), hosts, is_forced=self.rules.is_forced, chance=chance)

    def _ping(self, now: Now) -> None:
        """It is this node's turn to ping."""
        if self._is_passive:
            return
        self.nodes.push(self._context.name)
        value = self._next_value()
        self.values[self._context.name] = value
        ping = wire.Pinged(self._context.name, value, tuple(self.nodes.names[: self.rules.splits]))
        self._sent = [*self._sent[1 - OWN_PINGS :], ping]
        self._say(ping)
        self._drop_hist()
        self._go_on(now)
        self._count_full(self._context.name, value, now)
        self._timers.set("tag", now.mono + self.rules.gap_ns)

    def _tag(self, now: Now) -> None:
        """No node has pinged since: this node acts for all, for the rest of the cycle (PNG-036)."""
        self.is_tagged_until = now.mono + self.rules.cycle_ns - self.rules.gap_ns // 2
        if self._topic == "del":
            self._tag_deleters(now)
        elif self._value is not None:
            self._recovery.ask_unasked(now)

    # Values

    @property
    def _value(self) -> Value:
        """Value for the next ping: None until this node has what others have, and for a node that only listens."""
        if self._topic == "del":
            return (self._tags[0], self._tags[-1]) if self._tags else None
        context = self._context
        return (context.tock, context.tick) if self._membership.serves and context.tick else None

    def _next_value(self) -> Value:
        """The same with a new tock, since every message takes one (STO-007)."""
        if self._topic == "ping" and self._value is not None:
            self._context.next_tock()
        return self._value

    # Deleters

    @property
    def deleters(self) -> list[str]:
        """The nodes named at `[null,"actor","del"]`."""
        entry = self._replica.tree.get(DELETERS)
        return names_in(entry.value) if entry is not None else []

    @property
    def _is_passive(self) -> bool:
        """A node that need not agree to forgetting deletions only listens (PNG-037).

        One whose name is taken is silent.
        """
        if self._context.read_only == COLLISION:
            return True
        return self._topic == "del" and self._context.name not in self.deleters

    def _entry_changed(self, change: Change) -> None:
        if change.is_shown and change.event.path == DELETERS:
            self._full_pings = 0
            if self._is_passive:
                self._tags.clear()
                self._timers.stop("ping")
            elif self._is_on and self._is_greeted and "ping" not in self._timers:
                self._timers.set("ping", self._context.now.mono)

    def _count_full(self, node: str, value: Value, now: Now) -> None:
        """Count a ping for which all deleters are in the list; otherwise start the count again."""
        if self._topic != "del":
            return
        names = self.deleters
        is_full = bool(names) and set(names) <= set(self.nodes.names)
        self._full_pings = self._full_pings + 1 if is_full else 0
        if value is None or node == self._context.name:
            return
        if self._full_pings > len(names) and self._is_passive and self.on_tag is not None:
            self.on_tag(value[0], names, now)
        if value[0] > self.tag_seen > 0 and self.on_away is not None:
            self.on_away([name for name in self.nodes.names if name != self._context.name], now)
        self.tag_seen = max(self.tag_seen, value[1])

    def _tag_deleters(self, now: Now) -> None:
        names = self.deleters
        if not names or not set(names) <= set(self.nodes.names):
            return
        self._tags = [*self._tags[1 - TAGS :], self._context.next_tock()]
        self.tag_seen = max(self.tag_seen, self._tags[-1])
        if self._full_pings > len(names) and self.on_tag is not None:
            self.on_tag(self._tags[0], names, now)

    # Saying

    def _say(self, message: wire.Message) -> None:
        self._bus.say_raw(self._topic, wire.encode(message))

    def _say_rules(self, now: Now) -> None:
        rules = self.rules
        self._greeted_at = now.mono
        self._timers.stop("vers", "greet")
        self._say(
            wire.Vers(
                node=self._context.name,
                version=rules.version,
                cycle=rules.cycle_ns / SECOND,
                gap=rules.gap_ns / SECOND,
                nodes=rules.nodes,
                splits=rules.splits,
                n_hosts=rules.n_hosts,
                force_in=rules.is_forced,
                weft=VERSION,
            )
        )

    # Time

    def wake(self, now: Now) -> None:
        """Do what is due."""
        for name in self._timers.due(now):
            DUE[name](self, now)

    def deadline(self) -> int | None:
        """When something is due, in monotonic nanoseconds."""
        return self._timers.earliest()


HEARD: Final[dict[type, Callable[[Actor, Any, Now], None]]] = {
    wire.Init: Actor._hear_init,
    wire.Vers: Actor._hear_vers,
    wire.Pinged: Actor._hear_ping,
    wire.Hist: Actor._hear_hist,
}
DUE: Final[dict[str, Callable[[Actor, Now], None]]] = {
    "echo": Actor._no_echo,
    "ping": Actor._ping,
    "tag": Actor._tag,
    "vers": Actor._say_rules,
    "greet": Actor._say_rules,
    "judge": Actor._judge,
    "hist": Actor._say_hist,
}
