"""Requests of programs that change nothing: plain data from document and log (JAM-040)."""

import shlex
from collections.abc import Callable, Iterable
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft.base.errors import PeerError
from weft.base.now import SECOND
from weft.cores.document.fold.conflicts import DUPLICATE_KEY, SINGLE, Conflict
from weft.cores.document.fold.history import Past
from weft.cores.document.fold.schema import SHIPPED
from weft.cores.document.fold.tree import Element
from weft.cores.document.limits import ANSWER_BYTES, PAGE, SHOWN_MAX
from weft.cores.document.peers import Peer
from weft.cores.kit.refusals import Refusal
from weft.wire.document.operations import SEALS, STAMPS, header_of, uuid_text
from weft.wire.document.xml import canonical

if TYPE_CHECKING:
    from weft.cores.document.session import Session  # tidy: as serving.py

SCANNED_MAX: Final = 20 * PAGE
"""Operations that one request examines to find those of one source."""
SHOWN_CHARACTERS: Final = 80
"""Longest text of an element that is only named."""
STAMPED: Final = frozenset((*STAMPS, *SEALS, "attribute"))
"""Attributes of an operation that are not part of a reference."""


class Nothing(msgspec.Struct, frozen=True):
    """No arguments."""


class Show(msgspec.Struct, frozen=True):
    reference: dict[str, str] | None = None
    eids: bool = True
    of: str = ""
    """The digest of the document of which the next piece is wanted."""
    begin: int = msgspec.field(default=0, name="from")


class Where(msgspec.Struct, frozen=True):
    reference: dict[str, str]


class Page(msgspec.Struct, frozen=True):
    begin: int = msgspec.field(default=0, name="from")
    limit: int = PAGE
    source: str = ""
    """A prefix of a UUID; empty: all."""
    tail: int | None = None
    """The last `tail` operations, instead of `from`."""


class Which(msgspec.Struct, frozen=True):
    closed: bool = False


class When(msgspec.Struct, frozen=True):
    at: float | None = None
    """Session time."""


