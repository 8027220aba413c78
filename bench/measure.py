"""What the benches share: fair timing of two ways of doing the same thing, and a table.

Both ways run interleaved in one process, the best of several rounds counts (noise only ever adds), and the ratio is
what is compared between machines. A timing never fails a test.
"""

import gc
import platform
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

ROUNDS = 7


class Row(NamedTuple):
    """One line of a bench's table: cost per operation of ours and of the peer, in nanoseconds."""

    what: str
    ours_ns: float
    peer_ns: float | None
    note: str = ""


def best_of(
    ways: list[Callable[[], object]],
    operations: int,
    rounds: int = ROUNDS,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> list[float]:
    """Nanoseconds per operation of each way: best of `rounds`, the ways taking turns."""
    best = [float("inf")] * len(ways)
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for index, way in enumerate(ways):
                began = clock()
                way()
                best[index] = min(best[index], (clock() - began) / operations)
    finally:
        gc.enable()
    return best


def compare(
    what: str,
    ours: Callable[[], object],
    peer: Callable[[], object] | None,
    operations: int,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> Row:
    """A row of both ways; each call of a way does `operations` operations. `process_time_ns`: processor time only."""
    costs = best_of([way for way in (ours, peer) if way is not None], operations, clock=clock)
    return Row(what, costs[0], costs[1] if len(costs) > 1 else None)


def show(title: str, rows: Iterable[Row], peer: str) -> None:
    """Print the table; a ratio over 1 says how many times ours is faster."""
    print(f"{title} (Python {platform.python_version()}, {platform.machine()}; best of {ROUNDS} rounds)\n")
    print(f"| per operation | ours ns | {peer} ns | times faster | |\n|---|--:|--:|--:|---|")
    for row in rows:
        theirs = "" if row.peer_ns is None else f"{row.peer_ns:,.0f}"
        ratio = "" if row.peer_ns is None else f"{row.peer_ns / row.ours_ns:.2f}"
        print(f"| {row.what} | {row.ours_ns:,.0f} | {theirs} | {ratio} | {row.note} |")
    print()
