"""Orders of people and programs: JSON in, an order of one core, and its `Reply` as JSON out (CFG-022).

    request  {"order": NAME, ...}                       POST /order on port +6, content-type application/json
    answer   {"answer": NAME, ...}                      bytes as text, or {"b64": ...} if they are no UTF-8

A request becomes an order with a ticket, a number of this node's; the core replies to the ticket, now or later.
"""

import asyncio
import base64
import json
from collections.abc import Callable, Container, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

from weft.base.errors import PeerError
from weft.base.now import SECOND
from weft.cores.alerts import messages as alerts
from weft.cores.chains import messages as chains
from weft.cores.configuration import messages as configuration
from weft.cores.enrolment import messages as enrolment
from weft.cores.kit.refusals import Refused
from weft.cores.store import messages as store
from weft.cores.topology import messages as topology
from weft.node.rows import Named, Row
from weft.shell.http.messages import JSON, Request, Response, Route
from weft.wire import jsontext

PATIENCE_S: Final = 35.0  # for a core's reply; TOP-017 takes up to 30 s
WAITING_MAX: Final = 64  # orders without a reply
VALUE_BYTES_MAX: Final = 1 << 20
ORDER: Final = "/order"
ORDER_BYTES_MAX: Final = 8 << 20


class Set(Named, forbid_unknown_fields=True):
    """`set`: write one key; `if_number`: only if the key's last write has this number, 0: if it is absent."""

    key: str
    value: msgspec.Raw
    """A string holds JSON text; anything else is the value itself."""
    ttl_s: float | None = None
    if_number: int | None = None
    who: str = ""
    ack: str = ""


class Delete(Named, forbid_unknown_fields=True):
    """`delete`: delete one key."""

    key: str
    if_number: int | None = None
    who: str = ""
    ack: str = ""


class Load(Named, forbid_unknown_fields=True):
    """`load`: make exactly these pairs, key to value as in `set`, exist under the prefixes."""

    pairs: dict[str, msgspec.Raw]
    prefixes: tuple[str, ...]
    who: str = ""


class Get(Named, forbid_unknown_fields=True):
    """`get`: one pair."""

    key: str


class List(Named, forbid_unknown_fields=True):
    """`list`: the pairs of a subtree, from the first key after `after`."""

    subtree: str = ""
    count: int = 1_000
    after: str = ""


class History(Named, forbid_unknown_fields=True):
    """`history`: the last writes of a subtree."""

    subtree: str = ""
    count: int = 100


class Rollback(Named, forbid_unknown_fields=True):
    """`rollback`: restore a subtree to its state just after `number`."""

    number: int
    subtree: str = ""
    who: str = ""


class StopAll(Named, forbid_unknown_fields=True):
    """`stop`: stop a group, or all nodes."""

    group: str = ""


class ResetRoot(Named, forbid_unknown_fields=True):
    """`reset-root`: forget which root this node follows."""


class Chains(Named, forbid_unknown_fields=True):
    """`chains`: all chains in order, with their links and counters."""


class Trace(Named, forbid_unknown_fields=True):
    """`trace`: what each link does to the next messages of a type."""

    type: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    direction: Literal["", "in", "out"] = ""
    count: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 1
    span_ms: Annotated[int, msgspec.Meta(ge=1, le=30_000)] = 5_000


class ForgetReader(Named, forbid_unknown_fields=True):
    """`forget-reader`: a confirming reader will not return; give up the messages that wait for it."""

    reader: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    """The name of the reader's client."""


class ForgetAlert(Named, forbid_unknown_fields=True):
    """`forget-alert`: end an alert whose node will not return."""

    id: Annotated[str, msgspec.Meta(max_length=64)]
    """The `id` that `weft alerts --json` shows."""


class Listen(Named, forbid_unknown_fields=True):
    """`listen`: create keys, and listen at an address that other machines can reach."""

    address: Annotated[str, msgspec.Meta(max_length=64)]


