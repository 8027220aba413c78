"""A node's desk for clients, with a journal, and clients at it: everything said goes through the codec, both ways.

desk = Desk("n1")
one = desk.client()                        greeted
one.ask("set_value", path="a.b", value=1)  its one answer
seq = one.open("watch", path="a", fetch=True)
one.heard(seq)                             what has come of that stream since
"""

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET, Raw

from tests.store.rig import Node
from weft.base.effects import Effect, Perform, Persist, Send
from weft.base.now import Now
from weft.base.records import Entry
from weft.base.spool import FetchRecords, Journaled, RecordsFetched
from weft.cores.store.acking import Acking
from weft.cores.store.messages import ClientCame, ClientGone, ClientPaused, ClientResumed, HangUp
from weft.cores.store.serving import Serving
from weft.wire.store.clients import (
    NO_VALUE,
    Answer,
    Greeting,
    PathExpander,
    Request,
    decode_answer,
    decode_request,
    encode,
)
from weft.wire.store.pack import pack, unpack
from weft.wire.store.path import parse, text_of

TURNS_MAX = 100_000
VALUES = ("value", "prev", "old_value")


class Desk:
    """One node; its turns are run until nothing is left to do, unless told otherwise."""

    def __init__(self, name: str, journal: Iterable[Entry] = (), **settings: Any) -> None:
        self.node = Node(name, journal, **settings)
        self.serving = Serving(
            self.node.context, self.node.replica, Acking(self.node.context, self.node.bus, self.node.replica)
        )
        self.serving.restored(len(self.node.journal))
        self.now = Now(0, 0)
        self.clients: dict[bytes, Visitor] = {}
        self.hung_up: list[bytes] = []
        self.forgotten = 0
        """The journal has nothing up to there any more."""
        self.turns: list[list[Effect]] = []
        """The effects of each turn, for tests of their order."""
        self.fetches: list[FetchRecords] = []
        """Work that waits: the journal is read when the turn is over."""
        self.sent_max = 0
        """Bytes that one effect said, at most."""

    def client(self, **how: Any) -> "Visitor":
        visitor = Visitor(self, b"c%d" % len(self.clients), **how)
        self.clients[visitor.peer] = visitor
        self.serving.came(ClientCame(visitor.peer, "127.0.0.1:7", is_local=True), self.now)
        self.settle()
        return visitor

    def turn(self) -> bool:
        """One turn: hear what was read, go on, write, say; whether there is more to do."""
        for work in self.fetches:
            self.serving.fetched(self._read(work), self.now)
        self.fetches = []
        if self.serving.deadline() is not None:
            self.serving.wake(self.now)
        effects = self._effects()
        self.turns.append(effects)
        for effect in effects:
            self._perform(effect)
        return (
            bool(self.fetches or self.node.context.effects or self.serving.has_words)
            or self.serving.deadline() is not None
        )

    def settle(self) -> None:
        """Turns until nothing is left to do."""
        for _ in range(TURNS_MAX):
            if not self.turn():
                return
        raise AssertionError("it never ends")

    def _effects(self) -> list[Effect]:
        """As the node does: what the journal is given is told to the core in the same turn."""
        done: list[Effect] = []
        queue = self._taken()
        while queue:
            effect = queue.pop(0)
            done.append(effect)
            if isinstance(effect, Persist):
                first = len(self.node.journal) + 1
                self.node.journal += enumerate(effect.records, first)
                self.serving.journaled(Journaled(first, effect.records), self.now)
                queue += self._taken()
        return done

    def _taken(self) -> list[Effect]:
        self.serving.flush()
        return self.node.context.take()

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, Send) and effect.channel == "store-clients":
            raw = encode(effect.message)
            self.sent_max = max(self.sent_max, len(raw))
            messages = effect.message if isinstance(effect.message, tuple) else (effect.message,)
            for message in messages:
                self.clients[effect.peer].take(encode(message))
        elif isinstance(effect, Perform) and isinstance(effect.work, FetchRecords):
            self.fetches.append(effect.work)
        elif isinstance(effect, Perform) and isinstance(effect.work, HangUp):
            self.hung_up.append(effect.work.peer)

    def _read(self, work: FetchRecords) -> RecordsFetched:
        """As the journal does, some hundred bytes a record."""
        start = max(work.after, self.forgotten)
        entries = tuple(self.node.journal[start : start + max(1, work.bytes_max // 250)])
        upto = entries[-1][0] if entries else work.after
        return RecordsFetched(work.holder, work.after, upto, entries)


class Visitor:
    """One client."""

    def __init__(self, desk: Desk, peer: bytes, *, qlen: int = 0, acks: bool = True) -> None:
        self.desk, self.peer, self.acks = desk, peer, acks
        self.greeting: Greeting | None = None
        self.qlen = qlen
        self.seq = 0
        self.answers: list[Answer] = []
        self.paths: dict[int, PathExpander] = {}

    def say(self, request: Request) -> None:
        """One request, and nothing done about it yet."""
        self.desk.serving.hear(decode_request(encode(request)), self.peer, self.desk.now)

    def say_hello(self, group: str) -> None:
        """From now on its values are turned by the codecs of that group."""
        self.say(Request(seq=0, conv=group))

    def start(self, action: str, **fields: Any) -> int:
        """Ask, and leave the answer for later turns; the number of the request."""
        self.seq += 1
        if isinstance(fields.get("path"), str):
            fields["path"] = parse(fields["path"])
        for name in VALUES:
            if name in fields:
                fields[name] = Raw(pack(fields[name]))
        self.say(Request(seq=self.seq, action=action, **fields))
        return self.seq

    def open(self, action: str, **fields: Any) -> int:
        """Ask for a stream."""
        seq = self.start(action, **fields)
        self.desk.settle()
        return seq

    def ask(self, action: str, **fields: Any) -> Answer:
        """The one answer."""
        [answer] = self.heard(self.open(action, **fields))
        return answer

    def take(self, raw: bytes) -> None:
        """Something came."""
        said = decode_answer(raw)
        if isinstance(said, Greeting):
            self.greeting = said
            if self.qlen:
                self.say(Request(seq=0, qlen=self.qlen))
            return
        self.answers.append(said)
        if self.acks and said.wseq and said.wseq % (self.qlen // 3 + 1) == 0:
            self.acknowledge(said.seq, said.wseq)

    def acknowledge(self, seq: int, wseq: int) -> None:
        self.say(Request(seq=seq, state="ack", ack=wseq))

    def heard(self, seq: int) -> list[Answer]:
        """What came of a request since the last look."""
        found = [answer for answer in self.answers if answer.seq == seq]
        self.answers = [answer for answer in self.answers if answer.seq != seq]
        return found

    def told(self, seq: int) -> list[Any]:
        """The same in few words: states, and `(path, value)` of items, no value for a deletion."""
        expander = self.paths.setdefault(seq, PathExpander())
        words: list[Any] = []
        for answer in self.heard(seq):
            if answer.path is not UNSET and answer.depth is not UNSET:
                path = text_of(expander.full(answer.depth, answer.path))
                words.append((path, *([value_of(answer)] if answer.value is not NO_VALUE else [])))
            else:
                words.append(answer.state or answer.etype)
        return words

    def pause(self) -> None:
        self.desk.serving.paused(ClientPaused(self.peer), self.desk.now)

    def resume(self) -> None:
        self.desk.serving.resumed(ClientResumed(self.peer), self.desk.now)

    def leave(self) -> None:
        self.desk.serving.gone(ClientGone(self.peer), self.desk.now)


def value_of(answer: Answer, name: str = "value") -> Any:
    """A value of an answer; KeyError if it has none."""
    raw = getattr(answer, name)
    if not bytes(raw):
        raise KeyError(name)
    return unpack(bytes(raw))
