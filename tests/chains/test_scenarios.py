"""The scenarios of the vectors, exactly, for every client in its order."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chains.rig import Rig, by_client
from tests.chains.treed import Player
from weft.wire import clients

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


def sent(payloads: list[bytes], size: int) -> Player:
    """These sends in multiparts of so many, through a rewriter to a reader at the parent."""
    player = Player()
    player.do_tree({"A": "B", "B": None})
    player.do_reg("A", "ed", 1, {"dir": "out", "access": "rw", "window": 3})
    player.do_auto("A", "ed", 1, "every-other")
    player.do_reg("B", "seen", 1, {})
    speaker = player._at("A", "s")
    for begin in range(0, len(payloads), size):
        some = payloads[begin : begin + size]
        items = [clients.SendItem(tag=begin + at, type="t", to=["PARENTSOF"]) for at in range(len(some))]
        speaker.say(clients.Send(items, some))
    return player


@given(st.lists(st.sampled_from([b"", b"a", b"bc"]), max_size=20), st.integers(2, 20))
def test_what_is_sent_in_batches_becomes_the_same_as_what_is_sent_singly(payloads: list[bytes], size: int) -> None:
    singly, batched = sent(payloads, 1), sent(payloads, size)
    for who in ("ed", "seen"):
        node = "A" if who == "ed" else "B"
        assert by_client(singly.events).get((node, who)) == by_client(batched.events).get((node, who))
    assert sorted(by_client(singly.events).get(("A", "s"), [])) == sorted(by_client(batched.events).get(("A", "s"), []))
