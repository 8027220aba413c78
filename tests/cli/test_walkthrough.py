"""The walk-through of the specification: its table, what its judge catches, and all of it in virtual time."""

import json
from pathlib import Path
from typing import Any

import pytest

from weft.cli.demos import programs, virtual, walkthrough
from weft.cli.demos.rows import DETECTOR, ROWS, Outcome, differences, large_differences

VECTORS = Path(__file__).parents[1] / "vectors"
TICKS = 20


def vectors() -> list[dict[str, Any]]:
    lines = (VECTORS / "chains-demo.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["means"] for line in lines]


def means(number: int) -> dict[str, Any]:
    return vectors()[number - 1]


def cast(number: int) -> dict[str, list[Any]]:
    """Who takes part in a row, in the words of the vectors."""
    nodes: dict[str, list[Any]] = {"detector": [], "responder": [], "aggregator": [], "rewriter": []}
    for act in ROWS[number - 1].acts:
        way = "outbound" if act.is_outbound else "inbound"
        nodes[act.program].append([act.node, way] if act.program == "aggregator" else act.node)
    return {f"{program}s": who for program, who in nodes.items()}


def as_vector(outcome: Outcome) -> dict[str, Any]:
    first = {node: labels[: 5 if len(labels) == 5 else 6] for node, labels in outcome.received.items()}
    status = {
        node: {"ack" if why == "ok" else why: count for why, count in statuses.items()}
        for node, statuses in outcome.statuses.items()
    }
    return {
        "received": {node: len(labels) for node, labels in outcome.received.items()},
        "first": first,
        "status": status,
    }


@pytest.mark.parametrize("number", range(1, 7))
def test_a_row_of_the_table_is_that_of_the_vectors(number: int) -> None:
    vector = means(number)
    assert {name: vector[name] for name in cast(number)} == cast(number)
    assert vector["expect"] == as_vector(ROWS[number - 1].expected(TICKS))


def test_in_the_last_row_three_messages_outlive_who_held_them() -> None:
    row = ROWS[6]
    assert (3, "out", "rw", "A") == (row.holder.hold, row.holder.on, row.holder.access, row.holder.node)  # type: ignore[union-attr]  # the row has one
    assert Outcome({"B": ["A:0", "A:1", "A:2"]}, {"A": {"ok": 3}}) == row.expected(TICKS)
    assert [DETECTOR] == [act.program for act in row.acts if act.sends]


def planted(row: int, node: str, change: Any) -> Outcome:
    """What comes of a row, with a fault in what a node received."""
    right = ROWS[row - 1].expected(TICKS)
    labels = list(right.received[node])
    change(labels)
    return Outcome({**right.received, node: labels}, right.statuses)


def swap(labels: list[str]) -> None:
    labels[3], labels[4] = labels[4], labels[3]


FAULTS = {
    "one is missing": (1, "B", lambda labels: labels.pop(), True),
    "two are missing": (1, "B", lambda labels: labels.__delitem__(slice(18, 20)), False),
    "one inside is missing": (1, "B", lambda labels: labels.pop(5), False),
    "two have changed places": (1, "B", swap, False),
    "one came twice": (1, "B", lambda labels: labels.insert(4, labels[4]), False),
    "a tag is missing": (5, "B", lambda labels: labels.__setitem__(2, "A:4"), False),
    "tags have changed places": (6, "B", lambda labels: labels.__setitem__(2, "A:8+101+100"), False),
    "two leaves that should be inside came alone": (4, "C", lambda labels: labels.extend(["B:20", "B:21"]), False),
    "two ticks in one report": (2, "C", lambda labels: labels.__setitem__(slice(3, 5), ["B[A:3,A:4]"]), True),
    "a leaf is not inside": (4, "C", lambda labels: labels.__setitem__(7, "B[A:7]"), False),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_judge_catches_what_was_planted(fault: str) -> None:
    row, node, change, is_small = FAULTS[fault]
    expected, actual = ROWS[row - 1].expected(TICKS), planted(row, node, change)
    assert [] == differences(expected, expected) == large_differences(expected, expected)
    assert (1, 0 if is_small else 1) == (len(differences(expected, actual)), len(large_differences(expected, actual)))


@pytest.mark.parametrize(
    "statuses, is_close",
    [({"deleted": 19}, True), ({"deleted": 20, "ok": 1}, True), ({"ok": 20}, False), ({}, False)],
)
def test_the_judge_looks_at_statuses(statuses: dict[str, int], is_close: bool) -> None:
    right = ROWS[3].expected(TICKS)
    actual = Outcome(right.received, {**right.statuses, "B": statuses})
    assert 1 == len(differences(right, actual))
    assert is_close == (not large_differences(right, actual))


# In virtual time, beside whole nodes


@pytest.mark.proves("DEM-001", "DEM-002", "DEM-003", "DEM-004", "DEM-006")
@pytest.mark.parametrize("number", range(1, 7))
def test_in_virtual_time_every_count_of_a_row_is_that_of_the_vectors(number: int) -> None:
    actual = virtual.play(ROWS[number - 1], TICKS, 2_000)
    assert means(number)["expect"] == as_vector(actual)
    assert [] == differences(ROWS[number - 1].expected(TICKS), actual)


@pytest.mark.proves("DEM-006")
def test_in_virtual_time_what_a_dead_client_held_arrives_in_order() -> None:
    assert ROWS[6].expected(TICKS) == virtual.play(ROWS[6], TICKS, 2_000)


def test_the_walk_through_prints_a_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == walkthrough.shown(walkthrough.virtual(ticks=4), json=False)
    lines = capsys.readouterr().out.splitlines()
    assert [f"✓ {number}" for number in range(1, 8)] == [line[:3] for line in lines[1:]]
    assert "4: A:0 A:1 …" in lines[1]
    assert "A 4 ok, B 4 deleted" in lines[4]


def test_a_rewriter_that_deletes_nothing_is_found_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(programs.Rewriter, "take", lambda program, heard: programs.PASS)
    assert 1 == walkthrough.shown(walkthrough.virtual(ticks=4), json=True)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [5, 6] == [row["row"] for row in told if not row["is_right"]]
