"""The shell's side: work is done at its place, and the answer always comes on the loop (MEA-006)."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.measurement.world import metrics
from tests.patience import PATIENCE_S
from weft.cores.measurement.messages import Measure, Measured, MetricSpec, Place, Reading
from weft.shell.measuring import Measuring
from weft.shell.meters import Meters

SPEC = metrics(m={"detail": "CPU", "rate": "1s"})


class Slow(Meters):
    """Meters that wait until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.threads: list[str] = []

    def measure(self, specs: tuple[MetricSpec, ...]) -> tuple[Reading, ...]:
        self.threads.append(threading.current_thread().name)
        assert self.gate.wait(timeout=PATIENCE_S)
        return super().measure(specs)


def heard(run: Callable[[Measuring], Any], meters: Meters) -> list[tuple[str, str, Measured]]:
    """Core, thread and order of every answer, until `run` has got what it waits for."""
    answers: list[tuple[str, str, Measured]] = []

    async def play() -> None:
        arrived = asyncio.Event()

        def order(core: str, answer: Any) -> None:
            answers.append((core, threading.current_thread().name, answer))
            arrived.set()

        run(Measuring(order, meters))
        await asyncio.wait_for(arrived.wait(), timeout=PATIENCE_S)

    try:
        asyncio.run(play())
    finally:
        meters.close()
    return answers


def test_counters_are_read_and_answered_on_the_loop() -> None:
    ((core, thread, answer),) = heard(lambda measuring: measuring.measure(Measure(SPEC, 5, Place.INLINE)), Meters())
    assert ("measurement", threading.current_thread().name, 5) == (core, thread, answer.number)
    assert ["m"] == [reading.name for reading in answer.readings]


@pytest.mark.proves("MEA-006")
@pytest.mark.parametrize("place", [Place.PROCESSES, Place.APART])
def test_what_may_hang_does_not_keep_the_loop_waiting(place: Place) -> None:
    meters = Slow()

    def run(measuring: Measuring) -> None:
        measuring.measure(Measure(SPEC, 6, place))
        asyncio.get_running_loop().call_soon(meters.gate.set)  # the loop still turns

    ((core, thread, answer),) = heard(run, meters)
    assert ("measurement", threading.current_thread().name, 6) == (core, thread, answer.number)
    assert ["measure-6"] == meters.threads


def test_an_answer_after_the_end_of_the_loop_is_nobodys() -> None:
    meters, answers = Slow(), list[Any]()

    async def play() -> None:
        measuring = Measuring(lambda core, order: answers.append(order), meters)
        measuring.measure(Measure(SPEC, 7, Place.APART))

    asyncio.run(play())
    meters.gate.set()
    for thread in threading.enumerate():
        if thread.name == "measure-7":
            thread.join(timeout=PATIENCE_S)
            assert not thread.is_alive()
    assert [] == answers
    meters.close()
