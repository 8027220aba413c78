"""A fast path for sends that no link can hold: the `out` chain is empty, and behind it there are only readers.

It has the same result as the path through walk and inbox, in half the time; sends that it does not handle take that
path. Most sends qualify: a program on a sensor has no filter, and its messages go up or are only read.
"""

from collections.abc import Callable
from typing import Any, Final

from weft.base.mail import OUTBOX, Mail, to_record
from weft.base.now import Now
from weft.cores.chains import routing
from weft.cores.chains.clientlink import ReaderLink, Session
from weft.cores.chains.context import Context
from weft.cores.chains.parcel import IN, OUT, Parcel
from weft.cores.chains.roster import Chain, Roster
from weft.cores.chains.tags import Fleeting, Outcome, Tags
from weft.wire.clients import SendItem

SENT_HERE: Final = Outcome(ok=True, why="local")
SEEN_HERE: Final = Fleeting(ok=True, why="local")
SPOOLED: Final = Outcome(ok=True, why="spooled")


class Straight:
    """Sends that need no parcel on `out`."""

    def __init__(self, context: Context, roster: Roster, tags: Tags) -> None:
        self._context, self._roster, self._tags = context, roster, tags

    def take(self, session: Session, item: SendItem, frames: tuple[bytes, ...], now: Now) -> bool:
        """Returns whether a valid send was handled completely: sent, counted, and answered."""
        if item.cause is not None or item.exp or self._context.trace is not None:
            return False
        out = self._roster.chain(OUT, item.type)
        if out.links:
            return False
        go = WAYS.get(routing.way(item.to, self._context).how)
        outcome = go(self, session, item, frames, now) if go is not None else None
        if outcome is None:
            return False
        _count(out)
        if item.want != "none":
            self._tags.note(session.id, item.tag, outcome)
        session.answer(item.tag, *outcome)
        return True

    def _here(self, session: Session, item: SendItem, frames: tuple[bytes, ...], now: Now) -> Outcome | None:
        """To this node itself, where readers get copies."""
        if self._context.awaits_filters:
            return None
        chain = self._roster.chain(IN, item.type)
        for link in chain.links:
            if type(link) is not ReaderLink:
                return None
        mail = self._mail(item, frames, now)
        parcel = Parcel(self._context.next_id(), IN, mail)
        parcel.sender = session
        _count(chain)
        for link in chain.links:
            if not (link.noself and link.session is session):
                link.counters.offered += 1
                link.copy(link.reg, parcel)
        return SEEN_HERE

    def _up(self, session: Session, item: SendItem, frames: tuple[bytes, ...], now: Now) -> Outcome | None:
        """To the parent, by the outbox."""
        if item.keep != "disk" or item.want == "dest" or routing.is_spent(item.to, ()):
            return None
        record = to_record(self._mail(item, frames, now), OUTBOX, now.wall)
        if item.want != "none":
            record.attributes["by"] = [session.id, item.tag]
        self._context.keep(record)
        return SPOOLED

    def _mail(self, item: SendItem, frames: tuple[bytes, ...], now: Now) -> Mail:
        self._context.next_id()  # every message has a number, although no client gets this one (CHN-005)
        return self._context.mail_of(item, frames, now)


Go = Callable[[Straight, Session, SendItem, tuple[bytes, ...], Now], Outcome | None]
WAYS: Final[dict[str, Go]] = {"local": Straight._here, "up": Straight._up}


def _count(chain: Chain) -> None:
    """Count a message that has passed the whole chain."""
    flow: Any = chain.flow
    flow.accepted += 1
    flow.delivered += 1