class Invite(Named, forbid_unknown_fields=True):
    """`invite`: let machines join; the answer holds the token."""

    role: Annotated[str, msgspec.Meta(max_length=16)] = "sensor"
    uses: int = 1
    for_s: Annotated[float, msgspec.Meta(gt=0, le=1e9)] = 900.0
    names: Annotated[str, msgspec.Meta(max_length=1_024)] = "*"


class Invitations(Named, forbid_unknown_fields=True):
    """`invitations`: all invitations that are kept."""


class Withdraw(Named, forbid_unknown_fields=True):
    """`withdraw`: take an invitation back."""

    ident: Annotated[str, msgspec.Meta(max_length=64)]


class KeysOf(Named, forbid_unknown_fields=True):
    """`keys`: which node has which key, as this node knows."""


class RevokeKey(Named, forbid_unknown_fields=True):
    """`revoke-key`: invalidate the keys of a node."""

    node: Annotated[str, msgspec.Meta(max_length=64)]


class RotateKey(Named, forbid_unknown_fields=True):
    """`rotate-key`: replace the key of a node; empty: of this node."""

    node: Annotated[str, msgspec.Meta(max_length=64)] = ""
    at_once: bool = False


class StoreFound(Named, forbid_unknown_fields=True):
    """`store-found`: be the first node of a new store."""

    value: Annotated[str, msgspec.Meta(max_length=2 * VALUE_BYTES_MAX)] = "c0"
    """The value of the root entry: its MessagePack in hexadecimal."""


class StoreShow(Named, forbid_unknown_fields=True):
    """`store-show`: state, members, conflicts and orphans of the store."""

    what: str = "state"


class StoreRestore(Named, forbid_unknown_fields=True):
    """`store-restore`: write again a value that lost a conflict."""

    number: int


class StoreDropNode(Named, forbid_unknown_fields=True):
    """`store-drop-node`: a node of the store will not return."""

    node: str


class StoreDeleters(Named, forbid_unknown_fields=True):
    """`store-deleters`: the nodes that must have seen a deletion before it is forgotten; empty: all."""

    nodes: tuple[str, ...] = ()


class StoreCopy(Named, forbid_unknown_fields=True):
    """`store-copy`: import a piece of a store's file unchanged."""

    records: tuple[str, ...]
    """Whole records, in base64."""
    is_first: bool = False
    is_last: bool = False
    is_whole: bool = False


class StoreReplay(Named, forbid_unknown_fields=True):
    """`store-replay`: write again the changes that were set aside when this node had been dropped."""


class StoreAcceptTick(Named, forbid_unknown_fields=True):
    """`store-accept-tick`: continue under the node's own name although no other node confirmed its numbers."""


def canonical(text: str) -> bytes:
    """The canonical text of a JSON value (CFG-002); PeerError if it is no JSON, or over 1 MiB."""
    return jsontext.encode(jsontext.decode(text.encode("utf-8", "surrogatepass"), VALUE_BYTES_MAX))


def _value(raw: msgspec.Raw) -> bytes:
    data = bytes(raw).strip()
    return canonical(msgspec.json.decode(data, type=str) if data.startswith(b'"') else data.decode())


def _set(request: Set, ticket: int) -> Any:
    write = configuration.Write(request.key, _value(request.value), request.ttl_s, request.if_number)
    return configuration.WriteKeys(ticket, (write,), request.who, ack=request.ack)


def _delete(request: Delete, ticket: int) -> Any:
    write = configuration.Write(request.key, b"", None, request.if_number)
    return configuration.WriteKeys(ticket, (write,), request.who, ack=request.ack)


def _load(request: Load, ticket: int) -> Any:
    pairs = tuple((key, _value(value)) for key, value in request.pairs.items())
    return configuration.LoadTree(ticket, pairs, request.prefixes, request.who)


