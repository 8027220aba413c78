"""Files of a store, read and written by a client, in the format of MoaT-KV's saves and logs (ADM-012, ADM-013).

events = list(read_file(path))                   the entries of a file, in its order
loaded = await load_new(client, events, report)  writes them as new changes of the node, in batches
differences = await compare(client, events)      what loading would change, and what only the store has
saved = await save(client, path)                 writes everything the node has, with deletions and the hidden tree
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path as File
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

import msgpack
import msgspec
from msgspec import UNSET

from weft.base.changes import Event, Path
from weft.base.errors import PeerError, UserError
from weft.base.ranges import RangeSet
from weft.client.store.errors import StoreError, Unanswered, Unreachable
from weft.client.store.link import Frames
from weft.wire.store import clients
from weft.wire.store.files import Reader, State, Writer
from weft.wire.store.pack import canonical
from weft.wire.store.path import key_of, text_of
from weft.wire.store.ranges import ticks_of_wire

if TYPE_CHECKING:
    from weft.client.store.client import Client

CHUNK_BYTES: Final = 1 << 20
OPS_MAX: Final = 1_000  # of one batch (ADM-013)
OPS_BYTES_MAX: Final = 512 << 10
BATCHES_OPEN: Final = 4  # batches in progress, so that the node is busy while the file is read
NOBODYS: Final = ("node", "dropped", "hostmap", "actor")
"""Subtrees of the hidden tree about the nodes of one store; another store cannot use them."""
REFUSED_MAX: Final = 100  # refused entries that are listed; all are counted
MEND: Final = "a file of weft store save, or of a real MoaT-KV server's save or log"


def split_file(path: File) -> Iterator[bytes]:
    """The records of a file, one after the other; UserError `bad-file` for what cannot be read."""
    frames, at = Frames(), 0
    try:
        with path.open("rb") as file:
            while data := file.read(CHUNK_BYTES):
                at += len(data)
                yield from frames.feed(data)
    except OSError as error:
        raise UserError("bad-file", f"{path} cannot be read: {error.strerror}", MEND) from None
    except (ValueError, msgpack.UnpackException) as error:
        raise UserError("bad-file", f"{path} is not a file of a store: {error}", MEND) from None
    if frames.rest:
        raise UserError("bad-file", f"{path} ends within a record: {frames.rest} bytes are left", MEND)


def read_file(path: File) -> Iterator[Event]:
    """The entries of a file, deletions too, in its order; UserError `bad-file`."""
    reader = Reader()
    for number, record in enumerate(split_file(path), 1):
        try:
            decoded = reader.read(record)
        except PeerError as error:
            why = error.why or error.code
            raise UserError("bad-file", f"{path}, record {number} is not an entry of a store: {why}", MEND) from None
        if isinstance(decoded, Event):
            yield decoded


# Saving


class Saved(NamedTuple):
    """The result of saving."""

    entries: int
    deleted: int
    bytes: int


async def save(client: "Client", path: File) -> Saved:
    """Write everything that the node has into a file, which appears only when it is complete and durable.

    Deletions come after the entries with a value, because a MoaT-KV server expects them there. OSError, StoreError.
    """
    fresh = path.with_name(path.name + ".tmp")
    try:
        with fresh.open("wb") as file:
            saved = await _write(client, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)  # noqa: PTH105  # its name says that it replaces
    finally:
        fresh.unlink(missing_ok=True)
    _sync_directory(path)
    return saved


async def _write(client: "Client", file: BinaryIO) -> Saved:
    writer, deleted, entries = Writer(), list[Event](), 0
    file.write(Writer.state(await _state(client, deleted)))
    async for event in client.events(deleted=True):
        if event.value is None:
            deleted.append(event)
        else:
            entries += 1
            file.write(writer.entry(event))
    for event in deleted:
        file.write(writer.entry(event))
    file.write(Writer.state(await _state(client, deleted)))
    return Saved(entries, len(deleted), file.tell())


async def _state(client: "Client", deleted: list[Event]) -> State:
    """The node's state. As in files of MoaT-KV, the ticks of deletions that are still remembered count as deleted."""
    state = await client.state("nodes", "known", "deleted")
    gone = ticks_of_wire(state.get("deleted", {}))
    for event in deleted:
        gone.setdefault(event.node, RangeSet()).add(event.tick)
    nodes = {node: tick or 0 for node, tick in state.get("nodes", {}).items()}
    return State(nodes, ticks_of_wire(state.get("known", {})), gone, client.name)


def _sync_directory(path: File) -> None:
    folder = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


# Loading


class Loaded(NamedTuple):
    """The result of loading."""

    changed: int
    same: int
    refused: int
    why: list[tuple[str, str]]
    """Paths and errors of the first refused entries."""


