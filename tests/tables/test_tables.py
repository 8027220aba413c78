"""Every state table of every core: its rows name methods, its states can be reached, its inputs occur, it is drawn."""

from collections.abc import Callable
from enum import Enum
from pathlib import Path

import pytest

from tests.house.requirements import ROOT
from tests.tables.tables import Table, doers, draw, pairs, reachable, tables

TABLES = tables()
each = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.title)


@pytest.mark.generates
def test_page_of_states_is_what_the_cores_say(committed: Callable[[Path, str], None]) -> None:
    committed(ROOT / "docs" / "states.md", draw(TABLES))


@each
def test_every_row_names_a_method_of_one_class(table: Table) -> None:
    assert len(doers(table)) == 1, f"no class, or several, have all of {sorted({c.do for c in table.rows.values()})}"


@each
def test_every_state_can_be_reached_from_the_first(table: Table) -> None:
    assert [] == [state.name for state in table.states if state not in reachable(table)]


@each
def test_every_input_has_a_row(table: Table) -> None:
    assert [] == [on.name for on in table.inputs if on not in {heard for _, heard in table.rows}]


@each
def test_states_and_inputs_say_what_they_mean_and_none_is_an_alias(table: Table) -> None:
    for kind in (type(table.states[0]), type(table.inputs[0])):
        assert list(kind.__members__) == [member.name for member in kind]
        assert [] == [member.name for member in kind if not (isinstance(member.value, str) and member.value)]


@each
def test_a_look_into_the_table_calls_no_function_of_python(table: Table) -> None:
    kinds = {type(state) for state in table.states} | {type(on) for on in table.inputs}
    assert [] == [kind.__name__ for kind in kinds if kind.__hash__ is not object.__hash__]


def test_the_walk_misses_nothing() -> None:
    class State(Enum):
        A, B = "a", "b"

    class On(Enum):
        X, Y = "x", "y"

    expected = [(State.A, On.X, 1), (State.A, On.Y, None), (State.B, On.X, None), (State.B, On.Y, 2)]
    assert expected == list(pairs({(State.A, On.X): 1, (State.B, On.Y): 2}))
