"""Round after round a node that leads is killed, whoever it is; the fleet closes the gap, and the dead one comes back."""

import json
from pathlib import Path

import pytest

from tests.fabric.placed import PlacedFabric
from weft.base.chance import Chance
from weft.base.errors import UserError

NAMES = ("root", "collector-1", "collector-2", "collector-3", "sensor-1", "sensor-2", "sensor-3")
LEADERS = NAMES[:4]
ROUNDS, NIGHT = 3, 60
"""By default, and with `--soak`."""


class Rounds:
    """A fleet, and every write that was acknowledged as held by a majority."""

    def __init__(self, fabric: PlacedFabric) -> None:
        self.fabric = fabric
        self.written: dict[str, int] = {}
        self.numbers: list[int] = []
        self.confirmed: set[str] = set()

    def is_whole(self, dead: str = "") -> bool:
        """One root, and everybody else that lives below it, on the way to it."""
        roots = self.fabric.roots()
        living = [name for name in NAMES if name not in (dead, *roots)]
        return len(roots) == 1 and all(self.fabric.is_joined(name) for name in living)

    def write(self, number: int) -> None:
        """Whoever is the root is asked for a write, until one takes it."""

        def asked() -> bool:
            for root in self.fabric.roots():
                try:
                    told = self.fabric.ask(root, "set", key=f"/CONFIG/lab/note{number}", value=number)
                except UserError:
                    continue
                self.written[f"/CONFIG/lab/note{number}"] = number
                self.numbers.append(told["number"])
                if told["is_confirmed"]:
                    self.confirmed.add(f"/CONFIG/lab/note{number}")
                return True
            return False

        self.fabric.until(asked, "a root takes a write")

    def held(self, name: str) -> dict[str, int]:
        """The notes that a node has."""
        return {key: value for key, value in self.fabric.values(name, "/CONFIG/lab/").items() if "/note" in key}

    def play(self, number: int, chance: Chance) -> None:
        """Kill one that leads, wait until the gap is closed, write, and let it come back."""
        fabric = self.fabric
        victim = chance.choice([*fabric.roots(), chance.choice(LEADERS)])
        fabric.member(victim).wanted = False
        fabric.kill(victim)
        fabric.until(lambda: self.is_whole(victim), f"round {number}: the gap of {victim} is closed")
        self.write(number)
        fabric.start(victim)
        fabric.until(self.is_whole, f"round {number}: {victim} is back")


@pytest.mark.prove("rounds of kills")
@pytest.mark.proves("REC-005", "REC-012", "REC-017", "CFG-024")
def test_whoever_leads_is_killed_and_nothing_that_was_acknowledged_is_lost(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    chance = Chance("rounds")
    with PlacedFabric(tmp_path, NAMES) as fabric:
        rounds = Rounds(fabric)
        fabric.until(rounds.is_whole, "the fleet is whole")
        fabric.measure_on(20)
        for number in range(NIGHT if request.config.getoption("--soak") else ROUNDS):
            rounds.play(number, chance)
        (root,) = fabric.roots()
        last = rounds.numbers[-1]
        assert sorted(set(rounds.numbers)) == rounds.numbers, "numbers only grow, also over roots"
        fabric.until(lambda: all(fabric.number(name) >= last for name in NAMES), "everybody runs the last write")
        held = rounds.held(root)
        assert {key: rounds.written[key] for key in rounds.confirmed} == {
            key: held.get(key) for key in rounds.confirmed
        }
        assert all(held == rounds.held(name) for name in NAMES), json.dumps(held)
        fabric.measure_on(20)
        fabric.fleet.stop(NAMES[4:], 30)
        fabric.fleet.stop([name for name in LEADERS if name != root], 30)
        fabric.fleet.stop([root], 30)
        made, (drained, _) = fabric.made(), fabric.drained()
        assert {} == {str(origin): list(missing) for origin, missing in made - drained}
