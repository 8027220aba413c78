"""Programs of this machine and a session (specs/04, JAM-040): what they ask, and what is told to who watches.

| verb | arguments | answer |
|---|---|---|
| status | | the facts of the session |
| peers, sources | | who is there; whose entries are here, up to which number |
| show | reference, eids, from, of | xml (a piece of the canonical bytes), size, of (their digest): ask on with `from` and `of` |
| element | reference | xml, slot, eid, history |
| digest | | digest, check, operations, catching_up |
| edit | verb, words or reference, xml, text, attributes, by, resolves, force | source, sequence, outcome, hidden_by, eids |
| resolve | conflict, side or value | as `edit` |
| import | operations (bodies) | taken, known, refused |
| log | from, limit, source | operations, next, total |
| conflicts, parked | closed | lists of them |
| chat | text | told: to how many peers; without a text: chats |
| watch | operations, events | changes, until `end`; `heard` says up to which one they were read |
| board | at | the board of the derby schema |
"""

from typing import TYPE_CHECKING, Any

from weft.base.now import Now
from weft.wire.document.clients import Asked

if TYPE_CHECKING:
    from weft.cores.document.session import Session


class Serving:
    """All programs of one session."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    def hear(self, asked: Asked, peer: bytes, now: Now) -> None:
        """A program asks; whatever it asks is answered."""
        self._session.station.count("doc.asked")

    def lost(self, peer: bytes) -> None:
        """A program is gone."""

    def show(self) -> None:
        """The turn ends: tell watchers what it changed."""

    def stop(self) -> None:
        """The node ends: watches do, too."""

    def facts(self) -> dict[str, Any]:
        """For status."""
        return {}

    def wake(self, now: Now) -> None:
        """Forget watchers that are silent."""

    def deadline(self) -> int | None:
        """When the next of them would be."""
        return None
