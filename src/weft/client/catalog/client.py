"""`weft.catalog.Client`: a client of the catalog of a program's network (CAT-072)."""

import builtins
import random
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar
from weakref import WeakSet

import msgspec

from weft.client.catalog.asking import Asker, Calls, object_of, payload_of, told_by
from weft.client.catalog.entries import Address, Entry, Value, entries_of, entry_of
from weft.client.catalog.errors import (
    CatalogError,
    CatalogTimeout,
    Closed,
    GarbledAnswer,
    NotFound,
    NotRegistered,
    Unsupported,
)
from weft.client.catalog.finding import Broker, Found, Place, keepers_door
from weft.client.catalog.limits import ANSWER_S, CALL_S, TRIES
from weft.client.catalog.picking import Picker, Policy
from weft.client.catalog.subscribing import Subscription
from weft.client.catalog.tailing import Tail
from weft.client.catalog.tapped import QUERY as TAP
from weft.client.catalog.tapped import Tapped
from weft.client.catalog.watch import Copy, Watch
from weft.client.link.keyring import Given
from weft.client.link.opening import Target
from weft.wire.catalog.messages import (
    APPROVED,
    AWK,
    DISCONNECT,
    HEARTBEAT,
    PING,
    PONG,
    REGISTRATION,
    REQUEST,
    UPDATE,
    Message,
)

Payload = bytes | str | Sequence[bytes] | None
"""The payload of a call: a frame, text, several frames, or nothing."""
Entries = builtins.list[Entry]
Table = dict[str, Any]
Tables = builtins.list[Table]
F = TypeVar("F", Watch, Subscription, Tail, Tapped)


