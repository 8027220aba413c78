"""A real node for each core, flooded with its largest records: it stays within its memory, refuses by name, and serves on.

The full form, with times, is bench/flood.py.
"""

import contextlib
from collections import Counter
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.fabric import floods
from tests.fabric.fabric import FLEET, Fabric
from weft.cli.fleet import Member
from weft.shell.blocks import free_blocks

pytestmark = pytest.mark.prove("a flood")

MEGABYTES, BUDGET = 512, 8
REFUSALS, STEPS_MAX, OTHERS = 20, 600, 30


def flooded(spot: floods.Spot, case: floods.Case) -> tuple[Counter[str], Counter[str]]:
    """What the flood heard until it was refused often enough; and the honest client, after each of its steps at the end."""
    use, flood = case.use(spot), case.flood(spot)
    honest = Counter(islice(use, 3))
    heard: Counter[str] = Counter()
    for outcome in islice(flood, STEPS_MAX):
        heard[outcome] += 1
        if sum(heard[name] for name in case.refusals) >= REFUSALS:
            break
    for outcome, answer in islice(zip(flood, use, strict=False), OTHERS):
        heard[outcome] += 1
        honest[answer] += 1
    return heard, honest


def is_serving(case: floods.Case, spot: floods.Spot) -> bool:
    """Whether an honest client is served by now."""
    try:
        return next(case.use(spot)) == floods.OK
    except (OSError, EOFError, TimeoutError):
        return False


@pytest.mark.proves("FLD-032", "SEC-041")
def test_flooded_cores_stay_within_their_budgets_refuse_by_name_and_serve_on(tmp_path: Path) -> None:
    with contextlib.ExitStack() as room, Fabric(tmp_path, {}) as fabric:
        room.callback(floods.close)
        port, other = free_blocks(2, 31_000)
        fabric.ports["root"] = port
        spot, file = floods.Spot(port, other + 1, tmp_path / "state"), tmp_path / "root.toml"
        cores = [case.core for case in floods.CASES.values()]
        file.write_text(floods.settings(cores, spot, MEGABYTES, BUDGET, FLEET), "utf-8")
        fabric.fleet.add(Member("root", ["-m", "weft.cli.main", "up", str(file)], port))
        for name, case in floods.CASES.items():
            fabric.until(partial(is_serving, case, spot), f"{name} serves an honest client")
            check(case, *flooded(spot, case), fabric.status("root"))
        assert not fabric.member("root").deaths


def check(case: floods.Case, heard: Counter[str], honest: Counter[str], status: dict[str, Any]) -> None:
    """Refused often enough, by no other name; the honest client was served; memory is within its limits."""
    assert sum(heard[refusal] for refusal in case.refusals) >= REFUSALS, heard
    assert set(heard) <= {*case.refusals, floods.OK, "sent"}, heard
    assert {floods.OK} == set(honest), honest
    told = status["memory"]["cores"][case.core]
    assert BUDGET << 20 == told["budget_bytes"]
    assert told["bytes"] <= told["budget_bytes"]
    assert sum(part["refused"] for part in told["parts"].values()) >= REFUSALS
    assert status["memory_bytes"] < MEGABYTES << 20
