"""Decides which node acts for all: the chain of pings of the seed dialect.

There is about one ping per clock, however many nodes: the node that pinged last is the last to do so again, and a node
that is not on the chain pings rarely. No part relies on all nodes agreeing about the chain (PNG-013): it only decides
which node takes the first step, and which the next.
"""

from weft.base.changes import Chain
from weft.base.now import Now
from weft.cores.store import pingchains as chains
from weft.cores.store.bus import Bus
from weft.cores.store.context import Context
from weft.cores.store.membership import Membership
from weft.cores.store.recovery import Recovery
from weft.cores.store.states import On, State
from weft.wire.store.messages import Ping

SPEAKING = (State.LISTEN, State.JOIN, State.CATCHUP, State.MEMBER)


class Pinging:
    """One node's part in the chain of pings."""

    def __init__(self, context: Context, bus: Bus, membership: Membership, recovery: Recovery) -> None:
        self._context, self._bus, self._membership, self._recovery = context, bus, membership, recovery
        settings = context.settings
        self._clock, self._length = settings.clock_ns, settings.ping_length
        self._is_spoken = "seed" in settings.dialects
        self.current: Ping | None = None
        """The ping that the next one will name."""
        self.due_at: int | None = None
        """When this node pings, if no other does before."""
        self._accepted_at: int | None = None
        if self._is_spoken:
            recovery.current_ping = lambda: self.current
            recovery.positions = self.positions
            membership.listeners.append(self._stepped)

    def positions(self) -> list[str]:
        """Names on the current chain, its head first."""
        return [node for node, _ in self.current.chain.links] if self.current else []

    def position(self) -> int:
        """This node's position; behind the chain if it is not on it."""
        names = self.positions()
        return names.index(self._context.name) if self._context.name in names else self._length

    # Hearing

    def hear(self, ping: Ping, peer: str, now: Now) -> None:
        """A ping came (PNG-012)."""
        if not self._is_spoken:
            return
        links = ping.chain.links
        self._recovery.hear_links(links, peer, now)
        before = self.current
        if chains.has_data(links):
            self._hear_authority(ping, now)
        elif self._membership.state is State.LISTEN:
            self._accept(ping)
        elif chains.is_initial(ping):
            self._recovery.answer_newcomer()
        self._context.count("pings", "heard" if before is self.current else "taken")

    def _hear_authority(self, ping: Ping, now: Now) -> None:
        current = self.current
        if current is None or not chains.has_data(current.chain.links):
            self._accept(ping)
        else:
            self._compare(ping, current, now)
        self._membership.heard_authority([node for node, _ in ping.chain.links], now, is_weft=True)

    def _compare(self, ping: Ping, current: Ping, now: Now) -> None:
        outcome = chains.relation(ping, current, self._length)
        is_won = outcome.endswith(chains.WON)
        self._context.count("pings", outcome)
        if outcome == chains.SUCCESSOR or is_won:
            self._accept(ping)
        if outcome.startswith(chains.SPLIT):
            self._recovery.split(current.chain, is_won, now, ping.chain)

    def _accept(self, ping: Ping) -> None:
        """It becomes the current ping: all nodes wait anew."""
        links = ping.chain.links
        if len(links) > self._length:
            ping = Ping(Chain(links[: self._length], is_cut=True), ping.tock)
        self.current, self._accepted_at = ping, self._context.now.mono
        self.schedule()

    # Speaking

    def schedule(self) -> None:
        """Set the time of the own ping after this one, by position."""
        now, clock, chance = self._context.now.mono, self._clock, self._context.chance
        position = self.position()
        if position < self._length:
            share = (self._length - 1 - position + chance.random()) / self._length
            self.due_at = now + clock + int(clock * share)
        elif chance.random() * self._context.settings.vary * self._recovery.known_count() < 1:
            self.due_at = now + clock
        else:
            self.due_at = now + int(clock * (2.5 + chance.random() / 2))

    def _stepped(self, before: State, on: On) -> None:
        """The node's state has changed: it may ping now, or must stop."""
        if on is On.FOUNDED or (on is On.TIMER and before is State.RESTORED) or self._is_first(on):
            self._ping()
        elif (on is On.TIMER and before in (State.LISTEN, State.JOIN)) or (
            on is On.AUTHORITY and before is State.LISTEN and not self._recovery.claims
        ):
            self._call_out()
        elif on in (On.STOPPED, On.BARRED, On.UNCONFIRMED, On.EMPTIED):
            self.current = self.due_at = self._accepted_at = None

    def _is_first(self, on: On) -> bool:
        """Whether this node has become a member and heard no ping, so that perhaps nobody pings."""
        return on is On.COMPLETE and self.current is None and self._context.tick > 0

    def _call_out(self) -> None:
        """The ping of a node without data: the head of a chain answers with what there is (PNG-003).

        Newcomers that ping on each other's chain need no more such pings.
        """
        if self._accepted_at is not None and not self._is_old(self._accepted_at) and self._is_empty_chain():
            return
        ping = Ping(Chain(((self._context.name, 0),)), self._context.next_tock())
        self._bus.say(ping)
        if self.current is None:
            self._accept(ping)

    def _is_old(self, at: int) -> bool:
        return self._context.now.mono - at >= 3 * self._clock

    def _is_empty_chain(self) -> bool:
        return self.current is not None and not chains.has_data(self.current.chain.links)

    def _ping(self) -> None:
        own = (self._context.name, self._context.tick)
        chain = chains.extended(own, self.current.chain if self.current else None, self._length)
        ping = Ping(chain, self._context.next_tock())
        self._bus.say(ping)
        self._context.count("pings", "sent")
        self._accept(ping)

    def link_up(self, member: str, now: Now) -> None:
        """Send the current ping unchanged to a new neighbour (HEA-006)."""
        if self.current is not None and self._context.tick and self._membership.state in SPEAKING:
            self._bus.say(self.current, member)
            if self.due_at is not None and self.due_at <= now.mono:
                self.schedule()  # no node was there to receive it

    def wake(self, now: Now) -> None:
        """Ping, if it is time."""
        if self.due_at is None or self.due_at > now.mono:
            return
        if self._may_ping():
            self._ping()
        else:
            self.schedule()

    def _may_ping(self) -> bool:
        current = self.current
        if self._membership.state not in SPEAKING or current is None:
            return False
        return self._is_heard() and chains.may_head(self._context.tick, current.chain.links)

    def _is_heard(self) -> bool:
        return self._bus.has_broker or bool(self._bus.members)

    def deadline(self) -> int | None:
        """When something is due, in monotonic nanoseconds."""
        return self.due_at if self._is_heard() else None