def wanted(events: Iterable[Event]) -> Iterator[Event]:
    """The entries of a file that another store can use: types and codecs of the hidden tree last, its nodes not at all.

    Entries that have expired since the file was written are left out.
    """
    hidden: list[Event] = []
    for event in events:
        if event.value is not None and event.until is not None and event.until <= time.time():
            continue
        if not event.path or event.path[0] is not None:
            yield event
        elif len(event.path) > 1 and event.path[1] not in NOBODYS:
            hidden.append(event)
    yield from hidden


async def load_new(client: "Client", events: Iterable[Event], report: Callable[[int], None]) -> Loaded:
    """Write the entries as new changes of this node, deletions too, in batches; `report` gets the size of each one done.

    Equal values are not written again, so a load that broke off can simply be repeated. StoreError if the store went away.
    """
    loading = _Loading(client, report)
    for event in wanted(events):
        await loading.take(event)
    return await loading.end()


class _Loading:
    """Sends batches, several at a time. A batch has each path once, and batches with the same path go one after another."""

    def __init__(self, client: "Client", report: Callable[[int], None]) -> None:
        self._client, self._report = client, report
        self._ops: dict[bytes, clients.Op] = {}
        self._bytes = 0
        self._open: list[asyncio.Task[None]] = []
        self._busy: set[bytes] = set()
        """Paths in batches that have no answer yet."""
        self._changed = self._same = self._refused = 0
        self._why: list[tuple[str, str]] = []

    async def take(self, event: Event) -> None:
        key = key_of(event.path)
        if key in self._ops or len(self._ops) >= OPS_MAX or self._bytes >= OPS_BYTES_MAX:
            await self._send()
        value = clients.NO_VALUE if event.value is None else msgspec.Raw(event.value)
        until = UNSET if event.value is None or event.until is None else event.until
        self._ops[key] = clients.Op(path=event.path, value=value, idem=event.value is not None, until=until)
        self._bytes += len(event.value or b"") + len(key)

    async def end(self) -> Loaded:
        await self._send()
        await self._wait(0)
        return Loaded(self._changed, self._same, self._refused, self._why)

    async def _send(self) -> None:
        ops, self._ops, self._bytes = self._ops, {}, 0
        if not ops:
            return
        await self._wait(0 if self._busy & ops.keys() else BATCHES_OPEN - 1)
        self._busy |= ops.keys()
        self._open.append(asyncio.create_task(self._batch(list(ops.values()))))

    async def _wait(self, most: int) -> None:
        while len(self._open) > most:
            await self._open.pop(0)
        if not self._open:
            self._busy.clear()

    async def _batch(self, ops: list[clients.Op]) -> None:
        changed: Sequence[bool | None]
        try:
            changed = await self._client.write_all(ops)
        except (Unreachable, Unanswered):
            raise
        except StoreError:
            changed = [await self._one(op) for op in ops]
        self._changed += sum(is_changed is True for is_changed in changed)
        self._same += sum(is_changed is False for is_changed in changed)
        self._report(len(ops))

    async def _one(self, op: clients.Op) -> bool | None:
        """Send one write of a refused batch alone, to find the one that is refused; None: it is this one."""
        try:
            return (await self._client.write_all([op]))[0]
        except (Unreachable, Unanswered):
            raise
        except StoreError as error:
            if error.code in LASTING:
                raise
            self._refused += 1
            if len(self._why) < REFUSED_MAX:
                self._why.append((text_of(op.path), error.text))
            return None


LASTING: Final = ("storage-full", "read-only", "not-ready", "not-authorised", "closed")
"""Codes of errors that every further write would get, too."""


class Difference(NamedTuple):
    """An entry that differs between the file and the store; values are packed; None: there is no value."""

    path: Path
    file: bytes | None
    store: bytes | None
    is_known: bool
    """Whether the file has the path; if not, loading leaves the store's value as it is."""


async def compare(client: "Client", events: Iterable[Event]) -> list[Difference]:
    """The entries that differ between the file and the store, sorted by path. StoreError."""
    filed = {key_of(event.path): event for event in wanted(events)}
    found: list[Difference] = []
    async for event in client.events():
        if next(wanted((event,)), None) is None:
            continue
        other = filed.pop(key_of(event.path), None)
        value = other.value if other is not None else None
        if other is None or value is None or canonical(value) != canonical(event.value or b""):
            found.append(Difference(event.path, value, event.value, other is not None))
    found += [
        Difference(event.path, event.value, None, is_known=True) for event in filed.values() if event.value is not None
    ]
    return sorted(found, key=lambda one: text_of(one.path))


def counted(events: Iterable[Event]) -> int:
    """How many entries of a file another store can use."""
    return sum(1 for _ in wanted(events))
