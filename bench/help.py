"""How long a person waits for `weft --help`, of which the interpreter alone is a part (OPS-004): best of several, in turns."""

import os
import subprocess
import sys
import time
from typing import Final

ROUNDS: Final = 9
GOAL_S: Final = 0.2
WORDS: Final = {
    "weft --help": ["-m", "weft.cli.main", "--help"],
    "weft status --help": ["-m", "weft.cli.main", "status", "--help"],
    "python -c pass": ["-c", "pass"],
}


def once(words: list[str]) -> tuple[float, float]:
    """Seconds on the clock, and of a processor."""
    before, began = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    took, after = time.perf_counter() - began, os.times()
    return took, after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in WORDS}
    for _ in range(ROUNDS):
        for name, words in WORDS.items():
            seen[name].append(once(words))
    load = os.getloadavg()[0]
    for name, rounds in seen.items():
        clock, cpu = (min(column) for column in zip(*rounds, strict=True))
        print(f"{name:20} {clock * 1e3:6.0f} ms, {cpu * 1e3:6.0f} ms of a processor (load {load:.1f})")
    best = min(seen["weft --help"])[0]
    print(f"goal {GOAL_S * 1e3:.0f} ms: {'met' if best <= GOAL_S else 'missed'}")


if __name__ == "__main__":
    main()
