"""Makes one picture per second for all viewers, only while there are any: complete, or what has changed.

A slow viewer gets several changes together; one that is too far behind gets the complete picture. Nothing is queued.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from weft.base.now import MILLISECOND, SECOND, Now
from weft.shell.console import limits
from weft.shell.console.picture import Console
from weft.shell.http.messages import event

Picture = dict[str, Any]


class Feed:
    """The pictures of one console."""

    def __init__(self, console: Console, now: Callable[[], Now]) -> None:
        self.viewers = 0
        self.number = 0
        """The number of the newest picture."""
        self._console, self.now = console, now
        self._picture: Picture = {}
        self._made_at: Now | None = None
        self._encoded: dict[str, tuple[int, bytes]] = {}
        """What was asked of a picture, encoded once, with the number of the picture."""
        self._changes: deque[tuple[int, bytes]] = deque(maxlen=limits.CHANGES_KEPT)

    async def events(self) -> AsyncIterator[bytes]:
        """The complete picture, then each change, for one viewer.

        The picture has the newest values only, and those before them follow as a change: they are most of the bytes, and all
        machines are seen sooner without them (CON-003).
        """
        self.viewers += 1
        seen = 0
        try:
            while True:
                self.refresh()
                pieces, seen = self._after(seen), self.number
                for data in pieces:
                    yield event(data)
                await asyncio.sleep(self._left_s())
        finally:
            self.viewers -= 1

    def _left_s(self) -> float:
        """Seconds until the next picture; all viewers wake then."""
        spent_ns = 0 if self._made_at is None else self.now().mono - self._made_at.mono
        return max(limits.TICK_S - spent_ns / SECOND, limits.SOON_S)

    def refresh(self) -> None:
        """Make a new picture if the last one is a second old."""
        now = self.now()
        if self._made_at is not None and now.mono - self._made_at.mono < limits.TICK_S * 0.9e9:
            return
        before, self._picture, self._made_at = self._picture, self._console.look(now), now
        self.number += 1
        self._changes.append((self.number, self._encode(difference(before, self._picture))))

    def whole(self) -> bytes:
        """The newest picture with all values, as JSON."""
        return self._once("whole", lambda: self._complete(limits.POINTS))

    def _after(self, seen: int) -> list[bytes]:
        if seen == 0 or seen < self.number - len(self._changes):
            return [self._once("first", lambda: self._complete(1)), self._once("past", self._past)]
        return [data for number, data in self._changes if number > seen]

    def _complete(self, points: int) -> Picture:
        nodes = self._picture["nodes"].items()
        valued = {node: row | {"values": self._console.values_of(node, points)} for node, row in nodes}
        return {"whole": True, "head": self._picture["head"], "nodes": valued}

    def _past(self) -> Picture:
        values = {node: {"values": self._console.values_of(node, limits.POINTS)} for node in self._picture["nodes"]}
        return {"nodes": values, "gone": []}

    def _once(self, what: str, make: Callable[[], Picture]) -> bytes:
        number, data = self._encoded.get(what, (0, b""))
        if number != self.number:
            data = self._encode(make())
            self._encoded[what] = self.number, data
        return data

    def _encode(self, picture: Picture) -> bytes:
        assert self._made_at is not None, "set by refresh"
        return msgspec.json.encode({"number": self.number, "at": self._made_at.wall // MILLISECOND, **picture})


def difference(before: Picture, after: Picture) -> Picture:
    """The difference between two pictures: `head` if it changed, changed fields of `nodes`, and which nodes are `gone`.

    A picture has only the values since the one before, so all its values are included.

    >>> a = {"head": 1, "nodes": {"n": {"name": "x", "values": {"cpu": [7, 1.0]}}, "m": {"values": {}}}}
    >>> b = {"head": 1, "nodes": {"n": {"name": "x", "values": {"cpu": [7, 2.5, 3.0]}}}}
    >>> difference(a, b)
    {'nodes': {'n': {'values': {'cpu': [7, 2.5, 3.0]}}}, 'gone': ['m']}
    """
    changes: Picture = {} if before.get("head") == after["head"] else {"head": after["head"]}
    old = before.get("nodes", {})
    nodes = {node: changed for node, row in after["nodes"].items() if (changed := _changed(old.get(node, {}), row))}
    return changes | {"nodes": nodes, "gone": [node for node in old if node not in after["nodes"]]}


def _changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    changed = {name: value for name, value in after.items() if name not in before or before[name] != value}
    changed.pop("values", None)
    return changed | ({"values": after["values"]} if after["values"] else {})
