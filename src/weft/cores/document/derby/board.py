"""The scoreboard: a pure function of the document and the time (JAM-001..010).

All instants are session time in seconds, as in the document; see `clocks` for the clocks.
"""

from typing import Any, Final

from weft.cores.document.derby.clocks import open_timeout, period_clock, phase_clock, phase_of
from weft.cores.document.derby.jams import Jams, Place, Skated, jams_of, period_at, skated_of
from weft.cores.document.derby.reading import Element, below, integer_of, number_of
from weft.cores.document.derby.rules import TIMEOUTS, Rules, rules_of
from weft.cores.document.derby.skaters import Event, Team, box_of, events_of, penalties_of

SIDES: Final = ("home", "away")
FLAGS: Final = {"lead": "lead", "lost": "lost", "call": "called", "starpass": "starpass"}
"""Events that state a fact about a team in a jam, and their names in a jam's row."""
JAMMER: Final = "jammer"


def state(root: Element, time: float) -> dict[str, Any]:
    """The contents of a board at an instant, as plain data. O(document)."""
    rules = rules_of(root.attributes.get("ruleset", ""))
    jams, events = jams_of(root), list(events_of(root))
    skated = sorted(skated_of(root), key=lambda jam: jam[:2])
    here = _period_of(jams)
    period = period_at(root, here)
    clock = period_clock(root, here, rules, time)
    phase = phase_of(jams, open_timeout(period), clock)
    shown = jams.active or jams.completed
    rows = _rows(skated, events)
    return {
        "title": _title(root),
        "ruleset": root.attributes.get("ruleset", ""),
        "rules": rules._asdict(),
        "time": time,
        "phase": phase,
        "period": {"number": here, "clock": clock},
        "clock": phase_clock(phase, skated[-1] if skated else None, period, time),
        "jams": _places(jams),
        "shown": list(shown) if shown else None,
        "teams": _teams(root, rows, shown),
        "skaters": _skaters(root, events, skated, rules, time),
        "timeout": _timeout(period),
        "rows": [rows[place] for place in sorted(rows)],
    }


def _period_of(jams: Jams) -> int:
    """The present period; at halftime the one before."""
    return (jams.active or jams.completed or Place(1, 1)).period


def _title(root: Element) -> str:
    venue = next(below(root, "venue"), None)
    return root.attributes.get("name", "") or (venue.attributes.get("name", "") if venue is not None else "")


def _places(jams: Jams) -> dict[str, Any]:
    return {
        "active": list(jams.active) if jams.active else None,
        "completed": list(jams.completed) if jams.completed else None,
        "upcoming": list(jams.upcoming) if jams.upcoming else None,
        "complete": jams.complete,
        "unterminated": [list(place) for place in jams.unterminated],
    }


def _rows(skated: list[Skated], events: list[Event]) -> dict[Place, dict[str, Any]]:
    """The score sheet: each jam that counts or has an event, with the actions of both teams."""
    rows: dict[Place, dict[str, Any]] = {}
    for place in [*(jam.place for jam in skated), *(event.place for event in events)]:
        rows.setdefault(place, {"period": place.period, "jam": place.number, "begin": None, "duration": None})
    for jam in skated:
        rows[jam.place] |= {"begin": jam.begin, "duration": jam.duration}
    for row in rows.values():
        row |= {side: _side() for side in SIDES}
    for event in events:
        if event.team in SIDES:
            _note(rows[event.place][event.team], event)
    return rows


def _side() -> dict[str, Any]:
    facts = dict.fromkeys(FLAGS.values(), False)
    return {"points": 0, "trips": 0, **facts, "jammer": "", "passes": [], "lineup": [], "eids": {}}


def _note(side: dict[str, Any], event: Event) -> None:
    """Add an event to its team's half of a row, with its eid, so that it can be taken back."""
    attributes = event.element.attributes
    eid = attributes.get("eid", "")
    points = integer_of(attributes.get("points"))
    if event.kind == "pass" and points is not None:
        side["points"] += points
        side["trips"] += 1
        side["passes"].append({"points": points, "eid": eid})
    elif event.kind in FLAGS:
        side[FLAGS[event.kind]] = True
        side["eids"][event.kind] = eid
    elif event.kind == "lineup" and event.person:
        position = attributes.get("position", "").strip()
        side["lineup"].append({"person": event.person, "position": position, "eid": eid})
        side["jammer"] = event.person if position == JAMMER else side["jammer"]


def _teams(root: Element, rows: dict[Place, dict[str, Any]], shown: Place | None) -> dict[str, dict[str, Any]]:
    """Names and scores of both teams; `jam` is the score in the shown jam."""
    found = {}
    for side in SIDES:
        team = next((team for team in below(root, "team") if team.attributes.get("id") == side), None)
        attributes = team.attributes if team is not None else {}
        found[side] = {
            "name": attributes.get("name", "").strip() or side.capitalize(),
            "color": attributes.get("color", "").strip(),
            "score": sum(row[side]["points"] for row in rows.values()),
            "jam": rows[shown][side] if shown in rows else _side(),
            "timeouts": max(0, TIMEOUTS - _timeouts(root, side)),
        }
    return found


def _timeouts(root: Element, side: str) -> int:
    """How many time-outs a team has taken."""
    taken = (timeout for period in below(root, "period") for timeout in below(period, "timeout"))
    return sum(timeout.attributes.get("team", "").strip() == side for timeout in taken)


def _timeout(period: Element | None) -> dict[str, Any] | None:
    """The open time-out: the team, since when, and the eid by which it can be ended."""
    found = open_timeout(period)
    if found is None:
        return None
    attributes = found.attributes
    begin = number_of(attributes.get("timestamp"))
    return {"team": attributes.get("team", "").strip(), "begin": begin, "eid": attributes.get("eid", "")}


def _skaters(
    root: Element, events: list[Event], skated: list[Skated], rules: Rules, time: float
) -> dict[str, list[dict[str, Any]]]:
    """Both rosters with penalties and box; without officials."""
    teams = {team.attributes.get("id", ""): Team(team) for team in below(root, "team")}
    teams = {side: teams[side] for side in SIDES if side in teams}
    penalties_of(teams, events, rules)
    box_of(teams, events, skated, rules, time)
    return {side: sorted(team.skaters.values(), key=_by_number) for side, team in teams.items()}


def _by_number(skater: dict[str, Any]) -> tuple[str, str]:
    """The order of a roster in the rules: by the characters of the number."""
    return skater["number"], skater["name"]
