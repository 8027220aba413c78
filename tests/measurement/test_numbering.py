"""Numbers: from 1 in every era, no hole, none twice, and a restart knows where the era before ended (MEA-023)."""

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.measurement.world import NODE, World, check_numbers, metrics, records
from weft.base.errors import UserError
from weft.base.now import MILLISECOND, Now
from weft.base.records import CoreRecord, DamageRecord, EraRecord, Record, SafeRecord, Stream, StreamRecord
from weft.cores.measurement.core import Measurement
from weft.cores.measurement.messages import (
    MeasurementSettings,
    MetricSpec,
    NumberBatch,
    PlanMetrics,
    Reading,
    SampleBatch,
    Stop,
)
from weft.cores.measurement.numbering import Numbering
from weft.wire import samples

PLAN = metrics(a={"detail": "CPU", "rate": "1s"}, b={"detail": "MEMORY", "rate": "700ms"})
OTHER = b"another node 16b"


def restored(kept: Iterable[Record], era: int) -> Measurement:
    core = Measurement(MeasurementSettings(), NODE, era)
    core.restore(enumerate(kept, 1), Now(0, 0))
    return core


@pytest.mark.proves("MEA-023")
def test_first_era_of_a_node_has_nothing_before_it() -> None:
    world = World(PLAN)
    world.run(5)
    first = world.journal[0]
    assert isinstance(first, StreamRecord)
    assert (Stream.SAMPLES, NODE, 7, 1, "weft.metric") == (
        first.stream, first.origin, first.era, first.sequence, first.key
    )  # fmt: skip
    batch = samples.decode(first.payload)
    assert (batch.t0_ms * MILLISECOND, {"n": len(batch.rows)}) == (first.at, first.attributes)
    assert first.at <= first.received <= world.now.wall
    check_numbers(world.journal)
    assert world.taken[: len(world.numbered)] == world.numbered


@pytest.mark.proves("MEA-023", "JRN-042")
@given(st.lists(st.tuples(st.integers(0, 4_000), st.booleans()), min_size=1, max_size=6))
def test_restarts_at_any_moment_leave_no_hole_and_reuse_no_number(lives: list[tuple[int, bool]]) -> None:
    check_restarts(lives)


def check_restarts(lives: list[tuple[int, bool]]) -> None:
    """Live a while, crash or stop in order, start again with what was durable."""
    journal: list[Record] = []
    for era, (ms, is_orderly) in enumerate(lives, 10):
        world = World(PLAN, era=era, kept=journal)
        world.run(ms / 1_000)
        if is_orderly:
            world.order(Stop())
            assert world.taken == world.numbered[-len(world.taken) :]
        journal = world.journal
    check_numbers(journal)
    identities = [
        (record.era, number) for record in records(journal) for number in range(record.sequence, record.last + 1)
    ]
    assert len(dict.fromkeys(identities)) == len(identities)


@pytest.mark.proves("JRN-042")
@given(st.integers(0, 6_000), st.integers(0, 40))
def test_condensed_at_any_record_is_as_good_as_the_whole_journal(ms: int, cut: int) -> None:
    world = World(PLAN, era=3)
    world.run(3)
    later = World(PLAN, era=5, kept=world.journal)
    later.run(ms / 1_000)
    journal = later.journal
    cut = min(cut, len(journal))
    snapshot = list(restored(journal[:cut], era=9).condense())
    again = restored([*snapshot, *journal[cut:]], era=9)
    overlapping = restored([*snapshot, *journal[max(0, cut - 2) :]], era=9)
    whole = restored(journal, era=9)
    assert list(whole.condense()) == list(again.condense()) == list(overlapping.condense())


def test_condensed_while_running_tells_of_the_running_era() -> None:
    world = World(PLAN, era=5)
    assert [] == list(world.core.condense())
    world.run(4)
    end = (5, records(world.journal)[-1].last)
    assert [CoreRecord("measurement", 1, msgspec.msgpack.encode(end))] == list(world.core.condense())
    world = World(PLAN, era=8, kept=list(world.core.condense()))
    world.run(2)
    assert EraRecord(Stream.SAMPLES, NODE, 8, *end) in world.journal


