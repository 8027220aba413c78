"""Quantiles that merge exactly: bins against the vector, merging against the whole (CHN-067)."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.cores.chains import sketch
from weft.cores.chains.sketch import Sketch, flaw, index_of, value_of

LINES = (Path(__file__).parents[1] / "vectors" / "chains-filters.jsonl").read_text("utf-8").splitlines()
VECTOR = next(vector["means"] for vector in map(json.loads, LINES) if vector["id"] == "sketch")
NUMBERS = st.floats(-1e12, 1e12, allow_nan=False)


def of(*values: float) -> Sketch:
    made = Sketch()
    if values:
        made.add(list(values), min(values))
    return made


def merged(*parts: Sketch) -> dict[str, Any]:
    whole = Sketch()
    for part in parts:
        said = part.wire()
        whole.merge(said["z"], said["p"], said["n"])
    return whole.wire()


@pytest.mark.proves("CHN-067", part="bins of the sketch")
def test_bins_and_their_values_are_those_of_the_vector() -> None:
    assert VECTOR["index"] == {text: index_of(float(text)) for text in VECTOR["index"]}
    for text, value in VECTOR["value"].items():
        assert math.isclose(value, value_of(int(text)), rel_tol=1e-12)


def test_a_sketch_travels_as_the_bins_of_each_sign_and_the_zeros() -> None:
    assert {"a": 0.01, "z": 2, "p": [[0, 2], [35, 1]], "n": [[81, 1]]} == of(1, 0, 2, -5, 1, 1e-9).wire()


@given(st.lists(NUMBERS, max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_sketches_of_parts_merge_to_the_sketch_of_all(values: list[float], one: int, other: int) -> None:
    a, b = sorted((one, other))
    assert of(*values).wire() == merged(of(*values[:a]), of(*values[a:b]), of(*values[b:]))


def test_a_quantile_of_nothing_is_zero() -> None:
    assert [0.0] * 3 == [Sketch().quantile(share) for share in (0.0, 0.5, 1.0)]


@given(
    st.lists(NUMBERS.filter(lambda value: abs(value) > 1e-8), min_size=1, max_size=60),
    st.sampled_from((0.0, 0.5, 0.9, 1.0)),
)
def test_a_quantile_is_one_of_the_values_to_the_accuracy(values: list[float], share: float) -> None:
    exact = sorted(values)[int(share * (len(values) - 1))]
    assert math.isclose(exact, of(*values).quantile(share), rel_tol=0.0101)


def test_of_more_bins_than_may_be_the_lowest_are_joined_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketch, "BINS_MAX", 3)
    values = [1.0, 10.0, 100.0, 1e3, 1e4]
    whole = of(*values).wire()
    assert [[231, 3], [346, 1], [461, 1]] == whole["p"]
    assert whole == merged(of(*values[:4]), of(values[4])) == merged(of(values[4], values[0]), of(*values[1:4]))


@pytest.mark.parametrize(
    "said, count, why",
    [
        (None, 1, "no sketch"),
        ({"a": 0.01, "z": 0, "p": []}, 0, "no sketch"),
        ({"a": 0.02, "z": 0, "p": [], "n": []}, 0, "another accuracy"),
        ({"a": 0.01, "z": -1, "p": [], "n": []}, 0, "no bins"),
        ({"a": 0.01, "z": True, "p": [], "n": []}, 1, "no bins"),
        ({"a": 0.01, "z": 0, "p": [[1]], "n": []}, 1, "no bins"),
        ({"a": 0.01, "z": 0, "p": [[1, 0]], "n": []}, 0, "no bins"),
        ({"a": 0.01, "z": 0, "p": [[10**9, 1]], "n": []}, 1, "no bins"),
        ({"a": 0.01, "z": 0, "p": [[1, 2]] * 2_049, "n": []}, 1, "no bins"),
        ({"a": 0.01, "z": 0, "p": [[1, 2]], "n": []}, 1, "another count"),
        ({"a": 0.01, "z": 1, "p": [[1, 2]], "n": [[3, 4]]}, 7, ""),
    ],
)
def test_what_others_call_a_sketch_is_looked_at(said: Any, count: int, why: str) -> None:
    assert why == flaw(said, count)
