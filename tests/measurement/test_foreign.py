"""Samples of foreign nodes join the road of own ones, and nothing that they say can stop those (MEA-020)."""

import math

import pytest

from tests.measurement.world import NODE, World, check_numbers, metrics, records
from weft.base.effects import Source
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, SECOND
from weft.cores.measurement import limits
from weft.cores.measurement.messages import Data, DataHugz, MeasurementSettings, Stop
from weft.wire import samples

FROM = Source("data", b"")
AT = 1_795_000_000_000
OWN = metrics(cpu={"detail": "CPU", "rate": "1s"})


def sample(n: int = 0, source: str = "10.0.0.9:5556", name: str = "cpu", **labels: str) -> Data:
    return labelled(labels, n, source, name)


def labelled(labels: dict[str, str], n: int = 0, source: str = "10.0.0.9:5556", name: str = "cpu") -> Data:
    return Data(
        source=source,
        type="percent",
        detail="CPU",
        config_name=name,
        labels=labels,
        time_ms=AT + n,
        value=n + 0.5,
        base=2.0 * n,
    )


def hear(world: World, *said: Data | DataHugz) -> list[str]:
    """The codes of what was refused."""
    refused = []
    for message in said:
        try:
            world.core.receive(message, FROM, world.now)
        except PeerError as error:
            refused.append(error.code)
    world._settle()
    return refused


def foreign_rows(world: World) -> list[tuple[str, str, int, float, float | None, dict[str, str]]]:
    found = []
    for record in records(world.journal):
        batch = samples.decode(record.payload)
        for row in samples.explode(batch):
            if "source" in row.series.labels:
                series = row.series
                stamp = batch.t0_ms + row.offset_ms
                found.append((series.config_name, series.type, stamp, row.value, row.base, series.labels))
    return found


@pytest.mark.proves("MEA-020")
def test_a_foreign_sample_is_numbered_and_kept_with_its_own_stamp_and_its_source() -> None:
    world = World(OWN)
    world.run(0.1)
    assert [] == hear(world, sample(1, core="0"), sample(2, core="0"))
    assert [] == foreign_rows(world)
    world.run(3)
    labels = {"core": "0", "source": "10.0.0.9:5556"}
    expected = [("cpu", "percent", AT + 1, 1.5, 2.0, labels), ("cpu", "percent", AT + 2, 2.5, 4.0, labels)]
    assert expected == foreign_rows(world)
    check_numbers(world.journal)
    counters = world.core.counters
    assert (2, 1, 1) == (counters.foreign, counters.foreign_sources, counters.foreign_series)
    assert counters.numbered == counters.taken == sum(record.attributes["n"] for record in records(world.journal))
    assert {NODE} == {record.origin for record in records(world.journal)}


@pytest.mark.proves("MEA-020")
def test_repeats_of_source_name_and_time_are_dropped_and_counted() -> None:
    world = World()
    world.run(0.1)
    hear(world, sample(1), sample(1), sample(1, core="7"), sample(1, name="load"), sample(1, source="b:1"), sample(2))
    world.run(2)
    assert [] == hear(world, sample(2), sample(1))
    world.run(2)
    assert 4 == len(foreign_rows(world)) == world.core.counters.foreign
    assert 4 == world.core.counters.foreign_repeated


def test_stamps_are_remembered_in_bounded_memory() -> None:
    world = World()
    hear(world, *(sample(n) for n in range(3 * limits.FOREIGN_STAMPS_MAX)))
    (source,) = world.core.foreign.sources.values()
    assert 64 == len(source.stamps["cpu"])
    hear(world, sample(3 * limits.FOREIGN_STAMPS_MAX - 1))
    assert 1 == world.core.counters.foreign_repeated


@pytest.mark.proves("MEA-020")
def test_a_beat_marks_a_source_as_alive_and_is_no_sample() -> None:
    world = World()
    assert [] == hear(world, DataHugz("10.0.0.9:5556"), sample(1))
    world.run(limits.FOREIGN_QUIET_NS / SECOND + 1)
    hear(world, DataHugz("10.0.0.9:5556", AT))
    (source,) = world.core.foreign.sources.values()
    assert world.mono == source.heard_at
    assert (2, 1) == (world.core.counters.foreign_beats, len(foreign_rows(world)))


