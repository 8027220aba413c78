"""Which jam is current, of all past and future jams (JAM-001..005).

No node starts a jam for the others: any reference to a jam creates it, and it counts once it has a `timestamp`. Which
jam runs, which was the last one and which is next follow from timestamps and durations alone.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from weft.cores.document.derby.reading import Element, below, duration_of, integer_of, number_of
from weft.cores.document.derby.rules import rules_of

LAST_PERIOD: Final = 2


class Place(NamedTuple):
    """A jam by its numbers."""

    period: int
    number: int


class Skated(NamedTuple):
    """A jam that counts; the latest one is the greatest by `begin`, then `place`."""

    begin: float
    place: Place
    duration: float | None
    """None: it runs, or its end was never entered."""

    @property
    def end(self) -> float:
        """When it ended, session time; while it has no duration, when it began."""
        return self.begin + (self.duration or 0.0)


class Jams(NamedTuple):
    """The state of the bout."""

    active: Place | None
    completed: Place | None
    """The jam that was just completed."""
    upcoming: Place | None
    complete: bool
    """The bout is over."""
    unterminated: tuple[Place, ...]
    """Jams that began before the latest one and were never ended."""


def jams_of(root: Element) -> Jams:
    """The state of a bout. O(jams). While it is not complete, either a jam is active or one is upcoming (JAM-005)."""
    skated = sorted(skated_of(root), key=lambda jam: jam[:2])
    latest = skated[-1] if skated else None
    active = latest if latest is not None and latest.duration is None else None
    done = [jam for jam in skated if jam.duration is not None]
    completed = done[-1] if done else None
    closes = completed is not None and is_closing(root, completed)
    is_complete = root.attributes.get("completed") == "yes"
    is_complete = is_complete or (active is None and closes and _is_last(completed))
    return Jams(
        active.place if active else None,
        completed.place if completed else None,
        None if active or is_complete else _following(completed, is_closing=closes),
        is_complete,
        tuple(sorted(jam.place for jam in skated if jam.duration is None and jam is not active)),
    )


def _is_last(jam: Skated | None) -> bool:
    return jam is not None and jam.place.period == LAST_PERIOD


def _following(completed: Skated | None, *, is_closing: bool) -> Place:
    if completed is None:
        return Place(1, 1)
    period, number = completed.place
    return Place(2, 1) if is_closing and period == 1 else Place(period, number + 1)


def skated_of(root: Element) -> Iterator[Skated]:
    """The jams that count, in the order of the document (JAM-001)."""
    for period in below(root, "period"):
        period_number = integer_of(period.attributes.get("number"))
        for jam in below(period, "jam"):
            number, begin = integer_of(jam.attributes.get("number")), number_of(jam.attributes.get("timestamp"))
            if period_number is not None and number is not None and begin is not None:
                yield Skated(begin, Place(period_number, number), duration_of(jam))


def is_closing(root: Element, jam: Skated) -> bool:
    """Whether a jam ended at or after the end of its period: with no time left, no further jam may start (JAM-003)."""
    period = period_at(root, jam.place.period)
    end = period_end(root, period) if period is not None else None
    return end is not None and jam.end >= end


def period_at(root: Element, number: int) -> Element | None:
    """The period of a number."""
    found = (period for period in below(root, "period") if integer_of(period.attributes.get("number")) == number)
    return next(found, None)


def period_begin(period: Element) -> float | None:
    """Its own `timestamp`, else that of its first jam; None: it has not begun."""
    begin = number_of(period.attributes.get("timestamp"))
    if begin is not None:
        return begin
    begun = [
        (number, begin)
        for jam in below(period, "jam")
        if (number := integer_of(jam.attributes.get("number"))) is not None
        and (begin := number_of(jam.attributes.get("timestamp"))) is not None
    ]
    return min(begun)[1] if begun else None


def period_end(root: Element, period: Element) -> float | None:
    """When its clock shows zero: its own `end`, else begin + length + its time-outs; None: it has not begun (JAM-003)."""
    end = number_of(period.attributes.get("end"))
    begin = period_begin(period)
    if end is not None or begin is None:
        return end
    stretched = sum(duration_of(timeout) or 0.0 for timeout in below(period, "timeout"))
    return begin + 60 * rules_of(root.attributes.get("ruleset", "")).period_minutes + stretched
