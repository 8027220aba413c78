"""`aggregate`: windows by record time, told once, exact over tiers and through crashes (CHN-067, CHN-033)."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chains.rig import ERA, WALL, Rig, Site
from weft.base.mail import INBOX, OUTBOX, Mail, of_record, to_record
from weft.base.now import SECOND
from weft.base.records import Record, StreamRecord
from weft.cores.chains import limits
from weft.cores.chains.messages import Placed, PlanFilters
from weft.cores.chains.settings import parse_filters
from weft.cores.chains.trial import parse_trials, play

LINES = (Path(__file__).parents[1] / "vectors" / "chains-filters.jsonl").read_text("utf-8").splitlines()
VECTOR = next(vector["means"] for vector in map(json.loads, LINES) if vector["id"] == "aggregate")
TABLE: dict[str, Any] = {
    "name": "sums",
    "kind": "aggregate",
    "types": ["t"],
    "dir": "in",
    "window": "10s",
    "group": ["name"],
    "functions": ["mean"],
}


def specs(*tables: dict[str, Any]) -> tuple[Any, ...]:
    found, mistakes = parse_filters(list(tables))
    assert [] == mistakes
    return tuple(found)


def alone(*tables: dict[str, Any], entries: Any = (), era: int = ERA, level: str = "collector") -> tuple[Rig, Site]:
    """One node below a parent that keeps everything that it is sent."""
    rig = Rig()
    rig.mono = 0
    rig.parents = {"B": None}
    site = rig.sites["B"] = Site(rig, "B", era)
    site.core.command(Placed(level, "" if level == "root" else "C"), rig.now)
    site.core.command(PlanFilters(specs(*tables)), rig.now)
    site.core.restore(list(enumerate(entries, 1)), rig.now)
    rig.settle()
    return rig, site


def letter(rig: Rig, sequence: int, *records: dict[str, Any], fmt: str = "msgpack", **more: Any) -> StreamRecord:
    said = {"origin": b"A" * 16, "era": 1, "sequence": sequence, "type": "t", "to": ("PARENTSOF",), **more}
    encode = {"msgpack": msgspec.msgpack.encode, "json": msgspec.json.encode}[fmt]
    frames = (encode(records[0] if len(records) == 1 else list(records)),)
    return to_record(Mail(frames=frames, fmt=fmt, at=rig.now.wall, **said), INBOX, rig.now.wall)


def arrive(rig: Rig, site: Site, record: StreamRecord) -> None:
    for kept in site.core.screen(record, rig.now):
        site.journal.append(kept)
    rig.settle()


def sent(site: Site) -> list[dict[str, Any]]:
    """What went up, decoded, without its sketch."""
    mails = [of_record(one) for one in site.journal if isinstance(one, StreamRecord) and one.stream == OUTBOX]
    return [{k: v for k, v in msgspec.msgpack.decode(mail.frames[0]).items() if k != "sketch"} for mail in mails]


def sums(site: Site) -> list[tuple[str, int, float]]:
    return [(record["name"], record["count"], record["sum"]) for record in sent(site)]


@pytest.mark.proves("CHN-067", part="windows, grace, corrections, order of emission, last, sketch: the vector")
def test_windows_are_told_as_the_vector_says() -> None:
    rig, site = alone(TABLE)
    expected = VECTOR["results"]
    begun = WALL // SECOND
    for number, (arrival, at, name, value) in enumerate(VECTOR["rows"], 1):
        rig.advance((arrival * SECOND - rig.mono) // 1_000_000)
        arrive(rig, site, letter(rig, number, {"t": (begun + at) * SECOND, "name": name, "value": value}))
    rig.advance(30_000)
    told = []
    for one in site.journal:
        if isinstance(one, StreamRecord) and one.stream == OUTBOX:
            record = msgspec.msgpack.decode(one.payload)
            at = (one.at - WALL) // SECOND
            spans = {key: record.pop(key) // SECOND - begun for key in ("start", "end", "last_t")}
            assert record.pop("t") // SECOND - begun == spans["start"]
            told.append({**record, **spans, "at": at, "due": at})
    assert expected == told


@pytest.mark.proves("CHN-067", part="aggregates of aggregates are the aggregate of all")
@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 19), st.sampled_from("xy"), st.floats(-1e6, 1e6)), min_size=1, max_size=40),
    st.lists(st.integers(0, 2), min_size=40, max_size=40),
)
def test_aggregates_of_aggregates_are_those_of_all(rows: list[tuple[int, str, float]], whose: list[int]) -> None:
    records = [{"t": WALL + at * SECOND, "name": name, "value": value} for at, name, value in rows]
    once = told_by(records)
    parts = [[one for one, who in zip(records, whose, strict=False) if who == which] for which in range(3)]
    twice = told_by([record for part in parts if part for record in told_by(part)])
    total = sum(abs(value) for _, _, value in rows)
    assert [comparable(record) for record in once] == [comparable(record) for record in twice]
    for one, other in zip(once, twice, strict=True):
        assert abs(one["sum"] - other["sum"]) <= 1e-12 * total
        assert abs(one["mean"] - one["sum"] / one["count"]) <= 1e-12 * total


def comparable(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in ("sum", "mean", "last")}


def told_by(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What an aggregate makes of records that all come at once."""
    rig, site = alone({**TABLE, "functions": ["mean", "p50", "p99"]})
    arrive(rig, site, letter(rig, 1, *records))
    rig.advance(60_000)
    mails = [of_record(one) for one in site.journal if isinstance(one, StreamRecord) and one.stream == OUTBOX]
    return [msgspec.msgpack.decode(mail.frames[0]) for mail in mails]