class Client:
    """Looks services up, calls them, and follows changes: `async with weft.catalog.Client() as catalog: …`.

    `broker` is host:port, a port of this machine, or several of these. Without it: `WEFT_CATALOG`, else the broker of this
    machine, else the first whose beacon is heard, of network `net` if that is given. Entering it raises Unreachable if
    there is none. Later it reconnects by itself: each request is sent up to three times, `timeout` seconds apart. With
    `cache`, lookups are answered from a copy that follows the broker. `keys`, or `WEFT_KEYS`: the directory that
    `weft join` wrote, for the broker of a closed fabric on another machine.
    """

    def __init__(  # tidy: each has a default that suits most programs
        self,
        broker: Broker = None,
        *,
        net: str = "",
        cache: bool = False,
        timeout: float = ANSWER_S,
        keys: Given = None,
    ) -> None:
        self._place, self._timeout_s = Place(broker, net, keys), timeout
        self._wants_copy = cache
        self._copy: Copy | None = None
        self._askers: dict[Target, Asker] = {}
        self._calls = Calls()
        self._picker = Picker(random.Random())  # noqa: S311  # it only spreads load
        self._feeds: WeakSet[Watch | Subscription | Tail | Tapped] = WeakSet()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        """Find the broker, and with `cache` copy all its entries."""
        await self._place.found()
        if self._wants_copy:
            self._copy = Copy(self.watch())
            try:
                await self._copy.open()
            except BaseException:
                self._close()
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close: watches and subscriptions end, pending requests fail with Closed."""
        self._close()

    def _close(self) -> None:
        self._is_closed = True
        for feed in list(self._feeds):
            feed.close()
        for asker in self._askers.values():
            asker.close()
        self._askers.clear()
        self._calls.close()

    @property
    def broker(self) -> str:
        """The broker, as `host:port`; empty if it is not known now."""
        known = self._place.known
        return str(Address(known.host, known.port)) if known is not None else ""

    # Reading

    async def get(self, name: str) -> Entry:
        """The best instance of a service (CAT-030); NotFound says whether it has left or never existed."""
        return (await self.instances(name))[0]

    async def instances(self, name: str) -> Entries:
        """The usable instances of a service, best first; NotFound if there is none. A broker returns at most 16."""
        if self._copy is not None and (known := self._copy.of_name(name)):
            return known if self._copy.is_fresh else [msgspec.structs.replace(entry, is_stale=True) for entry in known]
        answer = await self.request(name.encode())
        if not isinstance(record := answer.get(name), dict):
            raise NotFound(f"there is no service {name!r}", service=name)
        return entries_of(name, record)

    async def list(self) -> dict[str, Entry]:
        """The best instance of every service that can be used, by name."""
        answer = await self.request()
        return {name: entry_of(name, record) for name, record in answer.items() if isinstance(record, dict)}

    async def query(self, wanted: Mapping[str, Any] | None = None, /, **more: Any) -> Entries:
        """All instances that meet all conditions, whatever their state: `query(tags=["lab"], state="active")` (CAT-035).

        name: with `*` and `?`. tags: all of them. any_tags: one of them. metadata: equal. state, health, net, function.
        """
        return records_of(await self.request(b"dbp.query", _json({**(wanted or {}), **more})))

    def watch(self, wanted: Mapping[str, Any] | None = None, /, **more: Any) -> Watch:
        """The instances that meet the conditions of `query`, then every change: `async for change in catalog.watch(): …`."""
        return self._added(Watch(self, {**(wanted or {}), **more}))

    async def pick(self, name: str, policy: Policy = "first") -> Entry:
        """One instance of a service by `first`, `random`, `round_robin` or `weighted`; NotFound if none can be used."""
        picked = self._picker.pick(await self.instances(name), policy)
        if picked is None:
            raise NotFound(f"no instance of {name!r} can be used", service=name)
        return picked

    # Services

    async def call(  # tidy: each is an option of the caller
        self,
        name: str,
        endpoint: str,
        payload: Payload = None,
        *,
        timeout: float = CALL_S,  # noqa: ASYNC109  # how long to wait for the answer
        policy: Policy = "first",
    ) -> tuple[bytes, ...]:
        """Call an endpoint of a service; returns the frames of the answer, or raises CallFailed with its error.

        The call is sent once: after a CatalogTimeout it may have been executed.
        """
        entry = await self.pick(name, policy)
        return payload_of(await self._call(entry, endpoint.encode(), frames_of(payload), timeout), name)

    async def ping(self, entry: Entry, *, timeout: float = ANSWER_S) -> float:  # noqa: ASYNC109  # as above
        """Seconds until an instance has answered a ping; raises CatalogTimeout."""
        begun = time.perf_counter()
        answer = await self._call(entry, PING, (b"",), timeout)
        if answer.command != PONG:
            raise GarbledAnswer(f"{entry.name} answered a ping with {answer.command!r}", service=entry.name)
        return time.perf_counter() - begun

    async def _call(self, entry: Entry, command: bytes, body: tuple[bytes, ...], timeout_s: float) -> Message:
        if (place := entry.address) is None:
            raise NotFound(f"{entry.name} {entry.instance} has no address for calls in its record", service=entry.name)
        return await self._calls.call(place, command, body, timeout_s)

    def subscribe(self, name: str, prefix: str = "", *, latest: bool = True) -> Subscription:
        """What a service publishes under topics with this prefix: `async for value in catalog.subscribe("thermo"): …`.

        With `latest` the broker's last value of each topic comes first, unless a newer one has arrived already (LVC-006).
        """

        async def cached(instance: str) -> builtins.list[Value]:
            values = await self.last_values(f"{prefix}*", publisher=name)
            return [value for value in values if value.instance == instance]

        return self._added(Subscription(self.watch(name=name), name, prefix, cached if latest else None))

    # Data that the broker has collected

    async def topics(self, prefix: str = "") -> Tables:
        """Published topics: by whom, how often, and how long ago (LVC-004)."""
        answer = await self.request(b"dbp.topics", _json({"prefix": prefix}))
        return _rows(answer, "topics")

    async def last_values(self, topic: str, *, publisher: str = "") -> builtins.list[Value]:
        """The last value of a topic, or, with `*` at its end, of all topics with that prefix (LVC-003)."""
        wanted = (_json({"publisher": publisher}),) if publisher else ()
        answer = await self.asked(b"dbp.lcv", topic.encode(), *wanted)
        return values_of(answer)

    async def logs(self, wanted: Mapping[str, Any] | None = None, /, **more: Any) -> Tables:
        """Kept log records of all services: `level` (and above), `service`, `since`, `contains`, `limit` (LOG-005)."""
        return _rows(await self.request(b"dbp.logs", _json({**(wanted or {}), **more})), "logs")

    def follow_logs(self, wanted: Mapping[str, Any] | None = None, /, **more: Any) -> Tail:
        """The records of `logs`, and whatever comes after them: `async for record in catalog.follow_logs(): …`."""
        return self._added(Tail(self, {**(wanted or {}), **more}))

    def tap(self, name: str, wanted: Mapping[str, Any] | None = None, /, **more: Any) -> Tapped:
        """Copies of a service's messages, made by its library: `async for copy in catalog.tap("thermo"): …`.

        `instance`, `sockets` (`router`, `pub`), `dir` (`in`, `out`), `sample`, `max_frame`, `rate`, `seconds` (MON-001).
        """
        return self._added(Tapped(self, name, {**(wanted or {}), **more}))

    async def taps(self) -> Tables:
        """The running taps, with their counts."""
        return _rows(await self.request(TAP, _json({"list": True})), "taps")

    async def stop_tap(self, tap: str) -> None:
        """End a tap, even that of another client."""
        await self.request(TAP, _json({"stop": tap}))

    async def bridges(self) -> Tables:
        """The state of each bridge to another network (BRI-003)."""
        return _rows(await self.request(b"dbp.bridge"), "bridges")

    async def status(self) -> Table:
        """The state of the broker."""
        return await self.request(b"dbp.status")

    async def liveness(self) -> Tables:
        """How regularly the beats of each instance arrive (MON-008)."""
        rows: Tables = []
        after: Any = ""
        while after is not None:
            answer = await self.request(b"dbp.liveness", b"", _json({"after": after}))
            rows += _rows(answer, "instances")
            after = answer.get("after")
        return rows

    async def details(self, name: str) -> Entries:
        """All instances of a service, with those that are gone, and how their beats arrive; NotFound if there is none."""
        entries = records_of(await self.request(b"dbp.instances", name.encode()))
        if not entries:
            raise NotFound(f"there is no service {name!r}", service=name)
        return entries

    # Manual registration: a Service does this by itself

    async def register(self, name: str, record: Mapping[str, Any] | None = None, /, **more: Any) -> Table:
        """Register a service; returns what the broker approved. Then the program must send beats, or answer pings."""
        answer = await self.command(REGISTRATION, _json({"name": name, **(record or {}), **more}))
        approved = told_by(answer)
        if answer.command != APPROVED:
            raise GarbledAnswer(f"the broker answered a registration with {answer.command!r}")
        return approved

    async def update(self, name: str, changes: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        """Change keys of this program's own record; `None` deletes one.

        If it has several instances, `id` selects one (CAT-018).
        """
        told_by(await self.command(UPDATE, _json({"name": name, **(changes or {}), **more})))

    async def beat(self, name: str, instance: str = "") -> bool:
        """Report that this program's own instance is alive; False: the broker does not know it."""
        return (await self.command(HEARTBEAT, name.encode(), instance.encode())).command == AWK

    async def leave(self, name: str, instance: str = "") -> None:
        """Report that this program's own instance leaves. The broker's answer does not say whether it existed."""
        await self.command(DISCONNECT, name.encode(), instance.encode())

    async def deregister(self, name: str, instance: str = "", *, state: str | None = None) -> Table:
        """Remove an instance, whoever registered it: with an operator's key, or as the user that runs the broker (CAT-061).

        `state`: the state directory of the broker's node, if it runs here; a client without keys may leave it out.
        """
        frames = [b"dbp.deregister", *(word.encode() for word in ((name, instance) if instance else (name,)))]
        is_keeper = state is not None or not self._place.has_keys
        asker = Asker(keepers_door(state), timeout_s=self._timeout_s, tries=TRIES) if is_keeper else None
        try:
            return await self.request(*frames) if asker is None else told_by(await asker.ask(REQUEST, *frames))
        except NotRegistered as error:
            raise NotFound(error.text, service=name) from None
        finally:
            if asker is not None:
                asker.close()

    # For the other modules of the library

    async def found(self) -> Found:
        """The broker; if it is not known it is searched for."""
        return await self._place.found()

    async def request(self, *frames: bytes) -> Table:
        """The JSON answer to a request; a refusal is raised."""
        return told_by(await self.asked(*frames))

    async def answered(self, *frames: bytes) -> Table:
        """Like `request`, but a refusal is returned, too."""
        return object_of(await self.asked(*frames))

    async def asked(self, *frames: bytes) -> Message:
        """The answer to a request for names, or to a query."""
        found = await self._place.found()
        if found.is_legacy and frames and frames[0].startswith(b"dbp."):
            raise Unsupported(f"the broker at {self.broker} is not Weft's, and answers no queries")
        return await self.command(REQUEST, *(frames or (b"",)))

    async def command(self, command: bytes, *body: bytes) -> Message:
        """The broker's answer to a command."""
        if self._is_closed:
            raise Closed("the client has been closed")
        found = await self._place.found()
        asker = self._asker(found)
        try:
            return await asker.ask(command, *body)
        except CatalogTimeout:
            self._place.forget(found)  # it may have moved: the next request searches again
            raise

    async def events(self, *, anew: bool = False) -> Target:
        """The address where the broker publishes; `anew`: search for the broker again, it may have moved."""
        if anew:
            self._place.forget()
        found = await self._place.found()
        if found.is_legacy or not found.pub:
            raise Unsupported(f"the broker at {self.broker} publishes no changes")
        return self._place.target(found, found.pub)

    def _asker(self, found: Found) -> Asker:
        place = self._place.target(found, found.port)
        asker = self._askers.get(place)
        if asker is None:
            asker = self._askers[place] = Asker(place, timeout_s=self._timeout_s)
        asker.is_plain = found.is_legacy
        return asker

    def _added(self, feed: F) -> F:
        """Remember a feed, so that closing the client ends it."""
        if self._is_closed:
            raise Closed("the client has been closed")
        self._feeds.add(feed)
        return feed


