"""Writes entries again about which real MoaT-KV servers would otherwise differ for ever (STO-014, STO-015).

Of two changes with equal tocks those servers keep the one that arrived later, and over a deletion they accept any write
that its chain does not cover, whatever its tock. Another change with the same value, whose chain covers all losers, is
accepted by every version of them, and no covered change comes back.
"""

from collections.abc import Callable, Collection, Iterable

import msgspec

from weft.base.changes import Chain, Event, Link, Path
from weft.base.now import SECOND, Now
from weft.cores.kit.refusals import Refusal
from weft.cores.kit.timers import earliest
from weft.cores.store import limits
from weft.cores.store.bus import Bus
from weft.cores.store.context import Context
from weft.cores.store.messages import Change, EntryRepaired
from weft.cores.store.replica import Replica
from weft.wire.store.pack import same_value
from weft.wire.store.path import key_of, text_of

LOST: frozenset[str] = frozenset({"conflict-taken", "conflict-kept"})
SEEN_AGAIN: frozenset[str] = frozenset({"stale", "duplicate"})


class Contested(msgspec.Struct, gc=False):
    """An entry and its losers."""

    path: Path
    links: dict[Link, int]
    """Links of losers and of their chains, with the time when they came; oldest first."""
    events: dict[Link, Event]
    """The losers themselves."""
    due_at: int | None = None


