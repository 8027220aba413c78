"""Clients and their streams: many answers to one request, some in each turn (CLN-001, CLN-002).

A stream sends only while its client reads: no more than `window` unacknowledged items, if the client counts them, and
nothing to a connection whose buffer is full.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from weft.base.changes import Event, Path
from weft.cores.kit.refusals import Refusal
from weft.cores.store import limits
from weft.cores.store.acking import Acking
from weft.cores.store.context import Context
from weft.cores.store.replica import Replica
from weft.wire.store.clients import NO_VALUE, Answer, PathShortener, Request, links_of
from weft.wire.store.messages import Ticks
from weft.wire.store.pack import LEFT_OUT

CLIENTS: Final = "store-clients"


class Desk:
    """What actions and streams may use of the node, and the clients to be written to at the end of this turn."""

    def __init__(self, context: Context, replica: Replica, acking: Acking) -> None:
        self.context, self.replica, self.acking = context, replica, acking
        self.touched: dict[bytes, Client] = {}

    def flush(self) -> None:
        """Send everything, to each client at once."""
        for client in self.touched.values():
            answers, client.out = tuple(client.out), []
            self.context.send(CLIENTS, client.peer, answers)
        self.touched.clear()


class Client:
    """One connection."""

    def __init__(self, desk: Desk, peer: bytes, address: str) -> None:
        self._desk, self.peer, self.address = desk, peer, address
        self.root: Path = ()
        """The root of the paths in its requests."""
        self.window = 0
        """How many items of a stream may be unacknowledged; 0: the client does not count them (CLN-001)."""
        self.group = ""
        """The group whose codecs convert its values (ADM-011); empty: none."""
        self.is_paused = False
        self.streams: dict[int, Stream] = {}
        self.out: list[Answer] = []

    def say(self, answer: Answer) -> None:
        """Send at the end of this turn."""
        if not self.out:
            self._desk.touched[self.peer] = self
        self.out.append(answer)


class Stream:
    """One request that is answered in pieces."""

    def __init__(self, desk: Desk, client: Client, seq: int) -> None:
        self.desk, self.client, self.seq = desk, client, seq
        self.is_over = False
        self._sent = self._acked = 0

    @property
    def room(self) -> int:
        """How many items may be sent now."""
        client = self.client
        if client.is_paused:
            return 0
        return client.window - (self._sent - self._acked) if client.window else limits.TURN_STEPS

    @property
    def is_ready(self) -> bool:
        """Whether `go_on` would send something, as long as the stream is not over."""
        return self.room > 0

    def acknowledge(self, wseq: int) -> None:
        """The client has received everything up to this number."""
        self._acked = max(self._acked, min(wseq, self._sent))

    def go_on(self, steps: int) -> int:
        """Send what can be sent now, in at most about `steps` steps; returns the steps taken. Nothing to send here."""
        _ = steps
        return 0

    def stop(self) -> None:
        """The client ends the stream."""
        self.end()

    def leave(self) -> None:
        """The client is gone."""

    def end(self) -> None:
        """Send the end of the stream."""
        self.state("end")
        self.is_over = True

    def state(self, state: str, **fields: Any) -> None:
        self.say(tock=self.desk.context.tock, state=state, **fields)

    def fail(self, error: Refusal) -> None:
        """Send the reason why it ends."""
        self.say(tock=self.desk.context.tock, error=error.why or error.code, etype=error.code)
        self.end()

    def say(self, **fields: Any) -> None:
        """Send one numbered answer."""
        if self.client.window:
            self._sent += 1
            fields["wseq"] = self._sent
        self.client.say(Answer(seq=self.seq, **fields))


class EntryStream(Stream):
    """A stream whose items are entries below a path."""

    def __init__(self, desk: Desk, client: Client, seq: int, top: Path, nchain: int) -> None:
        super().__init__(desk, client, seq)
        self.top, self._nchain = top, nchain
        self._shortener = PathShortener()

    def shown(self, event: Event) -> bytes:
        """Its value as this client sees it."""
        value = event.value or b""
        group = self.client.group
        return self.desk.replica.rules.shown(group, event.path, value) if group and value else value

    def item(self, event: Event, **more: Any) -> None:
        """Send an entry as this change left it."""
        depth, path = self._shortener.cut(event.path[len(self.top) :])
        fields: dict[str, Any] = {"depth": depth, "path": path, "tock": event.tock, **more}
        if self._nchain:
            fields["chain"] = links_of(event.chain, self._nchain)
        if event.until is not None:
            fields["until"] = event.until
        if event.value is not None:
            fields |= {"value": Raw(self.shown(event))} if event.value != LEFT_OUT else {"etype": "too-large"}
        self.say(**fields)


class Depths(msgspec.Struct, frozen=True):
    """Which levels of a tree are wanted."""

    least: int = 0
    most: int | None = None

    @classmethod
    def of(cls, request: Request) -> "Depths":
        """From a request; MoaT-KV's monitor sends -1 for no limit."""
        least, most = request.min_depth, request.max_depth
        return cls(least if type(least) is int else 0, most if type(most) is int and most >= 0 else None)

    def has(self, depth: int) -> bool:
        return self.least <= depth and (self.most is None or depth <= self.most)