# Durability


def cut(journal: list[Record]) -> list[list[Record]]:
    """What a crash may leave of a journal: every beginning of it."""
    return [journal[:count] for count in range(len(journal) + 1)]


@pytest.mark.proves(
    "CHN-033", part="(c): one record says what was told and what it was made of; a crash anywhere counts once"
)
def test_whatever_a_crash_leaves_every_record_is_counted_once() -> None:
    def fill(rig: Rig, site: Site, first: int) -> None:
        for sequence in range(first, 4):
            start = WALL + (sequence % 2) * 10 * SECOND
            two = [{"t": start, "name": "x", "value": 1.0}, {"t": WALL + 10 * SECOND, "name": "y", "value": 2.0}]
            arrive(rig, site, letter(rig, sequence, *two))

    rig, site = alone(TABLE)
    fill(rig, site, 0)
    rig.advance(60_000)
    whole = sorted(sums(site))
    assert [("x", 2, 2.0), ("x", 2, 2.0), ("y", 4, 8.0)] == whole
    arrivals = [
        number for number, one in enumerate(site.journal) if isinstance(one, StreamRecord) and one.stream == INBOX
    ]
    for left in cut(site.journal):
        again, other = alone(TABLE, entries=left, era=ERA + 1)
        other.journal = list(left)
        known = sum(number < len(left) for number in arrivals)
        fill(again, other, known)  # whoever has no acknowledgement sends it once more
        again.advance(60_000)
        assert whole == sorted(sums(other)), f"after {len(left)} records"
        assert 0 == len(other.core.inbox)


@pytest.mark.proves("CHN-033", part="(d): what is absorbed on `out` is durable before its sender hears `deleted`")
def test_what_is_taken_on_out_is_in_the_journal_and_is_counted_after_a_crash() -> None:
    table = {**TABLE, "dir": "out"}
    rig, site = alone(table)
    for tag, value in ((1, 1.5), (2, 2.5)):
        rig.send("B", "s", tag, json.dumps({"t": WALL, "name": "x", "value": value}), fmt="json")
    assert ["deleted", "deleted"] == [event[5] for event in rig.events if event[0] == "status"]
    assert [INBOX, INBOX] == [one.stream for one in site.journal if isinstance(one, StreamRecord)]
    again, other = alone(table, entries=site.journal, era=ERA + 1)
    again.advance(60_000)
    told = [json.loads(one.payload) for one in other.journal if isinstance(one, StreamRecord)]
    assert [("x", 2, 4.0)] == [(record["name"], record["count"], record["sum"]) for record in told]
    assert 0 == len(other.core.inbox)


