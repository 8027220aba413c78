"""Filters that collect messages and emit a result later: `aggregate` and `batch` (CHN-067, CHN-068).

A collected message stays in the inbox until the result that contains it is emitted (CHN-033c). After a crash the
messages go down the chain again and fill the windows anew, so nothing is lost or counted twice. A result and the list
of messages it was made of stand in one record, EMITTED. A message that is part of one emitted window and of one open
window comes back only for the open one.

    on `out`         the result goes on behind the link; a collected message is durable before its sender hears `deleted`
    on `in`          the result goes to the parent; at the root it goes on behind the link
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from weft.base.mail import INBOX, OUTBOX, Mail, to_record
from weft.base.now import Now
from weft.cores.chains import limits, memory
from weft.cores.chains.context import Context
from weft.cores.chains.filters import FINE, Judgement
from weft.cores.chains.inbox import TAKEN, Inbox
from weft.cores.chains.links import NOBODY, FilterLink
from weft.cores.chains.memory import Emitted
from weft.cores.chains.messageview import MessageView
from weft.cores.chains.options import BatchOptions
from weft.cores.chains.parcel import GHOST, IN, OUT, Parcel
from weft.cores.chains.roster import Roster
from weft.cores.chains.settings import FilterSpec
from weft.cores.chains.states import Verdict
from weft.cores.chains.walk import Walker
from weft.cores.kit.timers import earliest


class Hold:
    """A message that is kept while any window that it is part of is open."""

    __slots__ = ("open", "parcel")

    def __init__(self, parcel: Parcel) -> None:
        self.parcel = parcel
        self.open = 0


class Absorbing:
    """All such filters of a node."""

    def __init__(self, context: Context, roster: Roster, walker: Walker, inbox: Inbox) -> None:
        self.context, self._roster, self._walker, self._inbox = context, roster, walker, inbox
        self._links: list[AbsorbingLink] = []

    def stand(self, links: Iterable[FilterLink]) -> None:
        """Set the filters in force."""
        self._links = [link for link in links if isinstance(link, AbsorbingLink)]

    def deadline(self, now: Now) -> int | None:
        """When the next filter has a result to emit, on the monotonic clock; never in the past."""
        if not self._links:
            return None
        due = earliest(*[link.due(now) for link in self._links])
        return None if due is None else max(due, now.mono)

    def wake(self, now: Now) -> None:
        """Emit the results that are due."""
        for link in self._links:
            self._tell_all(link, link.close(now), now)

    def close(self, link: "AbsorbingLink", now: Now) -> None:
        """A filter is removed or changed: emit everything open, marked `partial` (CHN-070)."""
        self._tell_all(link, link.close_all(), now)

    def _tell_all(self, link: "AbsorbingLink", parts: Iterator["Part"], now: Now) -> None:
        for mail, holds, which in list(parts):
            self._emit(link, mail, holds, which, now)

    def hold(self, parcel: Parcel, frames: Callable[[], tuple[bytes, ...]]) -> Hold | None:
        """Keep a message that was collected; None if it need not be kept, since nobody was promised that it is safe.

        `frames` makes its frames as the links before have left them.
        """
        if parcel.direction == OUT:
            if parcel.keep != "disk":
                return None
            if parcel.taken is None:
                parcel.taken = self._take_in(parcel, frames())
            parcel = parcel.taken
        parcel.unconfirmed += 1
        return Hold(parcel)

    def _take_in(self, sent: Parcel, frames: tuple[bytes, ...]) -> Parcel:
        """A message on `out` was collected: it stands in the inbox until its result is emitted.

        Its number there is negative, since the rest of the message may arrive at this very node under the positive one.
        """
        record = to_record(msgspec.structs.replace(sent.mail(), frames=frames), INBOX, sent.at)
        record.attributes[TAKEN] = True
        return self._inbox.keep_taken(record)

    def take_again(self, parcel: Parcel, now: Now) -> None:
        """After a restart: give a message that filters of `out` had collected to them again.

        If none of these filters exists any more, the message goes up unchanged.
        """
        view, before = MessageView(parcel), parcel.unconfirmed
        for link in self._roster.chain(OUT, parcel.type).links:
            if isinstance(link, AbsorbingLink) and view.kept:
                link.absorb(view, parcel, now)
        if parcel.unconfirmed == before and view.kept and not parcel.counted_in:
            mail = msgspec.structs.replace(parcel.sent, sequence=-parcel.sequence)
            self.context.keep(to_record(mail, OUTBOX, now.wall))

    # Telling

    def _emit(self, link: "AbsorbingLink", mail: Mail, holds: list[Hold], which: tuple[int, bytes], now: Now) -> None:
        """Send a result on its way.

        The record of what it was made of stands ahead of the records that the result becomes.
        """

        def settle() -> None:
            self._note(link.name, mail, holds, which)
            for hold in holds:
                hold.open -= 1
                if not hold.open:
                    self._walker.settle(hold.parcel)

        self.context.counters.emitted += 1
        self._send(link.direction, link.key, mail, settle, now)

    def _note(self, name: str, mail: Mail, holds: list[Hold], which: tuple[int, bytes]) -> None:
        taken: dict[tuple[bytes, int], list[int]] = {}
        for parcel in [hold.parcel for hold in holds if hold.parcel.is_kept]:
            taken.setdefault((parcel.origin, parcel.era), []).append(parcel.sequence)
        if taken:
            sources = [(*source, numbers) for source, numbers in taken.items()]
            record = to_record(mail, OUTBOX, mail.at)
            start, group = which
            identity = mail.era, mail.sequence, mail.at
            emitted = Emitted(name, start, group, sources, *identity, record.key, record.payload, record.attributes)
            self._inbox.recall_counted(emitted)
            self.context.keep(memory.to_record(emitted))

    def _send(self, direction: str, key: Any, mail: Mail, settle: Any, now: Now) -> None:
        if direction == IN and not self.context.is_root:
            settle()
            self.context.keep(to_record(mail, OUTBOX, now.wall))
            return
        parcel = Parcel(self.context.next_id(), direction, mail)
        parcel.sender, parcel.carries = GHOST, settle
        self.context.note_depth(parcel.id, parcel.depth)
        self._walker.enter(parcel)
        self._walker.resume(parcel, key, now)

    def send_again(self, emitted: Emitted, now: Now) -> None:
        """Send a result again, when a crash came between its EMITTED record and the records that it becomes."""
        mail = emitted.mail(self.context.node)
        link = next((link for link in self._links if link.name == emitted.filter), None)
        direction, key = (OUT, (-1, 0, 0, 0)) if link is None else (link.direction, link.key)
        self._send(direction, key, mail, _nothing, now)


def _nothing() -> None:
    """Do nothing: all messages that the result was made of have ended already."""


Part = tuple[Mail, list[Hold], tuple[int, bytes]]
"""A result, the messages it was made of, and the window and group it belongs to."""


class AbsorbingLink(FilterLink):
    """A filter that collects messages."""

    def __init__(self, spec: FilterSpec, hub: Absorbing) -> None:
        super().__init__(spec)
        self.hub = hub

    def absorb(self, view: MessageView, parcel: Parcel, now: Now) -> Verdict:
        """Collect the records that the filter sees.

        Records it cannot count stay, are dropped, or fail the message (`on_error`).
        """
        kept, counters = view.kept, self.counters
        counters.offered += len(kept)
        if self._reads and not view.is_readable:
            return self._settle(view, FINE, kept)
        seen, unsure = (kept, NOBODY) if self._sees_all else self._seen(view)
        if not seen:
            return self._settle(view, FINE, unsure)
        if parcel.depth >= limits.DEPTH_MAX:
            return self._settle(view, Judgement([], list(seen)), unsure)
        return self._settle(view, self._take(view, parcel, seen, now), unsure)

    def absorb_whole(self, parcel: Parcel, now: Now) -> Verdict | None:
        """Collect a message that no link has decoded yet, if it needs no view; None: nothing was done, `absorb` takes it."""

    def _take(self, view: MessageView, parcel: Parcel, seen: list[int], now: Now) -> Judgement:
        raise AssertionError(self)

    def _keep(self, parcel: Parcel, frames: Callable[[], tuple[bytes, ...]], parts: Iterable[Any]) -> None:
        """Keep the message until the results of all these parts are emitted."""
        hold = self.hub.hold(parcel, frames)
        for part in parts:
            part.depth = max(part.depth, parcel.depth + 1)
            if hold is not None:
                hold.open += 1
                part.holds.append(hold)

    def _mail(self, kind: str, frames: tuple[bytes, ...], fmt: str, depth: int, wall: int) -> Mail:
        context = self.hub.context
        return Mail(
            origin=context.node,
            era=context.era,
            sequence=context.next_sequence(),
            type=kind,
            frames=frames,
            to=("PARENTSOF",),
            depth=depth,
            at=wall,
            fmt=fmt,
        )

    def due(self, now: Now) -> int | None:
        """When it has a result to emit, on the monotonic clock."""
        raise AssertionError(self)

    def close(self, now: Now) -> Iterator[Part]:
        """The results that are due."""
        raise AssertionError(self)

    def close_all(self) -> Iterator[Part]:
        """The results of everything open."""
        raise AssertionError(self)


class Pile:
    """Messages that become one message."""

    __slots__ = ("depth", "due", "frames", "holds", "size", "which")

    def __init__(self, which: tuple[str, str], due: int) -> None:
        self.which, self.due = which, due
        self.frames: list[bytes] = []
        self.holds: list[Hold] = []
        self.size = self.depth = 0


class BatchLink(AbsorbingLink):
    """`batch`: combines messages, up to a number or a span of time, into the frames of one message."""

    def __init__(self, spec: FilterSpec, hub: Absorbing) -> None:
        super().__init__(spec, hub)
        assert isinstance(spec.options, BatchOptions), spec
        self._options = spec.options
        self._open: dict[tuple[str, str], Pile] = {}
        self._full: list[Pile] = []
        self._wall = 0

    def follow(self, old: FilterLink) -> None:
        """Take over the counters of the old filter, and the messages it has collected."""
        self.counters = old.counters
        if isinstance(old, BatchLink):
            self._open, self._full = old._open, old._full

    def _take(self, view: MessageView, parcel: Parcel, seen: list[int], now: Now) -> Judgement:
        """Collect a whole message if the filter sees one of its records."""
        self._wall = now.wall
        if not parcel.counted_in:
            frames = view.close()
            pile = self._pile((parcel.type, parcel.fmt), len(frames), sum(map(len, frames)), now)
            pile.frames += frames
            pile.size += sum(map(len, frames))
            if len(pile.frames) >= self._options.count:
                self._fill(pile)
            self._keep(parcel, view.close, [pile])
        return Judgement(list(view.kept), [])

    def _pile(self, which: tuple[str, str], count: int, size: int, now: Now) -> Pile:
        pile = self._open.get(which)
        if pile is not None and (
            len(pile.frames) + count > limits.FRAMES_MAX or pile.size + size > limits.PAYLOAD_BYTES_MAX
        ):
            self._fill(pile)
            pile = None
        if pile is None:
            pile = self._open[which] = Pile(which, now.mono + self._options.within_ns)
        return pile

    def _fill(self, pile: Pile) -> None:
        del self._open[pile.which]
        self._full.append(pile)

    def _part(self, pile: Pile) -> Part:
        kind, fmt = pile.which
        return self._mail(kind, tuple(pile.frames), fmt, pile.depth, self._wall), pile.holds, (0, b"")

    def due(self, now: Now) -> int | None:
        if self._full:
            return now.mono
        return min([pile.due for pile in self._open.values()], default=None)

    def close(self, now: Now) -> Iterator[Part]:
        self._wall = now.wall
        for pile in [pile for pile in self._open.values() if pile.due <= now.mono]:
            self._fill(pile)
        full, self._full[:] = list(self._full), []
        return map(self._part, full)

    def close_all(self) -> Iterator[Part]:
        full = [*self._full, *self._open.values()]
        self._full.clear()
        self._open.clear()
        return map(self._part, full)
