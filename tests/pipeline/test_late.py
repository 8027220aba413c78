"""A node comes back after a week: its days are right, and what was published before is named (PIP-046)."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, NamedTuple

import pytest
from pyspark.sql import functions as F  # noqa: N812  # as everybody writes it

from tests.pipeline import sketches
from tests.pipeline.ground import ERA, MEM, T0_MS, A, B, Ground, lost
from weft.base.records import Record, Stream, StreamRecord
from weft.pipeline.tables import CORRECTIONS, ROLLUP_1M
from weft.pipeline.transforms.late import corrections, newest_as_of
from weft.wire import samples

pytestmark = pytest.mark.prove("whole batches in Spark")

HOUR_MS = 3_600_000
PATCHED = "weft.pipeline.late."
Fold = list["Brought"]
"""The batches of a fold."""
Hours = dict[tuple[str, int], list[float]]
"""The values of each hour of each node."""


class Sample(NamedTuple):
    node: str
    number: int
    at_ms: int
    value: float


class Brought(NamedTuple):
    """One batch: its samples, and what else it says."""

    samples: list[Sample]
    more: tuple[Record, ...] = ()


def spaced(origin: str, first: int, last: int, step_ms: int) -> list[Sample]:
    """Samples at even distances, whose values say their number."""
    return [Sample(origin, n, T0_MS + n * step_ms, (n * 37 % 101) / 4) for n in range(first, last + 1)]


def recorded(some: list[Sample]) -> StreamRecord:
    first = some[0]
    rows = [samples.Row(0, sample.at_ms - first.at_ms, sample.value, None) for sample in some]
    body = samples.encode(samples.SampleBatch(first.at_ms, (MEM,), rows))
    stamp = first.at_ms * 1_000_000
    return StreamRecord(
        Stream.SAMPLES, bytes.fromhex(first.node), ERA, first.number, stamp, some[-1].at_ms * 1_000_000, "weft.metric",
        body, {"n": len(rows)},
    )  # fmt: skip


def week(step_ms: int) -> list[Fold]:
    """Node A is away for a week, of which B sees the end; A comes back, first with what is new, then with the rest."""
    back = 7 * 24 * HOUR_MS // step_ms
    away = spaced(A, 5, back, step_ms)
    half = len(away) // 2
    begin = Brought(spaced(A, 1, 4, step_ms) + spaced(B, 1, 4, step_ms))
    alive = Brought(spaced(B, back, back + 2, step_ms), (lost(5, back - 1, B),))
    home = Brought(spaced(A, back + 1, back + 2, step_ms))
    return [[begin], [alive, home], [Brought(away[half:]), Brought(away[:half])]]


def hours_of(some: Iterable[Sample]) -> Hours:
    hours: Hours = defaultdict(list)
    for sample in some:
        hours[sample.node, sample.at_ms // HOUR_MS].append(sample.value)
    return hours


class Story(NamedTuple):
    """What must come out, sample by sample."""

    late: dict[tuple[str, str, int], int]
    corrections: set[tuple[Any, ...]]
    hours: Hours


def told(folds: list[Fold]) -> Story:
    """The whole history again, in plain Python."""
    counts: dict[tuple[str, str, int], int] = defaultdict(int)
    changed: set[tuple[Any, ...]] = set()
    seen: list[Sample] = []
    newest: dict[str, int] = {}
    numbers = count()
    for fold in folds:
        before, touched = hours_of(seen), {}
        for batch, number in zip(fold, numbers, strict=False):
            for sample in late_ones(batch.samples, newest):
                counts[sample.node, instant(sample.at_ms).date().isoformat(), number] += 1
                touched[sample.node, sample.at_ms // HOUR_MS] = number
            seen += batch.samples
        changed |= set(corrected(before, hours_of(seen), touched))
    return Story(dict(counts), changed, hours_of(seen))


def late_ones(some: list[Sample], newest: dict[str, int]) -> list[Sample]:
    """Those that lie over an hour behind the newest of their node, which is noted."""
    for sample in some:
        newest[sample.node] = max(newest.get(sample.node, 0), sample.at_ms)
    return [sample for sample in some if sample.at_ms < newest[sample.node] - HOUR_MS]


def corrected(before: Hours, now: Hours, touched: dict[tuple[str, int], int]) -> Iterator[tuple[Any, ...]]:
    """Windows that somebody could have read before the fold, as they were and as they are."""
    published = max((hour for _, hour in before), default=-1)
    for key, number in touched.items():
        if key[1] <= published:
            was, values = before.get(key, []), now[key]
            yield key[0], instant(key[1] * HOUR_MS), len(was), mean(was), len(values), mean(values), number


def instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)


def mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None  # quarters: their sums are exact


def lived(ground: Ground, folds: list[Fold], before_fold: Callable[[int], None] = lambda _: None) -> None:
    for place, fold in enumerate(folds):
        for batch in fold:
            runs = [batch.samples] if batch.samples[0].node == batch.samples[-1].node else []
            runs = runs or [[s for s in batch.samples if s.node == node] for node in (A, B)]
            ground.take(
                *batch.more, *(recorded(run[at : at + 1000]) for run in runs for at in range(0, len(run), 1000))
            )
        before_fold(place)
        ground.job.fold()


def compare(ground: Ground, story: Story) -> None:
    rows = ground.rows("meta.late", "node", "late_day", "batch", "late", order=())
    assert story.late == {(node, day.isoformat(), batch): count for node, day, batch, count in rows}
    columns = ("node", "window_start", "n_before", "mean_before", "n_after", "mean_after", "batch")
    named = ground.rows("gold.corrections", *columns, order=())
    assert len(named) == len(set(named))
    assert story.corrections == set(named)
    hours = ground.rows("gold.rollup_1h", "node", "window_start", "n", "sum", "min", "max", "sketch", order=())
    wanted = [
        (node, instant(hour * HOUR_MS), len(some), sum(some), min(some), max(some), sketches.sketch_of(some))
        for (node, hour), some in story.hours.items()
    ]
    assert sorted(wanted, key=lambda row: row[:2]) == sorted(hours, key=lambda row: row[:2])


def days_of(ground: Ground) -> int:
    """How many days of windows of a minute the last fold has replaced or made."""
    table = ground.job.tables.path(ROLLUP_1M)
    return len({path.parent for path in table.rglob(f"b{ground.number - 1:010d}-*.parquet")})


@pytest.mark.proves("PIP-045", "PIP-046")
def test_a_week_that_comes_late_is_right_and_every_published_window_it_has_changed_is_named(
    ground: Ground, soak: bool
) -> None:
    folds = week(1000 if soak else 20 * 60_000)
    story = told(folds)
    assert 7 * 24 - 2 < len(story.corrections), "all but the last hour"
    assert {True, False} == {row[2] > 0 for row in story.corrections}, "windows that were there, and such as were not"
    lived(ground, folds)
    assert days_of(ground) in (7, 8)
    compare(ground, story)


class Pulled(Exception):
    """The plug."""


@pytest.mark.soak
@pytest.mark.proves("PIP-045", "PIP-046")
def test_a_fold_that_ended_between_corrections_and_windows_names_each_once(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = 20 * 60_000
    first = [[Brought(spaced(A, 1, 4, step) + spaced(B, 1, 4, step))], [Brought(spaced(A, 30, 31, step))]]
    folds = [*first, [Brought(spaced(A, 7, 9, step))], [Brought(spaced(A, 5, 6, step))]]

    def pull(place: int) -> None:
        if place != 2:
            return
        tables = ground.job.tables
        commit = tables.commit

        def once(table: Any, *arguments: Any, **named: Any) -> None:
            commit(table, *arguments, **named)
            if table is CORRECTIONS:
                raise Pulled

        monkeypatch.setattr(tables, "commit", once)
        with pytest.raises(Pulled):
            ground.job.fold()
        ground.restart()
        ground.take(recorded(folds[3][0].samples))

    lived(ground, folds[:3], pull)
    story = told(folds)
    assert len({row[:2] for row in story.corrections}) < len(story.corrections), "one window is corrected twice"
    compare(ground, story)


def judged_by_the_newest_of_all_nodes(patch: pytest.MonkeyPatch) -> None:
    def newest(latest: Any, brought: Any) -> Any:
        found = newest_as_of(latest, brought)
        return found.drop("newest").crossJoin(found.agg({"newest": "max"}).toDF("newest"))

    patch.setattr(PATCHED + "newest_as_of", newest)


def judged_by_the_batch_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PATCHED + "newest_as_of", lambda latest, brought: brought)


def named_when_nobody_could_have_read_it(patch: pytest.MonkeyPatch) -> None:
    def forgetful(was: Any, now: Any, found: Any, _: Any) -> Any:
        return corrections(was.where("false"), now, found, F.now())

    patch.setattr(PATCHED + "corrections", forgetful)


@pytest.mark.soak
@pytest.mark.proves("PIP-046")
@pytest.mark.parametrize(
    "bug", [judged_by_the_newest_of_all_nodes, judged_by_the_batch_alone, named_when_nobody_could_have_read_it]
)
def test_a_planted_bug_is_caught(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, bug: Callable[[pytest.MonkeyPatch], None]
) -> None:
    step = 20 * 60_000
    ahead = Brought(spaced(A, 1, 4, step) + spaced(B, 1, 40, step)[36:], (lost(1, 36, B),))
    folds = [[ahead, Brought(spaced(A, 8, 9, step))], [Brought(spaced(A, 5, 5, step))]]
    bug(monkeypatch)
    lived(ground, folds)
    with pytest.raises(AssertionError):
        compare(ground, told(folds))
