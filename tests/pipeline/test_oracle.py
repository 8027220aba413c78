"""Whatever comes in whatever order, whoever dies at whatever step: the tables equal the recomputation (PIP-072)."""

import pytest

from tests.pipeline.ground import Ground
from tests.pipeline.worlds import compare, play, world
from weft.base.chance import Chance

STEPS = ("coverage", "bronze", "series", "quarantine", "silver", "values", "edges", "progress")


@pytest.mark.proves("PIP-022", "PIP-030", "PIP-032", "PIP-040", "PIP-043", "PIP-044", "PIP-045", "PIP-061", "PIP-072")
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_random_histories(ground: Ground, seed: int, soak: bool) -> None:
    for round_ in range(40 if soak else 1):
        history = world(Chance(f"{seed}/{round_}/history"))
        here = Ground(ground.lake.root / str(round_), ground.spark)
        for number, arrival in enumerate(history.arrivals):
            play(here, arrival)
            here.job.fold() if number % 2 else here.job.fold_on()  # the next batch comes in the middle of a fold
        here.job.fold()
        compare(here, history.expected())


class Pulled(Exception):
    """The plug."""


@pytest.mark.proves("PIP-021", "PIP-022", "LAK-031")
def test_killed_before_and_after_each_step(ground: Ground, soak: bool) -> None:
    """A few batches, each killed again and again, ever later; in a soak one for every point instead."""
    points = [(when, step) for step in STEPS for when in ("before", "after")]
    if not soak:  # between two steps nothing happens
        points = [("before", STEPS[0]), *[("after", step) for step in STEPS]]
    count = len(points) if soak else 3
    history = world(Chance("killed"), batches=count, numbers=60 if soak else 24)
    calm = ground.options
    for number, arrival in enumerate(history.arrivals):
        for drain, records in arrival.segments:
            ground.write(*records, drain=drain)
        for point in points[number::count]:

            def watch(*at: str, point: tuple[str, str] = point) -> None:
                if at == point:
                    raise Pulled

            ground.restart(calm._replace(watcher=watch))
            if not arrival.rows and point[1] in ("quarantine", "silver", "bronze", "series"):
                continue  # there is no such step
            with pytest.raises(Pulled):
                ground.take()
        ground.restart(calm)
        ground.take()
    ground.job.fold()
    compare(ground, history.expected())


@pytest.mark.soak
@pytest.mark.proves("PIP-045")
def test_killed_between_the_folds_of_two_tables(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    history = world(Chance("folds"), batches=3)
    for number, arrival in enumerate(history.arrivals):
        play(ground, arrival)
        commit, left = ground.job.tables.commit, iter(range(number + 1))

        def pull(*args: object, commit: object = commit, left: object = left, **named: object) -> None:
            if next(left, None) is None:  # type: ignore[call-overload]  # an iterator
                raise Pulled
            commit(*args, **named)  # type: ignore[operator]  # the real one

        monkeypatch.setattr(ground.job.tables, "commit", pull)
        with pytest.raises(Pulled):
            ground.job.fold()
        ground.restart()
    ground.job.last_number = ground.number - 1
    ground.job.fold()
    compare(ground, history.expected())
