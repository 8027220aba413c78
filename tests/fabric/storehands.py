"""Clients of the stores of a fabric, in a thread of their own: they write, delete, and watch, whoever is killed."""

import asyncio
import contextlib
import itertools
import threading
from pathlib import Path
from typing import Any, NamedTuple

from weft.base.chance import Chance
from weft.base.changes import Chain, Link
from weft.base.changes import Path as StorePath
from weft.store import (
    MISSING,
    Busy,
    Change,
    Client,
    Closed,
    ConditionFailed,
    NotReady,
    StoreError,
    Unanswered,
    Unreachable,
)

AWAY = (Unreachable, Unanswered, NotReady, Closed, Busy)
"""What a client hears while its node is dead, or has not joined yet."""
OWN_KEYS, SHARED_KEYS = 12, 6
PATIENCE_S = 4.0


class Ack(NamedTuple):
    """A write that was acknowledged."""

    path: StorePath
    chain: Chain
    value: Any
    over: Any
    """The change that it asked for as the last one; None: no value; MISSING: it asked for nothing."""


class Hand:
    """One program that writes at one node: keys of its own, which nobody else writes, and keys that all write."""

    def __init__(self, node: str, place: Path, chance: Chance, pause_s: float) -> None:
        self.node, self.place, self.chance, self.pause_s = node, place, chance, pause_s
        self.acks: list[Ack] = []
        self.strange: list[str] = []
        self.refused = 0
        self._numbers = itertools.count(1)
        self._possible: dict[StorePath, list[Any]] = {}
        """What may stand at each own key: what was acknowledged last, and what was asked for since."""

    async def play(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                await self._write_on()
            except AWAY:
                await asyncio.sleep(0.1)  # tidy: a program that tries again
            except StoreError as error:
                self.strange.append(f"{self.node}: {error!r}")

    async def _write_on(self) -> None:
        """Until something comes between."""
        async with Client(self.place, timeout=PATIENCE_S) as client:
            while True:
                await self._act(client)
                await asyncio.sleep(self.pause_s)  # tidy: how fast it writes

    async def _act(self, client: Client) -> None:
        draw = self.chance.random()
        own: StorePath = ("own", self.node, self.chance.randrange(OWN_KEYS))
        shared: StorePath = ("shared", self.chance.randrange(SHARED_KEYS))
        if draw < 0.2:
            await self._look(client, own)
        elif draw < 0.6:
            await self._change(client, own, self._value(draw < 0.5))
        elif draw < 0.85:
            await self._change(client, shared, self._value(draw < 0.78))
        else:
            await self._change_if(client, shared)

    def _value(self, is_there: bool) -> Any:  # from here only
        return f"{self.node} {next(self._numbers)}" if is_there else MISSING

    async def _look(self, client: Client, path: StorePath) -> None:
        """What nobody else writes is what was acknowledged last, or what was asked for since (STO-030, STO-032)."""
        value, possible = await client.get(path), self._possible.get(path, [MISSING])
        if value not in possible:
            self.strange.append(f"{self.node}: {path} is {value}, and should be one of {possible}")

    async def _change(self, client: Client, path: StorePath, value: Any, over: Any = MISSING) -> None:
        is_own = path[0] == "own"
        if is_own:
            self._possible.setdefault(path, [MISSING]).append(value)
        if value is MISSING:
            written = await client.delete(path, chain=over)
        else:
            written = await client.set(path, value, chain=over)
        if is_own:
            self._possible[path] = [value]
        if written.is_changed and written.chain is not None:
            self.acks.append(Ack(path, written.chain, value, _head(over)))

    async def _change_if(self, client: Client, path: StorePath) -> None:
        """Only if nobody was quicker at this node (STO-036)."""
        entry = await client.entry(path)
        over = entry.chain if entry.is_there else None
        try:
            await self._change(client, path, self._value(is_there=True), over)
        except ConditionFailed:
            self.refused += 1


def _head(over: Any) -> Any:
    return over.head if isinstance(over, Chain) else over


class Seen(NamedTuple):
    """A change as a watcher was shown it."""

    lsn: int
    path: StorePath
    link: Link
    is_deleted: bool


class Eye:
    """One program that watches everything at one node."""

    def __init__(self, node: str, place: Path) -> None:
        self.node, self.place = node, place
        self.seen: list[Seen] = []
        self.view: dict[StorePath, Link] = {}
        self.marks: list[str] = []

    async def play(self) -> None:
        """Until it is cancelled; whoever kills the node, it goes on behind what it has seen."""
        while True:
            with contextlib.suppress(*AWAY):
                await self._watch()
            await asyncio.sleep(0.1)  # tidy: a program that tries again

    async def _watch(self) -> None:
        async with Client(self.place, timeout=PATIENCE_S) as client:
            async for told in client.watch((), fetch=True, marks=True):
                self._note(told)

    def _note(self, told: Any) -> None:
        if not isinstance(told, Change):
            self.marks.append(told.what)
            if told.what == "gap":
                self.view.clear()
            return
        assert told.chain is not None
        link = told.chain.head
        if told.is_there:
            self.view[told.path] = link
        else:
            self.view.pop(told.path, None)
        if not told.is_old:
            self.seen.append(Seen(told.position[1], told.path, link, not told.is_there))


class Hands(threading.Thread):
    """All of them, and whoever asks for a tree."""

    def __init__(self, hands: list[Hand], eyes: list[Eye]) -> None:
        super().__init__(daemon=True)
        self.hands, self.eyes = hands, eyes
        self.loop = asyncio.new_event_loop()
        self._writing: list[asyncio.Task[None]] = []
        self._watching: list[asyncio.Task[None]] = []

    def run(self) -> None:
        self._writing = [self.loop.create_task(hand.play()) for hand in self.hands]
        self._watching = [self.loop.create_task(eye.play()) for eye in self.eyes]
        self.loop.run_forever()
        self.loop.close()

    def rest(self) -> None:
        """Nobody writes from here on."""
        self._call(_end(self._writing))

    def end(self) -> None:
        """Nobody watches either."""
        self._call(_end(self._writing + self._watching))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.join(10)

    def tree(self, place: Path) -> dict[StorePath, Any] | None:
        """All that a node holds, tombstones too, as far as a client is told; None: it does not answer."""
        with contextlib.suppress(*AWAY):
            return self._call(_tree(place))  # type: ignore[no-any-return]  # of any coroutine
        return None

    def _call(self, asked: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(asked, self.loop).result(30)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    faults = [each for each in found if isinstance(each, Exception)]
    if faults:
        raise faults[0]


async def _tree(place: Path) -> dict[StorePath, Any]:
    async with Client(place, timeout=PATIENCE_S) as client:
        return {entry.path: (entry.value, entry.chain, entry.tock) async for entry in client.tree((), deleted=True)}
