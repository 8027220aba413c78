"""The interface for programs of this machine (JAM-040): requests, and changes sent to watches.

| verb | arguments | answer |
|---|---|---|
| status | | the facts of the session |
| peers, sources | | the peers; the sources with their highest number |
| show | reference, eids, of, from | xml (a piece of the canonical bytes), size, of: continue with `of` and `from` |
| element | reference | xml, slot, eid, history |
| digest | | digest, check, operations, catching_up |
| edit | verb, words or reference, xml, text, attributes, by, resolves, force | source, sequence, outcome, hidden_by, eids |
| undo | entry, by, force | as `edit`, and undoes |
| redo | by, force | as `undo` |
| resolve | id, choice or value, by | as `edit` |
| import | operations (bodies) | taken, known, refused |
| log | from or tail, limit, source | operations, next, total |
| conflicts, parked | closed | lists of them, and how many `more` exist |
| chat | text | told: number of peers; without a text: chats |
| watch | operations, events | changes, until `end`; `heard` (n) acknowledges them up to n |
| board | at | board, and what `digest` answers |

Every request gets one answer, a watch many. A refused request has changed nothing, and the refusal says what helps.
"""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft.base.effects import Tell
from weft.base.now import Now
from weft.cores.document.context import CLIENTS
from weft.cores.document.limits import TELL_OPERATIONS_MAX
from weft.cores.document.messages import ChatHeard
from weft.cores.document.serving_edits import EDITS, Edits
from weft.cores.document.serving_reads import READS, Reads
from weft.cores.document.serving_watch import Wanted, Watching
from weft.cores.kit.refusals import Refusal
from weft.wire.document.clients import Answer, Asked

if TYPE_CHECKING:
    from weft.cores.document.session import Session  # tidy: programs are served by the whole session

LATER: Final = ("key",)
"""Verbs that are known but not implemented (GSP-050)."""


class Serving:
    """All programs of one session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._reads = Reads(session)
        self._watching = Watching(session.context, self._state, session.engine.changes, self._reads.operator)
        self._edits = Edits(session, self._watching.note, self._reads.operator)
        self._position = 0
        """The position of the log up to which watchers were told."""

    def _state(self) -> tuple[int, int, bool]:
        session = self._session
        return session.log.check, session.engine.operations, session.is_catching_up

    def hear(self, asked: Asked, peer: bytes, now: Now) -> None:
        """A request of a program; every request is answered."""
        self._session.context.count("doc.asked")
        try:
            body = self._obey(asked, peer)
        except Refusal as error:
            refusal = Answer(asked.id, {"text": error.why, "mend": error.mend}, error.code)
            self._session.context.send(CLIENTS, peer, refusal)
            return
        if body is not None:
            self._session.context.send(CLIENTS, peer, Answer(asked.id, body))

    def _obey(self, asked: Asked, peer: bytes) -> Any:
        """The answer; None: it was sent already, or there is none."""
        verb = asked.verb
        if (read := READS.get(verb)) is not None:
            return read[1](self._reads, _args(asked, read[0]))
        if (edit := EDITS.get(verb)) is not None:
            return edit[1](self._edits, _args(asked, edit[0]))
        if verb == "watch":
            self._watch(asked, peer)
        elif verb == "heard":
            self._watching.heard(asked, peer)
        elif verb == "end":
            self._watching.end(asked, peer)
        elif verb in LATER:
            raise Refusal("unsupported", f"{verb} is not built yet", "docs/doc.md: what is")
        else:
            raise Refusal("bad-verb", f"a session knows no {verb!r}", "docs/doc.md: what programs may ask")
        return None

    def _watch(self, asked: Asked, peer: bytes) -> None:
        self._session.fold()
        if not len(self._watching):
            self._position = self._session.log.count
        self._watching.begin(asked, peer, _args(asked, Wanted))

    def lost(self, peer: bytes) -> None:
        """A program is gone."""
        self._watching.lost(peer)

    def show(self) -> None:
        """The turn ends: keep chat messages, and send changes to watchers."""
        for effect in self._session.context.effects:
            if type(effect) is Tell and type(effect.event) is ChatHeard:
                self._edits.note(effect.event.peer, effect.event.text)
        self._watching.show(self._rows)

    def _rows(self) -> tuple[list[Any], int]:
        """The operations that became known since the last call: the last ones as rows, and how many others."""
        log, begin = self._session.log, self._position
        self._position = end = log.count
        first = max(begin, end - TELL_OPERATIONS_MAX)
        return [self._reads.row(*log.arrival(place)) for place in range(first, end)], first - begin

    def stop(self) -> None:
        """The node stops: end all watches."""
        self._watching.stop()

    def facts(self) -> dict[str, Any]:
        """For status."""
        return {"watchers": len(self._watching)}

    def wake(self, now: Now) -> None:
        """Drop silent watchers."""
        self._watching.wake(now)

    def deadline(self) -> int | None:
        """When the next watcher times out, or changes are to be sent."""
        return self._watching.deadline()


def _args(asked: Asked, kind: type) -> Any:
    """Decode the arguments of a verb; Refusal `bad-request`."""
    try:
        return msgspec.convert(asked.args, kind)
    except msgspec.ValidationError as error:
        raise Refusal("bad-request", f"{asked.verb}: {error}", "docs/doc.md: what programs may ask") from None
