"""Whether the tables are those of the journals when recorder, driver and Java were killed forty times (PIP-022).

    python -m bench.pipeline_kills [--kills 40] [--rows 200000] [--seed N] [--cluster]

A drawn history of a few nodes (late, doubled, shuffled, unreadable, announced lost, never sent) arrives at two journals,
a piece before each kill, so that nobody is killed who has nothing to do. A real recorder per journal and a real driver work
on it, and one of them, in turn, is killed at a drawn instant and started again. With `--cluster` the driver's tasks run on a
master with two workers, whose workers and executors are killed, too. In the end every table is compared with a recomputation
from the journals that shares no code with the pipeline, and `weft lake check --deep` is asked. The seed repeats history and
draws; not the instants themselves, which are the machine's.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from bench.hosts import load
from tests.pipeline import kills
from tests.pipeline.test_cluster import Machine
from tests.pipeline.test_kills import PORT, Size, play
from weft.pipeline.check import Check


def main() -> None:
    """Print what was killed and what differs; exit status 1 if anything does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--cluster", action="store_true")
    chosen = parser.parse_args()
    size = Size(chosen.rows, chosen.kills, chosen.kills)
    print(f"{load()}, seed {chosen.seed}", flush=True)
    with tempfile.TemporaryDirectory() as place:
        machine = Machine(Path(place), PORT) if chosen.cluster else None
        try:
            left = play(Path(place), chosen.seed, size, machine)
        finally:
            if machine is not None:
                machine.process.terminate()
                machine.process.wait()
        differences = kills.judge(left.lake, left.journals)
        verdict = Check(left.lake, deep=True).run()
    print(f"{left.told}\n\ntables that differ from the journals: {differences or 'none'}")
    print(f"weft lake check --deep: {verdict.state}, {verdict.proved:,} bytes {verdict.differences or ''}")
    sys.exit(bool(differences) or verdict.state != "equal")


if __name__ == "__main__":
    main()