def test_what_was_taken_on_out_goes_up_as_it_was_when_its_filter_is_gone() -> None:
    rig, site = alone({**TABLE, "dir": "out"})
    payload = json.dumps({"t": WALL, "name": "x", "value": 1.5})
    rig.send("B", "s", 1, payload, fmt="json")
    again, other = alone(entries=site.journal, era=ERA + 1)
    again.advance(1_000)
    up = [one for one in other.journal if isinstance(one, StreamRecord) and one.stream == OUTBOX]
    assert [(1, payload.encode())] == [(one.sequence, one.payload) for one in up]


# What stays, what goes on, what is refused


def test_what_does_not_match_passes_and_what_has_no_number_is_left_to_on_error() -> None:
    for on_error, left in (("keep", [{"name": "x", "value": "1"}]), ("drop", [])):
        table = {**TABLE, "on_error": on_error, "where": {"name": {"in": ["x"]}}}
        test = {"name": "t", "type": "t", "dir": "in", "until": "1m", "passes": [], "sends": []}
        send = [[{"name": "x", "value": 3}, {"name": "y", "value": 4}, {"name": "x", "value": "1"}]]
        filters, trials, _ = parse_trials({"chains": {"filter": [table], "test": [{**test, "send": send}]}})
        found = play(filters, trials[0]).found
        assert [[{"name": "y", "value": 4}, *left]] == found["passes"]
        assert [("x", 1, 3.0)] == [(told["name"], told["count"], told["sum"]) for told in found["sends"]]


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), 1e301])
@pytest.mark.parametrize("place", range(3))
def test_a_number_that_cannot_be_summed_is_refused_wherever_it_stands(odd: float, place: int) -> None:
    values = [1.0, 2.0]
    values.insert(place, odd)
    rig, site = alone({**TABLE, "on_error": "drop"})
    arrive(rig, site, letter(rig, 1, *[{"t": WALL, "name": "x", "value": value} for value in values]))
    rig.advance(60_000)
    assert ([("x", 2, 3.0)], 1) == (sums(site), site.core.counters.links["sums"].failed)


@pytest.mark.parametrize(
    "change",
    [{"count": 0}, {"sum": "1"}, {"last_t": 1.5}, {"min": float("nan")}, {"sketch": 5}, {"count": 2}, {"max": None}],
)
def test_an_aggregate_that_is_none_is_refused_and_counted(change: dict[str, Any]) -> None:
    good = told_by([{"t": WALL, "name": "x", "value": 3.0}])[0]
    rig, site = alone({**TABLE, "on_error": "drop"})
    arrive(rig, site, letter(rig, 1, {**good, **change}))
    rig.advance(60_000)
    assert ([], 1) == (sent(site), site.core.counters.links["sums"].failed)


def test_on_out_what_is_told_goes_on_behind_the_filter() -> None:
    sums_out = {**TABLE, "dir": "out", "place": 10}
    hot = {"name": "hot", "kind": "match", "types": ["t"], "where": {"sum": {"gt": 5}}, "place": 20}
    rig, _ = alone(sums_out, hot)
    seen = rig.reg("B", "r", 1, {"dir": "out"})
    for tag, (name, value) in enumerate((("x", 3), ("x", 4), ("y", 1)), 1):
        rig.send("B", "s", tag, json.dumps({"t": WALL, "name": name, "value": value}), fmt="json")
    rig.advance(60_000)
    assert seen is rig.sites["B"].sessions["r"]
    told = [json.loads(event[5]) for event in rig.events if event[0] == "rec"]
    assert [("x", 7.0)] == [(record["name"], record["sum"]) for record in told]


def test_at_the_root_what_is_told_goes_on_to_the_journal() -> None:
    keep = {"name": "keep", "kind": "journal", "types": ["t"], "dir": "in"}
    rig, site = alone(TABLE, keep, level="root")
    arrive(rig, site, letter(rig, 1, {"t": WALL, "name": "x", "value": 3.0}))
    rig.advance(60_000)
    rows = [one for one in site.journal if isinstance(one, StreamRecord) and one.stream == 2]
    assert [3.0] == [msgspec.msgpack.decode(one.payload)["sum"] for one in rows]
    assert 0 == len(site.core.inbox)


