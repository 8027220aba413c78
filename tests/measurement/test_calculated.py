"""Two samples calculate to one value (MEA-001)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.base.calculated import FORMULAS, Calculated, calculate
from weft.cores.measurement.details import DETAILS

LINES = (Path(__file__).parents[1] / "vectors" / "pipeline.jsonl").read_text("utf-8").splitlines()
VECTORS = [vector for vector in map(json.loads, LINES) if vector["id"].startswith("calc-")]


@pytest.mark.proves("MEA-001")
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_vector(vector: dict[str, Any]) -> None:
    means = vector["means"]
    before, after = (tuple(means["from"]), tuple(means["to"]))
    assert (means["result"], means["reason"]) == calculate(means["type"], before, after)


def test_the_first_sample_of_a_counter_has_no_value_yet() -> None:
    assert {Calculated(None, "first")} == {calculate(kind, None, (0, 5, 5)) for kind in FORMULAS}
    assert Calculated(5) == calculate("basic", None, (0, 5, None))


@pytest.mark.parametrize("kind", ["once", "aggregate-avg", "text"])
def test_other_types_count_as_basic(kind: str) -> None:
    assert Calculated(3) == calculate(kind, (0, 9, None), (1, 3, None))


def test_percent_without_a_base_has_no_value() -> None:
    assert Calculated(None, "base-reset") == calculate("percent", (0, 1, None), (1, 2, 4))


@pytest.mark.proves("MEA-001")
@given(st.integers(0, 1 << 63), st.integers(0, 1 << 20))
def test_differences_of_wide_counters_are_exact(start: int, more: int) -> None:
    assert Calculated(more) == calculate("delta", (0, start, None), (1, start + more, None))


def test_every_detail_has_a_type_that_can_be_calculated() -> None:
    assert [] == [name for name, row in DETAILS.items() if row.type not in (*FORMULAS, "basic", "once")]
