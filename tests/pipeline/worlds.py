"""Random histories of a small fleet: what its nodes sent, in which order it arrived, and what the tables must hold."""

from typing import NamedTuple

from tests.pipeline import oracle
from tests.pipeline.ground import (
    CPU,
    DRAIN,
    ERA,
    LOAD,
    MEM,
    NET,
    OTHER_DRAIN,
    SEEN,
    A,
    B,
    Ground,
    at_ms,
    era_end,
    lost,
    taken,
)
from tests.pipeline.ground import single as one
from weft.base.chance import Chance
from weft.base.records import Record
from weft.pipeline.tables import ROLLUP_1D, ROLLUP_1H, ROLLUP_1M

SERIES = (CPU, MEM, NET, SEEN, LOAD)
BAD = b"\xc1"
Parts = list[tuple[Record, list[oracle.Row]]]


class Arrival(NamedTuple):
    """One batch: records per segment, and what the oracle is told."""

    segments: list[tuple[str, list[Record]]]
    rows: list[oracle.Row]
    losses: list[oracle.Id]


class World(NamedTuple):
    arrivals: list[Arrival]
    ends: dict[tuple[str, int], int]

    def expected(self) -> oracle.Tables:
        return oracle.tables_of([(arrival.rows, arrival.losses) for arrival in self.arrivals], self.ends)


def world(chance: Chance, batches: int = 4, numbers: int = 24) -> World:
    """Two nodes, one of them restarted; parts of their sequences lost, bad, twice, late, in any order."""
    parts: Parts = []
    losses: list[tuple[Record, list[oracle.Id]]] = []
    for origin, era in ((A, ERA), (A, ERA + 1), (B, ERA)):
        number = 1
        while number <= numbers:
            width = min(chance.randint(1, 5), numbers + 1 - number)
            kind = chance.random()
            if kind < 0.08:
                ids = [(origin, era, n) for n in range(number, number + width)]
                losses.append((lost(number, number + width - 1, origin, era), ids))
            elif kind < 0.14:
                parts.append((one(number, BAD, origin, era), [oracle.Row((origin, era, number), None)]))
                width = 1
            elif kind < 0.94:
                parts += [_part(chance, origin, era, number, width)] * chance.choice((1, 1, 1, 2))
            number += width
    chance.shuffle(parts)
    chance.shuffle(losses)
    ends = {(A, ERA): numbers}
    link: tuple[Record, list[oracle.Id]] = (era_end(numbers), [])
    return World([_arrival(chance, parts[i::batches], [*losses, link][i::batches]) for i in range(batches)], ends)


def _part(chance: Chance, origin: str, era: int, first: int, width: int) -> tuple[Record, list[oracle.Row]]:
    """A record of samples, and what the oracle is told of it. Counters sometimes run backwards."""
    rows, told = [], []
    for number in range(first, first + width):
        series = SERIES[chance.randrange(len(SERIES))]
        value = chance.choice((number * 10, number * 10, number * 2.5, chance.randint(0, 50)))
        base = chance.choice((number * 7, number * 7, 3)) if series in (CPU, LOAD) else None
        rows.append((series, value, base))
        told.append(oracle.Row((origin, era, number), series.config_name, series.type, at_ms(number), value, base))
    return taken(first, rows, origin, era), told


def _arrival(chance: Chance, parts: Parts, losses: list[tuple[Record, list[oracle.Id]]]) -> Arrival:
    """The parts of a batch over two drains; the oracle hears them as the least (drain, segment, row) goes first."""
    cut = chance.randint(0, len(parts))
    segments, rows = [], []
    for drain, some in ((DRAIN, parts[:cut]), (OTHER_DRAIN, parts[cut:])):
        if some:
            segments.append((drain, [record for record, _ in some]))
            rows += [row for _, told in some for row in told]
    if losses:
        segments.append((DRAIN, [record for record, _ in losses]))
    return Arrival(segments, rows, [number for _, ids in losses for number in ids])


def play(ground: Ground, arrival: Arrival) -> None:
    """Take one batch."""
    for drain, records in arrival.segments:
        ground.write(*records, drain=drain)
    ground.take()


def compare(ground: Ground, expected: oracle.Tables) -> None:
    """Every table against the oracle; the gold tables must have been folded."""
    rows = ground.rows("silver.samples")
    assert sorted(expected.silver) == [(row["origin"], row["era"], row["sequence"]) for row in rows]
    assert [float(expected.silver[key].value) for key in sorted(expected.silver)] == [row["value"] for row in rows]
    refused = {row[:3] for row in ground.rows("quarantine.samples", "origin", "era", "sequence")}
    assert expected.refused == refused
    values = ground.rows("silver.values")
    assert sorted(expected.values) == [(row["origin"], row["era"], row["sequence"]) for row in values]
    assert [expected.values[key] for key in sorted(expected.values)] == [
        (row["from_sequence"], row["result"], row["reason"]) for row in values
    ]
    compare_gold(ground, expected)


def compare_gold(ground: Ground, expected: oracle.Tables) -> None:
    names = {row["series"]: row["config_name"] for row in ground.rows("silver.series", order=())}
    for table, minutes in ((ROLLUP_1M, 1), (ROLLUP_1H, 60), (ROLLUP_1D, 1440)):
        found = {
            (row["node"], names[row["series"]], round(row["window_start"].timestamp()) // 60): row
            for row in ground.rows(table.full_name)
        }
        assert len(found) == len(ground.rows(table.full_name))
        wanted = _wider(expected, minutes)
        assert {key: (n, resets) for key, (n, _, resets) in wanted.items()} == {
            key: (row["n"], row["resets"]) for key, row in found.items()
        }
        for key, (_, total, _) in wanted.items():
            assert abs(total - (found[key]["sum"] or 0.0)) <= 1e-9 * max(1.0, abs(total)), key
    told = [row for row in ground.rows("gold.completeness") if row["stream"] == "samples"]
    missing = {
        (row["origin"], row["era"]): [
            n for hole in row["missing_ranges"] for n in range(hole["first"], hole["last"] + 1)
        ]
        for row in told
    }
    assert expected.missing == missing
    for row in told:
        assert row["expected"] == row["received"] + row["lost"] + row["missing"], row


def _wider(expected: oracle.Tables, minutes: int) -> dict[tuple[str, str, int], tuple[int, float, int]]:
    """The oracle's windows, joined to windows of so many minutes: n, sum, resets."""
    wide: dict[tuple[str, str, int], tuple[int, float, int]] = {}
    for (node, name, minute), (n, total, _, _, resets) in expected.windows.items():
        key = (node, name, minute // minutes * minutes)
        before = wide.get(key, (0, 0.0, 0))
        wide[key] = (before[0] + n, before[1] + total, before[2] + resets)
    return wide
