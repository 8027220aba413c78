"""How many node-minutes the simulator runs in a second of CPU: whole, without checkers, and the bare queue beside it.

    python bench/sim.py [node-minutes]

The goal is 10,000 node-minutes in 120 s: 83 node-minutes per CPU second, 5,000 times as fast as life.
"""

import sys
import time

from weft.checks import Checker
from weft.sim.run import Run
from weft.sim.swarm import draw_plan
from weft.sim.world import World

GOAL = 10_000 / 120


def timed(scenario: str, node_minutes: float, checkers: list[Checker] | None) -> tuple[float, float, int]:
    """Node-minutes, CPU seconds and events of so many node-minutes of a scenario."""
    done, seed, events = 0.0, 0, 0
    began = time.process_time()
    while done < node_minutes:
        outcome = Run(draw_plan(str(seed), scenario), checkers).go()
        assert checkers == [] or outcome.is_green, seed
        done += outcome.node_minutes
        events += outcome.events
        seed += 1
    return done, time.process_time() - began, events


def queue_rate(count: int = 300_000) -> float:
    """Events per CPU second of the bare queue."""
    world = World()

    def again(left: int) -> None:
        if left:
            world.call_at(world.at + 1_000, again, left - 1)

    again(count)
    began = time.process_time()
    world.run(1 << 60)
    return count / (time.process_time() - began)


def main() -> None:
    wanted = float(sys.argv[1]) if len(sys.argv) > 1 else 500.0
    bare = queue_rate()
    print(
        f"{'what':34} {'node-min':>9} {'CPU s':>7} {'node-min/s':>11} {'us/node-s':>10} {'events/s':>10} {'of queue':>9}"
    )
    rows: tuple[tuple[str, str, list[Checker] | None], ...] = (
        ("fabric, all checkers", "fabric", None),
        ("fabric, no checkers", "fabric", []),
        ("house of forty, all checkers", "house", None),
        ("night, all checkers", "night", None),
    )
    for name, scenario, checkers in rows:
        done, spent, events = timed(scenario, wanted, checkers)
        rate, share = done / spent, events / spent / bare
        print(
            f"{name:34} {done:9.0f} {spent:7.2f} {rate:11.1f} {spent / done / 60 * 1e6:10.0f} {events / spent:10.0f} {share:9.3f}"
        )
    print(
        f"bare queue: {bare:,.0f} events per CPU second; goal: {GOAL:.0f} node-minutes per CPU second with all checkers"
    )


if __name__ == "__main__":
    main()