def _found(request: StoreFound, ticket: int) -> Any:
    return store.Found(ticket, bytes.fromhex(request.value))


def _copy(request: StoreCopy, ticket: int) -> Any:
    records = tuple(base64.b64decode(record, validate=True) for record in request.records)
    return store.CopyFile(ticket, records, request.is_first, request.is_last, request.is_whole)


def _trace(request: Trace, ticket: int) -> Any:
    return chains.TraceChains(ticket, request.type, request.direction, request.count, request.span_ms)


def _invite(request: Invite, ticket: int) -> Any:
    return enrolment.Invite(ticket, request.role, request.uses, round(request.for_s * SECOND), request.names)


ORDERS: Final[dict[str, Row]] = {
    "set": Row("configuration", Set, _set),
    "delete": Row("configuration", Delete, _delete),
    "load": Row("configuration", Load, _load),
    "get": Row("configuration", Get, lambda request, ticket: configuration.ListKeys(ticket, request.key, 1)),
    "list": Row(
        "configuration",
        List,
        lambda request, ticket: configuration.ListKeys(ticket, request.subtree, request.count, request.after),
    ),
    "history": Row(
        "configuration",
        History,
        lambda request, ticket: configuration.ReadHistory(ticket, request.subtree, request.count),
    ),
    "rollback": Row(
        "configuration",
        Rollback,
        lambda request, ticket: configuration.RollBack(ticket, request.number, request.subtree, request.who),
    ),
    "chains": Row("chains", Chains, lambda _, ticket: chains.ShowChains(ticket)),
    "trace": Row("chains", Trace, _trace),
    "forget-reader": Row("chains", ForgetReader, lambda request, ticket: chains.ForgetReader(ticket, request.reader)),
    "forget-alert": Row("alerts", ForgetAlert, lambda request, ticket: alerts.ForgetAlert(ticket, request.id)),
    "store-found": Row("store", StoreFound, _found),
    "store-show": Row("store", StoreShow, lambda request, ticket: store.Show(ticket, request.what)),
    "store-restore": Row("store", StoreRestore, lambda request, ticket: store.RestoreLoser(ticket, request.number)),
    "store-drop-node": Row("store", StoreDropNode, lambda request, ticket: store.DropNode(ticket, request.node)),
    "store-deleters": Row("store", StoreDeleters, lambda request, ticket: store.SetDeleters(ticket, request.nodes)),
    "store-copy": Row("store", StoreCopy, _copy),
    "store-replay": Row("store", StoreReplay, lambda _, ticket: store.ReplayOrphans(ticket)),
    "store-accept-tick": Row("store", StoreAcceptTick, lambda _, ticket: store.AcceptTick(ticket)),
    "reset-root": Row("topology", ResetRoot, lambda _, ticket: topology.ResetRoot(ticket)),
    "listen": Row("enrolment", Listen, lambda request, ticket: enrolment.Listen(ticket, request.address)),
    "invite": Row("enrolment", Invite, _invite),
    "invitations": Row("enrolment", Invitations, lambda _, ticket: enrolment.ShowInvitations(ticket)),
    "withdraw": Row("enrolment", Withdraw, lambda request, ticket: enrolment.Withdraw(ticket, request.ident)),
    "keys": Row("enrolment", KeysOf, lambda _, ticket: enrolment.ShowKeys(ticket)),
    "revoke-key": Row("enrolment", RevokeKey, lambda request, ticket: enrolment.RevokeKey(ticket, request.node)),
    "rotate-key": Row(
        "enrolment", RotateKey, lambda request, ticket: enrolment.RotateKey(ticket, request.node, request.at_once)
    ),
    "stop": Row("topology", StopAll, lambda request, ticket: topology.StopNodes(ticket, request.group)),
}
"""Every order that a person can give over HTTP, except those of annexes."""
REFUSED: Final = configuration.OrderRefused | store.StoreRefused | enrolment.EnrolmentRefused | Refused
"""Answers that are refusals."""


