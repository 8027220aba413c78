"""State that all parts of the chains core share: identity, place in the tree, counters, outbox."""

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
    """Messages that did not reach the end of the chain, by reason."""

    def end(self, why: str) -> None:
        """Count the end of a message."""
        if why == "delivered":
            self.delivered += 1
        else:
            self.ended[why] = self.ended.get(why, 0) + 1

    @property
    def in_flight(self) -> int:
        """Messages under way."""
        return self.accepted - self.delivered - sum(self.ended.values())

    def add(self, other: "Flow") -> None:
        """Add another node's or chain's counts."""
        self.accepted += other.accepted
        self.delivered += other.delivered
        for why, count in other.ended.items():
            self.ended[why] = self.ended.get(why, 0) + count


class MailCounters(msgspec.Struct):
    """Messages of clients and of other nodes since the start, and a few current values."""

    heard: int = 0
    """Sends received from clients."""
    refused: dict[str, int] = {}
    """Sends refused at once, by reason; they entered no chain."""
    errors: dict[str, int] = {}
    """Errors answered to clients, by code."""
    repeated_tags: int = 0
    duplicates: int = 0
    """Messages of this node's journal that had ended already."""
    ignored: int = 0
    """Changes of a destination on `in`, which have no effect (CHN-006)."""
    forwarded: int = 0
    emitted: int = 0
    """Results of `aggregate` and `batch`."""
    journaled: int = 0
    not_forwarded: dict[str, int] = {}

    def refuse(self, why: str) -> None:
        """Count a send refused at once."""
        self.refused[why] = self.refused.get(why, 0) + 1


def _unheard(record: StreamRecord) -> None:
    raise AssertionError(record)


def _nowhere(mail: Mail, now: Now) -> None:
    raise AssertionError(mail, now)


class Context(Outbox):
    """This node's identity and place, its counters, and its outbox.

    All records of a turn stand ahead of its effects.
    """

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
        """Sends a message that a filter has made: the end of `out`."""
        self.receipted: Callable[[StreamRecord], None] = _unheard
        """Called when a message has arrived at its destination (RTE-006)."""
        self.counters = MailCounters()
        self.copies = Flow()
        """Copies that readers have to confirm; `delivered`: confirmed."""
        self.trace: Trace | None = None
        """A running trace; while there is one, messages take the slow path, which records each link."""
        self.is_full = self.is_stopping = False
        self.awaits_filters = settings.awaits_filters
        """The filters are not known yet: messages wait in the inbox, since a missing filter might lose what it should
        forward.
        """
        self._deep: OrderedDict[int, int] = OrderedDict()
        self._given_up: dict[tuple[str, str], dict[tuple[bytes, int], RangeSet]] = {}
        """What this turn has given up: by reader and reason, then by origin and era."""
        self._last_id = self._last_sequence = self._last_attach = 0

    @property
    def is_root(self) -> bool:
        """Whether this node is the root, and thus its own parent."""
        return self.placed.level == "root"

    def next_id(self) -> int:
        """The next number of a message between this node and its clients, from 1 (CHN-005)."""
        self._last_id += 1
        return self._last_id

    def next_attach(self) -> int:
        """The next number of a client's link, from 1 in every start: the order of attaching (CHN-010)."""
        self._last_attach += 1
        return self._last_attach

    def next_sequence(self) -> int:
        """The next number of a message that this node sends, from 1 in every start (CHN-004)."""
        self._last_sequence += 1
        return self._last_sequence

    def note_depth(self, number: int, depth: int) -> None:
        """Note a message's depth: how many messages, one caused by the other, led to it. Depth 0 is not stored."""
        if depth:
            self._deep[number] = depth
            if len(self._deep) > limits.CAUSES_MAX:
                self._deep.popitem(last=False)

    def depth_after(self, cause: int) -> int:
        """The depth of a message that this one causes (RTE-005)."""
        return self._deep.get(cause, 0) + 1

    def mail_of(self, item: SendItem, frames: tuple[bytes, ...], now: Now, depth: int = 0) -> Mail:
        """The mail for a send, with this node's next identity (CHN-004)."""
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
        """The effects of the turn, with one event per reader and reason for everything given up."""
        if self._given_up:
            self._tell_given_up()
        return super().take()
