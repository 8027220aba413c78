"""The state that all pages show: fetched from the node when it changes, and once a second (JAM-020, JAM-021).

Viewers wait for a number greater than the last one they have seen. There is no queue: a slow viewer gets the newest state.
"""

import asyncio
import contextlib
import time
from collections import deque
from typing import Any, Final, NamedTuple

import msgspec

from weft.client.doc.client import Client
from weft.client.doc.errors import DocError
from weft.client.doc.values import Change, Operation

TICK_S: Final = 1.0  # when a clock runs out the phase changes, though no entry says so
SPACING_S: Final = 0.05  # between two requests: a burst of entries is shown in steps of this length
AWAY_S: Final = 3.0  # a node that has not answered for so long is away
AGAIN_S: Final = 0.5
TIMEOUT_S: Final = 6.0  # by then an operator who tapped a button gets an answer
SILENT_S: Final = 10  # a peer that is silent for so long may be cut off: it beats every 5 s
JITTER_S: Final = 2.0  # the node gives whole seconds; a larger difference means that a clock was set
RECENT: Final = 24
CHATS: Final = 24
DETAILS: Final = frozenset({"passes", "lineup", "eids"})
"""Fields of a team in a jam that only operators need, to take entries back."""
FATAL: Final = frozenset({"closed", "no-session"})
"""Codes of errors after which the connection cannot be used any more."""
BOARDLESS: Final = frozenset({"no-board", "unsupported"})


class Shown(NamedTuple):
    """A state in the form in which it is sent."""

    number: int
    """The number of this state, from 1 at each start of the board."""
    check: str
    """The check of the log (PEE-022)."""
    made: float
    """When it was made, by the monotonic clock."""
    whole: bytes
    """The state as a JSON object."""
    hall: bytes
    """The same without what only operators need: a tenth of the size, for many viewers."""

    def aged(self, *, is_whole: bool) -> bytes:
        """The state with its `age` in seconds, so that clocks are right however late it is sent."""
        return b'{"age":%.3f,%s' % (time.monotonic() - self.made, (self.whole if is_whole else self.hall)[1:])


