"""Which records of which machine are not in the lake, since when and why (PIP-060..062), read from `gold.completeness`.

A machine is identified by its UUID; its name comes from the fleet's configuration, if the lake has that. Records that
are drained but not yet in the tables are counted too, because they may be the missing ones.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.base.errors import UserError
from weft.pipeline.completeness import ERASED, FILTERED
from weft.pipeline.configuration import names_in
from weft.pipeline.progress import waiting
from weft.pipeline.sql import Lake
from weft.pipeline.tables import COMPLETENESS, STAGES

ASKED: Final = """
SELECT stream, node, origin, era, state, expected, missing, lost, forgotten, complete_upto, closed, more, last_received,
       missing_ranges, lost_ranges
FROM gold.completeness ORDER BY stream, node, origin, era
"""
OPEN: Final = ("filling", "missing")
"""States in which records are still expected, or overdue."""
SHOWN: Final = 8  # ranges in one sentence; of more, it says that there are more


class Account(NamedTuple):
    """What is missing from one start (era) of one origin, in one stream."""

    stream: str
    name: str
    """Name of the machine; its UUID if the name is unknown."""
    origin: str
    era: int | None
    state: str
    expected: int
    missing: int
    lost: int
    forgotten: int
    complete_upto: int
    closed: bool
    more: bool
    last_received: datetime | None
    missing_ranges: list[tuple[int, int, datetime]]
    """First number, last number, and since when later ones are here."""
    lost_ranges: list[tuple[int, int, str]]
    """First, last and reason, without numbers that were removed on purpose."""

    @property
    def who(self) -> str:
        """The machine, the stream, and the start (era)."""
        which = "" if self.era is None else f" (epoch {self.era})"
        if self.era is not None and self.stream != "configuration":
            which = f" (start of {_stamp(_instant(self.era))})"
        return f"{self.name} {self.stream}{which}"

    def sentences(self) -> list[str]:
        """The report about it in sentences; empty if it is complete."""
        sentences = []
        if self.missing_ranges:
            count = f"{_ranges(self.missing_ranges)} ({self.missing:,} of {self.expected:,})"
            sentences.append(f"{self.who} {'waits for' if self.state == 'filling' else 'lacks'} {count}{self._since()}")
        sentences += [f"{self.who} has lost {_span(first, last)}: {why}" for first, last, why in self.lost_ranges]
        if self.state == "silent" and self.last_received is not None:
            last = _stamp(self.last_received)
            sentences.append(
                f"{self.who} is silent since {last}: what it has made since then, if anything, nobody here can know"
            )
        return sentences

    def _since(self) -> str:
        since = _stamp(min(since for _, _, since in self.missing_ranges))
        if self.closed:
            return ": that start is over and did not bring them, and nobody has announced a loss"
        return f", since {since}, when later ones were here; nobody has announced a loss"


class Accounts(NamedTuple):
    """What is missing from a lake."""

    rows: list[Account]
    """All accounts asked for, including complete ones."""
    waiting: int
    """Segments of the requested streams that are drained but not yet in the tables."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing or still on its way, as far as the lake shows."""
        return all(row.state not in OPEN for row in self.rows)


def accounts(lake: Path | str, *, node: str | None = None, stream: str | None = None) -> Accounts:
    """What is missing from a lake: of one machine (name or UUID) or all, in one stream or all.

    UserError `no-lake`; `no-stream`; `no-completeness` if no job has counted yet; `no-node`, which names nodes that the
    lake knows.
    """
    if stream is not None and stream not in STAGES:
        raise UserError("no-stream", f"there is no stream {stream!r}", f"--stream: {', '.join(STAGES)}")
    with Lake(lake) as asked:
        found = asked.query(ASKED).to_pylist() if COMPLETENESS in asked.tables() else []
        if not found:
            mend = "weft lake run: they are counted a minute after they were made, or at the end of --once"
            raise UserError("no-completeness", "the lake's tables have not been counted yet", mend)
        names = dict(names_in(asked))
        rows = [_account(row, names) for row in found]
        layout = asked.layout
    chosen = [row for row in rows if node is None or node in {row.name, row.origin, row.origin.rpartition("/")[2]}]
    if node is not None and not chosen:
        known = ", ".join(sorted({row.name for row in rows})[:20]) or "none"
        raise UserError("no-node", f"the lake has nothing of a node {node!r}", f"--node NODE; it knows of: {known}")
    kept = [row for row in chosen if stream is None or row.stream == stream]
    return Accounts(kept, waiting(layout, *(() if stream is None else (stream,))))


def _account(row: dict[str, Any], names: dict[str, str]) -> Account:
    node = row.pop("node")
    origin = row["origin"]
    name = names.get(origin, node)
    holes = [(hole["first"], hole["last"], hole["since"]) for hole in row.pop("missing_ranges")]
    losses = [(loss["first"], loss["last"], loss["why"]) for loss in row.pop("lost_ranges")]
    unwanted = [loss for loss in losses if loss[2] != ERASED and not loss[2].startswith(FILTERED)]
    return Account(name=name, missing_ranges=holes, lost_ranges=unwanted, **row)


def _span(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,}-{last:,}"


def _ranges(holes: list[tuple[int, int, datetime]]) -> str:
    """Some ranges as text.

    >>> _ranges([(5, 6, None), (8, 8, None)])
    '5-6, 8'
    """
    shown = ", ".join(_span(first, last) for first, last, _ in holes[:SHOWN])
    return shown + (" and more" if holes[SHOWN:] else "")


def _instant(microseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def _stamp(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
