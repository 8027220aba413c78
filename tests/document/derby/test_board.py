"""What a scoreboard shows (JAM-010), from documents of a few lines."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.document.derby.bouts import Made, bout, jam
from weft.cores.document.derby import board


def at(time: float, *args: str, **attributes: str) -> dict[str, Any]:
    return board.state(bout(*args, **attributes), time)


def passed(team: str, points: object, person: str = "") -> str:
    return f'<pass team="{team}" points="{points}" person="{person}"/>'


@pytest.mark.proves("JAM-010")
def test_the_score_is_the_sum_of_whole_points_of_all_jams() -> None:
    first = jam(1, 1000, 90, passed("home", 4) + passed("home", 3) + passed("away", 2) + passed("home", "four"))
    shown = at(
        1200, first + jam(2, 1120, None, passed("away", " 1 ") + passed("official", 9) + passed("home", "9" * 5000))
    )
    assert {"home": 7, "away": 3} == {side: team["score"] for side, team in shown["teams"].items()}
    assert (0, 1) == (shown["teams"]["home"]["jam"]["points"], shown["teams"]["away"]["jam"]["points"])
    assert [(1, 1, 7, 2), (1, 2, 0, 1)] == [
        (row["period"], row["jam"], row["home"]["points"], row["away"]["points"]) for row in shown["rows"]
    ]


@pytest.mark.proves("JAM-010")
def test_points_of_a_jam_that_nobody_has_begun_count() -> None:
    assert 4 == at(10, jam(3, inside=passed("home", 4)))["teams"]["home"]["score"]


@pytest.mark.proves("JAM-010")
def test_lead_and_what_else_a_team_did_stands_beside_its_jam() -> None:
    inside = '<lead team="home" person="7"/><lost team="home"/><call team="away"/><starpass team="away"/>'
    home, away = (team["jam"] for team in at(1010, jam(1, 1000, None, inside))["teams"].values())
    assert [(True, True), (False, False)] == [(side["lead"], side["lost"]) for side in (home, away)]
    assert [(False, False), (True, True)] == [(side["called"], side["starpass"]) for side in (home, away)]


def clocks(time: float, *args: str, **attributes: str) -> tuple[str, float, float | None]:
    shown = at(time, *args, **attributes)
    return shown["phase"], shown["period"]["clock"]["seconds"], shown["clock"] and shown["clock"]["seconds"]


@pytest.mark.proves("JAM-010")
@pytest.mark.parametrize(
    "time, first, second, expected",
    [
        (999, "", "", ("before", 1800, None)),
        (1010.5, jam(1, 1000), "", ("jam", 1789.5, 109.5)),
        (1200, jam(1, 1000), "", ("jam", 1600, 0)),
        (1100, jam(1, 1000, 90), "", ("lineup", 1700, 20)),
        (2801, jam(1, 1000, 90), "", ("over", 0, None)),
        (2900, jam(1, 1000, 1800), "", ("halftime", 0, 100)),
        (4000, jam(1, 1000, 1800), jam(1, 4000), ("jam", 1800, 120)),
        (6000, jam(1, 1000, 1800), jam(1, 4000, 1800), ("final", 0, None)),
        (1100, jam(1, 1000, 60) + '<timeout timestamp="1070"/>', "", ("timeout", 1730, 30)),
        (1100, jam(1, 1000, 60) + '<timeout timestamp="1070" duration="20"/>', "", ("lineup", 1720, 20)),
    ],
)
def test_phase_and_clocks_follow_from_document_and_time(
    time: float, first: str, second: str, expected: tuple[str, float, float | None]
) -> None:
    assert expected == clocks(time, first, second)


@pytest.mark.proves("JAM-010")
def test_a_running_clock_says_when_it_is_zero_and_one_that_stands_does_not() -> None:
    begun, stopped = at(1010, jam(1, 1000)), at(1100, jam(1, 1000, 60) + '<timeout timestamp="1070"/>')
    assert (2800, 1120) == (begun["period"]["clock"]["zero"], begun["clock"]["zero"])
    assert (None, "up") == (stopped["period"]["clock"]["zero"], stopped["clock"]["counts"])


def skater(shown: dict[str, Any], side: str, number: str) -> dict[str, Any]:
    return next(skater for skater in shown["skaters"][side] if number == skater["number"])


ROSTER = '<person number="123" name="Ann"/><person number="9" name="Bo"/>'


@pytest.mark.proves("JAM-010")
@pytest.mark.parametrize(
    "ruleset, count, out", [("MAR2014", 6, ""), ("MAR2014", 7, "fouled"), ("MAR2014/5f", 5, "fouled")]
)
def test_a_skater_with_too_many_penalties_is_out(ruleset: str, count: int, out: str) -> None:
    foul = '<penalty team="home" person="123" code="B"/>'
    shown = at(2000, jam(1, 1000, 60, foul * (count - 1)) + jam(2, 1100, 60, foul), home=ROSTER, ruleset=ruleset)
    found = skater(shown, "home", "123")
    assert (count, out) == (len(found["penalties"]), found["out"])
    assert ({"code": "B", "period": 1, "jam": 1}, 2) == (found["penalties"][0], found["penalties"][-1]["jam"])


@pytest.mark.proves("JAM-010")
def test_a_person_is_found_by_name_as_well_and_a_stranger_is_shown_too() -> None:
    foul = '<penalty team="home" person="Ann" code="C"/><expulsion team="home" person="9"/><penalty team="home" person="77"/>'
    shown = at(2000, jam(1, 1000, 60, foul), home=ROSTER)
    assert ["C"] == [penalty["code"] for penalty in skater(shown, "home", "123")["penalties"]]
    assert "expelled" == skater(shown, "home", "9")["out"]
    assert 1 == len(skater(shown, "home", "77")["penalties"])


def box(time: float, first: str, **attributes: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = skater(at(time, first, home=ROSTER, **attributes), "home", "123")["box"]
    return found


SIT = '<enterbox team="home" person="123" timestamp="1050"/>'


@pytest.mark.proves("JAM-010")
@pytest.mark.parametrize(
    "time, jams, left",
    [
        (1060, jam(1, 1000, None, SIT), 20),
        (1090, jam(1, 1000, 60, SIT), 20),
        (1105, jam(1, 1000, 60, SIT) + jam(2, 1100), 15),
        (1200, jam(1, 1000, 60, SIT) + jam(2, 1100), 0),
    ],
)
def test_time_in_the_box_passes_only_while_a_jam_runs(time: float, jams: str, left: float) -> None:
    found = box(time, jams)
    assert found is not None
    assert left == found["seconds"]


@pytest.mark.proves("JAM-010")
def test_who_has_left_the_box_sits_there_no_more_and_a_ruleset_says_how_long() -> None:
    assert None is box(1090, jam(1, 1000, None, SIT + '<exitbox team="home" person="123" timestamp="1080"/>'))
    longer = box(1060, jam(1, 1000, None, SIT), ruleset="MAR2014/60b")
    assert longer is not None
    assert (50, 1110) == (longer["seconds"], longer["zero"])


def test_time_outs_of_a_team_are_counted_down() -> None:
    shown = at(
        1100, jam(1, 1000, 60) + '<timeout team="home" timestamp="1070" duration="60"/><timeout timestamp="1170"/>'
    )
    assert {"home": 2, "away": 3} == {side: team["timeouts"] for side, team in shown["teams"].items()}


def test_a_board_of_nothing_is_a_board() -> None:
    shown = board.state(Made("bout", {}), 0.0)
    assert ("before", {}) == (shown["phase"], shown["skaters"])


@pytest.mark.proves("JAM-010")
def test_the_board_does_not_depend_on_the_order_of_events() -> None:
    events = [passed("home", 4), passed("away", 1), '<lead team="away"/>', '<penalty team="home" person="1" code="B"/>']
    expected, actual = (at(1010, jam(1, 1000, None, "".join(order))) for order in (events, events[::-1]))
    assert expected == actual


WORDS = st.sampled_from(
    ["", "1", "2", "-1", "1e400", "nan", "9" * 5_000, "home", "away", "jammer", "1000", "1060.5", "yes", "é"]
)
NAMES = st.sampled_from(
    ["timestamp", "duration", "end", "number", "team", "id", "person", "points", "name", "position", "eid"]
)
TAGS = st.sampled_from(
    ["period", "jam", "timeout", "team", "person", "pass", "lead", "lineup", "penalty", "expulsion", "enterbox"]
)
NODES = st.recursive(
    st.builds(Made, TAGS, st.dictionaries(NAMES, WORDS, max_size=5)),
    lambda inner: st.builds(
        Made, TAGS, st.dictionaries(NAMES, WORDS, max_size=5), st.just(""), st.lists(inner, max_size=4)
    ),
    max_leaves=20,
)


@pytest.mark.proves("JAM-010")
@given(children=st.lists(NODES, max_size=4), ruleset=WORDS, time=st.floats(-1e12, 1e12))
def test_whatever_a_document_holds_there_is_a_board_of_it(children: list[Made], ruleset: str, time: float) -> None:
    shown = board.state(Made("bout", {"ruleset": ruleset}, "", children), time)
    assert shown["phase"] in ("before", "jam", "lineup", "timeout", "over", "halftime", "final")
    assert shown == json.loads(json.dumps(shown, allow_nan=False))
