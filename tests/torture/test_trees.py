"""Who holds all data at the end of a run, and in which order nodes are stopped."""

from typing import Any

import pytest

from weft.torture.plan import NODES
from weft.torture.run import leaves_in, trees_of, upwards


def row(name: str, level: str) -> dict[str, Any]:
    return {"name": name, "level": level}


USUAL = {
    "root": [
        row("collector-1", "branch"),
        row("collector-2", "branch"),
        *(row(f"sensor-{n}", "leaf") for n in range(1, 6)),
    ]
}
TURNED = {
    "sensor-4": [
        row("sensor-4", "leaf"),
        row("sensor-4", "branch"),
        row("collector-1", "branch"),
        row("collector-2", "branch"),
        *(row(name, "leaf") for name in ("root", "sensor-1", "sensor-2", "sensor-3", "sensor-5")),
    ]
}
"""A sensor has become the root, and the former root is a leaf."""


def test_a_root_is_who_says_so() -> None:
    statuses: dict[str, dict[str, Any] | None] = {
        "sensor-4": {"level": "root", "tree": TURNED["sensor-4"]},
        "root": {"level": "sensor"},
        "sensor-1": None,
    }
    assert TURNED == trees_of(statuses)


@pytest.mark.parametrize(
    ("trees", "leaves", "order"),
    [
        (
            USUAL,
            {f"sensor-{n}" for n in range(1, 6)},
            (tuple(f"sensor-{n}" for n in range(1, 6)), ("collector-1", "collector-2"), ("root",)),
        ),
        (
            TURNED,
            {"root", "sensor-1", "sensor-2", "sensor-3", "sensor-5"},
            (("root", "sensor-1", "sensor-2", "sensor-3", "sensor-5"), ("collector-1", "collector-2"), ("sensor-4",)),
        ),
        ({}, set(), (tuple(f"sensor-{n}" for n in range(1, 6)), ("root", "collector-1", "collector-2"), ())),
    ],
)
def test_leaves_hold_a_part_and_are_stopped_first_and_roots_last(
    trees: dict[str, Any], leaves: set[str], order: tuple[tuple[str, ...], ...]
) -> None:
    assert leaves == leaves_in(trees)
    assert order == upwards(trees)
    assert set(NODES) == {name for names in order for name in names}