def records_of(answer: Table) -> Entries:
    """The instances in the answer to a query."""
    return [
        entry_of(str(row.get("name", "")), row["record"])
        for row in _rows(answer, "records")
        if isinstance(row.get("record"), dict)
    ]


def values_of(answer: Message) -> builtins.list[Value]:
    """The values in an answer to `dbp.lcv`: their frames follow the JSON, value by value."""
    values, at = [], 1
    for row in _rows(told_by(answer), "values"):
        count = row.get("frames", 0)
        if not isinstance(count, int) or not 0 <= count <= len(answer.body) - at:
            raise GarbledAnswer("the broker's answer names more frames than it has")
        frames, at = answer.body[at : at + count], at + count
        received = row.get("received", 0.0)
        values.append(
            Value(
                str(row.get("topic", "")),
                tuple(frames[1:]),  # the first one is the topic
                str(row.get("publisher", "")),
                str(row.get("instance", "")),
                float(received) if isinstance(received, int | float) else 0.0,
                bool(row.get("stale")),
            )
        )
    return values


def frames_of(payload: Payload) -> tuple[bytes, ...]:
    """A payload as frames."""
    if payload is None:
        return ()
    if isinstance(payload, bytes | str):
        return (payload.encode() if isinstance(payload, str) else payload,)
    return tuple(payload)


def _rows(answer: Table, name: str) -> Tables:
    rows = answer.get(name, [])
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, builtins.list) else []


def _json(value: Table) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, UnicodeEncodeError) as error:
        raise CatalogError(f"this cannot be sent as JSON: {error}", "bad-json") from None
