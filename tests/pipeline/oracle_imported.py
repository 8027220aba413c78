"""What the tables must hold of imported logs, computed from their lines alone, in plain Python (PIP-097, PIP-099)."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from weft.base.calculated import calculate

Id = tuple[str, int, int]
Pair = tuple[Id | None, float | None, str | None]


class Told(NamedTuple):
    """A line, and where it stands in the lake."""

    id: Id
    name: str
    kind: str
    at: int
    value: float
    base: float | None


class Expected(NamedTuple):
    silver: dict[Id, bool]
    """Which samples there are, and whether others contradict them."""
    twins: dict[Id, Id]
    """Which rows repeat a sample, and which one."""
    values: dict[Id, Pair]
    windows: dict[tuple[str, str, int], list[tuple[float | None, str | None]]]
    """By source, name and minute: the results of the samples in it."""


def expected(told: Iterable[Told]) -> Expected:
    """From lines in the order in which they were imported, to tables."""
    first: dict[tuple[str, str, int], dict[tuple[float, float | None], Told]] = defaultdict(dict)
    twins = {}
    for line in told:
        said = first[line.id[0], line.name, line.at]
        counts = said.setdefault((line.value, line.base), line)
        if counts is not line:
            twins[line.id] = counts.id
    silver = {line.id: len(said) > 1 for said in first.values() for line in said.values()}
    samples = [line for said in first.values() for line in said.values()]
    values = _values(samples)
    windows = defaultdict(list)
    for line in samples:
        if line.id in values:
            windows[line.id[0], line.name, line.at // 60_000].append(values[line.id][1:])
    return Expected(silver, twins, values, dict(windows))


def _values(samples: list[Told]) -> dict[Id, Pair]:
    values: dict[Id, Pair] = {line.id: (None, line.value, None) for line in samples if line.kind == "basic"}
    before: dict[tuple[str, str], Told] = {}
    for line in sorted((line for line in samples if line.kind != "basic"), key=lambda line: (line.at, *line.id[1:])):
        last = before.get((line.id[0], line.name))
        before[line.id[0], line.name] = line
        if last is not None:
            result, reason = calculate(line.kind, (last.at, last.value, last.base), (line.at, line.value, line.base))
            values[line.id] = last.id, None if result is None else float(result), reason
    return values