class Feed:
    """Follows one session of a node; `run` in a task."""

    def __init__(self, node: str, session: str) -> None:
        self.client: Client | None = None
        """The connection, once there was one; it reconnects by itself."""
        self.heard = time.monotonic()
        """When the node last answered."""
        self.viewers = 0
        self._node, self._session = node, session
        self._newer, self._dirty = asyncio.Event(), asyncio.Event()
        self._steady: Any = None
        self._state: dict[str, Any] = {"session": session, "is_away": True, "board": None, "time": None}
        self.shown = self.newest = _shown(1, self._state, time.monotonic())
        """The last state that was published, and the last that was fetched: they differ in time only."""
        self._recent: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self._chats: deque[dict[str, Any]] = deque(maxlen=CHATS)
        self._sinces: dict[str, float] = {}

    async def after(self, number: int) -> Shown:
        """Wait for a state with a greater number than this."""
        while self.shown.number <= number:
            await self._newer.wait()
        return self.shown

    async def run(self) -> None:
        """Follow the session until cancelled."""
        while True:
            try:
                await self._follow()
            except* (DocError, msgspec.ValidationError) as errors:
                self._away(errors)
            finally:
                self.client = None
            await asyncio.sleep(AGAIN_S)

    async def _follow(self) -> None:
        async with Client(self._node, session=self._session, timeout=TIMEOUT_S) as client:
            self.client = client
            async with asyncio.TaskGroup() as group:
                group.create_task(self._watch(client))
                group.create_task(self._ask(client))

    # Events

    async def _watch(self, client: Client) -> None:
        """Note that something has changed; the state itself is fetched afterwards."""
        while True:
            try:
                await self._listen(client)
            except DocError as error:
                if error.code in FATAL:
                    raise
            await asyncio.sleep(AGAIN_S)

    async def _listen(self, client: Client) -> None:
        async with client.watch() as watch:
            await self._catch_up(client)
            async for change in watch:
                if change.is_whole:
                    await self._catch_up(client)
                self._note(change)
                self._dirty.set()

    async def _catch_up(self, client: Client) -> None:
        self._recent.clear()
        self._recent.extend([row_of(operation) for operation in await client.tail(RECENT)])
        self._chats.clear()
        self._chats.extend(await client.chats())
        self._dirty.set()

    def _note(self, change: Change) -> None:
        known = {(row["source"], row["sequence"]) for row in self._recent}
        for operation in change.operations:
            if (operation.source, operation.sequence) not in known:
                self._recent.append(row_of(operation))
        for event in change.events:
            if event.get("event") == "chat":
                self._chats.append(event)

    # The state

    async def _ask(self, client: Client) -> None:
        while True:
            self._dirty.clear()
            try:
                async with asyncio.timeout(AWAY_S):
                    facts = await _facts(client)
            except (TimeoutError, DocError) as error:
                if isinstance(error, DocError) and error.code in FATAL:
                    raise
                self._publish({**self._state, "is_away": True}, self.newest.made)
            else:
                self.heard = time.monotonic()
                self._publish(self._composed(facts), self.heard)
            await asyncio.sleep(SPACING_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_S - SPACING_S):
                    await self._dirty.wait()

    def _away(self, group: BaseExceptionGroup) -> None:
        """Publish why there is no state: the node refuses, or was never reached."""
        why = next((str(error) for error in _leaves(group)), "")
        self._publish({**self._state, "is_away": True, "why": why}, self.newest.made)

    def _composed(self, facts: dict[str, Any]) -> dict[str, Any]:
        status, board = facts["status"], facts["board"]
        now = status.get("time")
        names = {source["source"]: source["by"] for source in facts["sources"] if source.get("by")}
        return {
            "session": status.get("session", self._session),
            "schema": status.get("schema", ""),
            "is_degraded": bool(status.get("is_degraded")),
            "is_away": False,
            "check": status.get("check", ""),
            "time": now,
            "catching_up": bool(status.get("catching_up")),
            "operations": status.get("operations", 0),
            "node": {name: status.get(name, "") for name in ("uuid", "endpoint", "operator")},
            "peers": [self._peer(peer, now, names) for peer in facts["peers"]],
            "names": names,
            "alone_since": self._since("", now, None if status.get("active") else status.get("alone_s")),
            "conflicts": msgspec.to_builtins(facts["conflicts"]),
            "parked": [row_of(operation) for operation in facts["parked"]],
            "recent": list(self._recent),
            "chats": list(self._chats),
            "board": board,
        }

    def _since(self, whom: str, now: float | None, seconds: float | None) -> float | None:
        """The instant of session time so many seconds ago; differences up to `JITTER_S` keep the former value."""
        if seconds is None or now is None:
            self._sinces.pop(whom, None)
        elif abs(now - seconds - self._sinces.get(whom, 0.0)) > JITTER_S:
            self._sinces[whom] = now - seconds
        return self._sinces.get(whom)

    def _peer(self, peer: dict[str, Any], now: float | None, names: dict[str, str]) -> dict[str, Any]:
        """The facts of a peer that do not change every second; `name`: who entered there last."""
        facts = {name: peer.get(name, "") for name in ("uuid", "endpoint", "state")}
        heard = peer.get("heard_s")
        silent = heard if heard is not None and heard >= SILENT_S else None
        return facts | {
            "name": names.get(facts["uuid"], ""),
            "silent_since": self._since(facts["endpoint"], now, silent),
        }

    def _publish(self, state: dict[str, Any], made: float) -> None:
        """Publish a state, unless only time has passed since the last one."""
        steady = _steady(state)
        number = self.shown.number + (steady != self._steady)
        self._state = state
        self.newest = _shown(number, state, made)
        if steady == self._steady:
            return
        self._steady, self.shown = steady, self.newest
        newer, self._newer = self._newer, asyncio.Event()
        newer.set()


def _shown(number: int, state: dict[str, Any], made: float) -> Shown:
    hall = {name: value for name, value in state.items() if name not in ("recent", "chats")}
    if state["board"] is not None:
        hall["board"] = state["board"] | {"rows": [_light(row) for row in state["board"]["rows"]]}
    return Shown(number, str(state.get("check", "")), made, msgspec.json.encode(state), msgspec.json.encode(hall))


def _light(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the score sheet with what viewers see."""
    return {
        name: _light(value) if isinstance(value, dict) else value for name, value in row.items() if name not in DETAILS
    }


async def _facts(client: Client) -> dict[str, Any]:
    names = ("status", "peers", "sources", "conflicts", "parked", "board")
    asked = client.status(), client.peers(), client.sources(), client.conflicts(), client.parked(), _board(client)
    return dict(zip(names, await asyncio.gather(*asked), strict=True))


async def _board(client: Client) -> dict[str, Any] | None:
    """The scoreboard; None if the schema has none."""
    try:
        answer = await client.board()
    except DocError as error:
        if error.code in BOARDLESS:
            return None
        raise
    board: dict[str, Any] = answer["board"]
    return board


def row_of(operation: Operation) -> dict[str, Any]:
    """An operation in the form in which pages list it."""
    row: dict[str, Any] = msgspec.to_builtins(operation)
    row["body"] = operation.body.decode("utf-8", "replace")[:600]
    return row


def _steady(value: Any) -> Any:
    """A state without the parts that change only because time passes."""
    if isinstance(value, dict):
        return {key: _steady(item) for key, item in value.items() if key not in ("time", "seconds")}
    return [_steady(item) for item in value] if isinstance(value, list) else value


def _leaves(group: BaseExceptionGroup) -> list[BaseException]:
    """The errors of a group, flat."""
    found: list[BaseException] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
