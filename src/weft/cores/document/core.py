"""The documents of a node: its sessions by name, each with its own sockets, log and document (docs/doc.md)."""

from collections.abc import Iterable
from typing import Any, Final

from weft.base.budget import Budget, Part
from weft.base.effects import Disconnect, Effect, Send, SendFailed, Source
from weft.base.now import Now
from weft.base.records import CoreRecord, Entry
from weft.cores.document import limits, messages
from weft.cores.document.context import CLIENTS, PEERS, Context
from weft.cores.document.log import Log
from weft.cores.document.memory import session_of
from weft.cores.document.messages import SessionSettings
from weft.cores.document.session import Session
from weft.cores.document.show import facts
from weft.cores.kit.timers import Parts
from weft.wire.document.clients import Answer, Asked

BETWEEN: Final = b"\0"
"""Separates a session's name from a peer, in `Source.peer` and `Send.peer` of the channel of peers."""
NOBODY: Final = bytes(16)
LIST, END = "sessions", "end"
"""Verbs that are answered for all sessions together."""


class Documents:
    """All sessions of one node. Sessions that only the journal knows are kept, but not opened."""

    name = "document"

    def __init__(self, sessions: Iterable[SessionSettings]) -> None:
        self.budget = Budget()
        self.dormant: dict[str, Log] = {}
        """Logs of sessions that this start does not open."""
        self.sessions = {settings.name: Session(settings) for settings in sessions}
        self._log, self._held = self._rooms()
        for session in self.sessions.values():
            session.log.share(self._log, self._held)
        self._answers: list[Effect] = []

    def _rooms(self) -> tuple[Part, Part]:
        """The parts of the budget for logs and for operations beyond gaps; all sessions share them."""
        part, meshes = self.budget.part, [session.mesh for session in self.sessions.values()]
        queued = part("queued", limits.QUEUED_PERCENT, lambda: sum([mesh.queued_bytes for mesh in meshes]))
        for mesh in meshes:
            mesh.room = queued
        log = part("log", limits.LOG_PERCENT, lambda: sum([log.bytes for log in self._logs()]))
        return log, part("held", limits.HELD_PERCENT, lambda: sum([log.held_bytes for log in self._logs()]))

    def _logs(self) -> Iterable[Log]:
        return (*[session.log for session in self.sessions.values()], *self.dormant.values())

    # Memory

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Give each session its records. Records that a node only passes on for others are ignored."""
        parts: dict[str, list[Entry]] = {}
        for entry in entries:
            name = session_of(entry[1])
            if name is None:
                continue
            if name not in self.sessions and name not in self.dormant:
                if not isinstance(entry[1], CoreRecord):
                    continue  # of a foreign session, on its way up
                self.dormant[name] = Log(Context(SessionSettings(name=name, uuid=NOBODY)))
                self.dormant[name].share(self._log, self._held)
            parts.setdefault(name, []).append(entry)
        for name, mine in parts.items():
            if name in self.dormant:
                self.dormant[name].restore(mine)
            else:
                self.sessions[name].restore(mine, now)

    def condense(self) -> Iterable[CoreRecord]:
        for session in self.sessions.values():
            yield from session.condense()
        for log in self.dormant.values():
            yield from log.condense()

    def facts(self) -> dict[str, Any]:
        """Numbers for status and metrics, as plain data."""
        return facts(self)

    # Messages and orders

    def receive(self, message: Any, source: Source, now: Now) -> None:
        """A message of a session's peer, or of a program."""
        if source.channel == CLIENTS:
            self._ask(message, source, now)
            return
        name, _, peer = source.peer.partition(BETWEEN)
        if (session := self.sessions.get(name.decode())) is not None:
            session.receive(message, source._replace(peer=peer), now)

    def _ask(self, asked: Asked, source: Source, now: Now) -> None:
        """A program means the session that it names, or the only one.

        `end` goes to the session that knows the request.
        """
        if asked.verb == LIST:
            self._answer(source, Answer(asked.id, [self._line(name) for name in self._names()]))
            return
        named = [self.sessions[asked.session]] if asked.session in self.sessions else []
        meant = named or ([] if asked.session else list(self.sessions.values()))
        if len(meant) == 1 or (meant and asked.verb == END):
            for session in meant:
                session.receive(asked, source, now)
            return
        self._answer(source, Answer(asked.id, self._unknown(asked.session), "no-session"))

    def _answer(self, source: Source, answer: Answer) -> None:
        self._answers.append(Send(CLIENTS, source.peer, answer))

    def _names(self) -> list[str]:
        return sorted([*self.sessions, *self.dormant])

    def _line(self, name: str) -> dict[str, Any]:
        session = self.sessions.get(name)
        if session is None:
            return {"session": name, "state": "dormant", "operations": self.dormant[name].count}
        state = "open" if session.context.endpoint else "opening"
        return {
            "session": name,
            "state": state,
            "schema": session.schema.name,
            "endpoint": session.context.endpoint,
            "operations": session.log.count,
        }

    def _unknown(self, name: str) -> dict[str, str]:
        have = ", ".join(self._names()) or "none"
        text = f"this node has no session {name!r} open" if name else "this node has several sessions, or none"
        return {"text": f"{text}; it has: {have}", "mend": "--session NAME; weft doc join NAME opens one"}

    def _unsent(self, order: SendFailed) -> None:
        """A program is gone."""
        for session in self.sessions.values():
            session.serving.lost(order.peer)

    def command(self, order: Any, now: Now) -> None:
        """Obey an order: for the session that it names, else for all."""
        if isinstance(order, SendFailed):
            self._unsent(order)
            return
        name = order.peer.partition(BETWEEN)[0].decode() if isinstance(order, messages.Garbled) else ""
        name = getattr(order, "session", name)
        for session in [self.sessions[name]] if name in self.sessions else [] if name else self.sessions.values():
            session.command(order, now)

    # Time, and what it makes due

    def wake(self, now: Now) -> None:
        Parts(*self.sessions.values()).wake(now)

    def deadline(self) -> int | None:
        return Parts(*self.sessions.values()).deadline()

    def effects(self) -> list[Effect]:
        """The effects of all sessions, with the session's name in front of its peers."""
        answers, self._answers = self._answers, []
        return answers + [
            _outward(effect, name.encode() + BETWEEN)
            for name, session in self.sessions.items()
            for effect in session.effects()
        ]


def _outward(effect: Effect, prefix: bytes) -> Effect:
    """Put the session's name in front of the peer in a message."""
    if isinstance(effect, Send) and effect.channel == PEERS:
        return Send(PEERS, prefix + effect.peer, effect.message)
    if isinstance(effect, Disconnect):
        return Disconnect(effect.channel, prefix + effect.peer)
    return effect
