"""Down a chain, link by link (CHN-012..014).

A message goes from one link to the next greater key. A reader is handed a copy; a filter says its verdict; at a holder
the message parks, and when it is let go, the walk goes on behind that key in the chain as it then is. What a filter has
changed is written into new frames before anybody but a filter looks.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Protocol

from weft.base.now import Now
from weft.base.records import Record
from weft.cores.chains.clientlink import HolderLink, ReaderLink
from weft.cores.chains.holding import Holding
from weft.cores.chains.order import Key
from weft.cores.chains.parcel import IN, OUT, Parcel
from weft.cores.chains.relay import RelayLink
from weft.cores.chains.roster import Roster
from weft.cores.chains.states import Verdict
from weft.cores.chains.station import Station
from weft.cores.chains.waiting import Waiting


class Bottom(Protocol):
    """What becomes of messages of one direction."""

    def deliver(self, parcel: Parcel, now: Now) -> None:
        """It has passed all links."""

    def end(self, parcel: Parcel, why: str) -> None:
        """It goes no further."""

    def after(self, parcel: Parcel, made: list[Record]) -> None:
        """A part of its way is behind it, and these records came of it."""


class Walker:
    """All messages under way at this node."""

    def __init__(self, station: Station, roster: Roster, waiting: Waiting, view_of: Callable[[Parcel], Any]) -> None:
        self.holding = Holding(station, waiting, self)
        self._station, self._roster, self._view_of = station, roster, view_of
        self._bottoms: dict[str, Bottom] = {}
        self._made: list[Record] = []

    def found(self, out: Bottom, arrivals: Bottom) -> None:
        """What stands at the end of the two directions."""
        self._bottoms = {OUT: out, IN: arrivals}

    def start(self, parcel: Parcel, now: Now) -> list[Record]:
        """From the top of the chain, as far as it gets; what came of it on the way."""
        chain = self._roster.chain(parcel.direction, parcel.type)
        flow = parcel.flow = chain.flow
        flow.accepted += 1
        if not chain.links:
            self._bottoms[parcel.direction].deliver(parcel, now)
            return []
        before, self._made = self._made, []
        self._walk(parcel, chain.links, now)
        made, self._made = self._made, before
        return made

    def enter(self, parcel: Parcel) -> None:
        """Count a message that does not walk yet."""
        parcel.flow = self._roster.chain(parcel.direction, parcel.type).flow
        parcel.flow.accepted += 1

    def resume(self, parcel: Parcel, after: Key, now: Now) -> None:
        """On behind a key (CHN-012)."""
        chain = self._roster.chain(parcel.direction, parcel.type)
        before, self._made = self._made, []
        self._walk(parcel, chain.links[bisect_right(chain.keys, after) :], now)
        made, self._made = self._made, before
        self._bottoms[parcel.direction].after(parcel, made)

    def end(self, parcel: Parcel, why: str) -> None:
        """It has come to its end before the bottom; counted by reason."""
        self._bottoms[parcel.direction].end(parcel, why)

    def settle(self, parcel: Parcel) -> None:
        """One confirming reader less is waited for."""
        parcel.unconfirmed -= 1
        self._bottoms[parcel.direction].after(parcel, [])

    def _walk(self, parcel: Parcel, links: list[Any], now: Now) -> None:
        view = None
        for link in links:
            kind = type(link)
            if kind is ReaderLink:
                view = view and self._closed(view, parcel)
                if not link.noself or link.patron is not parcel.sender:
                    link.counters.offered += 1
                    link.copy(link.reg, parcel)
            elif kind is HolderLink:
                view = view and self._closed(view, parcel)
                if (not link.noself or link.patron is not parcel.sender) and not self.holding.arrive(link, parcel, now):
                    return
            elif isinstance(link, RelayLink) and link.sees_all:
                view = view and self._closed(view, parcel)
                self._relay(link, parcel, now)
            else:
                view = view or self._view_of(parcel)
                if not self._pass_filter(link, view, now):
                    return
        if view is not None:
            self._closed(view, parcel)
        self._bottoms[parcel.direction].deliver(parcel, now)

    def _pass_filter(self, link: Any, view: Any, now: Now) -> bool:
        """Whether a built-in filter lets the message pass."""
        parcel: Parcel = view.parcel
        is_relay = isinstance(link, RelayLink)
        verdict = link.takes(view) if is_relay else link.offer(view, now)
        if verdict is None:
            self._closed(view, parcel)
            self._relay(link, parcel, now)
            return True
        if verdict is Verdict.DROPPED:
            self.end(parcel, "deleted")
        elif verdict is Verdict.FAILED:
            self.end(parcel, "filter-failed" if parcel.direction == OUT else "lost")
        return verdict in (Verdict.PASSED, Verdict.CHANGED)

    def _relay(self, link: RelayLink, parcel: Parcel, now: Now) -> None:
        record = link.take(parcel, now)
        if record is not None:
            self._made.append(record)

    def _closed(self, view: Any, parcel: Parcel) -> Any:
        """The view as it may be used further: none, if what it saw has been written into new frames."""
        if not view.is_changed:
            return view
        parcel.frames = view.close()
        return None
