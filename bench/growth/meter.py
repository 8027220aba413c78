"""What a piece of work costs: CPU time and memory, each size in a process of its own.

A process of its own has no memory left over from the size before. Python collects cycles as a node lets it.
"""

import gc
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Final

from bench.sensor import resident_mb
from weft.shell.serve import COLLECT_AFTER

PATIENCE_S: Final = 3_600.0


class Meter:
    """The costs of one size, by what they are for and their unit."""

    def __init__(self) -> None:
        self.costs: dict[str, float] = {}

    def add(self, what: str, cost: float) -> None:
        """Some more of it."""
        self.costs[what] = self.costs.get(what, 0.0) + cost

    @contextmanager
    def cpu(self, what: str) -> Iterator[None]:
        """CPU time of this process, all its threads."""
        began = time.process_time()
        yield
        self.add(f"{what}, CPU s", time.process_time() - began)

    @contextmanager
    def memory(self, what: str) -> Iterator[None]:
        """Resident memory that is there afterwards and was not before."""
        gc.collect()
        before = resident_mb(os.getpid())
        yield
        gc.collect()
        self.add(f"{what}, MB", resident_mb(os.getpid()) - before)


Measure = Callable[[int, Meter], None]


def measured(measure: Measure, size: int, rounds: int) -> dict[str, float]:
    """The least of each cost in so many rounds: whoever else is at work on the machine only adds."""
    seen = [_alone(measure, size) for _ in range(rounds)]
    return {what: min(each[what] for each in seen) for what in seen[0]}


def _alone(measure: Measure, size: int) -> dict[str, float]:
    """The costs of one round, in a fork of this process."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(measure, size, there))
    process.start()
    there.close()
    try:
        if not here.poll(PATIENCE_S):
            raise TimeoutError(f"{size:,}")
        costs: dict[str, float] = here.recv()
        return costs
    finally:
        process.kill()
        process.join()


def _child(measure: Measure, size: int, told: Connection) -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    meter = Meter()
    measure(size, meter)
    told.send(meter.costs)