@pytest.mark.proves(
    "CHN-070", part="a changed aggregate tells its open windows, partial, first; an equal one keeps them"
)
def test_a_changed_aggregate_tells_what_is_open_first_and_an_equal_one_goes_on() -> None:
    rig, site = alone(TABLE)
    arrive(rig, site, letter(rig, 1, {"t": WALL, "name": "x", "value": 3.0}))
    site.core.command(PlanFilters(specs({**TABLE, "functions": ["p99"], "place": 7})), rig.now)
    rig.settle()
    assert [] == sent(site)
    site.core.command(PlanFilters(specs({**TABLE, "window": "20s"})), rig.now)
    rig.settle()
    assert [(3.0, True)] == [(record["sum"], record["partial"]) for record in sent(site)]
    arrive(rig, site, letter(rig, 2, {"t": WALL, "name": "x", "value": 4.0}))
    site.core.command(PlanFilters(()), rig.now)
    rig.settle()
    assert [3.0, 4.0] == [record["sum"] for record in sent(site)]


@pytest.mark.proves("CHN-067", part="of more than may be open the oldest is told early")
def test_of_more_groups_than_may_be_open_the_oldest_is_told_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GROUPS_OPEN_MAX", 2)
    rig, site = alone(TABLE)
    for number, at in enumerate((20, 0, 10), 1):
        arrive(rig, site, letter(rig, number, {"t": WALL + at * SECOND, "name": "x", "value": float(at)}))
    rig.advance(1)
    assert [(0.0, True)] == [(record["sum"], record.get("partial")) for record in sent(site)]


def test_what_brings_about_more_than_sixteen_messages_is_not_taken() -> None:
    rig, site = alone(TABLE)
    arrive(rig, site, letter(rig, 1, {"t": WALL, "name": "x", "value": 3.0}, depth=limits.DEPTH_MAX))
    rig.advance(60_000)
    assert ([], 1) == (sent(site), site.core.counters.links["sums"].failed)


# batch


BATCH = {"name": "b", "kind": "batch", "types": ["t"], "dir": "in", "count": 3, "within": "5s"}


@pytest.mark.proves("CHN-068", part="batch")
def test_messages_become_the_frames_of_one_when_they_are_enough_or_it_is_time() -> None:
    rig, site = alone(BATCH)
    for sequence in range(1, 6):
        arrive(rig, site, letter(rig, sequence, {"n": sequence}))
    rig.advance(0)
    assert [[1, 2, 3]] == frames_of(site)
    assert 2 == len(site.core.inbox)
    rig.advance(4_999)
    assert [[1, 2, 3]] == frames_of(site)
    rig.advance(1)
    assert [[1, 2, 3], [4, 5]] == frames_of(site)
    assert 0 == len(site.core.inbox)


def frames_of(site: Site) -> list[list[int]]:
    mails = [of_record(one) for one in site.journal if isinstance(one, StreamRecord) and one.stream == OUTBOX]
    return [[msgspec.msgpack.decode(frame)["n"] for frame in mail.frames] for mail in mails]


@pytest.mark.proves("CHN-068", part="batch: through a crash anywhere, each message once")
def test_whatever_a_crash_leaves_every_message_is_in_one_batch() -> None:
    rig, site = alone(BATCH)
    for sequence in range(1, 5):
        arrive(rig, site, letter(rig, sequence, {"n": sequence}))
    rig.advance(60_000)
    arrivals = [
        number for number, one in enumerate(site.journal) if isinstance(one, StreamRecord) and one.stream == INBOX
    ]
    for left in cut(site.journal):
        again, other = alone(BATCH, entries=left, era=ERA + 1)
        other.journal = list(left)
        for sequence in range(1 + sum(number < len(left) for number in arrivals), 5):
            arrive(again, other, letter(again, sequence, {"n": sequence}))
        again.advance(60_000)
        assert [1, 2, 3, 4] == sorted(number for frames in frames_of(other) for number in frames), (
            f"after {len(left)} records"
        )


def test_a_snapshot_remembers_what_was_told_of_a_message_that_is_still_open() -> None:
    rig, site = alone(TABLE)
    early, later = {"t": WALL, "name": "x", "value": 1.0}, {"t": WALL + 50 * SECOND, "name": "x", "value": 2.0}
    arrive(rig, site, letter(rig, 1, early, later))
    rig.advance(20_000)
    assert [1.0] == [record["sum"] for record in sent(site)]
    again, other = alone(TABLE, entries=list(site.core.condense()), era=ERA + 1)
    again.advance(90_000)
    assert [2.0] == [record["sum"] for record in sent(other)]
