"""A live copy of a subtree in this process: read without waiting, kept up to date by a watch (CLN-030)."""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from weft.base.changes import Path
from weft.client.store.errors import StoreError
from weft.client.store.limits import CHANGES_AHEAD_MAX
from weft.client.store.values import Change, Entry, Mark, Where, path_of
from weft.client.store.watching import Watch
from weft.wire.store.path import pack_path, text_of


class Mirror(Mapping[Where, Any]):
    """`async with client.mirror("home") as home`: complete as soon as it is entered; keys are whole paths.

    While the node is away it keeps the last values (`is_fresh` is false); when the node is back it is updated again.
    """

    def __init__(self, watch: Watch) -> None:
        self.is_fresh = False
        """Whether it has everything that the node has, apart from changes on their way."""
        self._watch = watch
        self._entries: dict[bytes, Entry] = {}
        self._unconfirmed: set[bytes] | None = None
        """After a gap: keys that the new snapshot has not named yet. None: no snapshot is under way."""
        self._callbacks: list[Callable[[Change], None]] = []
        self._readers: list[_Reader] = []
        self._waits: list[tuple[Callable[[Mirror], bool], asyncio.Future[None]]] = []
        self._follower: asyncio.Task[None] | None = None
        self._error: BaseException | None = None

    # Reading

    def __getitem__(self, where: Where) -> Any:
        """The value at a path; KeyError if there is none."""
        return self._entries[_key(where)].value

    def __contains__(self, where: object) -> bool:
        """Whether there is a value at that path."""
        return isinstance(where, str | tuple | list) and _key(where) in self._entries

    def __iter__(self) -> Iterator[Path]:
        """The paths that have a value, as they are now."""
        return iter([entry.path for entry in list(self._entries.values())])

    def __len__(self) -> int:
        """How many entries have a value."""
        return len(self._entries)

    def entry(self, where: Where) -> Entry | None:
        """The entry at a path, with its chain; None if there is no value."""
        return self._entries.get(_key(where))

    def as_text(self) -> dict[str, Any]:
        """All values by their paths as text."""
        return {text_of(entry.path): entry.value for entry in list(self._entries.values())}

    # Changes

    def on_change(self, call: Callable[[Change], None]) -> Callable[[Change], None]:
        """Call a function with every change from now on, after the copy has it; also as a decorator."""
        self._callbacks.append(call)
        return call

    async def changes(self) -> AsyncIterator[Change]:
        """Every change from now on. A slow reader gets only the newest of each entry."""
        reader = _Reader()
        self._readers.append(reader)
        try:
            while (change := await reader.take()) is not None:
                yield change
        finally:
            self._readers.remove(reader)

    async def until(self, holds: Callable[["Mirror"], bool]) -> None:
        """Wait until a condition holds: `await home.until(lambda home: home.get("home.ready"))`."""
        if self._error is not None:
            raise self._error
        if holds(self):
            return
        wait = (holds, asyncio.get_running_loop().create_future())
        self._waits.append(wait)
        try:
            await wait[1]
        finally:
            self._waits.remove(wait)

    # Following

    async def __aenter__(self) -> Self:
        """Copy everything; Unreachable if no server is there."""
        await self._watch.__aenter__()
        self._follower = asyncio.get_running_loop().create_task(self._follow())
        try:
            await self.until(lambda mirror: mirror.is_fresh)
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop updating; the copy can still be read."""
        self._watch.close()
        if self._follower is not None:
            self._follower.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._follower

    async def _follow(self) -> None:
        try:
            async for change in self._watch:
                if isinstance(change, Mark):
                    self._mark(change)
                else:
                    self._take(change)
                self._stir()
            self._error = StoreError("the node has ended the watch", "closed")
        except StoreError as error:
            self._error = error
        finally:
            self.is_fresh = False
            for reader in self._readers:
                reader.end()
            self._stir()

    def _stir(self) -> None:
        """Let all `until` return whose condition holds now."""
        for holds, wait in self._waits:
            if wait.done():
                continue
            if self._error is not None:
                wait.set_exception(self._error)
            elif holds(self):
                wait.set_result(None)

    def _mark(self, mark: Mark) -> None:
        if mark.what == "gap":
            self._unconfirmed = set(self._entries)
        elif mark.what == "uptodate":
            for key in sorted(self._unconfirmed or ()):
                self._apply(key, Change(self._entries[key].path))
            self._unconfirmed = None
        is_whole = mark.what == "uptodate" or (mark.what == "back" and not mark.why)
        self.is_fresh = is_whole and self._unconfirmed is None

    def _take(self, change: Change) -> None:
        key = pack_path(change.path)
        if self._unconfirmed is not None:
            self._unconfirmed.discard(key)
            there = self._entries.get(key)
            if change.is_old and there is not None and there.chain == change.chain and there.chain is not None:
                return  # sent again, and unchanged
        self._apply(key, change)

    def _apply(self, key: bytes, change: Change) -> None:
        if change.is_there:
            self._entries[key] = change
        elif self._entries.pop(key, None) is None and change.is_old:
            return
        for call in self._callbacks:
            call(change)
        for reader in self._readers:
            reader.put(key, change)


class _Reader:
    """Changes that one iteration has not read yet."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[Any, Change] = OrderedDict()
        self._number, self._most = 0, CHANGES_AHEAD_MAX
        self._has_ended = False
        self._filled = asyncio.Event()

    def put(self, key: bytes, change: Change) -> None:
        """Add a change; if there are too many, only the newest of each entry is kept."""
        self._number += 1
        self._waiting[key, self._number] = change
        if len(self._waiting) > self._most:
            newest = {waiting: number for waiting, number in self._waiting}  # noqa: C416  # keeps the last one of each key
            self._waiting = OrderedDict(
                (at, waiting) for at, waiting in self._waiting.items() if newest[at[0]] == at[1]
            )
            self._most = max(CHANGES_AHEAD_MAX, 2 * len(self._waiting))
        self._filled.set()

    async def take(self) -> Change | None:
        """The next one; None at the end."""
        while not self._waiting:
            if self._has_ended:
                return None
            self._filled.clear()
            await self._filled.wait()
        return self._waiting.popitem(last=False)[1]

    def end(self) -> None:
        """There will be no more."""
        self._has_ended = True
        self._filled.set()


def _key(where: Where) -> bytes:
    return pack_path(path_of(where))
