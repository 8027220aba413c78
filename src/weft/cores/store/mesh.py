"""Links to other store nodes, without a broker (LNK-020 to LNK-022).

Each node dials every other node, and sends only over the links that it dialled. A hello answered by a hello makes a
link UP; three seconds without an answer make it DOWN. Messages of others arrive over the links that they dialled. So
each direction is tested on its own, and one that works alone does no harm.
"""

from collections.abc import Callable
from typing import Final

from weft.base.effects import Source
from weft.base.endpoints import is_endpoint
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.cores.store import limits
from weft.cores.store.bus import MESH, Bus
from weft.cores.store.context import Context
from weft.cores.store.linkstates import TABLE, Caller, LinkState, On, Peer
from weft.cores.store.messages import StoreLinkDown, StoreLinkUp
from weft.cores.store.namesakes import Namesakes, Verdict
from weft.wire.store.mesh import Beat, Bye, Hello, Message
from weft.wire.store.messages import Publication

HEARD: Final = "mesh"
"""The channel on which other nodes send."""
SILENT: Final = "silent"
FRESH_TRIES: Final = 4
"""After this many unanswered greetings, some ten seconds, a new socket is used: the other end may no longer hear this
one (Z7).
"""


class Mesh:
    """`hear_said`: called with bytes of a topic from a member.

    `link_changed`: a member became reachable, or unreachable.
    """

    def __init__(
        self,
        context: Context,
        bus: Bus,
        hear_publication: Callable[[Publication, str, Now], None],
        link_changed: Callable[[str, bool, Now], None],
    ) -> None:
        self._context, self._bus = context, bus
        self._hear_publication, self._link_changed = hear_publication, link_changed
        self.peers: dict[str, Peer] = {}
        self.callers: dict[bytes, Caller] = {}
        self._namesakes = Namesakes(context, bus, self.peers, self.callers)
        self._is_stopping = False
        for endpoint in context.settings.peers:
            self.know(endpoint, is_configured=True)

    # Whom to call

    def know(self, endpoint: str, *, is_configured: bool = False) -> None:
        """A node is, or may be, at this endpoint.

        Invalid endpoints, this node itself, and endpoints beyond the limit are ignored.
        """
        if not self._context.settings.endpoint or endpoint == self._context.settings.endpoint:
            return
        if not is_endpoint(endpoint) or endpoint in self.peers:
            return
        if len(self.peers) >= limits.MEMBERS_MAX and not self._forget_hint():
            return
        self.peers[endpoint] = Peer(endpoint, is_configured, due_at=self._context.now.mono)

    def _forget_hint(self) -> bool:
        """Make room: drop the unconfirmed endpoint tried most often, so that it does not keep a member out (FLD-010)."""
        hints = [peer for peer in self.peers.values() if not peer.is_configured and not peer.heard_at]
        if hints:
            del self.peers[max(hints, key=lambda peer: peer.tries).endpoint]
        return bool(hints)

    def peer_heard(self, endpoint: str, now: Now) -> None:
        """A beacon or another node reports a node: if it was given up for a while, it is tried at once."""
        peer = self.peers.get(endpoint)
        if peer is None:
            self.know(endpoint)
        elif peer.state in (LinkState.NEW, LinkState.GREET, LinkState.DOWN):
            peer.due_at, peer.tries = now.mono, 0

    # Links that this node has dialled

    def hear_answer(self, message: Message, source: Source, now: Now) -> None:
        """A message over a link that we dialled; PeerError if it is not allowed there."""
        peer = self.peers.get(source.peer.decode("ascii", "replace"))
        if peer is None:
            raise PeerError("malformed", "an answer from nobody")
        if isinstance(message, Publication):
            raise PeerError("malformed", "topics are no answers")
        if isinstance(message, Hello):
            self._check_boot(message)
        peer.heard_at = now.mono
        if isinstance(message, Hello):
            self._judge_answer(peer, message, now)
        elif isinstance(message, Bye):
            is_kept_off = message.why in ("fabric", "name", "full")
            self._turn(peer, On.REFUSED if is_kept_off else On.BYE, now, message.why)
            report = self._namesakes.refused if message.why == "name" else self._namesakes.withdrawn
            report(peer)

    def _judge_answer(self, peer: Peer, hello: Hello, now: Now) -> None:
        if hello.fabric != self._context.settings.fabric:
            self._turn(peer, On.REFUSED, now, "fabric")
        elif hello.node == self._context.name and hello.boot == self._context.settings.boot:
            self.peers.pop(peer.endpoint)  # this node itself, under another of its addresses
        else:
            is_known = peer.state is LinkState.UP and (peer.node, peer.boot) == (hello.node, hello.boot)
            before, peer.node, peer.boot = peer.node, hello.node, hello.boot
            self._bus.read_sums(peer.endpoint, reads=hello.sums)
            if not is_known:
                self._turn(peer, On.GREETED, now, before)
            self._learn(hello)

    def _turn(self, peer: Peer, on: On, now: Now, why: str) -> None:
        cell = TABLE.get((peer.state, on))
        if cell is not None:
            peer.state = cell.then
            getattr(self, cell.do)(peer, now, why)

    def greet(self, peer: Peer, now: Now, why: str) -> None:
        """Send hello; repeated after one to five seconds without an answer, but not for ever."""
        if peer.tries > limits.MESH_TRIES_MAX and not peer.is_configured:
            del self.peers[peer.endpoint]
            return
        if peer.tries and peer.tries % FRESH_TRIES == 0:
            self._hang_up(peer)
        if peer.tries > 1:
            self._namesakes.withdrawn(peer)
        peer.due_at = now.mono + limits.MESH_RETRY.pause_ns(self._context.chance, peer.tries)
        peer.tries += 1
        self._send(peer, self._hello())

    def join(self, peer: Peer, now: Now, why: str) -> None:
        """The link is UP: messages are sent over it from now on."""
        peer.tries, peer.due_at = 0, now.mono + limits.MESH_BEAT_NS
        other = self._bus.members.get(peer.node)
        if other is not None and other != peer.endpoint:
            del self.peers[peer.endpoint]  # the same node under a second address
            self._namesakes.withdrawn(peer)
            return
        self._bus.members[peer.node] = peer.endpoint
        self._namesakes.withdrawn(peer)
        self._context.tell(StoreLinkUp("mesh", peer.node))
        for other_peer in self.peers.values():
            other_peer.has_news = True  # so that nodes that know this one come to know each other
        self._link_changed(peer.node, True, now)

    def rejoin(self, peer: Peer, now: Now, why: str) -> None:
        """The peer has restarted, or has another name now."""
        if self._bus.members.get(why) == peer.endpoint:  # under its earlier name
            del self._bus.members[why]
            self._link_changed(why, False, now)
        self.join(peer, now, why)

    def part(self, peer: Peer, now: Now, why: str) -> None:
        """The link is DOWN; it is tried again."""
        if why == SILENT:
            self._hang_up(peer)
        wait = 0 if why == "stranger" else self._context.chance.about(limits.MESH_BEAT_NS, 0.2)
        peer.due_at, peer.tries = now.mono + wait, 0
        if self._bus.members.get(peer.node) == peer.endpoint:
            del self._bus.members[peer.node]
            self._context.tell(StoreLinkDown("mesh", peer.node, why))
            self._link_changed(peer.node, False, now)

    def keep_off(self, peer: Peer, now: Now, why: str) -> None:
        """The peer refuses this node, or is of another fabric: wait a minute."""
        self.part(peer, now, why)
        peer.due_at = now.mono + limits.REFUSED_NS

    def beat(self, peer: Peer, now: Now, why: str) -> None:
        """Ask whether it is still present; with a hello if it does not know yet whom this node knows.

        Many links may come up within a beat, when a whole mesh starts. Said at once and to all, each of them would cost n
        hellos, of n nodes each.
        """
        peer.due_at = now.mono + limits.MESH_BEAT_NS
        self._send(peer, self._hello() if peer.has_news else Beat())
        peer.has_news = False

    # Links that others have dialled

    def hear_call(self, message: Message, source: Source, now: Now) -> None:
        """A message over a link that a peer dialled; PeerError if the peer has not sent hello."""
        if isinstance(message, Hello):
            self._judge_call(message, source.peer, now)
            return
        caller = self.callers.get(source.peer)
        if caller is None:
            self._answer(source.peer, Bye("stranger"))
            raise PeerError("malformed", "no hello came before")
        caller.heard_at = now.mono
        if isinstance(message, Publication):
            self._hear_publication(message, caller.node, now)
        elif isinstance(message, Beat):
            self._answer(source.peer, message)
            if caller.node not in self._bus.members:
                self.know(caller.endpoint)
        else:
            self._let_go(source.peer, caller, now)

    def _check_boot(self, hello: Hello) -> None:
        """PeerError `boot-jump` if this start is too far above the known starts of the node (FLD-011)."""
        known = [self._context.settings.boot] if hello.node == self._context.name else []
        known += [peer.boot for peer in self.peers.values() if peer.node == hello.node]
        known += [caller.boot for caller in self.callers.values() if caller.node == hello.node]
        if hello.boot - max(known, default=0) > limits.BOOT_JUMP_MAX:
            raise PeerError("boot-jump", f"{hello.node}: {hello.boot}")

    def _judge_call(self, hello: Hello, routing_id: bytes, now: Now) -> None:
        self._check_boot(hello)
        verdict = self._namesakes.judge(hello, now)
        if verdict is Verdict.UNCLEAR:
            return  # it greets again
        why = "name" if verdict is Verdict.TAKEN else self._why_not(hello, now)
        if why:
            self._answer(routing_id, Bye(why))
            return
        is_new = routing_id not in self.callers
        self._forget_sockets(hello.endpoint, now)
        self.callers[routing_id] = Caller(hello.node, hello.boot, hello.endpoint, now.mono)
        self._answer(routing_id, self._hello())
        self._learn(hello)
        peer = self.peers.get(hello.endpoint)
        if peer is not None and peer.state is LinkState.UP and peer.node != hello.node:
            self._send(peer, self._hello())  # it has another name now: its answer carries it
        elif is_new and hello.endpoint:
            self.peer_heard(hello.endpoint, now)

    def _forget_sockets(self, endpoint: str, now: Now) -> None:
        """A node that dials again has left its former sockets, if they are silent."""
        gone = now.mono - limits.MESH_SILENCE_NS
        for routing_id, caller in list(self.callers.items()):
            if caller.endpoint == endpoint and caller.heard_at < gone:
                del self.callers[routing_id]

    def _why_not(self, hello: Hello, now: Now) -> str:
        """Why this caller is refused, whatever its name; empty: it is accepted."""
        mine = self._context.settings
        if hello.fabric != mine.fabric:
            return "fabric"
        if hello.node == self._context.name and hello.boot != mine.boot:
            self.peer_heard(hello.endpoint, now)  # anybody can claim that; the node that answers there tells (FLD-010)
        return "full" if len(self.callers) >= 2 * limits.MEMBERS_MAX else ""

    def _let_go(self, routing_id: bytes, caller: Caller, now: Now) -> None:
        del self.callers[routing_id]
        peer = self.peers.get(caller.endpoint)
        if peer is not None:
            self._turn(peer, On.BYE, now, "stopping")

    # What is said

    def greet_all(self, now: Now) -> None:
        """Send hello to all reachable nodes, with the nodes that this one knows."""
        for peer in self.peers.values():
            if peer.state is LinkState.UP:
                self._send(peer, self._hello())

    def stop(self, now: Now) -> None:
        """Say goodbye."""
        self._is_stopping = True
        for peer in self.peers.values():
            if peer.state is LinkState.UP:
                self._send(peer, Bye("stopping"))

    def _hello(self) -> Hello:
        mine = self._context.settings
        return Hello(
            fabric=mine.fabric,
            node=self._context.name,
            boot=mine.boot,
            endpoint=mine.endpoint,
            client=mine.client_port,
            peers=tuple(self._bus.members.values()),
            tock=self._context.tock,
            sums=True,
        )

    def _learn(self, hello: Hello) -> None:
        for endpoint in (hello.endpoint, *hello.peers):
            self.know(endpoint)

    def _hang_up(self, peer: Peer) -> None:
        """The next message uses a new socket: a peer that reconnects too soon would not be heard again (SIM-021)."""
        self._context.disconnect(MESH, peer.endpoint.encode())

    def _send(self, peer: Peer, message: Message) -> None:
        self._context.send(MESH, peer.endpoint.encode(), message)

    def _answer(self, routing_id: bytes, message: Message) -> None:
        self._context.send(HEARD, routing_id, message)

    # Time

    def wake(self, now: Now) -> None:
        """Greet, send beats, and notice silent peers."""
        if self._is_stopping:
            return
        self._own_up(now)
        for peer in list(self.peers.values()):
            if peer.due_at <= now.mono:
                self._turn(peer, On.SILENCE if self._is_silent(peer, now) else On.DUE, now, SILENT)
        oldest = now.mono - limits.REFUSED_NS
        for routing_id in [key for key, caller in self.callers.items() if caller.heard_at < oldest]:
            del self.callers[routing_id]

    def _is_silent(self, peer: Peer, now: Now) -> bool:
        """Whether the peer counts as gone.

        It neither answers nor sends, or has not answered for so long that it cannot hear us.
        """
        if peer.heard_at + limits.MESH_SILENCE_NS > now.mono:
            return False
        lately = now.mono - limits.MESH_SILENCE_NS
        speaks = any(each.endpoint == peer.endpoint and each.heard_at > lately for each in self.callers.values())
        return not speaks or peer.heard_at + limits.MESH_BUSY_NS <= now.mono

    def _own_up(self, now: Now) -> None:
        """If this node was busy or stopped for more than a beat, it heard no peer meanwhile.

        That silence does not count.
        """
        due_at = self.deadline()
        late = now.mono - due_at if due_at is not None else 0
        if late > limits.MESH_BEAT_NS:
            for peer in self.peers.values():
                peer.heard_at = min(now.mono, peer.heard_at + late)

    def deadline(self) -> int | None:
        """When the next link needs attention."""
        if self._is_stopping or not self.peers:
            return None
        return min([peer.due_at for peer in self.peers.values()])
