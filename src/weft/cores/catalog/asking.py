"""Lookups of entries of another network that are not imported: the broker asks that network's broker (BRI-008)."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from weft.base.now import Now
from weft.cores.catalog import limits
from weft.cores.catalog.answers import Answers
from weft.cores.catalog.book import Book
from weft.cores.catalog.bridgelinks import Link
from weft.cores.catalog.context import Asker, Context
from weft.cores.catalog.records import canonical
from weft.wire.catalog import bridges as wire
from weft.wire.catalog import times
from weft.wire.catalog.messages import REPLY, Message


class Waiting:
    """A lookup that was sent to another broker."""

    __slots__ = ("asker", "due_at", "link", "name", "net")

    def __init__(self, asker: Asker, name: str, net: str, due_at: int, link: Link | None) -> None:
        self.asker, self.name, self.net, self.due_at, self.link = asker, name, net, due_at, link


class Asking:
    """Passes lookups on. The asker is answered later, after two seconds at most."""

    def __init__(  # tidy: what a lookup here and one from there need
        self,
        context: Context,
        book: Book,
        answers: Answers,
        links: Callable[[], Iterable[Link]],
        link_to: Callable[[str], Link | None],
    ) -> None:
        self.context, self.book, self.answers = context, book, answers
        self._links, self._link_to = links, link_to
        self._asked: dict[int, Waiting] = {}
        self._ids = 0

    def asks(self, body: tuple[bytes, ...]) -> tuple[str, str] | None:
        """Name and network of a lookup that only another broker can answer; None for any other."""
        if len(body) != 1 or b"@" not in body[0]:
            return None
        name, _, net = body[0].decode("utf-8", "replace").rpartition("@")
        if (
            not name
            or self.context.bridging.imports_name(name)
            or self.book.of_name(f"{name}@{net}")
            or not any(link.net == net for link in self._links())
        ):
            return None
        return name, net

    def ask(self, asker: Asker, name: str, net: str) -> None:
        """Ask the other broker; the asker is answered later, after two seconds at most (BRI-008)."""
        link = self._link_to(net)
        waiting = Waiting(asker, name, net, self.context.now.mono + limits.ASK_NS, link)
        if link is None:
            self._unanswered(waiting, "unreachable")
        elif not link.has_credit(len(name)) or len(self._asked) >= limits.CALLS_MAX:
            self._unanswered(waiting, "busy")
        else:
            self._ids += 1
            self._asked[self._ids] = waiting
            link.say(wire.Ask(self._ids), (name.encode(),))

    def _unanswered(self, waiting: Waiting, state: str) -> None:
        name = f"{waiting.name}@{waiting.net}"
        answer = {"Error": f"{name}: {waiting.net} cannot be asked now", "warning": "inactive", "service": name}
        self._answer(waiting, msgspec.json.encode({**answer, "state": state, "last_seen": None}))

    def _answer(self, waiting: Waiting, body: bytes) -> None:
        asker = waiting.asker
        time = times.answer(asker.time, self.context.wall)
        self.context.say(asker.peer, Message(REPLY, time, (body,), asker.envelope))

    def hear_ask(self, link: Link, header: wire.Ask, frames: tuple[bytes, ...], now: Now) -> None:
        """Another broker asks for a name: answer with the exported instances."""
        names = tuple(
            name for name in frames if name and self.context.bridging.exports_name(name.decode("utf-8", "replace"))
        )
        link.say(wire.Answer(header.id), (self.answers.of(names) if names else b"{}",))

    def hear_answer(self, link: Link, header: wire.Answer, frames: tuple[bytes, ...], now: Now) -> None:
        """Another broker has answered."""
        waiting = self._asked.get(header.id)
        if waiting is None or waiting.link is not link or not frames:
            self.context.count("bridge_dropped", "no-answer")
            return
        del self._asked[header.id]
        try:
            answer = msgspec.json.decode(frames[0], type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError):
            answer = {}
        if waiting.name in answer:
            answer = {f"{waiting.name}@{waiting.net}": answer[waiting.name]}
        self._answer(waiting, canonical(answer))

    def lost(self, net: str) -> None:
        """The bridge to this network is down: answer all who wait for it."""
        for number in [number for number, waiting in self._asked.items() if waiting.net == net]:
            self._unanswered(self._asked.pop(number), "unreachable")

    def wake(self, now: Now) -> None:
        """Answer those who have waited too long."""
        for number in [number for number, waiting in self._asked.items() if waiting.due_at <= now.mono]:
            self._unanswered(self._asked.pop(number), "unreachable")

    def deadline(self) -> int | None:
        """When the first waiting asker times out."""
        return next((waiting.due_at for waiting in self._asked.values()), None)
