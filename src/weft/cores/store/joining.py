"""Joining a store of real MoaT-KV servers: as a client, this node downloads everything that one of them has (CLN-020).

    dial -> greeting -> get_tree -> get_tree_internal -> get_state -> done

Everything received is merged at once, as if it had come over the bus. So an interrupted download is not wasted: the
next candidate is asked for everything again, and known changes have no effect. Other questions that only a member's
client port answers are asked here too (`check_deleted`).
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import UNSET

from weft.base.changes import Event, Path
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.base.ranges import RangeSet
from weft.cores.store import limits
from weft.cores.store.context import Context
from weft.cores.store.messages import Dial, HangUp
from weft.cores.store.replica import Replica
from weft.wire.store.bus import is_name
from weft.wire.store.clients import (
    ACK_EACH,
    NO_VALUE,
    QLEN,
    Answer,
    ClientHello,
    Greeting,
    PathExpander,
    Request,
    chain_of,
    until_of,
)
from weft.wire.store.messages import Ticks
from weft.wire.store.pack import check_sound, unpack
from weft.wire.store.ranges import ticks_of_wire, ticks_to_wire

JOIN: Final = "store-join"
HOSTS: Final[Path] = (None, "hostmap")
META: Final[Path] = (None,)


class Download:
    """One connection to one server, until it has sent everything."""

    def __init__(self, context: Context, replica: Replica, tag: bytes, name: str) -> None:
        self._context, self._replica = context, replica
        self.tag, self.name = tag, name
        self.heard_at = context.now.mono
        self.is_done = False
        self._seq = 0
        self._top: Path = ()
        self._links: Ticks = {}
        """The links of all entries received."""
        self._expander = PathExpander()
        self._steps: list[Callable[[], Request]] = [self._ask_state, self._ask_internal, self._ask_tree]

    def hear(self, message: Greeting | Answer) -> None:
        """A message of the server; PeerError if it is not allowed here, or is an error."""
        self.heard_at = self._context.now.mono
        if isinstance(message, Greeting):
            self._hear_tock(message.tock)
            self._raise_top(message.node, message.tick)
            self._say(ClientHello(QLEN, seq=0))
            self._go_on()
            return
        if message.seq != self._seq:
            return
        if message.error:
            raise PeerError("refused", message.error)
        if message.wseq and message.wseq % ACK_EACH == 0:
            self._say(Request(seq=self._seq, state="ack", ack=message.wseq))
        if message.path is not UNSET:
            self._merge(message)
        elif message.nodes is not UNSET:
            self._settle(message)
        elif message.state == "end":
            self._go_on()

    def _go_on(self) -> None:
        """Send the next request, or finish."""
        if not self._steps:
            self.is_done = True
            return
        self._seq += 1
        self._expander = PathExpander()
        self._say(self._steps.pop()())

    def _ask_tree(self) -> Request:
        return self._tree("get_tree", ())

    def _ask_internal(self) -> Request:
        return self._tree("get_tree_internal", META)

    def _tree(self, action: str, top: Path) -> Request:
        self._top = top
        me = self._context.name
        return Request(seq=self._seq, action=action, path=(), nchain=-1, empty=True, from_server=me)

    def _ask_state(self) -> Request:
        me = self._context.name
        return Request(seq=self._seq, action="get_state", nodes=True, known=True, deleted=True, from_server=me)

    def _merge(self, item: Answer) -> None:
        """One entry; intermediate steps, and entries never written, have no chain."""
        path = self._expander.full(0 if item.depth is UNSET else item.depth, item.path)
        if not isinstance(item.chain, msgspec.Struct):
            return
        value = None if item.value is NO_VALUE else bytes(item.value)
        try:
            if value is not None:
                check_sound(value)
            self._hear_tock(item.tock)
            event = Event(chain_of(item.chain), item.tock, (*self._top, *path), value, until=until_of(item))
            for node, tick in event.chain.links:
                self._links.setdefault(node, RangeSet()).add(tick)
            self._replica.receive(event, self.name)
        except PeerError as error:
            self._context.refuse(self.name, error.code)  # one bad entry must not prevent joining

    def _settle(self, answer: Answer) -> None:
        """What the server knows beyond its entries: how far each node has come, and what need not be asked for."""
        replica = self._replica
        assert answer.nodes is not UNSET, "that is how it is recognised"
        for node, tick in answer.nodes.items():
            self._raise_top(node, tick or 0)
        for ranges in (answer.known, answer.superseded):
            if ranges is not UNSET:
                replica.settle(_ticks(ranges), "known")
        if answer.deleted is not UNSET:
            replica.settle(self._forgotten(answer.deleted), "deleted")
        self.is_done = True

    def _forgotten(self, deleted: dict[str, Any]) -> Ticks:
        """Purged ticks; real servers also list deletions that still stand in their trees."""
        nothing = RangeSet()
        purged = {node: ticks - self._links.get(node, nothing) for node, ticks in _ticks(deleted).items()}
        return {node: ticks for node, ticks in purged.items() if ticks}

    def _hear_tock(self, tock: int) -> None:
        """Like the tock of any message; PeerError `bad-field` for a value that no node could use."""
        if not 0 <= tock <= limits.TICK_MAX:
            raise PeerError("bad-field", f"tock {tock}")
        self._context.hear_tock(tock)

    def _raise_top(self, node: str, tick: int) -> None:
        """A node has come this far; invalid names and ticks are left out."""
        if is_name(node) and 0 < tick <= limits.TICK_MAX:
            self._replica.book.check(((node, tick),))
            self._replica.book.raise_top(node, tick)

    def _say(self, message: ClientHello | Request) -> None:
        self._context.send(JOIN, self.tag, message)


class Joining:
    """At most one download at a time."""

    def __init__(self, context: Context, replica: Replica) -> None:
        self._context, self._replica = context, replica
        self.on_done: Callable[[bool], None] = lambda _: None
        """Called at the end: whether everything of one node was merged."""
        self._names: list[str] = []
        """Remaining candidates."""
        self._download: Download | None = None
        self._asked: dict[bytes, tuple[int, list[str], Ticks]] = {}
        """Connections that ask `check_deleted`: since when, the remaining nodes, and the ticks."""
        self._count = 0
        self.on_answered: Callable[[], None] = lambda: None
        """Called when no `check_deleted` question is open any more."""

    @property
    def is_asking(self) -> bool:
        """Whether a `check_deleted` question is open (DEL-007)."""
        return bool(self._asked)

    @property
    def is_active(self) -> bool:
        """Whether a download is under way."""
        return self._download is not None

    def start(self, names: list[str], now: Now) -> None:
        """Download from the first of these nodes that gives everything; a running download continues."""
        if self._download is None:
            self._names = [name for name in dict.fromkeys(names) if name != self._context.name]
            self._next()

    def check_deleted(self, names: list[str], ticks: Ticks, now: Now) -> None:
        """Ask one of these nodes which of the ticks are forgotten; it answers all nodes, over the bus (DEL-007)."""
        if names and ticks:
            tag = self._dial(names[0])
            self._asked[tag] = (now.mono, names[1:], ticks)

    def _next(self) -> None:
        if not self._names:
            self._download = None
            self.on_done(False)
            return
        name = self._names.pop(0)
        self._download = Download(self._context, self._replica, self._dial(name), name)

    def _dial(self, name: str) -> bytes:
        self._count += 1
        tag = b"join%d" % self._count
        self._context.perform(Dial(self._endpoint(name), tag))
        return tag

    def _endpoint(self, name: str) -> str:
        """The endpoint of a node's client port (CLN-022)."""
        event = self._replica.tree.get((*HOSTS, name))
        if event is not None and event.value:
            place = _unpacked(event.value)
            if (
                isinstance(place, list | tuple)
                and len(place) == 2
                and isinstance(place[0], str)
                and type(place[1]) is int
            ):
                return f"[{place[0]}]:{place[1]}" if ":" in place[0] else f"{place[0]}:{place[1]}"
        return self._context.settings.hostmap.get(name) or f"{name}:{limits.JOIN_PORT}"

    def hear(self, answer: Greeting | Answer, tag: bytes, now: Now) -> None:
        """A message of the server; PeerError if it is not allowed."""
        if tag in self._asked:
            self._hear_asked(answer, tag)
            return
        download = self._download
        if download is None or download.tag != tag:
            return
        try:
            download.hear(answer)
        except PeerError:
            self._give_up(download)
            raise
        if download.is_done:
            self._download = None
            self._hang_up(tag)
            self.on_done(True)

    def _hear_asked(self, answer: Greeting | Answer, tag: bytes) -> None:
        """Ask first which ticks it has heard of, then which of these are forgotten.

        The second answer comes over the bus.

        A real server reports as deleted everything that it does not know, even changes it was never told of (FLD-021).
        """
        if isinstance(answer, Greeting):
            self._ask(tag, Request(seq=1, action="get_state", nodes=True, missing=True))
        elif answer.seq != 1:
            self._end_question(tag)
        elif answer.nodes is UNSET:
            self._hang_up(tag)
            self.failed(tag, answer.error, self._context.now)
        elif heard := _heard_of(self._asked[tag][2], answer):
            nodes: Any = ticks_to_wire(heard)
            self._ask(tag, Request(seq=2, action="check_deleted", nodes=nodes))
        else:
            self._end_question(tag)

    def _ask(self, tag: bytes, request: Request) -> None:
        self._context.send(JOIN, tag, request)

    def _end_question(self, tag: bytes) -> None:
        del self._asked[tag]
        self._hang_up(tag)
        self._close_question()

    def _close_question(self) -> None:
        if not self._asked:
            self.on_answered()

    def failed(self, tag: bytes, why: str, now: Now) -> None:
        """The connection has ended, failed, or sent unreadable data: take the next candidate."""
        asked = self._asked.pop(tag, None)
        if asked is not None:
            self.check_deleted(asked[1], asked[2], now)
            self._close_question()
        elif self._download is not None and self._download.tag == tag:
            self._give_up(self._download)

    def _give_up(self, download: Download) -> None:
        self._context.count("joins_failed", download.name)
        self._hang_up(download.tag)
        self._next()

    def _hang_up(self, tag: bytes) -> None:
        self._context.perform(HangUp(tag))

    def wake(self, now: Now) -> None:
        """Give up a silent server."""
        download = self._download
        if download is not None and now.mono - download.heard_at >= limits.JOIN_SILENCE_NS:
            self._give_up(download)
        for tag in [tag for tag, asked in self._asked.items() if now.mono - asked[0] >= limits.JOIN_SILENCE_NS]:
            self._hang_up(tag)
            self.failed(tag, "silence", now)

    def deadline(self) -> int | None:
        """When a silent server is given up."""
        if not self._asked and self._download is None:
            return None
        since = [asked[0] for asked in self._asked.values()]
        if self._download is not None:
            since.append(self._download.heard_at)
        return min(since) + limits.JOIN_SILENCE_NS if since else None


def _ticks(ranges: dict[str, Any]) -> Ticks:
    """Sets of ticks of valid node names; PeerError."""
    return ticks_of_wire({node: those for node, those in ranges.items() if is_name(node)})


def _heard_of(ticks: Ticks, answer: Answer) -> Ticks:
    """Of these, the ticks that a server has heard of and does not miss itself; PeerError."""
    assert answer.nodes is not UNSET, "that is how it is recognised"
    missing = _ticks(answer.missing) if answer.missing is not UNSET else {}
    heard = {
        node: RangeSet(those.overlap(1, answer.nodes.get(node) or 0)) - missing.get(node, RangeSet())
        for node, those in ticks.items()
        if answer.nodes.get(node)
    }
    return {node: those for node, those in heard.items() if those}


def _unpacked(value: bytes) -> Any:
    """Unpack a value; None if it is unreadable."""
    try:
        return unpack(value)
    except PeerError:
        return None
