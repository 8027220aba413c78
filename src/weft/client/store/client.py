"""`weft.store.Client`: a client of the shared store of a program's fleet (CLN-030)."""

from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any, Final, Literal, Self
from weakref import WeakSet

import msgspec
from msgspec import UNSET

from weft.base.changes import Chain, Event, Link
from weft.base.errors import PeerError
from weft.client.store.calling import Caller
from weft.client.store.errors import BadRequest, NotFound, StoreError, error_of
from weft.client.store.finding import Grouped, Node
from weft.client.store.limits import TIMEOUT_S
from weft.client.store.mirror import Mirror
from weft.client.store.streams import Items, Stream, value_of
from weft.client.store.values import MISSING, Entry, Missing, Where, Written, path_of
from weft.client.store.watching import Mode, Wanted, Watch
from weft.wire.store import clients
from weft.wire.store.pack import pack

Seen = Chain | Link | Missing | None
"""The condition of a write: the last change must be this one, as a chain, or node and tick. None: there must be no value.
MISSING: no condition."""
Ack = Literal["local", "one", "majority"] | int
"""How many members must have a write: this one; one other; more than half; or a number, including this one."""
ALL: Final = -1
"""In `nchain`: the server returns whole chains."""
BATCH: Final = "batch"
"""A capability in `weft.caps`: the server accepts several writes at once."""
STATES: Final = ("nodes", "known", "superseded", "deleted", "missing", "remote_missing", "present", "node_drop")


