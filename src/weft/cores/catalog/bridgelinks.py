"""One bridge: the broker at its other end, and the credit for messages to it (BRI-008)."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from weft.base.errors import PeerError
from weft.base.now import SECOND
from weft.cores.catalog import limits
from weft.cores.catalog.bridgestates import Bridge
from weft.cores.catalog.context import Context
from weft.wire.catalog import bridges as wire
from weft.wire.catalog import times
from weft.wire.catalog.messages import Message
from weft.wire.multipart import BAD_SUM

COUNTED: Final = (wire.Change, wire.Pub, wire.Ask, wire.Call)
"""Messages that need credit. All others are small, or answer one that had credit."""
GONE, DAMAGED = "silent or gone", "damaged on the way"
Key = tuple[str, str, str]
LINKED: Final = "linked"
"""Why a second connection between the same two brokers is refused: no fault, so nobody is told."""


class Link:
    """A connection to another broker; `channel` and `peer` are its address here."""

    def __init__(self, context: Context, channel: str, peer: bytes, endpoint: str = "") -> None:
        self._context = context
        self.channel, self.peer = channel, peer
        self.endpoint = endpoint
        """The endpoint that we dial; empty: the other side dials."""
        self.state = Bridge.DOWN
        self.net = ""
        self.epoch = ""
        """Epoch of the other broker's run; `index` counts within it."""
        self.index = self.said_index = 0
        """Index of the last change received, and of the last change sent."""
        self.heard_at = self.beat_at = self.since = context.now.mono
        self.retry_at = context.now.mono
        self.retries = 0
        self.says_sums = False
        """The other end has sent a checksum, or said that it does, so every message of it has one (FLD-030)."""
        self.why = GONE
        """Why it is going to end."""
        self.window = (0, 0)
        self._open = (0, 0)
        """Messages and bytes sent and not acknowledged."""
        self._taken = (0, 0)
        """Messages and bytes received and not acknowledged yet."""
        self.parts = 0
        """Parts of the incoming snapshot received so far."""
        self.snapshot: set[Key] = set()
        """Entries in the parts received so far."""
        self.offered: dict[Key, bytes] = {}
        """What was last sent of each entry."""
        self.wants: set[tuple[str, str]] = set()
        """(network, prefix) pairs that the other end has subscribed to."""
        self.late: OrderedDict[Key, None] = OrderedDict()
        """Entries whose change waits for credit; only the newest state of each is sent."""
        self.waiting: OrderedDict[tuple[str, str, str, bytes], tuple[wire.Pub, tuple[bytes, ...]]] = OrderedDict()
        """The last value of each topic that waits for credit."""

    @property
    def is_on(self) -> bool:
        """Whether entries are exchanged over it."""
        return self.state in (Bridge.SYNCING, Bridge.UP)

    def begin_anew(self) -> None:
        """Forget all that is known of the other end."""
        self.epoch, self.index, self.said_index, self.parts = "", 0, 0, 0
        self._open = self._taken = self.window = (0, 0)
        self.offered, self.wants, self.says_sums, self.why = {}, set(), False, GONE
        self.late.clear()
        self.waiting.clear()

    def shown(self, imported: int) -> dict[str, Any]:
        """Its row in the answer of `dbp.bridge`."""
        return {
            "net": self.net,
            "state": self.state.name.lower(),
            "dialled": self.endpoint,
            "since_s": round((self._context.now.mono - self.since) / SECOND, 3),
            "imported": imported,
            "exported": len(self.offered),
            "late": len(self.late) + len(self.waiting),
        }

    def has_credit(self, size: int) -> bool:
        """Whether one more message of `size` bytes may be sent now."""
        messages, total = self._open
        return messages < self.window[0] and (total == 0 or total + size <= self.window[1])

    def say(self, header: wire.Header, frames: Sequence[bytes] = ()) -> None:
        """Send a message, with or without credit; messages that need credit are counted."""
        if type(header) in COUNTED:
            self._open = (self._open[0] + 1, self._open[1] + sum(map(len, frames)))
        message = wire.message_of(header, times.write("f64le", self._context.wall), frames)
        self._context.send(self.channel, self.peer, message)
        self._context.count("bridge_said", type(header).__name__.lower())

    def take(self, header: wire.Header, frames: Sequence[bytes]) -> None:
        """A message was received: acknowledge, once a good part of the window has been received."""
        if type(header) not in COUNTED:
            return
        messages, size = self._taken = (self._taken[0] + 1, self._taken[1] + sum(map(len, frames)))
        if messages >= limits.WINDOW_MESSAGES // 4 or size >= limits.WINDOW_BYTES // 4:
            self.acknowledge()

    def acknowledge(self) -> None:
        """Acknowledge what was received, if anything."""
        if self._taken != (0, 0):
            self.say(wire.Credit(*self._taken))
            self._taken = (0, 0)

    def credit(self, given: wire.Credit) -> None:
        """The other end has acknowledged messages: their credit is free again."""
        self._open = (max(0, self._open[0] - given.messages), max(0, self._open[1] - given.bytes))


def read(link: Link | None, message: Message) -> tuple[wire.Header, tuple[bytes, ...]]:
    """Header and payload of what was heard; PeerError, `bad-sum` for what was altered on the way (FLD-030)."""
    has_sum = wire.is_sealed(message, is_due=link is not None and link.says_sums)
    header, frames = wire.read(message)
    if isinstance(header, wire.Hello) and header.sums and not has_sum:
        raise PeerError(BAD_SUM, "its sum was altered on the way", message.command)
    if link is not None:
        link.says_sums |= has_sum
    return header, frames


def gives_way(link: Link, own: str, net: str, links: Iterable[Link]) -> bool:
    """Whether the brokers of `own` and `net` have dialled each other, and another connection than `link` stays.

    That is the one which the network whose name sorts first has dialled: both ends must choose the same one, or each
    would end the other's for ever.
    """
    is_dialled = bool(link.endpoint)
    if is_dialled == (own < net):
        return False
    return any(other.net == net and other.is_on and bool(other.endpoint) != is_dialled for other in links)
