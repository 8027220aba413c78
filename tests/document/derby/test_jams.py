"""Which jam it is (JAM-001..005): the vectors, the promise that one jam is always active or upcoming, and a planted bug."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.document.derby.bouts import bout, jam, tree
from weft.cores.document.derby import board, jams
from weft.cores.document.derby.jams import Jams, Place, jams_of
from weft.cores.document.fold.engine import fold
from weft.cores.document.fold.schema import Schema
from weft.wire.document.operations import parse

VECTORS = Path(__file__).parents[2] / "vectors" / "document-jam.jsonl"
CASES = [json.loads(line) for line in VECTORS.read_text("utf-8").splitlines() if line]


def plain(found: Jams) -> dict[str, Any]:
    told = found._asdict() | {"unterminated": [list(place) for place in found.unterminated]}
    return {key: list(value) if isinstance(value, Place) else value for key, value in told.items()}


@pytest.mark.proves("JAM-001", "JAM-002", "JAM-003", "JAM-004", "JAM-005")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_each_bout_of_the_vectors_stands_where_it_is_said_to(case: dict[str, Any]) -> None:
    assert case["means"] == plain(jams_of(tree(bytes.fromhex(case["payload"]))))


@pytest.mark.proves("JAM-001")
@pytest.mark.parametrize("duration", ["", "soon", "-5", "nan", "1e999"])
def test_a_duration_that_is_none_leaves_the_jam_active(duration: str) -> None:
    found = jams_of(bout(f'<jam number="1" timestamp="1000" duration="{duration}"/>'))
    assert Place(1, 1) == found.active


@pytest.mark.proves("JAM-001")
def test_of_jams_that_began_together_the_one_with_the_greater_number_is_the_latest() -> None:
    found = jams_of(bout(jam(9, 1000) + jam(10, 1000), jam(1, 999)))
    assert Place(1, 10) == found.active
    assert (Place(1, 9), Place(2, 1)) == found.unterminated


@pytest.mark.proves("JAM-004")
def test_a_bout_that_says_that_it_is_complete_is() -> None:
    found = jams_of(bout(jam(1, 1000, 60), completed="yes"))
    assert (True, None) == (found.complete, found.upcoming)


@pytest.mark.proves("JAM-003")
def test_a_period_begins_when_it_says_so_and_not_with_its_first_jam() -> None:
    periods = '<period number="1" timestamp="{}"><jam number="1" timestamp="1000" duration="{}"/></period>'
    closing = tree(f'<bout ruleset="MAR2014/1p">{periods.format(970, 30)}<period number="2"/></bout>')
    short = tree(f'<bout ruleset="MAR2014/1p">{periods.format(971, 30)}<period number="2"/></bout>')
    assert [Place(2, 1), Place(1, 2)] == [jams_of(closing).upcoming, jams_of(short).upcoming]


NUMBERS = st.sampled_from(
    ["", "x", "-1", "0", "1", "60", "1000", "1060.5", "2800", "4600", "1e3", "nan", "1e400", " 7 "]
)
ATTRIBUTES = st.dictionaries(st.sampled_from(["timestamp", "duration", "end", "number", "team"]), NUMBERS)
CHILDREN = st.lists(st.tuples(st.sampled_from(["jam", "timeout", "note"]), ATTRIBUTES), max_size=6)
PERIODS = st.lists(st.tuples(ATTRIBUTES, CHILDREN), max_size=4)
ROOTS = st.fixed_dictionaries(
    {},
    optional={"ruleset": st.sampled_from(["MAR2014/20p", "/0p/x", "30p"]), "completed": st.sampled_from(["yes", "no"])},
)


def _xml(tag: str, attributes: dict[str, str], inside: str = "") -> str:
    told = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    return f"<{tag} {told}>{inside}</{tag}>"


@pytest.mark.proves("JAM-005")
@given(root=ROOTS, periods=PERIODS)
def test_while_a_bout_is_not_complete_either_one_jam_is_active_or_one_is_upcoming(
    root: dict[str, str], periods: list[tuple[dict[str, str], list[tuple[str, dict[str, str]]]]]
) -> None:
    inside = "".join(_xml("period", told, "".join(_xml(*child) for child in children)) for told, children in periods)
    found = jams_of(tree(_xml("bout", root, inside)))
    assert found.complete or (found.active is None) != (found.upcoming is None)
    assert not (found.complete and found.upcoming)


def test_a_jam_that_closed_its_period_only_after_the_end_turned_the_vectors_red(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted bug: `>` where JAM-003 says at or after."""

    def later(root: Any, skated: jams.Skated) -> bool:
        period = jams.period_at(root, skated.place.period)
        return skated.end > (jams.period_end(root, period) or 0) if period else False

    monkeypatch.setattr(jams, "is_closing", later)
    red = [case["id"] for case in CASES if case["means"] != plain(jams_of(tree(bytes.fromhex(case["payload"]))))]
    assert ["J08"] == red


@pytest.mark.proves("JAM-006")
def test_whoever_refers_to_a_jam_has_it_and_it_counts_once_it_has_begun() -> None:
    stamp = 'source="a0000000-0000-4000-8000-00000000000{}" timestamp="{}" sequence="1"'
    pass_at_99 = f'<add period="2" jam="99" {stamp.format(1, 1000)}><pass team="home" points="4"/></add>'
    begin = f'<set period="2" jam="99" {stamp.format(2, 1001)}><attribute name="timestamp">900</attribute></set>'
    schema = Schema.load("derby")
    made = fold(schema, [parse(pass_at_99.encode())]).root
    begun = fold(schema, [parse(pass_at_99.encode()), parse(begin.encode())]).root
    assert (4, Place(1, 1)) == (board.state(made, 1000)["teams"]["home"]["score"], jams_of(made).upcoming)
    assert Place(2, 99) == jams_of(begun).active
    assert 1 == len(board.state(begun, 1000)["rows"])
