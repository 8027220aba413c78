"""Requests of programs that change a session: enter, resolve, import, chat (JAM-040, DOC-041, GSP-033)."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft.base.errors import PeerError
from weft.cores.document.limits import CHAT_BYTES_MAX, CHATS_MAX, PAGE
from weft.cores.document.own import Issued
from weft.cores.document.serving_reads import STAMPED, reference_text
from weft.cores.document.serving_resolve import decision_of
from weft.cores.document.serving_undo import Redo, Undo, redo, undo
from weft.cores.document.serving_words import attributes_of, chains_of, payload_of, split, where_of
from weft.cores.kit.refusals import Refusal
from weft.wire.document.operations import ADD, REMOVE, SET, Operation, header_of, uuid_text
from weft.wire.document.xml import Payload

if TYPE_CHECKING:
    from weft.cores.document.session import Session  # tidy: as serving.py

TAKEN, KNOWN, REFUSED = "taken", "known", "refused"
BROUGHT: Final = {"new": TAKEN, "held": TAKEN, "duplicate": KNOWN, "own_source": KNOWN}
"""The result for an imported operation, by the log's code; any other code is a refusal."""


class Edit(msgspec.Struct, frozen=True):
    """An entry: reference and content, as typed words or as separate fields."""

    verb: str
    words: list[str] = []
    reference: dict[str, str] | None = None
    xml: str = ""
    text: str | None = None
    attributes: dict[str, str] = {}
    by: str = ""
    resolves: str = ""
    force: bool = False
    wait: bool = True
    """Whether it may be entered although this node does not find its target; `force` allows it too."""


class Resolve(msgspec.Struct, frozen=True):
    id: str
    """The conflict's id; a prefix is enough."""
    choice: str = ""
    """`first`, `second`, `seen`; empty: `value`."""
    value: str | None = None
    by: str = ""


class Bring(msgspec.Struct, frozen=True):
    operations: list[bytes]


class Talk(msgspec.Struct, frozen=True):
    text: str | None = None
    """None: list the chat messages."""


