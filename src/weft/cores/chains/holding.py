"""What holder links do with messages: the actions of `states.LINK_TABLE` (CHN-012..019).

A message leaves a link in one of three ways: it goes on behind the link's key, it ends, or it waits for a client to
come back.
"""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Final, Protocol

from weft.base.now import Now
from weft.cores.chains import limits
from weft.cores.chains.clientlink import NOBODY, WAIT, Answer, AwayLink, HeldMessage, HolderLink
from weft.cores.chains.context import Context
from weft.cores.chains.messages import LinkRecovered, LinkSickened, MessagesLost
from weft.cores.chains.order import Key
from weft.cores.chains.parcel import OUT, Parcel
from weft.cores.chains.states import LINK_TABLE, LinkState, On
from weft.cores.chains.waiting import Waiting
from weft.cores.kit.timers import earliest


class Road(Protocol):
    """Where messages go when no link holds them: `walk.Walker`."""

    def resume(self, parcel: Parcel, after: Key, now: Now) -> None:
        """Continue behind this key."""

    def end(self, parcel: Parcel, why: str) -> None:
        """End the message."""

    def settle(self, parcel: Parcel) -> None:
        """One confirming reader fewer has to confirm it."""

    def forget(self, parcel: Parcel, name: str) -> None:
        """It is no longer kept for this reader."""


