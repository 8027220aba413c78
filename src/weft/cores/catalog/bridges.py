"""Bridges to brokers of other networks: all that crosses uses one connection per network (BRI-001 to 014).

    links      one per network: its states in bridgestates, its credit in bridgelinks
    routes     entries of other networks, and the link each comes by
    crossing   publications; relays: calls

An entry crosses only if the settings of both sides list it. Networks that are cut apart go on alone, and exchange
everything again when they reconnect.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from weft.base.effects import SendFailed, Source
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.cores.catalog import limits
from weft.cores.catalog.answers import Answers
from weft.cores.catalog.asking import Asking
from weft.cores.catalog.book import Book
from weft.cores.catalog.bridgelinks import DAMAGED, LINKED, Link, gives_way, read
from weft.cores.catalog.bridgestates import TABLE, Bridge, Word
from weft.cores.catalog.context import BRIDGE, DIAL, Asker, Context
from weft.cores.catalog.crossing import Crossing
from weft.cores.catalog.messages import BridgeDown, BridgeRefused, BridgeUp
from weft.cores.catalog.publishing import Publishing
from weft.cores.catalog.queries import Queries
from weft.cores.catalog.registry import Registry
from weft.cores.catalog.relays import Relays
from weft.cores.catalog.routes import Routes
from weft.cores.catalog.sharing import Sharing
from weft.cores.catalog.values import Values
from weft.cores.kit.timers import earliest
from weft.wire.catalog import bridges as wire
from weft.wire.catalog.messages import Message
from weft.wire.multipart import BAD_SUM


class Bridges:
    """All bridges of this broker. It has none if it neither dials nor listens for any."""

    def __init__(  # tidy: all the parts that entries, values and calls go through
        self,
        context: Context,
        book: Book,
        registry: Registry,
        answers: Answers,
        publishing: Publishing,
        values: Values,
        queries: Queries,
    ) -> None:
        self.context, self.book, self.answers = context, book, answers
        self.links: dict[tuple[str, bytes], Link] = {}
        """By channel and peer."""
        self.routes = Routes(context, book, registry)
        self.sharing = Sharing(context, book, self.routes, self.links.values, self._turn)
        self.lists = context.bridging = self.sharing.lists
        self.relays = Relays(context, book, registry, self.link_to)
        self.crossing = Crossing(context, publishing, values, self.links.values, self.link_to)
        values.published = self.crossing.published
        self.asking = Asking(context, book, answers, self.links.values, self.link_to)
        self._is_open = False
        queries.add("dbp.bridge", self.query)
        queries.gauges["bridge_links"] = lambda: {"": sum(link.state is Bridge.UP for link in self.links.values())}
        queries.gauges["bridge_imported"] = lambda: {"": len(self.routes)}

    @property
    def is_on(self) -> bool:
        """Whether the settings allow bridges."""
        return bool(self.context.settings.net and (self.context.settings.bridge_to or self.context.bridge_port))

    def open(self, now: Now) -> None:
        """Dial the brokers named in the settings."""
        if not self.context.settings.net:
            return
        self._is_open = True
        if self.is_on:
            self.context.relays = self.relays
        for endpoint in self.context.settings.bridge_to:
            key = (DIAL, endpoint.encode())
            self.links[key] = Link(self.context, *key, endpoint)
        if self.is_on and self.context.settings.imports:
            self.relays.prepare()

    def stop(self) -> None:
        """The broker stops: send a goodbye on every bridge."""
        for link in self.links.values():
            if link.is_on:
                link.say(wire.Bye())

    def link_to(self, net: str) -> Link | None:
        """The bridge to a network: its own, else the one over which its entries come."""
        direct = next((link for link in self.links.values() if link.net == net and link.is_on), None)
        if direct is not None or not self.context.settings.transit:
            return direct or self._through(net)
        return self._through(net)

    def _through(self, net: str) -> Link | None:
        nets = {link.net: link for link in self.links.values() if link.is_on}
        ways = (self.routes.best(key) for key in self.routes.of_net(net))
        return next((nets[way[0]] for way in ways if way is not None and way[0] in nets), None)

    # Hearing

    def hear(self, message: Message, source: Source, now: Now) -> None:
        """Process a message of a bridge."""
        link = self.links.get((source.channel, source.peer))
        try:
            header, frames = read(link, message)
        except PeerError as error:
            self.drop(link, source, error.code)
            return
        self.context.count("bridge_heard", type(header).__name__.lower())
        if link is None:
            link = self._meet(header, source)
            if link is None:
                return
        link.heard_at = now.mono
        if not link.is_on and not isinstance(header, wire.Hello | wire.Refuse | wire.Bye):
            self.context.count("bridge_dropped", "early")
            return
        HEARERS[type(header)](self, link, header, frames, now)
        link.take(header, frames)
        self.sharing.settle()

    def drop(self, link: Link | None, source: Source, code: str) -> None:
        """A message that cannot be read changes nothing. If it was altered on the way, both sides begin anew."""
        self.context.count("bridge_dropped", code)
        if code != BAD_SUM or not (link or source.channel == BRIDGE):
            return
        (link or Link(self.context, source.channel, source.peer)).say(wire.Bye())
        if link is not None:
            link.why = DAMAGED
            self._turn(link, Word.ENDED)

    def _meet(self, header: wire.Header, source: Source) -> Link | None:
        """A broker dials. Any other first message is refused, since the sender is not known."""
        if source.channel != BRIDGE:
            return None
        link = Link(self.context, source.channel, source.peer)
        if not isinstance(header, wire.Hello):
            link.say(wire.Bye())
            return None
        if len(self.links) >= limits.BRIDGES_MAX:
            link.say(wire.Refuse("limit"))
            return None
        self.links[source.channel, source.peer] = link
        return link

    def _hear_hello(self, link: Link, header: wire.Hello, frames: tuple[bytes, ...], now: Now) -> None:
        own = self.context.settings.net
        code = "same-net" if header.net == own else "unsupported" if header.v != wire.VERSION else ""
        if not code and gives_way(link, own, header.net, self.links.values()):
            code = LINKED
        if code:
            self._refuse(link, header, code)
            return
        if link.is_on and link.net != header.net:
            self._turn(link, Word.ENDED)  # it is another broker now: entries under its old name are removed
            if link.endpoint:
                return
            self.links[link.channel, link.peer] = link
        for other in [each for each in self.links.values() if each.net == header.net and each is not link]:
            if other.is_on:
                self._turn(other, Word.ENDED)  # it dialled again, or both sides dialled
            if not other.endpoint:
                self.links.pop((other.channel, other.peer), None)
        link.net, link.window = header.net, (header.messages, header.bytes)
        link.says_sums |= header.sums
        self._turn(link, Word.GREETED)

    def _refuse(self, link: Link, header: wire.Hello, code: str) -> None:
        mono = self.context.now.mono
        link.say(wire.Refuse(code))
        if code != LINKED:
            self.context.tell_seldom(("refused", header.net), BridgeRefused(header.net, code), mono)
        if link.endpoint or link.is_on:
            self._turn(link, Word.ENDED)
            link.retry_at = mono + limits.REFUSED_NS
        else:
            del self.links[link.channel, link.peer]

    def _hear_refusal(self, link: Link, header: wire.Refuse, frames: tuple[bytes, ...], now: Now) -> None:
        about = ("refused", link.endpoint)
        if header.code != LINKED:
            self.context.tell_seldom(about, BridgeRefused(link.endpoint, header.code), now.mono)
        self._turn(link, Word.ENDED)
        link.retry_at = now.mono + limits.REFUSED_NS

    def _hear_bye(self, link: Link, header: wire.Bye, frames: tuple[bytes, ...], now: Now) -> None:
        self._turn(link, Word.ENDED)

    def _hear_beat(self, link: Link, header: wire.Beat, frames: tuple[bytes, ...], now: Now) -> None:
        if link.state is Bridge.UP and (header.epoch, header.index) != (link.epoch, link.index):
            self._turn(link, Word.LOST)

    def _hear_credit(self, link: Link, header: wire.Credit, frames: tuple[bytes, ...], now: Now) -> None:
        link.credit(header)
        self.sharing.say_late(link)

    def _hear_call(self, link: Link, header: wire.Call, frames: tuple[bytes, ...], now: Now) -> None:
        is_own = header.net == self.context.settings.net
        name = header.name if is_own else f"{header.name}@{header.net}"
        may = self.lists.exports_name(header.name) and (is_own or self.context.settings.transit)
        self.relays.carry(link, header, frames, self.book.get(name, header.instance) if may else None, now)

    # What the table asks for

    def _turn(self, link: Link, word: Word) -> None:
        cell = TABLE.get((link.state, word))
        if cell is None:
            self.context.count("bridge_dropped", f"{word.name.lower()} while {link.state.name.lower()}")
            return
        before, link.state = link.state, cell.then
        getattr(self, cell.do)(link)
        if before is not link.state:
            link.since = self.context.now.mono

    def greet(self, link: Link) -> None:
        """Dial, and send a greeting."""
        link.begin_anew()
        link.heard_at = self.context.now.mono
        self._say_hello(link)

    def _say_hello(self, link: Link) -> None:
        hello = wire.Hello(
            v=wire.VERSION,
            net=self.context.settings.net,
            broker=self.context.epoch,
            messages=limits.WINDOW_MESSAGES,
            bytes=limits.WINDOW_BYTES,
            sums=True,
        )
        link.say(hello)

    def answer_greeting(self, link: Link) -> None:
        """Answer the greeting of the broker that dialled."""
        self._say_hello(link)
        self.begin(link)

    def begin(self, link: Link) -> None:
        """Both sides have greeted."""
        link.beat_at = self.context.now.mono
        self.say_all(link)
        self.crossing.spread()

    def say_all(self, link: Link) -> None:
        """Send all exported entries."""
        self.sharing.say_all(link)

    def join(self, link: Link) -> None:
        """All entries of the other side are here."""
        link.retries = 0
        self.context.tell(BridgeUp(link.net, len(self.routes.of_link(link.net)), len(link.offered)))
        self.crossing.spread()

    def stay(self, link: Link) -> None:
        """The snapshot that was asked for again is complete."""
        self.context.count("bridge_resyncs")

    def ask_again(self, link: Link) -> None:
        """A change was missed: greet again, which asks for a snapshot."""
        self._say_hello(link)
        link.parts = 0

    def lose(self, link: Link) -> None:
        """The link is lost: its entries are unreachable, unless another link has them."""
        self.context.tell(BridgeDown(link.net, link.why))
        self.let_go(link)

    def let_go(self, link: Link) -> None:
        """Close it; the side that dials tries again later."""
        for key in self.routes.of_link(link.net):
            self.routes.withdraw(link.net, key, "link")
        self.crossing.lost(link)
        self.relays.lost(link.net)
        self.asking.lost(link.net)
        link.begin_anew()
        if link.endpoint:
            self.context.disconnect(DIAL, link.peer)
            link.net = ""
            link.retry_at = self.context.now.mono + limits.DIAL.pause_ns(self.context.chance, link.retries)
            link.retries += 1
        else:
            self.links.pop((link.channel, link.peer), None)

    # Questions

    def query(self, args: tuple[bytes, ...], asker: Asker) -> tuple[bytes, ...]:
        """`dbp.bridge`: the state of each bridge."""
        rows = [link.shown(len(self.routes.of_link(link.net)) if link.net else 0) for link in self.links.values()]
        answer = {"net": self.context.settings.net, "bridges": rows, "relays": len(self.relays)}
        return (msgspec.json.encode(answer),)

    # Time

    def failed(self, order: SendFailed) -> None:
        """A message found no room in the queue.

        The other end's state and the credit are unknown now, so start again.
        """
        self.context.count("bridge_dropped", "unsent")
        link = self.links.get((order.channel, order.peer))
        if link is not None and link.is_on:
            self._turn(link, Word.ENDED)

    def wake(self, now: Now) -> None:
        """Send beats, notice silence, dial again."""
        for link in list(self.links.values()):
            self._look_after(link, now.mono)
        self.asking.wake(now)
        self.routes.wake(now.mono)
        self.relays.wake(now)
        self.sharing.settle()

    def _look_after(self, link: Link, mono: int) -> None:
        if link.state is Bridge.DOWN:
            if link.endpoint and mono >= link.retry_at:
                self._turn(link, Word.DUE)
        elif mono - link.heard_at >= _silence_ns(link):
            self._turn(link, Word.ENDED)
        elif link.is_on and mono >= link.beat_at:
            link.beat_at = mono + limits.BRIDGE_BEAT_NS
            link.acknowledge()
            link.say(wire.Beat(self.context.epoch, link.said_index))

    def deadline(self) -> int | None:
        if not self.links and not self._is_open:
            return None
        dues = [due for link in self.links.values() if (due := _due_of(link)) is not None]
        mono = self.context.now.mono
        return earliest(*dues, self.asking.deadline(), self.routes.deadline(mono), self.relays.deadline())


def _silence_ns(link: Link) -> int:
    return limits.GREET_NS if link.state is Bridge.GREETING else limits.BRIDGE_SILENCE_NS


def _due_of(link: Link) -> int | None:
    if link.state is Bridge.DOWN:
        return link.retry_at if link.endpoint else None
    silent_at = link.heard_at + _silence_ns(link)
    return min(silent_at, link.beat_at) if link.is_on else silent_at


HEARERS: Final[dict[type, Callable[[Bridges, Link, Any, tuple[bytes, ...], Now], None]]] = {
    wire.Hello: Bridges._hear_hello,
    wire.Refuse: Bridges._hear_refusal,
    wire.Bye: Bridges._hear_bye,
    wire.Snapshot: lambda bridges, *words: bridges.sharing.hear_snapshot(*words),
    wire.Change: lambda bridges, *words: bridges.sharing.hear_change(*words),
    wire.Beat: Bridges._hear_beat,
    wire.Credit: Bridges._hear_credit,
    wire.Sub: lambda bridges, link, header, *_: bridges.crossing.wanted(link, header),
    wire.Unsub: lambda bridges, link, header, *_: bridges.crossing.wanted(link, header),
    wire.Pub: lambda bridges, *words: bridges.crossing.heard(*words),
    wire.Call: Bridges._hear_call,
    wire.Return: lambda bridges, link, header, frames, _: bridges.relays.returned(link, header, frames),
    wire.Ask: lambda bridges, *words: bridges.asking.hear_ask(*words),
    wire.Answer: lambda bridges, *words: bridges.asking.hear_answer(*words),
}