class Client:
    """Reads and writes the store at one node: `async with weft.store.Client() as store: …`.

    `node` is host:port, a state directory, a node's name, or a port of this machine; without it `WEFT_STORE`, else the
    node that runs here, else 127.0.0.1:27505. Entering it raises Unreachable if no server is there. Later it reconnects by
    itself, and requests wait for that, at most `timeout` seconds.
    """

    def __init__(self, node: Node = None, *, timeout: float = TIMEOUT_S, group: str = "") -> None:
        """`group`: the group whose codecs convert the values that are read and written (docs/store.md)."""
        self._node: Node | Grouped = Grouped(node, group) if group else node
        self._timeout_s = timeout
        self._caller = Caller(self._node, timeout)
        self._watches: WeakSet[Watch] = WeakSet()

    async def __aenter__(self) -> Self:
        """Connect."""
        await self._caller.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect: watches end, requests without an answer fail with Closed."""
        for watch in list(self._watches):
            watch.close()
        await self._caller.close()

    @property
    def name(self) -> str:
        """The node's name in the store."""
        return self._caller.greeting.node if self._caller.greeting is not None else ""

    @property
    def is_up(self) -> bool:
        """Whether there is a connection, as far as known."""
        return self._caller.is_up

    # Reading

    async def get(self, path: Where, default: Any = MISSING) -> Any:
        """The value at a path; `default` if there is none. A stored null is `None`."""
        answer = await self._caller.ask(clients.Request(action="get_value", path=path_of(path), nchain=0), repeats=True)
        return value_of(answer.value) if bytes(answer.value) else default

    async def entry(self, path: Where) -> Entry:
        """The entry at a path, with its chain; `is_deleted` distinguishes a deleted one from a path that never had a value."""
        at = path_of(path)
        answer = await self._caller.ask(clients.Request(action="get_value", path=at, nchain=ALL), repeats=True)
        return Entry(
            at, value_of(answer.value), _chain(answer), answer.tock if _chain(answer) else 0, clients.until_of(answer)
        )

    async def list(self, path: Where = (), *, deleted: bool = False) -> list[Any]:
        """The path elements directly below a path, whether or not they have a value themselves.

        With `deleted` also those below which every value was deleted; a MoaT-KV server always lists these, too.
        """
        greeting = self._caller.greeting
        # without `empty` a MoaT-KV server leaves out elements that have no value but have entries below them
        is_foreign = greeting is None or greeting.weft is UNSET
        request = clients.Request(action="enum", path=path_of(path), with_data=False, empty=deleted or is_foreign)
        try:
            answer = await self._caller.ask(request, repeats=True)
        except NotFound:
            return []
        return list(answer.result) if isinstance(answer.result, list | tuple | dict) else []

    async def tree(  # tidy: each narrows what is read
        self,
        path: Where = (),
        *,
        min_depth: int = 0,
        max_depth: int | None = None,
        deleted: bool = False,
        chains: bool = True,
    ) -> AsyncIterator[Entry]:
        """All entries at and below a path, parents before children; with `deleted` also those without a value.

        They come over a connection of their own. When it breaks, the iteration raises StoreError: read again.
        """
        base = path_of(path)
        request = clients.Request(
            seq=1,
            action="get_tree",
            path=base,
            nchain=ALL if chains else 0,
            min_depth=min_depth or UNSET,
            max_depth=UNSET if max_depth is None else max_depth,
            empty=deleted or UNSET,
        )
        stream, items = Stream(self._node, request, self._timeout_s), Items(base)
        try:
            await stream.open()
            while (item := await stream.take()).state != "end":
                if not item.state:
                    yield items.entry(item)
        except NotFound:
            return
        finally:
            stream.close()

    async def events(self, path: Where = (), *, deleted: bool = False) -> AsyncIterator[Event]:
        """As `tree`, but in the store's own form: values are packed, and None where there is none. For files of a store."""
        base = path_of(path)
        request = clients.Request(seq=1, action="get_tree", path=base, nchain=ALL, empty=deleted or UNSET)
        stream, expander = Stream(self._node, request, self._timeout_s), clients.PathExpander()
        try:
            await stream.open()
            while (item := await stream.take()).state != "end":
                chain = None if item.state else _chain(item)
                if item.state or not isinstance(item.path, tuple):
                    continue
                at = (*base, *expander.full(0 if item.depth is UNSET else item.depth, item.path))
                if chain is not None:
                    yield Event(chain, item.tock, at, bytes(item.value) or None, until=clients.until_of(item))
        except NotFound:
            return
        finally:
            stream.close()

    def watch(  # tidy: each narrows what is told
        self,
        path: Where = (),
        *,
        fetch: bool = False,
        since: Any = None,
        mode: Mode = "all",
        min_depth: int = 0,
        max_depth: int | None = None,
        marks: bool = False,
    ) -> Watch:
        """Every change at and below a path from now on, in order: `async for change in store.watch("home"): …`.

        fetch: existing entries come first (`is_old`). since: continue after the `position` of a change, even one that an
        earlier program saw. mode `latest`: a slow reader gets only the newest change of each entry. marks: also `Mark`s.
        """
        wanted = Wanted(path_of(path), fetch=fetch, mode=mode, since=since, depths=(min_depth, max_depth))
        watch = Watch(self._node, wanted, self._timeout_s, marks=marks)
        self._watches.add(watch)
        return watch

    def mirror(self, path: Where = ()) -> Mirror:
        """A live copy of everything at and below a path: `async with store.mirror("home") as home: …`."""
        return Mirror(self.watch(path, fetch=True, marks=True))

    async def state(self, *what: str) -> dict[str, Any]:
        """Which changes of each node this node has, as ranges of ticks: any of `STATES`, by default all."""
        wanted = what or STATES
        if unknown := [word for word in wanted if word not in STATES]:
            raise BadRequest(f"{unknown[0]!r} is none of {', '.join(STATES)}")
        request = clients.Request(action="get_state", **dict.fromkeys(wanted, True))  # type: ignore[arg-type]  # all of them are flags here
        answer = await self._caller.ask(request, repeats=True)
        return {word: value for word in wanted if (value := getattr(answer, word)) is not UNSET}

    # Writing

    async def set(  # tidy: each is a condition of its own
        self,
        path: Where,
        value: Any,
        *,
        chain: Seen = MISSING,
        prev: Any = MISSING,
        new: bool = False,
        idem: bool = False,
        ttl: float | None = None,
        ack: Ack = "local",
    ) -> Written:
        """Write a value; it is durable at the node when this returns. Conditions are checked at this node only (STO-036).

        chain: only if that was the last change (`entry.chain`), else ChainMismatch. prev: only if the value equals that,
        else ValueMismatch. new: only if there is no value, else Exists. idem: write nothing if the value is equal already.
        ttl: the entry expires after so many seconds, unless somebody changes it before. ack: how many members must have
        the write when this returns: "local", "one" other, a "majority", or a number, this node included; Unconfirmed if
        they do not have it within 5 s, and the write stands nevertheless.
        """
        condition = _Condition(chain, prev, new, idem)
        return await self._write("set_value", path, _packed(value), condition, ttl=ttl, ack=ack)

    async def delete(self, path: Where, *, chain: Seen = MISSING, prev: Any = MISSING, ack: Ack = "local") -> Written:
        """Delete the value at a path, with the conditions of `set`; `is_changed` is false if there was none."""
        return await self._write("delete_value", path, b"", _Condition(chain, prev), ack=ack)

    async def delete_tree(self, path: Where) -> int:
        """Delete everything at and below a path; returns the number of values deleted."""
        request = clients.Request(action="delete_tree", path=path_of(path))
        answer = await self._caller.ask(request, repeats=False)
        return answer.changed if isinstance(answer.changed, int) else 0

    async def write_all(self, ops: Sequence[clients.Op]) -> Sequence[bool]:
        """Make several writes as one batch, all or none; returns for each whether it changed anything.

        A server without batches gets them one by one: then those before a refused one stay.
        """
        weft = self._caller.greeting.weft if self._caller.greeting is not None else UNSET
        if weft is not UNSET and BATCH in weft.get("caps", ()):
            answer = await self._caller.ask(
                clients.Request(action="batch", ops=[*ops], nchain=0), repeats=_repeats(ops)
            )
            return [bool(result.get("changed")) for result in answer.results] if answer.results is not UNSET else []
        return [await self._write_one(op) for op in ops]

    async def _write_one(self, op: clients.Op) -> bool:
        action = "set_value" if bytes(op.value) else "delete_value"
        request = clients.Request(
            action=action,
            path=op.path,
            value=op.value,
            prev=op.prev,
            chain=op.chain,
            idem=op.idem,
            ttl=op.ttl,
            until=op.until,
            nchain=0,
        )
        return bool((await self._caller.ask(request, repeats=_repeats([op]))).changed)

    async def _write(  # tidy: common options of writing and deleting
        self,
        action: str,
        path: Where,
        raw: bytes,
        condition: "_Condition",
        *,
        ttl: float | None = None,
        ack: Ack = "local",
    ) -> Written:
        request = clients.Request(
            action=action,
            path=path_of(path),
            nchain=ALL,
            value=msgspec.Raw(raw) if raw else clients.NO_VALUE,
            chain=condition.links,
            prev=condition.prev,
            idem=condition.idem,
            ttl=UNSET if ttl is None else ttl,
            ack=UNSET if ack == "local" else ack,
        )
        answer = await self._caller.ask(request, repeats=condition.is_any)
        return Written(bool(answer.changed), _chain(answer), answer.tock, value_of(answer.prev))