class Desk:
    """Gives orders to the cores of one node, and answers when they reply."""

    def __init__(
        self, order: Callable[[str, Any], None], cores: Container[str], more: Mapping[str, Row] | None = None
    ) -> None:
        """`more`: orders of annexes."""
        self._order, self._cores, self._rows = order, cores, {**ORDERS, **(more or {})}
        self._ticket = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.finishers: dict[type, Callable[[Any], dict[str, Any]]] = {}
        """Functions that make the fields of an answer, by its type: the shell adds what no core knows."""

    def reply(self, ticket: int, answer: Any) -> None:
        """The reply for a ticket; it is dropped if it comes too late."""
        asked = self._waiting.get(ticket)
        if asked is not None and not asked.done():
            asked.set_result(answer)

    def route(self, login: Callable[[Request], str | None] = lambda _: None) -> Route:
        """The route for orders over HTTP; the server's gate admits programs of this machine, and who has logged in.

        `login`: the name of the person whose token came with a request; None: it came with none.
        """
        return Route(lambda request: self.take(request.body, login(request)), "POST", ORDER_BYTES_MAX)

    async def take(self, body: bytes, login: str | None = None) -> Response:
        """The answer to one order: 200; 400 unreadable; 409 refused by its core; 503 no such core here; 504 no reply."""
        try:
            name = msgspec.json.decode(body, type=Named).order
            row = self._rows.get(name)
            if row is None:
                return refusal(400, f"there is no order {name[:64]!r}; there are {', '.join(self._rows)}")
            request = _signed(msgspec.json.decode(body, type=row.request), login)
            order = row.make(request, self._ticket + 1)
        except (msgspec.DecodeError, RecursionError, PeerError, ValueError) as error:
            return refusal(400, str(error))
        if row.core not in self._cores:
            return refusal(503, f"this node has no {row.core}")
        if len(self._waiting) >= WAITING_MAX:
            return refusal(503, f"{WAITING_MAX} orders wait already")
        return await self._ask(row.core, order)

    async def _ask(self, core: str, order: Any) -> Response:
        self._ticket += 1
        ticket = self._ticket
        asked = self._waiting[ticket] = asyncio.get_running_loop().create_future()
        try:
            self._order(core, order)
            async with asyncio.timeout(PATIENCE_S):
                answer = await asked
        except TimeoutError:
            return refusal(504, f"no answer for {PATIENCE_S:.0f} s; the order may still be carried out")
        finally:
            del self._waiting[ticket]
        status = 409 if isinstance(answer, REFUSED) else 200
        if (finish := self.finishers.get(type(answer))) is not None:
            return Response(status, JSON, text_of({"answer": type(answer).__name__, **finish(answer)}))
        if isinstance(answer, dict):
            return Response(status, JSON, text_of({"answer": type(order).__name__, **_plain(answer)}))
        return Response(status, JSON, text_of({"answer": type(answer).__name__, **fields_of(answer)}))


def _signed(request: Named, login: str | None) -> Named:
    """With the name of a login, whatever else the request says of who gives it (CON-004)."""
    who = getattr(request, "who", None)
    if login is None or who is None or who == login or who.startswith(f"{login}: "):
        return request
    return msgspec.structs.replace(request, who=f"{login}: {who}" if who else login)


def refusal(status: int, why: str) -> Response:
    """The answer to an order that reached no core, or got no reply."""
    return Response(status, JSON, text_of({"answer": "refused", "text": why}))


def fields_of(answer: Any) -> dict[str, Any]:
    """The fields of an answer, as they are written in JSON; bytes become text if they are UTF-8."""
    return {name: _plain(getattr(answer, name)) for name in answer.__struct_fields__}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"b64": base64.b64encode(value).decode()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return fields_of(value) if isinstance(value, msgspec.Struct) else value


def text_of(value: Any) -> bytes:
    """One line of JSON."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