class Edits:
    """Entries of one session."""

    def __init__(
        self, session: "Session", tell: Callable[[dict[str, Any]], None], operator: Callable[[bytes], str]
    ) -> None:
        self._session, self._tell, self._operator = session, tell, operator
        self.chats: deque[dict[str, Any]] = deque(maxlen=CHATS_MAX)
        """Chat messages since this start."""

    # Entries

    def edit(self, wanted: Edit) -> dict[str, Any]:
        """Enter one operation."""
        maker = MAKERS.get(wanted.verb)
        if maker is None:
            raise Refusal("bad-verb", f"{wanted.verb!r} is none of add, set, remove", "weft doc --help")
        chains = chains_of(self._session.schema.chains)
        reference, rest = dict(wanted.reference or {}), wanted.words
        if not reference:
            reference, rest = split(wanted.words, chains)
        if not reference:
            problem = f"{wanted.words[0]!r} says not where" if wanted.words else "nothing says where"
            raise Refusal("no-reference", problem, f"begin with {where_of(chains)}")
        if taken := STAMPED & reference.keys():
            text = f"{min(taken)!r} means something else in an operation"
            raise Refusal("bad-reference", text, f"one of {where_of(chains)}")
        payload = maker(wanted, rest)
        self._session.fold()
        self._compare_keys(wanted, reference, payload)
        try:
            return self._result(self._issue(wanted, reference, payload))
        except Refusal as error:
            if error.code != "not-found":
                raise
            raise Refusal(error.code, f"there is no {reference_text(reference)}", error.mend) from None

    def _issue(self, wanted: Edit, reference: dict[str, str], payload: Payload) -> Issued:
        issue, by, resolves = self._session.own.issue, wanted.by, wanted.resolves
        return issue(wanted.verb, reference, payload, by=by, resolves=resolves, force=wanted.force, waits=wanted.wait)

    def _compare_keys(self, wanted: Edit, reference: dict[str, str], payload: Payload) -> None:
        """Refuse a second element with an existing key, such as a person's number.

        A reference would find only the first.
        """
        target = None if wanted.wait or wanted.force else self._session.engine.find(reference)
        if target is None:
            return
        steps = self._session.schema.below.get(target.tag, {})
        for node in payload.nodes:
            step = steps.get(node.tag)
            if step is None or step.is_keyed or "eid" in node.attributes:
                continue
            key = node.attributes.get(step.keys[0], "")
            if key and any(one.tag == node.tag and one.attributes.get(step.keys[0]) == key for one in target.children):
                mend = f"weft doc set {reference_text(reference)} {step.ref}={key} …; --force: one more"
                raise Refusal("duplicate-key", f"there is a {node.tag} with {step.keys[0]} {key} already", mend)

    def _result(self, issued: Issued) -> dict[str, Any]:
        hidden, operation = issued.hidden_by, issued.operation
        return {
            "source": uuid_text(operation.source),
            "sequence": operation.sequence,
            "outcome": issued.outcome,
            "hidden_by": f"{uuid_text(hidden.source)}:{hidden.sequence}" if hidden is not None else "",
            "hidden_value": hidden.value if hidden is not None else "",
            "eids": [node.attributes["eid"] for node in operation.payload],
        }

    def undo(self, wanted: Undo) -> dict[str, Any]:
        """Undo an entry by a further one (DOC-055)."""
        return self._undone(*undo(self._session, wanted))

    def redo(self, wanted: Redo) -> dict[str, Any]:
        """Undo the last undo."""
        return self._undone(*redo(self._session, wanted))

    def _undone(self, issued: Issued, operation: Operation) -> dict[str, Any]:
        return self._result(issued) | {"undoes": f"{uuid_text(operation.source)}:{operation.sequence}"}

    # Conflicts

    def resolve(self, wanted: Resolve) -> dict[str, Any]:
        """Close a conflict by a write to its slot that names it (DOC-041)."""
        found = [one for one in self._session.engine.conflicts() if wanted.id and one.id.startswith(wanted.id)]
        if len(found) != 1:
            text = f"{len(found)} conflicts begin with {wanted.id}" if found else f"there is no conflict {wanted.id!r}"
            raise Refusal("not-found", text, "weft doc conflicts: their ids")
        conflict = found[0]
        if not conflict.is_open:
            raise Refusal("not-open", f"{conflict.id} is resolved already", "weft doc conflicts --all")
        self._session.fold()
        verb, reference, payload = decision_of(self._session.engine, conflict, wanted.choice, wanted.value)
        issue = self._session.own.issue
        issued = issue(verb, reference, payload, by=wanted.by, resolves=conflict.id, force=True)
        return self._result(issued) | {"resolved": self._is_closed(conflict.id)}

    def _is_closed(self, name: str) -> bool:
        return any(one.id == name and not one.is_open for one in self._session.engine.conflicts())

    # Operations of others

    def bring(self, wanted: Bring) -> dict[str, Any]:
        """Import operations of an exported log; they are durable when this is answered (GSP-033)."""
        session, context = self._session, self._session.context
        if context.is_full:
            raise Refusal("storage-full", "the journal of this node has no room", "make room on its disk")
        if len(wanted.operations) > PAGE:
            raise Refusal("too-large", f"{len(wanted.operations)} operations at once", f"{PAGE} at most")
        counts = {TAKEN: 0, KNOWN: 0, REFUSED: 0}
        for body in wanted.operations:
            self._authorise(body)
            counts[BROUGHT.get(session.log.take(body, context.uuid).code, REFUSED)] += 1
        context.is_walled = context.is_walled or bool(context.records)
        return counts

    def _authorise(self, body: bytes) -> None:
        """Whether the operator here may import that (GSP-054)."""
        session = self._session
        try:
            header = header_of(body)
        except PeerError:
            return  # the log itself refuses it
        if why := session.own.authorise(session.context.settings.operator, header.verb, header.attributes):
            raise Refusal("not-allowed", why, "another operator")

    # People

    def chat(self, wanted: Talk) -> dict[str, Any]:
        """Send a chat message to people at all other nodes, or list the messages."""
        if wanted.text is None:
            return {"chats": list(self.chats)}
        context = self._session.context
        if not wanted.text.strip() or len(wanted.text.encode("utf-8", "replace")) > CHAT_BYTES_MAX:
            raise Refusal("bad-text", "empty, or too long", f"1 to {CHAT_BYTES_MAX:,} bytes of text")
        self._session.mesh.chat(wanted.text)
        self._tell({"event": "chat", **self.note(context.uuid, wanted.text)})
        return {"told": len(self._session.peers.active())}

    def note(self, peer: bytes, text: str) -> dict[str, Any]:
        """Keep a chat message."""
        message = {"at": self._session.context.time, "peer": uuid_text(peer), "by": self._operator(peer), "text": text}
        self.chats.append(message)
        return message


def _add(wanted: Edit, words: Sequence[str]) -> Payload:
    return payload_of([*words, *([wanted.xml] if wanted.xml else [])], wanted.text or "")


def _set(wanted: Edit, words: Sequence[str]) -> Payload:
    attributes = {**wanted.attributes, **attributes_of(words)}
    if wanted.text is not None and not attributes:
        return Payload(wanted.text)
    if not attributes:
        mend = "weft doc set period=1 jam=3 duration=90; weft doc set path=venue --text 'Hall 5'"
        raise Refusal("nothing-said", "neither an attribute nor a text is said", mend)
    if wanted.text is not None:
        raise Refusal("bad-words", "attributes and text are set by two entries", "weft doc set twice")
    return Payload("", [], attributes)


def _remove(wanted: Edit, words: Sequence[str]) -> Payload:
    if words or wanted.xml or wanted.text or wanted.attributes:
        first = words[0] if words else "that"
        raise Refusal("bad-words", f"{first!r}: an element is removed as a whole", "weft doc remove eid=…")
    return Payload()


MAKERS: Final[dict[str, Callable[[Edit, Sequence[str]], Payload]]] = {ADD: _add, SET: _set, REMOVE: _remove}
"""The payload that each verb builds from words."""
EDITS: Final[dict[str, tuple[type, Callable[[Edits, Any], dict[str, Any]]]]] = {
    "edit": (Edit, Edits.edit),
    "undo": (Undo, Edits.undo),
    "redo": (Redo, Edits.redo),
    "resolve": (Resolve, Edits.resolve),
    "import": (Bring, Edits.bring),
    "chat": (Talk, Edits.chat),
}
"""The arguments of each verb, and its method."""