class Reads:
    """Answers for one session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._shown: dict[str, bytes] = {}
        """Documents being fetched in pieces, by digest."""

    # State

    def status(self, _: Nothing) -> dict[str, Any]:
        """All facts of the session."""
        session = self._session
        context, engine, log = session.context, session.engine, session.log
        alone, schema = session.mesh.alone_since, context.settings.schema
        return {
            "session": context.session,
            "schema": session.schema.name,
            "schema_text": "" if schema in SHIPPED else schema,
            "text": context.settings.text,
            "uuid": uuid_text(context.uuid),
            "endpoint": context.endpoint,
            "operator": context.settings.operator,
            "time": context.time,
            "operations": log.count,
            "sources": len(log.sources()),
            "check": f"{log.check:08x}",
            "parked": len(engine.parked()),
            "conflicts": sum(one.is_open for one in engine.conflicts()),
            "catching_up": session.is_catching_up,
            "is_degraded": context.is_full,
            "active": len(session.peers.active()),
            "alone_s": 0 if alone is None else (context.now.mono - alone) // SECOND,
        }

    def digest(self, _: Nothing) -> dict[str, Any]:
        """Digests that are equal on all nodes with an equal document (DOC-050)."""
        session = self._session
        engine, log = session.engine, session.log
        return {
            "digest": engine.digest(),
            "check": f"{log.check:08x}",
            "operations": log.count,
            "catching_up": session.is_catching_up,
        }

    def peers(self, _: Nothing) -> dict[str, Any]:
        """The peers: present, gone, and called."""
        peers = self._session.peers
        return {
            "peers": [self._peer(peer) for peer in sorted(peers.all(), key=_rank)],
            "refused": [{"endpoint": endpoint, "session": session} for endpoint, session in peers.sessions.items()],
        }

    def _peer(self, peer: Peer) -> dict[str, Any]:
        heard = (self._session.context.now.mono - peer.heard_at) // SECOND if peer.heard_at else None
        return {
            "uuid": uuid_text(peer.uuid) if peer.uuid else "",
            "endpoint": peer.endpoint,
            "state": peer.state,
            "how": peer.how,
            "caps": list(peer.caps),
            "heard_s": heard,
            "silent": peer.is_active and peer.is_evasive,
            "by": self.operator(peer.id),
        }

    def operator(self, source: bytes) -> str:
        """The last known operator of a source; for this node, as in the settings."""
        session = self._session
        if source == session.context.uuid:
            return session.context.settings.operator
        return self.author(source, session.log.latest(source)) if source else ""

    def sources(self, _: Nothing) -> dict[str, Any]:
        """The sources with their highest number, and their operators as far as known."""
        log = self._session.log
        latest = dict(log.sources())
        highest = dict.fromkeys(latest, 0)
        for source, sequence in log.held():
            highest[source] = max(highest.get(source, 0), sequence)
        return {"sources": [self._source(source, latest.get(source, 0), highest[source]) for source in sorted(highest)]}

    def _source(self, source: bytes, latest: int, highest: int) -> dict[str, Any]:
        session = self._session
        peer = session.peers.get(source)
        state = "own" if source == session.context.uuid else "active" if peer and peer.is_active else "away"
        by = header_of(session.log.body(source, latest)).attributes.get("by", "") if latest else ""
        return {
            "source": uuid_text(source),
            "state": state,
            "latest": latest,
            "highest": max(latest, highest),
            "by": by,
            "endpoint": peer.endpoint if peer else "",
        }

    # The document

    def show(self, wanted: Show) -> dict[str, Any]:
        """The document or a part of it, as much as fits into one answer; continue with `of` and `from`."""
        whole = self._shown.get(wanted.of) if wanted.of else None
        if whole is None:
            root = self._session.engine.root if wanted.reference is None else self._element(wanted.reference)
            whole = canonical(root, eids=wanted.eids)
        of = sha256(whole).hexdigest() if not wanted.of else wanted.of
        if wanted.of and of != wanted.of:
            raise Refusal("changed", "the document is another one by now", "ask again from its beginning")
        end = wanted.begin + ANSWER_BYTES
        if end < len(whole):
            self._shown.pop(of, None)
            self._shown[of] = whole
            while len(self._shown) > SHOWN_MAX:
                del self._shown[next(iter(self._shown))]
        else:
            self._shown.pop(of, None)
        return {"xml": whole[wanted.begin : end], "size": len(whole), "of": of}

    def element(self, wanted: Where) -> dict[str, Any]:
        """One element, with its writers (DOC-054)."""
        element = self._element(wanted.reference)
        engine = self._session.engine
        slot = engine.slot_of(element)
        return {
            "xml": canonical(element).decode(),
            "slot": slot,
            "eid": element.attributes.get("eid", ""),
            "history": _some(map(self._past, reversed(engine.history(slot))), "value", "before")[::-1],
        }

    def _past(self, past: Past) -> dict[str, Any]:
        return {
            "source": uuid_text(past.source),
            "sequence": past.sequence,
            "eff": past.eff,
            "attribute": past.attribute,
            "value": past.value,
            "before": past.before,
            "outcome": past.outcome,
            "by": self.author(past.source, past.sequence),
        }

    def author(self, source: bytes, sequence: int) -> str:
        """The operator who entered an operation, as far as it is known and says so."""
        try:
            return header_of(self._session.log.body(source, sequence)).attributes.get("by", "")
        except (KeyError, PeerError):
            return ""

    def _element(self, reference: dict[str, str]) -> Element:
        element = self._session.engine.find(reference)
        if element is None:
            words = reference_text(reference) or "no reference"
            raise Refusal("not-found", f"there is no element at {words}", "weft doc show: what there is")
        return element

    def conflicts(self, wanted: Which) -> dict[str, Any]:
        """The open conflicts, or all, as many as fit into one answer; and how many more there are."""
        found = [one for one in self._session.engine.conflicts() if one.is_open or wanted.closed]
        shown = _some(map(self._conflict, found), "first", "second")
        return {"conflicts": shown, "more": len(found) - len(shown)}

    def _conflict(self, one: Conflict) -> dict[str, Any]:
        """A conflict for people: the place by chains of the schema, and the element of an eid."""
        engine = self._session.engine
        are_elements = one.kind in (SINGLE, DUPLICATE_KEY)
        sides = [engine.at(side.value) if are_elements else None for side in (one.first, one.second)]
        shown = ["" if side is None else _start_of(side) for side in sides]
        return {**one.as_data(), "where": self._chain(engine.at(one.slot)), "shown": shown}

    def _chain(self, element: Element | None) -> str:
        """`period=1 jam=3`; empty if no chain leads there."""
        words: list[str] = []
        below = self._session.schema.below
        while element is not None and element.parent is not None:
            step = below.get(element.parent.tag, {}).get(element.tag)
            if step is None:
                return ""
            words.append(f"{step.ref}={element.attributes.get(step.keys[0], '')}")
            element = element.parent
        return " ".join(reversed(words))

    def parked(self, _: Nothing) -> dict[str, Any]:
        """Entries that wait for their target, as many as fit into one answer; and how many more there are."""
        pairs = self._session.engine.parked()
        shown = _some((self.row(*pair) for pair in pairs), "body")
        return {"parked": shown, "more": len(pairs) - len(shown)}

    def board(self, wanted: When) -> dict[str, Any]:
        """The contents of a scoreboard (JAM-010)."""
        session = self._session
        if session.schema.name != "derby":
            text = f"a document of schema {session.schema.name} has no scoreboard"
            raise Refusal("no-board", text, "weft doc show")
        from weft.cores.document.derby.board import state

        time = session.context.time if wanted.at is None else wanted.at
        return {"board": state(session.engine.root, time), **self.digest(Nothing())}

    # The log

    def log(self, wanted: Page) -> dict[str, Any]:
        """Operations in the order in which they became known here, as many as fit into one answer."""
        log = self._session.log
        total = log.count
        limit = min(wanted.limit, PAGE)
        begin = max(0, wanted.begin if wanted.tail is None else total - wanted.tail)
        rows: list[dict[str, Any]] = []
        place, size, end = begin, 0, min(total, begin + SCANNED_MAX)
        while place < end and len(rows) < limit and size < ANSWER_BYTES:
            source, sequence = log.arrival(place)
            if not wanted.source or source.hex().startswith(wanted.source.replace("-", "").lower()):
                rows.append(self.row(source, sequence))
                size += len(rows[-1]["body"])
            place += 1
        return {"operations": rows, "next": place, "total": total}

    def row(self, source: bytes, sequence: int) -> dict[str, Any]:
        """One operation in the form for programs."""
        session = self._session
        kept = session.log.kept(source, sequence)
        header = header_of(kept.body)
        reference = {name: value for name, value in header.attributes.items() if name not in STAMPED}
        return {
            "source": uuid_text(source),
            "sequence": sequence,
            "eff": session.log.eff(source, sequence),
            "verb": header.verb,
            "reference": reference_text(reference),
            "by": header.attributes.get("by", ""),
            "outcome": session.engine.outcome(source, sequence),
            "received_at": kept.received_ns,
            "received_from": uuid_text(kept.received_from),
            "body": kept.body,
        }


def _rank(peer: Peer) -> tuple[bool, str]:
    return not peer.is_active, peer.endpoint


def _some(rows: Iterable[dict[str, Any]], *large: str) -> list[dict[str, Any]]:
    """The first rows, as many as fit into one answer; `large`: the part of each row whose size a peer controls."""
    shown: list[dict[str, Any]] = []
    left = ANSWER_BYTES
    for row in islice(rows, PAGE):
        left -= sum(_size_of(row[name]) for name in large)
        if shown and left < 0:
            break
        shown.append(row)
    return shown


def _size_of(value: Any) -> int:
    """Estimated size of a value; for a party of a conflict, of its value."""
    if isinstance(value, list | tuple):
        return sum(map(_size_of, value))
    return len(value) if isinstance(value, str | bytes) else 0


def _start_of(element: Element) -> str:
    """Tag and attributes, truncated."""
    parts = [element.tag, *(f"{name}={value}" for name, value in element.attributes.items() if name != "eid")]
    return " ".join(parts)[:SHOWN_CHARACTERS]


def reference_text(reference: dict[str, str]) -> str:
    """A reference in the form in which it is typed.

    >>> reference_text({"team": "home", "person": "Ann Lee"})
    "team=home person='Ann Lee'"
    """
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in reference.items())


READS: Final[dict[str, tuple[type, Callable[[Reads, Any], dict[str, Any]]]]] = {
    "status": (Nothing, Reads.status),
    "digest": (Nothing, Reads.digest),
    "peers": (Nothing, Reads.peers),
    "sources": (Nothing, Reads.sources),
    "show": (Show, Reads.show),
    "element": (Where, Reads.element),
    "conflicts": (Which, Reads.conflicts),
    "parked": (Nothing, Reads.parked),
    "board": (When, Reads.board),
    "log": (Page, Reads.log),
}
"""The arguments of each verb, and its method."""