class Repair:
    """Remembers losers, and repairs entries where servers with another rule may have kept them."""

    def __init__(self, context: Context, bus: Bus, replica: Replica) -> None:
        self._context, self._bus, self._replica = context, bus, replica
        self.positions: Callable[[], list[str]] = list
        """Weft nodes of the node list, the last one that pinged first."""
        self.known: Callable[[], Collection[str]] = tuple
        """All known Weft nodes."""
        self._contested: dict[bytes, Contested] = {}
        self._mended: dict[bytes, int] = {}
        """When this node last repaired an entry."""
        self._budget = limits.REPAIRS_PER_S
        self._budget_at = 0

    def note(self, change: Change) -> None:
        """A merge: remember the loser, and plan a repair if needed. Only while foreign servers are known."""
        if not self._context.foreign:
            self._contested.clear()
            return
        loser = change.other if change.outcome == "conflict-taken" else change.event
        if change.outcome in LOST and loser is not None:
            self._lose(loser)
        elif change.outcome in SEEN_AGAIN:
            self._see_again(change.event)
        if self._contested and (key := key_of(change.event.path)) in self._contested:
            self._plan(key)

    def _lose(self, loser: Event) -> None:
        contested = self._entry(loser.path)
        contested.events[loser.chain.head] = loser
        self._remember(contested, loser.chain.links)

    def _see_again(self, event: Event) -> None:
        """Changes named by a resend may revive what was deleted, though nothing was lost here (STO-015)."""
        current = self._replica.tree.get(event.path)
        if current is None or not current.is_deletion:
            return
        links = [link for link in event.chain.links if not current.chain.covers(link)]
        if links:
            self._remember(self._entry(event.path), links)

    def _entry(self, path: Path) -> Contested:
        key = key_of(path)
        contested = self._contested.pop(key, None) or Contested(path, {}, {})
        while len(self._contested) >= limits.CONTESTED_MAX:
            del self._contested[next(iter(self._contested))]
        self._contested[key] = contested
        return contested

    def _remember(self, contested: Contested, links: Iterable[Link]) -> None:
        for link in links:
            contested.links.pop(link, None)
            contested.links[link] = self._context.now.mono
        while len(contested.links) > limits.LOSERS_MAX:
            oldest = next(iter(contested.links))
            del contested.links[oldest]
            contested.events.pop(oldest, None)

    def _plan(self, key: bytes) -> None:
        """Plan by this node's place among the Weft nodes; an existing plan stays."""
        contested = self._contested[key]
        if not self._need(contested):
            del self._contested[key]
        elif contested.due_at is None and self._why(contested):
            contested.due_at = self._context.now.mono + self._wait(key)

    def _wait(self, key: bytes) -> int:
        """Nanoseconds before this node repairs an entry, spread so that normally one node does it.

        The author of the current value is first, after a quarter of a gap, in which a burst passes; if the author is
        another node that we know, the rest wait two to three gaps. Else nodes follow one another by their places in the
        list. Nodes that are not in the own list may have the same place in theirs after a split: the lower name is first.
        """
        gap, names, known, own = self._context.settings.gap_ns, self.positions(), self.known(), self._context.name
        current = self._replica.tree.get(self._contested[key].path)
        jitter = round(gap * self._context.chance.random())
        author = current.node if current else ""
        if author == own:
            return gap // 4
        if author in known:
            return 2 * gap + jitter
        if self._context.now.mono - self._mended.get(key, -limits.LOSERS_NS) < limits.LOSERS_NS:
            return gap // 4 + 4 * jitter
        if own in names:
            before = sum(name < own for name in known if name not in names)
            return gap // 4 + round(gap * (1 - 0.5 ** names.index(own))) + gap * before // 4
        return gap // 4 + gap + jitter // 4

    def _need(self, contested: Contested) -> list[Link]:
        """The uncovered losers: those that came recently and that the current chain does not cover."""
        current = self._replica.tree.get(contested.path)
        if current is None:
            return []
        since = self._context.now.mono - limits.LOSERS_NS
        return [link for link, at in contested.links.items() if at >= since and not current.chain.covers(link)]

    def _why(self, contested: Contested) -> str:
        """Why a repair is needed: `equal-tock` (a), `deletion` (b); empty: it is not."""
        current = self._replica.tree.get(contested.path)
        left = self._need(contested)
        if current is None or not left:
            return ""
        events = [contested.events[link] for link in left if link in contested.events]
        if any(event.tock == current.tock and not same_value(event.value, current.value) for event in events):
            return "equal-tock"
        return "deletion" if current.is_deletion else ""

    def _mend(self, contested: Contested) -> bool:
        """Write the current value again with a chain that covers all losers.

        False: refused, and tried again with the next loser.

        Losers without room in the chain are forgotten: covering them the next time would push out others.
        """
        current, why = self._replica.tree.get(contested.path), self._why(contested)
        if current is None or not why:
            return not self._need(contested)
        chain = _joined(current.chain, reversed(self._need(contested)), self._context.name)
        try:
            written = self._replica.write(contested.path, current.value, via="repair", chain=chain, until=current.until)
        except Refusal as error:
            self._context.count("repairs_refused", error.code)
            return False
        self._context.count("repairs")
        self._context.tell(EntryRepaired(text_of(contested.path), written.event.tick, why))
        return True

    def wake(self, now: Now) -> None:
        """Make the repairs that are due, a bounded number per second."""
        if now.mono - self._budget_at >= SECOND:
            self._budget, self._budget_at = limits.REPAIRS_PER_S, now.mono
        for key, contested in list(self._contested.items()):
            if contested.due_at is None or contested.due_at > now.mono:
                continue
            if not self._budget:
                contested.due_at = self._budget_at + SECOND
                continue
            self._budget -= 1
            contested.due_at = None
            if self._mend(contested):
                self._contested.pop(key, None)
                self._mended.pop(key, None)
                self._mended[key] = now.mono
                while len(self._mended) > limits.CONTESTED_MAX:
                    del self._mended[next(iter(self._mended))]

    def deadline(self) -> int | None:
        """When the next repair is due."""
        if not self._contested:
            return None
        return earliest(*[each.due_at for each in self._contested.values()])


def _joined(chain: Chain, losers: Iterable[Link], own: str) -> Chain:
    """The newest link of each node from both; leaves room for the own link."""
    newest: dict[str, int] = {}
    for node, tick in (*chain.links, *losers):
        if node != own:
            newest[node] = max(tick, newest.get(node, 0))
    links = tuple(newest.items())
    return Chain(links[: limits.LINKS_MAX - 1], chain.is_cut or len(links) >= limits.LINKS_MAX)
