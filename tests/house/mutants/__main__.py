"""`make mutants [FOR=10m] [ARGS="src/weft/lake --seed 7"]`: plants small bugs and lists those that no test sees (FLD-044)."""

import argparse
import difflib
import random
import re
import sys
import time
from collections import Counter
from itertools import chain, zip_longest
from pathlib import Path
from typing import Final

from tests.house.mutants import known, rules
from tests.house.mutants.copied import Copy, copy_tree
from tests.house.mutants.reach import Choice, Reach, room_of
from tests.house.mutants.rules import Mutant
from tests.house.mutants.warm import ALIVE, COLD, OUTCOMES, PATIENCE, START_S, UNDECIDED, Chosen, Warm

ROOT: Final = Path(__file__).parents[3]
PROMISING: Final = ("base", "checks", "cores", "lake", "node", "pipeline", "shell", "wire")
"""Packages of the product that keep promises; the others show, simulate or ask."""
OUTSIDE: Final = frozenset({"loosen a bound", "ignore a range"})
"""Rules whose mutants stand outside of functions: for each all is loaded anew."""
ROOM_S_MIN: Final = 120.0  # less is over before its tests are loaded and looked at: then fewer rooms have a turn
FOREVER_S: Final = 86_400.0  # a room ends by itself when its time is over
SPANS: Final = {"s": 1, "m": 60, "h": 3600}


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument(
        "places", nargs="*", help="files or folders of the product; without any: all that keeps promises"
    )
    parser.add_argument("--for", dest="span", default="10m", help="how long, such as 90s or 10m")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another order")
    parser.add_argument("--rule", choices=rules.RULES, help="mutants of one rule alone")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    until = time.monotonic() + seconds(options.span)
    tree = options.root / "var" / "mutants" / "tree"
    copy_tree(options.root, tree)
    places = options.places or [f"src/weft/{name}" for name in PROMISING]
    planned = [one for one in plan(tree, places, options.seed) if options.rule in (None, one.rule)]
    print(f"{len(planned)} mutants, seed {options.seed}, for {options.span}", flush=True)
    outcomes = Run(Copy(tree), tree.parent).play(planned, until)
    return summary(planned, outcomes, set(known.read(options.root)))


def summary(planned: list[Mutant], outcomes: dict[str, str], excused: set[str]) -> int:
    alive = {key for key, outcome in outcomes.items() if outcome in ALIVE}
    counts = Counter(outcomes.values())
    print(
        f"\n{len(outcomes)} of {len(planned)} mutants: {', '.join(f'{n} {name}' for name, n in counts.most_common())}"
    )
    if alive & excused:
        print(f"{len(alive & excused)} of those alive are known ({known.PAGE})")
    if alive - excused:
        print(f"{len(alive - excused)} are not: write a test that kills them, or say in {known.PAGE} why none can")
    if counts[UNDECIDED]:
        print(
            f"{counts[UNDECIDED]} lived, but there was no time for all tests near them: give the run more, or fewer places"
        )
    return 1 if alive - excused else 0


