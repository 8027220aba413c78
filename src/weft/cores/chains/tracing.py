"""Traces what the links of a chain do to single messages, on request (CHN-084).

One trace at a time follows the next messages of a type: the links that each message passed, each link's verdict, when
(by the core's clock), and how the message ended. By that clock an answer within one turn takes no time; only a link
that lets a message wait does. A trace neither changes nor delays a message.
"""

from typing import Any, Final

from weft.base.now import Now
from weft.cores.chains.order import covers
from weft.cores.chains.parcel import Parcel

MICROSECOND: Final = 1_000
UNDER_WAY: Final = "under way"


class Trace:
    """The messages of one trace."""

    def __init__(self, ticket: int, kind: str, direction: str, count: int, ends_at: int) -> None:
        """`kind`: a type, or `demo.*`; `direction`: `in`, `out`, or empty for both."""
        self.ticket, self._kind, self._direction, self._left = ticket, kind, direction, count
        self.ends_at = ends_at
        self._rows: list[dict[str, Any]] = []
        self._open: dict[int, tuple[dict[str, Any], int]] = {}
        """By number of a message: its report, and when it came."""

    def begin(self, parcel: Parcel, now: Now) -> None:
        """A message comes to the top of its chain."""
        is_wanted = self._direction in ("", parcel.direction) and covers(self._kind, parcel.type)
        if not self._left or not is_wanted:
            return
        self._left -= 1
        row: dict[str, Any] = {
            "type": parcel.type,
            "direction": parcel.direction,
            "mid": [parcel.origin.hex(), parcel.era, parcel.sequence],
            "bytes": parcel.size,
            "steps": [],
            "end": UNDER_WAY,
            "us": 0,
        }
        self._rows.append(row)
        self._open[parcel.id] = row, now.mono

    def step(self, parcel: Parcel, link: Any, verdict: str, now: Now) -> None:
        """A link has given its verdict, or holds the message."""
        if (found := self._open.get(parcel.id)) is not None:
            row, began = found
            row["steps"].append({"link": link.name, "verdict": verdict, "us": (now.mono - began) // MICROSECOND})

    def resume(self, parcel: Parcel, now: Now) -> None:
        """The link that held it has released it."""
        if (found := self._open.get(parcel.id)) is not None and found[0]["steps"]:
            row, began = found
            row["steps"][-1] |= {"verdict": "handed back", "us": (now.mono - began) // MICROSECOND}

    def end(self, parcel: Parcel, why: str, now: Now) -> None:
        """It has come to its end, or to the bottom (`bottom`)."""
        if (found := self._open.pop(parcel.id, None)) is not None:
            row, began = found
            row |= {"end": why, "us": (now.mono - began) // MICROSECOND}

    def is_over(self, now: Now) -> bool:
        """Whether all traced messages have ended, or time is over."""
        return now.mono >= self.ends_at or not (self._left or self._open)

    def result(self) -> dict[str, Any]:
        """The result, as plain data."""
        return {"messages": self._rows}
