"""Clients' requests to the chains: to register, to send, to return a message (CHN-010 to CHN-043).

stand, leave, lose     a client's links come and go
accept                 a send starts at the top of `out`
hand_back, delete, fail, confirm    an answer for a message that a link holds
"""

from collections.abc import Sequence
from typing import Final

from weft.base.now import Now
from weft.cores.chains import limits
from weft.cores.chains.clientlink import RESERVED, WAIT, Answer, ClientLink, HolderLink, ReaderLink, Session
from weft.cores.chains.context import Context
from weft.cores.chains.holding import Holding
from weft.cores.chains.links import ChainFull
from weft.cores.chains.messages import LinkStood
from weft.cores.chains.order import TYPE, key_of
from weft.cores.chains.parcel import IN, OUT
from weft.cores.chains.readers import Readers
from weft.cores.chains.roster import Roster
from weft.cores.chains.sending import Sending
from weft.cores.chains.waiting import Waiting
from weft.cores.chains.walk import Walker
from weft.cores.kit.timers import earliest
from weft.wire import clients

ACCESSES: Final = ("ro", "rw")
POLICIES: Final = (None, "open", "closed", "drop", "wait")


class Engine:
    """The chains of a node, from the side of its clients."""

    def __init__(self, context: Context, roster: Roster, walker: Walker, waiting: Waiting, sending: Sending) -> None:
        self._context, self._roster, self._waiting = context, roster, waiting
        self._holding: Holding = walker.holding
        self.readers = Readers(context, roster, waiting, walker.holding)
        self.sending = sending
        self.accept, self.knows = sending.accept, sending.knows
        self._holders: dict[HolderLink, None] = {}

    @property
    def parked(self) -> int:
        """Number of messages that wait for a client to answer or to come back."""
        count = sum([len(link.pending) + len(link.backlog) for link in self._holders])
        return count + len(self._waiting)

    def held(self, direction: str) -> int:
        """Messages of this direction in the node.

        They are held by a link, in line, waiting for a client, or posted without the outbox.
        """
        links = [link for link in self._holders if link.direction == direction]
        held = [one for link in links for one in (*link.pending.values(), *link.backlog.values())]
        held += self._waiting.of(direction)
        under_way = {one.parcel.id for one in held if not one.is_copy}
        return len(under_way) + (self.sending.posted if direction == OUT else 0)

    @property
    def copies(self) -> int:
        """Copies that readers hold, or that wait for readers, until they are confirmed."""
        held = [held for link in self._holders for held in (*link.pending.values(), *link.backlog.values())]
        return sum([one.is_copy for one in held]) + self._waiting.copies

    # Links

    def stand(self, session: Session, reg: clients.Reg, now: Now) -> None:
        """Register a link: it stands in the chain from the next message on.

        Messages that waited for it are offered again.
        """
        why = self._fault(session, reg)
        if why:
            self._refuse(session, "reg", why, reg.reg)
            return
        link = _link(session, reg, self._context.next_attach())
        try:
            self._roster.attach(link, (reg.type,))
        except ChainFull:
            self._refuse(session, "reg", "limit", reg.reg)
            return
        session.links[reg.reg] = link
        place, of = self._roster.place(link, reg.type)
        session.say(clients.Done("reg", reg.reg, place, of))
        self._context.tell(LinkStood(session.name, reg.dir, reg.type, str(reg.at), link.access))
        if isinstance(link, HolderLink):
            self._holders[link] = None
            if link.is_remembered:
                self.readers.stand(link)
            self._holding.return_to(link, now)

    def leave(self, session: Session, reg: int, now: Now, *, forget: bool = False) -> None:
        """Unregister a link: messages it held go on as its policy says; a reader that is remembered becomes away."""
        link = session.links.pop(reg, None)
        if link is None:
            self._refuse(session, "unreg", "unknown-reg", reg)
            return
        self._unlink(link, now)
        if isinstance(link, HolderLink):
            self._holding.leave([link], "unregistered", now)
            self._pass_on([link], now)
            if forget:
                self.readers.forget(link.name, "forgotten", now, link.type)
        session.say(clients.Done("unreg", reg))

    def lose(self, session: Session, now: Now) -> None:
        """The client is gone: first remove all its links, then release what they held, in id order (CHN-016)."""
        links = list(session.links.values())
        session.links.clear()
        for link in links:
            self._unlink(link, now)
        self._holding.leave([link for link in links if isinstance(link, HolderLink)], "client-lost", now)
        self._pass_on(links, now)

    def _pass_on(self, gone: Sequence[ClientLink], now: Now) -> None:
        """Give messages that wait for the name to another link of that name, if one is attached.

        No other client may ever come.
        """
        names = {link.name for link in gone if isinstance(link, HolderLink) and link.policy == WAIT}
        for link in [link for link in self._holders if link.name in names]:
            self._holding.return_to(link, now)

    def _unlink(self, link: ClientLink, now: Now) -> None:
        self._roster.detach(link, (link.type,))
        if isinstance(link, HolderLink):
            del self._holders[link]
            if link.is_remembered:
                self.readers.leave(link, now)

    def _fault(self, session: Session, reg: clients.Reg) -> str:
        """Why a registration is refused; empty: it is accepted."""
        is_rw, stem = reg.access == "rw", reg.type.removesuffix(".*")
        is_type = reg.type == "*" or (TYPE.fullmatch(stem) and len(reg.type) <= limits.TYPE_BYTES_MAX)
        is_known = reg.access in ACCESSES and reg.fail in POLICIES
        checks = (
            (reg.reg in session.links, "duplicate-reg"),
            (not is_type, "bad-type"),
            (reg.dir not in (IN, OUT) or key_of(reg.at, 1) is None, "bad-position"),
            (reg.confirm and reg.dir == OUT, "confirm-on-out"),
            (not is_known or (is_rw and reg.confirm), "denied"),
            ((is_rw or reg.confirm) and reg.type.startswith(RESERVED), "denied"),
            (len(session.links) >= self._context.settings.links_per_client, "limit"),
            (reg.confirm and reg.fail in (None, WAIT) and not self.readers.has_room(session.name, reg.type), "limit"),
        )
        return next((why for is_wrong, why in checks if is_wrong), "")

    def _refuse(self, session: Session, about: str, why: str, reg: int, number: int | None = None) -> None:
        errors = self._context.counters.errors
        errors[why] = errors.get(why, 0) + 1
        session.say(clients.Error(about=about, why=why, reg=reg, id=number))

    # Answers

    def hand_back(
        self, session: Session, reg: int, item: clients.NextItem, frames: tuple[bytes, ...], now: Now
    ) -> None:
        """A client returns a message, changed or not."""
        if sum(map(len, frames)) > limits.PAYLOAD_BYTES_MAX:
            self._refuse(session, "next", "limit", reg, item.id)
            return
        self._answer(session, ("next", reg, item.id), Answer("next", frames or None, item.to), now)

    def delete(self, session: Session, reg: int, item: clients.GiveUp, now: Now) -> None:
        """A client ends a message."""
        self._answer(session, ("drop", reg, item.id), Answer("drop"), now)

    def fail(self, session: Session, reg: int, item: clients.GiveUp, now: Now) -> None:
        """A client could not handle a message: the policy decides at once."""
        self._answer(session, ("fail", reg, item.id), Answer("fail"), now)

    def confirm(self, session: Session, reg: int, number: int, now: Now) -> None:
        """A reader confirms a message (CHN-019)."""
        self._answer(session, ("conf", reg, number), Answer("conf"), now)

    def _answer(self, session: Session, about: tuple[str, int, int], answer: Answer, now: Now) -> None:
        """Only the holder of a message can answer for it (CHN-017)."""
        how, reg, number = about
        link = session.links.get(reg)
        if not isinstance(link, HolderLink):
            self._refuse(session, how, "not-holding", reg, number)
            return
        may_say = ("conf", "fail") if link.confirms else ("next", "drop", "fail")
        message = self._holding.held_by(link, number) if how in may_say else link.pending.get(number)
        if message is None or message.answer is not None or how not in may_say:
            is_late = number in link.resolved or (message is not None and message.answer is not None)
            link.counters.late += is_late
            self._refuse(session, how, "expired" if is_late else "not-holding", reg, number)
            return
        self._holding.answer(link, message, answer, now)

    # Time

    def wake(self, now: Now) -> None:
        """Deadlines have passed."""
        self._holding.wake(now)
        self.readers.wake(now)

    def deadline(self) -> int | None:
        """When to be woken."""
        return earliest(self._holding.deadline(), self.readers.deadline())

    def give_up_all(self, now: Now) -> None:
        """The node stops: messages still held go on as the policies say.

        Those kept for a client come again after the restart.
        """
        links = list(self._holders)
        for link in links:
            self._unlink(link, now)
            del link.session.links[link.reg]
        self._holding.leave(links, "stopping", now)
        for held, was_at in self._waiting.empty():
            if not held.parcel.is_kept:
                self._holding.lose(was_at, held, "stopping", now)


def _link(session: Session, reg: clients.Reg, attach: int) -> ReaderLink | HolderLink:
    key = key_of(reg.at, attach)
    assert key is not None, reg
    kind = HolderLink if reg.access == "rw" or reg.confirm else ReaderLink
    return kind(session, reg, key)
