"""What all parts of the chains core share: who we are, where we stand, what we count, and what we want done."""

from collections import OrderedDict
from collections.abc import Callable

import msgspec

from weft.base.budget import Budget
from weft.base.effects import Effect
from weft.base.mail import Mail
from weft.base.now import Now
from weft.base.ranges import RangeSet
from weft.base.records import StreamRecord
from weft.cores.chains import limits
from weft.cores.chains.messages import ChainsSettings, MessagesGivenUp, Placed
from weft.cores.chains.parcel import Parcel
from weft.cores.chains.tracing import Trace
from weft.cores.kit.outbox import Outbox
from weft.wire.clients import SendItem


class Flow(msgspec.Struct):
    """Messages of one chain since the start: accepted = delivered + the sum of `ended` + in flight (CHN-082)."""

    accepted: int = 0
    delivered: int = 0
    ended: dict[str, int] = {}
    """Those that did not get through, by reason."""

    def end(self, why: str) -> None:
        """One message has come to its end."""
        if why == "delivered":
            self.delivered += 1
        else:
            self.ended[why] = self.ended.get(why, 0) + 1

    @property
    def in_flight(self) -> int:
        """Messages under way."""
        return self.accepted - self.delivered - sum(self.ended.values())

    def add(self, other: "Flow") -> None:
        """Count what another has counted, too."""
        self.accepted += other.accepted
        self.delivered += other.delivered
        for why, count in other.ended.items():
            self.ended[why] = self.ended.get(why, 0) + count


class MailCounters(msgspec.Struct):
    """Messages of clients and of other nodes, since the start; a few present values."""

    heard: int = 0
    """Sends of clients."""
    refused: dict[str, int] = {}
    """Sends refused at once, by reason: no chain has seen them."""
    errors: dict[str, int] = {}
    """What clients asked for in vain, by code."""
    repeated_tags: int = 0
    duplicates: int = 0
    """Messages of this node's journal that had come to their end already."""
    ignored: int = 0
    """Destinations changed on `in` (CHN-006)."""
    forwarded: int = 0
    emitted: int = 0
    """Aggregates and batches told."""
    journaled: int = 0
    not_forwarded: dict[str, int] = {}

    def refuse(self, why: str) -> None:
        """Count a send that was refused at once."""
        self.refused[why] = self.refused.get(why, 0) + 1


def _unheard(record: StreamRecord) -> None:
    raise AssertionError(record)


def _nowhere(mail: Mail, now: Now) -> None:
    raise AssertionError(mail, now)


class Context(Outbox):
    """Who this node is, where it stands, and what is counted; all records of a turn stand in front of what it says."""

    __slots__ = (
        "_deep",
        "_given_up",
        "_last_attach",
        "_last_id",
        "_last_sequence",
        "awaits_filters",
        "budget",
        "copies",
        "counters",
        "dispatch",
        "era",
        "is_full",
        "is_stopping",
        "node",
        "placed",
        "receipted",
        "settings",
        "trace",
    )

    def __init__(self, settings: ChainsSettings, node: bytes, era: int) -> None:
        super().__init__()
        self.settings, self.node, self.era = settings, node, era
        self.budget = Budget()
        self.placed = Placed(settings.level, "")
        self.dispatch: Callable[[Mail, Now], None] = _nowhere
        """Sends what a filter has made: the bottom of `out`."""
        self.receipted: Callable[[StreamRecord], None] = _unheard
        """Hears that a message has come to where it was for (RTE-006)."""
        self.counters = MailCounters()
        self.copies = Flow()
        """What confirming readers are to confirm; `delivered`: they have."""
        self.trace: Trace | None = None
        """Somebody asks what becomes of single messages: they go the long way."""
        self.is_full = self.is_stopping = False
        self.awaits_filters = settings.awaits_filters
        """A chain without its filters would let end what one of them is to send on: messages wait in the inbox."""
        self._deep: OrderedDict[int, int] = OrderedDict()
        self._given_up: dict[tuple[str, str], dict[tuple[bytes, int], RangeSet]] = {}
        """What this turn has given up: by reader and reason, then by origin and era."""
        self._last_id = self._last_sequence = self._last_attach = 0

    @property
    def is_root(self) -> bool:
        """Whether this node is its own parent."""
        return self.placed.level == "root"

    def next_id(self) -> int:
        """The number of a message between this node and its clients, from 1 (CHN-005)."""
        self._last_id += 1
        return self._last_id

    def next_attach(self) -> int:
        """The number of a client's link, from 1 in every start: the order of attaching (CHN-010)."""
        self._last_attach += 1
        return self._last_attach

    def next_sequence(self) -> int:
        """The number of a message that this node sends, from 1 in every start (CHN-004)."""
        self._last_sequence += 1
        return self._last_sequence

    def note_depth(self, number: int, depth: int) -> None:
        """How many messages brought this one about; most have none, and need no memory."""
        if depth:
            self._deep[number] = depth
            if len(self._deep) > limits.CAUSES_MAX:
                self._deep.popitem(last=False)

    def depth_after(self, cause: int) -> int:
        """The depth of a message that this one brings about (RTE-005)."""
        return self._deep.get(cause, 0) + 1

    def mail_of(self, item: SendItem, frames: tuple[bytes, ...], now: Now, depth: int = 0) -> Mail:
        """A send as mail of this node, with the next identity (CHN-004)."""
        return Mail(
            origin=self.node,
            era=self.era,
            sequence=self.next_sequence(),
            type=item.type,
            frames=frames,
            to=tuple(item.to),
            depth=depth,
            at=now.wall,
            fmt=item.fmt,
            exp=item.exp,
        )

    def give_up(self, reader: str, why: str, parcel: Parcel) -> None:
        """A reader will never get this message; told at the end of the turn."""
        by_source = self._given_up.setdefault((reader, why), {})
        by_source.setdefault((parcel.origin, parcel.era), RangeSet()).add(parcel.sequence)

    def _tell_given_up(self) -> None:
        given_up, self._given_up = self._given_up, {}
        for (reader, why), by_source in given_up.items():
            spans = [(*source, *span) for source, numbers in by_source.items() for span in numbers]
            for begin in range(0, len(spans), limits.SPANS_MAX):
                part = tuple(spans[begin : begin + limits.SPANS_MAX])
                count = sum([last - first + 1 for *_, first, last in part])
                self.tell(MessagesGivenUp(reader, why, count, part))

    def take(self) -> list[Effect]:
        """What this turn has given up is told in one event for each reader and reason."""
        if self._given_up:
            self._tell_given_up()
        return super().take()
