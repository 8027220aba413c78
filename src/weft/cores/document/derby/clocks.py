"""The clocks of a bout, as instants of session time, so that a display can run them without asking (JAM-010)."""

from typing import Any

from weft.cores.document.derby.jams import Jams, Skated, period_at, period_end
from weft.cores.document.derby.reading import Element, below, duration_of, number_of
from weft.cores.document.derby.rules import JAM_S, LINEUP_S, Rules

Clock = dict[str, Any]
"""`seconds` now; `zero`: when it shows 0, None for a stopped clock; `counts`: `down` or `up`."""


def down(zero: float, time: float) -> Clock:
    """A clock that runs down to 0 and stays there."""
    return {"counts": "down", "zero": zero, "seconds": max(0.0, zero - time)}


def up(zero: float, time: float) -> Clock:
    """A clock that has run since `zero`."""
    return {"counts": "up", "zero": zero, "seconds": max(0.0, time - zero)}


def standing(seconds: float) -> Clock:
    """A stopped clock."""
    return {"counts": "down", "zero": None, "seconds": max(0.0, seconds)}


def open_timeout(period: Element | None) -> Element | None:
    """The latest time-out of a period that was begun and not ended."""
    if period is None:
        return None
    begun = [
        timeout for timeout in below(period, "timeout") if number_of(timeout.attributes.get("timestamp")) is not None
    ]
    latest = max(begun, key=lambda timeout: number_of(timeout.attributes["timestamp"]) or 0.0, default=None)
    return latest if latest is not None and duration_of(latest) is None else None


def period_clock(root: Element, number: int, rules: Rules, time: float) -> Clock:
    """The time left in a period; the clock stands before the first jam and during a time-out."""
    period = period_at(root, number)
    end = period_end(root, period) if period is not None else None
    if end is None:
        return standing(60 * rules.period_minutes)
    timeout = open_timeout(period)
    if timeout is not None:
        return standing(end - (number_of(timeout.attributes["timestamp"]) or 0.0))
    return down(end, time)


def phase_of(jams: Jams, timeout: Element | None, period: Clock) -> str:
    """One of `final`, `jam`, `before`, `halftime`, `timeout`, `over`, `lineup`.

    `over`: time is up, but the period is not closed.
    """
    if jams.active:
        return "jam"
    if jams.complete:
        return "final"
    if jams.completed is None:
        return "timeout" if timeout is not None else "before"
    if jams.upcoming and jams.upcoming.period > jams.completed.period:
        return "halftime"
    if timeout is not None:
        return "timeout"
    return "over" if period["seconds"] <= 0 else "lineup"


def phase_clock(phase: str, jam: Skated | None, period: Element | None, time: float) -> Clock | None:
    """The second clock, for a jam, a line-up, a time-out, or halftime; `jam` is the latest one."""
    if phase == "timeout":
        timeout = open_timeout(period)
        return up(number_of(timeout.attributes["timestamp"]) or 0.0, time) if timeout is not None else None
    if jam is None or phase in ("before", "final", "over"):
        return None
    if phase == "jam":
        return down(jam.begin + JAM_S, time)
    if phase == "halftime":
        return up(jam.end, time)
    return down(_lineup_begin(jam, period) + LINEUP_S, time)


def _lineup_begin(jam: Skated, period: Element | None) -> float:
    """When skaters began to line up: after the jam, or after a later time-out."""
    begin = jam.end
    for timeout in below(period, "timeout") if period is not None else ():
        called, span = number_of(timeout.attributes.get("timestamp")), duration_of(timeout)
        if called is not None and span is not None:
            begin = max(begin, called + span)
    return begin