def test_an_era_without_samples_is_passed_over() -> None:
    world = World(PLAN, era=5)
    world.run(2)
    end = records(world.journal)[-1].last
    silent = World((), era=6, kept=world.journal)
    silent.run(100)
    assert silent.journal == world.journal
    third = World(PLAN, era=7, kept=silent.journal)
    third.run(2)
    assert [EraRecord(Stream.SAMPLES, NODE, 7, 5, end)] == [r for r in third.journal if isinstance(r, EraRecord)]


def test_what_others_wrote_changes_nothing() -> None:
    strange: list[Record] = [
        CoreRecord("carrier", 1, b"\xff"),
        StreamRecord(Stream.EVENTS, NODE, 3, 9, 0, 0, "node.started", b"", {}),
        StreamRecord(Stream.SAMPLES, OTHER, 4, 9, 0, 0, "weft.metric", b"", {"n": 5}),
        EraRecord(Stream.SAMPLES, OTHER, 4, 3, 8),
        SafeRecord(Stream.SAMPLES, NODE, 4, 8),
        DamageRecord(1, 2, "f", "why"),
    ]
    assert (0, 0) == restored(strange, era=5).numbering.before


@pytest.mark.proves("JRN-014")
def test_a_kind_of_a_newer_version_is_not_guessed_at() -> None:
    with pytest.raises(UserError) as refusal:
        restored([CoreRecord("measurement", 9, b"")], era=5)
    assert "newer-data" == refusal.value.code


def test_a_filter_leaves_no_hole() -> None:
    world = World(PLAN)
    cuts = iter(range(1_000))

    def thin(batch: SampleBatch) -> SampleBatch | None:
        number = next(cuts)
        return None if number % 3 == 0 else samples.select(batch, batch.rows[number % 2 :])

    world.let_pass = thin
    world.run(60)
    check_numbers(world.journal)
    counters = world.core.counters
    assert (len(world.taken), len(world.numbered)) == (counters.taken + len(world.core._batch), counters.numbered)
    assert 0 < counters.numbered < counters.taken


def test_an_emptied_batch_is_not_numbered() -> None:
    world = World(())
    world.order(NumberBatch(SampleBatch(0, (), [])))
    assert [] == world.journal


def test_a_batch_that_grew_in_the_chain_is_numbered_in_pieces() -> None:
    world = World(PLAN)
    world.let_pass = lambda batch: SampleBatch(batch.t0_ms, batch.series, batch.rows * 900)
    world.run(3)
    check_numbers(world.journal)
    assert all(record.attributes["n"] <= 1_000 for record in records(world.journal))
    assert len(world.numbered) == 900 * sum(len(batch.rows) for batch in world.batches)


def test_batches_say_which_configuration_asked_for_them() -> None:
    world = World(PLAN)
    world.run(3)
    world.order(PlanMetrics(PLAN, number=(1 << 40) + 8))
    world.run(3)
    assert [None, (1 << 40) + 8] == list(
        dict.fromkeys(record.attributes.get("cfg") for record in records(world.journal))
    )


@pytest.mark.prove("many long lives")
@pytest.mark.proves("MEA-022")
@given(st.lists(st.integers(1, 700), min_size=1, max_size=12), st.integers(1, 15))
def test_batches_are_never_too_large_nor_too_old(series: list[int], labels: int) -> None:
    world = World(metrics(m={"detail": "DISK_USE", "rate": "100ms"}))
    sizes = iter(series * 3)

    def answer(spec: MetricSpec, at_ms: int) -> Reading:
        rest = tuple((f"l{n}", "x" * 200) for n in range(labels - 1))
        found = tuple(((("n", str(n)), *rest), n, 1 << 40) for n in range(next(sizes, 0)))
        return Reading(spec.name, at_ms, found)

    world.answer = answer
    world.run(7)
    assert world.taken == world.numbered
    for record in records(world.journal):
        assert len(record.payload) <= 256 << 10
        assert record.attributes["n"] <= 1_000
        assert record.received - record.at <= 1_001 * MILLISECOND


def test_numbering_is_not_confused_by_records_of_before_a_snapshot() -> None:
    numbering = Numbering(NODE, 9)
    late, early = (StreamRecord(Stream.SAMPLES, NODE, era, 5, 0, 0, "", b"", {"n": 3}) for era in (6, 4))
    numbering.restore([(1, late), (2, early), (3, EraRecord(Stream.SAMPLES, NODE, 6, 4, 7))])
    assert (6, 7) == numbering.before
