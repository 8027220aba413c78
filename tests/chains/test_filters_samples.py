"""What sample, dedupe and expressions do to batches of samples, as at the `in` chain of a collector (CHN-060..064)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chains.views import at
from weft.base.effects import Tell
from weft.base.mail import INBOX, OUTBOX, Mail, of_record, to_record
from weft.base.records import LostRecord, Record, Stream, StreamRecord
from weft.cores.chains.core import Chains
from weft.cores.chains.filters import NOWHERE, House
from weft.cores.chains.links import FilterLink
from weft.cores.chains.messages import BatchPassed, ChainsSettings, PassBatch
from weft.cores.chains.settings import parse_filters
from weft.cores.chains.states import Verdict
from weft.cores.chains.view import History, View
from weft.wire import samples
from weft.wire.samples import Row, SampleBatch, Series

T0_MS = 1_795_000_000_000
A, B = b"a" * 16, b"b" * 16
CPU = Series("cpu.user", "CPU", "basic", {"cpu": "0"})
MEM = Series("mem", "MEMORY", "basic", {})


def link(house: House = NOWHERE, **table: Any) -> FilterLink:
    specs, mistakes = parse_filters([{"name": "f", "dir": "in", **table}])
    assert [] == mistakes
    return FilterLink(specs[0], house)


def batch(rows: list[tuple[int, int, float]]) -> SampleBatch:
    """Rows of (series, second, value)."""
    return SampleBatch(T0_MS, (CPU, MEM), [Row(which, 1_000 * second, value) for which, second, value in rows])


def kept(of: FilterLink, rows: list[tuple[int, int, float]], origin: bytes = A, ns: int = 0) -> list[int]:
    """Which rows stay, by their index."""
    view = View(batch(rows), origin, History(99))
    verdict = of.offer(view, at(ns))
    assert view.kept == list(range(len(rows))) or verdict in (Verdict.CHANGED, Verdict.DROPPED)
    return view.kept


MANY = [(n % 2, n, float(n)) for n in range(200)]


@pytest.mark.proves("CHN-062")
def test_a_sample_is_kept_or_not_by_origin_series_and_time_wherever_it_is_looked_at() -> None:
    found = kept(link(kind="sample", rate=0.5), MANY)
    assert all(30 < len([n for n in found if n % 2 == which]) < 70 for which in (0, 1)), "some of each series"
    assert found == kept(link(kind="sample", rate=0.5), MANY), "again, as after a restart"
    assert found == kept(link(House(node=A), kind="sample", rate=0.5), MANY, b""), (
        "on its own node, where it has no origin yet"
    )
    assert found != kept(link(kind="sample", rate=0.5), MANY, B)
    by_itself = [n for n, row in enumerate(MANY) if kept(link(kind="sample", rate=0.5), [row])]
    assert found == by_itself


@pytest.mark.proves("CHN-062")
def test_series_are_kept_or_not_as_a_whole_by_a_key() -> None:
    salted = [kept(link(kind="sample", rate=0.5, key=["name"], salt=salt), MANY) for salt in "abcdefgh"]
    cpu, mem = [n for n in range(200) if n % 2 == 0], [n for n in range(200) if n % 2]
    assert all(found in ([], cpu, mem, list(range(200))) for found in salted)
    assert len({len(found) for found in salted}) > 1


@pytest.mark.proves("CHN-062")
def test_every_counts_samples_by_key() -> None:
    assert [0, 3] == kept(link(kind="sample", every=3), [(0, 0, 1), (1, 0, 1), (0, 1, 1), (0, 2, 1), (0, 3, 1)])
    of = link(kind="sample", every=2, key=["name"])
    assert [0, 1, 3] == kept(of, [(0, 0, 1), (1, 0, 1), (0, 1, 1), (0, 2, 1)])
    assert [1] == kept(of, [(1, 4, 1), (1, 5, 1)])


@pytest.mark.proves("CHN-064")
def test_dedupe_passes_a_value_again_when_it_is_another_or_some_time_has_passed() -> None:
    of = link(kind="dedupe", fields=["name", "labels.cpu", "value"], within="10s")
    assert [0, 1, 3] == kept(of, [(0, 0, 5), (1, 0, 5), (0, 1, 5), (0, 2, 6)])
    assert [1] == kept(of, [(0, 3, 5), (0, 3, 7)], ns=9 * 10**9)
    assert [0] == kept(of, [(0, 4, 5)], ns=10 * 10**9)
    plain = link(kind="dedupe", fields=["name"], within="10s")
    assert [0, 1] == kept(plain, [(0, 0, 5), (1, 0, 5), (0, 1, 6)])


@pytest.mark.proves("CHN-061")
@pytest.mark.parametrize(
    "when, expected",
    [
        ("f.value > 5", [1]),
        ('f.name == "cpu.user" && f.labels.cpu == "0"', [0, 2]),
        ('f.detail == "MEMORY" && f.type == "basic"', [1]),
        ('type == "weft.metric" && dir == "in" && depth == 0 && size == 0', [0, 1, 2]),
        (f'origin == "{A.hex()}"', [0, 1, 2]),
        (f"ts == {(T0_MS + 2_000) * 1_000_000}", [2]),
    ],
)
def test_when_on_samples(when: str, expected: list[int]) -> None:
    assert expected == kept(link(kind="match", when=when), [(0, 0, 1.0), (1, 1, 9.0), (0, 2, 3.0)])


@pytest.mark.proves("CHN-061")
@pytest.mark.parametrize("on_error, expected", [("keep", [0, 1]), ("drop", [1])])
def test_a_sample_without_a_value_has_no_field_for_it(on_error: str, expected: list[int]) -> None:
    series = (Series("calls", "X", "delta", {}),)
    view = View(SampleBatch(T0_MS, series, [Row(0, 0, 5), Row(0, 1_000, 9)]), A, History(9))
    of = link(kind="match", when="f.value > 3", on_error=on_error)
    of.offer(view, at(0))
    assert (expected, 1) == (view.kept, of.counters.failed)


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 20), st.integers(-3, 3)), min_size=1, max_size=30),
    st.integers(1, 30),
    st.sampled_from(
        [
            {"kind": "sample", "rate": 0.5},
            {"kind": "sample", "every": 3, "key": ["name"]},
            {"kind": "dedupe", "fields": ["name", "value"], "within": "5s"},
            {"kind": "match", "when": "f.value > 0"},
            {"kind": "rate-limit", "count": 2, "key": ["labels.cpu"]},
        ]
    ),
)
def test_batched_samples_are_as_single_ones(
    rows: list[tuple[int, int, float]], size: int, table: dict[str, Any]
) -> None:
    found = []
    for step in (size, 1):
        of = link(**table)
        groups = [(start, rows[start : start + step]) for start in range(0, len(rows), step)]
        found.append([start + index for start, group in groups for index in kept(of, group)])
    assert found[0] == found[1]


def test_what_fields_samples_do_not_have_is_nothing() -> None:
    of = link(kind="match", types=["weft.metric", "app.x"], where={"host": {"exists": False}, "name": "mem"})
    assert [1] == kept(of, [(0, 0, 1.0), (1, 0, 1.0)])
    of = link(kind="dedupe", types=["*"], fields=["host", "value"], within="1s")
    assert [0, 2] == kept(of, [(0, 0, 1.0), (1, 0, 1.0), (1, 0, 2.0)])


def test_forward_lets_samples_be_they_travel_as_records() -> None:
    of = link(kind="forward", where={"name": "mem"})
    view = View(batch([(0, 0, 1.0), (1, 0, 1.0)]), A, History(9))
    assert (Verdict.PASSED, None) == (of.offer(view, at(0)), of.takes(view))


# In a node


def screened(core: Chains, record: StreamRecord) -> list[Record]:
    return list(core.screen(record, at(0)))


@pytest.mark.proves("CHN-062", "CHN-063", "CHN-064", "CHN-066")
@pytest.mark.parametrize(
    "table, expected",
    [
        ({"kind": "match", "when": "f.value >= 2"}, [2, 3, 3]),
        ({"kind": "sample", "every": 2}, [0, 2, 3]),
        ({"kind": "sample", "rate": 0.0}, []),
        ({"kind": "rate-limit", "count": 4}, [0, 1, 2, 3]),
        ({"kind": "dedupe", "fields": ["value"], "within": "1s"}, [0, 1, 2, 3]),
        ({"kind": "threshold", "above": 2}, [3, 3]),
    ],
)
def test_a_collector_filters_what_its_children_send_and_names_what_is_missing(
    table: dict[str, Any], expected: list[int]
) -> None:
    specs, mistakes = parse_filters([{"name": "f", "dir": "in", **table}])
    assert [] == mistakes
    body = samples.encode(batch([(0, n, value) for n, value in enumerate((0, 1, 2, 3, 3))]))
    record = StreamRecord(Stream.SAMPLES, A, 5, 11, 0, 0, "", body, {"n": 5})
    made = screened(Chains(specs, ChainsSettings(level="collector"), B, 1), record)
    kept_now = [one for one in made if isinstance(one, StreamRecord)]
    lost = [one for one in made if isinstance(one, LostRecord)]
    assert expected == [row.value for one in kept_now for row in samples.decode(one.payload).rows]
    numbers = [n for one in kept_now for n in range(one.sequence, one.last + 1)]
    assert [11, 12, 13, 14, 15] == sorted(numbers + [n for one in lost for n in range(one.first, one.last + 1)])


@pytest.mark.proves("CHN-065")
def test_a_collector_edits_and_thins_what_it_forwards() -> None:
    shared = {"types": ["app.x"], "dir": "in"}
    tables = [
        {"name": "up", "kind": "forward", **shared, "where": {"level": {"ge": 3}}},
        {"name": "mask", "kind": "edit", **shared, "edits": [["mask", "user"]], "place": 5},
        {"name": "once", "kind": "dedupe", **shared, "fields": ["level"], "within": "1m", "place": 6},
    ]
    specs, mistakes = parse_filters(tables)
    assert [] == mistakes
    core = Chains(specs, ChainsSettings(level="collector"), B, 1)
    made = []
    for sequence, level in enumerate((3, 1, 3, 4), 1):
        body = b'{"level":%d,"user":"ada"}' % level
        mail = Mail(
            origin=A, era=5, sequence=sequence, type="app.x", frames=(body,), to=("PARENTSOF",), fmt="json", via=(A,)
        )
        made += screened(core, to_record(mail, INBOX, 0))
    found = [
        (of_record(one).sequence, one.payload) for one in made if isinstance(one, StreamRecord) and one.stream == OUTBOX
    ]
    assert [(1, b'{"level":3,"user":"***"}'), (4, b'{"level":4,"user":"***"}')] == found


@pytest.mark.proves("CHN-062")
def test_two_nodes_keep_other_samples_and_their_parent_keeps_the_same_ones() -> None:
    table = {"name": "f", "kind": "sample", "rate": 0.5}
    specs, mistakes = parse_filters([table, {**table, "name": "g", "dir": "in"}])
    assert [] == mistakes
    left = []
    for node in (A, B):
        core = Chains(specs, ChainsSettings(level="sensor"), node, 1)
        core.command(PassBatch("out", "weft.metric", batch(MANY)), at(0))
        told = [effect.event for effect in core.effects() if isinstance(effect, Tell)]
        left += [event.batch for event in told if isinstance(event, BatchPassed)]
    assert [row.offset_ms for row in left[0].rows] != [row.offset_ms for row in left[1].rows]
    parent = Chains(specs, ChainsSettings(level="collector"), b"c" * 16, 1)
    record = StreamRecord(Stream.SAMPLES, A, 5, 1, 0, 0, "", samples.encode(left[0]), {"n": len(left[0].rows)})
    assert [record] == screened(parent, record)
