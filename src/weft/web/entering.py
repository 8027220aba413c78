"""`POST /ops`: an operator's entry, made once even if the network repeats the request (JAM-020).

    {"verb": "add", "reference": {"period": 1, "jam": 3}, "xml": "<pass team='home' points='4'/>", "by": "Ann"}
    {"verb": "set", "reference": {"period": 1, "jam": 3}, "attributes": {"duration": "90"}}
    {"verb": "remove", "reference": {"eid": "…"}}
    {"verb": "resolve", "conflict": "…", "side": "first"}       or `second`, `seen`, or a "value"
    {"verb": "chat", "text": "…"}

Each request has an `Idempotency-Key`: the same key with the same body gets the first answer again, and is entered once.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from weft.client.doc.client import Client
from weft.client.doc.errors import DocError
from weft.client.doc.values import Written

BODY_BYTES_MAX: Final = 16 << 10
KEYS_MAX: Final = 4_096  # a bout has some hundreds of entries; a key is repeated within seconds
KEY_BYTES_MAX: Final = 128
BY_MAX: Final = 64

Word = Annotated[str, Meta(max_length=256)]


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a request."""

    verb: Literal["add", "set", "remove", "resolve", "chat"]
    reference: Annotated[dict[Word, str | int], Meta(max_length=8)] = {}
    xml: str = ""
    text: str | None = None
    attributes: Annotated[dict[Word, str | int | float], Meta(max_length=64)] = {}
    by: Annotated[str, Meta(max_length=BY_MAX)] = ""
    force: bool = False
    resolves: Word = ""
    conflict: Word = ""
    side: Literal["first", "second", "seen", ""] = ""
    value: str | None = None


class Outcome(NamedTuple):
    """The answer to a request."""

    status: int
    body: dict[str, Any]


STATUSES: Final = {
    "bad-json": 400,
    "no-key": 400,
    "not-allowed": 403,
    "not-found": 404,
    "closed": 409,
    "not-open": 409,
    "nothing-new": 409,
    "key-reused": 422,
    "too-large": 413,
    "too-fast": 429,
    "no-session": 503,
    "unreachable": 503,
    "unanswered": 504,
    "storage-full": 507,
}
"""HTTP status by the code of a refusal; any other code is 422."""
FORGOTTEN: Final = frozenset({"unreachable", "too-fast", "storage-full"})
"""Refusals after which the entry certainly was not made: the same key may try again."""


def refusal(code: str, text: str, mend: str = "") -> Outcome:
    """A typed refusal."""
    return Outcome(STATUSES.get(code, 422), {"error": code, "text": text, "mend": mend})


async def _add(node: Client, entry: Entry) -> Written:
    return await node.add(
        entry.reference,
        entry.xml,
        text=entry.text or "",
        by=entry.by,
        resolves=entry.resolves,
        force=entry.force,
    )


async def _set(node: Client, entry: Entry) -> Written:
    return await node.set(
        entry.reference,
        entry.attributes,
        text=entry.text,
        by=entry.by,
        resolves=entry.resolves,
        force=entry.force,
    )


async def _remove(node: Client, entry: Entry) -> Written:
    return await node.remove(entry.reference, by=entry.by, resolves=entry.resolves, force=entry.force)


async def _resolve(node: Client, entry: Entry) -> Written:
    return await node.resolve(entry.conflict, entry.side or None, value=entry.value, by=entry.by)


VERBS: Final[dict[str, Callable[[Client, Entry], Awaitable[Written]]]] = {
    "add": _add,
    "set": _set,
    "remove": _remove,
    "resolve": _resolve,
}


class Desk:
    """Makes the entries that operators send."""

    def __init__(self, node: Callable[[], Client | None]) -> None:
        self._node = node
        """The client of the node; None until the node was reached once."""
        self._known: OrderedDict[str, tuple[bytes, asyncio.Task[Outcome]]] = OrderedDict()

    async def enter(self, key: str, body: bytes) -> Outcome:
        """Make the entry of a body; the same key and body get the same outcome again."""
        if not 1 <= len(key) <= KEY_BYTES_MAX:
            return refusal("no-key", "an entry needs the header Idempotency-Key", "a fresh UUID for each entry")
        digest = hashlib.sha256(body).digest()
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = digest, asyncio.ensure_future(self._do(body))
            while len(self._known) > KEYS_MAX:
                self._known.popitem(last=False)
        elif known[0] != digest:
            return refusal("key-reused", "another entry was sent under this key", "a fresh UUID for each entry")
        outcome = await asyncio.shield(known[1])
        if outcome.body.get("error") in FORGOTTEN and self._known.get(key) is known:
            del self._known[key]
        return outcome

    async def _do(self, body: bytes) -> Outcome:
        try:
            entry = msgspec.json.decode(body, type=Entry)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return refusal("bad-json", str(error)[:200], '{"verb": "add", "reference": {…}, "xml": "…"}')
        node = self._node()
        if node is None:
            return refusal("unreachable", "the board has not reached its node yet", "again in a moment")
        try:
            if entry.verb == "chat":
                return Outcome(201, {"told": await node.chat(entry.text or "")})
            return Outcome(201, msgspec.to_builtins(await VERBS[entry.verb](node, entry)))
        except DocError as error:
            return refusal(error.code, error.text, error.mend)
