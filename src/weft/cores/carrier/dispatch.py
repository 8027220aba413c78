"""Sends volatile mail: to the parent, to children, and on to other nodes (CHN-031, RTE-003).

A piece of mail has the same number on all downward streams, so mail to every child is one run of numbers.
"""

from typing import Any, Final

from weft.base.errors import PeerError
from weft.base.mail import Mail
from weft.base.now import Now
from weft.cores.carrier import limits
from weft.cores.carrier.context import MAIL_ENDS, REFUSED, Context
from weft.cores.carrier.links import Link, Links
from weft.cores.carrier.messages import Hack, MailFailed, MailReached, PostMail
from weft.cores.carrier.volatile import Letter, Stream
from weft.wire.carried import Uncarriable, is_past, mail_item

DIRECT: Final = "DIRECT"
LOCAL: Final = (None, "LOCAL", "LOCALNODE", "NODE_LOCAL")
UP: Final = b""
"""The route to the parent; every other route is the id of a child."""


class Post:
    """One order: the number of nodes where its mail is still under way, and the outcome at the others."""

    __slots__ = ("failed", "pending", "reached", "why")

    def __init__(self, pending: int) -> None:
        self.pending, self.reached, self.failed, self.why = pending, 0, 0, ""


class Dispatch:
    """All volatile streams that start at this node."""

    def __init__(self, context: Context, links: Links) -> None:
        self._context, self._links = context, links
        self.up = Stream(context.era + 1)  # any era other than that of the durable stream
        self.down: dict[bytes, Stream] = {}
        """By child, while mail for it waits."""
        self.ready: dict[bytes, None] = {}
        """Children to which mail may be ready to be sent."""
        self._waiting = 0
        """Bytes of memory that all waiting mail takes."""
        self._room = context.budget.part("volatile", limits.VOLATILE_PERCENT, lambda: self._waiting)
        self._due: int | None = None
        self.has_parent = False
        self._numbers = {True: 0, False: 0}
        self._posts: dict[int, Post] = {}

    # What is to go

    def obey(self, order: PostMail, now: Now) -> None:
        """Send the mail by all its routes; one event answers the ticket."""
        try:
            ways = order.nodes or (self._way_of(order.mail),)
            letters = [self._letter(order.mail, order.ticket, now) for _ in ways]
        except PeerError as error:
            self._context.tell(MailFailed(order.ticket, error.code))
            return
        self._posts[order.ticket] = Post(len(ways))
        self._send(list(zip(ways, letters, strict=True)))

    def relay(self, mail: Mail, way: bytes, now: Now) -> None:
        """Forward mail for another node; PeerError if that is not possible."""
        self._send([(way, self._letter(mail, None, now))])

    def _way_of(self, mail: Mail) -> bytes:
        node = self.elsewhere(mail.to)
        if node is not None:
            return self.way(node)
        if not self.has_parent:
            raise PeerError("no-parent", "")
        return UP

    def elsewhere(self, to: Any) -> bytes | str | None:
        """The other node that the mail is for; None: it is for the node that receives it.

        Only DIRECT mail is forwarded.
        """
        node: bytes | str | None = to[1] if len(to) > 1 else None
        if to[0] != DIRECT or node in (*LOCAL, self._context.node, self._context.settings.name):
            return None
        return node

    def way(self, node: bytes | str, since: Link | None = None, *, is_from_parent: bool = False) -> bytes:
        """The route to a node: the child above it, else the parent; never the route the mail came by.

        PeerError `no-route`.
        """
        link = self._links.toward(node)
        if link is not None and link is not since:
            return link.node
        if is_from_parent or not self.has_parent:
            raise PeerError("no-route", str(node))
        return UP

    def _letter(self, mail: Mail, ticket: int | None, now: Now) -> Letter:
        if is_past(mail.exp, now.wall):
            raise PeerError("expired", "")
        try:
            letter = Letter(*mail_item(mail, self._context.node), ticket)
        except Uncarriable as error:
            raise PeerError(error.why, "") from None
        letter.until = now.mono + limits.DELIVERY_NS
        if mail.exp and mail.exp - now.wall < limits.DELIVERY_NS:
            letter.until, letter.why = now.mono + mail.exp - now.wall, "expired"
        return letter

    def _send(self, letters: list[tuple[bytes, Letter]]) -> None:
        self._numbers[letters[0][0] == UP] += 1
        for way, letter in letters:
            letter.number = self._numbers[way == UP]
            stream = self.up if way == UP else self.down.get(way) or Stream(self._context.era)
            if len(stream) >= limits.VOLATILE_MAX or stream.bytes + letter.size > limits.VOLATILE_BYTES_MAX:
                self._settle(letter, "overload")
                continue
            if not self._room.has_room(letter.size):
                self._room.refuse()
                self._settle(letter, "overload")
                continue
            letter.is_counted = True
            self._waiting += letter.size
            if way != UP:
                self.down[way] = stream
                self.ready[way] = None
            stream.add(letter)
            self._due = stream.due if self._due is None else min(self._due, stream.due)

    # What became of it

    def begin_up(self, parent: bytes) -> None:
        """The parent has welcomed us."""
        for letter in self.up.begin(parent):
            self._settle(letter, "unreachable")

    def begin_down(self, child: bytes) -> tuple[int, int]:
        """A child was welcomed: its stream continues at `first`; the next new number is `next` (CHN-038)."""
        upcoming = self._numbers[False] + 1
        stream = self.down.get(child)
        if stream is None:
            return upcoming, upcoming
        stream.begin(child)
        self.ready[child] = None
        return stream.first(upcoming), upcoming

    def hear_parent(self, hack: Hack) -> None:
        """The parent has acknowledged; PeerError `bad-upto` for a number that was not sent."""
        if hack.upto > self._numbers[True]:
            raise PeerError("bad-upto", f"{hack.upto} was not sent")
        self._settle_all(self.up, hack)

    def hear_child(self, child: bytes, hack: Hack) -> None:
        """A child has acknowledged; PeerError `bad-era` or `bad-upto` for a number that was not sent."""
        if hack.era != self._context.era:
            raise PeerError("bad-era", str(hack.era))
        if hack.upto > self._numbers[False]:
            raise PeerError("bad-upto", f"{hack.upto} was not sent")
        stream = self.down.get(child)
        if stream is not None:
            self._settle_all(stream, hack)
            self.ready[child] = None
            self._tidy(child)

    def _settle_all(self, stream: Stream, hack: Hack) -> None:
        for letter, why in stream.acknowledge(hack):
            self._settle(letter, why)

    def _settle(self, letter: Letter, why: str) -> None:
        """One route of a post has ended. For forwarded mail nobody here waits, so the end is only counted."""
        if letter.is_counted:
            letter.is_counted = False
            self._waiting -= letter.size
        if letter.ticket is None:
            if why:
                self._context.counters.lose_mail(why)
            return
        post = self._posts[letter.ticket]
        post.pending -= 1
        if why:
            post.failed, post.why = post.failed + 1, why if why in MAIL_ENDS else REFUSED
        else:
            post.reached += 1
        if post.pending:
            return
        del self._posts[letter.ticket]
        if post.reached:
            self._context.tell(MailReached(letter.ticket, post.reached, post.failed))
        else:
            self._context.tell(MailFailed(letter.ticket, post.why))

    def _tidy(self, child: bytes) -> None:
        if not len(self.down[child]):
            del self.down[child]
            self.ready.pop(child, None)

    # Time

    def wake(self, now: Now) -> None:
        """Give up mail that has waited too long."""
        if self._due is None or now.mono < self._due:
            return
        for way, stream in [(UP, self.up), *self.down.items()]:
            if stream.due and now.mono >= stream.due:
                for letter in stream.expire(now.mono):
                    self._settle(letter, letter.why)
                if way != UP:
                    self._tidy(way)
        self._due = min((stream.due for stream in (self.up, *self.down.values()) if stream.due), default=None)

    def deadline(self) -> int | None:
        """When `wake` is wanted, or earlier."""
        return self._due

    def stop(self) -> None:
        """The node stops: no mail of this start will arrive any more."""
        for stream in (self.up, *self.down.values()):
            for letter in stream.expire(limits.FOREVER):
                self._settle(letter, "unreachable")
        self.down.clear()
        self.ready.clear()
        self._due = None
