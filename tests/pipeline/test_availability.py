"""How long services were there (PIP-054), against an oracle that looks at each stretch of time by itself: no Spark."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.pipeline.ground import A, B
from tests.pipeline.plain import Row, lake_of, put
from weft.base.chance import Chance
from weft.lake.layout import Layout
from weft.pipeline.sql import Lake
from weft.pipeline.tables import CATALOG, COMPLETENESS, EVENTS, VIEWS

pytestmark = pytest.mark.prove("a filled lake")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_MS = 86_400_000
HOUR_MS = 3_600_000
START_MS = 20_600 * DAY_MS + 22 * HOUR_MS  # two hours before midnight
STATES = {"active": "up", "suspect": "suspect", "inactive": "down", "none": "down"}
PARTS = ("up_ms", "suspect_ms", "down_ms", "unknown_ms")


def told(sequence: int, state: str, ms: float, **more: Any) -> Row:
    """A change of an instance."""
    who = {"origin": A, "era": 1, "name": "thermo", "instance": "a", "op": "update"}
    return who | {"sequence": sequence, "state": state, "at": EPOCH + timedelta(milliseconds=ms)} | more


def event(ms: float, era: int = 1, origin: str = A) -> Row:
    """Any event: its node lives."""
    return {"origin": origin, "era": era, "sequence": 1, "event": "x", "at": EPOCH + timedelta(milliseconds=ms)}


class Broker(NamedTuple):
    """What a broker has told, and when it was heard of."""

    changes: list[Row]
    events: list[Row]
    counted: list[Row]


def ask(lake: Layout) -> list[Row]:
    with Lake(lake.root) as asked:
        rows: list[Row] = asked.query("FROM gold.availability ORDER BY broker, name, instance, day").to_pylist()
    return rows


def made(path: Path, *brokers: Broker) -> Layout:
    lake = lake_of(path)
    put(lake, CATALOG, *[row for broker in brokers for row in broker.changes])
    put(lake, EVENTS, *[row for broker in brokers for row in broker.events])
    if counted := [row for broker in brokers for row in broker.counted]:
        put(lake, COMPLETENESS, *counted)
    return lake


def spans(*rows: Row) -> list[tuple[int, ...]]:
    return [tuple(row[name] // HOUR_MS for name in PARTS) for row in rows]


def check_hours(path: Path) -> None:
    """In hours, from 22:00 on: what a person would say of it."""
    hour = HOUR_MS
    rows = [
        (1, "active", 0),
        (2, "suspect", 1),
        (3, "inactive", 1.5),
        (4, "active", 6),
        (5, "active", 8),
        (6, "none", 30),
    ]
    changes = [told(number, state, START_MS + at * hour) for number, state, at in rows]
    broker = Broker(changes, [event(START_MS - hour), event(START_MS + 40 * hour)], [])
    first, second, third = ask(made(path, broker))
    assert [(1, 0, 0, 22), (20, 0, 4, 0), (4, 0, 10, 10)] == spans(first, second, third), (
        "and it was not heard of after 14:00"
    )
    assert (hour // 2, hour // 2) == (first["suspect_ms"], first["down_ms"])
    assert [2, 1, 1] == [row["transitions"] for row in (first, second, third)], (
        "an update of what is up changes nothing"
    )
    assert [hour // 2, 4 * hour, 10 * hour] == [row["longest_outage_ms"] for row in (first, second, third)]
    assert date(2026, 5, 27) == first["day"]


@pytest.mark.proves("PIP-054")
def test_the_parts_of_a_day_are_what_a_person_would_say(tmp_path: Path) -> None:
    check_hours(tmp_path)


def check_unknown(path: Path) -> None:
    """The broker is away between two starts, and one of its changes is missing."""
    hour = HOUR_MS
    changes = [told(1, "active", START_MS + 2 * hour), told(2, "suspect", START_MS + 3 * hour)]
    changes += [told(4, "active", START_MS + 5 * hour), told(1, "inactive", START_MS + 12 * hour, era=2)]
    beats = [event(START_MS + 8 * hour), event(START_MS + 10 * hour, era=2), event(START_MS + 14 * hour, era=2)]
    (day,) = ask(made(path, Broker(changes, beats, [])))
    assert [(6, 0, 2, 16)] == spans(day), "1 + 3 up in the first start, none suspect, then 2 up and 2 down"


@pytest.mark.proves("PIP-054")
def test_nobody_knows_while_a_broker_is_away_or_a_change_is_missing(tmp_path: Path) -> None:
    check_unknown(tmp_path)


def test_what_another_stream_tells_of_a_broker_counts(tmp_path: Path) -> None:
    """Its samples were measured until later than its last event; and of the catalog a later change is known to exist."""
    stamps = {
        "first_at": EPOCH + timedelta(milliseconds=START_MS),
        "last_at": EPOCH + timedelta(milliseconds=START_MS + HOUR_MS),
    }
    counted = [{"stream": "samples", "origin": A, "era": 1, **stamps}]
    (row,) = ask(made(tmp_path / "a", Broker([told(1, "active", START_MS)], [], counted)))
    assert [(1, 0, 0, 23)] == spans(row)
    counted += [{"stream": "catalog", "origin": A, "era": 1, "highest_known": 2}]
    (row,) = ask(made(tmp_path / "b", Broker([told(1, "active", START_MS)], [], counted)))
    assert [(0, 0, 0, 24)] == spans(row)
    (row,) = ask(made(tmp_path / "c", Broker([told(1, "active", START_MS)], [], [])))
    assert (DAY_MS, 0) == (row["unknown_ms"], row["transitions"])


# Against an oracle


def world(chance: Chance, origin: str) -> Broker:
    """Three starts of a broker with two instances; its clock is set back now and then, records are missing."""
    changes, events, counted = [], [], []
    ms = START_MS
    for era in (1, 2, 3):
        sequence = 0
        for _ in range(chance.randint(1, 8)):
            ms += chance.choice((-20, 1, 700, HOUR_MS, 7 * HOUR_MS, 0))
            sequence += chance.choice((1, 1, 1, 2))
            state = chance.choice(tuple(STATES))
            changes.append(
                told(sequence, state, ms + chance.random() / 2, origin=origin, era=era, instance=chance.choice("ab"))
            )
        events.append(event(ms + chance.choice((0, 5, HOUR_MS)), era, origin))
        counted.append(
            {"stream": "catalog", "origin": origin, "era": era, "highest_known": sequence + chance.choice((0, 0, 1))}
        )
        ms += chance.choice((-50, 3, 20 * HOUR_MS))
    return Broker(changes, events, counted)


class Life(NamedTuple):
    """A start of a broker, from when to when it was heard of."""

    era: int
    first: int
    last: int


def lives_of(broker: Broker) -> Iterator[Life]:
    upto = 0
    for era in sorted({row["era"] for row in broker.changes}):
        heard = [millis(row) for row in broker.changes + broker.events if row["era"] == era]
        first, upto = max(min(heard), upto), max(*heard, upto)
        yield Life(era, first, upto)


def known_of(broker: Broker, lives: list[Life], stamps: dict[tuple[int, int], int]) -> list[tuple[int, int]]:
    """Between which instants nothing is missing: their numbers follow one another."""
    highest = {row["era"]: row["highest_known"] for row in broker.counted}
    found = []
    for life in lives:
        own = sorted((number, ms) for (era, number), ms in stamps.items() if era == life.era)
        points = [(0, life.first), *own, (highest[life.era] + 1, life.last)]
        found += [(a, b) for (n, a), (m, b) in pairwise(points) if m == n + 1 and a < b]
    return found


def millis(row: Row) -> int:
    stamp: datetime = row["at"]
    return (stamp - EPOCH) // timedelta(milliseconds=1)


def oracle(broker: Broker) -> list[Row]:
    """Every stretch of time between two instants that matter is judged by itself."""
    lives = list(lives_of(broker))
    begin = {life.era: life.first for life in lives}
    stamps: dict[tuple[int, int], int] = {}
    now = 0
    for row in sorted(broker.changes, key=lambda row: (row["era"], row["sequence"])):
        stamps[row["era"], row["sequence"]] = now = max(now, begin[row["era"]], millis(row))
    known = known_of(broker, lives, stamps)
    found = []
    for instance in sorted({row["instance"] for row in broker.changes}):
        own = sorted((r["era"], r["sequence"], r["state"]) for r in broker.changes if r["instance"] == instance)
        turns = [(stamps[era, number], STATES[state]) for era, number, state in own]
        days = range(
            turns[0][0] // DAY_MS, 1 + max(turns[-1][0], 0 if own[-1][2] == "none" else lives[-1].last) // DAY_MS
        )
        for day in days:
            cuts = {ms for ms, _ in turns} | {ms for pair in known for ms in pair}
            inside = sorted(ms for ms in cuts | {day * DAY_MS, (day + 1) * DAY_MS} if 0 <= ms - day * DAY_MS <= DAY_MS)
            row, outage = dict.fromkeys(PARTS, 0), [0]
            for start, end in pairwise(inside):
                said = [state for ms, state in turns if ms <= start]
                is_known = any(first <= start and end <= last for first, last in known)
                state = said[-1] if said and is_known else "unknown"
                row[f"{state}_ms"] += end - start
                rose = any(ms == start and its != "down" for ms, its in turns)
                before = 0 if rose else outage[-1]
                outage.append(before + end - start if state == "down" else 0)
            moves = [ms for (_, before), (ms, after) in pairwise(turns) if before != after and ms // DAY_MS == day]
            found.append({"day": EPOCH.date() + timedelta(days=day), "name": "thermo", "instance": instance,
                          "broker": broker.changes[0]["origin"], **row, "transitions": len(moves),
                          "longest_outage_ms": max(outage)})  # fmt: skip
    return found


def check_worlds(path: Path, seeds: range) -> None:
    for seed in seeds:
        chance = Chance(f"availability {seed}")
        brokers = [world(chance, origin) for origin in sorted((A, B))]
        found = ask(made(path / str(seed), *brokers))
        assert [row for broker in brokers for row in oracle(broker)] == found, f"seed {seed}"
        assert {DAY_MS} == {sum(row[part] for part in PARTS) for row in found}, f"seed {seed}"


@pytest.mark.proves("PIP-054")
def test_all_parts_are_as_an_oracle_counts_them_and_add_up_to_the_day(tmp_path: Path) -> None:
    check_worlds(tmp_path, range(6))


def check_all(path: Path) -> None:
    check_hours(path / "hours")
    check_unknown(path / "unknown")
    check_worlds(path / "worlds", range(3))


BUGS = {
    "silence of the broker is up": ("GROUP BY broker, island", "GROUP BY broker"),
    "missing changes do not matter": ("lead(sequence) OVER numbers = sequence + 1 AS", "true AS"),
    "suspect is down": ("WHEN 'suspect' THEN 'suspect'", "WHEN 'suspect' THEN 'down'"),
    "a day is cut at its end only": ("greatest(first, number * 86400000)", "first"),
    "an update is a transition": ("WHERE state IS DISTINCT FROM before", ""),
    "by arrival of numbers, not of starts": ("ORDER BY era, sequence) AS before", "ORDER BY sequence, era) AS before"),
    "outages are summed": ("max(ms) FILTER (state = 'down')", "sum(ms) FILTER (state = 'down')"),
    "a clock that is set back": (
        "ROWS UNBOUNDED PRECEDING\n    ) AS ms", "ROWS BETWEEN CURRENT ROW AND CURRENT ROW\n    ) AS ms"
    ),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_would_be_seen(bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    view = VIEWS["gold.availability"]
    assert BUGS[bug][0] in view.sql
    monkeypatch.setitem(VIEWS, "gold.availability", view._replace(sql=view.sql.replace(*BUGS[bug])))
    with pytest.raises(AssertionError):
        check_all(tmp_path)
