"""Ordered filters through which batches pass on their way out of, or into, this node (specs/05, in its first form).

A chain is named by a direction and a type; its links are all that stand on it, sorted by key. A batch walks as a
batch: an empty chain hands back the same object, a filter opens only what it looks at, and only a batch that has lost
rows is made anew. There are no clients yet; their links will be attached here beside those of the configuration.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from weft.base.effects import Effect, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.base.records import CoreRecord, Entry, Record, StreamRecord
from weft.cores.chains import limits
from weft.cores.chains.links import ChainFull, FilterLink, Link, LinkCounters
from weft.cores.chains.messages import (
    BatchFailed,
    BatchPassed,
    ChainsSettings,
    FiltersPlanned,
    PassBatch,
    PlanFilters,
    RowsDropped,
)
from weft.cores.chains.order import Key
from weft.cores.chains.settings import FilterSpec
from weft.cores.chains.states import TABLE, State, Verdict
from weft.cores.chains.view import History, View


class Counters(msgspec.Struct):
    """Rows, since the start (CHN-082): accepted = delivered + dropped + refused."""

    accepted: int = 0
    delivered: int = 0
    dropped: int = 0
    refused: int = 0
    links: dict[str, LinkCounters] = msgspec.field(default_factory=dict)


class Walk:
    """One batch under way."""

    __slots__ = ("before", "link", "order", "state", "view")

    def __init__(self, order: PassBatch, view: View) -> None:
        self.order, self.view = order, view
        self.state = State.WALKING
        self.link: Link | None = None
        self.before = len(view.kept)
        """Rows that were in before the present link."""


class Chains:
    """The chains core, with the filters of the node's configuration."""

    name = "chains"

    def __init__(
        self,
        filters: Sequence[FilterSpec] = (),
        settings: ChainsSettings | None = None,
        node: bytes = bytes(16),
        era: int = 0,
    ) -> None:
        self.settings, self.node, self.era = settings or ChainsSettings(), node, era
        self.counters = Counters()
        self._links: list[Link] = []
        self._chains: dict[tuple[str, str], list[Link]] = {}
        self._histories: dict[tuple[str, str], History] = {}
        self._effects: list[Effect] = []
        self._replace(filters)

    # The verbs of every core.

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Nothing is kept: a filter's state is of this run."""

    def condense(self) -> Iterable[CoreRecord]:
        return ()

    def receive(self, message: Any, source: Source, now: Now) -> None:
        """Nobody speaks to this core yet."""
        raise PeerError("not-spoken", "the chains core hears no messages")

    def screen(self, record: StreamRecord, now: Now) -> Sequence[Record]:
        """What to keep in the journal in place of a record that a child has sent."""
        return (record,)

    def command(self, order: Any, now: Now) -> None:
        """Obey `PassBatch` or `PlanFilters`."""
        if isinstance(order, PassBatch):
            self.walk(order, now)
        elif isinstance(order, PlanFilters):
            self._replace(order.filters)
            self._effects.append(Tell(FiltersPlanned(len(order.filters))))

    def wake(self, now: Now) -> None:
        """No filter waits for anything."""

    def deadline(self) -> int | None:
        return None

    def effects(self) -> list[Effect]:
        done, self._effects = self._effects, []
        return done

    # Links.

    def attach(self, link: Link) -> None:
        """Put a link at the place of its key; every chain that it covers has it from the next batch on."""
        if len(self._links) >= limits.LINKS_MAX:
            raise ChainFull(f"{limits.LINKS_MAX} links at most")
        insort(self._links, link, key=_key)
        self.counters.links[link.name] = link.counters
        self._chains.clear()

    def detach(self, link: Link) -> None:
        """Take a link out of all chains."""
        self._links.remove(link)
        self.counters.links.pop(link.name, None)
        self._chains.clear()

    def chain(self, direction: str, kind: str) -> list[Link]:
        """The links of a chain, in order (CHN-001, CHN-002)."""
        links = self._chains.get((direction, kind))
        if links is None:
            links = [link for link in self._links if link.direction == direction and link.covers(kind)]
            if len(self._chains) < limits.CHAINS_MAX:
                self._chains[direction, kind] = links
        return links

    def _replace(self, filters: Sequence[FilterSpec]) -> None:
        """All filters at once, never a mixture of two plans."""
        old = {link.name: link for link in self._links if isinstance(link, FilterLink)}
        for link in old.values():
            self.detach(link)
        for spec in filters:
            fresh = FilterLink(spec)
            if spec.name in old:
                fresh.follow(old[spec.name])
            self.attach(fresh)

    # Walking.

    def walk(self, order: PassBatch, now: Now, after: Key | None = None) -> None:
        """Send a batch down its chain, from the top or from behind the key of a link where it waited (CHN-012)."""
        rows = len(order.batch.rows)
        self.counters.accepted += rows if after is None else 0
        links = self.chain(order.direction, order.type)
        if not links:
            self.counters.delivered += rows
            self._effects.append(Tell(BatchPassed(order.direction, order.type, order.batch, order.origin)))
            return
        walk = Walk(order, View(order.batch, order.origin, self._history(order)))
        for link in links if after is None else links[bisect_right(links, after, key=_key) :]:
            walk.link, walk.before = link, len(walk.view.kept)
            self._turn(walk, link.offer(walk.view, now))
            if walk.state is not State.WALKING:
                return
        self._turn(walk, Verdict.BOTTOM)

    def _history(self, order: PassBatch) -> History:
        chain = (order.direction, order.type)
        history = self._histories.get(chain)
        if history is None:
            if len(self._histories) >= limits.CHAINS_MAX:
                del self._histories[next(iter(self._histories))]
            history = self._histories[chain] = History(limits.SERIES_MAX)
        return history

    def _turn(self, walk: Walk, verdict: Verdict) -> None:
        cell = TABLE[walk.state, verdict]
        walk.state = cell.then
        getattr(self, cell.do)(walk)

    def walk_on(self, walk: Walk) -> None:
        """The link has let everything pass."""

    def tell_drops(self, walk: Walk) -> None:
        """The link has taken rows out, perhaps all."""
        assert walk.link is not None, walk.state
        count = walk.before - len(walk.view.kept)
        self.counters.dropped += count
        self._effects.append(Tell(RowsDropped(walk.link.name, count)))

    def tell_refusal(self, walk: Walk) -> None:
        """The link must not let the batch pass unjudged."""
        assert walk.link is not None, walk.state
        self.counters.refused += walk.before
        self._effects.append(Tell(BatchFailed(walk.link.name, walk.before, "filter-failed")))

    def deliver(self, walk: Walk) -> None:
        """What is left has passed the chain."""
        order, batch = walk.order, walk.view.close()
        self.counters.delivered += len(batch.rows)
        self._effects.append(Tell(BatchPassed(order.direction, order.type, batch, order.origin)))


def _key(link: Link) -> Key:
    return link.key
