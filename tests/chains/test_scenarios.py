"""The scenarios of the vectors, exactly, for every client in its order (specs/05, 5.1)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.chains.rig import Rig, by_client
from tests.chains.treed import Player

VECTORS = Path(__file__).parent.parent / "vectors"
SCENARIOS = [json.loads(line) for line in (VECTORS / "chains-scenarios.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.proves(
    "CHN-001", "CHN-005", "CHN-006", "CHN-010", "CHN-011", "CHN-012", "CHN-013", "CHN-014",
    "CHN-015", "CHN-016", "CHN-017", "CHN-030", "RTE-002", "DEM-006",
)  # fmt: skip
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["id"] for scenario in SCENARIOS])
def test_scenario(scenario: dict[str, Any]) -> None:
    expected = by_client(scenario["means"]["expect"])
    actual = by_client(Rig().play(scenario["means"]["steps"]))
    assert expected == actual


UNHEARD = ("lost", "ignored")
"""What is counted, and said to no client."""


@pytest.mark.proves("CLI-023")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["id"] for scenario in SCENARIOS])
def test_scenario_over_whole_nodes(scenario: dict[str, Any]) -> None:
    expected = by_client([event for event in scenario["means"]["expect"] if event[0] not in UNHEARD])
    actual = by_client(Player().play(scenario["means"]["steps"]))
    assert expected == actual
