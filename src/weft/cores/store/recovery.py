"""How missed changes are noticed and fetched.

Every message names ticks, so every gap shows sooner or later: at once when a link comes up (HEA-006), by the steps of a
merge when pings of two sides meet, by repeated ticks after the last change (HEA-011), else with the next ping.
"""

from collections.abc import Callable
from typing import Final

from weft.base.changes import Chain, Link
from weft.base.now import Now
from weft.cores.kit.timers import earliest
from weft.cores.store.asking import Asking
from weft.cores.store.bus import Bus
from weft.cores.store.context import Context
from weft.cores.store.messages import Change
from weft.cores.store.pingchains import is_apart
from weft.cores.store.replica import Replica
from weft.cores.store.resending import Resending
from weft.cores.store.splits import Merge, Splits, takeover_ns
from weft.wire.store.messages import Info, Ping, Ticks, Update

TAIL_CLOCKS: Final = (1, 2, 4)
"""After the last own change its tick is repeated after this many clocks (HEA-011)."""
SILENT_CLOCKS: Final = 10
"""A head of the chain that received no full list of ticks for so many clocks sends one."""


class Recovery:
    """Changes that this node misses, and changes that others miss and this node has."""

    def __init__(self, context: Context, bus: Bus, replica: Replica) -> None:
        self._context, self._bus, self._replica = context, bus, replica
        settings = context.settings
        self._clock = settings.clock_ns if "seed" in settings.dialects else settings.cycle_ns
        self.positions: Callable[[], list[str]] = list
        """Names on the current chain of pings, its head first; set by the pinging part."""
        self.current_ping: Callable[[], Ping | None] = lambda: None
        """The current ping of the seed dialect; set by the pinging part."""
        self.claims: dict[str, int] = {}
        """What each node that sent a full list says about this node's own tick (STO-034)."""
        self.asking = Asking(context, bus, replica, self._clock, self._prev)
        self.resending = Resending(context, bus, replica)
        self.splits = Splits(context, self._clock, self._say_ticks, self.asking.ask_all)
        self.on_news = self.asking.on_news
        """Called when completeness, or what is known of other nodes, may have changed."""
        self._is_begun = False
        self._tail: int | None = None
        self._tail_at = 0
        self._full_at = 0
        self._answer_at: int | None = None
        self.asking.on_stall = self._declare_void
        replica.listeners.append(self._note)

    @property
    def is_complete(self) -> bool:
        """Nothing is missing, or no reachable node has it (HEA-012)."""
        return self.asking.is_complete

    def activate(self, *, is_active: bool = True) -> None:
        """Called when the node joins: a node without data only listens before."""
        self.asking.is_passive = not is_active

    # Input

    def hear_update(self, update: Update, peer: str, now: Now) -> None:
        """After the merge: look for a gap before the change, and drop a resend that another node has made."""
        event = update.event
        node, tick = event.chain.links[0]
        for link_node, link_tick in event.chain.links:
            self.asking.check(link_node, link_tick, peer)
        if update.sender is not None:
            self.asking.name(*update.sender, peer)
            self.resending.seen_resent(node, tick)
        if self.asking.lacks:
            self.splits.received()
            self.asking.settled(node, tick, len(event.value or b""))

    def hear_info(self, info: Info, peer: str, now: Now) -> None:
        """Ticks, missing, known, deleted and reason of another node's info."""
        if info.node and info.tick:
            self.asking.name(info.node, info.tick, peer)
        self._settle(info.known, "known")
        self._settle(info.deleted, "deleted")
        if info.ticks is not None:
            self._hear_ticks(info, info.ticks, peer)
        if info.reason is not None:
            self._hear_reason(info.reason)
        if info.missing is not None:
            self._hear_missing(info, info.missing, peer)

    def hear_links(self, links: tuple[Link, ...], peer: str, now: Now) -> None:
        """Changes were named, for example in a chain of pings: those that were not seen are missing from now on."""
        for node, tick in links:
            if tick:
                self.asking.name(node, tick, peer)

    def _settle(self, ticks: Ticks | None, how: str) -> None:
        ticks = self._replica.unsaid.spared(ticks) if ticks else None
        if ticks:
            self._replica.settle(ticks, how)
            self.resending.seen_named(ticks)
            self.asking.settled_many(ticks)

    def _hear_ticks(self, info: Info, ticks: dict[str, int], peer: str) -> None:
        for node, tick in ticks.items():
            if tick:
                self.asking.name(node, tick, peer)
        if info.prev is None and len(ticks) <= 1:
            return  # only its own links: the last of its changes
        if info.tick and self._replica.book.top(info.node):
            self.claims[info.node] = ticks.get(self._context.name, 0)
        self.splits.heard_ticks(info.node)
        if any(ticks.get(node, 0) < top for node, top in self._replica.book.tops().items()):
            self._answer_behind(peer)
        else:
            self._full_at, self._answer_at = self._context.now.mono, None
        for listener in self.on_news:
            listener()

    def _answer_behind(self, peer: str) -> None:
        """A node came back to the broker and knows less than this one: one of us answers, by position."""
        now = self._context.now.mono
        if peer in self._bus.members or self._answer_at is not None or self.splits.own_chain() is not None:
            return
        if now - self._full_at >= self._clock and not self.asking.is_passive:
            self._answer_at = now + takeover_ns(self._clock, self._position())

    def answer_newcomer(self) -> None:
        """A node without data calls: the head of the chain answers with what there is.

        Others do if it does not (PNG-003).
        """
        if self._context.tick and self._answer_at is None:
            self._answer_at = self._context.now.mono + takeover_ns(self._clock, self._position())

    def known_count(self) -> int:
        """How many nodes are known, this one included."""
        return len({*self._replica.book.nodes(), *self._bus.members, self._context.name})

    def ask_unasked(self, now: Now) -> None:
        """Ask all nodes for what is missing and was not asked for yet (PNG-036)."""
        if self.asking.lacks:
            self.asking.ask_all(if_any=True)

    def _hear_reason(self, reason: Chain) -> None:
        """The side that lost tells the side that won (HEA-001)."""
        current = self.current_ping()
        if current is None or self.splits.is_own_reason(reason):
            return
        if is_apart(reason.links, current.chain.links, self._context.settings.ping_length):
            self.splits.begin(current.chain, reason, has_lost=False)

    def _hear_missing(self, info: Info, missing: Ticks, peer: str) -> None:
        """If only this node is asked, it answers the asker at once; if all are asked, by position (step 3)."""
        if peer in self._bus.members and info.prev is None:
            self.resending.ask(missing, peer, 0)
            return
        self.splits.heard_missing(info.node)
        self.asking.asked_by_another(missing)
        own = self.splits.own_chain()
        position = self._position() if own is None else self.splits.position_in(own)
        self.resending.ask(missing, "", takeover_ns(self._clock, position))

    def _declare_void(self) -> None:
        """Changes of a dropped node that no reachable node has will not come.

        The head of the chain announces that (HEA-012).
        """
        book = self._replica.book
        void = {node: missing for node in book.caps if (missing := book.missing_of(node))}
        if void and not self._position():
            self._settle(void, "known")
            self._bus.say(self._context.info(known=void))

    def _note(self, change: Change) -> None:
        """An own change: its tick is repeated for a while."""
        if change.is_shown and change.event.node == self._context.name and change.event.tick == self._context.tick:
            self._tail, self._tail_at = 0, self._context.now.mono + self._clock

    # What is said

    def split(self, own: Chain, has_lost: bool, now: Now, other: Chain | None = None) -> None:  # noqa: FBT001  # tidy: as the pingers say it
        """Nodes that had been apart have met: begin with the positions in the own chain before that (HEA-001..003)."""
        self.splits.begin(own, other, has_lost=has_lost)

    def link_up(self, member: str, now: Now) -> None:
        """Tell a new neighbour what there is (HEA-006); `""` is the broker. The ping follows."""
        if self._context.tick:
            self.say_full(member)
        self.asking.link_up()

    def say_unsaid(self) -> None:
        """The broker is connected: changes that may not have left are sent first, before any question (FLD-021)."""
        unsaid = self._replica.unsaid.pending()
        if unsaid:
            self.resending.ask(unsaid, "", 0)
            self.resending.wake()

    def say_full(self, to: str = "", reason: Chain | None = None) -> None:
        """Send all known ticks; the chain in it marks the list as complete."""
        self._bus.say(self._context.info(ticks=self._replica.book.tops(), prev=self._prev(), reason=reason), to)
        if not to:
            self._full_at, self._answer_at = self._context.now.mono, None

    def _say_ticks(self, merge: Merge) -> None:
        self.say_full(reason=merge.own if merge.has_lost else None)

    def _prev(self) -> Chain:
        current = self.current_ping()
        return current.chain if current else Chain(((self._context.name, self._context.tick),))

    def _position(self) -> int:
        names = self.positions()
        return names.index(self._context.name) if self._context.name in names else self._context.settings.ping_length

    # Time

    def wake(self, now: Now) -> None:
        """Do what is due."""
        if not self._is_begun:
            self._is_begun, self._full_at = True, now.mono
            self.asking.begin()
        if self._answer_at is not None and self._answer_at <= now.mono:
            self.say_full()
        if self._tail is not None and self._tail_at <= now.mono:
            self._say_tail(self._tail)
        self.splits.wake()
        self.asking.wake()
        self.resending.wake()
        if self._replica.book.is_whole:
            self.splits.healed()
        if (at := self._silent_at()) is not None and at <= now.mono:
            self.say_full()

    def _say_tail(self, step: int) -> None:
        own = {self._context.name: self._context.tick}
        self._bus.say(self._context.info(ticks=own))
        self._tail = step + 1 if step + 1 < len(TAIL_CLOCKS) else None
        if self._tail is not None:
            self._tail_at += (TAIL_CLOCKS[self._tail] - TAIL_CLOCKS[step]) * self._clock

    def _silent_at(self) -> int | None:
        """When the head of the chain sends the full list again."""
        if not self._context.tick or self._position():
            return None
        return self._full_at + SILENT_CLOCKS * self._clock

    def deadline(self) -> int | None:
        """When something is due, in monotonic nanoseconds."""
        if not self._is_begun:
            return self._context.now.mono
        of_parts = (self.splits.deadline(), self.asking.deadline(), self.resending.deadline())
        tail_at = None if self._tail is None else self._tail_at
        return earliest(self._silent_at(), tail_at, self._answer_at, *of_parts)