def seconds(span: str) -> float:
    """A time in words.

    >>> seconds("90s"), seconds("10m")
    (90.0, 600.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", span)
    if not found:
        raise SystemExit(f"mutants: {span} is no time: 90s, 10m, 1h")
    return float(found[1]) * SPANS[found[2]]


def plan(root: Path, places: list[str], seed: int) -> list[Mutant]:
    """All mutants of some places in an order drawn from a seed, one of each rule in turn: rare ones come soon."""
    drawn = random.Random(seed)
    by_rule: dict[str, list[Mutant]] = {rule: [] for rule in rules.RULES}
    for path in files(root, places):
        for mutant in rules.read(root, path):
            by_rule[mutant.rule].append(mutant)
    for mutants in by_rule.values():
        drawn.shuffle(mutants)
    return [one for one in chain.from_iterable(zip_longest(*by_rule.values())) if one is not None]


def files(root: Path, places: list[str]) -> list[str]:
    found: list[str] = []
    for place in places:
        path = root / place
        inside = [path] if path.suffix == ".py" else sorted(path.rglob("*.py"))
        if not inside or not path.exists():
            raise SystemExit(f"mutants: there is no {place}")
        found += [one.relative_to(root).as_posix() for one in inside]
    return sorted(set(found))


class Run:
    """Plays mutants: those of one room with the tests of that room, which are loaded once."""

    def __init__(self, copy: Copy, var: Path) -> None:
        self._copy, self._said = copy, var / "outcomes.txt"
        self._reach = Reach(copy.root, var / "notes")

    def play(self, planned: list[Mutant], until: float) -> dict[str, str]:
        """What became of each mutant that there was time for, by key."""
        self._said.write_text("", "utf-8")
        by_room: dict[str, list[Mutant]] = {}
        for mutant in planned:
            by_room.setdefault(room_of(mutant.path), []).append(mutant)
        left = len(planned)
        for mutants in by_room.values():
            now = time.monotonic()
            if now > until:
                break
            share_s = max(ROOM_S_MIN, (until - now) * len(mutants) / left)
            self._play_room(mutants, min(until, now + share_s))
            left -= len(mutants)
        return self._outcomes()

    def _outcomes(self) -> dict[str, str]:
        lines = self._said.read_text("utf-8").splitlines()
        return {key: outcome for outcome, _, key in (line.partition(" ") for line in lines)}

    def _play_room(self, mutants: list[Mutant], until: float) -> None:
        tests = self._reach.begin(one.path for one in mutants)
        warm_ones = [one for one in mutants if one.rule not in OUTSIDE]
        if tests and warm_ones:
            now = time.monotonic()
            warm_until = now + (until - now) * len(warm_ones) / len(mutants)
            warm = Warm(self._copy.root, self._reach, warm_ones, warm_until, self._note)
            ended = self._copy.run(["-s", "-qq", *tests], warm, FOREVER_S)
            if ended:
                raise SystemExit(f"mutants: the tests near {mutants[0].path} cannot be run ({ended})")
        outcomes = self._outcomes()
        self._reach.begin(one.path for one in mutants)  # what was noted meanwhile
        for mutant in mutants:
            is_cold = mutant.rule in OUTSIDE or outcomes.get(mutant.key) == COLD
            if is_cold and time.monotonic() < until:
                choice = self._reach.choice(mutant)
                outcome = self._cold_fate(mutant, choice)
                is_certain = outcome not in ALIVE or not self._reach.unseen(mutant)
                self._note(mutant, choice, outcome if is_certain else UNDECIDED)

    def _cold_fate(self, mutant: Mutant, choice: Choice) -> str:
        """Plant it into the file, and load everything anew."""
        files = dict.fromkeys(name.partition("::")[0] for name in choice.tests)
        limit_s = START_S + PATIENCE * choice.seconds
        with self._copy.changed(mutant.path, mutant.text):
            ended = self._copy.run(["-x", *files], Chosen(choice.tests), limit_s, self._reach.kept / "last.log")
        return OUTCOMES.get(ended, "killed")

    def _note(self, mutant: Mutant, choice: Choice, outcome: str) -> None:
        with self._said.open("a") as said:
            said.write(f"{outcome} {mutant.key}\n")
        if outcome in (*ALIVE, UNDECIDED):
            print(report(self._copy.root, mutant, choice, outcome), flush=True)


def report(root: Path, mutant: Mutant, choice: Choice, outcome: str) -> str:
    right = (root / mutant.path).read_text("utf-8")
    changes = difflib.unified_diff(
        right.splitlines(), mutant.text.splitlines(), mutant.path, mutant.path, "", "", 2, ""
    )
    ran = ", ".join(choice.tests[:5]) + (f" and {len(choice.tests) - 5} more" if len(choice.tests) > 5 else "")
    cut = f"; {choice.left_out} slower ones were left out" if choice.left_out else ""
    tests = f"ran {ran}{cut}" if choice.tests else "no test calls it"
    return "\n".join(["", f"{outcome}: {mutant.key}", tests, *changes])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
