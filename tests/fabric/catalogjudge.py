"""Who judges rounds of a catalog: from the lake, and from what its clients heard, all that is wrong."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tests.fabric.catalogplayers import name_of
from weft.catalog import Change, Entry

INTERVAL_MS, LIVENESS = 700, 5
WHOLE_S = INTERVAL_MS * LIVENESS / 1000
"""Who is silent for so long is gone. Longer than a busy machine lets a process wait."""
RESTORED_S = max(WHOLE_S, 5.0)
SLACK_S = 5.0
"""So much later than that a busy machine may call somebody dead."""
CORNERS = 1.0
"""A process may have stood still so much longer than it knows."""


class Life(NamedTuple):
    """One process of services: its numbers, from when on all were approved, when it was hit, and how it ended."""

    numbers: range
    ready_at: float
    hit_at: float = float("inf")
    ended_at: float = float("inf")
    how: str = ""
    stood: tuple[tuple[float, float], ...] = ()
    """When the process itself stood still: nobody can say that it lived."""

    def lives_at(self, number: int, since: float, until: float) -> bool:
        """Whether this service lived all that time, so that everybody must know it."""
        if number not in self.numbers or not (self.ready_at <= since and until < self.hit_at):
            return False
        return not any(start <= until and since <= end + CORNERS for start, end in self.stood)


class Away(NamedTuple):
    """The broker was dead, or stood still."""

    hit_at: float
    back_at: float
    how: str


def awake(life: Life, aways: list[Away]) -> Life:
    """Less what it slept while the broker did: that is no silence."""
    stood = [
        (since, until)
        for since, until in life.stood
        if not any(away.hit_at - CORNERS < since and until < away.back_at + CORNERS for away in aways)
    ]
    return life._replace(stood=tuple(stood))


class Row(NamedTuple):
    """A change as the lake has it."""

    era: int
    sequence: int
    op: str
    name: str
    at: float
    reason: str
    epoch: str


def wrong_ends(rows: Iterable[Row], lives: list[Life]) -> Iterator[str]:
    """Nobody who lives is called silent, gone, or removed, whatever becomes of the broker (BEA-022)."""
    for row in rows:
        if row.op in ("inactive", "remove") and any(life.lives_at(number_of(row), row.at, row.at) for life in lives):
            yield f"{row.name} lived, and was told to be {row.op} ({row.reason}) at {row.at:.3f}"


def wrong_dead(rows: Iterable[Row], lives: list[Life], aways: list[Away]) -> Iterator[str]:
    """Who died is told to be gone in time (BEA-015), and who said goodbye has left."""
    gone: dict[str, list[Row]] = {}
    for row in rows:
        if row.op == "inactive":
            gone.setdefault(row.name, []).append(row)
    for life in lives:
        if life.how:
            due = life.ended_at + SLACK_S + (_patience(life, aways) if life.how == "killed" else 0)
            for number in life.numbers:
                after = [row for row in gone.get(name_of(number), []) if life.hit_at <= row.at]
                yield from _wrong_death(name_of(number), after[:1], life, due)


def _wrong_death(name: str, after: list[Row], life: Life, due: float) -> Iterator[str]:
    if not after:
        yield f"{name} was {life.how} at {life.hit_at:.3f}, and nobody was told"
    elif after[0].at > due:
        yield f"{name} was {life.how} at {life.hit_at:.3f}, and was a zombie until {after[0].at:.3f}"
    elif life.how == "ended" and after[0].reason != "left":
        yield f"{name} said goodbye, and was called {after[0].reason}"


def _patience(life: Life, aways: list[Away]) -> float:
    """How long who died may be believed to live: longer, if the broker was away meanwhile."""
    patience = WHOLE_S
    for away in aways:
        if away.hit_at <= life.ended_at + patience and life.hit_at <= away.back_at:
            patience += away.back_at - away.hit_at + (RESTORED_S if away.how == "killed" else WHOLE_S)
    return patience


def wrong_list(listed: Iterable[str], lives: list[Life]) -> Iterator[str]:
    """Who lives is listed, and nobody else."""
    living = {name_of(number) for life in lives if not life.how for number in life.numbers}
    yield from (f"{name} is dead, and listed" for name in sorted(set(listed) - living))
    yield from (f"{name} lives, and is not listed" for name in sorted(living - set(listed)))


def wrong_indexes(rows: Iterable[Row]) -> Iterator[str]:
    """The changes of each start are 1, 2, 3 …, each once in the lake, and starts have epochs of their own (CAT-040)."""
    eras: dict[int, list[int]] = {}
    epochs: dict[str, set[int]] = {}
    for row in rows:
        eras.setdefault(row.era, []).append(row.sequence)
        epochs.setdefault(row.epoch, set()).add(row.era)
    for era, indexes in eras.items():
        for index, count in Counter(indexes).items():
            if count > 1:
                yield f"change {index} of start {era} is in the lake {count} times"
        missing = sorted(set(range(1, max(indexes) + 1)) - set(indexes))
        if missing:
            yield f"changes {missing[:5]} of start {era} are not in the lake"
    if any(len(of) > 1 for of in epochs.values()) or len(epochs) != len(eras):
        yield f"epochs of starts: {epochs}"


def wrong_watch(seen: Iterable[Change], rows: Iterable[Row]) -> Iterator[str]:
    """What was told to watchers had been made durable (CAT-050)."""
    kept = {(row.sequence, row.op, row.name, row.at) for row in rows}
    for change in seen:
        if change.at and (change.index, change.op, change.name, change.at) not in kept:
            yield f"{change.op} {change.name} was told as {change.index} at {change.at}, and is not in the lake"


Entries = dict[tuple[str, str], Entry]


def wrong_mirror(mirror: Entries, held: Entries) -> Iterator[str]:
    """A watcher has what the broker has (CAT-043)."""
    for key in sorted(mirror.keys() | held.keys()):
        if mirror.get(key) != held.get(key):
            yield f"the watcher has {mirror.get(key)} and the broker {held.get(key)} of {key}"


def wrong_answers(notes: Iterable[dict[str, Any]], lives: list[Life]) -> Iterator[str]:
    """Every answer is one to the question; who lives is found, also by a broker that has just come back (CAT-051)."""
    for note in notes:
        if "said" not in note:
            continue
        span = note["asked"], note["answered"]
        if note["said"] != "away":
            yield f"a client asked for {name_of(note['number'])} and got {note['said'][:200]}"
        elif any(life.lives_at(note["number"], *span) for life in lives):
            yield f"{name_of(note['number'])} lived and was not found at {note['answered']:.3f}"


def number_of(row: Row) -> int:
    return int(row.name[1:])
