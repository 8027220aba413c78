"""A run that a person interrupts ends the faults that have begun, and no others."""

from collections import Counter
from typing import Any, cast

from weft.torture.plan import Event, Plan
from weft.torture.run import Run


class Room:
    """A world in which the run is interrupted once a first fault has begun."""

    def __init__(self, run: Run) -> None:
        self.run, self.processes, self.story = run, ("sensor-1", "sensor-2"), ["a fault"]
        self.undone: list[Event] = []

    def kinds(self) -> tuple[str, ...]:
        return ("pause",)

    def play(self, event: Event) -> None:
        self.run.is_interrupted = True

    def undo(self, event: Event) -> None:
        self.undone.append(event)

    def watch(self) -> None:
        """Nothing ends by itself."""


def test_of_an_interrupted_run_what_has_begun_is_ended_and_what_has_not_is_left_alone() -> None:
    begun, ahead = Event(0.0, "pause", ("sensor-1",), 2.0), Event(5.0, "pause", ("sensor-2",), 2.0)
    run = Run.__new__(Run)
    room = Room(run)
    run.world, run.plan, run.say = cast("Any", room), Plan("interrupted", 10.0, (begun, ahead)), lambda _: None
    run.wrong, run.is_interrupted, run.played = [], False, Counter()
    run._hurt()
    assert [begun] == room.undone