class Holding:
    """All links that hold messages."""

    def __init__(self, context: Context, waiting: Waiting, road: Road) -> None:
        self._context, self._waiting, self._road = context, waiting, road
        self._armed: list[tuple[int, int, HolderLink]] = []
        self._arms = 0
        self._left: list[tuple[int, HolderLink, HeldMessage]] = []

    # Inputs: a walk, a client, the clock

    def arrive(self, link: HolderLink, parcel: Parcel, now: Now) -> bool:
        """A message comes to a link. Returns whether it goes on at once; it does if the link has it already."""
        if link.has(parcel.id):
            return True
        return self._turn(link, self._arriving(link, now), HeldMessage(parcel, link.key), now)

    def answer(self, link: HolderLink, held: HeldMessage, answer: Answer, now: Now) -> None:
        """A client answers for a message that it holds."""
        held.answer = answer
        link.misses = 0
        if not link.is_ordered or held is next(iter(link.pending.values())):
            self._turn(link, On.ANSWERED, held, now)

    def held_by(self, link: HolderLink, number: int) -> HeldMessage | None:
        """The message with this number that a link holds, or that waits for it after its deadline (`wait`).

        None: there is none.
        """
        held = link.pending.get(number)
        if held is None and link.policy == WAIT and number in link.resolved:
            held = self._waiting.take_back(link, number)
            if held is not None:
                del link.resolved[number]
                link.pending[number] = held
        return held

    def keep_for(self, link: AwayLink, parcel: Parcel, now: Now) -> None:
        """A message comes to a reader that is away: it is kept for the reader, and goes on at once."""
        if (link.name, True) in parcel.waits:
            return  # waits for the next client of that name
        link.counters.offered += 1
        held = HeldMessage(parcel, link.key)
        self._split(held)
        parcel.waits = (*parcel.waits, (link.name, True))
        if not self._waiting.admit(_place(link, parcel), held, None, now):
            self.forgo(link.name, held, "no-room")

    def forgo(self, name: str, held: HeldMessage, why: str) -> None:
        """A reader will never get this message: counted, and told at the end of the turn."""
        parcel = held.parcel
        self._context.give_up(name, why, parcel)
        parcel.waits = tuple([wait for wait in parcel.waits if wait != (name, True)])
        self._settle(parcel, why)
        self._road.forget(parcel, name)

    def return_to(self, link: HolderLink, now: Now, *, overflowed: bool = False) -> None:
        """A client has come back under a name that messages wait for: offer them again, marked (CHN-019)."""
        for held in self._waiting.claim(link, overflowed=overflowed):
            parcel = held.parcel
            parcel.is_again = True
            if held.is_copy and link.has(parcel.id):
                parcel.unconfirmed -= 1  # two registrations of that name had it, and one is attached again
                self._context.copies.end("merged")
            elif (
                link.has(parcel.id)
                or (not held.is_copy and link.key > held.after)
                or self._turn(link, self._arriving(link, now), held, now)
            ):
                self._road.resume(parcel, held.after, now)

    def leave(self, links: Iterable[HolderLink], why: str, now: Now) -> None:
        """These links have left their chains: release what they held, in id order (CHN-016)."""
        for link in links:
            self._turn(link, On.LEFT, NOBODY, now)
        left, self._left = self._left, []
        for _, link, held in sorted(left, key=lambda item: item[0]):
            if held.answer is not None:
                self._apply(link, held, now)
            else:
                self._release(link, held, why, now)

    def wake(self, now: Now) -> None:
        """Process deadlines, and messages that have waited long enough."""
        while self._armed and self._armed[0][0] <= now.mono:
            link = heappop(self._armed)[2]
            link.armed_at = None
            while (due := link.due()) is not None and due <= now.mono:
                self._miss(link, now)
            self._arm(link)
        for held, was_at in self._waiting.expired(now):
            self.lose(was_at, held, "timeout", now)

    def deadline(self) -> int | None:
        """When to be woken next, or earlier."""
        return earliest(self._armed[0][0] if self._armed else None, self._waiting.deadline())

    # Inputs

    def _turn(self, link: HolderLink, on: On, held: HeldMessage, now: Now) -> bool:
        cell = LINK_TABLE[link.state, on]
        link.state = cell.then
        goes_on: bool = getattr(self, cell.do)(link, held, now)
        return goes_on

    def _arriving(self, link: HolderLink, now: Now) -> On:
        if link.state is LinkState.OPEN:
            return On.ARRIVED if len(link.pending) + 1 < link.window else On.FILLED
        if link.state is LinkState.SICK and link.has_room and now.mono >= link.missed_at + limits.BYPASS_NS:
            return On.RESTED
        return On.ARRIVED

    def _miss(self, link: HolderLink, now: Now) -> None:
        held = next(held for held in link.pending.values() if held.answer is None)
        link.misses += 1
        link.missed_at = now.mono
        may_sicken = link.policy != WAIT and link.state in (LinkState.OPEN, LinkState.FULL)
        self._turn(link, On.SICKENED if may_sicken and link.misses >= limits.MISSES_MAX else On.MISSED, held, now)

    def _arm(self, link: HolderLink) -> None:
        """Schedule a look at a link's first deadline; later deadlines need no entry of their own."""
        due = link.due() if link.has_deadline else None
        if due is not None and link.armed_at is None:
            link.armed_at = due
            self._arms += 1
            heappush(self._armed, (due, self._arms, link))

    # The actions of the table; each returns whether the message goes on at once.

    def offer(self, link: HolderLink, held: HeldMessage, now: Now) -> bool:
        """Offer the message to the client; its deadline counts from here."""
        parcel = held.parcel
        goes_on = link.confirms and not held.is_copy
        if goes_on:
            self._split(held)
        held.offered_at = now.mono
        held.due = now.mono + link.timeout_ns if link.has_deadline else None
        link.pending[parcel.id] = held
        self._note_wait(link, parcel)
        link.counters.offered += 1
        link.session.offer(link.reg, held.shown(), re=parcel.is_again)
        if link.armed_at is None:
            self._arm(link)
        return goes_on

    def line_up(self, link: HolderLink, held: HeldMessage, now: Now) -> bool:
        """Queue the message behind the full window; if the queue is full too, the policy decides."""
        if len(link.backlog) >= limits.BACKLOG_MAX or (link.confirms and self._waiting.line(link.name).overflowed):
            held.has_overflowed = link.is_remembered
            return self._goes_on(link, held, "backlog", now)
        link.backlog[held.parcel.id] = held
        self._note_wait(link, held.parcel)
        return False

    def bypass(self, link: HolderLink, held: HeldMessage, now: Now) -> bool:
        """Do not ask the client."""
        return self._goes_on(link, held, "bypassed", now)

    def resolve(self, link: HolderLink, held: HeldMessage, now: Now) -> bool:
        """Apply an answer; for an ordered link, also the later ones that it held up."""
        link.note_latency(now.mono - held.offered_at)
        self._apply(link, link.take(held.parcel.id), now)
        self._follow(link, now)
        return False

    def recover(self, link: HolderLink, held: HeldMessage, now: Now) -> bool:
        """The link answers again: end the bypass."""
        self._context.tell(LinkRecovered(link.name, link.reg, link.direction, link.type))
        return self.resolve(link, held, now)

    def give_up(self, link: HolderLink, held: HeldMessage, now: Now) -> bool:
        """The deadline has passed: the policy decides."""
        link.take(held.parcel.id)
        link.counters.timed_out += 1
        self._release(link, held, "timeout", now)
        self._follow(link, now)
        return False

    def sicken(self, link: HolderLink, held: HeldMessage, now: Now) -> bool:
        """Bypass the link from now on; its queue is released."""
        self._context.tell(LinkSickened(link.name, link.reg, link.direction, link.type))
        self.give_up(link, held, now)
        while link.backlog:
            self._release(link, link.backlog.popitem(last=False)[1], "bypassed", now)
        return False

    def take_more(self, link: HolderLink, held: HeldMessage, now: Now) -> bool:
        """Offer waiting messages again."""
        return False

    def let_go(self, link: HolderLink, held: HeldMessage, now: Now) -> bool:
        """The link is gone; what it held is released when all links of the client are gone."""
        self._left += [(one.parcel.id, link, one) for one in (*link.pending.values(), *link.backlog.values())]
        link.pending.clear()
        link.backlog.clear()
        return False

    # What comes of it

    def _split(self, held: HeldMessage) -> None:
        """The message itself goes on; the link holds only the copy that has to be confirmed."""
        held.is_copy = True
        held.frames = held.parcel.frames
        held.parcel.unconfirmed += 1
        self._context.copies.accepted += 1

    def _note_wait(self, link: HolderLink, parcel: Parcel) -> None:
        """Journal that the message waits for the client, in case the node stops now."""
        if link.policy == WAIT and (link.name, link.confirms) not in parcel.waits:
            parcel.waits = (*parcel.waits, (link.name, link.confirms))

    def _follow(self, link: HolderLink, now: Now) -> None:
        """A message has gone: continue with the answered ones of an ordered link, then with the queue (canary 5)."""
        while link.is_ordered and link.pending and (held := next(iter(link.pending.values()))).answer is not None:
            self._apply(link, link.take(held.parcel.id), now)
        while link.state is LinkState.FULL and link.backlog and link.has_room:
            _, held = link.backlog.popitem(last=False)
            if self.offer(link, held, now):
                self._road.resume(held.parcel, held.after, now)
        if link.state is LinkState.FULL and not link.backlog and link.has_room:
            self._turn(link, On.DRAINED, NOBODY, now)
            if link.confirms and self._waiting.line(link.name).overflowed:
                self.return_to(link, now, overflowed=True)

    def _apply(self, link: HolderLink, held: HeldMessage, now: Now) -> None:
        answer = held.answer
        assert answer is not None, held.parcel.id
        ANSWERS[answer.how](self, link, held, now)

    def _hand_on(self, link: HolderLink, held: HeldMessage, now: Now) -> None:
        parcel, answer, counters = held.parcel, held.answer, link.counters
        assert answer is not None, parcel.id
        if answer.frames is not None:
            parcel.frames = answer.frames
        if answer.to is not None and parcel.direction == OUT:
            parcel.to = tuple(answer.to) if isinstance(answer.to, list) else answer.to
        elif answer.to is not None:
            self.ignore(link, parcel)
        if answer.frames is None and answer.to is None:
            counters.passed += 1
        else:
            counters.changed += 1
        self._road.resume(parcel, held.after, now)

    def ignore(self, link: HolderLink, parcel: Parcel) -> None:
        """A destination was changed on `in`, where it has no effect any more (CHN-006)."""
        link.counters.ignored += 1
        self._context.counters.ignored += 1

    def _delete(self, link: HolderLink, held: HeldMessage, now: Now) -> None:
        link.counters.dropped += 1
        self._road.end(held.parcel, "deleted")

    def _fail(self, link: HolderLink, held: HeldMessage, now: Now) -> None:
        link.counters.failed += 1
        held.due = None  # it has been answered
        self._release(link, held, "handler-failed", now)

    def _confirm(self, link: HolderLink, held: HeldMessage, now: Now) -> None:
        link.counters.passed += 1
        self._settle(held.parcel, "delivered")

    def _settle(self, parcel: Parcel, why: str) -> None:
        """One copy fewer has to be confirmed."""
        self._context.copies.end(why)
        self._road.settle(parcel)

    def _release(self, link: HolderLink, held: HeldMessage, why: str, now: Now) -> None:
        if self._goes_on(link, held, why, now):
            self._road.resume(held.parcel, held.after, now)

    # Policies

    def _goes_on(self, link: HolderLink, held: HeldMessage, why: str, now: Now) -> bool:
        """Whether an unanswered message goes on, by the registration's `fail`.

        Messages queued for a reader always go on, in order: for them `fail` concerns only the copy (CHN-019).
        """
        if link.confirms and not held.is_copy:
            self._split(held)
            self._note_wait(link, held.parcel)
            self._goes_on(link, held, why, now)
            return True
        if link.policy == "open":
            link.counters.released += 1
            if held.is_copy:
                self._settle(held.parcel, "released")
            return not held.is_copy
        if link.policy == WAIT and self._waiting.admit(_place(link, held.parcel), held, link, now):
            held.answer = None  # the next link that gets it has not answered
            return False
        if link.is_remembered:
            self.forgo(link.name, held, "no-room")
        elif link.policy == "drop":
            link.counters.dropped += 1
            self._end(held, "deleted")
        else:
            self.lose(link, held, why, now)
        return False

    def lose(self, link: HolderLink | None, held: HeldMessage, why: str, now: Now) -> None:
        """End the message: the policy `closed` forbids that it passes unseen."""
        parcel = held.parcel
        self._end(held, "filter-failed" if parcel.direction == OUT else "lost")
        if link is None:
            return
        link.counters.lost += 1
        count = link.untold[why] = link.untold.get(why, 0) + 1
        event = MessagesLost(link.name, link.reg, parcel.type, why, count)
        if self._context.tell_seldom((f"{link.name} {link.reg} {parcel.type}", why), event, now.mono):
            del link.untold[why]

    def _end(self, held: HeldMessage, why: str) -> None:
        if held.is_copy:
            self._settle(held.parcel, why)
        else:
            self._road.end(held.parcel, why)


def _place(link: HolderLink | AwayLink, parcel: Parcel) -> tuple[str, str, str, bool]:
    return parcel.direction, parcel.type, link.name, isinstance(link, AwayLink) or link.confirms


ANSWERS: Final[dict[str, Callable[[Holding, HolderLink, HeldMessage, Now], None]]] = {
    "next": Holding._hand_on,
    "drop": Holding._delete,
    "fail": Holding._fail,
    "conf": Holding._confirm,
}
