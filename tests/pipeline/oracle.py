"""What the tables must hold, computed from the records alone, in plain Python (PIP-072).

Slow and simple on purpose: sets of numbers instead of ranges, the whole history at once instead of batch by batch.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from weft.base.calculated import FORMULAS, calculate

Id = tuple[str, int, int]


class Row(NamedTuple):
    """A row as it arrives; `series` None: it cannot be read."""

    id: Id
    series: str | None
    kind: str = ""
    at_ms: int = 0
    value: float = 0
    base: float | None = None


class Tables(NamedTuple):
    silver: dict[Id, Row]
    refused: set[Id]
    values: dict[Id, tuple[int | None, float | None, str | None]]
    windows: dict[tuple[str, str, int], tuple[int, float, float, float, int]]
    missing: dict[tuple[str, int], list[int]]


def tables_of(batches: Iterable[tuple[list[Row], list[Id]]], ends: dict[tuple[str, int], int]) -> Tables:
    """From batches of rows (in the order in which the least stays) and announced losses, to tables."""
    covered: set[Id] = set()
    hollow: set[Id] = set()
    silver: dict[Id, Row] = {}
    late: set[Id] = set()
    refused: set[Id] = set()
    for rows, losses in batches:
        announced = set(hollow)
        for row in rows:
            if row.id in covered:
                continue
            covered.add(row.id)
            late |= {row.id} & announced
            if row.series is None:
                refused.add(row.id)
            else:
                silver[row.id] = row
        hollow |= {number for number in losses if number not in covered} | refused
    values = _values({i: row for i, row in silver.items() if i not in late}, covered | hollow, hollow)
    values |= {i: (None, row.value, None) for i, row in silver.items() if row.kind not in FORMULAS}
    return Tables(silver, refused, values, _windows(values, silver), _missing(covered | hollow, ends))


def _values(on_time: dict[Id, Row], known: set[Id], hollow: set[Id]) -> dict[Id, Any]:
    found = {}
    before: dict[tuple[str, int, str | None], Row] = {}
    for (origin, era, number), row in sorted(on_time.items()):
        last = before.get((origin, era, row.series))
        before[origin, era, row.series] = row
        if last is None or row.kind not in FORMULAS:
            continue
        between = {(origin, era, n) for n in range(last.id[2] + 1, number)}
        if between <= known:
            result, reason = calculate(row.kind, last[3:], row[3:])
            across = "across-lost" if between & hollow else None
            found[row.id] = (last.id[2], None if result is None else float(result), reason or across)
    return found


def _windows(values: dict[Id, Any], silver: dict[Id, Row]) -> dict[Any, Any]:
    kept: dict[Any, list[Any]] = defaultdict(list)
    for number, (_, result, reason) in values.items():
        row = silver[number]
        kept[number[0], row.series, row.at_ms // 60_000].append((result, reason))
    windows = {}
    for key, entries in kept.items():
        good = [result for result, _ in entries if result is not None]
        resets = sum(reason in ("reset", "base-reset") for _, reason in entries)
        windows[key] = (len(good), math.fsum(good), min(good, default=math.nan), max(good, default=math.nan), resets)
    return windows


def _missing(known: set[Id], ends: dict[tuple[str, int], int]) -> dict[tuple[str, int], list[int]]:
    highest = dict(ends)
    for origin, era, number in known:
        highest[origin, era] = max(highest.get((origin, era), 0), number)
    return {key: [n for n in range(1, last + 1) if (*key, n) not in known] for key, last in highest.items()}
