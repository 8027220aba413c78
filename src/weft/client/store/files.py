"""Files of a store, read and written by a client: as real MoaT-KV servers save and log theirs (ADM-012, ADM-013).

events = list(read_file(path))                      states left out, in the order of the file
loaded = await load_new(client, events, told)       as changes of the node that is asked, in batches
differences = await compare(client, events)         what loading would change, and what only the store has
saved = await save(client, path)                    everything the node has, the hidden tree and deletions too
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
BATCHES_OPEN: Final = 4  # batches in progress, so that the node works while the file is read
NOBODYS: Final = ("node", "dropped", "hostmap", "actor")
"""The part of the hidden tree about one store's own nodes, which other stores cannot use."""
REFUSED_MAX: Final = 100  # entries that are listed; all are counted
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
        raise UserError("bad-file", f"{path} is no file of a store: {error}", MEND) from None
    if frames.rest:
        raise UserError("bad-file", f"{path} ends in the midst of a record: {frames.rest} bytes are left", MEND)


def read_file(path: File) -> Iterator[Event]:
    """The entries of a file, deletions too, in its order; UserError `bad-file`."""
    reader = Reader()
    for number, record in enumerate(split_file(path), 1):
        try:
            said = reader.read(record)
        except PeerError as error:
            why = error.why or error.code
            raise UserError("bad-file", f"{path}, record {number}: that is no entry of a store: {why}", MEND) from None
        if isinstance(said, Event):
            yield said


# Out


class Saved(NamedTuple):
    """The result of saving."""

    entries: int
    deleted: int
    bytes: int


async def save(client: "Client", path: File) -> Saved:
    """Everything that the node has into a file; it is there when it is whole and on the disk. OSError, StoreError.

    Deletions stand behind the entries with a value, where real servers do not stumble over them.
    """
    fresh = path.with_name(path.name + ".tmp")
    try:
        with fresh.open("wb") as file:
            saved = await _write(client, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)  # noqa: PTH105  # says that it replaces
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
    """What is known; as in files of real servers, the ticks of deletions that still stand count as deleted."""
    told = await client.state("nodes", "known", "deleted")
    gone = ticks_of_wire(told.get("deleted", {}))
    for event in deleted:
        gone.setdefault(event.node, RangeSet()).add(event.tick)
    nodes = {node: tick or 0 for node, tick in told.get("nodes", {}).items()}
    return State(nodes, ticks_of_wire(told.get("known", {})), gone, client.name)


def _sync_directory(path: File) -> None:
    folder = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


# In


class Loaded(NamedTuple):
    """The result of loading."""

    changed: int
    same: int
    refused: int
    why: list[tuple[str, str]]
    """Paths and errors of the first refused entries."""


def wanted(events: Iterable[Event]) -> Iterator[Event]:
    """What another store can use of a file: the types and codecs of the hidden tree last, its nodes not at all.

    What has ended by itself while the file lay there is left out: nothing is said of it.
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


async def load_new(client: "Client", events: Iterable[Event], told: Callable[[int], None]) -> Loaded:
    """Write the entries as new changes of this node, deletions too, in batches; `told` how many more are done.

    What is so already is not written again: a load that broke off goes on where it was when it is begun once more.
    StoreError if the store went away.
    """
    loading = _Loading(client, told)
    for event in wanted(events):
        await loading.take(event)
    return await loading.end()


class _Loading:
    """Batches, some of them under way at a time; each entry once in a batch, and batches of one entry in order."""

    def __init__(self, client: "Client", told: Callable[[int], None]) -> None:
        self._client, self._told = client, told
        self._ops: dict[bytes, clients.Op] = {}
        self._bytes = 0
        self._open: list[asyncio.Task[None]] = []
        self._busy: set[bytes] = set()
        """Entries of the batches that are under way."""
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
        self._told(len(ops))

    async def _one(self, op: clients.Op) -> bool | None:
        """A batch was refused because of one write: find it by sending each write alone; None: this one."""
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
"""Errors that every further write would get too."""


class Difference(NamedTuple):
    """An entry that differs between the file and the store; values are packed; None: there is no value."""

    path: Path
    file: bytes | None
    store: bytes | None
    is_known: bool
    """Whether the file contains it: otherwise loading leaves it unchanged."""


async def compare(client: "Client", events: Iterable[Event]) -> list[Difference]:
    """In which entries the file and the store differ, by path. StoreError."""
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
        Difference(event.path, event.value, None, True) for event in filed.values() if event.value is not None
    ]  # a tuple's field
    return sorted(found, key=lambda one: text_of(one.path))


def counted(events: Iterable[Event]) -> int:
    """How many entries another store can use of a file."""
    return sum(1 for _ in wanted(events))