def test_sources_and_series_are_bounded_and_the_refusal_says_by_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FOREIGN_SOURCES_MAX", 3)
    monkeypatch.setattr(limits, "FOREIGN_SERIES_MAX", 6)
    monkeypatch.setattr(limits, "FOREIGN_SERIES_OF_SOURCE_MAX", 4)
    world = World()
    assert [] == hear(world, *(sample(source=f"h{n}:1") for n in range(3)))
    assert ["too-many-sources"] == hear(world, sample(source="h4:1"))
    assert ["too-many-series"] == hear(world, *(sample(n, source="h0:1", core=str(n)) for n in range(1, 5)))
    assert ["too-many-series"] == hear(world, sample(7, "h1:1", core="1"))
    counters = world.core.counters
    assert (3, 6, 3, 6) == (
        counters.foreign_sources,
        counters.foreign_series,
        counters.foreign_refused,
        counters.foreign,
    )
    assert [] == hear(world, sample(9, source="h1:1")), "what has its place keeps it"


def test_who_was_quiet_for_long_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FOREIGN_SOURCES_MAX", 2)
    monkeypatch.setattr(limits, "FOREIGN_SERIES_OF_SOURCE_MAX", 2)
    world = World()
    hear(world, sample(1, "a:1"), sample(1, "b:1"), sample(1, "b:1", "load"))
    world.sleep(limits.FOREIGN_QUIET_NS / SECOND)
    assert [] == hear(world, sample(2, "b:1"))
    assert [] == hear(world, sample(2, "c:1"), sample(2, "b:1", "disk")), "the source a, and the series load of b"
    assert ["b:1", "c:1"] == sorted(world.core.foreign.sources)
    assert 3 == world.core.counters.foreign_series == world.core.foreign.series
    assert ["too-many-sources"] == hear(world, sample(3, "a:1"))
    assert ["cpu", "disk"] == sorted(world.core.foreign.sources["b:1"].stamps)


def test_labels_that_no_batch_can_carry_are_refused() -> None:
    world = World()
    many = {f"l{n}": "x" for n in range(samples.LABELS_MAX)}
    assert ["too-large"] == hear(world, labelled(many))
    assert ["endpoint"] == hear(world, sample(source=f"{'h' * 254}:27500"))
    many.popitem()
    assert [] == hear(world, labelled(many), labelled({**many, "source": "of another"}, 1))
    world.run(2)
    assert ["10.0.0.9:5556"] * 2 == [labels["source"] for *_, labels in foreign_rows(world)]


@pytest.mark.proves("MEA-020")
def test_nothing_foreign_stops_own_measuring() -> None:
    alone, beset = World(OWN), World(OWN)
    for second in range(5):
        for world in (alone, beset):
            world.run(1)
        flood = [sample(n, source=f"h{n % 300}:1", core=str(n)) for n in range(second, 12_000, 5)]
        wild = Data(
            source="w:1", type="rate", detail="X", config_name="x", time_ms=second, value=math.nan, base=math.inf
        )
        hear(beset, wild, *flood)
    for world in (alone, beset):
        world.run(3)
        check_numbers(world.journal)
    own = [(at, value) for name, at, value in beset.numbered if at > AT + 100_000 or isinstance(value, int)]
    assert [(at, value) for _, at, value in alone.numbered] == own
    assert alone.ticks("cpu") == beset.ticks("cpu")
    assert beset.core.counters.foreign_refused > 0
    mixed = [
        batch
        for batch in map(samples.decode, (record.payload for record in records(beset.journal)))
        if len({"source" in series.labels for series in batch.series}) > 1
    ]
    assert [] == mixed, "a strange stamp would move the stamp of own samples' record"


def test_a_flood_is_refused_until_the_next_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FOREIGN_ROWS_MAX", 10)
    world = World(settings=MeasurementSettings(rows_max=4))
    world.run(0.1)
    assert ["too-fast"] * 2 == hear(world, *(sample(n) for n in range(12)))
    assert [4, 4] == [len(batch.rows) for batch in world.batches]
    world.run(2)
    assert [] == hear(world, sample(20))
    world.run(2)
    assert 11 == len(foreign_rows(world))


def test_what_is_held_leaves_when_the_node_stops_and_then_no_more_is_taken() -> None:
    world = World()
    world.run(0.1)
    hear(world, sample(1))
    world.order(Stop())
    assert [] == hear(world, sample(2))
    world.run(3)
    assert 1 == len(foreign_rows(world))
    assert (1, 1) == (world.core.counters.foreign, world.core.counters.foreign_refused)


def test_a_stamp_is_that_of_the_message_whatever_the_clock_of_this_node_says() -> None:
    world = World()
    world.run(0.1)
    hear(world, sample(-AT), sample(samples.MS_MAX - AT))
    world.run(2)
    assert [0, ((1 << 63) - 1) // 1_000_000] == [stamp for _, _, stamp, *_ in foreign_rows(world)]
    assert world.now.wall // MILLISECOND > AT
