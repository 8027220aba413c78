"""The skaters of a team: roster, penalties, the box (JAM-010)."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from weft.cores.document.derby.jams import Place, Skated
from weft.cores.document.derby.reading import Element, below, integer_of, number_of
from weft.cores.document.derby.rules import Rules

PENALTY, EXPULSION, ENTER, EXIT = "penalty", "expulsion", "enterbox", "exitbox"


class Event(NamedTuple):
    """An element below a jam that names a team."""

    place: Place
    team: str
    kind: str
    person: str
    time: float | None
    element: Element


def events_of(root: Element) -> Iterator[Event]:
    """All events of all jams, in the order of the document."""
    for period in below(root, "period"):
        number = integer_of(period.attributes.get("number"))
        for jam in below(period, "jam"):
            jam_number = integer_of(jam.attributes.get("number"))
            if number is None or jam_number is None:
                continue
            began = number_of(jam.attributes.get("timestamp"))
            for child in jam.children:
                at = number_of(child.attributes.get("timestamp"))
                team, person = (child.attributes.get(name, "").strip() for name in ("team", "person"))
                place = Place(number, jam_number)
                yield Event(place, team, child.tag, person, began if at is None else at, child)


class Team:
    """One team's skaters by number, or by name if they have no number; events find a person by either."""

    def __init__(self, element: Element) -> None:
        self.skaters: dict[str, dict[str, Any]] = {}
        self._names: dict[str, str] = {}
        for person in below(element, "person"):
            number, name = (person.attributes.get(key, "").strip() for key in ("number", "name"))
            key = number or name
            self._names.setdefault(name, key)
            self.skaters.setdefault(key, _skater(number, name))

    def at(self, person: str) -> dict[str, Any]:
        """The skater of an event; a person on no roster has only this name."""
        key = person if person in self.skaters else self._names.get(person, person)
        return self.skaters.setdefault(key, _skater(person, ""))


def _skater(number: str, name: str) -> dict[str, Any]:
    return {"number": number, "name": name, "penalties": [], "out": "", "box": None}


def penalties_of(teams: dict[str, Team], events: list[Event], rules: Rules) -> None:
    """Add each skater's penalties in the order of jams, and why a skater is out: `fouled` or `expelled`."""
    for event in sorted(events, key=lambda event: (event.place, event.time or 0.0)):
        if event.team not in teams or event.kind not in (PENALTY, EXPULSION) or not event.person:
            continue
        skater = teams[event.team].at(event.person)
        code = event.element.attributes.get("code", "").strip()
        if event.kind == EXPULSION:
            skater["out"] = "expelled"
        else:
            skater["penalties"].append({"code": code, "period": event.place.period, "jam": event.place.number})
        if len(skater["penalties"]) >= rules.penalties_max:
            skater["out"] = skater["out"] or "fouled"


def box_of(teams: dict[str, Team], events: list[Event], jams: list[Skated], rules: Rules, time: float) -> None:
    """Add the skaters in the box and the seconds left.

    These pass only while a jam runs, and `zero` is when they are over.
    """
    seated: dict[tuple[str, str], float] = {}
    timed = [event for event in events if event.kind in (ENTER, EXIT) and event.time is not None]
    for event in sorted(timed, key=lambda event: (event.time or 0.0, event.kind == EXIT)):
        if event.team not in teams or not event.person or (event.time or 0.0) > time:
            continue
        skater = teams[event.team].at(event.person)
        key = (event.team, skater["number"] or skater["name"])
        if event.kind == ENTER:
            seated.setdefault(key, event.time or 0.0)
        else:
            seated.pop(key, None)
    is_running = any(jam.duration is None for jam in jams[-1:])
    for (team, person), since in seated.items():
        left = max(0.0, rules.box_s - _skated_within(jams, since, time))
        zero = time + left if is_running and left else None
        teams[team].at(person)["box"] = {"counts": "down", "zero": zero, "seconds": left}


def _skated_within(jams: list[Skated], begin: float, end: float) -> float:
    """Seconds of jams between two instants; `jams` in the order of their beginnings.

    Only the last one may still run.
    """
    total = 0.0
    for index, jam in enumerate(jams):
        is_open = jam.duration is None and index == len(jams) - 1
        upto = end if is_open else jam.end
        total += max(0.0, min(upto, end) - max(jam.begin, begin))
    return total
