"""Batches of samples on their way down a chain (CHN-071).

A batch stays one object: an empty chain returns it unchanged, a filter decodes only what it looks at, and a new batch
is built only if rows were dropped. Clients that read `weft.metric` get a copy in wire format, the body of MEA-022. On
`out`, samples have no numbers yet at that point, so the copy has none either.
"""

from bisect import bisect_right
from typing import Any

import msgspec

from weft.base.mail import Mail
from weft.base.now import MILLISECOND, Now
from weft.cores.chains import limits
from weft.cores.chains.clientlink import ClientLink
from weft.cores.chains.context import Context
from weft.cores.chains.links import Link, LinkCounters
from weft.cores.chains.messages import BatchFailed, BatchPassed, PassBatch, RowsDropped
from weft.cores.chains.order import Key
from weft.cores.chains.parcel import Parcel
from weft.cores.chains.roster import Roster
from weft.cores.chains.states import TABLE, State, Verdict
from weft.cores.chains.view import History, View
from weft.wire import samples


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
        """Rows left before the present link."""


class Batches:
    """All batches of a node."""

    def __init__(self, context: Context, roster: Roster) -> None:
        self._context, self._roster = context, roster
        self.counters = Counters()
        self.histories: dict[tuple[str, str], History] = {}

    def walk(self, order: PassBatch, now: Now, after: Key | None = None) -> None:
        """Send a batch down its chain, from the top or from behind the key of the link where it waited (CHN-012)."""
        rows = len(order.batch.rows)
        self.counters.accepted += rows if after is None else 0
        chain = self._roster.chain(order.direction, order.type)
        if not chain.links:
            self.counters.delivered += rows
            self._context.tell(BatchPassed(order.direction, order.type, order.batch, order.origin))
            return
        links = chain.links if after is None else chain.links[bisect_right(chain.keys, after) :]
        self._walk(Walk(order, self.view_of(order)), links, now)

    def _walk(self, walk: Walk, links: list[Any], now: Now) -> None:
        for link in links:
            if isinstance(link, ClientLink):
                self._copy(link, walk)
                continue
            walk.link, walk.before = link, len(walk.view.kept)
            self._turn(walk, link.offer(walk.view, now))
            if walk.state is not State.WALKING:
                return
        self._turn(walk, Verdict.BOTTOM)

    def view_of(self, order: PassBatch) -> View:
        """The batch as filters see it, with the last samples of its series."""
        return View(order.batch, order.origin, self._history(order), order.type)

    def _history(self, order: PassBatch) -> History:
        chain = (order.direction, order.type)
        history = self.histories.get(chain)
        if history is None:
            if len(self.histories) >= limits.CHAINS_MAX:
                del self.histories[next(iter(self.histories))]
            history = self.histories[chain] = History(limits.SERIES_MAX)
        return history

    def _copy(self, link: ClientLink, walk: Walk) -> None:
        """Give a reader a copy of what is left of the batch."""
        context, order = self._context, walk.order
        batch = walk.view.close()
        for piece, body in samples.encode_pieces(batch) if batch.rows else ():
            mail = Mail(
                origin=order.origin if isinstance(order.origin, bytes) and order.origin else context.node,
                era=context.era,
                sequence=0,
                type=order.type,
                frames=(body,),
                to=("PARENTSOF",),
                at=piece.t0_ms * MILLISECOND,
                fmt="msgpack",
            )
            link.counters.offered += 1
            link.copy(link.reg, Parcel(context.next_id(), order.direction, mail))

    # Rows of the table

    def _turn(self, walk: Walk, verdict: Verdict) -> None:
        cell = TABLE[walk.state, verdict]
        walk.state = cell.then
        getattr(self, cell.do)(walk)

    def walk_on(self, walk: Walk) -> None:
        """The link has let every row pass."""

    def tell_drops(self, walk: Walk) -> None:
        """The link has dropped rows, perhaps all."""
        assert walk.link is not None, walk.state
        count = walk.before - len(walk.view.kept)
        self.counters.dropped += count
        self._context.tell(RowsDropped(walk.link.name, count))

    def tell_refusal(self, walk: Walk) -> None:
        """The link could not judge the batch, and must not let it pass."""
        assert walk.link is not None, walk.state
        self.counters.refused += walk.before
        self._context.tell(BatchFailed(walk.link.name, walk.before, "filter-failed"))

    def deliver(self, walk: Walk) -> None:
        """The rest of the batch has reached the end of the chain."""
        order, batch = walk.order, walk.view.close()
        self.counters.delivered += len(batch.rows)
        self._context.tell(BatchPassed(order.direction, order.type, batch, order.origin))