class TreeStream(EntryStream):
    """All entries below a path, parents before children: `get_tree`."""

    def __init__(self, desk: Desk, client: Client, request: Request, top: Path) -> None:
        nchain = 0 if request.nchain is UNSET else request.nchain
        super().__init__(desk, client, request.seq, top, nchain)
        depths = Depths.of(request)
        is_join = isinstance(request.from_server, str)
        self._has_tombstones = is_join or flag(request.empty)
        self._leaves_meta = is_join and not top  # a joining node asks for these by `get_tree_internal`
        self._events: Iterator[Event] = desk.replica.tree.walk(top, depths.least, depths.most)
        self.state("start")

    def go_on(self, steps: int) -> int:
        used = 0
        while used < steps and self.room > 0:
            event = next(self._events, None)
            if event is None:
                self.end()
                break
            used += weight(event)
            if self._shows(event):
                self.item(event)
        return used

    def _shows(self, event: Event) -> bool:
        if self._leaves_meta and event.path and event.path[0] is None:
            return False
        return self._has_tombstones or event.value is not None


class DeleteStream(EntryStream):
    """Deletes all entries below a path, one at a time: `delete_tree`. Without links it only reports how many."""

    def __init__(self, desk: Desk, client: Client, request: Request, top: Path) -> None:
        nchain = 0 if request.nchain is UNSET else request.nchain
        super().__init__(desk, client, request.seq, top, nchain)
        self._events: Iterator[Event] = desk.replica.tree.walk(top)
        self._changed = 0
        if nchain:
            self.state("start")

    def go_on(self, steps: int) -> int:
        used = 0
        while used < steps and self.room > 0:
            event = next(self._events, None)
            if event is None:
                self.end()
                break
            used += 1
            is_meta = bool(event.path) and event.path[0] is None and not self.top
            if event.value is None or is_meta:
                continue
            try:
                self._delete(event)
            except Refusal as error:
                self.fail(error)
                break
        return used

    def end(self) -> None:
        if self._nchain:
            super().end()
        else:
            self.client.say(Answer(seq=self.seq, tock=self.desk.context.tock, changed=self._changed))
            self.is_over = True

    def fail(self, error: Refusal) -> None:
        if self._nchain:
            super().fail(error)
        else:
            self.client.say(failure(self.seq, error, self.desk.context.tock))
            self.is_over = True

    def _delete(self, before: Event) -> None:
        event = self.desk.replica.write(before.path, None, via=self.client.address).event
        self._changed += 1
        if not self._nchain:
            return
        depth, path = self._shortener.cut(before.path[len(self.top) :])
        links = links_of(event.chain, self._nchain)
        prev = NO_VALUE if links.prev is UNSET else Raw(msgspec.msgpack.encode(links.prev))
        old = Raw(self.shown(before))
        where: dict[str, Any] = {"depth": depth, "path": path, "old_value": old, "tock": event.tock}
        self.say(node=links.node, tick=links.tick, prev=prev, **where)


class LinkSearch(Stream):
    """Looks through all entries for links, and ends without a message: `check_deleted`."""

    def __init__(
        self, desk: Desk, client: Client, seq: int, wanted: Ticks, found: Callable[["LinkSearch"], None]
    ) -> None:
        super().__init__(desk, client, seq)
        self._events: Iterator[Event] = desk.replica.tree.walk(())
        self._found = found
        self.wanted = wanted
        """Ticks by node; ticks found in a link are removed."""

    @property
    def is_ready(self) -> bool:
        return True

    def go_on(self, steps: int) -> int:
        for used in range(steps):
            event = next(self._events, None)
            if event is None:
                self.is_over = True
                self._found(self)
                return used + 1
            for node, tick in event.chain.links:
                ticks = self.wanted.get(node)
                if ticks is not None:
                    ticks.remove(tick)
        return steps

    def end(self) -> None:
        self.is_over = True


def flag(value: Any) -> bool:
    """Whether a request has this flag set."""
    return value is not UNSET and bool(value)


def failure(seq: int, error: Refusal, tock: int) -> Answer:
    """The answer with the error (CLN-003)."""
    return Answer(seq=seq, tock=tock, error=error.why or error.code, etype=error.code)


def weight(event: Event) -> int:
    """The steps that an entry counts for."""
    return 1 + len(event.value or b"") // limits.STEP_BYTES
