"""Takes messages down a chain, link by link (CHN-012..014).

A message goes from one link to the next greater key. A reader gets a copy; a filter gives its verdict; at a holder the
message waits, and when it is released, the walk continues behind that key, in the chain as it is then. Changes by
filters are written into new frames before any client sees the message.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Protocol

from weft.base.now import Now
from weft.base.records import Record
from weft.cores.chains.clientlink import AwayLink, ClientLink, HolderLink, ReaderLink
from weft.cores.chains.context import Context
from weft.cores.chains.holding import Holding
from weft.cores.chains.links import FilterLink
from weft.cores.chains.order import Key
from weft.cores.chains.parcel import IN, OUT, Parcel
from weft.cores.chains.relay import RelayLink
from weft.cores.chains.roster import Roster
from weft.cores.chains.states import Verdict
from weft.cores.chains.waiting import Waiting


class Bottom(Protocol):
    """The end of a direction: what becomes of its messages."""

    def deliver(self, parcel: Parcel, now: Now) -> None:
        """The message has passed all links."""

    def end(self, parcel: Parcel, why: str) -> None:
        """The message ends."""

    def after(self, parcel: Parcel, made: list[Record]) -> None:
        """It has finished a part of its way; `made` are the resulting records."""

    def forget(self, parcel: Parcel, name: str) -> None:
        """It is no longer kept for this reader."""


class Walker:
    """All messages under way at this node."""

    def __init__(self, context: Context, roster: Roster, waiting: Waiting, view_of: Callable[[Parcel], Any]) -> None:
        self.holding = Holding(context, waiting, self)
        self._context, self._roster, self._view_of = context, roster, view_of
        self._bottoms: dict[str, Bottom] = {}
        self._made: list[Record] = []
        self._now = Now(0, 0)

    def found(self, out: Bottom, arrivals: Bottom) -> None:
        """Set the ends of the two directions."""
        self._bottoms = {OUT: out, IN: arrivals}

    def start(self, parcel: Parcel, now: Now) -> list[Record]:
        """Walk from the top of the chain, as far as possible; returns the records made on the way."""
        chain = self._roster.chain(parcel.direction, parcel.type)
        flow = parcel.flow = chain.flow
        flow.accepted += 1
        if self._context.trace is not None:
            self._context.trace.begin(parcel, now)
        elif not chain.links:
            self._bottoms[parcel.direction].deliver(parcel, now)
            return []
        before, self._made = self._made, []
        self._walk(parcel, chain.links, now)
        made, self._made = self._made, before
        return made

    def enter(self, parcel: Parcel) -> None:
        """Count a message whose walk begins later."""
        parcel.flow = self._roster.chain(parcel.direction, parcel.type).flow
        parcel.flow.accepted += 1

    def resume(self, parcel: Parcel, after: Key, now: Now) -> None:
        """Continue behind a key (CHN-012)."""
        chain = self._roster.chain(parcel.direction, parcel.type)
        if self._context.trace is not None:
            self._context.trace.resume(parcel, now)
        before, self._made = self._made, []
        self._walk(parcel, chain.links[bisect_right(chain.keys, after) :], now)
        made, self._made = self._made, before
        self._bottoms[parcel.direction].after(parcel, made)

    def end(self, parcel: Parcel, why: str) -> None:
        """It ends before the bottom; counted by reason."""
        if self._context.trace is not None:
            self._context.trace.end(parcel, why, self._now)
        self._bottoms[parcel.direction].end(parcel, why)

    def settle(self, parcel: Parcel) -> None:
        """One confirming reader fewer has to confirm it."""
        parcel.unconfirmed -= 1
        self._bottoms[parcel.direction].after(parcel, [])

    def forget(self, parcel: Parcel, name: str) -> None:
        """It is no longer kept for this reader."""
        self._bottoms[parcel.direction].forget(parcel, name)

    def _walk(self, parcel: Parcel, links: list[Any], now: Now) -> None:
        view, self._now = None, now
        for link in links:
            kind = type(link)
            if kind is FilterLink:
                view = view or self._view_of(parcel)
                verdict = link.offer(view, now)
            elif isinstance(link, ClientLink):
                view = view and self._closed(view, parcel)
                if link.noself and link.session is parcel.sender:
                    continue
                goes_on = self._show(link, parcel, now)
                self._note(parcel, link, "read" if goes_on else "held")
                if goes_on:
                    continue
                return
            elif kind is AwayLink:
                view = view and self._closed(view, parcel)
                self.holding.keep_for(link, parcel, now)
                self._note(parcel, link, "kept for it")
                continue
            elif isinstance(link, RelayLink):
                view, verdict = self._relay(link, view, parcel, now)
            else:
                view, verdict = self._absorb(link, view, parcel, now)
            self._note(parcel, link, verdict.name.lower())
            if verdict is not Verdict.PASSED and verdict is not Verdict.CHANGED:
                self._stop(parcel, verdict)
                return
        if view is not None:
            self._closed(view, parcel)
        self._come_down(parcel, now)

    def _come_down(self, parcel: Parcel, now: Now) -> None:
        """It has passed all links."""
        if self._context.trace is not None:
            self._context.trace.end(parcel, "bottom", now)
        self._bottoms[parcel.direction].deliver(parcel, now)

    def _note(self, parcel: Parcel, link: Any, verdict: str) -> None:
        if self._context.trace is not None:
            self._context.trace.step(parcel, link, verdict, self._now)

    def _show(self, link: ClientLink, parcel: Parcel, now: Now) -> bool:
        """A client's turn; returns whether the message goes on at once."""
        if type(link) is ReaderLink:
            link.counters.offered += 1
            link.copy(link.reg, parcel)
            return True
        assert isinstance(link, HolderLink), link
        return self.holding.arrive(link, parcel, now)

    def _relay(self, link: RelayLink, view: Any, parcel: Parcel, now: Now) -> tuple[Any, Verdict]:
        """A record-making filter's turn; returns the view for the next links."""
        if link.sees_all:
            view = view and self._closed(view, parcel)
        else:
            view = view or self._view_of(parcel)
            verdict = link.takes(view)
            if verdict is not None:
                return view, verdict
            view = self._closed(view, parcel)
        record = link.take(parcel, now)
        if record is not None:
            self._made.append(record)
        return view, Verdict.DROPPED if link.ends else Verdict.PASSED

    def _absorb(self, link: Any, view: Any, parcel: Parcel, now: Now) -> tuple[Any, Verdict]:
        """A collecting filter's turn; returns the view for the next links."""
        verdict = link.absorb_whole(parcel, now) if view is None else None
        if verdict is None:
            view = view or self._view_of(parcel)
            verdict = link.absorb(view, parcel, now)
        return view, verdict

    def _stop(self, parcel: Parcel, verdict: Verdict) -> None:
        """A filter dropped everything, or could not judge it and must not let it pass."""
        is_out = parcel.direction == OUT
        self.end(parcel, "deleted" if verdict is Verdict.DROPPED else "filter-failed" if is_out else "lost")

    def _closed(self, view: Any, parcel: Parcel) -> Any:
        """The view for the next links; None if changes were written into new frames."""
        if not view.is_changed:
            return view
        parcel.frames = view.close()
        return None
