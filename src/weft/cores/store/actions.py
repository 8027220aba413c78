"""The actions that clients can request, and their answers.

An action returns its one answer; those in `STREAMS` return a stream. Refusal and PeerError become answers too (CLN-002,
CLN-003).
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import msgpack
from msgspec import UNSET, Raw

from weft.base.changes import Event, Path
from weft.base.errors import PeerError
from weft.base.now import SECOND
from weft.cores.kit.refusals import Refusal
from weft.cores.store import limits
from weft.cores.store.streams import Client, DeleteStream, Desk, EntryStream, Stream, TreeStream, flag
from weft.cores.store.ticks import TickBook
from weft.cores.store.tree import Tree
from weft.wire.store.clients import NO_VALUE, Answer, Op, Request, links_of
from weft.wire.store.messages import Ticks
from weft.wire.store.pack import LEFT_OUT, canonical, pack, unpack
from weft.wire.store.path import key_of, normal, text_of
from weft.wire.store.ranges import ticks_of_wire, ticks_to_wire

META: Final[Path] = (None,)
"""Path of the entries about the store itself; actions that end in `_internal` start there."""


class Asked(NamedTuple):
    """A request with its client, and the parts of the node that an action may use."""

    desk: Desk
    client: Client
    request: Request

    @property
    def tree(self) -> Tree:
        return self.desk.replica.tree

    @property
    def book(self) -> TickBook:
        return self.desk.replica.book

    @property
    def path(self) -> Path:
        """The path of the request; Refusal, PeerError `bad-path`."""
        request = self.request
        if not isinstance(request.path, tuple):
            raise Refusal("bad-path", "a path is needed")
        base = META if request.action.endswith("_internal") else self.client.root
        return normal((*base, *request.path), self.desk.context.settings.keys)

    def shown(self, path: Path, raw: bytes) -> Raw:
        """A stored value as this client sees it; Refusal if it was too large to be kept."""
        group = self.client.group
        return value_of(self.desk.replica.rules.shown(group, path, raw) if group else raw)

    def meant(self, path: Path, raw: bytes) -> bytes:
        """The stored form of a value that this client sends; Refusal `bad-value`."""
        group = self.client.group
        return self.desk.replica.rules.meant(group, path, raw) if group and raw else raw

    def answer(self, event: Event | None = None, **fields: Any) -> Answer:
        """Complete an answer with the date of the entry, or else of the server."""
        return Answer(seq=self.request.seq, tock=event.tock if event else self.desk.context.tock, **fields)


class Conditions(NamedTuple):
    """Conditions of a write, tested against what this node has now (STO-036)."""

    request: Request | Op
    path: Path
    current: Event | None
    prev: bytes = b""
    """The value that must be there; empty: no condition."""

    @property
    def value(self) -> bytes | None:
        return self.current.value if self.current else None

    @property
    def are_given(self) -> bool:
        """Whether there are any conditions: then the client knows the old value and is not told it."""
        return len(self.prev) > 0 or self.request.chain is not UNSET

    def check(self) -> None:
        """Refusal `value-mismatch`, `exists` or `chain-mismatch` if a condition does not hold."""
        wanted = self.prev
        if wanted and (self.value is None or not equal(self.value, wanted)):
            raise self._failed("value-mismatch", f"Data is {shown(self.value)} not {shown(wanted)} at")
        chain = self.request.chain
        if chain is None and self.value is not None:
            raise self._failed("exists", "Entry already exists at")
        if not chain:
            return
        if self.current is None or self.value is None:
            raise self._failed("chain-mismatch", "Entry is new at")
        if self.current.chain.head != (chain.node, chain.tick):
            node, tick = self.current.chain.head
            raise self._failed("chain-mismatch", f"Chain is {node}:{tick} not {chain.node}:{chain.tick} for")

    def _failed(self, code: str, text: str) -> Refusal:
        return Refusal(code, f"ClientChainError({f'{text} {text_of(self.path)}'!r})")


# Paths and values


def memory_of(raw: Raw) -> bytes:
    """The bytes of a value; None: no value."""
    return b"" if raw is NO_VALUE else bytes(raw)


def equal(a: bytes, b: bytes) -> bool:
    """Whether two values are equal (STO-005); PeerError if one cannot be decoded."""
    return a == b or canonical(a) == canonical(b)


def shown(raw: bytes | None) -> str:
    """A value in the text of an error."""
    return "nothing" if raw is None else repr(unpack(raw))[:100]


def value_of(raw: bytes) -> Raw:
    """A stored value for a reader; Refusal if it was too large to be kept."""
    if raw == LEFT_OUT:
        raise Refusal("too-large", "the value is too large for this node")
    return Raw(raw)


# Reading


def get_value(asked: Asked) -> Answer:
    """One entry, by path or by the change that heads it."""
    request = asked.request
    if request.node is not UNSET and request.tick is not UNSET:
        event = asked.tree.by_link((request.node, request.tick))
        return _entry(asked, event, {"path": event.path} if event else {})
    return _entry(asked, asked.tree.get(asked.path), {})


def set_root(asked: Asked) -> Answer:
    """Make this path the root of all later paths of this client."""
    path = asked.path
    answer = _entry(asked, asked.tree.get(path), {"path": ()}, nchain=1)
    asked.client.root = path
    return answer


def _entry(asked: Asked, event: Event | None, fields: dict[str, Any], nchain: int = 0) -> Answer:
    """`nchain`: how many links to return if the request does not say."""
    nchain = nchain if asked.request.nchain is UNSET else asked.request.nchain
    if nchain:
        fields["chain"] = links_of(event.chain, nchain) if event else None
    if event is not None and event.value is not None:
        fields["value"] = asked.shown(event.path, event.value)
    if event is not None and event.until is not None:
        fields["until"] = event.until
    return asked.answer(event, **fields)


def enum(asked: Asked) -> Answer:
    """The entries one level below a path, as names or with values. O(children)."""
    tree, top, request = asked.tree, asked.path, asked.request
    children = tree.children(top)
    if not children and top not in ((), META) and tree.get(top) is None:
        raise Refusal("not-found", f"KeyError({text_of(top)!r})")
    if flag(request.with_data):
        found = ((path, tree.get(path)) for path in children)
        pairs = ((path[-1], asked.shown(path, event.value) if event and event.value else None) for path, event in found)
        result = _map((name, value) for name, value in pairs if value is not None or flag(request.empty))
    else:
        result = _list(path[-1] for path in children if flag(request.empty) or tree.live(path))
    return asked.answer(result=Raw(result))


def _list(names: Iterable[Any]) -> bytes:
    return _bounded(msgpack.Packer().pack_array_header, [pack(name) for name in names])


def _map(pairs: Iterable[tuple[Any, Raw | None]]) -> bytes:
    null = pack(None)
    return _bounded(
        msgpack.Packer().pack_map_header,
        [pack(name) + (null if value is None else bytes(value)) for name, value in pairs],
    )


def _bounded(header: Callable[[int], bytes], parts: list[bytes]) -> bytes:
    if sum(map(len, parts)) > limits.ANSWER_BYTES_MAX - 1_024:
        raise Refusal("too-large", "more than one answer can hold; ask for the tree")
    return header(len(parts)) + b"".join(parts)


def get_tock(asked: Asked) -> Answer:
    """The present tock."""
    return asked.answer()


def get_state(asked: Asked) -> Answer:
    """Sets of ticks: `known` without heads, `deleted` without tombstones that still exist (CLN-021)."""
    book, request = asked.book, asked.request
    fields: dict[str, Any] = {}
    if flag(request.nodes):
        fields["nodes"] = book.tops()
    for key, is_wanted, of_node in (
        ("known", flag(request.known) or flag(request.superseded), book.superseded),
        ("deleted", flag(request.deleted), book.deleted),
        ("present", flag(request.present), book.present),
        ("missing", flag(request.missing), book.missing_of),
    ):
        if is_wanted:
            fields[key] = ticks_to_wire({node: of_node(node) for node in book.nodes()})
    if flag(request.remote_missing):
        fields["remote_missing"] = {}
    if flag(request.node_drop):
        fields["node_drop"] = list(book.caps)
    return asked.answer(node=asked.desk.context.name, **fields)


def enum_node(asked: Asked) -> Answer:
    """The ticks of a node, lowest first: all seen ones, or those that head an entry."""
    book, request = asked.book, asked.request
    node = request.node
    if node is UNSET or node not in book.tops():
        raise Refusal("not-found", f"KeyError({None if node is UNSET else node!r})")
    most = min(request.max, limits.NODE_TICKS_MAX) if type(request.max) is int else limits.NODE_TICKS_MAX
    result: list[int] = []
    for first, last in book.present(node) if flag(request.current) else book.seen(node):
        result += range(first, min(last, first + most - len(result) - 1) + 1)
    return asked.answer(result=result)


# Writing


def set_value(asked: Asked) -> Answer:
    """Write one entry, if its conditions hold; only then a tick is taken (T13)."""
    path, request = asked.path, asked.request
    value = asked.meant(path, memory_of(request.value))
    if not value:
        raise Refusal("bad-request", "ClientError(\"Call 'delete_value' if you want to clear the value\")")
    asked.desk.acking.needed(request.ack)
    current = asked.tree.get(path)
    if current is not None and _is_so(request, current, value):
        return _done(asked, current, changed=False)
    return _write(asked, Conditions(request, path, current, asked.meant(path, memory_of(request.prev))), value)


def delete_value(asked: Asked) -> Answer:
    """Delete one entry, if its conditions hold; an entry without a value is not changed (DEL-001)."""
    path, request = asked.path, asked.request
    if memory_of(request.value):
        raise Refusal("bad-request", 'ClientError("A deleted entry can\'t have a value")')
    asked.desk.acking.needed(request.ack)
    conditions = Conditions(request, path, asked.tree.get(path), asked.meant(path, memory_of(request.prev)))
    if conditions.value is not None:
        return _write(asked, conditions, None)
    conditions.check()
    return _done(asked, conditions.current, changed=False)


def _is_so(request: Request | Op, current: Event, value: bytes) -> bool:
    """Whether nothing has to be written (`idem`): the entry has the requested value, and the requested end or none."""
    lasts = request.ttl in (UNSET, None) and current.until == (None if request.until is UNSET else request.until)
    return bool(request.idem) and lasts and current.value is not None and equal(current.value, value)


def until_of(asked: Asked, request: Request | Op) -> float | None:
    """When the entry ends by itself (ADM-014); Refusal for an invalid time to live or instant."""
    ttl, until, wall = request.ttl, request.until, asked.desk.context.now.wall
    if until is not UNSET and until is not None:
        if (
            ttl not in (UNSET, None)
            or not 0 < until <= limits.UNTIL_MAX_S
            or round(until * SECOND) - wall > limits.TTL_MAX_S * SECOND
        ):
            raise Refusal("bad-request", f"`until` stands alone, and is at most {limits.TTL_MAX_S:g} seconds away")
        return until
    if ttl is UNSET or ttl is None:
        return None
    if not 0 < ttl <= limits.TTL_MAX_S:  # NaN neither
        raise Refusal("bad-request", f"`ttl` is more than 0 and at most {limits.TTL_MAX_S:g} seconds")
    end = wall + round(ttl * SECOND)
    return end / SECOND


def _write(asked: Asked, conditions: Conditions, value: bytes | None) -> Answer:
    conditions.check()
    before = conditions.value
    until, wants_ack = until_of(asked, conditions.request), asked.desk.acking.needed(asked.request.ack) > 1
    written = asked.desk.replica.write(
        conditions.path, value, via=asked.client.address, until=until, wants_ack=wants_ack
    )
    event = written.event
    if before and not conditions.are_given:
        return _done(asked, event, changed=True, prev=asked.shown(event.path, before))
    return _done(asked, event, changed=True)


def _done(asked: Asked, event: Event | None, **fields: Any) -> Answer:
    nchain = 1 if asked.request.nchain is UNSET else asked.request.nchain
    if nchain:
        fields["chain"] = links_of(event.chain, nchain) if event else None
    return asked.answer(event, **fields)


def batch(asked: Asked) -> Answer:
    """Several writes in one Persist, all or none: all are checked before the first one is made."""
    request = asked.request
    ops = [] if request.ops is UNSET else request.ops
    wants_ack = asked.desk.acking.needed(request.ack) > 1
    if not 1 <= len(ops) <= limits.BATCH_OPS_MAX:
        raise Refusal("bad-request", f"a batch has 1 to {limits.BATCH_OPS_MAX} writes, in `ops`")
    writes = [_Write.of(asked, op) for op in ops]
    if len({key_of(write.conditions.path) for write in writes}) < len(writes):
        raise Refusal("bad-request", "a batch writes each entry once")
    asked.desk.replica.admitting.check_all(
        [(write.conditions.path, write.value, write.conditions.current) for write in writes if write.is_needed]
    )
    nchain = 1 if request.nchain is UNSET else request.nchain
    return asked.answer(results=[write.done(asked, nchain, wants_ack=wants_ack) for write in writes])


class _Write(NamedTuple):
    """One write of a batch; its conditions hold."""

    conditions: Conditions
    value: bytes | None
    is_needed: bool

    @classmethod
    def of(cls, asked: Asked, op: Op) -> "_Write":
        """Check a write of a request; Refusal, PeerError."""
        if not isinstance(op.path, tuple):
            raise Refusal("bad-request", "each write of a batch has a path")
        path = normal((*asked.client.root, *op.path), asked.desk.context.settings.keys)
        until_of(asked, op)
        value, prev = asked.meant(path, memory_of(op.value)) or None, asked.meant(path, memory_of(op.prev))
        conditions = Conditions(op, path, asked.tree.get(path), prev)
        before = conditions.value
        current = conditions.current
        is_so = value is not None and current is not None and _is_so(op, current, value)
        if not is_so:
            conditions.check()
        return cls(conditions, value, not (is_so or (value is None and before is None)))

    def done(self, asked: Asked, nchain: int, *, wants_ack: bool) -> dict[str, Any]:
        """Make the write; returns its answer."""
        event = self.conditions.current
        if self.is_needed:
            until = until_of(asked, self.conditions.request)
            written = asked.desk.replica.write_checked(
                self.conditions.path, self.value, event, via=asked.client.address, until=until, wants_ack=wants_ack
            )
            event = written.event
        answer: dict[str, Any] = {"changed": self.is_needed, "tock": event.tock if event else asked.desk.context.tock}
        if nchain:
            answer["chain"] = links_of(event.chain, nchain) if event else None
        return answer


# Streams


def get_tree(asked: Asked) -> Stream:
    """All entries below a path."""
    top, tree = asked.path, asked.tree
    stream = TreeStream(*asked, top)
    if top not in ((), META) and tree.get(top) is None and not tree.children(top):
        stream.fail(Refusal("not-found", f"KeyError({text_of(top)!r})"))
    return stream


def delete_tree(asked: Asked) -> Stream:
    """Delete all entries below a path."""
    return DeleteStream(*asked, asked.path)


def auth_list(asked: Asked) -> Stream:
    """Lists users: there are none."""
    stream = EntryStream(asked.desk, asked.client, asked.request.seq, (), 0)
    stream.state("start")
    stream.fail(Refusal("not-found", "KeyError((None, 'auth'))"))
    return stream


# Others


def auth_info(asked: Asked) -> Answer:
    """There is no information about users, as there are none."""
    return asked.answer()


def test_acl(asked: Asked) -> Answer:
    """Whether this client may do something: without users every client is an administrator."""
    if asked.request.acl not in (UNSET, None):
        raise Refusal("unsupported", "there are no access lists here")
    _ = asked.path  # raises for an invalid path
    return asked.answer(access=True)


def unsupported(asked: Asked) -> Answer:
    """Actions of real servers that this one does not implement."""
    raise Refusal("unsupported", f"{asked.request.action!r} is not served here")


def unheaded(asked: Asked) -> Ticks:
    """The ticks that `check_deleted` asks about which this node has seen and which head no entry any more (DEL-007)."""
    if not isinstance(asked.request.nodes, dict):
        raise Refusal("bad-request", "`nodes` is needed: ranges of ticks by node")
    book, found = asked.book, {}
    for node, ticks in ticks_of_wire(asked.request.nodes).items():
        gone = (ticks & book.seen(node)) - book.present(node)
        if gone:
            found[node] = gone
    return found


ACTIONS: Final[dict[str, Callable[[Asked], Answer]]] = {
    **dict.fromkeys(("get_value", "get_internal"), get_value),
    **dict.fromkeys(("set_value", "set_internal"), set_value),
    **dict.fromkeys(("delete_value", "delete_internal"), delete_value),
    **dict.fromkeys(("enum", "enum_internal", "enumerate"), enum),
    "batch": batch,
    "get_state": get_state,
    "get_tock": get_tock,
    "root": set_root,
    "enum_node": enum_node,
    "auth_info": auth_info,
    "test_acl": test_acl,
    **dict.fromkeys(("auth", "auth_get", "auth_set", "set_auth_typ", "diffie_hellman"), unsupported),
    **dict.fromkeys(("download", "history", "save", "log", "msg_send", "msg_monitor"), unsupported),
    **dict.fromkeys(("update", "fake_info", "fake_info_send"), unsupported),
}
STREAMS: Final[dict[str, Callable[[Asked], Stream]]] = {
    **dict.fromkeys(("get_tree", "get_tree_internal"), get_tree),
    "delete_tree": delete_tree,
    "auth_list": auth_list,
}
WIRE_ERRORS: Final = {"bad-path": "bad-path", "too-large": "too-large", "unencodable": "unencodable"}


def refusal(error: PeerError) -> Refusal:
    """The answer to a request that could be decoded but is refused."""
    return Refusal(WIRE_ERRORS.get(error.code, "bad-value"), error.why)