def _repeats(ops: Sequence[clients.Op]) -> bool:
    """Whether the writes may be sent twice."""
    return all(op.idem or op.chain is not UNSET or bool(bytes(op.prev)) or not bytes(op.value) for op in ops)


class _Condition:
    """The conditions of a write."""

    __slots__ = ("idem", "links", "prev")

    def __init__(self, chain: Seen, prev: Any, new: bool = False, idem: bool = False) -> None:  # noqa: FBT001, FBT002  # from here only
        if new and chain is not MISSING:
            raise BadRequest("new= and chain= exclude each other")
        self.links = None if new else _links(chain)
        self.prev = clients.NO_VALUE if prev is MISSING else msgspec.Raw(_packed(prev))
        self.idem = idem

    @property
    def is_any(self) -> bool:
        """Whether there is any condition: such a write may be sent twice, because the second one has no effect."""
        return self.idem or self.links is not UNSET or bool(bytes(self.prev))


def _packed(value: Any) -> bytes:
    try:
        return pack(value)
    except PeerError as error:
        raise error_of(error.code, f"the store cannot hold this value: {error.why}") from None


def _links(chain: Seen) -> Any:
    if chain is MISSING:
        return UNSET
    if chain is None:
        return None
    node, tick = chain.head if isinstance(chain, Chain) else chain
    return clients.Links(node, tick)


def _chain(answer: clients.Answer) -> Chain | None:
    if not isinstance(answer.chain, clients.Links):
        return None
    try:
        return clients.chain_of(answer.chain)
    except PeerError as error:
        raise StoreError(f"a chain in the server's answer cannot be read: {error}", error.code) from None
